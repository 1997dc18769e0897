"""Convert nested Arrow columns to JSON text, a column at a time, and back, a cell at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.tables.schema import is_text

# Matches the characters that JSON escapes.
_ESCAPED = r'["\\\x00-\x1f]'
_MISFITS = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError)


def write_json_texts(array: pa.Array) -> pa.Array:
    r"""Return each value's JSON; raise NotImplementedError for values that JSON cannot hold.

    >>> write_json_texts(pa.array([["a\"b", None], None])).to_pylist()
    ['["a\\"b",null]', None]
    """
    # Arrow's functions are five times as fast as a JSON library, which needs Python objects.
    kind = array.type
    if is_text(kind):
        return pc.binary_join_element_wise('"', _escape(array.cast(pa.string())), '"', "")
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return array.cast(pa.string())
    if pa.types.is_floating(kind):
        if not pc.all(pc.is_finite(array), min_count=0).as_py():
            raise NotImplementedError("infinite numbers or NaN")
        return array.cast(pa.string())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.list_value_length(array).fill_null(0).cast(pa.int32())
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
        elements = _join_pieces(_json_pieces(array.flatten()))
        joined = pc.binary_join(pa.ListArray.from_arrays(offsets, elements), ",")
        return _mask_missing(array, pc.binary_join_element_wise("[", joined, "]", ""))
    if pa.types.is_struct(kind):
        pieces: list[str | pa.Array] = []
        for field, child in zip(kind, array.flatten(), strict=True):
            name = json.dumps(field.name, ensure_ascii=False)
            pieces += [f"{',' if pieces else ''}{name}:", *_json_pieces(child)]
        if not pieces:
            return _mask_missing(array, pa.repeat("{}", len(array)))
        return _mask_missing(array, _join_pieces(["{", *pieces, "}"]))
    raise NotImplementedError(f"values of the type {kind}")


def read_json_texts(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Parse texts as JSON of a type; raise ValueError for other texts and values.

    >>> read_json_texts(pa.array(['[1,2]', None]), pa.list_(pa.int64())).to_pylist()
    [[1, 2], None]
    """
    decode = msgspec.json.Decoder().decode
    values = [None if text is None else decode(text) for text in texts.to_pylist()]
    try:
        array = pa.array(values, kind)
    except _MISFITS as error:
        raise ValueError(str(error)) from error
    for given, converted in zip(values, array.to_pylist(), strict=True):
        if given != converted:
            _require_same(given, converted)
    return array


def _require_same(given: Any, converted: Any) -> None:
    """Raise ValueError if Arrow changed a number, or dropped a member that its type lacks."""
    if isinstance(given, list) and isinstance(converted, list):
        for element, converted_element in zip(given, converted, strict=True):
            _require_same(element, converted_element)
    elif isinstance(given, dict) and given.keys() <= converted.keys():
        for name, member in given.items():
            _require_same(member, converted[name])
    elif given != converted:
        raise ValueError("a value would change, or an object has unknown members")


def _json_pieces(array: pa.Array) -> list[str | pa.Array]:
    """Return the parts of each value's JSON, to be joined row by row; missing values are null."""
    if pa.types.is_string(array.type) and not array.null_count:
        return ['"', _escape(array), '"']
    return [write_json_texts(array).fill_null("null")]


def _join_pieces(pieces: Sequence[str | pa.Array]) -> pa.Array:
    """Join pieces row by row."""
    if len(pieces) == 1:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, "")


def _escape(texts: pa.Array) -> pa.Array:
    is_special = pc.match_substring_regex(texts, _ESCAPED).fill_null(False)
    if not pc.any(is_special, min_count=0).as_py():
        return texts
    special = texts.filter(is_special).to_pylist()
    escaped = [json.dumps(text, ensure_ascii=False)[1:-1] for text in special]
    return pc.replace_with_mask(texts, is_special, pa.array(escaped, texts.type))


def _mask_missing(array: pa.Array, texts: pa.Array) -> pa.Array:
    if not array.null_count:
        return texts
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, texts.type))
