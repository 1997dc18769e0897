"""Decode the text of a file, and reject CSV text whose cells or rows are not certain."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from outreach_frames.common.text import quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.reading.fast_reader import BOM

_Positions = np.ndarray[Any, np.dtype[np.int64]]

# The longer mark first, since it begins like the shorter one.
_MARKS: Final = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# ASCII text in UTF-16 without a mark, up to its first line end. Text of this package may hold NUL.
_WIDE: Final = {
    "utf-16-le": re.compile(rb"(?:[^\0\r\n]\0)+[\r\n]\0"),
    "utf-16-be": re.compile(rb"(?:\0[^\0\r\n])+\0[\r\n]"),
}
_LINE_END: Final = re.compile(rb"\r\n?|\n")
_QUOTED: Final = rb'"(?:[^"]|"")*"'
_IDENTIFIER: Final = re.compile(
    rb"[^@\s]+@[^@\s]+\.[^@\s]+|(?:https?:)?//\S+|[\w.-]+\.[a-z]{2,}(?:/\S*)?", re.IGNORECASE
)
# Lines with as many separators as a row, by chance, are unlikely to have this many in all.
_CHANCE: Final = 6
# In bytes, so that a block stays in the processor's cache.
_BLOCK: Final = 1 << 16


class Layout(NamedTuple):
    """The positions of a CSV text's quotation marks, line ends and separators."""

    content: bytes
    quotes: _Positions
    ends: _Positions
    separators: _Positions

    def are_quoted(self, positions: _Positions) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Check which positions are in quoted cells."""
        return np.asarray(np.searchsorted(self.quotes, positions) % 2 == 1)

    def line(self, position: int) -> str:
        """Return the number of a position's line as text."""
        return f"{len(_LINE_END.findall(self.content, 0, position)) + 1:,}"


def decoded(content: bytes, path: Path, encoding: str | None) -> bytes:
    """Return the content in UTF-8 without a byte order mark; raise if its encoding is another."""
    marked = "utf-8" if content.startswith(BOM) else wide_encoding(content)
    if encoding is None:
        if marked not in (None, "utf-8"):
            raise _other_encoding(path, marked)
        return content.removeprefix(BOM)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path} is not in {encoding}: {error.reason} at byte {error.start + 1:,}. Pass the "
            "encoding in which it was saved, or save it as UTF-8."
        ) from error
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"encoding={quoted(encoding)} is not an encoding of text. Pass a name such as "
            '"cp1252" or "utf-16".'
        ) from error
    if marked is None and is_utf8(content):
        marked = "utf-8"
    text = text.removeprefix("\ufeff")
    if marked and text != content.decode(marked, "replace").removeprefix("\ufeff"):
        raise InvalidInputError(
            f'{path} is in {marked}, not in {encoding}. Pass encoding="{marked}".'
        )
    return text.encode()


def wide_encoding(content: bytes) -> str | None:
    """Return the encoding of text in UTF-16 or UTF-32, by its mark or its zero bytes."""
    marked = (name for mark, name in _MARKS.items() if content.startswith(mark))
    zeros = (name for name, start in _WIDE.items() if start.match(content))
    return next(marked, None) or next(zeros, None)


def is_utf8(content: bytes) -> bool:
    """Check whether bytes are UTF-8, without a copy of them."""
    offsets = pa.array([0, len(content)], pa.int64()).buffers()[1]
    try:
        pa.LargeStringArray.from_buffers(1, offsets, pa.py_buffer(content)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def require_utf8(content: bytes, path: Path) -> None:
    """Raise an error that names the likely encoding if bytes are not UTF-8."""
    if content.isascii() or is_utf8(content):
        return
    try:
        content.decode()
    except UnicodeDecodeError as error:
        if error.end == len(content) and error.reason == "unexpected end of data":
            raise InvalidInputError(
                f"{path} is cut off within its last character. Get the whole file again."
            ) from error
    try:
        content.decode("cp1252")
    except UnicodeDecodeError as error:
        raise _other_encoding(path, None) from error
    raise _other_encoding(path, "cp1252")


def _other_encoding(path: Path, likely: str | None) -> InvalidInputError:
    guess = f'it is probably in {likely}. Pass encoding="{likely}"'
    advice = guess if likely else 'Pass its encoding, such as encoding="shift_jis"'
    return InvalidInputError(
        f"{path} is not in UTF-8{'; ' if likely else '. '}{advice}, or save it as UTF-8."
    )


def layout_of(content: bytes, sep: str) -> Layout:
    """Find the quotation marks, line ends and separators of a CSV text."""
    codes = np.frombuffer(content, np.uint8)
    # Files of old Macs have no other line end.
    end = "\n" if b"\n" in content else "\r"
    return Layout(content, *(np.flatnonzero(codes == ord(mark)) for mark in ('"', end, sep)))


def check_quotes(content: bytes, sep: str, path: Path) -> None:
    """Raise if a quotation mark neither begins nor ends a cell, nor is doubled in a quoted one."""
    if b'"' not in content:
        return
    # Two quotation marks side by side in a quoted cell close and open it: one of its text.
    is_edge = np.isin(np.arange(256), [ord(mark) for mark in f'\r\n"{sep}'])
    codes = np.frombuffer(content, np.uint8)
    count = 0
    for start in range(0, len(codes), _BLOCK):
        quotes = np.flatnonzero(codes[start : start + _BLOCK] == ord('"')) + start
        opening, closing = quotes[count % 2 :: 2], quotes[1 - count % 2 :: 2]
        count += len(quotes)
        stray = opening[~is_edge[codes[np.maximum(opening - 1, 0)]]]
        after = closing[~is_edge[codes[np.minimum(closing + 1, len(codes) - 1)]]]
        if len(stray) or len(after):
            _refuse_quote(layout_of(content, sep), min([*stray[:1], *after[:1]]), path)
    if count % 2:
        _refuse_quote(layout_of(content, sep), len(codes), path)


def _refuse_quote(layout: Layout, first: int, path: Path) -> NoReturn:
    """Raise the error for the first quotation mark that is not as it should be."""
    content, opening = layout.content, layout.quotes[::2]
    start = next(
        (at for at in opening[opening < first][::-1].tolist() if content[at - 1 : at] != b'"'),
        first,
    )
    opened, line = layout.line(start), layout.line(first)
    if first == len(content):
        problem = (
            f"the quotation mark that opens a cell in line {opened} is never closed. Close it; if "
            "the file was cut off, get the whole file again"
        )
    elif first not in opening:
        where = "" if opened == line else f" in line {line}"
        problem = (
            f"a quotation mark opens a cell in line {opened}, and text follows the one that closes "
            f"it{where}. Check whether the first is to be closed earlier"
        )
    else:
        unclosed = "" if opened == line else f", or the one in line {opened} is not closed"
        problem = (
            f"line {line} has a quotation mark within a cell that does not begin with one"
            f"{unclosed}. Put the whole cell in quotation marks"
        )
    raise InvalidInputError(
        f"{path} cannot be read as a table: {problem}, and double quotation marks that belong to "
        "the text."
    )


def check_rows(content: bytes, sep: str, columns: int, path: Path) -> None:
    """Raise if the text is cut off, or if a quoted cell holds lines that look like rows."""
    is_ended = content.endswith((b"\n", b"\r"))
    mark = re.escape(sep.encode())
    # Programs that quote all cells cannot lose rows in one; a stray mark is noticed there.
    if re.match(rb"[\r\n]*%b(?:%b%b)*(?:[\r\n]|\Z)" % (_QUOTED, mark, _QUOTED), content):
        if not is_ended:
            raise InvalidInputError(
                f"{path} seems to be cut off: its last line, has no "
                "line break. Get the whole file again, or add the line break if it is complete."
            )
        return
    if not is_ended and content.endswith(b'"'):
        warn(
            f"{path} ends with a quotation mark and no line break. If it was cut off, its last "
            "cell is not complete."
        )
    if columns < 2 or b'"' not in content:
        return
    layout = layout_of(content, sep)
    is_inside = layout.are_quoted(layout.ends)
    if not is_inside.any():
        return
    places = [0, *np.searchsorted(layout.separators, layout.ends), len(layout.separators)]
    firsts = np.flatnonzero(np.append(True, ~is_inside))
    is_row = np.logical_and.reduceat(np.diff(places) == columns - 1, firsts)
    counts = np.diff(np.append(firsts, len(places) - 1))
    bounds = np.concatenate([[-1], layout.ends, [len(content)]])
    for first, count in zip(firsts[is_row], counts[is_row], strict=True):
        if count == 1:
            continue
        lines = content[bounds[first] + 1 : bounds[first + count]].split(
            content[bounds[1] : bounds[1] + 1]
        )
        cells = [[cell.strip(b'" \r') for cell in line.split(sep.encode())] for line in lines]
        if (columns - 1) * (count - 1) >= _CHANCE or any(
            all(map(_IDENTIFIER.fullmatch, column)) for column in zip(*cells, strict=True)
        ):
            raise InvalidInputError(
                f"{path} cannot be read as a table: a quotation mark opens a cell in line "
                f"{first + 1:,} that ends in line {first + count:,}, and each of these lines looks "
                "like a row. Remove that quotation mark, or double it if it belongs to the text. "
                "If the cell is right, put quotation marks around all cells of the header."
            )


def explain_rows(layout: Layout, columns: int) -> str:
    """Name the first line whose number of cells differs from the header's; empty if none does."""
    ends = np.append(layout.ends[~layout.are_quoted(layout.ends)], len(layout.content))
    separators = layout.separators[~layout.are_quoted(layout.separators)]
    counts = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
    start = 0
    for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
        if count != columns and layout.content[start:end].strip(b"\r\n"):
            cells = "1 cell" if count == 1 else f"{count:,} cells"
            return f"line {layout.line(start)} has {cells}, and the header has {columns:,}"
        start = end + 1
    return ""
