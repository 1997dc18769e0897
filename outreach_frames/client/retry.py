"""Cancellable waits before requests and retries."""

from __future__ import annotations

import logging
import math
import random
import re
import threading
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from outreach_frames import spec
from outreach_frames.client.response import interrupted
from outreach_frames.common import terms
from outreach_frames.common.cancellation import (
    CancellationToken,
    LinkedTokens,
    current_status,
    notify,
)
from outreach_frames.common.progress import announce
from outreach_frames.common.text import duration
from outreach_frames.errors import ServiceError, WaitTooLongError

_LOGGER = logging.getLogger(__name__)
# Longer waits cannot be interrupted by Ctrl-C on some systems.
_SLICE = 0.5
# Shorter waits are not announced.
_MIN_ANNOUNCED_SECONDS = 1.0
_TEN_YEARS = 3.2e8
# Larger numbers are Unix times, and even larger ones are in milliseconds or microseconds.
_UNIX_TIMES, _MILLISECONDS = 1e9, 1e11
# Widespread headers with the time until the service accepts requests again.
_RESET_HEADERS: Final = ("RateLimit-Reset", "X-RateLimit-Reset")
# These headers are not standardised, so no call waits longer for them.
_LONGEST_RESET: Final = 86_400.0
_LONGEST_PAUSE: Final = 60.0
_SHORTEST_PAUSE: Final = 0.001

_ASKED: Final = "the service asks for it"
_REASONS: Final = {429: "the service's rate limit", 503: "the service is unavailable"}


def parse_retry_after(value: str | None, date: str | None = None) -> float | None:
    """Return the seconds of a header with a wait, or None if it is invalid.

    The header may have seconds, a Unix time or an HTTP date. Times are compared with the `date` of
    the response, if it has one, because the clock of this machine may be wrong.

    >>> parse_retry_after("1.5"), parse_retry_after("-5"), parse_retry_after("soon")
    (1.5, 0.0, None)
    >>> parse_retry_after("1000000060", "Sun, 09 Sep 2001 01:46:40 GMT")
    60.0
    """
    if value is None:
        return None
    now = unix_time(date)
    now = time.time() if now is None else now
    if re.fullmatch(r"\s*[+-]?\d+(\.\d*)?\s*", value, re.ASCII):
        seconds = float(value)
        if seconds >= _UNIX_TIMES:
            for _ in ("milliseconds", "microseconds"):
                seconds = seconds / 1000 if seconds >= _MILLISECONDS else seconds
            seconds -= now
    elif (moment := unix_time(value)) is not None:
        seconds = moment - now
    else:
        return None
    return min(max(seconds, 0.0), _TEN_YEARS)


def unix_time(date: str | None) -> float | None:
    """Return an HTTP date as a Unix time, or None if it is missing or invalid."""
    try:
        moment = parsedate_to_datetime(date or "")
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, LookupError, OverflowError, OSError):
        return None


class WaitBudget:
    """The remaining seconds that one call may wait, renewed by each useful response."""

    def __init__(self, seconds: float, *, is_renewed: bool = True) -> None:
        self.remaining: float = seconds
        self._seconds = seconds
        self._is_renewed = is_renewed
        self._responses = 0

    def renew(self, responses: int) -> None:
        """Begin anew if the client got a useful response since the last call."""
        if self._is_renewed and responses != self._responses:
            self.remaining, self._responses = self._seconds, responses

    def wait(self, seconds: float, cancellation: LinkedTokens) -> None:
        """Wait some seconds, or until cancelled."""
        self.remaining -= wait(seconds, cancellation)


def wait(seconds: float, cancellation: LinkedTokens) -> float:
    """Wait some seconds, or until cancelled, and return the time waited."""
    start = time.monotonic()
    cancelled = threading.Event()
    with cancellation.calling(cancelled.set):
        while (rest := start + seconds - time.monotonic()) > 0:
            if cancelled.wait(min(rest, _SLICE)):
                break
    return time.monotonic() - start


class Throttle:
    """Makes a client wait: all threads after a refusal, and each call before its retries.

    A refusal without a time pauses all threads for a second at first, and for twice as long after
    each further refusal, up to a minute.
    """

    def __init__(self, max_wait: float, first_backoff: float, interval: float = 0) -> None:
        self.max_wait = max_wait
        self.cancellation: CancellationToken = CancellationToken()
        self._first_backoff = first_backoff  # maximum seconds of the first pause of one thread
        self._first_pause = max(2 * first_backoff, _SHORTEST_PAUSE)
        self._interval = interval  # seconds between the requests of all threads
        self._lock = threading.Lock()
        self._pause = self._first_pause
        self._not_before = 0.0
        self._reason = ""
        self._reset_header = ""  # the header with the end of the pause, unless it is Retry-After
        self._announced_until = 0.0
        self._due = 0.0  # time of the next request, if requests are spaced
        self._responses = 0  # number of useful responses

    def note_headers(
        self, status: int, headers: Mapping[str, str], sent_at: float, *, is_read: bool
    ) -> float | None:
        """Pause all threads if a response requires it, and return the seconds of its header.

        Reset headers count only for refusals without Retry-After. Return None for 0 or no header.
        `sent_at` is the time when its request was sent.
        """
        date = headers.get("Date")
        retry_after = parse_retry_after(headers.get(spec.RETRY_AFTER_HEADER), date) or None
        reason = _REASONS.get(status, _ASKED)
        with self._lock:
            if retry_after is not None:
                self._begin_pause(retry_after, reason)
            elif status == 429 or (status == 503 and is_read):
                resets = {
                    name: parse_retry_after(headers.get(name), date) or 0.0
                    for name in _RESET_HEADERS
                }
                reset_header, seconds = max(resets.items(), key=lambda reset: reset[1])
                retry_after = seconds or None
                if sent_at >= self._not_before:  # else the refusal belongs to the current pause
                    seconds = max(seconds, self._pause * random.uniform(1, 1.2))
                    self._pause = min(2 * self._pause, _LONGEST_PAUSE)
                self._begin_pause(seconds, reason, reset_header)
        return retry_after

    def note_success(self, sent_at: float) -> None:
        """Renew the waits and pauses of all calls after a useful response."""
        with self._lock:
            self._responses += 1
            if sent_at >= self._not_before:
                self._pause = self._first_pause

    def _begin_pause(self, seconds: float, reason: str, reset_header: str = "") -> None:
        end = time.monotonic() + seconds
        if end > self._not_before:
            self._not_before = self._due = end
            self._reason, self._reset_header = reason, reset_header

    def wait_for_turn(
        self, label: str, budget: WaitBudget, refusal: ServiceError | None = None
    ) -> float:
        """Wait until a request may be sent, and return the time; raise if that is too long.

        `refusal` is the last error of this request.
        """
        cancellation = LinkedTokens(self.cancellation)
        waited = False
        while not cancellation.is_set:
            budget.renew(self._responses)
            if (seconds := self._not_before - time.monotonic()) > 0:
                if seconds > budget.remaining or self._is_odd(seconds):
                    raise self._too_long(seconds, label, budget, refusal)
                _LOGGER.info("waiting %s: %s", duration(round(seconds, 1)), self._reason)
                text = f"waiting {duration(math.ceil(seconds))}: {self._reason}"
                self._announce_wait(text, seconds)
                budget.wait(seconds, cancellation)
                waited = True
            elif self._interval == 0 or self._wait_for_slot(cancellation):
                break
        if waited:
            notify("")
            announce("")
        if cancellation.is_set:
            raise interrupted(label, may_have_acted=False)
        return time.monotonic()

    def _wait_for_slot(self, cancellation: LinkedTokens) -> bool:
        """Wait until the next request is due, and return whether no pause began meanwhile."""
        with self._lock:
            now, last_pause = time.monotonic(), self._not_before
            due = max(now, self._due)
            self._due = due + self._interval
        wait(due - now, cancellation)
        return self._not_before == last_pause

    def _is_odd(self, seconds: float) -> bool:
        """Return whether a reset header, not Retry-After, asks for more than a day."""
        return bool(self._reset_header) and seconds > _LONGEST_RESET

    def _too_long(
        self, seconds: float, label: str, budget: WaitBudget, refusal: ServiceError | None
    ) -> WaitTooLongError:
        asked = math.ceil(seconds)
        if self._is_odd(seconds):
            limit = f"but no call waits more than a day for the header {self._reset_header}"
            advice = "Try again later, or with a new connection."
        else:
            remaining = duration(max(budget.remaining, 0), math.floor)
            limit = f"but only {remaining} of waiting remain"
            set_by = terms.wording(
                "of.connect(max_wait=...) sets the limit, which", in_shell="The limit"
            )
            advice = f"Try again later. {set_by} is {duration(self.max_wait)}."
        return WaitTooLongError(
            f"The next request must wait {duration(asked)} ({self._reason}), {limit}. Nothing "
            f"{'more ' if refusal else ''}was sent. {advice}",
            request=label,
            status_code=refusal.status_code if refusal else None,
            reason=refusal.reason if refusal else "",
            retry_after=asked,
            retryable=True,
            may_have_acted=False,
        )

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
