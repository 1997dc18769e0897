"""Sending a plan, so that whatever happens there is a report of every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn

from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.cancellation import CancellationToken, bind_thread, current_status
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.warnings import warn
from outreach_frames.errors import ConfigurationError, InvalidInputError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import PreparedLeads
from outreach_frames.leads.sending.journal import Entry, Journal
from outreach_frames.leads.sending.outcome import RowOutcome
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.rows import make_rows
from outreach_frames.leads.sending.run import Chunk, Directive, Monitor, Run

if TYPE_CHECKING:
    from tqdm import tqdm

_INTERRUPTED: Final = (
    "Interrupted. Rows that the request under way held are unknown if it may have arrived; "
    "what came after it was not sent."
)
_CANCELLED: Final = "Cancelled. What came after the last request was not sent."
# Seconds between two looks at a run's progress.
_SLICE: Final = 0.1
# Seconds that Ctrl-C leaves the request under way to be answered: without its answer, nobody knows
# what became of its rows.
_GRACE: Final = 1.5
# Seconds until an interrupted run that does not end is left to itself.
_PATIENCE: Final = 5.0


def submit(
    plan: PreparedLeads,
    *,
    journal: str | Path | None = None,
    progress: bool | None = None,
    dry_run: bool = False,
    watch: Monitor | None = None,
) -> SubmissionReport:
    """Send a plan, one request after the other, and report what became of every row.

    Parameters
    ----------
    plan : PreparedLeads
        What to send.
    journal : str or Path, optional
        A file that knows what became of each row, whatever ends the run. With the same plan and
        journal again, what the service accepted or skipped is settled and not sent again; what it
        refused or never got is; what may or may not have arrived stays `unknown`.
    progress : bool, optional
        True shows a progress bar everywhere, False nowhere; else where somebody looks at it.
    dry_run : bool
        Send nothing, and leave the journal alone.
    watch : callable, optional
        Called with the `Run` before the first request, a few times a second, and once it is done;
        returns whether to "continue", to "drain" after the request under way, or to "abort" that
        too, as Ctrl-C does. A wish to end is never taken back. It must not raise; if it does, the
        request under way is the last, and there is no report.

    Returns
    -------
    SubmissionReport
        Once sending has begun, in every case: Ctrl-C ends the run, and its report is returned. What
        stopped the run is in `error`, and warned about.

    Raises
    ------
    ConfigurationError
        No service is connected. Nothing was sent.
    InvalidInputError
        The journal cannot be used. Nothing was sent.

    Notes
    -----
    Interface: POST /sequences/{id}/leads. A 400 or 413 rejects its request's rows alone. A 422
    rejects them too, and stops the run, except: a missing lead field rejects only the rows of this
    request that bring the same fields, found by sending the rows once more by what they bring; a
    reason that may be about this request's leads alone goes on to the next request. So does an
    answer that does not come or makes no sense, with `unknown` rows. Three of either in a row stop
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
    if journal is None and not len(plan.positions):
        return SubmissionReport(plan.frame, make_rows(plan, {}), sequence_id=plan.sequence_id)
    client = _open_client(plan)
    with _once(plan, client.base_url, journal):
        return _submit(plan, client, journal, progress, watch)


@contextmanager
def _once(plan: PreparedLeads, service: str, journal: str | Path | None) -> Iterator[None]:
    """Refuse to send a plan twice, unless a journal knows what to leave out.

    `_submit` raises only where it sent nothing; then the plan may be submitted again.
    """
    mine: object = object() if journal is None else Path(journal).expanduser().absolute()
    first = plan.submissions.setdefault(service, mine)
    if first != mine:
        before = f"with the journal {first}" if isinstance(first, Path) else "without a journal"
        instead = (
            "Go on with that journal"
            if isinstance(first, Path)
            else "Plan those rows anew that the report has as rejected or not_sent"
        )
        raise InvalidInputError(
            f"This plan was submitted before, {before}; once more would send its leads twice. "
            f"{instead}. Nothing was sent."
        )
    try:
        yield
    except OutreachError:
        if first is mine:
            del plan.submissions[service]
        raise


def _retry(
    plan: PreparedLeads,
    journal: str | Path | None,
    progress: bool | None,
    entries: Mapping[int, Entry],
    notes: Sequence[str],
) -> Callable[..., SubmissionReport]:
    """Return what sends the unknown rows of a report once more."""
    free = Lock()

    def retry(watch: Monitor | None = None) -> SubmissionReport:
        # A journal knows by itself what was sent again.
        if journal is None and not free.acquire(blocking=False):
            raise InvalidInputError(
                "The unknown rows of this report were sent again before. What became of them is in "
                "the report that retry_unknown() returned then. Nothing was sent."
            )
        try:
            client = _open_client(plan)
            return _submit(
                plan, client, journal, progress, watch, entries=entries, notes=notes, again=True
            )
        except OutreachError:
            if journal is None:
                free.release()
            raise

    return retry


def _submit(
    plan: PreparedLeads,
    client: Client,
    journal: str | Path | None,
    progress: bool | None,
    watch: Monitor | None = None,
    *,
    entries: Mapping[int, Entry] = MappingProxyType({}),
    notes: Sequence[str] = (),
    again: bool = False,
) -> SubmissionReport:
    """Send what is left of a plan, or what is unknown again."""
    opened = None
    if journal is not None:
        submission = {"service": client.base_url, **plan.fingerprint}
        opened = Journal(journal, submission, plan.positions.tolist())
        entries = _merged(entries, opened.entries)
        notes = [*notes, *opened.notes]
    chunks = list(_chunks_again(plan, entries) if again else _chunks_left(plan, entries))
    run = Run(plan, client, journal=opened, entries=entries, again=again)
    error = _carry_out(run, chunks, progress, watch)
    final = _with_reason(plan, dict(run.entries), error)
    if error is not None:
        warn(_in_words(final, error, journal))
    notes = [*notes, *run.notes]
    return SubmissionReport(
        plan.frame,
        make_rows(plan, final),
        sequence_id=plan.sequence_id,
        notes=notes,
        error=error,
        retry=_retry(plan, journal, progress, final, notes),
    )


def _open_client(plan: PreparedLeads) -> Client:
    client = resolve(plan.client)
    if client.closed:
        raise ConfigurationError(
            "The plan's client is closed. Connect again, and make the plan anew. Nothing was sent."
        )
    return client


def _merged(own: Mapping[int, Entry], stored: Mapping[int, Entry]) -> dict[int, Entry]:
    """Return what is known of each row; other runs may have gone on with the journal."""
    newer = {
        position: entry
        for position, entry in stored.items()
        if position not in own
        or own[position].outcome.status == statuses.UNKNOWN
        or own[position].attempts < entry.attempts
    }
    return {**own, **newer}


def _chunks_left(plan: PreparedLeads, entries: Mapping[int, Entry]) -> Iterator[Chunk]:
    """Cut what was never sent, or is tried again, into chunks, in the order of the frame."""
    left = [
        position
        for position in plan.positions.tolist()
        if position not in entries or entries[position].outcome.status in statuses.TRIED_AGAIN
    ]
    last = max((entry.chunk or 0 for entry in entries.values()), default=0)
    for number, positions in enumerate(plan.chunks(left), last + 1):
        yield Chunk(number, positions.tolist())


def _chunks_again(plan: PreparedLeads, entries: Mapping[int, Entry]) -> Iterator[Chunk]:
    """Put the rows that are unknown into the chunks that they were in.

    Then an answer about a whole request is about the same rows as the one that did not come.
    """
    together: dict[int, list[int]] = {}
    for position, entry in sorted(entries.items()):
        if entry.outcome.status == statuses.UNKNOWN:
            together.setdefault(entry.chunk or 0, []).append(position)
    for number, positions in sorted(together.items()):
        for part in _cut(positions, plan.chunk_size):
            yield Chunk(number, part)


def _cut(positions: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (positions[start : start + size] for start in range(0, len(positions), size))


def _carry_out(
    run: Run, chunks: Sequence[Chunk], progress: bool | None, watch: Monitor | None
) -> OutreachError | None:
    """Let a run send; return why it ended early, if it did. Raise where it sent nothing at all."""
    future, wish = _watched(run, chunks, progress, watch)
    if wish == "abort":
        return OutreachError(_INTERRUPTED)
    fault = future.exception() if future is not None else None
    error = run.error
    if fault is not None and not isinstance(fault, OutreachError):
        error = OutreachError(
            f"Something that should not happen stopped the run: {type(fault).__name__}. Report it, "
            "with the traceback that error.__cause__ holds."
        )
        error.__cause__ = fault
    if error is not None and not run.requests:
        raise error
    if error is None and wish == "drain" and run.left:
        return OutreachError(_CANCELLED)
    return error


def _watched(
    run: Run, chunks: Sequence[Chunk], progress: bool | None, watch: Monitor | None
) -> tuple[Future[None] | None, Directive]:
    """Let a run send in a thread of its own; return that, and what was wished of it meanwhile.

    So Ctrl-C never falls between two steps that belong together, such as an answer and its entry
    in the journal.
    """
    stop = CancellationToken()
    wish: Directive = "continue"
    executor = ThreadPoolExecutor(
        1, "outreach_frames", initializer=bind_thread, initargs=(stop, current_status.get())
    )
    future = None
    rows = sum(len(chunk.positions) for chunk in chunks)
    try:
        with progress_bar(rows, description="Adding", unit="leads", progress=progress) as bar:
            run.over = watch is not None and _directive_of(watch, run) != "continue"
            future = executor.submit(run.send, chunks)
            wish = _look_on(run, bar, watch)
    except KeyboardInterrupt:
        wish = "abort"
    finally:
        # Whatever ends the watching, nothing more is sent that nobody would hear of.
        run.over = True
        executor.shutdown(wait=False)
    if wish == "abort":
        for patience in (_GRACE, _PATIENCE):
            # A further Ctrl-C ends the waiting, not the report.
            with suppress(KeyboardInterrupt):
                run.done.wait(patience)
            stop.set()
    return future, wish


def _look_on(run: Run, bar: tqdm[NoReturn], watch: Monitor | None) -> Directive:
    """Show a run's progress until it is done or to be broken off; return what was wished."""
    wish: Directive = "continue"
    done = False
    while not done:
        done = run.done.wait(_SLICE)
        _show(run.tally, bar)
        wished = "continue" if watch is None else _directive_of(watch, run)
        if wished == "abort" and not done:
            return wished
        if wished != "continue":
            wish, run.over = "drain", True
    return wish


def _directive_of(watch: Monitor, run: Run) -> Directive:
    """Ask who watches; an error of theirs is never taken for one from before the first request."""
    try:
        return watch(run)
    except OutreachError as error:
        raise RuntimeError("what watches a run must not raise") from error


def _show(tally: Mapping[str, int], bar: tqdm[NoReturn]) -> None:
    counts = dict.fromkeys(statuses.KINDS, 0)
    for status, rows in tally.items():
        counts[statuses.kind_of(status)] += rows
    bar.set_postfix(counts, refresh=False)
    bar.update(sum(counts.values()) - bar.n)


def _with_reason(
    plan: PreparedLeads, entries: Mapping[int, Entry], error: OutreachError | None
) -> dict[int, Entry]:
    """Say of rows that were never sent why not."""
    why = f"The run stopped before: {error}" if error is not None else ""
    never = Entry(RowOutcome(statuses.NOT_SENT, why), None, 0)
    return {position: entries.get(position, never) for position in plan.positions.tolist()}


def _in_words(
    entries: Mapping[int, Entry], error: OutreachError, journal: str | Path | None
) -> str:
    counts = Counter(entry.outcome.status for entry in entries.values())
    open_ends = [
        f"{counts[status]:,} rows are {status}"
        for status in (statuses.NOT_SENT, statuses.REJECTED, statuses.UNKNOWN)
        if counts[status]
    ]
    advice = []
    if counts[statuses.NOT_SENT] or counts[statuses.REJECTED]:
        advice.append(
            "To go on, submit again with the same journal."
            if journal
            else "To go on, plan those rows anew that are rejected or not_sent."
        )
    if counts[statuses.UNKNOWN]:
        advice.append("report.retry_unknown() sends what is unknown once more.")
    return f"Of {len(entries):,} leads, {', '.join(open_ends)}: {error} {' '.join(advice)}".strip()
