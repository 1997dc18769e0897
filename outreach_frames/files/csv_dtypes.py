"""A frame's column as a CSV column, and a model of it: what is needed to restore its dtype.

A model is an Arrow batch of the one column without rows. It has the column's type and categories.
The field's metadata name the dtype in pandas, where that is not Arrow's own, and how cells are
written where that is not the usual way: numbers as text, objects as JSON or decimals.
"""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.types import is_object_dtype, pandas_dtype

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.json_columns import read_json_texts, write_json_texts
from outreach_frames.tables.schema import empty_table, to_frame

Model: TypeAlias = pa.RecordBatch

_ROWS_AT_ONCE: Final = 20_000
_DTYPE: Final = b"dtype"
_WRITTEN: Final = b"written"
_OBJECT: Final = b"object"
_DECIMAL: Final = b"decimal"
_PLAIN_OBJECTS: Final = (str, datetime.date)


class UnwritableError(ValueError):
    """A column has what CSV cannot hold."""


def encode(series: pd.Series[Any], name: str) -> tuple[pa.ChunkedArray, Model]:
    """Convert a column for writing, and make its model."""
    try:
        written, typed, notes = _encode(series)
    except UnicodeEncodeError:
        problem = "text that no file can hold (half a surrogate pair)"
    except (UnwritableError, pa.ArrowException, NotImplementedError, OverflowError) as error:
        problem = f"what CSV cannot hold: {error}"
    else:
        schema = pa.schema([pa.field(name, typed.type, metadata=notes)])
        return written, pa.record_batch([typed.slice(0, 0).combine_chunks()], schema)
    raise InvalidInputError(
        f"The column {name!r} has {problem}. "
        "Convert it to text, numbers, dates or lists of these first, or drop it."
    )


def text_model(name: str) -> Model:
    """Return the model of a text column."""
    return encode(pd.Series(dtype="str"), name)[1]


def default_model(name: str) -> Model:
    """Return the model that a column of this name has unless something else is noted."""
    models = _default_models()
    return models[name] if name in models else text_model(name)


@cache
def _default_models() -> Mapping[str, Model]:
    return {
        str(name): encode(column, str(name))[1]
        for fields in (spec.SEQUENCE, spec.MAILBOX, spec.CONTACT, spec.PERSON)
        for name, column in to_frame(empty_table(fields), "numpy_nullable").items()
    }


def stored_type(model: Model) -> pa.DataType:
    """Return the Arrow type in which a column is read from CSV."""
    field = model.schema.field(0)
    kind = _cells(field.type)
    if pa.types.is_floating(kind) and _WRITTEN not in _notes(field):
        return pa.float32() if pa.types.is_float16(kind) else kind
    return arrow_stored_type(kind)


def dtype_name(model: Model) -> str:
    """Return the name of a column's dtype, for messages."""
    field = model.schema.field(0)
    return _notes(field).get(_DTYPE, str(field.type).encode()).decode()


def is_nested(model: Model) -> bool:
    """Return whether a column's cells are lists or records, which are JSON in the file."""
    return bool(pa.types.is_nested(model.schema.field(0).type))


def decode(stored: pa.ChunkedArray, model: Model) -> Any:
    """Convert what was read back into a column's values."""
    field = model.schema.field(0)
    column = read_arrow(stored, _cells(field.type))
    if not pa.types.is_dictionary(field.type):
        return _restore(column, _notes(field))
    categories = model.column(0).dictionary
    codes = pc.index_in(column, value_set=categories)
    if codes.null_count > column.null_count:
        raise ValueError("a cell is not one of the categories")
    return pd.Categorical.from_codes(
        codes.fill_null(-1).to_numpy(),
        categories=pd.Index(_restore(pa.chunked_array([categories]), _notes(field))),
        ordered=field.type.ordered,
    )


def _restore(column: pa.ChunkedArray, notes: Mapping[bytes, bytes]) -> Any:
    """Convert an Arrow column into one of the noted dtype."""
    if _DTYPE not in notes:
        return pd.arrays.ArrowExtensionArray(column)
    if notes[_DTYPE] == _OBJECT:
        cells = column.to_pylist()
        if _WRITTEN in notes:
            parse = decimal.Decimal if notes[_WRITTEN] == _DECIMAL else json.loads
            cells = [None if text is None else parse(text) for text in cells]
        return pd.Series(cells, dtype=object)
    dtype: Any = pandas_dtype(notes[_DTYPE].decode())
    if hasattr(dtype, "__from_arrow__"):
        return dtype.__from_arrow__(column)
    if column.null_count and dtype.kind in "iub":
        raise ValueError("cells are empty, and this dtype has no missing values")
    return column.to_pandas().array


def _notes(field: pa.Field) -> Mapping[bytes, bytes]:
    return field.metadata or {}


def _cells(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column's cells, which may be categories."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _encode(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, pa.ChunkedArray, dict[bytes, bytes]]:
    """Return a column as it is written, as Arrow has it, and what is noted of it."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        written, categories, notes = _encode(series.cat.categories.to_series())
        codes = series.cat.codes.to_numpy()
        places = pa.array(codes, mask=codes < 0)
        typed = pa.DictionaryArray.from_arrays(
            places, categories.combine_chunks(), ordered=series.cat.ordered
        )
        return written.take(places), pa.chunked_array([typed]), notes
    typed, notes = _typed(series)
    written = write_arrow(typed)
    if pa.types.is_floating(typed.type) and pa.types.is_string(written.type):
        notes = {**notes, _WRITTEN: b"text"}
    return written, typed, notes


def _typed(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, dict[bytes, bytes]]:
    """Return a column as Arrow has it, and the name of its dtype in pandas."""
    dtype: Any = series.dtype
    if isinstance(dtype, pd.PeriodDtype):
        return _typed(series.astype("str"))
    if is_object_dtype(dtype):
        return _objects(series)
    if not isinstance(dtype, np.dtype) and not hasattr(dtype, "__from_arrow__"):
        raise UnwritableError(f"values of the dtype {dtype}")
    if isinstance(dtype, pd.DatetimeTZDtype) and not _has_name(dtype):
        raise UnwritableError(f"moments in a time zone that has no name, {dtype.tz}")
    array = pa.array(series, from_pandas=True)
    typed = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    return typed, {} if isinstance(dtype, pd.ArrowDtype) else {_DTYPE: str(dtype).encode()}


def _has_name(dtype: pd.DatetimeTZDtype) -> bool:
    try:
        return bool(pandas_dtype(str(dtype)) == dtype)
    except TypeError:
        return False


def _objects(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, dict[bytes, bytes]]:
    """Return objects as text, dates or decimals where all are that, and otherwise as JSON."""
    notes = {_DTYPE: _OBJECT}
    missing = series.isna() & (series.map(type) != decimal.Decimal)
    values = [None if gone else value for value, gone in zip(series, missing, strict=True)]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {decimal.Decimal}:
        # Arrow's decimals have one number of places for all, and neither infinity nor 1E+40.
        digits = [None if value is None else str(value) for value in values]
        return _texts(digits), {**notes, _WRITTEN: _DECIMAL}
    if len(kinds) == 1 and kinds.issubset(_PLAIN_OBJECTS):
        return pa.chunked_array([pa.array(values)]), notes
    texts = [
        None if value is None else json.dumps(_json_value(value), ensure_ascii=False)
        for value in values
    ]
    return _texts(texts), {**notes, _WRITTEN: b"json"}


def _texts(values: list[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.large_string())])


def _json_value(value: Any) -> Any:
    """Give a cell as plain JSON values; what JSON cannot tell apart is refused."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, list | tuple):
        return [_json_value(element) for element in value]
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return {key: _json_value(member) for key, member in value.items()}
    raise UnwritableError(f"a cell of the type {type(value).__name__}")


def write_arrow(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert an Arrow column for writing."""
    kind = array.type
    if _is_written_as_is(kind):
        return array
    if pa.types.is_nested(kind):
        rows = (array.slice(start, _ROWS_AT_ONCE) for start in range(0, len(array), _ROWS_AT_ONCE))
        texts = [write_json_texts(chunk) for part in rows for chunk in part.chunks]
        return pa.chunked_array(texts, pa.string())
    if pa.types.is_timestamp(kind):
        return _moments(array)
    if pa.types.is_floating(kind):
        return _numbers(array)
    if pa.types.is_duration(kind):
        return array.cast(pa.int64())
    if pa.types.is_decimal(kind):
        return array.cast(pa.string())
    raise UnwritableError(f"values of the Arrow type {kind}")


def arrow_stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type in which a column is read that `write_arrow` wrote."""
    if pa.types.is_duration(kind):
        return pa.int64()
    return kind if _is_written_as_is(kind) or pa.types.is_timestamp(kind) else pa.string()


def read_arrow(stored: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Convert what was read back into a column of that type."""
    if pa.types.is_nested(kind):
        return pa.chunked_array([read_json_texts(chunk, kind) for chunk in stored.chunks], kind)
    return stored.cast(kind)


def _numbers(array: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    if pc.any(pc.is_inf(array), min_count=0).as_py():
        # A spreadsheet takes -inf for a formula; as text it is guarded like all text.
        return array.cast(pa.string())
    return array


def _moments(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write moments in UTC where they have a zone, and as days where all are at midnight."""
    if array.type.tz:
        return array.cast(pa.timestamp(array.type.unit, "UTC"))
    days = array.cast(pa.date32(), safe=False)
    at_midnight = pc.all(pc.equal(days.cast(array.type), array), min_count=0).as_py()
    return days if at_midnight else array


def _is_written_as_is(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_integer,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_date32,
        pa.types.is_time,
        pa.types.is_null,
    )
    return any(test(kind) for test in tests)
