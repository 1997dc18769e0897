"""Compare the benchmarks of another commit with those of this tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
# A row that is slower than before by more than this factor is marked.
TOLERANCE = 1.05
# Each side runs its own version of the benchmarks.
_MEASURE = """
import json, sys
from tests.benchmarks.__main__ import MEASUREMENTS
print(json.dumps([[one.what, one.ours, one.other] for one in MEASUREMENTS[sys.argv[1]]()]))
"""
# Our figure and the alternative's figure of each row of a measurement.
Figures = Mapping[str, tuple[float, float]]


def print_ratios(commit: str, names: Iterable[str], *, runs: int) -> None:
    """Measure each name on the commit and on this tree in turn, and print one line per row."""
    print("| what | after / before | the alternative's |\n|---|--:|--:|")
    with checkout(commit) as before:
        for name in names:
            pairs = []
            for run in range(runs):
                # The two sides take turns at running first.
                sides = (before, ROOT) if run % 2 == 0 else (ROOT, before)
                measured = {side: _measure(side, name) for side in sides}
                pairs.append((measured[before], measured[ROOT]))
            for line in ratios(pairs):
                print(line, flush=True)


def ratios(pairs: Sequence[tuple[Figures, Figures]]) -> Iterator[str]:
    """Yield a line per row that both sides have, with the median ratios of the runs.

    If the alternative's ratio is not near 1, the machine was busy.
    """
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for before, after in pairs:
        for what in before.keys() & after.keys():
            (old, other), (new, now) = before[what], after[what]
            found[what].append((new / old, now / other))
    for what, of_runs in found.items():
        ours, others = map(median, zip(*of_runs, strict=True))
        mark = " (slower)" if ours > TOLERANCE else ""
        yield f"| {what} | {ours:.2f}{mark} | {others:.2f} |"


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder, and remove the folder afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "before"
        _git("worktree", "add", "--quiet", "--detach", str(place), commit)
        try:
            yield place
        finally:
            _git("worktree", "remove", "--force", str(place))


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True)


def _measure(side: Path, name: str) -> Figures:
    """Run one measurement in a checkout with that checkout's package."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _MEASURE, name],
        cwd=side,
        env=os.environ | {"PYTHONPATH": str(side)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {what: (ours, other) for what, ours, other in json.loads(done.stdout.splitlines()[-1])}
