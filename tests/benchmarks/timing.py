"""Measure the shortest time of a few runs, and the memory of this process."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from time import perf_counter


def seconds(
    function: Callable[[], object], *, runs: int = 5, clock: Callable[[], float] = perf_counter
) -> float:
    """Return a function's shortest time, without garbage collection."""
    best = float("inf")
    for _ in range(runs):
        gc.collect()
        start = clock()
        result = function()
        best = min(best, clock() - start)
        del result
    return best


def resident_megabytes(what: str = "VmRSS") -> float:
    """Return the memory of this process, or its peak with "VmHWM"."""
    status = Path("/proc/self/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith(what))
    return int(kilobytes) / 1e3
