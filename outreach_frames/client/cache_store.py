"""The cache's file: requests-cache's table of entries, as bytes with a checksum and no pickle.

Four things are not the library's. Its serializer is pickle, which runs code, or JSON, which raises
on damaged rows: `_pack` and `_unpack` take its place. It waits for ever where another program has
locked the file. It adds a suffix to a name that has none, when the file is already made, marked and
private. And it reads one entry at a time.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from filelock import FileLock
from requests_cache.backends.sqlite import SQLiteDict
from requests_cache.serializers import SerializerPipeline, Stage

from outreach_frames.common.sqlite_file import read_header

_HEADER = struct.Struct(">dI")
_TABLE: Final = "answers"
# "ofca": marks a file as a cache of this package, at the place that SQLite has for that.
_APPLICATION_ID: Final = 0x6F666361
# Four times the usual: a page of people has 160 kB, and is written in two thirds of the time.
_PAGE_BYTES: Final = 16_384


class Entry(NamedTuple):
    """A stored body and its expiry, in seconds since 1970."""

    expires_unix: float
    body: bytes


def _pack(entry: Entry) -> bytes:
    return _HEADER.pack(entry.expires_unix, zlib.crc32(entry.body)) + entry.body


def _unpack(value: object) -> Entry | None:
    """Return the entry of a row; None where the row is damaged."""
    if not isinstance(value, bytes) or len(value) < _HEADER.size:
        return None
    expires, checksum = _HEADER.unpack_from(value)
    body = value[_HEADER.size :]
    return Entry(expires, body) if zlib.crc32(body) == checksum else None


class Store(SQLiteDict):
    """The library's table of entries, in exactly the given file, for one thread at a time."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        self._path = path
        pipeline = SerializerPipeline([Stage(dumps=_pack, loads=_unpack)], is_binary=True)
        super().__init__(
            path, _TABLE, busy_timeout=int(busy_seconds * 1000), serializer=pipeline, wal=True
        )

    def init_db(self) -> None:
        """Open the file by the name that it has."""
        self.db_path: Path = self._path
        super().init_db()  # type: ignore[no-untyped-call]

    @contextmanager
    def _acquire_sqlite_lock(self) -> Iterator[None]:
        # The library tries again for ever here; this gives up after `busy_seconds`.
        connection = self._connection
        assert connection is not None
        connection.execute("BEGIN IMMEDIATE")
        self._active_transaction = True
        try:
            yield
            connection.execute("COMMIT")
        finally:
            self._active_transaction = False
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def put(self, bodies: Mapping[str, bytes], expires_unix: float) -> None:
        """Store bodies until a moment in seconds since 1970, all or none."""
        with self.connection(commit=True):
            for key, body in bodies.items():
                self[key] = Entry(expires_unix, body)

    def entries(self, keys: Sequence[str]) -> dict[str, Entry]:
        """Return those of some entries that are there and whole, by key."""
        marks = ",".join("?" * len(keys))
        query = f"SELECT key, value FROM {_TABLE} WHERE key IN ({marks})"  # noqa: S608
        with self.connection() as connection:
            found = {key: _unpack(value) for key, value in connection.execute(query, list(keys))}
        return {key: entry for key, entry in found.items() if entry is not None}

    def expiring_at(self, expires_unix: float) -> set[str]:
        """Return the keys of the entries that expire at exactly that moment."""
        # By the index alone: behind each value, which is large, the column would be far away.
        query = f"SELECT key FROM {_TABLE} WHERE expires = ?"  # noqa: S608
        with self.connection() as connection:
            return {key for (key,) in connection.execute(query, [expires_unix])}


def open_store(path: Path, busy_seconds: float) -> Store:
    """Open a cache's file, or make one that nobody else can read from its first byte on.

    Raises
    ------
    OSError, sqlite3.Error
        The file is not a cache, or cannot be used; it was not changed.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_cache(path):
        raise sqlite3.DatabaseError("it is not a cache, so it was left as it is")
    # Two processes that make a new file at the same moment would find it locked.
    with FileLock(f"{path}.lock", timeout=busy_seconds, mode=0o600):
        with suppress(FileExistsError):
            path.touch(0o600, exist_ok=False)
        # SQLite gives the files beside it the same mode.
        path.chmod(0o600)
        if _application_id(path) != _APPLICATION_ID:
            with closing(sqlite3.connect(path, timeout=busy_seconds)) as connection:
                connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        return Store(path, busy_seconds)


def is_cache(path: Path) -> bool:
    """Return whether a file is a cache or may become one, without changing anything."""
    identity = _application_id(path)
    if identity == 0:
        # Older caches are not marked. Immutable, so that no file is made beside somebody else's.
        uri = f"{path.absolute().as_uri()}?immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return tables.fetchall() == [(_TABLE,)]
    return identity in {None, _APPLICATION_ID}


def remove_entries(path: Path, holds: Callable[[bytes], bool], *, dry_run: bool) -> int:
    """Remove the entries whose bodies hold something, without a trace of them; return how many.

    Damaged entries go as well: nothing else would ever remove them.
    """
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        rows = connection.execute(f"SELECT key, value FROM {_TABLE}")  # noqa: S608 - a constant
        found = [
            (key,) for key, value in rows if (entry := _unpack(value)) is None or holds(entry.body)
        ]
        if not dry_run:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(f"DELETE FROM {_TABLE} WHERE key = ?", found)  # noqa: S608
            connection.execute("COMMIT")
            # Pages that were freed earlier, and the log, still hold what was deleted before.
            connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise sqlite3.OperationalError("another program is reading it")
    return len(found)


def _application_id(path: Path) -> int | None:
    """Return what a database says it belongs to, 0 for nobody; None for an empty or no file."""
    if not path.exists() or not path.stat().st_size:
        return None
    header = read_header(path)
    if header is None:
        raise sqlite3.DatabaseError("it is not a database, so it was left as it is")
    return header[0]
