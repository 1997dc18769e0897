"""Sending a plan gives one outcome per row, despite faults of service, network and caller."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import textwrap
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pandas as pd
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
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.sending.outcome import NEXT_STEP_BY_CODE, NextStep
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.submit import submit
from outreach_frames.sandbox import Fault, Sandbox
from tests import forked
from tests import scripted as script
from tests.leads.sending.lead_service import added, connected, only_posts, refused, sent
from tests.scripted import Received, Reply, Service, scripted

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


def column(report: SubmissionReport, name: str = "status") -> list[Any]:
    """Return a column of a report's rows, with None for missing values."""
    return report.rows[name].astype(object).where(report.rows[name].notna(), None).tolist()


class TestSending:
    """The requests that the service receives, and their order."""

    @pytest.mark.usefixtures("client")
    def test_all_rows_in_chunks(self, sandbox: Sandbox) -> None:
        """Each row arrives once and in order, and the report has the number of its request."""
        sequence_id, frame = sandbox.sequence_ids["accepts_any"], leads(5)
        before = len(sandbox.leads(sequence_id))
        report = submit(make_plan(frame, sequence_id, chunk_size=2))
        assert column(report) == ["added"] * 5
        assert column(report, "chunk") == [1, 1, 2, 2, 3]
        assert column(report, "attempts") == [1] * 5
        assert report.error is None
        there = [lead["email"] for lead in sandbox.leads(sequence_id)[before:]]
        assert there == frame["email"].tolist()

    def test_payloads_of_the_plan(self) -> None:
        """The service receives exactly the plan's payloads, including the settings."""
        with scripted(only_posts([added] * 3)) as service, connected(service) as client:
            plan = planned(
                client,
                leads(5).assign(city=["Bern", None, "Oslo", "Rome", "Kyiv"]),
                data=["city"],
                leads_distribution="custom_mailboxes",
                mailboxes=["box@example.com"],
            )
            submit(plan)
            posts = [each for each in service.requests if each.method == "POST"]
        assert [each.json for each in posts] == list(plan.payloads())
        assert {each.path for each in posts} == {"/sequences/s1/leads"}

    @pytest.mark.usefixtures("client")
    def test_invalid_and_duplicate_rows_are_not_sent(self, sandbox: Sandbox) -> None:
        """Invalid and duplicate rows are in the report and never sent."""
        frame = leads(3)
        frame.loc[1, "email"] = "unknown"
        frame.loc[2, "email"] = frame.loc[0, "email"]
        report = submit(make_plan(frame, sandbox.sequence_ids["accepts_any"]))
        assert column(report) == ["added", "invalid", "duplicate_in_frame"]
        assert column(report, "chunk") == [1, None, None]
        assert column(report, "attempts") == [1, 0, 0]

    @pytest.mark.usefixtures("client")
    def test_skipped_leads(self, sandbox: Sandbox) -> None:
        """Leads that the service skips have the status of its list."""
        known = [sandbox.exclusion_list[0], sandbox.recently_contacted[0], sandbox.draft_leads[0]]
        frame = pd.concat([pd.DataFrame(known)[["email"]].dropna(), leads(1)])
        report = submit(make_plan(frame, sandbox.sequence_ids["accepts_any"]))
        assert column(report)[-1] == "added"
        assert set(column(report)[:-1]) <= set(statuses.SKIPPED)

    def test_nothing_to_send(self) -> None:
        """Without rows to send, no request and no connection is needed."""
        for frame, expected in (
            (leads(0), []),
            (pd.DataFrame({"email": ["unknown", None]}), ["invalid"] * 2),
        ):
            assert column(submit(make_plan(frame, "s1"))) == expected

    def test_dry_run(self, tmp_path: Path) -> None:
        """A dry run sends nothing, needs no connection and does not change the journal."""
        journal = tmp_path / "journal"
        report = submit(make_plan(leads(2), "s1"), dry_run=True, journal=journal)
        assert column(report) == ["would_send"] * 2
        assert "Dry run" in column(report, "detail")[0]
        assert report.dry_run
        assert list(tmp_path.iterdir()) == []

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

    def test_an_error_in_a_signal_handler(self) -> None:
        """If a signal handler raises an error, no request follows the current one."""
        begun, left = threading.Event(), threading.Event()

        def slow(received: Received) -> Reply:
            if not begun.is_set():
                begun.set()
                os.kill(os.getpid(), signal.SIGALRM)
                left.wait(20)
            return added(received)

        with scripted(only_posts(repeat(slow, 5))) as service, connected(service) as client:
            plan = planned(client, leads(10))

            def leave(*_: object) -> None:
                raise RuntimeError("gone")

            old = signal.signal(signal.SIGALRM, leave)
            try:
                with pytest.raises(RuntimeError, match="gone"):
                    submit(plan)
            finally:
                signal.signal(signal.SIGALRM, old)
            left.set()
            time.sleep(0.3)
            assert len(sent(service)) == 1

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
        stops = NEXT_STEP_BY_CODE.get(code) in {NextStep.STOP, NextStep.DROP_MAILBOX}
        turns = [added, refused(code), added]
        with scripted(only_posts(turns)) as service, connected(service) as client:
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

    @pytest.mark.usefixtures("client")
    @pytest.mark.filterwarnings("ignore:The sequence")
    @pytest.mark.parametrize("code", sorted(spec.ADD_LEADS_ERRORS))
    def test_each_code_of_the_sandbox(self, code: str, sandbox: Sandbox) -> None:
        """Each error code of the sandbox is reported for its rows."""
        sequence_id = sandbox.sequence_ids[code]
        before = len(sandbox.leads(sequence_id))
        plan = make_plan(leads(4), sequence_id, chunk_size=2)
        report = stopped(plan)
        assert column(report, "error_code")[0] == code
        assert column(report)[0] == "rejected"
        assert len(sandbox.leads(sequence_id)) == before

    def test_several_codes(self) -> None:
        """All codes of a response are reported; one that stops the run decides and comes first."""
        turns = [refused("brand_new", "missing_lead_field", "mailbox_unusable")]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            report = stopped(planned(client, leads(4)))
        assert column(report) == ["rejected"] * 2 + ["not_sent"] * 2
        assert column(report, "error_code")[0] == "mailbox_unusable"
        said = column(report, "detail")[0]
        for code in ("brand_new", "missing_lead_field", "mailbox_unusable"):
            assert f"{code}: because of {code}" in said
            assert f"Chunk 1: {code}: because of {code}" in report.notes

    @pytest.mark.parametrize(
        "reply",
        [
            script.json({"validation_errors": []}, 422),
            script.json({"validation_errors": "no"}, 422),
            script.json([1], 422),
            script.respond(b"<html>", 422),
            refused("brand_new"),
        ],
    )
    def test_refused_without_a_known_code(self, reply: Reply) -> None:
        """A refusal without a known code rejects its chunk; three in a row stop the run."""
        turns = [reply, reply, added, reply, reply, reply]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            report = stopped(
                planned(client, leads(8), chunk_size=1), "2 are not_sent, 5 are rejected"
            )
        expected = ["rejected"] * 2 + ["added"] + ["rejected"] * 3 + ["not_sent"] * 2
        assert column(report) == expected

    @pytest.mark.usefixtures("client")
    def test_split_in_the_sandbox(self, sandbox: Sandbox) -> None:
        """Leads with an address are added although other leads of the request have none."""
        frame = leads(4).assign(profnet_url=None)
        run = next(_numbers)
        frame.loc[1, ["email", "profnet_url"]] = [None, f"https://profnet.example/in/split-{run}"]
        report = submit(make_plan(frame, sandbox.sequence_ids["needs_email"]))
        assert column(report) == ["added", "rejected", "added", "added"]

    @pytest.mark.parametrize("status", [400, 413])
    def test_a_malformed_chunk(self, status: int) -> None:
        """A 400 or 413 rejects only its chunk, and the report has the error."""
        no = script.json({"error": {"code": "bad", "message": "too odd"}}, status)
        with scripted(only_posts([no, no, added])) as service, connected(service) as client:
            report = stopped(planned(client, leads(3), chunk_size=1), "2 are rejected")
        assert column(report) == ["rejected"] * 2 + ["added"]
        assert "too odd" in column(report, "detail")[0]
        with pytest.raises(ServiceError, match="too odd"):
            report.raise_for_error()

    @pytest.mark.parametrize("status", [400, 413])
    def test_three_refusals_in_a_row(self, status: int) -> None:
        """Three equal refusals in a row stop the run; other responses reset the count."""
        odd, even = (script.json({"error": word}, status) for word in ("odd", "even"))
        turns = [odd, odd, even, even, added, even, even, even]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            report = stopped(planned(client, leads(10), chunk_size=1), "2 are not_sent, 7 are rej")
            assert len(sent(service)) == len(turns)
        assert column(report) == ["rejected"] * 4 + ["added"] + ["rejected"] * 3 + ["not_sent"] * 2

    @pytest.mark.parametrize("status", [401, 403, 404, 405, 425])
    def test_statuses_that_stop_the_run(self, status: int) -> None:
        """A status such as 401 or 404 stops the run, and its rows are `not_sent`."""
        turns = [added, script.json({"error": "no"}, status)]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            report = stopped(planned(client, leads(6)), "To resume")
            assert len(sent(service)) == 2
        assert column(report) == ["added"] * 2 + ["not_sent"] * 4
        assert column(report, "attempts") == [1, 1, 1, 1, 0, 0]
        assert isinstance(report.error, ServiceError)
        assert report.error.status_code == status
        with pytest.raises(ServiceError):
            report.raise_for_error()


REJECTED = {400, 413, 422}
NOT_SENT = {401, 403, 404, 405, 425, 429}


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
            return script.json({"error": "no"}, status) if is_first else added(received)

        with scripted(only_posts(repeat(reply))) as service:
            for status in codes:
                with connected(service) as client:
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
        busy = script.json({}, status, {"Retry-After": "0"})
        with scripted(only_posts(repeat(busy))) as service, connected(service) as client:
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
        with scripted(only_posts([added, reply, added])) as service, connected(service) as client:
            report = stopped(planned(client, leads(3), chunk_size=1), r"retry_unknown\(\)")
            assert sent(service) == [["lead0"], ["lead1"], ["lead2"]]
        assert column(report) == ["added", "unknown", "added"]
        assert column(report, "detail")[1]

    @pytest.mark.parametrize("name", ["recently_contacted_and_skipped", "duplicate_profnet_urls"])
    def test_a_host_of_a_thousand_labels(self, name: str) -> None:
        """A URL with a thousand labels in a list matches no lead, and the run continues."""
        url = f"https://{'m.' * 1000}x.example/in/a"

        entry = url if name.startswith("duplicate_") else {"profnet_url": url}
        odd = script.json({"total": 2, "total_added_to_sequence": 2, name: [entry]})
        with scripted(only_posts([odd, added])) as service, connected(service) as client:
            report = stopped(planned(client, leads(4)), "2 are unknown")
        assert column(report) == ["unknown"] * 2 + ["added"] * 2
        assert any("m.m.m." in note for note in report.notes)

    def test_no_response_in_time(self) -> None:
        """Rows of a request that times out are unknown."""
        slow = script.delayed(script.FOREVER, script.json({}))
        with scripted(only_posts([slow])) as service, connected(service, timeout=0.3) as client:
            report = stopped(planned(client, leads(1)))
        assert column(report) == ["unknown"]

    def test_a_run_continues_after_a_timeout(self) -> None:
        """After a request that timed out, the next request is sent and its response is used."""
        slow = script.delayed(script.FOREVER, script.json({}))
        # The timeout also holds for the second request, which may be slow on a busy machine.
        with (
            scripted(only_posts([slow, added])) as service,
            connected(service, timeout=3) as client,
        ):
            report = stopped(planned(client, leads(2), chunk_size=1))
        assert column(report) == ["unknown", "added"]

    def test_three_in_a_row(self) -> None:
        """After three unknown outcomes in a row, the remaining rows are not sent."""
        down = script.json({"error": "oops"}, 500)
        odd = script.json({"error": "odd"}, 400)
        turns = [down, down, added, down, down, odd, down, down, script.reset()]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            report = stopped(planned(client, leads(12), chunk_size=1), "7 are unknown")
            assert len(sent(service)) == 9
        some, last = ["unknown"] * 2, ["unknown"] * 3 + ["not_sent"] * 3
        expected = [*some, "added", *some, "rejected", *last]
        assert column(report) == expected

    def test_a_redirect(self) -> None:
        """A redirect is not followed, and stops the run."""
        turns = [script.respond(status=308, headers={"Location": "https://other.example/"})]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            report = stopped(planned(client, leads(2), chunk_size=1), "redirects")
        assert column(report) == ["unknown", "not_sent"]

    def test_no_server(self) -> None:
        """If no server is listening, all rows are `not_sent`."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with Client(f"http://127.0.0.1:{port}", "token", cache=None, backoff=0) as client:
            plan = make_plan(leads(2), "s1", chunk_size=1)
            report = stopped(dataclasses.replace(plan, client=client), "Nothing answers")
        assert column(report) == ["not_sent"] * 2

    def test_429(self) -> None:
        """After a 429, the request is retried; a wait beyond `max_wait` stops the run."""
        busy = script.json({}, 429, {"Retry-After": "0.1"})
        later = script.json({}, 429, {"Retry-After": "100"})
        turns = [busy, busy, added, later]
        with (
            scripted(only_posts(turns)) as service,
            connected(service, max_wait=2) as client,
        ):
            report = stopped(planned(client, leads(3), chunk_size=1), "100 s")
        assert column(report) == ["added", "not_sent", "not_sent"]

    def test_an_internal_error(self) -> None:
        """After an internal error, the report has the outcomes so far."""
        with scripted(only_posts([added])) as service, connected(service) as client:
            whole = planned(client, leads(3), chunk_size=1)
            first = whole.checked.overrides[:1]
            broken = dataclasses.replace(
                whole, checked=dataclasses.replace(whole.checked, overrides=first)
            )
            report = stopped(broken, "ArrowIndexError")
        assert column(report) == ["added", "not_sent", "not_sent"]
        assert report.error is not None
        assert isinstance(report.error.__cause__, IndexError)


class TestRetryUnknown:
    """`retry_unknown` resends the unknown rows."""

    @pytest.mark.usefixtures("client")
    def test_outcomes_of_a_retry(self, sandbox: Sandbox) -> None:
        """Rows that had arrived become `present`, and the other unknown rows are added."""
        sequence_id, frame = sandbox.sequence_ids["accepts_any"], leads(6)
        sandbox.faults = (
            Fault("drop_after_commit", endpoint="add_leads", after=1, times=1),
            Fault("drop_before_commit", endpoint="add_leads", after=2, times=1),
        )
        try:
            report = stopped(make_plan(frame, sequence_id, chunk_size=2))
        finally:
            sandbox.faults = ()
        assert column(report) == ["added"] * 2 + ["unknown"] * 4
        again = report.retry_unknown()
        assert column(again) == ["added"] * 2 + ["present"] * 2 + ["added"] * 2
        assert column(again, "attempts") == [1, 1, 2, 2, 2, 2]
        assert column(again, "chunk") == [1, 1, 4, 4, 5, 5]
        assert again.error is None
        assert column(report) == ["added"] * 2 + ["unknown"] * 4
        emails = [lead["email"] for lead in sandbox.leads(sequence_id)]
        assert all(emails.count(email) == 1 for email in frame["email"])
        with pytest.raises(InvalidInputError, match="No row is unknown"):
            again.retry_unknown()

    @pytest.mark.parametrize(
        "reply",
        [
            *(refused(code) for code in spec.ADD_LEADS_ERRORS),
            refused("brand_new"),
            *(script.json({}, status) for status in (400, 401, 404, 413, 500)),
        ],
    )
    def test_refused_in_a_retry(self, reply: Reply, tmp_path: Path) -> None:
        """A row whose second request is refused stays unknown, and is not sent a third time."""
        journal = tmp_path / "journal"
        with scripted(only_posts([script.reset(), reply])) as service, connected(service) as client:
            frame = leads(2)
            report = stopped(planned(client, frame), journal=journal)
            with pytest.warns(OutreachWarning, match="2 are unknown"):
                again = report.retry_unknown()
            assert column(again) == ["unknown"] * 2
            assert column(again, "attempts") == [2, 2]
            assert all("sent before" in detail for detail in column(again, "detail"))
            assert column(stopped(planned(client, frame), journal=journal)) == ["unknown"] * 2
            assert len(sent(service)) == 2

    def test_same_chunks_in_a_retry(self) -> None:
        """Unknown rows are resent in the same chunks as before."""
        turns = [script.reset(), added, script.hang_up(), added, added]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            report = stopped(planned(client, leads(6)))
            assert column(report.retry_unknown()) == ["added"] * 6
            assert sent(service)[3:] == [["lead0", "lead1"], ["lead4", "lead5"]]

    @pytest.mark.parametrize(
        "name",
        [
            *(field.name for field in spec.ADD_LEADS_RESULT[2:]),
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

        turns = [script.reset(), skipped]
        with scripted(only_posts(turns)) as service, connected(service) as client:
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

    def test_twice(self) -> None:
        """An old report resends only rows that are unknown by then."""
        turns = [script.reset(), script.reset(), added]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            first = stopped(planned(client, leads(2)))
            with pytest.warns(OutreachWarning):
                second = first.retry_unknown()
            assert column(second.retry_unknown()) == ["added"] * 2
            assert column(first.retry_unknown()) == ["added"] * 2
        assert len(sent(service)) == 3

    def test_after_a_failed_start(self) -> None:
        """A retry that could not start may be repeated."""
        with scripted(only_posts([script.reset()])) as service:
            with connected(service) as client:
                report = stopped(planned(client, leads(2)))
            for _ in range(2):
                with pytest.raises(ConfigurationError, match="is closed"):
                    report.retry_unknown()


class TestOnePlanTwice:
    """A plan sends nobody twice."""

    def test_repeated(self, tmp_path: Path) -> None:
        """A repeated submission sends nothing; with a journal, the file takes over the records."""
        frame = leads(2)
        with scripted(only_posts([added])) as service, connected(service) as client:
            plan = planned(client, frame)
            assert column(submit(plan)) == ["added"] * 2
            with pytest.warns(OutreachWarning, match=r"^2 rows were not sent again.*Restarting"):
                report = plan.submit()
            assert column(report) == ["added"] * 2
            assert column(report, "detail") == ["Sent earlier in this session."] * 2
            assert column(plan.submit(journal=tmp_path / "a")) == ["added"] * 2
            assert column(frame.outreach.report(journal=tmp_path / "a")) == ["added"] * 2
            assert len(sent(service)) == 1

    @pytest.mark.parametrize(
        ("first", "second", "says"),
        [
            ("a", None, "with the journal"),
            ("a", "b", "with the journal"),
        ],
    )
    def test_refused(self, first: str, second: str | None, says: str, tmp_path: Path) -> None:
        """A second submission without the first one's journal is rejected and sends nothing."""
        with scripted(only_posts([added])) as service, connected(service) as client:
            plan = planned(client, leads(2))
            assert column(submit(plan, journal=tmp_path / first)) == ["added"] * 2
            with pytest.raises(InvalidInputError, match=f"before, {says}.*Nothing was sent"):
                plan.submit(journal=second and tmp_path / second)
        assert len(sent(service)) == 1
        assert not (tmp_path / "b").exists()

    def test_at_the_same_time(self) -> None:
        """If several threads submit a plan, exactly one thread sends it."""

        def attempt(plan: SubmissionPlan) -> bool:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    report = plan.submit()
                except InvalidInputError:
                    return False
            return bool((report.rows["detail"] == "").all())

        with scripted(only_posts([added])) as service, connected(service) as client:
            plan = planned(client, leads(2))
            with ThreadPoolExecutor(8) as pool:
                assert sum(pool.map(attempt, [plan] * 8)) == 1
        assert len(sent(service)) == 1

    def test_after_a_failed_start(self, tmp_path: Path) -> None:
        """After a dry run or a failed start, the plan can be sent."""
        with scripted(only_posts([added])) as service, connected(service) as client:
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
        first = [added, script.reset(), script.json({}, 400), script.json({}, 401)]
        with (
            scripted(only_posts([*first, *[added] * 4])) as service,
            connected(service) as client,
        ):
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

    def test_notes_are_kept(self, tmp_path: Path) -> None:
        """Notes of the service are in the run's report, and not in later reports."""
        turns = [refused("brand_new"), added]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            plan = planned(client, leads(2))
            assert stopped(plan, journal=tmp_path / "j").notes != []
            report = submit(plan, journal=tmp_path / "j")
        assert report.notes == []
        assert column(report) == ["added"] * 2

    def test_an_old_report(self, tmp_path: Path) -> None:
        """An old report's retry resends no row whose outcome a later run has recorded."""
        journal = tmp_path / "journal"
        turns = [script.reset(), script.json({}, 401), added, added]
        with scripted(only_posts(turns)) as service, connected(service) as client:
            plan = planned(client, leads(4))
            old = stopped(plan, journal=journal)
            assert column(old) == ["unknown"] * 2 + ["not_sent"] * 2
            assert column(submit(plan, journal=journal).retry_unknown()) == ["added"] * 4
            assert column(old.retry_unknown()) == ["added"] * 4
            assert len(sent(service)) == 4

    @pytest.mark.parametrize("change", ["settings", "sequence_id", "service"])
    def test_another_submission(self, change: str, tmp_path: Path) -> None:
        """A journal of other settings, another sequence or service is rejected; nothing is sent."""
        frame = leads(2)
        with scripted(only_posts([added])) as service, connected(service) as client:
            submit(planned(client, frame), journal=tmp_path / "j")
            other = {
                "settings": lambda: planned(client, frame, leads_distribution="sequence_senders"),
                "sequence_id": lambda: make_plan(frame, "s2", chunk_size=2, client=client),
                "service": lambda: planned(client, frame),
            }[change]()
            with Client(f"{service.url}/v2", "token", cache=None) as another:
                if change == "service":
                    other = dataclasses.replace(other, client=another)
                with pytest.raises(InvalidInputError, match=f"different {change}\\."):
                    submit(other, journal=tmp_path / "j")
            assert len(sent(service)) == 1

    def test_a_journal_that_cannot_be_used(self, tmp_path: Path) -> None:
        """A path that cannot be a journal is rejected, and nothing is sent."""
        (tmp_path / "notes").write_text("my notes")
        with scripted(only_posts([])) as service, connected(service) as client:
            for path in (tmp_path / "notes", tmp_path, tmp_path / "missing" / "journal"):
                with pytest.raises(InvalidInputError, match=r"Nothing was sent"):
                    submit(planned(client, leads(1)), journal=path)
            assert sent(service) == []

    def test_two_runs_at_once(self, tmp_path: Path) -> None:
        """A second run with the same journal is rejected while the first run lasts."""
        with scripted(only_posts([script.delayed(1, script.json({}, 400))])) as service:
            with connected(service) as client:
                frame = leads(1)
                with ThreadPoolExecutor(1) as other:
                    first = other.submit(submit, planned(client, frame), journal=tmp_path / "j")
                    while not sent(service):
                        time.sleep(0.01)
                    with pytest.raises(InvalidInputError, match="in use"):
                        submit(planned(client, frame), journal=tmp_path / "j")
                    assert column(first.result()) == ["rejected"]
                assert len(sent(service)) == 1

    LIMITED = """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(more),) * 2)
        try:
            report = submit(plan, journal=journal)
        except of.OutreachError as error:
            print("raised", error)
        else:
            print(*report.rows["status"])
            print(report.error)
    """

    @pytest.mark.parametrize("room", [100, 20_000])
    def test_a_full_disk_at_first(self, room: int, tmp_path: Path) -> None:
        """If the disk is full before the first request, an error is raised and nothing is sent."""
        with scripted(only_posts(repeat(added))) as service:
            said = run_script(self.LIMITED, service, tmp_path / "j", more=room, chunk_size=250)
            assert said.communicate()[0].startswith("raised")
            assert sent(service) == []

    def test_a_full_disk_later(self, tmp_path: Path) -> None:
        """If the disk becomes full, the run stops, and the report has the outcomes so far."""
        with scripted(only_posts(repeat(added))) as service:
            said = run_script(self.LIMITED, service, tmp_path / "j", more=50_000, chunk_size=20)
            rows, error = said.communicate()[0].splitlines()
            counts = Counter(rows.split())
            assert counts["added"] == 20 * len(sent(service)) > 0
            assert counts["not_sent"] == 2000 - counts["added"] > 0
            assert "cannot be written. Free some space" in error
            again = run_script(self.LIMITED, service, tmp_path / "j", more=50_000, chunk_size=20)
            assert again.communicate()[0].startswith("raised")
            assert counts["added"] == 20 * len(sent(service))


SETUP = """
import sys, warnings
import pandas as pd
import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.leads.plan import make_plan
from outreach_frames.leads.sending.submit import submit
warnings.simplefilter("ignore")
url, journal, more, chunk_size = sys.argv[1:]
client = Client(url, "token", cache=None)
frame = pd.DataFrame({"email": [f"lead{row}@example.com" for row in range(2000)]})
plan = make_plan(frame, "s1", chunk_size=int(chunk_size), client=client)
"""


def run_script(
    code: str, service: Service, journal: Path, *, more: int = 0, chunk_size: int = 20
) -> forked.Process:
    """Start a process that submits 2,000 rows to a scripted service."""
    arguments = [service.url, str(journal), str(more), str(chunk_size)]
    return forked.Process(SETUP + textwrap.dedent(code), *arguments, stdout=subprocess.PIPE)


class TestInterrupting:
    """Ctrl-C ends a run and leaves a report."""

    CODE = """
        report = submit(plan, journal=journal)
        print(*report.rows["status"])
        print(report.error)
    """

    @pytest.fixture(autouse=True)
    def _pressed(self) -> None:
        self.pressed = threading.Event()

    def interrupted(
        self, turns: list[Any], journal: Path, requests: int, times: int = 1
    ) -> tuple[Counter[str], str]:
        """Interrupt a process during its last request; return counts of statuses, and the error."""
        with scripted(only_posts(turns)) as service:
            process = run_script(self.CODE, service, journal)
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

    def test_with_a_response(self, tmp_path: Path) -> None:
        """The run waits for the current response, and sends no other request."""

        def later(received: Received) -> Reply:
            assert self.pressed.wait(60)
            return script.delayed(0.5, added(received))

        turns = [added, later]
        rows, error = self.interrupted(turns, tmp_path / "j", requests=2)
        assert rows == {"added": 40, "not_sent": 1960}
        assert "Interrupted" in error

    def test_without_a_response(self, tmp_path: Path) -> None:
        """Without a response, the current rows are unknown."""
        turns = [added, script.delayed(script.FOREVER, script.json({}))]
        rows, error = self.interrupted(turns, tmp_path / "j", requests=2)
        assert rows == {"added": 20, "unknown": 20, "not_sent": 1960}
        assert "Interrupted" in error

    def test_twice(self, tmp_path: Path) -> None:
        """A second Ctrl-C does not prevent the report."""
        turns = [added, script.delayed(script.FOREVER, script.json({}))]
        rows, _ = self.interrupted(turns, tmp_path / "j", requests=2, times=3)
        assert rows == {"added": 20, "unknown": 20, "not_sent": 1960}

    def test_while_waiting(self, tmp_path: Path) -> None:
        """Ctrl-C during a wait before a retry leaves the rows `not_sent`."""
        turns = [added, script.json({}, 429, {"Retry-After": "60"})]
        rows, _ = self.interrupted(turns, tmp_path / "j", requests=2)
        assert rows == {"added": 20, "not_sent": 1980}
