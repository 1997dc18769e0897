"""Convert columns to CSV and back; a model per column restores the dtype.

A model is an Arrow batch with one column and no rows; it keeps the column's type and categories.
The field metadata holds the pandas dtype; Arrow dtypes need none.
"""

from __future__ import annotations

import datetime
import decimal
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.types import is_object_dtype

from outreach_frames import spec
from outreach_frames.common.pandas_versions import STR, dtype_named
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.json_columns import read_json_texts, write_json_texts
from outreach_frames.tables.schema import empty_table, to_frame
from outreach_frames.tables.value_text import any_text

Model: TypeAlias = pa.RecordBatch

_ROWS_AT_ONCE: Final = 20_000
_THREADS: Final = min(2, os.cpu_count() or 1)
_DTYPE: Final = b"dtype"
_OBJECT: Final = b"object"
_DECIMALS: Final = b"decimals"
_PLAIN_OBJECTS: Final = (str, datetime.date)


class UnwritableError(ValueError):
    """Raised if a column has values that CSV cannot hold."""


def encode(series: pd.Series[Any], name: str) -> tuple[pa.ChunkedArray, Model]:
    """Convert a column to its CSV form, and build its model."""
    try:
        written, typed, metadata = _encode(series)
    except UnicodeEncodeError:
        problem = "text with a lone surrogate, which no file can hold"
    except (UnwritableError, pa.ArrowException, NotImplementedError, OverflowError) as error:
        problem = f"values that CSV cannot hold: {error}"
    else:
        schema = pa.schema([pa.field(name, typed.type, metadata=metadata)])
        return written, pa.record_batch([typed.slice(0, 0).combine_chunks()], schema)
    raise InvalidInputError(
        f"The column {name!r} has {problem}. "
        "Convert the column to text, numbers, dates or lists of these types, or drop the column."
    )


def text_model(name: str) -> Model:
    """Return the model of a text column."""
    return _text_model().rename_columns([name])


@cache
def _text_model() -> Model:
    return encode(pd.Series(dtype=STR), "")[1]


def default_model(name: str) -> Model:
    """Return the default model of a column, for columns without a model in the metadata file."""
    models = documented_models()
    return models[name] if name in models else text_model(name)


@cache
def documented_models() -> Mapping[str, Model]:
    """Return the models of all documented columns by name."""
    return {
        str(name): encode(column, str(name))[1]
        for fields in (spec.SEQUENCE, spec.MAILBOX, spec.CONTACT, spec.PERSON)
        for name, column in to_frame(empty_table(fields), "numpy_nullable").items()
    }


def stored_type(model: Model) -> pa.DataType:
    """Return the Arrow type of a CSV column before `decode` converts the column."""
    kind = _cell_type(model.schema.field(0).type)
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_float16(kind):
        return pa.float32()
    return kind if _is_unconverted(kind) or pa.types.is_timestamp(kind) else pa.string()


def dtype_name(model: Model) -> str:
    """Return the name of a column's dtype for messages."""
    field = model.schema.field(0)
    return _field_metadata(field).get(_DTYPE, str(field.type).encode()).decode()


def decode(stored: pa.ChunkedArray, model: Model) -> Any:
    """Convert a column that was read from CSV to the dtype of the model."""
    field = model.schema.field(0)
    column = read_arrow(stored, _cell_type(field.type))
    if not pa.types.is_dictionary(field.type):
        return _restore(column, _field_metadata(field))
    categories = model.column(0).dictionary
    codes = pc.index_in(column, value_set=categories)
    if codes.null_count > column.null_count:
        raise ValueError("a cell is not one of the categories")
    return pd.Categorical.from_codes(
        codes.fill_null(-1).to_numpy(),
        categories=pd.Index(_restore(pa.chunked_array([categories]), _field_metadata(field))),
        ordered=field.type.ordered,
    )


def _restore(column: pa.ChunkedArray, metadata: Mapping[bytes, bytes]) -> Any:
    """Convert an Arrow column to the dtype in the field metadata."""
    if _DTYPE not in metadata:
        return pd.arrays.ArrowExtensionArray(column)
    if metadata[_DTYPE] == _OBJECT:
        return pd.Series(column.to_pylist(), dtype=object)
    if metadata[_DTYPE] == _DECIMALS:
        digits = column.to_pylist()
        return pd.Series([one and decimal.Decimal(one) for one in digits], dtype=object)
    dtype: Any = dtype_named(metadata[_DTYPE].decode())
    if hasattr(dtype, "__from_arrow__"):
        return dtype.__from_arrow__(column)
    if column.null_count and dtype.kind in "iub":
        raise ValueError("some cells are empty, but this dtype cannot hold missing values")
    return column.to_pandas().array


def _field_metadata(field: pa.Field) -> Mapping[bytes, bytes]:
    return field.metadata or {}


def _cell_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column's cells, or of the categories if the column is categorical."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _encode(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, pa.ChunkedArray, dict[bytes, bytes]]:
    """Return a column's CSV form, Arrow form and field metadata."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        written, categories, metadata = _encode(series.cat.categories.to_series())
        codes = series.cat.codes.to_numpy()
        indices = pa.array(codes, mask=codes < 0)
        typed = pa.DictionaryArray.from_arrays(
            indices, categories.combine_chunks(), ordered=series.cat.ordered
        )
        return written.take(indices), pa.chunked_array([typed]), metadata
    typed, metadata = _to_arrow(series)
    return write_arrow(typed), typed, metadata


def _to_arrow(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, dict[bytes, bytes]]:
    """Return a column's Arrow form and field metadata."""
    dtype: Any = series.dtype
    if isinstance(dtype, pd.PeriodDtype):
        return _to_arrow(series.astype(STR))
    if is_object_dtype(dtype):
        return _encode_objects(series)
    if not isinstance(dtype, np.dtype) and not hasattr(dtype, "__from_arrow__"):
        raise UnwritableError(f"the dtype {dtype} is not supported")
    if isinstance(dtype, pd.DatetimeTZDtype) and not _has_name(dtype):
        raise UnwritableError(f"the time zone {dtype.tz} has no name")
    array = pa.array(series, from_pandas=True)
    typed = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    return typed, {} if isinstance(dtype, pd.ArrowDtype) else {_DTYPE: str(dtype).encode()}


def _has_name(dtype: pd.DatetimeTZDtype) -> bool:
    try:
        return bool(dtype_named(str(dtype)) == dtype)
    except TypeError:
        return False


def _encode_objects(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, dict[bytes, bytes]]:
    """Keep objects that are all text, dates or decimals; convert other objects to text."""
    missing = series.isna() & (series.map(type) != decimal.Decimal)
    values = [None if empty else value for value, empty in zip(series, missing, strict=True)]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {decimal.Decimal}:
        # Store decimals as text, because an Arrow decimal has a fixed scale and no infinity.
        digits = [None if value is None else str(value) for value in values]
        return _texts(digits), {_DTYPE: _DECIMALS}
    if len(kinds) < 2 and kinds.issubset(_PLAIN_OBJECTS):
        return pa.chunked_array([pa.array(values)]), {_DTYPE: _OBJECT}
    return _texts(list(map(any_text, values))), {_DTYPE: str(STR).encode()}


def _texts(values: list[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.large_string())])


def write_arrow(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert an Arrow column to its CSV form."""
    kind = array.type
    if _is_unconverted(kind):
        return array
    if pa.types.is_nested(kind):
        rows = (array.slice(start, _ROWS_AT_ONCE) for start in range(0, len(array), _ROWS_AT_ONCE))
        texts = [write_json_texts(chunk) for part in rows for chunk in part.chunks]
        return pa.chunked_array(texts, pa.string())
    if pa.types.is_timestamp(kind):
        return _timestamps(array)
    if pa.types.is_float16(kind):
        return array.cast(pa.float32())
    if pa.types.is_duration(kind):
        return array.cast(pa.int64())
    if pa.types.is_decimal(kind):
        return array.cast(pa.string())
    raise UnwritableError(f"the Arrow type {kind} is not supported")


def read_arrow(stored: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Convert a column that was read from CSV to an Arrow type."""
    if pa.types.is_nested(kind):
        # Arrow parses JSON without Python's global lock.
        with ThreadPoolExecutor(_THREADS) as executor:
            parts = executor.map(partial(read_json_texts, kind=kind), stored.chunks)
            return pa.chunked_array(list(parts), kind)
    return stored.cast(kind)


def _timestamps(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert times with a zone to UTC, and times without a zone to dates if all are midnight."""
    if array.type.tz:
        return array.cast(pa.timestamp(array.type.unit, "UTC"))
    days = array.cast(pa.date32())
    at_midnight = pc.all(pc.equal(days.cast(array.type), array), min_count=0).as_py()
    return days if at_midnight else array


def _is_unconverted(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_float32,
        pa.types.is_float64,
        pa.types.is_integer,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_date32,
        pa.types.is_time,
        pa.types.is_null,
    )
    return any(test(kind) for test in tests)
