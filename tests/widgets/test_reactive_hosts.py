"""Widgets notify reactive notebooks of new results, and print nothing below a cell."""

from __future__ import annotations

import asyncio
from typing import Any

import pandas as pd
import pytest
from anywidget import AnyWidget

from outreach_frames.client.client import Client
from outreach_frames.widgets import AddToSequence, PeopleSearch
from tests.widgets.lead_page import Page, in_a_kernel, leads, serving


def test_results_are_announced(client: Client) -> None:
    """Each widget announces its new result at the end of its work."""

    async def announced(widget: Any, action: str) -> None:
        while widget.busy:
            await asyncio.sleep(0.005)
        told: list[str] = []
        # Record the messages, because there is no kernel.
        widget.send = lambda content, _buffers=None: told.append(content["kind"])
        getattr(widget, action)()
        while widget.busy or "changed" not in told:
            await asyncio.sleep(0.005)

    async def use() -> None:
        people = pd.DataFrame({"email": ["ada@example.com"]})
        async with asyncio.timeout(60):
            await announced(AddToSequence(people, client), "reload")
            search = PeopleSearch(client=client, limit=1)
            assert (search.progress, search.busy, search.status, search.seen) == ([0, 0], "", "", 0)
            await announced(search, "search")

    asyncio.run(use())


@in_a_kernel
async def test_no_bar_is_printed_below_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    """Widgets show progress only on their page."""
    with serving() as (_, client):
        page = Page(leads(3), client)
        await page.check_and_send()
        assert page.statuses == ["added"] * 3
    assert capsys.readouterr().err == ""


SYNCED: dict[type[Any], str] = {
    AddToSequence: "busy code form progress seen state value",
    PeopleSearch: "busy code form limit preset_to_replace problems progress seen value",
}
SENT: dict[type[Any], str] = {
    AddToSequence: "notices status",
    PeopleSearch: "count notices status",
}


def test_a_saved_notebook_contains_only_what_the_user_chose() -> None:
    """Saved notebooks contain only these traits, and the service's texts are sent as messages."""
    general = set(AnyWidget.class_traits(sync=True))
    for kind, names in SYNCED.items():
        assert " ".join(sorted(set(kind.class_traits(sync=True)) - general)) == names
        assert " ".join(sorted(kind.message_traits)) == SENT[kind]
