"""What is wrong with which row: one record each, and all of them as a frame."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import pandas as pd


class Problem(NamedTuple):
    """One thing that is wrong with one row; `column` and `field` are None for the whole row."""

    row: int
    column: Hashable | None
    field: str | None
    code: str
    message: str


def problems_frame(problems: Sequence[Problem], index: pd.Index) -> pd.DataFrame:
    """Return one row per problem in the order of the rows, with the labels of these."""
    ordered = sorted(problems, key=lambda problem: problem.row)
    rows = [problem.row for problem in ordered]
    columns = [problem.column for problem in ordered]
    return pd.DataFrame(
        {
            "row": pd.Series(rows, dtype="Int64"),
            "index": pd.Series(index.to_flat_index().take(rows)),
            "column": pd.Series(
                [None if name is None else str(name) for name in columns], dtype="str"
            ),
            "field": pd.Series([problem.field for problem in ordered], dtype="str"),
            "code": pd.Series([problem.code for problem in ordered], dtype="str"),
            "message": pd.Series([problem.message for problem in ordered], dtype="str"),
        }
    )
