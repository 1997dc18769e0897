"""Convert values to text: cells as a person would write them, lists and objects as JSON.

A cell's text does not depend on the column's dtype or on other rows:

- whole numbers have no decimal point (2021, never 2021.0), and no number has an exponent;
- booleans are "true" and "false";
- dates and times are ISO 8601; midnight without a time zone is a date;
- empty and blank cells are missing.
"""

from __future__ import annotations

import datetime
import decimal
import json
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api import types as dtypes

from outreach_frames.common.text import BLANKS, hidden_in
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.json_values import LARGEST_EXACT
from outreach_frames.tables.schema import is_text

TEXT: Final = pa.large_string()

_MAX_DIGITS: Final = 1000


class UnclearTextError(ValueError):
    """Raised if a cell cannot be converted to text in a single clear way."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The text of a column's cells, and the problems of unreadable cells by position."""

    texts: pa.Array
    unreadable: Mapping[int, str] = field(default_factory=dict)


def column_texts(cells: pd.Series[Any]) -> Texts:
    """Convert a column to text."""
    written = _convert(cells)
    is_blank = pc.equal(strip_texts(written.texts), "")
    if not pc.any(is_blank, min_count=0).as_py():
        return written
    texts = pc.if_else(is_blank, pa.scalar(None, TEXT), written.texts)
    return Texts(texts, written.unreadable)


def strip_texts(texts: pa.Array) -> pa.Array:
    """Strip blanks and invisible characters around the texts."""
    trimmed = pc.utf8_trim(texts, BLANKS + hidden_in_texts(texts))
    # Return the same array if nothing changes: a copy of a million texts wastes memory.
    return texts if trimmed.equals(texts) else trimmed


def compose_texts(texts: pa.Array) -> pa.Array:
    """Return texts in Unicode's composed form, NFC; some versions of Arrow decompose letters."""
    is_other = pc.invert(pc.string_is_ascii(texts)).fill_null(False)
    composed = [unicodedata.normalize("NFC", text) for text in texts.filter(is_other).to_pylist()]
    return pc.replace_with_mask(texts, is_other, pa.array(composed, texts.type))


def hidden_in_texts(texts: pa.Array) -> str:
    """Return the distinct invisible characters of all texts."""
    return hidden_in("".join(texts.filter(pc.invert(pc.string_is_ascii(texts))).to_pylist()))


def python_values(cells: pd.Series[Any]) -> Iterable[Any]:
    """Return a column's cells as Python values."""
    # astype fails for some Arrow types.
    if isinstance(cells.dtype, pd.ArrowDtype):
        return list(pa.array(cells.array).to_pylist())
    return cells.astype(object)


def cell_text(value: Any) -> str | None:
    """Convert a cell to text, or to None if it is missing.

    >>> cell_text(2021.0), cell_text(2.5), cell_text(True), cell_text(datetime.date(2024, 5, 1))
    ('2021', '2.5', 'true', '2024-05-01')
    """
    if isinstance(value, str):
        return _check_surrogates(value)
    if dtypes.is_scalar(value) and pd.isna(value):
        return None
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return write(value)
    raise UnclearTextError(
        f"a value of the type {type(value).__name__} has no single form as text; convert the "
        "column to text first."
    )


def _convert(cells: pd.Series[Any]) -> Texts:
    try:
        return _convert_by_dtype(cells)
    except NotImplementedError:
        # Pandas or Arrow does not fully support the type, such as string_view.
        return _convert_one_by_one(python_values(cells))


def _convert_by_dtype(cells: pd.Series[Any]) -> Texts:
    dtype: Any = cells.dtype
    if isinstance(dtype, pd.SparseDtype):
        return _convert(cells.astype(dtype.subtype))
    if isinstance(dtype, pd.CategoricalDtype):
        return _take(_convert(pd.Series(cells.cat.categories)), cells.cat.codes.to_numpy())
    if dtypes.is_bool_dtype(dtype) or dtypes.is_integer_dtype(dtype) or _is_text(cells):
        try:
            return Texts(_to_arrow(cells))
        except UnicodeEncodeError:
            return _convert_one_by_one(cells.astype(object))
    is_nested = isinstance(dtype, pd.ArrowDtype) and pa.types.is_nested(dtype.pyarrow_dtype)
    if dtypes.is_object_dtype(dtype) or is_nested:
        return _convert_one_by_one(cells.astype(object))
    return _convert_distinct(cells, dtype)


def _convert_distinct(cells: pd.Series[Any], dtype: Any) -> Texts:
    """Convert each distinct value once."""
    if dtypes.is_float_dtype(dtype):
        # As a Python float, a 32-bit 0.1 would become 0.10000000149.
        kind = np.dtype(getattr(dtype, "numpy_dtype", dtype))
        codes, numbers = pd.factorize(cells.to_numpy(dtype=kind, na_value=np.nan))
        return _take(_convert_one_by_one(list(numbers)), codes)
    codes, distinct = pd.factorize(cells)
    return _take(_convert_one_by_one(pd.Series(distinct).astype(object)), codes)


def _is_text(cells: pd.Series[Any]) -> bool:
    dtype = cells.dtype
    if dtypes.is_object_dtype(dtype):
        return dtypes.infer_dtype(cells, skipna=True) in {"string", "empty"}
    if isinstance(dtype, pd.ArrowDtype):
        return is_text(dtype.pyarrow_dtype)
    return isinstance(dtype, pd.StringDtype)


def _to_arrow(cells: pd.Series[Any]) -> pa.Array:
    if dtypes.is_object_dtype(cells.dtype):
        return pa.array(cells.to_numpy(), TEXT, from_pandas=True)
    array = pa.array(cells.array, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        # Do not combine a single chunk, because this would copy it.
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    return array.cast(TEXT)


def _take(distinct: Texts, codes: np.ndarray[Any, Any]) -> Texts:
    """Convert codes to the texts of distinct values; negative codes become missing texts."""
    texts = distinct.texts.take(pa.array(codes, pa.int64(), mask=codes < 0))
    unreadable: dict[int, str] = {}
    for code, why in distinct.unreadable.items():
        unreadable.update(dict.fromkeys(np.flatnonzero(codes == code).tolist(), why))
    return Texts(texts, unreadable)


def _convert_one_by_one(values: Iterable[Any]) -> Texts:
    texts: list[str | None] = []
    unreadable: dict[int, str] = {}
    for position, value in enumerate(values):
        try:
            texts.append(cell_text(value))
        except UnclearTextError as error:
            texts.append(None)
            unreadable[position] = str(error)
    return Texts(pa.array(texts, TEXT), unreadable)


def _check_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnclearTextError(
            "the text contains half a character (a lone surrogate); remove it."
        ) from None
    return str.__str__(text)


def _integer_text(value: int | np.integer[Any]) -> str:
    # Python refuses to convert integers of several thousand digits.
    if int(value).bit_length() > 3 * _MAX_DIGITS:
        raise UnclearTextError(f"the number has about {_MAX_DIGITS:,} digits or more; correct it.")
    return str(int(value))


def _float_text(value: float | np.floating[Any]) -> str:
    if not np.isfinite(value):
        raise UnclearTextError("the number is infinite; correct it.")
    return np.format_float_positional(value, trim="-") if value else "0"


def _decimal_text(value: decimal.Decimal) -> str:
    if not value.is_finite() or abs(value.adjusted()) > _MAX_DIGITS:
        raise UnclearTextError(
            f"the number is infinite or has about {_MAX_DIGITS:,} digits or more; correct it."
        )
    return format(value, "f")


# The order matters, because bool is a subclass of int, and datetime is a subclass of date.
_WRITERS: Final[tuple[tuple[Any, Callable[[Any], str]], ...]] = (
    ((bool, np.bool_), lambda value: "true" if value else "false"),
    ((int, np.integer), _integer_text),
    ((float, np.floating), _float_text),
    (decimal.Decimal, _decimal_text),
    # Midnight with a time zone stays a time, because its text ends in an offset.
    (datetime.datetime, lambda value: value.isoformat().removesuffix("T00:00:00")),
    ((datetime.date, datetime.time), lambda value: value.isoformat()),
    ((uuid.UUID, pd.Period), str),
)


def json_text(value: Any) -> str | None:
    """Return text unchanged, and convert other values to normalised JSON.

    >>> json_text({"b": 2.0, "a": None})
    '{"b":2}'
    """
    if value is None or isinstance(value, str):
        return value
    return _SORTED.encode(_without_nulls(value))


def sent_text(value: Any) -> str | None:
    """Return text unchanged, and convert other values to JSON as sent by the service.

    >>> sent_text({"b": 2.0, "a": None})
    '{"b":2.0,"a":null}'
    """
    if value is None or isinstance(value, str):
        return value
    return _AS_SENT.encode(value)


def any_text(value: Any) -> str | None:
    """Convert a cell of any type with `json_text` or `cell_text`, or else with `str`."""
    try:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        text = json_text(value) if isinstance(value, list | dict) else cell_text(value)
    except (TypeError, ValueError, ArithmeticError):
        text = str(value)
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _without_nulls(value: Any) -> Any:
    """Drop null members, and convert whole floats to integers."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(element) for element in value]
    if type(value) is float and value.is_integer() and abs(value) <= LARGEST_EXACT:
        return int(value)
    return value


def _reject(value: Any) -> Any:
    """Raise an error for a value that JSON cannot hold."""
    raise InvalidInputError(
        f"A list holds {value!r} of the type {type(value).__name__}, which is not a JSON type. "
        "Convert it to text, such as '2026-03-02' for a date, or to a plain number."
    )


_AS_SENT: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_reject)
_SORTED: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_reject
)
