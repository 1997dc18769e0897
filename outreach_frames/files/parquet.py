"""Write frames to Parquet files and read them back with their dtypes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from outreach_frames.common.atomic_files import check_suffix, replace_file, unreadable
from outreach_frames.common.text import shorten
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_file import check_columns
from outreach_frames.files.csv_notes import NOTES_ERRORS
from outreach_frames.files.provenance import (
    MAX_METADATA_BYTES,
    attrs_in_parquet,
    plain_attrs,
)
from outreach_frames.tables.pandas_metadata import arrow_table, restore_frame

WRITE_OPTIONS: Final[dict[str, Any]] = {"compression": "zstd", "write_page_checksum": True}
# Larger metadata would not be read; the other half is for the columns.
_MAX_ATTRS: Final = MAX_METADATA_BYTES // 2


def write_parquet(frame: pd.DataFrame, path: str | Path, *, attrs: bool = True) -> Path:
    """Write a frame to a Parquet file that `read_prospects` reads back unchanged.

    The metadata of each column contains its meaning from `columns()`; the metadata of the file
    contains the frame's `.attrs`. The `.attrs` of a search result include its filters, which may
    contain colleagues' addresses in `profnet_networks`: pass ``attrs=False`` for a file to share.

    Parameters
    ----------
    frame : DataFrame
        A frame whose column names are unique texts on one level; the frame is not changed. Only
        `.attrs` that JSON can hold are written. Categorical columns whose categories are not text
        are read back as plain values, and times in seconds as times in milliseconds.
    path : str or Path
        The path of the file: with the ending ``.parquet`` or ``.pq``, or without an ending. An
        existing file is replaced.
    attrs : bool
        Whether to write the frame's `.attrs`.

    Returns
    -------
    Path
        The path of the file, which is compressed with zstd.

    Raises
    ------
    InvalidInputError
        A column has several types or a type that Parquet cannot hold, or the file cannot be
        written.

    Examples
    --------
    >>> import tempfile
    >>> import outreach_frames as of
    >>> frame = pd.DataFrame({"name": ["Ada"]})
    >>> path = frame.outreach.to_parquet(Path(tempfile.mkdtemp()) / "people.parquet")
    >>> of.read_prospects(path).equals(frame)
    True
    """
    check_suffix(path, (".parquet", ".pq", ""), "Parquet")
    check_columns(frame)
    try:
        table = parquet_table(frame, attrs=attrs)
        return replace_file(path, lambda file: pq.write_table(table, file, **WRITE_OPTIONS))
    except InvalidInputError:
        raise
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            "The table has text with a lone surrogate, which no file can hold. Remove it."
        ) from error
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        problem = "; ".join(map(str, error.args))
        raise InvalidInputError(
            f"The table cannot be written as Parquet: {problem}. "
            "Convert the column to one type, or drop it."
        ) from error


def parquet_table(frame: pd.DataFrame, *, attrs: bool = True) -> pa.Table:
    """Build the Arrow table to write to a Parquet file."""
    plain = frame.copy(deep=False)
    plain.attrs = plain_attrs(frame.attrs) if attrs else {}
    if len(json.dumps(plain.attrs)) > _MAX_ATTRS:
        warn(
            f"The .attrs were not written, because their JSON has more than {_MAX_ATTRS:,} "
            "characters."
        )
        plain.attrs = {}
    return arrow_table(plain)


def read_table(path: Path) -> pa.Table:
    """Read a Parquet file; a damaged page raises an error."""
    # Open the file once, because another program may replace it meanwhile.
    with path.open("rb") as file, pq.ParquetFile(file, page_checksum_verification=True) as parquet:
        return parquet.read()


def frame_of_parquet(table: pa.Table, source: Path) -> pd.DataFrame:
    """Convert a table to a frame; restore all dtypes, even nested dtypes, from pandas metadata."""
    metadata = table.schema.metadata
    attrs: Mapping[Any, Any] = attrs_in_parquet(metadata, source)
    if len(set(table.column_names)) < table.num_columns:
        raise ValueError("two columns have the same name")
    rows, names, columns = len(table), table.column_names, table.columns[::-1]
    del table  # free each column after its conversion
    frame = restore_frame(((name, columns.pop()) for name in names), rows, metadata)
    frame.attrs = attrs
    return frame


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert errors of Parquet files to errors that name the path."""
    try:
        yield
    except InvalidInputError:
        raise
    except OSError as error:
        raise unreadable(path, error) from error
    # Duplicate columns raise a KeyError; damaged metadata may raise any exception in pandas.
    except NOTES_ERRORS as error:
        raise InvalidInputError(
            f"{path} is damaged: {shorten(str(error))}. Write it again."
        ) from error
