"""The journal of one run: the memory of this process and, if requested, a file.

Each arrow is one durable transaction if there is a file:

    (none) --begin--> unknown --finish--> any status

A run sends unrecorded, `rejected` and `not_sent` leads, and skipped and `unknown` leads only on
request.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.leads.prepared import CheckedFrame
from outreach_frames.leads.sending.digests import Digests, RowIdentifiers
from outreach_frames.leads.sending.events import (
    Entry,
    Event,
    EventId,
    EventStore,
    LeadId,
    LinkEvent,
    OutcomeEvent,
    SendEvent,
    find_recorded_people,
    lead_of,
)
from outreach_frames.leads.sending.journal_file import (
    JournalFile,
    SequenceAddress,
    nothing_sent,
)
from outreach_frames.leads.sending.memory import CommonEvents, Memory
from outreach_frames.leads.sending.outcome import NO_RESPONSE, RowOutcome, without_messages
from outreach_frames.leads.sending.resume import resume

_ID_BYTES: Final = 8


class Journal(AbstractContextManager["Journal"]):
    """The records of one run, and its decisions on the frame's rows; close it after the run.

    A run first unites the events of the memory and of the file. A dry run changes neither.
    """

    def __init__(
        self,
        frame: CheckedFrame,
        memory: Memory,
        path: Path | None,
        sequence: SequenceAddress,
        *,
        resend_unknown: bool = False,
        send_again: frozenset[str] = frozenset(),
        dry_run: bool = False,
    ) -> None:
        self._frame, self._memory = frame, memory
        # The latest send of each row in this run.
        self._sends: dict[int, SendEvent] = {}
        self.file: JournalFile | None = None
        # The number of the memory's events that are in the file, too, if no other run adds some.
        self._common = -1
        with nothing_sent(), ExitStack() as stack:
            if path is not None and (not dry_run or path.exists()):
                common = None if dry_run else memory.common.get(path)
                known = None if common is None else common.head
                opened = JournalFile(path, sequence, known=known, dry_run=dry_run)
                self.file = stack.enter_context(opened)
            of_memory = Digests(memory.base_url, memory.sequence_id)
            self._digests = of_memory if self.file is None else self.file.digests
            self._rows: list[RowIdentifiers] = self._digests.rows(frame.identifier_columns)
            with memory.lock:
                stores: list[EventStore] = [memory]
                if self.file is not None and dry_run:
                    stores.append(self.file.events)
                elif self.file is not None:
                    self._unite(self.file)
                identifiers = {digest for row in self._rows for digest in row if digest is not None}
                people = find_recorded_people(identifiers, *stores)
                if not dry_run:
                    stack.enter_context(memory.sending(people.identifiers))
                self.resumption: Final = resume(
                    frame,
                    self._rows,
                    people.leads,
                    self._digests,
                    resend_unknown=resend_unknown,
                    send_again=send_again,
                )
                self._frame = frame.sent_from(self.resumption.mailboxes)
                if not dry_run:
                    self._record(self._links(), InvalidInputError)
            self._stack = stack.pop_all()
        self.last_chunk: int = max(
            [lead.entry.chunk or 0 for lead in people.leads]
            + [store.last_chunk for store in stores if self.file is not None],
            default=0,
        )

    def _unite(self, file: JournalFile) -> None:
        """Unite all events of the memory and the file, in both directions."""
        memory, common = self._memory, self._memory.common.get(file.path)
        start = common.number if common is not None and file.is_continued else 0
        known = {event.id for event in file.new_events}
        file.write(
            [event for event in memory.log[start:] if event.id not in known], InvalidInputError
        )
        memory.add(file.new_events)
        self._common = len(memory.log)
        memory.common[file.path] = CommonEvents(file.head, self._common)

    def entries(self, *, with_refused: bool = False) -> dict[int, Entry]:
        """Return the recorded entries of rows, with notes in their details.

        A refusal counts only on request, and only for a row with the refused email and URL.
        """
        unsent: dict[int, tuple[str, str, str | None]] = {}
        entries = {}
        if with_refused:
            leads = self.resumption.leads.items()
            entries = {row: lead.entry.as_earlier() for row, lead in leads if not lead.is_reached}
        for row, (lead, note) in self.resumption.recorded.items():
            notes = [note]
            if not self._frame.checked.is_valid[row]:
                unsent = unsent or self._frame.unsent_outcomes(self._frame.kept)
                notes.append(unsent[row][1])
            entries[row] = lead.entry.noted(*notes).as_earlier()
        return entries

    @property
    def rows_only_in_memory(self) -> set[int]:
        """The rows that are not sent, because only the memory has a record of their lead."""
        if self.file is not None:
            return set()
        to_send = set(self.resumption.rows.tolist())
        recorded = self.resumption.recorded.items()
        return {row for row, (lead, _) in recorded if row not in to_send and lead.is_reached}

    def begin(self, chunk: int, positions: Sequence[int], now: datetime) -> dict[int, Entry]:
        """Record, before the request, that rows are sent in this chunk; return their entries."""
        if self.file is not None:
            self.file.require_in_place()
        contents = self._digests.contents(self._frame, positions)
        places = self._new_places(len(contents))
        sends, entries = {}, {}
        for row, content, (number, event_id) in zip(positions, contents, places, strict=True):
            lead = self._lead_of(row) or LeadId(event_id)
            own, linked = self._rows[row], self._linked_rows(row)
            sends[row] = SendEvent(number, event_id, lead, now, chunk, own, linked, content)
            entries[row] = Entry(NO_RESPONSE, chunk, 1, now)
        self._record([*sends.values()])
        with self._memory.lock:
            for row, send in sends.items():
                if row in self._sends or row in self.resumption.leads:
                    # The lead's earlier sends count, too.
                    entries[row] = lead_of(self._memory.events_of(send.lead)).entry
        self._sends |= sends
        return entries

    def finish(self, outcomes: Mapping[int, RowOutcome]) -> None:
        """Record the outcomes of rows that were being sent, first in memory: the file may fail."""
        now = _now()
        # Convert each distinct outcome once.
        recorded = {outcome: without_messages(outcome) for outcome in set(outcomes.values())}
        events = [
            OutcomeEvent(number, event_id, send.lead, now, send.id, recorded[outcome])
            for send, outcome, (number, event_id) in zip(
                map(self._sends.__getitem__, outcomes),
                outcomes.values(),
                self._new_places(len(outcomes)),
                strict=True,
            )
        ]
        with self._memory.lock:
            self._memory.add(events)
        if self.file is not None:
            self.file.write(events)
            self._common += len(events)
            self.file.require_in_place()

    def close(self) -> None:
        """Close and unlock the journal; further calls have no effect."""
        with self._memory.lock:
            if self.file is not None and self._common == len(self._memory.log):
                self._memory.common[self.file.path] = CommonEvents(self.file.head, self._common)
        self._stack.close()

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def _record(self, events: Sequence[Event], kind: type[OutreachError] = OutreachError) -> None:
        """Record new events, first in the file: after an error, nothing is sent."""
        if self.file is not None:
            self.file.write(events, kind)
            self._common += len(events)
        with self._memory.lock:
            self._memory.add(events)

    def _new_places(self, size: int) -> Iterator[tuple[int, EventId]]:
        """Yield numbers for new events, larger than all that are known, and random ids."""
        first = self._memory.last_number + 1
        random = os.urandom(size * _ID_BYTES)
        return (
            (first + place, EventId(random[place * _ID_BYTES : (place + 1) * _ID_BYTES]))
            for place in range(size)
        )

    def _links(self) -> list[LinkEvent]:
        """Return events with the new identifiers of known people."""
        new, now = self.resumption.extensions, _now()
        return [
            LinkEvent(number, event_id, lead.id, now, row)
            for (lead, row), (number, event_id) in zip(new, self._new_places(len(new)), strict=True)
        ]

    def _lead_of(self, row: int) -> LeadId | None:
        """Return the lead that a row sends again, if any."""
        if row in self._sends:
            return self._sends[row].lead
        return self.resumption.leads[row].id if row in self.resumption.leads else None

    def _linked_rows(self, row: int) -> tuple[RowIdentifiers, ...]:
        """Return the distinct identifiers of the other rows of a person."""
        linked = dict.fromkeys(self._rows[other] for other in self.resumption.linked.get(row, ()))
        return tuple(other for other in linked if any(other) and other != self._rows[row])


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
