"""Read a sheet of an Excel workbook, and warn of values that the cells do not keep exactly."""

from __future__ import annotations

import datetime
import functools
import io
import posixpath
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
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
from outreach_frames.files.excel import NOT_INSTALLED, is_plain_list, localize, split
from outreach_frames.files.excel_notes import read_properties
from outreach_frames.files.formulas import is_text
from outreach_frames.tables.schema import to_frame

_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
# Workbooks usually grow tenfold when unpacked; the format allows a factor of 1,000.
_MAX_GROWTH: Final = 200
_SMALL_BYTES: Final = 1 << 20
# python-calamine allocates memory for the rectangle around all cells, or aborts the process.
_SMALL_CELLS: Final = 50_000_000
# A cell is a 64-bit float, and Excel keeps only 15 digits.
_ROUNDED_FROM: Final = 10.0**15

_BOOK: Final = "xl/workbook.xml"
_LINKS: Final = "xl/_rels/workbook.xml.rels"
_CALCULATE: Final = re.compile(rb'\bfullCalcOnLoad="(?:1|true)"')
_ROW_END: Final = re.compile(rb"</(?:\w+:)?row>")
_PLACE: Final = re.compile(rb' r="([A-Z]+)(\d+)"')
# Byte patterns of formulas, errors and hidden rows; only sheets with them need slow XML parsing.
_MARKS: Final = (b"<f", b":f>", b":f ", b't="e"', b"t='e'", b"hidden=")
_STYLES: Final = "xl/styles.xml"
_ZEROS: Final = re.compile(rb'formatCode="(000+)"')
_UNNAMED: Final = "A column has no name {}."
_ERRORS: Final = "Error cells were read as missing: {}."
_MISSING: Final = (
    "Formulas without a stored value were read as missing: {}. Open the workbook in Excel, save "
    "it, and read it again."
)
_ESTIMATED: Final = (
    "A program other than Excel stored the values of formulas, perhaps uncalculated: "
    "{}. Open the workbook in Excel, save it, and read it again."
)
_ROUNDED: Final = "Excel rounds numbers of 16 and more digits, so ids may be wrong: {}."
_PADDED: Final = "The number format {} shows leading zeros that the cells do not contain."
_HIDDEN: Final = "Hidden or filtered rows were read too: {}."
_MERGED: Final = "Of merged cells, only the first cell has a value: {}."
_INEXACT: Final = "The workbook lost exact values of these columns: {}."
_CHANGED: Final = "Columns with values that do not fit the dtype were read as in the sheet: {}."
# Maps each message above to the items that fill its braces.
_Remarks = defaultdict[str, list[str]]


def read_excel(
    path: Path, *, sheet_name: str | int | None = None, as_text: bool = False
) -> pd.DataFrame:
    """Read a sheet of a workbook; with `as_text`, read columns without notes as text."""
    try:
        import python_calamine  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise ConfigurationError(NOT_INSTALLED) from error
    content = path.read_bytes()
    if not content.startswith(b"PK") and _ENCRYPTED in content:
        raise InvalidInputError(
            f"{path} is encrypted. Remove the password in Excel, and save the workbook again."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            _require_size(package, path)
            name, part = _choose(package, sheet_name, path)
            where = f"{path}, sheet {name!r},"
            remarks = _scan(package, part, where)
            sheet = python_calamine.load_workbook(io.BytesIO(content)).get_sheet_by_name(name)
            properties = read_properties(package)
            notes = properties["sheets"].get(name)
            models = models_in(notes or {})
    except InvalidInputError:
        raise
    except (
        python_calamine.CalamineError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        *NOTES_ERRORS,
    ) as error:
        raise InvalidInputError(
            f"{path} is damaged or not an Excel workbook: {shorten(str(error))}. Get the file "
            "again, save it as .xlsx in Excel, or give a CSV file the ending .csv."
        ) from error
    rows, top = sheet.to_python(), (sheet.start or (0,))[0]
    if notes is not None:
        rows += [[""] * sheet.width] * (notes.get("rows", 0) + 1 - len(rows))
    else:
        filled = [number for number, row in enumerate(rows) if row.count("") < len(row)]
        rows, top, notes = [rows[number] for number in filled], top + min(filled, default=0), {}
    if not rows:
        raise InvalidInputError(f"{where} is empty. Pass a sheet with a header row.")
    if merged := sum(last > top for _, (last, _) in sheet.merged_cell_ranges or ()):
        remarks[_MERGED].append(plural(merged, "range"))
    tz = properties.get("tz", "UTC")
    header = f"in row {top + 1} (the header)"
    columns = _named(rows, where, header, notes.get("filled", ()), remarks)
    for title, cells in columns.items():
        default = text_model(title) if as_text else documented_models().get(title)
        columns[title] = _restored(title, cells, models.get(title, default), tz, remarks)
    inexact = notes.get("inexact", {})
    remarks[_INEXACT] = [f"{title!r} ({change})" for title, change in inexact.items()]
    lines = [sentence.format(", ".join(names)) for sentence, names in remarks.items() if names]
    if lines:
        warn(f"{where[:-1]}: {' '.join(lines)}")
    frame = frame_of(columns, len(rows) - 1, notes)
    if inexact:
        frame.attrs["inexact"] = list(inexact)
    return frame


def _require_size(package: zipfile.ZipFile, path: Path) -> None:
    """Reject a workbook that would fill the memory when unpacked."""
    for part in package.infolist():
        if part.file_size > max(_SMALL_BYTES, _MAX_GROWTH * part.compress_size):
            raise InvalidInputError(
                f"{path} was not read: its {part.compress_size:,} bytes of "
                f"{shorten(part.filename, 60)} would grow to {part.file_size:,}, which is unusual "
                "for a workbook. If you trust the source, save the workbook again in Excel."
            )


def _choose(package: zipfile.ZipFile, requested: str | int | None, path: Path) -> tuple[str, str]:
    """Return a sheet's name and XML path, by default of the first visible sheet; warn of others."""
    # Parsing is safe, because expat limits entity expansion.
    links = {link.get("Id"): link for link in ET.fromstring(package.read(_LINKS))}  # noqa: S314
    parts, shown, visible = {}, [], []
    for sheet in ET.fromstring(package.read(_BOOK)).iterfind("{*}sheets/{*}sheet"):  # noqa: S314
        link = links[next((value for key, value in sheet.items() if key.endswith("}id")), "")]
        if link.attrib["Type"].endswith("/worksheet"):
            name = sheet.attrib["name"]
            parts[name] = posixpath.normpath(posixpath.join("/xl", link.attrib["Target"]))[1:]
            hidden = sheet.get("state", "visible") != "visible"
            shown.append(f"{name!r} (hidden)" if hidden else repr(name))
            visible += [] if hidden else [name]
    names = list(parts)
    advice = f"Pass sheet_name= as one of: {', '.join(shown)}."
    if requested is None:
        name = (visible or names)[0]
        if len(names) > 1:
            warn(f"{path} has {len(names)} sheets; only {name!r} was read. {advice}")
        return name, parts[name]
    with suppress(ValueError, IndexError):
        name = names[requested if type(requested) is int else names.index(str(requested))]
        return name, parts[name]
    close = suggestion(str(requested), names)
    raise InvalidInputError(f"{path} has no sheet {requested!r}.{close} {advice}")


def _scan(package: zipfile.ZipFile, part: str, where: str) -> _Remarks:
    """Find formulas, errors and hidden rows of a sheet; reject cells that are far apart."""
    xml = package.read(part)
    letters, last = "", 0
    for end in _ROW_END.finditer(xml):
        if found := _PLACE.match(xml, max(0, xml.rfind(b' r="', 0, end.start()))):
            letters = max(letters, found[1].decode(), key=lambda name: (len(name), name))
            last = max(last, int(found[2]))
    width = functools.reduce(lambda width, letter: 26 * width + ord(letter) - 64, letters, 0)
    if last * width > max(_SMALL_CELLS, _MAX_GROWTH * xml.count(b' r="')):
        raise InvalidInputError(
            f"{where} was not read: its cells extend to {letters}{last}, and the blank "
            "cells between would fill the memory. Delete the rows and columns that do not "
            "belong to the table."
        )
    remarks = _Remarks(list)
    if _STYLES in package.namelist():
        remarks[_PADDED] = [code.decode() for code in _ZEROS.findall(package.read(_STYLES))]
    if not any(mark in xml for mark in _MARKS):
        return remarks
    errors: defaultdict[str, list[str]] = defaultdict(list)
    missing: list[str] = []
    formulas = hidden = 0
    for _, row in ET.iterparse(io.BytesIO(xml)):  # noqa: S314
        if not row.tag.endswith("}row"):
            continue
        hidden += row.get("hidden") in {"1", "true"} and any(map(len, row))
        for cell in row:
            place, value = cell.get("r", ""), cell.findtext("{*}v")
            if cell.get("t") == "e":
                errors[value or ""].append(place)
            elif cell.find("{*}f") is not None:
                formulas += 1
                # The text of a formula may be empty.
                missing += [] if value or cell.get("t") == "str" else [place]
        row.clear()
    remarks[_ERRORS] = [_counted(f" {code}", places) for code, places in errors.items()]
    remarks[_MISSING] = [_counted("", missing)] if missing else []
    if formulas > len(missing) and _CALCULATE.search(package.read(_BOOK)):
        remarks[_ESTIMATED] = [f"{formulas - len(missing):,}"]
    remarks[_HIDDEN] = [f"{hidden:,}"] if hidden else []
    return remarks


def _counted(what: str, places: Sequence[str]) -> str:
    return f"{len(places):,}{what}{f' (first in {places[0]})' if places[0] else ''}"


def _named(
    rows: list[list[Any]], where: str, header: str, filled: Sequence[str], remarks: _Remarks
) -> dict[str, Any]:
    """Return cells by column name; drop columns with neither name nor cells."""
    columns: dict[str, list[Any]] = {}
    for column in zip(*rows, strict=True):
        name = _text(column[0])
        if column.count("") == len(column):
            continue
        if name in columns:
            problem = f"two columns named {name!r}" if name else "columns without a name"
            raise InvalidInputError(
                f"{where} has {problem} {header}. Give each column a unique name, or delete rows "
                "above the header."
            )
        if not name:
            remarks[_UNNAMED].append(header)
        blank = "" if name in filled else None
        columns[name] = [blank if cell == "" else cell for cell in column[1:]]
    return columns


def _restored(name: str, cells: list[Any], model: Model | None, tz: str, remarks: _Remarks) -> Any:
    """Convert cells to the dtype of the model; without a model, infer the dtype from the cells."""
    kind = pa.string() if model is None else model.schema.field(0).type
    array, rounded = _typed(cells)
    if rounded and not pa.types.is_floating(kind):
        remarks[_ROUNDED].append(f"{rounded:,} in {name!r}")
    if model is not None and (is_plain_list(kind) or not pa.types.is_nested(kind)):
        try:
            return _convert(cells, array, model, tz)
        except (ValueError, ArithmeticError, pa.ArrowException):
            remarks[_CHANGED].append(f"{name!r} ({dtype_name(model)})")
    return to_frame(pa.table({"": array}), "numpy_nullable")[""].array


def _convert(cells: list[Any], array: pa.Array, model: Model, tz: str) -> Any:
    stored, kind = stored_type(model), model.schema.field(0).type
    if is_text(stored) and not is_text(array.type):
        array = _texts(cells)
    if pa.types.is_nested(kind):
        lists = split(array.to_pylist(), kind)
        return pd.arrays.ArrowExtensionArray(pa.chunked_array([lists]))
    if pa.types.is_duration(kind):
        array = array.cast(kind)
    elif pa.types.is_timestamp(stored) and stored.tz:
        with suppress(pa.ArrowInvalid):  # text with a UTC offset
            return decode(pa.chunked_array([array.cast(pa.string()).cast(stored)]), model)
        array = pa.array(localize(array.cast(pa.timestamp("us")).to_pandas(), tz))
    return decode(pa.chunked_array([array.cast(stored)]), model)


def _typed(cells: list[Any]) -> tuple[pa.Array, int]:
    """Convert cells to an Arrow array of their type or of text; also count rounded integers."""
    kinds = set(map(type, cells)) - {type(None)}
    if kinds <= {str}:
        return pa.array(cells, pa.string()), 0
    if kinds <= {datetime.date, datetime.datetime}:
        return pa.array(np.array(cells, "datetime64[us]")), 0
    if len(kinds) == 1 and float not in kinds:
        return pa.array(cells), 0
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
    """Convert a cell to text: numbers with all digits, booleans as in Excel."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return f"{Decimal(repr(cell)):f}".removesuffix(".0")
    return cell.isoformat(" ") if isinstance(cell, datetime.datetime) else str(cell)
