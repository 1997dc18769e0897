"""A file that knows what became of each row, whatever ends the run that sends them.

Each row that was ever sent has one entry. Every arrow is one durable transaction:

    (none) --begin--> being sent --finish--> any status
                           |
                           '--the run died, next opening--> unknown

A run begins what has no entry, and what a run left `rejected` or `not_sent`; `unknown` begins again
only on request. All else is settled for good.

The file holds positions, statuses and what the service said of them, which may name an address; no
leads and no token. It and the files beside it are readable by their owner only, and one run at a
time holds it: the lock is in a file beside it, which stays. Without write-ahead log, so that after
each transaction the one file is complete.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from os.path import samestat
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, Self

from filelock import FileLock, Timeout

from outreach_frames.common.atomic_files import replace_file, unreadable
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.sending.outcome import RowOutcome

FORMAT: Final = 1
# In the file's header: "leads" read as a number, so that no other program's file is taken for one.
_APPLICATION_ID: Final = 0x6C656164
# SQLite's file format: 100 bytes of header, with user_version and application_id at 60 and 68.
_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
_HEADER_OFFSET: Final = 60
_HEADER: Final = struct.Struct(">i4xi")
_SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE submission (part TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE runs (run INTEGER PRIMARY KEY, began_at TEXT NOT NULL);
CREATE TABLE notes (note INTEGER PRIMARY KEY, text TEXT NOT NULL);
-- No status: it is being sent.
CREATE TABLE entries (
    position INTEGER PRIMARY KEY, status TEXT, detail TEXT, error_code TEXT,
    chunk INTEGER NOT NULL, attempts INTEGER NOT NULL
);
"""

_INTERRUPTED: Final = "The run ended while it was being sent."
_NOTHING_SENT: Final = "Nothing was sent."
_IN_USE: Final = (
    "is in use. Two runs on one journal could send a row twice: wait for the other one to end, or "
    "close the file where else it is open."
)
_DAMAGED: Final = (
    "is damaged. Restore it from a backup. Without one, a new journal starts from the beginning, "
    "and the service is asked again about rows that it may already have."
)
_UNWRITABLE: Final = (
    "cannot be written. Free some space, or see that you may write to the file and its folder."
)
# What to say of SQLite's errors, by the beginning of their names.
_SAID_OF_ERRORS: Final = {
    "SQLITE_BUSY": _IN_USE,
    "SQLITE_LOCKED": _IN_USE,
    "SQLITE_FULL": _UNWRITABLE,
    "SQLITE_IOERR": _UNWRITABLE,
    "SQLITE_READONLY": _UNWRITABLE,
    "SQLITE_CANTOPEN": _UNWRITABLE,
    "SQLITE_PERM": _UNWRITABLE,
}


class Entry(NamedTuple):
    """What became of a row that was sent: by which request, and after how many."""

    outcome: RowOutcome
    chunk: int | None
    attempts: int


class Journal:
    """The journal of one submission, open and locked; a context manager that closes it.

    Parameters
    ----------
    path : str or Path
        The file. It is made if it is missing.
    submission : mapping of str to str
        What makes this submission the same as an earlier one, part by part, in words that a
        message can use. No personal data.
    positions : collection of int
        The rows that the submission sends.

    Attributes
    ----------
    entries : dict of int to Entry
        What earlier runs left, by row position. What was being sent when one died is `unknown`.
    notes : list of str
        What earlier runs noted.

    Raises
    ------
    InvalidInputError
        The file cannot be used: in use, of another submission, damaged, something else, or not to
        be written. Nothing was changed.
    """

    def __init__(
        self, path: str | Path, submission: Mapping[str, str], positions: Collection[int]
    ) -> None:
        self.path: Final = _resolved(path)
        with ExitStack() as stack:
            stack.enter_context(_locked(self.path))
            with _explained(self.path, InvalidInputError, _NOTHING_SENT):
                if not self.path.exists():
                    _create(self.path, submission)
                _require_journal(self.path)
                self.path.chmod(0o600)
                self._connection = stack.enter_context(closing(_open(self.path, "mode=rw")))
                _make_durable(self._connection)
                self._file = self.path.stat()
                self._check(submission)
                with _transaction(self._connection):
                    self._begin_run()
                self.entries = dict(self._read_entries())
                self.notes = [
                    text for (text,) in self._connection.execute("SELECT text FROM notes")
                ]
            if not self.entries.keys() <= set(positions):
                raise InvalidInputError(f"The journal {self.path} {_DAMAGED} {_NOTHING_SENT}")
            self._stack = stack.pop_all()

    def begin(self, chunk: int, positions: Collection[int]) -> None:
        """Write down that rows are about to be sent by the request of that number."""
        self._require_in_place()
        with _explained(self.path, OutreachError), _transaction(self._connection):
            self._connection.executemany(
                "INSERT INTO entries (position, chunk, attempts) VALUES (?, ?, 1) "
                "ON CONFLICT (position) DO UPDATE SET status = NULL, detail = NULL, "
                "error_code = NULL, chunk = excluded.chunk, attempts = attempts + 1",
                [(position, chunk) for position in positions],
            )

    def finish(self, outcomes: Mapping[int, RowOutcome], notes: Collection[str] = ()) -> None:
        """Write down what became of rows that were being sent."""
        with _explained(self.path, OutreachError), _transaction(self._connection):
            self._connection.executemany(
                "UPDATE entries SET status = ?, detail = ?, error_code = ? WHERE position = ?",
                [
                    (outcome.status, outcome.detail, outcome.error_code, position)
                    for position, outcome in outcomes.items()
                ],
            )
            self._connection.executemany(
                "INSERT INTO notes (text) VALUES (?)", [(note,) for note in notes]
            )

    def close(self) -> None:
        """Close the file and let others have it; a second time does nothing."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _check(self, submission: Mapping[str, str]) -> None:
        """Refuse a damaged file, and one of another submission."""
        (classification,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if classification != "ok":
            raise sqlite3.DatabaseError(classification)
        (page_size,) = self._connection.execute("PRAGMA page_size").fetchone()
        if self.path.stat().st_size % page_size:
            raise sqlite3.DatabaseError("the file ends within a page")
        stored = dict(self._connection.execute("SELECT part, value FROM submission"))
        names = [*submission, *(part for part in stored if part not in submission)]
        changed = [part for part in names if stored.get(part) != submission.get(part)]
        if changed:
            raise InvalidInputError(
                f"The journal {self.path} is of another submission: other {' and '.join(changed)}. "
                "Submit the same again, or give this one a journal of its own. " + _NOTHING_SENT
            )

    def _require_in_place(self) -> None:
        """Refuse to go on in a file that nobody would find again."""
        try:
            in_place = samestat(self._file, self.path.stat())
        except OSError:
            in_place = False
        if not in_place:
            raise OutreachError(f"The journal {self.path} was removed or replaced during the run.")

    def _begin_run(self) -> None:
        """Make sure that the file can be written, and that no row counts as being sent."""
        self._connection.execute(
            "INSERT INTO runs (began_at) VALUES (?)",
            (datetime.now(UTC).isoformat(timespec="seconds"),),
        )
        self._connection.execute(
            "UPDATE entries SET status = ?, detail = ? WHERE status IS NULL",
            (statuses.UNKNOWN, _INTERRUPTED),
        )

    def _read_entries(self) -> Iterator[tuple[int, Entry]]:
        for position, status, detail, error_code, chunk, attempts in self._connection.execute(
            "SELECT position, status, detail, error_code, chunk, attempts FROM entries"
        ):
            yield position, Entry(RowOutcome(status, detail, error_code), chunk, attempts)


def _resolved(path: str | Path) -> Path:
    """Return the one path of the file, so that two names of it share a lock."""
    try:
        resolved = Path(path).expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise InvalidInputError(
            f"The journal {path} cannot be found: {error}. {_NOTHING_SENT}"
        ) from error
    if resolved.is_symlink():  # before Python 3.13 resolving it is an error
        raise InvalidInputError(
            f"The journal {path} cannot be found: its links lead in a circle. {_NOTHING_SENT}"
        )
    if not resolved.parent.is_dir():
        raise InvalidInputError(
            f"The journal {path} cannot be made: there is no folder {resolved.parent}. Make it "
            f"first, or check the path. {_NOTHING_SENT}"
        )
    if resolved.is_dir():
        raise InvalidInputError(
            f"The journal {path} is a folder. Give the path of a file. {_NOTHING_SENT}"
        )
    return resolved


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    # Not bound to this thread: the one that sends also closes.
    lock = FileLock(f"{path}.lock", timeout=0, mode=0o600, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise InvalidInputError(f"The journal {path} {_IN_USE} {_NOTHING_SENT}") from error
    except OSError as error:
        raise InvalidInputError(
            f"The journal {path} {_UNWRITABLE} ({error.strerror}) {_NOTHING_SENT}"
        ) from error
    try:
        yield
    finally:
        lock.release()


def _create(path: Path, submission: Mapping[str, str]) -> None:
    """Make an empty journal, which is there as a whole or not at all: an empty file is damaged."""
    for suffix in ("-journal", "-wal", "-shm"):
        # Of a file that somebody deleted; SQLite would take it for this one's.
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        connection.executemany("INSERT INTO submission VALUES (?, ?)", submission.items())
        connection.commit()
        content = connection.serialize()

    def write(file: BinaryIO) -> None:
        Path(file.name).chmod(0o600)
        file.write(content)

    replace_file(path, write)


def _require_journal(path: Path) -> None:
    """Refuse a file of another kind before anything about it changes."""
    # Not by SQLite: a run that was killed in a commit leaves a file that only its rollback mends.
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    is_sqlite = len(header) == _HEADER_BYTES and header.startswith(_MAGIC)
    version, kind = _HEADER.unpack_from(header, _HEADER_OFFSET) if is_sqlite else (None, None)
    if kind != _APPLICATION_ID:
        raise InvalidInputError(
            f"{path} is no journal of a submission, or damaged. Give another path; a file that "
            f"is not there is made. {_NOTHING_SENT}"
        )
    if version != FORMAT:
        raise InvalidInputError(
            f"The journal {path} was made by another version of this package (format {version}, "
            f"not {FORMAT}). Finish with that version. {_NOTHING_SENT}"
        )


def _make_durable(connection: sqlite3.Connection) -> None:
    """See to it that a transaction that returned survives a power failure."""
    # The lock beside the file keeps other runs out, this one other programs.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
    # macOS alone needs to be told that durable means durable.
    connection.execute("PRAGMA fullfsync = ON")


def _open(path: Path, option: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?{option}",
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
    )


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    with connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def _explained(path: Path, kind: type[OutreachError], end: str = "") -> Iterator[None]:
    """Raise SQLite's errors as errors that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        name = _name(error)
        said = next(
            (said for start, said in _SAID_OF_ERRORS.items() if name.startswith(start)), _DAMAGED
        )
        raise kind(f"The journal {path} {said} ({error}) {end}".strip()) from error
    except OSError as error:
        raise unreadable(path, error) from error


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")
