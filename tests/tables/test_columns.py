"""Columns of an earlier result are told from a caller's own columns of the same names."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from outreach_frames.tables.columns import append_columns, clashing_names, drop_appended

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


@pytest.mark.parametrize("statuses", [("added", "invalid", "added"), ()])
@pytest.mark.parametrize("prefix", ["", "outreach_"])
def test_columns_of_an_earlier_result_are_dropped(statuses: tuple[str, ...], prefix: str) -> None:
    """An earlier result's columns are dropped, also categories and those of an empty frame."""
    frame = frame_of(*statuses, prefix=prefix)
    for each in (frame, frame.astype("category")):
        kept = drop_appended(each, NAMES, values=STATUSES)
        assert kept.columns.tolist() == ["email"]


@pytest.mark.parametrize(
    ("columns", "clashes"),
    [
        (["email", "my_status"], {}),
        (["status", "detail"], {"status": "outreach_status", "detail": "outreach_detail"}),
        (["status", "outreach_status"], {"outreach_status": "outreach_outreach_status"}),
    ],
)
def test_clashing_names_are_those_that_are_appended(
    columns: list[Any], clashes: dict[str, str]
) -> None:
    """The clashes map the frame's own columns to the names of the appended columns."""
    frame = pd.DataFrame([[1, 2]], columns=pd.Index(columns))
    assert clashing_names(frame, NAMES) == clashes
    names = append_columns(frame, frame_of("added")[NAMES]).columns.get_level_values(0)
    assert {*names} >= {*clashes.values()}
