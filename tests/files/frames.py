"""Frames of every kind for round trips through files."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.parquet import write_parquet
from outreach_frames.files.read import read_prospects
from tests.reading.pages import body, people_frame, read_people_page

FULL_WIDTH = "".join(chr(ord(character) - 0x20 + 0xFF00) for character in "=+-@")


def assert_same(read: pd.DataFrame, written: pd.DataFrame) -> None:
    """Compare values, dtypes, missing cells, index and columns."""
    pd.testing.assert_frame_equal(read, written)


def round_trip(frame: pd.DataFrame, path: Path, **options: object) -> pd.DataFrame:
    """Write a frame, read it back, and check that the original did not change."""
    before = frame.copy(deep=True)
    write = write_csv if path.suffix == ".csv" else write_parquet
    assert write(frame, path, **options) == path
    assert_same(frame, before)
    return read_prospects(path)


def metadata_of(path: Path) -> Path:
    """Return the path of a CSV's metadata file."""
    return path.with_name(path.name + "-metadata.json")


PERSON = {
    "id": "00123",
    "name": "=cmd",
    "about": None,
    "current_position_start_date": "2020-01-31",
    "location_details": {"lat": 59.9139, "long": -10.75},
    "experiences": [{"title": "-x", "company_name": 'A "b"\n\\', "end_date": None}, None],
    "languages": [],
    "company": {
        "followers": 2**53 + 1,
        "is_b2b": True,
        "sic_codes": [1, None],
        "total_funding": 0.1,
        "keywords": ["=a", "b"],
        "technologies": ["x"],
    },
}


def prospects(rows: int, backend: str = "numpy_nullable") -> pd.DataFrame:
    """Make people; every other person has only an id."""
    persons = [PERSON if number % 2 == 0 else {"id": ""} for number in range(rows)]
    return people_frame([read_people_page(body(*persons))], backend)


FLOATS = [0.1, -0.0, 1e300, 5e-324, 1 / 3, None]
DATES = pd.to_datetime(["2024-02-29", None, "1969-12-31"])
TIMES = pd.to_datetime(["2024-02-29 10:20:30.123456", None, "1969-12-31 23:59:59.000001"]).as_unit(
    "us"
)
COLUMNS = {
    "int64": pd.Series([2**63 - 1, -(2**63), 2**53 + 1]),
    "uint64": pd.Series([2**64 - 1, 0, 1], dtype="uint64"),
    "int8": pd.Series([-128, 127, 0], dtype="int8"),
    "Int64": pd.Series([2**53 + 1, None, -1], dtype="Int64"),
    "UInt8": pd.Series([255, None, 0], dtype="UInt8"),
    "float64": pd.Series(FLOATS, dtype="float64"),
    "float32": pd.Series([0.1, 3.4e38, None], dtype="float32"),
    "float16": pd.Series([0.1, 65504, None], dtype="float16"),
    "Float64": pd.Series(FLOATS, dtype="Float64"),
    "Float32": pd.Series([0.1, None], dtype="Float32"),
    "infinite": pd.Series([np.inf, -np.inf, None, 1.5]),
    "Infinite": pd.Series([np.inf, -np.inf, None, 1.5], dtype="Float64"),
    "bool": pd.Series([True, False]),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
    "dates": pd.Series(DATES),
    "seconds": pd.Series(TIMES).dt.as_unit("s"),
    "times": pd.Series(TIMES),
    "nanoseconds": pd.Series(pd.to_datetime(["2024-02-29 10:20:30.123456789", None])).dt.as_unit(
        "ns"
    ),
    "UTC": pd.Series(TIMES).dt.tz_localize("UTC"),
    "Berlin": pd.Series(TIMES).dt.tz_localize("Europe/Berlin"),
    "offset": pd.Series(TIMES).dt.tz_localize("+05:30"),
    "durations": pd.Series(pd.to_timedelta(["1 days 02:03:04.5", None, "-1s"])),
    "periods": pd.Series(pd.PeriodIndex(["2024-01", None, "2024-03"], freq="M")),
    "category": pd.Series(
        ["b", None, "a"], dtype=pd.CategoricalDtype(["b", "a", "=c"], ordered=True)
    ),
    "int category": pd.Series([2, None, 1], dtype=pd.CategoricalDtype([2, 1, 3])),
    "date category": pd.Series(pd.Categorical(DATES)),
    "time category": pd.Series(pd.Categorical(TIMES)),
    "no category": pd.Series([None, None], dtype="category"),
    "decimals beyond Arrow": pd.Series(
        [decimal.Decimal(text) for text in ("2", "1.10", "1E+40", "1E-40", "-Infinity")],
        dtype=object,
    ),
    "decimals": pd.Series([decimal.Decimal("1.10"), None, decimal.Decimal("-1e5")], dtype=object),
    "days": pd.Series([datetime.date(2024, 2, 29), None], dtype=object),
    "dicts": pd.Series([{"a": [1, None]}, None, {}], dtype=object),
    "lists": pd.Series([["a", 1.5], [], None], dtype=object),
    "mixed": pd.Series([1, "1", True, 1.5, None, [2**70], {"a": "ü"}, -5], dtype=object),
    "nothing": pd.Series([None, None], dtype=object),
    "arrow int": pd.Series([1, None], dtype="int32[pyarrow]"),
    "arrow float": pd.Series([0.1, None, -1e300], dtype="double[pyarrow]"),
    "arrow infinite": pd.Series([-np.inf, None], dtype="double[pyarrow]"),
    "arrow half": pd.Series(pd.array([0.5, None], dtype=pd.ArrowDtype(pa.float16()))),
    "arrow bool": pd.Series([True, None], dtype="bool[pyarrow]"),
    "arrow date": pd.Series([datetime.date(2024, 2, 29), None], dtype="date32[pyarrow]"),
    "arrow time": pd.Series([datetime.time(1, 2, 3), None], dtype=pd.ArrowDtype(pa.time64("us"))),
    "arrow decimal": pd.Series(
        [decimal.Decimal("1.10"), None], dtype=pd.ArrowDtype(pa.decimal128(9, 2))
    ),
    "arrow stamp": pd.Series(TIMES).astype(pd.ArrowDtype(pa.timestamp("ns"))),
    "arrow zone": pd.Series(TIMES)
    .dt.tz_localize("Europe/Berlin")
    .astype(pd.ArrowDtype(pa.timestamp("us", "Europe/Berlin"))),
    "arrow lists": pd.Series([[0.5, None], None, []], dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
    "arrow null lists": pd.Series([[None, None], None], dtype=pd.ArrowDtype(pa.list_(pa.null()))),
    "arrow structs": pd.Series(
        [{"a": '"\\\n\x01', "b": [True]}, None, {"a": None, "b": None}],
        dtype=pd.ArrowDtype(pa.struct([("a", pa.string()), ("b", pa.list_(pa.bool_()))])),
    ),
    "arrow nothing": pd.Series([None, None], dtype=pd.ArrowDtype(pa.null())),
}
INDEXES = {
    "named": pd.Index(["a", "=b"], name="key"),
    "named like a column": pd.Index(["a", "b"], name="name"),
    "unnamed": pd.Index([10, 20]),
    "from five": pd.RangeIndex(5, 7),
    "named range": pd.RangeIndex(2, name="row"),
    "number as name": pd.Index(["a", "b"], name=5),
    "dates": pd.DatetimeIndex(["2024-01-01", "2024-01-02"], name="day", tz="UTC"),
    "category": pd.CategoricalIndex(["a", "b"]),
    "several": pd.MultiIndex.from_arrays([["a", "b"], [1, 2]], names=["x", None]),
    "repeated": pd.Index([1, 1]),
    "small integers": pd.Index([5, 7], dtype="int8"),
}


def write(frame: pd.DataFrame, path: Path, **options: object) -> Path:
    """Write a file in the format of its suffix."""
    return (write_csv if path.suffix == ".csv" else write_parquet)(frame, path, **options)
