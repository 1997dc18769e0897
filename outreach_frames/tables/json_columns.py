"""Convert nested Arrow columns to JSON text and back, a column at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from outreach_frames.tables.schema import is_list, is_text

_BLOCK_BYTES = 4 << 20
# Matches the characters that JSON escapes.
_ESCAPED = r'["\\\x00-\x1f]'


def write_json_texts(array: pa.Array) -> pa.Array:
    r"""Write each value of a column as JSON; raise NotImplementedError for unsupported types.

    >>> write_json_texts(pa.array([["a\"b", None], None])).to_pylist()
    ['["a\\"b",null]', None]
    """
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
    """Read a column of JSON texts as one Arrow type; raise ValueError if a text does not fit.

    >>> read_json_texts(pa.array(['[1,2]', None]), pa.list_(pa.int64())).to_pylist()
    [[1, 2], None]
    """
    if not len(texts):
        return pa.array([], kind)
    start, end, separator = (pa.scalar(text, pa.large_string()) for text in ('{"v":', "}\n", ""))
    values = texts.cast(pa.large_string()).fill_null("null")
    lines = pc.binary_join_element_wise(start, values, end, separator)
    try:
        longest = pc.max(pc.binary_length(lines)).as_py()
        table = arrow_json.read_json(
            pa.BufferReader(lines.buffers()[2]),
            read_options=arrow_json.ReadOptions(block_size=max(_BLOCK_BYTES, longest + 1)),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=pa.schema([pa.field("v", kind)]),
                unexpected_field_behavior="error",
            ),
        )
        table.validate()  # Arrow's reader drops elements of a list that has only nulls
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _read_one_by_one(texts, kind)
    if table.num_rows != len(texts):
        return _read_one_by_one(texts, kind)
    return table.column(0).combine_chunks()


def text_buffers(texts: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Return the offsets of texts or bytes in the array's buffer, and the buffer, without copying.

    >>> bounds, content = text_buffers(pa.array(["Ada", None, "Bo"])[1:])
    >>> bounds.tolist(), content[bounds[0] : bounds[-1]].tobytes()
    ([3, 3, 5], b'Bo')
    """
    is_large = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    _, offsets, content = texts.buffers()
    if not len(texts) or content is None:
        return np.zeros(len(texts) + 1, np.int64), np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int64 if is_large else np.int32)
    return bounds[texts.offset :][: len(texts) + 1], np.frombuffer(content, np.uint8)


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


def _read_one_by_one(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    values = [None if text is None else json.loads(text) for text in texts.to_pylist()]
    for value in values:
        _require_known(value, kind)
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise ValueError(str(error)) from error


def _require_known(value: Any, kind: pa.DataType) -> None:
    """Raise for members of an object that the type lacks, which Arrow would drop."""
    if isinstance(value, list) and is_list(kind):
        for element in value:
            _require_known(element, kind.value_type)
    if isinstance(value, dict) and pa.types.is_struct(kind):
        types = {field.name: field.type for field in kind}
        for name, member in value.items():
            if name not in types:
                raise ValueError("an object has unknown members")
            _require_known(member, types[name])


def _escape(texts: pa.Array) -> pa.Array:
    bounds, content = text_buffers(texts)
    codes = content[bounds[0] : bounds[-1]]
    if not ((codes < ord(" ")) | (codes == ord('"')) | (codes == ord("\\"))).any():
        return texts
    is_special = pc.match_substring_regex(texts, _ESCAPED).fill_null(False)
    special = texts.filter(is_special).to_pylist()
    escaped = [json.dumps(text, ensure_ascii=False)[1:-1] for text in special]
    return pc.replace_with_mask(texts, is_special, pa.array(escaped, texts.type))


def _mask_missing(array: pa.Array, texts: pa.Array) -> pa.Array:
    if not array.null_count:
        return texts
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, texts.type))
