"""Text that a spreadsheet would run as a formula: made harmless, and as it was again."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

# Spreadsheets may drop white space and control characters in front of a formula.
# The last four are the full-width forms of the first.
_FORMULA_STARTS: Final = r"=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}"
_FORMULA: Final = rf"^'*(?:[\pC\pZ]*[{_FORMULA_STARTS}]|[\t\r\n\x00])"
_ESCAPED_FORMULA: Final = _FORMULA.replace("^'*", "^'+", 1)


def without_formulas(table: pa.Table) -> pa.Table:
    """Put an apostrophe in front of every text that a spreadsheet would run."""
    names = _escape(pa.chunked_array([pa.array(table.column_names, pa.string())])).to_pylist()
    columns = [_escape(column) if is_text(column.type) else column for column in table.columns]
    return pa.table(dict(zip(names, columns, strict=True)))


def _escape(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    live = pc.match_substring_regex(texts, _FORMULA)
    if not pc.any(live, min_count=0).as_py():
        return texts
    return pc.if_else(live, _joined("'", texts), texts)


def _joined(start: str, texts: pa.ChunkedArray) -> pa.ChunkedArray:
    first, nothing = (pa.scalar(text, texts.type) for text in (start, ""))
    return pc.binary_join_element_wise(first, texts, nothing)


def unescape(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Take away the apostrophe that `without_formulas` puts in front."""
    if not pc.any(pc.starts_with(texts, "'"), min_count=0).as_py():
        return texts
    escaped = pc.match_substring_regex(texts, _ESCAPED_FORMULA)
    return pc.if_else(escaped, pc.replace_substring(texts, "'", "", max_replacements=1), texts)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
