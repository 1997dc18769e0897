"""Decode the text of a CSV file, and check the rows that another program wrote."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from outreach_frames.common.text import plural, shorten
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_file import MAX_COLUMNS, MISSING

# UTF-32 comes first, because its mark begins with the mark of UTF-16.
_MARKS: Final = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Cells whose lines look like rows by chance are unlikely to have 6 separators.
_CHANCE: Final = 6
# Python's own limit is 131,072 characters per cell.
csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))


def wide_encoding(content: bytes) -> str | None:
    """Detect UTF-16 or UTF-32 by its byte order mark or a zero byte; otherwise return None."""
    for mark, name in _MARKS.items():
        if content.startswith(mark):
            return name
    return {0: "utf-16-be", 1: "utf-16-le"}.get(content[:2].find(b"\0"))


def open_text(path: Path, encoding: str | None) -> BinaryIO:
    """Open a text file; a pipe, and a file in another encoding, is read into memory."""
    if encoding is None and path.is_file():
        return path.open("rb")
    content = path.read_bytes()
    return io.BytesIO(content if encoding is None else _as_utf8(content, path, encoding))


def _as_utf8(content: bytes, path: Path, encoding: str) -> bytes:
    """Convert the content to UTF-8; raise if `encoding` is wrong."""
    try:
        text = content.decode(encoding).removeprefix("\ufeff")
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{path} is not in {shorten(str(encoding))}: {error}. Pass the encoding of the "
            'file, such as "cp1252" or "utf-16", or save the file as UTF-8.'
        ) from error
    likely = wide_encoding(content) or "utf-8"
    with suppress(UnicodeDecodeError):
        if text != content.decode(likely).removeprefix("\ufeff"):
            raise InvalidInputError(
                f'{path} is in {likely}, not in {encoding}. Pass encoding="{likely}".'
            )
    return text.encode()


def _not_utf8(path: Path, likely: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path} is not in UTF-8, but probably in {likely}. Pass the encoding, such as "
        f'encoding="{likely}", or save the file as UTF-8.'
    )


def read_header(file: BinaryIO, sep: str, path: Path, *, check_rows: bool) -> list[str]:
    """Return the column names; with `check_rows`, raise or warn if a row is ambiguous."""
    text = io.TextIOWrapper(file, "utf-8", newline="")
    reader = csv.reader(text, delimiter=sep, strict=True)
    header: list[str] = []
    merged: list[int] = []
    line, blank, blank_between = 1, 0, 0
    try:
        for row in reader:
            if not header:
                header = row
                if header and not check_rows:
                    break
            elif not row:
                blank += 1
            elif len(row) != len(header):
                raise InvalidInputError(
                    f"{path}, line {line:,}: expected {plural(len(header), 'cell')}, as in the "
                    f"header, but found {len(row):,}. Give each row one cell per column."
                )
            else:
                blank_between, blank = blank_between + blank, 0
                if reader.line_num > line and any(_has_rows(cell, sep, len(row)) for cell in row):
                    merged.append(line)
            line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise _not_utf8(path, "cp1252") from error
    except csv.Error as error:
        raise InvalidInputError(
            f"{path} cannot be read as a table: the row that begins in line {line:,} has a stray "
            f"or unclosed quotation mark ({error}). If the file was cut off, get the whole file "
            "again; else quote the whole cell, and double each quotation mark in its text."
        ) from error
    finally:
        text.detach()  # or else it would close the file
    if len(header) > MAX_COLUMNS:
        raise InvalidInputError(
            f"{path} has {len(header):,} columns, but at most {MAX_COLUMNS:,} can be read. "
            "Delete the columns that you do not need."
        )
    _warn_of_rows(path, merged, blank_between if len(header) == 1 else 0)
    return header


def _warn_of_rows(path: Path, merged: Sequence[int], blank: int) -> None:
    if blank:
        warn(
            f"{path}: skipped {plural(blank, 'blank line')} between rows. If blank lines "
            f"are missing cells, write them as {MISSING}."
        )
    if merged:
        warn(
            f"{path}: {plural(len(merged), 'row')} (first in line {merged[0]:,}) has a cell whose "
            "lines look like rows. If a stray quotation mark opens the cell, remove that mark."
        )


def _has_rows(cell: str, sep: str, width: int) -> bool:
    """Check whether each line of a cell has as many separators as a row."""
    breaks, separators = cell.count("\n") or cell.count("\r"), cell.count(sep)
    is_equal = breaks > 0 and width > 1 and separators == breaks * (width - 1)
    return is_equal and ("@" in cell or separators >= _CHANCE)


def check_text(file: BinaryIO, path: Path, *, has_metadata: bool) -> None:
    """Raise or warn if a file is not UTF-8 or may be cut off."""
    file.seek(0)
    if wide := wide_encoding(file.read(4)):
        raise _not_utf8(path, wide)
    file.seek(-1, io.SEEK_END)
    last = file.read(1)
    problem = (
        f"{path} seems to be cut off: its last line has no line break. Get the whole file again, "
        "or add a line break if the file is complete."
    )
    # Files of this package end in a line break.
    if has_metadata and last not in b"\r\n":
        raise InvalidInputError(problem)
    if last == b'"':
        warn(problem)
