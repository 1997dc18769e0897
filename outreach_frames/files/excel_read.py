"""Read a sheet of an Excel workbook as its cells."""

from __future__ import annotations

import datetime
import io
import re
import warnings
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames.common import terms
from outreach_frames.common.arguments import suggestion
from outreach_frames.common.text import shorten
from outreach_frames.common.warnings import warn
from outreach_frames.errors import ConfigurationError, InvalidInputError
from outreach_frames.files.csv_file import EXCEL_MAX_ROWS
from outreach_frames.files.excel import NOT_INSTALLED, is_plain_list, split
from outreach_frames.files.header import header_below_text, require_names
from outreach_frames.files.misfits import misfit, misfits_remark
from outreach_frames.files.provenance import MAX_METADATA_BYTES, PROPERTY
from outreach_frames.tables.from_text import convert_or_keep
from outreach_frames.tables.schema import empty_documented_columns, to_array

if TYPE_CHECKING:
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
# Workbooks usually grow tenfold when unpacked; the format allows a factor of 1,000.
_MAX_GROWTH: Final = 200
_SMALL_BYTES: Final = 1 << 20
MAX_CELLS: Final = 20_000_000
# A cell is a 64-bit float, and Excel keeps only 15 digits.
_ROUNDED_FROM: Final = 10.0**15
# openpyxl raises these errors for damaged workbooks.
_DAMAGE: Final = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, zipfile.BadZipFile, zlib.error),
)

# The number format that `write_excel` gives times with a zone.
_ZONE: Final = re.compile(r'ss "([^"]+)"')
_UNNAMED: Final = "A column has no name {}."
_ERRORS: Final = "Error cells were read as missing: {}."
_MISSING: Final = (
    "Formulas without a stored value were read as missing: {}. Open the workbook in Excel, save "
    "it, and read it again."
)
_ROUNDED: Final = "Excel rounds numbers of 16 and more digits, so ids may be wrong: {}."
_HIDDEN: Final = "Hidden or filtered rows were read too: {}."
_MERGED: Final = "Merged cells have their value only in the first cell: {}."
_ZEROS: Final = (
    "Cells whose number format shows leading zeros were read without these zeros: {}. Store such "
    "codes as text."
)
# The number format of codes such as 02494, which are numbers to Excel.
_STYLES: Final = "xl/styles.xml"
_LEADING_ZEROS: Final = re.compile(r"0{2,}")
# Excel's form of characters that XML cannot hold.
_ESCAPE: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")
_MARK: Final = b"x005F_"
SHARED_TEXTS: Final = "sharedStrings.xml"
# Maps each message above to the items that fill its braces.
_Remarks = defaultdict[str, list[str]]


class _Sheet(NamedTuple):
    """A sheet's rows of cells, and the zone of each column's times."""

    rows: list[tuple[Any, ...]]
    zones: dict[int, str]
    # The number of each error, such as #N/A.
    errors: dict[str, int]


def read_excel(
    path: Path, *, sheet_name: str | int | None = None, as_text: bool = False
) -> pd.DataFrame:
    """Read a sheet of a workbook; with `as_text`, read all columns as text."""
    with _opened(path) as (package, book):
        chosen = _choose(book, sheet_name, path)
        where = f"{path}, sheet {chosen.title!r},"
        # openpyxl has no public name for the sheet's XML.
        remarks = _check_rows(package.read(chosen._worksheet_path), _codes(package), where)
        if texts := _escaped_texts(package):
            chosen._shared_strings = texts
        with warnings.catch_warnings(action="ignore"):  # for example of dates out of range
            sheet = _read_sheet(chosen)
        is_ours = any(entry.name == PROPERTY for entry in book.custom_doc_props.props)
    remarks[_ERRORS] += [f"{number:,} {code}" for code, number in sheet.errors.items()]
    filled = [number for number, row in enumerate(sheet.rows, 1) if any(map(_is_filled, row))]
    if not filled:
        raise InvalidInputError(f"{where} is empty. Pass a sheet with a header row.")
    begin, end = filled[0], filled[-1]
    width = max(map(len, sheet.rows))
    rows = [(*row, *[None] * (width - len(row))) for row in sheet.rows[begin - 1 : end]]
    if not is_ours:
        _require_header(rows, begin, where)
    misfits: dict[str, str] = {}
    columns: dict[str, Any] = {}
    for name, cells, zone in _columns(rows, begin, sheet.zones, where):
        like = None if as_text else empty_documented_columns().get(name)
        array, rounded = _typed(cells)
        if not name:
            remarks[_UNNAMED].append(f"in row {begin} (the header)")
        if rounded and not (like is not None and pa.types.is_floating(like.type)):
            remarks[_ROUNDED].append(f"{rounded:,} in {name!r}")
        if as_text or like is not None:
            array = _zoned_texts(cells, array, zone)
        column, row = pa.chunked_array([array]), None
        if like is not None and not (is_ours and pa.types.is_nested(like.type)):
            column, row = convert_or_keep(column, like)
        elif like is not None and is_plain_list(like.type):
            column = pa.chunked_array([split(array.to_pylist(), like.type)])
        if row is not None:
            misfits[name] = misfit(name, array[row].as_py(), f"row {begin + 1 + row:,}")
        columns[name] = to_array(column, "numpy_nullable")
    lines = [sentence.format(", ".join(names)) for sentence, names in remarks.items() if names]
    if misfits:
        lines.append(misfits_remark(misfits))
    if lines:
        warn(f"{where[:-1]}: {' '.join(lines)}")
    return pd.DataFrame(columns, index=pd.RangeIndex(len(rows) - 1))


def _columns(
    rows: Sequence[tuple[Any, ...]], begin: int, zones: Mapping[int, str], where: str
) -> Iterator[tuple[str, list[Any], str]]:
    """Yield the name, the cells and the time zone of each column."""
    names: set[str] = set()
    for place, (title, *cells) in enumerate(zip(*rows, strict=True)):
        if title is None and not any(map(_is_filled, cells)):
            continue
        name = "" if title is None else _text(title)
        if name in names:
            problem = f"two columns named {name!r}" if name else "columns without a name"
            raise InvalidInputError(
                f"{where} has {problem} in row {begin} (the header). Give each column a unique "
                "name, or delete rows above the header."
            )
        names.add(name)
        yield name, [None if cell == "" else cell for cell in cells], zones.get(place, "UTC")


def _require_header(rows: Sequence[tuple[Any, ...]], begin: int, where: str) -> None:
    """Raise if the first row is text above the header, or a person."""
    row = header_below_text(list(enumerate(rows, begin)))
    if row is not None:
        raise InvalidInputError(
            f"{where} has text above the header, which seems to be row {row:,}. Delete the rows "
            "above it."
        )
    require_names(filter(_is_filled, rows[0]), where)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, Any]]:
    """Open a workbook; convert the errors of a damaged one."""
    try:
        import openpyxl  # noqa: PLC0415 - an optional extra
        from openpyxl.utils.exceptions import InvalidFileException  # noqa: PLC0415 - the same
    except ImportError as error:
        raise ConfigurationError(NOT_INSTALLED) from error
    content = path.read_bytes()
    if not content.startswith(b"PK") and _ENCRYPTED in content:
        raise InvalidInputError(
            f"{path} is encrypted. Remove the password in Excel, and save the workbook again."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            require_size(package, path)
            with warnings.catch_warnings(action="ignore"):  # of features that no table needs
                book = openpyxl.load_workbook(io.BytesIO(content), True, data_only=True)
            yield package, book
    except InvalidInputError:
        raise
    except (*_DAMAGE, InvalidFileException) as error:
        raise InvalidInputError(
            f"{path} is damaged or not an Excel workbook: {shorten(str(error))}. Get the file "
            "again, save it as .xlsx in Excel without chart sheets, or give a CSV file the ending "
            ".csv."
        ) from error


def require_size(package: zipfile.ZipFile, path: Path) -> None:
    """Reject a workbook that would fill the memory when unpacked."""
    for part in package.infolist():
        is_large = part.filename.startswith("docProps/") and part.file_size > MAX_METADATA_BYTES
        if is_large or part.file_size > max(_SMALL_BYTES, _MAX_GROWTH * part.compress_size):
            raise InvalidInputError(
                f"{path} was not read: its {part.compress_size:,} bytes of "
                f"{shorten(part.filename, 60)} would grow to {part.file_size:,}, which is unusual "
                "for a workbook. If you trust the source, save the workbook again in Excel."
            )


def _choose(book: Any, requested: str | int | None, path: Path) -> Any:
    """Return a sheet, by default the first visible one; warn of others."""
    sheets = book.worksheets
    hidden = [sheet for sheet in sheets if sheet.sheet_state != "visible"]
    shown = [f"{sheet.title!r}{' (hidden)' if sheet in hidden else ''}" for sheet in sheets]
    advice = f"Pass {terms.argument('sheet_name')} as one of: {', '.join(shown)}."
    if requested is None:
        chosen = next((sheet for sheet in sheets if sheet not in hidden), sheets[0])
        if len(sheets) > 1:
            warn(f"{path} has {len(sheets)} sheets; only {chosen.title!r} was read. {advice}")
        return chosen
    names = [sheet.title for sheet in sheets]
    with suppress(ValueError, IndexError):
        return sheets[requested if type(requested) is int else names.index(str(requested))]
    close = suggestion(str(requested), names)
    raise InvalidInputError(f"{path} has no sheet {requested!r}.{close} {advice}")


def _read_sheet(sheet: ReadOnlyWorksheet) -> _Sheet:
    """Read a sheet's cells; error cells become missing."""
    # The declared size may be wrong; without it, each row ends with its last cell.
    sheet.reset_dimensions()
    rows: list[tuple[Any, ...]] = []
    zones: dict[int, str] = {}
    errors: dict[str, int] = defaultdict(int)
    for cells in sheet.iter_rows():
        values = []
        for place, cell in enumerate(cells):
            value = cell.value
            if cell.data_type == "e":
                errors[str(value)] += 1
                value = None
            elif isinstance(value, datetime.datetime) and place not in zones:
                zone = _ZONE.search(cell.number_format)
                zones[place] = zone[1] if zone else "UTC"
            elif isinstance(value, str):
                value = unescape_characters(value)
            values.append(value)
        rows.append(tuple(values))
    return _Sheet(rows, zones, errors)


def _codes(package: zipfile.ZipFile) -> dict[str, int]:
    """Return the cell styles whose number format shows leading zeros, with its number of digits."""
    if _STYLES not in package.namelist():
        return {}
    styles = ET.fromstring(package.read(_STYLES))  # noqa: S314
    formats = {
        element.get("numFmtId"): len(code)
        for element in styles.iterfind("{*}numFmts/{*}numFmt")
        if _LEADING_ZEROS.fullmatch(code := element.get("formatCode", ""))
    }
    used = [element.get("numFmtId") for element in styles.iterfind("{*}cellXfs/{*}xf")]
    return {str(style): formats[kind] for style, kind in enumerate(used) if kind in formats}


def _check_rows(xml: bytes, codes: Mapping[str, int], where: str) -> _Remarks:
    """Find what openpyxl does not report, such as formulas without a value and hidden rows.

    Reject rows and cells that are not in order, which openpyxl would skip, and more cells than fit
    into memory, for example because of a far cell.
    """
    from openpyxl.utils import column_index_from_string  # noqa: PLC0415 - an optional extra

    remarked_cells: dict[str, list[str]] = defaultdict(list)
    hidden = last = width = 0
    for _, row in ET.iterparse(io.BytesIO(xml)):  # noqa: S314
        if row.tag.endswith("}mergeCell"):
            remarked_cells[_MERGED].append(row.get("ref", ""))
        if not row.tag.endswith("}row"):
            continue
        number = int(row.get("r", last + 1))
        places = [place for cell in row if (place := cell.get("r"))]
        columns = [column_index_from_string(place.rstrip("0123456789")) for place in places]
        if number <= last or columns != sorted(set(columns)):
            raise InvalidInputError(
                f"{where} was not read: the cells of row {number:,} are not in order. Open the "
                "workbook in Excel, save it, and read it again."
            )
        last, width = number, max(width, len(row), *columns[-1:])
        if last > EXCEL_MAX_ROWS or last * width > MAX_CELLS:
            raise InvalidInputError(
                f"{where} was not read: it has more than {MAX_CELLS:,} cells, blank cells "
                "included. Delete the rows and columns that do not belong to the table, or save it "
                "as CSV."
            )
        hidden += row.get("hidden") in {"1", "true"} and any(map(len, row))
        for cell in row:
            value = cell.findtext("{*}v", "")
            # The text of a formula may be empty.
            if not value and cell.find("{*}f") is not None and cell.get("t") != "str":
                remarked_cells[_MISSING].append(cell.get("r", ""))
            if codes and value.isdigit() and len(value) < codes.get(cell.get("s", ""), 0):
                remarked_cells[_ZEROS].append(cell.get("r", ""))
        row.clear()
    remarks = _Remarks(list)
    for sentence, places in remarked_cells.items():
        first = f" (first in {places[0]})" if places[0] else ""
        remarks[sentence] = [f"{len(places):,}{first}"]
    remarks[_HIDDEN] = [f"{hidden:,}"] if hidden else []
    return remarks


def _escaped_texts(package: zipfile.ZipFile) -> list[str]:
    """Read the texts that cells refer to by number, if openpyxl would drop a part of them.

    It drops `x005F_`, which marks that the text behind it is no escape.
    """
    parts = [name for name in package.namelist() if name.endswith(SHARED_TEXTS)]
    if not parts or _MARK not in (xml := package.read(parts[0])):
        return []
    return [
        "".join(
            text
            for part in unit
            if not part.tag.endswith("}rPh")  # a reading aid
            and (text := part.text if part.tag.endswith("}t") else part.findtext("{*}t"))
        )
        for unit in ET.fromstring(xml).iterfind("{*}si")  # noqa: S314
    ]


def unescape_characters(text: str) -> str:
    r"""Decode Excel's form of characters; half a surrogate pair becomes U+FFFD.

    >>> unescape_characters("a_x000A_b _x005F_x000A_ _xD83D__xDE00_")
    'a\nb _x000A_ 😀'
    """
    if "_x" not in text:
        return text
    characters = _ESCAPE.sub(lambda code: chr(int(code[1], 16)), text)
    return characters.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_filled(cell: object) -> bool:
    return cell is not None and cell != ""


def _typed(cells: list[Any]) -> tuple[pa.Array, int]:
    """Convert cells to an Arrow array of their type or of text; also count rounded integers."""
    kinds = set(map(type, cells)) - {type(None)}
    if kinds <= {str}:
        return pa.array(cells, pa.string()), 0
    if kinds <= {datetime.date, datetime.datetime}:
        return pa.array(np.array(cells, "datetime64[us]")), 0
    if kinds in ({bool}, {datetime.timedelta}):
        return pa.array(cells), 0
    try:
        numbers = np.array([cell for cell in cells if type(cell) in {int, float}], float)
    except OverflowError:
        return _texts(cells), 1
    is_whole = numbers == np.floor(numbers)
    rounded = int((is_whole & (np.abs(numbers) >= _ROUNDED_FROM)).sum())
    if not kinds <= {int, float} or (rounded and is_whole.all()):
        return _texts(cells), rounded
    array = pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    return array.cast(pa.int64()) if is_whole.all() else array, rounded


def _zoned_texts(cells: list[Any], array: pa.Array, zone: str) -> pa.Array:
    """Convert cells to text; times of another zone than UTC are converted to UTC."""
    if zone == "UTC" or not pa.types.is_timestamp(array.type):
        return _texts(cells)
    clock = pd.DatetimeIndex(array.to_pandas())
    is_first = np.full(len(clock), True)
    zoned = clock.tz_localize(zone, ambiguous=is_first, nonexistent="shift_forward")
    return pa.array(zoned.tz_convert("UTC")).cast(pa.string())


def _texts(cells: list[Any]) -> pa.Array:
    return pa.array([None if cell is None else _text(cell) for cell in cells], pa.string())


def _text(cell: Any) -> str:
    """Convert a cell to text: numbers with all digits, booleans as in Excel."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return f"{Decimal(repr(cell)):f}".removesuffix(".0")
    return str(cell).removesuffix(" 00:00:00") if isinstance(cell, datetime.datetime) else str(cell)
