"""A file that knows what became of each lead, whatever ends the run that sends it.

Each lead that was ever sent has one entry. Every arrow is one durable transaction:

    (none) --begin--> being sent --finish--> any status
                           |
                           '--the run died, next opening--> unknown

A run begins what has no entry, and what an earlier run left `rejected` or `not_sent`; `unknown`
begins again only on request. All else is settled for good.

Leads are known by what they are compared by, not by their place in a frame: rows may be corrected,
added, dropped and reordered between two runs. The file holds salted hashes of that, statuses, and
what the service said, which may name an address; no leads and no token. Only its owner can read it.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import UTC, datetime
from itertools import count
from os.path import samestat
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from outreach_frames import spec
from outreach_frames.common import sqlite_file
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.identity.keys import is_certain
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import PreparedLeads
from outreach_frames.leads.sending.outcome import RowOutcome

FORMAT: Final = 2
# Entries by row position; such a journal can be resumed where the rows are the same.
_FORMAT_BY_POSITION: Final = 1
# In the file's header: "leads" read as a number, so that no other program's file is taken for one.
_APPLICATION_ID: Final = 0x6C656164
_TABLES: Final = """
-- No status: it is being sent.
CREATE TABLE leads (
    lead INTEGER PRIMARY KEY, status TEXT, detail TEXT, error_code TEXT,
    chunk INTEGER NOT NULL, attempts INTEGER NOT NULL
);
CREATE TABLE keys (
    hash BLOB NOT NULL, kind TEXT NOT NULL, lead INTEGER NOT NULL, PRIMARY KEY (hash, kind, lead)
) WITHOUT ROWID;
CREATE TABLE salt (salt BLOB NOT NULL);
"""
_SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE submission (part TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE runs (run INTEGER PRIMARY KEY, began_at TEXT NOT NULL);
CREATE TABLE notes (note INTEGER PRIMARY KEY, text TEXT NOT NULL);
{_TABLES}
"""
_SALT: Final = "INSERT INTO salt VALUES (?)"
_BEGIN: Final = """
INSERT INTO leads (lead, chunk, attempts) VALUES (?, ?, 1)
ON CONFLICT (lead) DO UPDATE SET status = NULL, detail = NULL, error_code = NULL,
    chunk = excluded.chunk, attempts = attempts + 1
"""
_FINISH: Final = "UPDATE leads SET status = ?, detail = ?, error_code = ? WHERE lead = ?"
_HASH_BYTES: Final = 16
_SETTLED, _UNKNOWN, _TRIED_AGAIN = range(3)

# The parts of a submission that only journals of rows by position are bound to.
ROWS: Final = "rows"
_EMAIL, _URL, _WEAK_URL = "email", "url", "weak_url"
_WHAT: Final = "journal"
_INTERRUPTED: Final = "The run ended while it was being sent."
_NOTHING_SENT: Final = "Nothing was sent."
_IF_DAMAGED: Final = (
    "Restore it from a backup. Without one, a new journal starts from the beginning, and the "
    "service is asked again about rows that it may already have."
)
_DO_NOT_START_ANEW: Final = (
    "A new journal would not know who was sent before, and all would be sent again: plan only the "
    "rows that the report (of.last_report() has it) has as rejected or not_sent."
)
# Journals that were lost while this process had them open; a new one would begin with nobody sent.
_lost: set[Path] = set()
# Where relative paths led when they were first given: the working folder may change.
_seen: dict[str, Path] = {}


class Entry(NamedTuple):
    """What became of a row that was sent: by which request, and after how many."""

    outcome: RowOutcome
    chunk: int | None
    attempts: int


class LeadKeys(NamedTuple):
    """What a lead is compared by: two leads with the same are the same person.

    A URL that is not certain says so only where the addresses do not differ.
    """

    email: str | None
    profnet_url: str | None
    is_certain: bool = True


class Journal:
    """The journal of one sequence, open and locked; a context manager that closes it.

    Parameters
    ----------
    path : str or Path
        The file. It is made if it is missing.
    submission : mapping of str to str
        What makes this submission the same as an earlier one, part by part, in words that a
        message can use. No personal data. Other `rows` are fine.
    leads : mapping of int to LeadKeys
        The rows that the submission sends, by position.

    Attributes
    ----------
    entries : dict of int to Entry
        What earlier runs left, by row position. What was being sent when one died is `unknown`.
    duplicates : dict of int to int
        Rows that are the same person as an earlier row, as only the journal can tell.
    notes : list of str
        What earlier runs noted.
    last_chunk : int
        The number of the last request.
    is_lost : bool
        Whether the file is gone, so that it must not be begun anew.

    Raises
    ------
    InvalidInputError
        The file cannot be used: in use, of another submission, damaged, something else, or not to
        be written. Nothing was changed.
    """

    def __init__(
        self, path: str | Path, submission: Mapping[str, str], leads: Mapping[int, LeadKeys]
    ) -> None:
        self.is_lost: bool = False
        self.duplicates: dict[int, int] = {}
        self.path: Final = locate(path)
        with _nothing_sent(), ExitStack() as stack:
            stack.enter_context(sqlite_file.locked(self.path, _WHAT))
            with self._explained(InvalidInputError):
                if not self.path.exists():
                    _create(self.path, submission)
                version = _require_journal(self.path)
                self.path.chmod(0o600)
                self._connection = stack.enter_context(closing(sqlite_file.connect(self.path)))
                sqlite_file.require_whole(self._connection, self.path)
                self._file = self.path.stat()
                self._require_same(submission, version)
                with sqlite_file.transaction(self._connection):
                    if version == _FORMAT_BY_POSITION:
                        self._convert(leads)
                    self._begin_run()
                try:
                    self._hashes = self._hashed(leads)
                    self.entries: dict[int, Entry] = self._read_entries()
                except (KeyError, TypeError, ValueError) as error:
                    raise sqlite3.DatabaseError("entries that match no lead") from error
                self.notes: list[Any] = [text for (text,) in self._rows("SELECT text FROM notes")]
            self._stack = stack.pop_all()

    def begin(self, chunk: int, positions: Collection[int]) -> None:
        """Record that rows are about to be sent by the request of that number."""
        self._require_in_place()
        with self._explained(OutreachError), sqlite_file.transaction(self._connection):
            for position in positions:
                if position not in self._leads:
                    self._leads[position] = next(self._new_leads)
                elif position in self._retried:
                    # What was not added is known by what is sent now: the row may be corrected.
                    self._execute("DELETE FROM keys WHERE lead = ?", [(self._leads[position],)])
            self._execute(_BEGIN, [(self._leads[position], chunk) for position in positions])
            self._execute(
                "INSERT OR IGNORE INTO keys VALUES (?, ?, ?)",
                [
                    (digest, kind, self._leads[position])
                    for position in positions
                    for kind, digest in self._hashes[position].items()
                ],
            )
        self._retried.difference_update(positions)

    def finish(self, outcomes: Mapping[int, RowOutcome], notes: Collection[str] = ()) -> None:
        """Record what became of rows that were being sent."""
        with self._explained(OutreachError), sqlite_file.transaction(self._connection):
            self._execute(
                _FINISH,
                [
                    (outcome.status, outcome.detail, outcome.error_code, self._leads[position])
                    for position, outcome in outcomes.items()
                ],
            )
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
        return sqlite_file.explained(self.path, _WHAT, damaged=_IF_DAMAGED, kind=kind)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query).fetchall()

    def _execute(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
        self._connection.executemany(statement, values)

    def _require_same(self, submission: Mapping[str, str], version: int) -> None:
        """Refuse the journal of another submission."""
        stored = dict(self._rows("SELECT part, value FROM submission"))
        given = dict(submission)
        if version == FORMAT:
            given.pop(ROWS, None)
        names = [*given, *(part for part in stored if part not in given)]
        changed = [part for part in names if stored.get(part) != given.get(part)]
        if changed == [ROWS]:
            raise InvalidInputError(
                f"The journal {self.path} was made by an earlier version of this package, which "
                "knows rows by their position only, and the rows have changed since. Submit them "
                "as they were then; after that the journal accepts corrected rows, too."
            )
        if changed:
            raise InvalidInputError(
                f"The journal {self.path} is of another submission: other {' and '.join(changed)}. "
                "Submit the same again, or give this one a journal of its own."
            )

    def _require_in_place(self) -> None:
        """Refuse to go on in a file that was moved or replaced."""
        try:
            in_place = samestat(self._file, self.path.stat())
        except OSError:
            in_place = False
        if in_place:
            return
        self.is_lost = True
        _lost.add(self.path)
        if self.path.exists():
            raise OutreachError(
                f"The journal {self.path} was replaced by another file during the run. "
                f"{_DO_NOT_START_ANEW}"
            )
        try:
            sqlite_file.save(self._connection, self.path)
        except (OutreachError, OSError, sqlite3.Error) as error:
            raise OutreachError(
                f"The journal {self.path} was removed during the run and cannot be written again "
                f"({error}). {_DO_NOT_START_ANEW}"
            ) from error
        self.is_lost = False
        _lost.discard(self.path)
        raise OutreachError(
            f"The journal {self.path} was removed during the run. It was written again, with all "
            "that this run knew."
        )

    def _begin_run(self) -> None:
        """Check that the file can be written, and mark no lead as being sent."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._execute("INSERT INTO runs (began_at) VALUES (?)", [(now,)])
        self._execute(
            "UPDATE leads SET status = ?, detail = ? WHERE status IS NULL",
            [(statuses.UNKNOWN, _INTERRUPTED)],
        )

    def _convert(self, leads: Mapping[int, LeadKeys]) -> None:
        """Give the entries of a journal by position the keys of the rows, which are the same."""
        positions = {position for (position,) in self._rows("SELECT position FROM entries")}
        if not positions <= leads.keys():
            raise sqlite3.DatabaseError("entries of rows that are not sent")
        for statement in _TABLES.split(";"):
            self._connection.execute(statement)
        self._connection.execute(_SALT, (secrets.token_bytes(_HASH_BYTES),))
        self._connection.execute(
            "INSERT INTO leads SELECT position, status, detail, error_code, chunk, attempts "
            "FROM entries"
        )
        hashes = self._hashed({position: leads[position] for position in positions})
        self._execute(
            "INSERT INTO keys VALUES (?, ?, ?)",
            [
                (digest, kind, position)
                for position, digests in hashes.items()
                for kind, digest in digests.items()
            ],
        )
        self._connection.execute("DROP TABLE entries")
        self._execute("DELETE FROM submission WHERE part = ?", [(ROWS,)])
        self._connection.execute(f"PRAGMA user_version = {FORMAT}")

    def _hashed(self, leads: Mapping[int, LeadKeys]) -> dict[int, dict[str, bytes]]:
        """Return the hashes by which the file knows each row, by their kind."""
        ((salt,),) = self._rows("SELECT salt FROM salt")
        return {position: _digests(keys, salt) for position, keys in leads.items()}

    def _read_entries(self) -> dict[int, Entry]:
        """Find the rows among the leads that were sent before."""
        known = {
            lead: Entry(RowOutcome(status, detail or "", error_code), int(chunk), int(attempts))
            for lead, status, detail, error_code, chunk, attempts in self._rows(
                "SELECT lead, status, detail, error_code, chunk, attempts FROM leads"
            )
        }
        rank = {lead: _rank(entry.outcome.status) for lead, entry in known.items()}
        self.last_chunk: int = max((entry.chunk or 0 for entry in known.values()), default=0)
        self._new_leads = count(max(known, default=0) + 1)
        self._leads: dict[int, int] = {}
        self._retried: set[int] = set()
        first_row: dict[int, int] = {}
        matches = _Matches(self._rows("SELECT hash, kind, lead FROM keys"))
        for find, may_repeat in ((matches.certain, True), (matches.weak, False)):
            for position, hashes in self._hashes.items():
                if position in self._leads:
                    continue
                for lead in sorted(find(hashes), key=rank.__getitem__):
                    is_retried = rank[lead] == _TRIED_AGAIN
                    if lead not in first_row:
                        first_row[lead] = position
                        if is_retried:
                            self._retried.add(position)
                    elif is_retried or not may_repeat:
                        continue
                    else:
                        self.duplicates[position] = first_row[lead]
                    self._leads[position] = lead
                    break
        return {position: known[lead] for position, lead in self._leads.items()}


def _rank(status: str) -> int:
    """Return what counts most of several leads that are the same person as a row."""
    if status in statuses.TRIED_AGAIN:
        return _TRIED_AGAIN
    return _UNKNOWN if status == statuses.UNKNOWN else _SETTLED


class _Matches:
    """Which leads of a file are the same person as a row."""

    def __init__(self, keys: Iterable[tuple[bytes, str, int]]) -> None:
        self._leads: dict[bytes, list[int]] = {}
        self._with_email: set[int] = set()
        for digest, kind, lead in keys:
            self._leads.setdefault(digest, []).append(lead)
            if kind == _EMAIL:
                self._with_email.add(lead)

    def certain(self, hashes: Mapping[str, bytes]) -> list[int]:
        """Return the leads that have the address or the profile of a row."""
        return self._of(hashes, _EMAIL) + self._of(hashes, _URL)

    def weak(self, hashes: Mapping[str, bytes]) -> list[int]:
        """Return the leads that have a URL of a row which says little, and no other address."""
        leads = self._of(hashes, _WEAK_URL)
        return [lead for lead in leads if not (_EMAIL in hashes and lead in self._with_email)]

    def _of(self, hashes: Mapping[str, bytes], kind: str) -> list[int]:
        return self._leads.get(hashes[kind], []) if kind in hashes else []


def _digests(keys: LeadKeys, salt: bytes) -> dict[str, bytes]:
    kinds = {_EMAIL: keys.email, _URL if keys.is_certain else _WEAK_URL: keys.profnet_url}
    return {
        kind: hashlib.blake2b(
            f"{kind}:{key}".encode(errors="surrogatepass"), key=salt, digest_size=_HASH_BYTES
        ).digest()
        for kind, key in kinds.items()
        if key is not None
    }


def is_journal(path: Path) -> bool:
    """Return whether a file is a journal, of this or of an earlier format."""
    header = sqlite_file.read_header(path)
    return header is not None and header[0] == _APPLICATION_ID


def count_leads(path: Path, people: Iterable[LeadKeys], holds: Callable[[str], bool]) -> int:
    """Count a journal's leads that are one of some people, or whose details name one.

    Notes that name one count too. Journals of rows by position know nobody but by such words.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        leads = "leads" if "leads" in tables else "entries"
        rows = connection.execute(f"SELECT rowid, detail FROM {leads}")  # noqa: S608 - one of two
        found = {lead for lead, detail in rows if detail and holds(detail)}
        if "keys" in tables:
            (salt,) = connection.execute("SELECT salt FROM salt").fetchone()
            for keys in people:
                for kind, digest in _digests(keys, salt).items():
                    query = "SELECT lead FROM keys WHERE kind = ? AND hash = ?"
                    found.update(lead for (lead,) in connection.execute(query, (kind, digest)))
        notes = connection.execute("SELECT text FROM notes")
        return len(found) + sum(holds(text) for (text,) in notes)


def lead_keys(plan: PreparedLeads) -> dict[int, LeadKeys]:
    """Return what a journal knows each row by that is sent."""
    emails, urls = (plan.keys.column(name).to_pylist() for name in spec.LEAD_IDENTIFIERS)
    return {
        position: LeadKeys(email, url, url is not None and is_certain(url))
        for position, email, url in zip(plan.positions.tolist(), emails, urls, strict=True)
    }


def locate(path: str | Path) -> Path:
    """Return the absolute path of a journal.

    Raises
    ------
    InvalidInputError
        There cannot be a journal, or it would not be the one that it was before.
    """
    with _nothing_sent():
        place = sqlite_file.locate(path, _WHAT)
        if place in _lost:
            raise InvalidInputError(
                f"The journal {place} was lost during an earlier run. {_DO_NOT_START_ANEW} "
                "Give them a journal of another name."
            )
        if not Path(path).expanduser().is_absolute():
            before = _seen.setdefault(str(path), place)
            if before != place and before.exists() and not place.exists():
                raise InvalidInputError(
                    f"The journal {path} was {before} before; the working folder has changed "
                    "since. Give its whole path."
                )
    return place


@contextmanager
def _nothing_sent() -> Iterator[None]:
    """Add to errors that nothing was sent."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} {_NOTHING_SENT}") from error


def _create(path: Path, submission: Mapping[str, str]) -> None:
    """Make an empty journal."""

    def fill(connection: sqlite3.Connection) -> None:
        parts = [(part, value) for part, value in submission.items() if part != ROWS]
        connection.executemany("INSERT INTO submission VALUES (?, ?)", parts)
        connection.execute(_SALT, (secrets.token_bytes(_HASH_BYTES),))

    sqlite_file.create(path, _SCHEMA, fill)


def _require_journal(path: Path) -> int:
    """Return the file's format; refuse a file of another kind before anything about it changes."""
    kind, version = sqlite_file.read_header(path) or (None, None)
    if kind != _APPLICATION_ID:
        raise InvalidInputError(
            f"{path} is not a journal of a submission, or damaged. Give another path; a file that "
            "is not there is made."
        )
    if version not in {FORMAT, _FORMAT_BY_POSITION}:
        raise InvalidInputError(
            f"The journal {path} was made by another version of this package (format {version}, "
            f"not {FORMAT}). Finish with that version."
        )
    return version
