"""Columns compared by meaning, and written as text.

Missing equals missing, NaN included; numbers are equal exactly, whatever their types; lists and
objects are equal member by member, a member that is not there being missing. What is of unlike
kinds is compared as text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.tables.value_text import TEXT, any_text, python_values

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def as_arrow(column: pd.Series[Any]) -> pa.Array:
    """Return a frame's column in Arrow; one of mixed types as text."""
    try:
        return plain(pa.array(column.array, from_pandas=True))
    except (pa.ArrowException, TypeError, ValueError, OverflowError, NotImplementedError):
        return pa.array(map(any_text, python_values(column)), TEXT)


def plain(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return values as one array of one of the types that are compared."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return plain(values.cast(kind.value_type))
    if isinstance(kind, pa.BaseExtensionType):
        return plain(pa.chunked_array([values]).cast(kind.storage_type))
    target = _comparable(kind)
    try:
        values = values if target == kind else values.cast(target)
    except pa.ArrowInvalid:
        return pa.array(map(any_text, values.to_pylist()), TEXT)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def differ(before: pa.Array, after: pa.Array) -> Mask:
    """Return where two columns of equal length have values of unlike meaning.

    >>> differ(pa.array([1, 2, None]), pa.array([1.0, 2.5, None])).tolist()
    [False, True, False]
    """
    before, after = plain(before), plain(after)
    one, other = before.type, after.type
    if pa.types.is_null(one) or pa.types.is_null(other):
        return np.not_equal(_is_missing(before), _is_missing(after))
    if _is_list(one) and _is_list(other):
        return _lists_differ(before, after)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return _objects_differ(before, after)
    if pa.types.is_integer(one) and pa.types.is_floating(other):
        return _present_differ(before, after, ~_equal_numbers(before, after))
    if pa.types.is_floating(one) and pa.types.is_integer(other):
        return _present_differ(before, after, ~_equal_numbers(after, before))
    if one != other or pa.types.is_nested(one):
        before, after = texts(before), texts(after)
    unequal = pc.fill_null(pc.not_equal(before, after), fill_value=False)
    return _present_differ(before, after, unequal.to_numpy(zero_copy_only=False))


def texts(values: pa.Array) -> pa.Array:
    """Return values as text, the way that a person would write them; lists and objects are JSON.

    >>> texts(pa.array([{"b": 2.0, "a": None}])).to_pylist()
    ['{"b":2}']
    """
    values = plain(values)
    if values.type == TEXT or pa.types.is_null(values.type):
        return values.cast(TEXT)
    if pa.types.is_nested(values.type):
        return pa.array(map(any_text, values.to_pylist()), TEXT)
    distinct = values.dictionary_encode()
    written = pa.array(map(any_text, distinct.dictionary.to_pylist()), TEXT)
    return written.take(distinct.indices)


def _comparable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind) or kind == pa.string_view():
        return TEXT
    if pa.types.is_uint64(kind):
        return pa.decimal128(20)
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        # Nanoseconds do not reach beyond the year 2262; what has them keeps them.
        unit = kind.unit if pa.types.is_timestamp(kind) and kind.unit == "ns" else "us"
        zone = "UTC" if pa.types.is_timestamp(kind) and kind.tz else None
        return pa.timestamp(unit, zone)
    return kind


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _is_missing(values: pa.Array) -> Mask:
    missing: Mask = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return missing


def _present_differ(before: pa.Array, after: pa.Array, unequal: Mask) -> Mask:
    """Return where one is missing, or where both are there and unequal."""
    gone, never = _is_missing(before), _is_missing(after)
    result: Mask = (gone != never) | (~gone & ~never & unequal)
    return result


def _equal_numbers(integers: pa.Array, floats: pa.Array) -> Mask:
    """Compare without rounding the integers, which a float cannot hold from 2^53 on."""
    whole = integers.fill_null(0).to_numpy(zero_copy_only=False)
    numbers = floats.fill_null(np.nan).to_numpy(zero_copy_only=False)
    fits = (numbers >= -(2.0**63)) & (numbers < 2.0**63)
    rounded = np.where(fits, numbers, 0.0)
    equal: Mask = fits & (rounded == np.trunc(rounded)) & (rounded.astype(np.int64) == whole)
    return equal


def _lists_differ(before: pa.Array, after: pa.Array) -> Mask:
    lengths, others = (
        pc.fill_null(pc.list_value_length(lists), fill_value=-1).to_numpy(zero_copy_only=False)
        for lists in (before, after)
    )
    unlike: Mask = lengths != others
    rows = np.flatnonzero(~unlike & (lengths > 0))
    members = (pc.list_flatten(lists.take(pa.array(rows))) for lists in (before, after))
    positions = np.repeat(rows, lengths[rows])
    unlike[positions[differ(*members)]] = True
    return unlike


def _objects_differ(before: pa.Array, after: pa.Array) -> Mask:
    unlike: Mask = _is_missing(before) != _is_missing(after)
    names = dict.fromkeys(field.name for kind in (before.type, after.type) for field in kind)
    for name in names:
        unlike |= differ(_member(before, name), _member(after, name))
    return unlike


def _member(objects: pa.Array, name: str) -> pa.Array:
    position = objects.type.get_field_index(name)
    return pa.nulls(len(objects)) if position < 0 else pc.struct_field(objects, [position])
