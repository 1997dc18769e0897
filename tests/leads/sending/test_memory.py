"""The journal in memory: what a process remembers of a service and a sequence."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachError
from outreach_frames.leads.sending import memory
from outreach_frames.leads.sending.events import find_recorded_people
from outreach_frames.leads.sending.report import SubmissionReport
from tests import scripted as script
from tests.leads.sending.lead_service import (
    added,
    column,
    connected,
    notes,
    refused,
    sent,
    serving,
    skipped,
)
from tests.scripted import Received, Reply

pytestmark = pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")

A, B, C = (f"{name}.x@example.com" for name in "abc")


def add(client: Client, *emails: str, **options: Any) -> SubmissionReport:
    """Add people to a sequence."""
    frame = pd.DataFrame({"email": list(emails)})
    return frame.outreach.add_to_sequence("s1", client=client, progress=False, **options)


def test_a_file_takes_over_and_a_cell_knows_the_file(tmp_path: Path) -> None:
    """A file's run sends nobody that a cell sent, and the reverse, also after a restart."""
    journal = tmp_path / "j"
    with serving(*[added] * 9) as (service, client):
        add(client, A)
        assert column(add(client, A, B, journal=journal)) == ["added"] * 2
        assert sent(service) == [["a"], ["b"]]
        report = add(client, A, B)
        today = f"{pd.Timestamp.now('UTC'):%Y-%m-%d}"
        assert set(column(report, "detail")) <= {f"added on {today}"}
        assert "now" not in repr(report)
        assert column(report, "earlier_run") == [True] * 2
        assert "no row was sent" in str(report)
        assert "by an earlier run" in str(report)
        read = pd.DataFrame({"email": [A, B]}).outreach.report(journal=journal)
        assert column(read) == ["added"] * 2
        assert column(read, "sent_at") == column(of.last_report(), "sent_at")  # type: ignore[arg-type]
        memory.clear()
        assert notes(add(client, A, B, journal=journal)) == [""] * 2
        assert column(add(client, B, A)) == ["added"] * 2
        assert len(sent(service)) == 2


@pytest.mark.parametrize("journal", [None, "j"])
def test_a_new_token_sends_nobody_again(journal: str | None, tmp_path: Path) -> None:
    """After a 401 and a new token, the added people are not sent again, also by their URL alone."""
    url = "https://profnet.example/in/ada"
    rows = pd.DataFrame({"email": [A, B, C], "profnet_url": [url, None, None]})
    options: dict[str, Any] = {"chunk_size": 2, "progress": False}
    if journal:
        options["journal"] = tmp_path / journal
    with serving(added, script.json({}, 401), *[added] * 3) as (service, client):
        first = rows.outreach.add_to_sequence("s1", client=client, **options)
        assert column(first) == ["added", "added", "not_sent"]
        with Client(service.url, "new-token", cache=None) as other:
            again = rows.outreach.add_to_sequence("s1", client=other, **options)
            assert column(again) == ["added"] * 3
            assert column(again, "earlier_run") == [True, True, False]
            alone = rows[["profnet_url"]].head(1)
            assert column(alone.outreach.add_to_sequence("s1", client=other, **options)) == [
                "added"
            ]
        assert sent(service) == [["a", "b"], ["c"], ["c"]]


def test_a_sequence_or_service_has_a_memory() -> None:
    """Another sequence or service has another memory; another client or token has not."""
    with serving(*[added] * 9) as (service, client), serving(added) as (_, elsewhere):
        add(client, A)
        with connected(service) as again:
            assert column(add(again, A), "earlier_run") == [True]
        assert column(add(elsewhere, A), "earlier_run") == [False]
        frame = pd.DataFrame({"email": [A]})
        other = frame.outreach.add_to_sequence("s2", client=client)
        assert column(other, "earlier_run") == [False]
        assert len(sent(service)) == 2


def test_an_address_in_another_spelling_is_the_same_service(tmp_path: Path) -> None:
    """Another spelling of an address, in memory and in a file, sends nobody again."""
    with serving(added, added) as (service, client):
        spelled = f"{service.url.replace('http', 'HTTP')}/"
        add(client, A, journal=tmp_path / "j")
        with Client(spelled, "token", cache=None) as other:
            assert column(add(other, A)) == ["added"]
            memory.clear()
            assert column(add(other, A, journal=tmp_path / "j")) == ["added"]
        assert sent(service) == [["a"]]


def test_a_plan_of_another_client_records_for_all_clients() -> None:
    """A plan that another client submits, and its report, record where every client looks."""
    with serving(script.reset(), added, added) as (service, client):
        plan = pd.DataFrame({"email": [A]}).outreach.plan("s1", client=client)
        with Client(service.url, "new-token", cache=None) as other:
            report = plan.submit(client=other)
            assert column(add(client, A)) == ["unknown"]
            assert column(report.retry_unknown(client=client)) == ["added"]
            assert column(plan.submit(client=client)) == ["added"]
            assert column(add(other, A, B)) == ["added"] * 2
        assert sent(service) == [["a"], ["a"], ["b"]]


def processes(client: Client, frame: pd.DataFrame, path: Path, **options: Any) -> SubmissionReport:
    """Add a frame's rows as a new process does, with a journal file."""
    memory.clear()
    options = {"journal": path, "client": client, "progress": False, **options}
    return frame.outreach.add_to_sequence("s1", **options)


@pytest.mark.parametrize("first", [skipped("recently_contacted_and_skipped"), script.reset()])
def test_the_better_outcome_wins(first: Any, tmp_path: Path) -> None:
    """A proven outcome stays proven after another process's later `unknown` or skip."""
    journal = tmp_path / "j"
    frame = pd.DataFrame({"email": [A]})
    with serving(first, added, added) as (service, client):
        processes(client, frame, tmp_path / "k")
        mine = dict(memory._memories)
        assert column(processes(client, frame, journal)) == ["added"]
        memory.clear()
        memory._memories.update(mine)
        assert column(add(client, A, journal=journal)) == ["added"]
        assert column(add(client, A)) == ["added"]
        assert column(frame.outreach.report(journal=journal)) == ["added"]
        assert len(sent(service)) == 2


def test_two_processes_with_one_clock_lose_nothing(tmp_path: Path) -> None:
    """Events of two processes with equal numbers are kept side by side."""
    first, second = (pd.DataFrame({"email": [one]}) for one in (A, B))
    with serving(added, added) as (service, client):
        processes(client, first, tmp_path / "j")
        mine = dict(memory._memories)
        processes(client, second, tmp_path / "k")
        theirs = dict(memory._memories)
        for known in (mine, theirs):
            memory.clear()
            memory._memories.update(known)
            assert len({*of.read_journal(tmp_path / "j")["status"]}) == 1
            add(client, A if known is mine else B, journal=tmp_path / "j")
        memory.clear()
        assert column(add(client, A, B, journal=tmp_path / "j")) == ["added"] * 2
        assert len(sent(service)) == 2
        assert len(of.read_journal(tmp_path / "j")) == 2


def test_invalid_rows_record_new_identifiers(tmp_path: Path) -> None:
    """A run of invalid rows alone links a person's URL, is the last report, and sends nothing."""
    url, data = "https://profnet.example/in/ada", {"note": ["z" * 2_000]}
    both = pd.DataFrame({"email": [A], "profnet_url": [url], **data})
    with serving(added, added) as (service, client):
        add(client, A)
        options: dict[str, Any] = {"client": client, "progress": False, "data": ["note"]}
        for dry_run in (True, False):
            report = both.outreach.add_to_sequence("s1", dry_run=dry_run, **options)
        assert of.last_report() is report
        alone = both[["profnet_url"]].outreach
        assert column(alone.add_to_sequence("s1", client=client)) == ["added"]
        assert len(sent(service)) == 1


def test_invalid_rows_without_a_connection() -> None:
    """Without a connection, or with a closed one, invalid rows are reported and not recorded."""
    frame = pd.DataFrame({"email": ["n/a"]})
    assert column(frame.outreach.add_to_sequence("s1")) == ["invalid"]
    with serving() as (_, client):
        plan = frame.outreach.plan("s1", client=client)
    assert column(plan.submit()) == ["invalid"]


def test_a_retry_keeps_the_reason_of_rows_never_begun() -> None:
    """After a 401 midway, a retry keeps the reason of the rows that were not begun."""
    with serving(script.reset(), script.json({}, 401), added) as (_, client):
        report = add(client, A, B, C, chunk_size=1)
        assert column(report) == ["unknown", "not_sent", "not_sent"]
        again = report.retry_unknown()
        assert column(again) == ["added", "not_sent", "not_sent"]
        assert column(again, "earlier_run") == [False, True, True]
        assert column(again, "detail")[1:] == column(report, "detail")[1:]


def test_a_stopped_sandbox_leaves_other_services_records() -> None:
    """Nobody is sent again to one service because the sandbox of another client stopped."""
    with serving(added, added) as (service, client):
        with of.sandbox.serve(people=1):
            assert column(add(client, A)) == ["added"]
        assert column(add(client, A)) == ["added"]
        assert len(sent(service)) == 1


def test_a_stopped_sandbox_is_forgotten() -> None:
    """Stopping a sandbox clears its memory."""
    port, counts = 0, []
    for _ in range(2):
        with of.sandbox.serve(port=port, people=20, api_key="fixed") as sandbox:
            port = int(sandbox.url.rpartition(":")[2])
            with of.connect(sandbox.url, "fixed", cache=None) as client:
                sequence = sandbox.sequence_ids["accepts_any"]
                frame = pd.DataFrame({"email": [A]})
                report = frame.outreach.add_to_sequence(sequence, client=client)
                assert column(report, "detail") == [""]
                counts.append(len(sandbox.leads(sequence)))
    assert counts[0] == counts[1]


def test_a_forked_child_keeps_the_records() -> None:
    """A forked process knows who was sent, and nothing is under way there."""

    def reply(received: Received) -> Reply:
        child = os.fork()
        if child == 0:
            known = [each for each in memory._memories.values() if each.last_number]
            reserved = find_recorded_people([], known[0]).identifiers
            with known[0].lock, known[0].sending(reserved):
                os._exit(0 if known[0].last_number == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
        return added(received)

    with serving(reply) as (_, client):
        assert column(add(client, A)) == ["added"]


def test_an_earlier_run_is_told_apart(tmp_path: Path) -> None:
    """Rows of an earlier run are marked, with their duplicates; rows of this run are not."""
    with serving(added, added) as (_, client):
        add(client, A, A, journal=tmp_path / "j")
        report = add(client, A, B, A, B, journal=tmp_path / "j")
        assert column(report, "earlier_run") == [True, False, True, False]
        counts = report.summary().set_index("status")
        assert counts.loc["added"].tolist() == [2, 1]
        assert report.frame["earlier_run"].tolist() == [True, False, True, False]
        assert "sent in 1 chunk" in str(report)


@pytest.mark.filterwarnings("error::outreach_frames.errors.OutreachWarning")
def test_warnings_as_errors_lose_no_report() -> None:
    """Warnings that are raised as errors neither keep a row from being sent nor lose the report."""
    frame = pd.DataFrame({"email": [A, "n/a", f"Bo <{B}>"], "status": ["a", "b", "c"]})
    with serving(added) as (service, client):
        report = frame.outreach.add_to_sequence("s1", client=client, progress=False, clean=True)
        assert column(report) == ["added", "invalid", "added"]
        assert len(sent(service)) == 1


def test_duplicates_of_rejected_rows_are_rejected(tmp_path: Path) -> None:
    """A duplicate of a rejected row is rejected, and stands with the failed rows."""
    with serving(refused("brand_new")) as (_, client):
        report = add(client, A, A.upper())
        assert column(report) == ["rejected"] * 2
        assert column(report, "error_code") == ["brand_new"] * 2
        assert "which was rejected" in column(report, "detail")[1]
        report.to_csv(tmp_path)
        assert len(of.read_prospects(tmp_path / "failed.csv")) == 2


def test_a_full_disk_at_the_first_write(tmp_path: Path) -> None:
    """If the journal's first record cannot be written, the error says that nothing was sent."""
    emails = [f"lead{row}@example.com" for row in range(250)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with serving() as (service, client):
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        try:
            with pytest.raises(OutreachError, match=r"cannot be written.*Nothing was sent\."):
                add(client, *emails, journal=tmp_path / "j")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert sent(service) == []
