"""Send a plan, and always return a report of all rows."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames.client import connect
from outreach_frames.client.client import Client
from outreach_frames.common.atomic_files import expanded, require_readable_file
from outreach_frames.common.signals import HeldSignals
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import ConfigurationError, InvalidInputError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.planning.checks import mailbox_notes
from outreach_frames.leads.prepared import Positions, PreparedLeads
from outreach_frames.leads.sending.journal import Journal
from outreach_frames.leads.sending.journal_file import JournalPlace, locate
from outreach_frames.leads.sending.memory import Memory, memory_of
from outreach_frames.leads.sending.outcome import RowOutcome
from outreach_frames.leads.sending.records import Entry
from outreach_frames.leads.sending.report import SubmissionReport, remembered
from outreach_frames.leads.sending.rows import make_rows, mark_duplicates_of_unsent
from outreach_frames.leads.sending.run import Chunk, Monitor, Run
from outreach_frames.leads.sending.supervise import supervise

# The statuses of incomplete rows, in the order of messages.
_INCOMPLETE: Final = (statuses.NOT_SENT, statuses.REJECTED, statuses.UNKNOWN, statuses.INVALID)


def submit(
    plan: PreparedLeads,
    *,
    journal: str | Path | JournalPlace | None = None,
    progress: bool | None = None,
    dry_run: bool = False,
    watch: Monitor | None = None,
    client: Client | None = None,
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
    if dry_run or (journal is None and not len(plan.positions)):
        found = preview(plan, journal, client)
        ready = Entry(RowOutcome(statuses.WOULD_SEND, "Dry run: the row would be sent."), None, 0)
        entries = found.entries() | dict.fromkeys(found.found.rows.tolist(), ready)
        known: dict[str, Any] = {"client": client or plan.client, "dry_run": dry_run}
        report = _report(plan, found.found.kept, entries, is_run=not dry_run, **known)
        return _warn_if_incomplete(report, "")
    client = _client_of(plan.client, client)
    memory, place = _records_of(plan, client, journal)
    return _submit(plan, client, memory, place, progress=progress, watch=watch)


def preview(
    plan: PreparedLeads, journal: str | Path | JournalPlace | None, client: Client | None = None
) -> Journal:
    """Return what a run would do with each row, without changing the journal."""
    client = client or plan.client or connect.current()
    memory, place = _records_of(plan, client, journal)
    with Journal(plan, memory, place, _bound_to(plan, client), dry_run=True) as found:
        return found


def unrecorded_rows(plan: PreparedLeads) -> Positions:
    """Return the rows that a run would send now; all planned rows if the journal is unreadable."""
    try:
        return preview(plan, plan.records.get("place")).found.rows
    except OutreachError:
        return plan.positions


def read_report(plan: PreparedLeads, journal: str | Path) -> SubmissionReport:
    """Report a plan's rows with the outcomes from a journal, without changing the journal."""
    require_readable_file(expanded(journal))
    place = JournalPlace(locate(journal))
    with Journal(plan, Memory(""), place, {}, dry_run=True) as read:
        found, sequence_id = read.found, read.file and read.file.sequence_id
    outcome = RowOutcome(statuses.NOT_SENT, "The journal has no record of the row.")
    no_record = Entry(outcome, None, 0)
    entries = dict.fromkeys(found.rows.tolist(), no_record) | read.entries()
    known: dict[str, Any] = {"client": plan.client, "journal": place.path}
    return _report(plan, found.kept, entries, sequence_id=sequence_id, **known)


def _bound_to(plan: PreparedLeads, client: Client | None) -> dict[str, str]:
    """Return the service, sequence and settings for a journal; dry runs may lack the service."""
    service = {} if client is None else {"service": client.base_url}
    return {**service, **plan.fingerprint}


def _records_of(
    plan: PreparedLeads, client: Client | None, journal: str | Path | JournalPlace | None
) -> tuple[Memory, JournalPlace | None]:
    """Return the memory and the journal of a plan; reject others than those of its first run."""
    if journal is not None and not isinstance(journal, JournalPlace):
        # Use an absolute path: the working folder may change before the unknown rows are resent.
        journal = JournalPlace(locate(journal))
    memory, used = plan.records.get("memory"), plan.records.get("place")
    if memory is None:
        return (Memory("") if client is None else memory_of(client, plan.sequence_id)), journal
    if client is not None and client.base_url != memory.base_url:
        raise InvalidInputError(
            f"This plan was submitted before, to {memory.base_url}; submitting it to "
            f"{client.base_url} would send its leads twice. Create a new plan. Nothing was sent."
        )
    if used is not None and (journal is None or journal.path != used.path):
        raise InvalidInputError(
            f"This plan was submitted before, with the journal {used.path}. Submit the plan with "
            "the same journal, so that the file has all records. Nothing was sent."
        )
    return memory, used or journal


def _submit(
    plan: PreparedLeads,
    client: Client,
    memory: Memory,
    place: JournalPlace | None,
    *,
    progress: bool | None = None,
    watch: Monitor | None = None,
    earlier: Mapping[int, Entry] | None = None,
    notes: Sequence[str] = (),
) -> SubmissionReport:
    """Send a plan's remaining rows; with the `earlier` entries of a report, its unknown rows."""
    is_retry = earlier is not None
    memory_of(client, plan.sequence_id, memory)
    # Hold signals until the report exists, so that Ctrl-C cannot lose the report.
    with HeldSignals() as signals, ExitStack() as stack:
        bound_to = _bound_to(plan, client)
        opened = Journal(plan, memory, place, bound_to, resend_unknown=is_retry)
        journal = stack.enter_context(opened)
        plan.records.update(memory=memory, place=place)
        found = journal.found
        unsent = {
            row: entry
            for row, entry in (earlier or {}).items()
            if not entry.attempts and found.kept[row] == row
        }
        entries = unsent | journal.entries(is_retry=is_retry)
        if place is None and not is_retry:
            _warn_of_earlier_rows(plan, journal)
        numbered = enumerate(plan.chunks(found.rows), journal.last_chunk + 1)
        chunks = [Chunk(number, part.tolist()) for number, part in numbered]
        leads = np.flatnonzero(plan.checked.is_valid & (found.kept == np.arange(len(found.kept))))
        leads = leads[plan.is_planned(leads)]
        run = Run(plan, client, journal, is_retry, deque(chunks), entries)
        # The run closes the journal in its own thread.
        stack.pop_all()

        def report_now(error: OutreachError | None) -> SubmissionReport:
            detail = f"The run stopped before this row: {error}" if error is not None else ""
            not_sent = Entry(RowOutcome(statuses.NOT_SENT, detail), None, 0)
            final = dict.fromkeys(leads.tolist(), not_sent) | run.entries
            all_notes = [*notes, *run.notes]

            def retry(
                watch: Monitor | None = None, client: Client | None = None
            ) -> SubmissionReport:
                client = _client_of(run.client, client)
                known: dict[str, Any] = {"progress": progress, "watch": watch, "notes": all_notes}
                return _submit(plan, client, memory, plan.records["place"], earlier=final, **known)

            known: dict[str, Any] = {"notes": all_notes, "retry": retry, "client": client}
            return _report(plan, found.kept, final, is_run=True, error=error, **known)

        with remembered(lambda: report_now(run.error)) as remember:
            error = supervise(run, signals, progress=progress, monitor=watch)
            report = report_now(error)
            remember(report)
        advice = _advice(report, has_file=journal.file is not None)
        return _warn_if_incomplete(report, advice)


def _warn_of_earlier_rows(plan: PreparedLeads, journal: Journal) -> None:
    """Warn of rows that are not sent, because this process sent or recorded them before."""
    rows = np.array(sorted(journal.earlier_rows), dtype=np.int64)
    if number := int(plan.is_planned(rows).sum()):
        them = "it" if number == 1 else "them"
        warn(
            f"{plural(number, 'row was', 'rows were')} not sent again: this Python process sent "
            f"{them} to this sequence before. Restarting Python sends {them} again; pass journal= "
            "to keep the record in a file."
        )


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


def _report(
    plan: PreparedLeads,
    kept: Positions,
    entries: Mapping[int, Entry],
    *,
    is_run: bool = False,
    **options: Any,
) -> SubmissionReport:
    """Build the report of all rows; the report of a run has an error if any row is incomplete."""
    notes = {row: note for row, note in mailbox_notes(plan.checked).items() if row in entries}
    entries = {**entries, **{row: entries[row].noted(note) for row, note in notes.items()}}
    rows = make_rows(plan, entries, kept)
    if not options.get("dry_run"):
        rows = mark_duplicates_of_unsent(rows, kept)
    named = {"sequence_id": plan.sequence_id, "sequence_name": plan.sequence.name}
    options = {**named, "emails": plan.emails, **options}
    report = SubmissionReport(plan.frame, rows, **options)
    if is_run and report.error is None and (counts := _count_incomplete(report.rows["status"])):
        report.error = OutreachError(f"Not all rows were added: {counts}.")
    return report


def _warn_if_incomplete(report: SubmissionReport, advice: str) -> SubmissionReport:
    """Warn if the report has an error, and return the report."""
    if report.error is not None:
        counts = _count_incomplete(report.rows["status"])
        is_counted = not counts or counts in str(report.error)
        prefix = "" if is_counted else f"Of {plural(len(report.rows), 'row')}, {counts}: "
        # If warnings are raised as errors, drop the warning rather than the report.
        with suppress(Exception):
            warn(f"{prefix}{report.error} {advice}".strip())
    return report


def _count_incomplete(status: pd.Series[str]) -> str:
    counts = Counter(status)
    return ", ".join(
        f"{counts[each]:,} {'is' if counts[each] == 1 else 'are'} {each}"
        for each in _INCOMPLETE
        if counts[each]
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
            else "To resume, correct the errors and submit again with journal=path, which also "
            "records what this session has sent."
        )
    if statuses.UNKNOWN in status:
        advice.append("Call report.retry_unknown() to resend the unknown rows.")
    return " ".join(advice)
