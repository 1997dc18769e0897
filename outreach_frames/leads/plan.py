"""Plan and send a frame's rows as leads: functions of `df.outreach`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.client import connect
from outreach_frames.client.client import Client
from outreach_frames.common.arguments import check_id
from outreach_frames.common.card import Card, as_html, as_text
from outreach_frames.common.pandas_versions import copy_frame
from outreach_frames.common.warnings import DeferredWarnings
from outreach_frames.leads.cards import plan_card
from outreach_frames.leads.planning.checks import check_rows, repair_identifiers
from outreach_frames.leads.planning.mailboxes import (
    AccountMailboxes,
    address_of_id,
    look_up_mailboxes,
)
from outreach_frames.leads.planning.mapping import (
    EMAIL_COLUMN,
    PROFNET_URL_COLUMN,
    LeadMapping,
    read_chunk_size,
    read_mapping,
    read_settings,
)
from outreach_frames.leads.planning.sequence_status import look_up
from outreach_frames.leads.prepared import CheckedFrame, PreparedLeads
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.rows import warn_of_own_columns
from outreach_frames.leads.sending.submit import read_report, recorded_outcomes, submit

_DOCUMENTED: Final = (
    "sequence_id chunk_size settings positions overrides mailboxes sequence frame payloads "
    "problems submit"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SubmissionPlan(PreparedLeads):
    """The leads to send, and the problems of the other rows.

    Attributes
    ----------
    sequence_id : str
        The sequence that receives the leads.
    chunk_size : int
        Maximum number of leads per request.
    settings : mapping
        The request's settings, empty for the service's defaults.
    positions : ndarray of int64
        Positions of the rows to send.
    overrides : dict of str to int
        Number of leads with each override.
    mailboxes : dict of str to int
        Number of leads per mailbox, for rows with a mailbox, largest number first.
    sequence : SequenceStatus
        The sequence's name and status, if known.
    """

    def submit(
        self,
        *,
        journal: str | Path | None = None,
        progress: bool | None = None,
        dry_run: bool = False,
        send_again: Sequence[str] | None = None,
        client: Client | None = None,
    ) -> SubmissionReport:
        """Send this plan, and report each row's outcome.

        Parameters
        ----------
        journal : str or Path, optional
            A file that records what was sent, as for `df.outreach.add_to_sequence`.
        progress : bool, optional
            Show a progress bar; by default for longer runs in a notebook or terminal.
        dry_run : bool
            Send nothing, and do not change the journal. Rows to send have the status `would_send`,
            or `not_sent` if the sequence's status accepts no leads.
        send_again : list of str, optional
            Skips whose people are sent again, as for `df.outreach.add_to_sequence`.
        client : Client, optional
            Another connection to the same service, for example with a new token; by default the
            plan's client.

        Returns
        -------
        SubmissionReport
            After sending has begun, a report is always returned, even after Ctrl-C.

        Raises
        ------
        InvalidInputError
            The journal is unusable, another run is sending some of these people, or the client is
            connected to another service; nothing was sent.
        ConfigurationError
            No service is connected.

        Warns
        -----
        OutreachWarning
            Rows were not sent again, because this Python process sent them before.
        """
        with DeferredWarnings():
            warn_of_own_columns(self.frame)
            return submit(
                self,
                journal=journal,
                progress=progress,
                dry_run=dry_run,
                send_again=send_again,
                client=client,
            )

    def _card(self) -> Card:
        remaining, recorded = recorded_outcomes(self)
        return plan_card(self.only(remaining), recorded)

    def __repr__(self) -> str:
        return as_text(self._card())

    def _repr_html_(self) -> str:
        return as_html(self._card())

    def __dir__(self) -> list[str]:
        # Completion lists the documented names, without those that sending uses.
        return _DOCUMENTED.split()


def make_plan(
    frame: pd.DataFrame,
    sequence_id: str,
    *,
    email: Hashable | None = EMAIL_COLUMN,
    profnet_url: Hashable | None = PROFNET_URL_COLUMN,
    data: Sequence[str] | Mapping[str, Hashable] | None = None,
    require: Sequence[str] | None = None,
    overrides: Mapping[str, bool] | None = None,
    mailbox: Hashable | None = None,
    mailboxes: Sequence[str] | None = None,
    chunk_size: int = spec.MAX_LEADS_PER_REQUEST,
    clean: bool = False,
    client: Client | None = None,
) -> SubmissionPlan:
    """Check a frame's rows, and plan how to add them to a sequence; nothing is sent.

    Parameters
    ----------
    frame : DataFrame
        One row per lead; it is not changed.
    sequence_id : str
        The sequence that receives the leads.
    email : column name or None
        The column with the leads' email addresses, as for `df.outreach.add_to_sequence`.
    profnet_url : column name or None
        The column with the leads' profile URLs, as for `df.outreach.add_to_sequence`.
    data : list of column names, or dict of field name to column name, optional
        Columns to send as the lead's data fields; by default none.
    require : list of str, optional
        Data fields without which a row is invalid, as for `df.outreach.add_to_sequence`.
    overrides : dict of override to True, optional
        The service's checks to skip for all rows, as for `df.outreach.add_to_sequence`.
    mailbox : column name, optional
        The column with each row's mailbox or user, as for `df.outreach.add_to_sequence`.
    mailboxes : list of str, optional
        The addresses of the mailboxes that share the leads or, with `mailbox`, the rows with a
        missing cell; by default those in the sequence's settings.
    chunk_size : int
        Leads per request, at most 250.
    clean : bool
        Repair invalid cells with exactly one email or profile URL, such as `Rui <rui@x.example>`.
        The repaired text is sent, and is in `.frame`.
    client : Client, optional
        The connection that sends the plan; by default the client of the last `connect`. Planning
        works without a connection, unless you pass `mailbox`.

    Returns
    -------
    SubmissionPlan
        The leads to send are in `.payloads()`, the problems of the other rows in `.problems`.

    Raises
    ------
    InvalidInputError
        An argument is invalid, or the account has no such sequence. Invalid rows do not raise:
        they are in `.problems`.
    ConfigurationError
        `mailbox` is passed, but no service is connected.
    ServiceError
        The account's mailboxes could not be listed, which `mailbox` requires.

    Notes
    -----
    Interface: POST /sequences/{id}/leads, GET /mailboxes, Lead, Limits. Cells are sent as readable
    text: 2021 for 2021.0, dates in ISO 8601, booleans as true or false. Missing and blank cells,
    errors of spreadsheets such as `#N/A`, and texts such as `NaN` are omitted.

    A column such as Email Opt Out, Unsubscribed or DNC with a true value is a problem of the row,
    with the code `opted_out`. The row is sent unless you leave it out.

    Examples
    --------
    >>> frame = pd.DataFrame({"email": ["anna@x.example", "n/a"], "First Name": ["Anna", "Ben"]})
    >>> plan = frame.outreach.plan("seq_1", data={"first_name": "First Name"})
    >>> next(plan.payloads())
    {'leads': [{'email': 'anna@x.example', 'data': {'first_name': 'Anna'}}]}
    >>> list(plan.problems["code"])
    ['placeholder', 'missing_identifier']
    """
    client = connect.current() if client is None else connect.resolve(client)
    sequence_id = check_id("sequence_id", sequence_id)
    settings = read_settings(mailboxes, partial(address_of_id, client))
    chunk_size = read_chunk_size(chunk_size)
    mapping = read_mapping(
        frame,
        email=email,
        profnet_url=profnet_url,
        data=data,
        require=require,
        overrides=overrides,
        mailbox=mailbox,
    )
    account = None if mailbox is None else look_up_mailboxes(connect.resolve(client))
    rows = _check(frame, mapping, account, clean=clean)
    positions = np.flatnonzero(rows.checked.is_valid & (rows.kept == np.arange(len(rows.kept))))
    positions.setflags(write=False)
    return SubmissionPlan(
        checked=rows.checked,
        kept=rows.kept,
        _frame=rows._frame,
        lead_overrides=rows.lead_overrides,
        repaired=rows.repaired,
        positions=positions,
        sequence_id=sequence_id,
        client=client,
        chunk_size=chunk_size,
        settings=settings,
        sequence=look_up(sequence_id, client),
    )


def validate(
    frame: pd.DataFrame,
    *,
    email: Hashable | None = EMAIL_COLUMN,
    profnet_url: Hashable | None = PROFNET_URL_COLUMN,
    data: Sequence[str] | Mapping[str, Hashable] | None = None,
    require: Sequence[str] | None = None,
    overrides: Mapping[str, bool] | None = None,
    mailbox: Hashable | None = None,
    clean: bool = False,
) -> pd.DataFrame:
    """Check a frame's rows against the service's rules for leads; nothing is sent.

    Parameters
    ----------
    frame : DataFrame
        One row per lead; it is not changed.
    email : column name or None
        The column with the leads' email addresses, as for `df.outreach.add_to_sequence`.
    profnet_url : column name or None
        The column with the leads' profile URLs, as for `df.outreach.add_to_sequence`.
    data : list of column names, or dict of field name to column name, optional
        Columns to check as the lead's data fields; by default none.
    require : list of str, optional
        Data fields without which a row is invalid.
    overrides : dict of override to True, optional
        The overrides to check, as for `df.outreach.plan`.
    mailbox : column name, optional
        The column with each row's mailbox; only the syntax of addresses is checked.
    clean : bool
        Repair cells as for `df.outreach.plan`.

    Returns
    -------
    DataFrame
        One row per problem, in row order: row (Int64, the position), index (the label), column,
        field, code, message (str). Rows with problems are not sent, unless all codes are
        `placeholder` or `not_a_profile` and an identifier remains, or `shared_email`,
        `template_text`, `placeholder_text`, `field_missing_everywhere` or `opted_out`.

    Raises
    ------
    InvalidInputError
        An argument is invalid.

    Notes
    -----
    Interface: Lead, Limits.

    Examples
    --------
    >>> frame = pd.DataFrame({"email": ["anna@x.example", "ben@"]})
    >>> list(frame.outreach.validate()["code"])
    ['invalid_email']
    """
    mapping = read_mapping(
        frame,
        email=email,
        profnet_url=profnet_url,
        data=data,
        require=require,
        overrides=overrides,
        mailbox=mailbox,
    )
    return _check(frame, mapping, clean=clean).problems


def add_to_sequence(
    frame: pd.DataFrame,
    sequence_id: str,
    *,
    email: Hashable | None = EMAIL_COLUMN,
    profnet_url: Hashable | None = PROFNET_URL_COLUMN,
    data: Sequence[str] | Mapping[str, Hashable] | None = None,
    require: Sequence[str] | None = None,
    overrides: Mapping[str, bool] | None = None,
    mailbox: Hashable | None = None,
    mailboxes: Sequence[str] | None = None,
    chunk_size: int = spec.MAX_LEADS_PER_REQUEST,
    clean: bool = False,
    journal: str | Path | None = None,
    progress: bool | None = None,
    dry_run: bool = False,
    send_again: Sequence[str] | None = None,
    client: Client | None = None,
) -> SubmissionReport:
    """Add the frame's valid rows to a sequence, and report each row's outcome.

    Before the first request, rows are checked and duplicates found. Chunks of at most 250 leads are
    sent one after the other. Errors are raised only before the first request; later errors are in
    the report's `.error`.

    Parameters
    ----------
    frame : DataFrame
        One row per lead; it is not changed.
    sequence_id : str
        The sequence's id, from `sequences()`.
    email : str or None
        The column with the leads' email addresses. None omits the field, and a missing default
        column is ignored, unless another column has nearly its name, such as E-Mail: then an error
        asks for the name to use.
    profnet_url : str or None
        The column with the leads' profile URLs, as for `email`. One of the two is needed.
    data : list of str or dict of str to str, optional
        Columns to send as the lead's data fields, as names or as {field name: column}. Columns
        that no argument names are not sent. `of.field_name` converts a column's name to a valid
        field name.
    require : list of str, optional
        Data fields without which a row is invalid. An unfilled template, such as `{{first_name}}`,
        and a placeholder, such as `n/a` or `tbd`, do not fill a field.
    overrides : dict of override to True, optional
        The service's checks to skip for all rows, such as {"ignore_recently_contacted": True}. To
        skip a check for some rows, filter the rows and submit them with the same journal.
    mailbox : str, optional
        The column with each row's mailbox: the address of a mailbox, or the address or full name of
        a user. A user's rows are shared among the user's active mailboxes: by their email, or else
        their profile URL, each person gets a mailbox of the same user. Rows with a missing cell are
        sent from `mailboxes`, or by default from the sequence's senders. If a recorded row's
        mailbox or user changes, the row is not sent again, and its detail gives the reason.
    mailboxes : list of str, optional
        The addresses of the mailboxes that share the leads or, with `mailbox`, the rows with a
        missing cell; by default those in the sequence's settings.
    chunk_size : int
        Leads per request, at most 250.
    clean : bool
        Repair invalid cells with exactly one email or profile URL, such as `Rui <rui@x.example>`:
        the key of `of.keys` is sent, and is in the report's frame. A warning counts these cells. A
        cell with several addresses is not repaired.
    journal : str or Path, optional
        A file that records what was sent. To resume an interrupted run, repeat the call with the
        same journal. You may correct and add rows. Rows of people who were added or skipped are not
        sent again.
    progress : bool, optional
        Show a progress bar; by default for longer runs in a notebook or terminal.
    dry_run : bool
        Check and report without sending. Rows to send have the status `would_send`, or `not_sent`
        if the sequence's status accepts no leads.
    send_again : list of str, optional
        Skips of the service, such as ["recently_contacted"]: people whose recorded outcome is one
        of these are sent again, once, by their first valid row. Nobody is sent again of whom a
        lead is added, present, unknown, or skipped for a reason that is not named.
    client : Client, optional
        By default the client of the last `connect`.

    Returns
    -------
    SubmissionReport
        With `.rows`, `.frame`, `.summary()`, `.notes`, `.error`, `.to_csv(folder)` and
        `.retry_unknown()`.

    Raises
    ------
    InvalidInputError
        An argument is invalid, the account has no such sequence, or the journal is unusable;
        nothing was sent.
    ServiceError
        The account's mailboxes could not be listed, which `mailbox` requires; nothing was sent.

    Notes
    -----
    Interface: POST /sequences/{id}/leads, GET /mailboxes.

    Examples
    --------
    >>> import outreach_frames as of
    >>> leads = pd.DataFrame({"email": ["ada@brightforge.example", "n/a"]})
    >>> with of.connect("sandbox", cache=None) as client:
    ...     sequence = client.sandbox.sequence_ids["accepts_any"]
    ...     report = leads.outreach.add_to_sequence(sequence)
    >>> report.frame[["email", "status"]]
                         email   status
    0  ada@brightforge.example    added
    1                      n/a  invalid
    >>> print(report)
    2 rows for the sequence Founders Nordics: profile visits, sent in 1 chunk
      added          1  In the sequence now.
      invalid        1  Not sent: the row has an error, which the detail names.
    ...
    """
    with DeferredWarnings():
        plan = make_plan(
            frame,
            sequence_id,
            email=email,
            profnet_url=profnet_url,
            data=data,
            require=require,
            overrides=overrides,
            mailbox=mailbox,
            mailboxes=mailboxes,
            chunk_size=chunk_size,
            clean=clean,
            client=client,
        )
        return plan.submit(
            journal=journal, progress=progress, dry_run=dry_run, send_again=send_again
        )


def report(
    frame: pd.DataFrame,
    *,
    journal: str | Path,
    email: Hashable | None = EMAIL_COLUMN,
    profnet_url: Hashable | None = PROFNET_URL_COLUMN,
    data: Sequence[str] | Mapping[str, Hashable] | None = None,
    clean: bool = False,
    client: Client | None = None,
) -> SubmissionReport:
    """Report the frame's rows with the outcomes from a journal; nothing is sent.

    As in a submission, any recorded address or profile URL identifies a person. The journal is not
    changed. It cannot be read while a submission uses it.

    Parameters
    ----------
    frame : DataFrame
        One row per lead; it is not changed.
    journal : str or Path
        The journal of a submission, of any sequence and service.
    email : str or None
        The column with the leads' email addresses, as for `df.outreach.add_to_sequence`.
    profnet_url : str or None
        The column with the leads' profile URLs, as for `df.outreach.add_to_sequence`.
    data : list of column names, or dict of field name to column name, optional
        Data fields to compare with those that were sent. The details name the fields that differ.
    clean : bool
        Repair cells as for `df.outreach.add_to_sequence`. Pass True if the rows were sent with it.
    client : Client, optional
        The connection with which the report reads activity; by default the client of the last
        `connect`. The report itself needs no connection.

    Returns
    -------
    SubmissionReport
        Each row's recorded outcome, with the time of sending in `.rows["sent_at"]`. Rows without a
        record are `not_sent`. `.retry_unknown()` raises an error.

    Raises
    ------
    InvalidInputError
        The file is missing, in use, damaged or not a journal, or a column is missing.

    Notes
    -----
    Interface: POST /sequences/{id}/leads. Nothing is requested.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import outreach_frames as of
    >>> leads = pd.DataFrame({"email": ["ada@brightforge.example", "bo@brightforge.example"]})
    >>> with TemporaryDirectory() as folder, of.connect("sandbox", cache=None) as client:
    ...     journal = Path(folder, "spring.journal")
    ...     sequence = client.sandbox.sequence_ids["accepts_any"]
    ...     _ = leads[:1].outreach.add_to_sequence(sequence, journal=journal)
    ...     report = leads.outreach.report(journal=journal)
    >>> report.rows["status"].tolist()
    ['added', 'not_sent']
    """
    mapping = read_mapping(
        frame, email=email, profnet_url=profnet_url, data=data, overrides=None, mailbox=None
    )
    warn_of_own_columns(frame)
    return read_report(_check(frame, mapping, clean=clean), journal, client)


def _check(
    frame: pd.DataFrame,
    mapping: LeadMapping,
    account: AccountMailboxes | None = None,
    *,
    clean: bool,
) -> CheckedFrame:
    """Check a copy of a frame's rows."""
    frame, repaired = repair_identifiers(frame, mapping, clean=clean)
    checked = check_rows(frame, mapping, account)
    copy = copy_frame(frame)
    # A shallow copy would share the labels.
    copy.index, copy.columns = frame.index.copy(), frame.columns.copy()
    return CheckedFrame(
        checked=checked,
        kept=checked.kept,
        _frame=copy,
        lead_overrides=mapping.overrides,
        repaired=repaired,
    )
