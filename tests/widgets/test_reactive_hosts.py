"""What widgets tell hosts that rerun cells, such as marimo."""

from __future__ import annotations

import asyncio
from typing import Any

import pandas as pd

from outreach_frames.client.client import Client
from outreach_frames.widgets import AddToSequence, MailboxLimits, PeopleSearch


def test_the_end_of_work_is_announced(client: Client) -> None:
    """Each widget says that its result changed, the last thing of its work."""

    async def announced(widget: Any, action: str) -> None:
        while widget.busy:
            await asyncio.sleep(0.005)
        told: list[str] = []
        # Without a kernel there is nobody to send messages to.
        widget.send = lambda content, _buffers=None: told.append(content["kind"])
        getattr(widget, action)()
        while widget.busy or not told or told[-1] != "changed":
            await asyncio.sleep(0.005)

    async def use() -> None:
        leads = pd.DataFrame({"email": ["ada@example.com"]})
        async with asyncio.timeout(10):
            await announced(AddToSequence(leads, client), "reload")
            await announced(PeopleSearch(client=client, limit=1), "search")
            await announced(MailboxLimits(client=client), "reload")

    asyncio.run(use())
