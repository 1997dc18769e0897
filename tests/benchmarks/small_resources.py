"""Benchmarks of contacts by address and of sequences page by page."""

from __future__ import annotations

from collections.abc import Iterator

import requests

import outreach_frames as of
from outreach_frames import spec
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.small_service import PER_PAGE, sequence_pages, small_service
from tests.benchmarks.timing import seconds

# A tenth of the typical 10,000: requesting these one by one would take minutes.
CONTACTS = 1_000
LATENCY = 0.02
WORKERS = 8
PAGES = 500


def compare_contacts() -> Iterator[Comparison]:
    """Measure contacts by address with eight workers and with one."""
    addresses = [f"first.last{number}@brightforge.example" for number in range(CONTACTS)]

    def read(workers: int) -> None:
        with of.connect(url, "token", cache=None, workers=workers) as client:
            found = of.contacts(emails=addresses, client=client, progress=False)
        assert found["found"].all()

    with small_service(latency=LATENCY) as url:
        yield Comparison(
            f"{CONTACTS:,} contacts by address, {WORKERS} workers, "
            f"{LATENCY * 1000:.0f} ms per request",
            "one request after the other",
            seconds(lambda: read(WORKERS), runs=2),
            seconds(lambda: read(1), runs=1),
            goal=7,
            floor=CONTACTS / WORKERS * LATENCY,
            floor_is="the service's delays alone",
        )


def compare_sequences() -> Iterator[Comparison]:
    """Measure all sequences as a frame, and the same pages fetched without parsing."""

    def read() -> None:
        with of.connect(url, "token", cache=None) as client:
            assert len(of.sequences(client=client, progress=False)) == PAGES * PER_PAGE

    def fetch() -> None:
        with requests.Session() as session:
            session.headers["Authorization"] = "Bearer token"
            for page in range(PAGES):
                address = f"{url}{spec.LIST_SEQUENCES.path}"
                query = {"after": str(page)} if page else {}
                assert session.get(address, params=query, timeout=60).content == expected[page]

    expected = sequence_pages(PAGES)
    with small_service(pages=PAGES) as url:
        yield Comparison(
            f"{PAGES * PER_PAGE:,} sequences, {PAGES} linked pages",
            "the same pages fetched by requests, unread",
            seconds(read, runs=3),
            seconds(fetch, runs=3),
            goal=1.2,
            at_most=True,
        )
