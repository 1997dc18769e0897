"""Rate limits: all threads wait, the search continues, and requests can be spaced.

`Limit` counts as services do. The client's `backoff` scales its pauses, so a limit per minute is
tested with a clock that is a hundred times as fast.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context

import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.cli import main
from outreach_frames.common.cancellation import CancellationToken, bind_thread
from outreach_frames.common.parallel import ordered_map
from outreach_frames.errors import RateLimitedError, ServerError, ServiceError, WaitTooLongError
from tests.client.connection import connected
from tests.resources.search_service import numbers, service_of
from tests.scripted import Received, Reply, json, scripted

GOOD = {"sequences": []}
REFUSED = json({}, 429)


class Limit:
    """A service that answers only some requests in a period, and refuses others with 429."""

    def __init__(self, reply: Callable[[Received], Reply], most: int, seconds: float) -> None:
        self._reply, self._most, self._seconds = reply, most, seconds
        self._answered: deque[float] = deque()
        self._lock = threading.Lock()
        self.refused = 0

    def __call__(self, request: Received) -> Reply:
        """Return the reply to a request."""
        now = time.monotonic()
        with self._lock:
            while self._answered and self._answered[0] <= now - self._seconds:
                self._answered.popleft()
            if len(self._answered) >= self._most:
                self.refused += 1
                return REFUSED
            self._answered.append(now)
        return self._reply(request)


@pytest.mark.parametrize(
    ("people", "most", "seconds", "backoff"),
    [
        (1200, 5, 0.6, 0.005),
        pytest.param(10_000, 30, 60, 0.5, marks=[pytest.mark.slow, pytest.mark.timeout(600)]),
    ],
)
def test_a_search_outlasts_a_rate_limit(
    people: int, most: int, seconds: float, backoff: float
) -> None:
    """A search reads everybody although the service refuses most requests without a time."""
    limit = Limit(service_of(people), most, seconds)
    with scripted(limit) as service, connected(service, backoff=backoff) as client:
        found = of.search_people(limit=None, client=client)
    assert numbers(found) == [*range(1, people + 1)]
    assert limit.refused > 0


def waits(caplog: pytest.LogCaptureFixture) -> list[float]:
    """Return the logged waits, in seconds."""
    texts = (record.getMessage() for record in caplog.records)
    return [float(text.split()[1]) for text in texts if text.startswith("waiting")]


def test_a_pause_is_counted_once_and_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    """Pauses double per refusal of all threads together, and begin anew after a success."""
    replies = iter([REFUSED] * 8 + [json(GOOD)] * 8 + [REFUSED] + [json(GOOD)])
    together = threading.Barrier(4)

    def reply(_: Received) -> Reply:
        if len(service.requests) <= 8:
            together.wait(20)
        return next(replies)

    with caplog.at_level("INFO", "outreach_frames"), scripted(reply) as service:
        with connected(service, backoff=0.1) as client:
            every = ordered_map(
                lambda _: client._session.read(spec.LIST_SEQUENCES), range(8), workers=4
            )
            assert list(every) == [GOOD] * 8
            client._session.read(spec.LIST_SEQUENCES)
    first, second, third = waits(caplog)[:4], waits(caplog)[4:8], waits(caplog)[8:]
    assert max(first) < 0.3 < max(second) < 0.6
    assert max(third) < 0.3
    assert len(third) == 1


def test_only_max_wait_limits_refusals() -> None:
    """A service that refuses all requests is an error when the next pause exceeds `max_wait`."""
    with scripted(lambda _: json({"detail": "Daily limit."}, 429)) as service:
        with connected(service, max_wait=0.3) as client:
            with pytest.raises(RateLimitedError, match=r"Daily limit\.") as caught:
                client._session.read(spec.LIST_SEQUENCES)
        assert len(service.requests) > 5
    assert "(the service's rate limit), but only" in caught.value.__notes__[0]
    assert caught.value.may_have_acted is False


def test_max_wait_begins_anew_after_a_response() -> None:
    """A call may wait longer than `max_wait` in total if useful responses come in between."""

    def serve(_: Received) -> Reply:
        number = len(service.requests)
        links = {"next": {"href": f"/sequences?p={number}"}} if number < 4 else {}
        return json({"_links": links}, headers={"Retry-After": "0.2"})

    with scripted(serve) as service, connected(service, max_wait=0.3) as client:
        assert len(list(client._session.read_pages(spec.LIST_SEQUENCES))) == 4


DATE = {"Date": "Sun, 09 Sep 2001 01:46:40 GMT"}  # 1,000,000,000 as a Unix time
HEADERS: list[tuple[dict[str, str], int | None]] = [
    # The headers of a 429, and the seconds to wait, None for a pause of the client's own.
    ({"Retry-After": "0"}, None),
    *(({"Retry-After": text}, None) for text in ("", "soon", "nan", "-5")),
    ({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, None),
    ({"Retry-After": "1000000100", **DATE}, 100),
    ({"Retry-After": "Sun, 09 Sep 2001 01:48:20 GMT", **DATE}, 100),
    ({"RateLimit-Reset": "100"}, 100),
    ({"RateLimit-Reset": "0"}, None),
    ({"RateLimit-Reset": "soon"}, None),
    ({"X-RateLimit-Reset": "1000000100", **DATE}, 100),
    ({"X-RateLimit-Reset": "1000000100000", **DATE}, 100),
    ({"X-RateLimit-Reset": "1000000100000000", **DATE}, 100),
    ({"RateLimit-Reset": "7", "X-RateLimit-Reset": "100"}, 100),
    ({"Retry-After": "100", "RateLimit-Reset": "7"}, 100),
]


@pytest.mark.parametrize(("headers", "seconds"), HEADERS, ids=str)
def test_headers_lengthen_a_pause(headers: dict[str, str], seconds: int | None) -> None:
    """After a 429, the client waits as long as Retry-After or a reset header requires."""
    refusal = json({"detail": "Slow down."}, 429, headers)
    with scripted([refusal, json(GOOD)]) as service, connected(service, max_wait=5) as client:
        if seconds is None:
            assert client._session.read(spec.LIST_SEQUENCES) == GOOD
            return
        with pytest.raises(WaitTooLongError, match=f"must wait {seconds} s") as caught:
            client._session.read(spec.LIST_SEQUENCES)
        assert len(service.requests) == 1
    error = caught.value
    assert (error.retry_after, error.status_code, error.reason) == (seconds, 429, "Slow down.")
    assert str(error).endswith("(GET /sequences: 429, Slow down.)")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(120, "120 s"), (300, "5 minutes"), (7200, "120 minutes"), (9000, "2.5 ")],
)
@pytest.mark.parametrize("header", ["Retry-After", "RateLimit-Reset", "X-RateLimit-Reset"])
def test_long_waits_are_minutes_or_hours(header: str, seconds: int, told: str) -> None:
    """Errors tell more than two minutes as minutes or hours."""
    with scripted([json({}, 429, {header: str(seconds)})]) as service:
        with connected(service, max_wait=119) as client, pytest.raises(WaitTooLongError) as caught:
            client._session.read(spec.LIST_SEQUENCES)
    assert f"must wait {told}" in str(caught.value)
    assert "only 119 s of waiting remain" in str(caught.value)


def test_progress_and_logs_show_minutes(caplog: pytest.LogCaptureFixture) -> None:
    """A wait of minutes is shown and logged as minutes while it lasts."""
    heard: list[object] = []
    token = CancellationToken()

    def hear(status: object) -> None:
        heard.append(status)
        if "waiting" in str(status):
            token.set()

    def read() -> None:
        bind_thread(token, hear)
        with pytest.raises(ServiceError, match="Cancelled"):
            client._session.read(spec.LIST_SEQUENCES)

    with caplog.at_level("INFO", "outreach_frames"):
        with scripted([json({}, 429, {"X-RateLimit-Reset": "294"})]) as service:
            with connected(service) as client:
                copy_context().run(read)
    assert "waiting 4.9 minutes: the service's rate limit" in heard
    assert "waiting 4.9 minutes: the service's rate limit" in caplog.messages


@pytest.mark.parametrize("max_wait", [5, 3_000_000])
@pytest.mark.parametrize("status", [429, 503])
def test_a_reset_of_more_than_a_day_ends_the_call(status: int, max_wait: float) -> None:
    """No call waits more than a day for a reset header, whatever `max_wait`; the error names it."""
    with scripted([json({}, status, {"X-RateLimit-Reset": "2592000"})]) as service:
        with connected(service, max_wait=max_wait) as client:
            for _ in range(2):
                with pytest.raises(WaitTooLongError, match="must wait 720 hours") as caught:
                    client._session.read(spec.LIST_SEQUENCES)
        assert len(service.requests) == 1
    assert "the header X-RateLimit-Reset" in str(caught.value)
    assert "max_wait" not in str(caught.value)
    assert caught.value.retry_after == 2592000


def test_a_reset_header_of_a_good_response_is_ignored() -> None:
    """Reset headers pause nothing after a 200, which services send with every response."""
    with scripted(lambda _: json(GOOD, headers={"X-RateLimit-Reset": "100"})) as service:
        with connected(service, max_wait=0) as client:
            assert [client._session.read(spec.LIST_SEQUENCES) for _ in range(2)] == [GOOD] * 2


def test_an_unavailable_service_says_so_soon() -> None:
    """A 503 without Retry-After pauses all threads, but a request is sent only 5 times."""
    with scripted(lambda _: json({}, 503)) as service, connected(service) as client:
        with pytest.raises(ServerError, match="503"):
            client._session.read(spec.LIST_SEQUENCES)
    assert len(service.requests) == 5


@pytest.mark.long
def test_a_progress_bar_shows_a_wait(capsys: pytest.CaptureFixture[str]) -> None:
    """A bar shows the wait and its reason, and drops them afterwards."""
    limit = Limit(service_of(30), 2, 1.0)
    with scripted(limit) as service, connected(service, backoff=0.5) as client:
        of.search_people(limit=None, page_size=10, progress=True, client=client)
    lines = capsys.readouterr().err.split("\r")
    assert any("waiting 2 s: the service's rate limit" in line for line in lines)
    assert "waiting" not in lines[-1]


def test_requests_can_be_spaced() -> None:
    """Requests of all threads are spaced, also after a pause, and `max_wait` is for waits only."""
    moments: list[float] = []

    def reply(_: Received) -> Reply:
        moments.append(time.monotonic())
        return json(GOOD, headers={"Retry-After": "0.2"} if len(moments) == 5 else {})

    with scripted(reply) as service:
        with connected(service, max_wait=0.25, requests_per_minute=600) as client:
            every = ordered_map(
                lambda _: client._session.read(spec.LIST_SEQUENCES), range(10), workers=4
            )
            assert list(every) == [GOOD] * 10
    assert moments[4] - moments[0] > 0.3
    assert moments[9] - moments[5] > 0.3


def test_every_command_can_space_requests(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The option of a command reaches the client, which rejects an invalid number."""
    monkeypatch.setenv("OUTREACH_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OUTREACH_API_KEY", "token")
    for arguments in (["sequences"], ["search", "--all"], ["snapshot", "x"], ["check"]):
        assert main([*arguments, "--requests-per-minute", "0"]) == 2
        assert "--requests-per-minute takes a number above 0" in capsys.readouterr().err
