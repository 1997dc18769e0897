"""Decode the text of a CSV file, and check the rows that another program wrote."""

from __future__ import annotations

import codecs
import csv
import io
import re
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TextIO, get_args

from outreach_frames.common import terms
from outreach_frames.common.text import plural, shorten
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_file import MISSING, Separator
from outreach_frames.files.header import NumberedRows, header_below_text

# UTF-32 comes first, because its mark begins with the mark of UTF-16.
_MARKS: Final = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# How files that are no text begin, what they are, and what to do with them.
_WORKBOOK: Final = (
    "a spreadsheet or an archive, which cannot be read. Give an Excel workbook the ending .xlsx; "
    "save any other spreadsheet as .xlsx, and pass that file."
)
_SIGNATURES: Final = {
    b"PK\x03\x04": _WORKBOOK,
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": (
        "an old Excel workbook or another Office document. Save it as .xlsx, and pass that file."
    ),
    b"SQLite format 3\0": "a SQLite database. Export the table as a CSV file, and pass that file.",
    b"%PDF-": "a PDF document. Get the table as a CSV file or a workbook.",
    b"\x1f\x8b\x08": "compressed by gzip. Unpack it, and pass the unpacked file.",
}
_PARQUET: Final = b"PAR1"
_MARKUP: Final = {
    "a web page": re.compile(r"(?i)\s*<(!doctype|html)"),
    "an XML document": re.compile(r"(?i)\s*<\?xml"),
    "JSON": re.compile(r'\s*(\{\s*"|\[\s*\{)'),
}
_KIND_BYTES: Final = 1 << 12
_CONTROL_BYTES: Final = bytes({*range(32), 127} - set(b"\t\n\v\f\r"))
_MAX_CONTROL_SHARE: Final = 0.05
# The separator is detected from these bytes.
START_BYTES: Final = 1 << 16
# Python's own limit is 131,072 characters per cell.
csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))


def wide_encoding(content: bytes) -> str | None:
    """Detect UTF-16 or UTF-32 by its byte order mark or a zero byte; otherwise return None."""
    for mark, name in _MARKS.items():
        if content.startswith(mark):
            return name
    return {0: "utf-16-be", 1: "utf-16-le"}.get(content[:2].find(b"\0"))


def not_a_table(path: Path, kind: str = _WORKBOOK) -> InvalidInputError:
    """Build the error for a file of another kind, which names the kind and the remedy."""
    return InvalidInputError(f"{path} is {kind}")


def _require_no_signature(content: bytes, end: bytes, path: Path) -> None:
    """Raise if a file begins, and Parquet also ends, like a file of another kind."""
    for signature, kind in _SIGNATURES.items():
        if content.startswith(signature):
            raise not_a_table(path, kind)
    if content.startswith(_PARQUET) and end.endswith(_PARQUET):
        raise not_a_table(path, "a Parquet file. Give it the ending .parquet.")


def _require_text(start: bytes, path: Path) -> None:
    """Raise if a file begins with control characters, or like a web page."""
    control = len(start) - len(start.translate(None, _CONTROL_BYTES))
    if b"\0" in start or control > _MAX_CONTROL_SHARE * len(start):
        raise not_a_table(path, "not text: it has control characters. Get the file again.")
    text = start.decode("utf-8-sig", "ignore")
    for kind, beginning in _MARKUP.items():
        if beginning.match(text):
            raise not_a_table(
                path, f"{kind}, not a CSV file. Get the table as a CSV file or a workbook."
            )


def open_text(path: Path, encoding: str | None) -> BinaryIO:
    """Open a text file; a pipe, and a file in another encoding, is read into memory."""
    if encoding is None and path.is_file():
        return path.open("rb")
    content = path.read_bytes()
    if encoding is None:
        return io.BytesIO(content)
    _require_no_signature(content, content, path)
    return io.BytesIO(_as_utf8(content, path, encoding))


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
                f"{path} is in {likely}, not in {encoding}. Pass "
                f"{terms.argument('encoding', likely)}."
            )
    return text.encode()


def _not_utf8(path: Path, likely: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path} is not in UTF-8, but probably in {likely}. Pass the encoding, such as "
        f"{terms.argument('encoding', likely)}, or save the file as UTF-8."
    )


class Rows(NamedTuple):
    """The header of a CSV file, the line of each row, and texts for warnings."""

    header: list[str]
    lines: array[int]
    remarks: list[str]


def read_rows(text: TextIO, sep: str, path: Path, *, header_only: bool) -> Rows:
    """Read the header and, unless `header_only`, all rows; raise if a row is ambiguous."""
    reader = csv.reader(text, delimiter=sep, strict=True)
    header: list[str] = []
    lines = array("q")
    merged: list[int] = []
    line, blank, blank_between = 1, 0, 0
    try:
        for row in reader:
            if not header:
                header = row
                if header and header_only:
                    break
            elif not row:
                blank += 1
            elif len(row) != len(header):
                raise InvalidInputError(
                    f"{path}, line {line:,}: expected {plural(len(header), 'cell')}, as in the "
                    f"header, but found {len(row):,}. Give each row one cell per column."
                )
            else:
                lines.append(line)
                blank_between, blank = blank_between + blank, 0
                if reader.line_num > line and any(_has_rows(cell, sep) for cell in row):
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
    return Rows(header, lines, _remarks(path, merged, blank_between if len(header) == 1 else 0))


def _remarks(path: Path, merged: Sequence[int], blank: int) -> list[str]:
    remarks = []
    if blank:
        remarks.append(
            f"{path}: skipped {plural(blank, 'blank line')} between rows. If blank lines "
            f"are missing cells, write them as {MISSING}."
        )
    if merged:
        remarks.append(
            f"{path}: {plural(len(merged), 'row')} (first in line {merged[0]:,}) has a cell whose "
            "lines look like rows. If a stray quotation mark opens the cell, remove that mark."
        )
    return remarks


def _has_rows(cell: str, sep: str) -> bool:
    """Check whether a cell of several lines has a line with an address and a separator."""
    lines = cell.splitlines() if "@" in cell else []
    return len(lines) > 1 and any("@" in line and sep in line for line in lines)


def find_separator(
    start: bytes, path: Path, sep: str | None = None, *, is_ours: bool = False
) -> str:
    r"""Detect the separator in the header by the number of cells in the first rows.

    Raise if lines of text may precede the header of a file that is not ours.

    >>> find_separator(b"Firma;Umsatz (Mio, EUR)\nX Ltd;1,5\nY Inc;2\n", Path("crm.csv"))
    ';'
    """
    text = start.decode("utf-8", "ignore")
    if len(start) == START_BYTES:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    samples = {mark: _first_rows(text, mark) for mark in ([sep] if sep else get_args(Separator))}
    columns = {mark: len(rows[0][1]) for mark, rows in samples.items() if rows}
    # The share of the first rows that have as many cells as the header.
    shares = {
        mark: sum(len(row) == number for _, row in samples[mark]) / len(samples[mark])
        for mark, number in columns.items()
        if number > 1
    }
    if not is_ours:
        for mark in shares or samples:
            _require_no_title(samples[mark], mark, path)
    if sep or not shares:
        return sep or ","
    best = max(shares.values())
    most, chosen = max((columns[mark], mark) for mark, share in shares.items() if share == best)
    for mark, share in shares.items():
        is_equal = share == best and columns[mark] == most and mark != chosen
        if is_equal or (columns[mark] > most and share > 1 / 2):
            raise InvalidInputError(
                f"{path} may be separated by {mark!r} or by {chosen!r}. Name the separator, such "
                f"as {terms.argument('sep', mark)}."
            )
    return chosen


def _first_rows(text: str, sep: str) -> list[tuple[int, list[str]]]:
    """Return the first rows and their lines, up to a stray quotation mark."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep, strict=True)
    rows: list[tuple[int, list[str]]] = []
    with suppress(csv.Error):
        rows.extend((reader.line_num, row) for row in reader if row)
    return rows


def _require_no_title(rows: NumberedRows, sep: str, path: Path) -> None:
    line = header_below_text(rows)
    if line is not None:
        raise InvalidInputError(
            f"{path}: lines of text precede the header, which seems to be line {line:,}. Delete "
            f"the lines above it; or pass {terms.argument('sep')} if the first line is the header, "
            f"and {sep!r} does not separate columns."
        )


def check_text(file: BinaryIO, path: Path, *, has_metadata: bool) -> list[str]:
    """Raise, or return the text of a warning, if a file is not UTF-8 text or may be cut off."""
    file.seek(0)
    start = file.read(_KIND_BYTES)
    file.seek(-min(len(_PARQUET), len(start)), io.SEEK_END)
    end = file.read()
    _require_no_signature(start, end, path)
    if wide := wide_encoding(start):
        raise _not_utf8(path, wide)
    # A table of this package may contain control characters.
    if not has_metadata:
        _require_text(start, path)
    last = end[-1:]
    problem = (
        f"{path} seems to be cut off: its last line has no line break. Get the whole file again, "
        "or add a line break if the file is complete."
    )
    # Files of this package end in a line break.
    if has_metadata and last not in b"\r\n":
        raise InvalidInputError(problem)
    return [problem] if last == b'"' else []
