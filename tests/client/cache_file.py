"""Change the entries of a cache's file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from outreach_frames.client.cache import pack, unpack


def age(file: Path, seconds: float, *, limit: int = -1) -> None:
    """Make the stored entries, or the first ones, older."""
    with closing(sqlite3.connect(file)) as connection, connection:
        query = "SELECT key, value FROM answers ORDER BY rowid LIMIT ?"
        for key, row in connection.execute(query, [limit]).fetchall():
            entry = unpack(row)
            assert entry is not None
            aged = entry._replace(unix=entry.unix - seconds)
            connection.execute(
                "UPDATE answers SET value = ?, expires = ? WHERE key = ?",
                (pack(aged), aged.expires_unix, key),
            )
