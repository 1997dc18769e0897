"""Checks of a report against the service's own database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from outreach_frames.leads import statuses
from outreach_frames.leads.sending.report import SubmissionReport
from tests.faults.gateway import key

# The valid statuses of a lead that is in the sequence.
MAY_BE_THERE = {
    *statuses.IN_SEQUENCE,
    statuses.UNKNOWN,
    statuses.ALREADY_IN_SEQUENCE,
    statuses.DUPLICATE_IN_FRAME,
}


def check_report(report: SubmissionReport, there: Collection[str]) -> None:
    """Check a report against the keys of the leads in the sequence.

    `added` and `present` leads must be in the sequence, and leads in the sequence must have a
    status of `MAY_BE_THERE`.
    """
    for lead, status in zip(
        report.frame.to_dict("records"), report.rows["status"].tolist(), strict=True
    ):
        if status in statuses.IN_SEQUENCE:
            assert key(lead) in there, f"{key(lead)} is {status}, and not in the sequence"
        if key(lead) in there:
            assert status in MAY_BE_THERE, f"{key(lead)} is in the sequence, and {status}"


def check_nobody_twice(committed: Counter[str]) -> None:
    """Check that no lead was accepted in two requests, as other services could add it twice."""
    assert {lead: times for lead, times in committed.items() if times > 1} == {}
