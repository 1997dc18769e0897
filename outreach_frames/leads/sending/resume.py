"""Decide from a journal's records which rows to send, and derive the other rows' outcomes.

A row is sent only if no recorded lead of the same person may have been added or skipped, unless the
row overrides the check that skipped the lead. The frame's rows link a person's leads too. Leads
that were rejected or not sent reached nobody and are retried. All functions here are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.identity.persons import (
    NONE,
    Identifiers,
    Rows,
    first_rows,
    numbers_of,
    set_numbers,
)
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import PreparedLeads
from outreach_frames.leads.sending.outcome import RowOutcome

_OTHER_IDENTIFIERS: Final = "The row was sent {} and is not resent."
_CHANGED: Final = "Not resent, because the {} changed since the row was sent."
_INVALID: Final = "Not resent, because the row is invalid now; see the plan's problems."
_OTHER_LEAD: Final = "Not resent, because another lead of this person may be in the sequence."

_OVERRIDES: Final = {
    statuses.status_of_list(name): override for name, override in spec.CHECK_OVERRIDES.items()
}
# Statuses of leads that are or may be in the sequence.
_MAY_BE_ADDED: Final = statuses.IN_SEQUENCE | {statuses.UNKNOWN, statuses.ALREADY_IN_SEQUENCE}


class Entry(NamedTuple):
    """A sent row's outcome, chunk number, number of attempts and time."""

    outcome: RowOutcome
    chunk: int | None
    attempts: int
    # The time of the first send that may have added the lead, to the second.
    sent_at: datetime | None = None


class Sent(NamedTuple):
    """A sent lead: hashes of the mailbox and identifiers, and the overrides as JSON."""

    mailbox: bytes | None
    email: bytes | None
    profnet_url: bytes | None
    overrides: str | None


class Recorded(NamedTuple):
    """A journal's content."""

    # The outcome of each lead.
    entries: Mapping[int, Entry]
    # Leads of people who may have been reached by a request.
    reached: AbstractSet[int]
    # The mailbox hash of each lead that has a mailbox.
    mailboxes: Mapping[int, bytes]
    sent: Callable[[int], Sent]
    # The lead of each identifier set, in recorded order.
    leads: Rows
    # Whether the identifier set belongs to the sent row.
    is_sent: np.ndarray[Any, np.dtype[np.bool_]]
    # The identifier sets, as hashes.
    identifiers: Identifiers


@dataclass
class Resumption:
    """The decisions on all rows."""

    # The rows to send, in frame order.
    rows: Rows
    # For each row, its own position or the position of the row that it duplicates.
    kept: Rows
    # The recorded outcome per row.
    entries: dict[int, Entry] = field(default_factory=dict)
    # The recorded lead per row to send.
    leads: dict[int, int] = field(default_factory=dict)
    # New identifiers of recorded leads: (lead, place of the set, kind of identifier or None for
    # all).
    extensions: list[tuple[int, int, int | None]] = field(default_factory=list)
    # Pairs: an invalid row with valid identifiers, and the row that is sent for the same person.
    unsent_rows: list[tuple[int, int]] = field(default_factory=list)


def resume(
    plan: PreparedLeads,
    identifiers: Identifiers,
    mailboxes: Sequence[bytes | None],
    recorded: Recorded,
    *,
    resend_unknown: bool,
    sent_of: Callable[[Sequence[int]], list[Sent]],
) -> Resumption:
    """Decide which rows are sent; with `resend_unknown`, only unknown rows."""
    people = _People(plan, identifiers, mailboxes, recorded)
    resumption = Resumption(np.array([], dtype=np.int64), np.arange(people.size))
    new_rows = _add_new_persons(people, resumption)
    to_send = [] if resend_unknown else new_rows
    for lead, rows in people.rows_of_lead().items():
        row, note = people.nearest_row(lead, rows), ""
        if resend_unknown:
            resent, note = people.find_unknown_row(lead, row, rows, sent_of)
        else:
            resent = people.take_overridden_row(lead, rows)
        if resent is not None:
            row = resent
            to_send.append(row)
            resumption.leads[row] = lead
        elif not note:
            note = people.describe_changes(lead, row)
        if len(rows) > 1:
            resumption.kept[[each for each in rows if people.is_valid[each]]] = row
        resumption.entries[row] = _with_note(people.entries[lead], note)
    resumption.extensions = list(people.unrecorded_sets())
    chosen = np.array(sorted(to_send), dtype=np.int64)
    resumption.rows = chosen if resend_unknown else chosen[plan.is_planned(chosen)]
    return resumption


class _People:
    """The people of recorded leads and of the frame's rows.

    Identifier sets are numbered by place: first the recorded sets of leads that may have reached
    somebody, then the sets of the frame's rows, then the recorded sets of retried leads.
    """

    def __init__(
        self,
        plan: PreparedLeads,
        identifiers: Identifiers,
        mailboxes: Sequence[bytes | None],
        recorded: Recorded,
    ) -> None:
        # `identifiers` has all rows with the plan's keys, then all rows with each of its earlier
        # keys.
        self.size, self._mailboxes = len(plan.frame), mailboxes
        self.is_valid, self.entries = plan.checked.is_valid, recorded.entries
        self._is_identified = plan.checked.is_identified
        self._has_mailboxes = plan.checked.mailboxes is not None
        # Invalid rows that link a person's identifiers.
        self.is_unsent = self._is_identified & ~self.is_valid
        self._overrides, self._recorded = plan.checked.overrides, recorded
        self._has_no_overrides = self._overrides.null_count == self.size
        is_reached = np.isin(recorded.leads, list(recorded.reached))
        reached, others = np.flatnonzero(is_reached), np.flatnonzero(~is_reached)
        self._every = Identifiers(
            *(
                pa.concat_arrays([known.take(pa.array(reached)), now, known.take(pa.array(others))])
                for known, now in zip(recorded.identifiers, identifiers, strict=True)
            )
        )
        self.begin, self.end = len(reached), len(reached) + len(identifiers.email)
        leads = recorded.leads[reached]
        numbers = numbers_of(self._every)
        persons = first_rows([*(one[: self.end] for one in numbers), self._links(leads)])
        self.person_of_place = persons[self.begin :]
        self.is_known = np.isin(self.person_of_place, persons[: self.begin])
        self._first, self._url = numbers.first.tolist(), numbers.url.tolist()
        sets = set_numbers(numbers)
        self._set: list[int] = sets.tolist()
        is_recorded = np.isin(sets[self.begin : self.end], sets[: self.begin])
        self._unrecorded = np.flatnonzero(~is_recorded & self.is_known)
        self._lead_of_set = _first_leads(self._set, leads)
        self._lead_of_first = _first_leads(self._first, leads)
        self._lead_of_url = _first_leads(self._url, leads)
        sent = np.flatnonzero(recorded.is_sent[reached])
        self._sent_place = dict(zip(leads[sent].tolist(), sent.tolist(), strict=True))
        self._leads_of_person: dict[int, set[int]] = {}
        for lead, person in zip(leads.tolist(), persons.tolist(), strict=False):
            self._leads_of_person.setdefault(person, set()).add(lead)
        self._lead_of_row: dict[int, int] = {}
        self._retryable_lead: dict[tuple[int, int], int] = {}
        for place, lead in enumerate(recorded.leads[others].tolist(), self.end):
            self._retryable_lead[0, self._first[place]] = lead
            self._retryable_lead[1, self._url[place]] = lead
        self._taken: set[int] = set()
        self._resent: set[int] = set()

    def _links(self, leads: Rows) -> Rows:
        """Return numbers that link the sets of the same lead or row."""
        _, lead, times = np.unique(leads, return_inverse=True, return_counts=True)
        of_leads = np.where(times[lead] > 1, lead, NONE).astype(np.int64)
        rows = np.arange(self.end - self.begin) % max(self.size, 1)
        is_several = self.end - self.begin > self.size
        return np.concatenate([of_leads, rows + len(leads) if is_several else rows * 0 + NONE])

    def take_retryable_lead(self, row: int) -> int | None:
        """Return the retryable lead with a row's email or URL; each lead only once."""
        place = self.begin + row
        for kind, numbers in enumerate((self._first, self._url)):
            lead = self._retryable_lead.get((kind, numbers[place]))
            if lead is not None and numbers[place] != NONE and lead not in self._taken:
                self._taken.add(lead)
                return lead
        return None

    def rows_of_lead(self) -> dict[int, list[int]]:
        """Return the frame's rows of each recorded lead, in frame order."""
        rows: dict[int, list[int]] = {}
        for row in np.flatnonzero(self.is_known[: self.size]).tolist():
            lead = self._lead_of_row[row] = self._lead(row)
            rows.setdefault(lead, []).append(row)
        return rows

    def _lead(self, row: int) -> int:
        """Return the recorded lead whose outcome applies to a row."""
        now, *earlier = self._places(row)
        for place in (*earlier, now):
            if self._set[place] in self._lead_of_set:
                return self._lead_of_set[self._set[place]]
        owners = self._lead_of_first.get(self._first[now]), self._lead_of_url.get(self._url[now])
        known = [lead for lead in owners if lead is not None]
        return known[0] if known else self._best_lead(row)

    def _best_lead(self, row: int) -> int:
        """Return the preferred lead of the row's person."""
        leads = self._leads_of_person[int(self.person_of_place[row])]
        return min(leads, key=lambda lead: (_rank(self.entries[lead]), lead))

    def _places(self, row: int) -> range:
        """Return the places of a row's identifier sets, the plan's columns first."""
        return range(self.begin + row, self.end, self.size)

    def nearest_row(self, lead: int, rows: Sequence[int]) -> int:
        """Return the row most similar to the row sent as this lead."""
        if len(rows) == 1:
            return rows[0]
        sent, mailbox = self._set[self._sent_place[lead]], self._recorded.mailboxes.get(lead)

        def distance(row: int) -> tuple[bool, ...]:
            now, *earlier = (self._set[place] != sent for place in self._places(row))
            is_moved = self._mailboxes[row] != mailbox
            return all(earlier), now, is_moved, not self.is_valid[row]

        return min(rows, key=distance)

    def describe_changes(self, lead: int, row: int) -> str:
        """Describe how a row's identifiers and mailbox differ from the sent lead's."""
        places, differ = (self.begin + row, self._sent_place[lead]), []
        if self._set[places[0]] != self._set[places[1]]:
            now, sent = map(self._kinds, places)
            differ = [
                f"with another {kind}" if sent[kind] != NONE else f"without this {kind}"
                for kind, number in now.items()
                if number not in (NONE, sent[kind])
            ]
        mailbox = self._recorded.mailboxes.get(lead)
        if self._has_mailboxes and self._mailboxes[row] != mailbox:
            differ.append("without this mailbox" if mailbox is None else "from another mailbox")
        return _OTHER_IDENTIFIERS.format(" and ".join(differ)) if differ else ""

    def _kinds(self, place: int) -> dict[str, int]:
        """Return the numbers of a set's identifiers by kind."""
        email, profnet_url = spec.LEAD_IDENTIFIERS
        first, url = self._first[place], self._url[place]
        if first != NONE and self._every.weak_url[place].is_valid:
            return {email: NONE, profnet_url: first}
        return {email: first, profnet_url: url}

    def take_overridden_row(self, lead: int, rows: Sequence[int]) -> int | None:
        """Return a row that resends a skipped lead because the row now overrides the check."""
        status = self.entries[lead].outcome.status
        # A lead whose resend was refused needs no further override.
        override = "" if status in statuses.RETRYABLE else _OVERRIDES.get(status)
        if override is None or (override and self._has_no_overrides):
            return None
        candidates = [
            row
            for row in rows
            if self.is_valid[row] and override in (self._overrides[row].as_py() or "")
        ]
        person = int(self.person_of_place[rows[0]])
        if not candidates or person in self._resent or self._arrived_leads(person):
            return None
        if override and override in (self._recorded.sent(lead).overrides or ""):
            return None
        self._resent.add(person)
        return candidates[0]

    def find_unknown_row(
        self,
        lead: int,
        nearest: int,
        rows: Sequence[int],
        sent_of: Callable[[Sequence[int]], list[Sent]],
    ) -> tuple[int | None, str]:
        """Return an unknown lead's unchanged row, or None and the reason."""
        if self.entries[lead].outcome.status != statuses.UNKNOWN:
            return None, ""
        if self._arrived_leads(int(self.person_of_place[nearest])) > 1:
            return None, _OTHER_LEAD
        before = self._recorded.sent(lead)
        present = [row for row in rows if self._is_identified[row]]
        now = dict(zip(present, sent_of(present), strict=True))
        # Ignore differences in overrides.
        same = [row for row in present if now[row][:-1] == before[:-1] and self.is_valid[row]]
        if same:
            return same[0], ""
        current = now.get(nearest, Sent(None, None, None, None))
        changed = [
            name
            for name, old, new in zip(Sent._fields[:-1], before, current, strict=False)
            if old != new
        ]
        return None, _CHANGED.format(" and ".join(changed)) if changed else _INVALID

    def _arrived_leads(self, person: int) -> int:
        """Count a person's leads that are or may be in the sequence."""
        entries = [self.entries[lead] for lead in self._leads_of_person[person]]
        return sum(entry.outcome.status in _MAY_BE_ADDED for entry in entries)

    def unrecorded_sets(self) -> Iterator[tuple[int, int, int | None]]:
        """Yield unrecorded identifier sets of known people as `extensions`."""
        seen = {NONE}
        for place in self._unrecorded.tolist():
            at = self.begin + place
            if self._set[at] in seen:
                continue
            seen.add(self._set[at])
            row = place % self.size
            lead, best = self._lead_of_row[row], self._best_lead(row)
            owners = (self._first[at], self._lead_of_first), (self._url[at], self._lead_of_url)
            for kind, (identifier, lead_of) in enumerate(owners):
                if lead != best and identifier != NONE and identifier not in lead_of:
                    yield best, place, kind
            yield lead, place, None


def _add_new_persons(people: _People, resumption: Resumption) -> list[int]:
    """Add people without records to the resumption; return the row to send per person."""
    rows = np.flatnonzero(people.is_valid & ~people.is_known[: people.size])
    persons = people.person_of_place[rows]
    _, places, inverse = np.unique(persons, return_index=True, return_inverse=True)
    resumption.kept[rows] = rows[places][inverse]
    lead_of_person = dict(zip(persons[places].tolist(), rows[places].tolist(), strict=True))
    for row in np.flatnonzero(people.is_unsent & ~people.is_known[: people.size]).tolist():
        if (kept := lead_of_person.get(int(people.person_of_place[row]))) is not None:
            resumption.unsent_rows.append((row, kept))
    first: list[int] = np.sort(rows[places]).tolist()
    for row in first:
        lead = people.take_retryable_lead(row)
        if lead is not None:
            resumption.leads[row] = lead
            resumption.entries[row] = people.entries[lead]
    return first


def _first_leads(numbers: Sequence[int], leads: Rows) -> dict[int, int]:
    """Return each number's first recorded lead."""
    recorded = zip(numbers[: len(leads)], leads.tolist(), strict=True)
    found = dict(reversed(list(recorded)))
    found.pop(NONE, None)
    return found


def _with_note(entry: Entry, note: str) -> Entry:
    if not note:
        return entry
    detail = f"{entry.outcome.detail} {note}".strip()
    return entry._replace(outcome=entry.outcome._replace(detail=detail))


def _rank(entry: Entry) -> int:
    """Return a lead's rank among the person's leads: in the sequence, unknown, skipped."""
    if entry.outcome.status in statuses.IN_SEQUENCE:
        return 0
    return 1 if entry.outcome.status == statuses.UNKNOWN else 2
