"""Integers of Arrow tables are converted as pandas converts them."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.tables.schema import to_frame

NUMBERS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=20)


@given(
    st.lists(NUMBERS, min_size=1, max_size=3),
    st.integers(0, 10),
    st.integers(0, 20),
)
def test_integers_equal_those_of_pandas(
    chunks: list[list[int | None]], start: int, rows: int
) -> None:
    """Integers in one or several chunks become a writable array."""
    column = pa.chunked_array(chunks, pa.int64()).slice(start, rows)
    before = column.to_pylist()
    values = to_frame(pa.table({"n": column}), "numpy_nullable")["n"]
    pd.testing.assert_series_equal(values, pd.Series(before, dtype="Int64", name="n"))
    values[:] = 7
    values[:] = pd.NA
    assert values.isna().all()
    assert column.to_pylist() == before
