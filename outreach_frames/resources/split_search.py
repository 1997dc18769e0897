"""A people search, optionally split into one search per value of a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.arguments import suggestion
from outreach_frames.common.text import plural, quoted, unique_name
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.reading.lenient_reader import RAW_SUFFIX
from outreach_frames.resources.paging import now, report_errors, report_repeats
from outreach_frames.resources.search import (
    Search,
    SearchProgress,
    Sightings,
    report_unknown_values,
    sightings_in,
)


class SplittableSearch:
    """A people search that is read as a whole, or with one `Search` per value of a filter."""

    def __init__(self, search: Search, split_by: str | None = None) -> None:
        self._whole = search
        self.client: Client = search.client
        self.filters: dict[str, Any] = search.filters
        self.limit: int | None = search.limit
        self.columns: Sequence[str] | None = search.columns
        self.others: Mapping[str, None] = search.others
        self.split_by = split_by
        self.values: tuple[Any, ...] = (None,)  # the filter's values in the given order
        if split_by is not None:
            name = check_split_by(search.filters, split_by)
            self.values = tuple(dict.fromkeys(search.filters[name]))
        self.index: int = 0  # position of the value that is being read
        self._rows_by_value: list[int] = [0] * len(self.values)  # without duplicates
        self.total: int | None = None  # number of matching people, reported by the service
        self.errors: list[Any] = []
        self._repeats = 0
        self._progress = SearchProgress()
        self._fetched_at: list[str] = []
        seen: dict[str, int] = {}
        self.sightings_of: Callable[[int], Sightings] = lambda index: sightings_in(seen, index)

    @property
    def rows(self) -> int:
        """The number of people read."""
        return sum(self._rows_by_value)

    @property
    def expected(self) -> int | None:
        """The number of people that will be read, or None if it is unknown."""
        return min((n for n in (self.limit, self.total) if n is not None), default=None)

    @property
    def attrs(self) -> dict[str, Any]:
        """The `.attrs` of the frame."""
        attrs = {
            "filters": self.filters,
            "limit": self.limit,
            "total": self.total,
            # The time when the service returned the earliest page.
            "fetched_at": min(self._fetched_at, default=now()),
            "errors": self.errors,
        }
        return attrs if self.split_by is None else attrs | {"split_by": self.split_by}

    @property
    def state(self) -> dict[str, Any]:
        """The progress of the search in plain values, for checkpoints."""
        return {
            "progress": asdict(self._progress),
            "search": self.index,
            "taken": list(self._rows_by_value),
            "whole": self.total,
            "whole_repeats": self._repeats,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Resume a search from a stored state."""
        self.index, self.total = state["search"], state["whole"]
        self._rows_by_value, self._repeats = list(state["taken"]), state["whole_repeats"]
        self._progress = SearchProgress(**state["progress"])

    def tables(self) -> Iterator[pa.Table]:
        """Yield the people value by value, without duplicates, up to the limit."""
        if self.split_by is not None and self.total is None:
            counting = replace(self._whole, limit=1, page_size=spec.MIN_SEARCH_PAGE_SIZE, errors=[])
            self.total = counting.count()
        for index in range(self.index, len(self.values)):
            if index > self.index:
                self.index, self._progress = index, SearchProgress()
            if self.limit is not None and self.rows >= self.limit:
                return
            yield from self._tables_of_value()

    def _tables_of_value(self) -> Iterator[pa.Table]:
        earlier = self.rows - self._progress.rows
        value = {} if self.split_by is None else {self.split_by: [self.values[self.index]]}
        search = replace(
            self._whole,
            filters={**self.filters, **value},
            limit=None if self.limit is None else self.limit - earlier,
            so_far=self._progress,
            errors=self.errors,
            sightings=self.sightings_of(self.index),
        )
        repeats = self._repeats - self._progress.repeats
        with closing(search.tables()) as tables:
            for table in tables:
                self._rows_by_value[self.index] = self._progress.rows
                self._repeats = repeats + self._progress.repeats
                if self.split_by is None:
                    self.total = search.total
                yield table
        self._fetched_at.append(search.fetched_at)

    def add_split_column(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Append a column with the filter value that found each person."""
        if self.split_by is None:
            return frame
        codes = np.repeat(np.arange(len(self.values)), self._rows_by_value)[: len(frame)]
        dtype: pd.CategoricalDtype[str] = pd.CategoricalDtype(list(self.values), ordered=True)
        names = {self.split_by: unique_name(self.split_by, frame.columns)}
        values = pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=frame.index)
        return frame.rename(columns=names).assign(**{self.split_by: values})

    def report(self, rows: int, *, in_frame: bool = True) -> None:
        """Warn of duplicates, errors, unknown filter values and missing people."""
        report_repeats(self._repeats, "people")
        report_errors(self.errors, in_frame=in_frame)
        report_dropped_values(self.columns, self.others)
        is_empty = not rows and not self.total
        report_unknown_values(self.client, self.filters, is_empty=is_empty)
        if self.total is None or rows >= self.total:
            return
        if self.limit is not None and rows >= self.limit:
            warn(f"{rows:,} of {self.total:,} people were read. Pass limit=None to read all.")
        elif self.split_by is not None or self._progress.received < self.total:
            warn(self._missing_message(rows, self.total))

    def _missing_message(self, rows: int, total: int) -> str:
        people = plural(total, "person", "people")
        if self.split_by is None:
            return (
                f"The service counts {people} but returned {rows:,}. If its data changed between "
                "pages, pass refresh=True to read again. If it limits the results of one search, "
                "pass split_by= with company_sizes, person_locations or person_seniorities to run "
                "smaller searches."
            )
        missing = total - rows
        return (
            f"The service counts {people} for all values of {self.split_by} together, but the "
            f"searches per value found {rows:,}: {missing:,} {'is' if missing == 1 else 'are'} "
            "missing. If the service's data changed between pages, pass refresh=True to read "
            "again. If it limits the results of one search, split by a filter with more values."
        )


def report_dropped_values(columns: Sequence[str] | None, found: Iterable[str]) -> None:
    """Warn of chosen columns with values of the wrong type, if the `_raw` column is not chosen."""
    raws = {f"{name}{RAW_SUFFIX}" for name in columns or ()}.difference(columns or ())
    if dropped := sorted(raws.intersection(found)):
        names = ", ".join(name.removesuffix(RAW_SUFFIX) for name in dropped)
        warn(
            f"Values of the wrong type are missing in {names}. Add "
            f"{', '.join(map(quoted, dropped))} to columns= to get these values as text."
        )


def check_split_by(filters: Mapping[str, Any], split_by: object) -> str:
    """Return the filter's name; raise InvalidInputError if it cannot split a search."""
    lists = [one.name for one in spec.FILTERS if one.type == "array" and not one.excludes]
    if split_by not in lists:
        close = suggestion(str(split_by), lists)
        raise InvalidInputError(
            f"split_by={split_by!r} is not a filter that takes a list of values to include.{close} "
            "Call of.filters() to list all filters."
        )
    if split_by not in filters:
        raise InvalidInputError(
            f"split_by={split_by!r} needs values to split by. Pass {split_by}=[...] too."
        )
    return str(split_by)
