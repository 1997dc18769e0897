"""The rows of a report: what became of each row of a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import Positions, PreparedLeads
from outreach_frames.leads.sending.outcome import RowOutcome

# The columns of `rows`: a row's label, and what became of it.
_DTYPES: Final = {
    "index": "object",
    "status": "str",
    "detail": "str",
    "error_code": "str",
    "chunk": "Int64",
    "attempts": "Int64",
}
# What files say of a row, too, and what they do not.
TOLD: Final = ("status", "detail", "error_code")
UNTOLD: Final = ("chunk", "attempts")


def make_rows(
    plan: PreparedLeads,
    outcomes: Mapping[int, tuple[RowOutcome, int | None, int]],
    kept: Positions | None = None,
) -> pd.DataFrame:
    """Make the rows of a report.

    Parameters
    ----------
    plan : PreparedLeads
        Its frame's rows; those that were never to be sent have their outcomes from it.
    outcomes : mapping of position to (outcome, chunk, attempts)
        The outcomes of the others; a row that is not in it was `not_sent`.
    kept : ndarray of int64, optional
        For each row, the row that is sent for its person; by default the plan's.

    Returns
    -------
    DataFrame
        As `SubmissionReport.rows`: one row per row of the plan's frame, in its order.
    """
    size = len(plan.frame)
    columns: dict[str, list[Any]] = {
        "status": [statuses.NOT_SENT] * size,
        "detail": [""] * size,
        "error_code": [None] * size,
        "chunk": [pd.NA] * size,
        "attempts": [0] * size,
    }
    unsent = plan.outcome_of_unsent() if kept is None else plan.unsent_beside(kept)
    for name in TOLD:
        for position, value in zip(unsent["position"], unsent[name], strict=True):
            columns[name][position] = value
    for position, (outcome, chunk, attempts) in outcomes.items():
        columns["status"][position] = outcome.status
        columns["detail"][position] = outcome.detail
        columns["error_code"][position] = outcome.error_code
        columns["chunk"][position] = pd.NA if chunk is None else chunk
        columns["attempts"][position] = attempts
    columns["index"] = plan.frame.index.to_list()
    return typed(pd.DataFrame(columns, dtype="object"))


def follow_unsent(rows: pd.DataFrame, kept: Positions) -> pd.DataFrame:
    """Return the rows of a report, with duplicates of a row that was not sent as not sent."""
    is_duplicate = rows["status"].eq(statuses.DUPLICATE_IN_FRAME).to_numpy()
    is_unsent = rows["status"].eq(statuses.NOT_SENT).to_numpy()
    followers = np.flatnonzero(is_duplicate & is_unsent[kept])
    rows.loc[followers, "status"] = statuses.NOT_SENT
    rows.loc[followers, "detail"] += ", which was not sent"
    return rows


def typed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the columns and dtypes of a report, renumbered from 0."""
    return rows.reindex(columns=list(_DTYPES)).astype(_DTYPES).reset_index(drop=True)
