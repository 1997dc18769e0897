"""The cache's file: the library's table of entries, as bytes with a checksum and no pickle."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from requests_cache.backends.sqlite import SQLiteDict
from requests_cache.serializers import SerializerPipeline, Stage

_HEADER = struct.Struct(">dI")


class Entry(NamedTuple):
    """A kept body, and until when it is good, in seconds since 1970."""

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
    """The library's table of entries, in exactly the given file.

    Its write lock gives up after a moment: the library's own tries for ever.
    """

    def __init__(self, path: Path, busy_seconds: float) -> None:
        self._path = path
        pipeline = SerializerPipeline([Stage(dumps=_pack, loads=_unpack)], is_binary=True)
        super().__init__(
            path, "answers", busy_timeout=int(busy_seconds * 1000), serializer=pipeline, wal=True
        )

    def init_db(self) -> None:
        """Open exactly the given file."""
        # The library adds a suffix of its own to a name that has none.
        self.db_path = self._path
        super().init_db()  # type: ignore[no-untyped-call]

    @contextmanager
    def _acquire_sqlite_lock(self) -> Iterator[None]:
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

    def put(self, key: str, expires_unix: float, body: bytes) -> None:
        """Keep a body until a moment in seconds since 1970."""
        self[key] = Entry(expires_unix, body)
