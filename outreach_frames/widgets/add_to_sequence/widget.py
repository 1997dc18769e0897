"""AddToSequence: check a frame's rows and add them to a sequence by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
import traitlets

from outreach_frames import spec
from outreach_frames.client import connect
from outreach_frames.client.client import Client
from outreach_frames.common.atomic_files import expanded
from outreach_frames.common.pandas_versions import copy_frame
from outreach_frames.common.text import plural, printable
from outreach_frames.errors import OutreachError, ValidationFailedError
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.planning.mapping import EMAIL, MAILBOX, MAILBOXES, PROFNET_URL
from outreach_frames.leads.prepared import RunTarget
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.run import Run
from outreach_frames.leads.sending.submit import preview, submit
from outreach_frames.resources.mailboxes import mailboxes
from outreach_frames.resources.sequences import sequences
from outreach_frames.tables.interchange import FrameLike, as_frame
from outreach_frames.widgets.add_to_sequence.state import (
    FIELD_RULE,
    code_for,
    column_options,
    guess_columns,
    mailbox_options,
    outcome_content,
    plan_arguments,
    plan_content,
    read_value,
    sequence_options,
)
from outreach_frames.widgets.base import Panel, error_notice, notice, read_assets
from outreach_frames.widgets.python_code import variable_of

# The facts of the interface that the page needs.
_FORM: Final[dict[str, Any]] = {
    "identifiers": list(spec.LEAD_IDENTIFIERS),
    "overrides": [{"name": field.name, "note": field.note} for field in spec.OVERRIDES],
    "mailbox": MAILBOX,
    "mailboxes": MAILBOXES,
    "field_pattern": spec.DATA_NAME_PATTERN,
    "field_length": spec.MAX_DATA_NAME_LENGTH,
    "field_rule": FIELD_RULE,
    "max_fields": spec.MAX_DATA_FIELDS,
}

# Statuses of rows that were not sent, or whose request was refused.
_NOT_REACHED: Final = (statuses.INVALID, statuses.DUPLICATE_IN_FRAME, *statuses.RETRYABLE)


class AddToSequence(Panel):
    """Add a frame's rows to a sequence by hand and see the outcome of each row.

    Nothing is sent until you press the button with the number of leads and the sequence. The button
    sends the plan on the page once, with the rows as checked. Afterwards you can send only the rows
    that were refused or not sent, to the same sequence, with the same columns of identifiers. Rows
    that were added or skipped are not sent again. A separate button sends `unknown` rows, which may
    have arrived, once more.

    Parameters
    ----------
    df : DataFrame, also of Polars, DuckDB or Arrow
        One row per lead; the frame is not changed.
    client : Client, optional
        By default the client of the last `connect`.
    journal : str or Path, optional
        A file that records the outcome of each row, even if the kernel ends during the run.

    Attributes
    ----------
    value : dict
        The choice. You can assign a new choice with any of these keys: sequence_id, email,
        profnet_url (columns), data ({field: column}), require (fields), overrides ({override:
        True}), mailbox (a column), mailboxes.
    plan : SubmissionPlan or None
        The latest plan.
    report : SubmissionReport or None
        The outcome of every row after all runs; None before the first run.
    failed : DataFrame
        The rows that were neither added nor skipped, with status, detail and error_code.
    code : str
        The equivalent Python code.

    Notes
    -----
    Interface: POST /sequences/{id}/leads, GET /sequences, GET /mailboxes.

    Examples
    --------
    >>> import outreach_frames as of
    >>> leads = pd.DataFrame({"E-Mail": ["ada@example.com"], "First Name": ["Ada"]})
    >>> with of.connect("sandbox", cache=None) as client:
    ...     adding = of.widgets.AddToSequence(leads)
    ...     sequence_id = client.sandbox.sequence_ids["accepts_any"]
    >>> adding.value = {**adding.value, "sequence_id": sequence_id}
    >>> print(adding.code.replace(sequence_id, "..."))
    # df is the frame that was passed to AddToSequence.
    report = df.outreach.add_to_sequence('...', email='E-Mail')
    """

    actions: ClassVar[tuple[str, ...]] = (
        "ready",
        "reload",
        "check",
        "submit",
        "cancel",
        "show",
        "retry",
    )

    _esm = read_assets("common.js", "add_to_sequence/choice.js", "add_to_sequence/widget.js")
    _css = read_assets("common.css", "add_to_sequence/widget.css")

    value: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    code: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    form: traitlets.Dict[str, Any] = traitlets.Dict(_FORM).tag(sync=True)
    state: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)

    def __init__(
        self, df: FrameLike, client: Client | None = None, *, journal: str | Path | None = None
    ) -> None:
        self._is_cancelled = False
        self._df = as_frame(df, "AddToSequence")
        # As passed, for the code.
        self._passed, self._journal = df, journal
        # Make the path absolute, because the working folder may change before rows are sent.
        self._path = None if journal is None else expanded(journal).absolute()
        # The runs per service and sequence: later plans use the same journal.
        self._runs: dict[tuple[str, str], list[RunTarget]] = {}
        self.plan: SubmissionPlan | None = None
        self.report: SubmissionReport | None = None
        # The choice from which the plan was made, and the columns of the report's identifiers.
        self._planned: Mapping[str, Any] = {}
        self._reported: tuple[str | None, ...] = ()
        # The page names plans and reports by number; each plan is sent at most once.
        self._plan_number = self._sent_number = self._report_number = 0
        self._action = ""
        super().__init__(client)
        known = client or connect.current()
        networks = {spec.NETWORK_NAME, *([known._session.network_name] if known else [])}
        names = [option["name"] for option in self._show_columns() if option["name"] is not None]
        self.value = guess_columns(names, networks)

    @property
    def failed(self) -> pd.DataFrame:
        """The rows that were neither added nor skipped, with status, detail and error_code."""
        if self.report is None:
            return self._df.iloc[:0]
        is_failed = self.report.rows["status"].isin(statuses.FAILED)
        return self.report.frame[is_failed.to_numpy()]

    @property
    def _is_fixed(self) -> bool:
        """Whether a sequence has received rows, so that only the remaining rows can be sent."""
        return self.report is not None and not self.report.rows["status"].isin(_NOT_REACHED).all()

    def close(self) -> None:
        """Close the widget and send nothing after the current request."""
        self._is_cancelled = True
        super().close()

    def ready(self) -> None:
        """Send all content to a new view."""
        self._show_columns()
        super().ready()
        if "sequences" not in self._shown:
            self._load(refresh=False)

    def reload(self) -> None:
        """Read the sequences and mailboxes again."""
        self._load(refresh=True)

    def check(self, value: Mapping[str, Any]) -> None:
        """Plan the rows without sending them."""
        if self.busy:
            return
        self.value = dict(value)
        client = self._client()
        if problems := self._problems(client):
            self._notify(notice("error", "The rows cannot be checked yet.", problems))
            return
        # Later plans use the same state of the frame.
        frame = self.plan.frame if self.plan and self._is_fixed else copy_frame(self._df)
        make = partial(self._make_plan, frame, self.value, client)
        self._start("Checking rows", make, partial(self._on_plan, self.value))

    def submit(self, plan: int, value: Mapping[str, Any]) -> None:
        """Send the plan with this number and choice; a second call does nothing."""
        if self.busy or plan == self._sent_number:
            return
        why = self._why_not(plan, read_value(value))
        if not why and self.plan and self.plan.client is not self._client():
            why = (
                "The connection has changed since these rows were checked. Reload and check rows "
                "again."
            )
        if why or self.plan is None:
            self._notify(notice("warning", f"{why} Nothing was sent."))
            self._refresh()
            self.send({"kind": "refused"})
            return
        self._sent_number = self._plan_number
        rows = len(self.plan.positions)
        send = partial(submit, self.plan, journal=self._path, progress=False)
        self._start_run(f"Adding {plural(rows, 'lead')} to {_target(self.plan)}", rows, send)

    def retry(self, report: int) -> None:
        """Send the unknown rows of the report with this number once more."""
        if self.busy or self.report is None or report != self._report_number:
            return
        rows = int((self.report.rows["status"] == statuses.UNKNOWN).sum())
        send = partial(self.report._resend_unknown, client=None)
        self._start_run(f"Sending {plural(rows, 'unknown row')} once more", rows, send)

    def cancel(self) -> None:
        """Stop sending after the current request, or cancel reading."""
        if not self._is_sending():
            self._cancellation.set()
            return
        self._is_cancelled = True
        self._refresh()
        if not self.busy:
            # Refresh again, because the run ended while another thread handled the click.
            self._refresh()

    def show(self, status: str) -> None:
        """Show the outcomes of all runs for the rows of one status, or for all rows."""
        if self.report is not None:
            content = outcome_content(self.report, self._reported, status)
            self._show("outcome", notes=[*map(printable, self.report.notes)], **content)

    @traitlets.validate("value")
    def _check_value(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        return read_value(proposal["value"])

    @traitlets.observe("value")
    def _on_value(self, _change: object) -> None:
        passed = self._client_argument
        self.code = code_for(
            self.value,
            self._df.columns,
            journal=self._journal,
            client="" if passed is None else variable_of(passed, "client"),
            frame=variable_of(self._passed, "df"),
            is_pandas=self._df is self._passed,
        )
        self._refresh()

    def _problems(self, client: Client) -> list[str]:
        value = self.value
        problems: list[str] = []
        if value["sequence_id"] is None:
            problems.append("No sequence is chosen.")
        if self._is_fixed and self.plan and self.plan.client and self.report:
            before = (self.report.sequence_id, self.plan.client.base_url)
            now = (value["sequence_id"], client.base_url)
            if (*before, *self._columns(self._planned)) != (*now, *self._columns(value)):
                problems.append(
                    "Rows of this frame were sent to another sequence, or with other columns of "
                    "emails and profile URLs. Choose these again, or make a new widget."
                )
        return problems

    @staticmethod
    def _columns(value: Mapping[str, Any]) -> tuple[str | None, str | None]:
        return value[EMAIL], value[PROFNET_URL]

    def _make_plan(
        self, frame: pd.DataFrame, value: Mapping[str, Any], client: Client
    ) -> SubmissionPlan:
        """Plan the rows that are not recorded as sent; runs in a thread."""
        plan = make_plan(frame, client=client, **plan_arguments(value))
        runs = self._runs.setdefault((client.base_url, plan.sequence_id), [])
        plan = replace(plan, runs=runs)
        return plan.only(preview(plan, self._path).resumption.rows)

    def _why_not(self, number: int, value: Mapping[str, Any]) -> str:
        """Return the reason why the plan with this number and choice cannot be sent, or ""."""
        if self.plan is None:
            return "Check rows first."
        if number == self._sent_number:
            return "This plan was used. Check rows again to send the remaining rows."
        if number != self._plan_number or value != self._planned:
            return "The plan is out of date. Check rows again."
        if why := self.plan.sequence.refusal:
            return f"{why.capitalize()} and accepts no leads. Choose another sequence."
        return "" if len(self.plan.positions) else "There is nothing to send."

    def _plan_note(self, plan: SubmissionPlan) -> str:
        """Return a note about rows that the plan excludes, or ""."""
        is_lead = plan.checked.is_valid & (plan.kept == np.arange(len(plan.kept)))
        if excluded := int(is_lead.sum()) - len(plan.positions):
            where = "" if self._path is None else f" or in the journal {self._path}"
            people = plural(excluded, "person", "people")
            return f"Excluded: {people} recorded in this session{where}."
        return ""

    def _on_plan(self, value: Mapping[str, Any], plan: SubmissionPlan, warnings: list[str]) -> None:
        self.plan, self._planned = plan, value
        self._plan_number += 1
        self._show("plan", value=value, note=self._plan_note(plan), **plan_content(plan))
        self._notify(warnings=warnings)
        self._refresh()

    def _refresh(self) -> None:
        """Send the available actions to the page."""
        why, plan = self._why_not(self._plan_number, self.value), self.plan
        phase = "cancelling" if self._is_cancelled else "sending"
        button = ""
        if plan and not why:
            button = f"Add {plural(len(plan.positions), 'lead')} to {_target(plan)}"
        self.state = {
            "plan": self._plan_number,
            "sent": self._sent_number,
            "report": self._report_number,
            "button": button,
            "why_not": why,
            "phase": phase if self._is_sending() else "",
            "is_fixed": self._is_fixed,
            "journal": str(self._journal or ""),
        }

    def _load(self, *, refresh: bool) -> None:
        def work() -> tuple[pd.DataFrame, pd.DataFrame | OutreachError]:
            options: dict[str, Any] = {"refresh": refresh, "progress": False}
            options["client"] = self._client()
            listed = sequences(**options)
            try:
                return listed, mailboxes(**options)
            except OutreachError as error:
                # Most sequences send from the mailboxes in their settings.
                return listed, error

        def loaded(
            tables: tuple[pd.DataFrame, pd.DataFrame | OutreachError], warnings: list[str]
        ) -> None:
            listed, others = tables
            self._show("sequences", options=sequence_options(listed))
            notices = []
            if isinstance(others, pd.DataFrame):
                self._show("mailboxes", options=mailbox_options(others))
            else:
                notices.append(error_notice(others))
            self._notify(*notices, warnings=warnings)

        self._start("Reading sequences and mailboxes", work, loaded)

    def _watch(self, run: Run) -> bool:
        """Show a run's progress; stop it after Cancel, or when the kernel shuts down."""
        self._background.deliver(self._show_progress, run.tally)
        return self._is_cancelled or self._background.over

    def _start_run(self, action: str, rows: int, send: Callable[..., SubmissionReport]) -> None:
        self._action, self._is_cancelled = action, False
        with self.hold_sync():
            work = partial(send, watch=self._watch)
            self._start(
                action, work, self._on_sent, lambda _error: self._show_run_result(), total=rows
            )
            self._refresh()

    def _show_progress(self, tally: Mapping[str, int]) -> None:
        if not self._is_sending():
            return
        kinds = statuses.count_kinds(tally)
        total = self.progress[1]
        self.progress = [min(sum(kinds.values()), total), total]
        so_far = ", ".join(f"{rows:,} {kind}" for kind, rows in kinds.items())
        busy = f"{self._action}: {so_far}"
        if busy != self.busy:
            # New outcomes mean that the wait is over.
            self.busy, self.status = busy, ""

    def _on_sent(self, report: SubmissionReport, warnings: list[str]) -> None:
        self.report, self._reported = report, self._columns(self._planned)
        self._show_run_result()
        self._notify(*_report_notices(report, warnings))

    def _show_run_result(self) -> None:
        """Show the available actions and the outcomes after a run."""
        self._report_number += 1
        self._refresh()
        self.show(self._shown.get("outcome", {}).get("status", ""))

    def _show_columns(self) -> list[dict[str, Any]]:
        options = column_options(self._df.columns.to_list())
        self._show("columns", options=options)
        return options


def _target(plan: SubmissionPlan) -> str:
    return repr(plan.sequence.name or plan.sequence_id)


def _report_notices(report: SubmissionReport, warnings: Iterable[str]) -> list[dict[str, Any]]:
    is_refused = isinstance(report.error, ValidationFailedError)
    details = error_notice(report.error)["details"] if report.error is not None else []
    notices = [notice("error" if is_refused else "warning", text, details) for text in warnings]
    in_sequence = statuses.IN_SEQUENCE | {statuses.ALREADY_IN_SEQUENCE}
    count = int(report.rows["status"].isin(in_sequence).sum())
    rows = plural(len(report.rows), "row")
    verb = "is" if len(report.rows) == 1 else "are"
    return [*notices, notice("info", f"{count:,} of {rows} {verb} in the sequence now.")]
