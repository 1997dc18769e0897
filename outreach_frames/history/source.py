"""Open a frame or Parquet files to compare people, one column at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import dataset

from outreach_frames.common import terms
from outreach_frames.common.atomic_files import expanded, require_readable_file
from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.parquet import frame_of_parquet, reading
from outreach_frames.files.provenance import attrs_in_parquet, plain_attrs
from outreach_frames.files.read import parts_of, read_prospects
from outreach_frames.history.snapshots import PARTITION_KEY, describe_unfinished, list_snapshots
from outreach_frames.history.values import as_arrow, comparable, texts
from outreach_frames.reading.flatten import concat_promoted, concat_tables
from outreach_frames.tables.column_checks import require_columns
from outreach_frames.tables.interchange import A_FRAME, FrameLike, as_frame

_TAKES: Final = f"{A_FRAME}, or the path of a file or a snapshot"
# Files stay open, up to this number: opening a file takes longer than reading a column.
_MAX_OPEN_FILES: Final = 200
_CHECKED: Final = dataset.ParquetFileFormat(
    default_fragment_scan_options=dataset.ParquetFragmentScanOptions(
        page_checksum_verification=True
    )
)


class FrameSource:
    """A frame of people in memory; columns whose name is not text are ignored."""

    def __init__(self, frame: pd.DataFrame, name: str) -> None:
        self.name: str = name
        self.attrs: Mapping[Any, Any] = plain_attrs(frame.attrs)
        self.columns: Sequence[str] = [column for column in frame if isinstance(column, str)]
        self.rows: int = len(frame)
        self._frame = frame
        require_columns(frame, self.columns, "columns")

    def column(self, name: str) -> pa.Array:
        """Return one column in a comparable type; missing values if the table lacks the column."""
        return as_arrow(self._frame[name]) if name in self.columns else pa.nulls(self.rows)

    def take(self, rows: np.ndarray[Any, Any]) -> pd.DataFrame:
        """Return the rows at ascending positions as a new frame without attrs."""
        taken = self._frame.iloc[rows].reset_index(drop=True)
        taken.attrs = {}
        return taken


class ParquetSource:
    """Parquet files read on demand, with the interface of `FrameSource`."""

    def __init__(self, parts: Sequence[Path], name: str) -> None:
        self.name: str = name
        self._parts = parts
        with reading(Path(name)):
            # Parse each part's metadata once: it describes hundreds of columns, and each column is
            # read separately.
            self._metadata = [pq.read_metadata(part) for part in parts]
            self._schemas = [part.schema.to_arrow_schema() for part in self._metadata]
            self.attrs: Mapping[Any, Any] = attrs_in_parquet(self._schemas[0].metadata, Path(name))
            stored_index = (self._schemas[0].pandas_metadata or {}).get("index_columns", [])
            # An index of consecutive numbers is a dictionary here, not the name of a column.
            index_names = [level for level in stored_index if isinstance(level, str)]
        self._opened: dict[int, pq.ParquetFile] = {}
        names = dict.fromkeys(name for schema in self._schemas for name in schema.names)
        self.columns: Sequence[str] = [name for name in names if name not in index_names]
        self.rows: int = sum(part.num_rows for part in self._metadata)

    def column(self, name: str) -> pa.Array:
        """Read one column."""
        chunks: list[pa.Array] = []
        with reading(Path(self.name)):
            for number, schema in enumerate(self._schemas):
                if name in schema.names:
                    chunks.append(comparable(self._open(number).read(columns=[name]).column(name)))
                else:
                    chunks.append(pa.nulls(self._metadata[number].num_rows))
        return _concatenated(chunks)

    def take(self, rows: np.ndarray[Any, Any]) -> pd.DataFrame:
        """Read some rows."""
        tables: list[pa.Table] = []
        start = 0
        with reading(Path(self.name)):
            for part, metadata in zip(self._parts, self._metadata, strict=True):
                first, last = np.searchsorted(rows, [start, start + metadata.num_rows])
                if first < last:
                    rows_of_part = pa.array(rows[first:last] - start)
                    tables.append(dataset.dataset(part, format=_CHECKED).take(rows_of_part))
                start += metadata.num_rows
            taken = concat_tables(tables or [self._schemas[0].empty_table()])
            frame = frame_of_parquet(taken, Path(self.name)).reset_index(drop=True)
        frame.attrs = {}
        return frame

    def _open(self, number: int) -> pq.ParquetFile:
        part = self._opened.get(number) or pq.ParquetFile(
            self._parts[number],
            metadata=self._metadata[number],
            page_checksum_verification=True,
        )
        if len(self._opened) < _MAX_OPEN_FILES:
            self._opened[number] = part
        return part


Source = FrameSource | ParquetSource


def open_source(people: FrameLike | str | Path, name: str) -> Source:
    """Open a frame, a file or a snapshot for comparison."""
    if not isinstance(people, str | Path):
        return FrameSource(as_frame(people, name, _TAKES), name)
    path = expanded(people)
    if path.is_dir():
        if list(list_snapshots(path)):
            raise InvalidInputError(
                f"{path} is a folder of snapshots. Pass one of the snapshots as {name}, such as "
                f"{path / f'{PARTITION_KEY}=2026-11-30'}, or pass only the folder to compare the "
                "last two snapshots."
            )
        return ParquetSource(parts_of(path), str(path))
    require_readable_file(path)
    if path.suffix.lower() == ".parquet":
        return ParquetSource([path], str(path))
    return FrameSource(read_prospects(path), str(path))


def open_last_two(folder: FrameLike | str | Path) -> tuple[Source, Source, list[str]]:
    """Open the last two snapshots of a folder; also return warnings on unfinished snapshots."""
    if not isinstance(folder, str | Path):
        raise InvalidInputError(
            "A comparison needs two tables, before and after. Pass both, or a folder to compare "
            "its last two snapshots."
        )
    root = expanded(folder)
    if not root.exists():
        raise InvalidInputError(
            f"{root} cannot be read: not found. Check the path; or use "
            f"{terms.function('snapshot_people')} on two days, or pass two tables, before and "
            "after."
        )
    require_readable_file(root)
    stored = list(list_snapshots(root)) if root.is_dir() else []
    if len(stored) < 2:
        raise InvalidInputError(
            f"{root} holds {plural(len(stored), 'snapshot')}, but a comparison takes two. "
            f"{terms.call('snapshot_people')} on two days, or pass two tables, before and after."
        )
    before, after = (ParquetSource(parts_of(path), str(path)) for _, path in stored[-2:])
    return before, after, list(describe_unfinished(root))


def _concatenated(chunks: Sequence[pa.Array]) -> pa.Array:
    """Concatenate the parts of a column; incompatible types become text."""
    if len({chunk.type for chunk in chunks}) > 1:
        try:
            return comparable(concat_promoted([pa.chunked_array([chunk]) for chunk in chunks]))
        except pa.ArrowException:
            chunks = [texts(chunk) for chunk in chunks]
    return pa.concat_arrays(chunks)
