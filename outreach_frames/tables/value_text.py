"""Values as text: cells the way a person would write them, lists and objects as JSON.

What a cell becomes depends on the cell alone, not on its column's dtype nor on the other rows:

- whole numbers have no decimal point (2021, never 2021.0), and no number has an exponent;
- true and false are "true" and "false";
- dates and moments are ISO 8601; a moment at midnight with no time zone is a date;
- a missing cell, an empty one, and one of nothing but blanks is missing.
"""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api import types as dtypes

from outreach_frames.common.text import BLANKS
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.json_values import LARGEST_EXACT

TEXT: Final = pa.large_string()

_LONGEST_NUMBER: Final = 1000


class NotPlainError(ValueError):
    """A cell that cannot be written as text in one certain way."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A column as text, and what is wrong with the cells that cannot be text, by position."""

    texts: pa.Array
    unreadable: Mapping[int, str] = field(default_factory=dict)


def column_texts(cells: pd.Series[Any]) -> Texts:
    """Write a whole column as text."""
    written = _written(cells)
    is_blank = pc.equal(strip_texts(written.texts), "")
    if not pc.any(is_blank, min_count=0).as_py():
        return written
    texts = pc.if_else(is_blank, pa.scalar(None, TEXT), written.texts)
    return Texts(texts, written.unreadable)


def strip_texts(texts: pa.Array) -> pa.Array:
    """Return the texts without blanks around them."""
    trimmed = pc.utf8_trim(texts, BLANKS)
    # Of a million rows, a second column with the same texts would only take memory.
    return texts if trimmed.equals(texts) else trimmed


def python_values(cells: pd.Series[Any]) -> Iterable[Any]:
    """Return a column's cells as Python's own values."""
    # Not astype: it fails for Arrow types that pandas knows little of.
    if isinstance(cells.dtype, pd.ArrowDtype):
        return list(pa.array(cells.array).to_pylist())
    return cells.astype(object)


def cell_text(value: Any) -> str | None:
    """Write one cell as text, or None where it is missing.

    >>> cell_text(2021.0), cell_text(2.5), cell_text(True), cell_text(datetime.date(2024, 5, 1))
    ('2021', '2.5', 'true', '2024-05-01')
    """
    if isinstance(value, str):
        return _whole_characters(value)
    if dtypes.is_scalar(value) and pd.isna(value):
        return None
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return write(value)
    raise NotPlainError(
        f"a value of the type {type(value).__name__} cannot be written as text in one certain way; "
        "convert the column to text first."
    )


def _written(cells: pd.Series[Any]) -> Texts:
    try:
        return _by_dtype(cells)
    except NotImplementedError:
        # An Arrow type that pandas or Arrow's functions know little of, such as string_view.
        return _one_by_one(python_values(cells))


def _by_dtype(cells: pd.Series[Any]) -> Texts:
    dtype: Any = cells.dtype
    if isinstance(dtype, pd.SparseDtype):
        return _written(cells.astype(dtype.subtype))
    if isinstance(dtype, pd.CategoricalDtype):
        return _taken(_written(pd.Series(cells.cat.categories)), cells.cat.codes.to_numpy())
    if dtypes.is_bool_dtype(dtype) or dtypes.is_integer_dtype(dtype) or _is_text(cells):
        try:
            return Texts(_arrow(cells))
        except UnicodeEncodeError:
            return _one_by_one(cells.astype(object))
    if dtypes.is_object_dtype(dtype) or _is_nested(dtype):
        return _one_by_one(cells.astype(object))
    return _by_distinct(cells, dtype)


def _by_distinct(cells: pd.Series[Any], dtype: Any) -> Texts:
    """Write each distinct value once."""
    if dtypes.is_float_dtype(dtype):
        # As a Python number, 0.1 of a narrower type would read 0.10000000149.
        kind = np.dtype(getattr(dtype, "numpy_dtype", dtype))
        codes, numbers = pd.factorize(cells.to_numpy(dtype=kind, na_value=np.nan))
        return _taken(_one_by_one(list(numbers)), codes)
    codes, distinct = pd.factorize(cells)
    return _taken(_one_by_one(pd.Series(distinct).astype(object)), codes)


def _is_text(cells: pd.Series[Any]) -> bool:
    dtype = cells.dtype
    if dtypes.is_object_dtype(dtype):
        return dtypes.infer_dtype(cells, skipna=True) in {"string", "empty"}
    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return isinstance(dtype, pd.StringDtype)


def _is_nested(dtype: Any) -> bool:
    return isinstance(dtype, pd.ArrowDtype) and bool(pa.types.is_nested(dtype.pyarrow_dtype))


def _arrow(cells: pd.Series[Any]) -> pa.Array:
    if dtypes.is_object_dtype(cells.dtype):
        return pa.array(cells.to_numpy(), TEXT, from_pandas=True)
    array = pa.array(cells.array, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        # Where it is whole, combine_chunks would copy it.
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    return array.cast(TEXT)


def _taken(distinct: Texts, codes: np.ndarray[Any, Any]) -> Texts:
    """Put the texts of the distinct values where these values are; a negative code is missing."""
    texts = distinct.texts.take(pa.array(codes, pa.int64(), mask=codes < 0))
    unreadable: dict[int, str] = {}
    for code, why in distinct.unreadable.items():
        unreadable.update(dict.fromkeys(np.flatnonzero(codes == code).tolist(), why))
    return Texts(texts, unreadable)


def _one_by_one(values: Iterable[Any]) -> Texts:
    texts: list[str | None] = []
    unreadable: dict[int, str] = {}
    for position, value in enumerate(values):
        try:
            texts.append(cell_text(value))
        except NotPlainError as error:
            texts.append(None)
            unreadable[position] = str(error)
    return Texts(pa.array(texts, TEXT), unreadable)


def _whole_characters(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotPlainError("a text with half a character in it cannot be sent.") from None
    return str.__str__(text)


def _integer_text(value: int | np.integer[Any]) -> str:
    # Python refuses to write some thousands of digits.
    if int(value).bit_length() > 3 * _LONGEST_NUMBER:
        raise NotPlainError(f"a number with {_LONGEST_NUMBER} digits or so is not a value.")
    return str(int(value))


def _float_text(value: float | np.floating[Any]) -> str:
    if not np.isfinite(value):
        raise NotPlainError("an infinite number is not a value.")
    return np.format_float_positional(value, trim="-") if value else "0"


def _decimal_text(value: decimal.Decimal) -> str:
    if not value.is_finite() or abs(value.adjusted()) > _LONGEST_NUMBER:
        raise NotPlainError(
            f"a number that is infinite or has {_LONGEST_NUMBER} digits or so is not a value."
        )
    return format(value, "f")


def _moment_text(value: datetime.datetime) -> str:
    # With a time zone, midnight is a moment like any other, and ends in the zone's offset.
    return value.isoformat().removesuffix("T00:00:00")


# The first that fits: a boolean is an integer, and a moment is a date.
_WRITERS: Final[tuple[tuple[Any, Callable[[Any], str]], ...]] = (
    ((bool, np.bool_), lambda value: "true" if value else "false"),
    ((int, np.integer), _integer_text),
    ((float, np.floating), _float_text),
    (decimal.Decimal, _decimal_text),
    (datetime.datetime, _moment_text),
    ((datetime.date, datetime.time), lambda value: value.isoformat()),
    ((uuid.UUID, pd.Period), str),
)


def json_text(value: Any) -> str | None:
    """Write text as it is and anything else as JSON, in one form for typed and untyped values.

    >>> json_text({"b": 2.0, "a": None})
    '{"b":2}'
    """
    if value is None or isinstance(value, str):
        return value
    return _SORTED.encode(_without_nulls(value))


def json_texts(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Write an array by `json_text`."""
    return pa.array([json_text(value) for value in array.to_pylist()], pa.string())


def sent_text(value: Any) -> str | None:
    """Write text as it is and anything else as the JSON that was sent.

    >>> sent_text({"b": 2.0, "a": None})
    '{"b":2.0,"a":null}'
    """
    if value is None or isinstance(value, str):
        return value
    return _AS_SENT.encode(value)


def any_text(value: Any) -> str | None:
    """Write a cell of any type: by `json_text` or `cell_text`, else as Python writes it."""
    try:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        text = json_text(value) if isinstance(value, list | dict) else cell_text(value)
    except (TypeError, ValueError):
        text = str(value)
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _without_nulls(value: Any) -> Any:
    """Leave out members with null, and write whole numbers without a fraction."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(element) for element in value]
    if type(value) is float and value.is_integer() and abs(value) <= LARGEST_EXACT:
        return int(value)
    return value


def _refuse(value: Any) -> Any:
    """Refuse what no response holds, in a frame that was made by hand."""
    raise InvalidInputError(
        f"A list holds {value!r}, of the type {type(value).__name__}. Lists take what JSON has: "
        "make it text, such as '2026-03-02' for a date, or a plain number."
    )


_AS_SENT: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_refuse)
_SORTED: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_refuse
)
