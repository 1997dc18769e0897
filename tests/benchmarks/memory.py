"""Measure the peak memory of a whole search in a separate process; Linux only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from tests.benchmarks.comparison import Comparison
from tests.benchmarks.service import sandbox

PEOPLE = 100_000
_SEARCH = """
import json, sys
from pathlib import Path
import outreach_frames as of
from tests.benchmarks.timing import resident_megabytes

with of.connect(*sys.argv[1:], cache=None):
    of.search_people(limit=200, progress=False)  # what is imported and made once
    Path("/proc/self/clear_refs").write_text("5")  # the height is counted from here
    before = resident_megabytes()
    people = of.search_people(limit=None, progress=False)
    peak = resident_megabytes("VmHWM") - before
print(json.dumps([peak, int(people.memory_usage(deep=True).sum()) / 1e6, len(people)]))
"""


def compare() -> Iterator[Comparison]:
    """Measure a search of 100,000 people without a cache."""
    peak, frame = peak_and_frame(PEOPLE)
    yield Comparison(
        f"peak memory of a search of {PEOPLE:,} people",
        "size of the frame",
        peak,
        frame,
        goal=2,
        unit="MB",
        at_most=True,
    )


def peak_and_frame(people: int) -> tuple[float, float]:
    """Search people in another process; return its peak memory and the frame's size in MB."""
    with sandbox(people) as service:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _SEARCH, *service],
            capture_output=True,
            text=True,
            check=True,
        )
    peak, frame, found = json.loads(done.stdout)
    assert found == people
    return peak, frame
