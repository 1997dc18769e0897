"""Headcounts that were made by hand, with columns of any type."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.errors import InvalidInputError

TIDY = {
    "company": ["Acme", "Acme", "Bolt"],
    "department": ["sales", "legal", "sales"],
    "people": [3, 0, 0],
    "share": [1.0, 0.0, 0],
}


def test_numbers_as_objects_are_drawn() -> None:
    """A share of zero in a column of Python objects is no error."""
    tidy = pd.DataFrame(TIDY)
    drawn = [of.plots.headcount(tidy.astype(kind)) for kind in (tidy.dtypes.to_dict(), object)]
    first, second = ([text.get_text() for text in axes.texts] for axes in drawn)
    assert first == second
    plt.close("all")


@pytest.mark.parametrize("column", ["people", "share"])
def test_what_is_no_number_is_told(column: str) -> None:
    """The error names the column."""
    tidy = pd.DataFrame(TIDY).astype({column: object})
    tidy.loc[0, column] = "many"
    with pytest.raises(InvalidInputError, match=rf"{column}.*not numbers"):
        of.plots.headcount(tidy)
    people = pd.DataFrame({name: [""] for name in of.columns("companies")["name"]})
    with pytest.raises(InvalidInputError, match=r"headcount.*not numbers"):
        of.plots.headcount(people)
