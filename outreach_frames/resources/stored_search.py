"""Read and write the pages of one people search in the cache."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from outreach_frames import spec
from outreach_frames.client.client import LIFETIMES, Client
from outreach_frames.reading.fast_reader import PeoplePage
from outreach_frames.reading.stored_pages import FORMAT, pack_page, unpack_page

if TYPE_CHECKING:
    from outreach_frames.client.cache import ResponseCache

_LOGGER: Final = logging.getLogger(__name__)
_LIFETIME: Final = LIFETIMES[spec.SEARCH_PEOPLE.name]


@dataclass
class StoredSearch:
    """The cached pages of one search.

    All pages of a search expire together, an hour after the first page was fetched. Cached pages
    with another expiry belong to an earlier search and are ignored.
    """

    client: Client
    request: Callable[[int], Mapping[str, Any]]  # returns the request body of a page
    can_read: bool
    can_write: bool
    columns: Sequence[str] | None = None  # the documented columns to read; all by default
    _expires_unix: float | None = field(default=None, init=False)
    _keys: dict[int, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        is_open = self.client.cache is not None and self.client.cache.is_open
        self.can_read &= is_open
        self.can_write &= is_open

    @property
    def _cache(self) -> ResponseCache:
        assert self.client.cache is not None
        return self.client.cache

    @property
    def fetched_unix(self) -> float | None:
        """The Unix time when the service returned the first page."""
        return None if self._expires_unix is None else self._expires_unix - _LIFETIME

    def last_page(self, last: int) -> int:
        """Count the cached pages before the first missing page; damaged pages count, too."""
        expires = self._expires() if self.can_read else None
        if expires is None:
            return 0
        keys = self._cache.expiring_at(expires)
        return len(list(takewhile(lambda n: self._key(n) in keys, range(1, last + 1))))

    def pages(self, numbers: Sequence[int]) -> dict[int, PeoplePage]:
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

    def add(self, numbers: Sequence[int], singles: Iterable[PeoplePage]) -> None:
        """Cache pages by their numbers; numbers without a page are ignored."""
        if numbers[0] == 1:
            self._expires_unix = time.time() + _LIFETIME
        expires = self._expires() if self.can_write else None
        if expires is not None:
            packed = zip(map(self._key, numbers), map(pack_page, singles), strict=False)
            self._cache.set_many(dict(packed), expires, _LIFETIME)

    def _key(self, number: int) -> str:
        if number not in self._keys:
            request = self.request(number)
            self._keys[number] = self.client.derived_key(spec.SEARCH_PEOPLE, request, FORMAT)
        return self._keys[number]

    def _expires(self) -> float | None:
        """Return the expiry of all pages, or None if the first page is not cached or not fresh."""
        if self._expires_unix is None:
            entry = self._cache.entries([self._key(1)]).get(self._key(1))
            if entry is not None and entry.is_fresh:
                self._expires_unix = entry.expires_unix
        return self._expires_unix
