"""Every figure that README shows, in one run; prints the table, and writes it as JSON.

Run by ``python -m tests.benchmarks`` with the extra `bench`; some ten minutes, most of them the
other ways'.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import frames, leads, service, startup
from tests.benchmarks.comparison import Comparison, as_markdown


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--people", type=int, default=100_000, help="people to export (100000)")
    parser.add_argument("--json", type=Path, default=Path("benchmarks.json"), help="where to")
    parser.add_argument("--without-export", action="store_true", help="leave out the longest")
    options = parser.parse_args()
    comparisons: list[Comparison] = []
    parts = [startup.compare(), frames.compare(), leads.compare(), service.compare_search()]
    if not options.without_export:
        parts.append(service.compare_export(options.people))
    for part in parts:
        for comparison in part:
            comparisons.append(comparison)
            print(as_markdown([comparison]).splitlines()[-1], flush=True)
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores, {gibibytes:.0f} GiB, Python {platform.python_version()}"
    day = datetime.now(UTC).date().isoformat()
    print(f"\n{day}, {machine}\n\n{as_markdown(comparisons)}")
    table = {"date": day, "machine": machine, "rows": [one.as_dict() for one in comparisons]}
    options.json.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
