"""The outcome of every row of a submission."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames.client.client import Client
from outreach_frames.common.card import Card
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.files.csv_file import write_csv_files
from outreach_frames.files.result import Result
from outreach_frames.leads import statuses
from outreach_frames.leads.cards import report_card
from outreach_frames.leads.prepared import Positions, PreparedLeads
from outreach_frames.leads.sending.outcome import RowOutcome
from outreach_frames.leads.sending.run import Monitor
from outreach_frames.tables.columns import append_columns, drop_appended, text_names

# The columns of `rows`: a row's label, its outcome and its request.
_DTYPES: Final = {
    "index": "object",
    "status": "str",
    "detail": "str",
    "error_code": "str",
    "chunk": "Int64",
    "attempts": "Int64",
}
# Files have the outcome of a row, and lack its request.
OUTCOME_COLUMNS: Final = ("status", "detail", "error_code")
REQUEST_COLUMNS: Final = ("chunk", "attempts")


class SubmissionReport(Result):
    """The outcome of every row of a frame that was added to a sequence.

    A workbook has the sheets `summary`, `added`, `skipped` and `failed`, with every row on exactly
    one of the last three, and one of the notes and the error, where there are any.

    Parameters
    ----------
    frame : DataFrame
        The input. It is not changed.
    rows : DataFrame
        One row per row of the input, as `make_rows` makes it.
    sequence_id : str
        The sequence.
    notes : sequence of str
        What the service said that no row explains.
    error : OutreachError, optional
        What stopped the run early, or kept rows from being added.
    dry_run : bool
        Whether nothing was to be sent.
    retry : callable, optional
        Sends what is unknown once more, and returns the report of that. It takes `watch` and
        `client` as `submit` does.

    Attributes
    ----------
    rows : DataFrame
        Columns `index` (the input's label, a tuple where it has several levels), `status`,
        `detail`, `error_code` (str), `chunk` (Int64, which request), `attempts` (Int64, how often
        it was sent); one row per row of the input, in its order.
    notes : list of str
        What the service said that no row explains.
    error : OutreachError or None
        What stopped the run early, or kept rows from being added.

    Examples
    --------
    >>> frame = pd.DataFrame({"email": ["ada@example.com", "bo@example.com"]})
    >>> rows = pd.DataFrame({"index": [0, 1], "status": ["added", "recently_contacted"]})
    >>> SubmissionReport(frame, rows, sequence_id="s1").summary()
                   status  rows
    0               added     1
    1  recently_contacted     1
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        rows: pd.DataFrame,
        *,
        sequence_id: str,
        notes: Sequence[str] = (),
        error: OutreachError | None = None,
        dry_run: bool = False,
        retry: Callable[..., SubmissionReport] | None = None,
    ) -> None:
        if len(rows) != len(frame):
            raise ValueError("there must be one row of `rows` for each row of the frame")
        self.rows: pd.DataFrame = _typed(rows)
        self.sequence_id: Final = sequence_id
        self.notes: list[str] = list(dict.fromkeys(notes))
        self.error: Final = error
        self.dry_run: Final = dry_run
        # A shallow copy: what is done to the analyst's frame from now on does not reach it.
        self._frame = drop_appended(frame, OUTCOME_COLUMNS, REQUEST_COLUMNS).copy(deep=False)
        self._retry = retry

    @property
    def frame(self) -> pd.DataFrame:
        """The input with `status`, `detail`, `error_code`, `chunk` and `attempts` appended.

        Returns
        -------
        DataFrame
            With the input's index and columns; a name that is taken gets `outreach_` in front.
            Columns that an earlier report appended are replaced.
        """
        return append_columns(self._frame, self.rows.drop(columns="index"))

    def summary(self) -> pd.DataFrame:
        """Count the rows of each status that occurs.

        Returns
        -------
        DataFrame
            Columns `status` (str) and `rows` (Int64), which add up to the rows of the input.
        """
        counts = self.rows["status"].value_counts(sort=False)
        known = [status for status in statuses.STATUSES if status in counts.index]
        order = [*known, *(status for status in counts.index if status not in known)]
        return pd.DataFrame(
            {
                "status": pd.array(order, dtype="str"),
                "rows": pd.array([int(counts[status]) for status in order], dtype="Int64"),
            }
        )

    def to_csv(self, folder: str | Path, *, excel: bool = False) -> Path:
        """Write `added.csv`, `skipped.csv` and `failed.csv`, with every row in exactly one.

        Added are `added` and `present`; failed are `invalid`, `rejected`, `unknown` and
        `not_sent`; all else was skipped.

        Parameters
        ----------
        folder : str or Path
            It is made where it is missing; files of these names in it are replaced.
        excel : bool
            Begin the files with a byte order mark, so that Excel reads accents.

        Returns
        -------
        Path
            The folder. Each file has the input's own columns, then `status`, `detail` and
            `error_code`, and its labels in front unless they are just numbers from 0 on. Formulas
            are escaped, see `df.outreach.to_csv`.

        Raises
        ------
        InvalidInputError
            When a file cannot be written, or a column holds what CSV cannot.
        """
        return write_csv_files(self._tables(), folder, excel=excel, index=self._has_labels)

    def _sheets(self) -> dict[str, pd.DataFrame]:
        sheets = {"summary": self.summary()}
        # The detail last, where no cell covers the end of a long one.
        sheets.update(self._tables(("status", "error_code", "detail")))
        if notes := [*self.notes, *filter(None, [self._card().alert])]:
            sheets["notes"] = pd.DataFrame({"note": notes})
        return sheets

    def _indexed(self) -> dict[str, bool]:
        return dict.fromkeys(statuses.KINDS, self._has_labels)

    @property
    def _has_labels(self) -> bool:
        """Whether the input's index is more than row numbers from 0 on."""
        index = self._frame.index
        return index.name is not None or not index.equals(pd.RangeIndex(len(index)))

    def _tables(self, told: Sequence[str] = OUTCOME_COLUMNS) -> dict[str, pd.DataFrame]:
        """Return the input with its outcomes, each row in the part of its outcome's kind."""
        named = self._frame.set_axis(text_names(self._frame.columns), axis=1)
        table = append_columns(named, self.rows[list(told)])
        kinds = self.rows["status"].map(statuses.kind_of)
        return {kind: table.iloc[np.flatnonzero(kinds == kind)] for kind in statuses.KINDS}

    def raise_for_error(self) -> SubmissionReport:
        """Raise `error` where there is one; else return this report.

        Returns
        -------
        SubmissionReport
            This one: every row is added, or was skipped.

        Raises
        ------
        OutreachError
            What stopped the run early, or kept rows from being added.
        """
        if self.error is not None:
            raise self.error
        return self

    def retry_unknown(
        self, *, watch: Monitor | None = None, client: Client | None = None
    ) -> SubmissionReport:
        """Send the rows that are `unknown` once more.

        What is in the sequence by then is not added again and becomes `present`. What the service
        refuses now stays `unknown`: it may have taken it the first time.

        Parameters
        ----------
        watch : callable, optional
            Called with the run before its first request and a few times a second; returns
            "continue", "drain" (end after the request under way) or "abort".
        client : Client, optional
            Another connection to the same service. By default the one that sent them.

        Returns
        -------
        SubmissionReport
            Of all rows, with the new outcomes of these.

        Raises
        ------
        InvalidInputError
            When no row is unknown, this report cannot send, or the client is connected to another
            service.
        """
        if not (self.rows["status"] == statuses.UNKNOWN).any():
            raise InvalidInputError("No row is unknown, so there is nothing to send again.")
        if self._retry is None:
            raise InvalidInputError(
                "This report cannot send. Plan its unknown rows again: "
                'report.frame[report.rows["status"].eq("unknown").to_numpy()].outreach.plan(...). '
                "What is in the sequence by then comes back as already_in_sequence."
            )
        options = {"watch": watch, "client": client}
        return self._retry(**{name: value for name, value in options.items() if value is not None})

    def __getstate__(self) -> dict[str, Any]:
        # Without the client, which holds a token.
        return self.__dict__ | {"_retry": None}

    def _card(self) -> Card:
        return report_card(
            self.rows,
            self.summary(),
            sequence_id=self.sequence_id,
            notes=self.notes,
            error=self.error,
            dry_run=self.dry_run,
        )


class _Memory:
    """The last report of this process, or the function that makes it during a run."""

    make: Callable[[], SubmissionReport] | None = None


def last_report() -> SubmissionReport | None:
    """Return the report of the last submission of this process, where its caller lost it.

    Returns
    -------
    SubmissionReport or None
        What is known now, also of a run that was interrupted or is under way; None where nothing
        was sent. A dry run does not count.

    Notes
    -----
    Interface: POST /sequences/{id}/leads.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None) as client:
    ...     leads = pd.DataFrame({"email": ["ada@example.com"]})
    ...     _ = leads.outreach.add_to_sequence(client.sandbox.sequence_ids["accepts_any"])
    >>> of.last_report().rows["status"].tolist()
    ['added']
    """
    make = _Memory.make
    return None if make is None else make()


@contextmanager
def remembered(
    make: Callable[[], SubmissionReport],
) -> Iterator[Callable[[SubmissionReport], None]]:
    """Remember a run while it is under way; yield what remembers its report.

    A run that raises an OutreachError sent nothing, and is forgotten.
    """
    before, _Memory.make = _Memory.make, make

    def remember(report: SubmissionReport) -> None:
        _Memory.make = lambda: report

    try:
        yield remember
    except OutreachError:
        _Memory.make = before
        raise


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
    told: list[tuple[Any, ...]] = [(statuses.NOT_SENT, "", None, pd.NA, 0)] * len(plan.frame)
    unsent = plan.outcome_of_unsent(kept)
    for position, *known in unsent[["position", *OUTCOME_COLUMNS]].itertuples(index=False):
        told[position] = (*known, pd.NA, 0)
    for position, (outcome, chunk, attempts) in outcomes.items():
        told[position] = (*outcome, pd.NA if chunk is None else chunk, attempts)
    rows = pd.DataFrame(told, columns=[*OUTCOME_COLUMNS, *REQUEST_COLUMNS], dtype="object")
    return _typed(rows.assign(index=pd.Series(plan.frame.index.to_list(), dtype="object")))


def follow_unsent(rows: pd.DataFrame, kept: Positions) -> pd.DataFrame:
    """Return the rows of a report, with duplicates of a row that was not sent as not sent."""
    is_duplicate = rows["status"].eq(statuses.DUPLICATE_IN_FRAME).to_numpy()
    is_unsent = rows["status"].eq(statuses.NOT_SENT).to_numpy()
    followers = np.flatnonzero(is_duplicate & is_unsent[kept])
    rows.loc[followers, "status"] = statuses.NOT_SENT
    rows.loc[followers, "detail"] += ", which was not sent"
    return rows


def _typed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the columns and dtypes of a report, renumbered from 0."""
    return rows.reindex(columns=list(_DTYPES)).astype(_DTYPES).reset_index(drop=True)
