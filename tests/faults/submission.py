"""A submission of a few leads in several requests, and its resumption, for fault injection."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pandas as pd

from outreach_frames import sandbox
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachError, OutreachWarning
from outreach_frames.leads import statuses
from outreach_frames.leads.sending import memory
from outreach_frames.leads.sending.report import SubmissionReport
from tests.faults.checker import check_nobody_twice, check_report
from tests.faults.gateway import Gateway, key
from tests.scripted import Received, Reply, json, scripted

ROWS, CHUNK_SIZE = 5, 2
_numbers = count()


def add(frame: pd.DataFrame, sequence_id: str, client: Client, journal: Path) -> SubmissionReport:
    """Add leads in requests of two, without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        return frame.outreach.add_to_sequence(
            sequence_id, chunk_size=CHUNK_SIZE, journal=journal, client=client, progress=False
        )


class Submission:
    """Five new leads, added by any number of runs with one journal."""

    def __init__(self, gateway: Gateway, client: Client, folder: Path) -> None:
        self._gateway, self.client = gateway, client
        self._sequence_id = gateway.sandbox.sequence_ids["accepts_any"]
        self.journal = folder / "journal"
        gateway.committed.clear()
        emails = [f"lead{next(_numbers)}@example.com" for _ in range(ROWS)]
        self.frame = pd.DataFrame({"email": emails})

    def attempt(self) -> SubmissionReport | None:
        """Add despite a fault: there is a report, or an error if nothing was sent."""
        before = self._gateway.committed.total()
        try:
            report = self._add()
        except OutreachError:
            assert self._gateway.committed.total() == before, (
                "leads were added, and there is no report"
            )
            return None
        self._check(report)
        return report

    def recover(self) -> None:
        """Add without a fault: unrecorded leads are sent, and unknown leads only on request."""
        report = self._add()
        self._check(report)
        kinds = set(report.rows["status"])
        assert kinds <= {statuses.ADDED, statuses.UNKNOWN}, kinds
        if statuses.UNKNOWN in kinds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OutreachWarning)
                report = report.retry_unknown()
            check_report(report, self._there())
        assert set(report.rows["status"]) <= statuses.IN_SEQUENCE
        assert self._there() >= set(self._keys())

    def _add(self) -> SubmissionReport:
        return add(self.frame, self._sequence_id, self.client, self.journal)

    def _check(self, report: SubmissionReport) -> None:
        check_report(report, self._there())
        check_nobody_twice(self._gateway.committed)

    def _there(self) -> set[str]:
        return {key(lead) for lead in self._gateway.sandbox.leads(self._sequence_id)}

    def _keys(self) -> list[str]:
        return [key(lead) for lead in self.frame.to_dict("records")]


@contextmanager
def cases() -> Iterator[Callable[[Path], Submission]]:
    """Start a sandbox, and yield a function that makes a submission in a folder."""
    with sandbox.serve(people=20) as running:
        gateway = Gateway(running)
        with scripted(gateway) as service:
            with Client(service.url, running.api_key, cache=None, backoff=0) as client:
                yield lambda folder: Submission(gateway, client, folder)


class Ledger:
    """A script for `scripted`: a service that adds leads and whose leads can be set."""

    def __init__(self) -> None:
        self.committed: Counter[str] = Counter()
        self.mark: Callable[[str], object] = lambda _: None

    def __call__(self, received: Received) -> Reply:
        """Add the leads of a POST; a GET lists one active sequence."""
        if received.method == "GET":
            return json({"sequences": [{"id": "s1", "status": "active"}], "_links": {}})
        leads = received.json["leads"]
        there = [lead for lead in leads if self.committed[key(lead)]]
        self.committed.update(key(lead) for lead in leads)
        self.mark(",".join(key(lead) for lead in leads))
        return json(
            {
                "total": len(leads),
                "total_added_to_sequence": len(leads) - len(there),
                "already_in_sequence_and_skipped": there,
            }
        )


class RecordedSubmission:
    """A submission, to be resumed after a power failure."""

    def __init__(self, ledger: Ledger, client: Client) -> None:
        self._ledger, self._client = ledger, client
        self._frame = pd.DataFrame({"email": [f"lead{row}@example.com" for row in range(ROWS)]})

    def run(self, folder: Path, mark: Callable[[str], object]) -> None:
        """Add the leads; each request that the service carries out sets a mark."""
        self._ledger.mark = mark
        report = add(self._frame, "s1", self._client, folder / "journal")
        assert set(report.rows["status"]) == {statuses.ADDED}
        self._ledger.mark = lambda _: None

    def recover(self, folder: Path, marks: tuple[str, ...]) -> None:
        """Add the leads again: those already added are not sent again, and are added or unknown."""
        self._ledger.committed = Counter(lead for mark in marks for lead in mark.split(","))
        memory.clear()  # the power failure ended the process
        report = add(self._frame, "s1", self._client, folder / "journal")
        check_report(report, set(self._ledger.committed))
        check_nobody_twice(self._ledger.committed)
        assert set(report.rows["status"]) <= {statuses.ADDED, statuses.UNKNOWN}


@contextmanager
def recorded() -> Iterator[RecordedSubmission]:
    """Start a service, and yield a submission to it."""
    ledger = Ledger()
    with scripted(ledger) as service:
        with Client(service.url, "token", cache=None, backoff=0) as client:
            yield RecordedSubmission(ledger, client)
