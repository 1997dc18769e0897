"""Read a sheet of an Excel workbook, and warn of what its cells do not hold."""

from __future__ import annotations

import datetime
import io
import posixpath
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames.common.arguments import suggestion
from outreach_frames.common.text import plural, shorten
from outreach_frames.common.warnings import warn
from outreach_frames.errors import ConfigurationError, InvalidInputError
from outreach_frames.files.csv_dtypes import (
    Model,
    decode,
    documented_models,
    dtype_name,
    stored_type,
    text_model,
)
from outreach_frames.files.csv_file import frame_of
from outreach_frames.files.csv_notes import NOTES_ERRORS, models_in
from outreach_frames.files.excel import is_plain_list, localize, split
from outreach_frames.files.excel_notes import read_properties
from outreach_frames.files.formulas import is_text
from outreach_frames.tables.schema import to_frame

_COMPOUND_FILE: Final = bytes.fromhex("d0cf11e0a1b11ae1")
_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
# XML of a workbook grows tenfold when it is unpacked; the format allows a thousandfold.
_MAX_GROWTH: Final = 200
_SMALL_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 4 << 20
# A cell is a 64-bit float, of which Excel keeps 15 digits.
_ROUNDED_FROM: Final = 10.0**15

_BOOK: Final = "xl/workbook.xml"
_LINKS: Final = "xl/_rels/workbook.xml.rels"
_CALCULATE: Final = re.compile(rb'\bfullCalcOnLoad="(?:1|true)"')
_PREFIX: Final = re.compile(rb"<(\w+:)worksheet\b")
_VALUE: Final = re.compile(rb"<(?:\w+:)?(?:v|is)>")
_ERROR: Final = re.compile(
    rb'<c\b([^>]*\bt="e"[^>]*)>(?:\s*<f\b.*?(?:/>|</f>))?\s*<v>([^<]*)', re.S
)
_FORMULA: Final = re.compile(
    rb"<c\b([^>]*)>\s*<f\b(?:[^>]*/>|[^>]*>[^<]*</f>)\s*(?:<v>([^<]*)</v>)?"
)
_PLACE: Final = re.compile(rb'\br="([A-Z]+\d+)"')
_HIDDEN_ROW: Final = re.compile(rb'<row\b[^>]*\bhidden="(?:1|true)"[^>]*>\s*<c\b')
_FILTERED: Final = re.compile(rb'<autoFilter ref="\$?[A-Z]+\$?\d+:\$?[A-Z]+\$?(\d+)"')
_TYPES: Final[Sequence[tuple[set[type], pa.DataType]]] = (
    ({str}, pa.string()),
    ({bool}, pa.bool_()),
    ({datetime.date, datetime.datetime}, pa.timestamp("us")),
    ({datetime.time}, pa.time64("us")),
    ({datetime.timedelta}, pa.duration("us")),
)
_UNNAMED: Final = "A column has no name in the header, {}."
_ERRORS: Final = "Error cells were read as missing: {}."
_MISSING: Final = (
    "Formulas without a stored value were read as missing: {}. Open the workbook in Excel, save "
    "it, and read it again."
)
_ESTIMATED: Final = (
    "Another program than Excel stored the values of formulas, and may not have calculated them: "
    "{}. Open the workbook in Excel, save it, and read it again."
)
_ROUNDED: Final = "Excel rounds numbers of 16 and more digits, so that ids are wrong: {}."
_HIDDEN: Final = "Hidden or filtered rows were read too: {}."
_MERGED: Final = "Only the first cell of merged cells has their value: {}."
_RECORDS: Final = "Records are text, as on the sheet: {}. CSV and Parquet files keep them."
_INEXACT: Final = "The sheet does not hold all that was written to it: {}."
_CHANGED: Final = "Values do not fit the dtype that the column was written with: {}."
# By sentence, what it names.
_Said = defaultdict[str, list[str]]


def read_excel(
    path: Path, *, sheet_name: str | int | None = None, as_text: bool = False
) -> pd.DataFrame:
    """Read a sheet of a workbook; with `as_text`, columns without notes are text."""
    try:
        import python_calamine  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise ConfigurationError(
            "Reading Excel workbooks needs an optional library. Install it: "
            'pip install "outreach-frames[excel]"'
        ) from error
    content = path.read_bytes()
    _require_workbook(content, path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            _require_size(package, path)
            book = python_calamine.load_workbook(io.BytesIO(content))
            name, part = _choose(package, book.sheets_metadata, sheet_name, path)
            said, last_row = _scan(package, part)
            sheet = book.get_sheet_by_name(name)
            properties = read_properties(package)
            notes = properties["sheets"].get(name)
            models = models_in(notes or {})
    except InvalidInputError:
        raise
    except (python_calamine.CalamineError, zipfile.BadZipFile, zlib.error, *NOTES_ERRORS) as error:
        raise InvalidInputError(
            f"{path} is damaged, or not an Excel workbook: {shorten(str(error))}. Get the file "
            "again, or save it again in Excel."
        ) from error
    rows, top = sheet.to_python(), (sheet.start or (0,))[0]
    if notes is not None:
        rows += [[""] * sheet.width] * (last_row - len(rows))
    else:
        filled = [number for number, row in enumerate(rows) if row.count("") < len(row)]
        rows, top, notes = [rows[number] for number in filled], top + min(filled, default=0), {}
    where = f"{path}, sheet {name!r},"
    if not rows and "rows" not in notes:
        raise InvalidInputError(f"{where} is empty. Pass a sheet with a header row.")
    if merged := sum(last > top for _, (last, _) in sheet.merged_cell_ranges or ()):
        said[_MERGED].append(plural(merged, "range"))
    reader = _Columns(where, properties.get("tz", "UTC"), said)
    columns = reader.named(rows, f"row {top + 1}", notes.get("filled", ()))
    for title, cells in columns.items():
        model = text_model(title) if as_text else documented_models().get(title)
        columns[title] = reader.restored(title, cells, models.get(title), model)
    for title, change in notes.get("inexact", {}).items():
        said[_INEXACT].append(f"{title!r} ({change})")
    if said:
        lines = [sentence.format(", ".join(names)) for sentence, names in said.items()]
        warn(f"{where[:-1]}: {' '.join(lines)}")
    return frame_of(columns, max(len(rows) - 1, notes.get("rows", 0)), notes)


def _require_workbook(content: bytes, path: Path) -> None:
    if content.startswith(_COMPOUND_FILE) and _ENCRYPTED in content:
        raise InvalidInputError(
            f"{path} is encrypted. Remove its password in Excel, and save it again."
        )
    if not content.startswith(b"PK"):
        old = content.startswith(_COMPOUND_FILE)
        problem = (
            "has the old format .xls" if old else "has other content" if content else "is empty"
        )
        raise InvalidInputError(
            f"{path} is not an Excel workbook: it {problem}. Save it as .xlsx in Excel, or give a "
            "CSV file the ending .csv."
        )


def _require_size(package: zipfile.ZipFile, path: Path) -> None:
    """Reject a file that would fill the memory."""
    for part in package.infolist():
        if part.file_size > max(_SMALL_BYTES, _MAX_GROWTH * part.compress_size):
            raise InvalidInputError(
                f"{path} was not read: its {part.compress_size:,} bytes of "
                f"{shorten(part.filename, 60)} would grow to {part.file_size:,}, as in no usual "
                "workbook. If you trust its source, save it again in Excel."
            )


def _choose(
    package: zipfile.ZipFile, metadata: Sequence[Any], wanted: str | int | None, path: Path
) -> tuple[str, str]:
    """Return the name and the part of a sheet: by default the first, with a warning of others."""
    links = ET.fromstring(package.read(_LINKS))  # noqa: S314 - Expat limits what entities grow to
    targets = {link.get("Id"): str(link.get("Target")) for link in links}
    listed = ET.fromstring(package.read(_BOOK)).findall("{*}sheets/{*}sheet")  # noqa: S314
    parts, visible = {}, []
    for sheet, entry in zip(metadata, listed, strict=True):
        if sheet.typ == type(sheet.typ).WorkSheet:
            link = next(value for key, value in entry.items() if key.endswith("}id"))
            parts[sheet.name] = posixpath.normpath(posixpath.join("/xl", targets[link]))[1:]
            visible += [sheet.name] * (sheet.visible == type(sheet.visible).Visible)
    names = list(parts)
    shown = ", ".join(repr(name) if name in visible else f"{name!r} (hidden)" for name in names)
    advice = f"Pass sheet_name= as one of: {shown}."
    if wanted is not None:
        with suppress(ValueError, IndexError):
            name = names[wanted if type(wanted) is int else names.index(str(wanted))]
            return name, parts[name]
        close = suggestion(str(wanted), names)
        raise InvalidInputError(f"{path} has no sheet {wanted!r}.{close} {advice}")
    first = (visible or names)[0]
    filled = [name for name in names if any(map(_VALUE.search, _blocks(package, parts[name])))]
    if first not in filled:
        advice = advice if filled else "So are all others. Pass another workbook."
        raise InvalidInputError(f"{path}, sheet {first!r}, the first one, is empty. {advice}")
    if len(filled) > 1:
        warn(f"{path}: {first!r} was read, the first of {len(filled)} sheets with data. {advice}")
    return first, parts[first]


def _blocks(package: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    """Yield a sheet's XML in blocks of whole rows, without a namespace prefix."""
    rest = prefix = b""
    with package.open(part) as file:
        while block := file.read(_BLOCK_BYTES):
            if found := _PREFIX.search(block, 0, 1000):
                prefix = found[1]
            rows, end, rest = (rest + block).rpartition(b"row>")
            rows += end
            yield re.sub(rb"(</?)" + prefix, rb"\1", rows) if prefix else rows
    yield rest


def _scan(package: zipfile.ZipFile, part: str) -> tuple[_Said, int]:
    """Return what a sheet's XML shows beside its values, and the last row of its filter."""
    said = _Said(list)
    errors: defaultdict[str, list[bytes]] = defaultdict(list)
    missing: list[bytes] = []
    formulas = hidden = last_row = 0
    for rows in _blocks(package, part):
        for cell, code in _ERROR.findall(rows) if b't="e"' in rows else ():
            errors[code.decode()].append(cell)
        for cell, value in _FORMULA.findall(rows) if b"<f" in rows else ():
            formulas += 1
            # A formula's text may have no characters.
            if not value and b't="str"' not in cell:
                missing.append(cell)
        hidden += len(_HIDDEN_ROW.findall(rows)) if b"hidden=" in rows else 0
        if found := _FILTERED.search(rows):
            last_row = int(found[1])
    for code, cells in errors.items():
        said[_ERRORS].append(_counted(f" {code}", cells))
    if missing:
        said[_MISSING].append(_counted("", missing))
    elif formulas and _CALCULATE.search(package.read(_BOOK)):
        said[_ESTIMATED].append(f"{formulas:,}")
    if hidden:
        said[_HIDDEN].append(f"{hidden:,}")
    return said, last_row


def _counted(what: str, cells: Sequence[bytes]) -> str:
    place = _PLACE.search(cells[0])
    return f"{len(cells):,}{what}{f' (first in {place[1].decode()})' if place else ''}"


class _Columns(NamedTuple):
    """Converts the columns of a sheet, and collects what to say about them."""

    where: str
    tz: str
    said: _Said

    def named(
        self, rows: list[list[Any]], place: str, filled: Sequence[str]
    ) -> dict[str, list[Any]]:
        """Return cells by column name, without columns that have neither name nor cells."""
        columns: dict[str, list[Any]] = {}
        for column in zip(*rows, strict=True):
            name = _text(column[0])
            if column.count("") == len(column):
                continue
            if name in columns:
                problem = f"two columns named {name!r}" if name else "columns without a name"
                raise InvalidInputError(
                    f"{self.where} has {problem} in {place}, its header. Give each column a name, "
                    "or delete the rows above the header."
                )
            if not name:
                self.said[_UNNAMED].append(place)
            blank = "" if name in filled else None
            columns[name] = [blank if cell == "" else cell for cell in column[1:]]
        return columns

    def restored(
        self, name: str, cells: list[Any], noted: Model | None, default: Model | None
    ) -> Any:
        """Convert cells to a model's dtype; without a model, to that of their values."""
        model = default if noted is None else noted
        kind = pa.string() if model is None else model.schema.field(0).type
        array, rounded = _typed(cells)
        if rounded and not pa.types.is_floating(kind):
            self.said[_ROUNDED].append(f"{rounded:,} in {name!r}")
        if pa.types.is_nested(kind) and not is_plain_list(kind):
            self.said[_RECORDS].append(repr(name))
        elif model is not None:
            try:
                return self._convert(cells, array, model, kind)
            except (ValueError, ArithmeticError, pa.ArrowException) as error:
                if noted is None:
                    raise InvalidInputError(
                        f"{self.where} has a column {name!r} that cannot be read as "
                        f"{dtype_name(model)}: {shorten(str(error))}. Correct it."
                    ) from error
                self.said[_CHANGED].append(repr(name))
        return to_frame(pa.table({"": array}), "numpy_nullable")[""].array

    def _convert(self, cells: list[Any], array: pa.Array, model: Model, kind: pa.DataType) -> Any:
        stored = stored_type(model)
        if is_text(stored) and not is_text(array.type):
            array = _texts(cells)
        if pa.types.is_nested(kind):
            lists = split(array.to_pylist(), kind)
            return pd.arrays.ArrowExtensionArray(pa.chunked_array([lists]))
        if pa.types.is_duration(kind):
            array = array.cast(kind)
        elif pa.types.is_timestamp(stored) and stored.tz:
            with suppress(pa.ArrowInvalid):  # a text with its zone
                return decode(pa.chunked_array([array.cast(pa.string()).cast(stored)]), model)
            array = pa.array(localize(array.cast(pa.timestamp("us")).to_pandas(), self.tz))
        return decode(pa.chunked_array([array.cast(stored)]), model)


def _typed(cells: list[Any]) -> tuple[pa.Array, int]:
    """Return cells in the Arrow type of their values, or as text, and count rounded integers."""
    kinds = set(map(type, cells)) - {type(None)}
    for types, kind in _TYPES:
        if kinds <= types:
            # Arrow takes no dates among times.
            known = np.array(cells, "datetime64[us]") if datetime.date in kinds else cells
            return pa.array(known, kind), 0
    numbers = [cell for cell in cells if type(cell) is float] if len(kinds) > 1 else cells
    array = pa.array(numbers, pa.float64())
    values = array.drop_null().to_numpy()
    is_whole = values == np.floor(values)
    rounded = int((is_whole & (np.abs(values) >= _ROUNDED_FROM)).sum())
    if kinds != {float} or (rounded and is_whole.all()):
        return _texts(cells), rounded
    return array.cast(pa.int64()) if is_whole.all() else array, rounded


def _texts(cells: list[Any]) -> pa.Array:
    texts = [None if cell is None else cell if type(cell) is str else _text(cell) for cell in cells]
    return pa.array(texts, pa.string())


def _text(cell: Any) -> str:
    """Return a cell as text: a number with all its digits, a boolean as Excel shows it."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return f"{Decimal(repr(cell)):f}".removesuffix(".0")
    return cell.isoformat(" ") if isinstance(cell, datetime.datetime) else str(cell)
