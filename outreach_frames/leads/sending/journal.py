"""The journal of a submission: the outcome of each lead that was sent, whatever ends the run.

Every arrow is one durable transaction:

    (none) --begin--> being sent --finish--> any status
                           |
                           '--the run died, next opening--> unknown

A run begins what is not recorded, and what an earlier run left `rejected` or `not_sent`; `unknown`
begins again only on request. The file holds, for each lead, the identifier sets of its person's
rows as salted hashes, so that rows may be corrected, added, dropped and reordered between two runs.
It holds what the service said, which may name an address; no leads and no token. Only its owner can
read it.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from datetime import UTC, datetime
from itertools import count
from os.path import samestat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.common import sqlite_file
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.identity.persons import Identifiers, identifiers
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import SETTINGS, PreparedLeads
from outreach_frames.leads.sending.journal_place import (
    DO_NOT_START_ANEW,
    WHAT,
    JournalPlace,
    lost,
    nothing_sent,
    require_journal,
)
from outreach_frames.leads.sending.outcome import RowOutcome
from outreach_frames.leads.sending.resume import Entry, Recorded, Resumption, Sent, resume

_BEGIN: Final = """
INSERT INTO leads (lead, chunk, attempts, sent_at, email, profnet_url, overrides)
VALUES (?, ?, 1, ?, ?, ?, ?)
ON CONFLICT (lead) DO UPDATE SET status = NULL, detail = NULL, error_code = NULL,
    chunk = excluded.chunk, attempts = attempts + 1, email = excluded.email,
    profnet_url = excluded.profnet_url, overrides = excluded.overrides,
    sent_at = iif(status = 'unknown', sent_at, excluded.sent_at),
    was_reached = was_reached OR ifnull(status NOT IN ('rejected', 'not_sent'), FALSE)
"""
_FINISH: Final = "UPDATE leads SET status = ?, detail = ?, error_code = ? WHERE lead = ?"
_END_RUN: Final = "UPDATE runs SET mark = ? WHERE run = (SELECT max(run) FROM runs)"
_ADD_SET: Final = "INSERT INTO sets VALUES (?, ?, ?, ?, ?)"
_HASH_BYTES: Final = 16
_KINDS: Final = Identifiers._fields

_INTERRUPTED: Final = "The run ended while it was being sent."
_IF_DAMAGED: Final = (
    "Restore it from a backup. Without one, a new journal starts from the beginning, and the "
    "service is asked again about rows that it may already have."
)


class Journal:
    """The journal of one sequence, open and locked; a context manager that closes it.

    Parameters
    ----------
    place : JournalPlace
        Where it is. It is made if it is missing and was not used before.
    submission : mapping of str to str
        What makes this submission the same as an earlier one, part by part, in words that a
        message can use. No personal data.
    dry_run : bool
        Whether to change nothing.

    Attributes
    ----------
    notes : list of str
        What earlier runs noted.
    last_chunk : int
        The number of the last request.
    is_lost : bool
        Whether the file is gone, so that no new one may replace it.

    Raises
    ------
    InvalidInputError
        The file cannot be used: in use, of another submission, damaged, something else, not the one
        that was used before, or not to be written. Nothing was changed.
    """

    def __init__(
        self, place: JournalPlace, submission: Mapping[str, str], *, dry_run: bool = False
    ) -> None:
        self.is_lost: bool = False
        self.path: Final = place.path
        self._place = place
        if place.path is None:
            # In a widget the settings may change between two runs.
            submission = {part: submission[part] for part in submission if part != SETTINGS}
        with nothing_sent(), ExitStack() as stack:
            stack.enter_context(place.locked(dry_run=dry_run))
            with self._explained(InvalidInputError):
                self._connection = self._open(stack, submission, dry_run=dry_run)
                self._require_same(submission)
                self._salt = _read_salt(self._connection)
                self._require_used()
                if not dry_run:
                    if self.path is not None:
                        self._file = self.path.stat()
                    with sqlite_file.transaction(self._connection):
                        self._begin_run()
                    stack.callback(self._end_run)
                try:
                    self._recorded = self._read()
                except (AttributeError, KeyError, TypeError, ValueError) as error:
                    raise sqlite3.DatabaseError("entries that match no lead") from error
                self.notes: list[Any] = [text for (text,) in self._rows("SELECT text FROM notes")]
            self._stack = stack.pop_all()

    def resume(self, plan: PreparedLeads, *, again: bool, dry_run: bool = False) -> Resumption:
        """Decide about every row of a plan, and record further identifiers of known persons."""
        self._plan = plan
        keys = identifiers(*pa.concat_batches([plan.keys, *plan.earlier_keys]).columns)
        hashes = Identifiers(
            *(_hashes(kind, column, self._salt) for kind, column in zip(_KINDS, keys, strict=True))
        )
        resumption = resume(plan, hashes, self._recorded, again=again, sent_of=self._sent)
        self._sets = list(zip(*(column.to_pylist() for column in hashes), strict=True))
        self._resumption = resumption
        self._duplicates: dict[int, list[int]] = {}
        for row in np.flatnonzero(resumption.kept != np.arange(len(plan.frame))).tolist():
            self._duplicates.setdefault(int(resumption.kept[row]), []).append(row)
        if resumption.extensions and not dry_run:
            with self._explained(InvalidInputError), sqlite_file.transaction(self._connection):
                for lead, place, kind in resumption.extensions:
                    one = self._sets[place]
                    kept = [each if kind in {None, at} else None for at, each in enumerate(one)]
                    self._connection.execute(_ADD_SET, (lead, False, *kept))
        return resumption

    def begin(self, chunk: int, positions: Sequence[int]) -> None:
        """Record that rows are about to be sent by the request of that number."""
        self._require_in_place()
        leads, now = self._resumption.leads, _now()
        fresh = [position for position in positions if position not in self._begun]
        for position in positions:
            if position not in leads:
                leads[position] = next(self._new_leads)
        with self._explained(OutreachError), sqlite_file.transaction(self._connection):
            for position in fresh:
                self._forget_sent(leads[position])
            sets = ((leads[row], *one) for row in fresh for one in self._sets_of(row))
            self._execute(_ADD_SET, sets)
            sent = zip(positions, self._sent(positions), strict=True)
            self._execute(_BEGIN, [(leads[row], chunk, now, *content) for row, content in sent])
        self._begun.update(fresh)

    def finish(self, outcomes: Mapping[int, RowOutcome], notes: Collection[str] = ()) -> None:
        """Record the outcomes of rows that were being sent."""
        with self._explained(OutreachError), sqlite_file.transaction(self._connection):
            leads = self._resumption.leads
            ended = [(*outcome, leads[position]) for position, outcome in outcomes.items()]
            self._execute(_FINISH, ended)
            self._execute("INSERT INTO notes (text) VALUES (?)", [(note,) for note in notes])
        self._require_in_place()

    def close(self) -> None:
        """Close the file and let others have it; a second time does nothing."""
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
        """Connect to the journal, which is made where it is missing."""

        def fill(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT INTO submission VALUES (?, ?)", submission.items())
            connection.execute("INSERT INTO salt VALUES (?)", (secrets.token_bytes(_HASH_BYTES),))

        place = self._place
        if not place.exists():
            if place.mark is not None:
                raise InvalidInputError(
                    f"The {place.name} is gone, and these leads were sent with it. Without it they "
                    "would be sent again. Restore it, or plan only the rows that the report has as "
                    "rejected or not_sent."
                )
            place.create(fill)
        if place.memory is not None:
            return place.memory
        path = place.path
        assert path is not None
        require_journal(path)
        if dry_run:
            path = _copy(path, Path(stack.enter_context(TemporaryDirectory())))
        path.chmod(0o600)
        connection = stack.enter_context(closing(sqlite_file.connect(path)))
        sqlite_file.check_integrity(connection, path)
        return connection

    def _require_same(self, submission: Mapping[str, str]) -> None:
        """Refuse the journal of another submission."""
        stored = dict(self._rows("SELECT part, value FROM submission"))
        changed = [part for part, value in submission.items() if stored.get(part) != value]
        if changed:
            raise InvalidInputError(
                f"The journal {self.path} belongs to a different submission: different "
                f"{' and '.join(changed)}. Submit the same again, or give this one its own journal."
            )

    def _require_used(self) -> None:
        """Refuse another journal than the one that was used before, and an older copy of it."""
        mark = self._place.mark
        if mark is not None and (mark,) not in self._rows("SELECT mark FROM runs"):
            raise InvalidInputError(
                f"The {self._place.name} was replaced by another journal, or by an older copy of "
                "it, after these leads were sent. With this one they would be sent again. Restore "
                "the right one, or plan only the rows that the report has as rejected or not_sent."
            )

    def _require_in_place(self) -> None:
        """Raise if the file was moved or replaced."""
        if self.path is None or self._is_in_place():
            return
        self.is_lost = True
        lost.add(self.path)
        if self.path.exists():
            raise OutreachError(
                f"The journal {self.path} was replaced by another file during the run. "
                f"{DO_NOT_START_ANEW}"
            )
        try:
            sqlite_file.save(self._connection, self.path)
        except (OutreachError, OSError, sqlite3.Error) as error:
            raise OutreachError(
                f"The journal {self.path} was removed during the run and cannot be written again "
                f"({error}). {DO_NOT_START_ANEW}"
            ) from error
        self.is_lost = False
        lost.discard(self.path)
        raise OutreachError(
            f"The journal {self.path} was removed during the run. It was written again, with all "
            "that this run knew."
        )

    def _is_in_place(self) -> bool:
        """Return whether the file is still the one that was opened."""
        try:
            return self.path is None or samestat(self._file, self.path.stat())
        except OSError:
            return False

    def _begin_run(self) -> None:
        """Check that the file can be written, and mark no lead as being sent."""
        mark = secrets.token_bytes(_HASH_BYTES)
        self._execute("INSERT INTO runs (began_at, mark) VALUES (?, ?)", [(_now(), mark)])
        self._execute(
            "UPDATE leads SET status = ?, detail = ? WHERE status IS NULL",
            [(statuses.UNKNOWN, _INTERRUPTED)],
        )
        self._place.mark = mark

    def _end_run(self) -> None:
        """Give the run another mark, which a copy that was made during the run lacks."""
        mark = secrets.token_bytes(_HASH_BYTES)
        if self._is_in_place():
            with suppress(sqlite3.Error):
                with sqlite_file.transaction(self._connection):
                    self._execute(_END_RUN, [(mark,)])
                self._place.mark = mark

    def _read(self) -> Recorded:
        """Read what earlier runs recorded."""
        entries: dict[int, Entry] = {}
        reached: set[int] = set()
        for lead, status, detail, error_code, chunk, attempts, was_reached in self._rows(
            "SELECT lead, status, detail, error_code, chunk, attempts, was_reached FROM leads"
        ):
            if not all(isinstance(text, str | None) for text in (status, detail, error_code)):
                raise TypeError("an outcome that is not text")
            outcome = (
                RowOutcome(statuses.UNKNOWN, _INTERRUPTED)
                if status is None
                else RowOutcome(status, detail or "", error_code)
            )
            entries[lead] = Entry(outcome, int(chunk), int(attempts))
            if was_reached or outcome.status not in statuses.TRIED_AGAIN:
                reached.add(lead)
        rows = self._rows("SELECT lead, is_sent, email, url, weak_url FROM sets ORDER BY rowid")
        leads, is_sent, *hashes = zip(*rows, strict=True) if rows else [()] * 5
        known = {lead for lead, was_sent, *one in rows if was_sent and any(one)}
        if known != entries.keys() or not known.issuperset(leads):
            raise KeyError("leads without identifiers")
        self.last_chunk: int = max((entry.chunk or 0 for entry in entries.values()), default=0)
        self._new_leads = count(max(known, default=0) + 1)
        self._begun: set[int] = set()
        return Recorded(
            entries,
            reached,
            self._sent_lead,
            np.array(leads, dtype=np.int64),
            np.array(is_sent, dtype=bool),
            Identifiers(*(pa.array(column, pa.binary()) for column in hashes)),
        )

    def _sent_lead(self, lead: int) -> Sent:
        """Return what was sent of a lead."""
        query = "SELECT email, profnet_url, overrides FROM leads WHERE lead = ?"
        return Sent(*self._connection.execute(query, (lead,)).fetchone())

    def _forget_sent(self, lead: int) -> None:
        """Drop from the file what an earlier run sent of a lead that is sent again."""
        entry = self._recorded.entries.get(lead)
        if entry is not None and lead not in self._recorded.reached:
            # It reached nobody: it is known by what is sent now, as the row may be corrected.
            self._execute("DELETE FROM sets WHERE lead = ?", [(lead,)])
        elif entry is not None:
            self._execute("UPDATE sets SET is_sent = FALSE WHERE lead = ?", [(lead,)])

    def _sets_of(self, position: int) -> Iterator[tuple[bool, *tuple[bytes | None, ...]]]:
        """Yield the identifiers of each row of a row's person, and whether they are its own."""
        rows, size = [position, *self._duplicates.get(position, [])], len(self._resumption.kept)
        own = self._sets[position]
        for one in dict.fromkeys(one for row in rows for one in self._sets[row::size] if any(one)):
            yield one == own, *one

    def _sent(self, positions: Sequence[int]) -> list[Sent]:
        """Return what is sent of rows."""
        rows = pa.array(positions, pa.int64())
        overrides = self._plan.checked.overrides.take(rows).to_pylist()

        def hashed(name: str, text: str | None) -> bytes | None:
            return None if text is None else _hash(f"sent {name}", text, self._salt)

        email, profnet_url = spec.LEAD_IDENTIFIERS
        leads = zip(self._plan.identifiers(positions), overrides, strict=True)
        return [
            Sent(hashed(email, one), hashed(profnet_url, other), chosen)
            for (one, other), chosen in leads
        ]


def _copy(path: Path, folder: Path) -> Path:
    """Copy a journal, with what a run that was killed left beside it."""
    for suffix in ("", "-journal"):
        with suppress(FileNotFoundError):
            shutil.copy(f"{path}{suffix}", folder / f"journal{suffix}")
    return folder / "journal"


def _read_salt(connection: sqlite3.Connection) -> bytes:
    match connection.execute("SELECT salt FROM salt").fetchall():
        case [(bytes(salt),)] if len(salt) == _HASH_BYTES:
            return salt
    raise sqlite3.DatabaseError("no salt")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _hashes(kind: str, texts: pa.Array, salt: bytes) -> pa.Array:
    """Return the hash of each text of a column."""
    encoded = texts.dictionary_encode()
    known = [_hash(kind, text, salt) for text in encoded.dictionary.to_pylist()]
    return pa.array(known, pa.binary()).take(encoded.indices)


def _hash(kind: str, text: str, salt: bytes) -> bytes:
    content = f"{kind}:{text}".encode(errors="surrogatepass")
    return hashlib.blake2b(content, key=salt, digest_size=_HASH_BYTES).digest()


def count_leads(path: Path, people: Identifiers, holds: Callable[[str], bool]) -> int:
    """Count a journal's leads that are one of some people, or whose details name one.

    Notes that name one count too.
    """
    require_journal(path)
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT lead, detail FROM leads")
        found = {lead for lead, detail in rows if detail and holds(detail)}
        salt = _read_salt(connection)
        for kind, keys in zip(_KINDS, people, strict=True):
            query = f"SELECT lead FROM sets WHERE {kind} = ?"  # noqa: S608 - a column's name
            for digest in _hashes(kind, keys, salt).to_pylist():
                found.update(lead for (lead,) in connection.execute(query, (digest,)))
        notes = connection.execute("SELECT text FROM notes")
        return len(found) + sum(holds(text) for (text,) in notes)
