"""The journal file of a submission: a durable record of each lead's outcome.

A record is written in one durable transaction before its request, as `unknown`, and again with the
outcome. Each record has a checksum. The file has salted hashes of the person's identifiers and of
the row's mailbox, so you may correct, add, drop and reorder rows between runs. It also has the
service's messages, which may contain an address. It has no leads and no token, and only its owner
can read it.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from os.path import samestat
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from outreach_frames import spec
from outreach_frames.common import sqlite_file
from outreach_frames.common.atomic_files import expanded, require_readable_file, set_mode
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.identity.persons import Identifiers, Mask
from outreach_frames.leads.prepared import PreparedLeads, Text
from outreach_frames.leads.sending.records import (
    Lead,
    Records,
    RowIdentifiers,
    identifiers_of,
)

_LOGGER: Final = logging.getLogger(__name__)
_WHAT: Final = "journal"
_FORMAT: Final = 6
# "lead" in ASCII marks the file as a journal.
_APPLICATION_ID: Final = 0x6C656164
_SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_FORMAT};
CREATE TABLE salt (salt BLOB NOT NULL);
-- A record is MessagePack of a Lead or the Submission; the checksum includes the salt.
CREATE TABLE records (
    number INTEGER PRIMARY KEY, record BLOB NOT NULL, checksum INTEGER NOT NULL
);
"""
_DIGEST_BYTES: Final = 16
SEQUENCE_ID: Final = "sequence_id"
_IF_DAMAGED: Final = (
    "Restore the journal from a backup. With a new journal, rows that the service may already "
    "have would be sent again."
)


@dataclass(eq=False)
class JournalPlace:
    """The location of a plan's, report's or widget's journal file."""

    path: Path
    is_used: bool = False

    @property
    def is_new(self) -> bool:
        """Whether the journal was not used and does not exist."""
        return not self.is_used and not self.path.exists()


class Submission(msgspec.Struct, frozen=True, array_like=True, tag="submission"):
    """The identification of a submission without personal data."""

    number: int
    parts: dict[str, str]


Record = Lead | Submission
_ENCODE: Final = msgspec.msgpack.Encoder().encode
_DECODE: Final = msgspec.msgpack.Decoder(Record).decode


class _Digests(dict[Text, Text]):
    """The digest of each text, computed once; digests and missing texts stay as they are."""

    def __init__(self, salt: bytes) -> None:
        self._base = hashlib.blake2b(key=salt, digest_size=_DIGEST_BYTES)

    def __missing__(self, text: Text) -> Text:
        if text is None or text.isalnum():
            return text
        hashed = self._base.copy()
        hashed.update(text.encode(errors="surrogatepass"))
        self[text] = hashed.hexdigest()
        return self[text]


class JournalFile(AbstractContextManager["JournalFile"]):
    """The open and locked journal file of one sequence; its texts are digests.

    `submission` identifies the submission without personal data; error messages show the keys of
    this mapping.
    """

    def __init__(
        self, place: JournalPlace, submission: Mapping[str, str], *, dry_run: bool = False
    ) -> None:
        self.path: Final = place.path
        self.records: Final = Records()
        with ExitStack() as stack:
            if not dry_run:
                stack.enter_context(sqlite_file.locked(self.path, _WHAT))
            with self._explained(InvalidInputError):
                if place.is_used and not self.path.exists():
                    raise InvalidInputError(
                        f"The journal {self.path} is missing. Restore the journal, or repeat the "
                        "call of this session with a new plan, which writes a new journal."
                    )
                self._connection = self._open(stack, submission, dry_run=dry_run)
                self.salt: Final = _read_salt(self._connection)
                self.digests: Final = _Digests(self.salt)
                self._read(submission)
                if not dry_run:
                    # Write once, to lock the file and to find errors before the first request.
                    with sqlite_file.transaction(self._connection):
                        self._connection.execute(f"PRAGMA user_version = {_FORMAT}")
                    self._file = self.path.stat()
                    place.is_used = True
            stack.callback(self.digests.clear)
            self._stack = stack.pop_all()
            _LOGGER.info("journal opened; it has %d leads", len(self.leads))

    @property
    def leads(self) -> Mapping[int, Lead]:
        """The file's leads by number."""
        return self.records.leads

    def merge(
        self, known: Collection[Lead], people: Iterable[Text], plan: PreparedLeads
    ) -> list[Lead]:
        """Return known leads and the file's leads of these people, merged, in recorded order."""
        sent = [lead.sent for lead in known]
        recorded = {one for each in sent for one in (each.mailbox, each.email, each.profnet_url)}
        merged = {lead.number: lead for lead in known}
        by_row = {
            lead.sent_row.identifiers: lead for lead in known if lead.number not in self.leads
        }
        texts = {*people, *plan.sent_texts, *recorded}
        # Digests among the texts must not replace the texts of the same digests.
        of_digest = {self.digests[text]: text for text in texts if self.digests[text] != text}

        def text_of(text: Text) -> Text:
            return of_digest.get(text, text)

        found = self.records.find({self.digests[text] for text in texts} - {None})
        for their in (lead.translated(text_of) for lead in found):
            own = merged.get(their.number) or by_row.get(their.sent_row.identifiers)
            if own is not None:
                # Another process may have recorded this person with another number.
                merged.pop(own.number, None)
            is_changed = own is not None and not own.is_copy_of(their)
            merged[their.number] = (
                own.translated(text_of).merged(their) if own is not None and is_changed else their
            )
        return [merged[number] for number in sorted(merged)]

    def write(
        self,
        leads: Iterable[Lead],
        kind: type[OutreachError] = OutreachError,
    ) -> None:
        """Record new or changed leads durably; `kind` is of errors."""
        known = ((lead, self.leads.get(lead.number)) for lead in leads)
        changed = [
            lead.translated(self.digests.__getitem__)
            for lead, before in known
            if before is None or not lead.is_copy_of(before)
        ]
        if changed:
            with self._explained(kind), sqlite_file.transaction(self._connection):
                _insert(self._connection, self.salt, changed)
        self.records.put(changed)

    def close(self) -> None:
        """Close and unlock the file; further calls have no effect."""
        self._stack.close()

    def __exit__(self, *_raised: object) -> None:
        self.close()

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

    def _explained(self, kind: type[OutreachError]) -> AbstractContextManager[None]:
        return sqlite_file.translate_errors(self.path, _WHAT, damaged=_IF_DAMAGED, kind=kind)

    def _open(
        self, stack: ExitStack, submission: Mapping[str, str], *, dry_run: bool
    ) -> sqlite3.Connection:
        """Connect to the journal; create it if it is missing."""

        def fill(connection: sqlite3.Connection) -> None:
            salt = secrets.token_bytes(_DIGEST_BYTES)
            connection.execute("INSERT INTO salt VALUES (?)", (salt,))
            _insert(connection, salt, [Submission(0, dict(submission))])

        path = self.path
        if not path.exists():
            sqlite_file.create(path, _SCHEMA, fill)
        require_journal(path)
        if not dry_run:
            set_mode(path, 0o600)
        connect = sqlite_file.snapshot if dry_run else sqlite_file.connect
        connection = stack.enter_context(closing(connect(path)))
        sqlite_file.check_integrity(connection, path)
        return connection

    def _read(self, submission: Mapping[str, str]) -> None:
        """Read and check all records."""
        stored: dict[str, str] | None = None
        leads: list[Lead] = []
        for record in _records(self._connection, self.salt):
            if isinstance(record, Lead):
                leads.append(record)
            else:
                stored = record.parts
        self.records.put(leads)
        if stored is None:
            raise sqlite3.DatabaseError("its submission is missing")
        # The id of the sequence.
        self.sequence_id: str = stored[SEQUENCE_ID]
        changed = [part for part, value in submission.items() if stored.get(part) != value]
        if changed:
            raise InvalidInputError(
                f"The journal {self.path} belongs to a different submission: different "
                f"{' and '.join(changed)}. Pass the arguments of that submission, or for another "
                "sequence or service a new journal."
            )


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
            "journal or of a new file; of.read_prospects() reads tables."
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
    """Digests of the people who may have been reached by a journal's requests."""

    salt: bytes
    rows: list[RowIdentifiers]

    @property
    def kinds(self) -> list[str]:
        """The kinds of identifiers that these people have, or all kinds without people."""
        known = (any(row[0] for row in self.rows), any(row[1] or row[2] for row in self.rows))
        kinds = zip(spec.LEAD_IDENTIFIERS, known, strict=True)
        return [kind for kind, is_known in kinds if is_known] or list(spec.LEAD_IDENTIFIERS)

    def are_among(self, people: Identifiers) -> Mask:
        """Return whether each person is among the reached people."""
        digests, reached = _Digests(self.salt), {one for row in self.rows for one in row} - {None}
        rows = zip(*(column.to_pylist() for column in people), strict=True)
        return np.array([any(digests[one] in reached for one in row) for row in rows], dtype=bool)


def reached_people(path: str | Path) -> ReachedPeople:
    """Read the people who may have been reached by a journal's requests."""
    with read_only(path) as file:
        reached = [row for each in file.leads.values() if each.is_reached for row in each.rows]
        return ReachedPeople(file.salt, [row.identifiers for row in reached])


def read_only(path: str | Path) -> JournalFile:
    """Open a journal of any sequence and service for reading, without a lock."""
    require_readable_file(expanded(path))
    return JournalFile(JournalPlace(locate(path)), {}, dry_run=True)


def count_leads(path: Path, people: Identifiers, holds: Callable[[str], bool]) -> int:
    """Count a journal's leads about these people, found by hash or by text."""
    with JournalFile(JournalPlace(path), {}, dry_run=True) as file:
        texts = {text for column in people for text in column.drop_null().to_pylist()}
        digests = {file.digests[text] for text in texts}
        return sum(
            holds(lead.entry.outcome.detail) or not digests.isdisjoint(identifiers_of([lead]))
            for lead in file.leads.values()
        )


def erase_texts(path: Path, erase: Callable[[str], str]) -> None:
    """Apply `erase` to a journal's details, and clear old texts from its free pages.

    The hashes stay, so that nobody is contacted again.
    """
    require_journal(path)
    explained = sqlite_file.translate_errors(path, _WHAT, damaged=_IF_DAMAGED)
    with sqlite_file.locked(path, _WHAT), explained, closing(sqlite_file.connect(path)) as journal:
        sqlite_file.check_integrity(journal, path)
        salt = _read_salt(journal)
        records = _records(journal, salt)
        changed = [record.erased(erase) for record in records if isinstance(record, Lead)]
        journal.execute("PRAGMA secure_delete = ON")
        with sqlite_file.transaction(journal):
            _insert(journal, salt, changed)
        journal.execute("VACUUM")


def _records(connection: sqlite3.Connection, salt: bytes) -> Iterator[Record]:
    """Yield each record; raise if a record is damaged."""
    start = zlib.crc32(salt)
    for number, content, checksum in connection.execute(
        "SELECT number, record, checksum FROM records ORDER BY number"
    ):
        try:
            if checksum != zlib.crc32(content, start):
                raise sqlite3.DatabaseError("a record does not match its checksum")
            record = _DECODE(content)
        except (TypeError, msgspec.MsgspecError) as error:
            raise sqlite3.DatabaseError("a record cannot be read") from error
        if record.number != number:
            raise sqlite3.DatabaseError("a record has another number")
        yield record


def _insert(connection: sqlite3.Connection, salt: bytes, records: Iterable[Record]) -> None:
    """Write records with checksums."""
    start = zlib.crc32(salt)
    encoded = ((record.number, _ENCODE(record)) for record in records)
    connection.executemany(
        "INSERT OR REPLACE INTO records VALUES (?, ?, ?)",
        ((number, content, zlib.crc32(content, start)) for number, content in encoded),
    )


def _read_salt(connection: sqlite3.Connection) -> bytes:
    match connection.execute("SELECT salt FROM salt").fetchall():
        case [(bytes(salt),)] if len(salt) == _DIGEST_BYTES:
            return salt
    raise sqlite3.DatabaseError("its salt is missing")
