"""Cells become the text that a person would write, for any dtype."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.errors import InvalidInputError
from outreach_frames.leads.planning.syntax import field_name, is_field_name
from outreach_frames.tables.value_text import column_texts, strip_texts

EAST = datetime.timezone(datetime.timedelta(hours=2))
DAY = datetime.date(2024, 5, 1)
NOON = datetime.datetime(2024, 5, 1, 12)

WRITTEN: list[tuple[Any, str]] = [
    (2021, "2021"),
    (2021.0, "2021"),
    (2.5, "2.5"),
    (-0.0, "0"),
    (1e16, "10000000000000000"),
    (1e-7, "0.0000001"),
    (2**53 + 1, "9007199254740993"),
    (2**64 - 1, "18446744073709551615"),
    (np.float32(0.1), "0.1"),
    (np.int64(-7), "-7"),
    (decimal.Decimal("2021.00"), "2021.00"),
    (True, "true"),
    (np.False_, "false"),
    (DAY, "2024-05-01"),
    (datetime.datetime(2024, 5, 1), "2024-05-01"),
    (NOON, "2024-05-01T12:00:00"),
    (pd.Timestamp("2024-05-01 00:00:00.000000001"), "2024-05-01T00:00:00.000000001"),
    (datetime.datetime(2024, 5, 1, tzinfo=EAST), "2024-05-01T00:00:00+02:00"),
    (np.datetime64("2024-05-01"), "2024-05-01"),
    (datetime.time(9, 30), "09:30:00"),
    (pd.Period("2024-05"), "2024-05"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (" as written ", " as written "),
    ("nan", "nan"),
    ("00123", "00123"),
]
MISSING: list[Any] = [
    None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "D"), decimal.Decimal("NaN"), "", "  \t\n",
    "\xa0\u200b\ufeff", "\u3164 \u2800\ufe0f",
]  # fmt: skip
HIDDEN = "\xad\u200b\ufe0f\u034f\u180b\u3164\u115f\uffa0\u17b4\u2800\U000e0100"
NOT_PLAIN: list[Any] = [
    b"text", ["a"], {"a": 1}, np.array([1]), np.inf, decimal.Decimal("-Infinity"),
    decimal.Decimal("1E+999999999"), 10**5000, 1j, pd.Timedelta(days=1), "\ud800",
]  # fmt: skip
STORED: list[tuple[list[Any], str | pd.api.extensions.ExtensionDtype, list[str | None]]] = [
    ([2021, None], "float64", ["2021", None]),
    ([2021, None], "Int64", ["2021", None]),
    ([2**53 + 1, None], "Int64", ["9007199254740993", None]),
    ([2021, None], "int64[pyarrow]", ["2021", None]),
    ([2021.0, 2.5, None], "Float64", ["2021", "2.5", None]),
    ([0.1, None], "float32", ["0.1", None]),
    ([0.1, None], "Float32", ["0.1", None]),
    ([0.1, 1e16, None], "float[pyarrow]", ["0.1", "10000000000000000", None]),
    ([True, False], "bool", ["true", "false"]),
    ([True, None], "boolean", ["true", None]),
    ([True, None], "bool[pyarrow]", ["true", None]),
    ([DAY, None], "date32[pyarrow]", ["2024-05-01", None]),
    ([DAY, NOON, None], "datetime64[us]", ["2024-05-01", "2024-05-01T12:00:00", None]),
    ([NOON, None], "timestamp[ns][pyarrow]", ["2024-05-01T12:00:00", None]),
    ([NOON, None], "datetime64[us, UTC]", ["2024-05-01T12:00:00+00:00", None]),
    (
        [decimal.Decimal("1.50"), None],
        pd.ArrowDtype(pa.decimal128(9, 2)),
        ["1.50", None],
    ),
    (["a", None, " "], "str", ["a", None, None]),
    (["a", None, " "], "string", ["a", None, None]),
    (["a", None, " "], "string[python]", ["a", None, None]),
    (["a", None, " "], "string[pyarrow]", ["a", None, None]),
    (["a", None, " "], pd.ArrowDtype(pa.large_string()), ["a", None, None]),
    (["a", None, " "], pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())), ["a", None, None]),
    (["a", None, " "], "category", ["a", None, None]),
    ([2021.0, 2.5, None], "category", ["2021", "2.5", None]),
    ([2021.0, None], "Sparse[float]", ["2021", None]),
    ([None, None], pd.ArrowDtype(pa.null()), [None, None]),
    ([], "object", []),
    ([], "float64", []),
    ([], "category", []),
]


def texts(cells: pd.Series[Any]) -> list[str | None]:
    """Return the texts of a column with unambiguous cells."""
    written = column_texts(cells)
    assert not written.unreadable
    return written.texts.to_pylist()


@pytest.mark.parametrize(("cell", "text"), WRITTEN, ids=repr)
def test_a_cell_becomes_plain_text(cell: object, text: str) -> None:
    """A value in an object column gets its plain text."""
    assert texts(pd.Series([cell, "beside"], dtype=object)) == [text, "beside"]


@pytest.mark.parametrize("cell", MISSING, ids=repr)
def test_a_missing_cell_has_no_text(cell: object) -> None:
    """A missing or blank cell has no text, in columns of text and of numbers."""
    assert texts(pd.Series([cell, "beside"], dtype=object)) == [None, "beside"]
    assert texts(pd.Series([cell, 5], dtype=object)) == [None, "5"]


@pytest.mark.parametrize("hidden", list(HIDDEN))
def test_hidden_characters_are_stripped_like_blanks(hidden: str) -> None:
    """Hidden characters around a text are stripped, and those inside it stay."""
    texts = pa.array([f"{hidden} Zoë{hidden}B \u200b{hidden}", "b ", None, hidden])
    assert strip_texts(texts).to_pylist() == [f"Zoë{hidden}B", "b", None, ""]


@pytest.mark.parametrize("cell", NOT_PLAIN, ids=lambda cell: type(cell).__name__)
def test_ambiguous_cells_are_reported(cell: object) -> None:
    """A cell without an unambiguous text is reported by position, and others are written."""
    written = column_texts(pd.Series(["before", cell, "behind"], dtype=object))
    assert written.texts.to_pylist() == ["before", None, "behind"]
    assert list(written.unreadable) == [1]


@pytest.mark.parametrize(("cells", "dtype", "expected"), STORED, ids=str)
def test_the_dtype_makes_no_difference(
    cells: list[Any], dtype: Any, expected: list[str | None]
) -> None:
    """Each dtype's cells get the same texts as the same cells in an object column."""
    assert texts(pd.Series(cells, dtype=dtype)) == expected


def arrow(values: list[Any], kind: pa.DataType) -> pd.Series[Any]:
    """Return a column of any Arrow type, including types that pandas cannot create."""
    if isinstance(kind, pa.BaseExtensionType):
        storage = pa.array(values, kind.storage_type)
        array = pa.ExtensionArray.from_storage(kind, storage)
    elif pa.types.is_run_end_encoded(kind):
        array = pa.RunEndEncodedArray.from_arrays(range(1, len(values) + 1), values)
    else:
        array = pa.array(values, kind)
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([array])))


ONE = uuid.UUID(int=1)
ARROW: list[tuple[Any, pa.DataType, str]] = [
    ("a", pa.string_view(), "a"),
    ("a" * 50, pa.string_view(), "a" * 50),
    ("a", pa.large_string(), "a"),
    ("a", pa.dictionary(pa.int32(), pa.string()), "a"),
    ("a", pa.run_end_encoded(pa.int32(), pa.string()), "a"),
    (ONE.bytes, pa.uuid(), str(ONE)),
    ('{"a":1}', pa.json_(pa.string()), '{"a":1}'),
    ("a", pa.opaque(pa.string(), "kind", "vendor"), "a"),
    (1, pa.bool8(), "true"),
    (decimal.Decimal("1.50"), pa.decimal32(5, 2), "1.50"),
    (decimal.Decimal("1.50"), pa.decimal64(5, 2), "1.50"),
    (decimal.Decimal("1.50"), pa.decimal128(5, 2), "1.50"),
    (decimal.Decimal("1.50"), pa.decimal256(50, 2), "1.50"),
    (1, pa.uint64(), "1"),
    (np.float16(0.5), pa.float16(), "0.5"),
    (DAY, pa.date32(), "2024-05-01"),
    (DAY, pa.date64(), "2024-05-01"),
    (datetime.time(9, 30), pa.time32("s"), "09:30:00"),
    (datetime.time(9, 30), pa.time64("us"), "09:30:00"),
    *((NOON, pa.timestamp(unit), "2024-05-01T12:00:00") for unit in ("s", "ms", "us", "ns")),
]


@pytest.mark.parametrize(("value", "kind", "text"), ARROW, ids=str)
def test_every_type_of_arrow_is_written(value: Any, kind: pa.DataType, text: str) -> None:
    """A column's Arrow type does not change the texts, and missing cells stay missing."""
    written = column_texts(arrow([value, None, value], kind))
    assert written.texts.to_pylist() == [text, None, text]
    assert not written.unreadable


UNCLEAR = [
    *(arrow([b"x", None, b"x"], kind) for kind in (pa.binary(), pa.binary_view(), pa.binary(1))),
    *(pd.Series([b"x", None, b"x"], dtype=dtype) for dtype in ("category", "object")),
    *(arrow([["a"], None, ["a"]], kind(pa.string())) for kind in (pa.list_, pa.list_view)),
    arrow([{"a": 1}, None, {"a": 1}], pa.struct([("a", pa.int64())])),
    arrow([[("a", 1)], None, [("a", 1)]], pa.map_(pa.string(), pa.int64())),
    arrow([datetime.timedelta(1), None, datetime.timedelta(1)], pa.duration("s")),
    pd.cut(pd.Series([1, None, 1, 9]), 2)[:3],
]


@pytest.mark.parametrize("column", UNCLEAR, ids=lambda column: str(column.dtype))
def test_unclear_types_are_reported(column: pd.Series[Any]) -> None:
    """Bytes, lists, records, durations and intervals have no text; every row is reported."""
    assert list(column_texts(column).unreadable) == [0, 2]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_number_has_an_exponent_or_an_empty_fraction(number: float) -> None:
    """A float's text has no exponent and no `.0`, and is read back as the same float."""
    (text,) = texts(pd.Series([number]))
    assert text is not None
    assert float(text) == number
    assert "e" not in text
    assert not text.endswith((".", ".0"))


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("First Name", "first_name"), ("  Größe (m²) ", "grosse_m2"), ("1a", "field_1a"),
        ("_a", "a"), ("a__b--c", "a_b_c"), (2024, "field_2024"), ("a" * 300, "a" * 255),
        ("Fødselsår", "fodselsar"), ("Główny", "glowny"), ("ÆØŒ", "aeooe"), ("Đð", "dd"),
        ("Þór", "thor"), ("K\u0131rm\u0131z\u0131", "kirmizi"), ("Ħal", "hal"), ("ǾX", "ox"),
    ],
)  # fmt: skip
def test_field_name_returns_a_valid_name(column: object, name: str) -> None:
    """A column's name becomes a valid field name."""
    assert field_name(column) == name


@given(st.text())
def test_field_name_accepts_any_name_with_a_letter(column: str) -> None:
    """Any name with a Latin letter becomes a valid field name; other names are an error."""
    assert is_field_name(field_name(f"{column}x"))
    for other in ("", "###", "Имя"):
        with pytest.raises(InvalidInputError, match="data="):
            field_name(other)
