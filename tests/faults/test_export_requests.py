"""Each request of an export fails in turn, and the file is complete in the end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachError
from outreach_frames.sandbox import Sandbox, serve
from tests.faults.gateway import FAULTS, Fault, Gateway
from tests.scripted import scripted

pytestmark = pytest.mark.long

PEOPLE, PAGE_SIZE = 4, 2
OFTEN = {"reset before", "short body", "no JSON", "429", "401"}


@pytest.fixture(scope="module")
def target() -> Iterator[Sandbox]:
    """Start a sandbox with few people."""
    with serve(people=PEOPLE) as running:
        yield running


@pytest.mark.parametrize("first", ["once", pytest.param("for good", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "kind",
    # A request for people changes nothing, so that a fault before it and after it are the same.
    [kind if kind in OFTEN else pytest.param(kind, marks=pytest.mark.slow) for kind in FAULTS],
)
def test_any_request_of_an_export_may_fail(
    kind: str, first: str, target: Sandbox, tmp_path: Path
) -> None:
    """Whichever request fails, the file is missing or complete, and the next call completes it."""
    gateway = Gateway(target)
    with scripted(gateway) as service:
        with Client(
            service.url, target.api_key, cache=None, backoff=0, max_wait=0.1, workers=1
        ) as client:

            def export(path: Path) -> None:
                of.export_people(path, page_size=PAGE_SIZE, client=client, progress=False)

            export(tmp_path / "expected.csv")
            expected = (tmp_path / "expected.csv").read_bytes()
            assert expected.count(b"\n") == PEOPLE + 1
            for number in count(1):
                lasting = (number % 2 == 0) == (first == "once")
                path = tmp_path / str(number) / "people.csv"
                path.parent.mkdir()
                gateway.fault = Fault(kind, number, lasting=lasting)
                try:
                    export(path)
                except OutreachError:
                    assert not path.exists()
                struck, gateway.fault = gateway.struck, None
                export(path)
                assert path.read_bytes() == expected
                notes = f"{path.name}-metadata.json"
                assert sorted(left.name for left in path.parent.iterdir()) == [path.name, notes]
                if not struck:
                    break
    assert number > PEOPLE // PAGE_SIZE
