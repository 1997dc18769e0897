"""How long to wait, and how to be interrupted while waiting."""

from __future__ import annotations

import math
import random
import re
import threading
import time
from datetime import UTC
from email.utils import parsedate_to_datetime

from outreach_frames.client import error_messages
from outreach_frames.common.cancellation import CancellationToken, LinkedTokens, notify

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


class WaitBudget:
    """What one call may still spend on waiting, in seconds."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def wait(self, seconds: float, stops: LinkedTokens) -> None:
        """Wait, or return early when somebody wishes to stop."""
        start = time.monotonic()
        stopped = threading.Event()
        with stops.calling(stopped.set):
            while (rest := start + seconds - time.monotonic()) > 0:
                if stopped.wait(min(rest, _SLICE)):
                    break
        self.left -= time.monotonic() - start


class Throttle:
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
        self.stop = CancellationToken()
        self._first_backoff = first_backoff
        self._lock = threading.Lock()
        self._not_before = 0.0

    def budget(self) -> WaitBudget:
        """Return what one call may spend."""
        return WaitBudget(self.max_wait)

    def stops(self) -> LinkedTokens:
        """Return the wishes to stop that concern the current thread."""
        return LinkedTokens(self.stop)

    def ask(self, seconds: float) -> None:
        """Send nothing for some seconds, whichever thread was told so."""
        with self._lock:
            self._not_before = max(self._not_before, time.monotonic() + seconds)

    def wait_for_turn(self, label: str, budget: WaitBudget) -> None:
        """Return when a request may be sent; raise when that is too late, or not wished any more.

        `label` names the request in messages.
        """
        stops = self.stops()
        waited = False
        while not stops.is_set and (seconds := self._not_before - time.monotonic()) > 0:
            if seconds > budget.left:
                raise error_messages.wait_too_long(
                    label, math.ceil(seconds), budget.left, self.max_wait
                )
            notify(f"The service asks to wait {math.ceil(seconds)} s.")
            budget.wait(seconds, stops)
            waited = True
        if stops.is_set:
            raise error_messages.interrupted(label, may_have_acted=False)
        if waited:
            notify("")

    def back_off(self, attempt: int, budget: WaitBudget) -> None:
        """Make a random pause after an attempt; the longest possible one doubles each time."""
        pause = random.uniform(0, self._first_backoff * 2 ** (attempt - 1))
        budget.wait(min(pause, budget.left), self.stops())
