"""Compare two tables of people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.analysis.companies import COMPANY_KEYS, COMPANY_PREFIX
from outreach_frames.analysis.tenure import iso_days
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.read import is_workbook
from outreach_frames.history import caveats
from outreach_frames.history.headcounts import compare_headcounts
from outreach_frames.history.result import PeopleComparison
from outreach_frames.history.source import Source, open_last_two, open_source
from outreach_frames.history.values import differ, texts
from outreach_frames.identity.keys import (
    certain_keys,
    company_name_keys,
    company_url_keys,
    filled_texts,
    profnet_url_keys,
)
from outreach_frames.identity.matching import Matching, match_remaining, match_rows
from outreach_frames.identity.persons import NONE, Rows, first_company_rows
from outreach_frames.tables.interchange import FrameLike
from outreach_frames.tables.schema import to_frame
from outreach_frames.tables.value_text import TEXT, strip_texts

_ID, _URL, _NAME, _TITLE = "id", "profnet_url", "name", "title"
_START: Final = "current_position_start_date"
# The list columns of a million people take half a gigabyte, and a comparison copies the columns.
_ROWS_AT_ONCE: Final = 100_000
# Links to pictures change with every search.
_IGNORED: Final = ("image_url", "company_logo_url")


def compare_people(
    before: FrameLike | str | Path,
    after: FrameLike | str | Path | None = None,
    *,
    progress: bool | None = None,
) -> PeopleComparison:
    """Compare two tables of people: list appeared and disappeared people, and changed values.

    People are matched by id, then by profile URL `/in/<name>`: rows with the same URL but different
    ids are one person, and `notes` lists such ids. Other URLs are not matched, since they do not
    identify a person. Rows with the same company id or profile URL are one company, and companies
    without both are matched by name. People may also disappear because a search is incomplete or
    differs from the other search; `notes` lists these cases.

    Parameters
    ----------
    before : DataFrame, also of Polars, DuckDB or Arrow; or str or Path
        A frame of people, or a file or folder as for `read_prospects`, such as a snapshot. Without
        `after`, a folder of snapshots, of which the last two are compared.
    after : DataFrame, also of Polars, DuckDB or Arrow; or str or Path; optional
        The later people, as for `before`.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, for long runs.

    Returns
    -------
    PeopleComparison
        The tables `appeared`, `disappeared`, `changed`, `employer_changes`, `headcount`, and the
        methods `summary()`, `to_excel` and `to_csv`.

    Raises
    ------
    InvalidInputError
        A file cannot be read, a folder holds fewer than two snapshots, or the tables have no common
        column of ids or profile URLs.

    Warns
    -----
    OutreachWarning
        The searches had different filters or limits, a search is incomplete, ids of people or
        companies changed, or rows or employers could not be compared.

    Notes
    -----
    `changed` omits links to pictures, which expire. Two missing values are equal. Lists are
    compared member by member, and numbers exactly. An employer that is missing in one table is
    unknown, not changed. A company's headcounts are those of its row with the most headcounts. If a
    table has a company's headcount in other departments, a missing department counts as 0.

    Parquet is read column by column. Two tables of a million people take 4 GB of memory if most
    people are in both. `appeared` and `disappeared` have all columns and take 4 GB per million
    people: without common people, the comparison takes 11 GB.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None) as client:
    ...     before = of.search_people(person_seniorities=["vp"], limit=None)
    ...     today = client.sandbox.advance(days=30)
    ...     after = of.search_people(person_seniorities=["vp"], limit=None)
    >>> changes = of.compare_people(before, after)
    >>> changes.summary()[["item", "count"]]
                   item  count
    0            before     61
    1             after     64
    2           in_both     58
    3          appeared      6
    4       disappeared      3
    5           changed      4
    6  employer_changes      4
    7         headcount     34
    >>> changes.employer_changes[["name", "company_after"]].head(2)
                name               company_after
    0   Saúl Sánchez  Pellarquay Works Pte. Ltd.
    1  Yolanda Gómez  Rillinpath Trust Pvt. Ltd.
    """
    unfinished: list[str] = []
    if after is None:
        old, new, unfinished = open_last_two(before)
    else:
        if is_workbook(before) != is_workbook(after):
            raise InvalidInputError(
                "A workbook does not keep lists, empty text and line ends, so it can only be "
                "compared with another workbook. Pass two workbooks, or two CSV or Parquet files."
            )
        old, new = open_source(before, "before"), open_source(after, "after")
    people, notes_on_people = _match_people(old, new)
    numbers = _company_numbers(old, new)
    companies, notes_on_companies = _match_companies(old, new, numbers)
    pairs = _Pairs(old, new, people)
    differences = [*unfinished, *caveats.describe_searches((old, new), people)]
    own, other = numbers[0][people.pairs_before], numbers[1][people.pairs_after]
    moved, unknown = _employers_differ(pairs, own, other)
    rows = [*notes_on_people, *caveats.describe_skipped_rows(people), *notes_on_companies]
    rows += caveats.describe(
        "People whose employer is missing in one table and cannot be compared",
        pairs.people[0].take(unknown).to_pylist(),
    )
    comparison = PeopleComparison(
        appeared=new.take(people.new),
        disappeared=old.take(people.gone),
        changed=_changes(pairs, progress),
        employer_changes=_employer_changes(pairs, moved),
        headcounts=compare_headcounts(old, new, companies),
        sizes=(old.rows, new.rows, len(people.pairs_before)),
        totals=(caveats.known_total(old), caveats.known_total(new)),
        differences=[*differences, *caveats.describe_unknown_filters((old, new))],
        remarks=[*rows, *caveats.describe_skipped_columns(old, new)],
    )
    for message in [*differences, *rows]:
        warn(message)
    return comparison


class _Pairs:
    """The matched rows of both tables, read column by column."""

    def __init__(self, before: Source, after: Source, people: Matching) -> None:
        self._sides = (before, people.pairs_before), (after, people.pairs_after)
        self.count = len(people.pairs_before)
        known = set(after.columns)
        self.columns = [name for name in before.columns if name in known]

    def read(self, name: str, rows: Any = slice(None)) -> tuple[pa.Array, pa.Array]:
        """Return a column of both tables, or missing values for a table without the column."""
        before, after = (side.column(name).take(pa.array(own[rows])) for side, own in self._sides)
        return before, after

    def text(self, name: str) -> tuple[pa.Array, pa.Array]:
        before, after = self.read(name)
        return texts(before), texts(after)

    def parts(self, name: str) -> Iterator[tuple[int, pa.Array, pa.Array]]:
        """Yield a column of both tables in parts, each with its first pair's number."""
        columns = [side.column(name) for side, _ in self._sides]
        for start in range(0, self.count, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            before, after = (
                column.take(pa.array(own[rows]))
                for column, (_, own) in zip(columns, self._sides, strict=True)
            )
            yield start, before, after

    @cached_property
    def people(self) -> tuple[pa.Array, pa.Array]:
        """The people's ids, or else profile URLs, and their names."""
        urls, ids, names = (self.text(name) for name in (_URL, _ID, _NAME))
        return pc.coalesce(*map(filled_texts, (*ids[::-1], *urls[::-1]))), pc.coalesce(*names[::-1])


def _changes(pairs: _Pairs, progress: bool | None) -> pd.DataFrame:
    fields = [name for name in pairs.columns if name != _ID and not name.startswith(COMPANY_PREFIX)]
    fields = [name for name in fields if name not in _IGNORED]
    rows = [np.empty(0, np.int64)]
    found = [pa.schema([(name, TEXT) for name in ("field", "before", "after")]).empty_table()]
    with progress_bar(
        len(fields), description="comparing", unit="columns", progress=progress
    ) as bar:
        for name in fields:
            for start, before, after in pairs.parts(name):
                changed = np.flatnonzero(differ(before, after))
                if len(changed):
                    rows.append(start + changed)
                    field = pa.repeat(pa.scalar(name, TEXT), len(changed))
                    values = [texts(side.take(pa.array(changed))) for side in (before, after)]
                    found.append(pa.table([field, *values], schema=found[0].schema))
            bar.update()
    people = np.concatenate(rows)
    order = np.argsort(people, kind="stable")
    ids, names = (column.take(pa.array(people[order])) for column in pairs.people)
    changes = pa.concat_tables(found).take(pa.array(order))
    table = changes.add_column(0, "name", names).add_column(0, "person_id", ids)
    return to_frame(table, "numpy_nullable")


def _employer_changes(pairs: _Pairs, moved: pa.Array) -> pd.DataFrame:
    ids, names = pairs.people
    table = {"person_id": ids.take(moved), "name": names.take(moved)}
    employers = [pairs.text(key) for key in reversed(COMPANY_KEYS)]
    for place, side in enumerate(("before", "after")):
        company = pc.coalesce(*(filled_texts(one[place]) for one in employers))
        table[f"company_{side}"] = company.take(moved)
    for side, titles in zip(("before", "after"), pairs.text(_TITLE), strict=True):
        table[f"title_{side}"] = titles.take(moved)
    urls = map(filled_texts, reversed(pairs.text(_URL)))
    table[_URL] = pc.coalesce(*urls).take(moved)
    for side, company_ids in zip(("before", "after"), employers[-1], strict=True):
        table[f"{COMPANY_KEYS[0]}_{side}"] = filled_texts(company_ids).take(moved)
    _, started = pairs.read(_START, np.asarray(moved))
    table[_START] = pa.array(iso_days(texts(started)))
    return to_frame(pa.table(table), "numpy_nullable")


def _employers_differ(pairs: _Pairs, old: Rows, new: Rows) -> tuple[pa.Array, pa.Array]:
    """Return the pairs with different employers, and those with an employer in only one row.

    `old` and `new` are the numbers of the pairs' companies.
    """
    moved = np.zeros(pairs.count, dtype=bool)
    remaining = np.flatnonzero((old != new) | (old == NONE))
    is_known = np.zeros(pairs.count, dtype=bool)
    keys = [key for key in COMPANY_KEYS if key in pairs.columns]
    for name in keys:
        before, after = (_key(name, column) for column in pairs.read(name, remaining))
        own, other = (key.is_valid().to_numpy(zero_copy_only=False) for key in (before, after))
        is_known[remaining] |= own | other
        moved[remaining] = own & other & differ(before, after)
        remaining = remaining[~(own & other)]
    return pa.array(np.flatnonzero(moved)), pa.array(remaining[is_known[remaining]])


def _company_numbers(before: Source, after: Source) -> tuple[Rows, Rows]:
    """Return each row's company number in both tables, -1 without id and profile URL."""
    ids, urls = (
        pa.concat_arrays([texts(side.column(key)) for side in (before, after)])
        for key in COMPANY_KEYS[:2]
    )
    numbers = first_company_rows(ids, urls, pa.nulls(len(ids), TEXT))
    return numbers[: before.rows], numbers[before.rows :]


def _match_companies(
    before: Source, after: Source, numbers: tuple[Rows, Rows]
) -> tuple[Matching | None, Iterator[str]]:
    """Match companies by their number, else by name; also return notes on their ids."""
    sides = before, after
    if not any(all(key in side.columns for side in sides) for key in COMPANY_KEYS):
        return None, iter(())
    columns = [pa.array(own, mask=own == NONE).cast(TEXT) for own in numbers]
    names = [_key(COMPANY_KEYS[2], side.column(COMPANY_KEYS[2])) for side in sides]
    found = match_rows(*([own, name] for own, name in zip(columns, names, strict=True)))
    old, new = (_key(COMPANY_KEYS[0], side.column(COMPANY_KEYS[0])).cast(TEXT) for side in sides)
    new_ids = _other_ids(old.take(found.pairs_before), new.take(found.pairs_after))
    shared = [
        _other_ids(ids.take(side.first_of_row[side.repeated]), ids.take(side.repeated))
        for ids, side in ((old, found.before), (new, found.after))
    ]
    return found, caveats.describe_ids("Companies", new_ids, shared)


def _other_ids(ids: pa.Array, others: pa.Array) -> list[str]:
    """Return the distinct ids of `others` that differ from `ids`."""
    return [*others.filter(pc.not_equal(ids, others)).unique().drop_null().to_pylist()]


def _match_people(before: Source, after: Source) -> tuple[Matching, Iterator[str]]:
    """Match people by id, then by profile URL; also return notes."""
    sides = before, after
    if not any(name in before.columns and name in after.columns for name in (_ID, _URL)):
        raise InvalidInputError(
            f"{before.name} and {after.name} have no common column {_ID!r} or {_URL!r} to match "
            "people by. Use frames or files of search_people() or export_people()."
        )
    keys = [[_key(name, side.column(name)).cast(TEXT) for name in (_ID, _URL)] for side in sides]
    found = match_rows(*keys)
    rows = (found.pairs_before, found.gone), (found.pairs_after, found.new)
    urls = [
        own[1].take(pa.array(np.concatenate(of_side)))
        for own, of_side in zip(keys, rows, strict=True)
    ]
    matching, *dropped = match_remaining(found, *urls)
    is_new = np.setdiff1d(found.new, np.concatenate([matching.new, dropped[1]]), assume_unique=True)
    *shared, new_ids = (
        pc.coalesce(*own).take(pa.array(places)).to_pylist()
        for own, places in zip((*keys, keys[1]), (*dropped, is_new), strict=True)
    )
    return matching, caveats.describe_ids("People", new_ids, shared)


def _key(name: str, column: pa.Array) -> pa.Array:
    keys = filled_texts(texts(column))
    return _NORMALISED[name](keys) if name in _NORMALISED else strip_texts(keys)


_NORMALISED: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    _URL: lambda urls: certain_keys(profnet_url_keys(urls)),
    f"{COMPANY_PREFIX}{_URL}": company_url_keys,
    f"{COMPANY_PREFIX}{_NAME}": company_name_keys,
}
