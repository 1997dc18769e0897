"""Send chunks one after the other, with the outcomes available at any time."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from itertools import takewhile
from operator import and_, or_
from typing import Any, Final, NamedTuple

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidResponseError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import PreparedLeads
from outreach_frames.leads.sending.events import Entry
from outreach_frames.leads.sending.journal import Journal
from outreach_frames.leads.sending.outcome import (
    TOO_LARGE,
    NextStep,
    RowOutcome,
    classify,
    pointed_leads,
    read_response,
    reclassify_resent,
    resent_outcome,
)

_LOGGER: Final = logging.getLogger(__name__)
# After this number of consecutive failures, the service is down or refuses all requests.
MAX_FAILURES_IN_A_ROW: Final = 3
# The maximum numbers of further requests for the refused rows of a chunk, and of all chunks.
MAX_SEARCH_REQUESTS: Final = 64
MAX_SEARCH_REQUESTS_OF_RUN: Final = 640
# A chunk's halves, quarters and eighths, which are sent first. If all are refused, and so are the
# parts of an eighth down to single rows, the request itself is at fault.
LARGE_PARTS: Final = 2 + 4 + 8
MAX_REFUSED_PARTS: Final = 24
# A request that was refused because of named rows is sent again without them. Each such refusal
# settles a row, so their number is not limited; but the service may be refusing all rows.
MAX_POINTED_IN_A_ROW: Final = 64

_REFUSED_TOGETHER: Final = "The service refused the whole request, not this row alone."


@dataclass(eq=False)
class Search:
    """The search for the refused rows of a chunk by halves."""

    error: OutreachError  # the last refusal
    requests: int = 0
    # Whether a part was accepted, or refused because of single rows.
    has_progress: bool = False


class Chunk(NamedTuple):
    """A request's rows, its chunk number, and whether the request has only part of the chunk."""

    number: int
    positions: Sequence[int]
    is_part: bool = False
    search: Search | None = None
    # Whether the next part has a refused row if this part is accepted.
    is_first_half: bool = False


class NeededFields:
    """The data fields that a sequence may require, inferred from accepted and refused requests.

    The service refuses a whole request if one lead lacks a required field, and may not name the
    field. The rows are then sent in two parts, those with more fields first.
    """

    def __init__(self, fields_of_row: Mapping[int, int]) -> None:
        # Each set of fields is an integer with one bit per field.
        self._fields_of_row = fields_of_row
        # Fields that may be required: each accepted row had all these fields.
        self._possible = reduce(or_, fields_of_row.values(), 0)
        # Each set contains at least one required field.
        self._suspect_sets: set[int] = set()

    def record_accepted(self, rows: Iterable[int]) -> None:
        """Rule out the fields that an accepted row lacks."""
        self._possible = reduce(and_, (self._fields_of_row[row] for row in rows), self._possible)
        # An empty set means that the request was refused for another reason.
        self._suspect_sets = {fields & self._possible for fields in self._suspect_sets} - {0}

    def record_refused(self, rows: Iterable[int]) -> None:
        """Suspect the fields that any of the refused rows lacks."""
        self._suspect_sets |= {reduce(or_, map(self._lacking, rows), 0)} - {0}

    def split(self, rows: Sequence[int], *, was_refused: bool = False) -> list[Sequence[int]]:
        """Split off rows that would certainly be refused, or else split a refused request."""
        lacking = {row: self._lacking(row) for row in rows}
        first = {row for row in rows if not self._is_refused(lacking[row])}
        if was_refused and len(first) == len(rows):
            fuller = sorted(set(lacking.values()), key=int.bit_count)
            del fuller[len(fuller) // 2 :]
            first = {row for row in rows if lacking[row] in fuller}
        parts = [row for row in rows if row in first], [row for row in rows if row not in first]
        return [part for part in parts if part]

    def _lacking(self, row: int) -> int:
        return self._possible & ~self._fields_of_row[row]

    def _is_refused(self, lacking: int) -> bool:
        """Return whether the service certainly refuses rows that lack these fields."""
        return any(not fields & ~lacking for fields in self._suspect_sets)


@dataclass(eq=False)
class Run:
    """One run of a submission. One thread calls `send`; other threads may read, and set `over`."""

    plan: PreparedLeads
    client: Client
    # The journal is written before and after each request.
    journal: Journal
    # True if an earlier request sent the rows with unknown outcome.
    is_resend: bool
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
    _pointed_in_a_row: int = 0
    _search_requests: int = 0

    def __post_init__(self) -> None:
        rows = [row for chunk in self.pending for row in chunk.positions]
        self._needed = NeededFields(self.plan.fields(rows))

    def send(self) -> None:
        """Send chunks until all are sent or the run must stop."""
        try:
            with self.journal:
                while self.pending and not self.over:
                    chunk = self.pending.popleft()
                    if chunk.search and (reason := self._reason_to_give_up(chunk.search)):
                        self._give_up(chunk, chunk.search, reason)
                    elif not self._split(chunk):
                        self._send(chunk)
        except OutreachError as error:
            self.error = error
        finally:
            self.over = True
            self.done.set()

    def _send(self, chunk: Chunk) -> None:
        # Build the body first: after an error here, no row may be recorded as sent.
        body = self.plan.body(chunk.positions)
        now = datetime.now(UTC).replace(microsecond=0)
        self.entries |= self.journal.begin(chunk.number, chunk.positions, now)
        self.requests += 1
        if chunk.search is not None:
            chunk.search.requests += 1
            self._search_requests += 1
        path = {"id": self.plan.sequence_id}
        try:
            response = self.client.write(spec.ADD_LEADS, path=path, body=body)
        except OutreachError as error:
            self._record_error(chunk, error)
        else:
            self._record_response(chunk, response)

    def _record_response(self, chunk: Chunk, response: Any) -> None:
        """Record the outcome of each row from a 2xx response."""
        read = read_response(self.plan.identifiers(chunk.positions), response)
        is_accepted = any(row.status != statuses.UNKNOWN for row in read.rows)
        if is_accepted:
            self._failures_in_a_row = self._pointed_in_a_row = 0
            self._needed.record_accepted(chunk.positions)
            self._record_accepted_part(chunk)
        else:
            problem = " ".join(read.notes) or read.rows[0].detail
            self.error = InvalidResponseError(f"Chunk {chunk.number}: {problem}")
            self._count_failure()
        rows: Sequence[RowOutcome] = read.rows
        if self.is_resend:
            rows = [
                reclassify_resent(row, is_certain=place in read.certain)
                for place, row in enumerate(rows)
            ]
        self._finish(chunk, rows, read.notes)

    def _record_error(self, chunk: Chunk, error: OutreachError) -> None:
        """Record a failed chunk's outcome, and decide how to continue."""
        size = len(chunk.positions)
        outcome, next_step, notes = classify(error)
        if next_step is NextStep.FIND_FIELD:
            self._needed.record_refused(chunk.positions)
            if self._split(chunk, was_refused=True):
                unsent = outcome._replace(status=statuses.NOT_SENT)
                interim = [self._without_result(unsent)] * size
                self._finish(chunk, interim, notes, interim=range(size))
                return
        elif next_step is not NextStep.STOP and outcome.status == statuses.REJECTED and size > 1:
            outcome = outcome._replace(detail=f"{outcome.detail} {_REFUSED_TOGETHER}")
        outcome = self._without_result(outcome)
        if next_step is NextStep.FIND_ROWS and self._find_rows(chunk, error, outcome):
            return
        self.error = error
        is_refused_part = chunk.is_part and next_step in {NextStep.FIND_FIELD, NextStep.FIND_ROWS}
        if next_step is NextStep.STOP:
            self.over = True
        elif not is_refused_part or self._has_failed(chunk.search):
            self._count_failure()
        self._finish(chunk, [outcome] * size, notes)

    def _find_rows(self, chunk: Chunk, error: OutreachError, refusal: RowOutcome) -> bool:
        """Continue without the rows that the service points at, else with each half.

        Until another request has their outcomes, these rows are recorded as refused.
        """
        rows, is_too_large = chunk.positions, error.status_code == TOO_LARGE
        pointed = {} if is_too_large else pointed_leads(error, len(rows))
        if pointed is None or (not pointed and len(rows) == 1):
            return False
        rest = [place for place in range(len(rows)) if place not in pointed]
        outcomes = [refusal] * len(rows)
        for place, detail in pointed.items():
            outcomes[place] = self._without_result(RowOutcome(statuses.REJECTED, detail))
        if not pointed:
            search = chunk.search or Search(error)
            search.error = error
            self._halve(chunk, search, is_too_large=is_too_large)
        elif self._may_continue_without(chunk, error) and rest:
            others = [rows[place] for place in rest]
            self.pending.appendleft(Chunk(chunk.number, others, is_part=True))
        else:
            rest = []
        self._finish(chunk, outcomes, (), interim=rest)
        return True

    def _may_continue_without(self, chunk: Chunk, error: OutreachError) -> bool:
        """Count a refusal because of single rows; return False after too many in a row."""
        self.error = error
        if chunk.search is not None:
            chunk.search.has_progress = True
        self._pointed_in_a_row += 1
        if self._pointed_in_a_row < MAX_POINTED_IN_A_ROW:
            return True
        self._pointed_in_a_row = 0
        reason = f"{MAX_POINTED_IN_A_ROW} requests in a row were refused because of single rows"
        self._note_end(chunk, reason, error)
        return False

    def _halve(self, chunk: Chunk, search: Search, *, is_too_large: bool = False) -> None:
        """Send a chunk in halves, after the search's larger parts or, if none may pass, next."""
        is_next = is_too_large or (search.requests >= LARGE_PARTS and not search.has_progress)
        place = 0 if is_next else len(self._parts(search))
        rows, half = chunk.positions, len(chunk.positions) // 2
        self.pending.insert(place, Chunk(chunk.number, rows[half:], True, search))
        self.pending.insert(place, Chunk(chunk.number, rows[:half], True, search, not is_too_large))

    def _parts(self, search: Search) -> list[Chunk]:
        """Return the pending parts of a search, which come first."""
        return [*takewhile(lambda chunk: chunk.search is search, self.pending)]

    def _record_accepted_part(self, chunk: Chunk) -> None:
        """Record that a part was accepted; split the other half, which has a refused row."""
        if chunk.search is None:
            return
        chunk.search.has_progress = True
        if chunk.is_first_half and len(self.pending[0].positions) > 1:
            self._halve(self.pending.popleft(), chunk.search)

    def _has_failed(self, search: Search | None) -> bool:
        """Return whether a search has ended, and each of its requests was refused."""
        return search is not None and not search.has_progress and not self._parts(search)

    def _reason_to_give_up(self, search: Search) -> str:
        """Return why the search for refused rows ends, or an empty text."""
        if search.requests >= MAX_REFUSED_PARTS and not search.has_progress:
            return f"none of {MAX_REFUSED_PARTS} further requests was accepted"
        if search.requests >= MAX_SEARCH_REQUESTS:
            return f"{MAX_SEARCH_REQUESTS} further requests did not find all refused rows"
        if self._search_requests >= MAX_SEARCH_REQUESTS_OF_RUN:
            return f"{MAX_SEARCH_REQUESTS_OF_RUN} further requests of this run looked for such rows"
        return ""

    def _give_up(self, chunk: Chunk, search: Search, reason: str) -> None:
        """Leave the remaining rows of a chunk refused, as they are recorded."""
        rows = [*chunk.positions]
        for part in self._parts(search):
            rows += part.positions
            self.pending.popleft()
        self.tally = Counter(self.tally) + Counter(self.entries[row].outcome.status for row in rows)
        self._note_end(chunk, reason, search.error)

    def _note_end(self, chunk: Chunk, reason: str, error: OutreachError) -> None:
        """Note why a chunk's other rows are not sent again, and count a failure."""
        outcome = "stay unknown" if self.is_resend else "are rejected"
        self.notes.append(f"Chunk {chunk.number}: {reason}, so its other rows {outcome}.")
        self.error = error
        self._count_failure()

    def _split(self, chunk: Chunk, *, was_refused: bool = False) -> bool:
        """Split a chunk in two if the service has refused it, or would certainly refuse it."""
        parts = self._needed.split(chunk.positions, was_refused=was_refused)
        if len(parts) == 1:
            return False
        # `extendleft` reverses the order.
        self.pending.extendleft(
            chunk._replace(positions=part, is_part=True, is_first_half=False)
            for part in reversed(parts)
        )
        return True

    def _count_failure(self) -> None:
        """Count a failure; stop the run after too many consecutive failures."""
        self._failures_in_a_row += 1
        self.over |= self._failures_in_a_row == MAX_FAILURES_IN_A_ROW

    def _without_result(self, outcome: RowOutcome) -> RowOutcome:
        """Return the outcome of a row whose request failed."""
        return resent_outcome(outcome) if self.is_resend else outcome

    def _finish(
        self,
        chunk: Chunk,
        outcomes: Sequence[RowOutcome],
        notes: Iterable[str],
        *,
        interim: Collection[int] = (),
    ) -> None:
        """Record the outcomes of a chunk's rows, first in memory, then in the journal.

        The rows at the places `interim` will be sent again.
        """
        counts = Counter(outcome.status for outcome in outcomes)
        again = Counter(outcomes[place].status for place in interim)
        self.tally = Counter(self.tally) + (counts - again)
        known = dict(zip(chunk.positions, outcomes, strict=True))
        for position, outcome in known.items():
            self.entries[position] = self.entries[position].with_outcome(outcome)
        self.notes += [f"Chunk {chunk.number}: {note}" for note in notes]
        self.journal.finish(known)
        shown = ", ".join(f"{counts[one]} {one}" for one in statuses.STATUSES if counts[one])
        _LOGGER.info("chunk %d: %d leads, %s", chunk.number, len(chunk.positions), shown)


# Returns whether the run ends after the current request.
Monitor = Callable[[Run], bool]
