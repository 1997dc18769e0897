"""Mutate a sample of a room's code, and print the mutants that no test of the room detected.

    python -m tests.mutation [--sample 20] [--seed 0] [--jobs 2] ROOM

A room is a folder of the package, such as `client`, or `.` for the modules at the root. A failed
test or a timeout kills the mutant. Mutants that behave like the original, such as those with a
larger block size, survive.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.mutation.mutants import Mutant, mutants, mutated

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "outreach_frames"
COPIED: Final = (
    *("outreach_frames", "tests", "data", "docs", "notebooks"),
    *(path.name for path in ROOT.iterdir() if path.is_file()),
)
SECONDS_PER_MUTANT: Final = 600


def main() -> None:
    """Print the survivors and their number."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("room", help="a folder of the package, or . for the modules at the root")
    parser.add_argument("--sample", type=int, default=20, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            trees.put(copy_tree(Path(folder) / str(number)))
        if fails(options.room, trees):
            sys.exit("A test fails with nothing changed.")
        chosen = sample(options.room, options.sample, options.seed)
        survivors = 0
        noticed = pool.map(partial(fails, options.room, trees), *zip(*chosen, strict=True))
        for (module, mutant), is_killed in zip(chosen, noticed, strict=True):
            if not is_killed:
                survivors += 1
                print(f"{module}:{mutant.line}: {mutant.before!r} -> {mutant.after!r}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} killed, {options.seed=}")


def sample(room: str, size: int, seed: int) -> list[tuple[Path, Mutant]]:
    """Choose random mutants of a room's modules, relative to the root."""
    pattern = "*.py" if room == "." else "**/*.py"
    every = [
        (path.relative_to(ROOT), mutant)
        for path in sorted((PACKAGE / room).glob(pattern))
        for mutant in mutants(path.read_text(encoding="utf-8"))
    ]
    return random.Random(seed).sample(every, min(size, len(every)))


def copy_tree(tree: Path) -> Path:
    """Copy the files that the tests need."""
    tree.mkdir()
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, tree / name)
    return tree


def fails(
    room: str, trees: SimpleQueue[Path], module: Path | None = None, mutant: Mutant | None = None
) -> bool:
    """Return whether a test of the room fails or times out, in a copy with this mutant."""
    tree = trees.get()
    tests = tree / "tests" / room
    paths = sorted(tests.glob("test_*.py")) if room == "." else [tests]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "--timeout=60"]
    # Without CI, Hypothesis would retry stored failures of the previous mutant.
    environment = {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    try:
        if module is not None and mutant is not None:
            source = (ROOT / module).read_text(encoding="utf-8")
            (tree / module).write_text(mutated(source, mutant), encoding="utf-8")
        run = subprocess.run(
            [*command, "-p", "no:cacheprovider", *paths],
            cwd=tree,
            env={**os.environ, **environment},
            capture_output=True,
            timeout=SECONDS_PER_MUTANT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        if module is not None:
            shutil.copy2(ROOT / module, tree / module)
        trees.put(tree)
    return run.returncode != 0


if __name__ == "__main__":
    main()
