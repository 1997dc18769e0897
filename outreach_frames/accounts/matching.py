"""Rows of one table that are in another, by e-mail address, profile URL or domain."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.analysis.companies import column_of
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.domains import domain_keys
from outreach_frames.identity.keys import email_keys, profnet_url_keys
from outreach_frames.identity.matching import Found, Keys, find_rows, same_persons
from outreach_frames.keys import texts_of
from outreach_frames.tables.interchange import FrameLike, as_frame

_Columns = dict[str, tuple[Hashable, Hashable]]
_Named = dict[str, tuple[Hashable, list[Hashable]]]
# A column of both tables, or (ours, theirs), where theirs may be a list of candidates.
MatchKey = Hashable | tuple[Hashable, Hashable | list[Hashable]]

_EMAIL, _PROFNET_URL = spec.LEAD_IDENTIFIERS
_DOMAIN: Final = "domain"
_KEYS: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    _EMAIL: email_keys,
    _PROFNET_URL: profnet_url_keys,
    _DOMAIN: domain_keys,
}
# A domain says who the employer is, not who the person is: only where it is asked for.
_DEFAULT: Final = (_EMAIL, _PROFNET_URL)
_NOUNS: Final = {_EMAIL: "e-mail address", _PROFNET_URL: "profile URL", _DOMAIN: "domain"}
_ARTICLES: Final = {_EMAIL: "an", _PROFNET_URL: "a", _DOMAIN: "a"}
_FOUND_PEOPLE: Final = (
    "People of a search have no e-mail address: compare them by profnet_url or domain."
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

    The keys are tried from the strongest: e-mail address, profile URL, domain. A profile URL other
    than `/in/<name>` is weak: it matches only where both rows have nothing else, neither an address
    nor a `/in/<name>`, in the columns compared. Missing never matches missing. With no key named,
    `email` and `profnet_url` are used where both tables have a column of that name; never the
    domain.

    Parameters
    ----------
    frame : DataFrame
        The rows to find; it is not changed.
    other : DataFrame, also of Polars, DuckDB or Arrow
        The table to find them in; it is not changed.
    email, profnet_url, domain : str or (str, str) or (str, list of str), optional
        The key's column: one name for both tables, or this table's and the other's, where the
        other's may be a list of candidates, of which the first that is there counts.

    Returns
    -------
    DataFrame
        With this table's index: match_row (Int64, the position in `other` of the first row that
        matches), match_index (its label), match_by (ordered category: email, profnet_url, domain)
        and match_count (Int64, how many rows of `other` match by that key). Where nothing matches
        match_count is 0 and the rest missing.

    Raises
    ------
    InvalidInputError
        A column is missing, or the tables have no key in common.

    Notes
    -----
    Keys are those of `of.keys`. By domain, everybody at a company matches.

    Examples
    --------
    >>> import outreach_frames as of
    >>> people = pd.DataFrame({"email": ["ada@x.example", "bo@x.example"]})
    >>> crm = pd.DataFrame({"E-Mail": ["Bo@X.example"], "owner": ["Cem"]})
    >>> people.outreach.match(crm, email=("email", "E-Mail"))["match_row"].tolist()
    [<NA>, 0]
    """
    named = _named(frame, {_EMAIL: email, _PROFNET_URL: profnet_url, _DOMAIN: domain})
    there = as_frame(other, "match()")
    columns = _columns(frame, there, named, "the other table")
    _check_all_there(named, [columns])
    ours = _read(frame, {kind: name for kind, (name, _) in columns.items()})
    found = _find(ours, there, columns, "the other table")
    rows = pd.array(found.rows, dtype="Int64")
    rows[found.rows < 0] = pd.NA
    return pd.DataFrame(
        {
            "match_row": rows,
            "match_index": _labels(there.index).reindex(found.rows).array,
            "match_by": pd.Categorical.from_codes(found.kinds, pd.Index(list(_KEYS)), ordered=True),
            "match_count": pd.array(found.counts, dtype="Int64"),
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
    """Leave out the people who are in other tables, such as customers or a suppression list.

    Rows match as in `match`. All rows of a person are left out if one of them matches. Rows of this
    table are one person if they share an address or a profile URL `/in/<name>`, over any number of
    steps; by any other URL only rows that have nothing else. The other tables link nobody.

    Parameters
    ----------
    frame : DataFrame
        The rows to choose from. It is not changed.
    *others : DataFrame, also of Polars, DuckDB or Arrow
        Tables with the rows to leave out.
    email, profnet_url, domain : str or (str, str) or (str, list of str), optional
        As for `match`. A key that one of the tables lacks is left out for that table.

    Returns
    -------
    DataFrame
        The rows of the people who match in none of the tables, in their order and with their
        labels.

    Raises
    ------
    InvalidInputError
        No table was given, a column is missing, or a table has no key in common with this one.

    Warns
    -----
    OutreachWarning
        When rows have no key, so that nothing could be compared and they stay; and when the other
        table has e-mail addresses and this one does not, as with the people of a search.

    Notes
    -----
    The columns named as keys say which rows are one person; with none named, this table's `email`
    and `profnet_url`, whether the other tables have them or not.

    Found people have no e-mail column. Compare them by profile URL and, where nobody at a customer
    is wanted, by domain; compare the addresses once contacts have been fetched.

    Examples
    --------
    >>> import outreach_frames as of
    >>> people = pd.DataFrame({"email": ["ada@x.example", "bo@x.example"]})
    >>> crm = pd.DataFrame({"E-Mail": ["Bo@X.example"]})
    >>> people.outreach.without(crm, email=("email", ["Email", "E-Mail"]))["email"].tolist()
    ['ada@x.example']
    """
    if not others:
        raise InvalidInputError("Give at least one table with the rows to leave out.")
    named = _named(frame, {_EMAIL: email, _PROFNET_URL: profnet_url, _DOMAIN: domain})
    there = [as_frame(other, "without()") for other in others]
    tables = [f"table {number}" for number in range(1, len(others) + 1)]
    columns = [
        _columns(frame, other, named, table) for other, table in zip(there, tables, strict=True)
    ]
    _check_all_there(named, columns)
    # A column that no other table has may still link the rows of a person.
    linking = named or {kind: (kind, []) for kind in _DEFAULT if kind in frame}
    ours = _read(frame, {kind: name for kind, (name, _) in linking.items()})
    is_found = np.zeros(len(frame), dtype=bool)
    has_no_key = np.zeros(len(frame), dtype=bool)
    for other, used, table in zip(there, columns, tables, strict=True):
        compared = ours._replace(**{kind: _missing(frame) for kind in _KEYS if kind not in used})
        is_found |= _find(compared, other, used, table).counts > 0
        has_no_key |= pc.coalesce(*compared).is_null().to_numpy(zero_copy_only=False)
    stays = ~same_persons(ours, is_found)
    _warn_of_gaps(frame, there, columns, named)
    if left := int((stays & has_no_key).sum()):
        kinds = " or ".join(_NOUNS[kind] for kind in _KEYS if any(kind in used for used in columns))
        verb = "has" if left == 1 else "have"
        warn(
            f"{plural(left, 'row')} {verb} no {kinds} to compare by, and "
            f"{'stays' if left == 1 else 'stay'}."
        )
    return frame.loc[stays]


def _find(ours: Keys, other: pd.DataFrame, columns: _Columns, table: str) -> Found:
    """Find the rows in another table, and warn of columns there that hold no keys."""
    theirs = _read(other, {kind: name for kind, (_, name) in columns.items()})
    for kind, (_, name) in columns.items():
        keys = getattr(theirs, kind)
        if keys.null_count == len(keys) and other[name].dropna().astype(str).str.strip().any():
            # Such as hashes, or bytes: they would match nobody, and look as if nobody were there.
            warn(
                f"No value in the column {quoted(name)} of {table} can be read as "
                f"{_ARTICLES[kind]} {_NOUNS[kind]}: nobody matches by it."
            )
    return find_rows(ours, theirs)


def _read(frame: pd.DataFrame, columns: Mapping[str, Hashable]) -> Keys:
    """Return the keys in some columns by kind; those of other kinds are missing."""
    return Keys(
        *(
            keys(texts_of(column_of(frame, columns[kind]))) if kind in columns else _missing(frame)
            for kind, keys in _KEYS.items()
        )
    )


def _missing(frame: pd.DataFrame) -> pa.Array:
    return pa.nulls(len(frame), pa.large_string())


def _labels(index: pd.Index[Any]) -> pd.Series[Any]:
    """Return the labels by position, in a dtype that can hold missing ones."""
    labels = pd.Series(index.to_flat_index())
    return labels.astype("Int64") if pd.api.types.is_integer_dtype(labels.dtype) else labels


def _named(frame: pd.DataFrame, keys: Mapping[str, MatchKey | None]) -> _Named:
    """Return our column and the candidates for theirs, by kind of key, where these are named."""
    named: _Named = {}
    for kind, key in keys.items():
        if isinstance(key, tuple) and len(key) != 2:
            raise InvalidInputError(
                f"{kind}={quoted(key)} is not a pair: give (this table's column, the other's "
                "column)."
            )
        if key is not None:
            ours, theirs = key if isinstance(key, tuple) else (key, key)
            _check_ours(frame, kind, ours)
            named[kind] = ours, theirs if isinstance(theirs, list) else [theirs]
    return named


def _columns(frame: pd.DataFrame, other: pd.DataFrame, named: _Named, table: str) -> _Columns:
    """Return the columns to compare, ours and theirs, by kind of key; strongest first."""
    wanted = named or {kind: (kind, [kind]) for kind in _DEFAULT if kind in frame}
    used = {
        kind: (ours, next(name for name in theirs if name in other.columns))
        for kind, (ours, theirs) in wanted.items()
        if any(name in other.columns for name in theirs)
    }
    if not used:
        raise InvalidInputError(_no_key(frame, other, named, table))
    return used


def _check_ours(frame: pd.DataFrame, kind: str, ours: Hashable) -> None:
    try:
        column_of(frame, ours)
    except InvalidInputError as error:
        if kind != _EMAIL or _PROFNET_URL not in frame:
            raise
        raise InvalidInputError(f"{error} {_FOUND_PEOPLE}") from None


def _check_all_there(named: _Named, columns: Sequence[_Columns]) -> None:
    """Refuse a key that was named, and that no other table has."""
    for kind, (_, theirs) in named.items():
        if not any(kind in used for used in columns):
            raise InvalidInputError(f"{kind}: no other table has a column {_or(theirs)}.")


def _no_key(frame: pd.DataFrame, other: pd.DataFrame, named: _Named, table: str) -> str:
    listed = ", ".join(map(quoted, list(other.columns)[:_COLUMNS_SHOWN])) or "none"
    if named:
        missing = ", ".join(_or(theirs) for _, theirs in named.values())
        return f"{table} has none of the columns {missing}. Its columns: {listed}."
    people = f" {_FOUND_PEOPLE}" if _has_email(other) and not _has_email(frame) else ""
    return (
        f"This table and {table} do not both have a column {_EMAIL!r} or {_PROFNET_URL!r}.{people} "
        f'Name the columns, such as {_PROFNET_URL}=("{_PROFNET_URL}", "Profile"). '
        f"The columns of {table}: {listed}."
    )


def _or(names: Sequence[Hashable]) -> str:
    return " or ".join(map(quoted, names))


def _warn_of_gaps(
    frame: pd.DataFrame,
    others: Sequence[pd.DataFrame],
    columns: Sequence[_Columns],
    named: _Named,
) -> None:
    """Warn of what could not be compared: somebody may stay who is in a table."""
    for number, (other, used) in enumerate(zip(others, columns, strict=True), 1):
        if lacking := " and ".join(_NOUNS[kind] for kind in named if kind not in used):
            warn(f"Table {number} has no column for {lacking}: not compared by it.")
        if not named and _has_email(other) and not _has_email(frame):
            warn(
                f"The frame lacks an e-mail column, so whoever is in table {number} by e-mail "
                "address alone stays."
            )


def _has_email(frame: pd.DataFrame) -> bool:
    return any(str(name).casefold().replace("-", "") == _EMAIL for name in frame.columns)
