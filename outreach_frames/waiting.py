"""How long to wait, and how to be interrupted while waiting."""

from __future__ import annotations

import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import UTC
from email.utils import parsedate_to_datetime

from outreach_frames import failures

# Short enough for Ctrl-C on systems where a longer wait cannot be interrupted.
_SLICE = 0.5
_TEN_YEARS = 3.2e8


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for; None where it makes no sense.

    >>> parse_retry_after("1.5"), parse_retry_after("-5"), parse_retry_after("soon")
    (1.5, 0.0, None)
    """
    if value is None:
        return None
    if re.fullmatch(r"\s*[+-]?\d+(\.\d*)?\s*", value, re.ASCII):
        seconds = float(value)
    else:
        try:
            moment = parsedate_to_datetime(value)
            seconds = (
                moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            ).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), _TEN_YEARS)


class Stop:
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
ambient_stop: ContextVar[Stop | None] = ContextVar("ambient_stop", default=None)
# Who is told, in words, why the work of the current thread takes longer.
ambient_news: ContextVar[Callable[[str], None] | None] = ContextVar("ambient_news", default=None)


def tell(news: str) -> None:
    """Say why the work of the current thread takes longer, or "" when that is over."""
    listener = ambient_news.get()
    if listener is not None:
        listener(news)


def enter(stop: Stop, news: Callable[[str], None] | None = None) -> None:
    """Make the current thread work for somebody who may wish to stop, and who may listen."""
    ambient_stop.set(stop)
    ambient_news.set(news)


class Stops:
    """The client's own wish to stop together with the current thread's."""

    def __init__(self, own: Stop) -> None:
        ambient = ambient_stop.get()
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


class Budget:
    """What one call may still spend on waiting, in seconds."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def wait(self, seconds: float, stops: Stops) -> None:
        """Wait, or return early when somebody wishes to stop."""
        start = time.monotonic()
        stopped = threading.Event()
        with stops.calling(stopped.set):
            while (rest := start + seconds - time.monotonic()) > 0:
                if stopped.wait(min(rest, _SLICE)):
                    break
        self.left -= time.monotonic() - start


class Patience:
    """How a client waits: all of its threads for the service, each call within its own budget.

    Parameters
    ----------
    max_wait : float
        Seconds that one call may wait.
    first_backoff : float
        Seconds of the longest possible first pause before a retry.
    """

    def __init__(self, max_wait: float, first_backoff: float) -> None:
        self.max_wait = max_wait
        self.stop = Stop()
        self._first_backoff = first_backoff
        self._lock = threading.Lock()
        self._not_before = 0.0

    def budget(self) -> Budget:
        """Return what one call may spend."""
        return Budget(self.max_wait)

    def stops(self) -> Stops:
        """Return the wishes to stop that concern the current thread."""
        return Stops(self.stop)

    def ask(self, seconds: float) -> None:
        """Send nothing for some seconds, whichever thread was told so."""
        with self._lock:
            self._not_before = max(self._not_before, time.monotonic() + seconds)

    def wait_for_turn(self, label: str, budget: Budget) -> None:
        """Return when a request may be sent; raise when that is too late, or not wished any more.

        `label` names the request in messages.
        """
        stops = self.stops()
        waited = False
        while not stops.is_set and (seconds := self._not_before - time.monotonic()) > 0:
            if seconds > budget.left:
                raise failures.wait_too_long(label, math.ceil(seconds), budget.left, self.max_wait)
            tell(f"The service asks to wait {math.ceil(seconds)} s.")
            budget.wait(seconds, stops)
            waited = True
        if stops.is_set:
            raise failures.interrupted(label, may_have_acted=False)
        if waited:
            tell("")

    def back_off(self, attempt: int, budget: Budget) -> None:
        """Make a random pause after an attempt; the longest possible one doubles each time."""
        pause = random.uniform(0, self._first_backoff * 2 ** (attempt - 1))
        budget.wait(min(pause, budget.left), self.stops())
