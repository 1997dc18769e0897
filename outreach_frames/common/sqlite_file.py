"""The package's SQLite files: used by one run at a time, and safe across power failures.

A file is told from another program's by its header, before SQLite may change a byte of it. There is
no write-ahead log, so after each transaction the one file is complete. The lock is in a file beside
it, which stays.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final

from filelock import FileLock, Timeout

from outreach_frames.common.atomic_files import behind_links, expanded, replace_file, unreadable
from outreach_frames.errors import InvalidInputError, OutreachError

_IN_USE: Final = (
    "is in use. Wait for the other run to end, or close the file where else it is open."
)
_UNWRITABLE: Final = (
    "cannot be written. Free some space, or check that you may write to the file and its folder."
)
_DAMAGED: Final = "is damaged."
# What to say of SQLite's errors, by the beginning of their names.
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
    """Return the one absolute path of a file, whatever names and links lead to it.

    Parameters
    ----------
    path : str or Path
        As the analyst gave it. The file may be missing, its folder may not.
    what : str
        What messages call it.

    Raises
    ------
    InvalidInputError
        There cannot be such a file there.
    """
    try:
        place = behind_links(expanded(path))
        is_special = place.exists() and not place.is_file()
    except OSError as error:
        raise InvalidInputError(
            f"The {what} {path} cannot be used: {error.strerror}. Give another path."
        ) from error
    if not place.parent.is_dir():
        raise InvalidInputError(
            f"The {what} {path} cannot be made: there is no folder {place.parent}. Make it first, "
            "or check the path."
        )
    if is_special:
        kind = "a folder" if place.is_dir() else "not a regular file"
        raise InvalidInputError(f"The {what} {path} is {kind}. Give the path of a file.")
    return place


@contextmanager
def locked(path: Path, what: str, *, lock: Path | None = None) -> Iterator[None]:
    """Keep other runs out of a file, in this process and in others, by a lock file beside it."""
    # Not bound to this thread: the thread that sends also closes it.
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
    """Return a file's application id and format; None where it is not a SQLite file.

    The file is not opened besides SQLite: closing it would drop the locks of all of this process's
    connections to it. It is opened as immutable, so that nothing is mended or made beside it.
    """
    if not path.stat().st_size:
        return None
    uri = f"{path.absolute().as_uri()}?immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            # Of a file that ends early, as a commit that was killed leaves it, too.
            connection.execute("PRAGMA writable_schema = ON")
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
            raise
        return None
    return application_id, version


def create(path: Path, script: str, fill: Callable[[sqlite3.Connection], object]) -> None:
    """Make a file by a script and what `fill` adds, completely or not at all."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(script)
        fill(connection)
        save(connection, path)


def save(connection: sqlite3.Connection, path: Path) -> None:
    """Write a whole database to a file that only its owner can read."""
    for suffix in ("-journal", "-wal", "-shm"):
        # Left by a file that somebody deleted; SQLite would take it for this one's.
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
    content = connection.serialize()

    def write(file: BinaryIO) -> None:
        Path(file.name).chmod(0o600)
        file.write(content)

    replace_file(path, write)


def connect(path: Path, *, durable: bool = True) -> sqlite3.Connection:
    """Open a file so that a power failure leaves it whole.

    A transaction that returned survives one, unless the file is not `durable`, which is faster.
    """
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw",
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        # The lock beside the file keeps other runs out, this one other programs.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute(f"PRAGMA journal_mode = {'DELETE' if durable else 'WAL'}")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        # macOS syncs to the disk itself only on request.
        connection.execute("PRAGMA fullfsync = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def require_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Raise sqlite3.DatabaseError where a file is damaged or cut off."""
    (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if problem != "ok":
        raise sqlite3.DatabaseError(problem)
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    if path.stat().st_size % page_size:
        raise sqlite3.DatabaseError("the file ends within a page")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction: everything or nothing."""
    with connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def explained(
    path: Path, what: str, *, damaged: str, kind: type[OutreachError] = InvalidInputError
) -> Iterator[None]:
    """Raise errors of SQLite and of files as errors that say what to do.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What messages call it.
    damaged : str
        What to do with a damaged one.
    kind : type
        The class of the error.
    """
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        said = next(
            (said for start, said in _MESSAGES.items() if name.startswith(start)),
            f"{_DAMAGED} {damaged}",
        )
        raise kind(f"The {what} {path} {said} ({error})") from error
    except OSError as error:
        raise unreadable(path, error) from error
