"""Report the outcome of each row of a submission."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames.client.client import Client
from outreach_frames.common.card import Card
from outreach_frames.common.pandas_versions import STR, copy_frame
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.files.csv_file import write_csv_files
from outreach_frames.files.excel import write_sheets
from outreach_frames.files.result import Result
from outreach_frames.leads import statuses
from outreach_frames.leads.cards import report_card
from outreach_frames.leads.sending.activity import SENT, read_activity
from outreach_frames.leads.sending.rows import OUTCOME_COLUMNS, own_columns, typed_rows
from outreach_frames.leads.sending.run import Monitor
from outreach_frames.tables.columns import append_columns, text_names

_SHEETS: Final = ("summary", "notes")


class SubmissionReport(Result):
    """The outcome of each row of a submitted frame.

    Parameters
    ----------
    frame : DataFrame
        The submitted frame, which is not changed.
    rows : DataFrame
        One row per row of the input, from `make_rows`.
    sequence_id : str
        The sequence's id.
    sequence_name : str, optional
        The sequence's name, if known.
    notes : sequence of str
        Messages of the service that belong to no single row.
    error : OutreachError, optional
        The error that stopped the run early or kept rows from being added.
    dry_run : bool
        Whether the report is of a dry run.
    retry : callable, optional
        A function that resends the unknown rows and returns the new report; its parameters `watch`
        and `client` are those of `submit`.
    journal : Path, optional
        The journal from which the report was read.
    emails : Array, optional
        The rows' addresses as sent; activity cannot be read without addresses.
    client : Client, optional
        The connection that reads activity; by default the client of the last `connect`.

    Attributes
    ----------
    rows : DataFrame
        One row per row of the input, in its order: `index` (the input's label, a tuple for several
        levels), `status`, `detail`, `error_code` (str), `earlier_run` (boolean, whether the outcome
        was recorded by an earlier run), `chunk` (Int64, the number of the chunk,
        from 1), `attempts` (Int64, the number of sends), `sent_at` (datetime64, UTC, to the second;
        the first send that may have added the row, missing if `not_sent`).
    notes : list of str
        Messages of the service that belong to no single row. Journals do not record them.
    error : OutreachError or None
        The error that stopped the run early or kept rows from being added.

    Examples
    --------
    >>> frame = pd.DataFrame({"email": ["ada@example.com", "bo@example.com"]})
    >>> rows = pd.DataFrame({"index": [0, 1], "status": ["added", "recently_contacted"]})
    >>> SubmissionReport(frame, rows, sequence_id="s1").summary()
                   status  rows  earlier_run
    0               added     1            0
    1  recently_contacted     1            0
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        rows: pd.DataFrame,
        *,
        sequence_id: str,
        sequence_name: str | None = None,
        notes: Sequence[str] = (),
        error: OutreachError | None = None,
        dry_run: bool = False,
        retry: Callable[..., SubmissionReport] | None = None,
        journal: Path | None = None,
        emails: pa.Array | None = None,
        client: Client | None = None,
    ) -> None:
        if len(rows) != len(frame):
            raise ValueError("`rows` must have one row per row of `frame`")
        self.rows: pd.DataFrame = typed_rows(rows)
        self.sequence_id: Final = sequence_id
        self._sequence = sequence_name or sequence_id
        self.notes: list[str] = list(dict.fromkeys(notes))
        self.error: OutreachError | None = error
        self.dry_run: Final = dry_run
        self._frame = copy_frame(own_columns(frame))
        self._retry, self._journal, self._emails, self._client = retry, journal, emails, client

    @property
    def frame(self) -> pd.DataFrame:
        """The input with the columns of `.rows` appended, without `index`.

        Returns
        -------
        DataFrame
            The input's index and columns, then the outcome columns. If the input has a column with
            the same name, the outcome column has the prefix `outreach_`. Columns of an earlier
            report are replaced.
        """
        return append_columns(self._frame, self.rows.drop(columns="index"))

    def summary(self) -> pd.DataFrame:
        """Count the rows per status.

        Returns
        -------
        DataFrame
            Columns `status` (str), `rows` and `earlier_run` (Int64, how many of the rows have an
            outcome of an earlier run); the counts add up to the input's rows.
        """
        counts = self.rows["status"].value_counts(sort=False)
        earlier = self.rows.groupby("status")["earlier_run"].sum()
        known = [status for status in statuses.STATUSES if status in counts.index]
        order = [*known, *(status for status in counts.index if status not in known)]
        return pd.DataFrame(
            {
                "status": pd.array(order, dtype=STR),
                "rows": pd.array([int(counts[status]) for status in order], dtype="Int64"),
                "earlier_run": pd.array([int(earlier[status]) for status in order], dtype="Int64"),
            }
        )

    def to_csv(self, folder: str | Path, *, excel: bool = False) -> Path:
        """Write `added.csv`, `skipped.csv` and `failed.csv`, with each row in one of the files.

        `added.csv` has the rows with status `added` or `present`, `failed.csv` the rows with status
        `invalid`, `rejected`, `unknown` or `not_sent`, and `skipped.csv` all other rows. The report
        of a dry run also has `would_send.csv`, with the rows that a submission would send; other
        reports empty a `would_send.csv` in the folder.

        Parameters
        ----------
        folder : str or Path
            The folder is created if missing; existing files of these names are replaced.
        excel : bool
            Start the files with a byte order mark, so that Excel reads accents.

        Returns
        -------
        Path
            The folder. Each file has the input's columns, then `status`, `detail`, `error_code` and
            `earlier_run`; the index comes first, unless it has only row numbers from 0. Formulas
            are escaped, see `df.outreach.to_csv`.

        Raises
        ------
        InvalidInputError
            A file cannot be written, or a column has values that CSV cannot store.
        """
        tables, known = self._tables(), {"excel": excel, "index": self._has_labels}
        place = write_csv_files(tables, folder, **known)
        ready = statuses.WOULD_SEND
        if ready not in tables and (place / f"{ready}.csv").exists():
            # After a submission, the rows of an earlier dry run must not be sent again.
            write_csv_files({ready: tables["added"].iloc[:0]}, place, **known)
        return place

    def to_excel(self, path: str | Path, *, tz: str = "UTC", progress: bool | None = None) -> Path:
        """Write a workbook with a sheet per status.

        Parameters
        ----------
        path : str or Path
            The path of the ``.xlsx`` file. An existing file is replaced.
        tz : str
            The time zone for times with a zone.
        progress : bool, optional
            Show a progress bar; by default in a notebook or terminal, for long runs.

        Returns
        -------
        Path
            The path of the file. Each status that occurs has a sheet with its rows. The sheet
            `summary` comes first; `notes` comes last if the report has notes or an error. Names of
            sheets are cut to 31 characters, stay distinct, and have `_` for characters that Excel
            does not allow.

        Raises
        ------
        InvalidInputError
            The file cannot be written, or there are more rows than a sheet holds.

        Examples
        --------
        >>> import tempfile
        >>> frame = pd.DataFrame({"email": ["ada@example.com", "bo@example.com"]})
        >>> rows = pd.DataFrame({"index": [0, 1], "status": ["added", "recently_contacted"]})
        >>> report = SubmissionReport(frame, rows, sequence_id="s1")
        >>> report.to_excel(Path(tempfile.mkdtemp()) / "report.xlsx").name
        'report.xlsx'
        """
        summary = self.summary()
        # The detail comes last, so that the next cell does not hide a long detail.
        columns = ("status", "error_code", "earlier_run", "detail")
        tables = self._split(columns, self.rows["status"], summary["status"])
        # An undocumented status may be called like another sheet.
        tables = {name if name not in _SHEETS else f"{name} rows": tables[name] for name in tables}
        sheets = {"summary": summary, **tables}
        if notes := [*self.notes, *filter(None, [self._card().alert])]:
            sheets["notes"] = pd.DataFrame({"note": notes})
        index = dict.fromkeys(tables, self._has_labels)
        return write_sheets(sheets, path, index=index, tz=tz, progress=progress)

    @property
    def _has_labels(self) -> bool:
        """Whether the input's index differs from row numbers from 0."""
        index = self._frame.index
        return index.name is not None or not index.equals(pd.RangeIndex(len(index)))

    def _tables(self) -> dict[str, pd.DataFrame]:
        """Split the input with its outcomes by kind of status."""
        kinds = self.rows["status"].map(statuses.kind_of)
        is_dry_run = self.dry_run or kinds.eq(statuses.WOULD_SEND).any()
        names = statuses.DRY_RUN_KINDS if is_dry_run else statuses.KINDS
        return self._split(OUTCOME_COLUMNS, kinds, names)

    def _split(
        self, columns: Sequence[str], groups: pd.Series[Any], names: Iterable[str]
    ) -> dict[str, pd.DataFrame]:
        """Append these outcome columns to the input, and split it into groups."""
        named = self._frame.set_axis(text_names(self._frame.columns), axis=1)
        table = append_columns(named, self.rows[list(columns)])
        return {name: table.iloc[np.flatnonzero(groups == name)] for name in names}

    def raise_for_error(self) -> SubmissionReport:
        """Raise `error` if there is an error, else return this report.

        Returns
        -------
        SubmissionReport
            This report, in which each row was added or skipped.

        Raises
        ------
        OutreachError
            The error that stopped the run early or kept rows from being added.
        """
        if self.error is not None:
            raise self.error
        return self

    def retry_unknown(self, *, client: Client | None = None) -> SubmissionReport:
        """Resend the rows with status `unknown`.

        Rows already in the sequence are not added again and become `present`. Rows that are refused
        now stay `unknown`: the first request may have added them.

        Parameters
        ----------
        client : Client, optional
            Another connection to the same service; by default the connection that sent the rows.

        Returns
        -------
        SubmissionReport
            A new report of all rows, with the new outcomes of resent rows.

        Raises
        ------
        InvalidInputError
            No row is unknown, the report cannot send, or the client is connected to another
            service.
        """
        return self._resend_unknown(client=client)

    def _resend_unknown(
        self, *, client: Client | None, watch: Monitor | None = None
    ) -> SubmissionReport:
        """Resend the unknown rows; `watch` may end the run."""
        if not (self.rows["status"] == statuses.UNKNOWN).any():
            raise InvalidInputError("No row is unknown, so there is nothing to resend.")
        if self._retry is None:
            raise InvalidInputError(
                "This report cannot send. If you have a journal of its rows, submit the rows "
                "again with the journal, and call retry_unknown() on the new report. Otherwise "
                "plan the unknown rows again: "
                'report.frame[report.rows["status"].eq("unknown").to_numpy()].outreach.plan(...). '
                "Rows already in the sequence will have the status already_in_sequence."
            )
        return self._retry(watch=watch, client=client)

    def recent_activity(
        self,
        *,
        since: str | date | None = SENT,
        all_sequences: bool = False,
        client: Client | None = None,
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Return the recent activity of the people who are or may be in the sequence.

        Contacts of rows with status `added`, `present`, `unknown` and `already_in_sequence` are
        read by address, one request per person, without the cache. Events have only the name of
        their sequence, so the account's sequences are listed first.

        Parameters
        ----------
        since : "sent", str, date, datetime or None
            Drop events before this time: "sent" (each row's `sent_at`), or a day or time in ISO
            8601. Times without a zone are in UTC. None keeps all events.
        all_sequences : bool
            Keep the events of all sequences. By default only the events with the name of the
            report's sequence are kept, or all events if that name is unknown or not unique.
        client : Client, optional
            By default the report's client, or the client of the last `connect`.
        progress : bool, optional
            Show a progress bar; by default in a notebook or terminal, for long runs.

        Returns
        -------
        DataFrame
            One row per event, sorted by row, newest first: row (Int64, the position in `.rows`),
            contact_id, email (str, the row's address), event_at (datetime64, UTC), event_type,
            sequence_type, sequence_name (str). Rows without events are missing.

        Raises
        ------
        InvalidInputError
            `since` is not a time, rows have no `sent_at`, or the report has no addresses. Nothing
            was requested.
        ServiceError
            The service failed or could not be reached; `.partial` has the events read so far.

        Warns
        -----
        OutreachWarning
            Rows have no address, addresses belong to no contact, or a contact's activity cannot be
            read; these rows have no events. Or events without a readable time, type or sequence
            were kept, events of all sequences were kept, or events have undocumented fields.

        Notes
        -----
        Interface: GET /contacts/email/{email}, `recent_activity`, and GET /sequences. The
        service returns only recent events. How far back they go is not documented: read activity
        regularly to miss no event. Events from before a sequence was renamed may have its former
        name. The interface does not list the event types. `sent_at` comes from this machine's
        clock.

        Examples
        --------
        >>> import outreach_frames as of
        >>> with of.connect("sandbox", cache=None) as client:
        ...     leads = pd.DataFrame({"email": ["ada@brightforge.example"]})
        ...     report = leads.outreach.add_to_sequence(client.sandbox.sequence_ids["accepts_any"])
        ...     _ = client.sandbox.advance(days=1)
        ...     events = report.recent_activity()
        >>> list(events.columns)[:4]
        ['row', 'contact_id', 'email', 'event_at']

        Count each row's events by type, with 0 for rows without events:

        >>> counts = pd.crosstab(events["row"], events["event_type"])
        >>> counts = counts.reindex(report.rows.index, fill_value=0)
        >>> int(counts.loc[0, "email_sent"])
        1
        """
        return read_activity(
            self.rows,
            self._emails,
            since=since,
            sequence_id=self.sequence_id,
            all_sequences=all_sequences,
            client=client or self._client,
            progress=progress,
        )

    def __getstate__(self) -> dict[str, Any]:
        # Do not pickle `_retry` and `_client`: they hold the client and its token.
        return self.__dict__ | {"_retry": None, "_client": None}

    def _card(self) -> Card:
        where = f"for the sequence {self._sequence}"
        if self._journal is not None:
            where = f"in the journal {self._journal}"
        known: dict[str, Any] = {"notes": self.notes, "is_dry_run": self.dry_run}
        known["is_read"] = self._journal is not None
        return report_card(self.rows, self.summary(), where=where, error=self.error, **known)


class _LastReport:
    """Holds the function that returns this process's last report, even of an unfinished run."""

    make: Callable[[], SubmissionReport] | None = None


def last_report() -> SubmissionReport | None:
    """Return the report of this process's last submission.

    Returns
    -------
    SubmissionReport or None
        The outcomes so far; None if this process sent nothing. Interrupted and unfinished runs
        count, dry runs do not.

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
    make = _LastReport.make
    return None if make is None else make()


@contextmanager
def remembered(
    make: Callable[[], SubmissionReport],
) -> Iterator[Callable[[SubmissionReport], None]]:
    """Set `last_report()` for a run; yield a function that sets its final report.

    An OutreachError means that nothing was sent, and restores the previous report.
    """
    before, _LastReport.make = _LastReport.make, make

    def remember(report: SubmissionReport) -> None:
        _LastReport.make = lambda: report

    try:
        yield remember
    except OutreachError:
        _LastReport.make = before
        raise
