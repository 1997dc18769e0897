"""Remove people's rows from files that this package wrote and no other program has saved since.

A CSV or NDJSON file is known by the checksum in the metadata file beside it, a Parquet file by its
metadata, and a workbook by a property. All other rows are kept as they are.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from bisect import bisect_left
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from outreach_frames import spec
from outreach_frames.common.atomic_files import replace_file
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_dtypes import Model
from outreach_frames.files.csv_file import parse_records, split_records
from outreach_frames.files.csv_notes import (
    CHECKSUMS,
    METADATA_SUFFIX,
    checksum,
    models_in,
    notes_path,
    read_notes,
    with_models,
    write_notes,
)
from outreach_frames.files.excel_notes import PART, properties_part, read_properties
from outreach_frames.files.formulas import is_text
from outreach_frames.files.parquet import OWN_METADATA, frame_of_parquet, parquet_table

Holds = Callable[[str], bool]
Write = Callable[[BinaryIO], object]

_FOREIGN: Final = "this package did not write it, or another program has saved it since"
_WRITER: Final = "parquet-cpp-arrow"
_STRINGS: Final = "xl/sharedStrings.xml"
_BOOK: Final = "xl/workbook.xml"
_CORE: Final = "docProps/core.xml"
_STRING: Final = re.compile(rb"<si>.*?</si>", re.DOTALL)
_ROW: Final = re.compile(rb'<row r="(\d+)"[^>]*?(?:/>|>.*?</row>)', re.DOTALL)
_TEXT_CELL: Final = re.compile(rb'<c r="([A-Z]+)(\d+)"[^>]* t="s"><v>(\d+)</v>')
_PLACE: Final = re.compile(rb'( r="[A-Z]*)\d+"')
_AREA: Final = re.compile(rb'(ref="A1:[A-Z]+)(\d+)(?=")')
_FILTERED: Final = re.compile(rb'<autoFilter ref="A1:[A-Z]+(\d+)"')
_SHEET: Final = re.compile(rb'<sheet name="([^"]*)"')
_TIMES: Final = re.compile(rb"<dcterms:(?:created|modified)[^>]*>([^<]*)<")
# An at sign or a slash, or an escape that may be one.
_MAY_HOLD: Final = r"[@/%\\]"


def remove_rows(path: Path, holds: Holds, *, dry_run: bool = False) -> None:
    """Remove the rows whose email or profile URL matches; raise for a file that must not change."""
    if path.name.endswith(METADATA_SUFFIX):
        path = path.with_name(path.name.removesuffix(METADATA_SUFFIX))
    if path.is_symlink() or path.stat().st_nlink > 1:
        raise InvalidInputError("it is a link or has several names; pass the folder of the file")
    if path.with_name(f"~${path.name}").exists():
        raise InvalidInputError("it is open in Excel; close it there and try again")
    before = _stamp(path)

    def replace(write: Write | None) -> None:
        if write and not dry_run:
            replace_file(path, write, before_replace=require_unchanged)

    def require_unchanged() -> None:
        if _stamp(path) != before:
            raise InvalidInputError("another program changed it meanwhile; close it and try again")

    with path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        replace(_parquet(path, holds))
    elif start == b"PK\3\4":
        replace(_workbook(path, holds))
    else:
        _remove_from_text(path, holds, replace, dry_run=dry_run)


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is_identifier(column: str) -> bool:
    """Check whether a column is named as an identifier, in any spelling such as E-Mail."""
    name = re.sub(r"[^a-z]", "", column.lower())
    return name in {known.replace("_", "") for known in spec.LEAD_IDENTIFIERS}


def _remove_from_text(
    path: Path, holds: Holds, replace: Callable[[Write], None], *, dry_run: bool
) -> None:
    """Remove rows from a CSV or NDJSON file, whose metadata file is right at every moment."""
    if not notes_path(path).is_file():
        raise InvalidInputError("no metadata file beside it shows that this package wrote it")
    models, metadata = read_notes(path)
    content = path.read_bytes()
    old = checksum(io.BytesIO(content))
    if old not in metadata.get(CHECKSUMS, ()):
        raise InvalidInputError("it, or its metadata file, was changed since this package wrote it")
    is_json = path.suffix.lower() == ".ndjson"
    header, *rows = [b"", *content.splitlines(keepends=True)] if is_json else split_records(content)
    named = [row for row in rows if holds(row.decode())]
    if is_json:
        cells = [
            [str(value) for name, value in json.loads(row).items() if _is_identifier(name)]
            for row in named
        ]
    else:
        table = parse_records(header, named)
        names = filter(_is_identifier, table.column_names)
        cells = [list(map(str, row.values())) for row in table.select([*names]).to_pylist()]
    gone = {row for row, texts in zip(named, cells, strict=True) if any(map(holds, texts))}
    kept = b"".join([header, *(row for row in rows if row not in gone)])
    notes = metadata
    if gone.issuperset(named):
        pruned = [_without_category(model, holds) for model in models.values()]
        notes = with_models(pruned, metadata)
    if dry_run or (kept == content and notes == metadata):
        return
    new = checksum(io.BytesIO(kept))
    write_notes(path, metadata, [old, new])
    replace(lambda file: file.write(kept))
    write_notes(path, notes, [new])


def _without_category(model: Model, holds: Holds) -> Model:
    return pa.record_batch([_pruned(model.column(0), holds)], model.schema)


def _pruned(column: pa.Array, holds: Holds) -> pa.Array:
    """Drop the categories that match, none of which is in a cell."""
    if not pa.types.is_dictionary(column.type):
        return column
    kept = column.dictionary.filter(
        pa.array([not holds(str(value)) for value in column.dictionary.to_pylist()], pa.bool_())
    )
    codes = pc.index_in(column.dictionary_decode(), value_set=kept).cast(column.type.index_type)
    return pa.DictionaryArray.from_arrays(codes, kept, ordered=column.type.ordered)


def category_texts(columns: Sequence[pa.Array]) -> list[str]:
    """Return the categories of columns as text, those without a cell too."""
    found = [column.dictionary for column in columns if pa.types.is_dictionary(column.type)]
    return [str(value) for values in found for value in values.to_pylist()]


def holding_rows(table: pa.RecordBatch | pa.Table, holds: Holds) -> np.ndarray[Any, Any]:
    """Return which rows match in any of their cells."""
    hit = np.zeros(table.num_rows, dtype=bool)
    for column in table.columns:
        texts = _texts(column)
        if texts is None:
            continue
        # Most cells contain neither an address nor a URL.
        likely = pc.fill_null(pc.match_substring_regex(texts, _MAY_HOLD), fill_value=False)
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


def _parquet(path: Path, holds: Holds) -> Write | None:
    """Return how to write a Parquet file without the rows, by row group; None if none matches."""
    named, gone = 0, []
    with pq.ParquetFile(path) as source:
        schema, writer_name = source.schema_arrow, source.metadata.created_by or ""
        if OWN_METADATA not in (schema.metadata or {}) or not writer_name.startswith(_WRITER):
            raise InvalidInputError(_FOREIGN)
        for group in range(source.num_row_groups):
            table = source.read_row_group(group)
            named += int(holding_rows(table, holds).sum())
            own = table.select(list(filter(_is_identifier, table.column_names)))
            gone.append(holding_rows(own, holds) if own.num_columns else np.zeros(len(table), bool))
    count = sum(int(rows.sum()) for rows in gone)
    if named and not count:
        return None
    notes = json.loads(schema.metadata[b"pandas"])
    labels = next((each for each in notes["index_columns"] if isinstance(each, dict)), None)
    has_labels = labels and (labels["start"], labels["step"], labels["name"]) != (0, 1, None)
    if labels:
        labels["stop"] -= count
    schema = schema.with_metadata({**schema.metadata, b"pandas": json.dumps(notes).encode()})

    def write(file: BinaryIO) -> None:
        with pq.ParquetFile(path) as source:
            if has_labels:
                frame = frame_of_parquet(source.read())[~np.concatenate(gone)]
                pq.write_table(pruned(parquet_table(frame)), file, compression="zstd")
                return
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for group, rows in enumerate(gone):
                    kept = source.read_row_group(group).filter(pa.array(~rows))
                    writer.write_table(pruned(kept))

    def pruned(table: pa.Table) -> pa.Table:
        if named > count:
            return table
        columns = [
            pa.chunked_array([_pruned(each, holds) for each in column.chunks], column.type)
            for column in table.columns
        ]
        return pa.Table.from_arrays(columns, schema=table.schema)

    return write


def _workbook(path: Path, holds: Holds) -> Write | None:
    """Return how to write a workbook without the rows; None if none matches."""
    with zipfile.ZipFile(path) as package:
        parts = {info: package.read(info) for info in package.infolist()}
        notes = read_properties(package)
    place = {info.filename: info for info in parts}
    # When it was created and last saved; other programs keep the property and save later.
    times = _TIMES.findall(parts[place[_CORE]]) if _CORE in place else []
    if not notes["sheets"] or len(times) != 2 or times[0] != times[1]:
        raise InvalidInputError(_FOREIGN)
    strings = _STRING.findall(parts[place[_STRINGS]]) if _STRINGS in place else []
    texts = [unescape(re.sub(rb"<[^>]*>", b"", each).decode()) for each in strings]
    held = {number for number, text in enumerate(texts) if holds(text)}
    used: set[int] = set()
    gone_rows = 0
    for number, name in enumerate(_SHEET.findall(parts[place[_BOOK]])):
        sheet = place[f"xl/worksheets/sheet{number + 1}.xml"]
        found = _TEXT_CELL.findall(parts[sheet])
        cells = [(letters, int(row), int(text)) for letters, row, text in found]
        own = {letters for letters, row, text in cells if row == 1 and _is_identifier(texts[text])}
        gone = {row for letters, row, text in cells if row > 1 and text in held and letters in own}
        used.update(text for _, row, text in cells if row not in gone)
        if gone:
            noted = notes["sheets"][unescape(name.decode())]
            noted["rows"] = int(_FILTERED.findall(parts[sheet])[0]) - 1 - len(gone)
            parts[sheet] = _without_rows(parts[sheet], sorted(gone))
            area = re.compile(rb'(localSheetId="%d"[^>]*>[^<]*\$)(\d+)' % number)
            parts[place[_BOOK]] = _shorten(area, len(gone), parts[place[_BOOK]])
            gone_rows += len(gone)
    if held and not gone_rows:
        return None
    if not held & used:
        for noted in notes["sheets"].values():
            models = [_without_category(model, holds) for model in models_in(noted).values()]
            noted.update(with_models(models, noted))
    numbers = iter(range(len(strings)))
    if strings:
        parts[place[_STRINGS]] = _STRING.sub(
            lambda text: b"<si><t/></si>" if next(numbers) in held - used else text[0],
            parts[place[_STRINGS]],
        )
    parts[place[PART]] = properties_part(parts[place[PART]], notes)

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w") as new:
            for info, content in parts.items():
                new.writestr(info, content)

    return write


def _without_rows(xml: bytes, gone: Sequence[int]) -> bytes:
    """Remove rows from a sheet, and move up those below."""

    def moved(row: re.Match[bytes]) -> bytes:
        number = int(row[1])
        above = bisect_left(gone, number)
        if number in gone[above : above + 1]:
            return b""
        return _PLACE.sub(rb'\g<1>%d"' % (number - above), row[0]) if above else row[0]

    return _shorten(_AREA, len(gone), _ROW.sub(moved, xml))


def _shorten(area: re.Pattern[bytes], rows: int, xml: bytes) -> bytes:
    return area.sub(lambda found: b"%b%d" % (found[1], int(found[2]) - rows), xml)
