"""Read the pages of one people search, from the cache or the service."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from outreach_frames import spec
from outreach_frames.client.client import LIFETIMES, Client
from outreach_frames.errors import InvalidResponseError, OutreachError
from outreach_frames.reading.fast_reader import PeoplePage
from outreach_frames.reading.pages import (
    FORMAT,
    PeopleReader,
    as_one_page,
    pack_page,
    unpack_page,
)
from outreach_frames.resources.paging import moment, now
from outreach_frames.resources.search_arguments import PAGE, PAGE_SIZE

if TYPE_CHECKING:
    from outreach_frames.client.cache import ResponseCache

T = TypeVar("T")

_LOGGER: Final = logging.getLogger(__name__)
_LIFETIME: Final = LIFETIMES[spec.SEARCH_PEOPLE.name]
DOCUMENTED: Final = frozenset(spec.columns(spec.PERSON))
# Number of pages to convert together, which takes less time per page.
_PAGES_AT_ONCE: Final = 6
_STORED_PAGES_AT_ONCE: Final = 12


@dataclass
class SearchPages:
    """The pages of one search.

    All cached pages of a search expire together, an hour after the first page was fetched. Cached
    pages with another expiry belong to an earlier search and are ignored.
    """

    client: Client
    filters: Mapping[str, Any]
    size: int  # people per page
    can_read: bool  # from the cache
    can_write: bool = True
    columns: Sequence[str] | None = None  # columns that the caller needs; all by default
    _last_stored: int = field(default=0, init=False)
    _expires_unix: float | None = field(default=None, init=False)
    _keys: dict[int, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.columns is not None:
            # Documented columns can be read alone; undocumented columns need the whole page.
            is_documented = DOCUMENTED.issuperset(self.columns)
            self.columns = [*dict.fromkeys([*self.columns, "id"])] if is_documented else None
        is_open = self.client.cache is not None and self.client.cache.is_open
        self.can_read &= is_open
        self.can_write &= is_open

    @property
    def fetched_at(self) -> str:
        """The time when the service returned the first page; before that, the current time."""
        return now() if self._expires_unix is None else moment(self._expires_unix - _LIFETIME)

    def first(self, last_page: Callable[[PeoplePage], int]) -> PeoplePage:
        """Read the first page, from the cache if the cached search is unchanged.

        `last_page` returns the number of the last page that the caller needs.
        """
        page = self._stored([1]).get(1)
        if page is not None and self._is_unchanged(last_page(page)):
            return page
        self.can_read = False
        return self.read([1])

    def read(self, numbers: Sequence[int]) -> PeoplePage:
        """Read consecutive pages as one."""
        return as_one_page(list(self._pages(numbers)))

    def read_to_error(
        self, numbers: Sequence[int]
    ) -> tuple[list[PeoplePage], OutreachError | None]:
        """Read consecutive pages, and return the pages before an error with the error."""
        pages: list[PeoplePage] = []
        try:
            pages.extend(self._pages(numbers))
        except OutreachError as error:
            return pages, error
        return pages, None

    def runs(self, first: int, last: int) -> Iterator[range]:
        """Split pages into growing runs, so that wrong totals cause few useless requests."""
        while first <= last:
            if first <= self._last_stored:
                length, end = _STORED_PAGES_AT_ONCE, min(last, self._last_stored)
            else:
                length, end = min(max(1, first // self.client.workers), _PAGES_AT_ONCE), last
            run = range(first, min(first + length - 1, end) + 1)
            yield run
            first = run.stop

    def _pages(self, numbers: Sequence[int]) -> Iterator[PeoplePage]:
        """Yield pages from the cache or the service in order, several as one if possible."""
        stored = self._stored(numbers)
        for is_stored, group in itertools.groupby(numbers, stored.__contains__):
            if is_stored:
                page = as_one_page([stored[number] for number in group])
                # Copy the columns, because a column of a stored page keeps all of it in memory.
                yield PeoplePage(page.people.combine_chunks(), page.heads)
                continue
            missing = list(group)
            for page in self._fetch(missing):
                self._store(missing[: len(page.heads)], page)
                missing = missing[len(page.heads) :]
                yield page.without_bodies()

    def _fetch(self, numbers: Sequence[int]) -> Iterator[PeoplePage]:
        """Request pages, and parse them together if possible."""
        if len(numbers) == 1:
            yield self._request(numbers[0], self._parse)
            return
        bodies: list[bytes] = []
        try:
            bodies.extend(self._request(number, bytes) for number in numbers)
        finally:  # an error follows the pages before it
            if bodies:
                yield from self._parse_all(numbers, bodies)

    def _parse_all(self, numbers: Sequence[int], bodies: Sequence[bytes]) -> Iterable[PeoplePage]:
        """Parse responses together if possible, else one by one."""
        with suppress(InvalidResponseError):
            return self._reader.read(bodies, self.columns)
        return map(self._parse_or_request, numbers, bodies)

    def _parse_or_request(self, number: int, body: bytes) -> PeoplePage:
        """Parse a response; if it is invalid, request the page again."""
        with suppress(InvalidResponseError):
            return self._parse(body)
        return self._request(number, self._parse)

    def _parse(self, body: bytes) -> PeoplePage:
        (page,) = self._reader.read([body], self.columns)
        return page

    @property
    def _reader(self) -> PeopleReader:
        reader: PeopleReader = self.client.readers.setdefault(
            spec.SEARCH_PEOPLE.name, PeopleReader()
        )
        return reader

    @property
    def _cache(self) -> ResponseCache:
        assert self.client.cache is not None
        return self.client.cache

    def _body(self, number: int) -> dict[str, Any]:
        return {**self.filters, PAGE: number, PAGE_SIZE: self.size}

    def _request(self, number: int, parse: Callable[[bytes], T]) -> T:
        """Request a page; the client does not store it, because this class stores tables."""
        body = self._body(number)
        return self.client.read(
            spec.SEARCH_PEOPLE, body=body, refresh=True, store=False, parse=parse
        )

    def _is_unchanged(self, needed: int) -> bool:
        """Return whether all needed pages are stored, or the last stored page has not changed."""
        expires = self._expires()
        assert expires is not None  # because the first page is stored
        keys = self._cache.expiring_at(expires)
        numbers = range(1, needed + 1)
        last = len(list(itertools.takewhile(lambda number: self._key(number) in keys, numbers)))
        self._last_stored = last
        if last == needed:
            return True
        before = self._stored([last]).get(last)
        try:
            (after,) = self._fetch([last])
        except OutreachError:
            return True  # the search raises the error when it needs the next page
        if before is None or before.pagination.get("total") != after.pagination.get("total"):
            return False
        return bool(before.people.column("id").equals(after.people.column("id")))

    def _stored(self, numbers: Sequence[int]) -> dict[int, PeoplePage]:
        """Return the cached pages with these numbers, except damaged pages."""
        expires = self._expires() if self.can_read else None
        if expires is None:
            return {}
        entries = self._cache.entries([self._key(number) for number in numbers])
        found = {
            number: unpack_page(entry.body, self.columns)
            for number in numbers
            if (entry := entries.get(self._key(number))) and entry.expires_unix == expires
        }
        pages = {number: page for number, page in found.items() if page is not None}
        _LOGGER.debug("%s: pages from the cache: %d", spec.SEARCH_PEOPLE.label, len(pages))
        return pages

    def _store(self, numbers: Sequence[int], page: PeoplePage) -> None:
        if numbers[0] == 1:
            self._expires_unix = time.time() + _LIFETIME
        expires = self._expires() if self.can_write else None
        if expires is not None:
            packed = zip(map(self._key, numbers), map(pack_page, page.split()), strict=True)
            self._cache.set_many(dict(packed), expires, _LIFETIME)

    def _key(self, number: int) -> str:
        if number not in self._keys:
            body = self._body(number)
            self._keys[number] = self.client.derived_key(spec.SEARCH_PEOPLE, body, FORMAT)
        return self._keys[number]

    def _expires(self) -> float | None:
        """Return the expiry of all pages, or None if the first page is not cached or not fresh."""
        if self._expires_unix is None:
            entry = self._cache.entries([self._key(1)]).get(self._key(1))
            if entry is not None and entry.is_fresh:
                self._expires_unix = entry.expires_unix
        return self._expires_unix
