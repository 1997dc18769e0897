"""Send chunks one after the other, with the outcomes available at any time."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Final

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidResponseError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import PreparedLeads
from outreach_frames.leads.sending.events import Entry
from outreach_frames.leads.sending.journal import Journal
from outreach_frames.leads.sending.outcome import (
    TOO_LARGE,
    ChunkOutcome,
    NextStep,
    RowOutcome,
    classify,
    pointed_leads,
    read_response,
    reclassify_resent,
    resent_outcome,
)
from outreach_frames.leads.sending.refusals import ByFields, ByHalves, ByPointer, Chunk

_LOGGER: Final = logging.getLogger(__name__)
# After this number of consecutive failures, the service is down or refuses all requests.
MAX_FAILURES_IN_A_ROW: Final = 3

_REFUSED_TOGETHER: Final = "The service refused the whole request, not this row alone."
# After these errors, other rows of the request may be the reason.
_MAY_BE_OTHER_ROWS: Final = (NextStep.FIND_ROWS, NextStep.CONTINUE)


@dataclass(eq=False)
class Run:
    """One run of a submission. One thread calls `send`; other threads may read, and set `over`."""

    plan: PreparedLeads
    client: Client
    # The journal is written before and after each request.
    journal: Journal
    # True if an earlier request sent the rows with unknown outcome.
    is_retry: bool
    # The chunks to send; the waiting parts of a refused chunk come first.
    pending: deque[Chunk]
    # The outcome per row that this or an earlier run sent; `unknown` during the request.
    entries: dict[int, Entry]
    # The number of finished rows of this run per status; replaced as a whole, for other threads.
    tally: Mapping[str, int] = field(default_factory=dict)
    # Messages of the service that belong to no single row.
    notes: list[str] = field(default_factory=list)
    # The error that stopped the run, else the last error with `rejected` or `unknown` rows.
    error: OutreachError | None = None
    requests: int = 0
    # True if no further request may begin.
    over: bool = False
    # Set once the run has ended and its journal is closed.
    done: threading.Event = field(default_factory=threading.Event)
    _failures_in_a_row: int = 0
    # The further requests by halves of all chunks.
    _requests_by_halves: int = 0

    def __post_init__(self) -> None:
        rows = [row for chunk in self.pending for row in chunk.positions]
        self._by_fields = ByFields(self.plan.fields(rows))
        self._by_pointer = ByPointer()

    def send(self) -> None:
        """Send chunks until all are sent or the run must stop."""
        try:
            with self.journal:
                while self.pending and not self.over:
                    chunk = self.pending.popleft()
                    by_halves = chunk.by_halves
                    if by_halves and (reason := by_halves.reason_to_end(self._requests_by_halves)):
                        self._give_up(chunk, by_halves, reason)
                    elif parts := self._by_fields.split(chunk):
                        self._put_first(parts)
                    else:
                        self._send(chunk)
        except OutreachError as error:
            self.error = error
        finally:
            self.over = True
            self.done.set()

    def _send(self, chunk: Chunk) -> None:
        """Send one request, and record its beginning and its outcomes."""
        # Build the body first: after an error here, no row may be recorded as sent.
        body = self.plan.body(chunk.positions)
        now = datetime.now(UTC).replace(microsecond=0)
        self.entries |= self.journal.begin(chunk.number, chunk.positions, now)
        self.requests += 1
        if chunk.by_halves is not None:
            chunk.by_halves.requests += 1
            self._requests_by_halves += 1
        path = {"id": self.plan.sequence_id}
        try:
            response = self.client._session.write(spec.ADD_LEADS, path=path, body=body)
        except OutreachError as error:
            self._record_error(chunk, error)
        else:
            self._record_response(chunk, response)

    def _record_response(self, chunk: Chunk, response: Any) -> None:
        """Record the outcome of each row from a 2xx response."""
        read = read_response(self.plan.identifiers(chunk.positions), response)
        if any(outcome.status != statuses.UNKNOWN for outcome in read.rows):
            self._record_accepted(chunk)
        else:
            problem = " ".join(read.notes) or read.rows[0].detail
            self._count_failure(InvalidResponseError(f"Chunk {chunk.number}: {problem}"))
        if self.is_retry:
            rows = [
                reclassify_resent(outcome, is_certain=index in read.certain)
                for index, outcome in enumerate(read.rows)
            ]
            read = read._replace(rows=tuple(rows))
        self._finish(chunk, read)

    def _record_accepted(self, chunk: Chunk) -> None:
        """Tell the strategies that the service accepted a request."""
        self._failures_in_a_row = 0
        self._by_pointer.refused_in_a_row = 0
        self._by_fields.record_accepted(chunk.positions)
        if chunk.by_halves is not None:
            waiting = self._take_parts(chunk.by_halves)
            self._put_first(chunk.by_halves.parts_after_accepted(chunk, waiting))

    def _record_error(self, chunk: Chunk, error: OutreachError) -> None:
        """Record a failed request, and send those of its rows again that may be accepted."""
        outcome, next_step, notes = classify(error)
        size = len(chunk.positions)
        parts, pointed = self._next_parts(chunk, error, next_step)
        if not parts and not pointed:
            self._fail(chunk, error, next_step)
        if next_step is NextStep.FIND_FIELD and parts:
            outcome = outcome._replace(status=statuses.NOT_SENT)
        elif next_step in _MAY_BE_OTHER_ROWS and outcome.status == statuses.REJECTED and size > 1:
            outcome = outcome._replace(detail=f"{outcome.detail} {_REFUSED_TOGETHER}")
        rows = [outcome] * size
        for index, words in pointed.items():
            rows[index] = RowOutcome(statuses.REJECTED, words)
        if self.is_retry:
            rows = [resent_outcome(row) for row in rows]
        self._put_first(parts)
        self._finish(chunk, ChunkOutcome(tuple(rows), notes), parts)

    def _next_parts(
        self, chunk: Chunk, error: OutreachError, next_step: NextStep
    ) -> tuple[list[Chunk], dict[int, str]]:
        """Return the next parts by the strategy for this error, and the words for pointed rows."""
        if next_step is NextStep.FIND_FIELD:
            return self._by_fields.next_parts(chunk), {}
        if next_step is not NextStep.FIND_ROWS:
            return [], {}
        size, is_too_large = len(chunk.positions), error.status_code == TOO_LARGE
        pointed = {} if is_too_large else pointed_leads(error, size)
        if pointed:
            self.error = error
            parts = self._by_pointer.next_parts(chunk, pointed)
            if reason := self._by_pointer.reason_to_end():
                # Parts of the chunk that are still waiting are sent.
                self._note_end(chunk, reason, error, rows="the last request's other rows")
            return parts, pointed
        if pointed is None or size == 1:
            return [], {}
        by_halves = chunk.by_halves or ByHalves(error)
        by_halves.last_refusal = error
        waiting = self._take_parts(by_halves)
        return by_halves.next_parts(chunk, waiting, is_too_large=is_too_large), {}

    def _fail(self, chunk: Chunk, error: OutreachError, next_step: NextStep) -> None:
        """Stop the run, or count a failure unless other parts of the chunk may be accepted."""
        self.error = error
        by_halves = chunk.by_halves
        is_waiting = any(part.by_halves is by_halves for part in self.pending)
        is_all_refused = by_halves is not None and not (by_halves.has_progress or is_waiting)
        if next_step is NextStep.STOP:
            self.over = True
        elif next_step is NextStep.CONTINUE or not chunk.is_part or is_all_refused:
            self._count_failure(error)

    def _give_up(self, chunk: Chunk, by_halves: ByHalves, reason: str) -> None:
        """Leave the remaining rows of a chunk refused, as they are recorded."""
        parts = [chunk, *self._take_parts(by_halves)]
        rows = [row for part in parts for row in part.positions]
        self.tally = Counter(self.tally) + Counter(self.entries[row].outcome.status for row in rows)
        self._note_end(chunk, reason, by_halves.last_refusal, rows="its other rows")

    def _note_end(self, chunk: Chunk, reason: str, error: OutreachError, *, rows: str) -> None:
        """Note why these rows of a chunk are not sent again, and count a failure."""
        outcome = "stay unknown" if self.is_retry else "are rejected"
        self.notes.append(f"Chunk {chunk.number}: {reason}, so {rows} {outcome}.")
        self._count_failure(error)

    def _count_failure(self, error: OutreachError) -> None:
        """Count a failure; stop the run after too many consecutive failures."""
        self.error = error
        self._failures_in_a_row += 1
        self.over |= self._failures_in_a_row == MAX_FAILURES_IN_A_ROW

    def _put_first(self, parts: Sequence[Chunk]) -> None:
        """Send these parts, in this order, before the pending chunks."""
        # `extendleft` reverses the order.
        self.pending.extendleft(reversed(parts))

    def _take_parts(self, by_halves: ByHalves) -> list[Chunk]:
        """Remove the waiting parts of a chunk, which come first, and return them."""
        parts = [*takewhile(lambda part: part.by_halves is by_halves, self.pending)]
        for _ in parts:
            self.pending.popleft()
        return parts

    def _finish(self, chunk: Chunk, read: ChunkOutcome, next_parts: Sequence[Chunk] = ()) -> None:
        """Record the outcomes of a chunk's rows, first in memory, then in the journal.

        The tally counts a row only if none of the parts that come next has it.
        """
        outcomes = dict(zip(chunk.positions, read.rows, strict=True))
        sent_again = {row for part in next_parts for row in part.positions}
        finished = [outcome.status for row, outcome in outcomes.items() if row not in sent_again]
        self.tally = Counter(self.tally) + Counter(finished)
        for row, outcome in outcomes.items():
            self.entries[row] = self.entries[row].with_outcome(outcome)
        self.notes += [f"Chunk {chunk.number}: {note}" for note in read.notes]
        self.journal.finish(outcomes)
        counts = Counter(outcome.status for outcome in read.rows)
        shown = ", ".join(f"{counts[name]} {name}" for name in statuses.STATUSES if counts[name])
        _LOGGER.info("chunk %d: %d leads, %s", chunk.number, len(chunk.positions), shown)


# Returns whether the run ends after the current request.
Monitor = Callable[[Run], bool]
