"""Every widget shows control characters in the service's texts as visible text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from outreach_frames.client.client import Client
from outreach_frames.widgets import AddToSequence, PeopleSearch
from outreach_frames.widgets.base import Panel
from tests.scripted import Received, Reply, json, scripted

pytestmark = pytest.mark.long

BAD = "Ada\x1b[2J\u202e\u2028\x07"
SEEN = "Ada\\x1b[2J\\u202e\\u2028\\x07"
REFUSED = {"validation_errors": [{"error_code": BAD, "message": BAD}]}


def service(received: Received) -> Reply:
    """Respond with control characters in all texts."""
    if received.path == "/people/search":
        pagination = {"page": 1, "page_size": 1, "total": 1, "total_pages": 1}
        person = {"id": "p1", "name": BAD, "title": BAD, "company": {"name": BAD}}
        return json({"results": [person], "_pagination": pagination, "_errors": [BAD]})
    if received.path == "/sequences":
        listed = [{"id": "s1", "name": BAD, "status": BAD}]
        return json({"sequences": listed, "_links": {}})
    if received.path == "/mailboxes":
        one = {"id": "m1", "email": BAD, "email_provider": BAD, "status": BAD}
        return json({"mailboxes": [one | {"daily_email_limit": 4}], "_links": {}})
    return json(REFUSED, 422)


def texts(content: Any) -> Iterator[str]:
    """Yield every text in a message."""
    if isinstance(content, dict):
        content = content.values()
    if isinstance(content, str):
        yield content
    elif content is not None and not isinstance(content, int | float):
        for one in content:
            yield from texts(one)


async def idle(widget: Panel) -> None:
    """Wait until the widget is idle."""
    async with asyncio.timeout(20):
        while widget.busy:
            await asyncio.sleep(0.01)


async def search(client: Client) -> PeopleSearch:
    """Find a person, and let the count fail or warn."""
    widget = PeopleSearch(client=client)
    widget.search()
    return widget


async def adding(client: Client) -> AddToSequence:
    """Add a lead that the service rejects."""
    frame = pd.DataFrame({"email": ["ada@example.com"], BAD: ["x"]}, index=[BAD])
    widget = AddToSequence(frame, client)
    widget.reload()
    await idle(widget)
    widget.check({**widget.value, "sequence_id": "s1"})
    await idle(widget)
    widget.submit(widget.state["plan"], widget.value)
    return widget


@pytest.mark.parametrize("use", [search, adding])
def test_control_characters_are_visible(use: Any) -> None:
    """No message to the page has a raw control character in a name, status, detail or error."""
    sent: list[Any] = []

    async def test() -> None:
        with scripted(service) as scripted_service:
            with Client(scripted_service.url, "token", cache=None, backoff=0) as client:
                widget = await use(client)
                await idle(widget)
                # Record the messages, because there is no kernel.
                widget.send = sent.append
                widget._on_message(widget, {"action": "ready"}, [])
                await idle(widget)
        widget.close()

    asyncio.run(test())
    shown = list(texts(sent))
    assert any(SEEN in text for text in shown)
    # A column's name is also its identifier.
    assert {text for text in shown if not text.replace("\n", "").isprintable()} <= {BAD}
