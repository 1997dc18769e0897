"""Decide from the recorded leads which rows to send, and derive the other rows' outcomes.

A row is sent only if no recorded lead of the same person may have been added or skipped, unless the
row overrides the check that skipped the lead. The frame's rows link a person's leads too. Leads
that were rejected or not sent reached nobody and are retried. All functions here are pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec.structs import replace

from outreach_frames import spec
from outreach_frames.identity.keys import email_keys
from outreach_frames.identity.persons import Mask, Rows, first_rows, first_valid_rows
from outreach_frames.leads import statuses
from outreach_frames.leads.planning.mapping import MAILBOX
from outreach_frames.leads.prepared import CheckedFrame
from outreach_frames.leads.sending import events
from outreach_frames.leads.sending.digests import Content, Digest, Digests, RowIdentifiers
from outreach_frames.leads.sending.events import Lead, LeadId, RecordedRow
from outreach_frames.tables.value_text import TEXT

_OTHER_IDENTIFIERS: Final = "The row was sent {} and is not resent."
_OTHER_DATA: Final = "{} changed since the row was sent; the service never updates leads."
_CHANGED: Final = "Not resent, because the {} changed since the row was sent."
_INVALID: Final = "Not resent, because the row is invalid now; see the plan's problems."
_OTHER_LEAD: Final = "Not resent, because another lead of this person may be in the sequence."


@dataclass
class Resumption:
    """The decisions on all rows."""

    # The rows to send, in frame order.
    rows: Rows
    # For each row, its own position or the position of the row that it duplicates.
    kept: Rows
    # The recorded lead per row that represents it, or that is invalid now, with a note. Of the rows
    # to send, only unknown rows have one.
    recorded: dict[int, tuple[Lead, str]] = field(default_factory=dict)
    # The recorded lead that a row sends again.
    leads: dict[int, Lead] = field(default_factory=dict)
    # The recorded mailbox per unknown row that is sent again, if its user still has it.
    mailboxes: dict[int, str] = field(default_factory=dict)
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
    send_again: frozenset[str] = frozenset(),
) -> Resumption:
    """Decide which rows are sent; with `resend_unknown`, only unknown rows.

    People are sent again whose recorded leads all have a status in `send_again`.

    `identifiers` has each row's identifiers. `leads` are in the order of their first sends.
    """
    people = _PersonLeads(identifiers, leads)
    comparison = _Comparison(frame, identifiers, digests, [*people.lead_of_row])
    is_valid = frame.checked.is_valid
    valid_persons = set(people.person_of_row[is_valid].tolist())
    resumption = Resumption(np.array([], dtype=np.int64), np.arange(len(is_valid)))
    new_rows = _add_new_persons(frame, people, resumption)
    rows_to_send = [] if resend_unknown else new_rows
    sent_again = {} if resend_unknown else people.rows_to_send_again(is_valid, send_again)
    for valid_rows in sent_again.values():
        row = valid_rows[0]
        rows_to_send.append(row)
        resumption.leads[row] = people.lead_of_row[row]
        resumption.kept[valid_rows] = row
    resent_persons: set[int] = set()
    for rows in people.rows_of_leads():
        lead, person = people.lead_of_row[rows[0]], int(people.person_of_row[rows[0]])
        if person in sent_again:
            continue
        # An invalid row of a person with a valid row is only the row that was sent, or invalid.
        rows_of_record = [
            row
            for row in rows
            if is_valid[row] or person not in valid_persons or comparison.is_sent_row(lead, row)
        ]
        if not rows_of_record:
            continue
        row = comparison.nearest_row(lead, rows_of_record)
        if resend_unknown:
            resent_row, note = _find_unknown_row(people, comparison, lead, rows, row)
        else:
            resent_row = comparison.find_overridden_row(lead, rows)
            # Resend a person once, and only if none of their leads may be in the sequence.
            if person in resent_persons or people.count_in_sequence(person):
                resent_row = None
            note = comparison.describe(lead, row) if resent_row is None else ""
        recorded = [row, *(other for other in rows_of_record if not is_valid[other])]
        if resent_row is not None:
            row = resent_row
            resent_persons.add(person)
            rows_to_send.append(row)
            resumption.leads[row] = lead
            # Until its response, an unknown row may be in the sequence.
            recorded = [row] if resend_unknown else []
            mailbox = comparison.recorded_mailbox(lead, row) if resend_unknown else None
            if mailbox is not None:
                resumption.mailboxes[row] = mailbox
        elif lead.entry.outcome.status in statuses.MAY_BE_IN_SEQUENCE and comparison.changed_fields(
            lead, row
        ):
            resumption.changed_rows.append(row)
        resumption.kept[[other for other in rows if is_valid[other]]] = row
        resumption.recorded |= dict.fromkeys(recorded, (lead, note))
    resumption.extensions = list(people.unrecorded_identifiers())
    resumption.rows = np.array(sorted(rows_to_send), dtype=np.int64)
    return resumption


def _add_new_persons(
    frame: CheckedFrame, people: _PersonLeads, resumption: Resumption
) -> list[int]:
    """Add people without records to the resumption; return the row to send per person."""
    checked, persons, is_new = frame.checked, people.person_of_row, ~people.is_recorded
    kept = first_valid_rows(persons, checked.is_valid & is_new)
    resumption.kept[is_new] = kept[is_new]
    is_first = checked.is_valid & is_new & (kept == np.arange(len(kept)))
    first: list[int] = np.flatnonzero(is_first).tolist()
    row_of_person = dict(zip(persons[first].tolist(), first, strict=True))
    for row in np.flatnonzero(checked.is_identified & is_new & ~is_first).tolist():
        if (sent_row := row_of_person.get(int(persons[row]))) is not None:
            resumption.linked.setdefault(sent_row, []).append(row)
    refused = {row: people.find_refused_lead(row) for row in first}
    resumption.leads |= {row: lead for row, lead in refused.items() if lead is not None}
    return first


def _find_unknown_row(
    people: _PersonLeads, comparison: _Comparison, lead: Lead, rows: Sequence[int], nearest: int
) -> tuple[int | None, str]:
    """Return an unknown lead's unchanged row, or None and the note of the nearest row."""
    differences = comparison.describe(lead, nearest)
    if lead.entry.outcome.status != statuses.UNKNOWN:
        return None, differences
    # The unknown lead itself is one of them.
    if people.count_in_sequence(int(people.person_of_row[nearest])) > 1:
        return None, f"{_OTHER_LEAD} {differences}".rstrip()
    row = comparison.find_unchanged_row(lead, rows)
    if row is not None:
        return row, ""
    if not comparison.is_valid[nearest]:
        return None, f"{_INVALID} {differences}".rstrip()
    return None, _CHANGED.format(" and ".join(comparison.changed_texts(lead, nearest)))


class _LeadIndex:
    """Leads by the identifiers of a row, by email and by certain URL; the first lead wins.

    A weak URL needs no dict of its own, because its rows have no other identifier.
    """

    def __init__(self, recorded: Iterable[tuple[RecordedRow, Lead]]) -> None:
        self.lead_of_row: dict[RowIdentifiers, Lead] = {}
        self.lead_of_email: dict[Digest | None, Lead] = {}
        self.lead_of_url: dict[Digest | None, Lead] = {}
        for row, lead in recorded:
            email, url, _ = row.identifiers
            self.lead_of_row.setdefault(row.identifiers, lead)
            if email is not None:
                self.lead_of_email.setdefault(email, lead)
            if url is not None:
                self.lead_of_url.setdefault(url, lead)

    def find(self, identifiers: RowIdentifiers) -> Lead | None:
        """Return the lead of the same row, else of its email, else of its URL."""
        email, url, _ = identifiers
        return (
            self.lead_of_row.get(identifiers)
            or self.lead_of_email.get(email)
            or self.lead_of_url.get(url)
        )


class _PersonLeads:
    """The persons of the frame's rows, with the leads that were recorded of each."""

    def __init__(self, identifiers: Sequence[RowIdentifiers], leads: Sequence[Lead]) -> None:
        self._identifiers = identifiers
        recorded = [(row, lead) for lead in leads for row in lead.rows]
        reached = [(row, lead) for row, lead in recorded if lead.is_reached]
        refused = [(row, lead) for row, lead in recorded if not lead.is_reached]
        self._reached = _LeadIndex(sorted(reached, key=_precedence))
        # The latest refused lead of a row.
        self._refused = {row.identifiers: lead for row, lead in refused}
        self.person_of_row, persons = _link(identifiers, reached)
        # Each person's leads, in the order of their first sends.
        self._leads_of_person: dict[int, dict[LeadId, Lead]] = {}
        for person, (_, lead) in zip(persons.tolist(), reached, strict=True):
            self._leads_of_person.setdefault(person, {})[lead.id] = lead
        self.is_recorded = np.isin(self.person_of_row, persons)
        # Per row of a recorded person, the lead whose outcome applies to the row.
        self.lead_of_row = {
            row: self._reached.find(identifiers[row]) or self._best_lead(row)
            for row in np.flatnonzero(self.is_recorded).tolist()
        }

    def rows_of_leads(self) -> Iterable[list[int]]:
        """Return the frame's rows of each lead in frame order."""
        rows: dict[LeadId, list[int]] = {}
        for row, lead in self.lead_of_row.items():
            rows.setdefault(lead.id, []).append(row)
        return rows.values()

    def find_refused_lead(self, row: int) -> Lead | None:
        """Return the lead that was refused with the email and URL of a row."""
        return self._refused.get(self._identifiers[row])

    def rows_to_send_again(
        self, is_valid: Mask, send_again: frozenset[str]
    ) -> dict[int, list[int]]:
        """Return the valid rows of each person whose leads all have one of these statuses."""
        rows: dict[int, list[int]] = {}
        for row in filter(is_valid.item, self.lead_of_row if send_again else ()):
            person = int(self.person_of_row[row])
            leads = self._leads_of_person[person].values()
            if all(lead.entry.outcome.status in send_again for lead in leads):
                rows.setdefault(person, []).append(row)
        return rows

    def count_in_sequence(self, person: int) -> int:
        """Count a person's leads that are or may be in the sequence."""
        leads = self._leads_of_person[person].values()
        return sum(lead.entry.outcome.status in statuses.MAY_BE_IN_SEQUENCE for lead in leads)

    def unrecorded_identifiers(self) -> Iterator[tuple[Lead, RowIdentifiers]]:
        """Yield the new identifiers of recorded people's rows, each with the lead to extend.

        A row as a whole extends its own lead. Each of the row's new identifiers alone extends the
        person's best lead, which then applies to later rows that only have this identifier.
        """
        seen: set[RowIdentifiers] = set()
        for row, lead in self.lead_of_row.items():
            own = self._identifiers[row]
            if own in self._reached.lead_of_row or own in seen:
                continue
            seen.add(own)
            # A weak URL alone is never new: only the same URL links its row to a lead.
            best, (email, url, _) = self._best_lead(row), own
            if lead is not best:
                if email is not None and email not in self._reached.lead_of_email:
                    yield best, (email, None, None)
                if url is not None and url not in self._reached.lead_of_url:
                    yield best, (None, url, None)
            yield lead, own

    def _best_lead(self, row: int) -> Lead:
        """Return the lead of the row's person that proves most; of several, the first."""
        return max(self._leads_of_person[int(self.person_of_row[row])].values(), key=_weight)


class _Comparison:
    """Compares `rows` of the frame with leads as sent."""

    def __init__(
        self,
        frame: CheckedFrame,
        identifiers: Sequence[RowIdentifiers],
        digests: Digests,
        rows: Sequence[int],
    ) -> None:
        self._frame, self._identifiers, self._digests = frame, identifiers, digests
        self.is_valid = frame.checked.is_valid
        self._fields = tuple(frame.checked.data)
        self._data = dict(zip(rows, digests.data(frame, rows), strict=True))
        self._known_mailboxes: dict[tuple[str, ...], dict[Digest | None, str]] = {}

    @cached_property
    def _contents(self) -> dict[int, Content]:
        """What each row would send."""
        rows = [*self._data]
        return dict(zip(rows, self._digests.contents(self._frame, rows), strict=True))

    def nearest_row(self, lead: Lead, rows: Sequence[int]) -> int:
        """Return the row most similar to the row sent as this lead."""
        if len(rows) == 1:
            return rows[0]
        places: dict[RowIdentifiers, int] = {}
        for recorded_row in lead.rows:
            places.setdefault(recorded_row.identifiers, len(places))

        def distance(row: int) -> tuple[int, ...]:
            own = self._identifiers[row]
            is_other = own != lead.send.row
            is_moved = self._is_moved(lead, row)
            is_changed = bool(self.changed_texts(lead, row))
            # Rows recorded first, so that later rows do not change the choice.
            place = places.get(own, len(places))
            return is_other, is_moved, not self.is_valid[row], is_changed, place

        return min(rows, key=distance)

    def recorded_mailbox(self, lead: Lead, row: int) -> str | None:
        """Return the mailbox that sent a lead if it is an active one of the row's user."""
        user, sent = self._frame.checked.users.get(row), lead.send.content.mailbox
        return None if user is None else self._mailboxes(user.active).get(sent)

    def _is_moved(self, lead: Lead, row: int) -> bool:
        """Return whether a lead was sent from another mailbox, which is none of the row's user."""
        now, sent = self._contents[row].mailbox, lead.send.content.mailbox
        user = self._frame.checked.users.get(row)
        return now != sent and (user is None or sent not in self._mailboxes(user.every))

    def _mailboxes(self, addresses: tuple[str, ...]) -> Mapping[Digest | None, str]:
        """Return addresses by their digests."""
        if addresses not in self._known_mailboxes:
            keys = email_keys(pa.array(addresses, TEXT)).to_pylist()
            digests = self._digests.column(MAILBOX, keys)
            self._known_mailboxes[addresses] = dict(zip(digests, addresses, strict=True))
        return self._known_mailboxes[addresses]

    def find_overridden_row(self, lead: Lead, rows: Sequence[int]) -> int | None:
        """Return a row whose call now overrides the check that skipped the lead."""
        override = statuses.OVERRIDE_OF_STATUS.get(lead.entry.outcome.status)
        if override is None or override in (lead.send.content.overrides or ""):
            return None
        if override not in self._frame.lead_overrides:
            return None
        return next((row for row in rows if self.is_valid[row]), None)

    def find_unchanged_row(self, lead: Lead, rows: Sequence[int]) -> int | None:
        """Return a row that would send what was sent as this lead."""
        same = (row for row in rows if self.is_valid[row] and not self.changed_texts(lead, row))
        return next(same, None)

    def is_sent_row(self, lead: Lead, row: int) -> bool:
        """Return whether a row has the email, profile URL and data of the sent lead."""
        return not {*self.changed_texts(lead, row)} - {MAILBOX}

    def changed_texts(self, lead: Lead, row: int) -> list[str]:
        """Return the names of the texts in which a row differs from a lead as sent.

        The overrides do not matter.
        """
        now, sent = self._contents[row], lead.send.content
        changed = [MAILBOX] if self._is_moved(lead, row) else []
        changed += [
            name for name in spec.LEAD_IDENTIFIERS if getattr(now, name) != getattr(sent, name)
        ]
        fields = dict.fromkeys((*now.fields, *sent.fields))
        return changed + [field for field in fields if now.text_of(field) != sent.text_of(field)]

    def changed_fields(self, lead: Lead, row: int) -> list[str]:
        """Return the data fields of this call in which a row differs from a lead as sent."""
        sent, data = lead.send.content, self._data[row]
        if sent.data == data and sent.fields == self._fields:
            return []
        # Only the data: the other members of the content are not compared.
        now = replace(sent, fields=self._fields, data=data)
        return [field for field in self._fields if now.text_of(field) != sent.text_of(field)]

    def describe(self, lead: Lead, row: int) -> str:
        """Describe how a row's identifiers, mailbox and data fields differ from the sent lead's."""
        now, sent = self._identifiers[row], lead.send.row
        # Weak URLs never differ, because only the same URL links such a row to a lead.
        differences = [
            f"with another {kind}" if before else f"without this {kind}"
            for kind, text, before in zip(spec.LEAD_IDENTIFIERS, now[:2], sent[:2], strict=True)
            if text not in (None, before)
        ]
        if self._frame.checked.mailboxes is not None and self._is_moved(lead, row):
            had_none = lead.send.content.mailbox is None
            differences.append("without this mailbox" if had_none else "from another mailbox")
        notes = [_OTHER_IDENTIFIERS.format(" and ".join(differences))] if differences else []
        if fields := self.changed_fields(lead, row):
            notes.append(_OTHER_DATA.format(" and ".join(fields)))
        return " ".join(notes)


def _link(
    identifiers: Sequence[RowIdentifiers], recorded: Sequence[tuple[RecordedRow, Lead]]
) -> tuple[Rows, Rows]:
    """Return the person of each row of the frame, and of each recorded row."""
    # All rows of a lead are one person.
    links: list[tuple[bytes | None, ...]] = [(*row, None) for row in identifiers]
    links += [(*row.identifiers, lead.id) for row, lead in recorded]
    table = pd.DataFrame(links, columns=["email", "url", "weak_url", "lead"], dtype="object")
    # A missing value has the number -1, which links no rows.
    persons = first_rows([pd.factorize(table[name])[0] for name in table])
    return persons[: len(identifiers)], persons[len(identifiers) :]


def _precedence(record: tuple[RecordedRow, Lead]) -> tuple[bool, int, events.Order]:
    """Return the sort key of recorded rows: identifiers belong to the first lead that has them.

    Rows that were sent come before those that only extended a lead, then better leads.
    """
    row, lead = record
    return not row.is_sent, -_weight(lead), row.order


def _weight(lead: Lead) -> int:
    return events.weight(lead.entry.outcome.status)
