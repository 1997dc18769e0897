"""A submission that is killed repeatedly loses no row, sends none twice and reports correctly."""

from __future__ import annotations

import http.client
import json
import os
import queue
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
from tests import scripted as script
from tests.scripted import Received, Reply, scripted

pytestmark = pytest.mark.long

CHUNK_SIZE = 25
# The number of a submission's kills that are reserved for runs that resend unknown rows.
RETRIES_KILLED = 2
RUNNER = Path(__file__).with_name("runner.py")

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
    """A proxy between the runs and the sandbox, which records leads and requests kills.

    It puts "kill" into `events` when the fatal request arrives, or before its response is sent, and
    waits for the kill. A request that arrived is then lost or passed on.
    """

    def __init__(self, sandbox: Sandbox, events: queue.Queue[str], rng: random.Random) -> None:
        self._sandbox = sandbox
        self._events = events
        self._rng = rng
        self._lock = threading.Lock()
        self.killed = threading.Event()
        self.sent: list[str] = []
        # Leads that may have been added: their last request was not refused.
        self.perhaps_added: set[str] = set()
        self.fatal: tuple[int, str] = (0, "")
        self._requests = 0

    def expect(self, fatal: tuple[int, str]) -> None:
        """Prepare for the next run; the run is killed in its `fatal` request."""
        with self._lock:
            self.sent, self.fatal, self._requests = [], fatal, 0
            self.killed.clear()

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
            self._kill()
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
            self._kill()
        return reply

    def _kill(self) -> None:
        self._events.put("kill")
        self.killed.wait()


def key(lead: Mapping[str, Any]) -> str:
    """Return the key of a lead."""
    return str(lead.get("email") or lead.get("profnet_url")).casefold()


class Submission:
    """A submission in many runs, with the outcomes that later runs must not change."""

    def __init__(self, rows: int, sandbox: Sandbox, folder: Path, rng: random.Random) -> None:
        self.sandbox, self.folder, self.rng = sandbox, folder, rng
        self.frame = make_leads(rows, sandbox, rng)
        self.sequence_id = sandbox.sequence_ids["needs_email"]
        self.events: queue.Queue[str] = queue.Queue()
        self.between = KillingProxy(sandbox, self.events, rng)
        self.known: dict[int, str] = {}
        self.ended: Counter[str] = Counter()
        leads = self.frame.drop(columns=["expected", "key"])
        leads.to_json(folder / "leads.json", orient="records")

    def run_to_the_end(self, kills: int) -> int:
        """Run until no row is left; kill up to `kills` runs and return the number killed."""
        killed = 0
        with scripted(self.between) as service, self._runner(service.url) as runner:
            self.plan = self._plan(service.url)
            for what, most in (("submit", kills - RETRIES_KILLED), ("retry", kills)):
                while not self._is_complete(what):
                    killed += self._run(runner, what, kill=killed < most)
        return killed

    def _plan(self, url: str) -> SubmissionPlan:
        self.url = url
        frame = pd.read_json(self.folder / "leads.json", dtype=False)
        return make_plan(frame, self.sequence_id, chunk_size=CHUNK_SIZE)

    @contextmanager
    def _runner(self, url: str) -> Iterator[subprocess.Popen[str]]:
        arguments = [url, self.sandbox.api_key, self.sequence_id, str(self.folder), str(CHUNK_SIZE)]
        with subprocess.Popen(
            [sys.executable, "-m", "tests.leads.sending.runner", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=RUNNER.parents[3],
        ) as runner:
            assert runner.stdout is not None
            listener = threading.Thread(target=self._listen, args=(runner.stdout,))
            listener.start()
            try:
                assert self.events.get(timeout=200) == "ready"
                yield runner
            finally:
                assert runner.stdin is not None
                runner.stdin.close()
                listener.join()

    def _listen(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.events.put(line.strip())

    def _command(self, runner: subprocess.Popen[str], what: str) -> str:
        assert runner.stdin is not None
        runner.stdin.write(f"{what}\n")
        runner.stdin.flush()
        return self.events.get(timeout=200)

    def _run(self, runner: subprocess.Popen[str], what: str, *, kill: bool) -> bool:
        """Start a run, kill it if requested, and check it; return whether it was killed."""
        moment, delay = "", 60.0
        if kill:
            moment = self.rng.choice(["time", "time", "time", "lost", "arrived", "handled"])
            longest = 0.12 if what == "submit" else 0.04
            delay = self.rng.uniform(0, longest) if moment == "time" else 60.0
        number = self.rng.randint(1, 12 if what == "submit" else 2)
        self.between.expect((number if moment not in ("", "time") else 0, moment))
        pid = int(self._command(runner, what))
        try:
            ended = self.events.get(timeout=delay)
        except queue.Empty:
            ended = "time"
        assert not ended.startswith("failed"), ended
        assert kill or ended == "ended", ended
        os.kill(pid, signal.SIGKILL)
        self.between.killed.set()
        reply = self._command(runner, "reap")
        while not reply.startswith("reaped"):
            reply = self.events.get(timeout=200)
        self.ended[f"{what}: {ended if ended != 'kill' else moment}"] += 1
        self._check(what)
        return kill and reply == f"reaped {int(signal.SIGKILL)}"

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
