"""Compare columns value by value, and convert them to text.

Two missing values are equal, NaN included. Numbers are compared exactly, regardless of type. Lists
and objects are compared member by member; an absent member equals a missing one. Values of
different kinds are compared as text.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.tables.schema import is_list
from outreach_frames.tables.value_text import TEXT, any_text, python_values

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


# Two kinds of columns whose values cannot be compared, as when pandas wrote one of the tables.
_INCOMPARABLE: Final = (
    (pa.types.is_nested, lambda kind: kind == TEXT),
    (pa.types.is_temporal, _is_number),
)


def as_arrow(column: pd.Series[Any]) -> pa.Array:
    """Convert a frame's column to Arrow; mixed types become text."""
    try:
        return comparable(pa.array(column.array, from_pandas=True))
    except (pa.ArrowException, TypeError, ValueError, OverflowError, NotImplementedError):
        return pa.array(map(any_text, python_values(column)), TEXT)


def comparable(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Convert values to a single array of a comparable type."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return comparable(values.cast(kind.value_type))
    if isinstance(kind, pa.BaseExtensionType):
        return comparable(pa.chunked_array([values]).cast(kind.storage_type))
    target = _comparable_type(kind)
    try:
        values = values if target == kind else values.cast(target)
    except pa.ArrowInvalid:
        return pa.array(map(any_text, values.to_pylist()), TEXT)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def are_incomparable(before: pa.Array, after: pa.Array) -> bool:
    """Return whether only one column holds lists or objects, or times and the other numbers.

    >>> are_incomparable(pa.array([["a"]]), pa.array(["['a']"], pa.large_string()))
    True
    """
    return any(
        is_kind(column.type) and is_other(second.type) and second.null_count < len(second)
        for is_kind, is_other in _INCOMPARABLE
        for column, second in ((before, after), (after, before))
    )


def differ(before: pa.Array, after: pa.Array) -> Mask:
    """Return, per row, whether two columns differ.

    >>> differ(pa.array([1, 2, None]), pa.array([1.0, 2.5, None])).tolist()
    [False, True, False]
    """
    before, after = comparable(before), comparable(after)
    before, after = _as_times(before, after), _as_times(after, before)
    types = before.type, after.type
    if any(map(pa.types.is_null, types)):
        return np.not_equal(_is_missing(before), _is_missing(after))
    if all(map(is_list, types)):
        return _lists_differ(before, after)
    if all(map(pa.types.is_struct, types)):
        return _objects_differ(before, after)
    if types[0] != types[1] or pa.types.is_nested(types[0]):
        before, after = texts(before), texts(after)
    unequal = pc.fill_null(pc.not_equal(before, after), fill_value=False)
    was_missing, is_missing = _is_missing(before), _is_missing(after)
    differs: Mask = np.where(was_missing | is_missing, was_missing != is_missing, unequal)
    return differs


def texts(values: pa.Array) -> pa.Array:
    """Convert values to readable text; lists and objects become JSON.

    >>> texts(pa.array([{"b": 2.0, "a": None}])).to_pylist()
    ['{"b":2}']
    """
    values = comparable(values)
    if values.type == TEXT or pa.types.is_null(values.type):
        return values.cast(TEXT)
    if pa.types.is_nested(values.type):
        return pa.array(map(any_text, values.to_pylist()), TEXT)
    distinct = values.dictionary_encode()
    written = pa.array(map(any_text, distinct.dictionary.to_pylist()), TEXT)
    return written.take(distinct.indices)


def _comparable_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind) or kind == pa.string_view():
        return TEXT
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        # Use nanoseconds only if the values have them: times in nanoseconds end in the year 2262.
        unit = kind.unit if pa.types.is_timestamp(kind) and kind.unit == "ns" else "us"
        zone = "UTC" if pa.types.is_timestamp(kind) and kind.tz else None
        return pa.timestamp(unit, zone)
    return kind


def _as_times(values: pa.Array, others: pa.Array) -> pa.Array:
    """Read text beside times as times, unless it is another text."""
    if values.type == TEXT and pa.types.is_timestamp(others.type):
        with suppress(pa.ArrowInvalid):
            return values.cast(others.type)
    return values


def _is_missing(values: pa.Array) -> Mask:
    missing: Mask = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return missing


def _lists_differ(before: pa.Array, after: pa.Array) -> Mask:
    lengths, others = (
        pc.fill_null(pc.list_value_length(lists), fill_value=-1).to_numpy(zero_copy_only=False)
        for lists in (before, after)
    )
    differs: Mask = lengths != others
    rows = np.flatnonzero(~differs & (lengths > 0))
    members = (pc.list_flatten(lists.take(pa.array(rows))) for lists in (before, after))
    positions = np.repeat(rows, lengths[rows])
    differs[positions[differ(*members)]] = True
    return differs


def _objects_differ(before: pa.Array, after: pa.Array) -> Mask:
    differs: Mask = _is_missing(before) != _is_missing(after)
    names = dict.fromkeys(field.name for kind in (before.type, after.type) for field in kind)
    for name in names:
        differs |= differ(_member(before, name), _member(after, name))
    return differs


def _member(objects: pa.Array, name: str) -> pa.Array:
    position = objects.type.get_field_index(name)
    return pa.nulls(len(objects)) if position < 0 else pc.struct_field(objects, [position])
