"""Escape text that a spreadsheet would run as a formula, and restore the original text."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.tables.json_columns import text_buffers
from outreach_frames.tables.schema import is_text

# Spreadsheets may ignore white space and control characters before a formula.
# The last four characters are the full-width forms of the first four.
_FORMULA_STARTS: Final = r"=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}"
_FORMULA: Final = rf"^'*(?:[\pC\pZ]*[{_FORMULA_STARTS}]|[\t\r\n\x00])"
# These bytes never begin a formula, but begin nearly all other text.
_HARMLESS: Final = np.zeros(256, np.bool_)
_HARMLESS[ord("!") : ord("~")] = True
_HARMLESS[[ord(mark) for mark in "'=+-@"]] = False
_ESCAPED_FORMULA: Final = _FORMULA.replace("^'*", "^'+", 1)


def without_formulas(table: pa.Table) -> pa.Table:
    """Put an apostrophe before texts and column names that a spreadsheet would run as formulas."""
    names = _escape_chunk(pa.array(table.column_names, pa.string())).to_pylist()
    return pa.Table.from_arrays(list(map(without_formulas_in, table.columns)), names)


def without_formulas_in(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Put an apostrophe before texts of a column that a spreadsheet would run as formulas."""
    if not is_text(column.type):
        return column
    return pa.chunked_array(map(_escape_chunk, column.chunks), column.type)


def _escape_chunk(texts: pa.Array) -> pa.Array:
    rows = _suspects(texts)
    if not len(rows):
        return texts
    mask = np.zeros(len(texts), np.bool_)
    mask[rows] = pc.match_substring_regex(texts.take(rows), _FORMULA)
    return pc.replace_with_mask(texts, mask, _joined("'", texts.filter(pa.array(mask))))


def _suspects(texts: pa.Array) -> pa.Array:
    """Return the rows that may hold formulas, so that only these rows need the slow pattern."""
    bounds, content = text_buffers(texts)
    begins = np.flatnonzero(bounds[:-1] < bounds[1:])
    rows = pa.array(begins[~_HARMLESS[content[bounds[begins]]]])
    if not len(rows):
        return rows
    starts = pc.utf8_slice_codeunits(texts.take(rows), 0, 1)
    return rows.filter(pc.invert(pc.utf8_is_alnum(starts)))


def _joined(start: str, texts: pa.Array) -> pa.Array:
    first, nothing = (pa.scalar(text, texts.type) for text in (start, ""))
    return pc.binary_join_element_wise(first, texts, nothing)


def unescape(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Remove the apostrophes that `without_formulas` added."""
    if not pc.any(pc.starts_with(texts, "'"), min_count=0).as_py():
        return texts
    escaped = pc.match_substring_regex(texts, _ESCAPED_FORMULA)
    return pc.if_else(escaped, pc.replace_substring(texts, "'", "", max_replacements=1), texts)
