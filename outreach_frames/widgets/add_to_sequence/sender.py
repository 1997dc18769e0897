"""Send the plans of a frame, each at most once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.planning.mapping import EMAIL, PROFNET_URL
from outreach_frames.leads.sending import sent_before
from outreach_frames.leads.sending.journal_place import JournalPlace, locate
from outreach_frames.leads.sending.report import OUTCOME_COLUMNS, SubmissionReport, make_rows
from outreach_frames.leads.sending.resume import Resumption
from outreach_frames.leads.sending.run import Directive, Run
from outreach_frames.leads.sending.submit import preview, submit
from outreach_frames.widgets.add_to_sequence.state import plan_arguments
from outreach_frames.widgets.add_to_sequence.tables import (
    BEING_SENT,
    WAITING,
    WOULD_BE_SENT,
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
        # An absolute path, or None to record the runs in memory.
        self.journal = journal
        self._value: Mapping[str, Any] = {}
        self._places: dict[str, JournalPlace] = {}
        self._keys: dict[tuple[str | None, str | None], pa.RecordBatch] = {}
        # The current plan, without the rows that the journal records as sent.
        self.plan: SubmissionPlan | None = None
        self.number: int = 0
        self.sent_number: int = 0
        # The number of the plan's leads that this process sent to the same sequence before.
        self.sent_before: int = 0
        self.report: SubmissionReport | None = None
        self.outcomes: Outcomes | None = None
        # Whether a run ended without a report, so that nothing more is sent.
        self.is_outcome_unknown: bool = False

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

    def _place(self, sequence_id: str) -> JournalPlace:
        """Return the journal of this frame's runs: the file, or one in memory per sequence."""
        name = sequence_id if self.journal is None else ""
        if name not in self._places:
            path = None if self.journal is None else locate(self.journal)
            self._places[name] = JournalPlace(path)
        return self._places[name]

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
        frame = self._plan.frame if self.is_fixed else self._frame.copy(deep=False)
        columns = value[EMAIL], value[PROFNET_URL]
        others = [keys for known, keys in self._keys.items() if known != columns]
        earlier = tuple(others) if self.is_fixed else ()

        def make() -> SubmissionPlan:
            plan = make_plan(frame, client=client, earlier_keys=earlier, **plan_arguments(value))
            found = preview(plan, self._place(plan.sequence_id))
            return plan.only(found.rows, _unsent(plan, found))

        return make

    def set_plan(self, plan: SubmissionPlan, value: Mapping[str, Any]) -> None:
        """Set the current plan, and the choice from which the plan was made."""
        self.plan, self._value = plan, value
        self.number += 1
        self.count_sent_before()

    def count_sent_before(self) -> None:
        """Count the plan's leads that this process sent before and that the journal lacks."""
        plan = self._plan
        self.sent_before = int(sent_before.are_sent(self.client, plan, plan.positions).sum())

    def button(self) -> str:
        """Return the label of the button that sends the plan."""
        return f"Add {plural(self.lead_count, 'lead')} to {self.target}"

    def why_not(self, number: int, value: Mapping[str, Any], *, again: bool) -> str:
        """Return the reason why the plan with this number and choice cannot be sent, or ""."""
        return next(self._reasons(number, value, again=again), "")

    def _reasons(self, number: int, value: Mapping[str, Any], *, again: bool) -> Iterator[str]:
        if self.is_outcome_unknown:
            yield (
                "The outcome of the last run is unknown, so this widget sends nothing more. Check "
                "the sequence in the web app, then continue with a new widget."
            )
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
        place = self._place(self.plan.sequence_id)
        if place.mark is not None and not place.exists():
            yield (
                f"The journal {self.journal} is missing. Restore the file, or rows may be sent "
                "twice."
            )
        if self.sent_before and not again:
            yield "Some of these leads were already sent to this sequence. Confirm to send again."

    def plan_note(self) -> str:
        """Return a note about rows that the plan excludes, or ""."""
        if self.is_fixed:
            return (
                "This plan has only the rows that were refused or not sent, with the values of the "
                "last plan. Rows that were added, were skipped or may have arrived are not sent "
                "again. To start over with all rows, make a new widget."
            )
        if self.journal is not None and self._place("").exists():
            return f"Rows that the journal {self.journal} records as sent are excluded."
        return ""

    def dry_run(self) -> Outcomes:
        """Return the outcomes of a dry run, which sends nothing."""
        report = submit(self._plan, journal=self._place(self._plan.sequence_id), dry_run=True)
        return self._outcomes(
            report.rows, dict.fromkeys(self._plan.positions.tolist(), WOULD_BE_SENT)
        )

    def mark_sent(self) -> Outcomes:
        """Mark the current plan as sent and return the outcomes so far."""
        self.sent_number = self.number
        rows = make_rows(self._plan, {})
        if self.report is not None:
            # Unknown rows may have been sent again since this plan was made.
            may_be_in_sequence = ~self.report.rows["status"].isin(_NOT_REACHED)
            rows = rows.mask(may_be_in_sequence, self.report.rows)
        return self._outcomes(rows, dict.fromkeys(self._plan.positions.tolist(), WAITING))

    def send(self, listener: Listener) -> SubmissionReport:
        """Send the plan; callable in any thread."""
        with self._exclusively():
            report = submit(
                self._plan,
                journal=self._place(self._plan.sequence_id),
                progress=False,
                watch=self._watcher(listener, with_rows=True),
                is_confirmed=True,
            )
        if not self.is_fixed:
            self._keys = {}
        self._keys[self._columns] = self._plan.keys
        return report

    def resend_unknown(self, listener: Listener) -> SubmissionReport:
        """Send the unknown rows again; callable in any thread."""
        assert self.report is not None
        with self._exclusively():
            return self.report.retry_unknown(watch=self._watcher(listener, with_rows=False))

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Raise InvalidInputError if another widget is sending to the same sequence."""
        with sent_before.sending(self.client, self._plan) as is_free:
            if not is_free:
                raise InvalidInputError(
                    "Another widget of this notebook is sending to this sequence. Nothing was "
                    "sent. Wait until the other widget is done."
                )
            yield

    def set_report(self, report: SubmissionReport) -> None:
        """Set the report, which includes all runs."""
        self.report = report
        self.outcomes = Outcomes(report.rows, self._plan.frame, self._columns)

    def on_failure(self, error: BaseException) -> None:
        """After an OutreachError, nothing was sent: allow another run. Otherwise, block runs."""
        if isinstance(error, OutreachError):
            self.number += 1
        else:
            self.is_outcome_unknown = True

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
        return self._outcomes(make_rows(self._plan, dict(run.entries)), temporary)

    def _outcomes(self, rows: pd.DataFrame, temporary: Mapping[int, str]) -> Outcomes:
        """Return outcomes, with temporary statuses for some rows."""
        rows = rows.copy()
        rows.loc[list(temporary), "status"] = list(temporary.values())
        rows.loc[list(temporary), "detail"] = ""
        return Outcomes(rows, self._plan.frame, self._columns)


def _unsent(plan: SubmissionPlan, found: Resumption) -> pd.DataFrame:
    """Return the outcomes of the rows that a run would skip."""
    rows = make_rows(plan, found.entries, found.kept)[list(OUTCOME_COLUMNS)]
    others: pd.DataFrame = rows.drop(index=found.rows.tolist())
    return others.reset_index(names="position")
