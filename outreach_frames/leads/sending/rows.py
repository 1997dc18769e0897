"""The rows of a report: what became of each row of a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import PreparedLeads
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
    plan: PreparedLeads, outcomes: Mapping[int, tuple[RowOutcome, int | None, int]]
) -> pd.DataFrame:
    """Make the rows of a report.

    Parameters
    ----------
    plan : PreparedLeads
        Its `outcome_of_unsent()` speaks for the rows that were never to be sent.
    outcomes : mapping of position to (outcome, chunk, attempts)
        What became of the rest; a row that is not in it was `not_sent`.

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
    unsent = plan.outcome_of_unsent()
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


def typed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the columns and dtypes of a report, renumbered from 0."""
    return rows.reindex(columns=list(_DTYPES)).astype(_DTYPES).reset_index(drop=True)
