"""Decode the text of a file, and reject CSV text with ambiguous cells or rows."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common.text import shorten
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.formulas import is_text
from outreach_frames.reading.fast_reader import BOM

# UTF-32 comes first, because its mark begins with the mark of UTF-16.
_WIDE: Final = {
    "utf-32": re.compile(rb"\xff\xfe\0\0|\0\0\xfe\xff"),
    "utf-16": re.compile(rb"\xff\xfe|\xfe\xff"),
    # Matches ASCII up to the first line end, without a byte order mark. Files of this package may
    # contain NUL in UTF-8.
    "utf-16-le": re.compile(rb"(?:[^\0\r\n]\0)+[\r\n]\0"),
    "utf-16-be": re.compile(rb"(?:\0[^\0\r\n])+\0[\r\n]"),
}
_LINE_END: Final = re.compile(rb"\r\n?|\n")
# If the lines of a text look like rows by chance, they are unlikely to have 6 separators in all.
_CHANCE: Final = 6
_PIECE: Final = 1 << 20


def decoded(content: bytes, path: Path, encoding: str | None) -> bytes:
    """Convert the content to UTF-8 without a byte order mark; raise if `encoding` is wrong."""
    wide = wide_encoding(content)
    if encoding is None:
        if wide:
            raise _not_utf8(path, wide)
        return content.removeprefix(BOM)
    try:
        text = content.decode(encoding).removeprefix("\ufeff")
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{path} is not in {shorten(str(encoding))}: {error}. Pass the encoding of the "
            'file, such as "cp1252" or "utf-16", or save the file as UTF-8.'
        ) from error
    likely = wide or "utf-8"
    with suppress(UnicodeDecodeError):
        if text != content.decode(likely).removeprefix("\ufeff"):
            raise InvalidInputError(
                f'{path} is in {likely}, not in {encoding}. Pass encoding="{likely}".'
            )
    return text.encode()


def wide_encoding(content: bytes) -> str | None:
    """Detect UTF-16 or UTF-32 by the byte order mark or by zero bytes; otherwise return None."""
    return next((name for name, start in _WIDE.items() if start.match(content)), None)


def require_utf8(content: bytes, path: Path) -> None:
    """Raise an error with the likely encoding if the content is not UTF-8."""
    if content.isascii():
        return
    try:
        content.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            raise InvalidInputError(
                f"{path} is cut off within its last character. Get the whole file again."
            ) from error
        raise _not_utf8(path, "cp1252") from error


def _not_utf8(path: Path, likely: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path} is not in UTF-8, but probably in {likely}. Pass the encoding, such as "
        f'encoding="{likely}", or save the file as UTF-8.'
    )


def check_table(content: bytes, sep: str, header: list[str], table: pa.Table, path: Path) -> None:
    """Raise or warn if the text of a table has ambiguous cells or rows."""
    is_certain = _is_quoted(content, header, table)
    if not is_certain:
        check_text(content, sep, path)
        _check_rows(content, sep, table, path)
    problem = (
        f"{path} seems to be cut off: its last line has no line break. Get the whole file again, "
        "or add a line break if the file is complete."
    )
    if is_certain and not content.endswith((b"\n", b"\r")):
        raise InvalidInputError(problem)
    if content.endswith(b'"'):
        warn(problem)


def _is_quoted(content: bytes, header: list[str], table: pa.Table) -> bool:
    """Check by counting quotation marks whether all column names and texts are quoted."""
    texts = [column for column in table.columns if is_text(column.type)]
    cells = len(header) + sum(len(column) - column.null_count for column in texts)
    buffers = [chunk.buffers()[2] for column in texts for chunk in column.chunks]
    inside = "".join(header).count('"') + sum(map(_count_quotes, filter(None, buffers)))
    # Each quoted cell has two marks, and two more for each mark in its text.
    return bool(_count_quotes(content) == 2 * (cells + inside))


def _count_quotes(content: bytes | pa.Buffer) -> int:
    codes = np.frombuffer(content, np.uint8)
    # Compare in pieces, because the result has as many bytes as the content.
    pieces = (codes[start : start + _PIECE] for start in range(0, len(codes), _PIECE))
    return sum(int(np.count_nonzero(piece == ord('"'))) for piece in pieces)


def check_text(content: bytes, sep: str, path: Path) -> None:
    """Raise if the content is not UTF-8, or has a stray or unclosed quotation mark."""
    # Treat a doubled quotation mark as the end of one quoted cell and the start of the next.
    is_edge = np.isin(np.arange(256), [ord(mark) for mark in f'\r\n"{sep}'])
    codes = np.frombuffer(content, np.uint8)
    quotes = np.flatnonzero(codes == ord('"'))
    opening, closing = quotes[::2], quotes[1::2]
    stray = opening[~is_edge[codes[np.maximum(opening - 1, 0)]]]
    after = closing[~is_edge[codes[np.minimum(closing + 1, len(codes) - 1)]]]
    unclosed = [len(codes)] if len(quotes) % 2 else []
    wrong = min([*stray[:1], *after[:1], *unclosed], default=None)
    if wrong is None:
        require_utf8(content, path)
        return
    begins = [at for at in opening[opening < wrong].tolist() if content[at - 1 : at] != b'"']
    opened = _line(content, begins[-1] if begins else wrong)
    line = _line(content, min(wrong, len(codes) - 1))
    raise InvalidInputError(
        f"{path} cannot be read as a table: a quotation mark in line {opened} is never closed, or "
        f"line {line} has a mark within a cell. If the file was cut off, get the whole file "
        "again; else quote the whole cell, and double each quotation mark in its text."
    )


def _line(content: bytes, position: int) -> str:
    """Return the line number of a byte position as text."""
    return f"{len(_LINE_END.findall(content, 0, position)) + 1:,}"


def _check_rows(content: bytes, sep: str, table: pa.Table, path: Path) -> None:
    """Raise if a cell contains lines that look like rows of the table."""
    width, end = table.num_columns, line_end(content)
    for column in table.columns if width > 1 else ():
        if not is_text(column.type):
            continue
        breaks = pc.count_substring(column, end)
        counts = pc.count_substring(column, sep)
        merges = pc.and_(pc.greater(breaks, 0), pc.equal(counts, pc.multiply(breaks, width - 1)))
        for row in pc.indices_nonzero(pc.fill_null(merges, fill_value=False)).to_pylist():
            cells = [str(other[row]) for other in table.columns]
            lines = sep.join(cells).split(end)
            if any(line.count(sep) != width - 1 for line in lines):
                continue
            if counts[row].as_py() >= _CHANCE or all("@" in line for line in lines):
                text = column[row].as_py().replace('"', '""')
                line = _line(content, content.find(f'"{text}"'.encode()))
                raise InvalidInputError(
                    f"{path} cannot be read as a table: a quotation mark opens a cell in line "
                    f"{line}, and each of that cell's {len(lines):,} lines looks like a row. "
                    "Remove that mark, or double it if it belongs to the text. If the cell is "
                    "correct, put quotation marks around all texts and column names."
                )


def line_end(content: bytes) -> str:
    """Return the character that ends each line; files from old Macs have no line feed."""
    return "\n" if b"\n" in content else "\r"
