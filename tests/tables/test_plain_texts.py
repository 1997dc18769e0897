"""Arrow values have the text that the same values have as Python objects."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.tables.json_values import LossyParseError, plain_text_of
from outreach_frames.tables.plain_texts import plain_texts
from tests.tables.people_strategies import INT64, TEXTS

ELEMENT = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "text": st.none() | TEXTS | st.text(),
        "b,": st.booleans(),
        "whole": INT64,
        "number": st.floats() | st.sampled_from([1e-4, 9.9e-5, 1e10, 9999999999.5, -0.0, 2.0**53]),
        "Ω": st.lists(st.none() | st.fixed_dictionaries({}, optional={"a": TEXTS}), max_size=2),
        "list": st.lists(st.none() | TEXTS, max_size=2),
        "null": st.none(),
    },
)


@given(st.lists(ELEMENT, max_size=4))
def test_texts_are_those_of_python_objects(values: list[Any]) -> None:
    """Structs and lists are written alike in both ways, or refused for their numbers."""
    array = pa.array(values, pa.array([*values, {"text": "x"}]).type)
    try:
        texts = plain_texts(array)
    except LossyParseError:
        numbers = [one["number"] for one in values if one and "number" in one]
        assert any(
            not 1e-4 <= abs(n) < 1e10 and not (n % 1 == 0 and abs(n) < 2**53) for n in numbers
        )
    else:
        assert texts.to_pylist() == [plain_text_of(value) for value in values]
