"""Convert the columns of a frame to the form in which CSV files hold them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.types import is_object_dtype

from outreach_frames.common.pandas_versions import STR
from outreach_frames.tables.json_columns import write_json_texts
from outreach_frames.tables.schema import empty_documented_columns, is_text, to_frame
from outreach_frames.tables.value_text import any_text, python_values

_ROWS_AT_ONCE: Final = 20_000
_PLAIN_OBJECTS: Final = (str, datetime.date)
# Dtypes whose values are written and read as text.
_TEXT_ONLY: Final = re.compile(r"period|timedelta|duration|float16|halffloat|decimal|time\d")
_UNCHANGED: Final = (
    *(pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean),
    *(is_text, pa.types.is_date32, pa.types.is_null),
)


@cache
def default_dtypes() -> Mapping[str, Any]:
    """Return the dtypes of documented columns, for which CSV needs no metadata; others are text."""
    return dict(to_frame(pa.table(dict(empty_documented_columns())), "numpy_nullable").dtypes)


def storable(column: pd.Series[Any]) -> pd.Series[Any]:
    """Convert a column to text if CSV cannot restore its dtype."""
    if _is_restorable(column):
        return column
    texts = [any_text(value) for value in python_values(column)]
    return pd.Series(texts, index=column.index, dtype=STR)


def _is_restorable(column: pd.Series[Any]) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _is_restorable(column.cat.categories.to_series())
    if is_object_dtype(column.dtype):
        kinds = set(map(type, column[column.notna()]))
        return len(kinds) < 2 and kinds.issubset(_PLAIN_OBJECTS)
    return not _TEXT_ONLY.match(str(column.dtype))


def csv_form(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert an Arrow column to its form in CSV; raise NotImplementedError for other types."""
    kind = array.type
    if any(is_kind(kind) for is_kind in _UNCHANGED):
        return array
    if pa.types.is_dictionary(kind):
        return csv_form(array.cast(kind.value_type))
    if pa.types.is_nested(kind):
        rows = (array.slice(start, _ROWS_AT_ONCE) for start in range(0, len(array), _ROWS_AT_ONCE))
        texts = [write_json_texts(chunk) for part in rows for chunk in part.chunks]
        return pa.chunked_array(texts, pa.string())
    if pa.types.is_timestamp(kind):
        return _timestamps(array)
    raise NotImplementedError(f"the Arrow type {kind} is not supported")


def parsed_type(kind: pa.DataType) -> pa.DataType:
    """Return the type as which Arrow parses a column of this package's CSV files."""
    is_plain = pa.types.is_timestamp(kind) or any(is_kind(kind) for is_kind in _UNCHANGED)
    return kind if is_plain else pa.string()


def _timestamps(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert times with a zone to UTC, and times without a zone to dates if all are midnight."""
    if array.type.tz:
        return array.cast(pa.timestamp(array.type.unit, "UTC"))
    days = array.cast(pa.date32())
    at_midnight = pc.all(pc.equal(days.cast(array.type), array), min_count=0).as_py()
    return days if at_midnight else array
