"""Store an export's progress next to its target, so that the same call can resume the export.

The folder `.<name>.partial` holds two files that only their owner can read:

    rows            the people read so far, in parts of one or more pages
    journal.sqlite  begin, end and checksum of each part, the search's position after it, and the
                    ids seen so far

A part is recorded in the journal after its bytes are written. Bytes after the last recorded part,
and parts with a wrong checksum, come from a killed run and are deleted.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa

from outreach_frames.common import sqlite_file
from outreach_frames.common.atomic_files import delete, move, set_mode, sync_folder, unwritable
from outreach_frames.common.text import shorten
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.resources.search import Sighting, Sightings

FORMAT: Final = 4
_SCHEMA: Final = f"""
CREATE TABLE export (part TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE parts (
    number INTEGER PRIMARY KEY, begins INTEGER NOT NULL, ends INTEGER NOT NULL,
    checksum INTEGER NOT NULL, state TEXT NOT NULL
);
CREATE TABLE seen (id TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE errors (number INTEGER NOT NULL, value TEXT NOT NULL);
PRAGMA user_version = {FORMAT};
"""
_LOCK: Final = "lock"
_START_OVER: Final = "To start over, delete this folder, or pass resume=False to export_people()."
_SHOWN_CHARACTERS: Final = 60


class Span(NamedTuple):
    """The position of a part in the file of rows, in bytes."""

    begins: int
    ends: int


class Checkpoint:
    """A context manager that opens and locks the parts of one export."""

    def __init__(self, target: Path, identity: Mapping[str, object], *, resume: bool) -> None:
        self.target: Final = target
        self.folder: Final = target.with_name(f".{target.name}.partial")
        self.state: dict[str, Any] | None = None  # the search's position after the last part
        self.errors: list[Any] = []
        self.columns: Any = identity.get("columns")  # the chosen columns in order
        # The current search's first part; a split export runs several searches.
        self.first_part: int = 0
        with ExitStack() as stack, self.explained():
            if self.folder.is_symlink():
                raise InvalidInputError(
                    f"{self.folder} is a symbolic link. An export would delete all files in the "
                    "linked folder. Delete the link, or pass another path."
                )
            self.folder.mkdir(mode=0o700, exist_ok=True)
            # The lock file is in the folder, which is deleted at the end.
            lock = self.folder / _LOCK
            stack.enter_context(sqlite_file.locked(self.target, "export to", lock=lock))
            # Open the files only after locking: a run that just ended may have deleted the folder.
            set_mode(self.folder, 0o700)
            self._delete_files(all_files=not resume)
            journal = self.folder / "journal.sqlite"
            settings = {name: json.dumps(value, sort_keys=True) for name, value in identity.items()}
            if not journal.exists():
                query = "INSERT INTO export VALUES (?, ?)"
                sqlite_file.create(
                    journal, _SCHEMA, lambda new: new.executemany(query, settings.items())
                )
            # Skip the sync to disk: a part lost in a power failure is requested again.
            connection = sqlite_file.connect(journal, durable=False)
            self._connection = stack.enter_context(closing(connection))
            self._rows = stack.enter_context(FileIO(self.rows, "r+", opener=_open_private))
            self._require_same_export(settings)
            self._drop_incomplete()
            self._connection.execute("BEGIN")
            self._stack = stack.pop_all()

    @property
    def spans(self) -> list[Span]:
        """The positions of all parts, in order."""
        with self.explained():
            query = "SELECT begins, ends FROM parts ORDER BY number"
            return [Span(*row) for row in self._connection.execute(query)]

    @property
    def count(self) -> int:
        """The number of people stored."""
        return sum(self.state["taken"]) if self.state else 0

    @property
    def rows(self) -> Path:
        """The file that holds the parts."""
        return self.folder / "rows"

    @property
    def replaced(self) -> Path:
        """The path of the old target folder during its replacement."""
        return self.folder / "old.tmp"

    def sightings(self, search: int) -> Sightings:
        """Return a function that classifies ids; the next `append` records the new ids."""
        state = self.state
        with self.explained():
            self.first_part = self._number
            if state and state["search"] == search:
                self.first_part = state["begins"]

        def classify(ids: Sequence[str | None]) -> list[Sighting]:
            with self.explained():
                return [self._sighting(identity) for identity in ids]

        return classify

    def append(
        self, content: bytes | memoryview, state: Mapping[str, Any], errors: Sequence[Any]
    ) -> None:
        """Append a part and the search's next position."""
        with self.explained():
            remaining = memoryview(content)
            while remaining:
                remaining = remaining[self._rows.write(remaining) :]
            part = (self._number, self._ends, self._ends + len(content), zlib.crc32(content))
            self._connection.execute(
                "INSERT INTO parts VALUES (?, ?, ?, ?, ?)", (*part, json.dumps(state))
            )
            self._connection.executemany(
                "INSERT INTO errors VALUES (?, ?)",
                [(self._number, json.dumps(error)) for error in errors],
            )
            self._connection.execute("COMMIT")
            self._connection.execute("BEGIN")
        self._number += 1
        self._ends += len(content)
        self.state = dict(state)
        self.errors += errors

    def remove(self) -> None:
        """Delete the checkpoint and close it."""
        self._connection.close()
        self.close_rows()
        with suppress(OSError):
            self._delete_files(all_files=True)
        # Delete the lock last. If another run has locked a new lock file, the folder stays.
        if os.name == "nt":  # Windows cannot delete an open file
            self.close()
        with suppress(OSError):
            delete(self.folder / _LOCK)
            self.folder.rmdir()
            # Without a sync, a power failure could restore the folder, which would block the next
            # export.
            sync_folder(self.folder.parent)
        self.close()

    def close_rows(self) -> None:
        """Close the file of rows so that it can be moved."""
        self._rows.close()

    def close(self) -> None:
        """Close and unlock the files; closing twice is harmless."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def _sighting(self, identity: str | None) -> Sighting:
        query = "INSERT OR IGNORE INTO seen VALUES (?, ?)"
        if identity is None:
            return Sighting.NEW
        if self._connection.execute(query, (identity, self._number)).rowcount == 1:
            return Sighting.NEW
        query = "SELECT number FROM seen WHERE id = ?"
        (number,) = self._connection.execute(query, (identity,)).fetchone()
        return Sighting.AGAIN if number >= self.first_part else Sighting.EARLIER

    def _delete_files(self, *, all_files: bool) -> None:
        """Delete the temporary files of a killed run, or all files."""
        if self.replaced.exists() and not self.target.exists():
            move(self.replaced, self.target)
        # Delete the journal first: without the other files it would block exports to this target.
        for path in sorted(self.folder.iterdir()):
            if path.name != _LOCK and (all_files or path.name.endswith(".tmp")):
                delete(path)

    def _require_same_export(self, settings: Mapping[str, str]) -> None:
        """Reject a checkpoint with other settings or of another version."""
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version != FORMAT:
            raise InvalidInputError(
                f"{self.folder} belongs to another version of this package (format {version}, "
                f"not {FORMAT}). Finish the export with that version. {_START_OVER}"
            )
        stored = dict(self._connection.execute("SELECT part, value FROM export"))
        changed = [
            f"{name} was {_shown(stored.get(name))} and is now {_shown(settings.get(name))}"
            for name in dict.fromkeys([*settings, *stored])
            if stored.get(name) != settings.get(name)
        ]
        if changed:
            raise InvalidInputError(
                f"{self.folder} belongs to a different export: {'; '.join(changed)}. Repeat the "
                f"earlier call to resume that export. {_START_OVER}"
            )

    def _drop_incomplete(self) -> None:
        """Drop the first incomplete part and all parts after it."""
        self._number, self._ends = 1, 0
        query = "SELECT number, ends, checksum, state FROM parts ORDER BY number"
        for number, ends, checksum, state in self._connection.execute(query).fetchall():
            content = self._rows.read(ends - self._ends)
            if len(content) < ends - self._ends or zlib.crc32(content) != checksum:
                break
            self._number, self._ends, self.state = number + 1, ends, json.loads(state)
        self._rows.truncate(self._ends)
        self._rows.seek(self._ends)
        with sqlite_file.transaction(self._connection):
            for table in ("parts", "seen", "errors"):
                self._connection.execute(f"DELETE FROM {table} WHERE number >= ?", (self._number,))  # noqa: S608 - names from the line above
        query = "SELECT value FROM errors ORDER BY rowid"
        self.errors = [json.loads(value) for (value,) in self._connection.execute(query)]

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Convert file and database errors to InvalidInputError with advice."""
        with sqlite_file.translate_errors(self.folder, "checkpoint", damaged=_START_OVER):
            try:
                yield
            except OSError as error:
                raise unwritable(self.target, error) from error
            except (LookupError, TypeError, ValueError) as error:
                if isinstance(error, OutreachError):
                    raise
                raise sqlite3.DatabaseError(error) from error


def read_span(path: Path, span: Span) -> pa.Buffer:
    """Read one part."""
    with path.open("rb") as file:
        file.seek(span.begins)
        return pa.py_buffer(file.read(span.ends - span.begins))


def _open_private(path: str, _: int) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR, 0o600)


def _shown(value: str | None) -> str:
    return shorten(value or "null", _SHOWN_CHARACTERS)
