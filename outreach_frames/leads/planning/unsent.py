"""The rows that are not sent, and why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common.text import quoted
from outreach_frames.leads import statuses
from outreach_frames.leads.planning.checks import PLACEHOLDER, Checked


def unsent_rows(
    index: pd.Index,
    checked: Checked,
    keys: pa.RecordBatch,
    kept: np.ndarray[Any, Any],
    linked_by: str = "other rows",
) -> pd.DataFrame:
    """Return every row that is not sent: position, status, detail, error_code."""
    problems = checked.problems
    wrong = problems[~checked.is_valid[problems["row"].to_numpy(dtype=np.int64)]]
    codes = wrong[wrong["code"] != PLACEHOLDER].groupby("row")["code"].first()
    details = wrong.groupby("row")["message"].agg(" ".join)
    duplicates = np.flatnonzero(kept != np.arange(len(kept)))
    unsent = pd.DataFrame(
        {
            "position": np.concatenate([codes.index.to_numpy(dtype=np.int64), duplicates]),
            "status": pd.Series(
                [statuses.INVALID] * len(codes) + [statuses.DUPLICATE_IN_FRAME] * len(duplicates),
                dtype="str",
            ),
            "detail": pd.Series(
                [*details, *_reasons(index, keys, duplicates, kept[duplicates], linked_by)],
                dtype="str",
            ),
            "error_code": pd.Series([*codes, *[None] * len(duplicates)], dtype="str"),
        }
    )
    return unsent.sort_values("position", ignore_index=True)


def _reasons(
    index: pd.Index,
    keys: pa.RecordBatch,
    duplicates: np.ndarray[Any, Any],
    kept: np.ndarray[Any, Any],
    linked_by: str,
) -> list[str]:
    """Say what each duplicate has in common with the row that is kept."""
    reasons = [f"same person, linked by {linked_by},"] * len(duplicates)
    for field in reversed(keys.schema.names):
        mine, theirs = (keys.column(field).take(pa.array(rows)) for rows in (duplicates, kept))
        for place in np.flatnonzero(pc.equal(mine, theirs).fill_null(False)).tolist():
            reasons[place] = f"same {field}"
    labels = index.to_flat_index().take(kept).tolist()
    named = (
        [""] * len(kept)
        if isinstance(index, pd.RangeIndex)
        else [f" (index {quoted(label)})" for label in labels]
    )
    return [
        f"{reason} as row {row}{label}"
        for reason, row, label in zip(reasons, kept.tolist(), named, strict=True)
    ]
