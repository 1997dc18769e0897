"""Headcount tables made by hand, with columns of any type."""

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
    """A column of Python objects with a share of zero is drawn."""
    tidy = pd.DataFrame(TIDY)
    drawn = [of.plots.headcount(tidy.astype(kind)) for kind in (tidy.dtypes.to_dict(), object)]
    first, second = ([text.get_text() for text in axes.texts] for axes in drawn)
    assert first == second
    plt.close("all")


@pytest.mark.parametrize("column", ["people", "share"])
def test_a_value_that_is_not_a_number_is_an_error(column: str) -> None:
    """The error for a value that is not a number names the column."""
    tidy = pd.DataFrame(TIDY).astype({column: object})
    tidy.loc[0, column] = "many"
    with pytest.raises(InvalidInputError, match=rf"{column}.*not numbers"):
        of.plots.headcount(tidy)
    people = pd.DataFrame({name: [""] for name in of.columns("companies")["name"]})
    with pytest.raises(InvalidInputError, match=r"headcount.*not numbers"):
        of.plots.headcount(people)
