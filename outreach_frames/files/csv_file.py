"""Write frames to CSV files, and read the files back with all values, dtypes and missing cells."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, get_args

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from outreach_frames.common.atomic_files import (
    check_suffix,
    expanded,
    refuse_special_file,
    replace_file,
)
from outreach_frames.common.text import has_lone_surrogate, plural, unique_name
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_dtypes import (
    Model,
    decode,
    default_model,
    dtype_name,
    encode,
    is_nested,
    stored_type,
    text_model,
    write_arrow,
)
from outreach_frames.files.csv_notes import (
    NOTES_ERRORS,
    OWN_ENTRIES,
    damaged_notes,
    notes_path,
    read_notes,
    replacing_metadata,
    with_models,
)
from outreach_frames.files.csv_text import (
    check_table,
    check_text,
    decoded,
    line_end,
)
from outreach_frames.files.formulas import is_text, unescape, without_formulas, without_formulas_in
from outreach_frames.files.provenance import ATTRS, plain_attrs, record, recorded_attrs
from outreach_frames.reading.fast_reader import BOM

Formulas = Literal["escape", "keep"]

Separator = Literal[",", ";", "\t", "|"]

SUFFIXES: Final = (".csv", ".txt", ".tsv", "")
EXCEL_MAX_CELL: Final = 32_767
EXCEL_MAX_ROWS: Final = 1_048_576
_BLOCK_BYTES: Final = 16 << 20
_TAIL_BYTES: Final = 4096
# Matches a first line such as `sep=;` from Excel without its line end, to keep line numbers.
_DECLARED_SEPARATOR: Final = re.compile(rb'"?sep=([,;\t|])"?(?=[\r\n])', re.IGNORECASE)
_ARCHIVE: Final = b"PK\x03\x04"
_MISSING: Final = "NA"
MAX_COLUMNS: Final = 16_384
_MAX_ROWS_WITHOUT_COLUMNS: Final = 10_000_000


def write_csv(
    frame: pd.DataFrame,
    path: str | Path,
    *,
    formulas: Formulas = "escape",
    excel: bool = False,
    sep: Separator = ",",
    index: bool | None = None,
    attrs: bool = True,
) -> Path:
    r"""Write a frame to a CSV file that `read_prospects` reads back unchanged.

    Text is quoted. A missing cell is empty without quotes, or NA if the file has a single column.
    Lists and objects are JSON. Times are ISO 8601; times with a zone are in UTC. A small metadata
    file ``<name>.csv-metadata.json`` in the same folder holds the dtypes that differ from those of
    a search result, the frame's `.attrs`, the version of this package, and a checksum that `forget`
    needs to recognise the CSV file; keep both files together. Only pandas `Period` values are read
    back as text.

    Parameters
    ----------
    frame : DataFrame
        A frame of at most 16,384 columns whose names are unique texts on one level; the frame is
        not changed.
    path : str or Path
        The path of the file: with the ending ``.csv``, ``.txt`` or ``.tsv``, or without an ending.
        An existing file is replaced.
    formulas : {"escape", "keep"}
        "escape" puts an apostrophe before text that a spreadsheet would run as a formula;
        `read_prospects` removes the apostrophe. "keep" leaves the text unchanged.
    excel : bool
        Whether to begin the file with a byte order mark, so that Excel reads accents correctly.
    sep : {",", ";", "\t", "|"}
        The column separator. Excel expects ";" in locales with a decimal comma.
    index : bool, optional
        Whether to write the index before the columns; by default, an index of row numbers from 0 is
        omitted.
    attrs : bool
        Whether to write the `.attrs` that JSON can hold, such as the filters of the search, to the
        metadata file, where `file_info` finds them. They describe the search, even if the frame was
        filtered since. Filters may have colleagues' addresses (`profnet_networks`).

    Returns
    -------
    Path
        The path of the CSV file.

    Raises
    ------
    InvalidInputError
        The frame has values that CSV cannot hold, or the file cannot be written.

    Warns
    -----
    OutreachWarning
        The file has more rows or longer cells than Excel can hold (only with `excel`).

    Examples
    --------
    >>> import tempfile
    >>> import outreach_frames as of
    >>> frame = pd.DataFrame({"name": ["=1+1", None]})
    >>> path = frame.outreach.to_csv(Path(tempfile.mkdtemp()) / "people.csv")
    >>> path.read_text()
    '"name"\n"\'=1+1"\nNA\n'
    >>> of.read_prospects(path).equals(frame)
    True
    """
    if formulas not in get_args(Formulas):
        raise InvalidInputError(f'formulas={formulas!r} is not valid; pass "escape" or "keep".')
    if sep not in get_args(Separator):
        raise InvalidInputError(f"sep={sep!r} is not valid; pass one of {get_args(Separator)}.")
    check_suffix(path, SUFFIXES, "CSV")
    check_columns(frame)
    table, models, metadata = _csv_table(
        frame, index=has_labels(frame.index) if index is None else index, attrs=attrs
    )
    if table.num_columns > MAX_COLUMNS:
        raise InvalidInputError(
            f"The frame has {table.num_columns:,} columns, but CSV files have at most "
            f"{MAX_COLUMNS:,}. Drop columns, or use to_parquet."
        )
    if excel:
        _warn_of_excel_limits(table)
    if formulas == "keep":
        metadata["formulas"] = formulas
    else:
        table = without_formulas(table)

    def write(file: Any) -> None:
        if excel:
            file.write(BOM)
        _write_table(table, file, sep=sep)

    return replace_csv(path, write, with_models(models, metadata))


def csv_rows(table: pa.Table) -> memoryview:
    """Convert the rows of a search result to CSV in the format of `write_csv`, without a header."""
    columns = [without_formulas_in(write_arrow(column)) for column in table.columns]
    buffer = pa.BufferOutputStream()
    _write_table(pa.Table.from_arrays(columns, table.column_names), buffer, header=False)
    return memoryview(buffer.getvalue())


def csv_header(frame: pd.DataFrame) -> tuple[bytes, dict[str, Any]]:
    """Return the CSV header of a frame, and the entries of its metadata file."""
    table, models, metadata = _csv_table(frame.iloc[:0], index=False, attrs=True)
    buffer = pa.BufferOutputStream()
    _write_table(without_formulas(table), buffer)
    return buffer.getvalue().to_pybytes(), with_models(models, metadata)


def replace_csv(
    path: str | Path,
    write: Callable[[BinaryIO], object],
    metadata: Mapping[str, Any],
    *,
    made_in: Path | None = None,
) -> Path:
    """Replace a CSV file, and its metadata file."""
    target = expanded(path)
    refuse_special_file(target)
    refuse_special_file(notes_path(target))
    with ExitStack() as stack:
        replace_file(
            target,
            write,
            before_replace=lambda new: stack.enter_context(
                replacing_metadata(target, metadata, new, made_in=made_in)
            ),
            temporary_folder=made_in,
        )
    return target


def _write_table(table: pa.Table, file: Any, *, header: bool = True, sep: Separator = ",") -> None:
    options = arrow_csv.WriteOptions(
        quoting_style="needed", batch_size=16_384, include_header=header, delimiter=sep
    )
    if table.num_columns:
        # Drop empty batches, because Arrow would write stray bytes for them.
        batches = [batch for batch in table.to_batches() if batch.num_rows]
        if table.num_columns == 1 and table.column(0).null_count:
            arrow_csv.write_csv(pa.Table.from_batches([], table.schema), file, options)
            file.write(_column_lines(table.column(0)))
            return
        arrow_csv.write_csv(pa.Table.from_batches(batches, table.schema), file, options)


def _column_lines(column: pa.ChunkedArray) -> bytes:
    """Return the lines of a file with a single column; write missing cells as NA."""
    cells = column.cast(pa.large_string())
    if is_text(column.type):
        cells = pc.replace_substring(cells, '"', '""')
    mark = '"' if is_text(column.type) else ""
    lines = [_MISSING if cell is None else f"{mark}{cell}{mark}" for cell in cells.to_pylist()]
    return "\n".join([*lines, ""]).encode()


def check_columns(frame: pd.DataFrame) -> None:
    """Raise if a file cannot hold the frame's column names."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise InvalidInputError(
            "The frame's columns have several levels; join them, for example with "
            'frame.columns = ["_".join(map(str, names)) for names in frame.columns].'
        )
    if others := [name for name in frame.columns if not isinstance(name, str)]:
        raise InvalidInputError(
            f"The column name {others[0]!r} is not text; "
            "use frame.columns = frame.columns.astype(str)."
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InvalidInputError(f"Two columns are named {twice!r}; rename one of them.")
    for name in (*frame.columns, *frame.index.names, *frame.columns.names):
        if isinstance(name, str) and has_lone_surrogate(name):
            raise InvalidInputError(
                f"The name {name!r} has a lone surrogate, which no file can hold; "
                "rename that column or index."
            )


def _csv_table(
    frame: pd.DataFrame, *, index: bool, attrs: bool
) -> tuple[pa.Table, list[Model], dict[str, Any]]:
    """Return the table to write, the models of its columns, and the metadata of the whole file."""
    columns: dict[str, pa.ChunkedArray] = {}
    models: list[Model] = []
    levels: list[tuple[str, Any]] = []
    if index:
        for level, name in enumerate(frame.index.names):
            if not isinstance(name, str | int | float | bool | None):
                raise InvalidInputError(
                    f"The index is named {name!r}, which is not text; rename it."
                )
            title = unique_name("index" if name is None else str(name), {*frame.columns, *columns})
            values = frame.index.get_level_values(level).to_series()
            columns[title], model = encode(values, title)
            models.append(model)
            levels.append((title, name))
    for label, column in frame.items():
        name = str(label)
        columns[name], model = encode(column, name)
        if not model.schema.equals(default_model(name).schema, check_metadata=True):
            models.append(model)
    metadata: dict[str, Any] = {**record(plain_attrs(frame.attrs) if attrs else {})}
    if levels:
        metadata["index"] = levels
    if not columns:
        metadata["rows"] = len(frame)
    if frame.columns.name is not None:
        metadata["columns_name"] = str(frame.columns.name)
    return pa.table(columns), models, metadata


def write_csv_files(
    frames: Mapping[str, pd.DataFrame],
    folder: str | Path,
    *,
    excel: bool = False,
    index: bool | None = None,
) -> Path:
    """Write each frame to a CSV file with the frame's name; create the folder if it is missing.

    >>> import tempfile
    >>> folder = write_csv_files({"found": pd.DataFrame({"name": ["Ada"]})}, tempfile.mkdtemp())
    >>> sorted(path.name for path in folder.iterdir())
    ['found.csv', 'found.csv-metadata.json']
    """
    place = expanded(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"The folder {place} cannot be created: {error.strerror}. Choose another folder."
        ) from error
    for name, frame in frames.items():
        write_csv(frame, place / f"{name}.csv", excel=excel, index=index)
    return place


def has_labels(index: pd.Index[Any]) -> bool:
    """Check whether an index has a name, or labels other than row numbers from 0."""
    return not (
        isinstance(index, pd.RangeIndex)
        and index.start == 0
        and index.step == 1
        and index.name is None
    )


def _warn_of_excel_limits(table: pa.Table) -> None:
    if table.num_rows >= EXCEL_MAX_ROWS:
        warn(f"The file has {table.num_rows:,} rows; Excel shows only {EXCEL_MAX_ROWS - 1:,}.")
    for name, column in zip(table.column_names, table.columns, strict=True):
        if is_text(column.type):
            longest = pc.max(pc.utf8_length(column)).as_py() or 0
            if longest > EXCEL_MAX_CELL:
                warn(
                    f"The column {name!r} has a cell of {longest:,} characters; "
                    f"Excel cuts cells at {EXCEL_MAX_CELL:,}."
                )


def not_a_table(path: Path) -> InvalidInputError:
    """Build the error for a file that is a spreadsheet or an archive."""
    return InvalidInputError(
        f"{path} is a spreadsheet or an archive, which cannot be read. Give an Excel workbook the "
        "ending .xlsx; save any other spreadsheet as .xlsx, and pass that file."
    )


def read_csv(path: Path, *, as_text: bool = False, encoding: str | None = None) -> pd.DataFrame:
    """Read a CSV file; with `as_text`, read columns without metadata as text."""
    models, metadata = read_notes(path)
    content = path.read_bytes()
    if content.startswith(_ARCHIVE):
        raise not_a_table(path)
    content = decoded(content, path, encoding)
    try:
        frame = _parse(content, models, metadata, path, as_text=as_text)
    except NOTES_ERRORS as error:
        if metadata.keys() <= OWN_ENTRIES or isinstance(error, InvalidInputError):
            raise
        raise damaged_notes(notes_path(path), error) from error
    frame.attrs = recorded_attrs(metadata.get(ATTRS, "{}"), path)
    return frame


def _parse(
    content: bytes,
    noted: Mapping[str, Model],
    metadata: Mapping[str, Any],
    path: Path,
    *,
    as_text: bool,
) -> pd.DataFrame:
    """Parse the content of a CSV file, and restore the dtypes from its metadata."""
    if not content or content.isspace():
        if "rows" in metadata:
            rows = metadata["rows"]
            if type(rows) is not int or rows < 0:
                raise ValueError(f"rows is {rows!r}")
            return frame_without_columns(pd.RangeIndex(rows), path)
        raise InvalidInputError(f"{path} is empty. Pass a file with a header row of column names.")
    escaped = metadata.get("formulas") != "keep"
    content = _without_blank_end(content)
    declared = _DECLARED_SEPARATOR.match(content)
    if declared:
        content = content[declared.end() :]
    sep = declared[1].decode() if declared else separator(content.lstrip(b"\r\n"))
    try:
        text = io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="")
        written = next(row for row in csv.reader(text, delimiter=sep) if row)
    except (csv.Error, UnicodeDecodeError) as error:
        check_text(content, sep, path)
        raise InvalidInputError(
            f"{path} cannot be read as a table: its header is damaged ({error}). Look for "
            "an unclosed quotation mark in the header."
        ) from error
    if len(written) > MAX_COLUMNS:
        raise InvalidInputError(
            f"{path} has {len(written):,} columns, but at most {MAX_COLUMNS:,} can be read. "
            "Delete the columns that you do not need."
        )
    names = written
    if escaped:
        names = unescape(pa.chunked_array([pa.array(written, pa.string())])).to_pylist()
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidInputError(
            f"{path} has two columns named {min(twice)!r}; rename one column in the header."
        )
    default = text_model if as_text else default_model
    models = {name: noted[name] if name in noted else default(name) for name in names}
    types = {title: stored_type(models[name]) for title, name in zip(written, names, strict=True)}
    table = _parse_csv(content, types, path, sep)
    check_table(content, sep, written, table, path)
    if len(written) == 1:
        _warn_of_blank_lines(content.strip(b"\r\n"), written[0], table, path)

    def restored(name: str, column: pa.ChunkedArray) -> Any:
        texts = unescape(column) if escaped and is_text(column.type) else column
        try:
            return decode(texts, models[name])
        except (ValueError, ArithmeticError, pa.ArrowInvalid) as error:
            kind = dtype_name(models[name])
            raise InvalidInputError(
                f"{path}: the column {name!r} cannot be read as {kind}: {error}. Correct the cell."
            ) from error

    stored = dict(zip(names, table.columns, strict=True))
    # Threads parse list columns in parallel, because Arrow releases Python's global lock.
    with ThreadPoolExecutor() as executor:
        nested = {
            name: executor.submit(restored, name, stored[name])
            for name in names
            if is_nested(models[name])
        }
        columns = {
            name: nested[name].result() if name in nested else restored(name, stored[name])
            for name in names
        }
    return frame_of(columns, table.num_rows, metadata)


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


def _read_arrow_csv(
    content: bytes | pa.Buffer,
    types: Mapping[str, pa.DataType],
    *,
    block_size: int,
    sep: str = ",",
    names: Sequence[str] | None = None,
    use_threads: bool = False,
) -> pa.Table:
    # In a file with a single column, a missing cell is NA without quotes, as in R.
    is_marked = len(types) == 1 and (names or content.lstrip(b"\r\n").startswith(b'"'))
    return arrow_csv.read_csv(
        pa.BufferReader(content),
        read_options=arrow_csv.ReadOptions(
            block_size=min(block_size, 2**31 - 2), column_names=names, use_threads=use_threads
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=sep, newlines_in_values=True, ignore_empty_lines=True
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types,
            null_values=["", _MISSING] if is_marked else [""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _parse_csv(content: bytes, types: dict[str, pa.DataType], path: Path, sep: str) -> pa.Table:
    """Parse a CSV file with rows of any length."""
    problem = ""
    # If blocks fail, parse the file as one block, which allows longer rows and names the bad row.
    for block_bytes, use_threads in ((_BLOCK_BYTES, True), (len(content) + 1, False)):
        try:
            return _read_arrow_csv(
                content, types, sep=sep, block_size=block_bytes, use_threads=use_threads
            )
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
            f"If blank lines are missing cells, write them as {_MISSING}."
        )
