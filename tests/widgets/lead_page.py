"""A page of AddToSequence without a browser, and a service that accepts leads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pandas as pd

from outreach_frames.client.client import Client
from outreach_frames.widgets import AddToSequence
from tests import scripted as script
from tests.leads.sending.lead_service import added, sent
from tests.scripted import Received, Reply, Service

TOKEN = "a-token-that-nobody-may-see"
CHUNK = 250
SLOW = 0.3
# Seconds; longer than any test on a busy machine.
PATIENCE = 120


class Page:
    """A page that sends a widget's events and records its messages."""

    def __init__(self, frame: pd.DataFrame, client: Client | None, **options: Any) -> None:
        self.widget = AddToSequence(frame, client, **options)
        # The last message of each kind, and the list of all messages.
        self.told: dict[str, dict[str, Any]] = {}
        self.messages: list[dict[str, Any]] = []
        # Without a kernel the widget's messages go to this page.
        self.widget.send = self._hear

    def _hear(self, content: dict[str, Any], _buffers: object = None) -> None:
        # Jupyter can only send messages that are valid JSON.
        message = json.loads(json.dumps(content, allow_nan=False, ensure_ascii=False).encode())
        self.told[message["kind"]] = message
        self.messages.append(message)

    def click(self, action: str, **more: Any) -> None:
        """Send the event of a click."""
        self.widget._on_message(self.widget, {"action": action, **more}, [])

    async def idle(self) -> None:
        """Wait until the widget is idle."""
        for _ in range(1000):
            if not self.widget.busy:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"still busy: {self.widget.busy}")

    async def check(self, **part: Any) -> None:
        """Choose the sequence and options, and check the rows."""
        chosen = {**self.widget.value, "sequence_id": "s1", **part}
        self.click("check", value=chosen)
        await self.idle()

    def send(self) -> None:
        """Click the button that sends the shown plan."""
        self.click("submit", plan=self.state["plan"], value=self.widget.value)

    async def check_and_send(self, **part: Any) -> None:
        """Check the rows, click the button that sends the plan, and wait for the end."""
        await self.check(**part)
        self.send()
        await self.idle()

    async def send_and_cancel(self, service: Service) -> None:
        """Send the shown plan, cancel during its next request, and wait for the end."""
        requests = len(sent(service))
        self.send()
        await begun(service, requests + 1)
        self.click("cancel")
        await self.idle()

    async def retry(self) -> None:
        """Click the button that sends the unknown rows again, and wait for the end."""
        self.click("retry", report=self.state["report"])
        await self.idle()

    @property
    def state(self) -> dict[str, Any]:
        """Return the state that the page receives."""
        return self.widget.state

    @property
    def notices(self) -> str:
        """Return the text of all the widget's notices."""
        return " ".join(f"{one['text']} {' '.join(one['details'])}" for one in self.widget.notices)

    @property
    def statuses(self) -> list[str]:
        """Return the status of each row."""
        assert self.widget.report is not None
        return self.widget.report.rows["status"].tolist()


def leads(rows: int) -> pd.DataFrame:
    """Return this many leads, each with an email address."""
    return pd.DataFrame({"email": [f"lead{row}.x@example.com" for row in range(rows)]})


@contextmanager
def serving(*turns: Reply | Callable[[Received], Reply]) -> Iterator[tuple[Service, Client]]:
    """Serve three sequences; reply to requests that add leads in turn, and then with success."""
    rest = list(turns)

    def turn(received: Received) -> Reply:
        if received.method == "GET":
            states = {"s1": "active", "s2": "active", "old": "archived"}
            listed = [
                {"id": one, "name": f"The {one}", "status": status}
                for one, status in states.items()
            ]
            return script.json({"sequences": listed, "mailboxes": [], "_links": {}})
        reply = rest.pop(0) if rest else added
        return reply if isinstance(reply, Reply) else reply(received)

    with script.scripted(turn) as service:
        with Client(service.url, TOKEN, cache=None, backoff=0) as client:
            yield service, client


def slow(received: Received) -> Reply:
    """Respond after a delay that all leads were added."""
    return script.delayed(SLOW, added(received))


def slowly_lost(_received: Received) -> Reply:
    """Break the connection after a delay, without a response."""
    return script.delayed(SLOW, script.hang_up())


async def begun(service: Service, requests: int = 1) -> None:
    """Wait until this many requests that add leads have arrived."""
    for _ in range(1000):
        if len(sent(service)) >= requests:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{len(sent(service))} requests, not {requests}")


def in_a_kernel(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Decorate a test to run on an event loop, like a kernel's."""

    @wraps(test)
    def run(*arguments: Any, **options: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **options), PATIENCE))

    return run
