"""Frames with any index give the same results, and row-wise results keep the index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

import outreach_frames as of

COMPANY = ["id", "name", "profnet_url", "size", "industry"]
COLUMNS = [
    *("id", "name", "profnet_url", "title", "current_position_start_date", "experiences"),
    *(f"company_{name}" for name in COMPANY),
    *(f"company_department_headcount_{department}" for department in of.spec.DEPARTMENTS),
]
OF_ROWS: dict[str, Callable[[Any], pd.DataFrame]] = {
    "brief": lambda people: people.outreach.brief(),
    "tenure": lambda people: people.outreach.tenure(as_of="2026-01-01"),
    "unlist": lambda people: people.outreach.unlist(),
}
OF_TABLES: dict[str, Callable[[Any], pd.DataFrame]] = {
    "segments": lambda people: people.outreach.segments("company_size"),
    "companies": lambda people: people.outreach.companies(),
    "headcount": lambda people: people.outreach.headcount(),
    "experiences": lambda people: people.outreach.experiences(),
}


def test_any_index_gives_the_same(people: pd.DataFrame) -> None:
    """Labels that repeat, equal a column's name or have several levels change no value.

    The frame itself stays unchanged.
    """
    people = people.head(8)[COLUMNS]
    before = people.copy(deep=True)
    indices = {
        "repeated": people.set_axis([5] * 8, axis="index"),
        "named as a column": people.set_index("id", drop=False),
        "named index": people.rename_axis("index"),
        "levels": people.set_index(["company_name", "name"], drop=False),
    }
    for name, call in (OF_ROWS | OF_TABLES).items():
        expected = call(people)
        for kind, frame in indices.items():
            found = call(frame)
            if name in OF_ROWS:
                pd.testing.assert_index_equal(found.index, frame.index, obj=f"{name}, {kind}")
                found = found.reset_index(drop=True)
            pd.testing.assert_frame_equal(found, expected, obj=f"{name}, {kind}")
    pd.testing.assert_frame_equal(people, before)
