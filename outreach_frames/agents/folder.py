"""Read the files of one folder, and create new files in it."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import pandas as pd

from outreach_frames.common.atomic_files import (
    check_portable_name,
    check_suffix,
    delete,
    expanded,
    resolve_links,
    unreadable,
    unwritable,
)
from outreach_frames.common.text import quoted
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.csv_notes import METADATA_SUFFIX
from outreach_frames.files.parquet import write_parquet
from outreach_frames.files.read import read_as_text

T = TypeVar("T")

_WRITERS: Final[Mapping[str, Callable[[pd.DataFrame, Path], Path]]] = {
    ".parquet": write_parquet,
    ".csv": write_csv,
}
# Do not follow a link that replaces a checked file, and do not wait for the writer of a pipe.
_READ_ONCE: Final = sum(getattr(os, f"O_{name}", 0) for name in ("NOFOLLOW", "NONBLOCK", "BINARY"))


class Snapshot(NamedTuple):
    """The content of a file and of its metadata file, by name, each read once."""

    name: str
    contents: Mapping[str, bytes]

    @property
    def digests(self) -> dict[str, str]:
        """The SHA-256 digest of each file."""
        return {
            name: hashlib.sha256(content).hexdigest() for name, content in self.contents.items()
        }

    def parse(self, read: Callable[[Path], T]) -> T:
        """Call a function that reads a path on a private copy of the files."""
        with tempfile.TemporaryDirectory() as private:
            for name, content in self.contents.items():
                Path(private, name).write_bytes(content)
            try:
                return read(Path(private, self.name))
            except InvalidInputError as error:
                raise InvalidInputError(str(error).replace(f"{private}{os.sep}", "")) from None

    def frame(self) -> pd.DataFrame:
        """Read the table."""
        return self.parse(read_as_text)


class Folder:
    """A folder whose files can be read, and in which new files can be created.

    Names of other folders' files, and links to them, are refused.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = resolve_links(expanded(path))
        if not self.path.is_dir():
            raise InvalidInputError(f"{path} is not a folder. Create it, or choose another one.")

    def read(self, name: str) -> Snapshot:
        """Read a file, and its metadata file if it is a CSV file."""
        place = self._place(name)
        contents = {place.name: _read(place, name)}
        if os.path.lexists(notes := self.path / f"{place.name}{METADATA_SUFFIX}"):
            contents[notes.name] = _read(notes, notes.name)
        return Snapshot(place.name, contents)

    def new_table(self, name: str | None, default: str) -> str:
        """Return the name of a new table; without a name, the first free one of `default`."""
        if name is None:
            names = (f"{default}-{number}.parquet" for number in count(1))
            return next(one for one in names if not os.path.lexists(self.path / one))
        name = self._new(name)
        check_suffix(name, tuple(_WRITERS), "tables")
        return name

    def write_table(self, frame: pd.DataFrame, name: str) -> None:
        """Write a table to a new file."""
        self.create(name, lambda path: _WRITERS[path.suffix.lower()](frame, path))

    def create(self, name: str, write: Callable[[Path], object]) -> None:
        """Create the file, and its metadata file, that a function writes; never replace a file."""
        name = self._new(name)
        created: list[Path] = []
        with tempfile.TemporaryDirectory() as private:
            write(Path(private, name))
            try:
                for source in sorted(Path(private).iterdir()):
                    target = self.path / source.name
                    with source.open("rb") as content, target.open("xb") as file:
                        created.append(target)
                        shutil.copyfileobj(content, file)
            except OSError as error:
                for target in created:
                    delete(target)
                if isinstance(error, FileExistsError):
                    raise _exists(name) from error
                raise unwritable(Path(name), error) from error

    def _new(self, name: str) -> str:
        """Check and return the name of a new file."""
        place = self._place(name)
        check_portable_name(place.name)
        if place != self.path / name or os.path.lexists(place):
            raise _exists(name)
        return place.name

    def _place(self, name: str) -> Path:
        """Return the path of a file, with links resolved; raise if it is not in the folder."""
        try:
            place = (self.path / name).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidInputError(f"{quoted(name)} is not the name of a file.") from error
        if place.parent != self.path:
            raise InvalidInputError(
                f"{quoted(name)} is not a file of the agent's folder. Pass the name of a file that "
                "is directly in that folder."
            )
        return place


def _exists(name: str) -> InvalidInputError:
    return InvalidInputError(f"{quoted(name)} exists and is not replaced. Choose another name.")


def _read(place: Path, name: str) -> bytes:
    """Read a regular file, without following links."""
    try:
        descriptor = os.open(place, os.O_RDONLY | _READ_ONCE)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a path could be replaced by a link
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InvalidInputError(f"{quoted(name)} is not a file. Pass the name of a file.")
            return file.read()
    except OSError as error:
        raise unreadable(quoted(name), error) from error
