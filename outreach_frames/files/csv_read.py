"""Read CSV files of this package with all values and dtypes, and CSV files of other programs."""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, get_args

import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv

from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_dtypes import (
    Model,
    decode,
    default_model,
    dtype_name,
    stored_type,
    text_model,
)
from outreach_frames.files.csv_file import MISSING, Separator
from outreach_frames.files.csv_notes import (
    NOTES_ERRORS,
    OWN_ENTRIES,
    damaged_notes,
    is_unchanged,
    notes_path,
    read_notes,
)
from outreach_frames.files.csv_text import check_text, open_text, read_header
from outreach_frames.files.formulas import is_text, unescape
from outreach_frames.files.provenance import ATTRS, recorded_attrs
from outreach_frames.reading.fast_reader import BOM

_BLOCK_BYTES: Final = 2 << 20
# The separator is detected from these bytes.
_START_BYTES: Final = 1 << 16
# Matches a first line such as `sep=;` from Excel without its line end, to keep line numbers.
_DECLARED_SEPARATOR: Final = re.compile(rb'"?sep=([,;\t|])"?(?=[\r\n])', re.IGNORECASE)
_ARCHIVE: Final = b"PK\x03\x04"


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
        stored = _read_columns(path, model, metadata, encoding=encoding, is_escaped=is_escaped)
        # Release the parser's memory before the columns are converted.
        pa.default_memory_pool().release_unused()
        frame = _to_frame(stored, model, metadata, path, is_escaped=is_escaped)
    except NOTES_ERRORS as error:
        if metadata.keys() <= OWN_ENTRIES or isinstance(error, InvalidInputError):
            raise
        raise damaged_notes(notes_path(path), error) from error
    frame.attrs = recorded_attrs(metadata.get(ATTRS, "{}"), path)
    return frame


def _read_columns(
    path: Path,
    model: Callable[[str], Model],
    metadata: Mapping[str, Any],
    *,
    encoding: str | None,
    is_escaped: bool,
) -> dict[str, pa.ChunkedArray]:
    """Parse a CSV file into its columns as stored."""
    with open_text(path, encoding) as file:
        is_own = encoding is None and is_unchanged(file, metadata)
        file.seek(0)
        start = file.read(_START_BYTES)
        if start.startswith(_ARCHIVE):
            raise not_a_table(path)
        if not start.removeprefix(BOM).strip():
            raise InvalidInputError(f"{path} is empty. Pass a file with a header row.")
        if not is_own:
            check_text(file, path, has_metadata=bool(metadata))
        begins = len(BOM) if start.startswith(BOM) else 0
        declared = _DECLARED_SEPARATOR.match(start, begins)
        begins = declared.end() if declared else begins
        start = start[begins:].lstrip(b"\r\n")
        sep = declared[1].decode() if declared else separator(start)
        file.seek(begins)
        header = read_header(file, sep, path, check_rows=not is_own)
        names = header
        if is_escaped:
            names = unescape(pa.chunked_array([pa.array(header, pa.string())])).to_pylist()
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise InvalidInputError(
                f"{path} has two columns named {min(twice)!r}; rename one column in the header."
            )
        types = {title: stored_type(model(name)) for title, name in zip(header, names, strict=True)}
        # In a file with a single column, a missing cell is NA without quotes, as in R.
        missing = ["", MISSING] if len(header) == 1 and start.startswith(b'"') else [""]
        table = _parse_csv(file, types, path, sep, missing, skipped_rows=1 if declared else 0)
    if table.column_names != header:
        raise InvalidInputError(f"{path} was changed while it was read. Read it again.")
    return dict(zip(names, table.columns, strict=True))


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

    columns = {name: restored(name) for name in names}
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


def _parse_csv(
    file: BinaryIO,
    types: dict[str, pa.DataType],
    path: Path,
    sep: str,
    missing: list[str],
    *,
    skipped_rows: int,
) -> pa.Table:
    """Parse a CSV file with rows of any length."""
    convert_options = arrow_csv.ConvertOptions(
        column_types=types,
        null_values=missing,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse_options = arrow_csv.ParseOptions(
        delimiter=sep, newlines_in_values=True, ignore_empty_lines=True
    )
    size = file.seek(0, io.SEEK_END)
    problem = ""
    # If blocks fail, parse the file as one block, which allows longer rows.
    for block_bytes, use_threads in ((_BLOCK_BYTES, True), (size + 1, False)):
        read_options = arrow_csv.ReadOptions(
            block_size=min(block_bytes, 2**31 - 2), use_threads=use_threads, skip_rows=skipped_rows
        )
        # Arrow reads ahead, so each attempt needs a file of its own.
        source = (
            pa.BufferReader(file.getvalue())
            if isinstance(file, io.BytesIO)
            else pa.OSFile(os.fsencode(path))
        )
        try:
            # The stream needs less memory than read_csv, whose parser runs ahead of the conversion.
            with arrow_csv.open_csv(source, read_options, parse_options, convert_options) as stream:
                return stream.read_all()
        except pa.ArrowInvalid as error:
            # Arrow's message ends with the cell; cut it off, because it may be personal data.
            message = re.match(r"[^:]*: [^:]*", str(error))
            problem = message[0] if message else "it is damaged"
    raise InvalidInputError(f"{path} cannot be read as a table: {problem}. Correct the cell.")
