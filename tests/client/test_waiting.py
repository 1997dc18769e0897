"""The forms of Retry-After, and what they add up to."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.client.retry import Throttle, parse_retry_after
from outreach_frames.errors import WaitTooLongError


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("1,5", None),
        ("0x10", None),
        ("nan", None),
        ("1e3", None),
        ("٣", None),
        ("31 Feb", None),
        ("0", 0),
        ("7", 7),
        (" 7 ", 7),
        ("1.5", 1.5),
        ("-5", 0),
        ("-0.5", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ],
)
def test_seconds_and_nonsense(value: str | None, seconds: float | None) -> None:
    """Seconds are read, negative and past times are none, and nonsense is ignored."""
    assert parse_retry_after(value) == seconds


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=30)), None])
def test_dates(zone: timezone | None) -> None:
    """A date is a moment, in whichever zone it is written; without one it is UTC."""
    moment = datetime.now(zone or UTC) + timedelta(seconds=90)
    text = format_datetime(moment if zone else moment.replace(tzinfo=None))
    assert parse_retry_after(text) == pytest.approx(90, abs=2)


@given(st.text(max_size=40) | st.from_regex(r"\w{3}, \d+ (Jan|Dec) \d+ \d+:\d+:\d+ \S{0,5}"))
def test_no_header_breaks_the_reader(value: str) -> None:
    """Whatever a header says, it is a number of seconds that can be waited for, or nothing."""
    seconds = parse_retry_after(value)
    assert seconds is None or 0 <= seconds < time.time()


def test_a_shorter_wait_does_not_shorten_a_longer_one() -> None:
    """The latest moment that any answer asked for counts."""
    patience = Throttle(max_wait=1, first_backoff=0)
    patience.ask(100)
    patience.ask(0)
    with pytest.raises(WaitTooLongError, match="GET /x: the service asks to wait 100 s"):
        patience.wait_for_turn("GET /x", patience.budget())
