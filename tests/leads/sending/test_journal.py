"""The journal: what it remembers, what it refuses, and that it never says what is not so."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.leads.sending.journal import Entry, Journal, LeadKeys, is_journal
from outreach_frames.leads.sending.outcome import RowOutcome
from tests.examples import share_of_examples

SUBMISSION = {"service": "https://x.example", "sequence": "a1", "settings": "b2"}
MANY = {row: LeadKeys(f"lead{row}@example.com", None) for row in range(50_000)}
LEADS = {row: LeadKeys(f"lead{row}@example.com", None) for row in range(1000)}
ADDED = RowOutcome("added")


def opened(path: Path, leads: Mapping[int, LeadKeys] = LEADS, **changes: str) -> Journal:
    """Open the journal of the one submission of these tests, or of another one."""
    return Journal(path, SUBMISSION | changes, leads)


def command(code: str, path: Path) -> list[str]:
    """Return how to run a script that gets the journal's path and this submission."""
    return [sys.executable, "-c", textwrap.dedent(code), str(path), repr(SUBMISSION)]


def run(code: str, path: Path) -> str:
    """Run a script in a process of its own; return what it printed."""
    return subprocess.run(
        command(code, path), capture_output=True, text=True, timeout=60, check=False
    ).stdout


@contextmanager
def process(code: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Let a script run beside the test."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command(code, path), stdin=pipe, stdout=pipe, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def limited(path: Path, more_bytes: int, code: str) -> str:
    """Open the journal where no file can grow beyond its size and some bytes; return the output."""
    size = path.stat().st_size if path.exists() else 0
    setup = f"""
import resource, sys
from outreach_frames.leads.sending.journal import Journal, LeadKeys
from outreach_frames.leads.sending.outcome import RowOutcome
resource.setrlimit(resource.RLIMIT_FSIZE, ({size + more_bytes},) * 2)
leads = {{row: LeadKeys(f"lead{{row}}@example.com", None) for row in range(50_000)}}
try:
    with Journal(sys.argv[1], eval(sys.argv[2]), leads) as journal:
        pass
{textwrap.indent(textwrap.dedent(code), " " * 8)}
except Exception as error:
    print(type(error).__name__, error)
"""
    return run(setup, path)


def change(path: Path, statement: str) -> None:
    """Change a journal behind its back."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a journal may be."""
    return tmp_path / "leads.journal"


class TestMemory:
    """What a journal says when it is opened again."""

    def test_a_new_one_is_empty(self, path: Path) -> None:
        """A file that is missing is made, and knows of no row."""
        with opened(path) as journal:
            assert journal.entries == {}
            assert journal.notes == []
        assert path.exists()

    def test_outcomes_and_notes_stay(self, path: Path) -> None:
        """Every field of an outcome, the chunk, the attempts and the notes come back."""
        refused = RowOutcome("rejected", "no phone: ünïcode ✓", "missing_lead_field")
        with opened(path) as journal:
            journal.begin(1, [0, 1])
            journal.finish({0: ADDED, 1: refused}, ["Chunk 1: odd"])
            journal.begin(2, [1])
            journal.finish({1: refused})
        with opened(path) as journal:
            assert journal.entries == {0: Entry(ADDED, 1, 1), 1: Entry(refused, 2, 2)}
            assert journal.notes == ["Chunk 1: odd"]

    def test_what_was_being_sent_is_unknown(self, path: Path) -> None:
        """Rows that were begun and not finished are unknown from the next opening on."""
        with opened(path) as journal:
            journal.begin(1, [3, 4])
            journal.finish({3: ADDED})
        for _ in range(2):
            with opened(path) as journal:
                assert journal.entries[3].outcome == ADDED
                assert journal.entries[4].outcome.status == "unknown"
                assert "while it was being sent" in journal.entries[4].outcome.detail

    def test_any_status_is_kept_as_it_is(self, path: Path) -> None:
        """No status of the service's can be taken for the mark of rows being sent."""
        with opened(path) as journal:
            journal.begin(1, [0, 1])
            journal.finish({0: RowOutcome("sending"), 1: RowOutcome("")})
        with opened(path) as journal:
            assert [journal.entries[row].outcome.status for row in (0, 1)] == ["sending", ""]

    def test_written_down_before_begin_returns(self, path: Path) -> None:
        """What `begin` and `finish` write survives the process that does not live on."""
        code = """
            import os, sys
            from outreach_frames.leads.sending.journal import Journal, LeadKeys
            from outreach_frames.leads.sending.outcome import RowOutcome
            leads = {row: LeadKeys(f"lead{row}@example.com", None) for row in range(1000)}
            journal = Journal(sys.argv[1], eval(sys.argv[2]), leads)
            journal.begin(1, [1, 2])
            journal.finish({1: RowOutcome("added")})
            os.kill(os.getpid(), 9)
        """
        run(code, path)
        with opened(path) as journal:
            assert {row: entry.outcome.status for row, entry in journal.entries.items()} == {
                1: "added",
                2: "unknown",
            }

    def test_no_leads_and_no_token_in_it(self, path: Path) -> None:
        """The tables have no column that could hold a lead, and hashes differ between files."""
        hashes = []
        for name in ("one", "other"):
            with opened(path.with_name(name)) as journal:
                journal.begin(1, range(3))
            assert b"lead1" not in path.with_name(name).read_bytes()
            with closing(sqlite3.connect(path.with_name(name))) as connection:
                hashes += connection.execute("SELECT hash FROM keys").fetchall()
        assert len(set(hashes)) == 6
        opened(path).close()
        with closing(sqlite3.connect(path)) as connection:
            columns = connection.execute(
                "SELECT table_.name, column_.name FROM pragma_table_list AS table_, "
                "pragma_table_info(table_.name) AS column_ WHERE table_.name NOT LIKE 'sqlite_%'"
            ).fetchall()
        assert set(columns) == {
            ("submission", "part"),
            ("submission", "value"),
            ("runs", "run"),
            ("runs", "began_at"),
            ("notes", "note"),
            ("notes", "text"),
            ("salt", "salt"),
            *(("keys", name) for name in ("hash", "kind", "lead")),
            *(
                ("leads", name)
                for name in ("lead", "status", "detail", "error_code", "chunk", "attempts")
            ),
        }


class TestFile:
    """The file, those beside it, and who may read them."""

    def test_for_the_owner_only(self, path: Path) -> None:
        """Whatever the umask, nobody else can read the journal or a file beside it."""
        before = os.umask(0)
        try:
            with opened(path) as journal:
                journal.begin(1, [1])
                names = {each.name for each in path.parent.iterdir()}
                modes = {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
        finally:
            os.umask(before)
        assert names == {"leads.journal", "leads.journal-journal", "leads.journal.lock"}
        assert modes == {0o600}

    def test_a_readable_one_is_closed_again(self, path: Path) -> None:
        """A journal that was copied so that all can read it is made the owner's own."""
        opened(path).close()
        path.chmod(0o644)
        opened(path).close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_complete_in_itself(self, path: Path, tmp_path: Path) -> None:
        """After each transaction a copy of the one file has everything."""
        with opened(path) as journal:
            journal.begin(1, [1])
            journal.finish({1: ADDED})
            (tmp_path / "copy").write_bytes(path.read_bytes())
        with opened(tmp_path / "copy") as copy:
            assert copy.entries == {1: Entry(ADDED, 1, 1)}

    def test_leftovers_of_a_deleted_one(self, path: Path) -> None:
        """A rollback journal of a file that somebody deleted does not get into the new one."""
        with opened(path) as journal:
            journal.begin(1, range(500))
        code = """
            import os, sqlite3, sys
            connection = sqlite3.connect(sys.argv[1], isolation_level=None)
            connection.execute("PRAGMA cache_size = 1")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("UPDATE leads SET detail = hex(randomblob(500))")
            os.kill(os.getpid(), 9)
        """
        run(code, path)
        assert path.with_name("leads.journal-journal").stat().st_size > 0
        path.unlink()
        with opened(path) as journal:
            assert journal.entries == {}

    def test_the_path_may_be_odd(self, tmp_path: Path) -> None:
        """A name that would mean something in an address is just a name."""
        odd = tmp_path / "50% of a?b#c &d.journal"
        with opened(odd) as journal:
            journal.begin(1, [1])
        with opened(odd) as journal:
            assert set(journal.entries) == {1}
        assert odd.exists()


class TestOwners:
    """One run at a time."""

    def test_a_second_one_is_refused(self, path: Path) -> None:
        """While a journal is open, nobody else in this process gets it, and afterwards they do."""
        with opened(path) as journal:
            with pytest.raises(InvalidInputError, match=r"leads\.journal is in use.*Nothing was"):
                opened(path)
            journal.begin(1, [1])
        opened(path).close()

    def test_another_name_is_no_way_in(self, path: Path, tmp_path: Path) -> None:
        """A link to an open journal is the same journal."""
        other = tmp_path / "other"
        with opened(path):
            other.symlink_to(path)
            with pytest.raises(InvalidInputError, match="in use"):
                opened(other)
            other.unlink()
            other.hardlink_to(path)
            with pytest.raises(InvalidInputError, match="in use"):
                opened(other)

    def test_another_process_is_refused(self, path: Path) -> None:
        """Another process is refused at once, and gets it once the first has died."""
        code = """
            import sys
            from outreach_frames.leads.sending.journal import Journal, LeadKeys
            leads = {row: LeadKeys(f"lead{row}@example.com", None) for row in range(1000)}
            journal = Journal(sys.argv[1], eval(sys.argv[2]), leads)
            print("open", flush=True)
            sys.stdin.read()
        """
        with process(code, path) as owner:
            assert owner.stdout is not None
            assert owner.stdout.readline() == "open\n"
            with pytest.raises(InvalidInputError, match="in use"):
                opened(path)
            owner.kill()
            owner.wait()
        opened(path).close()

    def test_another_program_that_reads_it(self, path: Path) -> None:
        """A program that has the file open in the middle of something is waited out by its user."""
        opened(path).close()
        with closing(sqlite3.connect(path, isolation_level=None)) as browser:
            browser.execute("BEGIN")
            browser.execute("SELECT * FROM leads").fetchall()
            with pytest.raises(InvalidInputError, match="in use"):
                opened(path)
        opened(path).close()

    def test_a_look_at_it_takes_no_lock(self, path: Path) -> None:
        """A journal that is told from other files while it is open stays closed to programs."""
        code = """
            import sqlite3, sys
            try:
                sqlite3.connect(sys.argv[1], 0).execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                print(error)
        """
        with closing(opened(path)) as journal:
            journal.begin(1, [0])
            assert is_journal(path)
            with process(code, path) as other:
                assert other.communicate()[0] == "database is locked\n"

    def test_a_failed_opening_lets_go(self, path: Path) -> None:
        """A journal that was refused is not left locked."""
        opened(path).close()
        for _ in range(2):
            with pytest.raises(InvalidInputError, match="other settings"):
                opened(path, settings="d4")
        opened(path).close()


class TestRefused:
    """Files that are not a journal of this submission."""

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"sequence": "x"}, "other sequence. "),
            ({"settings": "x"}, "other settings. "),
            ({"service": "https://y.example"}, "other service. "),
            ({"sequence": "x", "settings": "y"}, "other sequence and settings. "),
            ({"more": "x"}, "other more. "),
        ],
    )
    def test_another_submission(self, path: Path, changes: dict[str, str], said: str) -> None:
        """The journal of another submission is refused, saying what is different, and unchanged."""
        with opened(path) as journal:
            journal.begin(1, [1])
            journal.finish({1: ADDED})
        before = path.read_bytes()
        with pytest.raises(InvalidInputError, match=said) as caught:
            opened(path, **changes)
        assert str(path) in str(caught.value)
        assert "Nothing was sent." in str(caught.value)
        assert path.read_bytes() == before

    @pytest.mark.parametrize(
        "content", [b"", b"x", b"email,name\n" * 500, b"SQLite format 3\0", b"\0" * 4096]
    )
    def test_something_else(self, path: Path, content: bytes) -> None:
        """A file that is something else, or empty, is refused and left as it is."""
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match="not a journal of a submission, or damaged"):
            opened(path)
        assert path.read_bytes() == content

    @pytest.mark.parametrize("mode", ["delete", "wal"])
    def test_a_database_of_something_else(self, path: Path, mode: str) -> None:
        """Another program's database is refused and left as it is."""
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode = {mode}")
            connection.execute("CREATE TABLE entries (position INTEGER)")
        before = path.read_bytes()
        with pytest.raises(InvalidInputError, match="not a journal of a submission"):
            opened(path)
        assert path.read_bytes() == before

    def test_another_format(self, path: Path) -> None:
        """A journal of another version of the package is refused as that."""
        opened(path).close()
        change(path, "PRAGMA user_version = 99")
        with pytest.raises(
            InvalidInputError, match=r"another version of this package \(format 99,"
        ):
            opened(path)

    @pytest.mark.parametrize(
        "damage",
        [
            *(f"DROP TABLE {table}" for table in ("leads", "keys", "salt", "notes", "runs")),
            "ALTER TABLE leads DROP COLUMN attempts",
            "UPDATE keys SET lead = 5000",
            "UPDATE leads SET chunk = 'x'",
            "DELETE FROM salt",
            "UPDATE salt SET salt = 7",
        ],
    )
    def test_another_content(self, path: Path, damage: str) -> None:
        """A journal whose tables or rows cannot be this package's is damaged."""
        with opened(path) as journal:
            journal.begin(1, [1])
        change(path, damage)
        with pytest.raises(InvalidInputError, match=r"is damaged\..*Nothing was sent"):
            opened(path)

    def test_cut_off(self, path: Path) -> None:
        """A journal that was cut off anywhere is refused, and never read in part."""
        with opened(path) as journal:
            for chunk in range(4):
                rows = range(chunk * 250, chunk * 250 + 250)
                journal.begin(chunk, rows)
                journal.finish(dict.fromkeys(rows, RowOutcome("added", "some detail " * 3)))
        whole = path.read_bytes()
        assert len(whole) > 40_000
        for size in [*range(0, len(whole), 4096), 50, 99, 5000, len(whole) - 1]:
            path.write_bytes(whole[:size])
            with pytest.raises(InvalidInputError, match="damaged"):
                opened(path)
        path.write_bytes(whole)
        with opened(path) as journal:
            assert len(journal.entries) == 1000

    def test_overwritten_pages(self, path: Path) -> None:
        """A journal with a page of zeros in it is refused."""
        with opened(path) as journal:
            journal.begin(1, LEADS)
        whole = path.read_bytes()
        for start in range(4096, len(whole), 4096):
            path.write_bytes(whole[:start] + bytes(4096) + whole[start + 4096 :])
            with pytest.raises(InvalidInputError, match="damaged"):
                opened(path)

    def test_a_folder(self, tmp_path: Path) -> None:
        """A folder is refused as one."""
        with pytest.raises(InvalidInputError, match="is a folder"):
            opened(tmp_path)

    def test_no_folder(self, tmp_path: Path) -> None:
        """A folder that is not there is said so, rather than made."""
        with pytest.raises(InvalidInputError, match=r"there is no folder .*missing"):
            opened(tmp_path / "missing" / "leads.journal")
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_a_file(self, tmp_path: Path) -> None:
        """A path through a file is an error of the package."""
        (tmp_path / "file").touch()
        with pytest.raises(InvalidInputError, match="Nothing was sent"):
            opened(tmp_path / "file" / "leads.journal")

    def test_a_circle_of_links(self, path: Path) -> None:
        """A link to itself is an error of the package."""
        path.symlink_to(path)
        with pytest.raises(InvalidInputError, match="Nothing was sent"):
            opened(path)


def test_killed_within_a_commit(path: Path) -> None:
    """A journal whose last commit reached only a part of the file is whole again when opened."""
    opened(path).close()
    killed = f"""
        import os, resource, signal, sys
        from outreach_frames.leads.sending.journal import Journal, LeadKeys
        leads = {{row: LeadKeys(f"lead{{row}}@example.com", None) for row in range(20_000)}}
        journal = Journal(sys.argv[1], {SUBMISSION!r}, leads)
        journal.begin(1, range(10))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        size = os.path.getsize(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        journal.begin(2, range(10, 20_000))
    """
    command = [sys.executable, "-c", textwrap.dedent(killed), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGXFSZ, done.stderr
    assert path.with_name(f"{path.name}-journal").stat().st_size
    with opened(path) as journal:
        assert sorted(journal.entries) == list(range(10))


class TestDisk:
    """A disk that is full, or may not be written to."""

    def test_full_before_anything(self, path: Path) -> None:
        """With no room for a new journal there is none, and the error says what to do."""
        assert "cannot be written" in limited(path, 100, "")
        assert not path.exists()

    def test_full_at_the_opening(self, path: Path) -> None:
        """With no room for the first write, an existing journal is refused unchanged."""
        with opened(path) as journal:
            journal.begin(1, LEADS)
        before = path.read_bytes()
        assert "InvalidInputError" in limited(path, 0, "")
        assert path.read_bytes() == before

    def test_full_in_the_middle(self, path: Path) -> None:
        """A write that fails later is an error of the package; what was written before stays."""
        said = limited(
            path,
            100_000,
            """
            for chunk in range(1000):
                rows = range(chunk * 250, chunk * 250 + 250)
                journal.begin(chunk, rows)
                journal.finish({row: RowOutcome("added", "x" * 50) for row in rows})
                print(chunk)
            """,
        )
        *chunks, error = said.splitlines()
        assert "OutreachError" in error
        assert "cannot be written. Free some space" in error
        with opened(path, MANY) as journal:
            done = [
                row for row, entry in journal.entries.items() if entry.outcome.status == "added"
            ]
        assert len(done) == 250 * len(chunks) > 0

    @pytest.mark.parametrize("moment", ["begin", "finish"])
    def test_deleted_in_the_middle(self, path: Path, moment: str) -> None:
        """A journal that was deleted in mid-run is written again with all it knew; the run ends."""
        with opened(path) as journal:
            journal.begin(1, [1])
            if moment == "begin":
                journal.finish({1: ADDED})
            path.unlink()
            with pytest.raises(OutreachError, match="removed during the run"):
                journal.begin(2, [2]) if moment == "begin" else journal.finish({1: ADDED})
            assert not journal.is_lost
        with opened(path) as journal:
            assert journal.entries == {1: Entry(ADDED, 1, 1)}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_replaced_in_the_middle(self, path: Path) -> None:
        """A journal that was replaced in mid-run is not begun anew: it would know of nobody."""
        with opened(path) as journal:
            journal.begin(1, [1])
            content = path.read_bytes()
            path.unlink()
            path.write_bytes(content)
            with pytest.raises(OutreachError, match=r"replaced.*would be sent again"):
                journal.finish({1: ADDED})
            assert journal.is_lost
        for _ in range(2):
            with pytest.raises(InvalidInputError, match=r"lost.*plan only.*Nothing was sent"):
                opened(path)
            path.unlink(missing_ok=True)

    def test_deleted_with_its_folder(self, tmp_path: Path) -> None:
        """A journal that cannot be written again is not begun anew either."""
        folder = tmp_path / "folder"
        folder.mkdir()
        with opened(folder / "journal") as journal:
            journal.begin(1, [1])
            shutil.rmtree(folder)
            with pytest.raises(OutreachError, match=r"cannot be written again.*sent again"):
                journal.finish({1: ADDED})
            assert journal.is_lost
        folder.mkdir()
        with pytest.raises(InvalidInputError, match="was lost"):
            opened(folder / "journal")


def keys(email: str | None = None, url: str | None = None, *, weak: bool = False) -> LeadKeys:
    """Return what a lead is compared by."""
    return LeadKeys(email, url, not weak)


class TestLeads:
    """Rows that are corrected, added, dropped or reordered between two runs."""

    @staticmethod
    def after(path: Path, **sent: LeadKeys) -> None:
        """Leave a journal that knows these leads, each by its status."""
        with opened(path, dict(enumerate(sent.values()))) as journal:
            journal.begin(1, range(len(sent)))
            journal.finish(dict(enumerate(map(RowOutcome, sent))))

    @staticmethod
    def known(path: Path, *leads: LeadKeys) -> list[str | None]:
        """Return what the journal knows of rows: a status, the number of the same row, or None."""
        with opened(path, dict(enumerate(leads))) as journal:
            return [
                str(journal.duplicates[row])
                if row in journal.duplicates
                else journal.entries[row].outcome.status
                if row in journal.entries
                else None
                for row in range(len(leads))
            ]

    @pytest.mark.parametrize("status", ["added", "recently_contacted", "unknown", "rejected"])
    def test_by_either_key(self, path: Path, status: str) -> None:
        """A lead is known by its address and by its profile, wherever its row is."""
        self.after(path, **{status: keys("a", "u")})
        assert self.known(path, keys("b"), keys("a")) == [None, status]
        assert self.known(path, keys("b", "u"), keys("c", "v")) == [status, None]

    def test_reordered_and_dropped(self, path: Path) -> None:
        """Other rows in another order are what they are."""
        self.after(path, added=keys("a"), in_exclusion_list=keys("b"), rejected=keys("c"))
        assert self.known(path, keys("c"), keys("new"), keys("a")) == ["rejected", None, "added"]

    def test_two_rows_of_one_settled_lead(self, path: Path) -> None:
        """Rows that only the journal can tell to be one person are sent once at the most."""
        for status in ("added", "unknown"):
            place = path.with_name(status)
            self.after(place, **{status: keys("a", "u")})
            assert self.known(place, keys("a"), keys("b", "u")) == [status, "0"]

    def test_a_refused_lead_binds_nobody(self, path: Path) -> None:
        """What was never added does not make one person of two rows."""
        self.after(path, rejected=keys("a", "u"))
        assert self.known(path, keys("b", "u"), keys("a")) == ["rejected", None]
        with opened(path, {0: keys("b", "u"), 1: keys("a")}) as journal:
            journal.begin(2, [0, 1])
            journal.finish({0: ADDED, 1: RowOutcome("rejected")})
        assert self.known(path, keys("a"), keys("b"), keys("x", "u")) == ["rejected", "added", "1"]

    def test_settled_counts_more(self, path: Path) -> None:
        """A row that is two leads is settled where one of them is, and unknown before refused."""
        self.after(path, rejected=keys("a"), unknown=keys("b", "v"), added=keys(None, "u"))
        assert self.known(path, keys("a", "u")) == ["added"]
        assert self.known(path, keys("b", "u")) == ["added"]
        assert self.known(path, keys("a", "v")) == ["unknown"]

    def test_a_weak_url(self, path: Path) -> None:
        """A URL that says little names a lead only where the addresses do not differ."""
        self.after(path, added=keys("a", "w", weak=True), recently_contacted=keys("b"))
        assert self.known(path, keys("c", "w", weak=True)) == [None]
        assert self.known(path, keys(None, "w", weak=True)) == ["added"]
        assert self.known(path, keys("a", "x", weak=True)) == ["added"]
        assert self.known(path, keys("c", "w")) == [None]

    def test_a_weak_url_names_one_lead(self, path: Path) -> None:
        """Of rows with other addresses, one may be the lead that had none."""
        self.after(path, added=keys(None, "w", weak=True))
        rows = [keys("a", "w", weak=True), keys("b", "w", weak=True)]
        assert self.known(path, *rows) == ["added", None]

    def test_attempts_and_chunks_go_on(self, path: Path) -> None:
        """A corrected row's attempts add up, and requests are numbered on."""
        self.after(path, rejected=keys("typo", "u"), added=keys("b"))
        with opened(path, {7: keys("a", "u")}) as journal:
            assert journal.last_chunk == 1
            journal.begin(2, [7])
            journal.finish({7: ADDED})
        with opened(path, {3: keys("a")}) as journal:
            assert journal.entries == {3: Entry(ADDED, 2, 2)}
        assert self.known(path, keys("typo")) == [None]


class TestPaths:
    """Where a journal can be, and that it stays the same one."""

    @pytest.mark.parametrize(
        "odd", ["n\0ul", "x" * 300, "x" * 250, "/".join("x" * 5000), "~nobody-here/j", "", 7, None]
    )
    def test_impossible_ones(self, odd: Any, tmp_path: Path) -> None:
        """A path that cannot be a file's is an error of the package."""
        path = tmp_path / odd if isinstance(odd, str) and odd[:1] != "~" else odd
        with pytest.raises(InvalidInputError, match="Nothing was sent"):
            opened(path)

    def test_a_pipe(self, path: Path) -> None:
        """What is not a regular file is refused, and not waited for."""
        os.mkfifo(path)
        with pytest.raises(InvalidInputError, match=r"not a regular file.*Nothing was sent"):
            opened(path)

    def test_a_relative_path_after_the_working_folder_changed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The same relative path in another folder does not begin a second journal."""
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        monkeypatch.chdir(tmp_path / "a")
        name = f"{tmp_path.name}.journal"
        opened(Path(name)).close()
        monkeypatch.chdir(tmp_path / "b")
        with pytest.raises(InvalidInputError, match=r"working folder has changed.*Nothing was"):
            opened(Path(name))
        opened(tmp_path / "b" / name).close()
        opened(Path(name)).close()


class Resumed(RuleBasedStateMachine):
    """Any order of begin, finish and reopening leaves each row's last word, and no other."""

    @initialize()
    def open(self) -> None:
        """Start with a new file."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "journal"
        self.journal = opened(self.path)
        self.model: dict[int, Entry] = {}
        self.begun: set[int] = set()
        self.number = 0

    @rule(rows=st.sets(st.integers(0, 30), min_size=1))
    def begin(self, rows: set[int]) -> None:
        """Begin any rows."""
        self.number += 1
        self.journal.begin(self.number, rows)
        for row in rows:
            attempts = self.model[row].attempts if row in self.model else 0
            self.model[row] = Entry(RowOutcome("unknown"), self.number, attempts + 1)
        self.begun |= rows

    @precondition(lambda self: self.begun)
    @rule(status=st.sampled_from(["added", "rejected", "unknown", "odd"]), data=st.data())
    def finish(self, status: str, data: st.DataObject) -> None:
        """Finish some of the rows that are begun."""
        rows = data.draw(st.sets(st.sampled_from(sorted(self.begun))))
        self.journal.finish(dict.fromkeys(rows, RowOutcome(status, "said", "code")))
        for row in rows:
            self.model[row] = self.model[row]._replace(outcome=RowOutcome(status, "said", "code"))
        self.begun -= rows

    @rule()
    def reopen(self) -> None:
        """Close and open it again, and compare."""
        self.journal.close()
        self.journal = opened(self.path)
        self.begun.clear()
        assert {row: self.bare(entry) for row, entry in self.journal.entries.items()} == {
            row: self.bare(entry) for row, entry in self.model.items()
        }

    def bare(self, entry: Entry) -> tuple[str, int | None, int]:
        """Leave out the words."""
        return entry.outcome.status, entry.chunk, entry.attempts

    def teardown(self) -> None:
        """Compare once more."""
        if hasattr(self, "journal"):
            self.reopen()
            self.journal.close()
            self.folder.cleanup()


TestResumed = Resumed.TestCase
TestResumed.settings = settings(share_of_examples(0.3), stateful_step_count=15)
