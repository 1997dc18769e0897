"""What an export has read so far, kept beside its target so that the same call can resume.

A folder `.<name>.partial` holds two files, readable by their owner only:

    rows            what was read, part after part, each some pages of the search
    journal.sqlite  where each part begins and ends, its checksum, how far the search had come with
                    it, and whose ids have been seen

A part counts once the journal has it, which is after its bytes were written. Bytes beyond the last
part, or parts that are not what the journal says, are what a run left that was killed: they go.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa

from outreach_frames.common import sqlite_file
from outreach_frames.common.atomic_files import sync_folder, unwritable
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
_START_OVER: Final = "resume=False starts over and deletes what is there."
_SHOWN_CHARACTERS: Final = 60


class Span(NamedTuple):
    """Where a part stands in the file of rows."""

    begins: int
    ends: int


class Checkpoint:
    """The parts of one export, open and locked; a context manager that closes them.

    Parameters
    ----------
    target : Path
        What is exported to; the parts stand beside it.
    export : mapping of str to object
        What makes this export the same as an earlier one, part by part, in plain values.
    resume : bool
        Go on with what is there; else it is deleted.

    Attributes
    ----------
    folder : Path
        Where the parts are.
    state : dict or None
        How far the search had come with the last part, as given to `append`.
    errors : list
        What the service reported beside all parts.
    begins : int
        The first part of the search of a split that is being read.

    Raises
    ------
    InvalidInputError
        What is there is in use, of another export, damaged, or cannot be written.
    """

    def __init__(self, target: Path, export: Mapping[str, object], *, resume: bool) -> None:
        self.target: Final = target
        self.folder: Final = target.with_name(f".{target.name}.partial")
        self.state: dict[str, Any] | None = None
        self.errors: list[Any] = []
        self.begins: int = 0
        with ExitStack() as stack, self.explained():
            if self.folder.is_symlink():
                raise InvalidInputError(
                    f"{self.folder} is a link, and an export deletes what it finds in that folder. "
                    "Delete the link, or choose another path."
                )
            self.folder.mkdir(mode=0o700, exist_ok=True)
            # In the folder, so that nothing is left; a lock on a deleted file does not count.
            lock = self.folder / _LOCK
            stack.enter_context(sqlite_file.locked(self.target, "export to", lock=lock))
            # Only now: a run that ended a moment ago may have deleted the folder.
            self.folder.chmod(0o700)
            self._delete_files(all_files=not resume)
            journal = self.folder / "journal.sqlite"
            parts = {part: json.dumps(value, sort_keys=True) for part, value in export.items()}
            if not journal.exists():
                query = "INSERT INTO export VALUES (?, ?)"
                sqlite_file.create(
                    journal, _SCHEMA, lambda new: new.executemany(query, parts.items())
                )
            # A part that a power failure takes away is read again; the file stays whole.
            connection = sqlite_file.connect(journal, durable=False)
            self._connection = stack.enter_context(closing(connection))
            self._rows = stack.enter_context(FileIO(self.rows, "r+", opener=_open_private))
            self._require_same(parts)
            self._drop_torn()
            self._connection.execute("BEGIN")
            self._stack = stack.pop_all()

    @property
    def spans(self) -> list[Span]:
        """Where the parts stand, in order."""
        with self.explained():
            query = "SELECT begins, ends FROM parts ORDER BY number"
            return [Span(*row) for row in self._connection.execute(query)]

    @property
    def count(self) -> int:
        """How many people are here."""
        return sum(self.state["taken"]) if self.state else 0

    @property
    def rows(self) -> Path:
        """The file that holds the parts."""
        return self.folder / "rows"

    @property
    def replaced(self) -> Path:
        """Where a folder is kept while another takes its place."""
        return self.folder / "old.tmp"

    def sightings(self, search: int) -> Sightings:
        """Return a function that tells which ids are new, for one search of a split.

        They count as seen from the next `append` on.
        """
        state = self.state
        self.begins = state["begins"] if state and state["search"] == search else self._number

        def look(ids: Sequence[str | None]) -> list[Sighting]:
            with self.explained():
                return [self._sighting(identity) for identity in ids]

        return look

    def append(
        self, content: bytes | memoryview, state: Mapping[str, Any], errors: Sequence[Any]
    ) -> None:
        """Store one more part, and the search's position after it."""
        with self.explained():
            rest = memoryview(content)
            while rest:
                rest = rest[self._rows.write(rest) :]
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
        """Delete the checkpoint once it is no longer needed, and close."""
        self._connection.close()
        self.close_rows()
        with suppress(OSError):
            self._delete_files(all_files=True)
        # The lock goes last: whoever comes then has a new one, in a folder that stays for it.
        if os.name == "nt":  # where a file that is open cannot be deleted
            self.close()
        with suppress(OSError):
            (self.folder / _LOCK).unlink()
            self.folder.rmdir()
            # Else a power failure brings back what the next export would be refused for.
            sync_folder(self.folder.parent)
        self.close()

    def close_rows(self) -> None:
        """Close the file of parts, which gets no more and may be moved."""
        self._rows.close()

    def close(self) -> None:
        """Close the files and let others have them; a second time does nothing."""
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
        return Sighting.AGAIN if number >= self.begins else Sighting.EARLIER

    def _delete_files(self, *, all_files: bool) -> None:
        """Delete what a killed run left incomplete, or everything."""
        if self.replaced.exists() and not self.target.exists():
            self.replaced.rename(self.target)
        for path in self.folder.iterdir():
            if path.name != _LOCK and (all_files or path.name.endswith(".tmp")):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    def _require_same(self, parts: Mapping[str, str]) -> None:
        """Refuse another export's checkpoint; `parts` has what makes this one the same."""
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version != FORMAT:
            raise InvalidInputError(
                f"{self.folder} was left by another version of this package (format {version}, "
                f"not {FORMAT}). Finish with that version; {_START_OVER}"
            )
        stored = dict(self._connection.execute("SELECT part, value FROM export"))
        changed = [
            f"{part} was {_shown(stored.get(part))}, and is {_shown(parts.get(part))}"
            for part in dict.fromkeys([*parts, *stored])
            if stored.get(part) != parts.get(part)
        ]
        if changed:
            raise InvalidInputError(
                f"{self.folder} is of another export: {'; '.join(changed)}. The same call as then "
                f"goes on there; {_START_OVER}"
            )

    def _drop_torn(self) -> None:
        """Keep the complete parts, as far as they follow each other."""
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
        """Raise errors of files as errors that say what to do."""
        with sqlite_file.translate_errors(self.folder, "checkpoint", damaged=_START_OVER):
            try:
                yield
            except OSError as error:
                raise unwritable(self.target, error) from error
            except ValueError as error:
                if isinstance(error, OutreachError):
                    raise
                raise sqlite3.DatabaseError(error) from error


def kept_filters(target: Path) -> dict[str, Any] | None:
    """Return what an export to that target that is not finished was asked for.

    Its filters and, where there is one, `split_by`; None where no such export is kept.
    """
    journal = target.with_name(f".{target.name}.partial") / "journal.sqlite"
    try:
        if not journal.is_file():
            return None
        query = "SELECT part, value FROM export WHERE part IN ('filters', 'split_by')"
        with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True)) as opened:
            kept = {part: json.loads(value) for part, value in opened.execute(query)}
    except (OSError, sqlite3.Error, ValueError):
        return None  # the export itself says what is wrong there
    filters = kept.pop("filters", None)
    return None if filters is None else {**filters, **kept}


def read_span(path: Path, span: Span) -> pa.Buffer:
    """Read one part."""
    with path.open("rb") as file:
        file.seek(span.begins)
        return pa.py_buffer(file.read(span.ends - span.begins))


def _open_private(path: str, _: int) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR, 0o600)


def _shown(value: str | None) -> str:
    return shorten(value or "null", _SHOWN_CHARACTERS)
