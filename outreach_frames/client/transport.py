"""Send requests: the only module that imports the HTTP library.

Failed reads are retried. A write is retried only if the service certainly did not act on it.
"""

from __future__ import annotations

import http.client
import importlib.metadata
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from outreach_frames import spec
from outreach_frames.client import request, response
from outreach_frames.client.credentials import Token
from outreach_frames.client.error_bodies import service_words
from outreach_frames.client.retry import Throttle, WaitBudget
from outreach_frames.common.cancellation import LinkedTokens, notify
from outreach_frames.errors import (
    InvalidResponseError,
    RateLimitedError,
    ServiceError,
    WaitTooLongError,
)


class Exchange:
    """A request that other threads can abort; `sign` adds the token to its head."""

    def __init__(self, sign: Callable[[bytes], memoryview] = memoryview) -> None:
        self.sign = sign
        self.sent = False
        self.timed_out: bool = False
        self.stopped: bool = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def set_socket(self, connection: socket.socket | None) -> None:
        """Set the socket in use, or None after the exchange."""
        with self._lock:
            self._socket = connection
            if self.timed_out or self.stopped:
                self._shut_down()

    def abort(self, *, timed_out: bool = False) -> None:
        """Abort the request because it is cancelled, or because its time is up."""
        with self._lock:
            self.timed_out |= timed_out
            self.stopped |= not timed_out
            self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            # Call the plain socket's method: a TLS shutdown would wait for the service.
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


_current: ContextVar[Exchange] = ContextVar("current_exchange")
# The library's debug log would show addresses in URLs, so it is silent during an exchange.
logging.getLogger("urllib3.connectionpool").addFilter(lambda _: _current.get(None) is None)


@contextmanager
def abortable(
    seconds: float, cancellation: LinkedTokens, sign: Callable[[bytes], memoryview]
) -> Iterator[Exchange]:
    """Abort this thread's request when its time is up or it is cancelled."""
    current = Exchange(sign)
    timer = threading.Timer(seconds, partial(current.abort, timed_out=True))
    timer.daemon = True
    token = _current.set(current)
    timer.start()
    try:
        with cancellation.calling(current.abort):
            yield current
    finally:
        timer.cancel()
        current.set_socket(None)
        _current.reset(token)


class _Connection(HTTPConnection):
    """A connection that signs requests and registers its socket with the current exchange."""

    _sends_head = False

    def putrequest(self, *args: Any, **options: Any) -> None:
        super().putrequest(*args, **options)
        self._sends_head = True

    def send(self, data: Any) -> None:
        # Reset the flag before connecting: the request for a proxy's tunnel is not signed.
        is_head, self._sends_head = self._sends_head, False
        if self.sock is None:
            self.connect()
        current = _current.get()
        current.set_socket(self.sock)
        current.sent = True
        if is_head:
            # Bypass the library: its debug output and variables would show the token.
            self.sock.sendall(current.sign(data))
        else:
            super().send(data)


class _SecureConnection(_Connection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


POOL_CLASSES = {"http": _Pool, "https": _SecurePool}


T = TypeVar("T")

# Logs contain no ids, addresses, queries or bodies, only paths as in the interface document.
_LOGGER: Final = logging.getLogger(__name__)

MAX_TRIES: Final = 5
# After these statuses without Retry-After, all threads wait before a read is repeated.
BUSY: Final = (429, 503)
_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip",
    "User-Agent": f"outreach-frames/{importlib.metadata.version('outreach-frames')}",
}
_JSON: Final = {"Content-Type": "application/json"}
_CHUNK_BYTES: Final = 256 * 1024
_FAULTS: Final = (OSError, ValueError, urllib3.exceptions.HTTPError, http.client.HTTPException)
_TIMEOUTS: Final = (requests.Timeout, urllib3.exceptions.TimeoutError)


@dataclass(frozen=True, slots=True)
class Call:
    """A prepared request that can be sent repeatedly; `label` names it in messages."""

    endpoint: spec.Endpoint
    label: str
    request: requests.PreparedRequest
    content: bytes | None = field(repr=False)
    filters: Mapping[str, Any] = field(repr=False)  # of a people search
    is_read: bool

    @property
    def url(self) -> str:
        """The address as it is sent."""
        return str(self.request.url)


class Reply(NamedTuple):
    """A successful response; keys of `headers` ignore case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Adapter(HTTPAdapter):
    """The HTTP library's adapter, with connections that can be aborted."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = POOL_CLASSES

    def proxy_manager_for(self, proxy: str, **options: Any) -> urllib3.ProxyManager:
        manager: urllib3.ProxyManager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = POOL_CLASSES
        return manager


@dataclass(eq=False, repr=False)
class Transport:
    """Sends one account's requests, in any thread, with its pauses, retries and deadlines."""

    base_url: str
    token: Token
    names: request.NetworkName
    throttle: Throttle
    timeout: float
    connections: int  # number of connections to keep open
    proxies: dict[str, str]
    verify: bool | str
    # Whether a response came from a sandbox, embedded or served, whose filter values are known.
    is_sandbox: bool = False

    def __post_init__(self) -> None:
        # A `Session` would add cookies, redirects, .netrc and the environment's proxies.
        self._adapter = _Adapter(pool_maxsize=self.connections)

    @property
    def closed(self) -> bool:
        """Whether the transport is closed."""
        return self.throttle.cancellation.is_set

    def close(self) -> None:
        """Abort running requests, and close the connections."""
        self.throttle.cancellation.set()
        self._adapter.close()

    def prepare(
        self,
        endpoint: spec.Endpoint,
        label: str,
        url: str,
        content: bytes | None,
        filters: Mapping[str, Any],
        *,
        is_read: bool,
    ) -> Call:
        """Prepare a request with a JSON body or none."""
        headers = _HEADERS if content is None else _HEADERS | _JSON
        prepared = requests.Request(endpoint.method, url, headers=headers, data=content).prepare()
        call = Call(endpoint, label, prepared, content, filters, is_read)
        # Check the prepared address too, because URL parsers disagree.
        request.require_same_origin(call.url, self.base_url)
        return call

    def send(
        self,
        call: Call,
        parse: Callable[[bytes], T],
        budget: WaitBudget,
        replayable: Callable[[ServiceError], bool],
    ) -> tuple[Reply, T]:
        """Send a request, retry it if useful and allowed, and return the reply and its value."""
        tries, refusal = 0, None  # the last response that was an error
        while True:
            try:
                sent_at = self.throttle.wait_for_turn(call.label, budget, refusal)
                reply = self._logged_exchange(call, sent_at)
                value = self._parsed(call, reply, parse)
                self.throttle.note_success(sent_at)
                if refusal is not None:
                    notify("")
                return reply, value
            except WaitTooLongError as error:
                if refusal is None or refusal.retry_after is not None:
                    raise
                refusal.add_note(error.summary)
                raise refusal from None
            except ServiceError as error:
                # Only `max_wait` limits how often a request is refused because of a rate limit.
                is_limited = isinstance(error, RateLimitedError)
                tries += not is_limited
                if error.status_code is not None and not error.retryable:
                    self.throttle.note_success(sent_at)
                if tries == MAX_TRIES or not error.retryable or not replayable(error):
                    if tries > 1:
                        error.add_note(f"Tried {tries} times.")
                    raise
                refusal = error.with_traceback(None)
                notify(f"{error} Trying again.")
                number = "" if is_limited else f" {tries} of {MAX_TRIES - 1}"
                _LOGGER.info("%s: retry%s", call.endpoint.label, number)
            # After other refusals, all threads wait.
            if refusal.retry_after is None and refusal.status_code not in BUSY:
                self.throttle.back_off(tries, budget)

    def redacted(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return a response's headers without the token; their keys ignore case."""
        texts = {name: self.token.redact(text) for name, text in headers.items()}
        return requests.structures.CaseInsensitiveDict[str](texts)

    def _logged_exchange(self, call: Call, sent_at: float) -> Reply:
        """Send a request once, and log its status, time and size."""
        start = time.perf_counter()
        status, size = None, 0
        try:
            reply = self._exchange(call, sent_at)
            status, size = reply.status, len(reply.body)
        except ServiceError as error:
            status = error.status_code
            raise
        finally:
            seconds = time.perf_counter() - start
            _LOGGER.debug(
                "%s: status %s, %.3f s, %d bytes", call.endpoint.label, status, seconds, size
            )
        return reply

    def _exchange(self, call: Call, sent_at: float) -> Reply:
        """Send a request once, and return a good response."""
        reply: requests.Response | None = None
        fault: Exception | None = None
        body, retry_after = b"", None
        # A write uses a new connection: on a reused one, a late response to an earlier request
        # could be mistaken for the write's.
        adapter = self._adapter if call.is_read else _Adapter(pool_maxsize=1)
        cancellation = LinkedTokens(self.throttle.cancellation)
        with abortable(self.timeout, cancellation, self.token.signed) as current:
            try:
                reply = adapter.send(
                    call.request,
                    stream=True,
                    timeout=self.timeout,
                    verify=self.verify,
                    proxies=self.proxies,
                )
                with closing(reply):
                    if reply.headers.get(spec.SERVER_HEADER) == spec.SANDBOX_SERVER:
                        self.is_sandbox = True
                    retry_after = self.throttle.note_headers(
                        reply.status_code, reply.headers, sent_at, is_read=call.is_read
                    )
                    chunks = reply.raw.stream(_CHUNK_BYTES, decode_content=True)
                    body = response.read_body(call.label, reply.status_code, chunks)
                    body = self.token.redact_body(body)
            except _FAULTS as caught:
                fault = caught.with_traceback(None)
            finally:
                if adapter is not self._adapter:
                    adapter.close()
        # Raise outside of the `except`, because the library's exceptions hold the request.
        if current.stopped:
            raise response.interrupted(call.label, may_have_acted=current.sent)
        if current.timed_out or isinstance(fault, _TIMEOUTS):
            raise response.timed_out(
                call.label,
                self.timeout,
                has_proxy=bool(self.proxies),
                may_have_acted=current.sent,
            )
        reason = "" if fault is None else self.token.redact(response.root_message(fault))
        if reply is None:
            raise response.unreachable(
                call.label,
                self.base_url,
                fault,
                reason,
                by_proxy=isinstance(fault, requests.exceptions.ProxyError),
                has_proxy=bool(self.proxies),
                may_have_acted=current.sent,
            )
        status = reply.status_code
        if fault is not None and status < 300:
            raise response.unreadable(call.label, status, reason)
        if 300 <= status < 400:
            location = self.token.redact(reply.headers.get("Location", ""))
            raise response.redirected(call.label, status, location)
        if not 200 <= status < 300:
            raise response.status_error(
                call.endpoint,
                call.label,
                status,
                body,
                retry_after,
                redact=self.token.redact,
                filters=call.filters,
                documented=self.names.documented,
            )
        return Reply(status, reply.headers, body)

    def _parsed(self, call: Call, reply: Reply, parse: Callable[[bytes], T]) -> T:
        try:
            return parse(self.names.incoming(reply.body))
        except InvalidResponseError as error:
            summary, is_readable = self.token.redact(error.summary), error.is_readable
        words = service_words(response.load_json(reply.body)) if is_readable else ""
        raise InvalidResponseError(
            summary,
            request=call.label,
            status_code=reply.status,
            reason=self.token.redact(words),
            retryable=not is_readable,
        )
