"""Convert columns of text to the types of their values, as CSV files and workbooks need."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.tables.json_columns import read_json_texts

# Raised by `convert` for a text that does not fit the type.
_MISFITS: Final = (ValueError, ArithmeticError, RecursionError, pa.ArrowException)


def convert(texts: pa.ChunkedArray, like: pa.Array) -> pa.ChunkedArray:
    """Convert texts to the type and categories of another array; raise if a text does not fit.

    Spellings of other programs fit, too: `2012.0` as an integer, `Yes` as a boolean, a time without
    a zone, which is in UTC, and one with nanoseconds, which are cut off. Except for text, an empty
    text is a missing value.

    >>> convert(pa.chunked_array([["2012", "2012.0", ""]]), pa.array([], pa.int64())).to_pylist()
    [2012, 2012, None]
    """
    kind = like.type
    if texts.type == kind:
        return texts
    if pa.types.is_dictionary(kind):
        values = convert(texts, like.dictionary)
        codes = pc.index_in(values, value_set=like.dictionary)
        if codes.null_count > values.null_count:
            raise ValueError("a cell is not one of the categories")
        indices = codes.cast(kind.index_type).combine_chunks()
        column = pa.DictionaryArray.from_arrays(indices, like.dictionary, ordered=kind.ordered)
        return pa.chunked_array([column])
    try:
        return _parse(texts, kind)
    except _MISFITS:
        return _parse(_without_spellings(texts, kind), kind)


def convert_or_keep(texts: pa.ChunkedArray, like: pa.Array) -> tuple[pa.ChunkedArray, int | None]:
    """Convert texts; if a text does not fit, return all as text, and the first misfit's position.

    >>> column, misfit = convert_or_keep(pa.chunked_array([["1", "many", "x"]]), pa.array([0]))
    >>> column.to_pylist(), misfit
    (['1', 'many', 'x'], 1)
    """
    try:
        return convert(texts, like), None
    except _MISFITS:
        start, size = 0, len(texts)
    while size > 1:
        half = size // 2
        try:
            convert(texts.slice(start, half), like)
        except _MISFITS:
            size = half
        else:
            start, size = start + half, size - half
    return texts, start


def _parse(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_null(kind) and texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts))])
    if not pa.types.is_nested(kind):
        return texts.cast(kind)
    return pa.chunked_array([read_json_texts(chunk, kind) for chunk in texts.chunks], kind)


def _is_zoned(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


# Patterns of spellings that Arrow rejects, and the spellings that it reads, per type.
_SPELLINGS: Final = (
    (pa.types.is_integer, r"^(-?[0-9]+)\.0+$", r"\1"),
    (pa.types.is_boolean, "(?i)^yes$", "true"),
    (pa.types.is_boolean, "(?i)^no$", "false"),
    (_is_zoned, r"^([0-9-]{10}[ T][0-9:]{8}\.[0-9]{6})[0-9]{1,3}", r"\1"),
    (_is_zoned, r"^([0-9]{4}-[0-9]{2}-[0-9]{2})$", r"\1 00Z"),
    (_is_zoned, r"^([0-9-]{10}[ T][0-9:.]+)$", r"\1Z"),
)


def _without_spellings(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Replace the spellings of other programs, surrounding blanks and empty texts."""
    texts = pc.utf8_trim_whitespace(texts)
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    for is_kind, pattern, spelling in _SPELLINGS:
        if is_kind(kind):
            texts = pc.replace_substring_regex(texts, pattern, spelling)
    return texts
