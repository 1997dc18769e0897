"""Responses to reads, stored in a file for a while so that asking again costs nothing.

Only the bodies of responses are stored, or what a caller made of them: no headers, no addresses, no
token. The file is only a help: whatever is wrong with it, the service is asked instead.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from outreach_frames import spec
from outreach_frames.common.atomic_files import expanded
from outreach_frames.errors import ConfigurationError, InvalidInputError, OutreachWarning

if TYPE_CHECKING:
    from outreach_frames.client.cache_store import Entry, Store

DEFAULT: Final = "default"

# Seconds that a response is good for; what is not listed here is not a read, and is never stored.
LIFETIMES: Final[Mapping[str, int]] = MappingProxyType(
    {
        spec.LIST_SEQUENCES.name: 60,
        spec.LIST_MAILBOXES.name: 60,
        spec.GET_LEAD_LIST.name: 60,
        spec.GET_CONTACTS.name: 3600,
        spec.GET_CONTACT_BY_EMAIL.name: 3600,
        spec.SEARCH_PEOPLE.name: 3600,
    }
)

# The same for responses that something does not exist.
NOT_FOUND_LIFETIME: Final = 60

MAX_BYTES: Final = 1_000_000_000
_PURGE_EVERY = MAX_BYTES // 10
_BUSY_SECONDS = 0.9


class ResponseCache:
    """The stored responses of one account.

    Parameters
    ----------
    location : "default", path or None
        A file in the user's cache folder, a file of one's own, or nothing at all.
    account : str
        What tells this account's responses from others in the same file.
    """

    def __init__(self, location: str | os.PathLike[str] | None, account: str) -> None:
        self._account = account
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._unpurged = 0
        self.path: Path | None = None
        if location is None:
            return
        self.path = _path(location)
        with self._or_off(), self._lock:
            self._store = _opened(self.path)
            self._purge()

    @property
    def is_open(self) -> bool:
        """Whether there is a file, and it works."""
        return self._store is not None

    def key(self, endpoint: spec.Endpoint, *parts: bytes) -> str:
        """Return the key of a request from everything that its response depends on."""
        digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
        return f"{self._prefix(endpoint)}{digest}"

    def _prefix(self, endpoint: spec.Endpoint) -> str:
        return f"{self._account}:{endpoint.name}:"

    def get(self, key: str) -> bytes | None:
        """Return the body of a stored response that has not expired."""
        entry = self.entries([key]).get(key)
        return entry.body if entry is not None and entry.expires_unix > time.time() else None

    def entries(self, keys: Sequence[str]) -> Mapping[str, Entry]:
        """Return those of some responses that are stored, by key; they may have expired."""
        with self._or_off(), self._lock:
            if self._store is not None:
                return self._store.entries(keys)
        return {}

    def expiring_at(self, expires_unix: float) -> set[str]:
        """Return the keys of the responses that expire at exactly that moment in Unix time."""
        with self._or_off(), self._lock:
            if self._store is not None:
                return self._store.expiring_at(expires_unix)
        return set()

    def set(self, key: str, body: bytes, lifetime: float) -> None:
        """Store the body of a response for some seconds."""
        self.put({key: body}, time.time() + lifetime)

    def put(self, bodies: Mapping[str, bytes], expires_unix: float) -> None:
        """Store the bodies of some responses, by key, until a moment in Unix time."""
        with self._or_off(), self._lock:
            if self._store is not None:
                self._store.put(bodies, expires_unix)
                self._unpurged += sum(map(len, bodies.values()))
                if self._unpurged > _PURGE_EVERY:
                    self._purge()

    def forget(self, endpoint: spec.Endpoint) -> None:
        """Drop all of this account's responses to an endpoint."""
        prefix = self._prefix(endpoint)
        with self._or_off(), self._lock:
            if self._store is not None:
                stale = [key for key in self._store if key.startswith(prefix)]
                self._store.bulk_delete(stale)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._store is not None:
                self._store.close()  # type: ignore[no-untyped-call]
                self._store = None

    def _purge(self) -> None:
        """Delete what has expired, and if the rest is too large, the half that expires first."""
        assert self._store is not None
        with self._store.connection(commit=True) as connection:
            connection.execute("DELETE FROM answers WHERE expires <= ?", (int(time.time()),))
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
    def _or_off(self) -> Iterator[None]:
        """Go on without a cache, and say so once, when the file fails."""
        import sqlite3  # noqa: PLC0415 - slow to import, and not all have a cache

        try:
            yield
        except (sqlite3.Error, OSError) as fault:
            self.close()
            warnings.warn(
                f"Responses are not cached from here on: the file {self.path} cannot be used "
                f"({fault}). Results are the same, only slower. Delete the file, or connect with "
                "another one: cache=path, or cache=None for none.",
                OutreachWarning,
                stacklevel=4,
            )


def default_path() -> Path:
    """Return the cache in the user's cache folder."""
    import platformdirs  # noqa: PLC0415 - slow to import

    return Path(platformdirs.user_cache_dir("outreach_frames")) / "responses.sqlite"


def _path(location: str | os.PathLike[str]) -> Path:
    if location == DEFAULT:
        return default_path()
    try:
        path = expanded(location).absolute()
        is_special = path.exists() and not path.is_file()
    except (InvalidInputError, OSError) as error:
        raise ConfigurationError(f"cache must be the path of a file: {error}") from None
    if is_special:
        what = "a folder" if path.is_dir() else "not a regular file"
        raise ConfigurationError(f"cache must be a file, and {path} is {what}.")
    return path


def _opened(path: Path) -> Store:
    # Here, because the libraries are slow to import and a client may have no cache.
    from outreach_frames.client.cache_store import open_store  # noqa: PLC0415

    return open_store(path, _BUSY_SECONDS)
