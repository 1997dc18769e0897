"""Cancellation tokens, and the status callback that says why work takes longer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar


class CancellationToken:
    """A wish to stop, which waits and running requests heed, whatever thread they are in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_set(self) -> bool:
        """Whether somebody wishes to stop."""
        return self._is_set

    def set(self) -> None:
        """Wish to stop."""
        with self._lock:
            self._is_set = True
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Have the callback called when the wish is made, or at once when it was made before."""
        with self._lock:
            self._callbacks.append(callback)
        try:
            if self._is_set:
                callback()
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)


# The wish that the work of the current thread belongs to.
current_cancellation: ContextVar[CancellationToken | None] = ContextVar(
    "ambient_stop", default=None
)
# Who is told, in words, why the work of the current thread takes longer.
current_status: ContextVar[Callable[[str], None] | None] = ContextVar(
    "current_status", default=None
)


def notify(news: str) -> None:
    """Say why the work of the current thread takes longer, or "" when that is over."""
    listener = current_status.get()
    if listener is not None:
        listener(news)


def bind_thread(stop: CancellationToken, news: Callable[[str], None] | None = None) -> None:
    """Make the current thread work for somebody who may wish to stop, and who may listen."""
    current_cancellation.set(stop)
    current_status.set(news)


class LinkedTokens:
    """The client's own wish to stop together with the current thread's."""

    def __init__(self, own: CancellationToken) -> None:
        ambient = current_cancellation.get()
        self._stops = (own, ambient) if ambient else (own,)

    @property
    def is_set(self) -> bool:
        """Whether any of them is made."""
        return any(stop.is_set for stop in self._stops)

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Have the callback called when any of the wishes is made."""
        with ExitStack() as stack:
            for stop in self._stops:
                stack.enter_context(stop.calling(callback))
            yield
