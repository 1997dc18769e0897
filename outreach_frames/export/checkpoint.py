"""Store an export's progress next to its target, so that the same call can resume the export.

The folder `.<name>.partial` holds `journal.sqlite`, which only its owner can read. One transaction
stores a part: the people of one or more pages, their ids and errors, and the search's position.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa

from outreach_frames.common import sqlite_file, terms
from outreach_frames.common.atomic_files import delete, move, set_mode, sync_folder, unwritable
from outreach_frames.common.text import shorten
from outreach_frames.errors import InvalidInputError, OutreachError

FORMAT: Final = 8
# Large pages store large parts faster.
_SCHEMA: Final = f"""
PRAGMA page_size = 65536;
CREATE TABLE export (part TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE parts (
    number INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, state TEXT NOT NULL,
    columns BLOB NOT NULL, people BLOB NOT NULL
);
CREATE TABLE seen (id TEXT PRIMARY KEY, search INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE errors (value TEXT NOT NULL);
PRAGMA user_version = {FORMAT};
"""
CHECKPOINT_FILE: Final = "journal.sqlite"
_LOCK: Final = "lock"
_SHOWN_CHARACTERS: Final = 60


class Checkpoint:
    """A context manager that opens and locks the parts of one export."""

    def __init__(self, target: Path, identity: Mapping[str, object], *, resume: bool) -> None:
        self.target: Final = target
        self.folder: Final = target.with_name(f".{target.name}.partial")
        self.state: dict[str, Any] | None = None  # the search's position after the last part
        self.errors: list[Any] = []
        self.columns: Any = identity["columns"]  # the chosen columns in order
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
            # Open the file only after locking: a run that just ended may have deleted the folder.
            set_mode(self.folder, 0o700)
            self._delete_files(all_files=not resume)
            journal = self.folder / CHECKPOINT_FILE
            settings = {name: json.dumps(value, sort_keys=True) for name, value in identity.items()}
            if not journal.exists():
                query = "INSERT INTO export VALUES (?, ?)"
                sqlite_file.create(
                    journal, _SCHEMA, lambda new: new.executemany(query, settings.items())
                )
            # Skip the sync to disk: a part lost in a power failure is requested again.
            connection = sqlite_file.connect(journal, durable=False)
            self._connection = stack.enter_context(closing(connection))
            self._require_same_export(settings)
            query = "SELECT checksum, state, columns, people FROM parts ORDER BY number"
            for checksum, state, columns, people in connection.execute(query):
                if zlib.crc32(people, zlib.crc32(columns)) != checksum:
                    raise sqlite3.DatabaseError("a part has changed")
                self.state = json.loads(state)
            query = "SELECT value FROM errors ORDER BY rowid"
            self.errors = [json.loads(value) for (value,) in connection.execute(query)]
            connection.execute("BEGIN")
            self._stack = stack.pop_all()

    @property
    def count(self) -> int:
        """The number of people stored."""
        return sum(search["rows"] for search in self.state["progress"]) if self.state else 0

    @property
    def replaced(self) -> Path:
        """The path of the old target folder during its replacement."""
        return self.folder / "old.tmp"

    def record_ids(self, ids: Sequence[str | None], search: int) -> list[int | None]:
        """Return the search that found each id before; the next `append` stores the new ids."""
        with self.explained():
            return [self._add_id(identity, search) for identity in ids]

    def append(self, people: pa.Table, state: Mapping[str, Any], errors: Sequence[Any]) -> None:
        """Append a part and the search's next position."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, people.schema) as writer:
            writer.write_table(people)
        columns, content = memoryview(people.schema.serialize()), memoryview(sink.getvalue())
        checksum = zlib.crc32(content, zlib.crc32(columns))
        with self.explained():
            self._connection.execute(
                "INSERT INTO parts (checksum, state, columns, people) VALUES (?, ?, ?, ?)",
                (checksum, json.dumps(state), columns, content),
            )
            self._connection.executemany(
                "INSERT INTO errors VALUES (?)", [(json.dumps(error),) for error in errors]
            )
            self._connection.execute("COMMIT")
            self._connection.execute("BEGIN")
        self.state = dict(state)
        self.errors += errors

    def schemas(self) -> list[pa.Schema]:
        """Return the distinct schemas of the parts, in the order of the parts."""
        rows = self._connection.execute("SELECT columns FROM parts ORDER BY number")
        distinct = dict.fromkeys(columns for (columns,) in rows)
        return [pa.ipc.read_schema(pa.py_buffer(columns)) for columns in distinct]

    def parts(self) -> Iterator[bytes]:
        """Yield the parts in order, for `read_part`."""
        for (people,) in self._connection.execute("SELECT people FROM parts ORDER BY number"):
            yield people

    def remove(self) -> None:
        """Delete the checkpoint and close it."""
        self._connection.close()
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

    def close(self) -> None:
        """Close and unlock the files; closing twice is harmless."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def _add_id(self, identity: str | None, search: int) -> int | None:
        query = "INSERT OR IGNORE INTO seen VALUES (?, ?)"
        if identity is None:
            return None
        if self._connection.execute(query, (identity, search)).rowcount == 1:
            return None
        query = "SELECT search FROM seen WHERE id = ?"
        (first_search,) = self._connection.execute(query, (identity,)).fetchone()
        return int(first_search)

    def _delete_files(self, *, all_files: bool) -> None:
        """Delete the temporary files of a killed run, or all files."""
        if self.replaced.exists() and not self.target.exists():
            move(self.replaced, self.target)
        # Delete the journal first: without its other files, it could seem damaged.
        for path in sorted(self.folder.iterdir()):
            if path.name != _LOCK and (all_files or path.name.endswith(".tmp")):
                delete(path)

    def _require_same_export(self, settings: Mapping[str, str]) -> None:
        """Reject a checkpoint with other settings or of another version."""
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version != FORMAT:
            raise InvalidInputError(
                f"{self.folder} belongs to another version of this package (format {version}, not "
                f"{FORMAT}). Finish the export with that version. {_start_over()}"
            )
        stored = dict(self._connection.execute("SELECT part, value FROM export"))
        changed = [
            f"{name} was {shorten(stored[name], _SHOWN_CHARACTERS)} and is now "
            f"{shorten(value, _SHOWN_CHARACTERS)}"
            for name, value in settings.items()
            if stored[name] != value
        ]
        if changed:
            raise InvalidInputError(
                f"{self.folder} belongs to a different export: {'; '.join(changed)}. Repeat the "
                f"earlier call to resume that export. {_start_over()}"
            )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Convert file and database errors to InvalidInputError with advice."""
        with sqlite_file.translate_errors(self.folder, "checkpoint", damaged=_start_over()):
            try:
                yield
            except OSError as error:
                raise unwritable(self.target, error) from error
            except (LookupError, TypeError, ValueError) as error:
                if isinstance(error, OutreachError):
                    raise
                raise sqlite3.DatabaseError(error) from error


def read_part(part: bytes) -> pa.Table:
    """Return the people of a part."""
    return pa.ipc.open_stream(part).read_all()


def _start_over() -> str:
    """Return advice for a checkpoint that cannot be resumed."""
    return f"Delete this folder, or pass {terms.argument('resume', False)}, to start over."
