"""A file that caches responses, so that repeated reads need no request.

The file holds bodies, or values that callers derived from them, but no headers, URLs or tokens. If
the file fails, requests go to the service.

requests-cache manages the table, with four changes. `_pack` and `_unpack` replace its serializers:
pickle runs code, and JSON raises on damaged rows. The wait for a locked file is limited. The file
keeps its exact name. One query reads several entries.
"""

from __future__ import annotations

import logging
import sqlite3
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

import platformdirs
from filelock import FileLock
from requests_cache.backends.sqlite import SQLiteDict
from requests_cache.serializers import SerializerPipeline, Stage

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
_TIMES: Final = struct.Struct(">dd")
_CHECKSUM: Final = struct.Struct(">I")
_TABLE: Final = "answers"
# "ofca" marks a SQLite file as a cache of this package.
_APPLICATION_ID: Final = 0x6F666361
# Four times SQLite's default page size; a response of 160 kB is written a third faster.
_PAGE_BYTES: Final = 16_384


class Entry(NamedTuple):
    """A stored body, its expiry in Unix time, and its lifetime in seconds."""

    expires_unix: float
    lifetime: float
    body: bytes

    @property
    def is_fresh(self) -> bool:
        """Whether the entry has not expired, and was not stored by a clock that is ahead."""
        return time.time() < self.expires_unix <= time.time() + self.lifetime


def _pack(entry: Entry) -> bytes:
    times = _TIMES.pack(entry.expires_unix, entry.lifetime)
    checksum = zlib.crc32(entry.body, zlib.crc32(times))
    return times + _CHECKSUM.pack(checksum) + entry.body


def _unpack(value: object) -> Entry | None:
    """Return the entry of a row, or None if the row is damaged."""
    if not isinstance(value, bytes) or len(value) < _TIMES.size + _CHECKSUM.size:
        return None
    expires, lifetime = _TIMES.unpack_from(value)
    entry = Entry(expires, lifetime, value[_TIMES.size + _CHECKSUM.size :])
    return entry if _pack(entry) == value else None


class _Store(SQLiteDict):
    """The table of entries, from requests-cache; one thread uses it at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        pipeline = SerializerPipeline([Stage(dumps=_pack, loads=_unpack)], is_binary=True)
        busy = int(_BUSY_SECONDS * 1000)
        super().__init__(path, _TABLE, busy_timeout=busy, serializer=pipeline, wal=True)

    def init_db(self) -> None:
        """Open the file under its exact name; the library would add a suffix."""
        self.db_path: Path = self._path
        super().init_db()  # type: ignore[no-untyped-call]

    @contextmanager
    def _acquire_sqlite_lock(self) -> Iterator[None]:
        # Give up after `_BUSY_SECONDS`; the library would retry for ever.
        assert self._connection is not None
        with transaction(self._connection):
            self._active_transaction = True
            try:
                yield
            finally:
                self._active_transaction = False


class ResponseCache:
    """A cache of responses by key, in a file that accounts and processes may share."""

    def __init__(self, location: str | PathLike[str]) -> None:
        self.path: Final = _path(location)
        self._lock = threading.Lock()
        self._store: _Store | None = None
        self._unpurged = 0
        with self._use_store():
            self._store = _open(self.path)
            _LOGGER.debug("cache opened")
            self._purge(self._store)

    @property
    def is_open(self) -> bool:
        """Whether the file is open."""
        return self._store is not None

    def get(self, key: str) -> bytes | None:
        """Return the stored body of a response, or None if it is missing or stale."""
        entry = self.entries([key]).get(key)
        return entry.body if entry is not None and entry.is_fresh else None

    def entries(self, keys: Sequence[str]) -> dict[str, Entry]:
        """Return the undamaged entries of these keys, including stale entries."""
        marks = ",".join("?" * len(keys))
        query = f"SELECT key, value FROM {_TABLE} WHERE key IN ({marks})"  # noqa: S608
        found = {key: _unpack(value) for key, value in self._rows(query, *keys)}
        return {key: entry for key, entry in found.items() if entry is not None}

    def expiring_at(self, expires_unix: float) -> set[str]:
        """Return the keys of the responses that expire at exactly this Unix time."""
        # This query reads only the index, not the large values.
        query = f"SELECT key FROM {_TABLE} WHERE expires = ?"  # noqa: S608
        return {key for (key,) in self._rows(query, expires_unix)}

    def set(self, key: str, body: bytes, lifetime: float) -> None:
        """Store a response for a lifetime in seconds."""
        self.set_many({key: body}, time.time() + lifetime, lifetime)

    def set_many(self, bodies: Mapping[str, bytes], expires_unix: float, lifetime: float) -> None:
        """Store all responses or none; they expire at the Unix time `expires_unix`."""
        with self._use_store() as store:
            if store is not None:
                with store.connection(commit=True):
                    for key, body in bodies.items():
                        store[key] = Entry(expires_unix, lifetime, body)
                self._unpurged += sum(map(len, bodies.values()))
                if self._unpurged > _PURGE_EVERY:
                    self._purge(store)

    def forget(self, prefix: str) -> None:
        """Drop the responses whose keys start with a prefix."""
        with self._use_store() as store:
            if store is not None:
                stale = [key for key in store if key.startswith(prefix)]
                store.bulk_delete(stale)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()  # type: ignore[no-untyped-call]
            self._store = None

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._use_store() as store:
            if store is not None:
                with store.connection() as connection:
                    return connection.execute(query, values).fetchall()
        return []

    def _purge(self, store: _Store) -> None:
        """Delete stale entries and, if the file is still too large, the half that expires first."""
        now = int(time.time())
        with store.connection(commit=True) as connection:
            connection.execute(
                "DELETE FROM answers WHERE expires <= ? OR expires > ?", (now, now + _MAX_LIFETIME)
            )
            count, size = connection.execute(
                "SELECT count(*), total(length(value)) FROM answers"
            ).fetchone()
            if size > MAX_BYTES:
                connection.execute(
                    "DELETE FROM answers WHERE key IN "
                    "(SELECT key FROM answers ORDER BY expires LIMIT ?)",
                    (count // 2 + 1,),
                )
        self._unpurged = 0

    @contextmanager
    def _use_store(self) -> Iterator[_Store | None]:
        """Yield the store, one thread at a time; if the file fails, warn once and stop caching."""
        with self._lock:
            try:
                yield self._store
            except (sqlite3.Error, OSError) as fault:
                self._close()
                warn(
                    f"Responses are not cached any more: the file {self.path} cannot be used "
                    f"({fault}). Results stay correct, but reads are slower. Delete the file. "
                    "Or connect with of.connect(cache=path) for another file, or cache=None."
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


def _open(path: Path) -> _Store:
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
        if not path.stat().st_size:
            with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as connection:
                connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        return _Store(path)


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
        rows = connection.execute(f"SELECT key, value FROM {_TABLE}")  # noqa: S608 - a constant
        found = [
            (key,) for key, value in rows if (entry := _unpack(value)) is None or holds(entry.body)
        ]
        if not dry_run:
            connection.execute("PRAGMA secure_delete = ON")
            with transaction(connection):
                connection.executemany(f"DELETE FROM {_TABLE} WHERE key = ?", found)  # noqa: S608
            # Freed pages and the log still hold deleted entries.
            connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise sqlite3.OperationalError("another program is reading it")
    return len(found)
