"""Send a plan, and always return a report of all rows."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.signals import HeldSignals
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import ConfigurationError, InvalidInputError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import Positions, PreparedLeads
from outreach_frames.leads.sending import sent_before
from outreach_frames.leads.sending.journal import Journal, read_only
from outreach_frames.leads.sending.journal_place import JournalPlace, locate
from outreach_frames.leads.sending.outcome import RowOutcome
from outreach_frames.leads.sending.report import (
    SubmissionReport,
    make_rows,
    mark_duplicates_of_unsent,
    remembered,
)
from outreach_frames.leads.sending.resume import Entry, Resumption
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
    is_confirmed: bool = False,
) -> SubmissionReport:
    """Send a plan, and report all rows; raise only if nothing was sent.

    `watch` is called with the `Run` before the first request, a few times a second and at the end.
    `is_confirmed` turns off the warning of leads that this process sent before.

    >>> import outreach_frames as of
    >>> import pandas as pd
    >>> with of.connect("sandbox", cache=None) as client:
    ...     sequence_id = client.sandbox.sequence_ids["accepts_any"]
    ...     plan = pd.DataFrame({"email": ["ada@example.com"]}).outreach.plan(sequence_id)
    ...     submit(plan).rows["status"].tolist()
    ['added']
    """
    if dry_run:
        return _dry_run(plan, journal, client)
    place = None if journal is None else _place(journal)
    if place is None and not len(plan.positions):
        report = _report(plan, {}, plan.kept, client=client or plan.client)
        return _warn_if_incomplete(report, "")
    client = _client_of(plan.client, client)
    own = client.base_url, place
    # `setdefault` is atomic, so that only one of several threads is first.
    first = plan.submissions.setdefault("first", own)
    if first is not own:
        place = _require_same_journal(first, client, place)
    task = _Submission(plan, client, place, progress, is_confirmed)
    try:
        return _submit(task, watch)
    except BaseException:
        if first is own and task.is_unused:
            del plan.submissions["first"]
        raise


def preview(
    plan: PreparedLeads, journal: str | Path | JournalPlace | None, client: Client | None = None
) -> Resumption:
    """Return what a run would do with each row, without changing the journal."""
    place = None if journal is None else _place(journal)
    if first := plan.submissions.get("first"):
        place = _require_same_journal(first, client, place)
    if place is None or (place.mark is None and not place.exists()):
        return Resumption(plan.positions, plan.kept)
    with Journal(place, _bound_to(plan, client or plan.client), dry_run=True) as opened:
        found = opened.resume(plan, resend_unknown=False, dry_run=True)
        opened.require_mailboxes(plan, len(found.rows))
        return found


def _dry_run(
    plan: PreparedLeads, journal: str | Path | JournalPlace | None, client: Client | None
) -> SubmissionReport:
    """Report each row with its recorded outcome or as ready to be sent."""
    found = preview(plan, journal, client)
    ready = Entry(RowOutcome(statuses.NOT_SENT, "Dry run: the row would be sent."), None, 0)
    entries = {**found.entries, **dict.fromkeys(found.rows.tolist(), ready)}
    rows = make_rows(plan, entries, found.kept)
    known: dict[str, Any] = {"emails": plan.emails, "client": client or plan.client}
    return SubmissionReport(plan.frame, rows, sequence_id=plan.sequence_id, dry_run=True, **known)


def read_report(plan: PreparedLeads, journal: str | Path) -> SubmissionReport:
    """Report a plan's rows with the outcomes from a journal, without changing the journal."""
    with read_only(journal) as opened:
        found = opened.resume(plan, resend_unknown=False, dry_run=True)
        notes, path = opened.notes, opened.path
    outcome = RowOutcome(statuses.NOT_SENT, "The journal has no record of the row.")
    no_record = Entry(outcome, None, 0)
    entries = {**dict.fromkeys(found.rows.tolist(), no_record), **found.entries}
    rows = mark_duplicates_of_unsent(make_rows(plan, entries, found.kept), found.kept)
    known: dict[str, Any] = {"notes": notes, "emails": plan.emails, "client": plan.client}
    return SubmissionReport(plan.frame, rows, sequence_id=None, journal=path, **known)


def _place(journal: str | Path | JournalPlace) -> JournalPlace:
    # Use an absolute path: the working folder may change before the unknown rows are resent.
    return journal if isinstance(journal, JournalPlace) else JournalPlace(locate(journal))


def _bound_to(plan: PreparedLeads, client: Client | None) -> dict[str, str]:
    """Return the service, sequence and settings for a journal; dry runs may lack the service."""
    return {**({} if client is None else {"service": client.base_url}), **plan.fingerprint}


@dataclass
class _Submission:
    """A plan with its client, its journal and, after the start, its run."""

    plan: PreparedLeads
    client: Client
    journal: JournalPlace | None
    progress: bool | None
    is_confirmed: bool
    run: Run | None = None

    @property
    def is_unused(self) -> bool:
        """Whether it is certain that nothing was sent."""
        return self.run is None or (self.run.done.is_set() and not self.run.requests)


def _require_same_journal(
    first: tuple[str, JournalPlace | None], client: Client | None, journal: JournalPlace | None
) -> JournalPlace:
    """Return the journal of a plan's first submission; reject another journal or service."""
    service, used = first
    is_same_service = client is None or client.base_url == service
    if is_same_service and used is not None and journal is not None and used.path == journal.path:
        return used
    before = "without a journal" if used is None else f"with the {used.name}"
    advice = (
        "Submit the plan with the same journal"
        if is_same_service and used is not None and used.path is not None
        else "Plan only the rows that are rejected or not_sent in the report"
    )
    raise InvalidInputError(
        f"This plan was submitted before, {before}, to {service}; submitting it again would send "
        f"its leads twice. {advice}. Nothing was sent."
    )


def _retry(
    task: _Submission, entries: Mapping[int, Entry], notes: Sequence[str]
) -> Callable[..., SubmissionReport]:
    """Return a function that resends the unknown rows of a report."""
    unused = Lock()

    def retry(watch: Monitor | None = None, client: Client | None = None) -> SubmissionReport:
        # With a journal, the resent rows are recorded; without a journal, resend only once.
        if task.journal is None and not unused.acquire(blocking=False):
            raise InvalidInputError(
                "The unknown rows of this report were resent before. Use the report that the "
                "earlier retry_unknown() returned. Nothing was sent."
            )
        resend = replace(task, run=None)
        try:
            resend.client = _client_of(task.client, client)
            return _submit(resend, watch, entries=entries, notes=notes, resend_unknown=True)
        except BaseException:
            if task.journal is None and resend.is_unused:
                unused.release()
            raise

    return retry


def _submit(
    task: _Submission,
    watch: Monitor | None,
    *,
    entries: Mapping[int, Entry] = MappingProxyType({}),
    notes: Sequence[str] = (),
    resend_unknown: bool = False,
) -> SubmissionReport:
    """Send a plan's remaining rows, or only its unknown rows; raise only if nothing was sent."""
    plan = task.plan
    # Hold signals until the report exists, so that Ctrl-C cannot lose the report.
    with HeldSignals() as signals, ExitStack() as stack:
        journal, last_chunk = None, 0
        found = Resumption(plan.positions, plan.kept)
        if task.journal is not None:
            journal = stack.enter_context(Journal(task.journal, _bound_to(plan, task.client)))
            found = journal.resume(plan, resend_unknown=resend_unknown)
            entries = _merged(entries, found.entries)
            notes, last_chunk = [*notes, *journal.notes], journal.last_chunk
        rows = found.rows
        if resend_unknown:
            unknown = {row for row in entries if entries[row].outcome.status == statuses.UNKNOWN}
            rows = rows[np.isin(rows, list(unknown))]
            chunks = _original_chunks(plan, rows, entries)
        else:
            if journal is not None:
                journal.require_mailboxes(plan, len(rows))
            if not task.is_confirmed:
                _warn_of_sent_before(task, rows)
            numbered = enumerate(plan.chunks(rows), last_chunk + 1)
            chunks = [Chunk(number, part.tolist()) for number, part in numbered]
        leads = np.flatnonzero(plan.checked.is_valid & (found.kept == np.arange(len(found.kept))))
        leads = leads[plan.is_planned(leads)]
        run = Run(plan, task.client, journal, resend_unknown, deque(chunks), dict(entries))
        task.run = run
        # The run closes the journal in its own thread.
        stack.pop_all()

        def report_now(error: OutreachError | None) -> SubmissionReport:
            detail = f"The run stopped before this row: {error}" if error is not None else ""
            not_sent = Entry(RowOutcome(statuses.NOT_SENT, detail), None, 0)
            final = dict.fromkeys(leads.tolist(), not_sent) | run.entries
            all_notes = [*notes, *run.notes]
            retry = _retry(task, final, all_notes)
            options = {"notes": all_notes, "retry": retry, "client": task.client}
            return _report(plan, final, found.kept, error=error, **options)

        with remembered(lambda: report_now(run.error)) as remember:
            with sent_before.recording(task.client, plan, lambda: _sent_rows(run, found.kept)):
                error = supervise(run, signals, progress=task.progress, monitor=watch)
            report = report_now(error)
            remember(report)
        return _warn_if_incomplete(
            report, _advice(report, is_safe=journal is not None and not journal.is_lost)
        )


def _warn_of_sent_before(task: _Submission, rows: Positions) -> None:
    """Warn of leads that this process sent to the sequence before without this journal."""
    if before := int(sent_before.are_sent(task.client, task.plan, rows).sum()):
        leads = plural(len(rows), "lead")
        warn(
            f"This Python process sent {before:,} of {leads} to this sequence before. The service "
            "skips leads already in the sequence only if email and profile URL are the same. Pass "
            "the same journal= to every call, so that nobody is sent twice."
        )


def _sent_rows(run: Run, kept: Positions) -> Positions:
    """Return the rows of people that a run has added or may have added."""
    may_be_added = statuses.IN_SEQUENCE | {statuses.UNKNOWN}
    sent = [row for row in list(run.begun) if run.entries[row].outcome.status in may_be_added]
    return np.flatnonzero(np.isin(kept, sent))


def _client_of(own: Client | None, given: Client | None) -> Client:
    """Return the client to send with; it must use the plan's service."""
    client = resolve(given if given is not None else own)
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


def _merged(own: Mapping[int, Entry], stored: Mapping[int, Entry]) -> dict[int, Entry]:
    """Merge a journal's outcomes with a report's outcomes that could not be recorded."""
    return {
        row: own[row]
        if row in own
        and own[row].outcome.status != statuses.UNKNOWN
        and own[row].attempts >= entry.attempts
        else entry
        for row, entry in stored.items()
    }


def _original_chunks(
    plan: PreparedLeads, rows: Positions, entries: Mapping[int, Entry]
) -> list[Chunk]:
    """Group unknown rows by their original chunk, so that a response covers the same rows."""
    rows_of_chunk: dict[int, list[int]] = {}
    for row in rows.tolist():
        rows_of_chunk.setdefault(entries[row].chunk or 0, []).append(row)
    return [
        Chunk(number, part.tolist())
        for number, positions in sorted(rows_of_chunk.items())
        for part in plan.chunks(positions)
    ]


def _report(
    plan: PreparedLeads,
    entries: Mapping[int, Entry],
    kept: Positions,
    *,
    error: OutreachError | None = None,
    **options: Any,
) -> SubmissionReport:
    """Build the report, with an error if any row is incomplete."""
    rows = mark_duplicates_of_unsent(make_rows(plan, entries, kept), kept)
    if error is None and (counts := _count_incomplete(rows["status"])):
        error = OutreachError(f"Not all rows were added: {counts}.")
    options |= {"error": error, "emails": plan.emails}
    return SubmissionReport(plan.frame, rows, sequence_id=plan.sequence_id, **options)


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


def _advice(report: SubmissionReport, *, is_safe: bool) -> str:
    """Return advice on how to resume; `is_safe` means that a journal has the outcomes."""
    status = set(report.rows["status"])
    advice = []
    if status & {statuses.NOT_SENT, statuses.REJECTED, statuses.INVALID}:
        advice.append(
            "To resume, correct the errors and submit again with the same journal, which skips "
            "recorded leads."
            if is_safe
            else "To resume, plan only the rows that are rejected, not_sent or invalid."
        )
    if statuses.UNKNOWN in status:
        advice.append("Call report.retry_unknown() to resend the unknown rows.")
    return " ".join(advice)
