"""A monitor may end a run between two requests, or at once; no row is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path

import pandas as pd
import pytest

from outreach_frames.client.client import Client
from outreach_frames.errors import (
    AuthenticationError,
    InvalidInputError,
    OutreachError,
    OutreachWarning,
)
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.run import Directive, Monitor, Run
from outreach_frames.leads.sending.submit import submit
from tests import scripted as script
from tests.leads.sending.lead_service import added, only_posts, sent
from tests.scripted import Script, Service

pytestmark = pytest.mark.long

# Longer than a wish needs to arrive.
SLOW = 0.25


def slow_added(received: script.Received) -> script.Reply:
    """Respond, after a while, that all leads were added."""
    return script.delayed(SLOW, added(received))


def slow_refused(received: script.Received) -> script.Reply:
    """Respond, after a while, that these leads cannot be added."""
    return script.delayed(SLOW, script.json({"error": "no"}, 400))


@contextmanager
def planned(turns: Script) -> Iterator[tuple[Service, SubmissionPlan]]:
    """Plan six leads in three requests for a service that sends the replies in turn."""
    assert not callable(turns)
    frame = pd.DataFrame({"email": [f"lead{row}.x@example.com" for row in range(6)]})
    with script.scripted(only_posts(chain(turns, repeat(added)))) as service:
        with Client(service.url, "token", cache=None, backoff=0) as client:
            yield service, make_plan(frame, "s1", chunk_size=2, client=client)


def wishing(*wishes: Directive) -> Monitor:
    """Return one directive after the other from the first request on, then repeat the last."""
    rest = list(wishes)

    def watch(run: Run) -> Directive:
        if not run.requests:
            return "continue"
        return rest.pop(0) if len(rest) > 1 else rest[0]

    return watch


def ended(plan: SubmissionPlan, watch: Monitor, **options: Path) -> SubmissionReport:
    """Submit a plan whose run ends early."""
    with pytest.warns(OutreachWarning, match="Of 6 rows"):
        return submit(plan, watch=watch, progress=False, **options)


def statuses(report: SubmissionReport) -> list[str]:
    """Return the status of each row."""
    return report.rows["status"].tolist()


@pytest.mark.parametrize("word", ["drain", "finish"])
def test_drain_ends_between_two_requests(word: Directive) -> None:
    """The current request is finished, nothing follows, and the other rows have the reason."""
    with planned([slow_added]) as (service, plan):
        report = ended(plan, wishing(word))
    assert sent(service) == [["lead0", "lead1"]]
    assert statuses(report) == ["added"] * 2 + ["not_sent"] * 4
    assert "Cancelled" in str(report.error)
    assert report.rows["detail"].iloc[-1].startswith("The run stopped before this row: Cancelled")


@pytest.mark.parametrize("wish", ["drain", "abort"])
def test_a_wish_from_before_the_first_request_sends_nothing(wish: Directive) -> None:
    """A request to stop before the first request gives a report of rows that were not sent."""
    with planned([]) as (service, plan):
        report = ended(plan, lambda _run: wish)
        assert sent(service) == []
    assert statuses(report) == ["not_sent"] * 6
    assert report.error is not None


def test_drain_is_not_taken_back() -> None:
    """A run that was drained ends, even if the monitor then returns "continue"."""
    with planned([slow_added]) as (service, plan):
        report = ended(plan, wishing("drain", "continue"))
    assert len(sent(service)) == 1
    assert statuses(report) == ["added"] * 2 + ["not_sent"] * 4
    assert "Cancelled" in str(report.error)


def test_drain_in_the_last_request_cancels_nothing() -> None:
    """If nothing remained to be sent, all rows are sent and there is no error."""

    def watch(run: Run) -> Directive:
        return "drain" if run.requests == 3 else "continue"

    with planned([added, added, slow_added]) as (service, plan):
        report = submit(plan, watch=watch, progress=False)
    assert len(sent(service)) == 3
    assert statuses(report) == ["added"] * 6
    assert report.error is None


@pytest.mark.parametrize("word", ["abort", "break off"])
def test_abort_leaves_the_request_under_way_unknown(word: Directive) -> None:
    """An aborted request may have arrived: its rows are unknown, later ones not sent."""
    with planned([lambda received: script.delayed(30, added(received))]) as (service, plan):
        report = ended(plan, wishing("drain", word))
    assert sent(service) == [["lead0", "lead1"]]
    assert statuses(report) == ["unknown"] * 2 + ["not_sent"] * 4
    assert "Interrupted" in str(report.error)


def test_abort_when_all_is_done_loses_nothing() -> None:
    """An abort that comes with the last response changes nothing."""

    def watch(run: Run) -> Directive:
        return "abort" if run.done.is_set() else "continue"

    with planned([]) as (_, plan):
        report = submit(plan, watch=watch, progress=False)
    assert statuses(report) == ["added"] * 6
    assert report.error is None


def test_a_wait_is_broken_off_with_nothing_sent() -> None:
    """While the service asks to wait, no request is open, so no row is unknown."""
    busy = script.json({"error": "slowly"}, 429, {"Retry-After": "30"})
    with planned([busy]) as (_, plan):
        report = ended(plan, wishing("continue", "continue", "continue", "abort"))
    assert statuses(report) == ["not_sent"] * 6


def test_what_stopped_the_run_is_not_hidden() -> None:
    """The error that ended the run is reported, whatever the monitor requested."""
    refused = script.json({"error": "who are you?"}, 401)
    with planned([script.delayed(SLOW, refused)]) as (_, plan):
        report = ended(plan, wishing("drain"))
    assert isinstance(report.error, AuthenticationError)
    assert statuses(report) == ["not_sent"] * 6


def test_notes_are_kept() -> None:
    """The service's messages of earlier requests are in the report."""
    said = script.json({"validation_errors": [{"error_code": "new", "message": "told"}]}, 422)
    with planned([script.delayed(SLOW, said)]) as (_, plan):
        report = ended(plan, wishing("drain"))
    assert report.notes == ["Chunk 1: new: told"]
    assert statuses(report) == ["rejected"] * 2 + ["not_sent"] * 4


def test_who_watches_sees_every_request() -> None:
    """The counts and the current rows can be read at any time, and once more at the end."""
    seen: list[tuple[int, list[int]]] = []

    def watch(run: Run) -> Directive:
        seen.append((sum(run.tally.values()), list(run.current)))
        return "continue"

    with planned([slow_added, slow_added, slow_added]) as (_, plan):
        submit(plan, watch=watch, progress=False)
    assert {(0, (0, 1)), (2, (2, 3)), (4, (4, 5))} <= {(rows, tuple(now)) for rows, now in seen}
    assert seen[-1] == (6, [])


def test_a_monitor_that_raises_loses_no_report() -> None:
    """After an error of the monitor, the current request is the last, and is in the report."""

    def watch(run: Run) -> Directive:
        if run.requests:
            raise OutreachError("mine")
        return "continue"

    with planned([slow_added]) as (service, plan):
        report = ended(plan, watch)
        assert len(sent(service)) == 1
        with pytest.raises(InvalidInputError, match="submitted before"):
            submit(plan, progress=False)
    assert statuses(report) == ["added"] * 2 + ["not_sent"] * 4


def test_a_journal_goes_on_after_drain(tmp_path: Path) -> None:
    """The same call with the same journal sends the cancelled rows, and no row twice."""
    with planned([slow_added]) as (service, plan):
        ended(plan, wishing("drain"), journal=tmp_path / "journal")
        report = submit(plan, journal=tmp_path / "journal", progress=False)
    assert statuses(report) == ["added"] * 6
    assert sorted(name for chunk in sent(service) for name in chunk) == [
        f"lead{row}" for row in range(6)
    ]


@pytest.mark.parametrize("journal", [None, "journal"])
def test_unknown_rows_are_sent_again_under_watch(journal: str | None, tmp_path: Path) -> None:
    """Resending unknown rows can be ended between two requests, too."""
    lost = script.hang_up()
    options = {} if journal is None else {"journal": tmp_path / journal}
    with planned([lost, lost, added, slow_added]) as (service, plan):
        with pytest.warns(OutreachWarning, match="unknown"):
            report = submit(plan, progress=False, **options)
        assert statuses(report) == ["unknown"] * 4 + ["added"] * 2
        with pytest.warns(OutreachWarning, match="Cancelled"):
            again = report.retry_unknown(watch=wishing("drain"))
    assert len(sent(service)) == 4
    assert statuses(again) == ["added"] * 2 + ["unknown"] * 2 + ["added"] * 2
