"""Decide from the recorded leads which rows to send, and derive the other rows' outcomes.

A row is sent only if no recorded lead of the same person may have been added or skipped, unless the
row overrides the check that skipped the lead. The frame's rows link a person's leads too. Leads
that were rejected or not sent reached nobody and are retried. All functions here are pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from msgspec.structs import replace

from outreach_frames import spec
from outreach_frames.identity.persons import (
    NONE,
    Identifiers,
    Rows,
    first_rows,
    first_valid_rows,
    numbers_of,
)
from outreach_frames.leads import statuses
from outreach_frames.leads.planning.mapping import MAILBOX
from outreach_frames.leads.prepared import CheckedFrame
from outreach_frames.leads.sending import events
from outreach_frames.leads.sending.digests import Content, Digest, Digests, RowIdentifiers
from outreach_frames.leads.sending.events import Lead, RecordedRow

_OTHER_IDENTIFIERS: Final = "The row was sent {} and is not resent."
_OTHER_DATA: Final = "{} changed since the row was sent; the service never updates leads."
_CHANGED: Final = "Not resent, because the {} changed since the row was sent."
_INVALID: Final = "Not resent, because the row is invalid now; see the plan's problems."
_OTHER_LEAD: Final = "Not resent, because another lead of this person may be in the sequence."

# A lead is found by one identifier, or by all identifiers of a row.
_Key = Digest | RowIdentifiers | None


@dataclass
class Resumption:
    """The decisions on all rows."""

    # The rows to send, in frame order.
    rows: Rows
    # For each row, its own position or the position of the row that it duplicates.
    kept: Rows
    # The recorded lead per row that represents it, or that is invalid now, with a note.
    recorded: dict[int, tuple[Lead, str]] = field(default_factory=dict)
    # The recorded lead that a row sends again.
    leads: dict[int, Lead] = field(default_factory=dict)
    # The rows whose person is or may be in the sequence with other data.
    changed_rows: list[int] = field(default_factory=list)
    # New identifiers of recorded leads.
    extensions: list[tuple[Lead, RowIdentifiers]] = field(default_factory=list)
    # Per row of a person without a record, the person's other rows with valid identifiers.
    linked: dict[int, list[int]] = field(default_factory=dict)


def resume(
    frame: CheckedFrame,
    identifiers: Sequence[RowIdentifiers],
    leads: Sequence[Lead],
    digests: Digests,
    *,
    resend_unknown: bool = False,
) -> Resumption:
    """Decide which rows are sent; with `resend_unknown`, only unknown rows.

    `identifiers` has each row's identifiers.
    """
    people = _People(frame, identifiers, leads, digests)
    found = Resumption(np.array([], dtype=np.int64), np.arange(people.size))
    new_rows = _add_new_persons(people, found)
    to_send = [] if resend_unknown else new_rows
    for number, rows in people.rows_of_lead().items():
        lead, row, note = leads[number], people.nearest_row(number, rows), ""
        if resend_unknown:
            resent, note = people.find_unknown_row(number, row, rows)
        else:
            resent = people.take_overridden_row(number, rows)
        if resent is not None:
            row = resent
            to_send.append(row)
            found.leads[row] = lead
        else:
            fields = people.changed_fields(number, row)
            if note in ("", _INVALID, _OTHER_LEAD):
                note = f"{note} {people.describe_changes(number, row, fields)}".strip()
            if fields and lead.entry.outcome.status in statuses.MAY_BE_IN_SEQUENCE:
                found.changed_rows.append(row)
        invalid = [other for other in rows if not people.is_valid[other]]
        found.kept[[other for other in rows if people.is_valid[other]]] = row
        found.recorded |= dict.fromkeys([row, *invalid], (lead, note))
    found.extensions = list(people.unrecorded_identifiers())
    found.rows = np.array(sorted(to_send), dtype=np.int64)
    return found


class _People:
    """The people of recorded leads and of the frame's rows.

    `leads` are numbered by their position in the list.
    """

    def __init__(
        self,
        frame: CheckedFrame,
        identifiers: Sequence[RowIdentifiers],
        leads: Sequence[Lead],
        digests: Digests,
    ) -> None:
        self._frame, self._identifiers, self._leads = frame, identifiers, leads
        self._digests = digests
        self.size = len(frame.checked.is_valid)
        self.is_valid, self.is_identified = frame.checked.is_valid, frame.checked.is_identified
        recorded = [(row, number) for number, lead in enumerate(leads) for row in lead.rows]
        reached = [(row, number) for row, number in recorded if leads[number].is_reached]

        def precedence(record: tuple[RecordedRow, int]) -> tuple[bool, int, events.Order]:
            row, number = record
            return not row.is_sent, -self._weight(number), row.order

        # An identifier, or all identifiers of a row, belong to a lead that was sent with them
        # before one that was only extended by them; of several to the best, then to the first.
        reached.sort(key=precedence)
        self._lead_of: dict[_Key, int] = {
            key: number for row, number in reversed(reached) for key in _keys(row.identifiers)
        }
        # The latest lead that was only refused with an identifier, or with a row's identifiers.
        self.refused_leads: dict[_Key, int] = {
            key: number
            for row, number in recorded
            if not leads[number].is_reached
            for key in _keys(row.identifiers)
        }
        self.person_of_row, persons = self._link(reached)
        self.is_known = np.isin(self.person_of_row, persons)
        self._leads_of_person: dict[int, set[int]] = {}
        for (_, number), person in zip(reached, persons.tolist(), strict=True):
            self._leads_of_person.setdefault(person, set()).add(number)
        known = np.flatnonzero(self.is_known).tolist()
        self._fields = tuple(frame.checked.data)
        self._data = dict(zip(known, digests.data(frame, known), strict=True))
        self._lead_of_row = {row: self._lead(row) for row in known}
        self._resent: set[int] = set()

    def _link(self, reached: Sequence[tuple[RecordedRow, int]]) -> tuple[Rows, Rows]:
        """Return the person of each row of the frame, and of each recorded row."""
        if not reached:
            return first_rows(numbers_of(self._frame.identifier_columns)), np.empty(0, np.int64)
        numbers: dict[Digest | None, int] = {None: NONE}
        rows = [*(row.identifiers for row, _ in reached), *self._identifiers]
        columns = [
            np.array([numbers.setdefault(row[kind], len(numbers)) for row in rows], dtype=np.int64)
            for kind in range(len(Identifiers._fields))
        ]
        # All rows of a lead are one person.
        leads = np.array([*(number for _, number in reached), *[NONE] * self.size], dtype=np.int64)
        persons = first_rows([*columns, leads])
        return persons[len(reached) :], persons[: len(reached)]

    def refused_lead(self, row: int) -> tuple[Lead | None, bool]:
        """Return the refused lead of the same row, or with its email or URL, and whether same."""
        own = self._identifiers[row]
        known = (self.refused_leads.get(key) for key in (own, *own))
        number = next((number for number in known if number is not None), None)
        return None if number is None else self._leads[number], own in self.refused_leads

    def rows_of_lead(self) -> dict[int, list[int]]:
        """Return the frame's rows of each recorded lead, in frame order."""
        rows: dict[int, list[int]] = {}
        for row, number in self._lead_of_row.items():
            rows.setdefault(number, []).append(row)
        return rows

    def _lead(self, row: int) -> int:
        """Return the recorded lead whose outcome applies to a row."""
        keys = _keys(self._identifiers[row])
        own = next((self._lead_of[key] for key in keys if key in self._lead_of), None)
        return self._best_lead(row) if own is None else own

    def _best_lead(self, row: int) -> int:
        """Return the preferred lead of the row's person."""
        leads = self._leads_of_person[int(self.person_of_row[row])]
        return min(leads, key=lambda number: (-self._weight(number), number))

    def _weight(self, number: int) -> int:
        return events.weight(self._leads[number].entry.outcome.status)

    def nearest_row(self, number: int, rows: Sequence[int]) -> int:
        """Return the row most similar to the row sent as this lead."""
        if len(rows) == 1:
            return rows[0]
        lead = self._leads[number]
        sent = lead.send.row
        recorded = [row.identifiers for row in lead.rows]

        def distance(row: int) -> tuple[int, ...]:
            is_moved = self._contents[row].mailbox != lead.send.content.mailbox
            is_changed = bool(self._changes(row, lead))
            # Rows recorded first, so that later rows do not change the choice.
            place = [*recorded, self._identifiers[row]].index(self._identifiers[row])
            is_other = self._identifiers[row] != sent
            return is_other, is_moved, not self.is_valid[row], is_changed, place

        return min(rows, key=distance)

    def describe_changes(self, number: int, row: int, fields: Sequence[str]) -> str:
        """Describe how a row's identifiers, mailbox and data differ from the sent lead's."""
        send, differ = self._leads[number].send, []
        if self._identifiers[row] != send.row:
            now, sent = (
                (email, url or weak_url)
                for email, url, weak_url in (self._identifiers[row], send.row)
            )
            differ = [
                f"with another {kind}" if before else f"without this {kind}"
                for kind, text, before in zip(spec.LEAD_IDENTIFIERS, now, sent, strict=True)
                if text not in (None, before)
            ]
        mailbox = send.content.mailbox
        if self._frame.checked.mailboxes is not None and self._contents[row].mailbox != mailbox:
            differ.append("without this mailbox" if mailbox is None else "from another mailbox")
        notes = [_OTHER_IDENTIFIERS.format(" and ".join(differ))] if differ else []
        notes += [_OTHER_DATA.format(" and ".join(fields))] if fields else []
        return " ".join(notes)

    def changed_fields(self, number: int, row: int) -> list[str]:
        """Return the data fields of this call in which a row differs from the lead as sent."""
        sent, data = self._leads[number].send.content, self._data[row]
        if sent.data == data and sent.fields == self._fields:
            return []
        now = replace(sent, fields=self._fields, data=data)
        return [field for field in self._fields if now.text_of(field) != sent.text_of(field)]

    def take_overridden_row(self, number: int, rows: Sequence[int]) -> int | None:
        """Return a row that resends a skipped lead because the row now overrides the check."""
        lead, person = self._leads[number], int(self.person_of_row[rows[0]])
        override = statuses.OVERRIDE_OF_STATUS.get(lead.entry.outcome.status, "")
        sent = lead.send.content.overrides or ""
        if override not in self._frame.lead_overrides or override in sent:
            return None
        if person in self._resent or self._leads_in_sequence(person):
            return None
        for row in rows:
            if self.is_valid[row]:
                self._resent.add(person)
                return row
        return None

    def find_unknown_row(
        self, number: int, nearest: int, rows: Sequence[int]
    ) -> tuple[int | None, str]:
        """Return an unknown lead's unchanged row, or None and the reason."""
        if self._leads[number].entry.outcome.status != statuses.UNKNOWN:
            return None, ""
        if self._leads_in_sequence(int(self.person_of_row[nearest])) > 1:
            return None, _OTHER_LEAD
        changes = {row: self._changes(row, self._leads[number]) for row in rows}
        same = [row for row in rows if self.is_valid[row] and not changes[row]]
        if same:
            return same[0], ""
        if not self.is_valid[nearest]:
            return None, _INVALID
        return None, _CHANGED.format(" and ".join(changes[nearest]))

    @cached_property
    def _contents(self) -> dict[int, Content]:
        """What each row with a recorded person would send."""
        rows = [*self._data]
        return dict(zip(rows, self._digests.contents(self._frame, rows), strict=True))

    def _changes(self, row: int, lead: Lead) -> list[str]:
        """Return the names of the texts in which a row differs from a lead as sent.

        The overrides do not matter.
        """
        now, sent = self._contents[row], lead.send.content
        names = (MAILBOX, *spec.LEAD_IDENTIFIERS)
        changed = [name for name in names if getattr(now, name) != getattr(sent, name)]
        fields = dict.fromkeys((*now.fields, *sent.fields))
        return changed + [field for field in fields if now.text_of(field) != sent.text_of(field)]

    def _leads_in_sequence(self, person: int) -> int:
        """Count a person's leads that are or may be in the sequence."""
        entries = [self._leads[number].entry for number in self._leads_of_person[person]]
        return sum(entry.outcome.status in statuses.MAY_BE_IN_SEQUENCE for entry in entries)

    def unrecorded_identifiers(self) -> Iterator[tuple[Lead, RowIdentifiers]]:
        """Yield unrecorded identifiers of known people as `extensions`."""
        seen: set[RowIdentifiers] = set()
        for row, lead in self._lead_of_row.items():
            own = self._identifiers[row]
            if own in self._lead_of or own in seen or not any(own):
                continue
            seen.add(own)
            best, (email, url, weak_url) = self._best_lead(row), own
            for key, part in (
                (email or weak_url, (email, None, weak_url)),
                (url, (None, url, None)),
            ):
                if lead != best and key is not None and key not in self._lead_of:
                    yield self._leads[best], part
            yield self._leads[lead], own


def _keys(identifiers: RowIdentifiers) -> list[_Key]:
    """Return the keys by which a row's lead is found: all its identifiers, then each."""
    return [identifiers, *filter(None, identifiers)]


def _add_new_persons(people: _People, found: Resumption) -> list[int]:
    """Add people without records to the resumption; return the row to send per person."""
    persons, is_new = people.person_of_row, ~people.is_known
    kept = first_valid_rows(persons, people.is_valid & is_new)
    found.kept[is_new] = kept[is_new]
    first: list[int] = np.flatnonzero(
        people.is_valid & is_new & (kept == np.arange(people.size))
    ).tolist()
    row_of_person = dict(zip(persons[first].tolist(), first, strict=True))
    for row in np.setdiff1d(np.flatnonzero(people.is_identified & is_new), first).tolist():
        if (sent_row := row_of_person.get(int(persons[row]))) is not None:
            found.linked.setdefault(sent_row, []).append(row)
    for row in first if people.refused_leads else ():
        lead, is_unchanged = people.refused_lead(row)
        if lead is not None:
            found.recorded[row] = lead, ""
            if is_unchanged:
                found.leads[row] = lead
    return first
