"""Compare the benchmarks of another commit with those of this tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

from tests.benchmarks.comparison import Comparison, amount

ROOT = Path(__file__).parents[2]
# A row that is slower than before by more than this factor is marked.
TOLERANCE = 1.05
# Each side runs its own version of the benchmarks.
_MEASURE = """
import json, sys
from tests.benchmarks.__main__ import MEASUREMENTS
if sys.argv[1] not in MEASUREMENTS:
    print("null")
else:
    print(json.dumps([one.as_dict() for one in MEASUREMENTS[sys.argv[1]]()]))
"""


@dataclass(frozen=True)
class Change:
    """One benchmark row of both sides: figures in `unit`, and ratios after / before."""

    what: str
    unit: str
    before: float
    after: float
    ratio: float
    other_ratio: float


_print_now = partial(print, flush=True)


def measure_against(
    commit: str, names: Iterable[str], *, runs: int, report: Callable[[str], object] = _print_now
) -> list[Change]:
    """Measure each name on the commit and on this tree in turn, and report one line per row."""
    changes: list[Change] = []
    with checkout(commit) as before:
        for name in names:
            pairs = []
            for run in range(runs):
                # The two sides take turns at running first.
                sides = (before, ROOT) if run % 2 == 0 else (ROOT, before)
                measured = {side: _measure(side, name) for side in sides}
                pairs.append((measured[before], measured[ROOT]))
            found = changes_of(pairs)
            if not found:
                report(f"{name}: {commit} has no row of it that this tree has")
            for change in found:
                changes.append(change)
                report(as_markdown([change]).splitlines()[-1])
    return changes


def changes_of(
    pairs: Sequence[tuple[Sequence[Comparison], Sequence[Comparison]]],
) -> list[Change]:
    """Compare the rows that both sides have, by the median ratio of the runs."""
    changes = []
    for last in pairs[-1][1]:
        rows = [
            (one, two)
            for before, after in pairs
            for one in before
            for two in after
            if (one.what, one.against) == (two.what, two.against) == (last.what, last.against)
        ]
        if rows:
            changes.append(
                Change(
                    f"{last.what}; beside {last.against}",
                    last.unit,
                    median(one.ours for one, _ in rows),
                    median(two.ours for _, two in rows),
                    median(two.ours / one.ours for one, two in rows),
                    median(two.other / one.other for one, two in rows),
                )
            )
    return changes


def as_markdown(changes: Iterable[Change]) -> str:
    """Return a table; if the alternative's ratio is not near 1, the machine was busy."""
    lines = [
        "| what | before | after | after / before | the other way's |",
        "|---|--:|--:|--:|--:|",
    ]
    for one in changes:
        mark = " (slower)" if one.ratio > TOLERANCE else ""
        lines.append(
            f"| {one.what} | {amount(one.before, one.unit)} | {amount(one.after, one.unit)} | "
            f"{one.ratio:.2f}{mark} | {one.other_ratio:.2f} |"
        )
    return "\n".join(lines)


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


def _measure(side: Path, name: str) -> list[Comparison]:
    """Run one measurement in a checkout with that checkout's package."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _MEASURE, name],
        cwd=side,
        env=os.environ | {"PYTHONPATH": str(side)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    fields = asdict(Comparison("", "", 0, 0, 0)).keys()
    return [
        Comparison(**{key: value for key, value in row.items() if key in fields})
        for row in json.loads(done.stdout.splitlines()[-1]) or ()
    ]
