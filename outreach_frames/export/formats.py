"""What an export of people can be written as: CSV, NDJSON, Parquet, or a folder of Parquet files.

While a search is read its people are kept as the parts of a `Checkpoint`, because the last page may
bring a column that no page before it had. Once all is there, the parts become the file. What can be
done while others wait for the service is done then: parts of CSV are rows already, which are
written anew only where other parts have further columns.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from outreach_frames.common.atomic_files import (
    expanded,
    move_file,
    refuse_special_file,
    replace_file,
    replace_folder,
    resolve_links,
    unwritable,
)
from outreach_frames.common.parallel import ordered_map
from outreach_frames.common.text import unique_name
from outreach_frames.errors import InvalidInputError
from outreach_frames.export.checkpoint import Checkpoint, Span, read_span
from outreach_frames.files.csv_file import csv_header, csv_rows, read_csv_rows, replace_csv
from outreach_frames.files.parquet import parquet_table
from outreach_frames.reading.fast_reader import PeoplePage
from outreach_frames.reading.flatten import concat_people, concat_tables, with_folded
from outreach_frames.reading.raw_people import LINE, content_of, read_people_lines
from outreach_frames.resources.search import read_in_worker
from outreach_frames.tables.schema import to_frame

FOLDER: Final = "a folder of Parquet parts"
PEOPLE_PER_PART: Final = 10_000
_PART: Final = re.compile(r"part-\d{5,}\.parquet")
_THREADS: Final = min(2, os.cpu_count() or 1)


Order = tuple[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of export.

    Attributes
    ----------
    name : str
        For messages.
    read : callable
        Makes people out of some pages' bytes.
    label : callable
        Adds the value of a split search that found these people, by the filter's name.
    encode : callable
        Makes a part out of people.
    finish : callable
        Makes the file out of all parts, and puts it in its place. The last arguments are what
        `.attrs` has when it is read as a frame, and the column of a split search with its values
        in their order.
    """

    name: str
    read: Callable[[Sequence[bytes]], list[PeoplePage]]
    label: Callable[[pa.Table, str, str], pa.Table]
    encode: Callable[[pa.Table], bytes | memoryview]
    finish: Callable[[Checkpoint, Path, Mapping[str, Any], Order | None], object]


def format_of(path: str | Path) -> Format:
    """Return the format of a path, by its ending.

    Parameters
    ----------
    path : str or Path
        A path with no ending, with a separator at its end, or of a folder, is a folder.

    Returns
    -------
    Format
        One of four.

    Raises
    ------
    InvalidInputError
        The ending is none of the three, the folder holds other files, or there is a device, pipe
        or socket.

    Examples
    --------
    >>> format_of("people.CSV").name
    '.csv'
    """
    place = expanded(path)
    ends_in_separator = str(path).endswith(("/", os.sep))
    suffix = place.suffix.lower()
    if place.is_dir() or ends_in_separator or not suffix:
        _require_own_folder(place)
        return _FORMATS[FOLDER]
    if suffix not in _FORMATS:
        raise InvalidInputError(
            f"{path} ends in {suffix}; give a path that ends in .csv, .ndjson or .parquet, or a "
            "folder, which has no ending, for Parquet parts."
        )
    refuse_special_file(place)
    return _FORMATS[suffix]


def part_texts(target: str, part: pa.Buffer) -> Iterator[str]:
    """Yield the people of a part as text; `target` is the name of what is exported to."""
    suffix = Path(target).suffix.lower()
    if suffix == ".ndjson":
        yield from part.to_pybytes().decode(errors="replace").split("\n")
        return
    if suffix == ".csv":
        schema, rows = _csv_part(part)
        people = read_csv_rows(rows, schema)
    else:
        people = pa.ipc.open_stream(part).read_all()
    for row in people.to_pylist():
        yield str(list(row.values()))


def _require_own_folder(place: Path) -> None:
    """Refuse a folder that holds anything that an export would not replace, or a file."""
    try:
        if not place.exists():
            return
        others = [path for path in place.iterdir() if not _PART.fullmatch(path.name)]
    except OSError as error:
        raise unwritable(place, error) from error
    if others:
        raise InvalidInputError(
            f"The folder {place} holds other files, such as {min(others).name}, and an export "
            "replaces the whole folder. Give it a folder of its own."
        )


def _label_lines(people: pa.Table, name: str, value: str) -> pa.Table:
    # Put in as text: read and written again, a line would no longer be what the service sent.
    member = f"{orjson.dumps(name).decode()}:{orjson.dumps(value).decode()}}}".encode()
    lines = [
        line.rstrip()[:-1] + (b"" if line.strip() == b"{}" else b",") + member + b"\n"
        for line in people.column(LINE).to_pylist()
    ]
    position = people.schema.get_field_index(LINE)
    return people.set_column(position, LINE, pa.array(lines, people.schema.field(position).type))


def _label_table(people: pa.Table, name: str, value: str) -> pa.Table:
    names = {name: unique_name(name, people.column_names)}
    renamed = people.rename_columns([names.get(one, one) for one in people.column_names])
    return renamed.append_column(name, pa.array([value] * len(people), pa.string()))


def _category(texts: Any, values: Any) -> Any:
    """Make the column of a split search, in the order of the values given."""
    return pd.Categorical(texts, categories=values, ordered=True)


def _empty_frame(nobody: pa.Table, order: Order | None) -> pd.DataFrame:
    """Make the empty frame with the dtypes that the frame of all people would have."""
    frame = to_frame(nobody, "numpy_nullable")
    return frame.assign(**{order[0]: _category([], order[1])}) if order else frame


def _encode_lines(people: pa.Table) -> bytes:
    return content_of(people.column(LINE))


def _encode_csv(people: pa.Table) -> bytes:
    """Make rows of CSV, with their columns in front in case that others have further ones."""
    return b"".join([people.schema.serialize(), csv_rows(people)])


def _csv_part(content: pa.Buffer) -> tuple[pa.Schema, pa.Buffer]:
    reader = pa.BufferReader(content)
    schema = pa.ipc.read_schema(reader)
    return schema, content[reader.tell() :]


def _encode_table(people: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, people.schema) as writer:
        writer.write_table(people)
    return memoryview(sink.getvalue())


def _finish_lines(
    parts: Checkpoint, place: Path, _: Mapping[str, Any], _order: Order | None
) -> None:
    parts.close_rows()
    move_file(place, parts.rows)


def _finish_csv(parts: Checkpoint, place: Path, _: Mapping[str, Any], order: Order | None) -> None:
    nobody = _empty_table(parts)
    header, notes = csv_header(_empty_frame(nobody, order))

    def rows(span: Span) -> pa.Buffer | memoryview:
        schema, written = _csv_part(read_span(parts.rows, span))
        if schema == nobody.schema:
            return written
        return csv_rows(_alike(nobody, read_csv_rows(written, schema)))

    def write(file: BinaryIO) -> None:
        file.write(header)
        with closing(ordered_map(rows, parts.spans, workers=_THREADS)) as pieces:
            for piece in pieces:
                file.write(piece)

    replace_csv(place, write, notes, made_in=parts.folder)


def _finish_parquet(
    parts: Checkpoint, place: Path, attrs: Mapping[str, Any], order: Order | None
) -> None:
    nobody = _empty_table(parts)
    schema = _parquet_schema(nobody, attrs, order, parts.count)

    def write(file: BinaryIO) -> None:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for people in _many(parts, nobody, PEOPLE_PER_PART):
                writer.write_table(_as_in(schema, people, order))

    replace_file(place, write, temporary_folder=parts.folder)


def _finish_folder(
    parts: Checkpoint, place: Path, attrs: Mapping[str, Any], order: Order | None
) -> None:
    new = parts.folder / "new.tmp"
    new.mkdir()
    place = resolve_links(place)
    model = next(place.glob("*"), None)
    nobody = _empty_table(parts)
    for number, people in enumerate(_many(parts, nobody, PEOPLE_PER_PART)):
        schema = _parquet_schema(nobody, attrs, order, len(people))
        table = _as_in(schema, people, order)
        _write_part(table, new / f"part-{number:05}", model)
    _require_own_folder(place)
    # Only now, so that who reads all Parquet files around meets no part of what is not whole.
    for part in sorted(new.iterdir()):
        part.rename(part.with_suffix(".parquet"))
    replace_folder(place, new, parts.replaced)


def _write_part(table: pa.Table, path: Path, model: Path | None) -> None:
    """Write one part, with the permissions of a part that it replaces."""
    with path.open("xb") as file:
        if model:
            shutil.copymode(model, path)
        pq.write_table(table, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())


def _parquet_schema(
    nobody: pa.Table, attrs: Mapping[str, Any], order: Order | None, rows: int
) -> pa.Schema:
    """Give the schema that `write_parquet` would give a frame of so many rows."""
    frame = _empty_frame(nobody, order)
    frame.attrs.update(attrs)
    schema = parquet_table(frame).schema
    notes = json.loads(schema.metadata[b"pandas"])
    notes["index_columns"][0]["stop"] = rows
    return schema.with_metadata({**schema.metadata, b"pandas": json.dumps(notes).encode()})


def _as_in(schema: pa.Schema, people: pa.Table, order: Order | None) -> pa.Table:
    """Give people the types of a schema."""
    columns = [
        column.cast(field.type)
        if order is None or field.name != order[0]
        else pa.array(_category(column.to_pylist(), order[1]))
        for field, column in zip(schema, people.columns, strict=True)
    ]
    return pa.table(columns, schema=schema)


def _many(parts: Checkpoint, nobody: pa.Table, size: int) -> Iterator[pa.Table]:
    """Yield all people in batches with the same columns; one empty table where there are none."""
    waiting: list[pa.Table] = []
    yielded = False
    for span in parts.spans:
        waiting.append(_alike(nobody, _table(parts.rows, span)))
        while sum(table.num_rows for table in waiting) >= size:
            people = pa.concat_tables(waiting)
            yield people.slice(0, size)
            waiting = [people.slice(size)]
            yielded = True
    rest = pa.concat_tables([nobody, *waiting])
    if rest.num_rows or not yielded:
        yield rest


def _empty_table(parts: Checkpoint) -> pa.Table:
    """Make the empty table with every part's columns, each of a type that holds all."""
    schemas: list[pa.Schema] = []
    with parts.rows.open("rb") as file:
        for span in parts.spans:
            file.seek(span.begins)
            schema = pa.ipc.read_schema(file)
            if schema not in schemas:
                schemas.append(schema)
    return concat_people([schema.empty_table() for schema in schemas])


def _table(rows: Path, span: Span) -> pa.Table:
    return pa.ipc.open_stream(read_span(rows, span)).read_all()


def _alike(nobody: pa.Table, people: pa.Table) -> pa.Table:
    if people.schema == nobody.schema:
        return people
    others = set(people.column_names).difference(nobody.column_names)
    return concat_tables([nobody, with_folded(people, others)])


_FORMATS: Final = {
    ".csv": Format(".csv", read_in_worker, _label_table, _encode_csv, _finish_csv),
    ".ndjson": Format(".ndjson", read_people_lines, _label_lines, _encode_lines, _finish_lines),
    ".parquet": Format(".parquet", read_in_worker, _label_table, _encode_table, _finish_parquet),
    FOLDER: Format(FOLDER, read_in_worker, _label_table, _encode_table, _finish_folder),
}
