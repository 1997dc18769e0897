"""The preloaded library of `preload.c`: compiled, loaded into a process, and what it recorded.

It sees what no Python code does, such as the writes of SQLite. It needs a C compiler and Linux.
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
    """One thing that was done to a file, or a mark that the program set between two of them."""

    kind: str
    path: str
    more: str
    offset: int
    data: bytes


def run_preloaded(folder: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module with the library, which is compiled into the folder."""
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
    """The library within the process that it was loaded into."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)

    def watch(self, folder: Path) -> None:
        """Count the operations below this folder from now on."""
        self._library.faults_watch(os.fsencode(folder))

    def fail(self, number: int, error: int, *, lasting: bool) -> None:
        """Fail the operation of that number from now, and all that follow if it is `lasting`."""
        self._library.faults_fail(ctypes.c_long(number), error, lasting)

    @property
    def struck(self) -> bool:
        """Whether an operation was failed."""
        return bool(self._library.faults_struck())

    def record(self, file: BinaryIO | None) -> None:
        """Record operations in a file, or no longer."""
        self._library.faults_record(-1 if file is None else file.fileno())

    def mark(self, text: str) -> None:
        """Put a mark between the operations."""
        self._library.faults_mark(text.encode())


def read_record(path: Path) -> Iterator[Operation]:
    """Read what was recorded."""
    with path.open("rb") as file:
        for line in file:
            kind, name, more, offset, length = line[:-1].split(b"\t")
            data = file.read(int(length))
            file.read(1)
            yield Operation(kind.decode(), name.decode(), more.decode(), int(offset), data)
