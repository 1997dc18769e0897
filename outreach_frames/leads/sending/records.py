"""Recorded leads, found by the identifiers of their persons."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import Sent, Text
from outreach_frames.leads.sending.outcome import NO_RESPONSE, RowOutcome

# Statuses of leads that a request has added or may have added.
MAY_HAVE_ACTED: Final = statuses.IN_SEQUENCE | {statuses.UNKNOWN}
_NEVER: Final = datetime.min.replace(tzinfo=UTC)

# Email, certain URL and weak URL; no two kinds have equal texts.
RowIdentifiers = tuple[Text, Text, Text]


class Entry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A row's outcome, chunk number, number of attempts and time."""

    outcome: RowOutcome
    chunk: int | None
    attempts: int
    # The time of the first send that may have added the lead, to the second.
    sent_at: datetime | None = None

    def with_outcome(self, outcome: RowOutcome) -> Entry:
        """Return the entry with another outcome."""
        return Entry(outcome, self.chunk, self.attempts, self.sent_at)

    def noted(self, *notes: str) -> Entry:
        """Append notes to the outcome's detail."""
        detail = " ".join(filter(None, [self.outcome.detail, *notes]))
        return self.with_outcome(self.outcome._replace(detail=detail)) if any(notes) else self


class RecordedRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The identifiers of a row of a lead's person."""

    recorded_at: int
    is_sent: bool
    identifiers: RowIdentifiers


class Lead(msgspec.Struct, frozen=True, gc=False, array_like=True, tag="lead"):
    """A recorded lead with its latest outcome and the rows of its person."""

    number: int
    rows: tuple[RecordedRow, ...]
    sent: Sent
    entry: Entry
    # Whether an earlier request may have reached the person, or the service skipped them.
    was_reached: bool = False

    @property
    def is_reached(self) -> bool:
        """Whether a request may have reached the person, or the service skipped them."""
        return self.was_reached or self.entry.outcome.status not in statuses.RETRYABLE

    @property
    def sent_row(self) -> RecordedRow:
        """The row that was sent."""
        return next(row for row in self.rows if row.is_sent)

    def finish(self, outcome: RowOutcome) -> Lead:
        """Return the lead with the outcome of its latest request."""
        entry = self.entry.with_outcome(outcome)
        return Lead(self.number, self.rows, self.sent, entry, self.was_reached)

    def erased(self, erase: Callable[[str], str]) -> Lead:
        """Return the lead with `erase` applied to its detail."""
        outcome = self.entry.outcome
        return self.finish(outcome._replace(detail=erase(outcome.detail)))

    def merged(self, other: Lead) -> Lead:
        """Merge a file's record of this person: the better outcome, all rows, the file's number.

        An outcome that may have acted is better than one that has not, then the later one.
        """
        worse, best = sorted((self, other), key=Lead.rank)
        was_reached = self.is_reached or other.is_reached
        is_same_request = self.entry == other.entry.with_outcome(self.entry.outcome)
        if is_same_request and self.number == other.number:
            # The outcome of this request could not be recorded in the file.
            best, worse, was_reached = self, other, self.was_reached
        known = {one for row in best.rows for one in (row.recorded_at, row.identifiers)}
        others = (
            replace(row, is_sent=False)
            for row in worse.rows
            if known.isdisjoint((row.recorded_at, row.identifiers))
        )
        return Lead(other.number, (*best.rows, *others), best.sent, best.entry, was_reached)

    def is_copy_of(self, other: Lead) -> bool:
        """Return whether another record of this lead says the same, apart from digests."""
        is_same = self.entry == other.entry and self.was_reached == other.was_reached
        return is_same and len(self.rows) == len(other.rows)

    def translated(self, translate: Callable[[Text], Text]) -> Lead:
        """Return the lead with `translate` applied to its identifiers and to the texts as sent."""
        rows = []
        for row in self.rows:
            email, url, weak_url = row.identifiers
            texts = translate(email), translate(url), translate(weak_url)
            rows.append(RecordedRow(row.recorded_at, row.is_sent, texts))
        mailbox, email, url = self.sent.mailbox, self.sent.email, self.sent.profnet_url
        sent = Sent(translate(mailbox), translate(email), translate(url), self.sent.overrides)
        return Lead(self.number, tuple(rows), sent, self.entry, self.was_reached)

    def begin(self, rows: Sequence[RecordedRow], sent: Sent, chunk: int, now: datetime) -> Lead:
        """Return the lead as of the time before its next request, which sends these rows."""
        is_unknown = self.entry.outcome.status == statuses.UNKNOWN
        first = self.entry.sent_at if is_unknown else now
        # The lead may have reached somebody under its earlier identifiers.
        earlier = [replace(row, is_sent=False) for row in self.rows] if self.is_reached else []
        entry = Entry(NO_RESPONSE, chunk, self.entry.attempts + 1, first)
        return Lead(
            self.number, (*earlier, *rows) if rows else self.rows, sent, entry, self.is_reached
        )

    def rank(self) -> tuple[bool, datetime, int, bool]:
        """Return a sort key: leads that may have been added come last, then later leads.

        Of records with the same time and attempts, a proven outcome comes after `unknown`.
        """
        entry, status = self.entry, self.entry.outcome.status
        may_have_acted, is_proven = status in MAY_HAVE_ACTED, status != statuses.UNKNOWN
        return may_have_acted, entry.sent_at or _NEVER, entry.attempts, is_proven


class Records:
    """Leads by number and by identifier."""

    def __init__(self) -> None:
        self.leads: dict[int, Lead] = {}
        self._numbers: dict[Text, tuple[int, ...]] = {}
        self.last_number = 0

    def next_numbers(self, size: int) -> range:
        """Return new numbers: times, so that the numbers of other processes are different."""
        first = max(time.time_ns(), self.last_number + 1)
        self.last_number = first + size
        return range(first, first + size)

    def put(self, leads: Iterable[Lead]) -> None:
        """Add leads, or replace leads with the same numbers."""
        for lead in leads:
            before = self.leads.get(lead.number)
            self.leads[lead.number] = lead
            self.last_number = max(self.last_number, lead.rows[-1].recorded_at)
            if before is not None and before.rows is lead.rows:
                continue
            for row in lead.rows:
                for identifier in row.identifiers:
                    numbers = self._numbers.get(identifier, ())
                    if identifier is not None and lead.number not in numbers:
                        self._numbers[identifier] = *numbers, lead.number

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove leads."""
        for number in numbers:
            for identifier in identifiers_of([self.leads.pop(number)]):
                others = (one for one in self._numbers[identifier] if one != number)
                self._numbers[identifier] = tuple(others)

    def find(self, people: Iterable[Text]) -> list[Lead]:
        """Return the leads of the persons with these identifiers, in recorded order.

        The identifiers of a lead that reached nobody do not lead to further leads.
        """
        if not self.leads:
            return []
        found: dict[int, Lead] = {}
        new_people = seen = set(people)
        while new_people:
            known = self._numbers.keys() & new_people
            numbers = {number for each in known for number in self._numbers[each]}
            new = [self.leads[number] for number in numbers - found.keys()]
            found |= {lead.number: lead for lead in new}
            new_people = identifiers_of(lead for lead in new if lead.is_reached) - seen
            seen = seen | new_people
        return [found[number] for number in sorted(found)]


def identifiers_of(leads: Iterable[Lead]) -> set[Text]:
    """Return all identifiers of leads."""
    return {
        one for lead in leads for row in lead.rows for one in row.identifiers if one is not None
    }
