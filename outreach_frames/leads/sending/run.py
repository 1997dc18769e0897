"""Send chunks one after the other, and keep the outcome of each row at any moment."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import Any, Final, Literal, NamedTuple

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidResponseError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import PreparedLeads
from outreach_frames.leads.sending.journal import Journal
from outreach_frames.leads.sending.outcome import (
    NextStep,
    RowOutcome,
    classify,
    classify_resend,
    read_response,
    reclassify_resent,
)
from outreach_frames.leads.sending.resume import Entry

# After so many requests in a row that failed alike the service is down, or refuses everything.
MAX_FAILURES_IN_A_ROW: Final = 3

_NO_RESPONSE: Final = RowOutcome(statuses.UNKNOWN, "It was sent, and no response was read.")
_IN_DOUBT: Final = "doubt"


class Chunk(NamedTuple):
    """The rows of one request, the number of the submission's chunk, and whether it is a part."""

    number: int
    positions: Sequence[int]
    is_part: bool = False


class NeededFields:
    """The data fields that a sequence may need, by what the service accepted and refused.

    The service refuses a whole request where one lead lacks a needed field, and need not say which.
    So parts of it are sent, chosen so that each response halves the fields in question. What was
    learned holds for the rest of the run.

    Parameters
    ----------
    brought : mapping of int to int
        The fields of each row; a set of fields is a number, with one bit for each field.
    """

    def __init__(self, brought: Mapping[int, int]) -> None:
        self._brought = brought
        # Each of these may be needed: no row without it was accepted.
        self._possible = reduce(or_, brought.values(), 0)
        # Each of these sets holds a field that is needed.
        self._guilty: set[int] = set()

    def accepted(self, rows: Iterable[int]) -> None:
        """Learn that the service completed a request with these rows."""
        self._possible = reduce(and_, (self._brought[row] for row in rows), self._possible)
        # A set that is empty by now says nothing: the service refuses for another reason, too.
        self._guilty = {fields & self._possible for fields in self._guilty} - {0}

    def refused(self, rows: Iterable[int]) -> None:
        """Learn that a field is missing from at least one of these rows."""
        self._guilty |= {reduce(or_, map(self._lacking, rows), 0)} - {0}

    def split(self, rows: Sequence[int]) -> list[Sequence[int]]:
        """Return rows in two parts where the service would certainly refuse them for some only."""
        lacking = {row: self._lacking(row) for row in rows}
        if not self._is_refused(reduce(or_, lacking.values(), 0)):
            return [rows]
        first = {row for row in rows if not self._is_refused(lacking[row])}
        if not first:
            return [rows]
        if len(first) == len(rows):
            first = self._half(lacking)
        return [[row for row in rows if row in first], [row for row in rows if row not in first]]

    def _half(self, lacking: Mapping[int, int]) -> set[int]:
        """Return rows that lack half of the suspected fields at most, where there are such rows."""
        # The fields that explain all refusals at once, else those of the narrowest.
        common = reduce(and_, self._guilty, self._possible)
        suspects = common or min(self._guilty, key=int.bit_count)

        def rank(row: int) -> tuple[int, int]:
            return (lacking[row] & suspects).bit_count(), lacking[row].bit_count()

        ranked = sorted(lacking, key=rank)
        tried = lacking[ranked[0]]
        for row in ranked:
            wider = tried | lacking[row]
            is_half = 2 * (wider & suspects).bit_count() <= suspects.bit_count()
            if is_half and not self._is_refused(wider):
                tried = wider
        return {row for row in ranked if not lacking[row] & ~tried}

    def _lacking(self, row: int) -> int:
        return self._possible & ~self._brought[row]

    def _is_refused(self, lacking: int) -> bool:
        """Return whether the service certainly refuses rows that lack these fields."""
        return any(not fields & ~lacking for fields in self._guilty)


@dataclass(eq=False)
class Run:
    """One run of a submission. One thread is in `send`; others may read, and set `over`.

    Attributes
    ----------
    plan : PreparedLeads
        Where the leads are.
    client : Client
        The way to the service.
    journal : Journal or None
        Written before and after each request, and closed at the end.
    is_again : bool
        Whether the rows were sent before, with no known outcome.
    pending : deque of Chunk
        The chunks that are still to be sent.
    entries : dict of int to Entry
        The outcome of each row that was sent, by earlier runs too: `unknown` while it is being
        sent.
    begun : set of int
        The rows that this run sent.
    current : sequence of int
        The rows of the request under way.
    tally : mapping of str to int
        How many rows this run is done with, by status; replaced as a whole.
    notes : list of str
        What the service said beyond the rows' outcomes.
    error : OutreachError or None
        What stopped the run, else the last that left rows `rejected` or `unknown`.
    requests : int
        How many requests were begun.
    over : bool
        True once no further request is to begin.
    done : Event
        Set when the run has ended, and its journal is closed.
    """

    plan: PreparedLeads
    client: Client
    journal: Journal | None
    is_again: bool
    pending: deque[Chunk]
    entries: dict[int, Entry]
    begun: set[int] = field(default_factory=set)
    current: Sequence[int] = ()
    tally: Mapping[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    error: OutreachError | None = None
    requests: int = 0
    over: bool = False
    done: threading.Event = field(default_factory=threading.Event)
    _last_failure: str = ""
    _failures_in_a_row: int = 0

    def __post_init__(self) -> None:
        rows = [row for chunk in self.pending for row in chunk.positions]
        self._needed = NeededFields(self.plan.fields(rows))

    def send(self) -> None:
        """Send chunk after chunk, until all are sent or the run must stop."""
        try:
            with self.journal or nullcontext():
                while self.pending and not self.over:
                    chunk = self.pending.popleft()
                    if not self._split(chunk):
                        self._send(chunk)
        except OutreachError as error:
            self.error = error
        finally:
            self.over = True
            self.done.set()

    def close(self) -> None:
        """Close the journal of a run that never began."""
        if self.journal is not None:
            self.journal.close()

    def _send(self, chunk: Chunk) -> None:
        if self.journal is not None:
            self.journal.begin(chunk.number, chunk.positions)
        for position in chunk.positions:
            attempts = self.entries[position].attempts if position in self.entries else 0
            self.entries[position] = Entry(_NO_RESPONSE, chunk.number, attempts + 1)
        self.begun.update(chunk.positions)
        self.current = chunk.positions
        self.requests += 1
        try:
            response = self.client.write(
                spec.ADD_LEADS,
                path={"id": self.plan.sequence_id},
                body=self.plan.body(chunk.positions),
            )
        except OutreachError as error:
            self._failed(chunk, error)
        else:
            self._take_response(chunk, response)

    def _take_response(self, chunk: Chunk, response: Any) -> None:
        """Record what a 2xx says of each row."""
        read = read_response(self.plan.identifiers(chunk.positions), response)
        is_accepted = any(row.status != statuses.UNKNOWN for row in read.rows)
        if is_accepted:
            self._failures_in_a_row = 0
            self._needed.accepted(chunk.positions)
        else:
            said = " ".join(read.notes) or read.rows[0].detail
            self.error = InvalidResponseError(f"Chunk {chunk.number}: {said}")
            self._count_failure(_IN_DOUBT)
        rows = [reclassify_resent(row) for row in read.rows] if self.is_again else read.rows
        self._finish(chunk, rows, read.notes)

    def _failed(self, chunk: Chunk, error: OutreachError) -> None:
        """Record the outcome that an error gives the chunk, and decide how to continue."""
        classification = classify_resend(error) if self.is_again else classify(error)
        outcome, notes = classification.outcome, classification.notes
        if classification.then is NextStep.SEARCH:
            self._needed.refused(chunk.positions)
            if self._split(chunk):
                status = statuses.UNKNOWN if self.is_again else statuses.NOT_SENT
                between = [outcome._replace(status=status)] * len(chunk.positions)
                self._finish(chunk, between, notes, is_between=True)
                return
        self.error = error
        if classification.then is NextStep.STOP:
            self.over = True
        elif not (classification.then is NextStep.SEARCH and chunk.is_part):
            in_doubt = classification.then is NextStep.DOUBT
            self._count_failure(_IN_DOUBT if in_doubt else str(error))
        self._finish(chunk, [outcome] * len(chunk.positions), notes)

    def _split(self, chunk: Chunk) -> bool:
        """Replace a chunk that would certainly be refused by parts; return whether it could be."""
        parts = self._needed.split(chunk.positions)
        if len(parts) == 1:
            return False
        # As they are taken from the front, the last one first.
        self.pending.extendleft(Chunk(chunk.number, part, is_part=True) for part in reversed(parts))
        return True

    def _count_failure(self, kind: str) -> None:
        """End the run where too many requests in a row failed alike."""
        in_a_row = self._failures_in_a_row if kind == self._last_failure else 0
        self._last_failure, self._failures_in_a_row = kind, in_a_row + 1
        self.over |= self._failures_in_a_row == MAX_FAILURES_IN_A_ROW

    def _finish(
        self,
        chunk: Chunk,
        outcomes: Sequence[RowOutcome],
        notes: Iterable[str],
        *,
        is_between: bool = False,
    ) -> None:
        """Keep the outcomes of a chunk's rows: in memory first, where it cannot fail."""
        if not is_between:
            self.tally = Counter(self.tally) + Counter(outcome.status for outcome in outcomes)
        known = dict(zip(chunk.positions, outcomes, strict=True))
        for position, outcome in known.items():
            self.entries[position] = self.entries[position]._replace(outcome=outcome)
        self.current = ()
        said = [f"Chunk {chunk.number}: {note}" for note in notes]
        self.notes += said
        if self.journal is not None:
            self.journal.finish(known, said)


# What a monitor requests: to continue, to end after the request under way, or to end at once.
Directive = Literal["continue", "drain", "abort"]
Monitor = Callable[[Run], Directive]
