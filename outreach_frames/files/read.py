"""Read tables from CSV, Excel and Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, get_args

import pandas as pd

from outreach_frames import spec
from outreach_frames.common import terms
from outreach_frames.common.atomic_files import expanded, require_readable_file, unreadable
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_file import SUFFIXES, Separator
from outreach_frames.files.csv_read import read_csv
from outreach_frames.files.csv_text import not_a_table
from outreach_frames.files.excel_read import read_excel
from outreach_frames.files.header import is_identifier, require_names
from outreach_frames.files.parquet import frame_of_parquet, read_table, reading
from outreach_frames.files.search_table import PARQUET, WORKBOOKS
from outreach_frames.reading.flatten import concat_tables, seen_columns
from outreach_frames.tables.columns import columns_like
from outreach_frames.tables.interchange import FrameLike, as_frame

_SPREADSHEETS: Final = frozenset({".xlsb", ".xls", ".ods", ".numbers"})


def read_prospects(
    path: str | Path,
    *,
    sheet_name: str | int | None = None,
    encoding: str | None = None,
    sep: Separator | None = None,
) -> pd.DataFrame:
    r"""Read a CSV, Excel or Parquet file of this package or another program.

    Parameters
    ----------
    path : str or Path
        A ``.csv`` file of at most 16,384 columns, an ``.xlsx`` or ``.xlsm`` workbook, a
        ``.parquet`` file, or a folder of ``.parquet`` files.
    sheet_name : str or int, optional
        The name of a workbook's sheet; by default, the first visible sheet. An int is a position
        from 0.
    encoding : str, optional
        The encoding of a CSV file that is not UTF-8, such as "cp1252" (Excel's "CSV") or
        "utf-16" (Excel's "Unicode Text").
    sep : {",", ";", "\t", "|"}, optional
        The separator of a CSV file; by default, the separator in the header that splits the first
        rows into as many cells.

    Returns
    -------
    DataFrame
        The table with its original dtypes and the `.attrs` that were written with it. In a CSV file
        without its metadata file, documented columns have the interface's dtypes, and all other
        columns are text. In a workbook, documented columns have the interface's dtypes, and all
        other columns the type of their cells: Int64, Float64, boolean, datetime64, or str if cells
        have several types. A column with a cell that does not fit its dtype stays text. Times
        without a zone are in UTC. Blank lines of a CSV file are skipped; rows without cells, and
        hidden rows, of a workbook are read.

    Raises
    ------
    InvalidInputError
        The file does not exist, is damaged or empty, has an unexpected format or encoding, or has
        ambiguous rows: a quotation mark is stray or never closed, or a row has more or fewer cells
        than the header. The header is missing or below other text, or several separators are
        possible. A workbook is encrypted, lacks the sheet, has a sheet of more than 20
        million cells (blank cells included), or would grow to more than 200 times its size when
        unpacked.
    ConfigurationError
        The optional library openpyxl, which reads workbooks, is not installed.

    Warns
    -----
    OutreachWarning
        A cell does not fit the dtype of its column, or Excel rounded ids. A cell of a CSV file
        looks like several rows, or the file may be cut off. A workbook has several sheets, errors,
        formulas without a value, merged cells, codes without their leading zeros, or hidden rows.

    Notes
    -----
    Interface: Person, Company and Contact define the names and types of columns.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text('"id","company_followers"\n"00123",7\n')
    >>> read_prospects(path).dtypes.astype(str).to_dict()
    {'id': 'str', 'company_followers': 'Int64'}
    """
    frame = _read(path, sheet_name=sheet_name, encoding=encoding, sep=sep)
    undocumented = frame.attrs.get("undocumented")
    if isinstance(undocumented, list):
        seen_columns.update(name for name in frame.columns if name in undocumented)
    return frame


def is_workbook(path: object) -> bool:
    """Return whether a value is the path of a workbook that can be read.

    >>> is_workbook("people.XLSX"), is_workbook("people.csv")
    (True, False)
    """
    return isinstance(path, str | Path) and Path(path).suffix.lower() in WORKBOOKS


def is_table_path(path: str | Path) -> bool:
    """Return whether a path has the ending of a table, or leads to a folder.

    >>> is_table_path("people.csv"), is_table_path("spring.journal")
    (True, False)
    """
    endings = {*SUFFIXES, *PARQUET, *WORKBOOKS, *_SPREADSHEETS} - {""}
    return Path(path).suffix.lower() in endings or expanded(path).is_dir()


def frame_or_file(given: FrameLike | str | Path, who: str, takes: str) -> pd.DataFrame:
    """Convert a frame of any library, or read a file as text; messages contain `who`."""
    if not isinstance(given, str | Path):
        frame = as_frame(given, who, takes)
        names = [name for name in frame.columns if not is_identifier(str(name))]
        if not any(columns_like(kind, names) for kind in spec.LEAD_IDENTIFIERS):
            require_names(frame.columns, f"{who} cannot use the frame: it")
        return frame
    if not is_table_path(given):
        raise InvalidInputError(f"{who} takes {takes}, but {given} is neither.")
    try:
        return read_as_text(given)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{who} cannot read {given} as a table: {error}"
            + terms.wording(
                " Or read the table with of.read_prospects() or pandas, and pass the frame.",
                in_shell="",
            )
        ) from error


def _read(
    path: str | Path,
    *,
    sheet_name: str | int | None = None,
    encoding: str | None = None,
    sep: Separator | None = None,
    as_text: bool = False,
) -> pd.DataFrame:
    """Read a table by its file ending; with `as_text`, read files with other endings as CSV."""
    source = expanded(path)
    is_book = is_workbook(source)
    is_parquet = _is_parquet(source)
    if sheet_name is not None and not is_book:
        raise InvalidInputError(
            f"{terms.argument('sheet_name', sheet_name)} is only for Excel workbooks, but {source} "
            f"does not end in {' or '.join(sorted(WORKBOOKS, reverse=True))}. Omit "
            f"{terms.name('sheet_name')}."
        )
    for name, given in (("encoding", encoding), ("sep", sep)):
        if given is not None and (is_book or is_parquet):
            raise InvalidInputError(
                f"{terms.argument(name, given)} is only for text files, but {source} is "
                f"{'a workbook' if is_book else 'Parquet'}. Omit {terms.name(name)}."
            )
    if sep is not None and sep not in get_args(Separator):
        raise InvalidInputError(
            f"{terms.argument('sep', sep)} is not valid; pass one of {get_args(Separator)}."
        )
    try:
        _require_table(source, as_text=as_text)
        if is_book:
            return read_excel(source, sheet_name=sheet_name, as_text=as_text)
        if is_parquet:
            return _read_parquet(parts_of(source) if source.is_dir() else [source], source)
        return read_csv(source, as_text=as_text, encoding=encoding, sep=sep)
    except OSError as error:
        raise unreadable(source, error) from error


# Read a table; if a CSV file or workbook has no metadata, keep all its cells as text.
read_as_text: Final = partial(_read, as_text=True)


def _is_parquet(source: Path) -> bool:
    """Return whether a path leads to a Parquet file or a folder."""
    return source.is_dir() or source.suffix.lower() in PARQUET


def _require_table(source: Path, *, as_text: bool) -> None:
    """Raise if no table can be read from a path; with `as_text`, allow pipes and any ending."""
    is_text = not is_workbook(source) and not _is_parquet(source)
    require_readable_file(source, open_pipes=as_text and is_text)
    suffix = source.suffix.lower()
    if suffix in PARQUET and source.is_file() and not source.stat().st_size:
        raise InvalidInputError(f"{source} is empty. Get the file again.")
    if is_text and suffix in _SPREADSHEETS:
        raise not_a_table(source)
    if is_text and not as_text and suffix not in SUFFIXES:
        raise InvalidInputError(
            f"{source} cannot be read; pass a .csv, .xlsx or .parquet file, "
            "or a folder of Parquet files."
        )


def parts_of(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, sorted by name; raise if there is no such file."""
    try:  # glob would ignore a folder without read permission
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from error
    parts = [
        part
        for part in inside
        if part.name.endswith(".parquet") and not part.name.startswith((".", "_"))
    ]
    if not parts:
        raise InvalidInputError(
            f"The folder {folder} has no .parquet file. Pass a file or another folder."
        )
    for part in parts:
        require_readable_file(part)
    return parts


def _read_parquet(parts: Sequence[Path], source: Path) -> pd.DataFrame:
    with reading(source):
        tables = [read_table(part) for part in parts]
        people = concat_tables(tables) if len(tables) > 1 else tables[0]
        return frame_of_parquet(people, source)
