"""Write frames to Excel workbooks that are easy to read."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.analysis.interface_columns import table_of
from outreach_frames.analysis.unlist import as_lists, join_lists
from outreach_frames.common.atomic_files import check_suffix, expanded, replace_file
from outreach_frames.common.progress import progress_bar, set_step
from outreach_frames.common.text import unique_name
from outreach_frames.common.warnings import warn
from outreach_frames.errors import ConfigurationError, InvalidInputError
from outreach_frames.files.csv_file import EXCEL_MAX_CELL, EXCEL_MAX_ROWS, has_labels
from outreach_frames.files.provenance import PROPERTY, package_version
from outreach_frames.tables.columns import text_names
from outreach_frames.tables.schema import is_text
from outreach_frames.tables.value_text import any_text, python_values

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.worksheet import Worksheet

EXCEL_MAX_COLUMNS: Final = 16_384
NOT_INSTALLED: Final = (
    'Excel workbooks need extra packages. Install them: pip install "outreach-frames[excel]"'
)
_MAX_SHEET_NAME: Final = 31
_NOT_IN_SHEET_NAMES: Final = str.maketrans(dict.fromkeys("[]:*?/\\", "_"))
LIST_SEPARATOR: Final = "; "

# A cell is a 64-bit float, which is exact to 15 digits, so longer numbers are written as text.
_EXACT_DIGITS: Final = 15
_EXACT_INTEGERS: Final = 10**_EXACT_DIGITS
_NUMBERS: Final = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_null,
)
_TIMES: Final = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_duration)
# Excel's day zero. Excel treats 1900 as a leap year, so dates before March 1900 would be wrong.
_DAY_ZERO: Final = np.datetime64("1899-12-30", "us")
_FIRST_DAY: Final = np.datetime64("1900-03-01", "us")
_LAST_DAY: Final = np.datetime64("9999-12-31T23:59:59", "us")
_DAY: Final = np.timedelta64(1, "D")
_DATE: Final = "yyyy-mm-dd"
_TIME: Final = "yyyy-mm-dd hh:mm:ss"
_DURATION: Final = "[h]:mm:ss"

_CUT: Final = (
    f"Excel cells hold {EXCEL_MAX_CELL:,} characters; longer texts were cut: {{}}. Write CSV or "
    "Parquet to keep the whole texts."
)
_WIDTH_ROWS: Final = 500
_MIN_WIDTH, _MAX_WIDTH = 8, 60
# Extra width for the filter arrow.
_ARROW_WIDTH: Final = 3


def write_excel(
    frame: pd.DataFrame,
    path: str | Path,
    *,
    index: bool | None = None,
    tz: str = "UTC",
    progress: bool | None = None,
) -> Path:
    """Write a frame to an Excel workbook that is easy to read.

    Text stays text, even if it begins with ``=`` or looks like a number or a link. Dates and times
    are Excel dates. Numbers of more than 15 digits, and values of columns with several types, are
    text. Control characters are written in Excel's form, such as ``_x000B_``. The header is frozen
    and has filters. The sheet is named after its content, such as people, or else after the file.

    `read_prospects` reads the cells back: documented columns have their dtypes, other columns the
    type of their cells, and an index is a column. CSV and Parquet keep all values, dtypes and the
    `.attrs`; a workbook has no `.attrs`.

    Parameters
    ----------
    frame : DataFrame
        Any frame; the function does not change it. Lists are joined to text, as in
        `df.outreach.unlist`.
    path : str or Path
        The path of the ``.xlsx`` file. An existing file is replaced.
    index : bool, optional
        Whether to write the index before the columns; by default, an index of row numbers from 0 is
        omitted.
    tz : str
        The time zone, such as "Europe/Berlin", for times with a zone. Such times are converted,
        because Excel's times have no zone; the cells show the zone's name. Times in the hour that a
        clock repeats in autumn are read back as the first of two. Times without a zone are not
        converted.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, for long runs.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    InvalidInputError
        The frame has more rows or columns than a sheet holds (1,048,575 and 16,384) or a time that
        Excel cannot show, the time zone does not exist, or the file cannot be written.
    ConfigurationError
        The optional library XlsxWriter is not installed.

    Warns
    -----
    OutreachWarning
        Cells with more than 32,767 characters were cut.

    Examples
    --------
    >>> import tempfile
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=5)
    >>> people.outreach.to_excel(Path(tempfile.mkdtemp()) / "people.xlsx").name
    'people.xlsx'
    """
    name = table_of(frame.columns) or expanded(path).stem
    indexed = {} if index is None else {name: index}
    return write_sheets({name: frame}, path, index=indexed, tz=tz, progress=progress)


def write_sheets(
    sheets: Mapping[str, pd.DataFrame],
    path: str | Path,
    *,
    index: Mapping[str, bool] = MappingProxyType({}),
    tz: str = "UTC",
    progress: bool | None = None,
) -> Path:
    """Write each frame to a sheet; `index` decides per sheet whether the index is written.

    >>> import tempfile
    >>> frames = {"found": pd.DataFrame({"name": ["Ada"]}), "summary": pd.DataFrame({"rows": [1]})}
    >>> write_sheets(frames, Path(tempfile.mkdtemp()) / "people.xlsx").name
    'people.xlsx'
    """
    check_suffix(path, (".xlsx",), "an Excel workbook")
    _check_zone(tz)
    for frame in sheets.values():
        _check_size(frame)
    try:
        import xlsxwriter  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise ConfigurationError(NOT_INSTALLED) from error
    cut: list[str] = []
    width = sum(frame.shape[1] + frame.index.nlevels for frame in sheets.values())
    titles = _sheet_names(sheets)

    def write(file: BinaryIO) -> None:
        # Write in memory, because a crash would leave personal data in temporary files.
        options = {"in_memory": True, "default_format_properties": {"valign": "top"}}
        content = BytesIO()  # XlsxWriter would raise its own error if the disk is full
        with xlsxwriter.Workbook(content, options) as book:
            writer = _Writer(book, tz, cut, bar)
            for title, (name, frame) in zip(titles, sheets.items(), strict=True):
                writer.write(title, frame, index=index.get(name, has_labels(frame.index)))
            book.set_custom_property(PROPERTY, package_version(), "text")
            # Closing the workbook takes as long as writing its columns.
            set_step(bar, "saving")
        file.write(content.getbuffer())
        bar.update(2 * width - bar.n)

    with progress_bar(
        2 * width, description=f"{width:,} columns", unit="steps", progress=progress
    ) as bar:
        target = replace_file(path, write)
    if cut:
        warn(_CUT.format(", ".join(cut)))
    return target


def _check_zone(tz: str) -> None:
    try:
        ZoneInfo(tz)
    except (KeyError, ValueError, TypeError, OSError) as error:
        raise InvalidInputError(
            f'tz={tz!r} is not a time zone; pass a name such as "UTC" or "Europe/Berlin".'
        ) from error


def _check_size(frame: pd.DataFrame) -> None:
    if len(frame) >= EXCEL_MAX_ROWS:
        raise InvalidInputError(
            f"The table has {len(frame):,} rows, but a sheet holds {EXCEL_MAX_ROWS - 1:,} below "
            "the header. Write fewer rows, or write CSV or Parquet."
        )
    columns = frame.shape[1] + frame.index.nlevels
    if columns > EXCEL_MAX_COLUMNS:
        raise InvalidInputError(
            f"The table has {columns:,} columns including the index, but a sheet holds "
            f"{EXCEL_MAX_COLUMNS:,}. Write fewer columns."
        )


def _sheet_names(names: Iterable[str]) -> list[str]:
    """Convert names to valid sheet names: short, unique, printable, without special characters.

    >>> _sheet_names(["a/b", "A/B", "history"])
    ['a_b', 'A_B 2', 'history_']
    """
    taken: dict[str, str] = {}
    for name in names:
        printable = "".join(filter(str.isprintable, name.translate(_NOT_IN_SHEET_NAMES)))
        base = _cut(printable, _MAX_SHEET_NAME).strip("' ") or "Sheet"
        base = f"{base}_" if base.lower() == "history" else base
        free, number = base, 1
        while free.lower() in taken:
            number += 1
            free = f"{_cut(base, _MAX_SHEET_NAME - len(str(number)) - 1)} {number}"
        taken[free.lower()] = free
    return list(taken.values())


class _Writer:
    """Writes frames to the sheets of a workbook."""

    def __init__(self, book: Workbook, tz: str, cut: list[str], bar: Any) -> None:
        self._bar = bar
        self._book = book
        self._tz = tz
        self._cut = cut
        self._header = book.add_format({"bold": True, "bottom": 1})
        self._lines = book.add_format({"text_wrap": True})

    def write(self, name: str, frame: pd.DataFrame, *, index: bool) -> None:
        """Write a frame to a new sheet."""
        sheet = self._book.add_worksheet(name)
        columns = list(_columns(frame, index=index))
        for position, (title, column) in enumerate(columns):
            cells, number_format = self._cells(column, title)
            self._write_text(sheet, (0, position), _cut(title), self._header)
            cell_format = number_format and self._book.add_format({"num_format": number_format})
            self._write_column(sheet, position, cells, cell_format)
            sheet.set_column(position, position, _width(title, cells, number_format))
            self._bar.update()
        if columns:
            sheet.autofilter(0, 0, len(frame), len(columns) - 1)
            # Suppress Excel's warnings, because ids and phone numbers are text on purpose.
            sheet.ignore_errors({"number_stored_as_text": f"A1:XFD{len(frame) + 1}"})
        sheet.freeze_panes(1, 0)
        sheet.set_landscape()
        sheet.fit_to_pages(1, 0)

    def _write_column(
        self, sheet: Worksheet, position: int, cells: list[Any], cell_format: Any
    ) -> None:
        for row, cell in enumerate(cells, start=1):
            kind = type(cell)
            if kind is str:
                self._write_text(sheet, (row, position), cell)
            elif kind is bool:
                sheet.write_boolean(row, position, cell)
            elif cell is not None:
                sheet.write_number(row, position, cell, cell_format)

    def _write_text(
        self, sheet: Worksheet, place: tuple[int, int], text: str, cell_format: Any = None
    ) -> None:
        if text.startswith("<r>") and text.endswith("</r>"):
            # XlsxWriter would write this text as raw XML unless it is split in two.
            sheet.write_rich_string(*place, text[:1], self._lines, text[1:])
        else:
            sheet.write_string(*place, text, cell_format or (self._lines if "\n" in text else None))

    def _cells(self, column: pd.Series[Any], title: str) -> tuple[list[Any], str]:
        """Return a column as text, numbers, booleans and None, with its number format."""
        array = _as_arrow(column)
        kind = array.type
        try:
            if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
                return self._times(array)
            if pa.types.is_duration(kind):
                return _days(array), _DURATION
        except pa.ArrowInvalid as error:
            raise InvalidInputError(
                f"The column {title!r} has a time or duration that Excel cannot show. Convert the "
                "column to text."
            ) from error
        if any(is_kind(kind) for is_kind in _NUMBERS):
            return [_number(value) for value in array.to_pylist()], ""
        if pc.any(pc.match_substring(array, "\r"), min_count=0).as_py():
            array = pc.replace_substring_regex(array, r"\r\n?", "\n")
        cells: list[Any] = array.to_pylist()
        if (pc.max(pc.utf8_length(array)).as_py() or 0) > EXCEL_MAX_CELL // 2:
            whole, cells = cells, [None if cell is None else _cut(cell) for cell in cells]
            if cut := sum(map(operator.ne, whole, cells)):
                self._cut.append(f"{cut:,} in {title!r}")
        return cells, ""

    def _times(self, array: pa.Array | pa.ChunkedArray) -> tuple[list[Any], str]:
        """Convert times to days since Excel's day zero; times outside Excel's range become text."""
        zoned = pa.types.is_timestamp(array.type) and array.type.tz is not None
        moments = array.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False)
        clock = pd.DatetimeIndex(moments)
        if zoned:
            clock = clock.tz_localize("UTC").tz_convert(self._tz)
            moments = clock.tz_localize(None).to_numpy()
        moments = moments.astype("datetime64[us]")
        missing = np.isnat(moments)
        fits = ~missing & (moments >= _FIRST_DAY) & (moments <= _LAST_DAY)
        days = np.where(fits, (moments - _DAY_ZERO) / _DAY, np.nan)
        whole = not zoned and bool((days[fits] == np.floor(days[fits])).all())
        cells = [
            day
            if fit
            else None
            if gone
            else str(moment.astype("datetime64[D]" if whole else "M8[s]"))
            for day, fit, gone, moment in zip(days.tolist(), fits, missing, moments, strict=True)
        ]
        if whole:
            return cells, _DATE
        return cells, f'{_TIME} "{self._tz}"' if zoned else _TIME


def _columns(frame: pd.DataFrame, *, index: bool) -> Iterator[tuple[str, pd.Series[Any]]]:
    """Yield the title and values of each column; with `index`, yield the index first."""
    taken = set(text_names(frame.columns))
    if index:
        for level, name in enumerate(frame.index.names):
            title = unique_name("index" if name is None else str(name), taken)
            taken.add(title)
            yield title, frame.index.get_level_values(level).to_series()
    for position, title in enumerate(text_names(frame.columns)):
        yield title, frame.iloc[:, position]


def _as_arrow(column: pd.Series[Any]) -> pa.Array | pa.ChunkedArray:
    """Convert a column to numbers, times or text of Arrow."""
    lists = as_lists(column)
    if lists is not None:
        return join_lists(lists, LIST_SEPARATOR)
    with suppress(pa.ArrowException, TypeError, ValueError, ArithmeticError):
        array = pa.array(column.array, from_pandas=True)
        array = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
        if is_text(array.type) or any(is_kind(array.type) for is_kind in (*_TIMES, *_NUMBERS)):
            return array
    return pa.array(map(any_text, python_values(column)), pa.string())


def is_plain_list(kind: pa.DataType) -> bool:
    """Check whether a type is a list of plain values, without lists or records in it."""
    return isinstance(kind, pa.ListType | pa.LargeListType) and not pa.types.is_nested(
        kind.value_type
    )


def split(texts: Iterable[str | None], kind: pa.DataType) -> pa.Array:
    """Split texts back into the lists that were joined.

    >>> split(["4911; 4939", "", None], pa.list_(pa.int64())).to_pylist()
    [[4911, 4939], [], None]
    """
    lists = [text if text is None else text.split(LIST_SEPARATOR) if text else [] for text in texts]
    return pa.array(lists, pa.list_(pa.string())).cast(kind)


def _days(durations: pa.Array | pa.ChunkedArray) -> list[float | None]:
    """Convert durations to days; fractions of a microsecond are dropped."""
    times = durations
    if durations.type.unit == "ns":
        times = pa.chunked_array([pc.cast(durations, pa.duration("us"), safe=False)])
    days = times.cast(pa.duration("us")).to_numpy(zero_copy_only=False)
    return [None if np.isnat(value) else float(value / _DAY) for value in days]


def _number(value: Any) -> Any:
    """Return a number, or its text if a cell would round the number or cannot hold it."""
    if value is None or (isinstance(value, int) and abs(value) < _EXACT_INTEGERS):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, Decimal) and len(value.normalize().as_tuple().digits) <= _EXACT_DIGITS:
        return float(value)
    return str(value)


def _cut(text: str, length: int = EXCEL_MAX_CELL) -> str:
    """Cut a text to a length, by default the maximum of a cell, in UTF-16 units."""
    content = text.encode("utf-16-le", "replace")  # of a lone surrogate
    return content[: 2 * length].decode("utf-16-le", "ignore")


def _width(title: str, cells: list[Any], number_format: str) -> float:
    """Return the width of a column in characters."""
    widest = len(number_format.replace('"', ""))
    for cell in cells[:_WIDTH_ROWS]:
        if isinstance(cell, str):
            widest = max(widest, *map(len, cell.split("\n")))
        elif not number_format and cell is not None:
            widest = max(widest, len(f"{cell:,}"))
    return min(max(widest + 1, len(title) + _ARROW_WIDTH, _MIN_WIDTH), _MAX_WIDTH)
