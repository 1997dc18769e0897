"""AddToSequence without a browser: the page's events and the kernel's reactions."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.errors import InvalidInputError
from outreach_frames.widgets.add_to_sequence.state import OUTCOMES_SHOWN
from tests import scripted as script
from tests.leads.sending.lead_service import added, refused, sent, skipped
from tests.scripted import Received, Reply, Service
from tests.widgets.lead_page import (
    CHUNK,
    SLOW,
    TOKEN,
    Page,
    begun,
    in_a_kernel,
    leads,
    serving,
    slow,
    slowly_lost,
)

pytestmark = pytest.mark.long


@in_a_kernel
async def test_a_plan_is_sent_once_despite_several_clicks() -> None:
    """Simultaneous, later and other views' clicks send each row only once."""
    with serving(slow) as (service, client):
        page = Page(leads(3), client)
        await page.check()
        click = {"plan": page.state["plan"], "value": dict(page.widget.value)}
        for _ in range(3):
            page.click("submit", **click)
        await page.idle()
        page.click("submit", **click)
        assert page.notices.strip() == "3 of 3 rows are in the sequence now."
        page.click("ready")
        page.send()
        await page.idle()
        assert page.statuses == ["added"] * 3
        assert page.state["button"] == ""
        assert sent(service) == [["lead0", "lead1", "lead2"]]


@pytest.mark.parametrize(
    "change", [{"email": None, "profnet_url": "url"}, {"sequence_id": "s2"}, {"data": {"a": "url"}}]
)
@in_a_kernel
async def test_an_outdated_plan_is_rejected(change: dict[str, Any]) -> None:
    """A click on an outdated plan, in the page or in the kernel, sends nothing."""
    with serving() as (service, client):
        page = Page(leads(2).assign(url="profnet.example/in/a"), client)
        await page.check()
        number, planned = page.state["plan"], dict(page.widget.value)
        assert page.state["button"] == "Add 2 leads to 'The s1'"
        page.widget.value = {**planned, **change}
        assert page.state["button"] == ""
        page.click("submit", plan=number, value=page.widget.value)
        assert "Nothing was sent" in page.notices
        page.widget.value = planned
        page.click("submit", plan=number, value={**planned, **change})
        page.click("submit", plan=number + 1, value=planned)
        page.click("submit", plan=0, value=planned)
        await page.idle()
        assert page.widget.report is None
        assert sent(service) == []


@in_a_kernel
async def test_the_checked_frame_is_sent() -> None:
    """A frame changed after its check is sent in its checked state and not modified."""
    frame = leads(2)

    with serving() as (service, client):
        page = Page(frame, client)
        await page.check()
        frame["email"] = "other.x@example.com"
        frame["new"] = 1
        page.send()
        await page.idle()
        assert frame.columns.tolist() == ["email", "new"]
        assert sent(service) == [["lead0", "lead1"]]


@in_a_kernel
async def test_after_cancel_only_unsent_rows_are_sent() -> None:
    """After Cancel only unsent rows can be sent, by position, and only to the same sequence."""
    frame = leads(CHUNK + 2)

    with serving(slow) as (service, client):
        page = Page(frame, client)
        await page.check()
        page.send()
        await begun(service)
        page.click("cancel")
        assert page.state["phase"] == "cancelling"
        await page.idle()
        assert page.statuses == ["added"] * CHUNK + ["not_sent"] * 2
        frame["email"] = frame["email"].to_numpy()[::-1]
        await page.check(sequence_id="s2")
        assert "another sequence" in page.notices
        await page.check()
        assert page.state["button"] == "Add 2 leads to 'The s1'"
        page.send()
        await page.idle()
        assert page.statuses == ["added"] * (CHUNK + 2)
        assert f"{CHUNK + 2} of {CHUNK + 2} rows are in the sequence now" in page.notices
        assert page.widget.report is not None
        assert page.widget.report.frame["email"].tolist() == leads(CHUNK + 2)["email"].tolist()
        await page.check()
        assert page.state["why_not"] == "There is nothing to send."
        assert [len(chunk) for chunk in sent(service)] == [CHUNK, 2]
        assert len({name for chunk in sent(service) for name in chunk}) == CHUNK + 2


@in_a_kernel
async def test_unknown_rows_are_retried_only_by_their_button() -> None:
    """A plan never contains rows that may have arrived; a separate button sends them once."""
    with serving(script.hang_up()) as (service, client):
        page = Page(leads(2), client)
        await page.check_and_send()
        assert page.statuses == ["unknown"] * 2
        await page.check()
        assert page.state["button"] == ""
        for _ in range(2):
            page.click("retry", report=page.state["report"])
        page.click("retry", report=page.state["report"] - 1)
        await page.idle()
        assert page.statuses == ["added"] * 2
        assert len(sent(service)) == 2


@in_a_kernel
async def test_cancel_ends_retries_of_later_runs() -> None:
    """Cancel during a retry leaves the unknown rows of later runs unsent."""
    lost = script.hang_up()

    with serving(slowly_lost, lost, slow) as (service, client):
        page = Page(leads(2 * CHUNK), client)
        await page.check()
        await page.send_and_cancel(service)
        await page.check_and_send()
        assert page.statuses == ["unknown"] * (2 * CHUNK)
        page.click("retry", report=page.state["report"])
        await begun(service, 3)
        page.click("cancel")
        await page.idle()
        assert page.statuses == ["added"] * CHUNK + ["unknown"] * CHUNK
        assert len(sent(service)) == 3


@in_a_kernel
async def test_an_error_of_a_retry_is_shown() -> None:
    """An error during a retry is shown completely and kept in the report of all runs."""
    with serving(script.hang_up(), refused("missing_ai_credits", "odd")) as (_, client):
        page = Page(leads(1), client)
        await page.check_and_send()
        await page.retry()
        assert page.widget.notices[0]["kind"] == "error"
        details = page.widget.notices[0]["details"]
        assert [text.partition(":")[0] for text in details] == ["missing_ai_credits", "odd"]
        assert page.widget.report is not None
        assert page.widget.report.error is not None


@in_a_kernel
async def test_rows_already_in_the_sequence_count() -> None:
    """Rows skipped because they are already in the sequence count as present."""
    with serving(skipped("already_in_sequence_and_skipped")) as (_, client):
        page = Page(leads(1), client)
        await page.check_and_send()
        assert page.statuses == ["already_in_sequence"]
        assert page.notices.strip() == "1 of 1 row is in the sequence now."


@in_a_kernel
async def test_two_widgets_on_one_frame() -> None:
    """A second widget cannot send at the same time, and later excludes the people sent before."""
    refused = threading.Event()

    def held(received: Received) -> Reply:
        assert refused.wait(60)
        return added(received)

    with serving(held) as (service, client):
        first, second = Page(leads(2), client), Page(leads(3), client)
        await first.check()
        await second.check()
        first.send()
        await begun(service)
        second.send()
        await second.idle()
        assert "Another run is adding some of these people" in second.notices
        assert "Nothing was sent" in second.notices
        refused.set()
        await first.idle()
        await second.check()
        assert second.told["plan"]["note"] == "Excluded: 2 people recorded in this session."
        second.send()
        await second.idle()
        assert second.statuses == ["added"] * 3
        assert sent(service) == [["lead0", "lead1"], ["lead2"]]


@in_a_kernel
async def test_a_new_connection_needs_a_new_check() -> None:
    """Data read, checked or sent with one connection is never reused with another."""

    def connect(service: Service, token: str = TOKEN) -> None:
        connections.enter_context(of.connect(service.url, token, cache=None))

    with serving(slow) as (first, _), serving() as (other, _), ExitStack() as connections:
        connect(first)
        page = Page(leads(CHUNK + 2), None)
        page.click("ready")
        await page.idle()
        await page.check()
        connect(other)
        page.send()
        assert "changed since these rows were checked" in page.notices
        assert "refused" in page.told
        connect(first, "a-new-token")
        page.click("reload")
        await page.idle()
        await page.check()
        await page.send_and_cancel(first)
        connect(other)
        page.click("reload")
        await page.idle()
        await page.check()
        assert "were sent to another sequence" in page.notices
        connect(first)
        page.click("reload")
        await page.idle()
        await page.check_and_send()
        assert page.statuses == ["added"] * (CHUNK + 2)
        assert [len(chunk) for chunk in sent(first)] == [CHUNK, 2]
        assert sent(other) == []


def test_a_stopped_kernel_sends_no_more() -> None:
    """After the event loop ends, no request follows the running one."""
    ended = threading.Event()

    def held(received: Received) -> Reply:
        assert ended.wait(60)
        return added(received)

    @in_a_kernel
    async def stop_while_sending() -> None:
        page = Page(leads(3 * CHUNK), client)
        await page.check()
        page.send()
        await begun(service)

    with serving(held) as (service, client):
        stop_while_sending()
        time.sleep(SLOW * 3)  # the run looks at the loop a few times per second
        ended.set()
        time.sleep(SLOW)
        assert len(sent(service)) == 1


@in_a_kernel
async def test_a_journal(tmp_path: Path) -> None:
    """With a journal another widget resumes after Cancel, also if its file is gone."""
    path = tmp_path / "leads.journal"

    with serving(slow) as (service, client):
        page = Page(leads(CHUNK + 1), client, journal=path)
        await page.check()
        await page.send_and_cancel(service)
        other = Page(leads(CHUNK + 1), client, journal=path)
        await other.check()
        assert str(path) in other.told["plan"]["note"]
        assert f"journal={str(path)!r}" in other.widget.code
        other.send()
        await other.idle()
        assert other.statuses == ["added"] * (CHUNK + 1)
        await page.check()
        assert page.state["why_not"] == "There is nothing to send."
        path.unlink()
        await page.check()
        # This process knows what the missing file had.
        assert page.state["why_not"] == "There is nothing to send."
        assert not path.exists()
        assert [len(chunk) for chunk in sent(service)] == [CHUNK, 1]


@in_a_kernel
async def test_an_invalid_journal_is_an_error_at_the_check() -> None:
    """An invalid journal is an error when rows are checked, and there is no plan."""
    with serving() as (service, client):
        page = Page(leads(1), client, journal="/")
        await page.check()
        assert "is a folder" in page.notices
        assert "Nothing was sent" in page.notices
        assert page.widget.plan is None
        assert page.state["button"] == ""
        assert sent(service) == []


@pytest.mark.parametrize("journal", ["~nobody.at.all/j", "a\0b", "x" * 300, "", 5])
def test_an_impossible_journal_path_is_an_error(journal: Any) -> None:
    """An impossible journal path is an error when the widget is created."""
    with pytest.raises(InvalidInputError):
        Page(leads(1), None, journal=journal)


@in_a_kernel
async def test_a_journals_path_is_resolved_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is resolved in the working folder at the widget's creation."""
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()

    with serving() as (_, client):
        monkeypatch.chdir(folders[0])
        page = Page(leads(1), client, journal="leads.journal")
        monkeypatch.chdir(folders[1])
        await page.check_and_send()
    assert (folders[0] / "leads.journal").exists()
    assert list(folders[1].iterdir()) == []


@in_a_kernel
async def test_failed_checks_are_shown() -> None:
    """A missing or closed sequence, wrong names and missing identifiers are errors."""
    with serving() as (_, client):
        page = Page(leads(1), client)
        page.click("ready")
        await page.idle()
        for part, words in (
            ({"sequence_id": None}, "No sequence is chosen"),
            ({"data": {"First": "email"}}, "'First' is not a valid name"),
            ({"email": None}, "No column identifies the leads"),
            ({"email": "gone"}, "no column 'gone'"),
            ({"nonsense": 1}, "unknown field `nonsense`"),
        ):
            await page.check(**part)
            assert words in page.notices
            page.widget.value = {**page.widget.value, "email": "email", "data": {}}
        assert page.widget.plan is None
        await page.check(sequence_id="old")
        assert "is archived and accepts no leads" in page.state["why_not"]


HOSTILE = pd.DataFrame(
    [["ada@example.com", 1, "x", "<b>", "y"], ["\ud800", 2, None, None, "z"]],
    columns=pd.Index(["email", 7, "twice", "\ud800", "twice"], dtype="object"),
    index=pd.MultiIndex.from_tuples([("a", 1), ("b", float("nan"))]),
    dtype="object",
)


@pytest.mark.parametrize(
    "frame",
    [
        HOSTILE,
        HOSTILE.iloc[:0],
        pd.DataFrame(),
        pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])),
        pd.DataFrame({"email": pd.Categorical(["ada@example.com", None])}),
    ],
)
@in_a_kernel
async def test_any_frame_can_be_shown(frame: pd.DataFrame) -> None:
    """Unusual columns, labels and cells cause no error, and every row has an outcome."""
    with serving() as (_, client):
        page = Page(frame, client)
        await page.check()
        if page.state["button"]:
            page.send()
            await page.idle()
            assert sum(count for _, count, *_ in page.told["outcome"]["summary"]) == len(frame)
        assert "Unexpected" not in page.notices
        page.click("ready")
        await page.idle()


@in_a_kernel
async def test_traits_contain_no_people_or_token() -> None:
    """The widget's traits contain no lead or token, and its messages contain no token."""
    with serving() as (_, client):
        page = Page(leads(2), client)
        await page.check()
        page.send()
        await page.idle()
        page.click("ready")
        await page.idle()
        state = json.dumps({key: str(value) for key, value in page.widget.get_state().items()})
        assert "lead1" not in state
        assert TOKEN not in state
        assert "lead1" in json.dumps(page.told)
        assert TOKEN not in json.dumps(page.told)


@in_a_kernel
async def test_filter_by_status() -> None:
    """The table shows the first rows, optionally of one status."""
    frame = leads(600)
    frame.loc[599, "email"] = "n/a"

    with serving() as (_, client):
        page = Page(frame, client)
        await page.check_and_send()
        shown = page.told["outcome"]
        assert (len(shown["rows"]), shown["more"]) == (OUTCOMES_SHOWN, 600 - OUTCOMES_SHOWN)
        page.click("show", status="invalid")
        shown = page.told["outcome"]
        assert [row[:4] for row in shown["rows"]] == [["599", "599", "n/a", "invalid"]]
        assert page.widget.failed.index.tolist() == [599]


@in_a_kernel
async def test_closing_the_widget_ends_the_sending() -> None:
    """A closed widget sends nothing after the running request."""
    with serving(slow) as (service, client):
        page = Page(leads(2 * CHUNK), client)
        await page.check()
        page.send()
        await begun(service)
        page.widget.close()
        await page.idle()
        assert len(sent(service)) == 1
