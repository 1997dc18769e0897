"""Search all text of a CSV file, Parquet file or workbook, without changing the file.

Tables are read in pieces. A piece is searched as one text, which is faster than cell by cell.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Final
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_notes import (
    METADATA_SUFFIX,
    noted_columns,
    notes_path,
    read_notes,
)
from outreach_frames.files.csv_text import wide_encoding
from outreach_frames.files.excel_read import SHARED_TEXTS, require_size, unescape_characters
from outreach_frames.tables.schema import is_text

Holds = Callable[[str], bool]

PARQUET: Final = frozenset({".parquet", ".pq"})
WORKBOOKS: Final = frozenset({".xlsx", ".xlsm"})
# Killed writers leave .tmp files of any format.
_TEXT: Final = frozenset({".csv", ".tsv", ".tmp"})
_MAX_LINE: Final = 1 << 24
_ROWS_AT_ONCE: Final = 1_000
# Parts of a workbook that have no text of their own.
_PICTURES: Final = (".bmp", ".emf", ".gif", ".jpeg", ".jpg", ".png", ".svg", ".tiff", ".wmf")


def search_table(path: Path, holds: Holds) -> Iterator[bool] | None:
    """Return the hits of `holds` in a table; return None if the file is not a table.

    A hit is True for a row, which is a line of a CSV file, and False for another place, such as a
    comment or metadata.
    """
    suffix = path.suffix.lower()
    with path.open("rb") as file:
        start = file.read(4)
    is_unnamed = suffix in {".tmp", ""}
    if suffix in PARQUET or (is_unnamed and start == b"PAR1"):
        return _search_parquet(path, holds)
    if suffix in WORKBOOKS or (is_unnamed and start == b"PK\3\4"):
        return _search_workbook(path, holds)
    if METADATA_SUFFIX not in path.name and (suffix in _TEXT or notes_path(path).is_file()):
        return _search_csv(path, holds, wide_encoding(start) or "utf-8-sig")
    return None


def row_texts(batch: pa.RecordBatch) -> list[str]:
    """Return the text of each row's cells, in lines."""
    columns = [texts for column in batch.columns if (texts := _texts(column)) is not None]
    if not columns:
        return [""] * len(batch)
    joined = pc.binary_join_element_wise(
        *columns, pa.scalar("\n", pa.large_string()), null_handling="replace"
    )
    return joined.to_pylist()  # type: ignore[no-any-return]


def _texts(column: pa.Array) -> pa.Array | None:
    """Return a column's cells as text; return None if the column's type cannot hold text."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_text(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_primitive(column.type):
        return None
    return pa.array(("\n".join(_strings(cell)) for cell in column.to_pylist()), pa.large_string())


def _strings(value: object) -> Iterator[str]:
    """Yield the texts in a cell, also those in lists and structs."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, dict):
        yield from _strings([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _strings(member)


def _search_csv(path: Path, holds: Holds, encoding: str) -> Iterator[bool]:
    with path.open(encoding=encoding) as file:
        for line in iter(partial(file.readline, _MAX_LINE), ""):
            if len(line) == _MAX_LINE:
                raise InvalidInputError(f"a line has more than {_MAX_LINE:,} characters")
            if holds(line.replace('""', '"')):
                yield True
    if notes_path(path).is_file():
        metadata = read_notes(path)
        texts = [notes_path(path).read_bytes().decode(errors="replace")]
        texts += _categories(noted_columns(metadata).columns)
        yield from _elsewhere(texts, holds)


def _search_parquet(path: Path, holds: Holds) -> Iterator[bool]:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE):
            yield from (True for text in row_texts(batch) if holds(text))
            yield from _elsewhere(_categories(batch.columns), holds)
        schema = file.schema_arrow
    yield from _elsewhere(schema.names, holds)
    for notes in (schema.metadata, *(field.metadata for field in schema)):
        texts = [text.decode(errors="replace") for text in (notes or {}).values()]
        yield from _elsewhere(texts, holds)


def _categories(columns: list[pa.Array]) -> list[str]:
    """Return the categories of columns, also unused ones."""
    dictionaries = [column.dictionary for column in columns if pa.types.is_dictionary(column.type)]
    return [str(value) for values in dictionaries for value in values.to_pylist()]


def _search_workbook(path: Path, holds: Holds) -> Iterator[bool]:
    with zipfile.ZipFile(path) as package:
        names = package.namelist()
        require_size(package, path)
        # Cells refer to the texts of this part by number.
        shared: set[str] = set()
        for name in (name for name in names if name.endswith(SHARED_TEXTS)):
            with package.open(name) as file:
                texts = (_text(unit) for unit in _units(file))
                shared |= {str(number) for number, text in enumerate(texts) if holds(text)}
        for name in names:
            if name.endswith((".xml", ".rels", ".vml")) and not name.endswith(SHARED_TEXTS):
                with package.open(name) as file:
                    yield from _search_part(file, holds, shared)
    unread = [
        name
        for name in names
        if not name.lower().endswith(("/", ".xml", ".rels", ".vml", *_PICTURES))
        and "printerSettings" not in name
    ]
    if unread:
        parts = plural(len(unread), "part")
        raise InvalidInputError(f"{parts} of the workbook cannot be searched, such as {unread[0]}")


def _search_part(file: IO[bytes], holds: Holds, shared: set[str]) -> Iterator[bool]:
    for unit in _units(file):
        if _name(unit) == "row":
            if any(_holds_cell(cell, holds, shared) for cell in unit):
                yield True
            continue
        values = [value for element in unit.iter() for value in element.attrib.values()]
        yield from _elsewhere(["\n".join([_text(unit), *values])], holds)


def _holds_cell(cell: ET.Element, holds: Holds, shared: set[str]) -> bool:
    if cell.get("t") == "s":
        return cell.findtext("{*}v", "").strip() in shared
    return holds(_text(cell))


def _units(file: IO[bytes]) -> Iterator[ET.Element]:
    """Yield the rows of a sheet, and the elements below the root of other XML, one at a time."""
    parents: list[ET.Element] = []
    for event, element in ET.iterparse(file, ("start", "end")):  # noqa: S314 - within bounds
        if event == "start":
            parents.append(element)
            continue
        parents.pop()
        if len(parents) == 1 or (_name(element) == "row" and parents):
            yield element
            parents[-1].clear()


def _text(element: ET.Element) -> str:
    """Return an element's text, in lines; formatted runs of one text are joined to one line."""
    texts = [element.text or ""]
    for child in element:
        if text := _text(child):
            end = "" if _name(child) in {"r", "t"} else "\n"
            texts += [end, text, end]
    return unescape_characters("".join(texts))


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _elsewhere(texts: list[str], holds: Holds) -> Iterator[bool]:
    if any(map(holds, texts)):
        yield False
