"""Compare two tables of people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.analysis.companies import COMPANY_KEYS, COMPANY_PREFIX
from outreach_frames.analysis.tenure import iso_days
from outreach_frames.common import terms
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.read import is_workbook
from outreach_frames.history import caveats
from outreach_frames.history.headcounts import compare_headcounts
from outreach_frames.history.result import PeopleComparison
from outreach_frames.history.source import Source, open_last_two, open_source
from outreach_frames.history.values import are_incomparable, differ, texts
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
    `changed` omits links to pictures, which expire, and columns that have lists in one table and
    text in the other, or times and numbers, as in files that pandas wrote; `notes` lists these
    columns. Two missing values are equal. Lists are compared member by member, and numbers exactly.
    An employer that is missing in one table is unknown, not changed. A company's headcounts are
    those of its row with the most headcounts. If a table has a company's headcount in other
    departments, a missing department counts as 0.

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
    old_employers, new_employers = numbers[0][people.pairs_before], numbers[1][people.pairs_after]
    moved, unknown = _employers_differ(pairs, old_employers, new_employers)
    notes = [*notes_on_people, *caveats.describe_skipped_rows(people), *notes_on_companies]
    notes += caveats.describe(
        "People whose employer is missing in one table and cannot be compared",
        pairs.people[0].take(unknown).to_pylist(),
    )
    changed, incomparable = _changes(pairs, progress)
    comparison = PeopleComparison(
        appeared=new.take(people.new),
        disappeared=old.take(people.gone),
        changed=changed,
        employer_changes=_employer_changes(pairs, moved),
        headcounts=compare_headcounts(old, new, companies),
        sizes=(old.rows, new.rows, len(people.pairs_before)),
        totals=(caveats.known_total(old), caveats.known_total(new)),
        notes=[
            *differences,
            *caveats.describe_unknown_filters((old, new)),
            *notes,
            *caveats.describe_skipped_columns(old, new),
            *caveats.describe("Columns of other types, which were not compared", incomparable),
        ],
    )
    if limits := [*differences, *notes]:
        # The notes may name people; their beginnings do not.
        heads = [message.partition(": ")[0].rstrip(".") for message in limits]
        warn(f"{'; '.join(heads)}. See the comparison's notes.")
    return comparison


class _Pairs:
    """The matched rows of both tables, read column by column."""

    def __init__(self, before: Source, after: Source, people: Matching) -> None:
        self._sides = (before, people.pairs_before), (after, people.pairs_after)
        self.count = len(people.pairs_before)
        known = set(after.columns)
        self.columns = [name for name in before.columns if name in known]

    def read(self, name: str, pairs: Any = slice(None)) -> tuple[pa.Array, pa.Array]:
        """Return a column of both tables, or missing values for a table without the column."""
        before, after = (
            side.column(name).take(pa.array(rows[pairs])) for side, rows in self._sides
        )
        return before, after

    def read_texts(self, name: str) -> tuple[pa.Array, pa.Array]:
        """Return a column of both tables as text."""
        before, after = self.read(name)
        return texts(before), texts(after)

    def latest_texts(self, name: str) -> pa.Array:
        """Return a column's texts of the later table, or else of the earlier table."""
        before, after = map(filled_texts, self.read_texts(name))
        return pc.coalesce(after, before)

    def columns_of(self, name: str) -> list[pa.Array]:
        """Return a column of both tables with all rows."""
        return [side.column(name) for side, _ in self._sides]

    def parts(self, columns: Sequence[pa.Array]) -> Iterator[tuple[int, pa.Array, pa.Array]]:
        """Yield a column of both tables in parts, each with its first pair's number."""
        for start in range(0, self.count, _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            before, after = (
                column.take(pa.array(rows[part]))
                for column, (_, rows) in zip(columns, self._sides, strict=True)
            )
            yield start, before, after

    @cached_property
    def people(self) -> tuple[pa.Array, pa.Array]:
        """The people's ids, or else profile URLs, and their names."""
        old_names, new_names = self.read_texts(_NAME)
        ids = pc.coalesce(self.latest_texts(_ID), self.latest_texts(_URL))
        return ids, pc.coalesce(new_names, old_names)


def _changes(pairs: _Pairs, progress: bool | None) -> tuple[pd.DataFrame, list[str]]:
    """Return one row per person and changed field, and the columns that cannot be compared."""
    fields = [name for name in pairs.columns if name != _ID and not name.startswith(COMPANY_PREFIX)]
    fields = [name for name in fields if name not in _IGNORED]
    incomparable: list[str] = []
    changed_pairs = [np.empty(0, np.int64)]
    changes = [pa.schema([(name, TEXT) for name in ("field", "before", "after")]).empty_table()]
    with progress_bar(
        len(fields), description="comparing", unit="columns", progress=progress
    ) as bar:
        for name in fields:
            bar.update()
            columns = pairs.columns_of(name)
            if are_incomparable(*columns):
                incomparable.append(name)
                continue
            for start, before, after in pairs.parts(columns):
                changed = np.flatnonzero(differ(before, after))
                if len(changed):
                    changed_pairs.append(start + changed)
                    field = pa.repeat(pa.scalar(name, TEXT), len(changed))
                    values = [texts(side.take(pa.array(changed))) for side in (before, after)]
                    changes.append(pa.table([field, *values], schema=changes[0].schema))
    people = np.concatenate(changed_pairs)
    order = np.argsort(people, kind="stable")
    ids, names = (column.take(pa.array(people[order])) for column in pairs.people)
    table = pa.concat_tables(changes).take(pa.array(order))
    table = table.add_column(0, "name", names).add_column(0, "person_id", ids)
    return to_frame(table, "numpy_nullable"), incomparable


def _employer_changes(pairs: _Pairs, moved: pa.Array) -> pd.DataFrame:
    """Return one row per person with another employer; `moved` has their pairs."""
    ids, names = pairs.people
    company_ids, urls, company_names = (
        [filled_texts(column) for column in pairs.read_texts(key)] for key in COMPANY_KEYS
    )
    old_company, new_company = map(pc.coalesce, company_names, urls, company_ids)
    old_title, new_title = pairs.read_texts(_TITLE)
    columns = {
        "person_id": ids,
        "name": names,
        "company_before": old_company,
        "company_after": new_company,
        "title_before": old_title,
        "title_after": new_title,
        _URL: pairs.latest_texts(_URL),
        f"{COMPANY_KEYS[0]}_before": company_ids[0],
        f"{COMPANY_KEYS[0]}_after": company_ids[1],
    }
    table = {name: column.take(moved) for name, column in columns.items()}
    _, started = pairs.read(_START, np.asarray(moved))
    table[_START] = pa.array(iso_days(texts(started)))
    return to_frame(pa.table(table), "numpy_nullable")


def _employers_differ(pairs: _Pairs, old: Rows, new: Rows) -> tuple[pa.Array, pa.Array]:
    """Return the pairs with different employers, and those with an employer in only one row.

    `old` and `new` are the numbers of the pairs' companies. Of a company's id, profile URL and
    name, the first that both rows have decides.
    """
    moved = np.zeros(pairs.count, dtype=bool)
    is_known = np.zeros(pairs.count, dtype=bool)
    remaining = np.flatnonzero((old != new) | (old == NONE))
    for name in [key for key in COMPANY_KEYS if key in pairs.columns]:
        before, after = (_key(name, column) for column in pairs.read(name, remaining))
        had, has = (key.is_valid().to_numpy(zero_copy_only=False) for key in (before, after))
        is_known[remaining] |= had | has
        moved[remaining] = had & has & differ(before, after)
        remaining = remaining[~(had & has)]
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
    if not set(before.columns) & set(after.columns) & set(COMPANY_KEYS):
        return None, iter(())
    id_column, _, name_column = COMPANY_KEYS
    old, new = (
        [pa.array(own, mask=own == NONE).cast(TEXT), _key(name_column, side.column(name_column))]
        for own, side in zip(numbers, (before, after), strict=True)
    )
    companies = match_rows(old, new)
    old_ids, new_ids = _read_keys(before, after, id_column)
    changed = _other_ids(old_ids.take(companies.pairs_before), new_ids.take(companies.pairs_after))
    shared = [
        _other_ids(ids.take(side.first_of_row[side.repeated]), ids.take(side.repeated))
        for ids, side in ((old_ids, companies.before), (new_ids, companies.after))
    ]
    return companies, caveats.describe_ids("Companies", changed, shared)


def _other_ids(ids: pa.Array, others: pa.Array) -> list[str]:
    """Return the distinct ids of `others` that differ from `ids`."""
    return [*others.filter(pc.not_equal(ids, others)).unique().drop_null().to_pylist()]


def _match_people(before: Source, after: Source) -> tuple[Matching, Iterator[str]]:
    """Match people by id, then by profile URL; also return notes."""
    if not any(name in before.columns and name in after.columns for name in (_ID, _URL)):
        raise InvalidInputError(
            f"{before.name} and {after.name} have no common column {_ID!r} or {_URL!r} to match "
            f"people by. Use frames or files of {terms.function('search_people')} or "
            f"{terms.function('export_people')}."
        )
    old_ids, new_ids = _read_keys(before, after, _ID)
    old_urls, new_urls = _read_keys(before, after, _URL)
    by_id = match_rows([old_ids, old_urls], [new_ids, new_urls])
    people, old_repeated, new_repeated = match_remaining(
        by_id,
        old_urls.take(pa.array(np.concatenate([by_id.pairs_before, by_id.gone]))),
        new_urls.take(pa.array(np.concatenate([by_id.pairs_after, by_id.new]))),
    )
    # Rows with a new id, which only their URL has matched.
    by_url = np.setdiff1d(by_id.new, np.concatenate([people.new, new_repeated]), assume_unique=True)
    old_names, new_names = pc.coalesce(old_ids, old_urls), pc.coalesce(new_ids, new_urls)
    changed = new_names.take(pa.array(by_url)).to_pylist()
    shared = old_names.take(pa.array(old_repeated)), new_names.take(pa.array(new_repeated))
    return people, caveats.describe_ids("People", changed, [ids.to_pylist() for ids in shared])


def _read_keys(before: Source, after: Source, name: str) -> tuple[pa.Array, pa.Array]:
    """Return the keys of a column of both tables."""
    old, new = (_key(name, side.column(name)).cast(TEXT) for side in (before, after))
    return old, new


def _key(name: str, column: pa.Array) -> pa.Array:
    """Return a column's normalised keys; missing for blank cells."""
    keys = filled_texts(texts(column))
    return _NORMALISED[name](keys) if name in _NORMALISED else strip_texts(keys)


_NORMALISED: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    _URL: lambda urls: certain_keys(profnet_url_keys(urls)),
    f"{COMPANY_PREFIX}{_URL}": company_url_keys,
    f"{COMPANY_PREFIX}{_NAME}": company_name_keys,
}
