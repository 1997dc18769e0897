"""Read with a cache, and write, as one account of the service."""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from outreach_frames import spec
from outreach_frames.client import options, request, response
from outreach_frames.client.credentials import Token
from outreach_frames.client.response import load_json, load_object
from outreach_frames.client.retry import Throttle, WaitBudget
from outreach_frames.client.transport import BUSY, Call, Transport
from outreach_frames.common.warnings import warn
from outreach_frames.errors import (
    InvalidInputError,
    InvalidResponseError,
    NotFoundError,
    OutreachError,
    UnsafeLinkError,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from outreach_frames.client.cache import Entry, ResponseCache

T = TypeVar("T")

_LOGGER: Final = logging.getLogger(__name__)
# The data of these endpoints rarely changes.
_HOURLY: Final = (spec.GET_CONTACTS, spec.GET_CONTACT_BY_EMAIL, spec.SEARCH_PEOPLE)
# Cache lifetimes of reads in seconds; writes are never cached.
LIFETIMES: Final[Mapping[str, int]] = MappingProxyType(
    {endpoint.name: 60 for endpoint in spec.ENDPOINTS if endpoint.method == "GET"}
    | {endpoint.name: 3600 for endpoint in _HOURLY}
)
# Seconds that 404 responses and incomplete results are cached.
NOT_FOUND_LIFETIME: Final = 60
_KEPT_CONNECTIONS: Final = 32
# The cached body of a 404; no successful read has an empty body.
_NOT_FOUND = b""


@dataclass(frozen=True, slots=True)
class Observation:
    """A response with the data that `of.check` needs; keys of `headers` ignore case.

    The body has the documented field names, whatever the network's name.
    """

    url: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class Dated(NamedTuple, Generic[T]):
    """A parsed response, and the Unix time when the service sent it."""

    value: T
    unix: float


class Session:
    """The requests and the cache of one account, safe in threads; the package's inside of a client.

    `readers` are readers that learn from the service's responses, by endpoint, and `warned_of` has
    the subjects of warnings that are issued once per client.
    """

    def __init__(
        self,
        base_url: str,
        token: Token,
        *,
        cache: str | PathLike[str] | None = options.DEFAULT_CACHE,
        timeout: float = options.TIMEOUT,
        workers: int = options.WORKERS,
        max_wait: float = options.MAX_WAIT,
        requests_per_minute: float | None = None,
        network_name: str = spec.NETWORK_NAME,
        # The maximum seconds before a first retry, and half of the first pause for a rate limit.
        backoff: float = 0.5,
        proxies: Mapping[str, str] | None = None,
        verify: bool | str | PathLike[str] = True,
        is_sandbox: bool = False,
    ) -> None:
        token.check()
        self.base_url: Final = request.checked_base_url(base_url)
        if request.is_sent_unencrypted(self.base_url):
            warn(
                f"{self.base_url} is not encrypted: others may read the token and all data. "
                "Use https:// if the service supports it."
            )
        self.max_wait: Final = options.checked_seconds("max_wait", max_wait)
        self.requests_per_minute: Final = requests_per_minute
        self.network_name: Final = network_name
        self.workers: Final = options.checked_workers(workers)
        self.readers: Final[dict[str, Any]] = {}
        self.warned_of: Final[set[object]] = set()
        self._token = token
        self._names = request.NetworkName(network_name)
        timeout = options.checked_seconds("timeout", timeout, at_least=0.001)
        backoff = options.checked_seconds("backoff", backoff)
        interval = 60 / options.checked_rate(requests_per_minute)
        self._transport = Transport(
            self.base_url,
            token,
            self._names,
            Throttle(self.max_wait, backoff, interval),
            timeout,
            max(self.workers, _KEPT_CONNECTIONS),
            options.checked_proxies(proxies),
            options.checked_verify(verify),
            is_sandbox,
        )
        # How often the data of an endpoint changed.
        self._generations: Counter[str] = Counter()
        self._has_default_cache = cache == options.DEFAULT_CACHE
        self._cache: ResponseCache | None = None
        if cache is not None:
            from outreach_frames.client.cache import ResponseCache  # noqa: PLC0415 - slow to import

            self._cache = ResponseCache(cache)

    @property
    def account(self) -> str:
        """A short hash of address and token, which does not reveal the token."""
        return self._token.fingerprint(self.base_url)

    @property
    def closed(self) -> bool:
        """Whether the session is closed."""
        return self._transport.closed

    @property
    def has_proxy(self) -> bool:
        """Whether requests go through a proxy."""
        return bool(self._transport.proxies)

    @property
    def is_sandbox(self) -> bool:
        """Whether the service is known to be a sandbox, embedded or served."""
        return self._transport.is_sandbox

    @property
    def cache(self) -> ResponseCache | None:
        """The cache of responses, or None.

        A sandbox that is started again at the same address may have other people, so the default
        cache has no responses of sandboxes.
        """
        return None if self._has_default_cache and self.is_sandbox else self._cache

    def close(self) -> None:
        """Abort running requests, and close the connections and the cache."""
        self._transport.close()
        if self._cache is not None:
            self._cache.close()

    def read(
        self,
        endpoint: spec.Endpoint,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        refresh: bool = False,
        is_complete: Callable[[Any], bool] = lambda _: True,
    ) -> Any:
        """Return the JSON response to a read, from the cache unless `refresh` is set.

        A response that is not complete is cached for a shorter time.
        """
        call = self._prepare(endpoint, path, query, body)
        since = math.inf if refresh else 0
        budget = WaitBudget(self.max_wait)
        return self._read(call, load_json, budget, since=since, is_complete=is_complete).value

    def read_dated(
        self,
        endpoint: spec.Endpoint,
        body: Mapping[str, Any],
        parse: Callable[[bytes], T],
        *,
        since: float = 0,
        store: bool = True,
    ) -> Dated[T]:
        """Return the parsed response with its Unix time; ignore the cache from before `since`."""
        call = self._prepare(endpoint, body=body)
        return self._read(call, parse, WaitBudget(self.max_wait), since=since, store=store)

    def read_pages(
        self,
        endpoint: spec.Endpoint,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        refresh: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Yield a list's pages, following ``_links.next.href``; all pages share one `max_wait`."""
        budget = WaitBudget(self.max_wait)
        call = self._prepare(endpoint, path, query)
        seen = {call.url}
        since = math.inf if refresh else 0
        while True:
            # Pages from before the first one could show an older state of the list.
            page, unix = self._read(call, load_object, budget, since=since)
            since = since or unix
            yield page
            href = request.next_href(page)
            if href is None:
                return
            try:
                url = request.resolve(href, page_url=call.url, base_url=self.base_url)
            except UnsafeLinkError as error:
                raise UnsafeLinkError(self._token.redact(str(error))) from None
            call = self._prepare(endpoint, path, url=url)
            if call.url in seen or len(seen) == request.MAX_PAGES:
                raise response.endless(call.label, len(seen))
            seen.add(call.url)

    def observe(
        self,
        endpoint: spec.Endpoint,
        budget: WaitBudget,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        url: str | None = None,
    ) -> Observation:
        """Send a read without cache, and repeat it only if the service is busy (429 or 503).

        `url` is a resolved link to another page.
        """
        call = self._prepare(endpoint, path, query, body, url=url)
        reply, content = self._transport.send(
            call, bytes, budget, lambda error: error.status_code in BUSY
        )
        return Observation(call.url, self._transport.redacted(reply.headers), content)

    def write(
        self,
        endpoint: spec.Endpoint,
        *,
        path: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | bytes,
    ) -> Any:
        """Send a change and return the response, or None if empty; `body` may be encoded JSON."""
        call = self._prepare(endpoint, path, body=body)
        budget = WaitBudget(self.max_wait)
        _, value = self._transport.send(
            call, response.load_optional, budget, lambda error: not error.may_have_acted
        )
        return value

    def drop_cached(self, endpoint: spec.Endpoint) -> None:
        """Drop all cached responses of an endpoint whose data changed."""
        self._generations[endpoint.name] += 1
        if (cache := self.cache) is not None:
            cache.drop(self._key_prefix(endpoint))

    def date_of(self, endpoint: spec.Endpoint, body: Mapping[str, Any]) -> float | None:
        """Return the Unix time of a cached response, or None if it is not cached."""
        entry = self._entry(self._prepare(endpoint, body=body))
        return None if entry is None else entry.unix

    def load_table(
        self, endpoint: spec.Endpoint, arguments: Mapping[str, Any]
    ) -> tuple[pa.Table, dict[str, Any]] | None:
        """Return the table and notes that `store_table` stored for these arguments, if fresh."""
        cache = self.cache
        stored = None if cache is None else cache.get_table(self._key_of(endpoint, arguments))
        if stored is not None:
            _LOGGER.debug("%s: %d rows from the cache", endpoint.label, stored[0].num_rows)
        return stored

    def store_table(
        self,
        endpoint: spec.Endpoint,
        arguments: Mapping[str, Any],
        table: pa.Table,
        notes: Mapping[str, Any],
        unix: float,
    ) -> None:
        """Cache a table of an endpoint's data; it expires with a response of this Unix time."""
        if (cache := self.cache) is not None:
            key = self._key_of(endpoint, arguments)
            cache.set_table(key, table, notes, LIFETIMES[endpoint.name], unix)

    def _key_of(self, endpoint: spec.Endpoint, arguments: Mapping[str, Any]) -> str:
        content = request.json_body(arguments)
        return self._key(endpoint, b"table", content, self.network_name.encode())

    def _key_prefix(self, endpoint: spec.Endpoint) -> str:
        return f"{self.account}:{endpoint.name}:"

    def _key(self, endpoint: spec.Endpoint, *parts: bytes) -> str:
        """Return a cache key from everything that a response depends on."""
        return self._key_prefix(endpoint) + hashlib.sha256(b"\0".join(parts)).hexdigest()

    def _prepare(
        self,
        endpoint: spec.Endpoint,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | bytes | None = None,
        *,
        url: str | None = None,
    ) -> Call:
        """Prepare a request; `url` is a resolved link, sent in place of path and query."""
        if self.closed:
            raise OutreachError("This client is closed. Call connect() for a new one.")
        try:
            target, label = request.filled_path(endpoint, path or {})
            url = url or f"{self.base_url}{target}{request.query_string(query or {})}"
        except UnicodeEncodeError:
            raise InvalidInputError(
                f"A value has a lone surrogate. Remove it; nothing was sent. ({endpoint.label})"
            ) from None
        members = body if isinstance(body, Mapping) and endpoint == spec.SEARCH_PEOPLE else {}
        filters = {name: members[name] for name in members if name in spec.FILTERS_BY_NAME}
        content = None if body is None else self._content(body)
        is_read = endpoint.name in LIFETIMES
        return self._transport.prepare(endpoint, label, url, content, filters, is_read=is_read)

    def _content(self, body: Mapping[str, Any] | bytes) -> bytes:
        if isinstance(body, bytes):
            if not self._names.translates:
                return body
            body = load_object(body)
        return request.json_body(self._names.outgoing(body))

    def _call_key(self, call: Call) -> str:
        return self._key(call.endpoint, call.url.encode(), call.content or b"")

    def _entry(self, call: Call) -> Entry | None:
        cache = self.cache
        return None if cache is None else cache.get(self._call_key(call))

    def _stored(self, call: Call, parse: Callable[[bytes], T], since: float) -> Dated[T] | None:
        """Return the cached response, or None if it is missing, invalid or older than `since`."""
        entry = self._entry(call)
        if entry is None or entry.unix < since:
            return None
        if entry.body == _NOT_FOUND:
            raise response.status_error(
                call.endpoint, call.label, 404, b"", redact=self._token.redact
            )
        with suppress(InvalidResponseError):
            value = parse(self._names.incoming(entry.body))
            _LOGGER.debug("%s: %d bytes from the cache", call.endpoint.label, len(entry.body))
            return Dated(value, entry.unix)
        return None

    def _read(
        self,
        call: Call,
        parse: Callable[[bytes], T],
        budget: WaitBudget,
        *,
        since: float,
        store: bool = True,
        is_complete: Callable[[T], bool] = lambda _: True,
    ) -> Dated[T]:
        """Return the cached response if it is not older than `since`, or send the read."""
        if math.isfinite(since) and (stored := self._stored(call, parse, since)) is not None:
            return stored
        generation = self._generations[call.endpoint.name]
        try:
            reply, value = self._transport.send(call, parse, budget, lambda _error: True)
        except NotFoundError:
            if store and call.endpoint == spec.GET_CONTACT_BY_EMAIL:
                self._store(call, _NOT_FOUND, time.time(), NOT_FOUND_LIFETIME, generation)
            raise
        dated = Dated(value, time.time())
        lifetime = LIFETIMES[call.endpoint.name]
        if not is_complete(value):
            lifetime = min(lifetime, NOT_FOUND_LIFETIME)
        if store and _has_documented_data(call.endpoint, value):
            self._store(call, reply.body, dated.unix, lifetime, generation)
        return dated

    def _store(
        self, call: Call, body: bytes, unix: float, lifetime: float, generation: int
    ) -> None:
        """Cache a response, unless it was requested before the endpoint's data changed."""
        is_current = generation == self._generations[call.endpoint.name]
        if is_current and (cache := self.cache) is not None:
            cache.set(self._call_key(call), body, lifetime, unix)


def _has_documented_data(endpoint: spec.Endpoint, value: object) -> bool:
    """Return whether a JSON body is a contact, or has the endpoint's list; others are not cached.

    Pages of people that are parsed together are bytes; another type was checked by its reader.
    """
    if isinstance(value, bytes):
        return f'"{spec.RESULTS_KEY}"'.encode() in value
    if not isinstance(value, dict):
        return not (value is None or isinstance(value, list | str | int | float))
    if endpoint == spec.GET_CONTACT_BY_EMAIL:
        id_or_email = {field.name for field in spec.CONTACT[:2]}
        return not value.keys().isdisjoint(id_or_email)
    return isinstance(value.get(endpoint.listed.name), list)
