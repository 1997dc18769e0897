"""Cancellable waits before requests and retries."""

from __future__ import annotations

import logging
import math
import random
import re
import threading
import time
from datetime import UTC
from email.utils import parsedate_to_datetime

from outreach_frames.client.response import interrupted
from outreach_frames.common.cancellation import (
    CancellationToken,
    LinkedTokens,
    current_status,
    notify,
)
from outreach_frames.common.progress import announce
from outreach_frames.errors import WaitTooLongError

_LOGGER = logging.getLogger(__name__)
# Longer waits cannot be interrupted by Ctrl-C on some systems.
_SLICE = 0.5
# Shorter waits are not announced.
_MIN_ANNOUNCED_SECONDS = 1.0
_TEN_YEARS = 3.2e8


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, or None if it is invalid.

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


class WaitBudget:
    """The remaining seconds that one call may wait."""

    def __init__(self, seconds: float) -> None:
        self.remaining: float = seconds

    def wait(self, seconds: float, cancellation: LinkedTokens) -> None:
        """Wait some seconds, or until cancelled."""
        start = time.monotonic()
        cancelled = threading.Event()
        with cancellation.calling(cancelled.set):
            while (rest := start + seconds - time.monotonic()) > 0:
                if cancelled.wait(min(rest, _SLICE)):
                    break
        self.remaining -= time.monotonic() - start


class Throttle:
    """Makes a client wait: all threads for Retry-After, and each call before its retries."""

    def __init__(self, max_wait: float, first_backoff: float) -> None:
        self.max_wait = max_wait
        self.cancellation: CancellationToken = CancellationToken()
        self._first_backoff = first_backoff  # maximum seconds of the first pause
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._announced_until = 0.0

    def pause(self, seconds: float) -> None:
        """Hold back the requests of all threads for some seconds."""
        with self._lock:
            self._not_before = max(self._not_before, time.monotonic() + seconds)

    def wait_for_turn(self, label: str, budget: WaitBudget) -> None:
        """Wait until a request may be sent; raise if the wait is too long or cancelled."""
        cancellation = LinkedTokens(self.cancellation)
        waited = False
        while not cancellation.is_set and (seconds := self._not_before - time.monotonic()) > 0:
            if seconds > budget.remaining:
                asked = math.ceil(seconds)
                raise WaitTooLongError(
                    f"The service asks to wait {asked} s, but only "
                    f"{max(budget.remaining, 0):.3g} s of max_wait={self.max_wait:g} remain. "
                    "Nothing was sent. Try again later, or connect with a longer max_wait.",
                    request=label,
                    retry_after=asked,
                    retryable=True,
                    may_have_acted=False,
                )
            _LOGGER.info("waiting %.1f s, as the service asks", seconds)
            self._announce_wait(f"The service asks to wait {math.ceil(seconds)} s.", seconds)
            budget.wait(seconds, cancellation)
            waited = True
        if cancellation.is_set:
            raise interrupted(label, may_have_acted=False)
        if waited:
            notify("")

    def back_off(self, attempt: int, budget: WaitBudget) -> None:
        """Pause for a random time after an attempt; the maximum doubles with each attempt."""
        pause = random.uniform(0, self._first_backoff * 2 ** (attempt - 1))
        pause = min(pause, budget.remaining)
        _LOGGER.info("waiting %.1f s before a retry", pause)
        budget.wait(pause, LinkedTokens(self.cancellation))

    def _announce_wait(self, status: str, seconds: float) -> None:
        """Announce a wait; in a terminal, announce it only once for all threads."""
        if current_status.get() is not None or seconds < _MIN_ANNOUNCED_SECONDS:
            notify(status)
            return
        with self._lock:
            is_new = self._announced_until < self._not_before
            self._announced_until = self._not_before
        if is_new:
            announce(status)
