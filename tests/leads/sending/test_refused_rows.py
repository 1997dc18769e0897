"""A refused request costs only its guilty rows: pointers name them, or halves find them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from outreach_frames.client.client import Client
from outreach_frames.leads.sending.report import SubmissionReport
from tests import scripted as script
from tests.leads.sending.lead_service import added, column, sent, serving
from tests.scripted import Received, Reply

pytestmark = pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")

TOGETHER = "The service refused the whole request, not this row alone."


def add(client: Client, rows: int, **options: Any) -> SubmissionReport:
    """Add a number of people."""
    frame = pd.DataFrame({"email": [f"lead{row}@x.example" for row in range(rows)]})
    return frame.outreach.add_to_sequence("s1", client=client, progress=False, **options)


def refusing(
    guilty: Collection[int], *, names: str = "", status: int = 400, most: int = 250
) -> Callable[[Received], Reply]:
    """Refuse requests with any of these rows; with `names`, a member that points at `most` rows."""

    def reply(received: Received) -> Reply:
        leads = [int(lead["email"][4:].partition("@")[0]) for lead in received.json["leads"]]
        found = [place for place, row in enumerate(leads) if row in guilty]
        if not found:
            return added(received)
        errors: list[dict[str, Any]] = [{"title": "The request is invalid."}]
        errors += [
            {"detail": f"Odd row {leads[place]}.", "source": {"pointer": f"/leads/{place}/email"}}
            for place in found[:most]
        ]
        return script.json({names: errors} if names else {"error": "odd"}, status)

    return reply


def rejected(report: SubmissionReport) -> list[int]:
    """Return the rejected rows, if all others are added."""
    assert set(column(report)) <= {"added", "rejected"}
    return [row for row, status in enumerate(column(report)) if status == "rejected"]


@pytest.mark.parametrize("names", ["errors", "_errors"])
def test_pointers_name_the_guilty_rows(names: str, tmp_path: Path) -> None:
    """Only the rows that the service points at are rejected, each with its own reason."""
    guilty, journal = [3, 7, 420], tmp_path / "j"
    with serving(*[refusing(guilty, names=names)] * 9) as (service, client):
        report = add(client, 600, journal=journal)
        assert rejected(report) == guilty
        assert [len(each) for each in sent(service)] == [250, 248, 250, 249, 100]
        details = [column(report, "detail")[row] for row in guilty]
        assert details[0] == "Odd row 3. (/leads/3/email)"
        assert "Odd row 420." in details[2]
        assert report.error is not None
        frame = report.frame[["email"]]
        read = frame.outreach.report(journal=journal)
        assert read.rows[["status", "attempts"]].equals(report.rows[["status", "attempts"]])
        assert set(column(report, "attempts")) == {1, 2}
        assert rejected(add(client, 600, journal=journal)) == guilty


def test_each_pointer_costs_one_row() -> None:
    """If the service points at one row per refusal, each refusal costs this row alone."""
    guilty = range(0, 60, 4)
    with serving(*[refusing(guilty, names="errors", most=1)] * 99) as (service, client):
        report = add(client, 60)
        assert rejected(report) == [*guilty]
        assert len(sent(service)) == 15 + 1
        assert column(report, "detail")[56] == "Odd row 56. (/leads/42/email)"
        assert report.notes == []


@pytest.mark.parametrize(("chunk_size", "others"), [(70, 3 * (70 - 64)), (10, 3 * 6)])
def test_a_service_that_points_at_every_row(chunk_size: int, others: int) -> None:
    """After 64 consecutive refusals because of single rows, a chunk ends; after 3, the run."""
    with serving(*[refusing(range(1000), names="errors", most=1)] * 200) as (service, client):
        report = add(client, 250, chunk_size=chunk_size)
        assert set(column(report)) == {"rejected", "not_sent"}
        assert len(sent(service)) == 3 * 64
        details = column(report, "detail")
        assert details[0] == "Odd row 0. (/leads/0/email)"
        assert sum(text.endswith(TOGETHER) for text in details) == others
        reason = "64 requests in a row were refused because of single rows"
        assert [reason in note for note in report.notes] == [True] * 3


def test_pointers_at_each_row_of_a_half() -> None:
    """After 64 such refusals in a half, the note is about this half: the other half is added."""

    def reply(received: Received) -> Reply:
        leads = received.json["leads"]
        if len(leads) > 70:
            return script.json({"error": "odd"}, 400)
        return refusing(range(70), names="errors", most=1)(received)

    with serving(*[reply] * 99) as (_, client):
        report = add(client, 140)
        assert rejected(report) == [*range(70)]
        assert report.notes == [
            "Chunk 1: 64 requests in a row were refused because of single rows, so the last "
            "request's other rows are rejected."
        ]


@pytest.mark.parametrize(
    "pointers",
    [["/settings/mailboxes"], ["/leads/0/email", "/settings"], ["/leads/4"], ["/leads"], ["leads"]],
)
def test_pointers_elsewhere_reject_the_chunk(pointers: list[str]) -> None:
    """If the service points at another part, or at no lead of the request, it is at fault."""
    errors = [{"detail": "Odd.", "source": {"pointer": one}} for one in pointers]
    with serving(script.json({"errors": errors}, 400), added) as (service, client):
        report = add(client, 6, chunk_size=4)
        assert column(report) == ["rejected"] * 4 + ["added"] * 2
        assert [text.endswith(TOGETHER) for text in column(report, "detail")][3:5] == [True, False]
        assert len(sent(service)) == 2


@pytest.mark.parametrize(
    ("guilty", "most"),
    [
        *(([34], 16), ([0, 99, 248], 40), ([10, 50, 123, 200, 249], 64)),
        # Adjacent rows are found because the larger parts are sent first.
        *(([*range(5)], 64), ([*range(230, 250)], 64)),
    ],
)
def test_halves_find_the_guilty_rows(guilty: list[int], most: int) -> None:
    """Without pointers, halves find the guilty rows within few further requests."""
    status = 451 if len(guilty) == 3 else 400
    with serving(*[refusing(guilty, status=status)] * 99) as (service, client):
        report = add(client, 250)
        assert rejected(report) == guilty
        assert TOGETHER not in " ".join(column(report, "detail"))
        assert len(sent(service)) <= 1 + most


@pytest.mark.parametrize(("chunk_size", "requests"), [(50, 24), (5, 8)])
def test_a_request_that_is_at_fault(chunk_size: int, requests: int) -> None:
    """If no further request is accepted, the chunk is rejected, and counts as one failure."""
    with serving(*[script.json({"error": "odd"}, 400)] * 99) as (service, client):
        report = add(client, 4 * chunk_size, chunk_size=chunk_size)
        assert column(report) == ["rejected"] * 3 * chunk_size + ["not_sent"] * chunk_size
        assert len(sent(service)) == 3 * (1 + requests)
        said = " ".join(report.notes)
        assert ("none of 24 further requests was accepted" in said) is (requests == 24)


def test_the_requests_of_a_chunk_are_limited() -> None:
    """After 64 further requests, the rest of the chunk is rejected, and the report says why."""
    guilty = range(0, 250, 5)
    with serving(*[refusing(guilty)] * 99) as (_, client):
        report = add(client, 260)
        assert set(rejected(report)) > set(guilty) - set(range(250, 260))
        assert column(report)[251:255] == ["added"] * 4
        assert report.notes == [
            "Chunk 1: 64 further requests did not find all refused rows, so its other rows are "
            "rejected."
        ]
        assert column(report).count("rejected") < 250


@pytest.mark.long
def test_the_requests_of_a_run_are_limited() -> None:
    """After 640 further requests of a run, refused chunks are rejected as a whole."""
    with serving(*[refusing(range(0, 440, 2))] * 999) as (service, client):
        report = add(client, 440, chunk_size=32)
        assert len(sent(service)) == 14 + 640 - 1
        assert "640 further requests of this run" in report.notes[0]


def test_a_request_that_is_too_large() -> None:
    """After status 413, smaller requests are sent, and the run has no error."""

    def reply(received: Received) -> Reply:
        is_large = len(received.json["leads"]) > 3
        return script.json({}, 413) if is_large else added(received)

    with serving(*[reply] * 20) as (service, client):
        report = add(client, 10)
        assert rejected(report) == []
        assert report.error is None
        assert [len(each) for each in sent(service)] == [10, 5, 2, 3, 5, 2, 3]


def test_the_limit_of_a_retry_keeps_rows_unknown() -> None:
    """If a retry's search ends at its limit, its rows and the note about them are unknown."""
    with serving(script.reset(), *[script.json({"error": "odd"}, 400)] * 99) as (_, client):
        report = add(client, 250).retry_unknown()
        assert column(report) == ["unknown"] * 250
        assert report.notes[-1].endswith("so its other rows stay unknown.")


def test_a_search_that_must_stop() -> None:
    """After a 401 within the search, rows without a request are rejected as they were refused."""
    turns = [script.json({}, 400), added, script.json({}, 401)]
    with serving(*turns) as (service, client):
        report = add(client, 8, chunk_size=4)
        assert column(report)[:3] == ["added", "added", "not_sent"]
        assert column(report)[3:] == ["rejected"] + ["not_sent"] * 4
        assert len(sent(service)) == 3
