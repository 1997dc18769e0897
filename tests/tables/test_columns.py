"""Columns of an earlier result are told from a caller's own columns of the same names."""

from __future__ import annotations

import pandas as pd
import pytest

from outreach_frames.tables.columns import append_columns, drop_appended

NAMES = ["status", "detail", "error_code"]
STATUSES = ["added", "invalid"]


def frame_of(*statuses: str | None, prefix: str = "") -> pd.DataFrame:
    """Return a frame with these statuses in columns like those of a result."""
    columns = {f"{prefix}status": [*statuses], f"{prefix}detail": "VIP", f"{prefix}error_code": "E"}
    return pd.DataFrame({"email": "a@x.example"} | columns)


@pytest.mark.parametrize("own", [("customer", "added"), ("added", None), ("", "invalid")])
def test_own_columns_stay(own: tuple[str | None, ...]) -> None:
    """A caller's columns stay if any status is not one of the result's, over any number of runs."""
    frame = frame_of(*own)
    assert drop_appended(frame, NAMES, values=STATUSES).equals(frame)
    result = append_columns(frame, frame_of(*STATUSES)[NAMES])
    assert drop_appended(result, NAMES, values=STATUSES).equals(frame)
