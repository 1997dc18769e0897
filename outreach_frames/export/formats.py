"""Write an export of people as CSV, Parquet, or a folder of Parquet files.

The last page may still add a column, so a `Checkpoint` keeps the people in parts until the search
ends. Then the parts are combined into the file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from outreach_frames.common.atomic_files import (
    copy_mode,
    expanded,
    move,
    refuse_special_file,
    replace_file,
    replace_folder,
    resolve_links,
    unwritable,
)
from outreach_frames.common.parallel import CPU_THREADS, ordered_map
from outreach_frames.common.text import unique_name
from outreach_frames.errors import InvalidInputError
from outreach_frames.export.checkpoint import Checkpoint, read_part
from outreach_frames.files.csv_file import csv_header, csv_rows, replace_csv
from outreach_frames.files.parquet import WRITE_OPTIONS, parquet_table
from outreach_frames.reading.flatten import concat_people, concat_tables, fold_columns
from outreach_frames.resources.people import undocumented_columns
from outreach_frames.tables.schema import to_frame

FOLDER: Final = "a folder of Parquet parts"
PEOPLE_PER_PART: Final = 10_000
_PART: Final = re.compile(r"part-\d{5,}\.parquet")
# The name of a split search's column, and the column's values in order.
Split = tuple[str, Sequence[str]]


def format_of(path: str | Path) -> str:
    """Return a path's format by its suffix; a path without suffix or with a final `/` is a folder.

    >>> format_of("people.CSV")
    '.csv'
    """
    target = expanded(path)
    ends_in_separator = str(path).endswith(("/", os.sep))
    suffix = target.suffix.lower()
    if target.is_dir() or ends_in_separator or not suffix:
        _require_own_folder(target)
        return FOLDER
    if suffix not in FORMATS:
        excel = ""
        if suffix in {".xlsx", ".xls"}:
            excel = " For Excel, search the people and write the table to a workbook."
        raise InvalidInputError(
            f"{path} ends in {suffix}. Pass a path that ends in .csv or .parquet, or a "
            f"folder (no suffix) for Parquet parts.{excel}"
        )
    refuse_special_file(target)
    return suffix


def _require_own_folder(target: Path) -> None:
    """Raise unless the path is unused, or a folder of Parquet parts only."""
    try:
        if not target.exists():
            return
        others = [path for path in target.iterdir() if not _PART.fullmatch(path.name)]
    except OSError as error:
        raise unwritable(target, error) from error
    if others:
        raise InvalidInputError(
            f"The folder {target} contains files that are not Parquet parts, such as "
            f"{min(others).name}, but an export would replace the whole folder. Pass an empty or "
            "new folder."
        )


def with_label(people: pa.Table, name: str, value: str) -> pa.Table:
    """Add a column named after the split filter, with the part's filter value."""
    own = unique_name(name, people.column_names)
    names = [own if column == name else column for column in people.column_names]
    return people.rename_columns(names).append_column(
        name, pa.array([value] * len(people), pa.string())
    )


def _category(texts: Any, values: Any) -> Any:
    """Build the column of a split search, an ordered categorical."""
    return pd.Categorical(texts, categories=values, ordered=True)


def _empty_frame(empty: pa.Table, attrs: Mapping[str, Any], split: Split | None) -> pd.DataFrame:
    """Build an empty frame with the columns, dtypes and `.attrs` of the complete export."""
    frame = to_frame(empty, "numpy_nullable")
    if split:
        frame = frame.assign(**{split[0]: _category([], split[1])})
    if attrs:
        undocumented = undocumented_columns(frame.columns, split and split[0])
        frame.attrs.update(attrs, undocumented=undocumented)
    return frame


def _finish_csv(
    parts: Checkpoint, target: Path, attrs: Mapping[str, Any], split: Split | None
) -> None:
    empty = _empty_table(parts)
    header, notes = csv_header(_empty_frame(empty, attrs, split))

    def rows(part: bytes) -> memoryview:
        return csv_rows(_with_columns(empty, read_part(part)))

    def write(file: BinaryIO) -> None:
        file.write(header)
        with closing(ordered_map(rows, parts.parts(), workers=CPU_THREADS)) as pieces:
            for piece in pieces:
                file.write(piece)

    replace_csv(target, write, notes, made_in=parts.folder)


def _finish_parquet(
    parts: Checkpoint, target: Path, attrs: Mapping[str, Any], split: Split | None
) -> None:
    empty = _empty_table(parts)
    schema = _parquet_schema(empty, attrs, split, parts.count)

    def write(file: BinaryIO) -> None:
        with pq.ParquetWriter(file, schema, **WRITE_OPTIONS) as writer:
            for people in _batches(parts, empty):
                writer.write_table(_cast_to(schema, people, split))

    replace_file(target, write, temporary_folder=parts.folder)


def _finish_folder(
    parts: Checkpoint, target: Path, attrs: Mapping[str, Any], split: Split | None
) -> None:
    new = parts.folder / "new.tmp"
    new.mkdir()
    target = resolve_links(target)
    old_part = next(target.glob("*"), None)
    empty = _empty_table(parts)
    for number, people in enumerate(_batches(parts, empty)):
        schema = _parquet_schema(empty, attrs, split, len(people))
        table = _cast_to(schema, people, split)
        _write_part(table, new / f"part-{number:05}", old_part)
    _require_own_folder(target)
    # Rename the parts last, so that readers of `**/*.parquet` never find an incomplete export.
    for part in sorted(new.iterdir()):
        move(part, part.with_suffix(".parquet"))
    replace_folder(target, new, parts.replaced)


def _write_part(table: pa.Table, path: Path, old_part: Path | None) -> None:
    """Write one Parquet part with the permissions of an old part."""
    with path.open("xb") as file:
        if old_part:
            copy_mode(old_part, path)
        pq.write_table(table, file, **WRITE_OPTIONS)
        file.flush()
        os.fsync(file.fileno())


def _parquet_schema(
    empty: pa.Table, attrs: Mapping[str, Any], split: Split | None, rows: int
) -> pa.Schema:
    """Return the schema that `write_parquet` uses for a frame with this number of rows."""
    schema = parquet_table(_empty_frame(empty, attrs, split)).schema
    notes = json.loads(schema.metadata[b"pandas"])
    notes["index_columns"][0]["stop"] = rows
    return schema.with_metadata({**schema.metadata, b"pandas": json.dumps(notes).encode()})


def _cast_to(schema: pa.Schema, people: pa.Table, split: Split | None) -> pa.Table:
    columns = [
        pa.array(_category(column.to_pylist(), split[1]))
        if split and field.name == split[0]
        # Do not cast to the same type: the cast would make nested nulls invalid.
        else (column if column.type == field.type else column.cast(field.type))
        for field, column in zip(schema, people.columns, strict=True)
    ]
    return pa.table(columns, schema=schema)


def _batches(parts: Checkpoint, empty: pa.Table) -> Iterator[pa.Table]:
    """Yield all people in batches with the same columns; without people, yield one empty table."""
    pending: list[pa.Table] = []
    yielded = False
    for part in parts.parts():
        pending.append(_with_columns(empty, read_part(part)))
        while sum(table.num_rows for table in pending) >= PEOPLE_PER_PART:
            people = pa.concat_tables(pending)
            yield people.slice(0, PEOPLE_PER_PART)
            pending = [people.slice(PEOPLE_PER_PART)]
            yielded = True
    remaining = pa.concat_tables([empty, *pending])
    if remaining.num_rows or not yielded:
        yield remaining


def _empty_table(parts: Checkpoint) -> pa.Table:
    """Build an empty table with the columns of all parts and their common types."""
    people = concat_people([schema.empty_table() for schema in parts.schemas()])
    return people if parts.columns is None else people.select(parts.columns)


def _with_columns(empty: pa.Table, people: pa.Table) -> pa.Table:
    if people.schema == empty.schema:
        return people
    others = set(people.column_names).difference(empty.column_names)
    return concat_tables([empty, fold_columns(people, others)])


# Functions that write all parts and the search's `.attrs` to the target, by format.
FORMATS: Final = {".csv": _finish_csv, ".parquet": _finish_parquet, FOLDER: _finish_folder}
