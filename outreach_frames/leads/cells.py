"""Cells as text, the way that a person would write them.

What a cell becomes depends on the cell alone, not on its column's dtype nor on the other rows:

- whole numbers have no decimal point (2021, never 2021.0), and no number has an exponent;
- true and false are "true" and "false";
- dates and moments are ISO 8601; a moment at midnight with no time zone is a date;
- a missing cell, an empty one, and one of nothing but blanks is missing.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api import types as dtypes

TEXT: Final = pa.large_string()

# White space as Python has it, and the invisible characters that travel with copied text.
BLANKS: Final = (
    "".join(character for code in range(0x3001) if (character := chr(code)).isspace())
    + "\u200b\u200c\u200d\u2060\ufeff"
)

_LONGEST_NUMBER: Final = 1000


class NotPlainError(ValueError):
    """A cell that has no one way to be written as text."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A column as text, and what is wrong with the cells that are no text, by position."""

    texts: pa.Array
    unreadable: Mapping[int, str] = field(default_factory=dict)


def column_texts(cells: pd.Series[Any]) -> Texts:
    """Write a whole column as text."""
    written = _written(cells)
    is_blank = pc.equal(stripped(written.texts), "")
    texts = pc.if_else(is_blank.fill_null(False), pa.scalar(None, TEXT), written.texts)
    return Texts(texts, written.unreadable)


def stripped(texts: pa.Array) -> pa.Array:
    """Return the texts without blanks around them."""
    return pc.utf8_trim(texts, BLANKS)


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
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer | float | np.floating | decimal.Decimal):
        return _number_text(value)
    if isinstance(value, datetime.datetime):
        is_date = (
            value.tzinfo is None
            and value == value.replace(hour=0, minute=0, second=0, microsecond=0)
            and not getattr(value, "nanosecond", 0)
        )
        return value.date().isoformat() if is_date else value.isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID | pd.Period):
        return str(value)
    raise NotPlainError(
        f"a {type(value).__name__} has no one way to be written; make the column text first."
    )


def _written(cells: pd.Series[Any]) -> Texts:
    dtype = cells.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _category_texts(cells)
    if dtypes.is_float_dtype(dtype):
        kind = np.dtype(getattr(dtype, "numpy_dtype", dtype))
        return _by_distinct(cells.to_numpy(dtype=kind, na_value=np.nan), list)
    if dtypes.is_bool_dtype(dtype) or dtypes.is_integer_dtype(dtype):
        return Texts(_arrow(cells))
    if _is_text(cells):
        try:
            return Texts(_arrow(cells))
        except UnicodeEncodeError:
            return _one_by_one(cells)
    if dtypes.is_object_dtype(dtype) or _is_nested(dtype):
        return _one_by_one(cells)
    return _by_distinct(cells, lambda distinct: pd.Series(distinct).astype(object))


def _is_text(cells: pd.Series[Any]) -> bool:
    if dtypes.is_object_dtype(cells.dtype):
        return dtypes.infer_dtype(cells, skipna=True) in {"string", "empty"}
    return dtypes.is_string_dtype(cells.dtype)


def _is_nested(dtype: Any) -> bool:
    return isinstance(dtype, pd.ArrowDtype) and bool(pa.types.is_nested(dtype.pyarrow_dtype))


def _arrow(cells: pd.Series[Any]) -> pa.Array:
    values = cells.to_numpy() if dtypes.is_object_dtype(cells.dtype) else cells.array
    kind = TEXT if dtypes.is_object_dtype(cells.dtype) else None
    array = pa.array(values, kind, from_pandas=True)
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return whole.cast(TEXT)


def _category_texts(cells: pd.Series[Any]) -> Texts:
    categories = _written(pd.Series(cells.cat.categories))
    codes = cells.cat.codes.to_numpy()
    return _taken(categories, codes)


def _by_distinct(cells: Any, as_objects: Callable[[Any], Iterable[Any]]) -> Texts:
    codes, distinct = pd.factorize(cells)
    return _taken(_from_objects(as_objects(distinct)), codes)


def _taken(distinct: Texts, codes: np.ndarray[Any, Any]) -> Texts:
    texts = distinct.texts.take(pa.array(codes, pa.int64(), mask=codes < 0))
    unreadable: dict[int, str] = {}
    for code, why in distinct.unreadable.items():
        unreadable.update(dict.fromkeys(np.flatnonzero(codes == code).tolist(), why))
    return Texts(texts, unreadable)


def _one_by_one(cells: pd.Series[Any]) -> Texts:
    return _from_objects(cells.astype(object))


def _from_objects(values: Iterable[Any]) -> Texts:
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
    return str(text)


def _number_text(value: Any) -> str:
    if isinstance(value, int | np.integer):
        if int(value).bit_length() > 3 * _LONGEST_NUMBER:
            raise NotPlainError(f"a number of some {_LONGEST_NUMBER} digits or more is no value.")
        return str(int(value))
    if not np.isfinite(value):
        raise NotPlainError("an infinite number is no value.")
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    return (
        np.format_float_positional(value, trim="-").replace("-0", "0")
        if value == 0
        else np.format_float_positional(value, trim="-")
    )
