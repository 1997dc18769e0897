"""Replace files and folders atomically."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

from outreach_frames.common.text import quoted
from outreach_frames.errors import InvalidInputError

_DENIED: Final = "permission is denied. Close it in other programs, or choose another folder."
_TOO_LONG: Final = "its name is too long. Choose a shorter one."
# Limits of common file systems, in bytes.
_LONGEST_NAME: Final = 255
_LONGEST_PATH: Final = 4000
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Paths to files that the process already has open start with these.
_OPEN_FILE_ROOTS: Final = (("/", "dev"), ("/", "proc"))
_REASONS: Final = {
    errno.ENOENT: "there is no such file or folder. Check the path, or create the folder first.",
    errno.EISDIR: "it is a folder. Give the path of a file.",
    errno.ENOTDIR: "a part of its path is a file, not a folder. Check the path.",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENAMETOOLONG: _TOO_LONG,
}


def replace_file(
    path: str | Path,
    write: Callable[[BinaryIO], object],
    *,
    before_replace: Callable[[], object] | None = None,
    temporary_folder: Path | None = None,
    mode_from: Path | None = None,
) -> Path:
    """Write a temporary file, then move it to its target; links and permissions are kept.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> replace_file(folder / "note.txt", lambda file: file.write(b"done")).read_bytes()
    b'done'
    """
    target = expanded(path)
    refuse_special_file(target)
    try:
        place = resolve_links(target)
        model = mode_from or place
        # A name may have 255 bytes, and a character takes up to four.
        # The temporary folder must be on the same disk.
        temporary = (temporary_folder or place.parent) / f".{place.name[:40]}.{uuid4().hex}.tmp"
        private = model.exists()
        try:
            temporary.touch(0o600 if private else 0o666, exist_ok=False)
            with temporary.open("r+b") as file:
                if private:  # before any content is written
                    shutil.copymode(model, temporary)
                write(file)
                file.flush()
                os.fsync(file.fileno())
            if before_replace:
                before_replace()
            temporary.replace(place)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(place.parent)
    except OSError as error:
        raise unwritable(target, error) from error
    return target


def move_file(path: str | Path, source: Path) -> Path:
    """Move a complete file to its target on the same disk, as durably as `replace_file`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "made.tmp").write_bytes(b"done")
    >>> move_file(folder / "note.txt", folder / "made.tmp").read_bytes()
    b'done'
    """
    target = expanded(path)
    refuse_special_file(target)
    try:
        place = resolve_links(target)
        with source.open("r+b") as file:
            _copy_mode(place, source)
            os.fsync(file.fileno())
        source.replace(place)
        sync_folder(place.parent)
    except OSError as error:
        raise unwritable(target, error) from error
    return target


def _copy_mode(model: Path, target: Path) -> None:
    """Copy the permissions of a file, or those of a new file if the model does not exist."""
    if model.exists():
        shutil.copymode(model, target)
        return
    new = target.with_name(f"{uuid4().hex}.tmp")
    new.touch(0o666, exist_ok=False)
    try:
        shutil.copymode(new, target)
    finally:
        new.unlink()


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a valid path with ~ expanded to the home folder."""
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path) or not os.fspath(path):
        raise InvalidInputError(f"{quoted(path)} is not a path. Give the path of a file as text.")
    try:
        place = Path(path).expanduser()
    except RuntimeError as error:
        raise InvalidInputError(
            f"{path} starts with ~, but that home folder does not exist. Give the full path."
        ) from error
    try:
        lengths = [len(os.fsencode(part)) for part in place.parts]
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{quoted(path)} is not a path: {error.reason}.") from error
    if max(lengths, default=0) > _LONGEST_NAME or sum(lengths) > _LONGEST_PATH:
        raise InvalidInputError(f"{path} cannot be used: {_TOO_LONG}")
    try:
        place.stat()
    except PermissionError as error:
        raise InvalidInputError(f"{path} cannot be used: {_DENIED}") from error
    except OSError:
        pass  # reported when the file is read or written
    return place


def refuse_special_file(path: Path) -> None:
    """Raise InvalidInputError if a path is a folder, device, pipe or socket."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(path, error) from error
    if stat.S_ISDIR(mode):
        raise unwritable(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    if not stat.S_ISREG(mode):
        raise InvalidInputError(
            f"{path} cannot be written: it is {_kind(mode)}, not a file. Give the path of a file."
        )


def require_readable_file(path: Path, *, open_pipes: bool = False) -> None:
    """Raise InvalidInputError for devices, sockets and pipes; `open_pipes` allows /dev/stdin."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    # Only pipes that the shell opened: a named pipe blocks until another program writes to it.
    if open_pipes and stat.S_ISFIFO(mode) and path.parts[:2] in _OPEN_FILE_ROOTS:
        return
    raise InvalidInputError(
        f"{path} cannot be read: it is {_kind(mode)}, not a file. Save its contents to a file "
        "first, and give the path of that file."
    )


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def check_suffix(path: str | Path, suffixes: Sequence[str], what: str) -> None:
    """Raise InvalidInputError if a file name has the ending of another format.

    >>> check_suffix("people.CSV", (".csv", ""), "a CSV file")
    """
    suffix = expanded(path).suffix.lower()
    if suffix not in suffixes:
        known = [ending for ending in suffixes if ending]
        raise InvalidInputError(
            f"{path} {f'ends in {suffix}' if suffix else 'has no ending'}, but this writes {what}. "
            f"Give a name that ends in {' or '.join(known)}."
        )


def replace_folder(place: Path, new: Path, aside: Path) -> None:
    """Replace a folder, keeping its permissions; `aside` holds the old one in between."""
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
    """Return the error for a file that cannot be written."""
    return InvalidInputError(f"{path} cannot be written: {_reason(error)}")


def unreadable(path: Path | str, error: OSError) -> InvalidInputError:
    """Return the error for a file that cannot be read."""
    return InvalidInputError(f"{path} cannot be read: {_reason(error)}")


def resolve_links(path: Path) -> Path:
    """Return the target of a path, with all links resolved."""
    try:
        return path.resolve()
    except RuntimeError as error:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to disk, if the system supports it."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(error: OSError) -> str:
    if error.errno in _REASONS:
        return _REASONS[error.errno]
    advice = "Free some space, or choose" if error.errno in _FULL else "Choose"
    return f"{error.strerror or error}. {advice} another place."
