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
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.text import BLANKS
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.history import caveats
from outreach_frames.history.headcounts import Headcounts, compare_headcounts
from outreach_frames.history.result import PeopleComparison
from outreach_frames.history.source import Source, open_last_two, open_source
from outreach_frames.history.values import Mask, differ, texts
from outreach_frames.identity.keys import (
    certain_keys,
    company_name_keys,
    company_url_keys,
    filled_texts,
    profnet_url_keys,
)
from outreach_frames.identity.matching import Matching, match_remaining, match_rows
from outreach_frames.identity.persons import Rows
from outreach_frames.tables.interchange import FrameLike
from outreach_frames.tables.schema import to_frame
from outreach_frames.tables.value_text import TEXT

_ID, _URL, _NAME, _TITLE = "id", "profnet_url", "name", "title"
# The list columns of a million people take half a gigabyte, and a comparison copies them.
_ROWS_AT_ONCE: Final = 100_000


def compare_people(
    before: FrameLike | str | Path,
    after: FrameLike | str | Path | None = None,
    *,
    progress: bool | None = None,
) -> PeopleComparison:
    """Compare two tables of people: who appeared, who disappeared, and what changed.

    People are matched by id, then by profile URL `/in/<name>`. A person matched by URL with
    different ids is listed in `notes`. Other URLs are not matched, since they do not identify a
    person. People may disappear without having left: `notes` lists differences between the two
    searches, and incomplete ones.

    Parameters
    ----------
    before, after : DataFrame, also of Polars, DuckDB or Arrow; or str or Path
        Frames of people, or files and folders as for `read_prospects`, such as a snapshot. With
        only `before`, a folder of snapshots, of which the last two are compared.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, for long runs.

    Returns
    -------
    PeopleComparison
        With `appeared`, `disappeared`, `changed`, `employer_changes`, `headcount`, `summary()`,
        `to_excel` and `to_csv`.

    Raises
    ------
    InvalidInputError
        A file cannot be read, a folder holds fewer than two snapshots, or a table has neither ids
        nor profile URLs.

    Warns
    -----
    OutreachWarning
        The searches had different filters or limits, one is incomplete, ids of people changed, or
        rows could not be compared.

    Notes
    -----
    Missing equals missing; lists are compared member by member, numbers exactly. Parquet is read
    column by column; a million people on each side fit into 4 GB.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     before = of.search_people(person_seniorities=["vp"])
    >>> after = before.iloc[5:]
    >>> len(of.compare_people(before, after).disappeared)
    5
    """
    unfinished: list[str] = []
    if after is None:
        old, new, unfinished = open_last_two(before)
    else:
        old, new = open_source(before, "before"), open_source(after, "after")
    people, new_ids = _match_people(old, new)
    pairs = _Pairs(old, new, people)
    differences = [*unfinished, *caveats.describe_searches(old, new, people)]
    rows = [*caveats.describe_changed_ids(new_ids), *caveats.describe_skipped_rows(people)]
    comparison = PeopleComparison(
        appeared=new.take(people.new),
        disappeared=old.take(people.gone),
        changed=_changes(pairs, progress),
        employer_changes=_employer_changes(pairs),
        headcounts=_headcounts(old, new),
        sizes=(old.rows, new.rows, len(people.pairs_before)),
        totals=(caveats.known_total(old), caveats.known_total(new)),
        differences=[*differences, *caveats.describe_unknown_filters(old, new)],
        remarks=[*rows, *caveats.describe_skipped_columns(old, new)],
    )
    for message in [*differences, *rows]:
        warn(message)
    return comparison


class _Pairs:
    """The matched rows of both sides, read column by column."""

    def __init__(self, before: Source, after: Source, people: Matching) -> None:
        self._sides = (before, people.pairs_before), (after, people.pairs_after)
        self.count = len(people.pairs_before)
        known = set(after.columns)
        self.columns = [name for name in before.columns if name in known]

    def read(self, name: str, rows: Any = slice(None)) -> tuple[pa.Array, pa.Array]:
        """Return a column of both sides; all missing on a side without it."""
        before, after = (_column(side, name, own[rows]) for side, own in self._sides)
        return before, after

    def text(self, name: str) -> tuple[pa.Array, pa.Array]:
        before, after = self.read(name)
        return texts(before), texts(after)

    def parts(self, name: str) -> Iterator[tuple[int, pa.Array, pa.Array]]:
        """Yield a column of both sides part by part, each with the number of its first pair."""
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
        """The people's ids, or profile URLs if they have none, and their names."""
        urls, ids, names = (self.text(name) for name in (_URL, _ID, _NAME))
        return pc.coalesce(*map(filled_texts, (*ids[::-1], *urls[::-1]))), pc.coalesce(*names[::-1])


def _changes(pairs: _Pairs, progress: bool | None) -> pd.DataFrame:
    fields = [name for name in pairs.columns if name != _ID and not name.startswith(COMPANY_PREFIX)]
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


def _employer_changes(pairs: _Pairs) -> pd.DataFrame:
    moved = pa.array(np.flatnonzero(_has_moved(pairs)))
    ids, names = pairs.people
    table = {"person_id": ids.take(moved), "name": names.take(moved)}
    employers = [pairs.text(key) for key in reversed(COMPANY_KEYS)]
    for place, side in enumerate(("before", "after")):
        company = pc.coalesce(*(filled_texts(one[place]) for one in employers))
        table[f"company_{side}"] = company.take(moved)
    for side, titles in zip(("before", "after"), pairs.text(_TITLE), strict=True):
        table[f"title_{side}"] = titles.take(moved)
    return to_frame(pa.table(table), "numpy_nullable")


def _has_moved(pairs: _Pairs) -> Mask:
    """Return whether each person's employer differs, by the first key that both sides have."""
    moved = np.zeros(pairs.count, dtype=bool)
    remaining = np.arange(pairs.count)
    had, has = np.zeros(pairs.count, dtype=bool), np.zeros(pairs.count, dtype=bool)
    for name in (key for key in COMPANY_KEYS if key in pairs.columns):
        before, after = (_key(name, column) for column in pairs.read(name, remaining))
        old, new = (key.is_valid().to_numpy(zero_copy_only=False) for key in (before, after))
        had[remaining] |= old
        has[remaining] |= new
        moved[remaining] = old & new & differ(before, after)
        remaining = remaining[~(old & new)]
    moved[remaining] = had[remaining] != has[remaining]
    return moved


def _headcounts(before: Source, after: Source) -> Headcounts:
    present = [key for key in COMPANY_KEYS if key in before.columns and key in after.columns]
    companies = match_rows(*_keys((before, after), present)) if present else None
    return compare_headcounts(before, after, companies)


def _match_people(before: Source, after: Source) -> tuple[Matching, list[str]]:
    """Match people by id, then by URL; also return the new ids of people whose ids differ."""
    for side in (before, after):
        if _ID not in side.columns and _URL not in side.columns:
            raise InvalidInputError(
                f"{side.name} has neither a column {_ID!r} nor {_URL!r} to match people by. Use "
                "frames of search_people(), or files of export_people()."
            )
    found = match_rows(*_keys((before, after), (_ID, _URL)))
    sides = (before, found.gone), (after, found.new)
    people = match_remaining(found, *(_key(_URL, _column(side, _URL, of)) for side, of in sides))
    has_new_id = np.setdiff1d(found.new, people.new, assume_unique=True)
    return people, _key(_ID, _column(after, _ID, has_new_id)).to_pylist()


def _keys(sides: Sequence[Source], names: Sequence[str]) -> list[list[pa.Array]]:
    """Return the keys of both sides, up to the first key that all rows have."""
    keys: list[list[pa.Array]] = [[] for _ in sides]
    for name in names:
        for side, of_side in zip(sides, keys, strict=True):
            has_column = name in side.columns
            of_side.append(_key(name, side.column(name) if has_column else pa.nulls(side.rows)))
        if not any(of_side[-1].null_count for of_side in keys):
            break
    return keys


def _column(side: Source, name: str, rows: Rows) -> pa.Array:
    """Return some rows of a column; all missing on a side without it."""
    return side.column(name).take(pa.array(rows)) if name in side.columns else pa.nulls(len(rows))


def _key(name: str, column: pa.Array) -> pa.Array:
    keys = filled_texts(texts(column))
    return _NORMALISED[name](keys) if name in _NORMALISED else pc.utf8_trim(keys, BLANKS)


_NORMALISED: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    _URL: lambda urls: certain_keys(profnet_url_keys(urls)),
    f"{COMPANY_PREFIX}{_URL}": company_url_keys,
    f"{COMPANY_PREFIX}{_NAME}": company_name_keys,
}
