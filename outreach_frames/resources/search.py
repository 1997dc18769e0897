"""Search people page by page, without duplicates, optionally once per value of a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeGuard

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.parallel import ordered_map
from outreach_frames.common.text import plural, quoted, unique_name
from outreach_frames.common.warnings import are_collected, warn
from outreach_frames.errors import InvalidResponseError, OutreachError
from outreach_frames.reading.fast_reader import PeoplePage
from outreach_frames.reading.flatten import select_columns
from outreach_frames.reading.lenient_reader import RAW_SUFFIX
from outreach_frames.reading.pages import as_one_page
from outreach_frames.resources.paging import now, report_errors, report_repeats
from outreach_frames.resources.search_arguments import (
    check_split_by,
    has_free_text,
    unknown_values,
)
from outreach_frames.resources.search_pages import DOCUMENTED, SearchPages

# End a search after this number of pages without new people: the service's totals are wrong.
_MAX_USELESS_PAGES: Final = 3

# The unknown values in earlier warnings: account, filter and value.
named_before: Final[set[tuple[str, str, str]]] = set()


@dataclass
class SearchProgress:
    """The progress of one search in plain values, from which another process can resume."""

    page: int = 0  # the last page read
    pages: int | None = None  # number of pages, reported by the service
    total: int | None = None  # number of people, reported by the service
    received: int = 0  # number of people, duplicates included
    rows: int = 0  # number of people returned to the caller
    useless: int = 0  # number of last pages in a row without new people

    def update_totals(self, page: PeoplePage) -> None:
        """Note the numbers of people and pages that the service reports."""
        total, pages = page.pagination.get("total"), page.pagination.get("total_pages")
        self.total = total if _is_count(total) else self.total
        self.pages = pages if _is_count(pages) else self.pages

    def last_page(self, size: int, limit: int | None) -> int:
        """Estimate the last page to request."""
        last = max(self.pages or 0, self.page)
        if self.total is not None:
            # A service may return fewer people per page than requested.
            last = max(last, self.page + -(-(self.total - self.received) // size))
        elif self.pages is None:
            last = self.page + 1
        return last if limit is None else min(last, self.page + -(-(limit - self.rows) // size))


# Adds the ids that a search found. Returns, per id, the search that found it before; None if new.
AddIds = Callable[[Sequence[str | None], int], list[int | None]]


def ids_in_memory() -> AddIds:
    """Return a function that keeps ids, each with the number of the search that found it first."""
    first: dict[str | None, int] = {}

    def add_ids(ids: Sequence[str | None], search: int) -> list[int | None]:
        present = set(ids)
        if len(present) == len(ids) and None not in present and first.keys().isdisjoint(present):
            # Fast path for pages of new people.
            first.update(dict.fromkeys(present, search))
            return [None] * len(ids)
        found = []
        for identity in ids:
            found.append(first.get(identity))
            if identity is not None:
                first.setdefault(identity, search)
        return found

    return add_ids


@dataclass
class Search:
    """A people search, read as a whole or once per value of the filter `split_by`."""

    client: Client
    filters: dict[str, Any]
    limit: int | None
    page_size: int | None
    refresh: bool
    columns: Sequence[str] | None = None  # columns to return, in order; all by default
    split_by: str | None = None
    store: bool = True  # whether to cache the pages
    add_ids: AddIds = field(default_factory=ids_in_memory)
    errors: list[Any] = field(default_factory=list)
    others: dict[str, None] = field(default_factory=dict)  # undocumented columns that were read
    total: int | None = None  # number of matching people, reported by the service
    index: int = field(default=0, init=False)  # position of the value that is being read
    values: tuple[Any, ...] = field(default=(None,), init=False)  # of `split_by`, as given
    _rows_by_value: list[int] = field(init=False)  # without duplicates
    _repeats: int = field(default=0, init=False)
    _progress: SearchProgress = field(default_factory=SearchProgress, init=False)
    _fetched_at: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.split_by is not None:
            name = check_split_by(self.filters, self.split_by)
            self.values = tuple(dict.fromkeys(self.filters[name]))
        self._rows_by_value = [0] * len(self.values)

    @property
    def size(self) -> int:
        """The number of people per request."""
        return self._pages_of({}, self.limit).size

    def _pages_of(self, value: Mapping[str, Any], limit: int | None) -> SearchPages:
        largest = spec.MAX_SEARCH_PAGE_SIZE
        size = self.page_size or min(largest, limit or largest)
        filters = {**self.filters, **value}
        return SearchPages(
            self.client, filters, size, not self.refresh, self.store, columns=self.columns
        )

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
        """Yield new people value by value, up to the limit; update the progress before each."""
        if self.split_by is not None and self.total is None:
            self.total, _ = count_matches(
                self.client, self.filters, refresh=self.refresh, store=self.store
            )
        for index in range(self.index, len(self.values)):
            if index > self.index:
                self.index, self._progress = index, SearchProgress()
            if self.limit is not None and self.rows >= self.limit:
                return
            yield from self._tables_of_value()

    def _tables_of_value(self) -> Iterator[pa.Table]:
        so_far = self._progress
        limit = None if self.limit is None else self.limit - (self.rows - so_far.rows)
        value = {} if self.split_by is None else {self.split_by: [self.values[self.index]]}
        pages = self._pages_of(value, limit)
        try:
            for page in self._read(pages, limit):
                yield self._accept(page, limit)
        except OutreachError as error:
            if so_far.page:
                where = f"page {so_far.page + 1:,} of {so_far.last_page(pages.size, limit):,}"
                people = plural(so_far.rows, "person was", "people were")
                error.args = (f"{error} The error occurred on {where}, after {people} read.",)
            raise
        self._fetched_at.append(pages.fetched_at)

    def _read(self, pages: SearchPages, limit: int | None) -> Iterator[PeoplePage]:
        """Yield the next pages while the caller's progress shows that more are needed."""

        def last_page(page: PeoplePage) -> int:
            found = SearchProgress()
            found.update_totals(page)
            return found.last_page(pages.size, limit)

        so_far = self._progress
        if not so_far.page:
            yield pages.first(last_page)
        while self._is_useful and (last := so_far.last_page(pages.size, limit)) > so_far.page:
            runs = pages.runs(so_far.page + 1, last)
            reads = ordered_map(pages.read_to_error, runs, workers=self.client.workers)
            with closing(reads):
                for found, error in reads:
                    if found:
                        yield as_one_page(found)
                    if error is not None:
                        raise error
                    if not self._is_useful:
                        break

    @property
    def _is_useful(self) -> bool:
        return self._progress.useless < _MAX_USELESS_PAGES

    def _accept(self, page: PeoplePage, limit: int | None) -> pa.Table:
        """Add a page to the progress, and return the new people up to the limit."""
        so_far, table = self._progress, page.people
        so_far.update_totals(page)
        self.errors.extend(page.errors)
        so_far.received += table.num_rows
        # The search of an earlier value may have found a person; that is not a repeat.
        searches = self.add_ids(table.column("id").to_pylist(), self.index)
        repeats = searches.count(self.index)
        if self.columns is not None:
            names = (name for name in table.column_names if name not in DOCUMENTED)
            self.others.update(dict.fromkeys(names))
            table = select_columns(table, self.columns)
        if searches.count(None) < len(searches):
            table = table.filter(pa.array([one is None for one in searches], pa.bool_()))
        if limit is not None:
            table = table.slice(0, min(limit - so_far.rows, table.num_rows))
        so_far.page += len(page.heads)
        so_far.useless = 0 if len(searches) > repeats else so_far.useless + len(page.heads)
        so_far.rows += table.num_rows
        self._repeats += repeats
        self._rows_by_value[self.index] = so_far.rows
        if self.split_by is None:
            self.total = so_far.total
        return table

    def add_split_column(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Append a column with the filter value that found each person."""
        if self.split_by is None:
            return frame
        codes = np.repeat(np.arange(len(self.values)), self._rows_by_value)[: len(frame)]
        dtype: pd.CategoricalDtype[str] = pd.CategoricalDtype(list(self.values), ordered=True)
        names = {self.split_by: unique_name(self.split_by, frame.columns)}
        values = pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=frame.index)
        return frame.rename(columns=names).assign(**{self.split_by: values})

    def report(self, rows: int) -> None:
        """Warn of duplicates, errors, unknown filter values and missing people."""
        report_repeats(self._repeats, "people")
        report_errors(self.errors, self.filters)
        report_dropped_values(self.columns, self.others)
        is_empty = not rows and not self.total
        report_unknown_values(self.client, self.filters, is_empty=is_empty)
        if self.total is None or rows >= self.total:
            return
        if self.limit is not None and rows >= self.limit:
            warn(f"{rows:,} of {self.total:,} people were read. Pass limit=None to read all.")
        elif self.split_by is not None or self._progress.received < self.total:
            people = plural(self.total, "person", "people")
            warn(
                f"The service counts {people} but returned {rows:,}. If its data changed between "
                "pages, pass refresh=True to read again. If it limits the results of one search, "
                "run smaller searches: pass split_by= with a filter that has many values, such as "
                "company_sizes, person_locations or person_seniorities."
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


def report_unknown_values(
    client: Client, filters: Mapping[str, Any], *, is_empty: bool, is_explained: bool = False
) -> None:
    """Warn of unknown filter values and, unless `is_explained`, of an empty search.

    The known values may be incomplete, so a value of a search with matches is named only if it
    resembles a known value and, outside of widgets, only once per process.
    """
    named = []
    for name, text, close in unknown_values(filters):
        key = (client.account, name, text)
        if is_empty or (close and (are_collected() or key not in named_before)):
            named.append(f"{name}={quoted(text)}.{close}")
            named_before.add(key)
    is_open = is_empty and not is_explained and (named or has_free_text(filters))
    words = ["Nobody matches."] if is_open else []
    if named:
        nobody = "" if is_empty else " and may match nobody"
        words.append(f"These filter values are not known{nobody}: {' '.join(named)}")
    if is_open:
        words.append("Call of.explain_search() to see which filter excludes everybody.")
    elif words:
        words.append("Call of.filters() to list the filters and their known values.")
    if words:
        warn(" ".join(words))


def count_matches(
    client: Client, filters: Mapping[str, Any], *, refresh: bool, store: bool = True
) -> tuple[int, list[Any]]:
    """Return the number of people that a search finds, and the service's errors."""
    pages = SearchPages(client, filters, spec.MIN_SEARCH_PAGE_SIZE, not refresh, store)
    page = pages.read([1])
    total = page.pagination.get("total")
    if not _is_count(total):
        raise InvalidResponseError("No valid total was returned.", request=spec.SEARCH_PEOPLE.label)
    return total, page.errors


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
