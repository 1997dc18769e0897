"""The search for a sequence's required fields needs few requests, and rejects no valid row."""

from __future__ import annotations

import random
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.errors import AuthenticationError, OutreachWarning, ValidationFailedError
from outreach_frames.leads.plan import make_plan
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.submit import submit
from tests import scripted as script
from tests.examples import share_of_examples
from tests.leads.sending.lead_service import added, connected, only_posts, refused, sent
from tests.scripted import Received, Reply, scripted


class NeedingFields:
    """A service that refuses a request if any lead lacks a required field."""

    def __init__(self, *needed: str) -> None:
        self.needed = set(needed)
        self.accepted: list[str] = []
        self.refused: set[str] = set()
        self.requests = 0

    def __call__(self, received: Received) -> Reply:
        """Accept or refuse a request."""
        self.requests += 1
        leads = received.json["leads"]
        if any(self.needed - set(lead) - set(lead.get("data", {})) for lead in leads):
            self.refused |= {lead["email"] for lead in leads}
            return refused("missing_lead_field")
        self.accepted += [lead["email"] for lead in leads]
        return added(received)


def submitted(
    service: NeedingFields, frame: pd.DataFrame, chunk_size: int = 250
) -> SubmissionReport:
    """Submit a frame; all columns except the address are data."""
    data = [name for name in frame.columns if name != "email"]
    with scripted(service) as running, connected(running) as client:
        # Count only requests that add leads, without the plan's look-up of the sequence.
        plan = make_plan(frame, "s1", data=data, chunk_size=chunk_size, client=client)
        service.requests = 0
        return submit(plan, progress=False)


def frame_of(rows: int, fields: int, share: float, seed: int = 1) -> pd.DataFrame:
    """Make rows that each have some of the fields at random."""
    rng = random.Random(seed)
    columns: dict[str, list[Any]] = {"email": [f"lead{row}@example.com" for row in range(rows)]}
    for field in range(fields):
        columns[f"f{field}"] = ["x" if rng.random() < share else None for _ in range(rows)]
    return pd.DataFrame(columns)


@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_a_missing_field_is_found_with_few_requests(share: float) -> None:
    """A field that some of 1,000 rows lack is found with at most 40 requests."""
    frame = frame_of(1000, 30, share)
    service = NeedingFields("f7")
    report = submitted(service, frame)
    lacks = frame["f7"].isna()
    assert report.rows["status"].eq("rejected").tolist() == lacks.tolist()
    assert report.rows["status"].eq("added").tolist() == (~lacks).tolist()
    assert service.requests <= 40
    assert isinstance(report.error, ValidationFailedError)


def test_a_required_field_is_remembered() -> None:
    """After one refusal, later requests are split before they are sent."""
    frame = frame_of(60, 1, 0.5)
    service = NeedingFields("f0")
    with pytest.warns(OutreachWarning, match="rejected"):
        report = submitted(service, frame, chunk_size=10)
    assert set(report.rows["status"]) == {"added", "rejected"}
    # After the first refusal, each chunk is split into two requests.
    assert service.requests <= 1 + 2 * 6


def test_a_field_that_all_rows_lack() -> None:
    """If no row has the field, three refusals stop the run without a search."""
    service = NeedingFields("phone")
    with pytest.warns(OutreachWarning, match="not_sent"):
        report = submitted(service, frame_of(50, 0, 1), chunk_size=10)
    assert report.rows["status"].tolist() == ["rejected"] * 30 + ["not_sent"] * 20
    assert service.requests == 3


@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
@pytest.mark.parametrize("answered", [1, 2, 6])
@pytest.mark.parametrize("is_retry", [False, True])
def test_a_401_ends_the_search(is_retry: bool, answered: int) -> None:
    """A 401 leaves the remaining rows `not_sent`; in a retry, they stay unknown."""
    frame, service = frame_of(40, 8, 0.5), NeedingFields("f3")
    first = [script.reset()] if is_retry else []
    turns = [*first, *[service] * answered, script.json({"error": "who?"}, 401)]
    with scripted(only_posts(turns)) as running, connected(running) as client:
        data = [name for name in frame.columns if name != "email"]
        report = submit(make_plan(frame, "s1", data=data, client=client), progress=False)
        if is_retry:
            assert set(report.rows["status"]) == {"unknown"}
            report = report.retry_unknown()
        assert len(sent(running)) == len(turns)
        # The last request had only some of the rows that were not added.
        assert len(sent(running)[-1]) < len(frame) - len(service.accepted)
    assert isinstance(report.error, AuthenticationError)
    assert bool(service.accepted) == (answered > 2)
    left = "unknown" if is_retry else "not_sent"
    expected = ["added" if email in service.accepted else left for email in frame["email"]]
    assert report.rows["status"].tolist() == expected


@share_of_examples(0.5)
@given(data=st.data())
def test_only_rows_without_a_required_field_are_rejected(data: st.DataObject) -> None:
    """No row with all required fields is rejected, and none without is added."""
    fields = [f"f{number}" for number in range(data.draw(st.integers(1, 5)))]
    sets = data.draw(st.lists(st.sets(st.sampled_from(fields)), min_size=1, max_size=12))
    needed = data.draw(st.sets(st.sampled_from(fields), max_size=3))
    frame = pd.DataFrame(
        [
            {"email": f"lead{row}@example.com"} | dict.fromkeys(brought, "x")
            for row, brought in enumerate(sets)
        ],
        columns=["email", *fields],
    )
    service = NeedingFields(*needed)
    report = submitted(service, frame, chunk_size=data.draw(st.integers(3, 12)))
    status = report.rows["status"].tolist()
    complete = [needed <= brought for brought in sets]
    emails = frame["email"].tolist()
    assert sorted(service.accepted) == sorted(
        email for email, each in zip(emails, status, strict=True) if each == "added"
    )
    for email, is_complete, each in zip(emails, complete, status, strict=True):
        assert each in ({"added", "not_sent"} if is_complete else {"rejected", "not_sent"})
        assert each != "rejected" or email in service.refused
