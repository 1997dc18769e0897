"""Connections that other threads can abort, and that record whether a byte was sent.

A socket's timeout restarts with every byte received, so a timer limits the whole request.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from outreach_frames.common.cancellation import LinkedTokens


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
