"""Match rows with other tables, or exclude matching rows, by email, profile URL or domain."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.accounts.companies import drop_shared_domains
from outreach_frames.accounts.excluded import Excluded, Since, read_sources
from outreach_frames.accounts.uncompared import call_with, columns_holding, describe_columns
from outreach_frames.common.text import listed, plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.read import frame_or_file
from outreach_frames.identity.cells import Cells, join_cells, texts_of
from outreach_frames.identity.domains import domain_cells
from outreach_frames.identity.keys import company_name_cells, email_cells, profnet_url_cells
from outreach_frames.identity.matching import Keys, find_matches, repeat_rows, same_persons
from outreach_frames.identity.persons import Rows, identifiers
from outreach_frames.tables.column_checks import column_of, near_column, require_name
from outreach_frames.tables.columns import columns_like, usual_column
from outreach_frames.tables.interchange import A_FRAME, FrameLike

_TABLES: Final = f"{A_FRAME} or the path of a table"

# For each kind of key: this table's columns, and the other table's columns.
_Columns = Mapping[str, tuple[list[Hashable], list[Hashable]]]
# One or several names for both tables, or (this table's names, the other table's names).
_Names = Hashable | list[Hashable]
MatchKey = _Names | tuple[_Names, _Names]

_EMAIL, _PROFNET_URL = spec.LEAD_IDENTIFIERS
_DOMAIN: Final = "domain"
_COMPANY_NAME: Final = "company_name"
_KEYS: Final[Mapping[str, Callable[[pa.Array], Cells]]] = {
    _EMAIL: email_cells,
    _PROFNET_URL: profnet_url_cells,
    _DOMAIN: domain_cells,
    _COMPANY_NAME: company_name_cells,
}
# A domain or company name identifies the employer, so it is compared only on request.
_DEFAULT: Final = (_EMAIL, _PROFNET_URL)
_NOUNS: Final = {
    _EMAIL: "email address",
    _PROFNET_URL: "profile URL",
    _DOMAIN: "domain",
    _COMPANY_NAME: "company name",
}
_PLURALS: Final = {_EMAIL: "email addresses", _PROFNET_URL: "profile URLs"}
_THIS_TABLE: Final = "This table"
_OTHER_TABLE: Final = "The other table"


class _Table(NamedTuple):
    """A table, its name in messages, and its columns for each kind of key."""

    frame: pd.DataFrame
    name: str
    columns: Mapping[str, list[Hashable]]


def match(
    frame: pd.DataFrame,
    other: FrameLike | str | Path,
    *,
    email: MatchKey | None = None,
    profnet_url: MatchKey | None = None,
    domain: MatchKey | None = None,
    company_name: MatchKey | None = None,
) -> pd.DataFrame:
    """Find the matching row in another table for each row.

    Keys are tried in the order email, profile URL, domain, company name. A profile URL other than
    `/in/<name>` is weak: it matches only if neither row has an email or a URL `/in/<name>` in the
    compared columns. Missing values never match each other. A cell with several keys, or with text
    beside its key other than a label or a name in front of `<...>`, matches nothing. If no key is
    passed, emails and profile URLs are compared if both tables have columns with usual names, such
    as Email or Profile URL: the exact name (`email`) is preferred, and two others are an error.
    Domains and company names are compared only on request. Passed names are compared without case,
    blanks, hyphens and underscores.

    Parameters
    ----------
    frame : DataFrame
        The rows to match; it is not changed.
    other : DataFrame, also of Polars, DuckDB or Arrow, or the path of a table
        The table to search; it is not changed. A file is read as text.
    email : str, list of str or a pair of these, optional
        The column with email addresses: one name for both tables, or a pair (column of this table,
        column of `other`). Of a list, all existing columns are compared, and the first that matches
        decides.
    profnet_url : str, list of str or a pair of these, optional
        The column with profile URLs, as for `email`.
    domain : str, list of str or a pair of these, optional
        The column with websites or email addresses, as for `email`.
    company_name : str, list of str or a pair of these, optional
        The column with company names, as for `email`.

    Returns
    -------
    DataFrame
        One row per row of `frame`, with the same index: match_row (Int64, the position in `other`
        of the first matching row), match_index (the index label of that row), match_by (ordered
        category: email, profnet_url, domain, company_name) and match_count (Int64, the number of
        rows of `other` that match by that key). For unmatched rows, match_count is 0 and the other
        columns are missing.

    Raises
    ------
    InvalidInputError
        A column is missing or ambiguous, the tables have no common key, or a file cannot be read.

    Warns
    -----
    OutreachWarning
        Cells hold other text, or several keys, or only one of the tables has emails. A column of
        addresses or profile URLs is not compared.

    Notes
    -----
    Keys are normalised as in `of.keys`, but an email address of a free mail provider, such as
    gmail.com, and a page at a social network, link list or site builder, such as facebook.com/ada,
    have no domain key; a warning counts these cells. A comparison by domain or company name matches
    everybody at a company.

    Examples
    --------
    >>> import outreach_frames as of
    >>> people = pd.DataFrame({"email": ["ada@x.example", "bo@x.example"]})
    >>> crm = pd.DataFrame({"E-Mail": ["Bo@X.example"], "owner": ["Cem"]})
    >>> people.outreach.match(crm, email=("email", "E-Mail"))["match_row"].tolist()
    [<NA>, 0]
    """
    theirs = frame_or_file(other, "match()", _TABLES)
    given = dict(zip(_KEYS, (email, profnet_url, domain, company_name), strict=True))
    requested = _requested(frame, given, [theirs])
    columns = _columns(frame, theirs, requested, _OTHER_TABLE, [theirs])
    _require_columns(frame, requested, [theirs], [columns])
    _warn_of_gaps(frame, [theirs], [columns], requested, [_OTHER_TABLE])
    tables = [
        _Table(frame, _THIS_TABLE, {kind: name for kind, (name, _) in columns.items()}),
        _Table(theirs, _OTHER_TABLE, {kind: name for kind, (_, name) in columns.items()}),
    ]
    cells_of_tables = [_read_cells(table) for table in tables]
    _warn_of_cells(tables, cells_of_tables, [0, 0], single=True)
    _warn_of_uncompared(tables, requested)
    keys, their_keys = (
        Keys(*(pa.concat_arrays([column.single_keys() for column in columns]) for columns in table))
        for table in cells_of_tables
    )
    matches = find_matches(keys, their_keys, len(frame), len(theirs))
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
    *others: Excluded | Sequence[Excluded],
    email: MatchKey | None = None,
    profnet_url: MatchKey | None = None,
    domain: MatchKey | None = None,
    company_name: MatchKey | None = None,
    since: Since | None = None,
) -> pd.DataFrame:
    """Exclude the people of other tables, such as customers or a suppression list.

    Rows match as in `match`, but a cell with several keys, such as a list or the text
    `ann@x.example; bo@x.example`, matches by each of these keys. So does a cell with other text
    beside its keys, such as `do not contact: bo@x.example`, and a warning counts these cells: it is
    worse to keep somebody than to exclude somebody. If one row of a person matches, all rows of the
    person are excluded. Rows of this table belong to one person if they share an email or a profile
    URL `/in/<name>`, directly or through other rows of this table; any other URL links only rows
    that have neither. Rows of the other tables do not link rows of this table.

    A journal excludes all people that its submission may have reached: all recorded people except
    those with the status `rejected` or `not_sent`. With `since`, only people whose last attempt is
    not older, and those who were in the exclusion list. A journal holds hashes, not addresses.

    Parameters
    ----------
    frame : DataFrame
        The rows to filter; it is not changed.
    *others : DataFrame, also of Polars, DuckDB or Arrow, or the path of a table or journal
        Tables with the people to exclude, also in lists. A path may be a pattern, such as
        `campaigns/*.journal`. A file is not changed; a table is read as text.
    email : str, list of str or a pair of these, optional
        The column with email addresses, as for `match`; all columns of a list exclude. A table is
        not compared by keys that it lacks; a journal has only emails and profile URLs.
    profnet_url : str, list of str or a pair of these, optional
        The column with profile URLs, as for `email`.
    domain : str, list of str or a pair of these, optional
        The column with websites or email addresses, as for `email`.
    company_name : str, list of str or a pair of these, optional
        The column with company names, as for `email`.
    since : str, date or timedelta, optional
        A day as YYYY-MM-DD, or a span back from now, such as "90D": older attempts of journals
        exclude nobody. Days are in UTC; tables exclude as without `since`.

    Returns
    -------
    DataFrame
        The rows of all unmatched people, with order and index unchanged.

    Raises
    ------
    InvalidInputError
        No table was passed, a column is missing or ambiguous, a table has no key in common with
        this table, a path does not lead to a table or journal, a pattern matches no file, or
        `since` was passed without a journal.

    Warns
    -----
    OutreachWarning
        Cells hold other text than keys, a domain column has email addresses of free mail providers
        or pages of networks, rows without a key are kept, or only one of the tables has emails. A
        column of addresses or profile URLs is not compared.

    Notes
    -----
    The columns passed as keys decide which rows belong to one person. If no key is passed, this
    table's columns with usual names decide, even if the other tables lack such columns. Pass the
    whole table: parts of it, such as the partitions of a Dask frame, would keep a person who is
    excluded only through a row in another part.

    Search results have no email column. Compare them by profile URL; compare them by domain to
    exclude everybody at a customer. Fetch the contacts before comparing emails.

    Examples
    --------
    >>> import outreach_frames as of
    >>> people = pd.DataFrame({"email": ["ada@x.example", "bo@x.example"]})
    >>> crm = pd.DataFrame({"E-Mail": ["Bo@X.example"]})
    >>> people.outreach.without(crm, email=("email", ["Email", "E-Mail"]))["email"].tolist()
    ['ada@x.example']
    """
    frames, names, journals = map(list, zip(*read_sources(others, since), strict=True))
    given = dict(zip(_KEYS, (email, profnet_url, domain, company_name), strict=True))
    requested = _requested(frame, given, frames)
    for place, journal in enumerate(journals):
        if journal is not None:
            usable = [theirs[0] for kind, (_, theirs) in requested.items() if kind in journal.kinds]
            if requested and not usable:
                kinds = " or ".join(journal.kinds)
                raise InvalidInputError(f"{names[place]} is compared by {kinds} only.")
            # A frame without rows, but with the columns of the journal's keys.
            frames[place] = pd.DataFrame(columns=usable or journal.kinds)
    columns = [
        _columns(frame, other, requested, name, frames)
        for other, name in zip(frames, names, strict=True)
    ]
    _require_columns(frame, requested, frames, columns)
    # A key that no other table has may still link rows of one person.
    linking = {kind: ours for kind, (ours, _) in requested.items()} or _defaults(frame)
    tables = [_Table(frame, _THIS_TABLE, linking)]
    for other, name, used in zip(frames, names, columns, strict=True):
        tables.append(_Table(other, name, {kind: theirs for kind, (_, theirs) in used.items()}))
    cells_of_tables = [_read_cells(table) for table in tables]
    joined = [[*map(join_cells, cells)] for cells in cells_of_tables]
    keys, rows = repeat_rows(joined[0])
    none = pa.nulls(len(rows), pa.large_string())
    is_match = np.zeros(len(rows), dtype=bool)
    is_keyless = np.zeros(len(frame), dtype=bool)
    keyless_rows = [0]
    for cells, used, journal in zip(joined[1:], columns, journals, strict=True):
        compared = keys._replace(**{kind: none for kind in _KEYS if kind not in used})
        their_keys, their_rows = repeat_rows(cells)
        is_match |= find_matches(compared, their_keys, len(rows), len(their_rows)).counts > 0
        if journal is not None:
            is_match |= journal.are_among(identifiers(keys.email, keys.profnet_url))
        has_key = _have_key(their_keys, their_rows, len(cells[0].counts))
        keyless_rows.append(int((~has_key).sum()))
        is_keyless |= ~_have_key(compared, rows, len(frame))
    is_kept = np.ones(len(frame), dtype=bool)
    is_kept[rows[same_persons(keys, is_match, rows)]] = False
    _warn_of_gaps(frame, frames, columns, requested, names)
    _warn_of_cells(tables, cells_of_tables, keyless_rows, single=False)
    used_kinds = {kind for used in columns for kind in used}
    own = {kind: ours for kind, ours in linking.items() if kind in used_kinds}
    _warn_of_uncompared([tables[0]._replace(columns=own), *tables[1:]], requested)
    if keyless := int((is_kept & is_keyless).sum()):
        kinds = " or ".join(_NOUNS[kind] for kind in _KEYS if any(kind in used for used in columns))
        warn(f"Rows without {kinds} to compare are kept: {keyless:,}.")
    return frame.loc[is_kept]


def _columns_error(
    problem: str, frame: pd.DataFrame, others: Sequence[pd.DataFrame], kinds: Iterable[str]
) -> InvalidInputError:
    """Return an error that lists the tables' columns and ends with the columns to pass."""
    theirs = "; ".join(listed(other.columns) for other in others)
    return InvalidInputError(
        f"{problem} This table has {listed(frame.columns)}; the other has {theirs}. "
        f"{_example(frame, others, kinds)}"
    )


def _example(frame: pd.DataFrame, others: Sequence[pd.DataFrame], kinds: Iterable[str]) -> str:
    """Return the advice to pass the columns with such values, or with similar names."""
    tables = [(_THIS_TABLE, frame), *((_OTHER_TABLE, other) for other in others)]
    for kind in kinds:
        shown: list[str] = []
        columns: list[list[Hashable]] = []
        for name, table in tables:
            holding = columns_holding(kind, table) if kind in _DEFAULT else {}
            shown += describe_columns(name, holding)
            columns.append([*holding] or columns_like(kind, table.columns)[:1])
        ours, theirs = columns[0], [*dict.fromkeys(chain.from_iterable(columns[1:]))]
        if ours and theirs:
            listed_columns = f"There are {_PLURALS[kind]}: {'; '.join(shown)}. " if shown else ""
            return f"{listed_columns}Pass {call_with(kind, ours, theirs)}."
    return f'Name both columns, such as {_PROFNET_URL}=("{_PROFNET_URL}", "Profile").'


def _have_key(keys: Keys, rows: Rows, size: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows of a table have at least one key."""
    has_key = np.zeros(size, dtype=bool)
    has_key[rows[pc.coalesce(*keys).is_valid().to_numpy(zero_copy_only=False)]] = True
    return has_key


def _read_cells(table: _Table) -> list[list[Cells]]:
    """Read the keys of each column, by kind; a kind without a column has cells without keys."""
    return [
        [_read_column(table.frame, kind, name) for name in table.columns.get(kind, ())]
        or [Cells.without_keys(len(table.frame))]
        for kind in _KEYS
    ]


def _read_column(frame: pd.DataFrame, kind: str, name: Hashable) -> Cells:
    texts = texts_of(column_of(frame, name))
    cells = _KEYS[kind](texts)
    if kind != _DOMAIN:
        return cells
    rows = np.repeat(np.arange(len(frame)), cells.counts)
    of_keys = texts.take(pa.array(rows))
    return cells._replace(keys=drop_shared_domains(of_keys, cells.keys, name, frame.index[rows]))


def _warn_of_cells(
    tables: Sequence[_Table],
    cells_of_tables: Sequence[list[list[Cells]]],
    keyless_rows: Sequence[int],
    *,
    single: bool,
) -> None:
    """Warn once of ambiguous cells and of rows without a key to compare.

    `keyless_rows` has the number of such rows per table. With `single`, a cell with several keys
    has no key.
    """
    counts: list[str] = []
    example = ""
    for table, columns, keyless in zip(tables, cells_of_tables, keyless_rows, strict=True):
        names = (name for kind in _KEYS for name in table.columns.get(kind, [None]))
        for name, cells in zip(names, chain.from_iterable(columns), strict=True):
            is_unread = (cells.counts > 1) & single
            is_unread[cells.ambiguous] = True
            if len(rows := np.flatnonzero(is_unread)):
                counts.append(f"{table.name}, column {quoted(name)}: {plural(len(rows), 'cell')}")
                cell = column_of(table.frame, name).iloc[rows[0]]
                example = example or f" For example, row {rows[0]} holds {quoted(cell)}."
        if keyless:
            counts.append(f"{table.name}: {plural(keyless, 'row')} without a key")
    if counts:
        rule = (
            "Not compared, because cells do not hold exactly one key"
            if single
            else "Only whole keys were compared, because cells hold other text or no key"
        )
        warn(f"{rule}: {'; '.join(counts)}.{example}")


def _warn_of_uncompared(tables: Sequence[_Table], requested: _Columns) -> None:
    """Warn once of columns with addresses or profile URLs that no comparison uses."""
    sentences: list[str] = []
    for kind in [kind for kind in requested or _DEFAULT if kind in _DEFAULT]:
        holding = [
            columns_holding(kind, table.frame, table.columns.get(kind, ())) for table in tables
        ]
        is_unused = kind not in tables[0].columns
        names = chain.from_iterable(table.frame.columns for table in tables)
        # `_warn_of_gaps` has told of tables without an email column.
        is_told = is_unused and kind == _EMAIL and columns_like(_EMAIL, names)
        # A journal has no rows here, and columns of any kind.
        has_rows = any(len(table.frame) for table in tables[1:])
        if not any(holding) or is_told or (is_unused and not has_rows):
            continue
        ours, *theirs = (
            [*table.columns.get(kind, ()), *columns]
            for table, columns in zip(tables, holding, strict=True)
        )
        others = [*dict.fromkeys(chain.from_iterable(theirs))]
        shown = chain.from_iterable(
            describe_columns(table.name, columns)
            for table, columns in zip(tables, holding, strict=True)
        )
        advice = (
            f"To compare them, pass {call_with(kind, ours, others)}."
            if ours and others
            else f"{'The other table' if ours else 'This table'} has no such column."
        )
        sentences.append(
            f"Columns of {_PLURALS[kind]} were not compared: {'; '.join(shown)}. {advice}"
        )
    if sentences:
        warn(" ".join(sentences))


def _labels(index: pd.Index[Any]) -> pd.Series[Any]:
    """Convert an index to a Series that can hold missing labels."""
    labels = pd.Series(index.to_flat_index())
    return labels.astype("Int64") if pd.api.types.is_integer_dtype(labels.dtype) else labels


def _requested(
    frame: pd.DataFrame, keys: Mapping[str, MatchKey | None], others: Sequence[pd.DataFrame]
) -> _Columns:
    """Check the requested keys; return this table's columns and the other's names by kind."""
    requested = {}
    for kind, key in keys.items():
        if isinstance(key, tuple) and len(key) != 2:
            raise InvalidInputError(
                f"{kind}={quoted(key)} is not a pair. Pass (this table's column, the other's "
                "column)."
            )
        if key is not None:
            ours, theirs = (
                _names(kind, names) for names in (key if isinstance(key, tuple) else (key, key))
            )
            requested[kind] = _find_columns(frame, ours, _THIS_TABLE), theirs
            if not requested[kind][0]:
                problem = f"This table has no column {listed(ours)}."
                raise _columns_error(problem, frame, others, [kind])
    return requested


def _names(kind: str, given: _Names) -> list[Hashable]:
    names = given if isinstance(given, list) else [given]
    for name in names:
        require_name(kind, name, ", a list of names, or a pair of these")
    return names


def _columns(
    frame: pd.DataFrame,
    other: pd.DataFrame,
    requested: _Columns,
    table: str,
    others: Sequence[pd.DataFrame],
) -> _Columns:
    """Return the columns of both tables for each kind of key, the strongest kind first.

    An error names columns that exist in `others`, which are all tables to compare.
    """
    if requested:
        candidates = {
            kind: (ours, _find_columns(other, theirs, table))
            for kind, (ours, theirs) in requested.items()
        }
        names = chain.from_iterable(theirs for _, theirs in requested.values())
        problem = f"{table} has none of the columns {listed(names)}."
    else:
        candidates = {
            kind: (ours, [name])
            for kind, ours in _defaults(frame).items()
            if (name := usual_column(other, kind, table)) is not None
        }
        kinds = " or ".join(_defaults(frame) or _DEFAULT)
        problem = f"{table} has no column with a usual name of {kinds}."
    used = {kind: both for kind, both in candidates.items() if both[1]}
    if not used:
        problem += " Search results have no email address: compare them by profnet_url or domain."
        raise _columns_error(problem, frame, others, requested or _DEFAULT)
    return used


def _defaults(frame: pd.DataFrame) -> dict[str, list[Hashable]]:
    """Return the columns to compare if the caller requests no key."""
    columns = {kind: usual_column(frame, kind, _THIS_TABLE) for kind in _DEFAULT}
    return {kind: [name] for kind, name in columns.items() if name is not None}


def _find_columns(frame: pd.DataFrame, names: list[Hashable], table: str) -> list[Hashable]:
    """Return the columns with these names or similar names."""
    near = (near_column(frame, name, table) for name in names)
    return [name for name in dict.fromkeys(near) if name in frame.columns]


def _require_columns(
    frame: pd.DataFrame,
    requested: _Columns,
    others: Sequence[pd.DataFrame],
    columns: Sequence[_Columns],
) -> None:
    """Reject a requested key that no other table has."""
    for kind, (_, theirs) in requested.items():
        if not any(kind in used for used in columns):
            problem = f"{kind}: no other table has any of the columns {listed(theirs)}."
            raise _columns_error(problem, frame, others, [kind])


def _warn_of_gaps(
    frame: pd.DataFrame,
    others: Sequence[pd.DataFrame],
    columns: Sequence[_Columns],
    requested: _Columns,
    names: Sequence[str],
) -> None:
    """Warn of keys that could not be compared, because people to exclude may be kept."""
    for table, other, used in zip(names, others, columns, strict=True):
        has_email = columns_like(_EMAIL, [*frame.columns, *other.columns])
        kinds = [*requested] or ([_EMAIL] if has_email else [])
        if lacking := [kind for kind in kinds if kind not in used]:
            keys = " and ".join(_NOUNS[kind] for kind in lacking)
            warn(
                f"{table} was not compared by {keys}: this table or the other has no such column. "
                f"People that only this key identifies do not match. "
                f"{_example(frame, [other], lacking)}"
            )
