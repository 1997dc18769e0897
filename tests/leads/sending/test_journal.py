"""Tests of the journal: its records, its locks, and the files that it rejects."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import textwrap
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from msgspec.structs import replace

from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.sending.events import Entry
from outreach_frames.leads.sending.journal import Journal
from outreach_frames.leads.sending.journal_file import SequenceAddress, locate
from outreach_frames.leads.sending.memory import Memory
from outreach_frames.leads.sending.outcome import RowOutcome, without_messages
from tests import forked

SEQUENCE = SequenceAddress("https://x.example", "a1")
ADDED = RowOutcome("added")
NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
SETUP = f"""
import os, resource, signal, sys
from datetime import UTC, datetime
import pandas as pd
from outreach_frames.leads.plan import make_plan
from outreach_frames.leads.sending.journal import Journal
from outreach_frames.leads.sending.journal_file import SequenceAddress, locate
from outreach_frames.leads.sending.memory import Memory
from outreach_frames.leads.sending.outcome import RowOutcome

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)

def opened(rows):
    emails = [f"lead{{row}}@example.com" for row in range(rows)]
    plan = make_plan(pd.DataFrame({{"email": emails}}), "s1")
    memory, place = Memory("https://x.example", "a1"), locate(sys.argv[1])
    return Journal(plan, memory, place, {SEQUENCE!r})
"""


def leads(rows: int) -> SubmissionPlan:
    """Plan a number of rows."""
    emails = [f"lead{row}@example.com" for row in range(rows)]
    return make_plan(pd.DataFrame({"email": emails}), "s1")


LEADS = leads(1000)


def opened(
    path: Path,
    plan: SubmissionPlan = LEADS,
    *,
    again: bool = False,
    memory: Memory | None = None,
    sequence: SequenceAddress = SEQUENCE,
) -> Journal:
    """Open the journal of these tests' sequence, or of another one."""
    # A new process has an empty memory.
    memory = memory or Memory("https://x.example", "a1")
    return Journal(plan, memory, locate(path), sequence, resend_unknown=again)


def entries_of(path: Path, plan: SubmissionPlan = LEADS) -> dict[int, Entry]:
    """Return the recorded entries of a plan's rows."""
    with opened(path, plan) as journal:
        return untimed(journal, with_refused=True)


def untimed(journal: Journal, *, with_refused: bool = False) -> dict[int, Entry]:
    """Return the entries without their times."""
    return {
        row: replace(entry, sent_at=None, is_earlier=False)
        for row, entry in journal.entries(with_refused=with_refused).items()
    }


def script(code: str) -> str:
    """Return a script that receives the journal's path."""
    return SETUP + textwrap.dedent(code)


def run(code: str, path: Path) -> str:
    """Run a script in a separate process; return its output."""
    return forked.run(script(code), path).stdout


@contextmanager
def process(code: str, path: Path) -> Iterator[forked.Process]:
    """Run a script in a process parallel to the test."""
    with forked.Process(script(code), path, stdout=subprocess.PIPE) as running:
        try:
            yield running
        finally:
            running.kill()


def limited(path: Path, more_bytes: int, code: str) -> str:
    """Open the journal in a process with a limited file size; return the output."""
    size = path.stat().st_size if path.exists() else 0
    setup = f"""
resource.setrlimit(resource.RLIMIT_FSIZE, ({size + more_bytes},) * 2)
try:
    with opened(50_000) as journal:
        pass
{textwrap.indent(textwrap.dedent(code), " " * 8)}
except Exception as error:
    print(type(error).__name__, error)
"""
    return run(setup, path)


def change(path: Path, statement: str) -> None:
    """Change a journal with SQLite, without the package."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a path for a journal."""
    return tmp_path / "leads.journal"


@pytest.mark.long
class TestRecords:
    """A reopened journal has its earlier records."""

    def test_outcomes_are_restored(self, path: Path) -> None:
        """Outcomes, chunks and attempts are restored from the file."""
        refused = RowOutcome("rejected", "no phone: ünïcode ✓", "missing_lead_field")
        with opened(path) as journal:
            journal.begin(1, [0, 1], NOW)
            journal.finish({0: ADDED, 1: refused})
            journal.begin(2, [1], NOW)
            journal.finish({1: refused})
        with opened(path) as journal:
            assert untimed(journal, with_refused=True) == {
                0: Entry(ADDED, 1, 1),
                1: Entry(without_messages(refused), 2, 2),
            }
            assert untimed(journal).keys() == {0}
            assert journal.resumption.rows.tolist() == list(range(1, 1000))
            assert journal.last_chunk == 2

    def test_no_leads_and_no_token_in_it(self, path: Path) -> None:
        """A journal holds only keyed hashes, equal in all files of a sequence and nowhere else."""
        certain, weak = "https://profnet.example/in/lead1", "https://profnet.example/view?id=lead1"
        rows = [("lead1@example.com", certain, "lead1"), (None, weak, None)]
        frame = pd.DataFrame(rows, columns=["email", "profnet_url", "note"], dtype="object")
        hashes: list[set[bytes]] = []
        for name, sequence_id in (("one", "a1"), ("same", "a1"), ("other", "a2")):
            plan, place = make_plan(frame, sequence_id, data=["note"]), path.with_name(name)
            with opened(place, plan, sequence=SEQUENCE._replace(sequence=sequence_id)) as journal:
                journal.begin(1, [0, 1], NOW)
            assert b"lead1" not in place.read_bytes()
            with closing(sqlite3.connect(place)) as connection:
                ((record,),) = connection.execute("SELECT record FROM records")
            # MessagePack marks 16 bytes with these two bytes.
            hashes.append({*re.findall(rb"(?s)\xc4\x10(.{16})", record)})
        # The email is sent as it is compared, and so is the weak URL; zeros are no text.
        assert len(hashes[0]) == 1 + 2 + 1 + 2
        assert hashes[0] == hashes[1]
        assert hashes[0] & hashes[2] == {bytes(16)}

    def test_the_time_of_sending(self, path: Path) -> None:
        """Each lead has the time of its first request that may have arrived."""
        with opened(path) as journal:
            journal.begin(1, [0, 1], NOW)
            journal.finish({0: RowOutcome("rejected"), 1: RowOutcome("unknown")})
        later = NOW + timedelta(hours=1)
        for row, again in enumerate((False, True)):
            with opened(path, again=again) as journal:
                journal.begin(2, [row], later)
                journal.finish({row: ADDED})
        with opened(path) as journal:
            assert [journal.entries()[row].sent_at for row in (0, 1)] == [later, NOW]


class TestFile:
    """The journal's file, the files beside it, and their permissions."""

    def test_permissions(self, path: Path) -> None:
        """No other user can read the journal or files beside it, even if it was readable."""
        before = os.umask(0)
        try:
            with opened(path) as journal:
                journal.begin(1, [1], NOW)
                names = {each.name for each in path.parent.iterdir()}
                modes = {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
        finally:
            os.umask(before)
        assert names == {"leads.journal", "leads.journal-journal", "leads.journal.lock"}
        assert modes == {0o600}
        opened(path).close()
        path.chmod(0o644)
        opened(path).close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_rollback_journal_of_a_deleted_file(self, path: Path) -> None:
        """A deleted file's rollback journal is not applied to a new file."""
        with opened(path) as journal:
            journal.begin(1, range(500), NOW)
        code = """
            import sqlite3
            connection = sqlite3.connect(sys.argv[1], isolation_level=None)
            connection.execute("PRAGMA cache_size = 1")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("UPDATE records SET record = randomblob(500)")
            os.kill(os.getpid(), 9)
        """
        run(code, path)
        assert path.with_name("leads.journal-journal").stat().st_size > 0
        path.unlink()
        assert entries_of(path) == {}

    def test_special_characters_in_a_path(self, tmp_path: Path) -> None:
        """A file name may contain characters that are special in a URL."""
        odd = tmp_path / "50% of a?b#c &d.journal"
        with opened(odd) as journal:
            journal.begin(1, [1], NOW)
        assert set(entries_of(odd)) == {1}
        assert odd.exists()


@pytest.mark.long
class TestLocks:
    """Only one run at a time may open a journal."""

    def test_in_the_same_process(self, path: Path, tmp_path: Path) -> None:
        """An open journal is locked in this process, also by a link, until it is closed."""
        links = tmp_path / "soft", tmp_path / "hard"
        with opened(path) as journal:
            links[0].symlink_to(path)
            links[1].hardlink_to(path)
            for other in (path, *links):
                with pytest.raises(InvalidInputError, match=r"is in use.*Nothing was"):
                    opened(other)
            journal.begin(1, [1], NOW)
        opened(path).close()

    def test_in_another_process(self, path: Path) -> None:
        """Another process can open a journal only after the first process has ended."""
        code = """
            journal = opened(1000)
            print("open", flush=True)
            signal.pause()
        """
        with process(code, path) as owner:
            assert owner.stdout is not None
            assert owner.stdout.readline() == "open\n"
            with pytest.raises(InvalidInputError, match="in use"):
                opened(path)
            owner.kill()
            owner.wait()
        opened(path).close()

    def test_while_another_program_reads(self, path: Path) -> None:
        """A file that another program is reading is rejected as in use."""
        opened(path).close()
        with closing(sqlite3.connect(path, isolation_level=None)) as browser:
            browser.execute("BEGIN")
            browser.execute("SELECT * FROM records").fetchall()
            with pytest.raises(InvalidInputError, match="in use"):
                opened(path)
        opened(path).close()

    def test_a_rejected_journal_is_unlocked(self, path: Path) -> None:
        """A journal of another sequence or service is rejected, unchanged, and stays unlocked."""
        opened(path).close()
        before = path.read_bytes()
        for other in (SEQUENCE._replace(sequence="d4"), SequenceAddress("https://y.example", "a1")):
            with pytest.raises(InvalidInputError, match=r"different submission.*Nothing was sent"):
                opened(path, sequence=other)
        assert path.read_bytes() == before
        opened(path).close()


class TestRejected:
    """Files that are not a journal of this submission are rejected."""

    @pytest.mark.parametrize(
        "content",
        ["another format", "delete", "wal", b"", b"email,name\n" * 500, b"SQLite format 3\0"],
    )
    def test_another_file(self, path: Path, content: bytes | str) -> None:
        """A file that is not a journal, such as another database, is rejected and unchanged."""
        words = "not a journal of a submission"
        if content == "another format":
            opened(path).close()
            change(path, "PRAGMA user_version = 7")
            words = r"another version of this package \(format 7, not 8\).*Nothing was sent"
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            change(path, f"PRAGMA journal_mode = {content}")
            change(path, "CREATE TABLE entries (position INTEGER)")
        before = path.read_bytes()
        with pytest.raises(InvalidInputError, match=words):
            opened(path)
        assert path.read_bytes() == before

    @pytest.mark.parametrize(
        ("odd", "words"),
        [
            (".", "is a folder"),
            ("missing/j", r"the folder .*missing does not exist"),
            ("file/j", ""),
            ("loop", ""),
            ("pipe", "not a regular file"),
            ("n\0ul", ""),
            ("x" * 250, ""),
            ("/".join("x" * 5000), ""),
            ("~nobody-here/j", ""),
            (7, ""),
            (None, ""),
        ],
    )
    def test_invalid_paths(self, odd: Any, words: str, tmp_path: Path) -> None:
        """A path that cannot be a file raises the package's error; no folder is created."""
        (tmp_path / "file").touch()
        (tmp_path / "loop").symlink_to("loop")
        os.mkfifo(tmp_path / "pipe")
        path = tmp_path / odd if isinstance(odd, str) and odd[:1] != "~" else odd
        with pytest.raises(InvalidInputError, match=rf"{words}.*Nothing was sent"):
            opened(path)
        assert not (tmp_path / "missing").exists()

    @pytest.mark.parametrize(
        "damage",
        [
            *(f"DROP TABLE {table}" for table in ("records", "header")),
            "ALTER TABLE records DROP COLUMN checksum",
            "UPDATE records SET number = number * 10",
            "UPDATE records SET number = -number",
            "UPDATE records SET record = zeroblob(length(record))",
            "UPDATE records SET record = 7",
            "UPDATE records SET checksum = checksum + 1",
            *(f"DELETE FROM records WHERE number = {number}" for number in (1, 2, 3)),
            "DELETE FROM records",
            "INSERT INTO records VALUES (4, x'90', 0)",
            "DELETE FROM header",
            "INSERT INTO header SELECT * FROM header",
            "UPDATE header SET records = records - 1",
            "UPDATE header SET checksum = 7",
            "UPDATE header SET sequence = x'80'",
            "UPDATE header SET sequence = 'odd'",
        ],
    )
    def test_invalid_content(self, path: Path, damage: str) -> None:
        """A journal with changed, missing or additional records is rejected as damaged."""
        with opened(path) as journal:
            journal.begin(1, [1], NOW)
            journal.finish({1: ADDED})
            journal.begin(2, [2], NOW)
        change(path, damage)
        with pytest.raises(InvalidInputError, match=r"is damaged\..*Nothing was sent"):
            entries_of(path)

    def test_lost_pages(self, path: Path) -> None:
        """A journal that is truncated, or has a page of zeros, is rejected as damaged."""
        with opened(path) as journal:
            for chunk in range(4):
                rows = range(chunk * 250, chunk * 250 + 250)
                journal.begin(chunk, rows, NOW)
                journal.finish(dict.fromkeys(rows, RowOutcome("added", "some detail " * 3)))
        whole = path.read_bytes()
        assert len(whole) > 40_000
        starts = range(0, len(whole), 4096)
        damaged = [whole[:size] for size in [*starts, 50, 99, 5000, len(whole) - 1]]
        damaged += [whole[:at] + bytes(4096) + whole[at + 4096 :] for at in starts[1:]]
        for content in damaged:
            path.write_bytes(content)
            with pytest.raises(InvalidInputError, match="damaged"):
                opened(path)
        path.write_bytes(whole)
        assert len(entries_of(path)) == 1000


@pytest.mark.long
def test_killed_during_a_commit(path: Path) -> None:
    """Opening a journal rolls back a commit that a kill interrupted."""
    opened(path).close()
    killed = """
        journal = opened(20_000)
        journal.begin(1, range(10), NOW)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        size = os.path.getsize(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        journal.begin(2, range(10, 20_000), NOW)
    """
    done = forked.run(script(killed), path)
    assert done.returncode == -signal.SIGXFSZ, done.stderr
    assert path.with_name(f"{path.name}-journal").stat().st_size
    assert sorted(entries_of(path)) == list(range(10))


@pytest.mark.long
class TestDisk:
    """Failed writes, and files that are deleted or replaced during a run."""

    def test_full_at_creation(self, path: Path) -> None:
        """A new journal that cannot be written raises an error and leaves no file."""
        assert "cannot be written" in limited(path, 100, "")
        assert not path.exists()

    def test_full_at_opening(self, path: Path) -> None:
        """An existing journal is rejected unchanged if its first write fails."""
        with opened(path) as journal:
            journal.begin(1, range(1000), NOW)
        before = path.read_bytes()
        assert "InvalidInputError" in limited(path, 100 - len(before), "")
        assert path.read_bytes() == before

    def test_full_during_a_run(self, path: Path) -> None:
        """A later write that fails raises the package's error, and earlier records stay."""
        said = limited(
            path,
            100_000,
            """
            for chunk in range(1000):
                rows = range(chunk * 250, chunk * 250 + 250)
                journal.begin(chunk, rows, NOW)
                journal.finish({row: RowOutcome("added", "x" * 50) for row in rows})
                print(chunk)
            """,
        )
        *chunks, error = said.splitlines()
        assert "OutreachError" in error
        assert "cannot be written. Free some space" in error
        entries = entries_of(path, leads(50_000))
        done = [row for row, entry in entries.items() if entry.outcome.status == "added"]
        assert len(done) == 250 * len(chunks) > 0

    @pytest.mark.parametrize("moment", ["begin", "finish"])
    @pytest.mark.parametrize("loss", ["deleted", "replaced", "with its folder"])
    def test_lost_during_a_run(self, tmp_path: Path, moment: str, loss: str) -> None:
        """A run ends if its journal is deleted or replaced, and the memory has the outcomes."""
        folder = tmp_path / "folder"
        folder.mkdir()
        path, memory = folder / "journal", Memory("https://x.example", "a1")
        with opened(path, memory=memory) as journal:
            journal.begin(1, [1], NOW)
            if moment == "begin":
                journal.finish({1: ADDED})
            content = path.read_bytes()
            shutil.rmtree(folder)
            if loss != "with its folder":
                folder.mkdir()
            if loss == "replaced":
                path.write_bytes(content)
            with pytest.raises(OutreachError, match=r"removed or replaced.*submit again"):
                journal.begin(2, [2], NOW) if moment == "begin" else journal.finish({1: ADDED})
        folder.mkdir(exist_ok=True)
        with opened(path, memory=memory) as journal:
            assert journal.entries()[1].outcome.status == "added"
        assert entries_of(path) == {1: Entry(ADDED, 1, 1)}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


Row = tuple[str | None, str | None]


def planned(*rows: Row) -> SubmissionPlan:
    """Plan rows that are pairs of address and profile."""
    frame = pd.DataFrame(rows, columns=["email", "profnet_url"], dtype="object")
    return make_plan(frame, "s1")


def test_a_row_that_matches_two_leads(path: Path) -> None:
    """A row that matches two leads has the email's outcome, unless the other lead was added."""
    a, b = "a@x.example", "b@x.example"
    u, v = "https://profnet.example/in/u", "https://profnet.example/in/v"
    with opened(path, planned((a, None), (b, v), (None, u))) as journal:
        journal.begin(1, range(3), NOW)
        journal.finish(dict(enumerate(map(RowOutcome, ["rejected", "unknown", "added"]))))
    place = locate(path)
    for row, status in [((a, u), "added"), ((b, u), "unknown"), ((a, v), "unknown")]:
        with Journal(
            planned(row), Memory("https://x.example", "a1"), place, SEQUENCE, dry_run=True
        ) as journal:
            assert journal.entries()[0].outcome.status == status


def test_attempts_and_chunks_continue(path: Path) -> None:
    """Attempts of an unchanged row add up, a corrected row is a new lead; chunks continue."""
    profile = "https://profnet.example/in/u"
    typo, added = ("typo@x.example", profile), ("b@x.example", None)
    with opened(path, planned(typo, added)) as journal:
        journal.begin(1, [0, 1], NOW)
        journal.finish({0: RowOutcome("rejected"), 1: ADDED})
    with opened(path, planned(("c@x.example", None), typo)) as journal:
        assert journal.last_chunk == 1
        journal.begin(2, [1], NOW)
        journal.finish({1: RowOutcome("rejected")})
    corrected = planned(("a@x.example", profile))
    assert entries_of(path, planned(typo)) == {0: Entry(RowOutcome("rejected"), 2, 2)}
    assert entries_of(path, corrected) == {}
    with opened(path, corrected) as journal:
        journal.begin(3, [0], NOW)
        journal.finish({0: ADDED})
    assert entries_of(path, corrected) == {0: Entry(ADDED, 3, 1)}
    # The refused request's email still identifies nobody.
    assert entries_of(path, planned(("typo@x.example", None))) == {}
