"""Measure all figures of `docs/explanation/benchmarks.md`, and print the table.

Run ``python -m tests.benchmarks``, which takes some ten minutes, mostly for the alternatives. With
names of measurements, only these run. ``--against COMMIT`` measures that commit and this tree in
turn, and prints the ratio.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

from tests.benchmarks import (
    against,
    frames,
    leads,
    memory,
    odd_pages,
    service,
    startup,
)
from tests.benchmarks.comparison import Comparison, as_markdown

MEASUREMENTS: dict[str, Callable[[], Iterable[Comparison]]] = {
    "import": startup.compare,
    "frames": frames.compare,
    "pages": odd_pages.compare,
    "files": frames.compare_files,
    "plan": leads.compare,
    "plan_memory": leads.compare_memory,
    "memory": memory.compare,
    "search": service.compare_search,
    "cached": service.compare_cached,
    "export": partial(service.compare_export, 100_000),
}


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--people", type=int, default=100_000, help="people to export (100000)")
    parser.add_argument("--against", metavar="COMMIT", help="compare with another commit")
    parser.add_argument("--runs", type=int, default=3, help="runs on each commit (3)")
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(MEASUREMENTS)}; all")
    options = parser.parse_args()
    if unknown := set(options.names) - set(MEASUREMENTS):
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(MEASUREMENTS)}")
    measurements = MEASUREMENTS | {"export": partial(service.compare_export, options.people)}
    if options.against:
        names = options.names or measurements
        against.print_ratios(options.against, names, runs=options.runs)
        return
    comparisons: list[Comparison] = []
    for name in options.names or measurements:
        for comparison in measurements[name]():
            comparisons.append(comparison)
            print(as_markdown([comparison]).splitlines()[-1], flush=True)
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores, {gibibytes:.0f} GiB, Python {platform.python_version()}"
    day = datetime.now(UTC).date().isoformat()
    print(f"\n{day}, {machine}\n\n{as_markdown(comparisons)}")


if __name__ == "__main__":
    main()
