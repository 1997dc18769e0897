"""What widgets tell their hosts: that results changed, and nothing below the cell."""

from __future__ import annotations

import asyncio
from typing import Any

import pandas as pd
import pytest

from outreach_frames.client.client import Client
from outreach_frames.widgets import AddToSequence, MailboxLimits, PeopleSearch
from tests.widgets.lead_page import Page, leads, run, serving


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
        people = pd.DataFrame({"email": ["ada@example.com"]})
        async with asyncio.timeout(10):
            await announced(AddToSequence(people, client), "reload")
            await announced(PeopleSearch(client=client, limit=1), "search")
            await announced(MailboxLimits(client=client), "reload")

    asyncio.run(use())


def test_no_bar_is_printed_below_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    """Widgets show progress on their page alone."""

    async def use() -> None:
        page = Page(leads(3), client)
        limits = MailboxLimits(client=client)
        await page.check()
        page.send()
        await page.idle()
        assert page.statuses == ["added"] * 3
        while limits.busy:
            await asyncio.sleep(0.005)

    with serving() as (_, client):
        run(use())
    assert capsys.readouterr().err == ""
