"""What became of a frame's rows over several runs, and whom this process has sent where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.planning.settled import SettledLeads
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.run import Monitor

Positions = np.ndarray[Any, Any]
# Rows that never reached the sequence, or whose request was refused. All else is settled.
_NEVER_THERE = frozenset({statuses.INVALID, statuses.DUPLICATE_IN_FRAME, *statuses.TRIED_AGAIN})


@dataclass
class _Run:
    """A plan that was sent, its report, and the rows that the report is about."""

    plan: SubmissionPlan
    report: SubmissionReport
    tried: Positions

    def unknown_rows(self) -> Positions:
        """Return the rows of which it is not known what became of them."""
        unknown = self.report.rows["status"] == statuses.UNKNOWN
        return np.intersect1d(np.flatnonzero(unknown.to_numpy()), self.tried)


class History:
    """The runs that sent rows of one frame; each later run tries what the earlier ones left.

    Attributes
    ----------
    report : SubmissionReport or None
        What became of every row in all runs together.
    """

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._error: OutreachError | None = None
        self.report: SubmissionReport | None = None

    @property
    def arrived(self) -> bool:
        """Whether any row is, or may be, in the sequence."""
        return bool(len(self._settled_rows()))

    def settled(self) -> SettledLeads:
        """Return the leads that are, or may be, in the sequence, or were skipped."""
        assert self.report is not None
        rows = self._settled_rows()
        outcomes = self.report.rows.loc[rows, ["status", "detail", "error_code"]]
        sent, keys = [], []
        for run in self._runs:
            positions, places, _ = np.intersect1d(run.plan.positions, rows, return_indices=True)
            sent.append(positions)
            keys.append(run.plan.keys.take(pa.array(places)))
        return SettledLeads(
            np.concatenate(sent), pa.concat_batches(keys), outcomes.assign(position=rows)
        )

    def add(
        self, plan: SubmissionPlan, report: SubmissionReport, settled: SettledLeads | None
    ) -> None:
        """Add a run's report; `settled` is what the run left out, or None for a first run."""
        if settled is None:
            self._runs = []
        self._runs.append(_Run(plan, report, _tried(report.rows, settled)))
        self._error = report.error
        self._combine()

    def rows_with(self, rows: pd.DataFrame, settled: SettledLeads | None) -> pd.DataFrame:
        """Return the rows of all runs, with those of the run under way."""
        if self.report is None or settled is None:
            return rows
        return _merged(self.report.rows, rows, _tried(rows, settled))

    def retry(self, watch: Monitor | None = None, client: Client | None = None) -> SubmissionReport:
        """Send the unknown rows once more, run by run, until one ends early."""
        try:
            for run in self._runs:
                rows = run.unknown_rows()
                if not len(rows):
                    continue
                before = run.report.rows["attempts"].iloc[rows]
                run.report = run.report.retry_unknown(watch=watch, client=client)
                self._error = run.report.error
                if (run.report.rows["attempts"].iloc[rows] == before).any():
                    break
        finally:
            self._combine()
        assert self.report is not None
        return self.report

    def _settled_rows(self) -> Positions:
        if self.report is None:
            return np.array([], dtype=np.int64)
        return np.flatnonzero(~self.report.rows["status"].isin(_NEVER_THERE).to_numpy())

    def _combine(self) -> None:
        first, *later = self._runs
        if not later:
            self.report = first.report
            return
        rows, notes = first.report.rows, list(first.report.notes)
        for number, run in enumerate(later, 2):
            rows = _merged(rows, run.report.rows, run.tried)
            notes += [f"Run {number}: {note}" for note in run.report.notes]
        self.report = SubmissionReport(
            first.report.frame,
            rows,
            sequence_id=first.report.sequence_id,
            notes=notes,
            error=self._error if rows["status"].isin(statuses.FAILED).any() else None,
            retry=self.retry,
        )


def _tried(rows: pd.DataFrame, settled: SettledLeads | None) -> Positions:
    every = np.arange(len(rows))
    return every if settled is None else np.setdiff1d(every, settled.rows)


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
        keys = set().union(*_keys(plan.only(positions)))
        with self._lock:
            self._sent.setdefault((service, plan.sequence_id), set()).update(keys)

    def count(self, service: str, plan: SubmissionPlan) -> int:
        """Count the leads of a plan that were sent to its sequence before."""
        with self._lock:
            sent = set(self._sent.get((service, plan.sequence_id), ()))
        return sum(not sent.isdisjoint(keys) for keys in _keys(plan)) if sent else 0


def _keys(plan: SubmissionPlan) -> list[set[str]]:
    """Return what each lead of a plan is compared by."""
    columns = (column.to_pylist() for column in plan.keys.columns)
    return [{key for key in keys if key is not None} for keys in zip(*columns, strict=True)]
