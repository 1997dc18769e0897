"""Read the files of one folder, and create new files in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

import pandas as pd

from outreach_frames.common.atomic_files import check_suffix, delete, unreadable, unwritable
from outreach_frames.common.text import quoted
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.csv_notes import METADATA_SUFFIX
from outreach_frames.files.parquet import write_parquet

T = TypeVar("T")
# A file's content by its name, and that of the metadata file of a CSV file.
Contents = Mapping[str, bytes]

# Do not follow a link, or wait for a pipe's writer; Windows has only the last flag.
_FLAGS: Final = sum(getattr(os, f"O_{name}", 0) for name in ("NOFOLLOW", "NONBLOCK", "BINARY"))


class Folder:
    """A folder: only its own files are read, and no file in it is changed."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path.expanduser().resolve()
        self._numbers = count(1)
        if not self.path.is_dir():
            raise InvalidInputError(f"{path} is not a folder. Create it, or choose another one.")

    def read(self, name: str) -> Contents:
        """Read a file once, and its metadata file if it has one."""
        place = self._place(name)
        notes = self.path / f"{place.name}{METADATA_SUFFIX}"
        contents = {}
        for path in [place, notes] if os.path.lexists(notes) else [place]:
            try:
                with open(os.open(path, _FLAGS), "rb") as file:  # noqa: PTH123 - needs the flags
                    contents[path.name] = file.read()
            except OSError as error:
                raise unreadable(quoted(path.name), error) from error
        return contents

    def new_name(self, name: str | None, stem: str) -> str:
        """Return the name of a new table; without a name, one that parallel calls do not get."""
        if name is None:
            # Parquet columns cannot hold the examples of filters, which have several types.
            ending = "csv" if stem == "filters" else "parquet"
            names = (f"{stem}-{number}.{ending}" for number in self._numbers)
            return next(new for new in names if not os.path.lexists(self.path / new))
        check_suffix(name, (".parquet", ".csv"), "tables")
        self._check_new(name)
        return name

    def write_table(self, frame: pd.DataFrame, name: str) -> None:
        """Write a table to a new file."""
        write = write_csv if name.lower().endswith(".csv") else write_parquet
        self.create(name, lambda path: write(frame, path))

    def create(self, name: str, write: Callable[[Path], object]) -> None:
        """Create the file, and its metadata file, that a function writes."""
        self._check_new(name)
        created: list[Path] = []
        with tempfile.TemporaryDirectory() as private:
            write(Path(private, name))
            try:
                for made in Path(private).iterdir():
                    with (self.path / made.name).open("xb") as file:
                        created.append(self.path / made.name)
                        file.write(made.read_bytes())
            except OSError as error:
                for path in created:
                    delete(path)
                raise unwritable(Path(name), error) from error

    def _check_new(self, name: str) -> None:
        if self._place(name) != self.path / name or os.path.lexists(self.path / name):
            raise InvalidInputError(f"{quoted(name)} exists and is kept. Choose another name.")

    def _place(self, name: str) -> Path:
        """Return a file's path with links resolved; raise if it is not in the folder."""
        try:
            place = (self.path / name).resolve()
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            raise InvalidInputError(f"{quoted(name)} is not the name of a file.") from error
        if place.parent != self.path or not place.name.isprintable():
            raise InvalidInputError(
                f"{quoted(name)} is not in the agent's folder. Pass the name of a file there."
            )
        return place


def parse(contents: Contents, read: Callable[[Path], T]) -> T:
    """Call a function that reads a path with a private copy of the file."""
    with tempfile.TemporaryDirectory() as private:
        for name, content in contents.items():
            Path(private, name).write_bytes(content)
        try:
            return read(Path(private, next(iter(contents))))
        except InvalidInputError as error:
            raise InvalidInputError(str(error).replace(f"{private}{os.sep}", "")) from None
