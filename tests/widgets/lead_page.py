"""AddToSequence as its page uses it, with no browser, and a service that it adds leads to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
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


class Page:
    """What a page does with a widget, and what it is told."""

    def __init__(self, frame: pd.DataFrame, client: Client | None, **options: Any) -> None:
        self.widget = AddToSequence(frame, client, **options)
        # The last message of each kind, and all of them.
        self.told: dict[str, dict[str, Any]] = {}
        self.messages: list[dict[str, Any]] = []
        # Without a kernel there is nobody to send messages to.
        self.widget.send = self._hear

    def _hear(self, content: dict[str, Any], _buffers: object = None) -> None:
        # A message that is not JSON would not arrive.
        message = json.loads(json.dumps(content, allow_nan=False, ensure_ascii=False).encode())
        self.told[message["kind"]] = message
        self.messages.append(message)

    def click(self, action: str, **more: Any) -> None:
        """Send what a click sends."""
        self.widget._on_message(self.widget, {"action": action, **more}, [])

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        for _ in range(1000):
            if not self.widget.busy:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"still busy: {self.widget.busy}")

    async def check(self, **part: Any) -> None:
        """Choose, and check the rows."""
        chosen = {**self.widget.value, "sequence_id": "s1", **part}
        self.click("check", value=chosen)
        await self.idle()

    def send(self, **more: Any) -> None:
        """Click on the button that sends what is shown."""
        self.click("submit", plan=self.state["plan"], value=self.widget.value, **more)

    @property
    def state(self) -> dict[str, Any]:
        """What the page knows of what can be done."""
        return self.widget.state

    @property
    def notices(self) -> str:
        """All that the widget tells."""
        return " ".join(f"{one['text']} {' '.join(one['details'])}" for one in self.widget.notices)

    @property
    def statuses(self) -> list[str]:
        """What became of each row."""
        assert self.widget.report is not None
        return self.widget.report.rows["status"].tolist()


def leads(rows: int) -> pd.DataFrame:
    """Return leads of which each has an address."""
    return pd.DataFrame({"email": [f"lead{row}.x@example.com" for row in range(rows)]})


@contextmanager
def serving(*turns: Reply | Callable[[Received], Reply]) -> Iterator[tuple[Service, Client]]:
    """Serve three sequences; requests that add leads get the replies in turn, and then success."""
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
    """Respond, after a while, that all leads were added."""
    return script.delayed(SLOW, added(received))


def slowly_lost(_received: Received) -> Reply:
    """Break the connection, after a while, with no response."""
    return script.delayed(SLOW, script.hang_up())


async def begun(service: Service, requests: int = 1) -> None:
    """Wait until so many requests that add leads have arrived."""
    for _ in range(1000):
        if len(sent(service)) >= requests:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{len(sent(service))} requests, not {requests}")


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a test on a loop, as a kernel has one."""
    asyncio.run(test)
