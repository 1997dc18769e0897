"""Open frames, files and snapshots to compare people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.atomic_files import expanded, require_readable_file
from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.provenance import plain_attrs
from outreach_frames.files.read import read_prospects
from outreach_frames.history.snapshots import (
    KEY,
    describe_unfinished,
    list_snapshots,
)
from outreach_frames.history.values import as_arrow
from outreach_frames.tables.interchange import A_FRAME, FrameLike, as_frame

_TAKES: Final = f"{A_FRAME}, or the path of a file or a snapshot"


class Source:
    """A table of people; columns whose name is not text are ignored."""

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


def open_source(people: FrameLike | str | Path, name: str) -> Source:
    """Open a frame, a file or a snapshot for comparison."""
    if not isinstance(people, str | Path):
        return Source(as_frame(people, name, _TAKES), name)
    path = expanded(people)
    if path.is_dir() and list(list_snapshots(path)):
        raise InvalidInputError(
            f"{path} is a folder of snapshots. Pass one of the snapshots as {name}, such as "
            f"{path / f'{KEY}=2026-11-30'}, or pass only the folder to compare the last two "
            "snapshots."
        )
    return Source(read_prospects(path), str(path))


def open_last_two(folder: FrameLike | str | Path) -> tuple[Source, Source, list[str]]:
    """Open the last two snapshots of a folder; also return warnings on unfinished snapshots."""
    if not isinstance(folder, str | Path):
        raise InvalidInputError(
            "A comparison needs two tables, before and after. Pass both, or a folder to compare "
            "its last two snapshots."
        )
    root = expanded(folder)
    require_readable_file(root)
    found = list(list_snapshots(root)) if root.is_dir() else []
    if len(found) < 2:
        raise InvalidInputError(
            f"{root} holds {plural(len(found), 'snapshot')}, but a comparison takes two. Call "
            "snapshot_people() on two days, or pass two tables, before and after."
        )
    before, after = (Source(read_prospects(one.path), str(one.path)) for one in found[-2:])
    return before, after, list(describe_unfinished(root))
