"""Files that are replaced as a whole, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from outreach_frames.errors import InvalidInputError


def replace_file(
    path: str | Path,
    write: Callable[[BinaryIO], object],
    *,
    just_before: Callable[[], object] | None = None,
    made_in: Path | None = None,
) -> Path:
    """Write a file next to its place and move it there when it is whole.

    Parameters
    ----------
    path : str or Path
        Where the file goes. What stands there keeps its permissions; a link stays a link.
    write : callable
        Called with the open file.
    just_before : callable, optional
        Called when the new file is whole, before it takes its place.
    made_in : Path, optional
        The folder in which the new file is written, on the same disk; by default the file's own.

    Returns
    -------
    Path
        The path as given.

    Raises
    ------
    InvalidInputError
        When the file cannot be written; what stood there is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> replace_file(folder / "note.txt", lambda file: file.write(b"done")).read_bytes()
    b'done'
    """
    target = expanded(path)
    try:
        place = behind_links(target)
        if place.is_dir():
            raise IsADirectoryError
        name = f".{place.name[:100]}.{uuid4().hex}.tmp"
        temporary = (made_in or place.parent) / name
        try:
            with temporary.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            if place.exists():
                shutil.copymode(place, temporary)
            if just_before:
                just_before()
            temporary.replace(place)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(place.parent)
    except OSError as error:
        raise unwritable(target, error) from error
    return target


def expanded(path: str | Path) -> Path:
    """Return a path with the home folder in the place of its ~."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InvalidInputError(
            f"{path} begins with ~, and there is no such home folder. Write the whole path."
        ) from error


def replace_folder(place: Path, new: Path, aside: Path) -> None:
    """Put a folder where another may be, with its permissions; `aside` has that one meanwhile.

    Where it fails, the other is back. Two moves are not one: who is killed in between leaves the
    other aside.
    """
    sync_folder(new)
    try:
        if place.exists():
            shutil.copymode(place, new)
            place.rename(aside)
        new.rename(place)
    except BaseException:
        if aside.exists() and not place.exists():
            aside.rename(place)
        raise
    sync_folder(place.parent)


def unwritable(path: Path, error: OSError) -> InvalidInputError:
    """Say that a file cannot be written, and what to do."""
    return InvalidInputError(f"{path} cannot be written: {_reason(error)}")


def unreadable(path: Path | str, error: OSError) -> InvalidInputError:
    """Say that a file cannot be read, and what to do."""
    return InvalidInputError(f"{path} cannot be read: {_reason(error)}")


def behind_links(path: Path) -> Path:
    """Return what a path leads to, through all links."""
    try:
        return path.resolve()
    except RuntimeError as error:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error


def sync_folder(folder: Path) -> None:
    """Make the move durable too, where the system can open a folder."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such file or folder. Check the path, or make the folder first."
        case IsADirectoryError():
            return "it is a folder. Give the path of a file."
        case NotADirectoryError():
            return "a part of its path is a file, not a folder. Check the path."
        case PermissionError():
            return "permission is denied. Close it in other programs, or choose another folder."
    return f"{error.strerror or error}. Free some space, or choose another place."
