"""Each request of a submission fails in turn, and no row is lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from outreach_frames.client.client import Client
from outreach_frames.sandbox import Sandbox, serve
from tests.faults.gateway import FAULTS, Fault, Gateway
from tests.faults.submission import Submission
from tests.scripted import scripted

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def target() -> Iterator[Sandbox]:
    """Start a sandbox whose sequences no other module changes."""
    with serve(people=20) as running:
        yield running


@pytest.mark.parametrize(
    ("first", "step"),
    [
        ("once", 4),
        pytest.param("once", 1, marks=pytest.mark.slow),
        pytest.param("for good", 1, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", FAULTS)
def test_any_request_of_a_submission_may_fail(
    kind: str, first: str, step: int, target: Sandbox, tmp_path: Path
) -> None:
    """Whichever request fails, the report and the journal agree with the database."""
    gateway = Gateway(target)
    with scripted(gateway) as service:
        # A refused client pauses for longer than the maximum, so another one recovers.
        with (
            Client(service.url, target.api_key, cache=None, backoff=0, max_wait=0.1) as client,
            Client(service.url, target.api_key, cache=None, backoff=0) as patient,
        ):
            # With a step, each kind of fault starts at a different request.
            for number in count(1 + list(FAULTS).index(kind) % step, step):
                lasting = (number % 2 == 0) == (first == "once")
                folder = tmp_path / str(number)
                folder.mkdir()
                submission = Submission(gateway, client, folder)
                struck = False
                for _ in ("a first run", "a second one"):
                    gateway.fault = Fault(kind, number, lasting=lasting)
                    submission.attempt()
                    struck |= gateway.struck
                gateway.fault = None
                submission.client = patient
                submission.recover()
                if not struck:
                    break
    assert number > 3
