"""Sending a plan, so that whatever happens there is a report of every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Final

import pandas as pd

from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.signals import HeldSignals
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import ConfigurationError, InvalidInputError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import PreparedLeads
from outreach_frames.leads.sending import journal as journals
from outreach_frames.leads.sending.journal import Entry, Journal, lead_keys
from outreach_frames.leads.sending.outcome import RowOutcome
from outreach_frames.leads.sending.report import SubmissionReport, remembered
from outreach_frames.leads.sending.rows import make_rows
from outreach_frames.leads.sending.run import Chunk, Monitor, Run
from outreach_frames.leads.sending.supervise import supervise

# What makes a report incomplete, in the order in which it is reported.
_OPEN_ENDS: Final = (statuses.NOT_SENT, statuses.REJECTED, statuses.UNKNOWN, statuses.INVALID)


def submit(
    plan: PreparedLeads,
    *,
    journal: str | Path | None = None,
    progress: bool | None = None,
    dry_run: bool = False,
    watch: Monitor | None = None,
    client: Client | None = None,
) -> SubmissionReport:
    """Send a plan, one request after the other, and report what became of every row.

    Parameters
    ----------
    plan : PreparedLeads
        What to send. It is sent once; with a journal, again for what is left.
    journal : str or Path, optional
        A file that knows what became of each lead, whatever ends the run. With the same journal
        again, what the service accepted or skipped is settled and not sent again; what it refused
        or never got is; what may or may not have arrived stays `unknown`. Rows may be corrected,
        added and reordered in between: leads are known by address and profile URL. Sequence,
        settings and service must be the same.
    progress : bool, optional
        True shows a progress bar everywhere, False nowhere; else where somebody looks at it.
    dry_run : bool
        Send nothing, and leave the journal alone.
    watch : callable, optional
        Called with the `Run` before the first request, a few times a second, and once it is done;
        returns whether to "continue", to "drain" (end after the request under way), or to "abort"
        that request too, as Ctrl-C does. A request to end is never taken back. If it raises, the
        request under way is the last.
    client : Client, optional
        Another connection to the service that the plan was made for, such as one with a new token.
        By default the plan's own.

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
    that may be about this request's leads alone goes on to the next request. So does a response
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
        would = Entry(RowOutcome(statuses.NOT_SENT, "Dry run: it would be sent."), None, 0)
        entries = dict.fromkeys(plan.positions.tolist(), would)
        return SubmissionReport(
            plan.frame, make_rows(plan, entries), sequence_id=plan.sequence_id, dry_run=True
        )
    if journal is not None:
        # Absolute from here on: the working folder may change before the unknown rows are retried.
        journal = journals.locate(journal)
    elif not len(plan.positions):
        return _told(_report(plan, {}, None), "")
    client = _client_of(plan.client, client)
    with _once(plan, client.base_url, journal) as claim:
        return _submit(_Task(plan, client, journal, progress), claim, watch)


@dataclass(frozen=True)
class _Task:
    """What is sent, by which client, and how."""

    plan: PreparedLeads
    client: Client
    journal: Path | None
    progress: bool | None


@dataclass
class _Claim:
    """The right to send a plan, or its unknown rows, once."""

    run: Run | None = None

    @property
    def is_unused(self) -> bool:
        """Whether nothing was sent, for certain."""
        return self.run is None or (self.run.done.is_set() and not self.run.requests)


@contextmanager
def _once(plan: PreparedLeads, service: str, journal: Path | None) -> Iterator[_Claim]:
    """Refuse to send a plan twice, unless a journal knows what to leave out."""
    mine: object = object() if journal is None else journal
    # One step, so that one of several threads has it.
    where, first = plan.submissions.setdefault("first", (service, mine))
    if where != service or first != mine:
        before = f"with the journal {first}" if isinstance(first, Path) else "without a journal"
        instead = (
            "Submit it with that journal"
            if isinstance(first, Path) and where == service
            else "Plan only the rows that the report has as rejected or not_sent"
        )
        raise InvalidInputError(
            f"This plan was submitted before, {before}, to {where}; submitting it again would send "
            f"its leads twice. {instead}. Nothing was sent."
        )
    claim = _Claim()
    try:
        yield claim
    except BaseException:
        if first is mine and claim.is_unused:
            del plan.submissions["first"]
        raise


def _retry(
    task: _Task, entries: Mapping[int, Entry], notes: Sequence[str]
) -> Callable[..., SubmissionReport]:
    """Return what sends the unknown rows of a report once more."""
    free = Lock()

    def retry(watch: Monitor | None = None, client: Client | None = None) -> SubmissionReport:
        # A journal knows by itself what was sent again.
        if task.journal is None and not free.acquire(blocking=False):
            raise InvalidInputError(
                "The unknown rows of this report were sent again before. What became of them is in "
                "the report that retry_unknown() returned then. Nothing was sent."
            )
        claim = _Claim()
        try:
            again = replace(task, client=_client_of(task.client, client))
            return _submit(again, claim, watch, entries=entries, notes=notes, again=True)
        except BaseException:
            if task.journal is None and claim.is_unused:
                free.release()
            raise

    return retry


def _submit(
    task: _Task,
    claim: _Claim,
    watch: Monitor | None,
    *,
    entries: Mapping[int, Entry] = MappingProxyType({}),
    notes: Sequence[str] = (),
    again: bool = False,
) -> SubmissionReport:
    """Send what is left of a plan, or what is unknown again.

    It raises only where nothing was sent.
    """
    plan = task.plan
    # Until the report is there, so that no Ctrl-C takes it away.
    with HeldSignals() as signals, ExitStack() as stack:
        journal = None
        duplicates: Mapping[int, int] = {}
        last_chunk = 0
        if task.journal is not None:
            submission = {"service": task.client.base_url, **plan.fingerprint}
            journal = Journal(task.journal, submission, lead_keys(plan))
            stack.push(journal)
            entries = _merged(entries, journal.entries)
            notes = [*notes, *journal.notes]
            duplicates, last_chunk = journal.duplicates, journal.last_chunk
        left = [row for row in plan.positions.tolist() if row not in duplicates]
        chunks = list(
            _chunks_again(plan, left, entries)
            if again
            else _chunks_left(plan, left, entries, last_chunk)
        )
        run = Run(plan, task.client, journal=journal, entries=entries, again=again)
        claim.run = run
        # The run closes it, in its own thread.
        stack.pop_all()

        def report_now(error: OutreachError | None) -> SubmissionReport:
            final = _with_reason(plan, dict(run.entries), duplicates, error)
            every_note = [*notes, *run.notes]
            retry = _retry(task, final, every_note)
            return _report(plan, final, error, every_note, retry)

        with remembered(lambda: report_now(run.error)) as remember:
            error = supervise(run, chunks, signals, progress=task.progress, monitor=watch)
            report = report_now(error)
            remember(report)
        return _told(report, _advice(report, is_safe=journal is not None and not journal.is_lost))


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
    """Return what is known of each row; other runs may have resumed the journal."""
    newer = {
        position: entry
        for position, entry in stored.items()
        if position not in own
        or own[position].outcome.status == statuses.UNKNOWN
        or own[position].attempts < entry.attempts
    }
    return {**own, **newer}


def _chunks_left(
    plan: PreparedLeads, rows: Sequence[int], entries: Mapping[int, Entry], last: int
) -> Iterator[Chunk]:
    """Cut what was never sent, or is tried again, into chunks, in the order of the frame."""
    left = [
        row
        for row in rows
        if row not in entries or entries[row].outcome.status in statuses.TRIED_AGAIN
    ]
    for number, positions in enumerate(plan.chunks(left), last + 1):
        yield Chunk(number, positions.tolist())


def _chunks_again(
    plan: PreparedLeads, rows: Sequence[int], entries: Mapping[int, Entry]
) -> Iterator[Chunk]:
    """Put the rows that are unknown into the chunks that they were in.

    Then a response about a whole request is about the same rows as the one that did not come.
    """
    together: dict[int, list[int]] = {}
    for row in rows:
        if row in entries and entries[row].outcome.status == statuses.UNKNOWN:
            together.setdefault(entries[row].chunk or 0, []).append(row)
    for number, positions in sorted(together.items()):
        for part in plan.chunks(positions):
            yield Chunk(number, part.tolist())


def _with_reason(
    plan: PreparedLeads,
    entries: Mapping[int, Entry],
    duplicates: Mapping[int, int],
    error: OutreachError | None,
) -> dict[int, Entry]:
    """Say of rows that were not sent why not."""
    why = f"The run stopped before: {error}" if error is not None else ""
    never = Entry(RowOutcome(statuses.NOT_SENT, why), None, 0)
    final = {position: entries.get(position, never) for position in plan.positions.tolist()}
    for position, first in duplicates.items():
        detail = f"The journal knows it as the same person as row {first}."
        final[position] = Entry(RowOutcome(statuses.DUPLICATE_IN_FRAME, detail), None, 0)
    return final


def _report(
    plan: PreparedLeads,
    entries: Mapping[int, Entry],
    error: OutreachError | None,
    notes: Sequence[str] = (),
    retry: Callable[..., SubmissionReport] | None = None,
) -> SubmissionReport:
    """Make the report; it has an error wherever rows were not added."""
    rows = make_rows(plan, entries)
    if error is None and (counts := _open_ends(rows["status"])):
        error = OutreachError(f"Not all rows were added: {counts}.")
    return SubmissionReport(
        plan.frame, rows, sequence_id=plan.sequence_id, notes=notes, error=error, retry=retry
    )


def _told(report: SubmissionReport, advice: str) -> SubmissionReport:
    """Warn where rows were not added."""
    if report.error is not None:
        counts = _open_ends(report.rows["status"])
        is_told = not counts or counts in str(report.error)
        begin = "" if is_told else f"Of {plural(len(report.rows), 'row')}, {counts}: "
        # Even where warnings are errors: a report that is lost is worse than a warning that is.
        with suppress(Exception):
            warn(f"{begin}{report.error} {advice}".strip())
    return report


def _open_ends(status: pd.Series[str]) -> str:
    counts = Counter(status)
    return ", ".join(
        f"{counts[each]:,} {'is' if counts[each] == 1 else 'are'} {each}"
        for each in _OPEN_ENDS
        if counts[each]
    )


def _advice(report: SubmissionReport, *, is_safe: bool) -> str:
    """Say what to do next; `is_safe` where a journal knows whom not to send again."""
    status = set(report.rows["status"])
    advice = []
    if status & {statuses.NOT_SENT, statuses.REJECTED, statuses.INVALID}:
        advice.append(
            "To go on, correct what is wrong and submit again with the same journal: it leaves out "
            "whom the service has."
            if is_safe
            else "To go on, plan only the rows that are rejected, not_sent or invalid."
        )
    if statuses.UNKNOWN in status:
        advice.append("report.retry_unknown() sends what is unknown once more.")
    return " ".join(advice)
