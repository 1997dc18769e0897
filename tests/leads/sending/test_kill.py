"""A submission that is killed repeatedly loses no row, sends none twice and reports correctly."""

from __future__ import annotations

import http.client
import json
import os
import random
import secrets
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.sending.journal import Journal
from outreach_frames.leads.sending.journal_file import JournalPlace
from outreach_frames.leads.sending.memory import Memory
from outreach_frames.sandbox import Fault, Sandbox, serve
from tests import forked
from tests import scripted as script
from tests.scripted import Received, Reply, scripted

pytestmark = pytest.mark.long

CHUNK_SIZE = 25
# The number of a submission's kills that are reserved for runs that resend unknown rows.
RETRIES_KILLED = 2
# Seconds; longer than any run on a busy machine.
PATIENCE = 150.0
# Makes the plan before it may be killed.
SUBMIT = """
import dataclasses, json, sys, warnings
from pathlib import Path
import pandas as pd
from outreach_frames.client.client import Client
from outreach_frames.leads.plan import make_plan

url, token, sequence_id, folder, chunk_size, what = sys.argv[1:]
folder = Path(folder)
warnings.simplefilter("ignore")
plan = make_plan(
    pd.read_json(folder / "leads.json", dtype=False), sequence_id, chunk_size=int(chunk_size)
)
print("planned", flush=True)
with Client(url, token, cache=None, backoff=0.001) as client:
    report = dataclasses.replace(plan, client=client).submit(
        journal=folder / "journal", progress=False
    )
    if what == "retry" and report.rows["status"].eq("unknown").any():
        report = report.retry_unknown()
new = folder / "report.new"
new.write_text(json.dumps(report.rows["status"].tolist()))
new.replace(folder / "report.json")
"""

FAULTS = (
    Fault("drop_before_commit", endpoint="add_leads", probability=0.03),
    Fault("drop_after_commit", endpoint="add_leads", probability=0.03),
    Fault("server_error", endpoint="add_leads", probability=0.03),
    Fault("rate_limit", endpoint="add_leads", probability=0.05, retry_after=0),
    Fault("truncated_body", endpoint="add_leads", probability=0.02),
)


def make_leads(number: int, sandbox: Sandbox, rng: random.Random) -> pd.DataFrame:
    """Return rows of every kind; the column `expected` has each row's correct outcome."""
    rows = [
        {"email": f"lead{row}@example.com", "profnet_url": None, "expected": "here"}
        for row in range(number)
    ]
    places = iter(rng.sample(range(50, number), 400))
    for skipped, status in (
        (sandbox.exclusion_list, "in_exclusion_list"),
        (sandbox.recently_contacted, "recently_contacted"),
    ):
        for email in {lead["email"] for lead in skipped if lead["email"]}:
            rows[next(places)] |= {"email": email, "expected": status}
    for row in range(8):
        url = f"https://profnet.example/in/nobody-{row}"
        rows[next(places)] |= {"email": None, "profnet_url": url, "expected": "rejected"}
    for row in range(40):
        rows[next(places)] |= {"email": "unknown", "expected": "invalid"}
        email = f"LEAD{row}@example.com"
        rows[next(places)] |= {"email": email, "expected": "duplicate_in_frame"}
    return pd.DataFrame([row | {"key": key(row)} for row in rows])


class KillingProxy:
    """A proxy between the runs and the sandbox, which records leads and kills runs.

    It kills the run when the fatal request arrives, or before its response is sent. A request that
    arrived is then lost or passed on.
    """

    def __init__(self, sandbox: Sandbox, rng: random.Random) -> None:
        self._sandbox = sandbox
        self._rng = rng
        self._lock = threading.Lock()
        self.kill: Callable[[], None] = lambda: None
        self.sent: list[str] = []
        # Leads that may have been added: their last request was not refused.
        self.perhaps_added: set[str] = set()
        self.fatal: tuple[int, str] = (0, "")
        self._requests = 0

    def expect(self, fatal: tuple[int, str]) -> None:
        """Prepare for the next run; the run is killed in its `fatal` request."""
        with self._lock:
            self.sent, self.fatal, self._requests = [], fatal, 0

    def __call__(self, received: Received) -> Reply:
        """Pass a request on to the sandbox."""
        names = {key(lead) for lead in received.json["leads"]} if received.body else set()
        with self._lock:
            self.sent += names
            self.perhaps_added |= names
            self._requests += received.method == "POST"
            number, moment = self.fatal
            fatal = self._requests == number
            pause = self._rng.choice([0, 0, 0.002, 0.01])
        if fatal and moment != "handled":
            self.kill()
            if moment == "lost":
                return script.reset()
        time.sleep(pause)
        try:
            reply = script.passed_on(received, self._sandbox.url)
        except (http.client.HTTPException, OSError):
            reply = script.reset()
        if reply.parts and reply.parts[0].startswith(b"HTTP/1.1 4"):
            with self._lock:
                self.perhaps_added -= names
        if fatal and moment == "handled":
            self.kill()
        return reply


def key(lead: Mapping[str, Any]) -> str:
    """Return the key of a lead."""
    return str(lead.get("email") or lead.get("profnet_url")).casefold()


class Submission:
    """A submission in many runs, with the outcomes that later runs must not change."""

    def __init__(self, rows: int, sandbox: Sandbox, folder: Path, rng: random.Random) -> None:
        self.sandbox, self.folder, self.rng = sandbox, folder, rng
        self.frame = make_leads(rows, sandbox, rng)
        self.sequence_id = sandbox.sequence_ids["needs_email"]
        self.between = KillingProxy(sandbox, rng)
        self.known: dict[int, str] = {}
        self.ended: Counter[str] = Counter()
        leads = self.frame.drop(columns=["expected", "key"])
        leads.to_json(folder / "leads.json", orient="records")

    def run_to_the_end(self, kills: int) -> int:
        """Run until no row is left; kill up to `kills` runs and return the number killed."""
        killed = 0
        with scripted(self.between) as service:
            self.plan = self._plan(service.url)
            for what, most in (("submit", kills - RETRIES_KILLED), ("retry", kills)):
                while not self._is_complete(what):
                    killed += self._run(what, kill=killed < most)
        return killed

    def _plan(self, url: str) -> SubmissionPlan:
        self.url = url
        frame = pd.read_json(self.folder / "leads.json", dtype=False)
        return make_plan(frame, self.sequence_id, chunk_size=CHUNK_SIZE)

    def _run(self, what: str, *, kill: bool) -> bool:
        """Start a run, kill it if requested, and check it; return whether it was killed."""
        moment, delay = "end", PATIENCE
        if kill:
            moment = self.rng.choice(["time", "time", "time", "lost", "arrived", "handled"])
            longest = 0.12 if what == "submit" else 0.04
            delay = self.rng.uniform(0, longest) if moment == "time" else PATIENCE
        number = self.rng.randint(1, 12 if what == "submit" else 2)
        self.between.expect((number if moment not in ("end", "time") else 0, moment))
        arguments = self.url, self.sandbox.api_key, self.sequence_id, self.folder, CHUNK_SIZE, what
        with forked.Process(SUBMIT, *arguments, stdout=subprocess.PIPE) as process:

            def kill_now() -> None:
                with suppress(ProcessLookupError):
                    process.kill()

            self.between.kill = kill_now
            assert process.stdout is not None
            assert process.stdout.readline() == "planned\n"
            killing = threading.Timer(delay, kill_now)
            killing.start()
            code = process.wait()
            killing.cancel()
            killing.join()
        assert code == 0 or (kill and code == -signal.SIGKILL), code
        self.ended[f"{what}: {moment if code else 'end'}"] += 1
        self._check(what)
        return code != 0

    def _check(self, what: str) -> None:
        """Check a run's journal and requests against the earlier outcomes."""
        submission = {"service": self.url, **self.plan.fingerprint}
        place = JournalPlace(self.folder / "journal")
        with Journal(self.plan, Memory(""), place, submission, dry_run=True) as journal:
            now = {row: entry.outcome.status for row, entry in journal.entries().items()}
        sent, perhaps = set(self.between.sent), self.between.perhaps_added
        rows = self.frame["key"].tolist()
        there = {key(lead) for lead in self.sandbox.leads(self.sequence_id)}
        for row, status in self.known.items():
            tried_again = status in statuses.RETRYABLE or (what, status) == ("retry", "unknown")
            if not tried_again:
                assert rows[row] not in sent, f"row {row} was {status} and sent again"
                assert now[row] == status, f"row {row} was {status} and is {now[row]}"
            assert row in now, f"row {row} was {status} and is forgotten"
        for row, status in now.items():
            if status in statuses.IN_SEQUENCE:
                assert rows[row] in there, f"row {row} is {status}, and not in the sequence"
            if status in statuses.RETRYABLE:
                assert rows[row] not in perhaps, f"row {row} is {status}, and may be there"
        assert sent <= {rows[row] for row in now}
        self.known = now

    def _is_complete(self, what: str) -> bool:
        """Whether a run has ended and left no rows for another run of this kind."""
        if not (self.folder / "report.json").exists():
            return False
        report = json.loads((self.folder / "report.json").read_text())
        left = Counter(report)["not_sent"]
        if what == "retry":
            left += sum(
                status == "unknown" and not self._stays_unknown(row)
                for row, status in enumerate(report)
            )
        if left == 0 and what == "submit":
            (self.folder / "report.json").unlink()
        return left == 0

    def _stays_unknown(self, row: int) -> bool:
        """Whether an unknown row cannot become known: the service never adds it."""
        return bool(self.frame["expected"].iloc[row] != "here")

    def check_the_end(self) -> None:
        """Check the last report against the sandbox's database."""
        report = json.loads((self.folder / "report.json").read_text())
        assert len(report) == len(self.frame)
        kinds = ["here" if status in statuses.IN_SEQUENCE else status for status in report]
        wrong = [
            (row, status, expected)
            for row, (status, expected) in enumerate(
                zip(kinds, self.frame["expected"], strict=True)
            )
            if status != expected and not (status == "unknown" and self._stays_unknown(row))
        ]
        assert wrong == []
        there = Counter(key(lead) for lead in self.sandbox.leads(self.sequence_id))
        here = self.frame[self.frame["expected"] == "here"]
        assert there == Counter(here["key"])


@pytest.mark.parametrize(
    ("kills", "rows"),
    [
        (3, 1_000),
        pytest.param(200, 5_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)]),
    ],
)
def test_killed_at_any_moment(kills: int, rows: int, tmp_path: Path) -> None:
    """Kills and faults at any time lose no row, report none falsely, and resend no recorded row."""
    seed = int(os.environ.get("KILL_SEED", secrets.randbits(32)))
    print(f"To see this again: KILL_SEED={seed}")
    rng = random.Random(seed)
    done = 0
    for number in range(kills):
        folder = tmp_path / str(number)
        folder.mkdir()
        with serve(people=60, seed=number, faults=FAULTS) as sandbox:
            submission = Submission(rows, sandbox, folder, rng)
            done += submission.run_to_the_end(min(kills - done, 20))
            submission.check_the_end()
            print(submission.ended)
        if done == kills:
            break
    assert done == kills
