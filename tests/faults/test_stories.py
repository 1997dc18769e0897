"""Random sequences of submissions, faults, kills, other clients and retries."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count
from multiprocessing.process import BaseProcess as Process
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachError, OutreachWarning
from outreach_frames.leads import statuses
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.sandbox import Sandbox, serve
from tests.faults.checker import check_report
from tests.faults.gateway import FAULTS, Fault, Gateway, key
from tests.faults.submission import ROWS, add
from tests.scripted import Received, Reply, reset, scripted

pytestmark = pytest.mark.long

PEOPLE = 20
# Its processes start with all modules imported, and without threads of this process.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.faults.submission"])
_numbers = count()


def submit_elsewhere(
    url: str, token: str, frame: pd.DataFrame, sequence_id: str, journal: Path
) -> None:
    """Submit in a process that is killed at some request."""
    with suppress(OutreachError), Client(url, token, cache=None, backoff=0) as client:
        add(frame, sequence_id, client, journal)


@pytest.fixture(scope="module")
def target() -> Iterator[Sandbox]:
    """Start a sandbox whose sequences no other module changes."""
    with serve(people=PEOPLE) as running:
        yield running


class Killing(Gateway):
    """A gateway that can kill the submitting process, before or after a request is carried out."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        self.requests_left, self.acts_first = 0, False
        self.victim: Process | None = None

    def __call__(self, received: Received) -> Reply:
        """Respond like the sandbox, but kill the process at its last request."""
        adds_leads = received.method == "POST" and received.path.endswith("/leads")
        self.requests_left -= adds_leads
        if self.victim is None or not adds_leads or self.requests_left:
            return super().__call__(received)
        if self.acts_first:
            super().__call__(received)
        self.victim.kill()
        return reset()


def machine_of(target: Sandbox) -> type[RuleBasedStateMachine]:
    """Return the state machine for a sandbox."""

    class Story(RuleBasedStateMachine):
        """One journal and everything that can happen to it."""

        def __init__(self) -> None:
            super().__init__()
            self.open = ExitStack()
            folder = Path(self.open.enter_context(tempfile.TemporaryDirectory())) / "journals"
            folder.mkdir()
            self.journal = folder / "journal"
            self.gateway = Killing(target)
            self.url = self.open.enter_context(scripted(self.gateway)).url
            self.use_another_client()
            self.sequence_id = target.sequence_ids["accepts_any"]
            emails = [f"story{next(_numbers)}@example.com" for _ in range(ROWS)]
            self.frame = pd.DataFrame({"email": emails})
            self.retried: Counter[str] = Counter()
            self.report: SubmissionReport | None = None

        @rule(kind=st.sampled_from(sorted(FAULTS)), number=st.integers(1, 6), lasting=st.booleans())
        def something_goes_wrong(self, kind: str, number: int, lasting: bool) -> None:
            self.gateway.fault = Fault(kind, number, lasting=lasting)

        @rule()
        def all_is_well(self) -> None:
            self.gateway.fault = None

        @rule()
        def use_another_client(self) -> None:
            client = Client(self.url, target.api_key, cache=None, backoff=0)
            self.client = self.open.enter_context(client)

        @rule()
        def search(self) -> None:
            try:
                people = of.search_people(client=self.client, page_size=7, limit=None)
            except OutreachError:
                return
            assert len(people) == people["id"].nunique() == PEOPLE

        @rule()
        def submit(self) -> None:
            before = self.gateway.committed.total()
            try:
                self.report = add(self.frame, self.sequence_id, self.client, self.journal)
            except OutreachError:
                assert self.gateway.committed.total() == before
                return
            self.check()

        @rule(request=st.integers(1, 3), acts_first=st.booleans())
        def submit_and_be_killed(self, request: int, acts_first: bool) -> None:
            given = (self.url, target.api_key, self.frame, self.sequence_id, self.journal)
            self.gateway.requests_left, self.gateway.acts_first = request, acts_first
            self.gateway.victim = victim = FORKS.Process(target=submit_elsewhere, args=given)
            victim.start()
            victim.join(60)
            assert victim.exitcode in {0, -signal.SIGKILL}
            self.gateway.victim = self.report = None

        @rule()
        def retry_unknown(self) -> None:
            if self.report is None or not self.unknown():
                return
            self.retried.update(self.unknown())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OutreachWarning)
                try:
                    self.report = self.report.retry_unknown()
                except OutreachError:
                    return
            self.check()

        def teardown(self) -> None:
            """Check that in the end all leads are in the sequence."""
            try:
                self.all_is_well()
                self.submit()
                self.retry_unknown()
                assert self.report is not None
                assert set(self.report.rows["status"]) <= statuses.IN_SEQUENCE
            finally:
                self.open.close()

        def unknown(self) -> list[str]:
            """Return the unknown leads of the last report."""
            assert self.report is not None
            unknown = self.report.rows["status"].eq(statuses.UNKNOWN).to_numpy()
            return [key(lead) for lead in self.report.frame[unknown].to_dict("records")]

        def check(self) -> None:
            """Check the last report against the database, and each lead's number of requests."""
            assert self.report is not None
            check_report(self.report, {key(lead) for lead in target.leads(self.sequence_id)})
            for lead, times in self.gateway.committed.items():
                assert times <= 1 + self.retried[lead], lead

    return Story


@pytest.mark.parametrize(
    "examples",
    [
        6,
        pytest.param(1_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)]),
    ],
)
def test_every_story_ends_well(examples: int, target: Sandbox) -> None:
    """After any story, reports are correct, and leads are added once unless retried."""
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine_of(target),
        settings=settings(
            max_examples=examples,
            stateful_step_count=6,
            deadline=None,
            print_blob=True,
            # Shrinking a story takes minutes, and a story of a few steps is readable without it.
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            suppress_health_check=list(HealthCheck),
        ),
    )
