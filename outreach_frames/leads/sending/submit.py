"""Send a plan, and report every row whatever happens."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Final

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
from outreach_frames.leads.sending.journal import Journal
from outreach_frames.leads.sending.journal_place import JournalPlace, locate
from outreach_frames.leads.sending.outcome import RowOutcome
from outreach_frames.leads.sending.report import (
    SubmissionReport,
    follow_unsent,
    make_rows,
    remembered,
)
from outreach_frames.leads.sending.resume import Entry, Resumption
from outreach_frames.leads.sending.run import Chunk, Monitor, Run
from outreach_frames.leads.sending.supervise import supervise

# What makes a report incomplete, in the order in which it is reported.
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
    """Send a plan, one request after the other, and report the outcome of every row.

    Parameters
    ----------
    plan : PreparedLeads
        What to send. It is sent once; with a journal, again for the rows that remain.
    journal : str, Path or JournalPlace, optional
        A file that records the outcome of each lead, whatever ends the run. With the same journal
        again, a person whom the service accepted or skipped is not sent again, by any identifier;
        what it refused or never got is sent again; what may or may not have arrived stays
        `unknown`. Rows may be corrected, added and reordered in between. Sequence, settings and
        service must be the same.
    progress : bool, optional
        True shows a progress bar everywhere, False nowhere; else where somebody looks at it.
    dry_run : bool
        Send nothing and change no journal, and report what a run would do with each row.
    watch : callable, optional
        Called with the `Run` before the first request, a few times a second, and once it is done;
        returns whether to "continue", to "drain" (end after the request under way), or to "abort"
        that request too, as Ctrl-C does. A request to end is never taken back. If it raises, the
        request under way is the last.
    client : Client, optional
        Another connection to the service that the plan was made for, such as one with a new token.
        By default the plan's own.
    is_confirmed : bool
        Do not warn of leads that this process sent before.

    Returns
    -------
    SubmissionReport
        Once sending has begun, in every case. In the main thread Ctrl-C ends the run, and its
        report is returned. Where a row is `not_sent`, `rejected`, `unknown` or `invalid` there is
        one warning, and `error` says why.

    Raises
    ------
    ConfigurationError
        No service is connected. Nothing was sent.
    InvalidInputError
        The journal cannot be used, the plan was sent before, or the client is connected to another
        service. Nothing was sent.

    Notes
    -----
    Interface: POST /sequences/{id}/leads. A 400 or 413 rejects its request's rows alone. A 422
    rejects them too, and stops the run, except: for a missing lead field, parts of the request are
    sent until it is known which field that is, and only rows that lack it are rejected; a reason
    that may be about this request's leads alone continues with the next request. So does a response
    that does not come or makes no sense, with `unknown` rows. Three in a row that fail alike stop
    the run.

    Examples
    --------
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
        return _warn_if_incomplete(_report(plan, {}, plan.kept), "")
    client = _client_of(plan.client, client)
    mine = client.base_url, place
    # One step, so that one of several threads has it.
    first = plan.submissions.setdefault("first", mine)
    if first is not mine:
        place = _same_journal(first, client, place)
    task = _Task(plan, client, place, progress, is_confirmed)
    try:
        return _submit(task, watch)
    except BaseException:
        if first is mine and task.is_unused:
            del plan.submissions["first"]
        raise


def preview(
    plan: PreparedLeads, journal: str | Path | JournalPlace | None, client: Client | None = None
) -> Resumption:
    """Decide about every row as a run would, and change nothing."""
    place = None if journal is None else _place(journal)
    if first := plan.submissions.get("first"):
        place = _same_journal(first, client, place)
    if place is None or (place.mark is None and not place.exists()):
        return Resumption(plan.positions, plan.kept)
    with Journal(place, _submission(plan, client or plan.client), dry_run=True) as opened:
        return opened.resume(plan, again=False, dry_run=True)


def _dry_run(
    plan: PreparedLeads, journal: str | Path | JournalPlace | None, client: Client | None
) -> SubmissionReport:
    """Report the outcome of every row as far as it is known before a run."""
    found = preview(plan, journal, client)
    would = Entry(RowOutcome(statuses.NOT_SENT, "Dry run: it would be sent."), None, 0)
    entries = {**found.entries, **dict.fromkeys(found.rows.tolist(), would)}
    rows = make_rows(plan, entries, found.kept)
    return SubmissionReport(plan.frame, rows, sequence_id=plan.sequence_id, dry_run=True)


def _place(journal: str | Path | JournalPlace) -> JournalPlace:
    # Absolute from here on: the working folder may change before the unknown rows are retried.
    return journal if isinstance(journal, JournalPlace) else JournalPlace(locate(journal))


def _submission(plan: PreparedLeads, client: Client | None) -> dict[str, str]:
    """Return what a journal is bound to; a dry run needs no connection."""
    return {**({} if client is None else {"service": client.base_url}), **plan.fingerprint}


@dataclass
class _Task:
    """A plan with its client and journal, and the run that sends it once there is one."""

    plan: PreparedLeads
    client: Client
    journal: JournalPlace | None
    progress: bool | None
    is_confirmed: bool
    run: Run | None = None

    @property
    def is_unused(self) -> bool:
        """Whether certainly nothing was sent."""
        return self.run is None or (self.run.done.is_set() and not self.run.requests)


def _same_journal(
    first: tuple[str, JournalPlace | None], client: Client | None, journal: JournalPlace | None
) -> JournalPlace:
    """Return the journal that a plan was submitted with; refuse another one and another service."""
    where, used = first
    is_there = client is None or client.base_url == where
    if is_there and used is not None and journal is not None and used.path == journal.path:
        return used
    before = "without a journal" if used is None else f"with the {used.name}"
    instead = (
        "Submit it with that journal"
        if is_there and used is not None and used.path is not None
        else "Plan only the rows that the report has as rejected or not_sent"
    )
    raise InvalidInputError(
        f"This plan was submitted before, {before}, to {where}; submitting it again would send "
        f"its leads twice. {instead}. Nothing was sent."
    )


def _retry(
    task: _Task, entries: Mapping[int, Entry], notes: Sequence[str]
) -> Callable[..., SubmissionReport]:
    """Return what sends the unknown rows of a report once more."""
    free = Lock()

    def retry(watch: Monitor | None = None, client: Client | None = None) -> SubmissionReport:
        # A journal knows by itself what was sent again.
        if task.journal is None and not free.acquire(blocking=False):
            raise InvalidInputError(
                "The unknown rows of this report were sent again before. Their outcomes are in "
                "the report that retry_unknown() returned then. Nothing was sent."
            )
        again = replace(task, run=None)
        try:
            again.client = _client_of(task.client, client)
            return _submit(again, watch, entries=entries, notes=notes, again=True)
        except BaseException:
            if task.journal is None and again.is_unused:
                free.release()
            raise

    return retry


def _submit(
    task: _Task,
    watch: Monitor | None,
    *,
    entries: Mapping[int, Entry] = MappingProxyType({}),
    notes: Sequence[str] = (),
    again: bool = False,
) -> SubmissionReport:
    """Send the rows that remain of a plan, or the unknown ones again.

    It raises only where nothing was sent.
    """
    plan = task.plan
    # Until the report is there, so that no Ctrl-C takes it away.
    with HeldSignals() as signals, ExitStack() as stack:
        journal, last_chunk = None, 0
        found = Resumption(plan.positions, plan.kept)
        if task.journal is not None:
            journal = stack.enter_context(Journal(task.journal, _submission(plan, task.client)))
            found = journal.resume(plan, again=again)
            entries = _merged(entries, found.entries)
            notes, last_chunk = [*notes, *journal.notes], journal.last_chunk
        rows = found.rows
        if again:
            unknown = {row for row in entries if entries[row].outcome.status == statuses.UNKNOWN}
            rows = rows[np.isin(rows, list(unknown))]
            chunks = _chunks_again(plan, rows, entries)
        else:
            if not task.is_confirmed:
                _warn_of_sent_before(task, rows)
            numbered = enumerate(plan.chunks(rows), last_chunk + 1)
            chunks = [Chunk(number, part.tolist()) for number, part in numbered]
        leads = np.flatnonzero(plan.checked.is_valid & (found.kept == np.arange(len(found.kept))))
        leads = leads[plan.is_planned(leads)]
        run = Run(plan, task.client, journal, again, deque(chunks), dict(entries))
        task.run = run
        # The run closes the journal, in its own thread.
        stack.pop_all()

        def report_now(error: OutreachError | None) -> SubmissionReport:
            why = f"The run stopped before: {error}" if error is not None else ""
            never = Entry(RowOutcome(statuses.NOT_SENT, why), None, 0)
            final = dict.fromkeys(leads.tolist(), never) | run.entries
            every_note = [*notes, *run.notes]
            retry = _retry(task, final, every_note)
            return _report(plan, final, found.kept, error=error, notes=every_note, retry=retry)

        with remembered(lambda: report_now(run.error)) as remember:
            with sent_before.recording(task.client, plan, lambda: _sent_rows(run, found.kept)):
                error = supervise(run, signals, progress=task.progress, monitor=watch)
            report = report_now(error)
            remember(report)
        return _warn_if_incomplete(
            report, _advice(report, is_safe=journal is not None and not journal.is_lost)
        )


def _warn_of_sent_before(task: _Task, rows: Positions) -> None:
    """Warn of leads that this process sent to the sequence before, and that no journal knows."""
    if before := int(sent_before.are_sent(task.client, task.plan, rows).sum()):
        leads = plural(len(rows), "lead")
        warn(
            f"{before:,} of {leads} {'was' if before == 1 else 'were'} sent to this sequence "
            "before, in this Python process. The service skips those that are in it by the same "
            "email and profile URL, not by others. Pass the same journal= to every call, so that "
            "nobody is sent twice."
        )


def _sent_rows(run: Run, kept: Positions) -> Positions:
    """Return the rows of persons that a run has sent, or may have."""
    acted = statuses.IN_SEQUENCE | {statuses.UNKNOWN}
    sent = [row for row in list(run.begun) if run.entries[row].outcome.status in acted]
    return np.flatnonzero(np.isin(kept, sent))


def _client_of(own: Client | None, given: Client | None) -> Client:
    """Return the client to send by; what was planned at one service is not sent to another."""
    client = resolve(given if given is not None else own)
    if own is not None and client.base_url != own.base_url:
        raise InvalidInputError(
            f"The plan is for {own.base_url}, and client is connected to {client.base_url}. Make "
            "the plan with that client. Nothing was sent."
        )
    if client.closed:
        raise ConfigurationError(
            "The plan's client is closed. Connect again, and make the plan again. Nothing was sent."
        )
    return client


def _merged(own: Mapping[int, Entry], stored: Mapping[int, Entry]) -> dict[int, Entry]:
    """Return the recorded outcomes, and what a report knows beyond what could be written."""
    return {
        row: own[row]
        if row in own
        and own[row].outcome.status != statuses.UNKNOWN
        and own[row].attempts >= entry.attempts
        else entry
        for row, entry in stored.items()
    }


def _chunks_again(
    plan: PreparedLeads, rows: Positions, entries: Mapping[int, Entry]
) -> list[Chunk]:
    """Put the rows that are unknown into the chunks that they were in.

    Then a response about a whole request is about the same rows as the one that did not come.
    """
    together: dict[int, list[int]] = {}
    for row in rows.tolist():
        together.setdefault(entries[row].chunk or 0, []).append(row)
    return [
        Chunk(number, part.tolist())
        for number, positions in sorted(together.items())
        for part in plan.chunks(positions)
    ]


def _report(
    plan: PreparedLeads,
    entries: Mapping[int, Entry],
    kept: Positions,
    *,
    error: OutreachError | None = None,
    notes: Sequence[str] = (),
    retry: Callable[..., SubmissionReport] | None = None,
) -> SubmissionReport:
    """Make the report; it has an error wherever rows were not added."""
    rows = follow_unsent(make_rows(plan, entries, kept), kept)
    if error is None and (counts := _count_incomplete(rows["status"])):
        error = OutreachError(f"Not all rows were added: {counts}.")
    return SubmissionReport(
        plan.frame, rows, sequence_id=plan.sequence_id, notes=notes, error=error, retry=retry
    )


def _warn_if_incomplete(report: SubmissionReport, advice: str) -> SubmissionReport:
    """Warn where rows were not added."""
    if report.error is not None:
        counts = _count_incomplete(report.rows["status"])
        is_told = not counts or counts in str(report.error)
        begin = "" if is_told else f"Of {plural(len(report.rows), 'row')}, {counts}: "
        # Even where warnings are errors: a report that is lost is worse than a warning that is.
        with suppress(Exception):
            warn(f"{begin}{report.error} {advice}".strip())
    return report


def _count_incomplete(status: pd.Series[str]) -> str:
    counts = Counter(status)
    return ", ".join(
        f"{counts[each]:,} {'is' if counts[each] == 1 else 'are'} {each}"
        for each in _INCOMPLETE
        if counts[each]
    )


def _advice(report: SubmissionReport, *, is_safe: bool) -> str:
    """Return what to do next; `is_safe` where a journal has the outcomes."""
    status = set(report.rows["status"])
    advice = []
    if status & {statuses.NOT_SENT, statuses.REJECTED, statuses.INVALID}:
        advice.append(
            "To resume, correct what is wrong and submit again with the same journal, which skips "
            "recorded leads."
            if is_safe
            else "To resume, plan only the rows that are rejected, not_sent or invalid."
        )
    if statuses.UNKNOWN in status:
        advice.append("report.retry_unknown() sends what is unknown once more.")
    return " ".join(advice)
