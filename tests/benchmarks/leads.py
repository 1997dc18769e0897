"""Benchmarks of planning and serialising leads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from outreach_frames import spec
from outreach_frames.leads.plan import make_plan
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.timing import resident_megabytes, seconds

ROWS = 100_000
MANY_ROWS = 1_000_000
DATA = ["first_name", "last_name", "title", "company_name", "location"]


def compare() -> Iterator[Comparison]:
    """Measure clean rows, and rows of which 10 % are invalid, missing or duplicate."""
    for name, frame in {"clean": clean_rows(), "messy": messy_rows()}.items():
        yield Comparison(
            f"plan() of {ROWS:,} {name} rows",
            "json.dumps over itertuples, no checks",
            seconds(lambda f=frame: plan(f)),
            seconds(lambda f=frame: serialise(f), runs=3),
            goal=1,
        )


def compare_memory() -> Iterator[Comparison]:
    """Measure the memory of a plan of a million rows in a separate process."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.leads", str(MANY_ROWS)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    peak, frame = json.loads(result.stdout)
    yield Comparison(
        f"peak memory of plan() of {MANY_ROWS:,} rows and all requests, without the frame",
        "the frame",
        peak,
        frame,
        goal=3,
        unit="MB",
        at_most=True,
    )


def measure_memory(rows: int) -> tuple[float, float]:
    """Plan and serialise; return the peak memory without the frame, and the frame's, in MB."""
    frame = clean_rows(rows)
    plan(frame.head(100))
    before = resident_megabytes()
    # Linux resets the peak here.
    Path("/proc/self/clear_refs").write_text("5")
    plan(frame)
    return resident_megabytes("VmHWM") - before, frame.memory_usage(deep=True).sum() / 1e6


def plan(frame: pd.DataFrame) -> None:
    """Check all rows, and serialise each request."""
    made = make_plan(frame, "seq_1", data=DATA)
    for positions in made.chunks():
        made.body(positions)


def serialise(frame: pd.DataFrame) -> list[str]:
    """Serialise all rows in batches of one request, without checks."""
    leads = [
        {
            "email": row.email,
            "profnet_url": row.profnet_url,
            "data": {
                "first_name": row.first_name,
                "last_name": row.last_name,
                "title": row.title,
                "company_name": row.company_name,
                "location": row.location,
            },
        }
        for row in frame.itertuples()
    ]
    size = spec.MAX_LEADS_PER_REQUEST
    return [
        json.dumps({spec.LEADS_KEY: leads[start : start + size]})
        for start in range(0, len(leads), size)
    ]


def clean_rows(rows: int = ROWS) -> pd.DataFrame:
    """Make valid rows."""
    return pd.DataFrame(
        {
            "email": [f"first.last{row}@company{row % 5000}.example" for row in range(rows)],
            "profnet_url": [f"https://www.profnet.example/in/first-{row}/" for row in range(rows)],
            "first_name": [f"Zoë {row % 900}" for row in range(rows)],
            "last_name": [
                f'O"Hara {row}' if row % 100 == 0 else f"Hara {row}" for row in range(rows)
            ],
            "title": [f"Head of Department {row % 300}" for row in range(rows)],
            "company_name": [f"Company {row % 5000} Ltd" for row in range(rows)],
            "location": [f"City {row % 700}, Country" for row in range(rows)],
        }
    )


def messy_rows() -> pd.DataFrame:
    """Make rows of which 10 % are invalid, missing or duplicate."""
    frame = clean_rows()
    frame.loc[::30, "email"] = "N/A"
    frame.loc[10::30, "email"] = [f"broken{row}@" for row in range(len(frame.index[10::30]))]
    frame.loc[20::30, "profnet_url"] = "https://profnet.example/in/first-1"
    frame.loc[::7, "location"] = None
    return frame


if __name__ == "__main__":
    print(json.dumps(measure_memory(int(sys.argv[1]))))
