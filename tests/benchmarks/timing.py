"""How long something takes, the best of a few runs as other work only slows; and its memory."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from time import perf_counter


def seconds(
    function: Callable[[], object], *, runs: int = 5, clock: Callable[[], float] = perf_counter
) -> float:
    """Time a function, without its garbage."""
    best = float("inf")
    for _ in range(runs):
        gc.collect()
        start = clock()
        result = function()
        best = min(best, clock() - start)
        del result
    return best


def resident_megabytes(what: str = "VmRSS") -> float:
    """Return the memory that this process holds, or with "VmHWM" the most that it has held."""
    status = Path("/proc/self/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith(what))
    return int(kilobytes) / 1e3
