"""Once sending has begun, there is a report despite signals, warnings and write errors."""

from __future__ import annotations

import os
import signal
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachError, OutreachWarning
from outreach_frames.leads.sending.report import SubmissionReport
from tests import forked
from tests import scripted as script
from tests.leads.sending.lead_service import added, column, only_posts, sent, serving
from tests.scripted import Received, Reply, scripted

pytestmark = pytest.mark.long


def leads(rows: int) -> pd.DataFrame:
    """Make leads with addresses."""
    return pd.DataFrame({"email": [f"lead{row}.x@example.com" for row in range(rows)]})


def add(frame: pd.DataFrame, client: Client, **options: Any) -> SubmissionReport:
    """Add leads, two at a time."""
    options = {"chunk_size": 2, "progress": False, **options}
    return frame.outreach.add_to_sequence("s1", client=client, **options)


SETUP = """
import signal, sys, warnings
import pandas as pd
import outreach_frames as of
from outreach_frames.client.client import Client
client = Client(sys.argv[1], "token", cache=None)
frame = pd.DataFrame({"email": [f"lead{row}.x@example.com" for row in range(4)]})
def add(**options):
    return frame.outreach.add_to_sequence("s1", chunk_size=2, client=client, **options)
"""


def run(code: str, url: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a script in a separate process."""
    return forked.run(SETUP + textwrap.dedent(code), url, **options)


@pytest.mark.parametrize(("moment", "times"), [("in a request", 3), ("after the last response", 1)])
def test_signals_in_a_request(moment: str, times: int) -> None:
    """Ctrl-C, once or repeated, during a request or at the end, leaves a report."""
    code = f"""
        import os, threading
        def press(run):
            if run.done.is_set() if {moment!r} != "in a request" else run.requests == 2:
                for _ in range({times}):
                    os.kill(os.getpid(), signal.SIGINT)
            return False
        from outreach_frames.leads.sending.submit import submit
        plan = frame.outreach.plan("s1", chunk_size=2, client=client)
        report = submit(plan, watch=press, progress=False)
        print(*report.rows["status"])
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            print("as before")
    """
    turns = [added, lambda received: script.delayed(0.3, added(received))]
    with scripted(only_posts(turns)) as service:
        done = run(code, service.url)
    assert done.stdout.splitlines() == ["added added added added", "as before"], done.stderr


def test_a_signal_with_a_handler() -> None:
    """A signal with a handler ends the run, and the handler is called when the report exists."""
    code = """
        import os
        signal.signal(signal.SIGTERM, lambda *_: print("term", *of.last_report().rows["status"]))
        def stop(run):
            if run.requests == 1 and not run.over:
                os.kill(os.getpid(), signal.SIGTERM)
            return False
        from outreach_frames.leads.sending.submit import submit
        plan = frame.outreach.plan("s1", chunk_size=2, client=client)
        report = submit(plan, watch=stop, progress=False)
        print(*report.rows["status"])
    """
    with scripted(only_posts([lambda received: script.delayed(0.5, added(received))])) as service:
        done = run(code, service.url)
    status = "added added not_sent not_sent"
    assert done.stdout.splitlines() == [f"term {status}", status], done.stderr


@pytest.mark.parametrize("stream", ["closed", "broken", "none"])
def test_a_stderr_that_cannot_be_written(stream: str) -> None:
    """A run continues if its progress bar and warnings cannot be written."""
    code = """
        stream = {stream!r}
        if stream == "closed":
            sys.stderr.close()
        elif stream == "none":
            sys.stderr = None
        print(*add(progress=True).rows["status"])
    """.replace("{stream!r}", repr(stream))
    reader, writer = os.pipe()
    os.close(reader)
    options = {"stderr": writer} if stream == "broken" else {}
    try:
        with scripted(only_posts([added, script.reset()])) as service:
            done = run(code, service.url, **options)
    finally:
        os.close(writer)
    assert done.stdout.split() == ["added"] * 2 + ["unknown"] * 2


def test_last_report_after_an_error_in_the_caller() -> None:
    """If an error in the caller interrupts the call, `last_report` has the outcomes."""

    def leave(*_: object) -> None:
        raise TimeoutError("enough")

    def interrupt(received: Received) -> Reply:
        os.kill(os.getpid(), signal.SIGALRM)
        return script.delayed(0.5, script.json({}))

    with serving(interrupt, added) as (service, client):
        before = signal.signal(signal.SIGALRM, leave)
        try:
            with pytest.raises(TimeoutError, match="enough"):
                add(leads(4), client)
        finally:
            signal.signal(signal.SIGALRM, before)
        assert column(of.last_report()) == ["unknown"] * 2 + ["not_sent"] * 2
        assert len(sent(service)) == 1


def test_last_report() -> None:
    """`last_report` is of the last run that sent rows, not of a dry run or a failed start."""
    with serving(added) as (_, client):
        report = add(leads(2), client)
        assert of.last_report() is report
        add(leads(1), client, dry_run=True)
        with pytest.raises(OutreachError):
            add(leads(1), client, journal=Path(__file__).parent)
        assert of.last_report() is report


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"email": ["a.x@example.com", "unknown"]}), "1 is invalid"),
        (pd.DataFrame({"email": ["unknown", "-"]}), "2 are invalid"),
    ],
)
def test_one_warning_counts_the_rows_not_added(frame: pd.DataFrame, said: str) -> None:
    """One warning counts the rows neither added nor skipped; `raise_for_error` raises it."""
    with serving(added) as (_, client):
        with pytest.warns(OutreachWarning) as caught:
            report = add(frame, client)
    (warning,) = caught
    assert said in str(warning.message)
    with pytest.raises(OutreachError, match=said):
        report.raise_for_error()
