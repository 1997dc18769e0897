"""Write frames to CSV files that keep all values, dtypes and missing cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from outreach_frames.common.text import has_lone_surrogate, unique_name
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_dtypes import (
    Model,
    default_model,
    encode,
    write_arrow,
)
from outreach_frames.files.csv_notes import (
    notes_path,
    replacing_metadata,
    with_models,
)
from outreach_frames.files.formulas import is_text, without_formulas, without_formulas_in
from outreach_frames.files.provenance import plain_attrs, record
from outreach_frames.reading.fast_reader import BOM

Formulas = Literal["escape", "keep"]

Separator = Literal[",", ";", "\t", "|"]

SUFFIXES: Final = (".csv", ".txt", ".tsv", "")
EXCEL_MAX_CELL: Final = 32_767
EXCEL_MAX_ROWS: Final = 1_048_576
MISSING: Final = "NA"
MAX_COLUMNS: Final = 16_384


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
    a search result, the frame's `.attrs`, the version of this package, and a checksum that
    reveals edits; keep both files together. Only pandas `Period` values, and Python objects other
    than text, dates and decimals, are read back as text.

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
            "The frame has no columns to write. Add a column, or call frame.reset_index() to write "
            "the index."
        )
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
