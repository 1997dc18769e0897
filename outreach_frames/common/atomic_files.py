"""Replace files and folders atomically."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

from outreach_frames.common.text import quoted
from outreach_frames.errors import InvalidInputError

_DENIED: Final = "permission is denied. Close the file in other programs, or choose another folder."
_PRIVATE: Final = 0o600
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Prefixes of paths to files that the process already has open.
_OPEN_FILE_ROOTS: Final = (("/", "dev"), ("/", "proc"))
_REASONS: Final = {
    errno.ENOENT: "there is no such file or folder. Check the path, or create the folder first.",
    errno.EISDIR: "it is a folder. Pass the path of a file.",
    errno.ENOTDIR: "a part of its path is a file, not a folder. Check the path.",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENAMETOOLONG: "its name is too long. Choose a shorter one.",
}
_READING: Final = {
    errno.ENOENT: "not found. Check the path.",
    errno.EACCES: "permission is denied. Check the permissions of the file and its folders.",
}
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
# Error numbers of Windows: access denied, sharing violation, lock violation.
_BUSY: Final = (5, 32, 33)
_BUSY_SECONDS: Final = 1.0
# Devices, characters and endings that a file's name cannot have on Windows.
_NOT_PORTABLE: Final = re.compile(
    r'[<>:"/\\|?*\0-\x1f]|[. ]$|^(con|prn|aux|nul|con(in|out)\$|(com|lpt)[\d¹²³]) *(\.|$)',
    re.IGNORECASE,
)


def replace_file(
    path: str | Path,
    write: Callable[[BinaryIO], object],
    *,
    before_replace: Callable[[Path], object] | None = None,
    temporary_folder: Path | None = None,
    mode_from: Path | None = None,
    private: bool = False,
) -> Path:
    """Write a private temporary file, then move it to its target; links and permissions are kept.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> replace_file(folder / "note.txt", lambda file: file.write(b"done")).read_bytes()
    b'done'
    """
    target = expanded(path)
    refuse_special_file(target)
    try:
        place = resolve_links(target)
        # The temporary folder must be on the target's disk.
        folder = temporary_folder or place.parent
        mode = _PRIVATE if private else _mode_like(mode_from or place, folder)
        # A name may have 255 bytes, and a character takes up to four.
        temporary = folder / f".{place.name[:40]}.{uuid4().hex}.tmp"
        try:
            temporary.touch(_PRIVATE, exist_ok=False)
            with temporary.open("r+b") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            if before_replace:
                before_replace(temporary)
            move(temporary, place)
        except BaseException:
            delete(temporary)
            raise
        set_mode(place, mode)
        sync_folder(place.parent)
    except OSError as error:
        raise unwritable(target, error) from error
    return target


def _retry_busy(operation: Callable[[], object]) -> None:
    """Repeat an operation while another program, such as a virus scanner, has a file open."""
    ends = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            operation()
            break
        except OSError as error:
            if getattr(error, "winerror", None) not in _BUSY or time.monotonic() > ends:
                raise
        time.sleep(0.02)


def move(source: Path, target: Path) -> None:
    """Rename a file or folder, replacing an existing file; the package renames files only here."""
    _retry_busy(lambda: source.replace(target))


def delete(path: Path) -> None:
    """Delete a folder, or a file if it exists; the package deletes files only here."""
    remove = shutil.rmtree if path.is_dir() else partial(Path.unlink, missing_ok=True)
    _retry_busy(lambda: remove(path))


def _mode_like(model: Path, folder: Path) -> int:
    """Return the permissions of `model` if it exists, otherwise those of a new file in a folder."""
    if model.exists():
        return stat.S_IMODE(model.stat().st_mode)
    new = folder / f"{uuid4().hex}.tmp"
    new.touch(0o666, exist_ok=False)
    try:
        return stat.S_IMODE(new.stat().st_mode)
    finally:
        delete(new)


def set_mode(path: Path, mode: int) -> None:
    """Set permissions if they differ; do nothing on Windows, which has no modes."""
    # Some file systems have only one mode, and refuse to change it.
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


def copy_mode(source: Path, target: Path) -> None:
    """Copy the permissions of a file or folder to another."""
    set_mode(target, stat.S_IMODE(source.stat().st_mode))


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a valid path with ~ expanded to the home folder."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InvalidInputError(f"{quoted(path)} is not a path. Pass the path of a file as text.")
    if _URL.match(os.fspath(path)):
        raise InvalidInputError(
            f"{path} is a web address, not a path. Pass the path of a downloaded file."
        )
    try:
        place = Path(path).expanduser()
        place.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # reading or writing the file raises the same error
    except RuntimeError as error:
        raise InvalidInputError(
            f"{path} starts with ~, but that home folder does not exist. Pass the full path."
        ) from error
    except ValueError as error:  # a NUL or a lone surrogate
        raise InvalidInputError(f"{quoted(path)} is not a path: {error}.") from error
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be used: {_reason(error)}") from error
    return place


def check_portable_name(name: str) -> None:
    """Raise InvalidInputError for a file name that Windows refuses.

    >>> check_portable_name("people.json")
    """
    if _NOT_PORTABLE.search(name):
        raise InvalidInputError(
            f"{quoted(name)} cannot be the name of a file on Windows. Choose a name without "
            '<>:"/\\|?* that does not end in a dot or blank and is not a device such as NUL.'
        )


def refuse_special_file(path: Path) -> None:
    """Raise InvalidInputError if a path is a folder, device, pipe or socket."""
    if os.name == "nt":  # Windows would write to a device or a hidden stream
        check_portable_name(path.name)
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
            f"{path} cannot be written: it is {_kind(mode)}, not a file. Pass the path of a file."
        )


def require_readable_file(path: Path, *, open_pipes: bool = False) -> None:
    """Raise for a missing file, a device, a socket or a pipe; `open_pipes` allows /dev/stdin."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise unreadable(path, error) from error
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    # Allow only the shell's pipes: a named pipe blocks until another program writes to it.
    if open_pipes and stat.S_ISFIFO(mode) and path.parts[:2] in _OPEN_FILE_ROOTS:
        return
    raise InvalidInputError(
        f"{path} cannot be read: it is {_kind(mode)}, not a file. Save its contents to a file "
        "first, and pass the path of that file."
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
            f"{path} {f'ends in {suffix}' if suffix else 'has no ending'}, but this call writes "
            f"{what}. Pass a name that ends in {' or '.join(known)}."
        )


def replace_folder(place: Path, new: Path, aside: Path) -> None:
    """Replace a folder, keep its permissions, and move the old folder to `aside`."""
    sync_folder(new)
    try:
        if place.exists():
            copy_mode(place, new)
            move(place, aside)
        move(new, place)
    except BaseException:
        if aside.exists() and not place.exists():
            move(aside, place)
        raise
    sync_folder(place.parent)


def unwritable(path: Path, error: OSError) -> InvalidInputError:
    """Return the error for a file that cannot be written."""
    return InvalidInputError(f"{path} cannot be written: {_reason(error)}")


def unreadable(path: Path | str, error: OSError) -> InvalidInputError:
    """Return the error for a file that cannot be read."""
    reason = _READING.get(error.errno or 0) or _reason(error)
    return InvalidInputError(f"{path} cannot be read: {reason}")


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
