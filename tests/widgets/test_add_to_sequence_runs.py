"""AddToSequence over several runs: what is shown meanwhile, and what is sent next."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from outreach_frames.client.client import Client
from tests import scripted as script
from tests.leads.sending.lead_service import added, refused, sent
from tests.scripted import Received, Reply, Service
from tests.widgets.lead_page import (
    CHUNK,
    TOKEN,
    Page,
    begun,
    leads,
    run,
    serving,
    slow,
)


def live_tables(page: Page) -> list[dict[str, Any]]:
    """Return the tables that were shown while leads were being sent."""
    return [one for one in page.messages if one["kind"] == "outcome" and one["mode"] == "live"]


def counts_of(table: dict[str, Any]) -> dict[str, int]:
    """Return how many rows a table has of each status."""
    return {status: count for status, count, *_ in table["summary"]}


def test_the_table_of_a_second_run_has_all_rows_while_it_is_sent() -> None:
    """What the first run settled stays as it is; the rest waits, is being sent, and is added."""
    shown = threading.Semaphore(0)

    def once_shown(received: Received) -> Reply:
        assert shown.acquire(timeout=20)
        return added(received)

    async def test() -> None:
        page = Page(leads(2 * CHUNK + 2), client)
        await page.check()
        page.send()
        await begun(service)
        page.click("cancel")
        await page.idle()
        await page.check()
        page.click("try_out", plan=page.state["plan"])
        assert counts_of(page.told["outcome"]) == {"added": CHUNK, "would be sent": CHUNK + 2}
        page.messages.clear()
        page.send()
        for counts in (
            {"added": CHUNK, "waiting": CHUNK + 2},
            {"added": CHUNK, "being sent": CHUNK, "waiting": 2},
            {"added": 2 * CHUNK, "being sent": 2},
        ):
            while counts_of(page.told["outcome"]) != counts:
                await asyncio.sleep(0.01)
            if "being sent" in counts:
                shown.release()
        await page.idle()
        assert page.told["outcome"]["mode"] == "sent"
        statuses = {row[0]: row[3] for row in live_tables(page)[0]["rows"]}
        assert statuses["0"] == "added"
        assert statuses[f"{CHUNK}"] == "waiting"
        assert page.widget.report is not None
        rows = page.widget.report.rows
        assert rows["attempts"].tolist() == [1] * (2 * CHUNK + 2)

    with serving(slow, once_shown, once_shown) as (service, client):
        run(test())


def test_attempts_of_several_runs_add_up() -> None:
    """A row that was refused and then added was sent twice, one that was added at once, once."""
    refused = script.json({"error": "odd"}, 400)

    async def test() -> None:
        page = Page(leads(CHUNK + 1), client)
        await page.check()
        page.send()
        await page.idle()
        assert page.statuses == ["rejected"] * CHUNK + ["added"]
        await page.check()
        page.send()
        await page.idle()
        assert page.statuses == ["added"] * (CHUNK + 1)
        assert page.widget.report is not None
        assert page.widget.report.rows["attempts"].tolist() == [2] * CHUNK + [1]

    with serving(refused, added, added) as (_, client):
        run(test())


def test_progress_counts_every_status_of_a_kind() -> None:
    """Rows that were skipped for different reasons are all counted while the rest is sent."""

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

    async def test() -> None:
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

    with serving(mixed, slow) as (_, client):
        run(test())


def test_files_are_replaced_only_when_asked(tmp_path: Path) -> None:
    """Saving writes three files; existing ones are named first, and replaced by a second click."""
    frame = leads(2)
    frame.loc[1, "email"] = "n/a"
    folder = tmp_path / "out"

    async def test() -> None:
        page = Page(frame, client)
        page.click("save", folder=str(folder))
        assert not folder.exists()
        await page.check()
        page.send()
        await page.idle()
        page.click("save", folder=str(folder))
        assert page.told["saved"]["existing"] == []
        assert "1 failed row in failed.csv" in page.told["saved"]["words"]
        assert len(pd.read_csv(folder / "failed.csv")) == 1
        (folder / "added.csv").unlink()
        (folder / "failed.csv").write_text("mine", encoding="utf-8")
        page.click("save", folder=str(folder))
        assert page.told["saved"]["existing"] == ["skipped.csv", "failed.csv"]
        assert (folder / "failed.csv").read_text(encoding="utf-8") == "mine"
        page.click("save", folder=str(folder), replace=True)
        assert len(pd.read_csv(folder / "failed.csv")) == 1
        assert (folder / "added.csv").exists()

    with serving() as (_, client):
        run(test())


def test_mailboxes_that_cannot_be_read_are_told() -> None:
    """Sequences can be chosen all the same, and the error is told."""

    def reply(received: Received) -> Reply:
        if received.path == "/mailboxes":
            return script.json({}, 403)
        return script.json({"sequences": [{"id": "s1", "name": "One", "status": "active"}]})

    async def test() -> None:
        page = Page(leads(1), client)
        page.click("ready")
        await page.idle()
        assert "403" in page.notices
        assert [one["id"] for one in page.told["sequences"]["options"]] == ["s1"]
        assert "mailboxes" not in page.told

    with script.scripted(reply) as service:
        with Client(service.url, TOKEN, cache=None, backoff=0) as client:
            run(test())


def test_reading_can_be_cancelled() -> None:
    """Cancel ends the reading of sequences; with nothing under way, clicks do nothing."""

    async def test() -> None:
        page = Page(leads(1), client)
        page.click("cancel")
        page.click("abort")
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

    def reply(_received: Received) -> Reply:
        return script.delayed(20, script.json({"sequences": []}))

    with script.scripted(reply) as service:
        with Client(service.url, TOKEN, cache=None, backoff=0) as client:
            run(test())


def mails(service: Service) -> list[list[str]]:
    """Return the addresses of each request that added leads."""
    return [
        [lead["email"] for lead in one.json["leads"]]
        for one in service.requests
        if one.method == "POST"
    ]


REFUSED = script.json({"error": "odd"}, 400)


@pytest.mark.parametrize("has_journal", [False, True])
def test_a_row_that_becomes_valid_by_other_columns_is_sent(
    has_journal: bool, tmp_path: Path
) -> None:
    """After rows have arrived, rows that were invalid are sent once other columns make them valid.

    One that is the same person as an open row stands for both; none of the two is lost.
    """
    frame = leads(CHUNK + 3)
    frame["home"] = frame["email"]
    frame.loc[[0, CHUNK + 2], "email"] = "n/a"
    frame.loc[0, "home"] = frame.loc[1, "email"]
    journal = tmp_path / "leads.journal" if has_journal else None

    async def test() -> None:
        page = Page(frame, client, journal=journal)
        await page.check()
        page.send()
        await page.idle()
        middle = ["rejected"] * CHUNK
        assert page.statuses == ["invalid", *middle, "added", "invalid"]
        await page.check(email="home")
        assert page.state["button"] == f"Add {CHUNK + 1} leads to 'The s1'"
        page.send()
        await page.idle()
        assert page.statuses == ["added", "duplicate_in_frame", *["added"] * (CHUNK + 1)]
        assert page.widget.report is not None
        assert page.widget.report.rows["detail"][1] == "same email as row 0"
        assert page.widget.failed.empty
        again = [address for request in mails(service)[1:] for address in request]
        assert len(again) == len(set(again)) == CHUNK + 2

    with serving(REFUSED) as (service, client):
        run(test())


@pytest.mark.parametrize("has_journal", [False, True])
def test_who_was_sent_is_not_sent_by_another_column(has_journal: bool, tmp_path: Path) -> None:
    """A settled row is not sent by its other address, nor is another row with its address."""
    frame = leads(CHUNK + 2)
    frame["home"] = [f"home{row}@example.com" for row in range(len(frame))]
    # The last row was added: its work address is the first row's home address.
    frame.loc[0, "home"] = frame.loc[CHUNK + 1, "email"]
    frame.loc[1, "home"] = frame.loc[CHUNK + 1, "home"]
    journal = tmp_path / "leads.journal" if has_journal else None

    async def test() -> None:
        page = Page(frame, client, journal=journal)
        await page.check()
        page.send()
        await page.idle()
        assert page.statuses == ["rejected"] * CHUNK + ["added"] * 2
        await page.check(email="home")
        assert page.state["button"] == f"Add {CHUNK - 2} leads to 'The s1'"
        page.send()
        await page.idle()
        assert page.statuses == ["duplicate_in_frame"] * 2 + ["added"] * CHUNK
        assert mails(service)[2] == [f"home{row}@example.com" for row in range(2, CHUNK)]

    with serving(REFUSED) as (service, client):
        run(test())


def test_the_live_table_has_what_was_learned_since_the_rows_were_checked() -> None:
    """Unknown rows that were sent once more after the check are shown as they are now."""

    async def test() -> None:
        page = Page(leads(CHUNK + 2), client)
        await page.check()
        page.send()
        await page.idle()
        assert page.statuses == ["unknown"] * CHUNK + ["rejected"] * 2
        await page.check()
        page.click("retry", report=page.state["report"])
        await page.idle()
        page.messages.clear()
        page.send()
        await page.idle()
        assert counts_of(live_tables(page)[0]) == {"added": CHUNK, "waiting": 2}
        assert page.statuses == ["added"] * (CHUNK + 2)

    with serving(script.hang_up(), REFUSED) as (_, client):
        run(test())


def skipped(name: str) -> Callable[[Received], Reply]:
    """Return what replies that all leads of a request are in a list of skipped ones."""

    def reply(received: Received) -> Reply:
        leads = received.json["leads"]
        return script.json({"total": len(leads), "total_added_to_sequence": 0, name: leads})

    return reply


def test_notes_and_the_error_are_those_of_all_runs() -> None:
    """What an earlier run noted stays, and there is an error as long as rows are open."""

    async def test() -> None:
        page = Page(leads(CHUNK + 1), client)
        for statuses in (
            ["rejected"] * CHUNK + ["added"],
            ["rejected"] * CHUNK + ["added"],
            ["added"] * (CHUNK + 1),
        ):
            await page.check()
            page.send()
            await page.idle()
            assert page.statuses == statuses
            assert page.widget.report is not None
            assert (page.widget.report.error is None) == ("rejected" not in statuses)
        assert page.widget.report is not None
        assert page.widget.report.notes == [
            "Chunk 1: brand_new: because of brand_new",
            "Chunk 3: brand_new: because of brand_new",
        ]

    refusal = refused("brand_new")
    with serving(refusal, added, refusal) as (_, client):
        run(test())


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
def test_whether_rows_have_arrived(
    reply: Reply | Callable[[Received], Reply], status: str, arrived: bool
) -> None:
    """Only what certainly never reached the sequence leaves the frame free for another."""
    frame = leads(3)
    frame["email"] = [frame["email"][0], "n/a", frame["email"][0].upper()]

    async def test() -> None:
        page = Page(frame, client)
        await page.check()
        page.send()
        await page.idle()
        duplicate = "not_sent" if status == "not_sent" else "duplicate_in_frame"
        assert page.statuses == [status, "invalid", duplicate]
        await page.check(sequence_id="s2")
        assert ("went to another sequence" in page.notices) == arrived
        assert page.state["button"] == ("" if arrived else "Add 1 lead to 'The s2'")

    with serving(reply) as (_, client):
        run(test())


@pytest.mark.parametrize("has_journal", [False, True])
def test_other_settings_for_the_rest(has_journal: bool, tmp_path: Path) -> None:
    """They may change from run to run, but a journal is of one submission."""
    journal = tmp_path / "leads.journal" if has_journal else None

    async def test() -> None:
        page = Page(leads(CHUNK + 1), client, journal=journal)
        await page.check()
        page.send()
        await page.idle()
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

    with serving(REFUSED) as (service, client):
        run(test())


def test_a_skipped_row_is_sent_with_its_override() -> None:
    """What was skipped by a check of the service is sent where that check is now left out."""
    recently = skipped("recently_contacted_and_skipped")

    async def test() -> None:
        page = Page(leads(2), client)
        await page.check()
        page.send()
        await page.idle()
        assert page.statuses == ["recently_contacted"] * 2
        for override, count in (("ignore_exclusion_list", 0), ("ignore_recently_contacted", 2)):
            await page.check(overrides={override: True})
            assert page.state["button"] == (f"Add {count} leads to 'The s1'" if count else "")
        page.send()
        await page.idle()
        assert page.statuses == ["added"] * 2
        assert page.widget.report is not None
        assert page.widget.report.rows["attempts"].tolist() == [2, 2]

    with serving(recently) as (service, client):
        run(test())
        assert len(sent(service)) == 2


def test_unknown_rows_are_not_sent_again_by_another_column() -> None:
    """After a run by another address they stay unknown, and their detail says why."""
    frame = leads(CHUNK + 1)
    frame["home"] = [f"home{row}@example.com" for row in range(len(frame))]
    frame.loc[0, "home"] = frame.loc[0, "email"]

    async def test() -> None:
        page = Page(frame, client)
        await page.check()
        page.send()
        await page.idle()
        assert page.statuses == ["unknown"] * CHUNK + ["rejected"]
        await page.check(email="home")
        page.send()
        await page.idle()
        assert page.statuses == ["unknown"] * CHUNK + ["added"]
        page.click("retry", report=page.state["report"])
        await page.idle()
        assert page.statuses == ["added"] + ["unknown"] * (CHUNK - 1) + ["added"]
        assert page.widget.report is not None
        details = page.widget.report.rows["detail"].tolist()
        assert {words.partition(". ")[2] != "" for words in details[1:CHUNK]} == {True}
        assert all("Its email changed since it was sent" in words for words in details[1:CHUNK])

    with serving(script.hang_up(), REFUSED) as (service, client):
        run(test())
        assert [len(request) for request in mails(service)] == [CHUNK, 1, 1, 1]


def test_columns_of_a_run_that_nothing_came_of_link_nobody() -> None:
    """Rows that only share an address that was refused for both are two people by another."""
    frame = leads(CHUNK + 1)
    frame["home"] = [f"home{row % CHUNK}@example.com" for row in range(len(frame))]

    async def test() -> None:
        page = Page(frame, client)
        for email, lead_count in (("home", CHUNK), ("email", CHUNK + 1), ("email", 1)):
            await page.check(email=email)
            assert page.widget.plan is not None
            assert len(page.widget.plan.positions) == lead_count
            page.send()
            await page.idle()
        assert page.statuses == ["added"] * (CHUNK + 1)

    with serving(REFUSED, added, REFUSED) as (_, client):
        run(test())


def test_a_used_journal_that_is_gone_is_gone_for_every_sequence(tmp_path: Path) -> None:
    """Even where nothing arrived, none is begun in its place."""
    path = tmp_path / "leads.journal"

    async def test() -> None:
        page = Page(leads(1), client, journal=path)
        await page.check()
        page.send()
        await page.idle()
        assert page.statuses == ["rejected"]
        path.unlink()
        await page.check(sequence_id="s2")
        assert "is gone" in page.notices
        assert not path.exists()

    with serving(REFUSED) as (service, client):
        run(test())
        assert len(sent(service)) == 1


@pytest.mark.parametrize("replaced", [False, True])
def test_an_older_journal_is_refused(replaced: bool, tmp_path: Path) -> None:
    """A widget that has used a journal accepts no earlier copy of it, at any click."""
    path = tmp_path / "leads.journal"

    async def test() -> None:
        page = Page(leads(2 * CHUNK + 1), client, journal=path)
        await page.check()
        page.send()
        await page.idle()
        copy = path.read_bytes()
        await page.check()
        page.send()
        await page.idle()
        assert page.statuses == ["added"] * CHUNK + ["unknown"] * CHUNK + ["rejected"]
        await page.check()
        if replaced:
            path.unlink()
        path.write_bytes(copy)
        for click in (page.send, lambda: page.click("retry", report=page.state["report"])):
            page.click("ready")
            await page.idle()
            click()
            await page.idle()
            assert "older copy" in page.notices
        await page.check()
        assert "older copy" in page.notices

    with serving(REFUSED, script.hang_up(), REFUSED, added, REFUSED) as (service, client):
        run(test())
        assert len(sent(service)) == 5
