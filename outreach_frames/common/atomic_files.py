"""Files and folders replaced atomically: completely, or not at all."""

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
# Of any common file system, in bytes.
_LONGEST_NAME: Final = 255
_LONGEST_PATH: Final = 4000
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Where the system shows what a process has open.
_OPEN_FILES: Final = (("/", "dev"), ("/", "proc"))
_REASONS: Final = {
    errno.ENOENT: "there is no such file or folder. Check the path, or make the folder first.",
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
    just_before: Callable[[], object] | None = None,
    made_in: Path | None = None,
    mode_of: Path | None = None,
) -> Path:
    """Write a file beside its target and move it there when it is complete.

    Parameters
    ----------
    path : str or Path
        Where the file goes. A file that is there keeps its permissions; a link stays a link.
    write : callable
        Called with the open file.
    just_before : callable, optional
        Called when the new file is whole, before it takes its place.
    made_in : Path, optional
        The folder in which the new file is written, on the same disk; by default the file's own.
    mode_of : Path, optional
        The file whose permissions the new one gets; by default the one that it replaces.

    Returns
    -------
    Path
        The path as given.

    Raises
    ------
    InvalidInputError
        When the file cannot be written, or its place is taken by a folder, device, pipe or
        socket; what stood there is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> replace_file(folder / "note.txt", lambda file: file.write(b"done")).read_bytes()
    b'done'
    """
    target = expanded(path)
    refuse_special_file(target)
    try:
        place = behind_links(target)
        model = mode_of or place
        # A name may have 255 bytes, and a character up to four of them.
        temporary = (made_in or place.parent) / f".{place.name[:40]}.{uuid4().hex}.tmp"
        private = model.exists()
        try:
            temporary.touch(0o600 if private else 0o666, exist_ok=False)
            with temporary.open("r+b") as file:
                if private:  # before the first byte, so that nobody else ever reads one
                    shutil.copymode(model, temporary)
                write(file)
                file.flush()
                os.fsync(file.fileno())
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


def move_file(path: str | Path, whole: Path) -> Path:
    """Move a file that is complete to its target, as durably as `replace_file` puts one there.

    Parameters
    ----------
    path : str or Path
        Where the file goes. A file that is there gives it its permissions; a link stays a link.
    whole : Path
        The file, on the same disk. Where it cannot be moved it stays as it is.

    Returns
    -------
    Path
        The path as given.

    Raises
    ------
    InvalidInputError
        When the file cannot be moved, or its place is taken by a folder, device, pipe or socket.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "made.tmp").write_bytes(b"done")
    >>> move_file(folder / "note.txt", folder / "made.tmp").read_bytes()
    b'done'
    """
    target = expanded(path)
    refuse_special_file(target)
    try:
        place = behind_links(target)
        with whole.open("r+b") as file:
            _copy_mode(place, whole)
            os.fsync(file.fileno())
        whole.replace(place)
        sync_folder(place.parent)
    except OSError as error:
        raise unwritable(target, error) from error
    return target


def _copy_mode(place: Path, whole: Path) -> None:
    """Give a file the permissions of another, or where there is none those of a new file."""
    if place.exists():
        shutil.copymode(place, whole)
        return
    new = whole.with_name(f"{uuid4().hex}.tmp")
    new.touch(0o666, exist_ok=False)
    try:
        shutil.copymode(new, whole)
    finally:
        new.unlink()


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path with the home folder in place of its ~."""
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path) or not os.fspath(path):
        raise InvalidInputError(f"{quoted(path)} is not a path. Give the path of a file as text.")
    try:
        place = Path(path).expanduser()
    except RuntimeError as error:
        raise InvalidInputError(
            f"{path} begins with ~, and there is no such home folder. Write the whole path."
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
        pass  # for who reads or writes it to tell
    return place


def refuse_special_file(path: Path) -> None:
    """Refuse to replace a folder, device, pipe or socket by a file."""
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
    """Refuse to read what may have no end: a device, a socket, a pipe.

    Parameters
    ----------
    path : Path
        What is to be read. A folder, and what is not there, is left to who reads it.
    open_pipes : bool, default False
        Whether a pipe that the shell opened is fine, such as /dev/stdin; it is read once. A named
        pipe is not: where nobody writes to it, opening it never returns.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    if open_pipes and stat.S_ISFIFO(mode) and path.parts[:2] in _OPEN_FILES:
        return
    raise InvalidInputError(
        f"{path} cannot be read: it is {_kind(mode)}, not a file. Write what it holds to a file "
        "first, and give the path of that."
    )


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def check_suffix(path: str | Path, suffixes: Sequence[str], what: str) -> None:
    """Refuse a file name with the ending of another format.

    >>> check_suffix("people.CSV", (".csv", ""), "a CSV file")
    """
    suffix = expanded(path).suffix.lower()
    if suffix not in suffixes:
        known = [ending for ending in suffixes if ending]
        raise InvalidInputError(
            f"{path} {f'ends in {suffix}' if suffix else 'has no ending'}, and this writes {what}. "
            f"Give a name that ends in {' or '.join(known)}."
        )


def replace_folder(place: Path, new: Path, aside: Path) -> None:
    """Replace a folder by another, with its permissions; `aside` holds the old one meanwhile.

    Where the second move fails, the first is undone; a process killed between the two leaves the
    other folder aside.
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
    """Make the move durable as well, where the system can sync a folder."""
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
