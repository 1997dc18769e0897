"""Each request of a submission fails in turn, once or for good, and no row is lost or doubled."""

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


@pytest.fixture(scope="module")
def target() -> Iterator[Sandbox]:
    """Start a sandbox whose sequences only this module fills."""
    with serve(people=20) as running:
        yield running


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("kind", FAULTS)
def test_any_request_of_a_submission_may_fail(
    kind: str, lasting: bool, target: Sandbox, tmp_path: Path
) -> None:
    """Whichever request fails, the report and the journal say what the database does."""
    gateway = Gateway(target)
    with scripted(gateway) as service:
        with Client(service.url, target.api_key, cache=None, backoff=0) as client:
            for number in count(1):
                folder = tmp_path / str(number)
                folder.mkdir()
                submission = Submission(gateway, client, folder)
                struck = False
                for _ in ("a first run", "a second one"):
                    gateway.fault = Fault(kind, number, lasting=lasting)
                    submission.attempt()
                    struck |= gateway.struck
                gateway.fault = None
                submission.recover()
                if not struck:
                    break
    assert number > 3
