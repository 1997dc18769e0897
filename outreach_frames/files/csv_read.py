"""Read CSV files of this package with all values and dtypes, and CSV files of other programs."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_columns import parsed_type
from outreach_frames.files.csv_file import MAX_COLUMNS, MISSING
from outreach_frames.files.csv_notes import (
    NOTES_ERRORS,
    OWN_ENTRIES,
    checksum,
    damaged_notes,
    describes,
    entries_of,
    noted_columns,
    notes_path,
    read_notes,
)
from outreach_frames.files.csv_text import (
    START_BYTES,
    check_text,
    find_separator,
    open_text,
    read_rows,
)
from outreach_frames.files.formulas import unescape
from outreach_frames.files.header import require_names
from outreach_frames.files.misfits import misfit, misfits_remark
from outreach_frames.files.provenance import ATTRS, recorded_attrs
from outreach_frames.reading.fast_reader import BOM
from outreach_frames.tables.from_text import convert_or_keep
from outreach_frames.tables.pandas_metadata import restore_frame
from outreach_frames.tables.schema import empty_documented_columns, is_text

_BLOCK_BYTES: Final = 2 << 20
_MAX_BLOCK_BYTES: Final = 2**31 - 2
# How often a file is read again because another program has replaced it.
_MAX_READS: Final = 20
# Matches a first line such as `sep=;` from Excel without its line end, to keep line numbers.
_DECLARED_SEPARATOR: Final = re.compile(rb'"?sep=([,;\t|])"?(?=[\r\n])', re.IGNORECASE)
_TEXT: Final = pa.array([], pa.string())
# Excel shows numbers of 12 and more digits so, and drops all but six digits.
_ROUNDED: Final = r"-?[0-9][.,]?[0-9]*E\+[0-9]+"


class _Source(NamedTuple):
    """An open file with its metadata."""

    file: BinaryIO
    path: Path
    metadata: Mapping[str, Any]
    # The types and categories in the metadata.
    noted: pa.RecordBatch
    is_unchanged: bool
    as_text: bool

    @property
    def is_escaped(self) -> bool:
        return self.metadata.get("formulas") != "keep"

    def like(self, name: str) -> pa.Array:
        """Return an empty array with the type of a column."""
        # A list of all names, for each column, would take minutes for the widest files.
        if (place := self.noted.schema.get_field_index(name)) >= 0:
            return self.noted.column(place)
        return _TEXT if self.as_text else empty_documented_columns().get(name, _TEXT)


class _Cells(NamedTuple):
    """The columns of a file as parsed, and the lines of their rows if these were checked."""

    columns: dict[str, pa.ChunkedArray]
    rows: int
    lines: Sequence[int]


def read_csv(
    path: Path, *, as_text: bool = False, encoding: str | None = None, sep: str | None = None
) -> pd.DataFrame:
    """Read a CSV file; with `as_text`, read columns without metadata as text."""
    block_bytes = _BLOCK_BYTES
    for _ in range(_MAX_READS):
        state = _state(path)
        metadata: Mapping[str, Any] = read_notes(path)
        try:
            with open_text(path, encoding) as file:
                content = checksum(file)
                metadata = entries_of(metadata, content)
                is_unchanged = encoding is None and describes(metadata, content)
                if not is_unchanged and _state(path) != state:
                    continue
                source = _Source(
                    file, path, metadata, noted_columns(metadata), is_unchanged, as_text
                )
                cells = _parse(source, sep, block_bytes)
            if cells is None:
                # A row is longer than a block; parse the file as one block.
                block_bytes = _MAX_BLOCK_BYTES
                continue
            # Release the parser's memory before the columns are converted.
            pa.default_memory_pool().release_unused()
            frame = _to_frame(cells, source)
        except NOTES_ERRORS as error:
            if metadata.keys() <= OWN_ENTRIES or isinstance(error, InvalidInputError):
                raise
            raise damaged_notes(notes_path(path), error) from error
        frame.attrs = recorded_attrs(metadata.get(ATTRS, "{}"), path)
        return frame
    raise InvalidInputError(f"{path} is being replaced by another program. Read it again.")


def _state(path: Path) -> list[tuple[int, int, int]]:
    """Return what changes if another program replaces a file or its metadata file."""
    stats = [file.stat() for file in (path, notes_path(path)) if file.is_file()]
    return [(stat.st_ino, stat.st_mtime_ns, stat.st_size) for stat in stats]


def _parse(source: _Source, sep: str | None, block_bytes: int) -> _Cells | None:
    """Parse an open CSV file; return None if a row is longer than a block."""
    file, path, metadata = source.file, source.path, source.metadata
    file.seek(0)
    start = file.read(START_BYTES)
    if not start.removeprefix(BOM).strip():
        raise InvalidInputError(f"{path} is empty. Pass a file with a header row.")
    problems = [] if source.is_unchanged else check_text(file, path, has_metadata=bool(metadata))
    begins = len(BOM) if start.startswith(BOM) else 0
    declared = _DECLARED_SEPARATOR.match(start, begins)
    begins = declared.end() if declared else begins
    chosen = sep or (declared[1].decode() if declared else None)
    chosen = find_separator(start[begins:], path, chosen, is_ours=bool(metadata))
    file.seek(begins)
    text = io.TextIOWrapper(file, "utf-8", newline="")
    try:
        header, lines, remarks = read_rows(text, chosen, path, header_only=source.is_unchanged)
    finally:
        text.detach()  # or else it would close the file
    names = _names(header, source)
    types = {
        title: parsed_type(source.like(name).type) if source.is_unchanged else pa.string()
        for title, name in zip(header, names, strict=True)
    }
    table = pa.schema(types).empty_table()
    if source.is_unchanged or lines:
        # In a file with a single column, a missing cell is NA without quotes, as in R.
        missing = ["", MISSING] if len(header) == 1 and start.startswith(b'"') else [""]
        skipped = 1 if declared else 0
        try:
            table = _read_table(file, types, block_bytes, chosen, missing, skipped_rows=skipped)
        except pa.ArrowInvalid as error:
            if block_bytes == _BLOCK_BYTES:
                return None
            # Arrow's message ends with the cell; cut it off, because it may be personal data.
            match = re.match(r"[^:]*: [^:]*", str(error))
            problem = match[0] if match else "it is damaged"
            raise InvalidInputError(
                f"{path} cannot be read as a table: {problem}. Correct the cell."
            ) from error
    for remark in (*problems, *remarks) if len(table) else ():
        warn(remark)
    return _Cells(dict(zip(names, table.columns, strict=True)), len(table), lines)


def _names(header: list[str], source: _Source) -> list[str]:
    """Return the names of the columns; raise if they are not the names of a table."""
    if len(header) > MAX_COLUMNS:
        raise InvalidInputError(
            f"{source.path} has {len(header):,} columns, but at most {MAX_COLUMNS:,} can be read. "
            "Delete the columns that you do not need."
        )
    names = header
    if source.is_escaped:
        names = unescape(pa.chunked_array([pa.array(header, pa.string())])).to_pylist()
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidInputError(
            f"{source.path} has two columns named {min(twice)!r}; rename one column in the header."
        )
    if not source.metadata:
        require_names(names, str(source.path))
    return names


def _read_table(
    file: BinaryIO,
    types: Mapping[str, pa.DataType],
    block_bytes: int,
    sep: str,
    missing: list[str],
    *,
    skipped_rows: int,
) -> pa.Table:
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
    read_options = arrow_csv.ReadOptions(
        block_size=min(block_bytes, size + 1),
        use_threads=block_bytes == _BLOCK_BYTES,
        skip_rows=skipped_rows,
    )
    file.seek(0)
    # The stream needs less memory than read_csv, whose parser runs ahead of the conversion.
    with arrow_csv.open_csv(
        pa.PythonFile(file, "r"), read_options, parse_options, convert_options
    ) as stream:
        return stream.read_all()


def _to_frame(cells: _Cells, source: _Source) -> pd.DataFrame:
    """Convert the columns to their types, and restore the dtypes and the index."""
    path, metadata, names = source.path, source.metadata, list(cells.columns)
    misfits: dict[str, str] = {}
    rounded: list[str] = []

    def converted(name: str) -> pa.ChunkedArray:
        texts = cells.columns.pop(name)
        if source.is_escaped and is_text(texts.type):
            texts = unescape(texts)
        column, row = convert_or_keep(texts, source.like(name))
        if row is not None:
            misfits[name] = misfit(name, texts[row].as_py(), f"line {cells.lines[row]:,}")
        elif cells.lines and (number := _count_rounded(name, column)):
            rounded.append(f"{number:,} in {name!r}")
        return column

    columns = ((name, converted(name)) for name in names)
    frame = restore_frame(columns, cells.rows, source.noted.schema.metadata, misfits)
    if misfits:
        warn(f"{path}: {misfits_remark(misfits)}")
    if rounded:
        warn(
            f"{path}: Excel rounded numbers, so ids may be wrong: {', '.join(rounded)}. "
            "Export the file again, and import it to Excel with these columns as text."
        )
    levels = {title: name for title, name in metadata.get("index", ()) if title in frame}
    if levels:
        # set_index would convert small integers to a 64-bit RangeIndex.
        labels = [pd.Index(frame[title].array) for title in levels]
        index = labels[0] if len(labels) == 1 else pd.MultiIndex.from_arrays(labels)
        frame = frame.drop(columns=list(levels)).set_axis(index.set_names(list(levels.values())))
    frame.columns.name = metadata.get("columns_name")
    return frame


def _count_rounded(name: str, texts: pa.ChunkedArray) -> int:
    """Count numbers that Excel has rounded in a column of ids or digits."""
    if not is_text(texts.type):
        return 0
    number = pc.sum(pc.match_substring_regex(texts, f"^{_ROUNDED}$")).as_py() or 0
    is_id = name.lower() == "id" or name.lower().endswith("_id")
    digits = pc.match_substring_regex(texts, f"^({_ROUNDED}|[0-9]*)$")
    return number if number and (is_id or pc.all(digits).as_py()) else 0
