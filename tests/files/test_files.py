"""Files of prospects come back with every value, dtype and missing cell, and hold no formula."""

from __future__ import annotations

import csv
import datetime
import decimal
import errno
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.files.csv_file import EXCEL_MAX_CELL, EXCEL_MAX_ROWS, write_csv
from outreach_frames.files.parquet import write_parquet
from outreach_frames.files.read import read_prospects
from outreach_frames.tables.flatten import people_frame, read_people_page, records_frame
from tests.tables.pages import body
from tests.tables.people_strategies import odd_people, people

some = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
FULL_WIDTH = "".join(chr(ord(character) - 0x20 + 0xFF00) for character in "=+-@")
ALPHABET = f"='+-@\t\r\n\x00\"{FULL_WIDTH}, \u00a0\ufeff1"
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.text(ALPHABET, max_size=6)
TRICKY = [
    None, "", "NA", "N/A", "null", "nan", "00123", "+44 20", "'=1", "''+x", "=1+1", "-", "@x", "'",
    " =1", "\u00a0=1", "\ufeff=1", f"{FULL_WIDTH[0]}1", "\x00=1", "x\x00y", "\u2028", "a,b",
    "a\rb", "a\nb", "a\r\nb", "\r", "\n", "\t", 'say "hi"', "Zoë", "東京", "😀", " padded ", "true",
    "1e5",
]  # fmt: skip


def assert_same(read: pd.DataFrame, written: pd.DataFrame) -> None:
    """Compare values, dtypes, missing cells and both axes."""
    pd.testing.assert_frame_equal(read, written)


def round_trip(frame: pd.DataFrame, path: Path, **options: object) -> pd.DataFrame:
    """Write a frame and read it back, and see that it was left alone."""
    before = frame.copy(deep=True)
    write = write_csv if path.suffix == ".csv" else write_parquet
    assert write(frame, path, **options) == path
    assert_same(frame, before)
    return read_prospects(path)


def metadata_of(path: Path) -> Path:
    """Name the file beside a CSV."""
    return path.with_name(path.name + "-metadata.json")


def cells(path: Path) -> list[str]:
    """List every cell of a CSV, header included, as a spreadsheet sees it."""
    text = path.read_bytes().decode("utf-8-sig")
    return [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]


def is_live(text: str) -> bool:
    """Say whether a spreadsheet may run a text, written apart from the package's own rule."""
    dropped = "".join(c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Zs", "Zl", "Zp"})
    start = text.lstrip(dropped) if dropped else text
    return text[:1] in {"\t", "\r", "\n", "\x00"} or start[:1] in set(f"=+-@{FULL_WIDTH}")


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
    """Make people, every other one with nothing but an id."""
    persons = [PERSON if number % 2 == 0 else {"id": ""} for number in range(rows)]
    return people_frame([read_people_page(body(*persons))], backend)


@pytest.mark.parametrize("rows", [0, 1, 2, 50])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_people_come_back_as_they_were(tmp_path, rows, suffix, backend):
    """People of any number and either backend are the same after a CSV and a Parquet file."""
    frame = prospects(rows, backend)
    assert_same(round_trip(frame, tmp_path / f"people{suffix}"), frame)


def test_a_search_is_one_csv_file(tmp_path):
    """A frame straight from a search needs no file beside the CSV, and small resources neither."""
    write_csv(prospects(3), tmp_path / "people.csv")
    write_csv(records_frame([{"id": "m"}], spec.MAILBOX), tmp_path / "mailboxes.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mailboxes.csv", "people.csv"]


def test_both_backends_write_the_same_bytes(tmp_path):
    """A pyarrow-backed frame and the default one make the same CSV."""
    write_csv(prospects(3), tmp_path / "a.csv")
    write_csv(prospects(3, "pyarrow"), tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@settings(some, max_examples=20)
@given(st.lists(people() | odd_people(), max_size=3), st.sampled_from([".csv", ".parquet"]))
def test_any_people_come_back(tmp_path, persons, suffix):
    """Whatever people hold comes back from both kinds of file."""
    frame = people_frame([read_people_page(body(*persons))])
    assert_same(round_trip(frame, tmp_path / f"people{suffix}"), frame)


@settings(some, max_examples=200)
@given(st.lists(st.none() | TEXTS, max_size=6), TEXTS, st.booleans())
def test_every_text_comes_back_and_none_is_live(tmp_path, texts, name, excel):
    """Any text, as a cell and as a column name, comes back; no cell of the file is a formula."""
    frame = pd.DataFrame({name: pd.Series(texts, dtype="str"), "a longer column": 1})
    path = tmp_path / "texts.csv"
    assert_same(round_trip(frame, path, excel=excel), frame)
    assert not [cell for cell in cells(path) if is_live(cell)]


@settings(some, max_examples=50)
@given(st.lists(st.none() | TEXTS, max_size=6))
def test_formulas_can_be_kept(tmp_path, texts):
    """With formulas="keep" the cells are the texts themselves, and come back too."""
    frame = pd.DataFrame({"=name": pd.Series(texts, dtype="str"), "n": 1})
    path = tmp_path / "texts.csv"
    assert_same(round_trip(frame, path, formulas="keep"), frame)
    assert cells(path)[0] == "=name"


@pytest.mark.parametrize("text", TRICKY)
@pytest.mark.parametrize("dtype", ["str", "string", "object", "category", "arrow", "large"])
def test_tricky_texts_come_back(tmp_path, text, dtype):
    """Missing, empty, NA, leading zeros, quotes and line breaks stay apart in every text dtype."""
    arrow = {"arrow": pd.ArrowDtype(pa.string()), "large": pd.ArrowDtype(pa.large_string())}
    frame = pd.DataFrame({"t": pd.Series([text, "x", None], dtype=arrow.get(dtype, dtype))})
    assert_same(round_trip(frame, tmp_path / "t.csv"), frame)


def test_live_text_has_one_apostrophe_in_front(tmp_path):
    """Formulas in cells, headers and an index get one apostrophe, even behind white space."""
    frame = pd.DataFrame(
        {"=h": ["=1", "'=1", " +x", "plain"]}, index=pd.Index(["@i", "j", "-", "'"])
    )
    write_csv(frame, tmp_path / "f.csv")
    assert cells(tmp_path / "f.csv") == [
        "index", "'=h", "'@i", "'=1", "j", "''=1", "'-", "' +x", "'", "plain",
    ]  # fmt: skip


def test_missing_and_empty_are_written_apart(tmp_path):
    """A missing cell is empty, an empty text is quoted, and numbers are not quoted."""
    frame = pd.DataFrame({"t": ["", None, "NA"], "n": pd.array([1, None, -2], dtype="Int64")})
    write_csv(frame, tmp_path / "m.csv")
    assert (tmp_path / "m.csv").read_text() == '"t","n"\n"",1\n,\n"NA",-2\n'


FLOATS = [0.1, -0.0, 1e300, 5e-324, 1 / 3, None]
DATES = pd.to_datetime(["2024-02-29", None, "1969-12-31"])
TIMES = pd.to_datetime(["2024-02-29 10:20:30.123456", None, "1969-12-31 23:59:59.000001"])
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


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("rows", ["all", "none"])
def test_every_dtype_comes_back_from_csv(tmp_path, kind, rows):
    """A column of any dtype has its values, dtype and missing cells back."""
    frame = pd.DataFrame({"x": COLUMNS[kind], "name": "n"})
    frame = frame if rows == "all" else frame.iloc[:0].reset_index(drop=True)
    assert_same(round_trip(frame, tmp_path / "x.csv"), frame)


PARQUET = [
    kind
    for kind in COLUMNS
    if kind not in {"mixed", "lists", "dicts", "arrow half", "arrow decimal", "no category"}
    and kind not in {"int category", "date category", "time category"}
]


@pytest.mark.parametrize("kind", PARQUET)
def test_every_dtype_comes_back_from_parquet(tmp_path, kind):
    """Parquet gives back every dtype that pandas can note there."""
    frame = pd.DataFrame({"x": COLUMNS[kind], "name": "n"})
    assert_same(round_trip(frame, tmp_path / "x.parquet"), frame)


def test_dates_are_written_as_iso(tmp_path):
    """Days are YYYY-MM-DD, moments ISO 8601, and moments with a zone are in UTC."""
    frame = pd.DataFrame({"d": DATES, "t": TIMES, "z": TIMES.tz_localize("Europe/Berlin")})
    write_csv(frame, tmp_path / "d.csv")
    assert cells(tmp_path / "d.csv")[3:6] == [
        "2024-02-29",
        "2024-02-29 10:20:30.123456",
        "2024-02-29 09:20:30.123456Z",
    ]


def test_arrays_in_cells_are_written_as_lists(tmp_path):
    """numpy arrays and scalars in cells are JSON, and come back as plain lists and numbers."""
    frame = pd.DataFrame({"x": pd.Series([np.array([1, 2]), np.int64(3), (4, "a")], dtype=object)})
    assert round_trip_values(frame, tmp_path / "x.csv") == [[1, 2], 3, [4, "a"]]


def round_trip_values(frame: pd.DataFrame, path: Path) -> list[object]:
    """Give the first column's values after a CSV."""
    write_csv(frame, path)
    return read_prospects(path).iloc[:, 0].tolist()


@pytest.mark.parametrize(
    "values",
    [
        [b"x"],
        [{1: "a"}],
        [{"a", "b"}],
        [object()],
        ["a", datetime.date(2024, 1, 1)],
        pd.array([1 + 2j]),
        pd.arrays.SparseArray([1, 0]),
        pd.IntervalIndex.from_breaks([0, 1]),
        pd.Series([b"x"], dtype="binary[pyarrow]"),
        pd.Series([[np.inf]], dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
        pd.Series([["\ud800"]], dtype=object),
        ["\ud800"],
    ],
)
def test_what_csv_cannot_hold_is_refused(tmp_path, values):
    """A column that could not come back is an error which names it, and no file is written."""
    series = pd.Series(values, dtype=object if isinstance(values, list) else None)
    with pytest.raises(InvalidInputError, match="'odd column'"):
        write_csv(pd.DataFrame({"odd column": series}), tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("column", "before", "after"),
    [(pd.Series(["a"], dtype="category"), '"a"', '"b"'), (pd.Series([1]), "1", "")],
)
def test_an_edited_cell_that_does_not_fit_is_an_error(tmp_path, column, before, after):
    """A cell that was changed to what its dtype cannot hold is an error, not a missing cell."""
    path = write_csv(pd.DataFrame({"x": column, "y": "n"}), tmp_path / "x.csv")
    path.write_text(path.read_text().replace(f"{before},", f"{after},"))
    with pytest.raises(InvalidInputError, match="'x'"):
        read_prospects(path)


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
}


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_index_is_not_lost(tmp_path, kind, suffix):
    """An index that is more than row numbers is in the file, and is the index again."""
    frame = pd.DataFrame({"name": ["x", "y"]}, index=INDEXES[kind])
    if suffix == ".parquet" and kind in {"number as name", "named like a column"}:
        frame.index = frame.index.rename("other")
    assert_same(round_trip(frame, tmp_path / f"x{suffix}"), frame)


def test_a_name_of_the_columns_comes_back(tmp_path):
    """The name of the columns axis, as a pivot leaves it, comes back."""
    frame = pd.DataFrame({"a": [1]}).rename_axis(columns="what")
    assert_same(round_trip(frame, tmp_path / "x.csv"), frame)


@pytest.mark.parametrize(
    "columns",
    [["a", "a"], [1, 2], [None, "a"], pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])],
)
@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_unclear_column_names_are_refused(tmp_path, columns, write):
    """Column names that are repeated, no text, or of several levels are an error that says so."""
    frame = pd.DataFrame([[1, 2]], columns=columns)
    with pytest.raises(InvalidInputError, match=r"[Cc]olumn"):
        write(frame, tmp_path / "x.csv")


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("excel", [False, True])
def test_frames_without_columns_keep_their_rows(tmp_path, rows, excel):
    """A frame with no columns is the same afterwards."""
    frame = pd.DataFrame(index=pd.RangeIndex(rows))
    write_csv(frame, tmp_path / "x.csv", excel=excel)
    assert read_prospects(tmp_path / "x.csv").shape == (rows, 0)


def test_a_file_beside_the_csv_is_there_only_when_needed(tmp_path):
    """The metadata file appears with a column that needs it and goes with it."""
    path = tmp_path / "x.csv"
    write_csv(pd.DataFrame({"n": [1]}), path)
    assert metadata_of(path).is_file()
    write_csv(pd.DataFrame({"n": ["1"]}), path)
    assert not metadata_of(path).exists()
    assert read_prospects(path).loc[0, "n"] == "1"


def test_without_the_metadata_other_columns_are_text(tmp_path):
    """A CSV that lost its metadata file is read: known columns typed, all others text."""
    path = tmp_path / "x.csv"
    write_csv(prospects(2).assign(score=[1, 2]), path)
    metadata_of(path).unlink()
    assert_same(read_prospects(path), prospects(2).assign(score=pd.Series(["1", "2"], dtype="str")))


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "other"}'])
def test_damaged_metadata_is_an_error(tmp_path, content):
    """A metadata file that is damaged, or not ours, is named in the error."""
    path = tmp_path / "x.csv"
    write_csv(pd.DataFrame({"n": [1]}), path)
    metadata_of(path).write_text(content)
    with pytest.raises(InvalidInputError, match="metadata"):
        read_prospects(path)


def test_a_csv_from_elsewhere_is_read_sensibly(tmp_path):
    """A CSV of another program has its text, its known columns typed, and its gaps missing."""
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,name,company_followers,zip\r\n1,Ada,12,00123\r\n2,,,NA\r\n")
    frame = read_prospects(path)
    assert frame["zip"].tolist() == ["00123", "NA"]
    assert frame["company_followers"].tolist() == [12, pd.NA]
    assert frame["name"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    "content",
    [
        b"id,company_followers\n1,many\n",
        b"id,experiences\n1,nonsense\n",
        b"id,experiences\n1,5\n",
        b"a,b\n1\n",
        b"a,a\n1,2\n",
        b"\xff\xfea\n",
        b"name\n\xff\n",
    ],
)
def test_what_cannot_be_read_is_a_clear_error(tmp_path, content):
    """A CSV that does not fit is an error which names the file."""
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=re.escape(str(path))):
        read_prospects(path)


def test_a_row_of_any_length_is_read(tmp_path):
    """A cell of many megabytes comes back."""
    frame = pd.DataFrame({"a": ["x" * 20_000_000, "y\n"], "b": ["1", None]})
    assert_same(round_trip(frame, tmp_path / "x.csv"), frame)


@given(st.lists(TEXTS | st.none(), max_size=4), TEXTS, st.sampled_from(",;\t|"))
@some
def test_every_separator_comes_back(tmp_path, texts, name, sep):
    """Whatever stands between the columns, the file reads back as it was."""
    frame = pd.DataFrame({name: pd.Series(texts, dtype="str"), f"{name}2": range(len(texts))})
    assert_same(round_trip(frame, tmp_path / "x.csv", sep=sep), frame)


@pytest.mark.parametrize("sep", [";", "\t", "|"])
def test_separators_of_other_programs_are_seen(tmp_path, sep):
    """A header with no quotes and no comma tells what stands between the columns."""
    (tmp_path / "x.csv").write_text(f"id{sep}company_followers\n00123{sep}7\n")
    assert read_prospects(tmp_path / "x.csv").to_dict("list") == {
        "id": ["00123"],
        "company_followers": [7],
    }


def test_other_separators_are_refused(tmp_path):
    """A separator that could be part of a number or word is an error."""
    with pytest.raises(InvalidInputError, match="sep is"):
        write_csv(pd.DataFrame({"a": [1]}), tmp_path / "x.csv", sep=".")


def test_index_can_be_left_out_or_asked_for(tmp_path):
    """index=False leaves labels out, index=True writes row numbers too; the default says which."""
    frame = pd.DataFrame({"a": [1, 2]}, index=["x", "y"])
    assert_same(round_trip(frame, tmp_path / "x.csv", index=False), frame.reset_index(drop=True))
    assert_same(round_trip(frame, tmp_path / "x.csv"), frame)
    numbered = frame.reset_index(drop=True)
    write_csv(numbered, tmp_path / "y.csv", index=True)
    assert cells(tmp_path / "y.csv") == ["index", "a", "0", "1", "1", "2"]
    pd.testing.assert_frame_equal(
        read_prospects(tmp_path / "y.csv"), numbered, check_index_type=False
    )


def test_excel_gets_a_byte_order_mark(tmp_path):
    """With excel=True the file begins with a byte order mark; without it does not."""
    write_csv(pd.DataFrame({"a": ["ü"]}), tmp_path / "x.csv", excel=True)
    assert (tmp_path / "x.csv").read_bytes() == '\ufeff"a"\n"ü"\n'.encode()
    write_csv(pd.DataFrame({"a": ["ü"]}), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_bytes() == '"a"\n"ü"\n'.encode()


def test_excel_limits_are_warned_of(tmp_path):
    """With excel=True too long a cell, or too many rows, is a warning; without it is none."""
    long = pd.DataFrame({"text": ["x" * (EXCEL_MAX_CELL + 1)]})
    with pytest.warns(OutreachWarning, match="'text'"):
        write_csv(long, tmp_path / "x.csv", excel=True)
    many = pd.DataFrame({"n": ["1"] * EXCEL_MAX_ROWS})
    with pytest.warns(OutreachWarning, match="rows"):
        write_csv(many, tmp_path / "x.csv", excel=True)
    write_csv(long, tmp_path / "x.csv")
    write_csv(long.assign(text="x" * EXCEL_MAX_CELL), tmp_path / "x.csv", excel=True)
    assert len(read_prospects(tmp_path / "x.csv")) == 1


@pytest.mark.parametrize("formulas", ["", "none", None, True])
def test_other_ways_with_formulas_are_refused(tmp_path, formulas):
    """Only "escape" and "keep" are known."""
    with pytest.raises(InvalidInputError, match="escape"):
        write_csv(pd.DataFrame(), tmp_path / "x.csv", formulas=formulas)


def test_attrs_do_not_get_in_the_way(tmp_path):
    """`.attrs` with anything in it is no trouble, and stays on the frame."""
    frame = pd.DataFrame({"a": ["x"]})
    frame.attrs = {"odd": object(), "filters": {"person_name": "Ada"}}
    for suffix in (".csv", ".parquet"):
        assert read_prospects(write(frame, tmp_path / f"x{suffix}"))["a"].tolist() == ["x"]
    assert set(frame.attrs) == {"odd", "filters"}


def write(frame: pd.DataFrame, path: Path) -> Path:
    """Write by the file's ending."""
    return (write_csv if path.suffix == ".csv" else write_parquet)(frame, path)


def test_mixed_columns_are_refused_by_parquet(tmp_path):
    """Parquet cannot hold a column of several types; the error names it."""
    frame = pd.DataFrame({"odd": pd.Series([1, "x", {}], dtype=object)})
    with pytest.raises(InvalidInputError, match="odd"):
        write_parquet(frame, tmp_path / "x.parquet")


def test_pandas_reads_our_parquet_by_itself(tmp_path):
    """A file with list columns opens with pandas' own reader, values included."""
    lists = pd.array(
        [[{"a": 1}], None], dtype=pd.ArrowDtype(pa.list_(pa.struct({"a": pa.int64()})))
    )
    frame = pd.DataFrame({"id": ["1", "2"], "entries": lists})
    path = write_parquet(frame, tmp_path / "people.parquet")
    entries = pd.read_parquet(path)["entries"]
    assert list(entries[0]) == [{"a": 1}]
    assert entries[1] is None
    pd.testing.assert_frame_equal(read_prospects(path), frame)


def test_parquet_is_compressed_with_zstd(tmp_path):
    """The Parquet file uses zstd, and list columns are lists in it."""
    write_parquet(prospects(2), tmp_path / "x.parquet")
    file = pq.ParquetFile(tmp_path / "x.parquet")
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert pa.types.is_list(file.schema_arrow.field("experiences").type)
    file.close()


def test_a_folder_of_parts_is_one_frame(tmp_path):
    """Parts are read in the order of their names, with the columns of all."""
    for number, extra in ((2, {"zz": "x"}), (1, {})):
        page = read_people_page(body({"id": str(number), **extra}))
        pq.write_table(page.people, tmp_path / f"part-{number:05}.parquet")
    (tmp_path / ".part.tmp.parquet").write_bytes(b"half")
    frame = read_prospects(tmp_path)
    assert frame["id"].tolist() == ["1", "2"]
    assert frame["zz"].isna().tolist() == [True, False]
    assert frame.dtypes.iloc[:-1].equals(people_frame([]).dtypes)


def test_ndjson_is_read_as_people(tmp_path):
    """An NDJSON file has one person on each line, with the dtypes of a search."""
    path = tmp_path / "people.ndjson"
    path.write_text("\n".join(json.dumps({"id": str(n), "zz": n}) for n in range(5_000)) + "\n\n")
    frame = read_prospects(path)
    assert frame["id"].tolist() == [str(n) for n in range(5_000)]
    assert frame["zz"].sum() == sum(range(5_000))
    path.write_text("")
    assert_same(read_prospects(path), people_frame([]))


@pytest.mark.parametrize("line", ['{"id": "1"', "5", "null", '{"id":"1"},{"id":"2"}', "[]"])
def test_a_wrong_line_of_ndjson_is_named(tmp_path, line):
    """A line that is no person is an error with its number."""
    path = tmp_path / "people.ndjson"
    path.write_text(f'{{"id": "0"}}\n{line}\n')
    with pytest.raises(InvalidInputError, match="line 2"):
        read_prospects(path)


@pytest.mark.parametrize(
    "name", ["missing.csv", "missing.parquet", "folder", "x.xlsx", "bad.parquet"]
)
def test_files_that_cannot_be_read_are_clear_errors(tmp_path, name):
    """A missing, empty, unknown or damaged file is an error that names it."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "x.xlsx").write_bytes(b"PK")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InvalidInputError, match=re.escape(name)):
        read_prospects(tmp_path / name)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("path", "advice"),
    [("none/x", "make the folder"), ("folder", "folder"), ("file.txt/x", "path")],
)
def test_places_that_cannot_be_written_are_clear_errors(tmp_path, suffix, path, advice):
    """A missing folder, a folder, or a file in place of a folder is an error that says so."""
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / "file.txt").write_text("kept")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInputError, match=advice):
        write(pd.DataFrame({"a": ["x"]}), tmp_path / f"{path}{suffix}")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_full_disk_leaves_the_old_file(tmp_path, suffix):
    """When no more can be written, the old file stays and nothing else is left."""
    old = pd.DataFrame({"a": ["old"], "n": [1]})
    path = write(old, tmp_path / f"x{suffix}")
    before = sorted(tmp_path.iterdir())
    big = pd.DataFrame(
        {"a": [str(n) for n in np.random.default_rng(0).integers(2**62, size=90_000)]}
    )
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(InvalidInputError, match=os.strerror(errno.EFBIG)):
            write(big, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert sorted(tmp_path.iterdir()) == before
    assert_same(read_prospects(path), old)


def test_a_link_and_permissions_stay(tmp_path):
    """Writing through a link replaces the file behind it and keeps its permissions."""
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    write_csv(pd.DataFrame({"a": ["old"]}), real)
    real.chmod(0o640)
    link.symlink_to(real)
    write_csv(pd.DataFrame({"a": ["new"]}), link)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert read_prospects(real)["a"].tolist() == ["new"]


KILLED = """
import sys
from pathlib import Path
import pandas as pd
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.parquet import write_parquet
path = Path(sys.argv[1])
frame = pd.DataFrame({"a": ["new"] * 300_000, "b": range(300_000)})
print("ready", flush=True)
while True:
    (write_csv if path.suffix == ".csv" else write_parquet)(frame, path)
"""


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("delay", [0.02, 0.1])
def test_killed_while_writing_leaves_a_whole_file(tmp_path, suffix, delay):
    """A process killed while it writes leaves the old file or the new one."""
    path = write(pd.DataFrame({"a": ["old"] * 3}), tmp_path / f"x{suffix}")
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(delay)
        process.kill()
    frame = read_prospects(path)
    assert (len(frame), set(frame["a"])) in [(3, {"old"}), (300_000, {"new"})]
