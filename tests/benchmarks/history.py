"""Measure the comparison of two snapshots of a million people.

Run ``python -m tests.benchmarks.history FOLDER``, which writes some 2 GB to the folder.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import outreach_frames as of

PER_PART = 10_000


def write_snapshots(folder: Path, people: int) -> None:
    """Write two snapshots; of the later people, 10 % are changed, and 3 % each are new or gone."""
    with (
        tempfile.TemporaryDirectory() as place,
        of.sandbox.serve(people=PER_PART, seed=1) as sandbox,
        of.connect(sandbox.url, sandbox.api_key, cache=None),
    ):
        part = pq.read_table(of.export_people(Path(place) / "people.parquet", progress=False))
    numbers = np.arange(PER_PART)
    title = part.schema.get_field_index("title")
    changed = pc.if_else(pa.array(numbers % 10 == 0), pa.scalar("Other"), part.column(title))
    later = part.set_column(title, part.schema.field(title), changed)
    for date, table, missing in (("2026-10-01", part, 0), ("2026-11-01", later, 1)):
        day = folder / f"snapshot={date}"
        day.mkdir(parents=True)
        kept = table.filter(pa.array(numbers % 30 != missing))
        for number in range(people // PER_PART):
            renamed = kept
            for name in ("id", "company_id", "profnet_url"):
                place_of = renamed.schema.get_field_index(name)
                column = renamed.column(place_of)
                # Change the first letters of ids, and prepend letters to URLs.
                end = 0 if name == "profnet_url" else 8
                column = pc.utf8_replace_slice(column, 0, end, f"{number:08x}")
                field = renamed.schema.field(place_of)
                renamed = renamed.set_column(place_of, field, column.cast(field.type))
            pq.write_table(renamed, day / f"part-{number:05}.parquet", compression="zstd")


def main(folder: Path, people: int) -> None:
    """Compare the snapshots, and print time and memory."""
    if not folder.exists():
        write_snapshots(folder, people)
        print("The snapshots are written; run it again to compare them.")
        return
    began, used = time.perf_counter(), time.process_time()
    comparison = of.compare_people(folder, progress=False)
    rows = len(comparison.headcount)
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(comparison)
    print(f"{rows:,} headcounts; {seconds:.1f} s, {cpu:.1f} s of CPU, {gigabytes:.2f} GB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
