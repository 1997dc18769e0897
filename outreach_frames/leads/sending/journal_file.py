"""The journal file of a sequence: a durable list of events.

A record holds the events of one durable transaction. Each record's checksum includes those of all
earlier records, and the header has their number and the last checksum, so that a missing or damaged
record is found. The file has keyed hashes of the person's identifiers and of the row's mailbox and
data, so you may correct, add, drop and reorder rows between runs. It has no leads, no messages of
the service and no token, and only its owner can read it.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import datetime
from functools import cached_property
from os.path import samestat
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from outreach_frames import spec
from outreach_frames.common import sqlite_file, terms
from outreach_frames.common.atomic_files import expanded, require_readable_file, set_mode
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.identity.persons import Identifiers, Mask
from outreach_frames.leads.sending.digests import Digest, Digests
from outreach_frames.leads.sending.events import (
    Event,
    EventStore,
    identifiers_of,
    is_recent,
)

_LOGGER: Final = logging.getLogger(__name__)
_WHAT: Final = "journal"
_FORMAT: Final = 8
# "lead" in ASCII marks the file as a journal.
_APPLICATION_ID: Final = 0x6C656164
_SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_FORMAT};
-- The sequence is MessagePack of the service and the sequence's id.
CREATE TABLE header (
    sequence BLOB NOT NULL, records INTEGER NOT NULL, checksum INTEGER NOT NULL
);
-- A record is MessagePack of the events of one transaction.
CREATE TABLE records (
    number INTEGER PRIMARY KEY, record BLOB NOT NULL, checksum INTEGER NOT NULL
);
"""
_IF_DAMAGED: Final = (
    "Restore the journal from a backup. With a new journal, rows that the service may already "
    "have would be sent again."
)

_ENCODE: Final = msgspec.msgpack.Encoder().encode
_DECODE_EVENTS: Final = msgspec.msgpack.Decoder(list[Event]).decode
_DECODE_SEQUENCE: Final = msgspec.msgpack.Decoder(tuple[str, str]).decode


class SequenceAddress(NamedTuple):
    """The service and the sequence to which a journal belongs; None fits any."""

    service: str | None = None
    sequence: str | None = None


ANY_SEQUENCE: Final = SequenceAddress()


class Head(NamedTuple):
    """The number of records of a file, and the checksum of the last one."""

    records: int
    checksum: int


class JournalFile(AbstractContextManager["JournalFile"]):
    """The open and locked journal file of one sequence.

    `new_events` are the events after the `known` head, or all events if the file is another one.
    """

    def __init__(
        self,
        path: Path,
        sequence: SequenceAddress = ANY_SEQUENCE,
        *,
        known: Head | None = None,
        dry_run: bool = False,
    ) -> None:
        self.path: Final = path
        with ExitStack() as stack:
            if not dry_run:
                stack.enter_context(sqlite_file.locked(self.path, _WHAT))
            with self._explained(InvalidInputError):
                self._connection = self._open(stack, sequence, dry_run=dry_run)
                # A replaced file, or a copy that went another way, is read whole.
                is_continued = known is not None and known == _head_at(
                    self._connection, known.records
                )
                self.is_continued: Final = is_continued
                (self.service, self.sequence_id), self.head, self.new_events = _read(
                    self._connection, known if is_continued else None
                )
                self._require_same(sequence)
                if not dry_run:
                    # Write once, to lock the file and to find errors before the first request.
                    with sqlite_file.transaction(self._connection):
                        self._connection.execute(f"PRAGMA user_version = {_FORMAT}")
                    self._file = path.stat()
            self._stack = stack.pop_all()
            _LOGGER.info("journal opened; it has %d records", self.head.records)

    @property
    def digests(self) -> Digests:
        """The digests of this file's sequence, without any text."""
        return Digests(self.service, self.sequence_id)

    @cached_property
    def events(self) -> EventStore:
        """The events that were read."""
        store = EventStore()
        store.add(self.new_events)
        return store

    def write(self, events: Sequence[Event], kind: type[OutreachError] = OutreachError) -> None:
        """Record new events durably, in one transaction; `kind` is of errors."""
        if events:
            with self._explained(kind), sqlite_file.transaction(self._connection):
                head = _append(self._connection, self.head, events)
            self.head = head

    def __exit__(self, *_raised: object) -> None:
        self._stack.close()

    def require_in_place(self) -> None:
        """Raise if the file was removed or replaced."""
        try:
            is_in_place = samestat(self._file, self.path.stat())
        except OSError:
            is_in_place = False
        if not is_in_place:
            raise OutreachError(
                f"The journal {self.path} was removed or replaced during the run. This Python "
                "process still has the outcomes: submit again before it ends, with the same "
                "journal or a new one, which then records them."
            )

    def _require_same(self, sequence: SequenceAddress) -> None:
        """Raise if the journal belongs to another service or sequence."""
        own = SequenceAddress(self.service, self.sequence_id)
        different = [
            f"{kind} {text}"
            for kind, text, requested in zip(SequenceAddress._fields, own, sequence, strict=True)
            if requested not in (None, text)
        ]
        if different:
            raise InvalidInputError(
                f"The journal {self.path} belongs to a different submission, to the "
                f"{' of the '.join(reversed(different))}. Pass a new journal for this submission."
            )

    def _explained(self, kind: type[OutreachError]) -> AbstractContextManager[None]:
        return sqlite_file.translate_errors(self.path, _WHAT, damaged=_IF_DAMAGED, kind=kind)

    def _open(
        self, stack: ExitStack, sequence: SequenceAddress, *, dry_run: bool
    ) -> sqlite3.Connection:
        """Connect to the journal; create it if it is missing."""

        def fill(connection: sqlite3.Connection) -> None:
            content = _ENCODE(sequence)
            values = (content, 0, zlib.crc32(content))
            connection.execute("INSERT INTO header VALUES (?, ?, ?)", values)

        path = self.path
        if not path.exists():
            sqlite_file.create(path, _SCHEMA, fill)
        require_journal(path)
        if not dry_run:
            set_mode(path, 0o600)
        connect = sqlite_file.copy_into_memory if dry_run else sqlite_file.connect
        connection = stack.enter_context(closing(connect(path)))
        sqlite_file.check_integrity(connection, path)
        return connection


def locate(path: str | Path) -> Path:
    """Return a journal's absolute path."""
    with nothing_sent():
        return sqlite_file.locate(path, _WHAT)


def is_journal(path: Path) -> bool:
    """Return whether a file is a journal of any format."""
    header = sqlite_file.read_header(path)
    return header is not None and header[0] == _APPLICATION_ID


def require_journal(path: Path) -> None:
    """Raise if a file is not a journal of the current format."""
    kind, version = sqlite_file.read_header(path) or (None, None)
    if kind != _APPLICATION_ID:
        raise InvalidInputError(
            f"{path} is not a journal of a submission, or it is damaged. Pass the path of a "
            "journal or of a new file."
            + terms.wording(" of.read_prospects() reads tables.", in_shell="")
        )
    if version != _FORMAT:
        raise InvalidInputError(
            f"The journal {path} was written by another version of this package (format {version}, "
            f"not {_FORMAT}). Finish the submission with that version."
        )


@contextmanager
def nothing_sent() -> Iterator[None]:
    """Append "Nothing was sent." to the messages of input errors."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} Nothing was sent.") from error


class ReachedPeople(NamedTuple):
    """The people who may have been reached by a journal's requests."""

    digests: Digests
    identifiers: set[Digest]
    # The kinds of identifiers that these people have, or all kinds without people.
    kinds: list[str]

    def are_among(self, people: Identifiers) -> Mask:
        """Return whether each person is among the reached people."""
        rows = self.digests.rows(people)
        return np.array([not self.identifiers.isdisjoint(row) for row in rows], dtype=bool)


def reached_people(path: str | Path, since: datetime | None = None) -> ReachedPeople:
    """Read the people who may have been reached by a journal's requests.

    With `since`, only people whose last attempt is not older, or who were in the exclusion list.
    """
    with read_only(path) as file:
        leads = [lead for lead in file.events.leads() if lead.is_reached]
        rows = [row.identifiers for lead in leads for row in lead.rows]
        known = (any(row[0] for row in rows), any(row[1] or row[2] for row in rows))
        kinds = [
            kind for kind, is_known in zip(spec.LEAD_IDENTIFIERS, known, strict=True) if is_known
        ]
        if since is not None:
            leads = [lead for lead in leads if is_recent(file.events.events_of(lead.id), since)]
        return ReachedPeople(
            file.digests, identifiers_of(leads), kinds or list(spec.LEAD_IDENTIFIERS)
        )


def read_only(path: str | Path) -> JournalFile:
    """Open a journal of any sequence and service for reading, without a lock."""
    require_readable_file(expanded(path))
    return JournalFile(locate(path), dry_run=True)


def count_leads(path: Path, people: Identifiers) -> int:
    """Count a journal's leads about these people."""
    with JournalFile(path, dry_run=True) as file:
        digests = {digest for row in file.digests.rows(people) for digest in row} - {None}
        leads = file.events.leads()
        return sum(not digests.isdisjoint(identifiers_of([lead])) for lead in leads)


def _read(
    connection: sqlite3.Connection, known: Head | None
) -> tuple[tuple[str, str], Head, list[Event]]:
    """Read the sequence, the head and the events after the `known` head; raise if damaged."""
    headers = connection.execute("SELECT sequence, records, checksum FROM header").fetchall()
    events: list[Event] = []
    try:
        ((content, *stored_head),) = headers
        head = known or Head(0, zlib.crc32(content))
        query = "SELECT number, record, checksum FROM records WHERE number > ? ORDER BY number"
        for number, record, its_checksum in connection.execute(query, (head.records,)):
            head = Head(head.records + 1, zlib.crc32(record, head.checksum))
            if head != (number, its_checksum):
                raise sqlite3.DatabaseError("a record is missing or does not match its checksum")
            events += _DECODE_EVENTS(record)
        sequence = _DECODE_SEQUENCE(content)
    except (TypeError, ValueError) as error:
        raise sqlite3.DatabaseError("a record cannot be read") from error
    if stored_head != [*head]:
        raise sqlite3.DatabaseError("the last records are missing")
    return sequence, head, events


def _head_at(connection: sqlite3.Connection, number: int) -> Head | None:
    """Return the head that a file had after its first records; None if it has fewer."""
    query = "SELECT number, checksum FROM records WHERE number = ?"
    return next((Head(*row) for row in connection.execute(query, (number,))), None)


def _append(connection: sqlite3.Connection, head: Head, events: Sequence[Event]) -> Head:
    """Write a record and the header; return the new head."""
    record = _ENCODE(events)
    head = Head(head.records + 1, zlib.crc32(record, head.checksum))
    connection.execute(
        "INSERT INTO records VALUES (?, ?, ?)", (head.records, record, head.checksum)
    )
    connection.execute("UPDATE header SET records = ?, checksum = ?", head)
    return head
