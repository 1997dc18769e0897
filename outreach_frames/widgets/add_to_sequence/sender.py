"""Which plan of a frame may be sent, sending it once, and what became of the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.planning.mapping import EMAIL, PROFNET_URL
from outreach_frames.leads.sending.journal import Entry
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.rows import make_rows
from outreach_frames.leads.sending.run import Directive, Run
from outreach_frames.leads.sending.submit import submit
from outreach_frames.widgets.add_to_sequence.history import History, Ledger, Positions
from outreach_frames.widgets.add_to_sequence.state import plan_arguments
from outreach_frames.widgets.add_to_sequence.tables import (
    BEING_SENT,
    WAITING,
    WOULD_BE_SENT,
    Outcomes,
)

_LEDGER: Final = Ledger()
# The table of outcomes may take this share of the time while leads are being sent.
_TABLE_SHARE: Final = 0.1


class Moment(NamedTuple):
    """How far a run is: how many rows it is done with, by status, and now and then all rows."""

    tally: Mapping[str, int]
    outcomes: Outcomes | None


Listener = Callable[[Moment], object]


class Planned(NamedTuple):
    """A plan, and which rows of earlier runs it tries again; None where it is about all rows."""

    plan: SubmissionPlan
    again: Positions | None


class Sender:
    """The plans of one frame, one after the other, each sent once.

    Before rows have arrived in a sequence, a plan is of the frame as it is. Afterwards it is of the
    frame as it was, to that sequence, and has only rows that were refused or never sent.

    Parameters
    ----------
    frame : DataFrame
        The leads.
    journal : Path or None
        As for `submit`.
    is_over : callable
        Whether nobody is there any more to hear of what is sent.

    Attributes
    ----------
    plan : SubmissionPlan or None
        The plan that was made last.
    number : int
        Of the plan: what asks to send it must name it.
    sent_number : int
        Of the plan that was sent last.
    sent_before : int
        How many leads of the plan this process has sent to its sequence before.
    history : History
        What became of rows so far.
    outcomes : Outcomes or None
        Of the last report.
    wish : "continue", "drain" or "abort"
        What is wished of the run under way.
    is_lost : bool
        Whether a run ended without a report, so that nothing may be sent any more.
    """

    def __init__(
        self, frame: pd.DataFrame, journal: Path | None, is_over: Callable[[], bool]
    ) -> None:
        self._frame = frame
        self._is_over = is_over
        self._value: Mapping[str, Any] = {}
        self._again: Positions | None = None
        self._seen: object = None
        self._next_table = 0.0
        self.journal = journal
        self.plan: SubmissionPlan | None = None
        self.number = self.sent_number = 0
        self.sent_before = 0
        self.history = History()
        self.outcomes: Outcomes | None = None
        self.wish: Directive = "continue"
        self.is_lost = False

    @property
    def report(self) -> SubmissionReport | None:
        """What became of every row, all runs together."""
        return self.history.report

    @property
    def goes_on(self) -> bool:
        """Whether rows have arrived, so that only the rest can be sent."""
        return self.history.arrived

    @property
    def sequence_id(self) -> str | None:
        """The sequence where rows have arrived."""
        return self.report.sequence_id if self.report is not None and self.goes_on else None

    @property
    def target(self) -> str:
        """The sequence of the plan, as it reads."""
        return repr(self._made.sequence.name or self._made.sequence_id)

    @property
    def _made(self) -> SubmissionPlan:
        assert self.plan is not None
        return self.plan

    def planning(self, value: Mapping[str, Any], client: Client) -> Callable[[], Planned]:
        """Return what makes a plan of the frame as it is now, in whatever thread."""
        frame = self._made.frame if self.goes_on else self._frame.copy(deep=False)
        again = self.history.rest() if self.goes_on and self.journal is None else None

        def make() -> Planned:
            plan = make_plan(frame, client=client, **plan_arguments(value))
            return Planned(plan if again is None else plan.only(again), again)

        return make

    def take(self, planned: Planned, value: Mapping[str, Any]) -> None:
        """Make a plan the present one."""
        if self.plan is not None and self.plan.submissions and self.number != self.sent_number:
            # Somebody submitted it in a cell.
            _LEDGER.note(_service(self.plan), self.plan, self.plan.positions)
        # Which rows it is about stays: sending unknown rows once more may add to the rest.
        (plan, self._again), self._value = planned, value
        self.plan = plan
        self.number += 1
        self.look_back()

    def look_back(self) -> None:
        """Count the plan's leads that this process has sent before; a journal knows by itself."""
        is_known = self.journal is not None and self.journal.exists()
        self.sent_before = 0 if is_known else _LEDGER.count(_service(self._made), self._made)

    def is_planned_with(self, client: Client) -> bool:
        """Whether the plan would be sent with this connection."""
        return self._made.client is client

    def is_at_service_of(self, client: Client) -> bool:
        """Whether the plan is for the service that a connection is to; its token may be new."""
        return _service(self._made) == client.base_url

    def to_send(self) -> Positions:
        """Return the rows that the plan sends; a journal leaves out what it knows as settled."""
        positions = self._made.positions
        return np.intersect1d(positions, self.history.rest()) if self.goes_on else positions

    def button(self) -> str:
        """Return what a button says that sends the plan."""
        return f"Add {plural(len(self.to_send()), 'lead')} to {self.target}"

    def why_not(self, number: int, value: Mapping[str, Any], *, again: bool) -> str:
        """Return why a plan cannot be sent; empty where it can.

        Parameters
        ----------
        number : int
            Of the plan that is meant.
        value : mapping
            The choice that is meant.
        again : bool
            Whether leads that were sent before are meant, too.
        """
        return next(self._reasons(number, value, again=again), "")

    def _reasons(self, number: int, value: Mapping[str, Any], *, again: bool) -> Iterator[str]:
        if self.is_lost:
            yield (
                "What became of the last run is not known, so nothing more is sent from here. Look "
                "in the service's web app, and go on with a new widget."
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
        if not len(self.to_send()):
            yield "There is nothing to send."
        if self.goes_on and self.journal is not None and not self.journal.exists():
            yield f"The journal {self.journal} is gone; without it rows would be sent twice."
        if self.sent_before and not again:
            yield "Some of these leads were sent to this sequence before; say that this is meant."

    def note(self) -> str:
        """Return what to know of the plan's rows."""
        if self.goes_on:
            return (
                "Only rows that were refused or never sent are in this plan, with their cells as "
                "they were then; what was added, skipped or may have arrived is not sent again. To "
                "start over with all rows, make a new widget."
            )
        if self.journal is not None and self.journal.exists():
            return f"What the journal {self.journal} knows as settled is left out when it is sent."
        return ""

    def tried_out(self) -> Outcomes:
        """Return what would become of the rows; nothing is sent."""
        report = submit(self._made, dry_run=True)
        return self._outcomes(report.rows, dict.fromkeys(self.to_send().tolist(), WOULD_BE_SENT))

    def begin(self) -> Outcomes:
        """Count the present plan as sent, and return its rows."""
        self.sent_number = self.number
        self._renew()
        return self._so_far({}, ())

    def send(self, listener: Listener) -> SubmissionReport:
        """Send the plan, in whatever thread, and note whom it went to."""
        plan = self._made
        service, sent = _service(plan), plan.positions
        with _LEDGER.sending(service, plan) as is_free:
            _require_free(is_free)
            try:
                report = submit(
                    plan,
                    journal=self.journal,
                    progress=False,
                    watch=lambda run: self._watch(run, listener, with_rows=True),
                )
                is_open = report.rows["status"].isin(statuses.TRIED_AGAIN).to_numpy()
                sent = plan.positions[~is_open[plan.positions]]
            except OutreachError:
                sent = plan.positions[:0]
                raise
            finally:
                _LEDGER.note(service, plan, sent)
        return report

    def sent(self, report: SubmissionReport) -> None:
        """Take the report of the plan."""
        if self._again is None:
            self.history = History()
        self.history.add(report, self._again)
        self._keep()

    def begin_again(self) -> int:
        """Return how many rows are unknown, before these are sent once more."""
        self._renew()
        assert self.report is not None
        return int((self.report.rows["status"] == statuses.UNKNOWN).sum())

    def send_again(self, listener: Listener) -> SubmissionReport:
        """Send what is unknown once more, in whatever thread."""
        with _LEDGER.sending(_service(self._made), self._made) as is_free:
            _require_free(is_free)
            return self.history.retry(lambda run: self._watch(run, listener, with_rows=False))

    def sent_again(self, _report: SubmissionReport) -> None:
        """Take the report of what was unknown."""
        self._keep()

    def broke(self, error: BaseException) -> None:
        """Go on after nothing was sent; where that is not certain, never send again."""
        if isinstance(error, OutreachError):
            self.number += 1
        else:
            self.is_lost = True
        if self.outcomes is not None and self.report is not None:
            # Of unknown rows, some may have been sent once more before.
            self.outcomes = self.outcomes._replace(rows=self.report.rows)

    def _renew(self) -> None:
        self.wish = "continue"
        self._seen, self._next_table = None, 0.0

    def _watch(self, run: Run, listener: Listener, *, with_rows: bool) -> Directive:
        """Tell how far a run is; return what is wished of it."""
        seen = (run.tally, tuple(run.current))
        if seen != self._seen:
            self._seen = seen
            begun, outcomes = time.monotonic(), None
            if with_rows and begun >= self._next_table:
                outcomes = self._so_far(dict(run.entries), run.current)
                now = time.monotonic()
                self._next_table = now + (now - begun) / _TABLE_SHARE
            listener(Moment(dict(run.tally), outcomes))
        return "drain" if self.wish == "continue" and self._is_over() else self.wish

    def _so_far(self, entries: Mapping[int, Entry], current: Sequence[int]) -> Outcomes:
        never = [row for row in self._made.positions.tolist() if row not in entries]
        said = dict.fromkeys(never, WAITING) | dict.fromkeys(current, BEING_SENT)
        return self._outcomes(make_rows(self._made, entries), said)

    def _outcomes(self, rows: pd.DataFrame, said: Mapping[int, str]) -> Outcomes:
        """Return rows with what is said of some of them in place of a status."""
        rows = rows.copy()
        rows.loc[list(said), "status"] = list(said.values())
        rows.loc[list(said), "detail"] = ""
        if self._again is not None:
            rows = self.history.rows_with(rows, self._again)
        return Outcomes(rows, self._made.frame, (self._value[EMAIL], self._value[PROFNET_URL]))

    def _keep(self) -> None:
        assert self.report is not None
        columns = (self._value[EMAIL], self._value[PROFNET_URL])
        self.outcomes = Outcomes(self.report.rows, self._made.frame, columns)


def _service(plan: SubmissionPlan) -> str:
    assert plan.client is not None
    return plan.client.base_url


def _require_free(is_free: bool) -> None:
    if not is_free:
        raise InvalidInputError(
            "Another widget of this notebook is sending to this sequence. Wait until it is done. "
            "Nothing was sent."
        )
