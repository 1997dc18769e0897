"""Arguments are checked before any request."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from outreach_frames.common.arguments import (
    check_choice,
    check_ids,
)
from outreach_frames.errors import InvalidInputError


@pytest.mark.parametrize("entry", [None, float("nan"), pd.NA, pd.NaT, "", "  ", ".", "..", 5])
def test_invalid_ids_are_an_error_with_positions(entry: object) -> None:
    """Entries that are not ids are an error that names their positions."""
    with pytest.raises(InvalidInputError, match=r"1 of 3 emails .*position 1"):
        check_ids("emails", ["a@b.example", entry, "c@d.example"])


def test_ids_become_a_list_of_text() -> None:
    """A single text is a list with one id, and blanks around ids are removed."""
    assert check_ids("ids", "abc") == ["abc"]
    assert check_ids("emails", [" a@b.example", "c@d.example\n"]) == ["a@b.example", "c@d.example"]


@pytest.mark.parametrize(
    "value", [None, pd.NA, 5, ["all"], np.array(["all", "none"]), pd.Series(["all", "none"])]
)
def test_a_choice_of_another_type_is_an_error(value: object) -> None:
    """A value that is not text is not a valid choice, even if it compares equal to one."""
    with pytest.raises(InvalidInputError, match="headcount takes one of all, none"):
        check_choice("headcount", value, ["all", "none"])
