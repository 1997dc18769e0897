"""Mutate a sample of each room of the package, and print the mutants that no test detected.

    python -m tests.mutation [--sample 200] [--seed 0] [--jobs 2] [--contexts FILE] [room ...]

For example, test ten mutants of one room with the coverage of an earlier run:

    python -m tests.mutation --sample 10 --contexts FILE client

All tests run once in an unchanged copy of the tree, which records the tests of every line. Then the
tests of each mutant's line run on that mutant. A failed test or a timeout kills the mutant.
Mutants that behave like the original, such as those with a larger block size, survive.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from tests.mutation.contexts import TestsByLine, room_of, room_tests
from tests.mutation.mutants import Mutant, mutants, mutated

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = "outreach_frames"
FOLDERS: Final = (PACKAGE, "tests", "data", "docs", "notebooks")
COPIED: Final = (*FOLDERS, *(path.name for path in ROOT.iterdir() if path.is_file()))
SECONDS_PER_MUTANT: Final = 600


class Case(NamedTuple):
    """A mutant of a module, and the tests that may detect it."""

    module: str
    mutant: Mutant
    tests: Sequence[str]


def main() -> None:
    """Print the survivors and the numbers per room."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("rooms", nargs="*", help="as in CONTRIBUTING; (root) has the modules there")
    parser.add_argument("--sample", type=int, default=200, help="mutants of all rooms together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--contexts", type=Path, help="made by the first run, used by later ones")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        # The coverage file contains absolute paths, so its tree must have a fixed path.
        recorded = (options.contexts or Path(folder) / "contexts").absolute()
        # Coverage would combine files that match `contexts.*` with the recording.
        tree = recorded.with_name(f"tree-of-{recorded.name}")
        if not recorded.exists():
            record(copy_tree(tree), recorded)
        by_line = TestsByLine(recorded, tree)
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            trees.put(copy_tree(Path(folder) / str(number)))
        killed: dict[str, list[bool]] = defaultdict(list)
        cases = [
            Case(module, mutant, by_line.tests(module, mutant.line))
            for module, mutant in sample(options.sample, options.seed, options.rooms)
        ]
        noticed = pool.map(lambda case: is_killed(trees, case), cases)
        for case, was_killed in zip(cases, noticed, strict=True):
            killed[room_of(case.module)].append(was_killed)
            if not was_killed:
                where = f"{case.module}:{case.mutant.line}"
                print(f"{where}: {case.mutant.before!r} -> {case.mutant.after!r}", flush=True)
    for room, results in sorted(killed.items()):
        print(f"{room}: {sum(results)} of {len(results)} killed")
    every = [one for results in killed.values() for one in results]
    print(f"{sum(every)} of {len(every)} killed, {sum(every) / len(every):.1%}, {options.seed=}")


def sample(size: int, seed: int, rooms: Sequence[str]) -> list[tuple[str, Mutant]]:
    """Choose random mutants: half evenly per room, half in proportion to the rooms' sizes."""
    by_room: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        module = path.relative_to(ROOT).as_posix()
        if not rooms or room_of(module) in rooms:
            by_room[room_of(module)].append(module)
    found = {
        room: [
            (module, mutant)
            for module in modules
            for mutant in mutants((ROOT / module).read_text(encoding="utf-8"))
        ]
        for room, modules in by_room.items()
    }
    everything = sum(map(len, found.values()))
    generator = random.Random(seed)
    chosen = []
    for every in found.values():
        share = size / 2 / len(found) + size / 2 * len(every) / everything
        chosen += generator.sample(every, min(round(share), len(every)))
    return chosen


def copy_tree(tree: Path) -> Path:
    """Copy the files that the tests need."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, tree / name)
    return tree


def record(tree: Path, recorded: Path) -> None:
    """Run all tests on the unchanged tree, and record which tests run each line."""
    coverage = ["--cov=outreach_frames", "--cov-context=test", "--cov-report="]
    environment = {**environment_of(tree), "COVERAGE_FILE": str(recorded)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *coverage]
    if subprocess.run(command, cwd=tree, env=environment, check=False).returncode != 0:
        sys.exit("A test fails with nothing changed.")


def is_killed(trees: SimpleQueue[Path], case: Case) -> bool:
    """Return whether a test of the mutant's line, or another test of its room, fails."""
    tree = trees.get()
    path = tree / case.module
    try:
        source = (ROOT / case.module).read_text(encoding="utf-8")
        path.write_text(mutated(source, case.mutant), encoding="utf-8")
        # Coverage records only the first test of a cached function, and `case.tests` is a sample.
        return any(fails(tests, tree) for tests in (case.tests, room_tests(case.module)))
    finally:
        shutil.copy2(ROOT / case.module, path)
        trees.put(tree)


def fails(tests: Sequence[str], tree: Path) -> bool:
    """Return whether a test fails or times out in this tree."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "--timeout=60"]
    with subprocess.Popen(
        [*command, "-p", "no:cacheprovider", *tests],
        cwd=tree,
        env=environment_of(tree),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            return process.wait(SECONDS_PER_MUTANT) != 0
        except subprocess.TimeoutExpired:
            process.kill()
            return True


def environment_of(tree: Path) -> dict[str, str]:
    """Return an environment whose tests import the package of this tree."""
    # Without CI, Hypothesis would retry stored failures of the previous mutant.
    return {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}


if __name__ == "__main__":
    main()
