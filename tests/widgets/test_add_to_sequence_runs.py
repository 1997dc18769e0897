"""AddToSequence over several runs: the shown table, and the rows sent next."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from outreach_frames.client.client import Client
from tests import scripted as script
from tests.leads.sending.lead_service import added, refused, sent, skipped
from tests.scripted import Received, Reply
from tests.widgets.lead_page import (
    CHUNK,
    TOKEN,
    Page,
    begun,
    in_a_kernel,
    leads,
    serving,
    slow,
)

pytestmark = pytest.mark.long


def counts_of(table: dict[str, Any]) -> dict[str, int]:
    """Return the number of rows of each status in a table."""
    counts: Counter[str] = Counter()
    for status, count, *_ in table["summary"]:
        counts[status] += count
    return dict(counts)


@in_a_kernel
async def test_a_second_run_keeps_the_outcomes_of_the_first() -> None:
    """While a second run sends, the page shows the first run's outcomes, and then all."""
    with serving(slow, slow) as (service, client):
        page = Page(leads(2 * CHUNK + 2), client)
        await page.check()
        page.send()
        await begun(service)
        assert "outcome" not in page.told
        page.click("cancel")
        await page.idle()
        await page.check()
        page.send()
        assert counts_of(page.told["outcome"]) == {"added": CHUNK, "not_sent": CHUNK + 2}
        await page.idle()
        assert counts_of(page.told["outcome"]) == {"added": 2 * CHUNK + 2}
        assert page.widget.report is not None
        rows = page.widget.report.rows
        assert rows["attempts"].tolist() == [1] * (2 * CHUNK + 2)


@in_a_kernel
async def test_progress_counts_every_status_of_a_kind() -> None:
    """Rows skipped for different reasons are all counted during sending."""

    def mixed(received: Received) -> Reply:
        who = [{"email": lead["email"]} for lead in received.json["leads"]]
        return script.json(
            {
                "total": len(who),
                "total_added_to_sequence": len(who) - 5,
                "recently_contacted_and_skipped": who[:2],
                "in_exclusion_list_and_skipped": who[2:5],
            }
        )

    with serving(mixed, slow) as (_, client):
        page = Page(leads(CHUNK + 1), client)
        await page.check()
        busy: list[str] = []
        done: list[list[int]] = []
        page.widget.observe(lambda change: busy.append(change["new"]), "busy")
        page.widget.observe(lambda change: done.append(change["new"]), "progress")
        page.send()
        await page.idle()
        assert any(words.endswith(f"{CHUNK - 5} added, 5 skipped, 0 failed") for words in busy)
        assert [CHUNK, CHUNK + 1] in done


@in_a_kernel
async def test_unreadable_mailboxes_are_reported() -> None:
    """Sequences can be chosen even if reading the mailboxes fails, and the error is shown."""

    def reply(received: Received) -> Reply:
        if received.path == "/mailboxes":
            return script.json({}, 403)
        return script.json({"sequences": [{"id": "s1", "name": "One", "status": "active"}]})

    with script.scripted(reply) as service:
        with Client(service.url, TOKEN, cache=None, backoff=0) as client:
            page = Page(leads(1), client)
            page.click("ready")
            await page.idle()
            assert "403" in page.notices
            assert [one["id"] for one in page.told["sequences"]["options"]] == ["s1"]
            assert "mailboxes" not in page.told


@in_a_kernel
async def test_reading_can_be_cancelled() -> None:
    """Cancel ends the reading of sequences, and clicks do nothing while the widget is idle."""

    def reply(_received: Received) -> Reply:
        return script.delayed(20, script.json({"sequences": []}))

    with script.scripted(reply) as service:
        with Client(service.url, TOKEN, cache=None, backoff=0) as client:
            page = Page(leads(1), client)
            page.click("cancel")
            page.click("show", status="added")
            page.click("ready")
            while not service.requests:
                await asyncio.sleep(0.01)
            page.click("check", value=page.widget.value)
            page.click("cancel")
            await page.idle()
            assert page.widget.notices[0]["kind"] == "error"
            assert page.widget.plan is None
            assert page.state["phase"] == ""


REFUSED = refused("brand_new")


@in_a_kernel
async def test_identifier_columns_are_fixed_once_rows_have_arrived() -> None:
    """After rows have arrived, the other rows are only compared and sent by the same columns."""
    frame = leads(CHUNK + 2).assign(profnet_url=None)
    frame["home"] = [f"home{row}@example.com" for row in range(len(frame))]

    with serving(REFUSED) as (service, client):
        page = Page(frame, client)
        await page.check_and_send()
        assert page.statuses == ["rejected"] * CHUNK + ["added"] * 2
        for other in ({"email": "home"}, {"email": None}, {"profnet_url": None}):
            await page.check(**{"email": "email", "profnet_url": "profnet_url", **other})
            assert "other columns of emails and profile URLs" in page.notices
            page.send()
        await page.check(email="email", profnet_url="profnet_url")
        assert page.state["button"] == f"Add {CHUNK} leads to 'The s1'"
        page.send()
        await page.idle()
        assert page.statuses == ["added"] * (CHUNK + 2)
        assert len(sent(service)) == 3


@pytest.mark.parametrize(
    ("reply", "status", "arrived"),
    [
        (REFUSED, "rejected", False),
        (script.json({"error": "who?"}, 401), "not_sent", False),
        (added, "added", True),
        (script.hang_up(), "unknown", True),
        (skipped("recently_contacted_and_skipped"), "recently_contacted", True),
        (skipped("on_holiday_and_skipped"), "on_holiday", True),
    ],
)
@in_a_kernel
async def test_whether_rows_have_arrived(
    reply: Reply | Callable[[Received], Reply], status: str, arrived: bool
) -> None:
    """The frame can be sent to another sequence only if certainly no row has arrived."""
    frame = leads(3)
    frame["email"] = [frame["email"][0], "n/a", frame["email"][0].upper()]

    with serving(reply) as (service, client):
        page = Page(frame, client)
        await page.check_and_send()
        duplicate = status if status in ("not_sent", "rejected") else "duplicate_in_frame"
        assert page.statuses == [status, "invalid", duplicate]
        await page.check(sequence_id="s2")
        assert ("were sent to another sequence" in page.notices) == arrived
        assert page.state["button"] == ("" if arrived else "Add 1 lead to 'The s2'")
        if not arrived:
            page.send()
            await page.idle()
            assert page.statuses[0] == "added"
            assert service.requests[-1].path == "/sequences/s2/leads"
