"""What a plot is asked for, checked before anything is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.arguments import check_integer
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.interchange import A_FRAME, as_frame


def check_frame(data: object, what: str = A_FRAME) -> pd.DataFrame:
    """Return the data, which is a frame of any library, as a pandas frame."""
    return as_frame(data, "The plot", what)


def check_top(value: object) -> int:
    """Return how many bars are wanted."""
    top = check_integer("top", value)
    if top < 1:
        raise InvalidInputError(f"top={top} shows nothing. Give 1 or more.")
    return top


def check_numbers(data: pd.DataFrame, column: str) -> pd.Series[Any]:
    """Return a column of numbers; what is infinite cannot be drawn, and is missing."""
    require_columns(data, [column], "numbers")
    try:
        numbers = data[column].astype("Float64")
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"The column {column!r} is not of numbers: {error}.") from error
    return numbers.mask(numbers.abs().eq(np.inf))
