"""Cancellation tokens and status callbacks: callers see waits and can cancel reads."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.common.cancellation import CancellationToken, bind_thread
from outreach_frames.common.warnings import collect_warnings
from outreach_frames.errors import OutreachWarning, ServiceError
from tests.scripted import Received, Reply, json, scripted

pytestmark = pytest.mark.long


def in_its_own_context(function: Callable[[], object]) -> None:
    """Call a function in a copied context, so that its changes end with it."""
    contextvars.copy_context().run(function)


def page_of(number: int) -> dict[str, object]:
    """Return a page of a search with 40 people."""
    people = [{"id": f"p{number}-{row}"} for row in range(10)]
    return {"results": people, "_pagination": {"total": 40, "total_pages": 4, "page": number}}


def test_a_requested_wait_is_reported() -> None:
    """The status callback gets a text for each wait and retry, and an empty text afterwards."""
    told: list[object] = []
    refused: set[int] = set()

    def service_says(received: Received) -> Reply:
        number = received.json["page"]
        if number == 1 or number in refused:
            return json(page_of(number))
        refused.add(number)
        if number == 2:
            return json({}, 429, {"Retry-After": "1"})
        return json({}, 500)

    with scripted(service_says) as service, Client(service.url, "t", cache=None, workers=1) as c:

        def read() -> None:
            bind_thread(CancellationToken(), told.append)
            assert len(of.search_people(page_size=10, progress=False, client=c)) == 40

        in_its_own_context(read)
    heard = [words for words in told if isinstance(words, str)]
    assert "waiting 1 s: the service's rate limit" in heard
    assert any("500" in words and words.endswith("Trying again.") for words in heard)
    assert heard[heard.index("waiting 1 s: the service's rate limit") + 1] == ""
    assert heard[-1] == ""


def test_cancellation_ends_the_waits_of_workers() -> None:
    """A cancelled read ends even while its workers wait for the service."""
    cancellation = CancellationToken()

    def service_says(received: Received) -> Reply:
        number = received.json["page"]
        return json(page_of(1)) if number == 1 else json({}, 429, {"Retry-After": "60"})

    def hears(_words: str) -> None:
        threading.Timer(0.1, cancellation.set).start()

    with scripted(service_says) as service, Client(service.url, "t", cache=None) as client:

        def read() -> None:
            bind_thread(cancellation, hears)
            with pytest.raises(ServiceError, match="Cancelled: ") as caught:
                of.search_people(page_size=10, progress=False, client=client)
            assert caught.value.partial is not None
            assert len(caught.value.partial) == 10

        in_its_own_context(read)


def test_a_wait_in_a_submission_is_reported() -> None:
    """The status callback gets the reason for a delay, although another thread sends the leads."""
    heard: list[str] = []
    replies = iter([json({}, 429, {"Retry-After": "1"})])

    def service_says(received: Received) -> Reply:
        if received.method == "GET":
            return json({"sequences": [], "_links": {}})
        return next(replies, json({"added": [], "skipped": []}))

    with scripted(service_says) as service, Client(service.url, "t", cache=None) as client:

        def add() -> None:
            bind_thread(CancellationToken(), heard.append)
            with collect_warnings():
                leads = pd.DataFrame({"email": ["ada@example.com"]})
                leads.outreach.add_to_sequence("s1", client=client, progress=False)

        in_its_own_context(add)
    assert "waiting 1 s: the service's rate limit" in heard


def test_warnings_can_be_collected(client: Client) -> None:
    """Inside the context manager warnings are collected; outside they are issued."""
    with collect_warnings() as messages:
        of.search_people(person_name="Xyzzy", client=client)
    assert [words for words in messages if words.startswith("Nobody matches")]
    with pytest.warns(OutreachWarning, match="Nobody matches"):
        of.search_people(person_name="Xyzzy", client=client)
