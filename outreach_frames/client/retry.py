"""How long to wait before a request or a retry, and how to cancel that wait."""

from __future__ import annotations

import math
import random
import re
import threading
import time
from datetime import UTC
from email.utils import parsedate_to_datetime

from outreach_frames.client.error_messages import interrupted
from outreach_frames.common.cancellation import (
    CancellationToken,
    LinkedTokens,
    current_status,
    notify,
)
from outreach_frames.common.progress import announce
from outreach_frames.errors import WaitTooLongError

# Short enough for Ctrl-C on systems where a longer wait cannot be interrupted.
_SLICE = 0.5
# Longer than a call usually takes, in seconds.
_WORTH_TELLING = 1.0
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
    """The seconds that one call may still wait."""

    def __init__(self, seconds: float) -> None:
        self.left: float = seconds

    def wait(self, seconds: float, cancellation: LinkedTokens) -> None:
        """Wait, or return early when cancelled."""
        start = time.monotonic()
        cancelled = threading.Event()
        with cancellation.calling(cancelled.set):
            while (rest := start + seconds - time.monotonic()) > 0:
                if cancelled.wait(min(rest, _SLICE)):
                    break
        self.left -= time.monotonic() - start


class Throttle:
    """How a client waits: all threads for the service, each call within its budget.

    Parameters
    ----------
    max_wait : float
        Seconds that one call may wait.
    first_backoff : float
        Seconds of the longest possible first pause before a retry.
    """

    def __init__(self, max_wait: float, first_backoff: float) -> None:
        self.max_wait = max_wait
        self.cancellation: CancellationToken = CancellationToken()
        self._first_backoff = first_backoff
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._told = 0.0

    def pause(self, seconds: float) -> None:
        """Send nothing for some seconds, whichever thread received the Retry-After."""
        with self._lock:
            self._not_before = max(self._not_before, time.monotonic() + seconds)

    def wait_for_turn(self, label: str, budget: WaitBudget) -> None:
        """Return when a request may be sent; raise when that is too late, or when cancelled.

        `label` names the request in messages.
        """
        cancellation = LinkedTokens(self.cancellation)
        waited = False
        while not cancellation.is_set and (seconds := self._not_before - time.monotonic()) > 0:
            if seconds > budget.left:
                asked = math.ceil(seconds)
                raise WaitTooLongError(
                    f"{label}: the service asks to wait {asked} s, and of max_wait="
                    f"{self.max_wait:g} only {max(budget.left, 0):.3g} s are left. Nothing was "
                    "sent. Try again later, or connect with a longer max_wait.",
                    retry_after=asked,
                    retryable=True,
                    may_have_acted=False,
                )
            self._tell(f"The service asks to wait {math.ceil(seconds)} s.", seconds)
            budget.wait(seconds, cancellation)
            waited = True
        if cancellation.is_set:
            raise interrupted(label, may_have_acted=False)
        if waited:
            notify("")

    def back_off(self, attempt: int, budget: WaitBudget) -> None:
        """Pause for a random time after an attempt; its upper bound doubles each time."""
        pause = random.uniform(0, self._first_backoff * 2 ** (attempt - 1))
        pause = min(pause, budget.left)
        if pause >= _WORTH_TELLING and current_status.get() is None:
            announce(f"A request failed; trying again in {math.ceil(pause)} s.")
        budget.wait(pause, LinkedTokens(self.cancellation))

    def _tell(self, status: str, seconds: float) -> None:
        """Say how long a wait is, on a terminal once for all threads."""
        if current_status.get() is not None or seconds < _WORTH_TELLING:
            notify(status)
            return
        with self._lock:
            is_new, self._told = self._told < self._not_before, self._not_before
        if is_new:
            announce(status)
