"""Resuming with a journal after rows or the journal have changed, and a plan's own client."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.leads.sending import memory
from outreach_frames.leads.sending.report import SubmissionReport
from tests import scripted as script
from tests.leads.sending.lead_service import (
    added,
    column,
    connected,
    notes,
    only_posts,
    pairs,
    refused,
    sent,
    serving,
)
from tests.scripted import Received, Reply, scripted

DUMP = Path(__file__).with_name("data") / "journal_8.sql"


def add(frame: pd.DataFrame, client: Client, **options: Any) -> SubmissionReport:
    """Add leads, two at a time."""
    options = {"chunk_size": 2, "progress": False, **options}
    return frame.outreach.add_to_sequence("s1", client=client, **options)


def restore(path: Path) -> None:
    """Restore a journal from its dump."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(DUMP.read_text(encoding="utf-8"))


def emails(*names: str) -> pd.DataFrame:
    """Make leads with addresses of these names."""
    return pd.DataFrame({"email": [f"{name}.x@example.com" for name in names]})


@pytest.mark.parametrize("journal", [None, "j"])
class TestChangedData:
    """Recorded rows whose data differ keep their outcomes, and the details name the fields."""

    pytestmark = pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")

    def test_a_corrected_field_is_named(self, journal: str | None, tmp_path: Path) -> None:
        """A corrected or emptied field of an added row is named, and counted in a warning."""
        frame = emails("a", "b", "c").assign(first_name=["Anna", "Bbo", "Cy"], city="Rome")
        data = ["first_name", "city"]
        options: dict[str, Any] = {"journal": journal and tmp_path / journal, "data": data}
        with serving(added, added) as (service, client):
            add(frame, client, **options)
            frame["first_name"] = ["Anna", "Bob", None]
            with pytest.warns(OutreachWarning, match=r"2 rows have other data.*service itself"):
                report = add(frame, client, **options)
            assert column(report) == ["added"] * 3
            changed = "first_name changed since the row was sent; the service never updates leads."
            assert [changed in detail for detail in column(report, "detail")] == [False, True, True]
            # Only the fields of the call are compared.
            report = add(frame, client, **{**options, "data": ["city"]})
            assert "changed" not in " ".join(column(report, "detail"))
            assert len(sent(service)) == 2

    def test_only_unchanged_rows_are_resent(self, journal: str | None, tmp_path: Path) -> None:
        """`retry_unknown` sends an unknown row only with the data of the first request."""
        first = emails("a", "b").assign(first_name=["Anna", "Bbo"], city="Rome")
        options: dict[str, Any] = {"journal": journal and tmp_path / journal}
        with serving(script.reset(), *[added] * 9) as (service, client):
            add(first, client, data=["first_name"], **options)
            for changes in ({"first_name": "Bob"}, {"first_name": None}, {"city": "Oslo"}):
                report = add(first.assign(**changes), client, data=[*changes], **options)
                assert column(report.retry_unknown()) == ["unknown"] * 2
            assert len(sent(service)) == 1
            detail = column(report.retry_unknown(), "detail")[0]
            assert "Not resent, because the city and first_name changed" in detail
            corrected = first.assign(first_name=["Anna", "Bob"])
            report = add(corrected, client, data=["first_name"], **options).retry_unknown()
            assert column(report) == ["added", "unknown"]
            assert sent(service)[1:] == [["a"]]


class TestLostJournal:
    """After a journal is lost, the next run does not send people again."""

    def test_removed_during_a_run(self, tmp_path: Path) -> None:
        """If the journal is removed during a run, the run ends, and the next run resumes."""
        journal = tmp_path / "j"

        def remove(received: Received) -> Reply:
            journal.unlink()
            return added(received)

        with serving(added, remove, added) as (service, client):
            frame = emails("a", "b", "c", "d", "e", "f")
            with pytest.warns(OutreachWarning, match="removed or replaced during the run"):
                report = add(frame, client, journal=journal)
            assert column(report) == ["added"] * 4 + ["not_sent"] * 2
            assert column(add(frame, client, journal=journal)) == ["added"] * 6
            assert sent(service) == [["a", "b"], ["c", "d"], ["e", "f"]]

    def test_another_working_folder_during_a_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A run's relative path keeps its folder; a path in a new folder sends nobody again."""
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        monkeypatch.chdir(tmp_path / "a")
        name = f"{tmp_path.name}.journal"

        def leave(received: Received) -> Reply:
            os.chdir(tmp_path / "b")
            return script.reset()

        with serving(leave, added) as (service, client):
            report = add(emails("a", "b"), client, journal=name)
            assert column(report.retry_unknown()) == ["added"] * 2
            assert not Path(name).exists()
            assert column(add(emails("a", "b"), client, journal=name)) == ["added"] * 2
            assert len(sent(service)) == 2
        assert column(emails("a", "b").outreach.report(journal=name)) == ["added"] * 2


class TestReplacedJournal:
    """A plan or a report that has used a journal resends nobody without its latest state."""

    def test_missing(self, tmp_path: Path) -> None:
        """A missing file is made again with the records of this process; a dry run makes none."""
        journal = tmp_path / "j"
        with serving(script.reset(), added) as (service, client):
            plan = emails("a", "b").outreach.plan("s1", client=client)
            report = plan.submit(journal=journal, progress=False)
            journal.unlink()
            assert column(plan.submit(journal=journal, dry_run=True)) == ["unknown"] * 2
            assert not journal.exists()
            assert column(plan.submit(journal=journal)) == ["unknown"] * 2
            read = emails("a", "b").outreach.report(journal=journal)
            assert column(read) == ["unknown"] * 2
            journal.unlink()
            assert column(report.retry_unknown()) == ["added"] * 2
            assert sent(service) == [["a", "b"]] * 2
            read = emails("a", "b").outreach.report(journal=journal)
            assert column(read) == ["added"] * 2

    @pytest.mark.parametrize("rows", ["others", "none", "invalid"])
    def test_a_file_that_lacks_records_gets_all(self, tmp_path: Path, rows: str) -> None:
        """Any run with a file first writes to it all that this process knows of the sequence."""
        journal, old = tmp_path / "j", tmp_path / "old"
        with serving(*[added] * 4) as (service, client):
            add(emails("a"), client, journal=journal)
            old.write_bytes(journal.read_bytes())
            add(emails("b", "c"), client, journal=journal)
            add(emails("d"), client)
            old.replace(journal)
            frame = {"others": emails("e"), "none": emails("a"), "invalid": emails("x")}[rows]
            if rows == "invalid":
                frame["email"] = "x@"
            add(frame, client, journal=journal)
            # The file alone, as another process would read it.
            read = emails("a", "b", "c", "d").outreach.report(journal=journal)
            assert column(read) == ["added"] * 4
            posts = len(sent(service))
            again = add(emails("a", "b", "c", "d"), client, journal=journal)
            assert column(again) == ["added"] * 4
            assert len(sent(service)) == posts

    def test_a_copy_that_went_another_way_is_read_whole(self, tmp_path: Path) -> None:
        """A file with as many records as at the last run, but others, is read from its start."""
        journal, copy = tmp_path / "j", tmp_path / "copy"
        with serving(*[added] * 3) as (service, client):
            add(emails("a"), client, journal=journal)
            copy.write_bytes(journal.read_bytes())
            add(emails("b"), client, journal=journal)
            # Another process goes on with the copy.
            known = dict(memory._memories)
            memory.clear()
            add(emails("c"), client, journal=copy)
            memory._memories.clear()
            memory._memories.update(known)
            copy.replace(journal)
            assert column(add(emails("a", "b", "c"), client, journal=journal)) == ["added"] * 3
            assert len(sent(service)) == 3
            read = emails("a", "b", "c").outreach.report(journal=journal)
            assert column(read) == ["added"] * 3


def test_a_stored_journal_is_recognised(tmp_path: Path) -> None:
    """Leads in a stored journal of the current format are recognised."""
    url = "https://profnet.example/"
    rows = [
        ("a2.x@example.com", f"{url}in/a"),
        (None, f"{url}in/b"),
        (None, f"{url}view?id=w"),
        ("d.x@example.com", None),
        ("e.x@example.com", None),
        ("f.x@example.com", None),
        ("g.x@example.com", None),
    ]
    restore(tmp_path / "j")
    frame = pairs(*rows).assign(note="a note")
    frame.loc[3, "note"] = "another note"
    with pytest.warns(OutreachWarning, match="1 row has other data"):
        report = frame.outreach.report(journal=tmp_path / "j", data=["note"])
    others = ["unknown", "recently_contacted", "rejected", "not_sent"]
    assert column(report) == [*["added"] * 3, *others]
    assert "another email" in column(report, "detail")[0]
    assert notes(report)[1:3] == [""] * 2
    assert "note changed since the row was sent" in column(report, "detail")[3]
    assert column(report, "chunk")[:6] == [1, 2, 3, 4, 5, 6]


class TestClient:
    """Plans and reports send with the client that they were made with."""

    def test_another_default_client(self) -> None:
        """A plan is sent to its own service after another client has become the default."""
        with (
            scripted(only_posts([script.reset(), added])) as ours,
            scripted(only_posts([])) as theirs,
            of.connect(ours.url, "token", cache=None),
        ):
            plan = emails("a").outreach.plan("s1")
            with of.connect(theirs.url, "token", cache=None):
                report = plan.submit()
                assert column(report) == ["unknown"]
                assert column(report.retry_unknown()) == ["added"]
            assert sent(theirs) == []

    def test_an_explicit_client_of_another_service(self) -> None:
        """Passing another service's client is an error, and nothing is sent."""
        with (
            scripted(only_posts([script.reset()])) as ours,
            scripted(only_posts([])) as theirs,
            connected(ours) as client,
            connected(theirs) as other,
        ):
            plan = emails("a").outreach.plan("s1", client=client)
            with pytest.raises(InvalidInputError, match=r"is connected to.*Nothing was sent"):
                plan.submit(client=other)
            report = plan.submit()
            with pytest.raises(InvalidInputError, match=r"is connected to.*Nothing was sent"):
                report.retry_unknown(client=other)
            assert sent(theirs) == []


def test_a_second_response_is_ignored(tmp_path: Path) -> None:
    """A second response to one request is not used for the next request."""

    def twice(received: Received) -> Reply:
        reply = added(received)
        return Reply((*reply.parts, 0.1, *reply.parts))

    turns = [twice, lambda received: script.delayed(0.3, refused("brand_new"))]
    with serving(*turns) as (_, client):
        report = add(emails("a", "b", "c", "d"), client)
    assert column(report) == ["added"] * 2 + ["rejected"] * 2
