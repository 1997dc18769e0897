"""Remove people's rows from files that this package wrote and no other program has changed.

The package recognises its CSV files by the checksum in the metadata file, its Parquet
files by metadata, and its workbooks by a property. Rows of other people stay unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from outreach_frames import spec
from outreach_frames.common.atomic_files import replace_file
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_file import has_labels, write_csv
from outreach_frames.files.csv_notes import METADATA_SUFFIX, is_unchanged, notes_path, read_notes
from outreach_frames.files.csv_read import read_csv, separator
from outreach_frames.files.excel_read import read_all_cells
from outreach_frames.files.formulas import is_text
from outreach_frames.files.parquet import OWN_METADATA, frame_of_parquet, write_parquet
from outreach_frames.files.provenance import PROPERTY
from outreach_frames.reading.fast_reader import BOM

Holds = Callable[[str], bool]
Identifies = Callable[[Sequence[str]], bool]
Mask = np.ndarray[Any, Any]

NAMED: Final = "other cells, columns or metadata still name the people; remove these names yourself"
# Matches an at sign or a slash, or an escape sequence that may encode one.
MAY_HOLD: Final = re.compile(r"[@/%\\]")
_FOREIGN: Final = "this package did not write the file, or another program has changed the file"
_WRITER: Final = "parquet-cpp-arrow"
# A header's first name ends within these bytes.
_HEADER_BYTES: Final = 4096
# A workbook saved only once has nearly equal times of creation and change.
_ONE_SAVE: Final = timedelta(seconds=2)


def removal(path: Path, holds: Holds, identifies: Identifies) -> Callable[[], object]:
    """Return a function that removes people's rows from a file that this package wrote.

    `holds` checks whether a text names one of the people; `identifies` checks whether a row's cells
    with identifiers are theirs. Raise if the file must not change, or if no row can be removed.
    """
    path = path.with_name(path.name.removesuffix(METADATA_SUFFIX))
    if not path.is_file():
        raise InvalidInputError("the file that the metadata describes does not exist")
    with path.open("rb") as file:
        start = file.read(4)
    kinds = {b"PAR1": _from_parquet, b"PK\3\4": _from_workbook}
    found = path.stat()
    remove = kinds.get(start, _from_text)(path, holds, identifies)

    def remove_from_unchanged() -> None:
        now = path.stat()
        if (now.st_ino, now.st_mtime_ns) != (found.st_ino, found.st_mtime_ns):
            raise InvalidInputError("another program is writing the file; call forget again")
        remove()

    return remove_from_unchanged


def _rows_of_people(
    columns: Iterable[tuple[Any, Iterable[Any]]], rows: int, identifies: Identifies
) -> Mask:
    """Return which rows the identifier columns, such as email or E-Mail, assign to the people."""
    known = {name.replace("_", "") for name in spec.LEAD_IDENTIFIERS}
    cells = [
        map(str, column)
        for name, column in columns
        if re.sub(r"[\W_]", "", str(name).lower()) in known
    ]
    return np.array([identifies(row) for row in zip(*cells, strict=True)] or [False] * rows, bool)


def _without_people(frame: pd.DataFrame, holds: Holds, identifies: Identifies) -> pd.DataFrame:
    """Return a frame without people's rows and unused categories; raise if it has neither."""
    levels = [
        (name, frame.index.get_level_values(level)) for level, name in enumerate(frame.index.names)
    ]
    is_gone = _rows_of_people([*levels, *frame.items()], len(frame), identifies)
    kept = frame[~is_gone].copy()
    if isinstance(kept.index, pd.CategoricalIndex):
        kept.index = kept.index.remove_unused_categories()
    if not has_labels(frame.index):
        kept = kept.reset_index(drop=True)
    has_changed = bool(is_gone.any())
    for name, column in kept.select_dtypes("category").items():
        unused = column.cat.categories.difference(
            column.cat.remove_unused_categories().cat.categories
        )
        named = [category for category in unused if holds(str(category))]
        kept[name] = column.cat.remove_categories(named)
        has_changed |= bool(named)
    if not has_changed:
        raise InvalidInputError(NAMED)
    return kept


def _from_text(path: Path, holds: Holds, identifies: Identifies) -> Callable[[], object]:
    if not notes_path(path).is_file() or notes_path(path).is_symlink():
        raise InvalidInputError("no metadata file proves that this package wrote the file")
    metadata = read_notes(path)[1]
    with path.open("rb") as file:
        start = file.read(_HEADER_BYTES)
        file.seek(0)
        if not is_unchanged(file, metadata):
            raise InvalidInputError(
                "the file or its metadata file was changed after this package wrote it"
            )
    kept = _without_people(read_csv(path), holds, identifies)
    options: dict[str, Any] = {
        "sep": separator(start.removeprefix(BOM)),
        "excel": start.startswith(BOM),
        "formulas": metadata.get("formulas", "escape"),
        "index": "index" in metadata,
    }
    return lambda: write_csv(kept, path, **options)


def _from_parquet(path: Path, holds: Holds, identifies: Identifies) -> Callable[[], object]:
    with pq.ParquetFile(path) as source:
        metadata, writer = source.schema_arrow.metadata or {}, source.metadata.created_by or ""
        if OWN_METADATA not in metadata or not writer.startswith(_WRITER):
            raise InvalidInputError(_FOREIGN)
        table = source.read()
    noted = {column["field_name"] for column in table.schema.pandas_metadata["columns"]}
    if not noted.issuperset(table.column_names):
        raise InvalidInputError(_FOREIGN)
    kept = _without_people(frame_of_parquet(table, path), holds, identifies)
    return lambda: write_parquet(kept, path)


def _from_workbook(path: Path, _holds: Holds, identifies: Identifies) -> Callable[[], object]:
    import openpyxl  # noqa: PLC0415 - an optional extra

    # Check the size of each sheet first, because the library would visit all blank cells.
    for _ in read_all_cells(path):
        pass
    book = openpyxl.load_workbook(path)
    created, saved = book.properties.created, book.properties.modified
    is_ours = PROPERTY in book.custom_doc_props.names and None not in (created, saved)
    # Other programs keep the property, but save later.
    if not is_ours or abs(saved - created) > _ONE_SAVE:
        raise InvalidInputError(_FOREIGN)
    found = 0
    for sheet in book.worksheets:
        names, *rows = sheet.iter_rows(values_only=True)
        columns = zip(names, zip(*rows, strict=True), strict=True) if rows else iter(())
        gone = np.flatnonzero(_rows_of_people(columns, len(rows), identifies))
        found += len(gone)
        for row in gone[::-1].tolist():
            sheet.delete_rows(row + 2)
    if not found:
        raise InvalidInputError(NAMED)

    def save(file: BinaryIO) -> None:
        book.properties.created = datetime.now(UTC).replace(tzinfo=None)
        book.save(file)

    return lambda: replace_file(path, save)


def category_texts(columns: Sequence[pa.Array]) -> list[str]:
    """Return all categories of columns as text, including unused categories."""
    found = [column.dictionary for column in columns if pa.types.is_dictionary(column.type)]
    return [str(value) for values in found for value in values.to_pylist()]


def holding_rows(table: pa.RecordBatch, holds: Holds) -> Mask:
    """Return which rows have at least one matching cell."""
    hit = np.zeros(table.num_rows, dtype=bool)
    for column in table.columns:
        texts = _texts(column)
        if texts is None:
            continue
        # Most cells contain neither an address nor a URL.
        likely = pc.fill_null(pc.match_substring_regex(texts, MAY_HOLD.pattern), fill_value=False)
        for position in pc.indices_nonzero(likely).to_pylist():
            hit[position] = hit[position] or holds(texts[position].as_py())
    return hit


def _texts(column: pa.Array) -> pa.Array | None:
    """Return a column's cells as text; return None if the column's type cannot hold text."""
    if is_text(column.type):
        return column
    if pa.types.is_primitive(column.type):
        return None
    cells = (
        cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell)
        for cell in column.to_pylist()
    )
    return pa.array(cells, pa.large_string())
