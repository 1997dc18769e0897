"""What a plot is asked for, checked before anything is drawn."""

from __future__ import annotations

import pandas as pd

from outreach_frames.common.arguments import check_integer
from outreach_frames.errors import InvalidInputError


def check_frame(data: object, what: str = "a DataFrame") -> pd.DataFrame:
    """Return the data, which is a frame."""
    if not isinstance(data, pd.DataFrame):
        raise InvalidInputError(f"The plot takes {what}, not {type(data).__name__}.")
    return data


def check_top(value: object) -> int:
    """Return how many bars are wanted."""
    top = check_integer("top", value)
    if top < 1:
        raise InvalidInputError(f"top={top} shows nothing. Give 1 or more.")
    return top
