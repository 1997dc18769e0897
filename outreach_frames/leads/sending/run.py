"""Sending chunks one after the other, and what is known of each row at any moment."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidResponseError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import PreparedLeads
from outreach_frames.leads.sending.journal import Entry, Journal
from outreach_frames.leads.sending.outcome import RowOutcome, read_answer
from outreach_frames.leads.sending.refusals import (
    NextStep,
    classify,
    classify_resend,
    reclassify_resent,
)

# So many requests in a row that leave doubt: the service is down, or refuses everything.
MAX_DOUBTS: Final = 3

_UNANSWERED: Final = RowOutcome(statuses.UNKNOWN, "It was sent, and no answer was read.")


class Chunk(NamedTuple):
    """The rows of one request, and its number in the submission."""

    number: int
    positions: Sequence[int]


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
    entries : mapping of int to Entry
        What earlier runs left.
    again : bool
        Whether the rows were sent before, with no known outcome.

    Attributes
    ----------
    entries : dict of int to Entry
        What became of each row that was sent, at any moment: `unknown` while it is being sent.
    current : sequence of int
        The rows of the request under way.
    tally : mapping of str to int
        How many rows this run is done with, by status; replaced as a whole.
    notes : list of str
        What the service said beyond the rows' outcomes.
    error : OutreachError or None
        What stopped the run, or the last that left rows `unknown`.
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
        entries: Mapping[int, Entry],
        again: bool,
    ) -> None:
        self._plan = plan
        self._client = client
        self._journal = journal
        self._again = again
        self._doubts = 0
        self.entries = dict(entries)
        self.current: Sequence[int] = ()
        self.tally: Mapping[str, int] = {}
        self.notes: list[str] = []
        self.error: OutreachError | None = None
        self.requests = 0
        self.left = 0
        self.over = False
        self.done = threading.Event()

    def send(self, chunks: Iterable[Chunk]) -> None:
        """Send chunk after chunk, until all are sent or it makes no sense to go on."""
        pending = deque(chunks)
        try:
            with self._journal or nullcontext():
                while pending and not self.over:
                    pending.extendleft(reversed(self._send(pending.popleft())))
        except OutreachError as error:
            self.error = error
        finally:
            self.left = len(pending)
            self.over = True
            self.done.set()

    def _send(self, chunk: Chunk) -> list[Chunk]:
        """Send one chunk; return what it has to be sent as instead."""
        if self._journal is not None:
            self._journal.begin(chunk.number, chunk.positions)
        for position in chunk.positions:
            attempts = self.entries[position].attempts if position in self.entries else 0
            self.entries[position] = Entry(_UNANSWERED, chunk.number, attempts + 1)
        self.current = chunk.positions
        self.requests += 1
        try:
            answer = self._client.write(
                spec.ADD_LEADS,
                path={"id": self._plan.sequence_id},
                body=self._plan.body(chunk.positions),
            )
        except OutreachError as error:
            return self._refused(chunk, error)
        self._answered(chunk, answer)
        return []

    def _answered(self, chunk: Chunk, answer: Any) -> None:
        identifiers = [self._plan.identifiers(position) for position in chunk.positions]
        read = read_answer(identifiers, answer)
        if all(row.status == statuses.UNKNOWN for row in read.rows):
            said = " ".join(read.notes) or read.rows[0].detail
            self._doubt(InvalidResponseError(f"Chunk {chunk.number}: {said}"), statuses.UNKNOWN)
        else:
            self._doubts = 0
        rows = [reclassify_resent(row) for row in read.rows] if self._again else read.rows
        self._finish(chunk, rows, read.notes)

    def _refused(self, chunk: Chunk, error: OutreachError) -> list[Chunk]:
        classification = classify_resend(error) if self._again else classify(error)
        outcome, notes, size = classification.outcome, classification.notes, len(chunk.positions)
        parts = self._parts(chunk) if classification.then is NextStep.SPLIT else []
        if len(parts) > 1:
            status = statuses.UNKNOWN if self._again else statuses.NOT_SENT
            self._write_down(chunk, [replace(outcome, status=status)] * size, notes)
            return parts
        if classification.then is NextStep.STOP:
            self.error, self.over = error, True
        elif classification.then is NextStep.DOUBT:
            self._doubt(error, outcome.status)
        else:
            self._doubts = 0
        self._finish(chunk, [outcome] * size, notes)
        return []

    def _parts(self, chunk: Chunk) -> list[Chunk]:
        """Split a chunk by the fields that its leads bring."""
        parts: dict[frozenset[str], list[int]] = {}
        for position in chunk.positions:
            parts.setdefault(self._plan.field_set(position), []).append(position)
        return [Chunk(chunk.number, positions) for positions in parts.values()]

    def _doubt(self, error: OutreachError, status: str) -> None:
        self._doubts += 1
        if self._doubts == MAX_DOUBTS:
            self.over = True
        if self.over or status == statuses.UNKNOWN:
            self.error = error

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


# What somebody who watches a run wishes: that the request under way is the last, or is broken off.
Directive = Literal["continue", "drain", "abort"]
Monitor = Callable[[Run], Directive]
