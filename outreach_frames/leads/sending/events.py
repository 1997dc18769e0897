"""The events of a journal, and what is known of a lead by its events.

A journal is a list of events that is only added to: a send begins, a send's outcome, and further
identifiers of a lead. Every event has a random id, so that journals are joined by uniting their
events, and a number that is larger than all numbers that its run knew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final, NamedTuple, NewType

import msgspec
from msgspec.structs import replace

from outreach_frames.leads import statuses
from outreach_frames.leads.sending.digests import Content, Digest, RowIdentifiers
from outreach_frames.leads.sending.outcome import NO_RESPONSE, RowOutcome

# Statuses of leads that a request has added or may have added.
MAY_HAVE_ACTED: Final = statuses.IN_SEQUENCE | {statuses.UNKNOWN}

EventId = NewType("EventId", bytes)
# The id of the lead's first send.
LeadId = NewType("LeadId", bytes)
# Events are ordered by their number, and by their id if two processes used the same number.
Order = tuple[int, EventId]


class SendEvent(msgspec.Struct, frozen=True, gc=False, array_like=True, tag="send"):
    """A request with a lead begins."""

    number: int
    id: EventId
    lead: LeadId
    time: datetime
    chunk: int
    row: RowIdentifiers
    # The identifiers of the person's other rows.
    linked: tuple[RowIdentifiers, ...]
    content: Content


class OutcomeEvent(msgspec.Struct, frozen=True, gc=False, array_like=True, tag="outcome"):
    """The outcome of a send."""

    number: int
    id: EventId
    lead: LeadId
    time: datetime
    send: EventId
    outcome: RowOutcome


class LinkEvent(msgspec.Struct, frozen=True, gc=False, array_like=True, tag="link"):
    """Further identifiers of a lead that may have been reached."""

    number: int
    id: EventId
    lead: LeadId
    time: datetime
    row: RowIdentifiers


Event = SendEvent | OutcomeEvent | LinkEvent
_BEGUN: Final = attrgetter("begun")


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A row's outcome, chunk number, number of sends and time."""

    outcome: RowOutcome
    chunk: int | None
    attempts: int
    # The time of the first send that may have added the lead, to the second.
    sent_at: datetime | None = None
    # Whether the outcome was recorded by an earlier run.
    is_earlier: bool = False

    def with_outcome(self, outcome: RowOutcome) -> Entry:
        """Return the entry with another outcome."""
        return replace(self, outcome=outcome)

    def as_earlier(self) -> Entry:
        """Return the entry as one of an earlier run."""
        return replace(self, is_earlier=True)

    def noted(self, *notes: str) -> Entry:
        """Append notes to the outcome's detail."""
        detail = " ".join(filter(None, [self.outcome.detail, *notes]))
        return self.with_outcome(self.outcome._replace(detail=detail)) if any(notes) else self


class RecordedRow(msgspec.Struct, frozen=True, gc=False):
    """The identifiers of a row of a lead's person, and whether the row itself was sent."""

    order: Order
    is_sent: bool
    identifiers: RowIdentifiers


class Lead(msgspec.Struct, frozen=True, gc=False):
    """What is known of a lead."""

    id: LeadId
    begun: Order
    entry: Entry
    # The send that decides the outcome.
    send: SendEvent
    # Whether a request may have reached the person, or the service skipped them.
    is_reached: bool
    # The rows that identify the person; without `is_reached`, the rows that were refused.
    rows: tuple[RecordedRow, ...]


def order_of(event: Event) -> Order:
    """Return the sort key of an event."""
    return event.number, event.id


def lead_of(events: Sequence[Event]) -> Lead:
    """Derive what is known of a lead from its events, in any order.

    An outcome that proves the lead in the sequence wins, then `unknown` (also a send without an
    outcome), then the last skip, then the last outcome. A refused send adds no identifiers.
    """
    sends = sorted((event for event in events if isinstance(event, SendEvent)), key=order_of)
    outcomes = {event.send: event.outcome for event in events if isinstance(event, OutcomeEvent)}
    links = [event for event in events if isinstance(event, LinkEvent)]
    decisive, outcome, best = sends[0], NO_RESPONSE, -1
    first, reaching = None, []
    for send in sends:
        its_outcome = outcomes.get(send.id, NO_RESPONSE)
        its_weight = weight(its_outcome.status)
        if its_weight > best or best == its_weight < _PROVEN:
            decisive, outcome, best = send, its_outcome, its_weight
        if its_weight > _REFUSED:
            reaching.append(send)
        if first is None and its_outcome.status in MAY_HAVE_ACTED:
            first = send.time
    rows = [RecordedRow(order_of(send), True, send.row) for send in reaching or sends]
    if reaching:
        linked = [(order_of(send), row) for send in reaching for row in send.linked]
        linked += [(order_of(link), link.row) for link in links]
        rows += [RecordedRow(order, False, row) for order, row in linked]
    entry = Entry(outcome, decisive.chunk, len(sends), first or decisive.time)
    return Lead(decisive.lead, order_of(sends[0]), entry, decisive, bool(reaching), tuple(rows))


def is_recent(events: Sequence[Event], since: datetime) -> bool:
    """Return whether a lead's last send is not older, or the lead was in the exclusion list."""
    outcomes = (event.outcome for event in events if isinstance(event, OutcomeEvent))
    return max(event.time for event in events if isinstance(event, SendEvent)) >= since or any(
        outcome.status == statuses.IN_EXCLUSION_LIST for outcome in outcomes
    )


_REFUSED, _SKIPPED, _UNKNOWN, _PROVEN = range(4)


def weight(status: str) -> int:
    """Return how much a status proves, to compare the sends of a lead and the leads of a person."""
    if status in statuses.IN_SEQUENCE:
        return _PROVEN
    if status == statuses.UNKNOWN:
        return _UNKNOWN
    return _REFUSED if status in statuses.RETRYABLE else _SKIPPED


class EventStore:
    """The events of leads, found by lead and by identifier; events are only added."""

    def __init__(self) -> None:
        # All events in the order of adding.
        self.log: list[Event] = []
        self._ids: set[EventId] = set()
        self._events: dict[LeadId, list[Event]] = {}
        self._leads_with: dict[Digest, tuple[LeadId, ...]] = {}
        self.last_number: int = 0
        self.last_chunk: int = 0

    def events_of(self, lead: LeadId) -> Sequence[Event]:
        """Return the events of a lead."""
        return self._events.get(lead, ())

    def add(self, events: Iterable[Event]) -> None:
        """Add events, except those that the store has."""
        for event in events:
            if event.id in self._ids:
                continue
            self._ids.add(event.id)
            self._events.setdefault(event.lead, []).append(event)
            self.log.append(event)
            self.last_number = max(self.last_number, event.number)
            if not isinstance(event, OutcomeEvent):
                self._index(event)

    def _index(self, event: SendEvent | LinkEvent) -> None:
        """Find the event's lead by the event's identifiers from now on."""
        rows = [event.row]
        if isinstance(event, SendEvent):
            rows += event.linked
            self.last_chunk = max(self.last_chunk, event.chunk)
        own = (event.lead,)
        for row in rows:
            for identifier in row:
                if identifier is not None:
                    leads = self._leads_with.setdefault(identifier, own)
                    if event.lead not in leads:
                        self._leads_with[identifier] = leads + own

    def leads_with(self, identifiers: set[Digest]) -> set[LeadId]:
        """Return the leads with any of these identifiers."""
        known = self._leads_with.keys() & identifiers
        return {lead for identifier in known for lead in self._leads_with[identifier]}

    def leads(self) -> list[Lead]:
        """Return what is known of all leads, in the order of their first sends."""
        return sorted(map(lead_of, self._events.values()), key=_BEGUN)


class RecordedPeople(NamedTuple):
    """The leads of some people in the order of their first sends, and their identifiers."""

    leads: list[Lead]
    identifiers: set[Digest]


def find_recorded_people(identifiers: Iterable[Digest], *stores: EventStore) -> RecordedPeople:
    """Unite the stores' events of the people with these identifiers.

    People are followed through their leads' further identifiers. A lead that reached nobody leads
    to no further lead.
    """
    leads: dict[LeadId, Lead] = {}
    known = new = set(identifiers)
    while new:
        new_leads = {lead for store in stores for lead in store.leads_with(new)} - leads.keys()
        leads |= {lead: lead_of(_unite(lead, stores)) for lead in new_leads}
        reached = (leads[lead] for lead in new_leads if leads[lead].is_reached)
        new = identifiers_of(reached) - known
        known = known | new
    return RecordedPeople(sorted(leads.values(), key=_BEGUN), known)


def _unite(lead: LeadId, stores: Sequence[EventStore]) -> Sequence[Event]:
    if len(stores) == 1:
        return stores[0].events_of(lead)
    by_id = {event.id: event for store in stores for event in store.events_of(lead)}
    return [*by_id.values()]


def identifiers_of(leads: Iterable[Lead]) -> set[Digest]:
    """Return all identifiers of leads."""
    digests = {digest for lead in leads for row in lead.rows for digest in row.identifiers}
    return {digest for digest in digests if digest is not None}
