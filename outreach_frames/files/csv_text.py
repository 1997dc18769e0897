"""Decode the text of a file, and reject CSV text whose cells or rows are ambiguous."""

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

# The longer mark first, since it begins like the shorter one.
_WIDE: Final = {
    "utf-32": re.compile(rb"\xff\xfe\0\0|\0\0\xfe\xff"),
    "utf-16": re.compile(rb"\xff\xfe|\xfe\xff"),
    # ASCII without a mark, up to the first line end. Text of this package may hold NUL.
    "utf-16-le": re.compile(rb"(?:[^\0\r\n]\0)+[\r\n]\0"),
    "utf-16-be": re.compile(rb"(?:\0[^\0\r\n])+\0[\r\n]"),
}
_LINE_END: Final = re.compile(rb"\r\n?|\n")
# Lines of a text that look like rows by chance are unlikely to have this many separators in all.
_CHANCE: Final = 6


def decoded(content: bytes, path: Path, encoding: str | None) -> bytes:
    """Return the content in UTF-8 without a byte order mark; raise if its encoding is another."""
    wide = wide_encoding(content)
    if encoding is None:
        if wide:
            raise _not_utf8(path, wide)
        return content.removeprefix(BOM)
    try:
        text = content.decode(encoding).removeprefix("\ufeff")
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{path} is not in {shorten(str(encoding))}: {error}. Pass the encoding in which it "
            'was saved, such as "cp1252" or "utf-16", or save it as UTF-8.'
        ) from error
    likely = wide or "utf-8"
    with suppress(UnicodeDecodeError):
        if text != content.decode(likely).removeprefix("\ufeff"):
            raise InvalidInputError(
                f'{path} is in {likely}, not in {encoding}. Pass encoding="{likely}".'
            )
    return text.encode()


def wide_encoding(content: bytes) -> str | None:
    """Return the encoding of text in UTF-16 or UTF-32, by its mark or its zero bytes."""
    return next((name for name, start in _WIDE.items() if start.match(content)), None)


def require_utf8(content: bytes, path: Path) -> None:
    """Raise an error that names the likely encoding if bytes are not UTF-8."""
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
        f"{path} is not in UTF-8; it is probably in {likely}. Pass its encoding, such as "
        f'encoding="{likely}", or save it as UTF-8.'
    )


def check_table(content: bytes, sep: str, header: list[str], table: pa.Table, path: Path) -> None:
    """Raise or warn if the cells that were read from a text are ambiguous."""
    is_certain = _is_quoted(content, header, table)
    if not is_certain:
        check_text(content, sep, path)
        _check_rows(content, sep, table, path)
    problem = (
        f"{path} seems to be cut off: its last line has no line break. Get the whole file again, "
        "or add the line break if it is complete."
    )
    if is_certain and not content.endswith((b"\n", b"\r")):
        raise InvalidInputError(problem)
    if content.endswith(b'"'):
        warn(problem)


def _is_quoted(content: bytes, header: list[str], table: pa.Table) -> bool:
    """Check by count that all names and texts are quoted, and no quotation mark is stray."""
    texts = [column for column in table.columns if is_text(column.type)]
    cells = len(header) + sum(len(column) - column.null_count for column in texts)
    buffers = [chunk.buffers()[2] for column in texts for chunk in column.chunks]
    inside = "".join(header).count('"') + sum(map(_count_quotes, filter(None, buffers)))
    # Only quoted cells have two marks each, and two for each mark in their text.
    return bool(_count_quotes(content) == 2 * (cells + inside))


def _count_quotes(content: bytes | pa.Buffer) -> int:
    return int(np.count_nonzero(np.frombuffer(content, np.uint8) == ord('"')))


def check_text(content: bytes, sep: str, path: Path) -> None:
    """Raise if a quotation mark neither encloses a cell nor is doubled in one, or if not UTF-8."""
    # A doubled quotation mark is treated as the end of one quoted cell and the start of another.
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
        f"line {line} has another one within a cell. If the file was cut off, get the whole file "
        "again; else put the whole cell in quotation marks, and double those in its text."
    )


def _line(content: bytes, position: int) -> str:
    """Return the number of a position's line as text."""
    return f"{len(_LINE_END.findall(content, 0, position)) + 1:,}"


def _check_rows(content: bytes, sep: str, table: pa.Table, path: Path) -> None:
    """Raise if a cell holds lines that look like rows."""
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
                    f"{line}, and each of its {len(lines):,} lines looks like a row. Remove that "
                    "quotation mark, or double it if it belongs to the text. If the cell is right, "
                    "put quotation marks around all texts and column names."
                )


def line_end(content: bytes) -> str:
    """Return the character that ends each line: files of old Macs have no line feed."""
    return "\n" if b"\n" in content else "\r"
