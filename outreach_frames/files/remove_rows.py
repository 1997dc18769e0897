"""Remove people's rows from files that this package wrote and no other program has saved since.

A CSV or NDJSON file is recognised by the checksum in the metadata file beside it, a Parquet file by
its metadata, and a workbook by a property. All other rows stay unchanged.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from outreach_frames import spec
from outreach_frames.common.atomic_files import replace_file
from outreach_frames.common.warnings import collect_warnings
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_dtypes import Model
from outreach_frames.files.csv_file import has_labels, replace_csv, separator
from outreach_frames.files.csv_notes import (
    CHECKSUMS,
    METADATA_SUFFIX,
    checksum,
    notes_path,
    read_notes,
    with_models,
    write_notes,
)
from outreach_frames.files.excel import write_sheets
from outreach_frames.files.excel_notes import read_properties
from outreach_frames.files.excel_read import read_excel
from outreach_frames.files.formulas import is_text
from outreach_frames.files.parquet import OWN_METADATA, frame_of_parquet, parquet_table
from outreach_frames.reading.fast_reader import BOM

Holds = Callable[[str], bool]

NAMED: Final = "other cells, columns or metadata still name the people; change them yourself"
# An at sign or a slash, or an escape that may be one.
MAY_HOLD: Final = re.compile(r"[@/%\\]")
_FOREIGN: Final = "this package did not write it, or another program has saved it since"
_WRITER: Final = "parquet-cpp-arrow"
# Text is quoted, so that quotation marks come in pairs.
_RECORD: Final = re.compile(rb'(?:[^"\n]++|"[^"]*+")*+(?:\n|\Z)')
_TIMES: Final = re.compile(rb"<dcterms:(?:created|modified)[^>]*>([^<]*)<")


def removal(path: Path, holds: Holds) -> Callable[[], object]:
    """Return a function that removes the rows of matching people from a file of this package.

    Raise if the file must not change, or if nothing can be removed.
    """
    path = path.with_name(path.name.removesuffix(METADATA_SUFFIX))
    with path.open("rb") as file:
        start = file.read(4)
    kinds = {b"PAR1": _from_parquet, b"PK\3\4": _from_workbook}
    return kinds.get(start, _from_text)(path, holds)


def _is_identifier(column: object) -> bool:
    """Check whether a column's name is that of an identifier, in any spelling such as E-Mail."""
    name = re.sub(r"[\W_]", "", str(column).lower())
    return name in {known.replace("_", "") for known in spec.LEAD_IDENTIFIERS}


def _from_text(path: Path, holds: Holds) -> Callable[[], object]:
    """Keep the bytes of all other rows of a CSV or NDJSON file."""
    if not notes_path(path).is_file() or notes_path(path).is_symlink():
        raise InvalidInputError("no metadata file beside it shows that this package wrote it")
    models, metadata = read_notes(path)
    content = path.read_bytes()
    if checksum(io.BytesIO(content)) not in (metadata.get(CHECKSUMS) or ()):
        raise InvalidInputError("it, or its metadata file, was changed since this package wrote it")
    is_json = path.suffix.lower() == ".ndjson"
    header, *rows = [b"", *content.splitlines(True)] if is_json else _RECORD.findall(content)
    named = [row for row in rows if holds(row.decode())]
    if is_json:
        cells = [json.loads(row) for row in named]
    else:
        table = io.BytesIO(b"".join([header, *named]))
        sep = separator(header.removeprefix(BOM))
        cells = pd.read_csv(table, sep=sep, dtype=str, index_col=False).to_dict("records")
    own = [[str(row[name]) for name in row if _is_identifier(name)] for row in cells]
    gone = {row for row, texts in zip(named, own, strict=True) if any(map(holds, texts))}
    kept = b"".join([header, *(row for row in rows if row not in gone)])
    notes = metadata
    if gone.issuperset(named):
        notes = with_models([_pruned(model, holds) for model in models.values()], metadata)
    if kept == content and notes == metadata:
        raise InvalidInputError(NAMED)

    def write() -> None:
        replace_csv(path, lambda file: file.write(kept), metadata)
        # Only now, so that the dtypes are never missing.
        write_notes(path, notes, [checksum(io.BytesIO(kept))])

    return write


def _pruned(model: Model, holds: Holds) -> Model:
    """Drop the categories that match, none of which is in a cell."""
    column = model.column(0)
    if not pa.types.is_dictionary(column.type):
        return model
    kept = [value for value in column.dictionary.to_pylist() if not holds(str(value))]
    values = pa.array(kept, column.type.value_type)
    codes = pc.index_in(column.dictionary_decode(), value_set=values).cast(column.type.index_type)
    array = pa.DictionaryArray.from_arrays(codes, values, ordered=column.type.ordered)
    return pa.record_batch([array], model.schema)


def _from_parquet(path: Path, holds: Holds) -> Callable[[], object]:
    with pq.ParquetFile(path) as source:
        metadata, writer = source.schema_arrow.metadata or {}, source.metadata.created_by or ""
        if OWN_METADATA not in metadata or not writer.startswith(_WRITER):
            raise InvalidInputError(_FOREIGN)
        groups = [source.metadata.row_group(at).num_rows for at in range(source.num_row_groups)]
        (kept,) = _without({"": frame_of_parquet(source.read())}, holds).values()
    size = max(groups, default=1) or 1
    return lambda: replace_file(
        path,
        lambda file: pq.write_table(
            parquet_table(kept), file, compression="zstd", row_group_size=size
        ),
    )


def _from_workbook(path: Path, holds: Holds) -> Callable[[], object]:
    with zipfile.ZipFile(path) as package:
        core = "docProps/core.xml"
        # When it was created and last saved; other programs keep the property and save later.
        times = _TIMES.findall(package.read(core)) if core in package.namelist() else []
        properties = read_properties(package)
    sheets = properties["sheets"]
    if not sheets or len(times) != 2 or times[0] != times[1]:
        raise InvalidInputError(_FOREIGN)
    with collect_warnings():
        frames = {name: read_excel(path, sheet_name=name) for name in sheets}
    kept = _without(frames, holds)
    return lambda: write_sheets(
        kept,
        path,
        index={name: bool(notes["index"]) for name, notes in sheets.items()},
        tz=properties["tz"],
        inexact={name: notes["inexact"] for name, notes in sheets.items()},
        progress=False,
    )


def _without(frames: Mapping[str, pd.DataFrame], holds: Holds) -> dict[str, pd.DataFrame]:
    """Drop the rows of matching people, and the unused categories that name them."""
    kept = {name: _frame_without(frame, holds) for name, frame in frames.items()}
    if all(kept[name] is frames[name] for name in frames):
        raise InvalidInputError(NAMED)
    return kept


def _frame_without(frame: pd.DataFrame, holds: Holds) -> pd.DataFrame:
    gone = np.zeros(len(frame), bool)
    for name, column in frame.reset_index(allow_duplicates=True).items():
        if _is_identifier(name):
            gone |= np.array([holds(str(cell)) for cell in column], bool)
    kept = frame
    if gone.any():
        kept = frame[~gone] if has_labels(frame.index) else frame[~gone].reset_index(drop=True)
    for name, column in kept.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            used = set(column.cat.codes)
            values = enumerate(column.cat.categories)
            unused = [one for code, one in values if code not in used and holds(str(one))]
            if unused:
                kept = kept.assign(**{str(name): column.cat.remove_categories(unused)})
    return kept


def category_texts(columns: Sequence[pa.Array]) -> list[str]:
    """Return the categories of columns as text, those without a cell too."""
    found = [column.dictionary for column in columns if pa.types.is_dictionary(column.type)]
    return [str(value) for values in found for value in values.to_pylist()]


def holding_rows(table: pa.RecordBatch, holds: Holds) -> np.ndarray[Any, Any]:
    """Return which rows match in any of their cells."""
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
    """Return a column's cells as text, None if they cannot hold text."""
    if is_text(column.type):
        return column
    if pa.types.is_primitive(column.type):
        return None
    cells = (
        cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell)
        for cell in column.to_pylist()
    )
    return pa.array(cells, pa.large_string())
