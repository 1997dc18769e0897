"""AddToSequence: check a frame's rows and add them to a sequence by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from outreach_frames.errors import InvalidInputError, OutreachError, ValidationFailedError
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.planning.mapping import (
    DISTRIBUTION,
    EMAIL,
    MAILBOX,
    MAILBOXES,
    PROFNET_URL,
)
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.run import Directive
from outreach_frames.resources.mailboxes import mailboxes
from outreach_frames.resources.sequences import sequences
from outreach_frames.tables.interchange import FrameLike, as_frame
from outreach_frames.widgets.add_to_sequence.sender import Listener, Sender
from outreach_frames.widgets.add_to_sequence.state import (
    FIELD_RULE,
    code_for,
    column_options,
    guess_columns,
    mailbox_options,
    read_value,
    sequence_options,
)
from outreach_frames.widgets.add_to_sequence.tables import (
    Outcomes,
    failed_rows,
    outcome_content,
    plan_content,
)
from outreach_frames.widgets.base import Panel, error_notice, notice, read_assets

# The facts of the interface that the page needs.
_FORM: Final[dict[str, Any]] = {
    "identifiers": list(spec.LEAD_IDENTIFIERS),
    "overrides": [{"name": field.name, "note": field.note} for field in spec.OVERRIDES],
    "mailbox": MAILBOX,
    "distribution": DISTRIBUTION,
    "distributions": list(spec.LEADS_DISTRIBUTIONS),
    "default_distribution": spec.DEFAULT_LEADS_DISTRIBUTION,
    "custom_mailboxes": spec.MAILBOXES_LEADS_DISTRIBUTION,
    "mailboxes": MAILBOXES,
    "field_pattern": spec.DATA_NAME_PATTERN,
    "field_length": spec.MAX_DATA_NAME_LENGTH,
    "field_rule": FIELD_RULE,
    "max_fields": spec.MAX_DATA_FIELDS,
}

# The page's names for the directives of a run.
_PHASES: Final[Mapping[Directive, str]] = {
    "continue": "sending",
    "drain": "cancelling",
    "abort": "aborting",
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
        profnet_url (columns), data ({field: column}), overrides ({override: True}), mailbox (a
        column), leads_distribution, mailboxes.
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
    >>> adding.code.replace(sequence_id, "...")
    'report = df.outreach.add_to_sequence("...", email="E-Mail")'
    """

    actions: ClassVar[tuple[str, ...]] = (
        "ready",
        "reload",
        "check",
        "dry_run",
        "submit",
        "cancel",
        "abort",
        "show",
        "retry",
        "save",
    )

    immediate: ClassVar[tuple[str, ...]] = ("cancel", "abort")

    _esm = read_assets("common.js", "add_to_sequence/choice.js", "add_to_sequence/widget.js")
    _css = read_assets("common.css", "add_to_sequence/widget.css")

    value: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    code: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    form: traitlets.Dict[str, Any] = traitlets.Dict(_FORM).tag(sync=True)
    state: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)

    def __init__(
        self, df: FrameLike, client: Client | None = None, *, journal: str | Path | None = None
    ) -> None:
        # Set the directive first, because `close` needs it even if the arguments are invalid.
        self._directive: Directive = "continue"
        self._df = as_frame(df, "AddToSequence")
        self._is_pandas = self._df is df
        # Make the path absolute, because the working folder may change before rows are sent.
        path = None if journal is None else expanded(journal).absolute()
        self._sender = Sender(self._df, self._read_directive, path)
        self._report_number = 0
        self._action = ""
        self._read_from: Client | None = None
        self._sequences: dict[str | None, dict[str, Any]] = {}
        self._outcomes: Outcomes | None = None
        super().__init__(client)
        known = client or connect.current()
        networks = {spec.NETWORK_NAME, *([known.network_name] if known else [])}
        names = [one["name"] for one in self._show_columns() if one["name"] is not None]
        guesses = guess_columns(names, networks)
        self._show("guesses", notes=[one.note for one in guesses.values() if one.note])
        self.value = {field: one.column for field, one in guesses.items()}

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
        return self._df.iloc[:0] if self.report is None else failed_rows(self.report)

    def close(self) -> None:
        """Close the widget and send nothing after the current request."""
        self._directive = "drain"
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

    def dry_run(self, plan: int) -> None:
        """Show the outcomes of a dry run of the plan."""
        if not self.busy and self.plan is not None and plan == self._sender.number:
            outcomes = self._sender.dry_run()
            self._show_outcomes("dry", "Dry run: nothing was sent.", outcomes)

    def submit(self, plan: int, value: Mapping[str, Any]) -> None:
        """Send the plan with this number and choice; a second call does nothing."""
        sender = self._sender
        if self.busy or plan == sender.sent_number:
            return
        chosen = read_value(value)
        why = sender.why_not(plan, chosen)
        if not why and chosen != self.value:
            why = "The choice has changed. Check rows again."
        if not why and sender.client is not self._client():
            why = (
                "The connection has changed since these rows were checked. Reload and check rows "
                "again."
            )
        try:
            if why:
                raise InvalidInputError(f"{why} Nothing was sent.")
            sender.mark_sent()
        except InvalidInputError as error:
            self._notify(notice("warning", str(error)))
            self._refresh()
            self.send({"kind": "refused"})
            return
        self._show_report()
        rows = sender.lead_count
        self._start_run(f"Adding {plural(rows, 'lead')} to {sender.target}", rows, sender.send)

    def retry(self, report: int) -> None:
        """Send the unknown rows of the report with this number once more."""
        sender = self._sender
        if self.busy or self.report is None or report != self._report_number:
            return
        rows = int((self.report.rows["status"] == statuses.UNKNOWN).sum())
        self._start_run(
            f"Sending {plural(rows, 'unknown row')} once more", rows, sender.resend_unknown
        )

    def cancel(self) -> None:
        """Stop sending after the current request, or cancel reading."""
        if not self._is_sending():
            self._task.set()
        elif self._directive == "continue":
            self._set_directive("drain")

    def abort(self) -> None:
        """Abort the current request of a cancelled run."""
        if self._is_sending() and self._directive == "drain":
            self._set_directive("abort")

    def show(self, status: str) -> None:
        """Show the rows of one status, or all rows."""
        if self._outcomes is not None:
            content = outcome_content(self._outcomes, status)
            self._show("outcome", **{**self._shown["outcome"], **content})

    def save(self, folder: str, replace: bool = False) -> None:
        """Write the outcomes as CSV files; with `replace`, replace existing files."""
        if self.report is None or self.busy:
            return
        if not folder.strip():
            raise InvalidInputError("The folder for the files has no name. Enter a folder.")
        try:
            target = Path(folder.strip()).expanduser().resolve()
            files = [f"{kind}.csv" for kind in statuses.KINDS]
            existing = [name for name in files if (target / name).exists()]
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidInputError(f"Files cannot be saved in {folder}: {error}") from error
        if existing and not replace:
            self._show("saved", folder=folder, existing=existing, words="")
            return
        self.report.to_csv(target)
        rows = plural(len(self.failed), "failed row")
        words = f"Saved in {target}: {rows} in failed.csv, other rows in further files."
        self._show("saved", folder=folder, existing=[], words=words)

    @traitlets.validate("value")
    def _check_value(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        return read_value(proposal["value"])

    @traitlets.observe("value")
    def _on_value(self, _change: object) -> None:
        self.code = code_for(
            self.value,
            self._df.columns,
            journal=self._sender.journal,
            with_client=self._client_argument is not None,
            is_pandas=self._is_pandas,
        )
        self._refresh()

    def _problems(self, client: Client) -> list[str]:
        value, fixed = self.value, self._sender.sequence_id
        option = self._sequences.get(value["sequence_id"])
        problems: list[str] = []
        if value["sequence_id"] is None:
            problems.append("No sequence is chosen.")
        elif option is not None and not option["accepts"]:
            problems.append(f"{option['name']!r} is {option['why']}. Choose another sequence.")
        if self._read_from not in {None, client}:
            # The same id may belong to another sequence in another account.
            problems.append(
                "The connection has changed since the sequences were read. Reload and choose again."
            )
        if fixed is None:
            return problems
        if fixed != value["sequence_id"] or self._sender.client.base_url != client.base_url:
            problems.append(
                "Rows of this frame were sent to another sequence, so the remaining rows can only "
                "be sent there. Make a new widget for the chosen sequence."
            )
        if self._sender.columns != (value[EMAIL], value[PROFNET_URL]):
            problems.append(
                "Rows of this frame were sent with other columns of emails and profile URLs, by "
                "which the remaining rows are compared. Choose those columns again."
            )
        return problems

    def _on_plan(self, value: Mapping[str, Any], plan: SubmissionPlan, warnings: list[str]) -> None:
        sender = self._sender
        sender.set_plan(plan, value)
        self._show_report()
        self._show("plan", value=value, note=sender.plan_note(), **plan_content(plan))
        self._notify(warnings=warnings)
        self._refresh()

    def _refresh(self) -> None:
        """Send the available actions to the page."""
        sender = self._sender
        why = sender.why_not(sender.number, self.value)
        self.state = {
            "plan": sender.number,
            "sent": sender.sent_number,
            "report": self._report_number,
            "button": "" if why else sender.button(),
            "why_not": why,
            "phase": _PHASES[self._directive] if self._is_sending() else "",
            "is_fixed": sender.is_fixed,
            "journal": str(sender.journal or ""),
        }

    def _load(self, *, refresh: bool) -> None:
        def work() -> tuple[Client, pd.DataFrame, pd.DataFrame | OutreachError]:
            client = self._client()
            options: dict[str, Any] = {"refresh": refresh, "progress": False, "client": client}
            listed = sequences(**options)
            try:
                return client, listed, mailboxes(**options)
            except OutreachError as error:
                # Mailboxes are only needed for a custom distribution.
                return client, listed, error

        def loaded(
            found: tuple[Client, pd.DataFrame, pd.DataFrame | OutreachError], warnings: list[str]
        ) -> None:
            self._read_from, listed, others = found
            options = sequence_options(listed)
            self._sequences = {option["id"]: option for option in options}
            self._show("sequences", options=options)
            notices = []
            if isinstance(others, pd.DataFrame):
                self._show("mailboxes", options=mailbox_options(others))
            else:
                notices.append(error_notice(others))
            self._notify(*notices, warnings=warnings)

        self._start("Reading sequences and mailboxes", work, loaded)

    def _read_directive(self) -> Directive:
        """Return the run's directive; stop sending when the kernel shuts down."""
        is_over = self._directive == "continue" and self._background.over
        return "drain" if is_over else self._directive

    def _set_directive(self, directive: Directive) -> None:
        self._directive = directive
        self._refresh()
        if not self.busy:
            # Refresh again, because the run ended while another thread handled the click.
            self._refresh()

    def _start_run(
        self, action: str, rows: int, send: Callable[[Listener], SubmissionReport]
    ) -> None:
        self._action, self._directive = action, "continue"
        work = partial(send, partial(self._background.deliver, self._show_progress))
        with self.hold_sync():
            self._start(action, work, self._on_sent, self._on_failed, total=rows)
            self._refresh()

    def _show_progress(self, tally: Mapping[str, int]) -> None:
        if not self._is_sending():
            return
        kinds = dict.fromkeys(statuses.KINDS, 0)
        for status, rows in tally.items():
            kinds[statuses.kind_of(status)] += rows
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

    def _on_failed(self, _error: BaseException) -> None:
        self._sender.require_new_plan()
        self._show_run_result()

    def _show_run_result(self) -> None:
        """Show the available actions and the outcomes after a run."""
        self._report_number += 1
        self._refresh()
        self._show_report()

    def _show_report(self) -> None:
        """Show the outcomes; show nothing before the first run."""
        outcomes, report = self._sender.outcomes, self.report
        if outcomes is not None and report is not None:
            self._show_outcomes("sent", "Outcomes of all runs.", outcomes, report.notes)
        else:
            self._outcomes = None
            self._show("outcome", mode="")

    def _show_outcomes(
        self, mode: str, headline: str, outcomes: Outcomes, notes: Sequence[str] = ()
    ) -> None:
        status = self._shown.get("outcome", {}).get("status", "")
        self._outcomes = outcomes
        self._show(
            "outcome",
            mode=mode,
            headline=headline,
            notes=[*map(printable, notes)],
            **outcome_content(outcomes, status),
        )

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
