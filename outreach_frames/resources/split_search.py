"""A search as it was asked for: read at once, or value by value of one filter, each person once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.common.arguments import suggestion
from outreach_frames.common.text import plural, unique_name
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.resources.paging import now, report_errors, report_repeats
from outreach_frames.resources.search import (
    Search,
    SearchProgress,
    Sightings,
    report_unknown_values,
    sightings_in,
)


class WholeSearch:
    """A search that is read at once, or by one `Search` per value of a filter.

    Parameters
    ----------
    search : Search
        The whole search; nothing of it has been read.
    split_by : str, optional
        The filter, one of the search's own with a list of values.

    Attributes
    ----------
    filters, limit : dict, int or None
        The whole search's.
    sightings_of : callable
        Remembers who came before, by the index of the value.
    values : tuple of str
        The filter's values in the order given; a single None where there is no such filter.
    index : int
        Which of them is being read.
    taken : list of int
        How many people each value found that no earlier one had.
    total : int or None
        How many people match, as far as the service has reported.
    """

    def __init__(self, search: Search, split_by: str | None = None) -> None:
        self._whole = search
        self.filters: dict[str, Any] = search.filters
        self.limit: int | None = search.limit
        self.split_by = split_by
        self.values: tuple[Any, ...] = (None,)
        if split_by is not None:
            name = check_split_by(search.filters, split_by)
            self.values = tuple(dict.fromkeys(search.filters[name]))
        self.index: int = 0
        self.taken: list[int] = [0] * len(self.values)
        self.total: int | None = None
        self.errors: list[Any] = []
        self._repeats = 0
        self._progress = SearchProgress()
        self._fetched_at: list[str] = []
        seen: dict[str, int] = {}
        self.sightings_of: Callable[[int], Sightings] = lambda index: sightings_in(seen, index)

    @property
    def rows(self) -> int:
        """How many people were taken."""
        return sum(self.taken)

    @property
    def expected(self) -> int | None:
        """How many people will be read, as far as the service has reported."""
        return min((n for n in (self.limit, self.total) if n is not None), default=None)

    @property
    def attrs(self) -> dict[str, Any]:
        """What `.attrs` of the frame has."""
        noted = {
            "filters": self.filters,
            "limit": self.limit,
            "total": self.total,
            # When the first page of all came from the service.
            "fetched_at": min(self._fetched_at, default=now()),
            "errors": self.errors,
        }
        return noted if self.split_by is None else noted | {"split_by": self.split_by}

    @property
    def state(self) -> dict[str, Any]:
        """How far the search has come, in plain values."""
        return {
            "progress": asdict(self._progress),
            "search": self.index,
            "taken": list(self.taken),
            "whole": self.total,
            "whole_repeats": self._repeats,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where a search in that state stopped."""
        self.index, self.total = state["search"], state["whole"]
        self.taken, self._repeats = list(state["taken"]), state["whole_repeats"]
        self._progress = SearchProgress(**state["progress"])

    def tables(self) -> Iterator[pa.Table]:
        """Yield the people value by value, each once, up to the limit."""
        if self.split_by is not None and self.total is None:
            counted = replace(self._whole, limit=1, page_size=spec.MIN_SEARCH_PAGE_SIZE, errors=[])
            self.total = counted.count()
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
                self.taken[self.index] = self._progress.rows
                self._repeats = repeats + self._progress.repeats
                if self.split_by is None:
                    self.total = search.total
                yield table
        self._fetched_at.append(search.fetched_at)

    def labelled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the people taken, with the value that found each as the last column."""
        if self.split_by is None:
            return frame
        codes = np.repeat(np.arange(len(self.values)), self.taken)[: len(frame)]
        dtype: pd.CategoricalDtype[str] = pd.CategoricalDtype(list(self.values), ordered=True)
        names = {self.split_by: unique_name(self.split_by, frame.columns)}
        values = pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=frame.index)
        return frame.rename(columns=names).assign(**{self.split_by: values})

    def report(self, rows: int, *, in_frame: bool = True) -> None:
        """Warn of what the analyst would not see in the frame, or in the file."""
        report_repeats(self._repeats, "people")
        report_errors(self.errors, in_frame=in_frame)
        if not rows and not self.total:
            report_unknown_values(self.filters)
        if self.total is None or rows >= self.total:
            return
        if self.limit is not None and rows >= self.limit:
            warn(f"{rows:,} of {self.total:,} people were read; limit=None reads them all.")
        elif self.split_by is not None or self._progress.received < self.total:
            warn(self._what_is_missing(rows, self.total))

    def _what_is_missing(self, rows: int, total: int) -> str:
        people = plural(total, "person", "people")
        if self.split_by is None:
            return (
                f"The service counts {people} and returned {rows:,}. Either its data changed while "
                "it was read (refresh=True reads it again), or it limits what one search returns: "
                "with split_by= over company_sizes, person_locations or person_seniorities, each "
                "search is smaller and more is read."
            )
        missing = total - rows
        return (
            f"The service counts {people} for all values of {self.split_by} together, and the "
            f"searches for each found {rows:,}: {missing:,} {'is' if missing == 1 else 'are'} "
            "missing. Its data changed while it was read (refresh=True reads it again), or the "
            "service limits what one search returns (split by a filter with more values)."
        )


def check_split_by(filters: Mapping[str, Any], split_by: object) -> str:
    """Return the name of a filter that is given with a list of values."""
    lists = [one.name for one in spec.FILTERS if one.type == "array" and not one.excludes]
    if split_by not in lists:
        close = suggestion(str(split_by), lists)
        raise InvalidInputError(
            f"split_by={split_by!r} is not a filter that finds people by a list of values.{close} "
            "of.filters() lists all filters."
        )
    if split_by not in filters:
        raise InvalidInputError(
            f"split_by={split_by!r} needs the values to split by: give {split_by}=[...] too."
        )
    return str(split_by)
