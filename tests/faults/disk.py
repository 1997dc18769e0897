"""A simulated disk: the files after a power failure during recorded operations.

A file's content survives from its next sync on, and names (new, moved, deleted) from the next sync
of their folder on. Other changes may be lost: `left_behind` yields the four combinations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path, PurePosixPath

from tests.faults.preload import Operation


@dataclass
class _File:
    now: bytearray = field(default_factory=bytearray)
    safe: bytes = b""


@dataclass
class _Folder:
    now: dict[str, _File | _Folder] = field(default_factory=dict)
    safe: dict[str, _File | _Folder] = field(default_factory=dict)


# The files after a power failure: contents by relative path, and None for folders.
Found = dict[str, bytes | None]


class Disk:
    """A folder after recorded operations: its current state, and the state that was synced."""

    def __init__(self, folder: Path) -> None:
        self._root = PurePosixPath(folder)
        self._top = _Folder()

    def apply(self, each: Operation) -> None:
        """Apply a recorded operation."""
        if each.path == str(self._root):
            if each.kind == "sync":
                self._top.safe = dict(self._top.now)
            return
        folder, name = self._place(each.path)
        match each.kind:
            case "create":
                folder.now[name] = _File()
            case "mkdir":
                folder.now[name] = _Folder()
            case "rename":
                target, new_name = self._place(each.more)
                target.now[new_name] = folder.now.pop(name)
            case "unlink" | "rmdir":
                del folder.now[name]
            case "sync":
                node = folder.now.get(name)  # Deleted or moved files have no entry.
                if isinstance(node, _Folder):
                    node.safe = dict(node.now)
                elif node:
                    node.safe = bytes(node.now)
            case _:
                file = folder.now[name]
                assert isinstance(file, _File)
                file.now.extend(bytes(max(0, each.offset - len(file.now))))
                end = each.offset + len(each.data) if each.kind == "write" else None
                file.now[each.offset : end] = each.data

    def left_behind(self) -> Iterator[Found]:
        """Yield the possible states: unsynced names or contents are kept or lost."""
        for names, contents in product(("now", "safe"), repeat=2):
            yield dict(_listed(self._top, "", names, contents))

    def _place(self, path: str) -> tuple[_Folder, str]:
        *folders, name = PurePosixPath(path).relative_to(self._root).parts
        node = self._top
        for each in folders:
            inner = node.now[each]
            assert isinstance(inner, _Folder)
            node = inner
        return node, name


def _listed(
    folder: _Folder, start: str, names: str, contents: str
) -> Iterator[tuple[str, bytes | None]]:
    for name, node in getattr(folder, names).items():
        if isinstance(node, _Folder):
            yield start + name, None
            yield from _listed(node, f"{start}{name}/", names, contents)
        else:
            yield start + name, bytes(getattr(node, contents))


def power_failures(
    operations: Iterable[Operation], folder: Path
) -> Iterator[tuple[tuple[str, ...], Found]]:
    """Yield, after each operation, the marks so far and every possible state of the disk."""
    disk, marks = Disk(folder), tuple[str, ...]()
    for each in operations:
        if each.kind == "mark":
            marks += (each.more,)
        else:
            disk.apply(each)
        different: list[Found] = []
        for found in disk.left_behind():
            if found not in different:
                different.append(found)
                yield marks, found


def put(found: Found, folder: Path) -> None:
    """Create a folder with these files."""
    folder.mkdir()
    for name, content in found.items():
        if content is None:
            (folder / name).mkdir(mode=0o700)
        else:
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o600)
