"""One people search while it is read: which pages, what is new on them, and what to warn of."""

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
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidResponseError, OutreachError
from outreach_frames.reading.fast_reader import PeoplePage, count_people, may_exceed
from outreach_frames.reading.pages import as_one_page, read_people_pages
from outreach_frames.resources.paging import moment, now
from outreach_frames.resources.search_arguments import PAGE, PAGE_SIZE, unknown_values
from outreach_frames.resources.stored_search import StoredSearch

S = TypeVar("S")
T = TypeVar("T")

# Workers read in parallel: threads of the reader's own would only cost.
read_in_worker: Final = partial(read_people_pages, use_threads=False)

# A search whose totals make no sense ends after so many pages in a row with nobody new on them.
_USELESS_PAGES_THAT_END = 3
# Pages that become a table together: the reader needs less time for each then.
_PAGES_AT_ONCE = 6
_STORED_PAGES_AT_ONCE = 12
# A person has some 30 objects; on a page with far more, people are counted first.
_USUAL_OBJECTS = 60


@dataclass
class SearchProgress:
    """How far a search has come, in plain values, so that another process can go on there.

    Attributes
    ----------
    page : int
        The last page that was read.
    pages, total : int or None
        What the service says there is.
    received, rows, repeats : int
        How many people came, how many of them were of use, and how many came twice.
    useless : int
        Pages in a row with nobody new on them.
    """

    page: int = 0
    pages: int | None = None
    total: int | None = None
    received: int = 0
    rows: int = 0
    repeats: int = 0
    useless: int = 0


class Sighting(Enum):
    """Whether a person came before."""

    NEW = "not before"
    AGAIN = "in this search before"
    EARLIER = "in an earlier search of the same split"


Sightings = Callable[[Sequence[str | None]], list[Sighting]]


def sightings_in(seen: dict[str, int], search: int = 0) -> Sightings:
    """Make what says of ids whether they came before; `seen` has the search that found each."""

    def look(ids: Sequence[str | None]) -> list[Sighting]:
        present = set(ids)
        if len(present) == len(ids) and None not in present and seen.keys().isdisjoint(present):
            # The usual page, at once.
            seen.update((identity, search) for identity in present if identity is not None)
            return [Sighting.NEW] * len(ids)
        found = []
        for identity in ids:
            if identity is None or identity not in seen:
                found.append(Sighting.NEW)
            else:
                found.append(Sighting.AGAIN if seen[identity] == search else Sighting.EARLIER)
            if identity is not None:
                seen.setdefault(identity, search)
        return found

    return look


@dataclass
class Search:
    """One people search while it is read: what the service has reported, and what has been seen.

    `read_bodies` makes people out of responses, `sightings` says whose ids came before, and
    `store` whether pages go into the cache.
    """

    client: Client
    filters: dict[str, Any]
    limit: int | None
    page_size: int | None
    refresh: bool
    store: bool = True
    read_bodies: Callable[[Sequence[bytes]], list[PeoplePage]] = read_in_worker
    sightings: Sightings = field(default_factory=lambda: sightings_in({}))
    so_far: SearchProgress = field(default_factory=SearchProgress)
    errors: list[Any] = field(default_factory=list)
    _stored: StoredSearch = field(init=False)
    _last_stored: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._stored = StoredSearch(self.client, self._request, not self.refresh, self.store)

    @property
    def total(self) -> int | None:
        """How many people match, as far as the service has reported."""
        return self.so_far.total

    @property
    def size(self) -> int:
        """How many people one request asks for."""
        largest = spec.MAX_SEARCH_PAGE_SIZE
        return self.page_size or min(largest, self.limit or largest)

    def read_pages(self, numbers: Sequence[int]) -> PeoplePage:
        """Read some pages of the search as one."""
        _, page, error = self._read_run(numbers)
        if error is not None:
            raise error
        return page

    def _parse(self, bodies: Sequence[bytes]) -> list[PeoplePage]:
        """Make people out of responses, unless there are more of them than were asked for."""
        for body in bodies:
            # Counted before they become rows of 262 columns, where there may be far too many.
            if may_exceed(body, _USUAL_OBJECTS * self.size):
                self._check_count(count_people(body))
        pages = self.read_bodies(bodies)
        self._check_count(sum(page.people.num_rows for page in pages), len(bodies))
        return pages

    def _check_count(self, people: int, pages: int = 1) -> None:
        if people > self.size * pages:
            raise OversizedResponseError(
                f"The service returned {people:,} people where {self.size * pages} were asked for."
            )

    def _request(self, number: int) -> dict[str, Any]:
        return {**self.filters, PAGE: number, PAGE_SIZE: self.size}

    def _fetch(self, number: int, parse: Callable[[bytes], T]) -> T:
        body = self._request(number)
        # The cache has pages as tables.
        return self.client.read(
            spec.SEARCH_PEOPLE, body=body, refresh=True, store=False, parse=parse
        )

    def count(self) -> int | None:
        """Ask how many people match; None where the service gives no count."""
        page = self.read_pages([1])
        self.errors.extend(page.errors)
        total = page.pagination.get("total")
        return total if _is_count(total) else None

    @property
    def fetched_at(self) -> str:
        """When the first page came from the service; until then, the present moment."""
        unix = self._stored.fetched_unix
        return now() if unix is None else moment(unix)

    def tables(self) -> Generator[pa.Table]:
        """Yield the people in order, some pages at a time, each once, up to the limit.

        Every table is one that `so_far` counts already; a search that goes on begins behind it.
        """
        try:
            yield from self._tables()
        except OutreachError as error:
            so_far = self.so_far
            if so_far.page:
                where = f"page {so_far.page + 1:,} of {self._last_page():,}"
                came = plural(so_far.rows, "person was", "people were")
                error.args = (f"{error} This was {where}; {came} read before it.",)
            raise

    def _tables(self) -> Iterator[pa.Table]:
        so_far = self.so_far
        if not so_far.page:
            yield self._take([1], self._first_page())
        while (
            so_far.useless < _USELESS_PAGES_THAT_END and (last := self._last_page()) > so_far.page
        ):
            runs = self._runs(so_far.page + 1, last)
            pages = ordered_map(self._read_run, runs, workers=self.client.workers)
            with closing(pages):
                for run, page, error in pages:
                    yield self._take(run, page)
                    if error is not None:
                        raise error
                    if self._is_useless:
                        break

    def _first_page(self) -> PeoplePage:
        """Read the first page, from the cache where what is stored goes on as it did."""
        page = self._stored.pages([1]).get(1)
        if page is not None:
            self._note(page)
            if self._is_unchanged():
                return page
        self.so_far.total = self.so_far.pages = None
        self._stored.is_read = False
        return self.read_pages([1])

    def _is_unchanged(self) -> bool:
        """Ask for the last stored page again, where others are to be asked for behind it.

        If it has other people now, the next page would not go on where the stored ones end.
        """
        needed = self._last_page()
        last = self._stored.last_held(needed)
        self._last_stored = last
        if last == needed:
            return True
        before = self._stored.pages([last]).get(last)
        now, error = self._ask([last])
        # What cannot be had now is told when it is needed, with the people before it.
        return error is not None or (before is not None and _has_same_people(before, now[0]))

    @property
    def _is_useless(self) -> bool:
        return self.so_far.useless >= _USELESS_PAGES_THAT_END

    def _take(self, run: Sequence[int], page: PeoplePage) -> pa.Table:
        self._note(page)
        so_far = self.so_far
        self.errors.extend(page.errors)
        so_far.received += page.people.num_rows
        sightings = self.sightings(page.people.column("id").to_pylist())
        so_far.repeats += sightings.count(Sighting.AGAIN)
        has_news = len(sightings) > sightings.count(Sighting.AGAIN)
        table = page.people
        if sightings.count(Sighting.NEW) < len(sightings):
            table = table.filter(pa.array([one is Sighting.NEW for one in sightings], pa.bool_()))
        if self.limit is not None:
            table = table.slice(0, min(self.limit - so_far.rows, table.num_rows))
        so_far.rows += table.num_rows
        so_far.page = run[-1]
        so_far.useless = 0 if has_news else so_far.useless + len(run)
        return table

    def _note(self, page: PeoplePage) -> None:
        """Take over what a page says of the whole search."""
        total, pages = page.pagination.get("total"), page.pagination.get("total_pages")
        self.so_far.total = total if _is_count(total) else self.so_far.total
        self.so_far.pages = pages if _is_count(pages) else self.so_far.pages

    def _runs(self, first: int, last: int) -> Iterator[range]:
        """Cut pages into runs that are read as one: longer ones the more pages came before.

        So a service that is wrong about its pages is not asked for many that do not exist.
        """
        while first <= last:
            if first <= self._last_stored:
                most, end = _STORED_PAGES_AT_ONCE, min(last, self._last_stored)
            else:
                most, end = min(max(1, first // self.client.workers), _PAGES_AT_ONCE), last
            run = range(first, min(first + most - 1, end) + 1)
            yield run
            first = run.stop

    def _read_run(
        self, run: Sequence[int]
    ) -> tuple[Sequence[int], PeoplePage, OutreachError | None]:
        """Read pages as one up to an error; return which came, what is on them, and the error."""
        stored = self._stored.pages(run)
        missing = [number for number in run if number not in stored]
        fetched, error = self._ask(missing) if missing else ([], None)
        if fetched:
            self._stored.put(missing, (single for page in fetched for single in page.split()))
            if not stored:
                page = as_one_page(fetched)
                return run[: len(page.heads)], page, error
        singles = (single for page in fetched for single in page.split())
        stored.update(zip(missing, singles, strict=False))
        came = list(itertools.takewhile(stored.__contains__, run))
        if error is not None and not came:
            raise error
        page = as_one_page([stored[number] for number in came])
        # A column of a stored page keeps all others in memory; one of joined pages does not.
        return came, PeoplePage(page.people.combine_chunks(), page.heads), error

    def _ask(self, numbers: Sequence[int]) -> tuple[list[PeoplePage], OutreachError | None]:
        """Ask the service for pages, up to an error, and read some as one where that can be."""

        def parse(body: bytes) -> PeoplePage:
            (page,) = self._parse([body])
            return page

        read = partial(self._fetch, parse=parse)
        if len(numbers) == 1:
            return _until_error(read, numbers)
        bodies, error = _until_error(partial(self._fetch, parse=bytes), numbers)
        if not bodies:
            return [], error
        try:
            return self._parse(bodies), error
        except InvalidResponseError:
            pass

        def read_again(fetched: tuple[int, bytes]) -> PeoplePage:
            # The client asks again for one that is broken.
            number, body = fetched
            try:
                return parse(body)
            except InvalidResponseError:
                return read(number)

        pages, broken = _until_error(read_again, zip(numbers, bodies, strict=False))
        return pages, broken or error

    def _last_page(self) -> int:
        """Return the last page worth asking for, as far as one can tell after those read."""
        so_far = self.so_far
        number = so_far.page
        last = max(so_far.pages or 0, number)
        if so_far.total is not None:
            # By what came, not by what was asked for: a service may put fewer on a page.
            last = max(last, number + -(-(so_far.total - so_far.received) // self.size))
        elif so_far.pages is None:
            last = number + 1
        if self.limit is None:
            return last
        return min(last, number + -(-(self.limit - so_far.rows) // self.size))


def _until_error(
    read: Callable[[S], T], items: Iterable[S]
) -> tuple[list[T], OutreachError | None]:
    """Read one after the other; an error comes with what came before it."""
    found: list[T] = []
    for item in items:
        try:
            found.append(read(item))
        except OutreachError as error:
            return found, error
    return found, None


def report_unknown_values(filters: Mapping[str, Any]) -> None:
    """Warn of values that may be why a search finds nobody."""
    if unknown := unknown_values(filters):
        warn(
            f"Nobody matches. No list of known values has {' Nor '.join(unknown)} "
            "of.explain_search() with the same filters says which of them finds nobody."
        )


def _has_same_people(one: PeoplePage, other: PeoplePage) -> bool:
    """Tell whether two responses to one request have the same people, and count the same."""
    return one.people.column("id").equals(other.people.column("id")) and (
        one.pagination.get("total") == other.pagination.get("total")
    )


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
