"""The journal of one run: the memory of this process and, if requested, a file.

Each arrow is one durable transaction if there is a file:

    (none) --begin--> unknown --finish--> any status

A run sends unrecorded, `rejected` and `not_sent` leads, and `unknown` leads only on request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from typing import Final

import numpy as np
from msgspec.structs import replace

from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.leads.prepared import PreparedLeads, Sent, Text
from outreach_frames.leads.sending.journal_file import JournalFile, JournalPlace, nothing_sent
from outreach_frames.leads.sending.memory import Memory
from outreach_frames.leads.sending.outcome import NO_RESPONSE, RowOutcome
from outreach_frames.leads.sending.records import (
    MAY_HAVE_ACTED,
    Entry,
    Lead,
    RecordedRow,
    RowIdentifiers,
    identifiers_of,
)
from outreach_frames.leads.sending.resume import resume

_SENT_EARLIER: Final = "Sent earlier in this session."
_RECORDED_EARLIER: Final = "Recorded earlier in this session."


class Journal(AbstractContextManager["Journal"]):
    """The records of one run, and its decisions on the plan's rows; close it after the run.

    The file's leads are added to the memory, and the memory's leads of the plan's people to the
    file. `bound_to` identifies the submission of the file. A dry run reads the memory and the file,
    and changes neither.
    """

    def __init__(
        self,
        plan: PreparedLeads,
        memory: Memory,
        place: JournalPlace | None,
        bound_to: Mapping[str, str],
        *,
        resend_unknown: bool = False,
        dry_run: bool = False,
    ) -> None:
        self._plan, self._memory = plan, memory
        columns = (column.to_pylist() for column in plan.identifier_columns)
        # Each row's email, certain URL and weak URL.
        self._rows: list[RowIdentifiers] = list(zip(*columns, strict=True))
        # The number of each row's lead, once the row is being sent.
        self._numbers: dict[int, int] = {}
        self.file: JournalFile | None = None
        with nothing_sent(), ExitStack() as stack:
            if place is not None and not (dry_run and place.is_new):
                self.file = stack.enter_context(JournalFile(place, bound_to, dry_run=dry_run))
            in_file = {} if self.file is None else self.file.leads
            with memory.lock:
                people: set[Text] = {one for row in self._rows for one in row} - {None}
                leads = known = memory.find(people)
                people |= identifiers_of(known)
                while self.file is not None:
                    leads = self.file.merge(known, people, plan)
                    # Another process may have linked these people to further leads of the memory.
                    linked = {one.number for one in leads} - {one.number for one in known}
                    if linked.isdisjoint(memory.leads):
                        break
                    people |= identifiers_of(memory.leads[one] for one in linked & {*memory.leads})
                    known = memory.find(people)
                if not dry_run:
                    stack.enter_context(memory.sending(people))
                self.found: Final = resume(plan, self._rows, leads, resend_unknown=resend_unknown)
                self._only_in_memory = {lead.number for lead in leads} - in_file.keys()
                self._duplicates = self._rows_of_leads()
                if not dry_run:
                    memory.remove({each.number for each in known} - {each.number for each in leads})
                    self._put(self._extended(leads), InvalidInputError)
            self._stack = stack.pop_all()
        every = leads if self.file is None else in_file.values()
        self.last_chunk: int = max((lead.entry.chunk or 0 for lead in every), default=0)

    def entries(self, *, is_retry: bool = False) -> dict[int, Entry]:
        """Return the recorded entries of rows, with notes in their details."""
        problems: dict[int, str] = {}
        entries, earlier_rows = {}, set() if is_retry else self.earlier_rows
        for row, (lead, note) in self.found.recorded.items():
            notes = [note]
            if not self._plan.checked.is_valid[row]:
                problems = problems or dict(self._plan.unsent[["position", "detail"]].to_numpy())
                notes.append(problems[row])
            if row in earlier_rows:
                has_acted = lead.entry.outcome.status in MAY_HAVE_ACTED
                notes.append(_SENT_EARLIER if has_acted else _RECORDED_EARLIER)
            entries[row] = lead.entry.noted(*notes)
        return entries

    @property
    def earlier_rows(self) -> set[int]:
        """The rows that are not sent, because only the memory has a record of their lead."""
        return {
            row
            for row, (lead, _) in self.found.recorded.items()
            if row not in self.found.leads and lead.number in self._only_in_memory
        }

    def begin(self, chunk: int, positions: Sequence[int], now: datetime) -> dict[int, Entry]:
        """Record, before the request, that rows are sent in this chunk; return their entries."""
        if self.file is not None:
            self.file.require_in_place()
        contents = zip(positions, self._plan.sent(positions), strict=True)
        with self._memory.lock:
            begun = {row: self._begun_lead(row, sent, chunk, now) for row, sent in contents}
        self._put(begun.values())
        self._numbers |= {row: lead.number for row, lead in begun.items()}
        return {row: lead.entry for row, lead in begun.items()}

    def finish(self, outcomes: Mapping[int, RowOutcome]) -> None:
        """Record the outcomes of rows that were being sent, first in memory."""
        memory, file = self._memory, self.file
        with memory.lock:
            of_number = {self._numbers[row]: outcome for row, outcome in outcomes.items()}
            leads = [memory.leads[number].finish(one) for number, one in of_number.items()]
            memory.put(leads)
        if file is not None:
            file.write(leads)
            file.require_in_place()

    def close(self) -> None:
        """Close and unlock the journal; further calls have no effect."""
        self._stack.close()

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def _put(self, leads: Collection[Lead], kind: type[OutreachError] = OutreachError) -> None:
        """Record leads, first in the file."""
        if self.file is not None:
            self.file.write(leads, kind)
        with self._memory.lock:
            self._memory.put(leads)

    def _extended(self, leads: Iterable[Lead]) -> list[Lead]:
        """Return leads with the new identifiers of their people."""
        extended = {lead.number: lead for lead in leads}
        numbers = self._memory.next_numbers(len(self.found.extensions))
        for number, (lead, texts) in zip(numbers, self.found.extensions, strict=True):
            rows = *extended[lead.number].rows, RecordedRow(number, False, texts)
            extended[lead.number] = replace(extended[lead.number], rows=rows)
        return list(extended.values())

    def _rows_of_leads(self) -> dict[int, list[int]]:
        """Return the other rows of each sent row's person."""
        rows: dict[int, list[int]] = {}
        kept = self.found.kept
        for row in np.flatnonzero(kept != np.arange(len(kept))).tolist():
            rows.setdefault(int(kept[row]), []).append(row)
        for row, sent_row in self.found.unsent_rows:
            rows.setdefault(sent_row, []).append(row)
        return rows

    def _begun_lead(self, row: int, sent: Sent, chunk: int, now: datetime) -> Lead:
        """Return a row's lead as of the time before its request."""
        rows = () if row in self._numbers else self._recorded_rows(row)
        number = self._numbers.get(row)
        if number is None and row not in self.found.leads:
            return Lead(rows[0].recorded_at, rows, sent, Entry(NO_RESPONSE, chunk, 1, now))
        lead = self._memory.leads[self.found.leads[row].number if number is None else number]
        return lead.begin(rows, sent, chunk, now)

    def _recorded_rows(self, position: int) -> tuple[RecordedRow, ...]:
        """Return the distinct identifiers of a person's rows, those of the sent row first."""
        own = self._rows[position]
        rows = [position, *self._duplicates.get(position, [])]
        distinct = dict.fromkeys(self._rows[row] for row in rows if any(self._rows[row]))
        numbers = zip(self._memory.next_numbers(len(distinct)), distinct, strict=True)
        return tuple(RecordedRow(number, one == own, one) for number, one in numbers)
