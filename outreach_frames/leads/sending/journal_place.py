"""Locate a journal in a file or, for widgets, in memory, and check its identity."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final
from weakref import finalize

from outreach_frames.common import sqlite_file
from outreach_frames.errors import InvalidInputError

WHAT: Final = "journal"
FORMAT: Final = 3
# "lead" in ASCII marks the file as a journal.
_APPLICATION_ID: Final = 0x6C656164
_SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE submission (part TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE salt (salt BLOB NOT NULL);
CREATE TABLE runs (run INTEGER PRIMARY KEY, began_at TEXT NOT NULL, mark BLOB NOT NULL);
CREATE TABLE notes (note INTEGER PRIMARY KEY, text TEXT NOT NULL);
-- If status is NULL, the lead's request is pending. email and profnet_url are hashes of the exact
-- text; mailbox is a hash of the normalised address, or NULL if the settings choose the mailbox.
CREATE TABLE leads (
    lead INTEGER PRIMARY KEY, status TEXT, detail TEXT, error_code TEXT,
    chunk INTEGER NOT NULL, attempts INTEGER NOT NULL, sent_at TEXT NOT NULL, mailbox BLOB,
    email BLOB, profnet_url BLOB, overrides TEXT,
    -- An earlier request may have reached the person, or the service skipped them.
    was_reached INTEGER NOT NULL DEFAULT FALSE
);
-- Hashes of the normalised keys of each row of a lead's person.
CREATE TABLE sets (
    lead INTEGER NOT NULL, is_sent INTEGER NOT NULL, email BLOB, url BLOB, weak_url BLOB
);
CREATE INDEX sets_of_lead ON sets (lead);
"""
IF_LOST: Final = (
    "With a new journal, all leads would be sent twice. Plan only the rows that are rejected or "
    "not_sent in of.last_report()."
)
# Journals that disappeared while this process used them; they must not be recreated empty.
lost: set[Path] = set()
# The absolute path of each relative path on first use: the working folder may change.
_absolute_paths: dict[str, Path] = {}


@dataclass(eq=False)
class JournalPlace:
    """The location of a plan's, report's or widget's journal."""

    # None for a widget's journal in memory.
    path: Path | None
    # The mark of the last run; other journals and older copies lack this mark.
    mark: bytes | None = None
    # The open journal in memory.
    memory: sqlite3.Connection | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    @property
    def name(self) -> str:
        """The journal's name for messages."""
        return "journal in memory" if self.path is None else f"journal {self.path}"

    def exists(self) -> bool:
        """Return whether the journal exists."""
        return self.memory is not None if self.path is None else self.path.exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the journal against other runs."""
        if self.path is None:
            if not self._lock.acquire(blocking=False):
                raise InvalidInputError("Another run sends these rows. Wait until the run ends.")
            try:
                yield
            finally:
                self._lock.release()
        else:
            with sqlite_file.locked(self.path, WHAT):
                yield

    def create(self, fill: Callable[[sqlite3.Connection], object]) -> None:
        """Create an empty journal."""
        if self.path is not None:
            sqlite_file.create(self.path, _SCHEMA, fill)
            return
        self.memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        finalize(self, self.memory.close)
        self.memory.executescript(_SCHEMA)
        fill(self.memory)


def locate(path: str | Path) -> Path:
    """Return a journal's absolute path; raise if a relative path now means another file."""
    with nothing_sent():
        place = sqlite_file.locate(path, WHAT)
        if place in lost:
            raise InvalidInputError(
                f"The journal {place} was lost during an earlier run. {IF_LOST} "
                "Use another file name for the journal of these rows."
            )
        if not Path(path).expanduser().is_absolute():
            before = _absolute_paths.setdefault(str(path), place)
            if before != place and before.exists() and not place.exists():
                raise InvalidInputError(
                    f"The path {path} meant {before} at first use, but the working folder has "
                    "changed since. Pass the journal's absolute path."
                )
    return place


def is_journal(path: Path) -> bool:
    """Return whether a file is a journal of any format."""
    header = sqlite_file.read_header(path)
    return header is not None and header[0] == _APPLICATION_ID


def require_journal(path: Path) -> None:
    """Raise if a file is not a journal of the current format."""
    kind, version = sqlite_file.read_header(path) or (None, None)
    if kind != _APPLICATION_ID:
        raise InvalidInputError(
            f"{path} is not a journal of a submission, or it is damaged. Pass the path of a "
            "journal or of a new file; of.read_prospects() reads tables."
        )
    if version != FORMAT:
        raise InvalidInputError(
            f"The journal {path} was written by another version of this package (format {version}, "
            f"not {FORMAT}). Finish the submission with that version."
        )


@contextmanager
def nothing_sent() -> Iterator[None]:
    """Append "Nothing was sent." to the messages of input errors."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} Nothing was sent.") from error
