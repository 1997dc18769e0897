"""Exports in any format equal search_people, have no duplicates, and can be resumed."""

from __future__ import annotations

import json as json_module
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.cli import main
from outreach_frames.client.client import Client
from outreach_frames.errors import (
    AuthenticationError,
    InvalidInputError,
    OutreachError,
    OutreachWarning,
)
from outreach_frames.sandbox import Sandbox
from tests import forked
from tests.conftest import PEOPLE
from tests.resources.search_service import connected, numbers, person, result, service_of
from tests.scripted import Received, Reply, Service, json, reset, scripted

pytestmark = pytest.mark.long

FORMATS = ["people.csv", "people.parquet", "people"]
TOKEN = "a-token-that-no-file-may-hold"
BROKEN = json({"error": "no"}, 500)
HUNDRED = service_of(100)


def partial_of(path: Path) -> Path:
    """Return the folder that holds an export's checkpoint."""
    return path.with_name(f".{path.name}.partial")


def names_of(name: str) -> list[str]:
    """Return the names of the files that an export writes."""
    return [name, f"{name}-metadata.json"] if name.endswith(".csv") else [name]


def names_in(folder: Path) -> list[str]:
    """Return the sorted names of a folder's entries."""
    return sorted(path.name for path in folder.iterdir())


def pages_asked(service: Service) -> list[int]:
    """Return the sorted pages of all requests so far, and clear the requests."""
    pages = sorted(request.json["page"] for request in service.requests)
    service.requests.clear()
    return pages


@contextmanager
def stopped_export(
    path: Path,
    reply: Callable[[Received], Reply] = HUNDRED,
    page: int = 7,
    failure: Reply = BROKEN,
    **options: Any,
) -> Iterator[tuple[Service, OutreachError]]:
    """Stop an export with a failure on one page; then mend the service and clear its requests."""
    mended = threading.Event()

    def respond_or_fail(request: Received) -> Reply:
        if not request.body:
            return reset()  # This request was aborted, because another page failed.
        is_broken = request.json["page"] == page and not mended.is_set()
        return failure if is_broken else reply(request)

    with (
        scripted(respond_or_fail) as service,
        of.connect(service.url, TOKEN, cache=None, max_wait=0, workers=1),
    ):
        with pytest.raises(OutreachError) as caught:
            of.export_people(path, **({"page_size": 10} | options))
        mended.set()
        service.requests.clear()
        yield service, caught.value


def with_fields(there: int, fields: Callable[[int], dict[str, Any]]) -> Callable[[Received], Reply]:
    """Return a script that pages through people with additional fields."""

    def reply(request: Received) -> Reply:
        size, page = request.json["page_size"], request.json["page"]
        chosen = range((page - 1) * size + 1, min(page * size, there) + 1)
        people = [person(number) | fields(number) for number in chosen]
        return result(people, page=page, total=there, total_pages=-(-there // size))

    return reply


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_equals_a_search(
    client: Client, people: pd.DataFrame, tmp_path: Path, name: str
) -> None:
    """Every format reads back as the frame of the same search; no other files remain."""
    path = of.export_people(tmp_path / name, page_size=90)
    assert path == tmp_path / name
    assert names_in(tmp_path) == names_of(name)
    pd.testing.assert_frame_equal(of.read_prospects(path), people, check_flags=False)
    if name.endswith(".csv"):
        written = people.outreach.to_csv(tmp_path / "written.csv")
        assert path.read_bytes() == written.read_bytes()


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_without_people_has_all_columns(
    client: Client, tmp_path: Path, name: str
) -> None:
    """An export without people reads back as a frame without rows and with all columns."""
    with pytest.warns(OutreachWarning, match="Nobody matches"):
        path = of.export_people(tmp_path / name, person_name="nobody has this name")
    with pytest.warns(OutreachWarning, match="Nobody matches"):
        expected = of.search_people(person_name="nobody has this name")
    frame = of.read_prospects(path)
    assert len(frame) == 0
    pd.testing.assert_frame_equal(frame, expected, check_flags=False)
    assert frame.columns.tolist() == list(spec.columns(spec.PERSON))


def test_a_folder_has_parts_of_ten_thousand(tmp_path: Path) -> None:
    """A folder has a Parquet file per 10,000 people, and the remaining people in the last one."""
    with scripted(service_of(10_001)) as service, connected(service):
        path = of.export_people(f"{tmp_path}/people.d/")
    parts = sorted(path.iterdir())
    assert [part.name for part in parts] == [f"part-{number:05}.parquet" for number in range(2)]
    assert [pq.read_metadata(part).num_rows for part in parts] == [10_000, 1]
    assert numbers(of.read_prospects(path)) == list(range(1, 10_002))


def test_only_a_folder_of_parts_is_replaced(client: Client, tmp_path: Path) -> None:
    """An earlier folder is replaced and keeps its mode; one with any other file is rejected."""
    folder = tmp_path / "people"
    of.export_people(folder, limit=5)
    folder.chmod(0o700)
    of.export_people(folder, limit=3)
    assert len(of.read_prospects(folder)) == 3
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for other in ("notes.txt", "part-00000-of-another-tool.parquet"):
        (folder / other).write_text("mine")
        with pytest.raises(InvalidInputError, match=other):
            of.export_people(folder)
        assert names_in(folder) == sorted([other, "part-00000.parquet"])
        (folder / other).unlink()


def test_a_folder_is_restored_after_a_kill(client: Client, tmp_path: Path) -> None:
    """A kill between the moves of the old and the new folder loses nothing."""
    folder = of.export_people(tmp_path / "people")
    partial_of(folder).mkdir()
    folder.rename(partial_of(folder) / "old.tmp")
    with scripted([json({}, 401)]) as service, connected(service):
        with pytest.raises(AuthenticationError):
            of.export_people(folder, resume=False)
    assert len(of.read_prospects(folder)) == PEOPLE
    assert names_in(tmp_path) == ["people"]


def test_invalid_paths_are_an_error_before_any_request(tmp_path: Path) -> None:
    """A path with another suffix or in a missing folder is an error; nothing is requested."""
    with scripted([]) as service, connected(service):
        for name, words in (
            *((name, r"\.csv or \.parquet, or a folder") for name in ("p.xlsx", "p.csv.gz")),
            ("nowhere/people.csv", r"the folder .* does not exist"),
        ):
            with pytest.raises(InvalidInputError, match=words):
                of.export_people(tmp_path / name)
        assert service.requests == []


@pytest.mark.parametrize(
    ("name", "failure"), [*((name, BROKEN) for name in FORMATS), ("people.csv", json({}, 401))]
)
def test_a_failed_export_resumes(tmp_path: Path, name: str, failure: Reply) -> None:
    """After an error, no stored page is requested again, and the result is that of one run."""
    path = tmp_path / name
    with stopped_export(path, service_of(85), 7, failure) as (service, error):
        assert not path.exists()
        (note,) = [note for note in error.__notes__ if "are kept" in note]
        kept = int(note.split()[0])
        assert 0 < kept <= 60
        assert kept % 10 == 0
        assert str(partial_of(path)) in note
        of.export_people(path, page_size=10)
        # A request of the failed run may arrive late.
        assert set(pages_asked(service)) == set(range(kept // 10 + 1, 10))
        expected = of.search_people(limit=None, page_size=10)
    pd.testing.assert_frame_equal(of.read_prospects(path), expected, check_flags=False)
    assert names_in(tmp_path) == names_of(name)


def test_ctrl_c_keeps_the_pages_read_so_far(tmp_path: Path) -> None:
    """Ctrl-C ends an export with a note, and the same call resumes."""
    path = tmp_path / "people.csv"
    pages = service_of(110)

    def reply(request: Received) -> Reply:
        if request.json["page"] == 10 and not stopped.is_set():
            stopped.set()
            os.kill(os.getpid(), signal.SIGINT)
        return pages(request)

    stopped = threading.Event()
    with scripted(reply) as service, connected(service):
        with pytest.raises(KeyboardInterrupt) as caught:
            of.export_people(path, page_size=10)
        assert any("Repeat the call to resume" in note for note in caught.value.__notes__)
        of.export_people(path, page_size=10)
    assert numbers(of.read_prospects(path)) == list(range(1, 111))


SPLIT = {"person_titles": ["CEO"], "split_by": "person_titles"}


@pytest.mark.parametrize(
    ("options", "account", "words"),
    [
        ({"person_name": "Ada"}, {}, r"filters was \{\} and is now .*Ada"),
        ({"limit": 60}, {}, "limit was null and is now 60"),
        ({"page_size": 20}, {}, "page_size was 10 and is now 20"),
        ({"columns": ["id"]}, {}, "columns was null and is now"),
        (SPLIT, {}, "split_by was null and is now"),
        ({}, {"base_path": "/v2"}, "service was"),
        ({}, {"api_key": "another"}, "account was"),
        ({}, {"network_name": "net"}, "network_name was"),
    ],
)
def test_a_checkpoint_of_another_export_is_rejected(
    tmp_path: Path, options: dict[str, Any], account: dict[str, Any], words: str
) -> None:
    """The checkpoint of another search or account is an error with the differences."""
    path = tmp_path / "people.csv"
    with stopped_export(path) as (service, _):
        url = service.url + account.pop("base_path", "")
        with of.connect(url, account.pop("api_key", TOKEN), cache=None, **account):
            with pytest.raises(InvalidInputError, match=rf"{words}.*resume=False"):
                of.export_people(path, **{"page_size": 10} | options)
        assert service.requests == []


def test_a_damaged_checkpoint_is_an_error(tmp_path: Path) -> None:
    """Whichever part is damaged, the error recommends to start over, and this works."""
    path = tmp_path / "people.csv"

    def change(statement: str, *values: str | bytes) -> None:
        with closing(sqlite3.connect(journal)) as opened, opened:
            opened.execute(statement, values)

    def refuse(words: str) -> None:
        with pytest.raises(InvalidInputError, match=words):
            of.export_people(path, page_size=10)

    with stopped_export(path):
        journal = partial_of(path) / "journal.sqlite"
        with closing(sqlite3.connect(journal)) as opened:
            (stored,) = opened.execute("SELECT state FROM parts ORDER BY number DESC").fetchone()
        state = json_module.loads(stored)
        damaged = [{key: state[key] for key in state if key != missing} for missing in state]
        for one in [*damaged, [], 7, {**state, "progress": {"pagse": 1}}]:
            change("UPDATE parts SET state = ?", json_module.dumps(one))
            refuse(r"is damaged.*resume=False")
        change("UPDATE parts SET state = ?", stored)
        for name in ("columns", "people"):
            with closing(sqlite3.connect(journal)) as opened:
                (part,) = opened.execute(f"SELECT {name} FROM parts WHERE number = 2").fetchone()
            change(f"UPDATE parts SET {name} = ? WHERE number = 2", part[:-1] + b"!")
            refuse("is damaged.*a part has changed")
            change(f"UPDATE parts SET {name} = ? WHERE number = 2", part)
        change("PRAGMA user_version = 99")
        refuse(r"another version.*format 99")
        for file in partial_of(path).glob("journal.sqlite*"):
            file.write_bytes(b"no journal" * 1000)
        refuse(r"is damaged.*resume=False")
        of.export_people(path, page_size=10, resume=False)
    assert numbers(of.read_prospects(path)) == list(range(1, 101))


def test_concurrent_exports_to_one_file_are_rejected(tmp_path: Path) -> None:
    """While an export runs, another one to the same file is rejected and does not disturb it."""
    path = tmp_path / "people.csv"
    pages = service_of(100)
    refused: list[Exception] = []

    def reply(request: Received) -> Reply:
        if request.json["page"] == 8:
            (tmp_path / "link").symlink_to(tmp_path)
            try:
                of.export_people(tmp_path / "link" / "people.csv", page_size=10)
            except InvalidInputError as error:
                refused.append(error)
        return pages(request)

    with scripted(reply) as service, connected(service):
        of.export_people(path, page_size=10)
    assert "people.csv is in use. Wait for the other run to end" in str(refused[0])
    assert numbers(of.read_prospects(path)) == list(range(1, 101))


def test_a_link_is_not_used_for_a_checkpoint(client: Client, tmp_path: Path) -> None:
    """If the checkpoint's folder is a link, its target stays unchanged."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.tmp").write_text("mine")
    partial_of(tmp_path / "people.csv").symlink_to(tmp_path / "mine")
    with pytest.raises(InvalidInputError, match="is a symbolic link"):
        of.export_people(tmp_path / "people.csv", resume=False)
    assert names_in(tmp_path / "mine") == ["notes.tmp"]


def test_repeats_and_errors_survive_a_resume(tmp_path: Path) -> None:
    """Repeated people and the service's errors of both runs cause a warning each, once."""

    def reply(request: Received) -> Reply:
        page = request.json["page"]
        found = [person({2: 1, 3: 1, 18: 17}.get(page, page)), {"name": "no id"}]
        told = {"results": found, "_pagination": {"total": 40, "total_pages": 20}}
        return json(told | {"_errors": [{"page": page}] if page in (2, 19) else None})

    path = tmp_path / "people.parquet"
    with stopped_export(path, reply, 10, page_size=2):
        with pytest.warns(OutreachWarning) as caught:
            of.export_people(path, page_size=2)
    told = " ".join(str(one.message) for one in caught)
    assert "returned 3 of the people twice" in told
    assert "reported 2 errors with its results: {" in told
    frame = of.read_prospects(path)
    assert frame["id"].nunique() == 17
    assert int(frame["id"].isna().sum()) == 20
    assert frame.attrs["errors"] == [{"page": 2}, {"page": 19}]


def test_checkpoints_are_private_and_have_no_token(tmp_path: Path) -> None:
    """Other users cannot read the checkpoint, and no file has the token."""
    for name in FORMATS:
        path = tmp_path / name
        with stopped_export(path, person_name="Ada"):
            pass
        folder = partial_of(path)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        files = [file for file in folder.rglob("*") if file.is_file()]
        assert {"journal.sqlite", "lock"} <= {file.name for file in files}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert not any(TOKEN.encode() in file.read_bytes() for file in files)


def test_an_earlier_file_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    """A failed export leaves the earlier file; a complete one keeps its permissions."""
    path = tmp_path / "people.csv"
    path.write_text("old")
    path.chmod(0o640)
    with stopped_export(path):
        assert path.read_text() == "old"
        of.export_people(path, page_size=10)
    assert len(of.read_prospects(path)) == 100
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_responses_of_an_export_are_not_cached(sandbox: Sandbox, tmp_path: Path) -> None:
    """An export adds nothing to the cache, but reads the responses that a search stored there."""
    with (
        scripted(service_of(120)) as service,
        of.connect(service.url, "token", cache=tmp_path / "cache"),
    ):
        of.export_people(tmp_path / "people.csv")
        of.export_people(tmp_path / "people.csv")
        assert pages_asked(service) == [1, 1, 2, 2]
        of.search_people(limit=None)
        service.requests.clear()
        of.export_people(tmp_path / "people.csv")
        assert service.requests == []
        of.export_people(tmp_path / "people.csv", refresh=True)
        assert pages_asked(service) == [1, 2]


def test_the_bar_starts_at_the_stored_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The progress bar has the total, and on resume starts with the stored people."""
    path = tmp_path / "people.csv"
    with stopped_export(path):
        capsys.readouterr()
        of.export_people(path, page_size=10, progress=True)
    shown = capsys.readouterr().err.split("\r")
    first = next(line for line in shown if "/100" in line)
    assert " 0/100" not in first
    assert "100/100" in shown[-1]


def test_a_full_disk_is_an_error(sandbox: Sandbox, tmp_path: Path) -> None:
    """If the disk is full, the error gives advice, and the checkpoint is kept."""
    code = """if True:
        import resource, signal, sys, warnings
        import outreach_frames as of
        of.connect(sys.argv[1], sys.argv[2], cache=None, workers=1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
        try:
            of.export_people(sys.argv[3], page_size=10)
        except of.OutreachError as error:
            print(type(error).__name__, error, *error.__notes__)
    """
    path = tmp_path / "people.csv"
    told = forked.run(code, sandbox.url, sandbox.api_key, path).stdout
    assert told.startswith("InvalidInputError The checkpoint ")
    assert "cannot be written. Free some space" in told
    assert "people are kept in" in told
    with of.connect(sandbox.url, sandbox.api_key, cache=None):
        of.export_people(path, page_size=10)
    assert len(of.read_prospects(path)) == PEOPLE


@pytest.mark.parametrize(
    ("people", "growth"), [(6_000, 95), pytest.param(20_000, 150, marks=pytest.mark.slow)]
)
def test_memory_does_not_grow_with_the_people(tmp_path: Path, people: int, growth: int) -> None:
    """Exports of 60 and 200 MB take a few parts more memory than smaller ones, not all people."""
    code = """if True:
        import resource, sys
        import outreach_frames as of
        of.connect(sys.argv[1], "token", cache=None, workers=1)
        for limit in map(int, sys.argv[3:]):
            of.export_people(f"{sys.argv[2]}/{limit}.csv", limit=limit)
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    """
    with scripted(with_fields(people, lambda _: {"about": "x" * 10_000})) as service:
        # This needs a fresh interpreter: the peak memory of a forked one includes its parent's.
        command = [sys.executable, "-W", "ignore", "-c", code, service.url, tmp_path]
        done = subprocess.run(
            [*command, str(people // 10), str(people)], capture_output=True, text=True, check=True
        )
    print(done.stdout)
    few, many = map(int, done.stdout.split())
    assert many < few + growth


@pytest.mark.parametrize(("options", "again"), [([], 0), (["--no-resume"], 1)])
def test_the_command_line_resumes_an_export(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    again: int,
) -> None:
    """A repeated `export` resumes, as the error says, unless --no-resume is passed."""
    command = ["export", str(tmp_path / "people.csv"), "--page-size", "3", "--refresh"]
    pages: list[int] = []
    is_broken = True

    def reply(request: Received) -> Reply:
        pages.append(request.json["page"])
        return json({}, 401) if is_broken and pages[-1] > 7 else service_of(30)(request)

    with scripted(reply) as service:
        monkeypatch.setenv("OUTREACH_BASE_URL", service.url)
        monkeypatch.setenv("OUTREACH_API_KEY", "token")
        assert main(command) == 1
        lines = capsys.readouterr().err.splitlines()
        assert any("people are kept in" in line for line in lines)
        assert all(line.startswith("outreach-frames: ") for line in lines)
        pages.clear()
        is_broken = False
        assert main([*command, *options]) == 0
    assert pages.count(1) == again
    assert len(of.read_prospects(tmp_path / "people.csv")) == 30
