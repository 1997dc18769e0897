"""AddToSequence over several runs: notes, errors, columns, settings and lost journals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import scripted as script
from tests.leads.sending.lead_service import added, sent
from tests.scripted import Received, Reply
from tests.widgets.lead_page import (
    CHUNK,
    Page,
    in_a_kernel,
    leads,
    serving,
)

pytestmark = pytest.mark.long


REFUSED = script.json({"error": "odd"}, 400)


def skipped(name: str) -> Callable[[Received], Reply]:
    """Return a reply that puts all leads of a request in a list of skipped leads."""

    def reply(received: Received) -> Reply:
        leads = received.json["leads"]
        return script.json({"total": len(leads), "total_added_to_sequence": 0, name: leads})

    return reply


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
        duplicate = "not_sent" if status == "not_sent" else "duplicate_in_frame"
        assert page.statuses == [status, "invalid", duplicate]
        await page.check(sequence_id="s2")
        assert ("were sent to another sequence" in page.notices) == arrived
        assert page.state["button"] == ("" if arrived else "Add 1 lead to 'The s2'")
        if not arrived:
            page.send()
            await page.idle()
            assert page.statuses[0] == "added"
            assert service.requests[-1].path == "/sequences/s2/leads"


@pytest.mark.parametrize("has_journal", [False, True])
@in_a_kernel
async def test_other_settings_for_remaining_rows(has_journal: bool, tmp_path: Path) -> None:
    """Settings may change between runs without a journal, but not with one."""
    journal = tmp_path / "leads.journal" if has_journal else None

    with serving(REFUSED) as (service, client):
        page = Page(leads(CHUNK + 1), client, journal=journal)
        await page.check_and_send()
        assert page.statuses == ["rejected"] * CHUNK + ["added"]
        await page.check(leads_distribution="sequence_senders")
        if has_journal:
            assert "different settings" in page.notices
            assert page.state["button"] == ""
            return
        page.send()
        await page.idle()
        assert page.statuses == ["added"] * (CHUNK + 1)
        (*_, last) = (one.json for one in service.requests if one.method == "POST")
        assert last["settings"] == {"leads_distribution": "sequence_senders"}
        assert len(last["leads"]) == CHUNK


@in_a_kernel
async def test_a_missing_journal_is_an_error(tmp_path: Path) -> None:
    """A missing journal is an error at a click and at a check, even for another sequence."""
    path = tmp_path / "leads.journal"

    with serving(REFUSED) as (service, client):
        page = Page(leads(1), client, journal=path)
        await page.check_and_send()
        assert page.statuses == ["rejected"]
        await page.check()
        path.unlink()
        page.send()
        await page.idle()
        assert "is missing" in page.notices
        await page.check(sequence_id="s2")
        assert "is missing" in page.notices
        assert not path.exists()
        assert len(sent(service)) == 1
