"""AddToSequence: check a frame's rows and add them to a sequence by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import pandas as pd
import traitlets

from outreach_frames import spec
from outreach_frames.client import connect
from outreach_frames.client.client import Client
from outreach_frames.common.atomic_files import expanded
from outreach_frames.common.text import plural, printable
from outreach_frames.errors import OutreachError, ValidationFailedError
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.planning.mapping import EMAIL, MAILBOX, MAILBOXES, PROFNET_URL
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.run import Run
from outreach_frames.resources.mailboxes import mailboxes
from outreach_frames.resources.sequences import sequences
from outreach_frames.tables.interchange import FrameLike, as_frame
from outreach_frames.widgets.add_to_sequence.sender import Sender
from outreach_frames.widgets.add_to_sequence.state import (
    FIELD_RULE,
    code_for,
    column_options,
    guess_columns,
    mailbox_options,
    read_value,
    sequence_options,
)
from outreach_frames.widgets.add_to_sequence.tables import outcome_content, plan_content
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
        path = None if journal is None else expanded(journal).absolute()
        self._sender = Sender(self._df, path)
        self._report_number = 0
        self._action = ""
        super().__init__(client)
        known = client or connect.current()
        networks = {spec.NETWORK_NAME, *([known._session.network_name] if known else [])}
        names = [one["name"] for one in self._show_columns() if one["name"] is not None]
        self.value = guess_columns(names, networks)

    @property
    def plan(self) -> SubmissionPlan | None:
        """The latest plan."""
        return self._sender.plan

    @property
    def report(self) -> SubmissionReport | None:
        """The outcome of every row after all runs; None before the first run."""
        return self._sender.report

    @property
    def failed(self) -> pd.DataFrame:
        """The rows that were neither added nor skipped, with status, detail and error_code."""
        if self.report is None:
            return self._df.iloc[:0]
        is_failed = self.report.rows["status"].isin(statuses.FAILED)
        return self.report.frame[is_failed.to_numpy()]

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
        make = self._sender.planner(self.value, client)
        self._start("Checking rows", make, partial(self._on_plan, self.value))

    def submit(self, plan: int, value: Mapping[str, Any]) -> None:
        """Send the plan with this number and choice; a second call does nothing."""
        sender = self._sender
        if self.busy or plan == sender.sent_number:
            return
        why = sender.why_not(plan, read_value(value))
        if not why and sender.client is not self._client():
            why = (
                "The connection has changed since these rows were checked. Reload and check rows "
                "again."
            )
        if why:
            self._notify(notice("warning", f"{why} Nothing was sent."))
            self._refresh()
            self.send({"kind": "refused"})
            return
        sender.sent_number = sender.number
        rows = sender.lead_count
        self._start_run(f"Adding {plural(rows, 'lead')} to {sender.target}", rows, sender.send)

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
            self._task.set()
            return
        self._is_cancelled = True
        self._refresh()
        if not self.busy:
            # Refresh again, because the run ended while another thread handled the click.
            self._refresh()

    def show(self, status: str) -> None:
        """Show the outcomes of all runs for the rows of one status, or for all rows."""
        if self.report is not None:
            content = outcome_content(self.report, self._sender.report_columns, status)
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
        value, fixed = self.value, self._sender.sequence_id
        problems: list[str] = []
        if value["sequence_id"] is None:
            problems.append("No sequence is chosen.")
        if fixed is not None:
            before = (fixed, self._sender.client.base_url, *self._sender.columns)
            now = (value["sequence_id"], client.base_url, value[EMAIL], value[PROFNET_URL])
            if before != now:
                problems.append(
                    "Rows of this frame were sent to another sequence, or with other columns of "
                    "emails and profile URLs. Choose these again, or make a new widget."
                )
        return problems

    def _on_plan(self, value: Mapping[str, Any], plan: SubmissionPlan, warnings: list[str]) -> None:
        sender = self._sender
        sender.set_plan(plan, value)
        self._show("plan", value=value, note=sender.plan_note(), **plan_content(plan))
        self._notify(warnings=warnings)
        self._refresh()

    def _refresh(self) -> None:
        """Send the available actions to the page."""
        sender = self._sender
        why = sender.why_not(sender.number, self.value)
        phase = "cancelling" if self._is_cancelled else "sending"
        self.state = {
            "plan": sender.number,
            "sent": sender.sent_number,
            "report": self._report_number,
            "button": "" if why else sender.button(),
            "why_not": why,
            "phase": phase if self._is_sending() else "",
            "is_fixed": sender.is_fixed,
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
            found: tuple[pd.DataFrame, pd.DataFrame | OutreachError], warnings: list[str]
        ) -> None:
            listed, others = found
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
        self._sender.set_report(report)
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


def _report_notices(report: SubmissionReport, warnings: Iterable[str]) -> list[dict[str, Any]]:
    is_refused = isinstance(report.error, ValidationFailedError)
    details = error_notice(report.error)["details"] if report.error is not None else []
    notices = [notice("error" if is_refused else "warning", text, details) for text in warnings]
    in_sequence = statuses.IN_SEQUENCE | {statuses.ALREADY_IN_SEQUENCE}
    count = int(report.rows["status"].isin(in_sequence).sum())
    rows = plural(len(report.rows), "row")
    verb = "is" if len(report.rows) == 1 else "are"
    return [*notices, notice("info", f"{count:,} of {rows} {verb} in the sequence now.")]
