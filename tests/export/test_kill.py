"""An export that is killed again and again is complete in the end, and reads no page twice."""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import signal
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from tests import forked
from tests.resources.search_service import person, result
from tests.scripted import Received, Reply, Service, reset, scripted

pytestmark = pytest.mark.long

PEOPLE = 1_000
FEW = 60
PAGE_SIZE = 20
FORMATS = ["people.csv", "people.parquet", "people"]
# Seconds after which an export has ended for certain, even on a busy machine.
LONG = 60.0


def reply(request: Received, there: int = PEOPLE) -> Reply:
    """Reply with people who have an undocumented field from the middle on."""
    if not request.body:
        return reset()  # whoever asked was killed
    size, page = request.json["page_size"], request.json["page"]
    chosen = range((page - 1) * size + 1, min(page * size, there) + 1)
    people: list[dict[str, Any]] = [
        person(number)
        | {"about": "x" * 2_000, "experiences": [{"title": 'Head, of "things"\n'}]}
        | ({"late": number} if number > there / 2 else {})
        for number in chosen
    ]
    return result(people, page=page, total=there, total_pages=-(-there // size))


EXPORT = """
import os, signal, sys, warnings
import outreach_frames as of
from outreach_frames.client.client import Client

url, path, operation = sys.argv[1:]
count = 0

def kill(event, _):
    global count
    if event in {"os.rename", "os.remove", "os.rmdir"}:
        count += 1
        if count == int(operation):
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(kill)
warnings.simplefilter("ignore")
with Client(url, "token", cache=None) as client:
    of.export_people(path, page_size=20, client=client, progress=False)
"""


def run(url: str, path: Path, delay: float = LONG, operation: int = 0) -> str:
    """Export, kill after some seconds or before a file operation, and return how it ended."""
    process = forked.Process(EXPORT, url, path, operation)

    def kill() -> None:
        with suppress(ProcessLookupError):
            process.kill()

    killing = threading.Timer(delay, kill)
    killing.start()
    code = process.wait()
    killing.cancel()
    killing.join()
    assert code in (0, -signal.SIGKILL), code
    return "killed" if code else "ended"


def pages_kept(path: Path) -> int:
    """Return the last page in an export's journal."""
    folder = path.with_name(f".{path.name}.partial")
    if not (folder / "journal.sqlite").exists():
        return 0  # killed before the first page, or after the end
    with tempfile.TemporaryDirectory() as copy:
        # A copy, because opening it would mend what the export itself has to mend.
        for file in folder.glob("journal.sqlite*"):
            shutil.copy(file, copy)
        return last_page(Path(copy) / "journal.sqlite")


def last_page(journal: Path) -> int:
    """Return the last page in a journal."""
    with closing(sqlite3.connect(journal)) as connection:
        try:
            query = "SELECT state FROM parts ORDER BY number DESC LIMIT 1"
            row = connection.execute(query).fetchone()
        except sqlite3.OperationalError:
            return 0  # killed before the journal was made
    return sum(search["page"] for search in json.loads(row[0])["progress"]) if row else 0


def hear_all(service: Service) -> None:
    """Wait until the service has read all requests of killed processes."""
    host, _, port = service.url.removeprefix("http://").partition(":")
    # It takes connections in turn: once it replies to this one, it has all those before.
    with socket.create_connection((host, int(port))) as connection, suppress(ConnectionError):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.recv(1)
    deadline = time.monotonic() + LONG
    while service.open_sockets and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not service.open_sockets


def export_with_kills(service: Service, path: Path, rng: random.Random, most: int) -> int:
    """Export to a path, killing up to `most` runs, and return the number of killed runs."""
    kills = 0
    while True:
        kept = pages_kept(path)
        hear_all(service)
        service.requests.clear()
        ended = run(service.url, path, rng.uniform(0.005, 0.35) if kills < most else LONG)
        asked = [request.json["page"] for request in service.requests if request.body]
        assert all(page > kept for page in asked), (kept, asked)
        if ended == "ended":
            return kills
        # Whatever moment it was: no file under the name, or the whole one.
        assert not path.exists() or len(of.read_prospects(path)) == PEOPLE
        kills += 1


@pytest.mark.parametrize(
    "kills", [2, pytest.param(400, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])]
)
def test_killed_at_any_moment(kills: int, tmp_path: Path) -> None:
    """In every format the result is that of one run, and no stored page is requested again."""
    seed = int(os.environ.get("KILL_SEED", secrets.randbits(32)))
    print(f"To see this again: KILL_SEED={seed}")
    rng = random.Random(seed)
    with scripted(reply) as service:
        with Client(service.url, "token", cache=None) as client:
            expected = of.search_people(limit=None, page_size=PAGE_SIZE, client=client)
        assert expected["late"].notna().sum() == PEOPLE / 2
        done, number = 0, rng.randrange(len(FORMATS))
        while done < kills:
            folder = tmp_path / str(number)
            folder.mkdir()
            path = folder / FORMATS[number % len(FORMATS)]
            most = min(5, max(1, kills // len(FORMATS)), kills - done)
            done += export_with_kills(service, path, rng, most)
            frame = of.read_prospects(path)
            pd.testing.assert_frame_equal(frame, expected, check_flags=False)
            notes = [f"{path.name}-metadata.json"] if path.suffix == ".csv" else []
            assert sorted(left.name for left in folder.iterdir()) == [path.name, *notes]
            number += 1
    print(f"{done} kills of {number} exports")


@pytest.fixture(scope="module")
def few() -> Iterator[Service]:
    """Serve a few people."""
    with scripted(partial(reply, there=FEW)) as service:
        yield service


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FORMATS)
def test_killed_before_each_file_operation(
    few: Service, name: str, step: int, tmp_path: Path
) -> None:
    """Wherever the end of an export is interrupted, no stored page is requested again."""
    # Four operations make the journal; the fifth is that of an export that has read all.
    (tmp_path / "read").mkdir()
    assert run(few.url, tmp_path / "read" / name, operation=5) == "killed"
    assert pages_kept(tmp_path / "read" / name) == FEW / PAGE_SIZE
    # With steps, each format is killed at other operations than the next one.
    operation, ended = 2 * FORMATS.index(name) % step + 1 - step, "killed"
    while ended == "killed":
        operation += step
        path = shutil.copytree(tmp_path / "read", tmp_path / str(operation)) / name
        ended = run(few.url, path, operation=operation)
        kept = pages_kept(path)
        assert kept or len(of.read_prospects(path)) == FEW
        few.requests.clear()
        assert run(few.url, path) == "ended"
        asked = [request.json["page"] for request in few.requests if request.body]
        assert all(page > kept for page in asked), (operation, kept, asked)
        assert len(of.read_prospects(path)) == FEW
    assert operation > 3
