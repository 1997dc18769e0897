"""AddToSequence: add a frame's rows to a sequence by hand; checked, shown, and sent once."""

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
from outreach_frames.leads.planning.mapping import DISTRIBUTION, MAILBOXES
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.run import Directive
from outreach_frames.resources.mailboxes import mailboxes
from outreach_frames.resources.sequences import sequences
from outreach_frames.tables.interchange import FrameLike, as_frame
from outreach_frames.widgets.add_to_sequence.column_guesses import guess_columns
from outreach_frames.widgets.add_to_sequence.sender import Listener, Sender
from outreach_frames.widgets.add_to_sequence.state import (
    FIELD_RULE,
    code_of,
    column_options,
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
from outreach_frames.widgets.base import Panel, error_notice, notice, source

# What the page needs to know about the interface.
_FORM: Final[dict[str, Any]] = {
    "identifiers": list(spec.LEAD_IDENTIFIERS),
    "overrides": [{"name": field.name, "note": field.note} for field in spec.OVERRIDES],
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

# What the page calls the directives of a run.
_PHASES: Final[Mapping[Directive, str]] = {
    "continue": "sending",
    "drain": "cancelling",
    "abort": "aborting",
}


class AddToSequence(Panel):
    """Add a frame's rows to a sequence by hand, and see what becomes of each.

    Nothing is sent until you press the button that says how many leads go to which sequence. It
    sends the plan that is shown: the frame as it was when its rows were checked. A plan is sent
    once. Afterwards only rows that were refused or never sent can be sent, to the same sequence:
    rows that were added or skipped are settled, and rows that may have arrived are sent again only
    by a button of their own.

    Parameters
    ----------
    df : DataFrame, also of Polars, DuckDB or Arrow
        One row per lead; it is not changed.
    client : Client, optional
        By default the one of the last `connect`.
    journal : str or Path, optional
        A file that records what became of each row, whatever ends the run, even the kernel's end.

    Attributes
    ----------
    value : dict
        The choice; can be assigned, also in part: sequence_id, email, profnet_url (columns), data
        ({field: column}), overrides ({override: True}), leads_distribution, mailboxes.
    plan : SubmissionPlan or None
        The latest plan.
    report : SubmissionReport or None
        What became of every row in all runs together; None before anything was sent.
    failed : DataFrame
        The rows that were neither added nor skipped, with status, detail and error_code.
    code : str
        Python that does the same.

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
        "try_out",
        "submit",
        "cancel",
        "abort",
        "show",
        "retry",
        "save",
    )

    immediate: ClassVar[tuple[str, ...]] = ("cancel", "abort")

    _esm = source("common.js", "add_to_sequence/choice.js", "add_to_sequence/widget.js")
    _css = source("common.css", "add_to_sequence/widget.css")

    value: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    code: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    form: traitlets.Dict[str, Any] = traitlets.Dict(_FORM).tag(sync=True)
    state: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)

    def __init__(
        self, df: FrameLike, client: Client | None = None, *, journal: str | Path | None = None
    ) -> None:
        # What a run is to do; a widget that is refused below is closed all the same.
        self._directive: Directive = "continue"
        self._df = as_frame(df, "AddToSequence")
        self._is_pandas = self._df is df
        # Absolute from here on: the working folder may change before rows are sent.
        place = None if journal is None else expanded(journal).absolute()
        self._sender = Sender(self._df, self._current_directive, place)
        self._report_number = 0
        self._action = ""
        self._read_from: Client | None = None
        self._sequences: dict[str | None, dict[str, Any]] = {}
        self._outcomes: Outcomes | None = None
        super().__init__(client)
        known = client or connect.current()
        networks = {spec.NETWORK_NAME, *([known.network_name] if known else [])}
        names = [one["name"] for one in self._show_columns() if one["name"] is not None]
        guesses = guess_columns(self._df, names, networks)
        self._show("guesses", notes=[one.note for one in guesses.values() if one.note])
        self.value = {field: one.column for field, one in guesses.items()}

    @property
    def plan(self) -> SubmissionPlan | None:
        """The latest plan."""
        return self._sender.plan

    @property
    def report(self) -> SubmissionReport | None:
        """What became of every row in all runs together; None before anything was sent."""
        return self._sender.report

    @property
    def failed(self) -> pd.DataFrame:
        """The rows that were neither added nor skipped, with status, detail and error_code."""
        return self._df.iloc[:0] if self.report is None else failed_rows(self.report)

    def close(self) -> None:
        """Close the widget; the request under way is the last one."""
        self._directive = "drain"
        super().close()

    def ready(self) -> None:
        """Send a new view in the page everything it shows."""
        self._show_columns()
        super().ready()
        if "sequences" not in self._shown:
            self._load(refresh=False)

    def reload(self) -> None:
        """Read the sequences and mailboxes again."""
        self._load(refresh=True)

    def check(self, value: Mapping[str, Any]) -> None:
        """Plan the rows; nothing is sent."""
        if self.busy:
            return
        self.value = dict(value)
        client = self._client()
        if problems := self._problems(client):
            self._notify(notice("error", "The rows cannot be checked yet.", problems))
            return
        make = self._sender.planning(self.value, client)
        self._start("Checking rows", make, partial(self._planned, self.value))

    def try_out(self, plan: int) -> None:
        """Show what would become of each row; nothing is sent."""
        if not self.busy and self.plan is not None and plan == self._sender.number:
            outcomes = self._sender.tried_out()
            self._show_outcomes("dry", "Dry run: nothing was sent.", outcomes)

    def submit(self, plan: int, value: Mapping[str, Any], again: bool = False) -> None:
        """Send the plan that the page showed under a number; a second call does nothing."""
        sender = self._sender
        if self.busy or plan == sender.sent_number:
            return
        chosen = read_value(value)
        if self.plan is not None:
            # Another widget may have sent them since the rows were checked.
            sender.look_back()
        why = sender.why_not(plan, chosen, again=again)
        if not why and chosen != self.value:
            why = "The choice has changed meanwhile. Check rows again."
        if not why and sender.client is not self._client():
            why = (
                "These rows were checked with a connection other than the current one. Reload, and "
                "check rows again."
            )
        if why:
            self._notify(notice("warning", f"{why} Nothing was sent."))
            self._refresh()
            self.send({"kind": "refused"})
            return
        self._show_outcomes("live", "Sending.", sender.begin())
        rows = sender.lead_count
        self._run(f"Adding {plural(rows, 'lead')} to {sender.target}", rows, sender.send)

    def retry(self, report: int) -> None:
        """Send the unknown rows of the report of a number once more."""
        sender = self._sender
        if self.busy or self.report is None or sender.is_lost or report != self._report_number:
            return
        rows = int((self.report.rows["status"] == statuses.UNKNOWN).sum())
        self._run(f"Sending {plural(rows, 'unknown row')} once more", rows, sender.send_again)

    def cancel(self) -> None:
        """Send nothing after the request under way, or cancel what is being read."""
        if not self._is_sending():
            self._task.set()
        elif self._directive == "continue":
            self._direct("drain")

    def abort(self) -> None:
        """Abort the request under way of a cancelled run."""
        if self._is_sending() and self._directive == "drain":
            self._direct("abort")

    def show(self, status: str) -> None:
        """Show the rows of one status, or all."""
        if self._outcomes is not None:
            content = outcome_content(self._outcomes, status)
            self._show("outcome", **{**self._shown["outcome"], **content})

    def save(self, folder: str, replace: bool = False) -> None:
        """Write the outcomes as CSV files; existing files are replaced only on request."""
        if self.report is None or self.busy:
            return
        if not folder.strip():
            raise InvalidInputError("Name a folder for the files.")
        try:
            place = Path(folder.strip()).expanduser().resolve()
            files = [f"{kind}.csv" for kind in statuses.KINDS]
            existing = [name for name in files if (place / name).exists()]
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidInputError(f"Files cannot be saved in {folder}: {error}") from error
        if existing and not replace:
            self._show("saved", folder=folder, existing=existing, words="")
            return
        self.report.to_csv(place)
        rows = plural(len(self.failed), "failed row")
        words = f"Saved in {place}: {rows} in failed.csv, the others beside it."
        self._show("saved", folder=folder, existing=[], words=words)

    @traitlets.validate("value")
    def _check_value(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        return read_value(proposal["value"])

    @traitlets.observe("value")
    def _on_value(self, _change: object) -> None:
        self.code = code_of(
            self.value,
            self._df.columns,
            journal=self._sender.journal,
            with_client=self._given_client is not None,
            is_pandas=self._is_pandas,
        )
        self._refresh()

    def _problems(self, client: Client) -> list[str]:
        """Return why no plan can be made from the choice."""
        value, fixed = self.value, self._sender.sequence_id
        option = self._sequences.get(value["sequence_id"])
        problems: list[str] = []
        if value["sequence_id"] is None:
            problems.append("No sequence is chosen.")
        elif option is not None and not option["accepts"]:
            problems.append(f"{option['name']!r} is {option['why']}. Choose another sequence.")
        if self._read_from not in {None, client}:
            # The same id may stand for another sequence in another account.
            problems.append(
                "The sequences were read with a connection other than the current one. Reload, and "
                "choose again."
            )
        if fixed is not None and (
            fixed != value["sequence_id"] or self._sender.client.base_url != client.base_url
        ):
            problems.append(
                "Rows of this frame went to another sequence, so the rest can only go there too. "
                "For this sequence, make a new widget."
            )
        return problems

    def _planned(self, value: Mapping[str, Any], plan: SubmissionPlan, warnings: list[str]) -> None:
        sender = self._sender
        sender.take(plan, value)
        self._show_report()
        self._show("plan", value=value, note=sender.note(), **plan_content(plan))
        self._notify(warnings=warnings)
        self._refresh()

    def _refresh(self) -> None:
        """Send the page what can be done now."""
        sender = self._sender
        why = sender.why_not(sender.number, self.value, again=True)
        self.state = {
            "plan": sender.number,
            "sent": sender.sent_number,
            "report": self._report_number,
            "button": "" if why else sender.button(),
            "why_not": why,
            "sent_before": sender.sent_before,
            "phase": _PHASES[self._directive] if self._is_sending() else "",
            "is_fixed": sender.goes_on,
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
                # Mailboxes are only needed for a distribution of one's own.
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

    def _current_directive(self) -> Directive:
        """Return what a run is to do; once the kernel shuts down, nobody learns what was sent."""
        is_over = self._directive == "continue" and self._background.over
        return "drain" if is_over else self._directive

    def _direct(self, directive: Directive) -> None:
        self._directive = directive
        self._refresh()
        if not self.busy:
            # The run ended while the click arrived in another thread.
            self._refresh()

    def _run(self, action: str, rows: int, send: Callable[[Listener], SubmissionReport]) -> None:
        """Send rows in a thread, and show the progress."""
        self._action, self._directive = action, "continue"
        work = partial(send, partial(self._background.deliver, self._show_progress))
        with self.hold_sync():
            self._start(action, work, self._sent, self._failed, total=rows)
            self._refresh()

    def _show_progress(self, tally: Mapping[str, int], outcomes: Outcomes | None) -> None:
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
            # A response ends the wait for it.
            self.busy, self.status = busy, ""
        if outcomes is not None:
            self._show_outcomes("live", "Sending.", outcomes)

    def _sent(self, report: SubmissionReport, warnings: list[str]) -> None:
        self._sender.take_report(report)
        self._end()
        self._notify(*_report_notices(report, warnings))

    def _failed(self, error: BaseException) -> None:
        self._sender.failed(error)
        self._end()

    def _end(self) -> None:
        """Show what can be done after a run, and what became of the rows if that is known."""
        self._report_number += 1
        self._refresh()
        if not self._sender.is_lost:
            self._show_report()

    def _show_report(self) -> None:
        """Show what became of the rows, or nothing if none was sent."""
        outcomes, report = self._sender.outcomes, self.report
        if outcomes is not None and report is not None:
            self._show_outcomes("sent", "What became of the rows.", outcomes, report.notes)
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
    """Return the messages about a report: warnings, all validation errors, and the count."""
    is_refused = isinstance(report.error, ValidationFailedError)
    details = error_notice(report.error)["details"] if report.error is not None else []
    notices = [notice("error" if is_refused else "warning", text, details) for text in warnings]
    in_sequence = statuses.IN_SEQUENCE | {statuses.ALREADY_IN_SEQUENCE}
    there = int(report.rows["status"].isin(in_sequence).sum())
    rows = plural(len(report.rows), "row")
    are = "is" if len(report.rows) == 1 else "are"
    return [*notices, notice("info", f"{there:,} of {rows} {are} in the sequence now.")]
