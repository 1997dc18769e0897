"""How long something takes: the best of a few runs, as other work on the machine only slows."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter


def seconds(function: Callable[[], object], *, runs: int = 5) -> float:
    """Time a function, without its garbage."""
    best = float("inf")
    for _ in range(runs):
        gc.collect()
        start = perf_counter()
        result = function()
        best = min(best, perf_counter() - start)
        del result
    return best
