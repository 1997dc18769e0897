"""Measure the import time of the package relative to that of its dependencies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from tests.benchmarks.comparison import Comparison

RUNS = 15
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_TIMED = "from time import perf_counter as now; start = now(); import {}; print(now() - start)"


def compare() -> Iterator[Comparison]:
    """Measure fresh interpreters in turn; the first runs, which fill caches, are dropped."""
    ours, libraries = "outreach_frames", "pandas, requests, pyarrow"
    times: dict[str, list[float]] = {ours: [], libraries: []}
    for _ in range(RUNS + 1):
        for names, taken in times.items():
            taken.append(seconds_to_import(names))
    yield Comparison(
        "import outreach_frames",
        f"import {libraries}",
        median(times[ours][1:]),
        median(times[libraries][1:]),
        goal=1.1,
        at_most=True,
    )


def seconds_to_import(names: str) -> float:
    """Import modules in a fresh interpreter that may write bytecode."""
    # Without bytecode only this package would be compiled each time: pip compiled the libraries.
    environment = {key: value for key, value in os.environ.items() if key != _NO_BYTECODE}
    result = subprocess.run(
        [sys.executable, "-c", _TIMED.format(names)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return float(result.stdout)
