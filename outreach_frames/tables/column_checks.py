"""Look up the columns of a caller's frame; an error names similar columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import pandas as pd

from outreach_frames.common import terms
from outreach_frames.common.arguments import near_names, suggestion
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import quoted
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.columns import columns_text

_SOURCE = 'a frame from search_people(), with headcount="all" for headcounts'


def require_columns(
    frame: pd.DataFrame, columns: Sequence[str], what: str, source: str = _SOURCE
) -> None:
    """Raise InvalidInputError if a column is missing or repeated."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        close = suggestion(missing[0], [str(name) for name in frame.columns])
        raise InvalidInputError(
            f"The table lacks {what}: {missing[0]!r} is missing"
            f"{f', and {len(missing) - 1} more' if len(missing) > 1 else ''}.{close} "
            f"Pass {source}."
        )
    for name in columns:
        column_of(frame, name)


def to_numbers(
    columns: pd.DataFrame, dtype: Literal["Int64", "Float64"] = "Float64"
) -> pd.DataFrame:
    """Convert columns to numbers; raise InvalidInputError for other values."""
    try:
        return columns.astype(dtype)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"The column {quoted(', '.join(map(str, columns)))} has values that are not numbers: "
            f"{error}. Correct the values."
        ) from error


def to_whole_numbers(values: pd.Series[Any], name: str) -> pd.Series[Any]:
    """Convert whole numbers, also those written as 41.0 or as text, to nullable integers.

    >>> to_whole_numbers(pd.Series([41.0, "42", None], dtype=object), "limit").tolist()
    [41, 42, <NA>]
    """
    try:
        # Convert through text, because dates and booleans would become numbers.
        return pd.to_numeric(values.astype(STR).str.strip()).astype("Int64")
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInputError(
            f"{name} has values that are not whole numbers: {error}. Correct the values."
        ) from error


def require_name(argument: str, name: object, or_several: str = "") -> None:
    """Raise InvalidInputError if an argument's value cannot be the name of a column."""
    if not pd.api.types.is_hashable(name):
        raise InvalidInputError(
            f"{terms.name(argument)}: takes the name of a column{or_several}, not {quoted(name)}."
        )


def near_column(frame: pd.DataFrame, name: Hashable, table: str = "The table") -> Hashable:
    """Return `name` if the column exists, else the only similar column name, else `name`.

    >>> near_column(pd.DataFrame(columns=["E-Mail", "Name"]), "email")
    'E-Mail'
    """
    if name in frame.columns:
        return name
    near = near_names(name, frame.columns)
    if len(near) > 1:
        raise InvalidInputError(
            f"{table} has no column {quoted(name)}, but {' and '.join(map(quoted, near))}. "
            f"Pass one of these names. {columns_text(frame)}"
        )
    return near[0] if near else name


def column_of(frame: pd.DataFrame, name: Hashable, table: str = "The table") -> pd.Series[Any]:
    """Return a column; raise InvalidInputError if it is missing or not unique."""
    if name not in frame.columns:
        close = suggestion(str(name), map(str, frame.columns))
        raise InvalidInputError(
            f"{table} has no column {quoted(name)}.{close} {columns_text(frame)}"
        )
    column = frame[name]
    if isinstance(column, pd.DataFrame):
        raise InvalidInputError(
            f"{table} has the column {quoted(name)} more than once. "
            + terms.wording(
                "Keep one column, for example with frame.loc[:, ~frame.columns.duplicated()].",
                in_shell="Keep one column in the file.",
            )
        )
    return column
