"""A file that caches responses, so that repeated reads need no request.

The file holds the bodies of responses, and tables that were built from them, all compressed, but
no headers, URLs or tokens. If the file fails, requests go to the service. Each statement is a
transaction of its own, so processes wait for each other only for moments.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import struct
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

import platformdirs
import pyarrow as pa
from filelock import FileLock

from outreach_frames.client.options import DEFAULT_CACHE
from outreach_frames.common.atomic_files import expanded, set_mode
from outreach_frames.common.sqlite_file import read_header, require_tables, transaction
from outreach_frames.common.warnings import warn
from outreach_frames.errors import ConfigurationError, InvalidInputError

_LOGGER: Final = logging.getLogger(__name__)
MAX_BYTES: Final = 1_000_000_000
_PURGE_EVERY = MAX_BYTES // 10
_BUSY_SECONDS: Final = 0.9
# Entries live for less than a day: a longer remaining time means that a clock was ahead.
_MAX_LIFETIME: Final = 86_400
# The time of the response, its lifetime, and the size of the uncompressed body.
_HEADER: Final = struct.Struct(">ddQ")
_MAX_BODY_BYTES: Final = 1 << 30
_CODEC: Final = "zstd"
# JSON never starts with a null byte. Increment the number if the format or the tables change.
_TABLE_MARK: Final = b"\0table-1"
_NOTES: Final = b"notes"
DAMAGED: Final = (pa.ArrowException, OSError, LookupError, TypeError, ValueError)
_CHECKSUM: Final = struct.Struct(">I")
# "ofca" marks a SQLite file as a cache of this package.
_APPLICATION_ID: Final = 0x6F666361
# Four times SQLite's default page size; a response of 160 kB is written a third faster.
_PAGE_BYTES: Final = 16_384
_SET_UP: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value BLOB, expires INTEGER)",
    "CREATE INDEX IF NOT EXISTS expires_idx ON answers (expires)",
)


class Entry(NamedTuple):
    """A stored body, the Unix time of the response, and its lifetime in seconds."""

    unix: float
    lifetime: float
    body: bytes

    @property
    def expires_unix(self) -> float:
        """The Unix time of expiry."""
        return self.unix + self.lifetime

    @property
    def is_fresh(self) -> bool:
        """Whether the entry has not expired, and was not stored by a clock that is ahead."""
        return self.unix <= time.time() < self.expires_unix


def pack(entry: Entry) -> bytes:
    """Return the row of an entry."""
    compressed = pa.compress(entry.body, codec=_CODEC, asbytes=True)
    content = _HEADER.pack(entry.unix, entry.lifetime, len(entry.body)) + compressed
    return bytes(_CHECKSUM.pack(zlib.crc32(content)) + content)


def unpack(row: object) -> Entry | None:
    """Return the entry of a row, or None if the row is damaged."""
    if not isinstance(row, bytes) or len(row) < _CHECKSUM.size + _HEADER.size:
        return None
    content = memoryview(row)[_CHECKSUM.size :]
    if _CHECKSUM.unpack_from(row) != (zlib.crc32(content),):
        return None
    stored, lifetime, size = _HEADER.unpack_from(content)
    if size > _MAX_BODY_BYTES:
        return None
    try:
        body = pa.decompress(content[_HEADER.size :], size, codec=_CODEC, asbytes=True)
    except (pa.ArrowException, OSError):
        return None
    return Entry(stored, lifetime, body)


class ResponseCache:
    """A cache of responses by key, in a file that accounts and processes may share."""

    def __init__(self, location: str | PathLike[str]) -> None:
        self.path: Final = _path(location)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._unpurged = 0
        try:
            self._connection = _open(self.path)
        except (sqlite3.Error, OSError) as fault:
            self._stop(fault)
        else:
            weakref.finalize(self, self._connection.close)
            _LOGGER.debug("cache opened")
            self._purge()

    @property
    def is_open(self) -> bool:
        """Whether the file is open."""
        return self._connection is not None

    def get(self, key: str) -> Entry | None:
        """Return the fresh entry of a key, or None."""
        for (row,) in self._execute("SELECT value FROM answers WHERE key = ?", key):
            entry = unpack(row)
            return entry if entry is not None and entry.is_fresh else None
        return None

    def set(self, key: str, body: bytes, lifetime: float, unix: float | None = None) -> None:
        """Store a body for a lifetime in seconds, from a Unix time or from now."""
        if not self.is_open:
            return
        entry = Entry(time.time() if unix is None else unix, lifetime, body)
        statement = "INSERT OR REPLACE INTO answers (key, value, expires) VALUES (?, ?, ?)"
        self._execute(statement, key, pack(entry), entry.expires_unix)
        self._unpurged += len(body)
        if self._unpurged > _PURGE_EVERY:
            self._purge()

    def get_table(self, key: str) -> tuple[pa.Table, dict[str, Any]] | None:
        """Return the fresh table of a key with its notes, or None."""
        entry = self.get(key)
        with suppress(*DAMAGED):
            return None if entry is None else unpack_table(entry.body)
        return None

    def set_table(
        self,
        key: str,
        table: pa.Table,
        notes: Mapping[str, Any],
        lifetime: float,
        unix: float,
    ) -> None:
        """Store a table and plain values."""
        self.set(key, pack_table(table, notes), lifetime, unix)

    def drop(self, prefix: str) -> None:
        """Drop the responses whose keys start with a prefix."""
        self._execute("DELETE FROM answers WHERE substr(key, 1, ?) = ?", len(prefix), prefix)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _purge(self) -> None:
        """Delete stale entries and, if the file is still too large, the half that expires first."""
        self._unpurged = 0
        now = int(time.time())
        self._execute(
            "DELETE FROM answers WHERE expires <= ? OR expires > ?", now, now + _MAX_LIFETIME
        )
        for count, size in self._execute("SELECT count(*), total(length(value)) FROM answers"):
            if size > MAX_BYTES:
                self._execute(
                    "DELETE FROM answers WHERE key IN "
                    "(SELECT key FROM answers ORDER BY expires LIMIT ?)",
                    count // 2 + 1,
                )

    def _execute(self, statement: str, *values: object) -> list[Any]:
        """Run a statement, one thread at a time, and return its rows; no rows if the file fails."""
        with self._lock:
            try:
                if self._connection is not None:
                    return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error as fault:
                self._stop(fault)
        return []

    def _stop(self, fault: Exception) -> None:
        """Close the file, and warn that responses are not cached any more."""
        self._close()
        warn(
            f"Responses are not cached any more: the file {self.path} cannot be used ({fault}). "
            "Results stay correct, but reads are slower. Delete the file. In Python, "
            "of.connect(cache=path) uses another file, and cache=None none."
        )


def default_path() -> Path:
    """Return the path of the default cache."""
    return Path(platformdirs.user_cache_dir("outreach_frames")) / "responses.sqlite"


def _path(location: str | PathLike[str]) -> Path:
    if location == DEFAULT_CACHE:
        return default_path()
    try:
        path = expanded(location).absolute()
        is_special = path.exists() and not path.is_file()
    except (InvalidInputError, OSError) as error:
        raise ConfigurationError(f"cache must be the path of a file: {error}") from None
    if is_special:
        what = "a folder" if path.is_dir() else "not a regular file"
        raise ConfigurationError(f"cache must be a file, but {path} is {what}. Pass another path.")
    return path


def _open(path: Path) -> sqlite3.Connection:
    """Open a cache, or create one that only its owner can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _may_hold_cache(path):
        raise sqlite3.DatabaseError("it is not a cache, so it was not changed")
    # Without this lock, processes that create the file simultaneously would find it locked.
    with FileLock(f"{path}.lock", timeout=_BUSY_SECONDS, mode=0o600):
        with suppress(FileExistsError):
            path.touch(0o600, exist_ok=False)
        # SQLite creates its other files with the same mode.
        set_mode(path, 0o600)
        is_new = not path.stat().st_size
        connection = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            if is_new:
                connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            for statement in _SET_UP:
                connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection


def is_cache(path: Path) -> bool:
    """Return whether a file is a cache; change nothing."""
    header = read_header(path)
    return header is not None and header[0] == _APPLICATION_ID


def _may_hold_cache(path: Path) -> bool:
    """Return True if a path is a cache file, an empty file or does not exist; change nothing."""
    return not path.exists() or not path.stat().st_size or is_cache(path)


def remove_entries(path: Path, holds: Callable[[bytes], bool], *, dry_run: bool) -> int:
    """Erase damaged entries and entries whose body `holds` accepts; return their number."""
    if not _may_hold_cache(path):
        return 0
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        require_tables(connection)
        rows = connection.execute("SELECT key, value FROM answers")
        keys = [(key,) for key, row in rows if (entry := unpack(row)) is None or holds(entry.body)]
        if not dry_run:
            connection.execute("PRAGMA secure_delete = ON")
            with transaction(connection):
                connection.executemany("DELETE FROM answers WHERE key = ?", keys)
            # Freed pages and the log still hold deleted entries.
            connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise sqlite3.OperationalError("another program is reading it")
    return len(keys)


def pack_table(table: pa.Table, notes: Mapping[str, Any]) -> bytes:
    """Return a table and plain values as the body of an entry.

    >>> table, notes = unpack_table(pack_table(pa.table({"a": [1]}), {"total": 1}))
    >>> table.to_pylist(), notes
    ([{'a': 1}], {'total': 1})
    """
    table = table.replace_schema_metadata({_NOTES: json.dumps(notes)})
    sink = pa.BufferOutputStream()
    sink.write(_TABLE_MARK)
    # Compressing the stream takes less time than compressing each column of each chunk.
    with (
        pa.CompressedOutputStream(sink, _CODEC) as stream,
        pa.ipc.new_stream(stream, table.schema) as writer,
    ):
        writer.write_table(table)
    return bytes(sink.getvalue())


def is_table(body: bytes) -> bool:
    """Return whether the body of an entry is a table, also of another version."""
    return body.startswith(_TABLE_MARK[:1])


def unpack_table(body: bytes) -> tuple[pa.Table, dict[str, Any]]:
    """Return the table and the plain values of an entry's body; raise ValueError for others."""
    if not body.startswith(_TABLE_MARK):
        raise ValueError("the entry is not a table of this version")
    source = pa.BufferReader(memoryview(body)[len(_TABLE_MARK) :])
    with pa.CompressedInputStream(source, _CODEC) as stream:
        table = pa.ipc.open_stream(stream).read_all()
    table.validate()
    return table.replace_schema_metadata(), json.loads(table.schema.metadata[_NOTES])
