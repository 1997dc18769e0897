"""Files are replaced atomically, keep their permissions, and never replace a special file."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.common.atomic_files import replace_file, replace_folder
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.parquet import write_parquet
from outreach_frames.files.read import read_as_text, read_prospects

FRAME = pd.DataFrame({"n": [1, 2]})
WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "csv": ("x.csv", lambda path: write_csv(FRAME, path)),
    "parquet": ("x.parquet", lambda path: write_parquet(FRAME, path)),
    "export to csv": ("x.csv", lambda path: of.export_people(path, limit=1)),
    "export to parquet": ("x.parquet", lambda path: of.export_people(path, limit=1)),
    "export to a folder": ("folder", lambda path: of.export_people(path, limit=1)),
    "filters": ("x.json", lambda path: of.save_filters(path, {"person_name": "Ada"})),
}
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "prospects from csv": ("x.csv", read_prospects),
    "prospects from parquet": ("x.parquet", read_prospects),
    "text": ("x.csv", read_as_text),
    "prospects from a part": ("x.parquet", lambda path: read_prospects(path.parent)),
    "a comparison": ("x.parquet", lambda path: of.compare_people(path, path)),
    "a comparison of a part": ("x.parquet", lambda path: of.compare_people(path.parent, FRAME)),
    "filters": ("x.json", of.load_filters),
}


@pytest.fixture(autouse=True)
def _connected(client: Client) -> None:
    """Connect before each test; the commands open connections of their own."""


def make_pipe(path: Path) -> None:
    """Make a pipe."""
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    """Make a socket."""
    with socket.socket(socket.AF_UNIX) as unused:
        unused.bind(os.path.relpath(path))  # The path of a socket has a length limit.


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("make", [make_pipe, make_socket])
@pytest.mark.parametrize("linked", [False, True])
def test_special_files_are_not_replaced(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    writer: str,
    make: Callable[[Path], None],
    linked: bool,
) -> None:
    """No writer replaces a pipe or socket, including through a link."""
    monkeypatch.chdir(tmp_path)
    name, write = WRITERS[writer]
    special = tmp_path / ("special" if linked else name)
    make(special)
    if linked:
        (tmp_path / name).symlink_to(special)
    before = sorted(tmp_path.iterdir())
    mode = special.stat().st_mode
    with pytest.raises(InvalidInputError, match="cannot be written"):
        write(tmp_path / name)
    assert special.stat().st_mode == mode
    assert sorted(tmp_path.iterdir()) == before


def make_device(path: Path) -> None:
    """Make a link to a device."""
    path.symlink_to(os.devnull)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("make", [make_pipe, make_socket, make_device])
def test_special_files_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str, make: Callable[[Path], None]
) -> None:
    """No reader blocks on a pipe or socket, or accepts a device."""
    monkeypatch.chdir(tmp_path)
    name, read = READERS[reader]
    make(tmp_path / name)
    with pytest.raises(InvalidInputError, match=r"cannot be read: it is a (pipe|socket|device)"):
        read(tmp_path / name)


@contextmanager
def closed_to_us(folder: Path) -> Iterator[None]:
    """Remove all permissions of a folder; root becomes the user `nobody` meanwhile."""
    nobody, user = 65534, os.geteuid()
    folder.chmod(0)
    if not user:
        os.seteuid(nobody)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o700)


@pytest.mark.parametrize("name", [*READERS, *WRITERS])
def test_a_folder_without_permission_is_an_error(tmp_path: Path, name: str) -> None:
    """If permission is denied, readers and writers say so."""
    file, use = {**READERS, **WRITERS}[name]
    # Import all modules now: the user `nobody` has no access to them.
    with suppress(InvalidInputError, OutreachWarning):
        use(tmp_path / file)
    with closed_to_us(tmp_path), pytest.raises(InvalidInputError, match="permission is denied"):
        use(tmp_path / file)


def test_a_folder_that_cannot_be_searched_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning names a folder that `forget` cannot search."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("XDG_CACHE_HOME", folder)
        inner = Path(folder, "inner")
        inner.mkdir()
        # Import all modules now: the user `nobody` has no access to them.
        of.forget(email="ada@brightforge.example", folder=folder, dry_run=True)
        with closed_to_us(inner), pytest.warns(OutreachWarning, match="Not read: .*inner"):
            found = of.forget(email="ada@brightforge.example", folder=folder)
        assert found["kind"].tolist() == ["not read"]


def test_a_csv_is_not_written_without_its_metadata(tmp_path: Path) -> None:
    """If the path of the metadata file is a pipe, neither the CSV nor the metadata is written."""
    os.mkfifo(tmp_path / "x.csv-metadata.json")
    with pytest.raises(InvalidInputError, match="pipe"):
        write_csv(FRAME, tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize("writer", WRITERS)
def test_invalid_paths_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    """A path that no file can have, or whose folder is missing, is an error, and so is None."""
    monkeypatch.chdir(tmp_path)
    name, write = WRITERS[writer]
    paths = ["a\0b", "~nobody-of-this-name/x", "no folder/x", "\ud800", "n" * 300]
    paths += ["d" * 200 + "/" + "n" * 300]
    for path in [None, "", *paths, *(f"{path}{Path(name).suffix}" for path in paths)]:
        with pytest.raises(InvalidInputError):
            write(path)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_has_the_permissions_of_the_one_it_replaces(tmp_path: Path, mode: int) -> None:
    """A file has the permissions of the one it replaces, and is private while it is written."""
    path = tmp_path / "x"
    path.touch()
    path.chmod(mode)
    seen: list[int] = []

    def write(file: object) -> None:
        seen.extend(stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir())

    replace_file(path, write)
    assert sorted(seen) == sorted([mode, 0o600])
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_files_beside_private_files_are_private(tmp_path: Path) -> None:
    """A CSV's metadata file, and parts that replace private parts, are private."""
    path = tmp_path / "x.csv"
    path.touch(0o600)
    write_csv(FRAME, path)
    notes = tmp_path / "x.csv-metadata.json"
    assert stat.S_IMODE(notes.stat().st_mode) == 0o600
    folder = of.export_people(tmp_path / "folder", limit=1)
    (part,) = folder.iterdir()
    part.chmod(0o600)
    of.export_people(folder, limit=2)
    (part,) = folder.iterdir()
    assert stat.S_IMODE(part.stat().st_mode) == 0o600


def test_a_name_of_any_script_is_written(tmp_path: Path) -> None:
    """A name of the maximum length with characters of three bytes is valid."""
    path = tmp_path / ("東" * 84)
    replace_file(path, lambda file: file.write(b"x"))
    assert path.read_bytes() == b"x"


def test_a_folder_is_restored_if_its_replacement_fails(tmp_path: Path) -> None:
    """If the second of the two moves fails, the first one is undone."""
    new, aside = tmp_path / "new", tmp_path / "aside"
    place = new / "place"  # A folder cannot be moved into itself.
    place.mkdir(parents=True)
    (place / "kept").touch()
    with pytest.raises(OSError, match="Invalid argument"):
        replace_folder(place, new, aside)
    assert (place / "kept").is_file()
    assert not aside.exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from outreach_frames.common.atomic_files import replace_file

def write(file):
    file.write(b"ada@brightforge.example")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)

replace_file(Path(sys.argv[1]), write)
"""


@pytest.mark.long
def test_the_file_of_a_killed_writer_is_private_and_found(tmp_path: Path) -> None:
    """A killed writer leaves the old file and a private temporary file, which `forget` finds."""
    path = tmp_path / "people.csv"
    path.write_text("old")
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert path.read_text() == "old"
    (left,) = tmp_path.glob(".*")
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    found = of.forget(email="ada@brightforge.example", folder=tmp_path)
    assert found["path"].tolist() == [str(left)]


def test_a_journal_with_too_long_a_name_leaves_no_file(tmp_path: Path) -> None:
    """A name that leaves no room for SQLite's own files is an error, and no lock file is left."""
    frame = pd.DataFrame({"email": ["ada@brightforge.example"]})
    sequence = of.sequences(status="active")["id"].iloc[0]
    with pytest.raises(InvalidInputError, match="name too long"):
        frame.outreach.add_to_sequence(sequence, journal=tmp_path / ("n" * 250))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs the list of open files")
def test_no_writer_leaves_a_file_open(tmp_path: Path) -> None:
    """After each writer, none of its files and folders is open."""
    for name, write in WRITERS.values():
        with suppress(OutreachWarning):
            write(tmp_path / name)
        paths = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
        assert [path for path in paths if str(tmp_path) in path] == []


@pytest.mark.parametrize("writer", [name for name in WRITERS if "folder" not in name])
def test_new_files_have_the_usual_permissions(tmp_path: Path, writer: str) -> None:
    """A complete new file has the default permissions of the system."""
    name, write = WRITERS[writer]
    (tmp_path / "usual").touch()
    with suppress(OutreachWarning):
        write(tmp_path / name)
    for path in tmp_path.iterdir():
        assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode
