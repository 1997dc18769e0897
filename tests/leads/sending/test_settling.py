"""Going on with a journal after rows have changed, and where a plan goes."""

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
from outreach_frames.errors import InvalidInputError, OutreachError, OutreachWarning
from outreach_frames.leads.sending.report import SubmissionReport
from tests import scripted as script
from tests.leads.sending.data.make_journal_1 import ROWS
from tests.leads.sending.lead_service import added, connected, only_posts, sent
from tests.scripted import Received, Reply, Service, scripted

DUMPS = Path(__file__).with_name("data")


def add(frame: pd.DataFrame, client: Client, **options: Any) -> SubmissionReport:
    """Add leads, two at a time."""
    options = {"chunk_size": 2, "progress": False, **options}
    return frame.outreach.add_to_sequence("s1", client=client, **options)


def restore(name: str, path: Path, service: Service) -> None:
    """Make the journal of which there is a dump."""
    with closing(sqlite3.connect(path)) as connection:
        dump = (DUMPS / name).read_text(encoding="utf-8")
        connection.executescript(dump.replace("{service}", service.url))


def column(report: SubmissionReport, name: str = "status") -> list[Any]:
    """Return a column of a report's rows."""
    return report.rows[name].tolist()


def emails(*names: str) -> pd.DataFrame:
    """Make leads of these names."""
    return pd.DataFrame({"email": [f"{name}.x@example.com" for name in names]})


class TestCorrectedRows:
    """Fixing what failed and running again with the same journal is safe."""

    def test_failed_rows_from_their_file(self, tmp_path: Path) -> None:
        """The rows of failed.csv, corrected, are sent; nobody whom the service has is."""
        odd = script.json({"error": "odd"}, 400)
        turns = [added, odd, script.reset(), added]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            frame = emails("a", "b", "typo", "d", "e", "f", "x")
            frame.loc[6, "email"] = "xexample.com"
            first = add(frame, client, journal=tmp_path / "j")
            assert column(first) == ["added"] * 2 + ["rejected"] * 2 + ["unknown"] * 2 + ["invalid"]
            first.to_csv(tmp_path)
            failed = of.read_prospects(tmp_path / "failed.csv")
            failed["email"] = failed["email"].replace(
                {"typo.x@example.com": "c.x@example.com", "xexample.com": "g.x@example.com"}
            )
            again = add(failed[["email"]], client, journal=tmp_path / "j", chunk_size=3)
            assert column(again) == ["added"] * 2 + ["unknown"] * 2 + ["added"]
            assert sent(service)[-1] == ["c", "d", "g"]

    def test_added_and_reordered_rows(self, tmp_path: Path) -> None:
        """A frame that has grown and was sorted is settled by lead."""
        with scripted(only_posts([added, added])) as service, connected(service) as client:
            add(emails("b", "d"), client, journal=tmp_path / "j")
            report = add(emails("a", "b", "c", "D"), client, journal=tmp_path / "j")
        assert column(report) == ["added"] * 4
        assert column(report, "chunk") == [2, 1, 2, 1]
        assert sent(service)[1:] == [["a", "c"]]

    def test_after_a_new_token(self, tmp_path: Path) -> None:
        """A journal is not bound to the token: after a 401 the cure is a new one."""
        turns = [added, script.json({"error": "who?"}, 401), added]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            plan = emails("a", "b", "c").outreach.plan("s1", chunk_size=2, client=client)
            assert column(plan.submit(journal=tmp_path / "j"))[2] == "not_sent"
            with Client(service.url, "new-token", cache=None) as other:
                report = add(emails("a", "b", "c"), other, journal=tmp_path / "j")
        assert column(report) == ["added"] * 3
        assert service.requests[-1].headers["Authorization"] == "Bearer new-token"

    def test_one_person_in_two_rows(self, tmp_path: Path) -> None:
        """Rows that only the journal knows to be one person are never both sent."""
        frame = pd.DataFrame(
            {"email": ["a@example.com"], "profnet_url": ["https://profnet.example/in/a"]}
        )
        apart = pd.DataFrame(
            {
                "email": ["a@example.com", None],
                "profnet_url": [None, "https://de.profnet.example/in/a/"],
            }
        )
        with scripted(only_posts([script.reset(), added])) as service, connected(service) as client:
            add(frame, client, journal=tmp_path / "j")
            report = add(apart, client, journal=tmp_path / "j")
            assert column(report) == ["unknown", "duplicate_in_frame"]
            assert column(report.retry_unknown()) == ["added", "duplicate_in_frame"]
            assert len(sent(service)) == 2


class TestLostJournal:
    """A journal that goes away must not make the next run send everybody again."""

    def test_removed_in_mid_run(self, tmp_path: Path) -> None:
        """The run ends, the journal is there again, and the same call sends only the rest."""
        journal = tmp_path / "j"

        def remove(received: Received) -> Reply:
            journal.unlink()
            return added(received)

        with scripted(only_posts([added, remove, added])) as service, connected(service) as client:
            frame = emails("a", "b", "c", "d", "e", "f")
            with pytest.warns(OutreachWarning, match="removed during the run"):
                report = add(frame, client, journal=journal)
            assert column(report) == ["added"] * 4 + ["not_sent"] * 2
            assert column(add(frame, client, journal=journal)) == ["added"] * 6
            assert sent(service) == [["a", "b"], ["c", "d"], ["e", "f"]]

    def test_replaced_in_mid_run(self, tmp_path: Path) -> None:
        """The advice is not to submit again with that journal, and doing so sends nothing."""
        journal = tmp_path / "j"

        def replace(received: Received) -> Reply:
            journal.rename(tmp_path / "moved")
            journal.write_text("mine")
            return added(received)

        with scripted(only_posts([replace])) as service, connected(service) as client:
            with pytest.warns(OutreachWarning, match="plan only") as caught:
                report = add(emails("a", "b", "c"), client, journal=journal)
            assert "same journal" not in str(caught[0].message)
            assert column(report) == ["added"] * 2 + ["not_sent"]
            journal.unlink()
            with pytest.raises(InvalidInputError, match=r"lost.*Nothing was sent"):
                add(emails("a", "b", "c"), client, journal=journal)
            assert len(sent(service)) == 1

    def test_another_working_folder_in_mid_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A relative path means the folder in which it was given, in retries too."""
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        monkeypatch.chdir(tmp_path / "a")
        name = f"{tmp_path.name}.journal"

        def leave(received: Received) -> Reply:
            os.chdir(tmp_path / "b")
            return script.reset()

        with scripted(only_posts([leave, added])) as service, connected(service) as client:
            report = add(emails("a", "b"), client, journal=name)
            assert column(report.retry_unknown()) == ["added"] * 2
            with pytest.raises(InvalidInputError, match=r"working folder.*Nothing was sent"):
                add(emails("a", "b"), client, journal=name)
        assert list((tmp_path / "b").iterdir()) == []


def test_a_journal_on_disk_is_understood_for_good(tmp_path: Path) -> None:
    """Whom a journal of today's format knows is known whatever becomes of hashes and settings."""
    frame = emails("a", "b", "c", "d")
    frame.loc[1, "email"] = None
    frame["profnet_url"] = [None, "https://profnet.example/in/b", None, None]
    with scripted(only_posts([added])) as service, connected(service) as client:
        restore("journal_2.sql", tmp_path / "j", service)
        report = add(frame, client, journal=tmp_path / "j")
        assert column(report) == ["added"] * 3 + ["unknown"]
        assert sent(service) == [["c"]]


class TestFormerFormat:
    """Journals that the former version made, which knows rows by their position."""

    @staticmethod
    def resumed(frame: pd.DataFrame, client: Client, path: Path) -> SubmissionReport:
        """Submit as the former version did."""
        return add(frame, client, data=["city"], journal=path)

    def test_goes_on_with_the_same_rows(self, tmp_path: Path) -> None:
        """What was settled is not sent, what was refused is; from then on rows may change."""
        path, frame = tmp_path / "j", pd.DataFrame(ROWS)
        with scripted(only_posts([added] * 3)) as service, connected(service) as client:
            restore("journal_1.sql", path, service)
            report = self.resumed(frame, client, path)
            assert column(report) == [
                *["added"] * 3,
                "invalid",
                "duplicate_in_frame",
                "added",
                *["unknown"] * 2,
                *["added"] * 2,
            ]
            assert sent(service) == [["", "cy@x"], ["lead2@example", "lead3@example"]]
            report = self.resumed(frame.iloc[::-1].assign(city="Rome"), client, path)
            assert column(report)[:4] == ["added"] * 2 + ["unknown"] * 2
            assert len(sent(service)) == 2

    def test_other_rows_are_refused(self, tmp_path: Path) -> None:
        """Changed rows are refused with a word about the cure, and the file is left as it was."""
        path, frame = tmp_path / "j", pd.DataFrame(ROWS)
        with scripted(only_posts([])) as service, connected(service) as client:
            restore("journal_1.sql", path, service)
            before = path.read_bytes()
            with pytest.raises(InvalidInputError, match=r"earlier version.*Nothing was sent"):
                self.resumed(frame.iloc[1:], client, path)
            assert path.read_bytes() == before


class TestOwnClient:
    """Plans and reports send by the client that they were made with."""

    def test_another_default_client(self) -> None:
        """What was planned and sent at one service stays there, whatever was connected since."""
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
        """A client with another address is an error before anything is sent."""
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

    def test_an_explicit_client_of_the_same_service(self) -> None:
        """A new connection to the same service may send what is unknown."""
        turns = [script.reset(), added]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            report = emails("a").outreach.plan("s1", client=client).submit()
            client.close()
            with pytest.raises(OutreachError, match="closed"):
                report.retry_unknown()
            with connected(service) as other:
                assert column(report.retry_unknown(client=other)) == ["added"]


def test_a_late_second_response_is_not_taken_for_the_next(tmp_path: Path) -> None:
    """What comes twice on one connection proves nothing for the next request."""

    def twice(received: Received) -> Reply:
        reply = added(received)
        return Reply((*reply.parts, 0.1, *reply.parts))

    turns = [twice, lambda received: script.delayed(0.3, script.json({"error": "no"}, 400))]
    with scripted(only_posts(turns)) as service, connected(service) as client:
        report = add(emails("a", "b", "c", "d"), client)
    assert column(report) == ["added"] * 2 + ["rejected"] * 2
