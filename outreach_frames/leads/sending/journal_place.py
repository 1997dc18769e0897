"""Where a journal is, and that it stays the same one: in a file, or for a widget in memory."""

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
# In the file's header: "leads" read as a number, so that no other program's file is taken for one.
_APPLICATION_ID: Final = 0x6C656164
_SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE submission (part TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE salt (salt BLOB NOT NULL);
CREATE TABLE runs (run INTEGER PRIMARY KEY, began_at TEXT NOT NULL, mark BLOB NOT NULL);
CREATE TABLE notes (note INTEGER PRIMARY KEY, text TEXT NOT NULL);
-- No status: it is being sent. The identifiers are hashes of their text as it was sent.
CREATE TABLE leads (
    lead INTEGER PRIMARY KEY, status TEXT, detail TEXT, error_code TEXT,
    chunk INTEGER NOT NULL, attempts INTEGER NOT NULL, sent_at TEXT NOT NULL, mailbox BLOB,
    email BLOB, profnet_url BLOB, overrides TEXT,
    -- An earlier request proved that the person is known there, as one that was skipped does.
    was_reached INTEGER NOT NULL DEFAULT FALSE
);
-- The identifiers of each row of a lead's person, as hashes of their keys.
CREATE TABLE sets (
    lead INTEGER NOT NULL, is_sent INTEGER NOT NULL, email BLOB, url BLOB, weak_url BLOB
);
CREATE INDEX sets_of_lead ON sets (lead);
"""
DO_NOT_START_ANEW: Final = (
    "A new journal would send all leads again: plan only the rows that the report "
    "(of.last_report() has it) has as rejected or not_sent."
)
# Journals that were lost while this process had them open; a new one would begin with nobody sent.
lost: set[Path] = set()
# Where relative paths led when they were first given: the working folder may change.
_seen: dict[str, Path] = {}


@dataclass(eq=False)
class JournalPlace:
    """Which journal a plan, a report or a widget uses: once it is used, no other one.

    Attributes
    ----------
    path : Path or None
        The file; None for a journal in memory, which a widget has.
    mark : bytes or None
        The mark of the last run that used it, which another journal and an older copy lack.
    memory : Connection or None
        The journal in memory once it is made, which stays open.
    """

    path: Path | None
    mark: bytes | None = None
    memory: sqlite3.Connection | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    @property
    def name(self) -> str:
        """The journal in a message."""
        return "journal in memory" if self.path is None else f"journal {self.path}"

    def exists(self) -> bool:
        """Return whether the journal is there."""
        return self.memory is not None if self.path is None else self.path.exists()

    @contextmanager
    def locked(self, *, dry_run: bool) -> Iterator[None]:
        """Keep other runs out of the journal; a dry run makes no file for that."""
        if self.path is None:
            if not self._lock.acquire(blocking=False):
                raise InvalidInputError("Another run sends these rows. Wait until it is done.")
            try:
                yield
            finally:
                self._lock.release()
        elif dry_run and not Path(f"{self.path}.lock").exists():
            yield
        else:
            with sqlite_file.locked(self.path, WHAT):
                yield

    def create(self, fill: Callable[[sqlite3.Connection], object]) -> None:
        """Make an empty journal."""
        if self.path is not None:
            sqlite_file.create(self.path, _SCHEMA, fill)
            return
        self.memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        finalize(self, self.memory.close)
        self.memory.executescript(_SCHEMA)
        fill(self.memory)


def locate(path: str | Path) -> Path:
    """Return the absolute path of a journal.

    Raises
    ------
    InvalidInputError
        There cannot be a journal, or it would not be the one that it was before.
    """
    with nothing_sent():
        place = sqlite_file.locate(path, WHAT)
        if place in lost:
            raise InvalidInputError(
                f"The journal {place} was lost during an earlier run. {DO_NOT_START_ANEW} "
                "Give them a journal of another name."
            )
        if not Path(path).expanduser().is_absolute():
            before = _seen.setdefault(str(path), place)
            if before != place and before.exists() and not place.exists():
                raise InvalidInputError(
                    f"The journal {path} was {before} before; the working folder has changed "
                    "since. Give its whole path."
                )
    return place


def is_journal(path: Path) -> bool:
    """Return whether a file is a journal, of this or of another format."""
    header = sqlite_file.read_header(path)
    return header is not None and header[0] == _APPLICATION_ID


def require_journal(path: Path) -> None:
    """Refuse a file of another kind or format before anything about it changes."""
    kind, version = sqlite_file.read_header(path) or (None, None)
    if kind != _APPLICATION_ID:
        raise InvalidInputError(
            f"{path} is not a journal of a submission, or damaged. Give another path; a file that "
            "is not there is made."
        )
    if version != FORMAT:
        raise InvalidInputError(
            f"The journal {path} was made by another version of this package (format {version}, "
            f"not {FORMAT}). Finish with that version."
        )


@contextmanager
def nothing_sent() -> Iterator[None]:
    """Add to errors that nothing was sent."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} Nothing was sent.") from error
