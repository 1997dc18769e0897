"""Compile the library of `preload.c`, load it into a process, and read its records.

The library also sees operations outside Python, such as the writes of SQLite. It needs a C
compiler and Linux.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

SOURCE = Path(__file__).with_name("preload.c")


class Operation(NamedTuple):
    """A file operation, or a mark that the program set between two operations."""

    kind: str
    path: str
    more: str
    offset: int
    data: bytes


def run_preloaded(folder: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Compile the library into the folder, and run a module with it."""
    library = folder / "preload.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl", "-lpthread"], check=True
    )
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONFAULTHANDLER": "1"},
        cwd=SOURCE.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )


class Preloaded:
    """The library in the process into which it was loaded."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)

    def watch(self, folder: Path) -> None:
        """Count the operations below this folder from now on."""
        self._library.faults_watch(os.fsencode(folder))

    def fail(self, number: int, error: int, *, lasting: bool) -> None:
        """Fail the operation with that number from now, and with `lasting` all later ones."""
        self._library.faults_fail(ctypes.c_long(number), error, lasting)

    @property
    def struck(self) -> bool:
        """Whether an operation failed."""
        return bool(self._library.faults_struck())

    def record(self, file: BinaryIO | None) -> None:
        """Record operations in a file, or stop recording."""
        self._library.faults_record(-1 if file is None else file.fileno())

    def mark(self, text: str) -> None:
        """Record a mark between the operations."""
        self._library.faults_mark(text.encode())


def read_record(path: Path) -> Iterator[Operation]:
    """Read the recorded operations."""
    with path.open("rb") as file:
        for line in file:
            kind, name, more, offset, length = line[:-1].split(b"\t")
            data = file.read(int(length))
            file.read(1)
            yield Operation(kind.decode(), name.decode(), more.decode(), int(offset), data)
