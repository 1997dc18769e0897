"""Texts on plots: unusual names, and characters that fonts lack."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

import outreach_frames as of
from outreach_frames.errors import OutreachWarning
from outreach_frames.plots.labels import drawable, unique
from tests.gallery import frames
from tests.plots.artists import bars, flaws, plain_axes

pytestmark = pytest.mark.long


def segments_named(*names: str | None) -> pd.DataFrame:
    """Return a table of segments with these names."""
    labels = pd.Series(names, dtype=object)
    return frames.segments(len(names)).assign(company_industry=labels)


def test_a_name_is_drawn_literally() -> None:
    """A name is drawn literally, never as a formula, a line break or an empty text."""
    names = ["$5 and $10", "$\\frac$", "two\nlines", "", None, "a\x00b"]
    axes = plain_axes()
    of.plots.segments(segments_named(*names), ax=axes)
    axes.figure.draw_without_rendering()
    shown = list(bars(axes))[::-1]
    assert [text.replace(r"\$", "$") for text in shown] == [
        "$5 and $10",
        "$\\frac$",
        "two lines",
        "not given",
        "not given (2)",
        "ab",
    ]


def test_missing_characters_warn_once() -> None:
    """Characters missing from all fonts become question marks, with a single warning."""
    rare = "\U00013000\U00013001"
    axes = plain_axes()
    with pytest.warns(OutreachWarning, match=r"lack 2 of the characters in labels") as caught:
        of.plots.segments(segments_named(f"Smile {rare}", "Legal"), ax=axes)
    assert len({str(warning.message) for warning in caught}) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        axes.figure.draw_without_rendering()
    assert "Smile ??" in bars(axes)


def test_names_with_the_same_beginning_stay_distinct() -> None:
    """Long names with the same beginning have separate bars, and labels stay inside the figure."""
    long = "A name that is very much longer than any axes of this size have room for beside bars "
    axes = plain_axes(figsize=(3, 3))
    of.plots.segments(segments_named(long + "one", long + "two"), ax=axes)
    assert len(axes.patches) == 2
    assert all(label.get_text().endswith("…") for label in axes.get_yticklabels())


LONG = "A name that is very much longer than any axes have room for " * 5
ENDLESS = "x" * 1_000_000
OF_A_NAME: dict[str, Callable[[str], Axes]] = {
    "headcount": lambda name: of.plots.headcount(
        renamed(frames.companies(2), "company", name), company=[name, "Northforge"]
    ),
    "headcount_of_one": lambda name: of.plots.headcount(
        renamed(frames.companies(2), "company", name), company=name
    ),
    "segments": lambda name: of.plots.segments(segments_named(name, "Legal")),
    "segments_by": lambda name: of.plots.segments(
        frames.segments(2).rename(columns={"company_industry": name})
    ),
    "company_sizes": lambda name: of.plots.company_sizes(pd.DataFrame({"size": [name, "1-10"]})),
    "outcomes": lambda name: of.plots.outcomes(pd.DataFrame({"status": ["added", name]})),
    "capacity": lambda name: of.plots.capacity(renamed(frames.sending_days(3), "email", name)),
    "headcount_change": lambda name: of.plots.headcount_change(
        renamed(frames.changes(3), "company", name), by="company"
    ),
}


def renamed(table: pd.DataFrame, column: str, name: str) -> pd.DataFrame:
    """Return a table with another name for a column's first value."""
    return table.assign(**{column: table[column].replace({table[column].iloc[0]: name})})


@pytest.mark.parametrize(
    "name",
    [LONG, "W" * 100, pytest.param(ENDLESS, marks=pytest.mark.slow)],
    ids=["long", "wide", "endless"],
)
@pytest.mark.parametrize("plot", OF_A_NAME)
def test_long_names_are_cut_before_they_are_drawn(plot: str, name: str) -> None:
    """A name of any length is shortened to fit into the plot's own figure."""
    axes = OF_A_NAME[plot](name)
    assert flaws(axes) == []
    assert max(len(text.get_text()) for text in axes.findobj(Text)) < 500


def test_repeated_names_get_a_number() -> None:
    """A repeated name gets a number that is not yet used."""
    assert unique(["a", "a", "a (2)", "a"]) == ["a", "a (2)", "a (2) (2)", "a (3)"]


def test_control_characters_are_dropped() -> None:
    """Control characters are dropped, and half a surrogate pair becomes a question mark."""
    assert drawable(["a\u200bb\u202ec", "half \ud800"]) == ["abc", "half ?"]
