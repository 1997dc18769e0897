"""Cancellation tokens, and the status callback that explains delays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class CancellationToken:
    """Cancellation token for waits and in-flight requests, in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_set(self) -> bool:
        """Whether the work is cancelled."""
        return self._is_set

    def set(self) -> None:
        """Cancel the work."""
        with self._lock:
            self._is_set = True
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call back on cancellation, or at once if already cancelled."""
        with self._lock:
            self._callbacks.append(callback)
        try:
            if self._is_set:
                callback()
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)


# The token that cancels the current thread's work.
current_cancellation: ContextVar[CancellationToken | None] = ContextVar(
    "current_cancellation", default=None
)


class Progress(NamedTuple):
    """The progress of the current thread's work."""

    done: int
    total: int | None


# The callback that gets the reason for a delay in the current thread's work, or its progress.
StatusListener = Callable[[str | Progress], object]
current_status: ContextVar[StatusListener | None] = ContextVar("current_status", default=None)


def notify(status: str | Progress) -> None:
    """Report the current thread's progress, or why it is delayed; "" ends the delay."""
    callback = current_status.get()
    if callback is not None:
        callback(status)


def bind_thread(cancellation: CancellationToken, status: StatusListener | None = None) -> None:
    """Bind the current thread's work to a cancellation token and a status callback."""
    current_cancellation.set(cancellation)
    current_status.set(status)


class LinkedTokens:
    """The cancellation tokens of the client and of the current thread."""

    def __init__(self, own: CancellationToken) -> None:
        current = current_cancellation.get()
        self._tokens = (own, current) if current else (own,)

    @property
    def is_set(self) -> bool:
        """Whether any token is set."""
        return any(token.is_set for token in self._tokens)

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call back when any token is set."""
        with ExitStack() as stack:
            for token in self._tokens:
                stack.enter_context(token.calling(callback))
            yield
