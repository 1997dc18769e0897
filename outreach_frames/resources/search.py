"""Read one people search page by page, without duplicates, and from the cache if possible."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Final, TypeGuard, TypeVar

import pyarrow as pa

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.response import OversizedResponseError
from outreach_frames.common.parallel import ordered_map
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import are_collected, warn
from outreach_frames.errors import InvalidResponseError, OutreachError
from outreach_frames.reading.fast_reader import PeoplePage, count_people, may_exceed
from outreach_frames.reading.flatten import select_columns
from outreach_frames.reading.pages import as_one_page, read_people_pages
from outreach_frames.resources.paging import moment, now
from outreach_frames.resources.search_arguments import (
    PAGE,
    PAGE_SIZE,
    has_free_text,
    unknown_values,
)
from outreach_frames.resources.stored_search import StoredSearch

S = TypeVar("S")
T = TypeVar("T")

# Workers read pages in parallel, so further threads would only slow the workers down.
read_in_worker: Final = partial(read_people_pages, use_threads=False)

_DOCUMENTED: Final = frozenset(spec.columns(spec.PERSON))
# End a search after this number of pages without new people: the service's totals are wrong.
_MAX_USELESS_PAGES = 3
# Number of pages to convert together, which takes less time per page.
_PAGES_AT_ONCE = 6
_STORED_PAGES_AT_ONCE = 12
# Maximum number of filter values to check for misspelling, with one request each.
_MAX_COUNTED_VALUES = 5
# Usual maximum of JSON objects per person; if a page has more, count people before parsing.
_USUAL_OBJECTS = 60

# Results of checks for misspelling, and earlier warnings, by account, filter and value.
matches_nobody: Final[dict[tuple[str, str, str], bool]] = {}
named_before: Final[set[tuple[str, str, str]]] = set()


@dataclass
class SearchProgress:
    """The progress of a search in plain values, from which another process can resume."""

    page: int = 0  # the last page read
    pages: int | None = None  # number of pages, reported by the service
    total: int | None = None  # number of people, reported by the service
    received: int = 0  # number of people, duplicates included
    rows: int = 0  # number of people returned to the caller
    repeats: int = 0  # number of duplicates within the search
    useless: int = 0  # number of last pages in a row without new people


class Sighting(Enum):
    """Whether a person was seen before, and in which search."""

    NEW = "not seen before"
    AGAIN = "seen in this search"
    EARLIER = "seen in an earlier search of the same split"


Sightings = Callable[[Sequence[str | None]], list[Sighting]]


def sightings_in(seen: dict[str, int], search: int = 0) -> Sightings:
    """Return a function that classifies ids; `seen` maps each id to the search that found it."""

    def classify(ids: Sequence[str | None]) -> list[Sighting]:
        present = set(ids)
        if len(present) == len(ids) and None not in present and seen.keys().isdisjoint(present):
            # Fast path for pages of new people.
            seen.update((identity, search) for identity in present if identity is not None)
            return [Sighting.NEW] * len(ids)
        sightings = []
        for identity in ids:
            if identity is None or identity not in seen:
                sightings.append(Sighting.NEW)
            else:
                sightings.append(Sighting.AGAIN if seen[identity] == search else Sighting.EARLIER)
            if identity is not None:
                seen.setdefault(identity, search)
        return sightings

    return classify


@dataclass
class Search:
    """One people search and its state."""

    client: Client
    filters: dict[str, Any]
    limit: int | None
    page_size: int | None
    refresh: bool
    store: bool = True  # whether to cache the pages
    sightings: Sightings = field(default_factory=lambda: sightings_in({}))
    so_far: SearchProgress = field(default_factory=SearchProgress)
    errors: list[Any] = field(default_factory=list)
    columns: Sequence[str] | None = None  # columns to return, in order; all by default
    others: dict[str, None] = field(default_factory=dict)  # undocumented columns that were read
    _stored: StoredSearch = field(init=False)
    _last_stored: int = field(default=0, init=False)
    _columns_read: tuple[str, ...] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        read = None
        # Documented columns can be read alone; undocumented columns need the whole page.
        if self.columns is not None and _DOCUMENTED.issuperset(self.columns):
            read = tuple(dict.fromkeys([*self.columns, "id"]))
        self._columns_read = read
        can_read = not self.refresh
        self._stored = StoredSearch(self.client, self._request, can_read, self.store, read)

    @property
    def total(self) -> int | None:
        """The number of matching people that the service reported."""
        return self.so_far.total

    @property
    def size(self) -> int:
        """The number of people per request."""
        largest = spec.MAX_SEARCH_PAGE_SIZE
        return self.page_size or min(largest, self.limit or largest)

    def read_pages(self, numbers: Sequence[int]) -> PeoplePage:
        """Read several pages of the search as one."""
        _, page, error = self._read_run(numbers)
        if error is not None:
            raise error
        return page

    def _parse(self, bodies: Sequence[bytes]) -> list[PeoplePage]:
        """Parse responses; raise OversizedResponseError if they have too many people."""
        for body in bodies:
            # If a response may have too many people, count them before parsing 262 columns.
            if may_exceed(body, _USUAL_OBJECTS * self.size):
                self._check_count(count_people(body))
        pages = read_in_worker(bodies, columns=self._columns_read)
        self._check_count(sum(page.people.num_rows for page in pages), len(bodies))
        return pages

    def _check_count(self, people: int, pages: int = 1) -> None:
        if people > self.size * pages:
            raise OversizedResponseError(
                f"The service returned {people:,} people where {self.size * pages} were requested."
            )

    def _request(self, number: int) -> dict[str, Any]:
        return {**self.filters, PAGE: number, PAGE_SIZE: self.size}

    def _fetch(self, number: int, parse: Callable[[bytes], T]) -> T:
        body = self._request(number)
        # Do not store the response: the cache of a search stores tables.
        return self.client.read(
            spec.SEARCH_PEOPLE, body=body, refresh=True, store=False, parse=parse
        )

    def count(self) -> int | None:
        """Return the number of matching people, or None if the service reports none."""
        page = self.read_pages([1])
        self.errors.extend(page.errors)
        total = page.pagination.get("total")
        return total if _is_count(total) else None

    @property
    def fetched_at(self) -> str:
        """The time when the service returned the first page; before that, the current time."""
        unix = self._stored.fetched_unix
        return now() if unix is None else moment(unix)

    def tables(self) -> Generator[pa.Table]:
        """Yield tables of people in order, without duplicates; update `so_far` before each."""
        try:
            yield from self._tables()
        except OutreachError as error:
            so_far = self.so_far
            if so_far.page:
                where = f"page {so_far.page + 1:,} of {self._last_page():,}"
                people = plural(so_far.rows, "person was", "people were")
                error.args = (f"{error} The error occurred on {where}, after {people} read.",)
            raise

    def _tables(self) -> Iterator[pa.Table]:
        so_far = self.so_far
        if not so_far.page:
            yield self._accept([1], self._first_page())
        while so_far.useless < _MAX_USELESS_PAGES and (last := self._last_page()) > so_far.page:
            runs = self._page_runs(so_far.page + 1, last)
            pages = ordered_map(self._read_run, runs, workers=self.client.workers)
            with closing(pages):
                for run, page, error in pages:
                    yield self._accept(run, page)
                    if error is not None:
                        raise error
                    if self._is_exhausted:
                        break

    def _first_page(self) -> PeoplePage:
        """Read the first page, from the cache if the cached search is unchanged."""
        page = self._stored.pages([1]).get(1)
        if page is not None:
            self._update_totals(page)
            if self._is_unchanged():
                return page
        self.so_far.total = self.so_far.pages = None
        self._stored.can_read = False
        return self.read_pages([1])

    def _is_unchanged(self) -> bool:
        """Return whether all needed pages are stored, or the last stored page has not changed."""
        needed = self._last_page()
        last = self._stored.last_page(needed)
        self._last_stored = last
        if last == needed:
            return True
        before = self._stored.pages([last]).get(last)
        after, error = self._fetch_pages([last])
        # Ignore an error here: the search raises the error later, when it needs the page.
        return error is not None or (before is not None and _has_same_people(before, after[0]))

    @property
    def _is_exhausted(self) -> bool:
        return self.so_far.useless >= _MAX_USELESS_PAGES

    def _accept(self, run: Sequence[int], page: PeoplePage) -> pa.Table:
        """Add a run of pages to the progress, and return the new people up to the limit."""
        self._update_totals(page)
        so_far = self.so_far
        self.errors.extend(page.errors)
        so_far.received += page.people.num_rows
        sightings = self.sightings(page.people.column("id").to_pylist())
        so_far.repeats += sightings.count(Sighting.AGAIN)
        has_news = len(sightings) > sightings.count(Sighting.AGAIN)
        table = page.people
        if self.columns is not None:
            names = (name for name in table.column_names if name not in _DOCUMENTED)
            self.others.update(dict.fromkeys(names))
            table = select_columns(table, self.columns)
        if sightings.count(Sighting.NEW) < len(sightings):
            table = table.filter(pa.array([one is Sighting.NEW for one in sightings], pa.bool_()))
        if self.limit is not None:
            table = table.slice(0, min(self.limit - so_far.rows, table.num_rows))
        so_far.rows += table.num_rows
        so_far.page = run[-1]
        so_far.useless = 0 if has_news else so_far.useless + len(run)
        return table

    def _update_totals(self, page: PeoplePage) -> None:
        total, pages = page.pagination.get("total"), page.pagination.get("total_pages")
        self.so_far.total = total if _is_count(total) else self.so_far.total
        self.so_far.pages = pages if _is_count(pages) else self.so_far.pages

    def _page_runs(self, first: int, last: int) -> Iterator[range]:
        """Split pages into growing runs, so that wrong totals cause few useless requests."""
        while first <= last:
            if first <= self._last_stored:
                length, end = _STORED_PAGES_AT_ONCE, min(last, self._last_stored)
            else:
                length, end = min(max(1, first // self.client.workers), _PAGES_AT_ONCE), last
            run = range(first, min(first + length - 1, end) + 1)
            yield run
            first = run.stop

    def _read_run(
        self, run: Sequence[int]
    ) -> tuple[Sequence[int], PeoplePage, OutreachError | None]:
        """Read pages until an error; return their numbers, the joined page and any error."""
        stored = self._stored.pages(run)
        missing = [number for number in run if number not in stored]
        fetched, error = self._fetch_pages(missing) if missing else ([], None)
        if fetched:
            self._stored.add(missing, (single for page in fetched for single in page.split()))
            # Free the large responses, which are no longer needed.
            fetched = [page.without_bodies() for page in fetched]
            if not stored:
                page = as_one_page(fetched)
                return run[: len(page.heads)], page, error
        singles = (single for page in fetched for single in page.split())
        stored.update(zip(missing, singles, strict=False))
        read = list(itertools.takewhile(stored.__contains__, run))
        if error is not None and not read:
            raise error
        page = as_one_page([stored[number] for number in read])
        # Copy the columns, because a column of a stored page keeps the whole page in memory.
        return read, PeoplePage(page.people.combine_chunks(), page.heads), error

    def _fetch_pages(self, numbers: Sequence[int]) -> tuple[list[PeoplePage], OutreachError | None]:
        """Fetch pages until an error, and parse them together if possible."""

        def parse(body: bytes) -> PeoplePage:
            (page,) = self._parse([body])
            return page

        fetch = partial(self._fetch, parse=parse)
        if len(numbers) == 1:
            return _until_error(fetch, numbers)
        bodies, error = _until_error(partial(self._fetch, parse=bytes), numbers)
        if not bodies:
            return [], error
        try:
            return self._parse(bodies), error
        except InvalidResponseError:
            pass

        def parse_or_fetch(fetched: tuple[int, bytes]) -> PeoplePage:
            # Fetch an invalid page again through the client, which retries invalid responses.
            number, body = fetched
            try:
                return parse(body)
            except InvalidResponseError:
                return fetch(number)

        pages, broken = _until_error(parse_or_fetch, zip(numbers, bodies, strict=False))
        return pages, broken or error

    def _last_page(self) -> int:
        """Estimate the last page to request."""
        so_far = self.so_far
        number = so_far.page
        last = max(so_far.pages or 0, number)
        if so_far.total is not None:
            # A service may return fewer people per page than requested.
            last = max(last, number + -(-(so_far.total - so_far.received) // self.size))
        elif so_far.pages is None:
            last = number + 1
        if self.limit is None:
            return last
        return min(last, number + -(-(self.limit - so_far.rows) // self.size))


def _until_error(
    read: Callable[[S], T], items: Iterable[S]
) -> tuple[list[T], OutreachError | None]:
    """Return the results of `read` before the first error, and the error, if any."""
    found: list[T] = []
    for item in items:
        try:
            found.append(read(item))
        except OutreachError as error:
            return found, error
    return found, None


def report_unknown_values(
    client: Client,
    filters: Mapping[str, Any],
    *,
    is_empty: bool,
    is_explained: bool = False,
    max_counted: int = _MAX_COUNTED_VALUES,
) -> None:
    """Warn of misspelt filter values and, unless `is_explained`, of an empty search.

    The known values may be incomplete. If an unknown value resembles a known value, the people who
    match the unknown value are counted: a misspelt value matches nobody. Outside of widgets, each
    value causes a warning only once per process, unless the whole search is empty.
    """
    named, unchecked, requests = [], [], 0
    for name, text, close in unknown_values(filters, client.account, is_empty=is_empty):
        # A misspelt value in an excluding filter excludes nobody: count it in the negated filter.
        searched = spec.FILTERS_BY_NAME[name].excludes or name
        key = (client.account, searched, text)
        if is_empty and filters == {searched: [text]}:
            matches_nobody[key] = True
        if close and key not in matches_nobody and requests < max_counted:
            requests += 1
            one = Search(client, {searched: [text]}, 1, spec.MIN_SEARCH_PAGE_SIZE, refresh=False)
            try:
                matches_nobody[key] = one.count() == 0
            except OutreachError:
                # Count no further values, because the next request may take as long to fail.
                requests = max_counted
        if close and key not in matches_nobody:
            hint = "" if max_counted else f" ({close.strip()})"
            unchecked.append(f"{name}={quoted(text)}{hint}")
        elif matches_nobody.get(key, is_empty) and (
            is_empty or are_collected() or key not in named_before
        ):
            named.append(f"{name}={quoted(text)}.{close}")
            named_before.add(key)
    is_open = is_empty and not is_explained and (named or unchecked or has_free_text(filters))
    words = ["Nobody matches."] if is_open else []
    if named:
        nobody = "" if is_empty else " and match nobody"
        words.append(f"These filter values are not known{nobody}: {' '.join(named)}")
    if unchecked:
        words.append(
            f"These filter values are not known and may match nobody: {', '.join(unchecked)}."
        )
    if is_open:
        words.append("Call of.explain_search() to see which filter excludes everybody.")
    elif words:
        words.append("Call of.filters() to list the filters and their known values.")
    if words:
        warn(" ".join(words))


def _has_same_people(one: PeoplePage, other: PeoplePage) -> bool:
    """Return whether two pages have the same people and total."""
    return one.people.column("id").equals(other.people.column("id")) and (
        one.pagination.get("total") == other.pagination.get("total")
    )


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
