"""Frames of other libraries, and Arrow's integers, become pandas frames with a search's dtypes."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.common.pandas_versions import STR
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.interchange import as_frame
from tests.libraries import LIBRARIES
from tests.reading.people_strategies import EXACT_FLOATS, INT64, TEXTS

DAY = dt.date(2024, 5, 1)
MIDNIGHT = pd.Timestamp("2024-05-01")
BERLIN = dt.timezone(dt.timedelta(hours=2))
NAME = uuid.UUID(int=7)

# Polars columns with one value, and the expected dtype and value in pandas.
POLARS: list[tuple[Any, Any, str, Any]] = [
    (pl.String, "Zoë", "str", "Zoë"),
    (pl.Int8, -3, "Int64", -3),
    (pl.UInt32, 2**32 - 1, "Int64", 2**32 - 1),
    (pl.UInt64, 2**64 - 1, "UInt64", 2**64 - 1),
    (pl.Float32, 0.5, "Float32", 0.5),
    (pl.Float64, 0.1, "Float64", 0.1),
    (pl.Boolean, True, "boolean", True),
    (pl.Categorical, "x", "str", "x"),
    (pl.Enum(["hi", "lo"]), "lo", "str", "lo"),
    (pl.Decimal(10, 2), Decimal("5.10"), "decimal128(10, 2)[pyarrow]", Decimal("5.10")),
    (pl.Date, DAY, "datetime64[us]", MIDNIGHT),
    (pl.Datetime("ms"), MIDNIGHT, "datetime64[ms]", MIDNIGHT),
    (
        pl.Datetime("us", "Europe/Berlin"),
        dt.datetime(2024, 5, 1, tzinfo=BERLIN),
        "datetime64[us, Europe/Berlin]",
        pd.Timestamp("2024-05-01", tz="Europe/Berlin"),
    ),
    (pl.Time, dt.time(1, 2), "time64[ns][pyarrow]", dt.time(1, 2)),
    (pl.Duration, dt.timedelta(2), "timedelta64[us]", pd.Timedelta(days=2)),
    (pl.Binary, b"x", "binary[pyarrow]", b"x"),
    (pl.List(pl.String), ["a", None], "list<item: string>[pyarrow]", ["a", None]),
    (pl.Array(pl.Int16, 2), [1, 2], "list<item: int64>[pyarrow]", [1, 2]),
    (
        pl.List(pl.Struct({"a": pl.String, "b": pl.List(pl.String)})),
        [{"a": "x", "b": ["y"]}],
        "list<item: struct<a: string, b: list<item: string>>>[pyarrow]",
        [{"a": "x", "b": ["y"]}],
    ),
]
# The same for DuckDB.
DUCKDB: list[tuple[str, str, Any]] = [
    ("'x'", "str", "x"),
    ("1::utinyint", "Int64", 1),
    ("1", "Int64", 1),
    ("1::bigint", "Int64", 1),
    ("true", "boolean", True),
    ("0.5::double", "Float64", 0.5),
    ("'x'::enum('x', 'y')", "str", "x"),
    ("date '2024-05-01'", "datetime64[us]", MIDNIGHT),
    ("timestamp_s '2024-05-01'", "datetime64[s]", MIDNIGHT),
    (f"'{NAME}'::uuid", "str", str(NAME)),
    ("['a', 'b']", "list<item: string>[pyarrow]", ["a", "b"]),
    ("[{'n': 1}]", "list<item: struct<n: int64>>[pyarrow]", [{"n": 1}]),
    ("'{}'::json", "str", "{}"),
]


def assert_is(column: pd.Series[Any], dtype: str, value: Any) -> None:
    """Check a column with one value and one missing cell."""
    assert str(column.dtype) == dtype
    first, second = column.tolist()
    assert first == value
    assert pd.isna(second)


@pytest.mark.parametrize(("kind", "value", "dtype", "expected"), POLARS, ids=lambda _: "")
def test_types_of_polars(kind: Any, value: Any, dtype: str, expected: Any) -> None:
    """Each Polars type becomes the dtype of a search, and null becomes missing."""
    frame = as_frame(pl.DataFrame({"a": pl.Series([value, None], dtype=kind)}))
    assert_is(frame["a"], dtype, expected)


def test_types_of_duckdb() -> None:
    """Each DuckDB type becomes the dtype of a search."""
    with duckdb.connect() as connection:
        for value, dtype, expected in DUCKDB:
            relation = connection.sql(f"select {value} a union all select null")
            assert_is(as_frame(relation)["a"], dtype, expected)
        moments = connection.sql(
            "select timestamptz '2024-05-01 02:00:00+02' a union all select null"
        )
        zone = connection.sql("select current_setting('TimeZone')").fetchall()[0][0]
        name = "UTC" if zone == "Etc/UTC" else zone
        moment = pd.Timestamp("2024-05-01", tz="UTC")
        assert_is(as_frame(moments)["a"], f"datetime64[us, {name}]", moment)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([[1], None, [2, 3]], pa.list_view(pa.int32())), [[1], None, [2, 3]]),
        (pa.array([[["x"]]], pa.list_(pa.list_view(pa.string_view()))), [[["x"]]]),
        (pa.array([[1], None], pa.large_list(pa.int64())), [[1], None]),
        (pa.array([["b"], None], pa.list_(pa.string(), 1)), [["b"], None]),
    ],
    ids=["views", "views in lists", "large", "of one size"],
)
def test_lists_of_any_kind_keep_their_entries(values: pa.Array, expected: list[Any]) -> None:
    """Lists keep all entries, even if Arrow's cast would empty them."""
    column = as_frame(pa.table({"a": values}))["a"]
    assert pa.types.is_list(column.dtype.pyarrow_dtype)
    assert pa.array(column.array).to_pylist() == expected


def test_nan_is_missing() -> None:
    """NaN in Polars becomes missing, as in a pandas frame."""
    frame = as_frame(pl.DataFrame({"a": [0.5, float("nan"), None]}))
    assert frame["a"].isna().tolist() == [False, True, True]


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view()], ids=str)
def test_categories_become_text(kind: pa.DataType) -> None:
    """An Arrow dictionary, also with nulls or duplicates, becomes text."""
    entries = pa.array(["y", None, "x", "y"], kind)
    given = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None]), entries, ordered=True)
    column = as_frame(pa.table({"a": given}))["a"]
    assert column.dtype == STR
    assert column.tolist() == ["y", np.nan, "x", "y", np.nan]


def test_duplicate_columns_are_kept() -> None:
    """An Arrow table with a repeated name becomes a frame with both columns."""
    table = pa.Table.from_arrays([pa.array(["a@x.example"]), pa.array(["b"])], ["email"] * 2)
    frame = as_frame(table)
    assert frame.columns.tolist() == ["email", "email"]
    with pytest.raises(InvalidInputError, match="more than once"):
        of.outreach(table).validate()


def test_empty_frames_keep_their_shape() -> None:
    """Frames without rows or columns keep their shape."""
    assert as_frame(pl.DataFrame()).shape == (0, 0)
    empty = as_frame(pl.DataFrame(schema={"email": pl.String, "n": pl.Int64}))
    assert empty.dtypes.astype(str).to_dict() == {"email": "str", "n": "Int64"}
    assert as_frame(pa.table(pd.DataFrame(index=range(3)))).shape == (3, 0)


def test_a_pandas_frame_is_itself() -> None:
    """A pandas frame is returned without a copy or change, whatever its dtypes."""
    frame = pd.DataFrame({"a": np.array([1], dtype="int8")}, index=["x"])
    assert as_frame(frame) is frame


def test_a_record_batch_is_a_table_too() -> None:
    """A record batch becomes a frame."""
    assert as_frame(pa.RecordBatch.from_pydict({"a": [1]}))["a"].tolist() == [1]


def test_a_relation_is_read_whole_after_some_rows_were_fetched() -> None:
    """A relation is read completely, even if some rows were fetched before."""
    relation = duckdb.sql("select i from range(5000) t(i)")
    if hasattr(relation, "fetchone"):  # only in DuckDB 1
        relation.fetchone()
    assert as_frame(relation)["i"].tolist() == list(range(5000))


def _relation_of_a_closed_connection() -> Any:
    with duckdb.connect() as connection:
        return connection.sql("select 1 a")


NO_FRAMES: dict[str, tuple[Callable[[], Any], str]] = {
    "closed": (_relation_of_a_closed_connection, "already been closed"),
    "list": (lambda: [{"a": 1}], "not list"),
    "dict": (lambda: {"a": [1]}, "not dict"),
    "None": (lambda: None, "not NoneType"),
    "text": (lambda: "people.csv", "not str"),
    "array": (lambda: np.array([1]), r"not numpy\.ndarray"),
    "lazy": (lambda: pl.LazyFrame({"a": [1]}), r"not polars\.LazyFrame.*\.collect\(\)"),
    "pandas column": (lambda: pd.Series([1]), r"not pandas\.Series.*\.to_frame\(\)"),
    "polars column": (lambda: pl.Series([1]), r"not polars\.Series.*\.to_frame\(\)"),
    "arrow column": (lambda: pa.chunked_array([[1]]), r"this pyarrow\.ChunkedArray cannot be read"),
    "reader": (
        lambda: pa.table({"a": [1]}).to_reader(),
        r"not pyarrow\.RecordBatchReader.*\.read_all\(\)",
    ),
    "connection": (duckdb.connect, r"not duckdb\.DuckDBPyConnection"),
    "query that fails": (
        lambda: duckdb.sql("select x::int from (values ('1'), ('a')) v(x)"),
        "cannot be read as a frame.*Correct the query",
    ),
    "objects": (
        lambda: pl.DataFrame({"o": pl.Series([object()], dtype=pl.Object)}),
        "column of Python objects",
    ),
    "opaque": (
        lambda: pa.table(
            {
                "a": pa.ExtensionArray.from_storage(
                    pa.opaque(pa.int8(), "odd", "x"), pa.array([1], pa.int8())
                )
            }
        ),
        "'a' has the type .*type_name=odd",
    ),
}


@pytest.mark.parametrize("name", NO_FRAMES)
def test_an_object_that_is_not_a_frame_is_an_error(name: str) -> None:
    """An object that is not a frame, or cannot be read, is an error that says what to do."""
    make, message = NO_FRAMES[name]
    with pytest.raises(InvalidInputError, match=message) as caught:
        of.outreach(make())
    assert "takes a frame (pandas, Polars" in str(caught.value) or "Cast it" in str(caught.value)


COLUMNS: dict[str, tuple[st.SearchStrategy[Any], Any]] = {
    "text": (TEXTS, "str"),
    "whole": (INT64, "Int64"),
    "number": (EXACT_FLOATS, "Float64"),
    "flag": (st.booleans(), "boolean"),
    "moment": (
        st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1)),
        pd.ArrowDtype(pa.timestamp("us")),
    ),
    "texts": (st.lists(st.none() | TEXTS, max_size=3), pd.ArrowDtype(pa.list_(pa.string()))),
    "objects": (
        st.lists(st.fixed_dictionaries({"a": TEXTS, "b": st.none() | INT64}), max_size=2),
        pd.ArrowDtype(pa.list_(pa.struct([("a", pa.string()), ("b", pa.int64())]))),
    ),
}


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Draw frames with the dtypes of a search; some columns have only missing cells."""
    rows = draw(st.integers(0, 6))
    columns = {}
    for name in draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, unique=True)):
        values, dtype = COLUMNS[name]
        cells = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        columns[name] = pd.array(cells, dtype=dtype)
    frame = pd.DataFrame(columns)
    return frame.astype({"moment": "datetime64[us]"}) if "moment" in frame else frame


@given(frames(), st.data())
def test_any_frame_is_unchanged_after_a_round_trip(
    frame: pd.DataFrame, data: st.DataObject
) -> None:
    """A frame is unchanged after a conversion to another library and back, also in chunks."""
    start = data.draw(st.integers(0, len(frame)))
    for make in LIBRARIES.values():
        pd.testing.assert_frame_equal(as_frame(make(frame)), frame)
    part = frame[start:].reset_index(drop=True)
    whole = pl.from_pandas(frame)
    pd.testing.assert_frame_equal(as_frame(whole.slice(start)), part)
    pd.testing.assert_frame_equal(
        as_frame(pl.concat([whole[:start], whole[start:]], rechunk=False)), frame
    )
    pd.testing.assert_frame_equal(as_frame(pa.table(frame).slice(start)), part)
