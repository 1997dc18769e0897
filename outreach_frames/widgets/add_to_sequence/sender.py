"""Send the plans of a frame, each at most once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.pandas_versions import snapshot
from outreach_frames.common.text import plural
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.planning.mapping import EMAIL, PROFNET_URL
from outreach_frames.leads.sending.journal_file import JournalPlace, locate
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.rows import make_rows
from outreach_frames.leads.sending.run import Directive, Run
from outreach_frames.leads.sending.submit import preview, submit
from outreach_frames.widgets.add_to_sequence.state import plan_arguments
from outreach_frames.widgets.add_to_sequence.tables import (
    BEING_SENT,
    WAITING,
    Outcomes,
)

# Statuses of rows that were not sent, or whose request was refused.
_NOT_REACHED: Final = (statuses.INVALID, statuses.DUPLICATE_IN_FRAME, *statuses.RETRYABLE)
# Maximum share of the sending time that updates of the outcome table take.
_TABLE_SHARE: Final = 0.1


# A listener receives the number of finished rows by status and, from time to time, the outcomes.
Listener = Callable[[Mapping[str, int], Outcomes | None], object]


class Sender:
    """The plans of one frame, each sent at most once."""

    # When a sequence has received rows, later plans use the same sequence and the same state of
    # the frame, and contain only rows that were refused or not sent.

    def __init__(
        self,
        frame: pd.DataFrame,
        directive: Callable[[], Directive],
        journal: Path | None = None,
    ) -> None:
        self._frame = frame
        self._directive = directive
        # An absolute path, or None to record the runs only in memory.
        self.journal = journal
        self._value: Mapping[str, Any] = {}
        # Later plans keep the records of earlier runs, also after a change of the token.
        self._records: dict[tuple[str, str], dict[str, Any]] = {}
        self._keys: dict[tuple[str | None, str | None], pa.RecordBatch] = {}
        # The current plan, without the rows that are recorded as sent.
        self.plan: SubmissionPlan | None = None
        self.number: int = 0
        self.sent_number: int = 0
        self.report: SubmissionReport | None = None
        self.outcomes: Outcomes | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether a sequence has received rows, so that only the remaining rows can be sent."""
        return self.report is not None and not self.report.rows["status"].isin(_NOT_REACHED).all()

    @property
    def sequence_id(self) -> str | None:
        """The id of the sequence that received rows."""
        return self.report.sequence_id if self.report is not None and self.is_fixed else None

    @property
    def target(self) -> str:
        """The name or id of the plan's sequence, for messages."""
        return repr(self._plan.sequence.name or self._plan.sequence_id)

    @cached_property
    def _place(self) -> JournalPlace | None:
        """The location of the journal file."""
        return None if self.journal is None else JournalPlace(locate(self.journal))

    @property
    def _columns(self) -> tuple[str | None, str | None]:
        return self._value[EMAIL], self._value[PROFNET_URL]

    @property
    def _plan(self) -> SubmissionPlan:
        assert self.plan is not None
        return self.plan

    @property
    def client(self) -> Client:
        """The client that made the plan."""
        assert self._plan.client is not None
        return self._plan.client

    @property
    def lead_count(self) -> int:
        """The number of leads in the plan."""
        return len(self._plan.positions)

    def planner(self, value: Mapping[str, Any], client: Client) -> Callable[[], SubmissionPlan]:
        """Return a function, callable in any thread, that plans the frame in its current state."""
        frame = self._plan.frame if self.is_fixed else snapshot(self._frame)
        columns = value[EMAIL], value[PROFNET_URL]
        others = [keys for known, keys in self._keys.items() if known != columns]
        earlier = tuple(others) if self.is_fixed else ()

        def make() -> SubmissionPlan:
            plan = make_plan(frame, client=client, earlier_keys=earlier, **plan_arguments(value))
            plan.records.update(self._records.get((client.base_url, plan.sequence_id), {}))
            return plan.only(preview(plan, self._place).found.rows)

        return make

    def set_plan(self, plan: SubmissionPlan, value: Mapping[str, Any]) -> None:
        """Set the current plan, and the choice from which the plan was made."""
        self.plan, self._value = plan, value
        self.number += 1

    def button(self) -> str:
        """Return the label of the button that sends the plan."""
        return f"Add {plural(self.lead_count, 'lead')} to {self.target}"

    def why_not(self, number: int, value: Mapping[str, Any]) -> str:
        """Return the reason why the plan with this number and choice cannot be sent, or ""."""
        return next(self._reasons(number, value), "")

    def _reasons(self, number: int, value: Mapping[str, Any]) -> Iterator[str]:
        if self.plan is None:
            yield "Check rows first."
            return
        if number == self.sent_number:
            yield "This plan was sent. Check rows again to send the remaining rows."
        if number != self.number or value != self._value:
            yield "The plan is out of date. Check rows again."
        status = self.plan.sequence.status
        if status is not None and not spec.SEQUENCE_STATUSES.get(status, True):
            yield f"The sequence is {status} and accepts no leads. Choose another sequence."
        if not self.lead_count:
            yield "There is nothing to send."

    def plan_note(self) -> str:
        """Return a note about rows that the plan excludes, or ""."""
        if self.is_fixed:
            return (
                "This plan has only the rows that were refused or not sent, with the values of the "
                "last plan. Rows that were added, were skipped or may have arrived are not sent "
                "again."
            )
        plan = self._plan
        is_lead = plan.checked.is_valid & (plan.kept == np.arange(len(plan.kept)))
        if excluded := int(is_lead.sum()) - self.lead_count:
            where = "" if self.journal is None else f" or in the journal {self.journal}"
            people = plural(excluded, "person", "people")
            return f"Excluded: {people} recorded in this session{where}."
        return ""

    def dry_run(self) -> Outcomes:
        """Return the outcomes of a dry run, which sends nothing."""
        return self._expected(statuses.WOULD_SEND)

    def mark_sent(self) -> Outcomes:
        """Mark the current plan as sent and return the outcomes so far."""
        expected = self._expected(WAITING)
        self.sent_number = self.number
        return expected

    def _expected(self, status: str) -> Outcomes:
        """Return the outcomes of a dry run, with a temporary status of the rows to send."""
        report = submit(self._plan, journal=self._place, dry_run=True)
        return self._outcomes(report.rows, dict.fromkeys(self._plan.positions.tolist(), status))

    def send(self, listener: Listener) -> SubmissionReport:
        """Send the plan; callable in any thread."""
        watch = self._watcher(listener, with_rows=True)
        report = submit(self._plan, journal=self._place, progress=False, watch=watch)
        self._records[self.client.base_url, self._plan.sequence_id] = self._plan.records
        if not self.is_fixed:
            self._keys = {}
        self._keys[self._columns] = self._plan.keys
        return report

    def resend_unknown(self, listener: Listener) -> SubmissionReport:
        """Send the unknown rows again; callable in any thread."""
        assert self.report is not None
        return self.report.retry_unknown(watch=self._watcher(listener, with_rows=False))

    def set_report(self, report: SubmissionReport) -> None:
        """Set the report, which includes all runs."""
        self.report = report
        self.outcomes = Outcomes(report.rows, self._plan.frame, self._columns)

    def require_new_plan(self) -> None:
        """Require a new check of the rows, for example after an error."""
        self.number += 1

    def _watcher(self, listener: Listener, *, with_rows: bool) -> Callable[[Run], Directive]:
        """Return a function that reports a run's progress and returns the run's directive."""
        seen: object = None
        in_table: object = None
        next_table = 0.0

        def watch(run: Run) -> Directive:
            nonlocal seen, in_table, next_table
            now = (run.tally, tuple(run.current))
            outcomes = None
            if with_rows and now != in_table and (begun := time.monotonic()) >= next_table:
                outcomes = self._current_outcomes(run)
                ended = time.monotonic()
                in_table, next_table = now, ended + (ended - begun) / _TABLE_SHARE
            if now != seen or outcomes is not None:
                seen = now
                listener(dict(run.tally), outcomes)
            return self._directive()

        return watch

    def _current_outcomes(self, run: Run) -> Outcomes:
        waiting = [row for row in self._plan.positions.tolist() if row not in run.begun]
        temporary = dict.fromkeys(waiting, WAITING) | dict.fromkeys(run.current, BEING_SENT)
        rows = make_rows(self._plan, dict(run.entries), run.journal.found.kept)
        return self._outcomes(rows, temporary)

    def _outcomes(self, rows: pd.DataFrame, temporary: Mapping[int, str]) -> Outcomes:
        """Return outcomes, with temporary statuses for some rows."""
        rows = rows.copy()
        rows.loc[list(temporary), "status"] = list(temporary.values())
        rows.loc[list(temporary), "detail"] = ""
        return Outcomes(rows, self._plan.frame, self._columns)
