"""Mutates modules, a sample of each, and says which mutants no test noticed.

    python -m tests.mutation [--sample 40] [--seed 0] [--jobs 2] [module ...]

For example, ten mutants of one module, in a few minutes:

    python -m tests.mutation --sample 10 outreach_frames/identity/keys.py

The tests run in a copy of the tree, first with nothing changed. A mutant is killed when they fail
or do not end in time. What no test can tell from the original, such as a larger block of bytes,
survives.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutation.mutants import Mutant, mutants
from tests.mutation.targets import TARGETS

ROOT = Path(__file__).parents[2]
FOLDERS = ("outreach_frames", "tests", "data", "docs", "notebooks")
COPIED = (*FOLDERS, "pyproject.toml", "README.md")


def main() -> None:
    """Print the survivors, and the figures of each module."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("modules", nargs="*", default=list(TARGETS), help="paths, as in targets.py")
    parser.add_argument("--sample", type=int, default=40, help="mutants of each module, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    killed = tried = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            trees.put(copy_tree(Path(folder) / str(number)))
        for module in options.modules:
            everything = list(mutants((ROOT / module).read_text(encoding="utf-8")))
            few = min(options.sample, len(everything))
            chosen = sorted(random.Random(options.seed).sample(everything, few))
            limit = 60 + 5 * seconds_of(trees, module)
            noticed = list(pool.map(lambda each: is_killed(trees, module, each, limit), chosen))  # noqa: B023
            for mutant, was_killed in zip(chosen, noticed, strict=True):
                if not was_killed:
                    print(f"{module}:{mutant.line}: {mutant.before!r} -> {mutant.after!r}")
            print(
                f"{module}: {sum(noticed)} of {few} killed ({len(everything)} in all)", flush=True
            )
            killed, tried = killed + sum(noticed), tried + few
    print(f"{killed} of {tried} killed, {killed / tried:.1%}, seed {options.seed}")


def copy_tree(tree: Path) -> Path:
    """Copy what the tests need."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, tree / name)
    return tree


def seconds_of(trees: SimpleQueue[Path], module: str) -> float:
    """Run the tests with nothing changed; return how long they take."""
    tree = trees.get()
    start = time.monotonic()
    ran = run_tests(tree, module, limit=None)
    trees.put(tree)
    if ran != 0:
        sys.exit(f"The tests of {module} fail with nothing changed.")
    return time.monotonic() - start


def is_killed(trees: SimpleQueue[Path], module: str, mutant: Mutant, limit: float) -> bool:
    """Run the tests on one mutant."""
    tree = trees.get()
    path = tree / module
    try:
        path.write_text(mutant.source, encoding="utf-8")
        return run_tests(tree, module, limit) != 0
    finally:
        shutil.copy2(ROOT / module, path)
        trees.put(tree)


def run_tests(tree: Path, module: str, limit: float | None) -> int | None:
    """Return pytest's exit code, or None where it takes too long; without a limit, show all."""
    shown = None if limit is None else subprocess.DEVNULL
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    # Hypothesis would remember what failed, and find it again in the next mutant.
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    with subprocess.Popen(
        [*command, *TARGETS[module]],
        cwd=tree,
        env=environment,
        stdout=shown,
        stderr=shown,
    ) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            process.kill()
            return None


if __name__ == "__main__":
    main()
