"""Conversion of lists to text, on which pandas methods work."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.errors import InvalidInputError

SCALARS = st.none() | st.text(max_size=3)
LISTS = st.lists(st.none() | st.lists(SCALARS, max_size=4), max_size=5)


@given(LISTS, st.text(max_size=2))
def test_entries_are_joined_in_order(lists: list[Any], sep: str) -> None:
    """Text joins the non-missing entries; an empty list is empty text, a missing one is missing."""
    array = pa.chunked_array([pa.array(lists, pa.list_(pa.string()))])
    frame = pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(array)})
    texts = frame.outreach.unlist(sep=sep)["a"]
    assert texts.dtype == "str"
    wanted = [
        None if cell is None else sep.join(e for e in cell if e is not None) for cell in lists
    ]
    assert [None if pd.isna(text) else text for text in texts] == wanted


@pytest.mark.parametrize(
    ("lists", "texts"),
    [
        ([[1, 2], []], ["1; 2", ""]),
        ([[{"object": "x", "title": "CEO", "company_url": "u", "start": None}]], ["CEO"]),
        ([[{"a": "x", "b": 2}, {"a": None, "b": None}, {"a": "y", "b": None}]], ["x, 2; y"]),
        ([[{"id": "1"}, {"id": "2"}]], ["1; 2"]),
        ([[["a", "b"], ["c"]]], ["a, b; c"]),
        ([[True, None]], ["true"]),
        ([[None], None], ["", None]),
        ([[{}, None]], [""]),
    ],
)
def test_entries_of_any_type_are_text(lists: list[Any], texts: list[Any]) -> None:
    """Numbers, objects and nested lists become text; objects omit constants, ids and URLs."""
    arrow = pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(lists)]))})
    plain = pd.DataFrame({"a": pd.Series(lists, dtype=object)})
    for frame in (arrow, plain):
        told = frame.outreach.unlist()["a"]
        assert [None if pd.isna(text) else text for text in told] == texts


DATES = {"start_date": "2018-01-01", "end_date": "2020-06-30"}


@pytest.mark.parametrize(
    ("missing", "position", "education"),
    [
        ([], "A, 2018-01-01 to 2020-06-30", "A, 2018-01-01 to 2020-06-30"),
        (["start_date"], "A, to 2020-06-30", "A, to 2020-06-30"),
        (["end_date"], "A, 2018-01-01 to now", "A, 2018-01-01"),
        ([*DATES], "A", "A"),
    ],
)
def test_a_current_and_an_ended_position_differ(
    missing: list[str], position: str, education: str
) -> None:
    """Start and end are a period; a position without an end is current, an education is not."""
    dates = DATES | dict.fromkeys(missing)
    for name, text in (("company_name", position), ("school_name", education)):
        frame = pd.DataFrame({"a": [[{name: "A"} | dates, {name: None} | dict.fromkeys(DATES)]]})
        (joined,) = frame.outreach.unlist()["a"]
        assert joined.split("; ")[0] == text


def test_other_columns_do_not_change(people: pd.DataFrame) -> None:
    """Columns without lists, the index, the names and the attrs do not change."""
    frame = people.set_index("id").head(20)
    before = frame.copy(deep=True)
    plain = frame.outreach.unlist()
    pd.testing.assert_frame_equal(frame, before)
    lists = [name for name in frame if str(frame[name].dtype).startswith("list<")]
    assert len(lists) == 8
    assert plain[lists].dtypes.eq("str").all()
    pd.testing.assert_frame_equal(plain.drop(columns=lists), frame.drop(columns=lists))
    assert list(plain) == list(frame)
    assert plain.attrs == frame.attrs


def test_odd_frames() -> None:
    """Frames without columns, with duplicate columns, or without rows keep their shape."""
    assert pd.DataFrame(index=[1, 2]).outreach.unlist().shape == (2, 0)
    twice = pd.DataFrame([[[1], "x"]], columns=["a", "a"])
    assert twice.outreach.unlist().to_numpy().tolist() == [["1", "x"]]
    mixed = pd.DataFrame({"a": pd.Series([[1], {"b": 1}, "c"], dtype=object)})
    assert mixed.outreach.unlist()["a"].tolist() == [[1], {"b": 1}, "c"]
    with pytest.raises(InvalidInputError, match="sep must be text"):
        twice.outreach.unlist(sep=None)
