"""Match and exclude rows that occur in other tables, by email, profile URL or domain."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.accounts.companies import drop_free_mail
from outreach_frames.analysis.companies import column_of
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.domains import domain_keys
from outreach_frames.identity.keys import email_keys, profnet_url_keys
from outreach_frames.identity.matching import Keys, Matches, find_matches, same_persons
from outreach_frames.keys import texts_of
from outreach_frames.tables.interchange import FrameLike, as_frame

# By kind of key: our column, and theirs or the candidates for theirs.
_Columns = dict[str, tuple[Hashable, Hashable]]
_Candidates = dict[str, tuple[Hashable, list[Hashable]]]
# A column of both tables, or (ours, theirs), where theirs may be a list of candidates.
MatchKey = Hashable | tuple[Hashable, Hashable | list[Hashable]]

_EMAIL, _PROFNET_URL = spec.LEAD_IDENTIFIERS
_DOMAIN: Final = "domain"
_KEYS: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    _EMAIL: email_keys,
    _PROFNET_URL: profnet_url_keys,
    _DOMAIN: domain_keys,
}
# A domain identifies the employer, not the person, so it is compared only on request.
_DEFAULT: Final = (_EMAIL, _PROFNET_URL)
_NOUNS: Final = {_EMAIL: "email address", _PROFNET_URL: "profile URL", _DOMAIN: "domain"}
_ARTICLES: Final = {_EMAIL: "an", _PROFNET_URL: "a", _DOMAIN: "a"}
_FOUND_PEOPLE: Final = (
    "People of a search have no email address. Compare them by profnet_url or domain."
)
_COLUMNS_SHOWN: Final = 20


def match(
    frame: pd.DataFrame,
    other: FrameLike,
    *,
    email: MatchKey | None = None,
    profnet_url: MatchKey | None = None,
    domain: MatchKey | None = None,
) -> pd.DataFrame:
    """Find each row's counterpart in another table.

    Keys are tried in the order email, profile URL, domain. A profile URL other than `/in/<name>` is
    weak: it matches only if neither row has an email or a `/in/<name>` in the compared columns.
    Missing never matches missing. With no key named, `email` and `profnet_url` are compared if both
    tables have a column of that name; never the domain.

    Parameters
    ----------
    frame : DataFrame
        The rows to match; it is not changed.
    other : DataFrame, also of Polars, DuckDB or Arrow
        The table to search; it is not changed.
    email, profnet_url, domain : str or (str, str) or (str, list of str), optional
        The key's column: one name for both tables, or this table's and the other's. The other's may
        be a list of candidates, of which the first existing column is used.

    Returns
    -------
    DataFrame
        With this table's index: match_row (Int64, the position in `other` of the first matching
        row), match_index (its label), match_by (ordered category: email, profnet_url, domain)
        and match_count (Int64, the rows of `other` that match by that key). For unmatched rows,
        match_count is 0 and the other columns are missing.

    Raises
    ------
    InvalidInputError
        A column is missing, or the tables have no common key.

    Notes
    -----
    Keys are those of `of.keys`, but an email address of a free mail provider, such as gmail.com,
    has no domain; a warning counts them. By domain, everybody at a company matches.

    Examples
    --------
    >>> import outreach_frames as of
    >>> people = pd.DataFrame({"email": ["ada@x.example", "bo@x.example"]})
    >>> crm = pd.DataFrame({"E-Mail": ["Bo@X.example"], "owner": ["Cem"]})
    >>> people.outreach.match(crm, email=("email", "E-Mail"))["match_row"].tolist()
    [<NA>, 0]
    """
    requested = _requested(frame, {_EMAIL: email, _PROFNET_URL: profnet_url, _DOMAIN: domain})
    theirs = as_frame(other, "match()")
    columns = _columns(frame, theirs, requested, "the other table")
    _require_columns(requested, [columns])
    keys = _read_keys(frame, {kind: name for kind, (name, _) in columns.items()})
    matches = _match(keys, theirs, columns, "the other table")
    rows = pd.array(matches.rows, dtype="Int64")
    rows[matches.rows < 0] = pd.NA
    return pd.DataFrame(
        {
            "match_row": rows,
            "match_index": _labels(theirs.index).reindex(matches.rows).array,
            "match_by": pd.Categorical.from_codes(
                matches.kinds, pd.Index(list(_KEYS)), ordered=True
            ),
            "match_count": pd.array(matches.counts, dtype="Int64"),
        },
        index=frame.index,
    )


def without(
    frame: pd.DataFrame,
    *others: FrameLike,
    email: MatchKey | None = None,
    profnet_url: MatchKey | None = None,
    domain: MatchKey | None = None,
) -> pd.DataFrame:
    """Exclude the people of other tables, such as customers or a suppression list.

    Rows match as in `match`. If one row of a person matches, all rows of the person are excluded.
    Rows of this table are one person if they share an email or a profile URL `/in/<name>`, over any
    number of steps; any other URL links only rows that have no other key. The other tables do not
    link rows of this table.

    Parameters
    ----------
    frame : DataFrame
        The rows to filter; it is not changed.
    *others : DataFrame, also of Polars, DuckDB or Arrow
        Tables with the people to exclude.
    email, profnet_url, domain : str or (str, str) or (str, list of str), optional
        As for `match`. A table that lacks one of the keys is not compared by it.

    Returns
    -------
    DataFrame
        The rows of all unmatched people, in their order and with their labels.

    Raises
    ------
    InvalidInputError
        No table was passed, a column is missing, or a table has no key in common with this one.

    Warns
    -----
    OutreachWarning
        Rows have no key and are kept without a comparison, a domain column has email addresses of
        free mail providers, or the other table has emails and this one does not, as with the people
        of a search.

    Notes
    -----
    The columns named as keys decide which rows are one person; with no key named, this table's
    `email` and `profnet_url`, whether the other tables have them or not.

    People of a search have no email column. Compare them by profile URL and, to exclude everybody
    at a customer, by domain; compare emails once contacts have been fetched.

    Examples
    --------
    >>> import outreach_frames as of
    >>> people = pd.DataFrame({"email": ["ada@x.example", "bo@x.example"]})
    >>> crm = pd.DataFrame({"E-Mail": ["Bo@X.example"]})
    >>> people.outreach.without(crm, email=("email", ["Email", "E-Mail"]))["email"].tolist()
    ['ada@x.example']
    """
    if not others:
        raise InvalidInputError("Pass at least one table with the people to exclude.")
    requested = _requested(frame, {_EMAIL: email, _PROFNET_URL: profnet_url, _DOMAIN: domain})
    frames = [as_frame(other, "without()") for other in others]
    tables = [f"table {number}" for number in range(1, len(others) + 1)]
    columns = [
        _columns(frame, other, requested, table)
        for other, table in zip(frames, tables, strict=True)
    ]
    _require_columns(requested, columns)
    # A column that no other table has may still link the rows of a person.
    linking = requested or {kind: (kind, []) for kind in _DEFAULT if kind in frame}
    keys = _read_keys(frame, {kind: name for kind, (name, _) in linking.items()})
    is_match = np.zeros(len(frame), dtype=bool)
    has_no_key = np.zeros(len(frame), dtype=bool)
    for other, used, table in zip(frames, columns, tables, strict=True):
        compared = keys._replace(**{kind: _missing(frame) for kind in _KEYS if kind not in used})
        is_match |= _match(compared, other, used, table).counts > 0
        has_no_key |= pc.coalesce(*compared).is_null().to_numpy(zero_copy_only=False)
    is_kept = ~same_persons(keys, is_match)
    _warn_of_gaps(frame, frames, columns, requested)
    if keyless := int((is_kept & has_no_key).sum()):
        kinds = " or ".join(_NOUNS[kind] for kind in _KEYS if any(kind in used for used in columns))
        have, are = ("has", "is") if keyless == 1 else ("have", "are")
        warn(f"{plural(keyless, 'row')} {have} no {kinds} to compare by and {are} kept.")
    return frame.loc[is_kept]


def _match(ours: Keys, other: pd.DataFrame, columns: _Columns, table: str) -> Matches:
    """Match rows to another table, and warn of columns there without any key."""
    theirs = _read_keys(other, {kind: name for kind, (_, name) in columns.items()})
    for kind, (_, name) in columns.items():
        keys = getattr(theirs, kind)
        if keys.null_count == len(keys) and other[name].dropna().astype(str).str.strip().any():
            # Hashes or bytes, for example.
            warn(
                f"No value in the column {quoted(name)} of {table} can be read as "
                f"{_ARTICLES[kind]} {_NOUNS[kind]}, so no row matches by it."
            )
    return find_matches(ours, theirs)


def _read_keys(frame: pd.DataFrame, columns: Mapping[str, Hashable]) -> Keys:
    """Read the keys from columns by kind; other kinds are missing."""
    read = Keys(
        *(
            keys(texts_of(column_of(frame, columns[kind]))) if kind in columns else _missing(frame)
            for kind, keys in _KEYS.items()
        )
    )
    if _DOMAIN in columns:
        column = column_of(frame, columns[_DOMAIN])
        read = read._replace(domain=drop_free_mail(column, read.domain)[0])
    return read


def _missing(frame: pd.DataFrame) -> pa.Array:
    return pa.nulls(len(frame), pa.large_string())


def _labels(index: pd.Index[Any]) -> pd.Series[Any]:
    """Return an index as a Series that can hold missing labels."""
    labels = pd.Series(index.to_flat_index())
    return labels.astype("Int64") if pd.api.types.is_integer_dtype(labels.dtype) else labels


def _requested(frame: pd.DataFrame, keys: Mapping[str, MatchKey | None]) -> _Candidates:
    """Check the requested keys, and return our column and the candidates for theirs by kind."""
    requested: _Candidates = {}
    for kind, key in keys.items():
        if isinstance(key, tuple) and len(key) != 2:
            raise InvalidInputError(
                f"{kind}={quoted(key)} is not a pair. Pass (this table's column, the other's "
                "column)."
            )
        if key is not None:
            ours, theirs = key if isinstance(key, tuple) else (key, key)
            _require_our_column(frame, kind, ours)
            requested[kind] = ours, theirs if isinstance(theirs, list) else [theirs]
    return requested


def _columns(
    frame: pd.DataFrame, other: pd.DataFrame, requested: _Candidates, table: str
) -> _Columns:
    """Return the columns to compare by kind of key, the strongest first."""
    keys = requested or {kind: (kind, [kind]) for kind in _DEFAULT if kind in frame}
    used = {
        kind: (ours, next(name for name in theirs if name in other.columns))
        for kind, (ours, theirs) in keys.items()
        if any(name in other.columns for name in theirs)
    }
    if not used:
        raise InvalidInputError(_explain_no_key(frame, other, requested, table))
    return used


def _require_our_column(frame: pd.DataFrame, kind: str, ours: Hashable) -> None:
    try:
        column_of(frame, ours)
    except InvalidInputError as error:
        if kind != _EMAIL or _PROFNET_URL not in frame:
            raise
        raise InvalidInputError(f"{error} {_FOUND_PEOPLE}") from None


def _require_columns(requested: _Candidates, columns: Sequence[_Columns]) -> None:
    """Reject a requested key that no other table has."""
    for kind, (_, theirs) in requested.items():
        if not any(kind in used for used in columns):
            raise InvalidInputError(f"{kind}: no other table has a column {_join_or(theirs)}.")


def _explain_no_key(
    frame: pd.DataFrame, other: pd.DataFrame, requested: _Candidates, table: str
) -> str:
    listed = ", ".join(map(quoted, list(other.columns)[:_COLUMNS_SHOWN])) or "none"
    if requested:
        missing = ", ".join(_join_or(theirs) for _, theirs in requested.values())
        return f"{table} has none of the columns {missing}. Its columns: {listed}."
    people = f" {_FOUND_PEOPLE}" if _has_email(other) and not _has_email(frame) else ""
    return (
        f"This table and {table} do not both have a column {_EMAIL!r} or {_PROFNET_URL!r}.{people} "
        f'Name the columns, such as {_PROFNET_URL}=("{_PROFNET_URL}", "Profile"). '
        f"The columns of {table}: {listed}."
    )


def _join_or(names: Sequence[Hashable]) -> str:
    return " or ".join(map(quoted, names))


def _warn_of_gaps(
    frame: pd.DataFrame,
    others: Sequence[pd.DataFrame],
    columns: Sequence[_Columns],
    requested: _Candidates,
) -> None:
    """Warn of keys that could not be compared, so that listed people may be kept."""
    for number, (other, used) in enumerate(zip(others, columns, strict=True), 1):
        if lacking := " and ".join(_NOUNS[kind] for kind in requested if kind not in used):
            warn(f"Table {number} has no column for {lacking}: not compared by it.")
        if not requested and _has_email(other) and not _has_email(frame):
            warn(
                f"The frame has no email column. People that table {number} identifies only by "
                "email address are kept."
            )


def _has_email(frame: pd.DataFrame) -> bool:
    return any(str(name).casefold().replace("-", "") == _EMAIL for name in frame.columns)
