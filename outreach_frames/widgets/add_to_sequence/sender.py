"""Send the plans of a frame, each at most once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.pandas_versions import copy_frame
from outreach_frames.common.text import plural
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.planning.mapping import EMAIL, PROFNET_URL
from outreach_frames.leads.prepared import RunTarget
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.run import Monitor
from outreach_frames.leads.sending.submit import preview, submit
from outreach_frames.widgets.add_to_sequence.state import plan_arguments

# Statuses of rows that were not sent, or whose request was refused.
_NOT_REACHED: Final = (statuses.INVALID, statuses.DUPLICATE_IN_FRAME, *statuses.RETRYABLE)


class Sender:
    """The plans of one frame, each sent at most once."""

    # When a sequence has received rows, later plans use the same sequence, the same identifiers
    # and the same state of the frame, and contain only rows that were refused or not sent.

    def __init__(self, frame: pd.DataFrame, journal: Path | None = None) -> None:
        self._frame = frame
        # An absolute path, or None to record the runs only in memory.
        self.journal = journal
        self._value: Mapping[str, Any] = {}
        # The runs per service and sequence: later plans use the same journal.
        self._runs: dict[tuple[str, str], list[RunTarget]] = {}
        # The current plan, without the rows that are recorded as sent.
        self.plan: SubmissionPlan | None = None
        self.number: int = 0
        self.sent_number: int = 0
        self.report: SubmissionReport | None = None
        # The columns with the identifiers of the report's rows.
        self.report_columns: tuple[str | None, ...] = ()

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

    @property
    def columns(self) -> tuple[str | None, str | None]:
        """The columns that identify the plan's leads."""
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
        frame = self._plan.frame if self.is_fixed else copy_frame(self._frame)

        def make() -> SubmissionPlan:
            plan = make_plan(frame, client=client, **plan_arguments(value))
            runs = self._runs.setdefault((client.base_url, plan.sequence_id), [])
            plan = replace(plan, runs=runs)
            return plan.only(preview(plan, self.journal).resumption.rows)

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
        if self.plan is None:
            return "Check rows first."
        if number == self.sent_number:
            return "This plan was used. Check rows again to send the remaining rows."
        if number != self.number or value != self._value:
            return "The plan is out of date. Check rows again."
        status = self.plan.sequence.status
        if status is not None and not spec.SEQUENCE_STATUSES.get(status, True):
            return f"The sequence is {status} and accepts no leads. Choose another sequence."
        return "" if self.lead_count else "There is nothing to send."

    def plan_note(self) -> str:
        """Return a note about rows that the plan excludes, or ""."""
        plan = self._plan
        is_lead = plan.checked.is_valid & (plan.kept == np.arange(len(plan.kept)))
        if excluded := int(is_lead.sum()) - self.lead_count:
            where = "" if self.journal is None else f" or in the journal {self.journal}"
            people = plural(excluded, "person", "people")
            return f"Excluded: {people} recorded in this session{where}."
        return ""

    def send(self, *, watch: Monitor) -> SubmissionReport:
        """Send the plan; callable in any thread."""
        return submit(self._plan, journal=self.journal, progress=False, watch=watch)

    def set_report(self, report: SubmissionReport) -> None:
        """Set the report, which includes all runs."""
        self.report, self.report_columns = report, self.columns
