"""A frame's column as a CSV column, and what is needed to restore its dtype.

A dtype is described by a small JSON object, a descriptor: its name in pandas and, where that does
not say all, what else there is. Every kind of dtype has one line in `_KINDS`.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.types import pandas_dtype

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.json_columns import read_json_texts, write_json_texts
from outreach_frames.tables.schema import column_type

Descriptor = dict[str, Any]

TEXT: Final[Descriptor] = {"dtype": "str"}
_ARROW: Final = "arrow"
_ROWS_AT_ONCE: Final = 20_000
_SCALARS: Final = {
    pa.string(): "str",
    pa.int64(): "Int64",
    pa.float64(): "Float64",
    pa.bool_(): "boolean",
}


class UnwritableError(ValueError):
    """A column has what CSV cannot hold."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """How the dtypes of one kind are written, in which Arrow type they are read, and restored."""

    holds: Callable[[Any], bool]
    encode: Callable[[pd.Series[Any]], tuple[pa.ChunkedArray, Descriptor]]
    stored: Callable[[Descriptor], pa.DataType]
    decode: Callable[[pa.ChunkedArray, Descriptor], Any]


def default_descriptor(name: str) -> Descriptor:
    """Describe the dtype that a column of this name has unless something else is noted."""
    return _default_descriptors().get(name, TEXT)


def encode(series: pd.Series[Any], name: str) -> tuple[pa.ChunkedArray, Descriptor]:
    """Convert a column for writing, and describe its dtype."""
    try:
        return _kind_of(series.dtype).encode(series)
    except UnicodeEncodeError:
        problem = "text that no file can hold (half a surrogate pair)"
    except (UnwritableError, NotImplementedError, OverflowError) as error:
        problem = f"what CSV cannot hold: {error}"
    raise InvalidInputError(
        f"The column {name!r} has {problem}. "
        "Convert it to text, numbers, dates or lists of these first, or drop it."
    )


def stored_type(descriptor: Descriptor) -> pa.DataType:
    """Give the Arrow type in which a column is read from CSV."""
    return _kind_described(descriptor).stored(descriptor)


def is_nested(descriptor: Descriptor) -> bool:
    """Say whether a column's cells are lists or records, which are JSON in the file."""
    return descriptor["dtype"] == _ARROW and bool(pa.types.is_nested(_described_arrow(descriptor)))


def decode(stored: pa.ChunkedArray, descriptor: Descriptor) -> Any:
    """Convert what was read back into a column's values."""
    return _kind_described(descriptor).decode(stored, descriptor)


def _kind_of(dtype: Any) -> _Kind:
    for kind in _KINDS:
        if kind.holds(dtype):
            return kind
    raise UnwritableError(f"values of the dtype {dtype}")


def _kind_described(descriptor: Descriptor) -> _Kind:
    if descriptor["dtype"] == _ARROW:
        return _kind_of(pd.ArrowDtype(pa.null()))
    return _kind_named(descriptor["dtype"])


@cache
def _kind_named(name: str) -> _Kind:
    return _kind_of(pandas_dtype(name))


@cache
def _default_descriptors() -> Mapping[str, Descriptor]:
    return {
        name: _default_descriptor(column_type(field))
        for fields in (spec.SEQUENCE, spec.MAILBOX, spec.CONTACT, spec.PERSON)
        for name, field in spec.columns(fields).items()
    }


def _default_descriptor(kind: pa.DataType) -> Descriptor:
    if pa.types.is_nested(kind):
        return _describe_arrow(kind)
    if pa.types.is_timestamp(kind):
        return {"dtype": f"datetime64[{kind.unit}{f', {kind.tz}' if kind.tz else ''}]"}
    return {"dtype": _SCALARS[kind]}


def _arrow(series: pd.Series[Any]) -> pa.ChunkedArray:
    array = pa.array(series, from_pandas=True)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _texts(values: list[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.large_string())])


def _text_type(_: Descriptor) -> pa.DataType:
    return pa.large_string()


def _encode_text(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, Descriptor]:
    dtype: Any = series.dtype
    descriptor = {"dtype": "string"} if dtype.na_value is pd.NA else TEXT
    return _arrow(series).cast(pa.large_string()), descriptor


def _decode_text(stored: pa.ChunkedArray, descriptor: Descriptor) -> Any:
    dtype: Any = pandas_dtype(descriptor["dtype"])
    return dtype.__from_arrow__(stored)


def _encode_numbers(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, Descriptor]:
    array, how = _numbers(_arrow(series))
    return array, {"dtype": str(series.dtype), **how}


def _numbers(array: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Descriptor]:
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    if pa.types.is_floating(array.type) and pc.any(pc.is_inf(array), min_count=0).as_py():
        # A spreadsheet takes -inf for a formula; as text it is guarded like all text.
        return array.cast(pa.large_string()), {"written": "text"}
    return array, {}


def _numbers_type(descriptor: Descriptor) -> pa.DataType:
    dtype: Any = pandas_dtype(descriptor["dtype"])
    return _written_number(pa.from_numpy_dtype(getattr(dtype, "numpy_dtype", dtype)), descriptor)


def _written_number(kind: pa.DataType, descriptor: Descriptor) -> pa.DataType:
    if descriptor.get("written") == "text":
        return pa.large_string()
    return pa.float32() if pa.types.is_float16(kind) else kind


def _decode_numbers(stored: pa.ChunkedArray, descriptor: Descriptor) -> Any:
    dtype: Any = pandas_dtype(descriptor["dtype"])
    numbers = stored.cast(pa.from_numpy_dtype(getattr(dtype, "numpy_dtype", dtype)))
    if hasattr(dtype, "__from_arrow__"):
        return dtype.__from_arrow__(numbers)
    if numbers.null_count and dtype.kind != "f":
        raise ValueError("cells are empty, and this dtype has no missing values")
    return numbers.to_numpy().astype(dtype)


def _encode_moments(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, Descriptor]:
    dtype: Any = series.dtype
    if isinstance(dtype, pd.DatetimeTZDtype) and not _has_name(dtype):
        raise UnwritableError(f"moments in a time zone that has no name, {dtype.tz}")
    return _moments(_arrow(series)), {"dtype": str(series.dtype)}


def _has_name(dtype: pd.DatetimeTZDtype) -> bool:
    try:
        return bool(pandas_dtype(str(dtype)) == dtype)
    except TypeError:
        return False


def _moments(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write moments in UTC where they have a zone, and as days where all are at midnight."""
    if array.type.tz:
        return array.cast(pa.timestamp(array.type.unit, "UTC"))
    days = array.cast(pa.date32(), safe=False)
    at_midnight = pc.all(pc.equal(days.cast(array.type), array), min_count=0).as_py()
    return days if at_midnight else array


def _moments_type(descriptor: Descriptor) -> pa.DataType:
    dtype: Any = pandas_dtype(descriptor["dtype"])
    if isinstance(dtype, pd.DatetimeTZDtype):
        return pa.timestamp(dtype.unit, "UTC")
    return pa.timestamp(np.datetime_data(dtype)[0])


def _decode_moments(stored: pa.ChunkedArray, descriptor: Descriptor) -> Any:
    dtype: Any = pandas_dtype(descriptor["dtype"])
    if isinstance(dtype, pd.DatetimeTZDtype):
        return stored.to_pandas().dt.tz_convert(dtype.tz).array
    return stored.to_pandas().array


def _encode_durations(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, Descriptor]:
    return _arrow(series).cast(pa.int64()), {"dtype": str(series.dtype)}


def _decode_durations(stored: pa.ChunkedArray, descriptor: Descriptor) -> Any:
    dtype: Any = pandas_dtype(descriptor["dtype"])
    unit = np.datetime_data(dtype)[0]
    return stored.cast(pa.duration(unit)).to_pandas().array


def _encode_periods(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, Descriptor]:
    texts = [None if value is pd.NaT else str(value) for value in series]
    return _texts(texts), {"dtype": str(series.dtype)}


def _decode_periods(stored: pa.ChunkedArray, descriptor: Descriptor) -> Any:
    return pd.array(stored.to_pylist(), dtype=pandas_dtype(descriptor["dtype"]))


def _encode_category(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, Descriptor]:
    dtype: Any = series.dtype
    categories = dtype.categories.to_series(index=range(len(dtype.categories)))
    stored, of = _kind_of(categories.dtype).encode(categories)
    codes = series.cat.codes.to_numpy()
    return stored.take(pa.array(codes, mask=codes < 0)), {
        "dtype": "category",
        "ordered": bool(dtype.ordered),
        "categories": stored.cast(pa.string()).to_pylist(),
        "of": of,
    }


def _category_type(descriptor: Descriptor) -> pa.DataType:
    return stored_type(descriptor["of"])


def _decode_category(stored: pa.ChunkedArray, descriptor: Descriptor) -> Any:
    texts = pa.chunked_array([pa.array(descriptor["categories"], pa.string())])
    categories = texts.cast(stored.type)
    codes = pc.index_in(stored, value_set=categories.combine_chunks())
    if codes.null_count > stored.null_count:
        raise ValueError("a cell is not one of the categories")
    return pd.Categorical.from_codes(
        codes.fill_null(-1).to_numpy(),
        categories=pd.Index(decode(categories, descriptor["of"])),
        ordered=descriptor["ordered"],
    )


def _encode_arrow(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, Descriptor]:
    array: pa.ChunkedArray = pa.chunked_array(series.array.__arrow_array__())
    written, how = write_arrow(array)
    return written, {**_describe_arrow(array.type), **how}


def write_arrow(array: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Descriptor]:
    """Convert an Arrow column for writing, and describe it where that is not the usual way."""
    kind = array.type
    if _is_written_as_is(kind):
        return array, {}
    if pa.types.is_nested(kind):
        rows = (array.slice(start, _ROWS_AT_ONCE) for start in range(0, len(array), _ROWS_AT_ONCE))
        texts = [write_json_texts(chunk) for part in rows for chunk in part.chunks]
        return pa.chunked_array(texts, pa.string()), {}
    if pa.types.is_timestamp(kind):
        return _moments(array), {}
    if pa.types.is_floating(kind):
        return _numbers(array)
    if pa.types.is_decimal(kind):
        return array.cast(pa.string()), {}
    raise UnwritableError(f"values of the Arrow type {kind}")


def arrow_stored_type(kind: pa.DataType) -> pa.DataType:
    """Give the Arrow type in which a column is read that `write_arrow` wrote."""
    return kind if _is_written_as_is(kind) or pa.types.is_timestamp(kind) else pa.string()


def read_arrow(stored: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Convert what was read back into a column of that type."""
    if pa.types.is_nested(kind):
        return pa.chunked_array([read_json_texts(chunk, kind) for chunk in stored.chunks], kind)
    return stored.cast(kind)


def _arrow_stored_type(descriptor: Descriptor) -> pa.DataType:
    kind = _described_arrow(descriptor)
    if pa.types.is_floating(kind):
        return _written_number(kind, descriptor)
    return arrow_stored_type(kind)


def _decode_arrow(stored: pa.ChunkedArray, descriptor: Descriptor) -> Any:
    return pd.arrays.ArrowExtensionArray(read_arrow(stored, _described_arrow(descriptor)))


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


def _describe_arrow(kind: pa.DataType) -> Descriptor:
    schema = pa.schema([pa.field("", kind)]).serialize()
    return {"dtype": _ARROW, "type": base64.b64encode(schema).decode(), "shown": str(kind)}


def _described_arrow(descriptor: Descriptor) -> pa.DataType:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(descriptor["type"]))).field(0).type


_OBJECT_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "text": str,
    "json": json.loads,
    "decimal": decimal.Decimal,
    "date": datetime.date.fromisoformat,
}


def _encode_objects(series: pd.Series[Any]) -> tuple[pa.ChunkedArray, Descriptor]:
    values = [None if _is_missing(value) else value for value in series]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str}:
        return _texts(values), {"dtype": "object", "values": "text"}
    for label, kind in (("decimal", decimal.Decimal), ("date", datetime.date)):
        if kinds == {kind}:
            texts = [None if value is None else str(value) for value in values]
            return _texts(texts), {"dtype": "object", "values": label}
    texts = [
        None if value is None else json.dumps(_json_value(value), ensure_ascii=False)
        for value in values
    ]
    return _texts(texts), {"dtype": "object", "values": "json"}


def _decode_objects(stored: pa.ChunkedArray, descriptor: Descriptor) -> Any:
    read = _OBJECT_READERS[descriptor["values"]]
    texts = stored.to_pylist()
    cells = np.empty(len(texts), dtype=object)
    for position, text in enumerate(texts):
        cells[position] = None if text is None else read(text)
    return pd.Series(cells, dtype=object)


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


def _is_missing(value: Any) -> bool:
    return (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and bool(np.isnan(value)))
    )


_KINDS: Final = (
    _Kind(
        lambda dtype: isinstance(dtype, pd.CategoricalDtype),
        _encode_category,
        _category_type,
        _decode_category,
    ),
    _Kind(
        lambda dtype: isinstance(dtype, pd.ArrowDtype),
        _encode_arrow,
        _arrow_stored_type,
        _decode_arrow,
    ),
    _Kind(lambda dtype: isinstance(dtype, pd.StringDtype), _encode_text, _text_type, _decode_text),
    _Kind(
        lambda dtype: isinstance(dtype, pd.PeriodDtype),
        _encode_periods,
        _text_type,
        _decode_periods,
    ),
    _Kind(
        lambda dtype: dtype.kind == "O" and isinstance(dtype, np.dtype),
        _encode_objects,
        _text_type,
        _decode_objects,
    ),
    _Kind(
        lambda dtype: dtype.kind == "M",
        _encode_moments,
        _moments_type,
        _decode_moments,
    ),
    _Kind(
        lambda dtype: dtype.kind == "m" and isinstance(dtype, np.dtype),
        _encode_durations,
        lambda _: pa.int64(),
        _decode_durations,
    ),
    _Kind(
        lambda dtype: (
            dtype.kind in "iufb" and not isinstance(dtype, pd.SparseDtype | pd.IntervalDtype)
        ),
        _encode_numbers,
        _numbers_type,
        _decode_numbers,
    ),
)
