"""Sending a plan gives one outcome per row, despite faults of service, network and caller."""

from __future__ import annotations

import dataclasses
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterable
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import (
    ConfigurationError,
    InvalidInputError,
    OutreachWarning,
    ServiceError,
    ValidationFailedError,
)
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.sending.outcome import NEXT_STEP_BY_CODE, NextStep
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.submit import submit
from outreach_frames.sandbox import Sandbox
from tests import forked
from tests import scripted as script
from tests.leads.sending.lead_service import (
    added,
    column,
    connected,
    only_posts,
    refused,
    sent,
    serving,
)
from tests.scripted import Received, Reply, scripted

pytestmark = pytest.mark.long

_numbers = count()


def leads(rows: int) -> pd.DataFrame:
    """Make leads that no other test uses."""
    run = next(_numbers)
    return pd.DataFrame({"email": [f"lead{row}.of{run}@example.com" for row in range(rows)]})


def planned(
    client: Client, frame: pd.DataFrame, chunk_size: int = 2, **more: Any
) -> SubmissionPlan:
    """Plan a frame for a sequence of a scripted service."""
    return make_plan(frame, "s1", chunk_size=chunk_size, client=client, **more)


def stopped(plan: SubmissionPlan, match: str = "", **options: Any) -> SubmissionReport:
    """Submit a plan; require a warning and an error in the report."""
    with pytest.warns(OutreachWarning, match=match):
        report = submit(plan, **options)
    assert report.error is not None
    return report


class TestSending:
    """The requests that the service receives, and their order."""

    def test_no_connection(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Submitting without a connection or with a closed client is an error."""
        monkeypatch.delenv("OUTREACH_BASE_URL", raising=False)
        of.connect("http://localhost:1", "token", cache=None).close()
        with pytest.raises(ConfigurationError, match="connect"):
            submit(make_plan(leads(1), "s1"))
        with scripted([]) as service, connected(service) as client:
            client.close()
            with pytest.raises(ConfigurationError, match=r"closed.*Nothing was sent"):
                submit(planned(client, leads(1)))

    @pytest.mark.usefixtures("client")
    def test_progress(self, sandbox: Sandbox, capsys: Any) -> None:
        """The progress bar shows the number of sent, added, skipped and failed rows."""
        plan = make_plan(leads(3), sandbox.sequence_ids["accepts_any"])
        submit(plan, progress=True)
        shown = capsys.readouterr().err
        assert "3/3" in shown
        assert "added=3, skipped=0, failed=0" in shown
        submit(make_plan(leads(3), sandbox.sequence_ids["accepts_any"]), progress=False)
        assert capsys.readouterr().err == ""


class TestRefusals:
    """Responses that refuse a request."""

    def test_documented_codes(self) -> None:
        """Exactly the documented error codes have a next step."""
        assert NEXT_STEP_BY_CODE.keys() == spec.ADD_LEADS_ERRORS.keys()

    @pytest.mark.parametrize("code", [*spec.ADD_LEADS_ERRORS, "a_code_of_tomorrow"])
    def test_each_code(self, code: str) -> None:
        """An error code of the sequence or account stops the run; other codes reject one chunk."""
        stops = NEXT_STEP_BY_CODE.get(code) is NextStep.STOP
        with serving(added, refused(code), added) as (service, client):
            report = stopped(planned(client, leads(6)), code)
            rest = "not_sent" if stops else "added"
            assert column(report) == ["added"] * 2 + ["rejected"] * 2 + [rest] * 2
            assert column(report, "error_code") == [None, None, code, code, None, None]
            assert f"because of {code}" in column(report, "detail")[2]
            assert any(f"because of {code}" in note for note in report.notes)
            assert len(sent(service)) == (2 if stops else 3)
            assert isinstance(report.error, ValidationFailedError)
            if stops:
                assert column(report, "chunk")[4:] == [None, None]
                assert code in column(report, "detail")[4]

    def test_several_codes(self) -> None:
        """All codes of a response are reported; one that stops the run decides and comes first."""
        turns = [refused("brand_new", "missing_lead_field", "mailbox_unusable")]
        with serving(*turns) as (_, client):
            report = stopped(planned(client, leads(4)))
        assert column(report) == ["rejected"] * 2 + ["not_sent"] * 2
        assert column(report, "error_code")[0] == "mailbox_unusable"
        said = column(report, "detail")[0]
        for code in ("brand_new", "missing_lead_field", "mailbox_unusable"):
            assert f"{code}: because of {code}" in said
            assert f"Chunk 1: {code}: because of {code}" in report.notes

    @pytest.mark.parametrize(
        ("reply", "words"),
        [
            (refused("brand_new", "brand_new"), "because of brand_new"),
            (refused("sequence_archived"), "because of sequence_archived"),
            (script.json({"error": "too odd"}, 400), "too odd"),
        ],
    )
    def test_an_error_is_shown_once(self, reply: Reply, words: str) -> None:
        """The displayed report has an error once: in the detail of its rows."""
        with serving(*[reply] * 9) as (_, client):
            report = stopped(planned(client, leads(5)), words)
        assert repr(report).count(words) == 1
        assert report._repr_html_().count(words) == 1
        assert words in str(report.error)

    @pytest.mark.parametrize(
        "reply",
        [
            script.json({"error": {"code": "bad", "message": "too odd"}}, 400),
            script.json({"error": "odd"}, 413),
            script.json({"validation_errors": []}, 422),
            script.json({"validation_errors": "no"}, 422),
            script.json([1], 422),
            script.respond(b"<html>", 422),
            refused("brand_new"),
        ],
    )
    def test_three_refusals_in_a_row(self, reply: Reply) -> None:
        """A refusal rejects its chunk; three failed requests in a row stop the run."""
        other = script.json({"error": "even"}, 400)
        turns = [reply, other, added, reply, other, reply]
        with serving(*turns) as (service, client):
            report = stopped(planned(client, leads(8), chunk_size=1), "2 are not_sent, 5 are rej")
            assert len(sent(service)) == len(turns)
        assert column(report) == ["rejected"] * 2 + ["added"] + ["rejected"] * 3 + ["not_sent"] * 2
        assert "even" in column(report, "detail")[1]
        with pytest.raises(ServiceError):
            report.raise_for_error()


REJECTED = {400, 413, 422, 451}
NOT_SENT = {401, 402, 403, 404, 405, 425, 429}


class TestEveryStatus:
    """Outcomes of rows after each HTTP error status."""

    @pytest.mark.parametrize(
        "codes",
        [
            # All statuses that prove an outcome, and some others.
            sorted({*REJECTED, *NOT_SENT, 101, 103, 302, 307, *range(309, 600, 30), 503, 600, 999}),
            pytest.param(range(300, 600), marks=pytest.mark.slow),
        ],
        ids=["some", "all"],
    )
    def test_without_retry_after(self, codes: Iterable[int]) -> None:
        """Rows are unknown unless the status proves that the request was refused."""

        def reply(received: Received) -> Reply:
            is_first = b"lead0" in received.body
            elsewhere = {"Location": "https://other.example/"} if 300 <= status < 400 else {}
            refusal = script.json({"error": "no"}, status, elsewhere)
            return refusal if is_first else added(received)

        with scripted(only_posts(repeat(reply))) as service:
            for status in codes:
                with connected(service, max_wait=0.01) as client:
                    report = stopped(planned(client, leads(2), chunk_size=1))
                if status in REJECTED:
                    expected = ["rejected", "added"]
                elif status in NOT_SENT:
                    expected = ["not_sent", "not_sent"]
                else:
                    # A redirect stops the run, as it would apply to all requests.
                    expected = ["unknown", "not_sent" if 300 <= status < 400 else "added"]
                assert (status, column(report)) == (status, expected)
                says_so = "may have added the lead" in column(report, "detail")[0]
                assert (status, says_so) == (status, expected[0] == "unknown")

    @pytest.mark.parametrize(
        ("status", "expected"), [(429, "not_sent"), (503, "not_sent"), (500, "unknown")]
    )
    def test_with_retry_after(self, status: int, expected: str) -> None:
        """With Retry-After, a 429 or 503 proves that no lead was added."""
        busy = script.json({}, status, {"Retry-After": "0.01"})
        with (
            scripted(only_posts(repeat(busy))) as service,
            connected(service, max_wait=0.1) as client,
        ):
            report = stopped(planned(client, leads(1)))
        assert column(report) == [expected]


class TestUnknown:
    """Missing or invalid responses leave rows unknown."""

    @pytest.mark.parametrize(
        "reply",
        [
            script.reset(),
            script.hang_up(),
            script.truncated(script.json({"total": 1, "total_added_to_sequence": 1})),
            script.json({"error": "oops"}, 500),
            script.json({"error": "oops"}, 503),
            script.respond(b"<html>it worked</html>"),
            script.respond(b""),
            script.json(None),
            script.json([]),
            script.json({}),
            script.json({"total": 1, "total_added_to_sequence": 0}),
        ],
    )
    def test_unknown_rows_are_not_resent(self, reply: Reply) -> None:
        """Rows that may have arrived are unknown and not resent, and the run continues."""
        with serving(added, reply, added) as (service, client):
            report = stopped(planned(client, leads(3), chunk_size=1), r"retry_unknown\(\)")
            assert sent(service) == [["lead0"], ["lead1"], ["lead2"]]
        assert column(report) == ["added", "unknown", "added"]
        assert column(report, "detail")[1]

    def test_a_run_continues_after_a_timeout(self) -> None:
        """After a request that timed out, the next request is sent and its response is used."""
        slow = script.delayed(script.FOREVER, script.json({}))
        # The timeout also holds for the second request, which may be slow on a busy machine.
        with serving(slow, added, timeout=2) as (_, client):
            report = stopped(planned(client, leads(2), chunk_size=1))
        assert column(report) == ["unknown", "added"]

    def test_three_in_a_row(self) -> None:
        """After three unknown outcomes in a row, the remaining rows are not sent."""
        down = script.json({"error": "oops"}, 500)
        turns = [down, down, added, down, down, script.reset()]
        with serving(*turns) as (service, client):
            report = stopped(planned(client, leads(8), chunk_size=1), "5 are unknown")
            assert len(sent(service)) == len(turns)
        expected = ["unknown"] * 2 + ["added"] + ["unknown"] * 3 + ["not_sent"] * 2
        assert column(report) == expected

    def test_no_server(self) -> None:
        """If no server is listening, all rows are `not_sent`."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with Client(f"http://127.0.0.1:{port}", "token", cache=None, backoff=0) as client:
            plan = make_plan(leads(2), "s1", chunk_size=1)
            report = stopped(dataclasses.replace(plan, client=client), "Nothing answers")
        assert column(report) == ["not_sent"] * 2

    def test_an_internal_error(self, tmp_path: Path) -> None:
        """Rows whose request cannot be built are `not_sent`, and the next run sends them."""
        frame = leads(3).assign(city=["Bern", "Oslo", "Rome"])
        broken_texts = pa.array([b"Bern", b"\xff", b"Rome"], pa.large_binary())
        with serving(*[added] * 3) as (_, client):
            whole = planned(client, frame, chunk_size=1, data=["city"])
            data = {"city": broken_texts.view(pa.large_string())}
            checked = dataclasses.replace(whole.checked, data=data)
            broken = dataclasses.replace(whole, checked=checked)
            report = stopped(broken, "UnicodeDecodeError", journal=tmp_path / "j")
            assert column(report) == ["added", "not_sent", "not_sent"]
            assert "UnicodeDecodeError" in column(report, "detail")[1]
            assert report.error is not None
            assert isinstance(report.error.__cause__, UnicodeDecodeError)
            assert column(submit(whole, journal=tmp_path / "j")) == ["added"] * 3


class TestRetryUnknown:
    """`retry_unknown` resends the unknown rows."""

    @pytest.mark.parametrize(
        "reply",
        [
            *(refused(code) for code in ("sequence_archived", "missing_lead_field", "brand_new")),
            *(script.json({}, status) for status in (400, 401, 500)),
        ],
    )
    def test_refused_in_a_retry(self, reply: Reply, tmp_path: Path) -> None:
        """A row whose second request is refused stays unknown, and is not sent a third time."""
        journal = tmp_path / "journal"
        with serving(script.reset(), reply) as (service, client):
            frame = leads(1)
            report = stopped(planned(client, frame), journal=journal)
            with pytest.warns(OutreachWarning, match="1 is unknown"):
                again = report.retry_unknown()
            assert column(again) == ["unknown"]
            assert column(again, "attempts") == [2]
            assert "sent before" in column(again, "detail")[0]
            assert column(stopped(planned(client, frame), journal=journal)) == ["unknown"]
            assert len(sent(service)) == 2

    def test_same_chunks_in_a_retry(self) -> None:
        """Unknown rows are resent in the same chunks as before."""
        with serving(script.reset(), added, script.hang_up(), added, added) as (service, client):
            report = stopped(planned(client, leads(6)))
            report = report.retry_unknown()
            assert column(report) == ["added"] * 6
            assert sent(service)[3:] == [["lead0", "lead1"], ["lead4", "lead5"]]
            with pytest.raises(InvalidInputError, match="nothing to resend"):
                report.retry_unknown()

    @pytest.mark.parametrize(
        "name",
        [
            "already_in_sequence_and_skipped",
            "recently_contacted_and_skipped",
            "duplicate_emails",
            "on_holiday_and_skipped",
            "unknown_and_skipped",
        ],
    )
    def test_skipped_in_a_retry(self, name: str, tmp_path: Path) -> None:
        """A lead that is skipped in a retry stays unknown, unless it was in the sequence."""
        journal = tmp_path / "journal"
        is_duplicate = name.startswith("duplicate_")

        def skipped(received: Received) -> Reply:
            (lead,) = received.json["leads"]
            entry = lead["email"] if is_duplicate else lead
            return script.json({"total": 1, "total_added_to_sequence": 0, name: [entry]})

        with serving(script.reset(), skipped) as (service, client):
            plan = planned(client, leads(1))
            report = stopped(plan, journal=journal)
            if name == "already_in_sequence_and_skipped":
                assert column(report.retry_unknown()) == ["present"]
                return
            with pytest.warns(OutreachWarning, match="1 is unknown"):
                report = report.retry_unknown()
            assert column(report) == ["unknown"]
            (detail,) = column(report, "detail")
            assert ("duplicate_in_request" if is_duplicate else name) in detail
            assert "sent before" in detail
            assert column(stopped(plan, journal=journal)) == ["unknown"]
            assert len(sent(service)) == 2


class TestOnePlanTwice:
    """A plan sends nobody twice."""

    def test_refused(self, tmp_path: Path) -> None:
        """A second submission without the first one's journal is rejected and sends nothing."""
        with serving(added) as (service, client):
            plan = planned(client, leads(2))
            assert column(submit(plan, journal=tmp_path / "a")) == ["added"] * 2
            for journal in (None, tmp_path / "b"):
                with pytest.raises(InvalidInputError, match=r"with the journal.*Nothing was sent"):
                    plan.submit(journal=journal)
        assert len(sent(service)) == 1
        assert not (tmp_path / "b").exists()

    def test_after_a_failed_start(self, tmp_path: Path) -> None:
        """After a dry run or a failed start, the plan can be sent."""
        with serving(added) as (_, client):
            plan = planned(client, leads(2))
            plan.submit(dry_run=True)
            with pytest.raises(InvalidInputError, match="is a folder"):
                plan.submit(journal=tmp_path)
            assert column(plan.submit()) == ["added"] * 2

    def test_to_another_service(self) -> None:
        """A plan that was sent to one service cannot be sent to another."""
        plan = make_plan(leads(2), "s1")
        with scripted(only_posts([added])) as service, of.connect(service.url, "t", cache=None):
            assert column(plan.submit()) == ["added"] * 2
        with scripted(only_posts([added])) as service, of.connect(service.url, "t", cache=None):
            with pytest.raises(InvalidInputError, match=r"submitted before.*Nothing was sent"):
                plan.submit()
            assert sent(service) == []


class TestJournal:
    """Resuming with a journal."""

    def test_resuming(self, tmp_path: Path) -> None:
        """A later run sends rejected and unsent rows in order, but no added and no unknown rows."""
        journal = tmp_path / "journal"
        frame = leads(9)
        first = [added, script.reset(), refused("brand_new"), script.json({}, 401)]
        with serving(*first, *[added] * 4) as (service, client):
            report = stopped(planned(client, frame), "with the same journal", journal=journal)
            expected = ["added"] * 2 + ["unknown"] * 2 + ["rejected"] * 2 + ["not_sent"] * 3
            assert column(report) == expected
            report = submit(planned(client, frame.copy()), journal=journal)
            assert sent(service)[4:] == [["lead4", "lead5"], ["lead6", "lead7"], ["lead8"]]
            assert column(report) == ["added"] * 2 + ["unknown"] * 2 + ["added"] * 5
            assert column(report, "chunk") == [1, 1, 2, 2, 5, 5, 6, 6, 7]
            assert column(report, "attempts") == [1, 1, 1, 1, 2, 2, 2, 2, 1]
            report = submit(planned(client, frame), journal=journal).retry_unknown()
            assert sent(service)[7:] == [["lead2", "lead3"]]
            assert column(report) == ["added"] * 9
            report = submit(planned(client, frame), journal=journal)
            assert column(report) == ["added"] * 9
            assert len(sent(service)) == 8


SUBMIT = """
import sys, warnings
import pandas as pd
import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.leads.plan import make_plan
from outreach_frames.leads.sending.submit import submit
warnings.simplefilter("ignore")
url, journal = sys.argv[1:]
client = Client(url, "token", cache=None)
frame = pd.DataFrame({"email": [f"lead{row}@example.com" for row in range(2000)]})
plan = make_plan(frame, "s1", chunk_size=20, client=client)
report = submit(plan, journal=journal)
print(*report.rows["status"])
print(report.error)
"""


class TestInterrupting:
    """Ctrl-C ends a run and leaves a report."""

    @pytest.fixture(autouse=True)
    def _pressed(self) -> None:
        self.pressed = threading.Event()

    def interrupted(
        self, turns: list[Any], journal: Path, requests: int, times: int = 1
    ) -> tuple[Counter[str], str]:
        """Interrupt a process during its last request; return counts of statuses, and the error."""
        with scripted(only_posts(turns)) as service:
            process = forked.Process(SUBMIT, service.url, journal, stdout=subprocess.PIPE)
            while len(sent(service)) < requests:
                time.sleep(0.01)
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                self.pressed.set()
                time.sleep(0.2)  # signals in quick succession may be merged
            said, _ = process.communicate()
            assert len(sent(service)) == requests
        rows, error = said.splitlines()
        return Counter(rows.split()), error

    def test_without_a_response(self, tmp_path: Path) -> None:
        """Without a response, the current rows are unknown, however often Ctrl-C is pressed."""
        turns = [added, script.delayed(script.FOREVER, script.json({}))]
        rows, error = self.interrupted(turns, tmp_path / "j", requests=2, times=3)
        assert rows == {"added": 20, "unknown": 20, "not_sent": 1960}
        assert "Interrupted" in error

    def test_while_waiting(self, tmp_path: Path) -> None:
        """Ctrl-C during a wait before a retry leaves the rows `not_sent`."""
        turns = [added, script.json({}, 429, {"Retry-After": "60"})]
        rows, _ = self.interrupted(turns, tmp_path / "j", requests=2)
        assert rows == {"added": 20, "not_sent": 1980}
