"""Benchmarks of parsing people searches, and of writing and reading files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json

from outreach_frames import spec
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.read import read_prospects
from outreach_frames.reading.pages import PeopleReader
from outreach_frames.tables.schema import wire_struct
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.odd_pages import changed, with_one_unknown_field
from tests.benchmarks.pages import people_pages
from tests.benchmarks.timing import seconds
from tests.reading.pages import people_frame

PAGES = 100
COLUMNS = [
    "id",
    "name",
    "title",
    "location",
    "location_details_country",
    "company_id",
    "company_name",
    "company_industry",
    "company_size",
    "company_department_headcount_marketing",
]
_BLOCK_BYTES = 16 << 20


def compare() -> Iterator[Comparison]:
    """Measure the parsing of 100 pages of 100 people."""
    bodies = people_pages(PAGES)
    people = f"{PAGES * spec.MAX_SEARCH_PAGE_SIZE:,} people"
    ours = seconds(lambda: people_frame(PeopleReader().read(bodies)))
    learning = PeopleReader()
    reader = seconds(lambda: read_by_arrow(bodies))
    undocumented = [changed(body, with_one_unknown_field) for body in bodies]
    yield Comparison(
        f"processor time to parse pages with an undocumented field, {people}",
        'json.loads + json_normalize(sep="_")',
        seconds(lambda: people_frame(learning.read(undocumented)), clock=process_time),
        seconds(lambda: json_normalize(undocumented), runs=2, clock=process_time),
        goal=2.5,
    )
    yield Comparison(
        f"parse pages exactly as documented into a DataFrame, {people}",
        'json.loads + json_normalize(sep="_")',
        ours,
        seconds(lambda: json_normalize(bodies), runs=2),
        goal=11,
        floor=reader,
        floor_is="Arrow's JSON reader alone",
    )
    yield Comparison(
        "parse pages exactly as documented into a DataFrame",
        "orjson.loads, no table built",
        ours,
        seconds(lambda: [orjson.loads(body) for body in bodies]),
        goal=2,
        floor=reader,
        floor_is="Arrow's JSON reader alone",
    )


def compare_files() -> Iterator[Comparison]:
    """Measure writing and reading a CSV file of 10,000 people."""
    frame = people_frame(PeopleReader().read(people_pages(PAGES)))
    with tempfile.TemporaryDirectory() as folder:
        yield from _files(frame, Path(folder), f"{len(frame):,} people")


def _files(frame: pd.DataFrame, folder: Path, people: str) -> Iterator[Comparison]:
    path, other = folder / "people.csv", folder / "other.csv"
    plain = without_lists(frame)
    yield Comparison(
        f"df.outreach.to_csv, {people}",
        "DataFrame.to_csv",
        seconds(lambda: write_csv(frame, path)),
        seconds(lambda: frame.to_csv(other, index=False), runs=2),
        goal=8,
        floor=seconds(lambda: arrow_csv.write_csv(plain, other)),
        floor_is="Arrow's CSV writer, no list columns",
    )
    yield Comparison(
        "read_prospects of a CSV file",
        "read_csv + json.loads of the list columns",
        seconds(lambda: read_prospects(path)),
        seconds(lambda: read_csv(path), runs=3),
        goal=3,
        floor=seconds(lambda: read_as_text(path)),
        floor_is="Arrow's CSV reader, all as text",
    )


def json_normalize(bodies: list[bytes]) -> pd.DataFrame:
    """Flatten the people with pd.json_normalize."""
    people = [person for body in bodies for person in json.loads(body)[spec.RESULTS_KEY]]
    return pd.json_normalize(people, sep="_")


def read_by_arrow(bodies: list[bytes]) -> pa.Table:
    """Parse with the interface's types, without conversion to a frame."""
    return arrow_json.read_json(
        pa.BufferReader(b"\n".join(bodies)),
        read_options=arrow_json.ReadOptions(block_size=_BLOCK_BYTES),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=pa.schema(list(wire_struct(spec.PEOPLE_SEARCH_RESULT)))
        ),
    )


def without_lists(frame: pd.DataFrame) -> pa.Table:
    """Drop the list columns, which Arrow's CSV writer does not accept."""
    lists = [name for name, field in spec.columns(spec.PERSON).items() if field.type == "array"]
    return pa.Table.from_pandas(frame.drop(columns=lists), preserve_index=False)


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV with pandas and parse its lists."""
    frame = pd.read_csv(path)
    for name, field in spec.columns(spec.PERSON).items():
        if field.type == "array":
            frame[name] = [
                json.loads(cell) if isinstance(cell, str) else cell for cell in frame[name]
            ]
    return frame


def read_as_text(path: Path) -> pa.Table:
    """Read all columns of a CSV as text."""
    names = list(spec.columns(spec.PERSON))
    return arrow_csv.read_csv(
        path,
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )
