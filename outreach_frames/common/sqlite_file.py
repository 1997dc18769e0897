"""SQLite files that survive power failures and serve one run at a time.

The header is checked first, because SQLite could change another program's file. Durable files have
no write-ahead log, so the file is complete after each transaction. Lock files are not removed.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from filelock import FileLock, Timeout

from outreach_frames.common.atomic_files import (
    delete,
    expanded,
    replace_file,
    resolve_links,
    unreadable,
)
from outreach_frames.errors import InvalidInputError, OutreachError

_IN_USE: Final = "is in use. Wait for the other run to end, or close the file in other programs."
_UNWRITABLE: Final = (
    "cannot be written. Free some space, or check the permissions of the file and its folder."
)
_DAMAGED: Final = "is damaged."
# Messages by the prefix of SQLite's error names.
_MESSAGES: Final = {
    "SQLITE_BUSY": _IN_USE,
    "SQLITE_LOCKED": _IN_USE,
    "SQLITE_FULL": _UNWRITABLE,
    "SQLITE_IOERR": _UNWRITABLE,
    "SQLITE_READONLY": _UNWRITABLE,
    "SQLITE_CANTOPEN": _UNWRITABLE,
    "SQLITE_PERM": _UNWRITABLE,
}


def locate(path: str | PathLike[str], what: str) -> Path:
    """Return the absolute path of a file that may be missing, with all links resolved."""
    try:
        place = resolve_links(expanded(path))
        is_special = place.exists() and not place.is_file()
        # SQLite's own files next to the file have longer names.
        with suppress(FileNotFoundError, NotADirectoryError):
            Path(f"{place}-journal").stat()
    except OSError as error:
        raise InvalidInputError(
            f"The {what} {path} cannot be used: {error.strerror}. Pass another path."
        ) from error
    if not place.parent.is_dir():
        raise InvalidInputError(
            f"The {what} {path} cannot be created: the folder {place.parent} does not "
            "exist. Create it first, or check the path."
        )
    if is_special:
        kind = "a folder" if place.is_dir() else "not a regular file"
        raise InvalidInputError(f"The {what} {path} is {kind}. Pass the path of a file.")
    return place


@contextmanager
def locked(path: Path, what: str, *, lock: Path | None = None) -> Iterator[None]:
    """Lock a file against other runs in any process, with a lock file next to it."""
    # Another thread may release the lock.
    held = FileLock(lock or f"{path}.lock", timeout=0, mode=0o600, thread_local=False)
    try:
        held.acquire()
    except Timeout as error:
        raise InvalidInputError(f"The {what} {path} {_IN_USE}") from error
    except OSError as error:
        raise InvalidInputError(f"The {what} {path} {_UNWRITABLE} ({error.strerror})") from error
    try:
        yield
    finally:
        held.release()


def read_header(path: Path) -> tuple[int, int] | None:
    """Return a file's application id and format version, or None if it is not a SQLite file."""
    if not path.stat().st_size:
        return None
    # Read only through SQLite: closing the file in Python would drop this process's locks on it.
    # With `immutable`, SQLite neither repairs the file nor creates other files next to it.
    uri = f"{path.absolute().as_uri()}?immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            # This setting also allows reading a file that a killed commit truncated.
            connection.execute("PRAGMA writable_schema = ON")
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_NOTADB:
            raise
        return None
    return application_id, version


def create(path: Path, script: str, fill: Callable[[sqlite3.Connection], object]) -> None:
    """Create a file atomically by running a script and `fill`."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(script)
        fill(connection)
        save(connection, path)


def save(connection: sqlite3.Connection, path: Path) -> None:
    """Write a database to a file that only its owner can read."""
    for suffix in ("-journal", "-wal", "-shm"):
        # SQLite would apply the leftover journal of a deleted file to the new file.
        delete(path.with_name(f"{path.name}{suffix}"))
    content = connection.serialize()
    replace_file(path, lambda file: file.write(content), private=True)


def connect(path: Path, *, durable: bool = True) -> sqlite3.Connection:
    """Open a file that survives power failures; if `durable`, so does each finished transaction."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        # Wait while `copy_into_memory` reads the file.
        timeout=0.3,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        # The lock file excludes other runs; this mode excludes other programs.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute(f"PRAGMA journal_mode = {'DELETE' if durable else 'WAL'}")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        # macOS syncs to the disk only on request.
        connection.execute("PRAGMA fullfsync = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def copy_into_memory(path: Path) -> sqlite3.Connection:
    """Copy a file's last committed state into memory; raise if a run is using the file."""
    try:
        content = _read_locked(path, "ro")
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_READONLY_ROLLBACK:
            raise
        # A killed run left an incomplete transaction; SQLite rolls it back in a writable copy.
        with TemporaryDirectory() as folder:
            copy = Path(folder, "copy")
            for suffix in ("", "-journal"):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
            content = _read_locked(copy, "rw")
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.deserialize(content)
    return connection


def _read_locked(path: Path, mode: str) -> bytes:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        # This query locks the file, or raises with the reason; serialize() does neither.
        connection.execute("PRAGMA user_version").fetchone()
        return connection.serialize()


def require_tables(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError if a database has a view or trigger, which may run for ever."""
    query = "SELECT name FROM sqlite_master WHERE coalesce(rootpage, 0) = 0"
    if row := connection.execute(query).fetchone():
        raise sqlite3.DatabaseError(f"{row[0]} is a view, trigger or virtual table")


def check_integrity(connection: sqlite3.Connection, path: Path) -> None:
    """Raise sqlite3.DatabaseError if a file is damaged, truncated or not of tables alone."""
    require_tables(connection)
    (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if problem != "ok":
        raise sqlite3.DatabaseError(problem)
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    if path.stat().st_size % page_size:
        raise sqlite3.DatabaseError("the file ends within a page")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run an atomic transaction."""
    with connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def translate_errors(
    path: Path, what: str, *, damaged: str, kind: type[OutreachError] = InvalidInputError
) -> Iterator[None]:
    """Raise file and SQLite errors as `kind`; `damaged` is the advice for a damaged file."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        message = next(
            (message for prefix, message in _MESSAGES.items() if name.startswith(prefix)),
            f"{_DAMAGED} {damaged}",
        )
        raise kind(f"The {what} {path} {message} ({error})") from error
    except OSError as error:
        raise unreadable(path, error) from error
