"""Benchmarks of a whole search and a whole export with the sandbox in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import pandas as pd
import requests
from requests.adapters import HTTPAdapter

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachWarning
from outreach_frames.reading.pages import PeopleReader, as_one_page
from outreach_frames.tables.schema import to_frame
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.pages import people_pages
from tests.benchmarks.timing import resident_megabytes, seconds

PEOPLE = 10_000
_SIZE = spec.MAX_SEARCH_PAGE_SIZE
_WORKERS = 4
_SERVE = (
    "import sys, outreach_frames as of\n"
    "with of.sandbox.serve(people=int(sys.argv[1])) as service:\n"
    "    print(service.url, service.api_key, flush=True)\n"
    "    sys.stdin.read()\n"
)
Service = tuple[str, str]


@contextmanager
def sandbox(people: int) -> Iterator[Service]:
    """Serve this many people from another process; yield its address and token."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(people)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url, token = process.stdout.readline().split()
        try:
            yield url, token
        finally:
            process.stdin.close()


def compare_search() -> Iterator[Comparison]:
    """Measure a search of 10,000 people without a cache."""
    with sandbox(PEOPLE) as service:
        url, token = service
        with of.connect(url, token, cache=None) as client:
            ours = seconds(lambda: search(client), runs=3)
        other = seconds(lambda: loop_and_normalize(service, PEOPLE), runs=2)
        wire = seconds(lambda: fetch_only(service, PEOPLE), runs=3)
        yield Comparison(
            f"search {PEOPLE:,} people into a frame, no cache",
            f"a requests loop with page_size={_SIZE} + json_normalize",
            ours,
            other,
            goal=5,
            floor=wire,
            floor_is=f"the same bytes fetched by {_WORKERS} threads, unread",
        )


def compare_cached() -> Iterator[Comparison]:
    """Measure a search that fills the cache, and the same search from the cache."""
    with sandbox(PEOPLE) as service, tempfile.TemporaryDirectory() as folder:
        url, token = service
        plain, first, again, sizes = [], [], [], []
        for run in range(3):
            with of.connect(url, token, cache=None) as client:
                plain.append(seconds(lambda c=client: search(c), runs=1))
            path = Path(folder) / f"cache{run}.sqlite"
            with of.connect(url, token, cache=path) as client:
                first.append(seconds(lambda c=client: search(c), runs=1))
                again.append(seconds(lambda c=client: search(c), runs=2))
            sizes.append(path.stat().st_size)
        fetched = fetch_only(service, PEOPLE)
    people = f"{PEOPLE:,} people"
    pages = as_one_page(PeopleReader().read(people_pages(PEOPLE // _SIZE))).people
    yield Comparison(
        f"a second, cached search of {people}",
        "the first search",
        min(again),
        min(first),
        goal=8,
        floor=seconds(lambda: to_frame(pages, "numpy_nullable")),
        floor_is="converting the table in memory to a frame",
    )
    yield Comparison(
        "the first search, which fills the cache",
        "the same search without a cache",
        min(first),
        min(plain),
        goal=1.1,
        at_most=True,
    )
    yield Comparison(
        "size of the cache file after this search",
        "JSON of the responses",
        min(sizes) / 1e6,
        fetched / 1e6,
        goal=0.25,
        unit="MB",
        at_most=True,
    )


def compare_export(people: int) -> Iterator[Comparison]:
    """Measure exports relative to fetching the same bytes and to a loop with to_csv."""
    with sandbox(people) as service, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, peak = run_apart(export, service, folder, people)
        _, peak_of_few = run_apart(export, service, folder, people // 10)
        wire = seconds(lambda: fetch_only(service, people), runs=2)
        for ending, (way, goal) in {
            "CSV": (export, 3.5),
            "Parquet": (export_parquet, 3.2),
        }.items():
            taken = ours if way is export else run_apart(way, service, folder, people)[0]
            yield Comparison(
                f"export_people of {people:,} people to {ending}",
                f"the same bytes fetched by {_WORKERS} threads, unread",
                taken,
                wire,
                goal=goal,
                at_most=True,
            )
        taken, _ = run_apart(export_by_loop, service, folder, people)
        yield Comparison(
            f"export_people of {people:,} people to CSV",
            f"a requests loop with page_size={_SIZE} + json_normalize + to_csv",
            ours,
            taken,
            goal=5,
            floor=wire,
            floor_is=f"the same bytes fetched by {_WORKERS} threads, unread",
        )
        yield Comparison(
            f"peak memory of export_people to CSV, {people:,} people",
            f"an export of {people // 10:,} people (and under 400 MB)",
            peak,
            peak_of_few,
            goal=1.15,
            unit="MB",
            at_most=True,
        )


def search(client: Client) -> pd.DataFrame:
    """Search with this package."""
    frame = of.search_people(limit=None, client=client, progress=False)
    assert len(frame) == PEOPLE
    return frame


def loop_and_normalize(service: Service, people: int) -> pd.DataFrame:
    """Search with a requests loop and pd.json_normalize."""
    url, token = service
    rows: list[object] = []
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {token}"
        for page in range(1, people // _SIZE + 1):
            response = session.post(
                url + spec.SEARCH_PEOPLE.path, json={"page": page, "page_size": _SIZE}, timeout=60
            )
            rows += response.json()[spec.RESULTS_KEY]
    return pd.json_normalize(rows, sep="_")


def fetch_only(service: Service, people: int) -> int:
    """Fetch all pages without parsing them, to measure the loopback device and the sandbox."""
    url, token = service

    def fetch(page: int) -> int:
        response = session.post(
            url + spec.SEARCH_PEOPLE.path, json={"page": page, "page_size": _SIZE}, timeout=60
        )
        return len(response.content)

    with requests.Session() as session, ThreadPoolExecutor(_WORKERS) as executor:
        session.mount("http://", HTTPAdapter(pool_maxsize=_WORKERS))
        session.headers["Authorization"] = f"Bearer {token}"
        return sum(executor.map(fetch, range(1, people // _SIZE + 1)))


def export(service: Service, folder: Path, people: int, name: str = "ours.csv") -> None:
    """Export with this package."""
    # An export of a tenth of the people warns that it is incomplete.
    warnings.simplefilter("ignore", OutreachWarning)
    with of.connect(*service, cache=None) as client:
        of.export_people(folder / name, limit=people, client=client, progress=False)


def export_parquet(service: Service, folder: Path, people: int) -> None:
    """Export to Parquet with this package."""
    export(service, folder, people, "ours.parquet")


def export_by_loop(service: Service, folder: Path, people: int) -> None:
    """Export with a requests loop and to_csv."""
    loop_and_normalize(service, people).to_csv(folder / "loop.csv", index=False)


Way = Callable[[Service, Path, int], None]
_EXPORTS = (export, export_parquet, export_by_loop)
_WAYS: dict[str, Way] = {way.__name__: way for way in _EXPORTS}


def run_apart(way: Way, service: Service, folder: Path, people: int) -> tuple[float, float]:
    """Run one export in a separate process; return its seconds and peak memory in MB."""
    arguments = json.dumps([way.__name__, service, str(folder), people])
    result = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.service", arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    taken, peak = json.loads(result.stdout.splitlines()[-1])
    return taken, peak


def main(arguments: str) -> None:
    """Run the export that `run_apart` requests, and print its seconds and peak memory."""
    name, (url, token), folder, people = json.loads(arguments)
    start = perf_counter()
    _WAYS[name]((url, token), Path(folder), people)
    print(json.dumps([perf_counter() - start, resident_megabytes("VmHWM")]))


if __name__ == "__main__":
    main(sys.argv[1])
