"""Sending chunks one after the other, and what is known of each row at any moment."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidResponseError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import Positions, PreparedLeads
from outreach_frames.leads.sending.fields import NeededFields
from outreach_frames.leads.sending.journal import Journal
from outreach_frames.leads.sending.outcome import RowOutcome, read_response
from outreach_frames.leads.sending.refusals import (
    NextStep,
    classify,
    classify_resend,
    reclassify_resent,
)
from outreach_frames.leads.sending.resume import Entry

# After so many requests in a row that failed alike the service is down, or refuses everything.
MAX_FAILURES_IN_A_ROW: Final = 3

_NO_RESPONSE: Final = RowOutcome(statuses.UNKNOWN, "It was sent, and no response was read.")
_IN_DOUBT: Final = "doubt"


class Chunk(NamedTuple):
    """The rows of one request, and its number in the submission.

    A part of a chunk that was refused is sent in the search for the field that the sequence needs.
    `rest` are the rows to be sent after it; if it is accepted, one of those lacks that field, and
    the chunk that they make is guilty.
    """

    number: int
    positions: Sequence[int]
    rest: Sequence[int] = ()
    is_part: bool = False
    is_guilty: bool = False


class Run:
    """One run of a submission. One thread is in `send`; others may read, and set `over`.

    Parameters
    ----------
    plan : PreparedLeads
        Where the leads are.
    client : Client
        The way to the service.
    journal : Journal or None
        Written before and after each request, and closed at the end.
    rows : ndarray of int64
        The rows that it is to send.
    entries : mapping of int to Entry
        What earlier runs left.
    again : bool
        Whether the rows were sent before, with no known outcome.

    Attributes
    ----------
    entries : dict of int to Entry
        What became of each row that was sent, at any moment: `unknown` while it is being sent.
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
    left : int
        How many chunks were not sent, once the run has ended.
    over : bool
        True once no further request is to begin.
    done : Event
        Set when the run has ended, and its journal is closed.
    """

    def __init__(
        self,
        plan: PreparedLeads,
        client: Client,
        *,
        journal: Journal | None,
        rows: Positions,
        entries: Mapping[int, Entry],
        again: bool,
    ) -> None:
        self._plan = plan
        self._client = client
        self._journal = journal
        self._again = again
        self._needed = NeededFields(_brought(plan, rows))
        self._pending: deque[Chunk] = deque()
        self._last_failure = ""
        self._failures_in_a_row = 0
        self.entries: dict[int, Entry] = dict(entries)
        self.begun: set[int] = set()
        self.current: Sequence[int] = ()
        self.tally: Mapping[str, int] = {}
        self.notes: list[str] = []
        self.error: OutreachError | None = None
        self.requests: int = 0
        self.left: int = 0
        self.over: bool = False
        self.done: threading.Event = threading.Event()

    def send(self, chunks: Iterable[Chunk]) -> None:
        """Send chunk after chunk, until all are sent or the run must stop."""
        self._pending.extend(chunks)
        try:
            with self._journal or nullcontext():
                while self._pending and not self.over:
                    self._go_on_with(self._pending.popleft())
        except OutreachError as error:
            self.error = error
        finally:
            self.left = len(self._pending)
            self.over = True
            self.done.set()

    def close(self) -> None:
        """Close the journal of a run that never began."""
        if self._journal is not None:
            self._journal.close()

    def _go_on_with(self, chunk: Chunk) -> None:
        """Send a chunk, or replace it by what is to be sent instead."""
        if chunk.is_guilty:
            self._needed.refused(chunk.positions)
            if self._search(chunk):
                return
        elif not chunk.rest:
            parts = self._needed.sorted_out(chunk.positions)
            if len(parts) > 1:
                self._put_back(*(Chunk(chunk.number, part, is_part=True) for part in parts))
                return
        self._send(chunk)

    def _send(self, chunk: Chunk) -> None:
        if self._journal is not None:
            self._journal.begin(chunk.number, chunk.positions)
        for position in chunk.positions:
            attempts = self.entries[position].attempts if position in self.entries else 0
            self.entries[position] = Entry(_NO_RESPONSE, chunk.number, attempts + 1)
        self.begun.update(chunk.positions)
        self.current = chunk.positions
        self.requests += 1
        try:
            response = self._client.write(
                spec.ADD_LEADS,
                path={"id": self._plan.sequence_id},
                body=self._plan.body(chunk.positions),
            )
        except OutreachError as error:
            self._failed(chunk, error)
        else:
            self._take_response(chunk, response)

    def _take_response(self, chunk: Chunk, response: Any) -> None:
        """Record what a 2xx says of each row."""
        read = read_response(self._plan.identifiers(chunk.positions), response)
        is_accepted = any(row.status != statuses.UNKNOWN for row in read.rows)
        if is_accepted:
            self._failures_in_a_row = 0
            self._needed.accepted(chunk.positions)
        else:
            said = " ".join(read.notes) or read.rows[0].detail
            self.error = InvalidResponseError(f"Chunk {chunk.number}: {said}")
            self._count_failure(_IN_DOUBT)
        if chunk.rest:
            self._put_back(chunk._replace(positions=chunk.rest, rest=(), is_guilty=is_accepted))
        rows = [reclassify_resent(row) for row in read.rows] if self._again else read.rows
        self._finish(chunk, rows, read.notes)

    def _failed(self, chunk: Chunk, error: OutreachError) -> None:
        """Record what an error says of the chunk, and how to go on."""
        classification = classify_resend(error) if self._again else classify(error)
        outcome, notes = classification.outcome, classification.notes
        if chunk.rest:
            self._put_back(chunk._replace(positions=chunk.rest, rest=()))
        if classification.then is NextStep.SEARCH:
            self._needed.refused(chunk.positions)
            if self._search(chunk):
                status = statuses.UNKNOWN if self._again else statuses.NOT_SENT
                between = [replace(outcome, status=status)] * len(chunk.positions)
                self._write_down(chunk, between, notes)
                return
        self.error = error
        if classification.then is NextStep.STOP:
            self.over = True
        elif not (classification.then is NextStep.SEARCH and chunk.is_part):
            in_doubt = classification.then is NextStep.DOUBT
            self._count_failure(_IN_DOUBT if in_doubt else str(error))
        self._finish(chunk, [outcome] * len(chunk.positions), notes)

    def _search(self, chunk: Chunk) -> bool:
        """Plan how to find the field that rows of a chunk lack; False where nothing can be told."""
        parts = self._needed.parts(chunk.positions)
        if parts is None:
            return False
        self._put_back(Chunk(chunk.number, parts.first, parts.rest, is_part=True))
        return True

    def _put_back(self, *chunks: Chunk) -> None:
        self._pending.extendleft(reversed(chunks))

    def _count_failure(self, kind: str) -> None:
        """End the run where too many requests in a row failed alike."""
        in_a_row = self._failures_in_a_row if kind == self._last_failure else 0
        self._last_failure, self._failures_in_a_row = kind, in_a_row + 1
        self.over |= self._failures_in_a_row == MAX_FAILURES_IN_A_ROW

    def _finish(
        self, chunk: Chunk, outcomes: Sequence[RowOutcome], notes: Iterable[str] = ()
    ) -> None:
        self.tally = Counter(self.tally) + Counter(outcome.status for outcome in outcomes)
        self._write_down(chunk, outcomes, notes)

    def _write_down(
        self, chunk: Chunk, outcomes: Sequence[RowOutcome], notes: Iterable[str]
    ) -> None:
        """Keep what became of a chunk's rows: in memory first, where it cannot fail."""
        known = dict(zip(chunk.positions, outcomes, strict=True))
        for position, outcome in known.items():
            self.entries[position] = self.entries[position]._replace(outcome=outcome)
        self.current = ()
        said = [f"Chunk {chunk.number}: {note}" for note in notes]
        self.notes += said
        if self._journal is not None:
            self._journal.finish(known, said)


def _brought(plan: PreparedLeads, rows: Positions) -> dict[int, int]:
    """Return which fields each row brings, as the bits of a number."""
    columns = [column.to_numpy(zero_copy_only=False) for column in plan.fields(rows).columns]
    packed = np.packbits(np.array(columns, dtype=bool).T, axis=1)
    bits = (int.from_bytes(row.tobytes()) for row in packed)
    return dict(zip(rows.tolist(), bits, strict=True))


# What a monitor asks for: to go on, to end after the request under way, or to end at once.
Directive = Literal["continue", "drain", "abort"]
Monitor = Callable[[Run], Directive]
