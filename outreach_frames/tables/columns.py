"""Columns that are put beside those of a caller's frame, and names that a file can hold."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from outreach_frames.common.text import unique_name

_PREFIX: Final = "outreach_"


def append_columns(frame: pd.DataFrame, added: pd.DataFrame) -> pd.DataFrame:
    """Put columns behind a frame's own, row by row whatever its labels are.

    >>> left = pd.DataFrame({"status": ["new"]}, index=["a"])
    >>> append_columns(left, pd.DataFrame({"status": ["added"]})).columns.tolist()
    ['status', 'outreach_status']
    """
    names: list[Any] = []
    for name in added.columns:
        free = str(name)
        while free in frame.columns:
            free = f"{_PREFIX}{free}"
        names.append(free)
    levels = frame.columns.nlevels
    placed = added.set_axis(frame.index, axis=0)
    placed.columns = (
        pd.MultiIndex.from_tuples([(name,) + ("",) * (levels - 1) for name in names])
        if levels > 1
        else pd.Index(names)
    )
    result = pd.concat([frame, placed], axis=1)
    result.columns.names = frame.columns.names
    result.attrs = dict(frame.attrs)
    return result


def text_names(columns: pd.Index[Any]) -> list[str]:
    """Name columns as a file needs it: text, one level, no two alike.

    >>> text_names(pd.Index([1, "1", ("a", "b")], dtype=object))
    ['1', '1_2', 'a_b']
    """
    names: list[str] = []
    for column in columns:
        parts = column if isinstance(column, tuple) else (column,)
        name = "_".join(str(part) for part in parts if part != "")
        names.append(unique_name(name, names))
    return names
