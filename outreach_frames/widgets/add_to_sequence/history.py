"""What became of a frame's rows over several runs, and whom this process has sent where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from outreach_frames.errors import OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.run import Monitor
from outreach_frames.tables.keys import email_key, profnet_url_key

Positions = np.ndarray[Any, Any]
# Rows that never reached the sequence, or whose request was refused.
_NEVER_THERE = frozenset({statuses.INVALID, statuses.DUPLICATE_IN_FRAME, *statuses.TRIED_AGAIN})


class History:
    """The runs that sent rows of one frame; each later run tries what the earlier ones left.

    Attributes
    ----------
    report : SubmissionReport or None
        What became of every row in all runs together.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Positions, SubmissionReport]] = []
        self._error: OutreachError | None = None
        self.report: SubmissionReport | None = None

    @property
    def arrived(self) -> bool:
        """Whether any row is, or may be, in the sequence."""
        return self.report is not None and not set(self.report.rows["status"]) <= _NEVER_THERE

    def rest(self) -> Positions:
        """Return the rows that a later run tries again: those refused or never sent."""
        assert self.report is not None
        again = self.report.rows["status"].isin(statuses.TRIED_AGAIN)
        return np.flatnonzero(again.to_numpy())

    def add(self, report: SubmissionReport, positions: Positions | None = None) -> None:
        """Add a run's report about the rows that it tried, by default all.

        A report about all rows includes the earlier runs.
        """
        if positions is None or not self._runs:
            self._runs = []
            positions = np.arange(len(report.rows))
        self._runs.append((positions, report))
        self._error = report.error
        self._combine()

    def rows_with(self, rows: pd.DataFrame, positions: Positions) -> pd.DataFrame:
        """Return the rows of all runs, with those of the run under way."""
        return rows if self.report is None else _merged(self.report.rows, rows, positions)

    def _combine(self) -> None:
        first, *later = (report for _, report in self._runs)
        if not later:
            self.report = first
            return
        rows, notes = first.rows, list(first.notes)
        for number, (positions, report) in enumerate(self._runs[1:], 2):
            rows = _merged(rows, report.rows, positions)
            notes += [f"Run {number}: {note}" for note in report.notes]
        self.report = SubmissionReport(
            first.frame,
            rows,
            sequence_id=first.sequence_id,
            notes=notes,
            error=self._error,
            retry=self.retry,
        )

    def retry(self, watch: Monitor | None = None) -> SubmissionReport:
        """Send the unknown rows once more, run by run, until one ends early."""
        try:
            for place, (positions, report) in enumerate(self._runs):
                if (report.rows["status"].iloc[positions] == statuses.UNKNOWN).any():
                    again = report.retry_unknown(watch=watch)
                    self._runs[place], self._error = (positions, again), again.error
                    if again.error is not None:
                        break
        finally:
            self._combine()
        assert self.report is not None
        return self.report


def _merged(rows: pd.DataFrame, later: pd.DataFrame, positions: Positions) -> pd.DataFrame:
    """Return rows with a later run's outcomes for some of them; attempts add up."""
    tried = pd.Series(data=False, index=rows.index)
    tried.iloc[positions] = True
    merged = rows.where(~tried, later)
    merged["attempts"] = rows["attempts"] + later["attempts"].where(tried, 0)
    return merged


class Ledger:
    """Whom this process has sent to which sequence, and which sequences are being sent to.

    A new widget on the same frame, as made by running a notebook again, does not know what the
    previous one did.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way: set[tuple[str, str]] = set()
        self._sent: dict[tuple[str, str], set[str]] = {}

    @contextmanager
    def sending(self, service: str, plan: SubmissionPlan) -> Iterator[bool]:
        """Record that a plan is being sent; yield False if another one to its sequence is."""
        key = (service, plan.sequence_id)
        with self._lock:
            free = key not in self._under_way
            if free:
                self._under_way.add(key)
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._under_way.discard(key)

    def note(self, service: str, plan: SubmissionPlan, positions: Positions) -> None:
        """Record that rows of a plan were sent, or may have been."""
        keys = {key for position in positions.tolist() for key in _keys(plan, position)}
        with self._lock:
            self._sent.setdefault((service, plan.sequence_id), set()).update(keys)

    def count(self, service: str, plan: SubmissionPlan) -> int:
        """Count the leads of a plan that were sent to its sequence before."""
        with self._lock:
            sent = set(self._sent.get((service, plan.sequence_id), ()))
        return (
            sum(not sent.isdisjoint(_keys(plan, position)) for position in plan.positions.tolist())
            if sent
            else 0
        )


_KEYS = MappingProxyType({0: email_key, 1: profnet_url_key})


def _keys(plan: SubmissionPlan, position: int) -> set[str]:
    identifiers = plan.identifiers(position)
    return {_KEYS[place](text) for place, text in enumerate(identifiers) if text is not None}
