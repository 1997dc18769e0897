"""Decides which plan of a frame may be sent, and sends it once."""

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

# Rows that never reached the sequence, or whose request was refused.
_NEVER_THERE: Final = (statuses.INVALID, statuses.DUPLICATE_IN_FRAME, *statuses.RETRYABLE)
# The share of the time that the table of outcomes may take while leads are being sent.
_TABLE_SHARE: Final = 0.1


# Called with how many rows are done, by status, and now and then with the outcomes so far.
Listener = Callable[[Mapping[str, int], Outcomes | None], object]


class Sender:
    """The plans of one frame, one after the other, each sent once.

    Until rows have arrived in a sequence, a plan uses the frame as it is. Afterwards it uses the
    frame as it was, for that sequence, and only the rows that were refused or never sent.

    Parameters
    ----------
    frame : DataFrame
        The leads.
    directive : callable
        Returns what a run is to do now.
    journal : Path, optional
        As for `submit`; absolute. Without one, a journal in memory knows the runs of this frame.

    Attributes
    ----------
    plan : SubmissionPlan or None
        The latest plan, without the rows that the journal has recorded as sent.
    report : SubmissionReport or None
        The outcome of every row in all runs together.
    number : int
        The plan's number, which a request to send it must name.
    sent_number : int
        The number of the plan that was sent last.
    sent_before : int
        How many of the plan's leads this process has sent to its sequence before.
    outcomes : Outcomes or None
        The outcomes of the last report.
    is_lost : bool
        Whether a run ended without a report, after which nothing is sent any more.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        directive: Callable[[], Directive],
        journal: Path | None = None,
    ) -> None:
        self._frame = frame
        self._directive = directive
        self.journal = journal
        self._value: Mapping[str, Any] = {}
        self._places: dict[str, JournalPlace] = {}
        self._keys: dict[tuple[str | None, str | None], pa.RecordBatch] = {}
        self.plan: SubmissionPlan | None = None
        self.number: int = 0
        self.sent_number: int = 0
        self.sent_before: int = 0
        self.report: SubmissionReport | None = None
        self.outcomes: Outcomes | None = None
        self.is_lost: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether rows have arrived, so that only the rest can be sent."""
        return self.report is not None and not self.report.rows["status"].isin(_NEVER_THERE).all()

    @property
    def sequence_id(self) -> str | None:
        """The sequence in which rows have arrived."""
        return self.report.sequence_id if self.report is not None and self.goes_on else None

    @property
    def target(self) -> str:
        """The plan's sequence, for a message."""
        return repr(self._made.sequence.name or self._made.sequence_id)

    def _place(self, sequence_id: str) -> JournalPlace:
        """Return the journal of this frame's runs; in memory there is one for each sequence."""
        name = sequence_id if self.journal is None else ""
        if name not in self._places:
            path = None if self.journal is None else locate(self.journal)
            self._places[name] = JournalPlace(path)
        return self._places[name]

    @property
    def _columns(self) -> tuple[str | None, str | None]:
        return self._value[EMAIL], self._value[PROFNET_URL]

    @property
    def _made(self) -> SubmissionPlan:
        assert self.plan is not None
        return self.plan

    @property
    def client(self) -> Client:
        """The connection that the plan was made with."""
        assert self._made.client is not None
        return self._made.client

    @property
    def lead_count(self) -> int:
        """How many leads the plan sends."""
        return len(self._made.positions)

    def planning(self, value: Mapping[str, Any], client: Client) -> Callable[[], SubmissionPlan]:
        """Return a function that makes a plan of the frame as it is now, in any thread."""
        frame = self._made.frame if self.goes_on else self._frame.copy(deep=False)
        columns = value[EMAIL], value[PROFNET_URL]
        others = [keys for known, keys in self._keys.items() if known != columns]
        earlier = tuple(others) if self.goes_on else ()

        def make() -> SubmissionPlan:
            plan = make_plan(frame, client=client, earlier_keys=earlier, **plan_arguments(value))
            found = preview(plan, self._place(plan.sequence_id))
            return plan.only(found.rows, _unsent(plan, found))

        return make

    def take(self, plan: SubmissionPlan, value: Mapping[str, Any]) -> None:
        """Make a plan the current one."""
        self.plan, self._value = plan, value
        self.number += 1
        self.look_back()

    def look_back(self) -> None:
        """Count the plan's leads that this process sent before, and that the journal lacks."""
        plan = self._made
        self.sent_before = int(sent_before.are_sent(self.client, plan, plan.positions).sum())

    def button(self) -> str:
        """Return the label of the button that sends the plan."""
        return f"Add {plural(self.lead_count, 'lead')} to {self.target}"

    def why_not(self, number: int, value: Mapping[str, Any], *, again: bool) -> str:
        """Return why a plan cannot be sent; empty if it can.

        Parameters
        ----------
        number : int
            The number of the plan that is meant.
        value : mapping
            The choice that is meant.
        again : bool
            Whether leads that were sent before are to be sent again.
        """
        return next(self._reasons(number, value, again=again), "")

    def _reasons(self, number: int, value: Mapping[str, Any], *, again: bool) -> Iterator[str]:
        if self.is_lost:
            yield (
                "The outcome of the last run is not known, so nothing more is sent from here. Look "
                "in the service's web app, and continue with a new widget."
            )
        if self.plan is None:
            yield "Check rows first."
            return
        if number == self.sent_number:
            yield "This plan was sent. Check rows again to send what is left."
        if number != self.number or value != self._value:
            yield "The plan is out of date. Check rows again."
        status = self.plan.sequence.status
        if status is not None and not spec.SEQUENCE_STATUSES.get(status, True):
            yield f"The sequence is {status} and takes no leads."
        if not self.lead_count:
            yield "There is nothing to send."
        place = self._place(self.plan.sequence_id)
        if place.mark is not None and not place.exists():
            yield f"The journal {self.journal} is gone. Without it, rows would be sent twice."
        if self.sent_before and not again:
            yield "Some of these leads were already sent to this sequence. Confirm to send again."

    def note(self) -> str:
        """Return what to know about the plan's rows."""
        if self.goes_on:
            return (
                "This plan has only rows that were refused or never sent, with their cells as they "
                "were then; rows that were added or skipped, or may have arrived, are not sent "
                "again. To start over with all rows, make a new widget."
            )
        if self.journal is not None and self._place("").exists():
            return f"Rows that the journal {self.journal} has recorded as sent are left out."
        return ""

    def tried_out(self) -> Outcomes:
        """Return the outcomes of a dry run; nothing is sent."""
        report = submit(self._made, journal=self._place(self._made.sequence_id), dry_run=True)
        return self._outcomes(
            report.rows, dict.fromkeys(self._made.positions.tolist(), WOULD_BE_SENT)
        )

    def begin(self) -> Outcomes:
        """Mark the current plan as sent, and return the outcomes so far."""
        self.sent_number = self.number
        rows = make_rows(self._made, {})
        if self.report is not None:
            # Unknown rows may have been sent once more since this plan was made.
            is_there = ~self.report.rows["status"].isin(_NEVER_THERE)
            rows = rows.mask(is_there, self.report.rows)
        return self._outcomes(rows, dict.fromkeys(self._made.positions.tolist(), WAITING))

    def send(self, listener: Listener) -> SubmissionReport:
        """Send the plan, in any thread."""
        with self._alone():
            report = submit(
                self._made,
                journal=self._place(self._made.sequence_id),
                progress=False,
                watch=self._watcher(listener, with_rows=True),
                is_confirmed=True,
            )
        if not self.goes_on:
            self._keys = {}
        self._keys[self._columns] = self._made.keys
        return report

    def send_again(self, listener: Listener) -> SubmissionReport:
        """Send the unknown rows once more, in any thread."""
        assert self.report is not None
        with self._alone():
            return self.report.retry_unknown(watch=self._watcher(listener, with_rows=False))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse to send while another widget sends to the same sequence."""
        with sent_before.sending(self.client, self._made) as is_free:
            if not is_free:
                raise InvalidInputError(
                    "Another widget of this notebook is sending to this sequence. Wait until it "
                    "is done. Nothing was sent."
                )
            yield

    def take_report(self, report: SubmissionReport) -> None:
        """Take the report of all runs together."""
        self.report = report
        self.outcomes = Outcomes(report.rows, self._made.frame, self._columns)

    def failed(self, error: BaseException) -> None:
        """Continue after a failure that sent nothing; after any other, never send again."""
        if isinstance(error, OutreachError):
            self.number += 1
        else:
            self.is_lost = True

    def _watcher(self, listener: Listener, *, with_rows: bool) -> Callable[[Run], Directive]:
        """Return a function that reports the progress of a run, and returns what it is to do."""
        seen: object = None
        in_table: object = None
        next_table = 0.0

        def watch(run: Run) -> Directive:
            nonlocal seen, in_table, next_table
            now = (run.tally, tuple(run.current))
            outcomes = None
            if with_rows and now != in_table and (begun := time.monotonic()) >= next_table:
                outcomes = self._so_far(run)
                ended = time.monotonic()
                in_table, next_table = now, ended + (ended - begun) / _TABLE_SHARE
            if now != seen or outcomes is not None:
                seen = now
                listener(dict(run.tally), outcomes)
            return self._directive()

        return watch

    def _so_far(self, run: Run) -> Outcomes:
        waiting = [row for row in self._made.positions.tolist() if row not in run.begun]
        shown = dict.fromkeys(waiting, WAITING) | dict.fromkeys(run.current, BEING_SENT)
        return self._outcomes(make_rows(self._made, dict(run.entries)), shown)

    def _outcomes(self, rows: pd.DataFrame, shown: Mapping[int, str]) -> Outcomes:
        """Return outcomes, some of them with a status for now."""
        rows = rows.copy()
        rows.loc[list(shown), "status"] = list(shown.values())
        rows.loc[list(shown), "detail"] = ""
        return Outcomes(rows, self._made.frame, self._columns)


def _unsent(plan: SubmissionPlan, found: Resumption) -> pd.DataFrame:
    """Return the outcomes of the rows that a run would not send."""
    rows = make_rows(plan, found.entries, found.kept)[list(OUTCOME_COLUMNS)]
    others: pd.DataFrame = rows.drop(index=found.rows.tolist())
    return others.reset_index(names="position")
