"""Connections that can be aborted from outside, and that know whether a byte was sent.

A timeout of the socket starts again with every byte that arrives; only a clock beside it ends a
whole request in time.
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
    """One request and its response: what became of them, and how to abort them.

    `sign` puts the token into the head of the request as it leaves.
    """

    def __init__(self, sign: Callable[[bytes], memoryview] = memoryview) -> None:
        self.sign = sign
        self.sent = False
        self.timed_out: bool = False
        self.stopped: bool = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def uses(self, connection: socket.socket | None) -> None:
        """Set the socket that the exchange uses; None when it is done."""
        with self._lock:
            self._socket = connection
            if self.timed_out or self.stopped:
                self._shut_down()

    def time_out(self) -> None:
        """Abort because the time is up."""
        with self._lock:
            self.timed_out = True
            self._shut_down()

    def stop(self) -> None:
        """Abort because the request is cancelled."""
        with self._lock:
            self.stopped = True
            self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            # The plain socket's method: TLS would wait for the other side.
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class Clock:
    """One thread that aborts exchanges whose time is up; one for each would cost more."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ends: dict[Exchange, float] = {}
        self._wakes_at = math.inf
        self._thread: threading.Thread | None = None

    def start(self, current: Exchange, seconds: float) -> None:
        """Abort an exchange after some seconds, unless it is forgotten before."""
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
        """Stop the clock of an exchange that is done."""
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


def _start_anew() -> None:
    """Give a forked process a clock of its own: threads do not survive a fork."""
    global _clock  # noqa: PLW0603 - there is one for the process
    _clock = Clock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


@contextmanager
def exchange(
    seconds: float, cancellation: LinkedTokens, sign: Callable[[bytes], memoryview]
) -> Iterator[Exchange]:
    """Abort what this thread sends and receives when its time is up or it is cancelled."""
    current = Exchange(sign)
    token = _current.set(current)
    clock = _clock
    clock.start(current, seconds)
    try:
        with cancellation.calling(current.stop):
            yield current
    finally:
        clock.forget(current)
        current.uses(None)
        _current.reset(token)


class _Connection(HTTPConnection):
    """A connection that signs requests, and tells the current exchange about its socket."""

    _sends_head = False

    def putrequest(self, *args: Any, **options: Any) -> None:
        super().putrequest(*args, **options)
        self._sends_head = True

    def send(self, data: Any) -> None:
        # Before it connects, because a proxy's tunnel is opened through here too, and unsigned.
        is_head, self._sends_head = self._sends_head, False
        if self.sock is None:
            self.connect()
        current = _current.get()
        current.uses(self.sock)
        current.sent = True
        if is_head:
            # Around the library, whose debug output and whose variables would show the token.
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
