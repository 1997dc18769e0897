"""Whether a report says of every row what the service's own database does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from outreach_frames.leads import statuses
from outreach_frames.leads.sending.report import SubmissionReport
from tests.faults.gateway import key

# What may be said of a lead that is in the sequence.
MAY_BE_THERE = {
    *statuses.IN_SEQUENCE,
    statuses.UNKNOWN,
    statuses.ALREADY_IN_SEQUENCE,
    statuses.DUPLICATE_IN_FRAME,
}


def check_report(report: SubmissionReport, there: Collection[str]) -> None:
    """Hold a report to the leads in the sequence, given by `key`.

    `added` and `present` leads are there. A lead that is there and is not said to be is `unknown`.
    """
    for lead, status in zip(
        report.frame.to_dict("records"), report.rows["status"].tolist(), strict=True
    ):
        if status in statuses.IN_SEQUENCE:
            assert key(lead) in there, f"{key(lead)} is {status}, and not in the sequence"
        if key(lead) in there:
            assert status in MAY_BE_THERE, f"{key(lead)} is in the sequence, and {status}"


def check_nobody_twice(committed: Counter[str]) -> None:
    """No lead was taken by the service in two requests, which another service might act on."""
    assert {lead: times for lead, times in committed.items() if times > 1} == {}
