"""Texts on plots: long, repeated and unusual names."""

from __future__ import annotations

import pandas as pd
import pytest

import outreach_frames as of
from tests.gallery import frames
from tests.plots.artists import bars

pytestmark = pytest.mark.long


def labels(*names: object) -> list[str]:
    """Return the labels of segments with these names, from top to bottom."""
    table = frames.segments(len(names)).assign(company_industry=pd.Series(names, dtype=object))
    axes = of.plots.segments(table)
    axes.figure.draw_without_rendering()
    return list(bars(axes))[::-1]


LONG = "a name that is very much longer than a label has room for"
MIDDLE = f"{'m' * 18}…{'m' * 17}"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["$5 and $10", "$\\frac$", "$5"], ["\\$5 and \\$10", "\\$\\frac\\$", "$5"]),
        (["two\nlines", "a\u200bb\u202ec\x00d"], ["two lines", "abcd"]),
        (["", None, "\u200b"], ["not given", "not given (2)", "not given (3)"]),
        (["Acme", "Acme", "Acme (2)"], ["Acme", "Acme (3)", "Acme (2)"]),
        ([f"{'m' * 99}x{'m' * 99}", "m" * 199], [MIDDLE, f"{MIDDLE} (2)"]),
        (["光" * 21, "W" * 27], ["光" * 21, "W" * 27]),
        (["x" * 1_000_000], [f"{'x' * 18}…{'x' * 17}"]),
    ],
    ids=["formulas", "lines", "blanks", "twins", "middles", "wide", "endless"],
)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_are_short_literal_and_distinct(names: list[object], expected: list[str]) -> None:
    """A name is drawn literally on one line, cut in the middle, and distinct from all others."""
    assert labels(*names) == expected


def test_names_that_differ_at_one_end_stay_distinct() -> None:
    """Long names that differ only at the beginning or only at the end have distinct labels."""
    for names in ((f"1 {LONG}", f"2 {LONG}"), (f"{LONG} 1", f"{LONG} 2")):
        shown = labels(*names)
        assert len(set(shown)) == 2
        assert all("…" in text and "(" not in text for text in shown)


def test_departments_have_plain_names() -> None:
    """Segments by department have the labels of people, not the interface's keys."""
    departments = frames.segments(2).rename(columns={"company_industry": "person_department"})
    departments["person_department"] = ["engineering_technical", "medical_health"]
    assert list(bars(of.plots.segments(departments))) == ["Medical and health", "Engineering"]
