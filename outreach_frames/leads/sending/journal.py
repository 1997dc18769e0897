"""The journal of a submission: a durable record of each lead's outcome.

Each arrow is one durable transaction:

    (none) --begin--> being sent --finish--> any status
                           |
                           '--the run died, next opening--> unknown

A run sends unrecorded, `rejected` and `not_sent` leads, and `unknown` leads only on request. For
each lead the file has salted hashes of the person's identifiers and of the row's mailbox, so you
may correct, add, drop and reorder rows between runs. The file also has the service's messages,
which may contain an address. It has no leads and no token, and only its owner can read it.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from datetime import UTC, datetime
from itertools import count
from os.path import samestat
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.common import sqlite_file
from outreach_frames.common.atomic_files import expanded, require_readable_file, set_mode
from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.identity.keys import email_keys
from outreach_frames.identity.persons import Identifiers, Mask, identifiers
from outreach_frames.leads import statuses
from outreach_frames.leads.planning.mapping import MAILBOX
from outreach_frames.leads.prepared import SETTINGS, PreparedLeads
from outreach_frames.leads.sending.journal_place import (
    IF_LOST,
    WHAT,
    JournalPlace,
    locate,
    lost,
    nothing_sent,
    require_journal,
)
from outreach_frames.leads.sending.outcome import RowOutcome
from outreach_frames.leads.sending.resume import Entry, Recorded, Resumption, Sent, resume

_LOGGER: Final = logging.getLogger(__name__)
_BEGIN: Final = """
INSERT INTO leads (lead, chunk, attempts, sent_at, mailbox, email, profnet_url, overrides)
VALUES (?, ?, 1, ?, ?, ?, ?, ?)
ON CONFLICT (lead) DO UPDATE SET status = NULL, detail = NULL, error_code = NULL,
    chunk = excluded.chunk, attempts = attempts + 1, mailbox = excluded.mailbox,
    email = excluded.email,
    profnet_url = excluded.profnet_url, overrides = excluded.overrides,
    sent_at = iif(status = 'unknown', sent_at, excluded.sent_at),
    was_reached = was_reached OR ifnull(status NOT IN ('rejected', 'not_sent'), FALSE)
"""
_FINISH: Final = "UPDATE leads SET status = ?, detail = ?, error_code = ? WHERE lead = ?"
_END_RUN: Final = "UPDATE runs SET mark = ? WHERE run = (SELECT max(run) FROM runs)"
_ADD_SET: Final = "INSERT INTO sets VALUES (?, ?, ?, ?, ?)"
_HASH_BYTES: Final = 16
_KINDS: Final = Identifiers._fields

_INTERRUPTED: Final = "The run ended during the request."
_IF_DAMAGED: Final = (
    "Restore the journal from a backup. With a new journal, rows that the service may already "
    "have would be sent again."
)


class Journal:
    """A context manager with an open and locked journal of one sequence.

    `submission` identifies the submission without personal data; error messages show the keys of
    this mapping.
    """

    def __init__(
        self, place: JournalPlace, submission: Mapping[str, str], *, dry_run: bool = False
    ) -> None:
        # True if the file disappeared: it must not be recreated.
        self.is_lost: bool = False
        self.path: Final = place.path
        self._place = place
        if place.path is None:
            # Ignore a widget's settings, which may change between runs.
            submission = {part: submission[part] for part in submission if part != SETTINGS}
        with nothing_sent(), ExitStack() as stack:
            if place.path is None or not dry_run:
                stack.enter_context(place.locked())
            with self._explained(InvalidInputError):
                self._connection = self._open(stack, submission, dry_run=dry_run)
                self._require_same(submission)
                self._salt = _read_salt(self._connection)
                self._require_latest()
                if not dry_run:
                    if self.path is not None:
                        self._file = self.path.stat()
                    with sqlite_file.transaction(self._connection):
                        self._begin_run()
                    stack.callback(self._end_run)
                try:
                    self._recorded = self._read()
                except (AttributeError, KeyError, TypeError, ValueError) as error:
                    raise sqlite3.DatabaseError("its entries do not match its leads") from error
                self.notes: list[Any] = [text for (text,) in self._rows("SELECT text FROM notes")]
            self._stack = stack.pop_all()
            _LOGGER.info("journal opened; it has %d leads", len(self._recorded.entries))

    def resume(
        self, plan: PreparedLeads, *, resend_unknown: bool, dry_run: bool = False
    ) -> Resumption:
        """Decide which rows of a plan are sent, and record new identifiers of known people."""
        self._plan = plan
        keys = identifiers(*pa.concat_batches([plan.keys, *plan.earlier_keys]).columns)
        hashes = Identifiers(
            *(_hashes(kind, column, self._salt) for kind, column in zip(_KINDS, keys, strict=True))
        )
        mailboxes = plan.checked.mailboxes
        self._mailboxes: list[bytes | None] = (
            [None] * len(plan.frame)
            if mailboxes is None
            else _hashes(f"sent {MAILBOX}", email_keys(mailboxes), self._salt).to_pylist()
        )
        resumption = resume(
            plan,
            hashes,
            self._mailboxes,
            self._recorded,
            resend_unknown=resend_unknown,
            sent_of=self._sent,
        )
        self._sets = list(zip(*(column.to_pylist() for column in hashes), strict=True))
        self._resumption = resumption
        self._duplicates: dict[int, list[int]] = {}
        for row in np.flatnonzero(resumption.kept != np.arange(len(plan.frame))).tolist():
            self._duplicates.setdefault(int(resumption.kept[row]), []).append(row)
        for row, sent_row in resumption.unsent_rows:
            self._duplicates.setdefault(sent_row, []).append(row)
        if resumption.extensions and not dry_run:
            with self._explained(InvalidInputError), sqlite_file.transaction(self._connection):
                for lead, place, kind in resumption.extensions:
                    hashes_of_set = enumerate(self._sets[place])
                    kept = [each if kind in {None, at} else None for at, each in hashes_of_set]
                    self._connection.execute(_ADD_SET, (lead, False, *kept))
        return resumption

    def reached_people(self) -> ReachedPeople:
        """Return the people who may have been reached by a request."""
        is_reached = pa.array(np.isin(self._recorded.leads, list(self._recorded.reached)))
        hashes = (column.filter(is_reached).drop_null() for column in self._recorded.identifiers)
        return ReachedPeople(self._salt, Identifiers(*hashes))

    def require_mailboxes(self, plan: PreparedLeads, leads: int) -> None:
        """Raise if a plan without a mailbox column would resume a run with a mailbox column."""
        is_forgotten = plan.checked.mailboxes is None and bool(self._recorded.mailboxes)
        if is_forgotten and leads and self.path is not None:
            raise InvalidInputError(
                f"Leads in the journal {self.path} were sent with a mailbox column, but "
                f"{plural(leads, 'lead')} would be sent without it. Pass {MAILBOX}= as before. "
                "Nothing was sent."
            )

    def begin(self, chunk: int, positions: Sequence[int], sent_at: datetime | None = None) -> None:
        """Record, before the request, that rows are sent in this chunk."""
        self._require_in_place()
        leads, now = self._resumption.leads, _now() if sent_at is None else sent_at.isoformat()
        fresh = [position for position in positions if position not in self._begun]
        for position in positions:
            if position not in leads:
                leads[position] = next(self._new_leads)
        with self._explained(OutreachError), sqlite_file.transaction(self._connection):
            for position in fresh:
                self._retire_sets(leads[position])
            sets = ((leads[row], *each) for row in fresh for each in self._sets_of(row))
            self._execute(_ADD_SET, sets)
            sent = zip(positions, self._sent(positions), strict=True)
            self._execute(_BEGIN, [(leads[row], chunk, now, *content) for row, content in sent])
        self._begun.update(fresh)

    def finish(self, outcomes: Mapping[int, RowOutcome], notes: Collection[str] = ()) -> None:
        """Record the outcomes of rows that were being sent."""
        with self._explained(OutreachError), sqlite_file.transaction(self._connection):
            leads = self._resumption.leads
            finished = [(*outcome, leads[position]) for position, outcome in outcomes.items()]
            self._execute(_FINISH, finished)
            self._execute("INSERT INTO notes (text) VALUES (?)", [(note,) for note in notes])
        self._require_in_place()

    def close(self) -> None:
        """Close and unlock the file; further calls have no effect."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def _explained(self, kind: type[OutreachError]) -> AbstractContextManager[None]:
        path = self.path or Path(":memory:")
        return sqlite_file.translate_errors(path, WHAT, damaged=_IF_DAMAGED, kind=kind)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query).fetchall()

    def _execute(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
        self._connection.executemany(statement, values)

    def _open(
        self, stack: ExitStack, submission: Mapping[str, str], *, dry_run: bool
    ) -> sqlite3.Connection:
        """Connect to the journal; create it if it is missing."""

        def fill(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT INTO submission VALUES (?, ?)", submission.items())
            connection.execute("INSERT INTO salt VALUES (?)", (secrets.token_bytes(_HASH_BYTES),))

        place = self._place
        if not place.exists():
            if place.mark is not None:
                raise InvalidInputError(
                    f"The {place.name} is missing. Without it, leads would be sent twice. Restore "
                    "the journal, or plan only the rows that are rejected or not_sent in the "
                    "report."
                )
            place.create(fill)
        if place.memory is not None:
            return place.memory
        path = place.path
        assert path is not None
        require_journal(path)
        if not dry_run:
            set_mode(path, 0o600)
        connect = sqlite_file.snapshot if dry_run else sqlite_file.connect
        connection = stack.enter_context(closing(connect(path)))
        sqlite_file.check_integrity(connection, path)
        return connection

    def _require_same(self, submission: Mapping[str, str]) -> None:
        """Raise if the journal belongs to another submission."""
        stored = dict(self._rows("SELECT part, value FROM submission"))
        changed = [part for part, value in submission.items() if stored.get(part) != value]
        if changed:
            raise InvalidInputError(
                f"The journal {self.path} belongs to a different submission: different "
                f"{' and '.join(changed)}. Repeat that submission, or use a new journal."
            )

    def _require_latest(self) -> None:
        """Raise if another journal or an older copy replaced the journal."""
        mark = self._place.mark
        if mark is not None and (mark,) not in self._rows("SELECT mark FROM runs"):
            raise InvalidInputError(
                f"The {self._place.name} was replaced by another journal or an older copy after "
                "these leads were sent. With that journal, leads would be sent twice. Restore the "
                "journal of this submission, or plan only the rows that are rejected or not_sent "
                "in the report."
            )

    def _require_in_place(self) -> None:
        """Raise if the file was moved or replaced."""
        if self.path is None or self._is_in_place():
            return
        self.is_lost = True
        lost.add(self.path)
        if self.path.exists():
            raise OutreachError(
                f"The journal {self.path} was replaced by another file during the run. {IF_LOST}"
            )
        try:
            sqlite_file.save(self._connection, self.path)
        except (OutreachError, OSError, sqlite3.Error) as error:
            raise OutreachError(
                f"The journal {self.path} was removed during the run and cannot be restored "
                f"({error}). {IF_LOST}"
            ) from error
        self.is_lost = False
        lost.discard(self.path)
        raise OutreachError(
            f"The journal {self.path} was removed during the run. The journal was restored with "
            "all records of this run. To resume, submit again with the same journal."
        )

    def _is_in_place(self) -> bool:
        """Return whether the path still leads to the opened file."""
        try:
            return self.path is None or samestat(self._file, self.path.stat())
        except OSError:
            return False

    def _begin_run(self) -> None:
        """Record a new run, and set the pending leads of a killed run to `unknown`."""
        mark = secrets.token_bytes(_HASH_BYTES)
        self._execute("INSERT INTO runs (began_at, mark) VALUES (?, ?)", [(_now(), mark)])
        self._execute(
            "UPDATE leads SET status = ?, detail = ? WHERE status IS NULL",
            [(statuses.UNKNOWN, _INTERRUPTED)],
        )
        self._place.mark = mark

    def _end_run(self) -> None:
        """Replace the run's mark, so that copies made during the run have an old mark."""
        mark = secrets.token_bytes(_HASH_BYTES)
        if self._is_in_place():
            with suppress(sqlite3.Error):
                with sqlite_file.transaction(self._connection):
                    self._execute(_END_RUN, [(mark,)])
                self._place.mark = mark

    def _read(self) -> Recorded:
        """Read the records of earlier runs."""
        entries: dict[int, Entry] = {}
        reached: set[int] = set()
        for lead, status, detail, error_code, chunk, attempts, sent_at, was_reached in self._rows(
            "SELECT lead, status, detail, error_code, chunk, attempts, sent_at, was_reached "
            "FROM leads"
        ):
            if not all(isinstance(text, str | None) for text in (status, detail, error_code)):
                raise TypeError("an outcome is not text")
            outcome = (
                RowOutcome(statuses.UNKNOWN, _INTERRUPTED)
                if status is None
                else RowOutcome(status, detail or "", error_code)
            )
            time = datetime.fromisoformat(sent_at).astimezone(UTC)
            entries[lead] = Entry(outcome, int(chunk), int(attempts), time)
            if was_reached or outcome.status not in statuses.RETRYABLE:
                reached.add(lead)
        rows = self._rows("SELECT lead, is_sent, email, url, weak_url FROM sets ORDER BY rowid")
        leads, is_sent, *hashes = zip(*rows, strict=True) if rows else [()] * 5
        known = {lead for lead, was_sent, *each in rows if was_sent and any(each)}
        if known != entries.keys() or not known.issuperset(leads):
            raise KeyError("a lead has no identifiers")
        self.last_chunk: int = max((entry.chunk or 0 for entry in entries.values()), default=0)
        self._new_leads = count(max(known, default=0) + 1)
        self._begun: set[int] = set()
        return Recorded(
            entries,
            reached,
            dict(self._rows("SELECT lead, mailbox FROM leads WHERE mailbox IS NOT NULL")),
            self._sent_lead,
            np.array(leads, dtype=np.int64),
            np.array(is_sent, dtype=bool),
            Identifiers(*(pa.array(column, pa.binary()) for column in hashes)),
        )

    def _sent_lead(self, lead: int) -> Sent:
        """Return a recorded lead as sent."""
        query = "SELECT mailbox, email, profnet_url, overrides FROM leads WHERE lead = ?"
        return Sent(*self._connection.execute(query, (lead,)).fetchone())

    def _retire_sets(self, lead: int) -> None:
        """Drop the recorded identifiers of a resent lead, or mark them as not sent."""
        entry = self._recorded.entries.get(lead)
        if entry is not None and lead not in self._recorded.reached:
            # The lead reached nobody, and its row may have been corrected since.
            self._execute("DELETE FROM sets WHERE lead = ?", [(lead,)])
        elif entry is not None:
            self._execute("UPDATE sets SET is_sent = FALSE WHERE lead = ?", [(lead,)])

    def _sets_of(self, position: int) -> Iterator[tuple[bool, *tuple[bytes | None, ...]]]:
        """Yield (belongs to the sent row, *identifiers) for each row of the same person."""
        rows, size = [position, *self._duplicates.get(position, [])], len(self._resumption.kept)
        own = self._sets[position]
        sets = (each for row in rows for each in self._sets[row::size] if any(each))
        for each in dict.fromkeys(sets):
            yield each == own, *each

    def _sent(self, positions: Sequence[int]) -> list[Sent]:
        """Return the content of rows as recorded: hashes and overrides."""
        rows = pa.array(positions, pa.int64())
        overrides = self._plan.checked.overrides.take(rows).to_pylist()

        def hashed(name: str, text: str | None) -> bytes | None:
            return None if text is None else _hash(f"sent {name}", text, self._salt)

        email, profnet_url = spec.LEAD_IDENTIFIERS
        leads = zip(positions, self._plan.identifiers(positions), overrides, strict=True)
        return [
            Sent(self._mailboxes[row], hashed(email, address), hashed(profnet_url, url), chosen)
            for row, (address, url), chosen in leads
        ]


class ReachedPeople(NamedTuple):
    """Hashes of people who may have been reached by a journal's requests."""

    salt: bytes
    hashes: Identifiers

    @property
    def kinds(self) -> list[str]:
        """The kinds of identifiers that these people have, or all kinds without people."""
        email, *urls = map(len, self.hashes)
        known = zip(spec.LEAD_IDENTIFIERS, (email, sum(urls)), strict=True)
        return [kind for kind, number in known if number] or list(spec.LEAD_IDENTIFIERS)

    def are_among(self, people: Identifiers) -> Mask:
        """Return whether each person is among the reached people."""
        found = np.zeros(len(people.email), dtype=bool)
        for kind, keys, reached in zip(_KINDS, people, self.hashes, strict=True):
            is_known = pc.is_in(_hashes(kind, keys, self.salt), reached)
            found |= is_known.to_numpy(zero_copy_only=False)
        return found


def reached_people(path: str | Path) -> ReachedPeople:
    """Read the people who may have been reached by a journal's requests."""
    with read_only(path) as opened:
        return opened.reached_people()


def read_only(path: str | Path) -> Journal:
    """Open a journal of any sequence and service for reading, without a lock."""
    require_readable_file(expanded(path))
    return Journal(JournalPlace(locate(path)), {}, dry_run=True)


def _read_salt(connection: sqlite3.Connection) -> bytes:
    match connection.execute("SELECT salt FROM salt").fetchall():
        case [(bytes(salt),)] if len(salt) == _HASH_BYTES:
            return salt
    raise sqlite3.DatabaseError("its salt is missing")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _hashes(kind: str, texts: pa.Array, salt: bytes) -> pa.Array:
    """Hash each text of a column."""
    encoded = texts.dictionary_encode()
    known = [_hash(kind, text, salt) for text in encoded.dictionary.to_pylist()]
    return pa.array(known, pa.binary()).take(encoded.indices)


def _hash(kind: str, text: str, salt: bytes) -> bytes:
    content = f"{kind}:{text}".encode(errors="surrogatepass")
    return hashlib.blake2b(content, key=salt, digest_size=_HASH_BYTES).digest()


def count_leads(path: Path, people: Identifiers, holds: Callable[[str], bool]) -> int:
    """Count a journal's leads and notes about these people, found by hash or by text."""
    require_journal(path)
    with closing(sqlite_file.snapshot(path)) as connection:
        rows = connection.execute("SELECT lead, detail FROM leads")
        found = {lead for lead, detail in rows if detail and holds(detail)}
        salt = _read_salt(connection)
        for kind, keys in zip(_KINDS, people, strict=True):
            query = f"SELECT lead FROM sets WHERE {kind} = ?"  # noqa: S608 - a column's name
            for digest in _hashes(kind, keys, salt).to_pylist():
                found.update(lead for (lead,) in connection.execute(query, (digest,)))
        notes = connection.execute("SELECT text FROM notes")
        return len(found) + sum(holds(text) for (text,) in notes)


def erase_texts(path: Path, erase: Callable[[str], str]) -> None:
    """Apply `erase` to a journal's details and notes, and clear old texts from its free pages.

    The hashes stay, so that nobody is contacted again.
    """
    require_journal(path)
    explained = sqlite_file.translate_errors(path, WHAT, damaged=_IF_DAMAGED)
    with sqlite_file.locked(path, WHAT), explained, closing(sqlite_file.connect(path)) as journal:
        sqlite_file.check_integrity(journal, path)
        journal.create_function("erase", 1, erase, deterministic=True)
        journal.execute("PRAGMA secure_delete = ON")
        with sqlite_file.transaction(journal):
            for table, text in (("leads", "detail"), ("notes", "text")):
                changed = f"{text} <> erase({text})"
                journal.execute(f"UPDATE {table} SET {text} = erase({text}) WHERE {changed}")  # noqa: S608 - names from the line above
        journal.execute("VACUUM")
