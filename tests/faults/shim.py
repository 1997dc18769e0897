"""Fail the n-th file operation of Python code below one folder, in a separate process.

An audit hook, which cannot be removed, sees opening, moving, deleting, making folders and changing
modes. Replacements of `io.open`, `io.FileIO` and `os.fsync`, which must be set before any other
import, see writes and syncs. For the operations of SQLite see `preload`.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

_ON_PATHS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate"}


class Shim:
    """Counts the operations below a folder, and fails one of them, or also all later ones."""

    def __init__(self) -> None:
        self._folder = ""
        self._count = self._number = self._error = 0
        self._lasting = False
        self.struck = False
        self._open, self._fsync = io.open, os.fsync
        sys.addaudithook(self._audit)

        shim = self

        class FileIO(io.FileIO):
            def write(self, data: Any, /) -> int | None:
                shim.operation()
                return super().write(data)

            def truncate(self, size: int | None = None, /) -> int:
                shim.operation()
                return super().truncate(size)

        self._raw = io.FileIO
        io.FileIO = FileIO  # type: ignore[misc]
        io.open = self._open_file  # type: ignore[assignment]
        os.fsync = self._sync

    def watch(self, folder: Path) -> None:
        """Count the operations below this folder from now on."""
        self._folder = str(folder)

    def fail(self, number: int, error: int, *, lasting: bool) -> None:
        """Fail the operation with that number from now, and with `lasting` all later ones."""
        self._count, self.struck = 0, False
        self._number, self._error, self._lasting = number, error, lasting

    def operation(self) -> None:
        """Count an operation; raise an error if it should fail."""
        if not self._number:
            return
        self._count += 1
        if self._count == self._number or (self._lasting and self._count > self._number):
            self.struck = True
            raise OSError(self._error, os.strerror(self._error))

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._number and event in _ON_PATHS and self._is_below(arguments[0]):
            self.operation()

    def _is_below(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self._folder)

    def _open_file(self, file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
        """Open a file like `io.open`, but use our own raw file for writing bytes."""
        if "b" in mode and set(mode) & set("wxa+") and self._is_below(file):
            raw = io.FileIO(file, mode.replace("b", ""))
            return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return self._open(file, mode, *more, **options)

    def _sync(self, file: Any) -> None:
        self.operation()
        self._fsync(file)
