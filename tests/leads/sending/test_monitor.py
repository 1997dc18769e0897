"""A monitor may end a run after the current request, without losing a row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path

import pandas as pd
import pytest

from outreach_frames.client.client import Client
from outreach_frames.errors import (
    OutreachError,
    OutreachWarning,
)
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.run import Monitor, Run
from outreach_frames.leads.sending.submit import submit
from tests import scripted as script
from tests.leads.sending.lead_service import added, column, only_posts, sent
from tests.scripted import Script, Service

pytestmark = pytest.mark.long

# Seconds; enough time for a monitor's directive to take effect.
SLOW = 0.25


def slow_added(received: script.Received) -> script.Reply:
    """Reply after a delay that all leads were added."""
    return script.delayed(SLOW, added(received))


@contextmanager
def planned(turns: Script) -> Iterator[tuple[Service, SubmissionPlan]]:
    """Plan six leads in three requests; the service sends these replies, then adds all."""
    assert not callable(turns)
    frame = pd.DataFrame({"email": [f"lead{row}.x@example.com" for row in range(6)]})
    with script.scripted(only_posts(chain(turns, repeat(added)))) as service:
        with Client(service.url, "token", cache=None, backoff=0) as client:
            yield service, make_plan(frame, "s1", chunk_size=2, client=client)


def stopping(run: Run) -> bool:
    """End the run after its first request."""
    return run.requests > 0


def ended(plan: SubmissionPlan, watch: Monitor, **options: Path) -> SubmissionReport:
    """Submit a plan whose run ends early."""
    with pytest.warns(OutreachWarning, match="Of 6 rows"):
        return submit(plan, watch=watch, progress=False, **options)


def test_a_stop_ends_between_two_requests() -> None:
    """After a stop, which cannot be undone, nothing is sent; remaining rows have the reason."""
    answers = [False, True]
    with planned([slow_added]) as (service, plan):
        report = ended(plan, lambda run: bool(run.requests and answers and answers.pop()))
    assert sent(service) == [["lead0", "lead1"]]
    assert column(report) == ["added"] * 2 + ["not_sent"] * 4
    assert "Cancelled" in str(report.error)
    assert report.rows["detail"].iloc[-1].startswith("The run stopped before this row: Cancelled")


def test_a_monitor_that_raises() -> None:
    """If the monitor raises an error, the run ends after the current request with a report."""

    def watch(run: Run) -> bool:
        if run.requests:
            raise OutreachError("mine")
        return False

    with planned([slow_added]) as (service, plan):
        report = ended(plan, watch)
        assert len(sent(service)) == 1
        with pytest.warns(OutreachWarning, match="2 rows were not sent again"):
            again = submit(plan, progress=False)
        assert sent(service)[1:] == [["lead2", "lead3"], ["lead4", "lead5"]]
    assert column(report) == ["added"] * 2 + ["not_sent"] * 4
    assert column(again) == ["added"] * 6


def test_a_retry_of_unknown_rows_can_be_stopped() -> None:
    """A monitor can also end a retry of unknown rows between two requests."""
    lost = script.hang_up()
    with planned([lost, lost, added, slow_added]) as (service, plan):
        with pytest.warns(OutreachWarning, match="unknown"):
            report = submit(plan, progress=False)
        assert column(report) == ["unknown"] * 4 + ["added"] * 2
        with pytest.warns(OutreachWarning, match="Cancelled"):
            again = report._resend_unknown(client=None, watch=stopping)
    assert len(sent(service)) == 4
    assert column(again) == ["added"] * 2 + ["unknown"] * 2 + ["added"] * 2
