"""Retries: which failures are retried, how long the client waits, and how waits are interrupted."""

from __future__ import annotations

import random
import signal
import subprocess
import textwrap
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.retry import Throttle, WaitBudget, parse_retry_after
from outreach_frames.client.transport import MAX_TRIES
from outreach_frames.common.parallel import ordered_map
from outreach_frames.errors import (
    AuthenticationError,
    ConnectionFailedError,
    InvalidResponseError,
    RequestTimeoutError,
    ServerError,
    ServiceError,
    WaitTooLongError,
)
from tests import forked
from tests.client.connection import LIMIT, TOKEN, connected
from tests.scripted import (
    FOREVER,
    Received,
    Reply,
    delayed,
    drip,
    gzipped,
    hang_up,
    json,
    raw,
    reset,
    respond,
    scripted,
    truncated,
)
from tests.threads import join_workers

pytestmark = pytest.mark.long

GOOD = {"sequences": []}
TRIES = MAX_TRIES


def cut_gzip() -> Reply:
    """Respond with a truncated gzip body under a matching Content-Length."""
    whole = gzipped(b'{"sequences": [' + b"1," * 500 + b"1]}")
    head, body = whole.parts
    assert isinstance(head, bytes)
    assert isinstance(body, bytes)
    kept = body[: len(body) // 2]
    return Reply((head.replace(b"%d" % len(body), b"%d" % len(kept)), kept))


FAULTS: dict[str, Callable[[], Reply]] = {
    "reset before the response": reset,
    "closed before the response": hang_up,
    "end in the middle of the body": lambda: truncated(json(GOOD)),
    "end in the middle of the head": lambda: truncated(json(GOOD), missing=60),
    "close without a length": lambda: raw(b"HTTP/1.1 200 OK\r\n\r\n" + b'{"sequences": ['),
    "cut gzip": cut_gzip,
    "no gzip": lambda: respond(b"{}", headers={"Content-Encoding": "gzip"}),
    "no HTTP": lambda: raw(b"SSH-2.0 hello\r\n"),
    "bad chunks": lambda: raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"),
    "500": lambda: json({}, 500),
    "502 in HTML": lambda: respond(b"<html>", 502),
    "HTML": lambda: respond(b"<html>"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_reads_are_retried(fault: str) -> None:
    """A read that fails temporarily succeeds in the end."""
    with scripted([FAULTS[fault](), FAULTS[fault](), json(GOOD)]) as service:
        with connected(service) as client:
            assert client._session.read(spec.LIST_SEQUENCES) == GOOD
    assert service.targets == ["/sequences"] * 3


@pytest.mark.parametrize("fault", FAULTS)
def test_reads_have_a_retry_limit(fault: str) -> None:
    """A read that keeps failing is an error that gives the number of attempts."""
    with scripted(lambda _: FAULTS[fault]()) as service, connected(service) as client:
        with pytest.raises(ServiceError) as caught:
            client._session.read(spec.LIST_SEQUENCES)
    assert caught.value.retryable
    assert caught.value.__notes__ == [f"Tried {TRIES} times."]
    assert len(service.requests) == TRIES


@pytest.mark.parametrize("status", [400, 401, 403, 404, 418, 422])
def test_permanent_errors_are_not_retried(status: int) -> None:
    """An error that the request itself causes is raised at once."""
    with scripted([json({}, status)]) as service, connected(service) as client:
        with pytest.raises(ServiceError):
            client._session.read(spec.LIST_SEQUENCES)
    assert len(service.requests) == 1


def test_only_the_failed_page_is_retried() -> None:
    """An error in the middle of several pages repeats that page only."""
    first = json({"sequences": [1], "_links": {"next": {"href": "/sequences?p=2"}}})
    with scripted([first, reset(), json({"sequences": [2]})]) as service:
        with connected(service) as client:
            pages = list(client._session.read_pages(spec.LIST_SEQUENCES))
    assert [one["sequences"] for one in pages] == [[1], [2]]
    assert service.targets == ["/sequences", "/sequences?p=2", "/sequences?p=2"]


def test_a_response_that_the_caller_rejects_is_retried() -> None:
    """A response that fails the caller's own check is requested again."""

    def parse(body: bytes) -> bytes:
        if body != b"[2]":
            raise InvalidResponseError("not the second")
        return body

    with scripted([json([1]), json([2])]) as service, connected(service) as client:
        assert client._session.read_dated(spec.SEARCH_PEOPLE, {}, parse).value == b"[2]"


WRITES: dict[str, tuple[Reply, bool | None]] = {
    # The reply, and whether the service may have acted; None if the write is sent again.
    "429": (json({}, 429), None),
    "503 with a time": (json({}, 503, headers={"Retry-After": "0.01"}), None),
    "503 with no time": (json({}, 503, headers={"Retry-After": "0"}), True),
    "503 without": (json({}, 503), True),
    "503 with a reset": (json({}, 503, headers={"RateLimit-Reset": "1"}), True),
    "500": (json({}, 500), True),
    "500 with a time": (json({}, 500, headers={"Retry-After": "0"}), True),
    "409 with a time": (json({}, 409, headers={"Retry-After": "0"}), True),
    "425 with a time": (json({}, 425, headers={"Retry-After": "0"}), False),
    "303": (json({}, 303, headers={"Location": "/done"}), True),
    "reset": (reset(), True),
    "closed": (hang_up(), True),
    "cut": (truncated(json(GOOD)), True),
    "HTML": (respond(b"<html>"), True),
}


@pytest.mark.parametrize("case", WRITES)
def test_writes_are_resent_only_if_the_service_did_not_act(case: str) -> None:
    """A write is repeated only if the service certainly did not act; else the error tells."""
    reply, may_have_acted = WRITES[case]
    with scripted([reply, json({"ok": 1})]) as service, connected(service) as client:
        if may_have_acted is None:
            assert client._session.write(spec.UPDATE_MAILBOX, path={"id": "m"}, body=LIMIT) == {
                "ok": 1
            }
        else:
            with pytest.raises(ServiceError) as caught:
                client._session.write(spec.UPDATE_MAILBOX, path={"id": "m"}, body=LIMIT)
            assert caught.value.may_have_acted is may_have_acted
    assert len(service.requests) == (2 if may_have_acted is None else 1)


def test_a_write_that_was_not_sent_says_so() -> None:
    """If the connection is refused, the service certainly did not act."""
    with scripted([]) as service:
        address = service.url
    with Client(address, TOKEN, cache=None, backoff=0.001) as client:
        with pytest.raises(ConnectionFailedError, match=r"^Nothing answers.*refused") as caught:
            client._session.write(spec.UPDATE_MAILBOX, path={"id": "m"}, body=LIMIT)
    assert caught.value.may_have_acted is False
    assert caught.value.__notes__ == [f"Tried {TRIES} times."]


def test_a_write_over_a_broken_connection_is_uncertain() -> None:
    """A reset on a reused connection may come after the service acted."""
    with scripted([json({}), reset(), json({})]) as service, connected(service) as client:
        client._session.read(spec.LIST_MAILBOXES)
        with pytest.raises(ConnectionFailedError, match=r"^The connection .* broke") as caught:
            client._session.write(spec.UPDATE_MAILBOX, path={"id": "m"}, body=LIMIT)
    assert caught.value.may_have_acted is True
    assert len(service.requests) == 2


SLOW: dict[str, Callable[[], Reply]] = {
    "body byte by byte": lambda: drip(json(GOOD), every=0.1),
    "head byte by byte": lambda: drip(json(GOOD), every=0.1, fast=3),
    "silence": lambda: delayed(FOREVER, json(GOOD)),
    "silence in the body": lambda: Reply((*json({"a": 1}).parts[:1], FOREVER)),
    "body without end": lambda: Reply((b"HTTP/1.1 200 OK\r\n\r\n", *([b" ", 0.05] * 500)), "close"),
}


@pytest.mark.parametrize("slow", SLOW)
def test_the_timeout_is_for_the_whole_request(slow: str) -> None:
    """The timeout applies to the whole request, wherever the time is spent."""
    with scripted(lambda _: SLOW[slow]()) as service, connected(service, timeout=0.3) as client:
        with pytest.raises(RequestTimeoutError, match=r"0\.3 s") as caught:
            client._session.write(spec.UPDATE_MAILBOX, path={"id": "m"}, body=LIMIT)
    assert caught.value.may_have_acted is True


def test_a_slow_read_is_retried() -> None:
    """A read that timed out is repeated."""
    # On a busy machine, more than one request may time out.
    with scripted([delayed(30, json(GOOD)), *[json(GOOD)] * 9]) as service:
        with connected(service, timeout=0.2) as client:
            assert client._session.read(spec.LIST_SEQUENCES) == GOOD


def http_date(seconds: float) -> str:
    """Format a time from now as an HTTP date."""
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("status", "asked"),
    [(200, "date"), (404, "0.9"), (503, " +1 ")],
)
def test_retry_after_is_obeyed_on_every_response(status: int, asked: str) -> None:
    """The next request waits as long as the last response requested, whatever its status."""
    asked = http_date(2) if asked == "date" else asked
    moments: list[float] = []

    def serve(_: Received) -> Reply:
        moments.append(time.monotonic())
        first = len(moments) == 1
        return json(GOOD, status, headers={"Retry-After": asked}) if first else json(GOOD)

    with scripted(serve) as service, connected(service) as client:
        try:
            client._session.read(spec.LIST_SEQUENCES)
        except ServiceError as error:
            assert error.status_code == status == 404  # noqa: PT017 - the others come out well
        client._session.read(spec.LIST_SEQUENCES)
    assert moments[1] - moments[0] > 0.85


@pytest.mark.parametrize("asked", ["86400", "86399.5", "9" * 400])
@pytest.mark.parametrize("status", [200, 429])
def test_a_wait_beyond_max_wait_is_an_error(asked: str, status: int) -> None:
    """The error has the requested wait, and no further request is sent."""
    with scripted([json(GOOD, status, headers={"Retry-After": asked})]) as service:
        with connected(service, max_wait=5) as client:
            if status == 200:
                assert client._session.read(spec.LIST_SEQUENCES) == GOOD
            with pytest.raises(WaitTooLongError, match=r"must wait [\d,.]+ hours") as caught:
                client._session.read(spec.LIST_SEQUENCES)
        assert len(service.requests) == 1
    assert caught.value.retry_after is not None
    assert caught.value.retry_after >= 86400
    assert caught.value.may_have_acted is False


def test_a_wait_of_one_thread_applies_to_all() -> None:
    """If the service tells one thread to wait, no thread sends a request before that time."""
    lock, told = threading.Lock(), []
    early: list[str] = []

    def serve(request: Received) -> Reply:
        with lock:
            if not told:
                told.append(time.monotonic())
                return json({}, 429, headers={"Retry-After": "1"})
            if 0.2 < time.monotonic() - told[0] < 0.9:
                early.append(request.target)
        return delayed(0.05, json(GOOD))

    with scripted(serve) as service, connected(service) as client:
        queries = [{"name": str(number)} for number in range(40)]
        responses = list(
            ordered_map(
                lambda query: client._session.read(spec.LIST_SEQUENCES, query=query),
                queries,
                workers=8,
            )
        )
    assert responses == [GOOD] * 40
    assert early == []


def test_a_401_stops_the_remaining_pages() -> None:
    """A token that is no longer accepted soon ends a read of many pages."""

    def serve(request: Received) -> Reply:
        return json({}, 401) if request.target.endswith("=20") else json(GOOD)

    with scripted(serve) as service, connected(service) as client:
        pages = ordered_map(
            lambda number: client._session.read(spec.LIST_SEQUENCES, query={"p": number}),
            range(400),
            workers=4,
        )
        with pytest.raises(AuthenticationError):
            list(pages)
        assert len(service.requests) < 40


BUSY: dict[str, Reply] = {
    "no response": delayed(FOREVER, json(GOOD)),
    "half a response": drip(json(GOOD), every=FOREVER),
    "Retry-After": json({}, 429, headers={"Retry-After": "100"}),
}


@pytest.mark.parametrize("busy", BUSY)
def test_closing_ends_requests_in_progress(busy: str) -> None:
    """Closing a client ends requests and waits in other threads at once."""
    caught: list[Exception] = []

    def read() -> None:
        try:
            client._session.read(spec.LIST_SEQUENCES)
        except ConnectionFailedError as error:
            caught.append(error)

    with scripted(lambda _: BUSY[busy]) as service, connected(service) as client:
        thread = threading.Thread(target=read)
        thread.start()
        while not service.requests:
            time.sleep(0.01)
        time.sleep(0.1)
        client.close()
        thread.join()
    assert "client was closed" in str(caught[0])


@pytest.mark.parametrize(
    ("reply", "may_have_acted"),
    [(delayed(60, json({})), True), (json({}, 429, headers={"Retry-After": "100"}), False)],
    ids=["sent", "waiting"],
)
def test_closing_ends_a_write(reply: Reply, may_have_acted: bool) -> None:
    """If a client is closed, a sent write is uncertain, and a waiting write is never sent."""
    with scripted([reply]) as service, connected(service) as client:
        threading.Timer(0.2, client.close).start()
        with pytest.raises(ConnectionFailedError, match="client was closed") as caught:
            client._session.write(spec.UPDATE_MAILBOX, path={"id": "m"}, body=LIMIT)
    assert caught.value.may_have_acted is may_have_acted
    assert caught.value.retryable is False
    assert len(service.requests) == 1


def test_pauses_before_retries_end_with_max_wait() -> None:
    """No pause is longer than the remaining max_wait."""
    with scripted(lambda _: json({}, 500)) as service:
        with connected(service, backoff=1000, max_wait=0.2) as client, pytest.raises(ServerError):
            client._session.read(spec.LIST_SEQUENCES)
    assert len(service.requests) == TRIES


@pytest.mark.parametrize("busy", BUSY)
def test_an_ended_run_leaves_the_client_usable(busy: str) -> None:
    """A run's end stops its requests and waits, and the client can be used for the next run."""

    def serve(request: Received) -> Reply:
        return json(GOOD) if request.target == "/sequences?p=0" else BUSY[busy]

    with scripted(serve) as service, connected(service, timeout=9000, max_wait=20000) as client:
        pages = ordered_map(
            lambda number: client._session.read(spec.LIST_SEQUENCES, query={"p": number}),
            range(400),
            workers=4,
        )
        assert next(pages) == GOOD
        while len(service.requests) < 2:
            time.sleep(0.01)
        pages.close()
        join_workers()
        assert not client.closed


@pytest.mark.parametrize("busy", BUSY)
def test_ctrl_c_during_many_pages_ends_at_once(busy: str) -> None:
    """After Ctrl-C, a program that reads many pages ends without waiting for any."""
    program = textwrap.dedent(
        """
        from outreach_frames import spec
        from outreach_frames.client.client import Client
        from outreach_frames.common.parallel import ordered_map
        import sys
        with Client(sys.argv[1], "token", cache=None, timeout=9000, max_wait=20000) as client:
            read = lambda page: client._session.read(spec.LIST_SEQUENCES, query={"p": page})
            for _ in ordered_map(read, range(400), workers=client._session.workers):
                pass
        """
    )
    with scripted(lambda _: BUSY[busy]) as service:
        process = forked.Process(program, service.url, stderr=subprocess.PIPE)
        with process:
            while not service.requests:
                time.sleep(0.01)
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            _, shown = process.communicate()
    assert "KeyboardInterrupt" in shown
    assert TOKEN not in shown


def test_retries_follow_a_pause() -> None:
    """Before each retry there is a random pause, whose upper limit doubles each time."""
    random.seed(7)
    pauses = [random.uniform(0, 0.1 * 2**attempt) for attempt in range(TRIES - 1)]
    random.seed(7)
    started = time.monotonic()
    with scripted([json({}, 500)] * (TRIES - 1) + [json(GOOD)]) as service:
        with Client(service.url, TOKEN, cache=None, backoff=0.1) as client:
            assert client._session.read(spec.LIST_SEQUENCES) == GOOD
    assert time.monotonic() - started >= sum(pauses)


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=30)), None])
def test_dates(zone: timezone | None) -> None:
    """A date may be in any time zone; without a zone it is UTC."""
    moment = datetime.now(zone or UTC) + timedelta(seconds=90)
    text = format_datetime(moment if zone else moment.replace(tzinfo=None))
    assert parse_retry_after(text) == pytest.approx(90, abs=2)


@given(st.text(max_size=40) | st.from_regex(r"\w{3}, \d+ (Jan|Dec) \d+ \d+:\d+:\d+ \S{0,5}"))
def test_no_header_breaks_the_reader(value: str) -> None:
    """Any header gives a valid number of seconds or None."""
    seconds = parse_retry_after(value)
    assert seconds is None or 0 <= seconds < time.time()


def test_a_shorter_wait_does_not_shorten_a_longer_one() -> None:
    """Among several requested waits, the latest end counts."""
    throttle = Throttle(max_wait=1, first_backoff=0)
    for seconds in ("100", "0.1"):
        throttle.note_headers(200, {"Retry-After": seconds}, 0, is_read=True)
    with pytest.raises(WaitTooLongError, match=r"must wait 100 s \(the service asks .*\(GET /x\)"):
        throttle.wait_for_turn("GET /x", WaitBudget(1))
