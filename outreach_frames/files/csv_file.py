"""Write frames to CSV files that keep all values, dtypes and missing cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import has_lone_surrogate, unique_name
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_columns import csv_form, default_dtypes, storable
from outreach_frames.files.csv_notes import noted_schema, notes_path, write_notes
from outreach_frames.files.formulas import without_formulas, without_formulas_in
from outreach_frames.files.provenance import plain_attrs, record
from outreach_frames.reading.fast_reader import BOM
from outreach_frames.tables.pandas_metadata import arrow_table
from outreach_frames.tables.schema import is_text

Formulas = Literal["escape", "keep"]

Separator = Literal[",", ";", "\t", "|"]

SUFFIXES: Final = (".csv", ".txt", ".tsv", "")
EXCEL_MAX_CELL: Final = 32_767
EXCEL_MAX_ROWS: Final = 1_048_576
MISSING: Final = "NA"
MAX_COLUMNS: Final = 16_384
# pandas and Arrow raise these errors for values that CSV cannot hold.
_UNSUPPORTED: Final = (pa.ArrowException, NotImplementedError, OverflowError, TypeError, ValueError)


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
    Lists and records are JSON. Times are ISO 8601; times with a zone are in UTC. A small metadata
    file ``<name>.csv-metadata.json`` in the same folder holds the dtypes that differ from those of
    a search result, the frame's `.attrs`, the version of this package, and a checksum of the CSV
    file. Keep both files together; once the CSV file is changed, only the dtypes are used. Periods,
    durations, decimals, times of day, 16-bit floats and Python objects other than dates are read
    back as text; write Parquet to keep their dtypes.

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
        Excel shows 1,048,575 rows, and 32,767 characters of a cell.
    sep : {",", ";", "\t", "|"}
        The column separator. Excel expects ";" in locales with a decimal comma.
    index : bool, optional
        Whether to write the index before the columns; by default, an index of row numbers from 0 is
        omitted.
    attrs : bool
        Whether to write the `.attrs` that JSON can hold, such as the filters of the search, to the
        metadata file, from which `read_prospects` restores them. They describe the search, even if
        the frame was filtered since. Filters may have colleagues' addresses (`profnet_networks`).

    Returns
    -------
    Path
        The path of the CSV file.

    Raises
    ------
    InvalidInputError
        The frame has values that CSV cannot hold, or the file cannot be written.

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
    has_index = has_labels(frame.index) if index is None else index
    columns = frame.shape[1] + frame.index.nlevels * has_index
    if columns > MAX_COLUMNS:
        raise InvalidInputError(
            f"The table has {columns:,} columns, but CSV files have at most "
            f"{MAX_COLUMNS:,}. Drop columns, or use to_parquet."
        )
    table, metadata = _csv_table(frame, index=has_index, attrs=attrs)
    if formulas == "keep":
        metadata["formulas"] = formulas
    else:
        table = without_formulas(table)

    def write(file: Any) -> None:
        if excel:
            file.write(BOM)
        _write_table(table, file, sep=sep)

    return replace_csv(path, write, metadata)


def csv_text(frame: pd.DataFrame) -> str:
    """Return a frame as CSV in the format of `write_csv`."""
    buffer = pa.BufferOutputStream()
    table, _ = _csv_table(frame, index=has_labels(frame.index), attrs=False)
    _write_table(without_formulas(table), buffer)
    return str(buffer.getvalue(), "utf-8")


def csv_rows(table: pa.Table) -> memoryview:
    """Convert the rows of a search result to CSV in the format of `write_csv`, without a header."""
    columns = [without_formulas_in(csv_form(column)) for column in table.columns]
    buffer = pa.BufferOutputStream()
    _write_table(pa.Table.from_arrays(columns, table.column_names), buffer, header=False)
    return memoryview(buffer.getvalue())


def csv_header(frame: pd.DataFrame) -> tuple[bytes, dict[str, Any]]:
    """Return the CSV header of a frame, and the entries of its metadata file."""
    table, metadata = _csv_table(frame.iloc[:0], index=False, attrs=True)
    buffer = pa.BufferOutputStream()
    _write_table(without_formulas(table), buffer)
    return buffer.getvalue().to_pybytes(), metadata


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
    return replace_file(
        target,
        write,
        before_replace=lambda new: write_notes(target, metadata, new, made_in=made_in),
        temporary_folder=made_in,
    )


def _write_table(table: pa.Table, file: Any, *, header: bool = True, sep: Separator = ",") -> None:
    options = arrow_csv.WriteOptions(
        quoting_style="needed", batch_size=16_384, include_header=header, delimiter=sep
    )
    if table.num_columns == 1 and table.column(0).null_count:
        arrow_csv.write_csv(pa.Table.from_batches([], table.schema), file, options)
        file.write(_column_lines(table.column(0)))
        return
    # Drop empty batches, because Arrow would write stray bytes for them.
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    arrow_csv.write_csv(pa.Table.from_batches(batches, table.schema), file, options)


def _column_lines(column: pa.ChunkedArray) -> bytes:
    """Return the lines of a file with a single column; write missing cells as NA."""
    cells = column.cast(pa.large_string())
    if is_text(column.type):
        cells = pc.replace_substring(cells, '"', '""')
    mark = '"' if is_text(column.type) else ""
    lines = [MISSING if cell is None else f"{mark}{cell}{mark}" for cell in cells.to_pylist()]
    return "\n".join([*lines, ""]).encode()


def check_columns(frame: pd.DataFrame) -> None:
    """Raise if a frame has no columns, or if a file cannot hold the columns' names."""
    if not len(frame.columns):
        raise InvalidInputError(
            "The table has no columns to write. Add a column, or call frame.reset_index() to write "
            "the index."
        )
    if isinstance(frame.columns, pd.MultiIndex):
        raise InvalidInputError(
            "The table's columns have several levels; join them, for example with "
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


def _csv_table(frame: pd.DataFrame, *, index: bool, attrs: bool) -> tuple[pa.Table, dict[str, Any]]:
    """Return the table to write, and the entries of its metadata file."""
    metadata: dict[str, Any] = {**record(plain_attrs(frame.attrs) if attrs else {})}
    if index:
        titles = _index_titles(frame)
        metadata["index"] = list(zip(titles, frame.index.names, strict=True))
        frame = frame.reset_index(names=titles)
    # Each column would copy the attrs.
    plain = frame.copy(deep=False)
    plain.attrs = {}
    columns = {str(label): storable(column) for label, column in plain.items()}
    dtypes = default_dtypes()
    noted = {key: column for key, column in columns.items() if column.dtype != dtypes.get(key, STR)}
    typed = _typed(pd.DataFrame(noted))
    if noted:
        metadata |= noted_schema(typed)
    if frame.columns.name is not None:
        metadata["columns_name"] = str(frame.columns.name)
    written = {}
    for name, column in columns.items():
        with _naming(name):
            array = typed.column(name) if name in noted else pa.chunked_array([pa.array(column)])
            written[name] = csv_form(array)
    return pa.table(written), metadata


def _index_titles(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns that hold the index."""
    titles: list[str] = []
    for name in frame.index.names:
        if not isinstance(name, str | int | float | bool | None):
            raise InvalidInputError(f"The index is named {name!r}, which is not text; rename it.")
        titles.append(
            unique_name("index" if name is None else str(name), {*frame.columns, *titles})
        )
    return titles


def _typed(frame: pd.DataFrame) -> pa.Table:
    """Convert a frame to a table with pandas' metadata; an error names the column."""
    try:
        return arrow_table(frame, index=False)
    except _UNSUPPORTED:
        for name, column in frame.items():
            with _naming(str(name)):
                arrow_table(column.to_frame(), index=False)
        raise


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Convert the errors of values that CSV cannot hold to an error that names their column."""
    try:
        yield
    except UnicodeEncodeError:
        problem = "text with a lone surrogate, which no file can hold"
    except _UNSUPPORTED as error:
        problem = f"values that CSV cannot hold: {'; '.join(map(str, error.args))}"
    else:
        return
    raise InvalidInputError(
        f"The column {name!r} has {problem}. "
        "Convert the column to text, numbers, dates or lists of these types, or drop the column."
    )


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
