"""Arguments are checked before any request."""

from __future__ import annotations

import pandas as pd
import pytest

from outreach_frames.common.arguments import (
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
