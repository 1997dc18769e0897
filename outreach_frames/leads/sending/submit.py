"""Send a plan, and always return a report of all rows."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames.client import connect
from outreach_frames.client.client import Client
from outreach_frames.common import terms
from outreach_frames.common.atomic_files import expanded, require_readable_file
from outreach_frames.common.signals import HeldSignals
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import ConfigurationError, InvalidInputError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.planning.checks import row_notes
from outreach_frames.leads.planning.mapping import read_send_again
from outreach_frames.leads.prepared import CheckedFrame, Positions, PreparedLeads, RunTarget
from outreach_frames.leads.sending.events import Entry
from outreach_frames.leads.sending.journal import Journal
from outreach_frames.leads.sending.journal_file import ANY_SEQUENCE, SequenceAddress, locate
from outreach_frames.leads.sending.memory import Memory, memory_of
from outreach_frames.leads.sending.outcome import RowOutcome
from outreach_frames.leads.sending.refusals import Chunk
from outreach_frames.leads.sending.report import SubmissionReport, remembered
from outreach_frames.leads.sending.rows import make_rows, mark_duplicates_of_unsent
from outreach_frames.leads.sending.run import Monitor, Run
from outreach_frames.leads.sending.supervise import supervise

# The statuses of incomplete rows, in the order of messages.
_INCOMPLETE: Final = (statuses.NOT_SENT, statuses.REJECTED, statuses.UNKNOWN, statuses.INVALID)
# What two entries of the same send and outcome have in common.
_SEND_OF: Final = attrgetter("outcome.status", "chunk", "attempts", "sent_at")


def submit(
    plan: PreparedLeads,
    *,
    journal: str | Path | None = None,
    progress: bool | None = None,
    dry_run: bool = False,
    watch: Monitor | None = None,
    client: Client | None = None,
    send_again: Sequence[str] | None = None,
) -> SubmissionReport:
    """Send a plan, and report all rows; raise only if nothing was sent.

    `watch` is called with the `Run` before the first request, a few times a second and at the end.

    >>> import outreach_frames as of
    >>> import pandas as pd
    >>> with of.connect("sandbox", cache=None) as client:
    ...     sequence_id = client.sandbox.sequence_ids["accepts_any"]
    ...     plan = pd.DataFrame({"email": ["ada@example.com"]}).outreach.plan(sequence_id)
    ...     submit(plan).rows["status"].tolist()
    ['added']
    """
    named = read_send_again(send_again)
    path = _journal_path(plan, journal)
    to_use = client or plan.client or connect.current()
    is_connected = to_use is not None and not to_use.closed
    # Without rows to send and without a journal to extend, no connection is needed.
    if dry_run or (path is None and not len(plan.positions) and not is_connected):
        return _report_preview(plan, path, client, dry_run=dry_run, send_again=named)
    client = _client_of(plan.client, client)
    return _PlanRun(plan, client, path, progress=progress, watch=watch, send_again=named).run()


def _report_preview(
    plan: PreparedLeads,
    path: Path | None,
    client: Client | None,
    *,
    dry_run: bool,
    send_again: frozenset[str],
) -> SubmissionReport:
    """Report a dry run, or a plan without rows to send and without a connection."""
    journal = preview(plan, path, client, send_again=send_again)
    outcome = RowOutcome(statuses.WOULD_SEND, "Dry run: the row would be sent.")
    if plan.sequence.refusal:
        detail = f"Dry run: the row would not be sent, because {plan.sequence.refusal}."
        outcome = RowOutcome(statuses.NOT_SENT, detail)
    entries = journal.entries() | dict.fromkeys(
        _planned(plan, journal.resumption.rows).tolist(), Entry(outcome, None, 0)
    )
    known: dict[str, Any] = {"client": client or plan.client, "dry_run": dry_run}
    report = _report_plan(plan, journal, entries, **known)
    if not dry_run:
        _add_error(report)
    _warn_all(_changed_data(journal), _incomplete(report))
    return report


def preview(
    plan: PreparedLeads,
    path: Path | None,
    client: Client | None = None,
    **options: Any,
) -> Journal:
    """Return a closed journal with what a run would do with each row; the file is unchanged."""
    client, path = client or plan.client or connect.current(), path and locate(path)
    with _open(plan, path, client, dry_run=True, **options) as journal:
        return journal


def _open(plan: PreparedLeads, path: Path | None, client: Client | None, **options: Any) -> Journal:
    """Open the journal of a run; only dry runs may lack a client."""
    base_url = None if client is None else client.base_url
    used = plan.runs[-1].base_url if plan.runs else None
    if None not in (used, base_url) and used != base_url:
        raise InvalidInputError(
            f"This plan was submitted before, to {used}; submitting it to {base_url} would send "
            "its leads twice. Create a new plan. Nothing was sent."
        )
    sequence = SequenceAddress(base_url, plan.sequence_id)
    memory = memory_of(base_url or "", plan.sequence_id)
    return Journal(plan, memory, path, sequence, **options)


def retry_unknown(
    plan: PreparedLeads, journal: str | Path, *, progress: bool | None = None
) -> SubmissionReport:
    """Send only the rows that a journal records as unknown, as a report's `retry_unknown` does."""
    require_readable_file(expanded(journal))
    path = _journal_path(plan, journal)
    client = _client_of(plan.client, None)
    return _PlanRun(plan, client, path, progress=progress, watch=None, earlier={}).run()


def rows_to_send(plan: PreparedLeads, path: Path | None, **options: Any) -> Positions:
    """Return the rows that a run with this journal file and these options would send now."""
    return _planned(plan, preview(plan, path, **options).resumption.rows)


def recorded_outcomes(plan: PreparedLeads) -> tuple[Positions, Counter[str]]:
    """Return the rows that a run would send now, and the number of other rows per recorded status.

    If the journal is unreadable, these are all planned rows.
    """
    try:
        found = preview(plan, _last_journal(plan)).resumption
    except OutreachError:
        return plan.positions, Counter()
    rows = np.array([*found.recorded], dtype=np.int64)
    planned = _planned(plan, rows[plan.checked.is_valid[rows]]).tolist()
    counts = Counter(found.recorded[row][0].entry.outcome.status for row in planned)
    return _planned(plan, found.rows), counts


def read_report(
    frame: CheckedFrame, journal: str | Path, client: Client | None
) -> SubmissionReport:
    """Report a frame's rows with the outcomes from a journal, without changing the journal."""
    require_readable_file(expanded(journal))
    path = locate(journal)
    with Journal(frame, Memory("", ""), path, ANY_SEQUENCE, dry_run=True) as read:
        assert read.file is not None
        sequence_id = read.file.sequence_id
    outcome = RowOutcome(statuses.NOT_SENT, "The journal has no record of the row.")
    no_record = Entry(outcome, None, 0)
    entries = dict.fromkeys(read.resumption.rows.tolist(), no_record)
    entries |= read.entries(with_refused=True)
    _warn_all(_changed_data(read))
    known = {"client": client, "journal": path, "sequence_id": sequence_id}
    return _report(frame, read, entries, **known)


def _journal_path(plan: PreparedLeads, journal: str | Path | None) -> Path | None:
    """Return the journal file of a run; reject another file than that of the plan's last run."""
    # An absolute path: the working folder may change before the unknown rows are resent.
    path, used = None if journal is None else locate(journal), _last_journal(plan)
    if used is not None and path != used:
        raise InvalidInputError(
            f"This plan was submitted before, with the journal {used}. Submit the plan with "
            "the same journal, so that the file has all records. Nothing was sent."
        )
    return path


def _last_journal(plan: PreparedLeads) -> Path | None:
    """Return the journal file of the plan's last run."""
    return plan.runs[-1].journal if plan.runs else None


def _planned(plan: PreparedLeads, rows: Positions) -> Positions:
    """Return the rows whose person the plan sends."""
    return rows[plan.is_planned(rows)]


@dataclass(frozen=True)
class _PlanRun:
    """A run of a plan; with the `earlier` entries of a report, a run of its unknown rows."""

    plan: PreparedLeads
    client: Client
    path: Path | None
    progress: bool | None
    watch: Monitor | None
    earlier: Mapping[int, Entry] | None = None
    notes: Sequence[str] = ()
    # The statuses whose people are sent again.
    send_again: frozenset[str] = frozenset()

    def run(self) -> SubmissionReport:
        """Send the remaining rows, and report all rows."""
        # Hold signals until the report exists, so that Ctrl-C cannot lose the report.
        with HeldSignals() as signals, ExitStack() as stack:
            options = {"resend_unknown": self._is_retry, "send_again": self.send_again}
            opened = _open(self.plan, self.path, self.client, **options)
            journal = stack.enter_context(opened)
            self.plan.runs.append(RunTarget(self.client.base_url, self.path))
            run = self._make_run(journal)
            messages = self._not_sent_again(journal), _changed_data(journal)
            # The run closes the journal in its own thread.
            stack.pop_all()
            with remembered(lambda: self.report(run, run.error)) as remember:
                error = supervise(run, signals, progress=self.progress, monitor=self.watch)
                report = self.report(run, error)
                remember(report)
            advice = _advice(report, has_file=journal.file is not None)
            _warn_all(*messages, _incomplete(report, advice))
            return report

    @property
    def _is_retry(self) -> bool:
        return self.earlier is not None

    def _make_run(self, journal: Journal) -> Run:
        """Divide the rows to send into chunks."""
        rows = journal.resumption.rows
        if not self._is_retry:
            rows = _planned(self.plan, rows)
        plan = self.plan.sent_from(journal.resumption.mailboxes)
        numbered = enumerate(plan.chunks(rows), journal.last_chunk + 1)
        chunks = deque(Chunk(number, part.tolist()) for number, part in numbered)
        entries = self._earlier_entries(journal)
        return Run(plan, self.client, journal, self._is_retry, chunks, entries)

    def _earlier_entries(self, journal: Journal) -> dict[int, Entry]:
        """Return the entries of rows that were sent before, in a retry with their messages."""
        kept, recorded = journal.resumption.kept, journal.resumption.recorded
        reported = (self.earlier or {}).items()
        is_valid = self.plan.checked.is_valid
        entries = {
            row: entry.as_earlier()
            for row, entry in reported
            if kept[row] == row and (is_valid[row] or row in recorded)
        }
        for row, entry in journal.entries(with_refused=self._is_retry).items():
            _, note = recorded.get(row, (None, ""))
            # Only the earlier report has the service's messages: journals do not record them.
            if note or row not in entries or _SEND_OF(entries[row]) != _SEND_OF(entry):
                entries[row] = entry
        return entries

    def _not_sent_again(self, journal: Journal) -> str:
        """Return a warning of rows that only this process knows and does not send again, or ""."""
        rows = np.array(sorted(journal.rows_only_in_memory), dtype=np.int64)
        number = int(self.plan.is_planned(rows).sum())
        if not number or self._is_retry or journal.file is not None:
            return ""
        return (
            f"{plural(number, 'row was', 'rows were')} not sent again, as recorded in this Python "
            f"process. Restarting Python loses the record; pass {terms.argument('journal')} to "
            "keep it in a file."
        )

    def report(self, run: Run, error: OutreachError | None) -> SubmissionReport:
        """Report all rows, also during the run."""
        plan, kept = self.plan, run.journal.resumption.kept
        detail = f"The run stopped before this row: {error}" if error is not None else ""
        not_sent = Entry(RowOutcome(statuses.NOT_SENT, detail), None, 0)
        leads = np.flatnonzero(plan.checked.is_valid & (kept == np.arange(len(kept))))
        entries = dict.fromkeys(_planned(plan, leads).tolist(), not_sent)
        for row in entries.keys() & run.journal.resumption.leads.keys():
            earlier = run.journal.resumption.leads[row].entry
            entries[row] = Entry(not_sent.outcome, None, earlier.attempts)
        entries |= run.entries
        notes = [*self.notes, *run.notes]
        known: dict[str, Any] = {"notes": notes, "client": self.client, "error": error}
        retry = partial(self.retry_unknown, entries, notes)
        return _add_error(_report_plan(plan, run.journal, entries, retry=retry, **known))

    def retry_unknown(
        self,
        entries: Mapping[int, Entry],
        notes: Sequence[str],
        *,
        watch: Monitor | None = None,
        client: Client | None = None,
    ) -> SubmissionReport:
        """Send the unknown rows of a report, which has these entries and notes."""
        client = _client_of(self.plan.client, client or self.client)
        again = replace(
            self,
            client=client,
            # A later run of the plan may have begun a file.
            path=_last_journal(self.plan),
            watch=watch,
            earlier=entries,
            notes=notes,
        )
        return again.run()


def _client_of(own: Client | None, given: Client | None) -> Client:
    """Return the client to send with; it must use the plan's service."""
    client = connect.resolve(given if given is not None else own)
    if own is not None and client.base_url != own.base_url:
        raise InvalidInputError(
            f"The plan is for {own.base_url}, but the client is connected to {client.base_url}. "
            "Create a plan with this client. Nothing was sent."
        )
    if client.closed:
        raise ConfigurationError(
            "The plan's client is closed. Connect again, and create a new plan. Nothing was sent."
        )
    return client


def _report_plan(
    plan: PreparedLeads, journal: Journal, entries: Mapping[int, Entry], **options: Any
) -> SubmissionReport:
    """Build the report of a plan's rows."""
    named = {"sequence_id": plan.sequence_id, "sequence_name": plan.sequence.name}
    return _report(plan, journal, entries, **named, **options)


def _report(
    frame: CheckedFrame, opened: Journal, entries: Mapping[int, Entry], **options: Any
) -> SubmissionReport:
    """Build the report of all rows."""
    notes = {row: note for row, note in row_notes(frame.checked).items() if row in entries}
    entries = {**entries, **{row: entries[row].noted(note) for row, note in notes.items()}}
    rows = make_rows(frame, entries, opened.resumption.kept)
    rows = mark_duplicates_of_unsent(rows, opened.resumption.kept)
    return SubmissionReport(frame.frame, rows, emails=frame.emails, **options)


def _add_error(report: SubmissionReport) -> SubmissionReport:
    """Set the error of a run's report if any row is incomplete."""
    if report.error is None and (counts := _count_incomplete(report.rows["status"])):
        report.error = OutreachError(f"Not all rows were added: {counts}.")
    return report


def _warn_all(*messages: str) -> None:
    """Warn at the end of a run; if warnings are raised as errors, keep the report instead."""
    for message in filter(None, messages):
        with suppress(Exception):
            warn(message)


def _changed_data(journal: Journal) -> str:
    """Return a warning of rows that are or may be in the sequence with other data, or ""."""
    if not (number := len(journal.resumption.changed_rows)):
        return ""
    return (
        f"{plural(number, 'row has', 'rows have')} other data than the lead that was sent, and the "
        "service never updates leads: correct the leads in the service itself. The details name "
        "the fields."
    )


def _incomplete(report: SubmissionReport, advice: str = "") -> str:
    """Return a warning of the report's error, or ""."""
    if report.error is None:
        return ""
    counts = _count_incomplete(report.rows["status"])
    is_counted = not counts or counts in str(report.error)
    prefix = "" if is_counted else f"Of {plural(len(report.rows), 'row')}, {counts}: "
    return f"{prefix}{report.error} {advice}".strip()


def _count_incomplete(statuses_of_rows: pd.Series[str]) -> str:
    counts = Counter(statuses_of_rows)
    return ", ".join(
        f"{counts[status]:,} {'is' if counts[status] == 1 else 'are'} {status}"
        for status in _INCOMPLETE
        if counts[status]
    )


def _advice(report: SubmissionReport, *, has_file: bool) -> str:
    """Return advice on how to resume; `has_file` means that a journal file has the outcomes."""
    status = set(report.rows["status"])
    advice = []
    if status & {statuses.NOT_SENT, statuses.REJECTED, statuses.INVALID}:
        advice.append(
            "To resume, correct the errors and submit again with the same journal, which skips "
            "recorded leads."
            if has_file
            else "To resume, correct the errors and submit only the corrected rows. Only with "
            f"{terms.argument('journal')} does another process skip the leads that this one has "
            "sent."
        )
    if statuses.UNKNOWN in status:
        advice.append(
            terms.wording(
                "Call report.retry_unknown() to resend the unknown rows.",
                in_shell="Repeat the command with --retry-unknown to resend the unknown rows."
                if has_file
                else "Look for the unknown rows in the web app.",
            )
        )
    return " ".join(advice)
