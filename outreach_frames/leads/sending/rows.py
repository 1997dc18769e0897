"""Build the rows of reports and of journals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.warnings import warn
from outreach_frames.leads import statuses
from outreach_frames.leads.prepared import CheckedFrame, Positions
from outreach_frames.leads.sending.events import Entry
from outreach_frames.leads.sending.journal_file import read_only
from outreach_frames.tables.columns import clashing_names, drop_appended

# The columns of `rows`: label, outcome and request.
_DTYPES: Final = {
    "index": "object",
    "status": STR,
    "detail": STR,
    "error_code": STR,
    "earlier_run": "boolean",
    "chunk": "Int64",
    "attempts": "Int64",
    "sent_at": "datetime64[us, UTC]",
}
# CSV files and sheets have the outcome columns, but not the request columns.
OUTCOME_COLUMNS: Final = ("status", "detail", "error_code", "earlier_run")
REQUEST_COLUMNS: Final = ("chunk", "attempts", "sent_at")
_COLUMNS: Final = [*OUTCOME_COLUMNS, *REQUEST_COLUMNS]


def make_rows(frame: CheckedFrame, entries: Mapping[int, Entry], kept: Positions) -> pd.DataFrame:
    """Build the rows of a `SubmissionReport` from the entries of rows; `kept` as in the plan.

    Rows without an entry have the plan's outcome or are `not_sent`.
    """
    no_request = (False, pd.NA, 0, None)
    values: list[tuple[Any, ...]] = [(statuses.NOT_SENT, "", None, *no_request)] * len(frame.frame)
    for position, outcome in frame.unsent_outcomes(kept).items():
        values[position] = (*outcome, *no_request)
    for position, entry in entries.items():
        values[position] = _cells(entry)
    rows = pd.DataFrame(values, columns=_COLUMNS, dtype="object")
    # A duplicate follows its lead.
    is_duplicate = rows["status"].eq(statuses.DUPLICATE_IN_FRAME).to_numpy()
    rows.loc[is_duplicate, "earlier_run"] = rows["earlier_run"].to_numpy()[kept[is_duplicate]]
    return rows.assign(index=pd.Series(frame.frame.index.to_list(), dtype="object"))


def mark_duplicates_of_unsent(rows: pd.DataFrame, kept: Positions) -> pd.DataFrame:
    """Set the status of a `not_sent` or `rejected` row's duplicates to that of the row."""
    is_duplicate = rows["status"].eq(statuses.DUPLICATE_IN_FRAME).to_numpy()
    for status in sorted(statuses.RETRYABLE):
        is_unsent = rows["status"].eq(status).to_numpy()
        affected = np.flatnonzero(is_duplicate & is_unsent[kept])
        rows.loc[affected, "status"] = status
        rows.loc[affected, "detail"] += f", which was {status.replace('_', ' ')}"
        rows.loc[affected, "error_code"] = rows["error_code"].to_numpy()[kept[affected]]
    return rows


def typed_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Convert rows to a report's columns and dtypes, with a new index from 0."""
    rows = rows.reindex(columns=list(_DTYPES)).astype(_DTYPES).reset_index(drop=True)
    return rows.fillna({"earlier_run": False})


def own_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Drop the columns of an earlier report."""
    return drop_appended(frame, OUTCOME_COLUMNS, REQUEST_COLUMNS, statuses.STATUSES)


def warn_of_own_columns(frame: pd.DataFrame) -> None:
    """Warn if a frame has own columns with the names of a report's columns."""
    clashing = clashing_names(own_columns(frame), [*OUTCOME_COLUMNS, *REQUEST_COLUMNS])
    if clashing:
        warn(
            f"The table has its own {'column' if len(clashing) == 1 else 'columns'} "
            f"{', '.join(clashing)}: the report and its files name the outcome "
            f"{', '.join(clashing.values())}."
        )


def read_journal(path: str | Path) -> pd.DataFrame:
    """Read the recorded leads of a journal, without the rows that were sent.

    The journal is not changed. It cannot be read while a submission uses it.

    Parameters
    ----------
    path : str or Path
        The journal of a submission, of any sequence and service.

    Returns
    -------
    DataFrame
        One row per recorded lead, in the order of recording: status, detail, error_code (str),
        chunk, attempts (Int64), sent_at (datetime64, UTC), as in `SubmissionReport.rows`. Texts of
        the service are not recorded, because they may name a person.
        `.attrs["sequence_id"]` is the sequence's id.

    Raises
    ------
    InvalidInputError
        The file is missing, in use, damaged or not a journal.

    Notes
    -----
    Interface: POST /sequences/{id}/leads. Nothing is requested. A journal has hashes instead of
    addresses; `df.outreach.report(journal=)` finds the outcomes of a frame's rows. Rows that were
    never sent, such as invalid rows and duplicates, are not recorded.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import outreach_frames as of
    >>> leads = pd.DataFrame({"email": ["ada@brightforge.example", "n/a"]})
    >>> with TemporaryDirectory() as folder, of.connect("sandbox", cache=None) as client:
    ...     journal = Path(folder, "spring.journal")
    ...     sequence = client.sandbox.sequence_ids["accepts_any"]
    ...     _ = leads.outreach.add_to_sequence(sequence, journal=journal)
    ...     recorded = of.read_journal(journal)
    >>> recorded["status"].tolist(), recorded.attrs["sequence_id"] == sequence
    (['added'], True)
    """
    with read_only(path) as file:
        values = [_cells(lead.entry) for lead in file.events.leads()]
        sequence_id = file.sequence_id
    rows = typed_rows(pd.DataFrame(values, columns=_COLUMNS, dtype="object")).drop(
        columns=["index", "earlier_run"]
    )
    rows.attrs["sequence_id"] = sequence_id
    return rows


def _cells(entry: Entry) -> tuple[Any, ...]:
    """Return the cells of the outcome and request columns."""
    chunk = pd.NA if entry.chunk is None else entry.chunk
    status, detail, code = entry.outcome
    time = None if status == statuses.NOT_SENT else entry.sent_at
    if entry.is_earlier and time is not None:
        detail = "; ".join(filter(None, [f"{status} on {time.date()}", detail]))
    return (status, detail, code, entry.is_earlier, chunk, entry.attempts, time)
