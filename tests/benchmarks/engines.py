"""Measure the time and memory of one query on an export per engine; Linux only.

Run ``python -m tests.benchmarks.engines``. An export of more than 10,000 people repeats the same
Parquet file, so that no run waits for the sandbox.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import outreach_frames as of

PER_PART = 10_000
SIZES = (10_000, 100_000, 1_000_000)
RUNS = 3
# Count people and the median marketing headcount by industry in a folder of Parquet files.
QUESTIONS = {
    "pandas, all columns": """
import outreach_frames as of
people = of.read_prospects(folder)
answer = people.groupby("company_industry")[headcount].agg(["size", "median"])
""",
    "pandas, two columns": """
import pandas as pd
people = pd.read_parquet(folder, columns=["company_industry", headcount])
answer = people.groupby("company_industry")[headcount].agg(["size", "median"])
""",
    "DuckDB": """
import duckdb
query = f"select company_industry, count(*), median({headcount}) from '{folder}/*.parquet'"
answer = duckdb.sql(f"{query} where company_industry is not null group by all").df()
""",
    "Polars": """
import polars as pl
people = pl.scan_parquet(f"{folder}/*.parquet").drop_nulls("company_industry")
groups = people.group_by("company_industry")
answer = groups.agg(pl.len(), pl.median(headcount)).collect()
""",
    "Dask": """
import dask.dataframe as dd
people = dd.read_parquet(folder, columns=["company_industry", headcount])
answer = people.groupby("company_industry")[headcount].agg(["size", "median"]).compute()
""",
}
_MEASURED = """
import sys, warnings
from time import perf_counter
from tests.benchmarks.timing import resident_megabytes

warnings.simplefilter("ignore")
folder, headcount = sys.argv[1], "company_department_headcount_marketing"
began = perf_counter()
{}
print(len(answer), perf_counter() - began, resident_megabytes("VmHWM"))
"""


def main() -> None:
    """Measure every engine at every size, including imports, and print a table."""
    print("| people | engine | seconds | memory |\n|--:|---|--:|--:|")
    with tempfile.TemporaryDirectory() as place:
        export = Path(place) / "export.parquet"
        with (
            of.sandbox.serve(people=PER_PART, seed=1) as sandbox,
            of.connect(sandbox.url, sandbox.api_key, cache=None),
        ):
            of.export_people(export, progress=False)
        folder = Path(place) / "people"
        folder.mkdir()
        for size in SIZES:
            for number in range(size // PER_PART):
                shutil.copyfile(export, folder / f"part-{number:05}.parquet")
            answers = set()
            for name, question in QUESTIONS.items():
                command = [sys.executable, "-c", _MEASURED.format(question), str(folder)]
                runs = [
                    subprocess.run(command, capture_output=True, text=True, check=True).stdout
                    for _ in range(RUNS)
                ]
                rows, seconds, megabytes = min(
                    (run.split() for run in runs), key=lambda run: float(run[1])
                )
                answers.add(rows)
                print(f"| {size:,} | {name} | {float(seconds):.2f} | {float(megabytes):,.0f} MB |")
            assert len(answers) == 1, answers


if __name__ == "__main__":
    main()
