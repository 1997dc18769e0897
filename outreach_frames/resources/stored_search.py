"""The pages of one people search that are in the cache."""

from __future__ import annotations

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

_LIFETIME: Final = LIFETIMES[spec.SEARCH_PEOPLE.name]


@dataclass
class StoredSearch:
    """The pages of one search that are in the cache, and what is new of it on the way there.

    All of them expire together, an hour after the first page came: what somebody has stored before
    that page does not belong to it, and never stands beside it in a frame.

    Parameters
    ----------
    client : Client
        Its cache is used.
    request : callable
        Gives the request for a page by its number.
    is_read, is_written : bool
        Whether pages are taken from the cache, and put into it.
    """

    client: Client
    request: Callable[[int], Mapping[str, Any]]
    is_read: bool
    is_written: bool
    _expires_unix: float | None = field(default=None, init=False)
    _keys: dict[int, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        is_open = self.client.cache is not None and self.client.cache.is_open
        self.is_read &= is_open
        self.is_written &= is_open

    @property
    def _cache(self) -> ResponseCache:
        """The cache, where pages are read or written."""
        assert self.client.cache is not None
        return self.client.cache

    @property
    def fetched_unix(self) -> float | None:
        """When the first page came from the service, as Unix time."""
        return None if self._expires_unix is None else self._expires_unix - _LIFETIME

    def last_held(self, last: int) -> int:
        """Return the page up to which all are there, `last` at most; some may be damaged."""
        expires = self._expires() if self.is_read else None
        if expires is None:
            return 0
        held = self._cache.expiring_at(expires)
        return len(list(takewhile(lambda n: self._key(n) in held, range(1, last + 1))))

    def pages(self, numbers: Sequence[int]) -> dict[int, PeoplePage]:
        """Return those of some pages that are there and whole, by their numbers."""
        expires = self._expires() if self.is_read else None
        if expires is None:
            return {}
        entries = self._cache.entries([self._key(number) for number in numbers])
        found = {
            number: unpack_page(entry.body)
            for number in numbers
            if (entry := entries.get(self._key(number))) and entry.expires_unix == expires
        }
        return {number: page for number, page in found.items() if page is not None}

    def put(self, numbers: Sequence[int], singles: Iterable[PeoplePage]) -> None:
        """Store the first of some pages, each by itself."""
        if numbers[0] == 1:
            self._expires_unix = time.time() + _LIFETIME
        expires = self._expires() if self.is_written else None
        if expires is not None:
            packed = zip(map(self._key, numbers), map(pack_page, singles), strict=False)
            self._cache.set_many(dict(packed), expires)

    def _key(self, number: int) -> str:
        if number not in self._keys:
            request = self.request(number)
            self._keys[number] = self.client.derived_key(spec.SEARCH_PEOPLE, request, FORMAT)
        return self._keys[number]

    def _expires(self) -> float | None:
        """Return when all pages expire: with the first one, if that is there and still good."""
        if self._expires_unix is None:
            entry = self._cache.entries([self._key(1)]).get(self._key(1))
            if entry is not None and entry.expires_unix > time.time():
                self._expires_unix = entry.expires_unix
        return self._expires_unix
