"""Columns that are put beside those of a caller's frame, and names that a file can hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames.common.text import unique_name

_PREFIX: Final = "outreach_"


def append_columns(frame: pd.DataFrame, added: pd.DataFrame) -> pd.DataFrame:
    """Put columns behind a frame's own, row by row whatever its labels are.

    >>> left = pd.DataFrame({"status": ["new"]}, index=["a"])
    >>> append_columns(left, pd.DataFrame({"status": ["added"]})).columns.tolist()
    ['status', 'outreach_status']
    """
    taken = [first for first, *_ in _parts(frame.columns)]
    names: list[Any] = []
    for name in map(str, added.columns):
        last = _longest(name, taken)
        names.append(f"{_PREFIX}{last}" if last in taken else name)
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


def drop_appended(
    frame: pd.DataFrame, names: Sequence[str], further: Sequence[str] = ()
) -> pd.DataFrame:
    """Drop the columns that an earlier `append_columns` has put behind a frame's own.

    They are recognised where all of `names` are there, and `further` where all of these are, too,
    behind them. Of a name and its prefixed forms, the longest is the one that was appended.

    >>> earlier = pd.DataFrame(columns=["status", "outreach_status", "detail"])
    >>> drop_appended(earlier, ["status", "detail"]).columns.tolist()
    ['status']
    >>> drop_appended(earlier, ["status", "error_code"]).columns.tolist()
    ['status', 'outreach_status', 'detail']
    """
    parts = _parts(frame.columns)
    taken = [first for first, *_ in parts]
    # None for a column of several levels that are filled: none of those was appended.
    flat = [None if any(rest) else first for first, *rest in parts]
    gone = [_longest(name, taken) for name in names]
    if any(flat.count(name) != 1 for name in gone):
        return frame
    behind = flat[max(map(flat.index, gone)) + 1 :]
    more = [_longest(name, taken) for name in further]
    if all(flat.count(name) == 1 and name in behind for name in more):
        gone += more
    return frame.loc[:, np.array([name not in gone for name in flat], dtype=bool)]


def _parts(columns: pd.Index[Any]) -> list[tuple[str, ...]]:
    """Return the levels of each column's name, as text."""
    return [
        tuple(map(str, column)) if isinstance(column, tuple) and column else (str(column),)
        for column in columns
    ]


def _longest(name: str, taken: Iterable[str]) -> str:
    """Return the longest that is taken of a name and its prefixed forms; else the name."""
    form = re.compile(f"(?:{_PREFIX})*{re.escape(name)}")
    return max(filter(form.fullmatch, taken), key=len, default=name)


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
