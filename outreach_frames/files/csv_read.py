"""Read CSV files of this package with all values and dtypes, and CSV files of other programs."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, get_args

import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv

from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_dtypes import (
    Model,
    decode,
    default_model,
    dtype_name,
    is_nested,
    stored_type,
    text_model,
)
from outreach_frames.files.csv_file import MAX_COLUMNS, MISSING, Separator
from outreach_frames.files.csv_notes import (
    NOTES_ERRORS,
    OWN_ENTRIES,
    damaged_notes,
    notes_path,
    read_notes,
)
from outreach_frames.files.csv_text import check_table, check_text, decoded, line_end
from outreach_frames.files.formulas import is_text, unescape
from outreach_frames.files.provenance import ATTRS, recorded_attrs

_BLOCK_BYTES: Final = 4 << 20
_TAIL_BYTES: Final = 4096
# Matches a first line such as `sep=;` from Excel without its line end, to keep line numbers.
_DECLARED_SEPARATOR: Final = re.compile(rb'"?sep=([,;\t|])"?(?=[\r\n])', re.IGNORECASE)
_ARCHIVE: Final = b"PK\x03\x04"
_MAX_ROWS_WITHOUT_COLUMNS: Final = 10_000_000
_THREADS: Final = min(2, os.cpu_count() or 1)


def not_a_table(path: Path) -> InvalidInputError:
    """Build the error for a file that is a spreadsheet or an archive."""
    return InvalidInputError(
        f"{path} is a spreadsheet or an archive, which cannot be read. Give an Excel workbook the "
        "ending .xlsx; save any other spreadsheet as .xlsx, and pass that file."
    )


def read_csv(path: Path, *, as_text: bool = False, encoding: str | None = None) -> pd.DataFrame:
    """Read a CSV file; with `as_text`, read columns without metadata as text."""
    noted, metadata = read_notes(path)
    default = text_model if as_text else default_model
    is_escaped = metadata.get("formulas") != "keep"

    def model(name: str) -> Model:
        return noted[name] if name in noted else default(name)

    try:
        stored = _read_columns(path, model, encoding=encoding, is_escaped=is_escaped)
        if stored:
            # Release the parser's memory before the columns are converted.
            pa.default_memory_pool().release_unused()
            frame = _to_frame(stored, model, metadata, path, is_escaped=is_escaped)
        else:
            frame = _frame_of_blank_file(metadata, path)
    except NOTES_ERRORS as error:
        if metadata.keys() <= OWN_ENTRIES or isinstance(error, InvalidInputError):
            raise
        raise damaged_notes(notes_path(path), error) from error
    frame.attrs = recorded_attrs(metadata.get(ATTRS, "{}"), path)
    return frame


def _read_columns(
    path: Path, model: Callable[[str], Model], *, encoding: str | None, is_escaped: bool
) -> dict[str, pa.ChunkedArray]:
    """Parse a CSV file into its columns as stored; return no columns for a blank file."""
    content = path.read_bytes()
    if content.startswith(_ARCHIVE):
        raise not_a_table(path)
    content = _without_blank_end(decoded(content, path, encoding))
    if not content or content.isspace():
        return {}
    declared = _DECLARED_SEPARATOR.match(content)
    if declared:
        content = content[declared.end() :]
    sep = declared[1].decode() if declared else separator(content.lstrip(b"\r\n"))
    header = _read_header(content, sep, path)
    names = header
    if is_escaped:
        names = unescape(pa.chunked_array([pa.array(header, pa.string())])).to_pylist()
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidInputError(
            f"{path} has two columns named {min(twice)!r}; rename one column in the header."
        )
    types = {title: stored_type(model(name)) for title, name in zip(header, names, strict=True)}
    table = _parse_csv(content, types, path, sep)
    check_table(content, sep, header, table, path)
    if len(header) == 1:
        _warn_of_blank_lines(content.strip(b"\r\n"), header[0], table, path)
    return dict(zip(names, table.columns, strict=True))


def _read_header(content: bytes, sep: str, path: Path) -> list[str]:
    """Return the column names in the first row that is not blank."""
    try:
        text = io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="")
        header = next(row for row in csv.reader(text, delimiter=sep) if row)
    except (csv.Error, UnicodeDecodeError) as error:
        check_text(content, sep, path)
        raise InvalidInputError(
            f"{path} cannot be read as a table: its header is damaged ({error}). Look for "
            "an unclosed quotation mark in the header."
        ) from error
    if len(header) > MAX_COLUMNS:
        raise InvalidInputError(
            f"{path} has {len(header):,} columns, but at most {MAX_COLUMNS:,} can be read. "
            "Delete the columns that you do not need."
        )
    return header


def _to_frame(
    stored: dict[str, pa.ChunkedArray],
    model: Callable[[str], Model],
    metadata: Mapping[str, Any],
    path: Path,
    *,
    is_escaped: bool,
) -> pd.DataFrame:
    """Restore the dtypes of the columns; empty `stored` on the way, to save memory."""
    names, rows = list(stored), len(next(iter(stored.values())))

    def restored(name: str) -> Any:
        column = stored.pop(name)
        if is_escaped and is_text(column.type):
            column = unescape(column)
        try:
            return decode(column, model(name))
        except (ValueError, ArithmeticError, pa.ArrowInvalid) as error:
            kind = dtype_name(model(name))
            raise InvalidInputError(
                f"{path}: the column {name!r} cannot be read as {kind}: {error}. Correct the cell."
            ) from error

    # Threads parse list columns in parallel, because Arrow releases Python's global lock.
    with ThreadPoolExecutor(_THREADS) as executor:
        nested = {name: executor.submit(restored, name) for name in names if is_nested(model(name))}
        columns = {name: restored(name) for name in names if name not in nested}
        columns |= {name: future.result() for name, future in nested.items()}
    return frame_of({name: columns[name] for name in names}, rows, metadata)


def _frame_of_blank_file(metadata: Mapping[str, Any], path: Path) -> pd.DataFrame:
    """Build a frame without columns, as written; raise for a file without a header."""
    if "rows" not in metadata:
        raise InvalidInputError(f"{path} is empty. Pass a file with a header row of column names.")
    rows = metadata["rows"]
    if type(rows) is not int or rows < 0:
        raise ValueError(f"rows is {rows!r}")
    return frame_without_columns(pd.RangeIndex(rows), path)


def frame_without_columns(index: pd.RangeIndex, path: Path | None) -> pd.DataFrame:
    """Build a frame whose number of rows is only in the metadata; raise if it is implausible."""
    if len(index) > _MAX_ROWS_WITHOUT_COLUMNS:
        raise InvalidInputError(
            f"{path or 'The file'} has no columns, but its metadata claims {len(index):,} rows. "
            "Get the file again."
        )
    return pd.DataFrame(index=index)


def frame_of(columns: dict[str, Any], rows: int, metadata: Mapping[str, Any]) -> pd.DataFrame:
    """Build a frame; set the index that the file's metadata describes."""
    levels = {title: name for title, name in metadata.get("index", ()) if title in columns}
    labels = [pd.Index(columns.pop(title)) for title in levels]
    frame = pd.DataFrame(columns, index=pd.RangeIndex(rows), copy=False)
    if levels:
        # set_index would convert small integers to a 64-bit RangeIndex.
        index = labels[0] if len(labels) == 1 else pd.MultiIndex.from_arrays(labels)
        frame.index = index.set_names(list(levels.values()))
    frame.columns.name = metadata.get("columns_name")
    return frame


def separator(content: bytes) -> str:
    """Detect the column separator from the header."""
    if first := re.match(rb'"(?:[^"]|"")*"([,;\t|])', content):
        return first[1].decode()
    header = content.partition(b"\n")[0]
    found = [mark for mark in get_args(Separator) if mark.encode() in header]
    return found[0] if found and not header.startswith(b'"') else ","


def _parse_csv(content: bytes, types: dict[str, pa.DataType], path: Path, sep: str) -> pa.Table:
    """Parse a CSV file with rows of any length."""
    # In a file with a single column, a missing cell is NA without quotes, as in R.
    is_marked = len(types) == 1 and content.lstrip(b"\r\n").startswith(b'"')
    convert_options = arrow_csv.ConvertOptions(
        column_types=types,
        null_values=["", MISSING] if is_marked else [""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse_options = arrow_csv.ParseOptions(
        delimiter=sep, newlines_in_values=True, ignore_empty_lines=True
    )
    problem = ""
    # If blocks fail, parse the file as one block, which allows longer rows and names the bad row.
    for block_bytes, use_threads in ((_BLOCK_BYTES, True), (len(content) + 1, False)):
        read_options = arrow_csv.ReadOptions(
            block_size=min(block_bytes, 2**31 - 2), use_threads=use_threads
        )
        try:
            # The stream needs less memory than read_csv, whose parser runs ahead of the conversion.
            with arrow_csv.open_csv(
                pa.BufferReader(content), read_options, parse_options, convert_options
            ) as stream:
                return stream.read_all()
        except pa.ArrowInvalid as error:
            # Arrow's message ends with the row; cut it off, because the row may be personal data.
            message = re.match(r"[^:]*: (?:Row #\d+: )?[^:]*", str(error))
            problem = message[0] if message else "it is damaged"
    check_text(content, sep, path)
    raise InvalidInputError(
        f"{path} cannot be read as a table: {problem}. Give each row one cell per column."
    )


def _without_blank_end(content: bytes) -> bytes:
    """Drop lines of spaces at the end of a file."""
    blank = re.search(rb"(?<=[\r\n])[ \r\n]* [ \r\n]*\Z", content[-_TAIL_BYTES:])
    return content[: -len(blank[0])] if blank else content


def _warn_of_blank_lines(content: bytes, header: str, table: pa.Table, path: Path) -> None:
    """Warn of blank lines in a file with a single column, because each may be a missing cell."""
    end = line_end(content)
    cells = [header, *table.column(0).to_pylist()] if is_text(table.column(0).type) else [header]
    inside = sum(cell.count(end) for cell in cells if cell)
    if blank := content.count(end.encode()) - inside - table.num_rows:
        warn(
            f"{path}: skipped {plural(blank, 'blank line')} between rows. "
            f"If blank lines are missing cells, write them as {MISSING}."
        )
