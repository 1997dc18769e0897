"""Escape text that a spreadsheet would run as a formula, and restore the original text."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.tables.schema import is_text

# Spreadsheets may ignore white space and control characters before a formula.
# The last four characters are the full-width forms of the first four.
_FORMULA_STARTS: Final = r"=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}"
_FORMULA: Final = rf"^'*(?:[\pC\pZ]*[{_FORMULA_STARTS}]|[\t\r\n\x00])"
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
    is_formula = pc.match_substring_regex(texts, _FORMULA).fill_null(False)
    if not pc.any(is_formula, min_count=0).as_py():
        return texts
    return pc.replace_with_mask(texts, is_formula, _joined("'", texts.filter(is_formula)))


def _joined(start: str, texts: pa.Array) -> pa.Array:
    first, nothing = (pa.scalar(text, texts.type) for text in (start, ""))
    return pc.binary_join_element_wise(first, texts, nothing)


def unescape(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Remove the apostrophes that `without_formulas` added."""
    if not pc.any(pc.starts_with(texts, "'"), min_count=0).as_py():
        return texts
    escaped = pc.match_substring_regex(texts, _ESCAPED_FORMULA)
    return pc.if_else(escaped, pc.replace_substring(texts, "'", "", max_replacements=1), texts)
