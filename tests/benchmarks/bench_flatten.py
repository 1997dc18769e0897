"""How fast 100 pages of 100 people become a frame and a file, beside the usual ways.

Run by ``python -m tests.benchmarks.bench_flatten``. Prints ours, the other, and how many times
faster ours is.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import orjson
import pandas as pd

from outreach_frames import spec
from outreach_frames.export import read_prospects, write_csv
from outreach_frames.flatten import PeoplePage, people_frame, read_people_page, read_people_pages
from tests.benchmarks.pages import people_pages
from tests.benchmarks.timing import seconds

PAGES = 100
THREADS = 4


def main() -> None:
    """Print the table."""
    bodies = people_pages(PAGES)
    print(f"{PAGES} pages, {sum(map(len, bodies)) / 1e6:.1f} MB")
    usual = seconds(lambda: json_normalize(bodies), runs=2)
    parse = seconds(lambda: [orjson.loads(body) for body in bodies])
    with ThreadPoolExecutor(THREADS) as executor:
        ways: dict[str, Callable[[], list[PeoplePage]]] = {
            "all pages at once": lambda: [read_people_pages(bodies)],
            "page by page": lambda: [read_people_page(body) for body in bodies],
            f"page by page, {THREADS} threads": lambda: list(
                executor.map(read_people_page, bodies)
            ),
        }
        for name, read in ways.items():
            ours = seconds(partial(people_frame_by, read))
            report(f"frame, {name} / json.loads + json_normalize", ours, usual)
            report(f"frame, {name} / orjson.loads alone", ours, parse)
    pages = [read_people_pages(bodies)]
    frame = people_frame(pages)
    report(
        "people_frame alone / pyarrow backend",
        seconds(lambda: people_frame(pages)),
        seconds(lambda: people_frame(pages, "pyarrow")),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        report(
            "write_csv / DataFrame.to_csv",
            seconds(lambda: write_csv(frame, path)),
            seconds(lambda: frame.to_csv(Path(folder) / "other.csv", index=False), runs=1),
        )
        report(
            "read_prospects / read_csv + json.loads",
            seconds(lambda: read_prospects(path)),
            seconds(lambda: read_csv(path), runs=2),
        )


def people_frame_by(read: Callable[[], list[PeoplePage]]) -> pd.DataFrame:
    """Do it our way."""
    return people_frame(read())


def json_normalize(bodies: list[bytes]) -> pd.DataFrame:
    """Do it the usual way."""
    people = [person for body in bodies for person in json.loads(body)[spec.RESULTS_KEY]]
    return pd.json_normalize(people, sep="_")


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV the usual way, lists included."""
    frame = pd.read_csv(path)
    for name, field in spec.columns(spec.PERSON).items():
        if field.type == "array":
            frame[name] = [
                json.loads(cell) if isinstance(cell, str) else cell for cell in frame[name]
            ]
    return frame


def report(name: str, ours: float, other: float) -> None:
    """Print one comparison."""
    print(f"{name:70} {ours:7.3f} s {other:7.3f} s {other / ours:6.1f} x")


if __name__ == "__main__":
    main()
