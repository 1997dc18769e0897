"""Connections that other threads can abort, and that record whether a byte was sent.

A socket's timeout restarts with every byte received, so a separate clock limits whole requests.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
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

    def time_out(self) -> None:
        """Abort the request because its time is up."""
        with self._lock:
            self.timed_out = True
            self._shut_down()

    def stop(self) -> None:
        """Abort the request because it is cancelled."""
        with self._lock:
            self.stopped = True
            self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            # Call the plain socket's method: a TLS shutdown would wait for the service.
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class Clock:
    """A thread that aborts all exchanges whose time is up."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ends: dict[Exchange, float] = {}
        self._wakes_at = math.inf
        self._thread: threading.Thread | None = None

    def start(self, current: Exchange, seconds: float) -> None:
        """Abort an exchange after some seconds, unless `forget` is called first."""
        end = time.monotonic() + seconds
        with self._changed:
            self._ends[current] = end
            if self._thread is None:
                name = "request_clock"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
            elif end < self._wakes_at:
                self._changed.notify()

    def forget(self, current: Exchange) -> None:
        """Stop timing an exchange that is done."""
        with self._changed:
            self._ends.pop(current, None)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for current in [one for one, end in self._ends.items() if end <= now]:
                    del self._ends[current]
                    current.time_out()
                self._wakes_at = min(self._ends.values(), default=math.inf)
                self._changed.wait(None if self._wakes_at == math.inf else self._wakes_at - now)


_clock = Clock()
_current: ContextVar[Exchange] = ContextVar("current_exchange")


def _replace_clock() -> None:
    """Create a new clock in a forked process, because threads do not survive a fork."""
    global _clock  # noqa: PLW0603 - one clock per process
    _clock = Clock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace_clock)


@contextmanager
def exchange(
    seconds: float, cancellation: LinkedTokens, sign: Callable[[bytes], memoryview]
) -> Iterator[Exchange]:
    """Abort this thread's request when its time is up or it is cancelled."""
    current = Exchange(sign)
    token = _current.set(current)
    clock = _clock
    clock.start(current, seconds)
    try:
        with cancellation.calling(current.stop):
            yield current
    finally:
        clock.forget(current)
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
