"""Mailboxes: the addresses that sequences send from, and their daily limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pandas as pd

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.arguments import (
    check_id,
    check_ids,
    check_integer,
)
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import (
    AuthenticationError,
    ConfigurationError,
    ConnectionFailedError,
    InvalidResponseError,
    OutreachError,
    ServiceError,
    WaitTooLongError,
)
from outreach_frames.reading.flatten import DtypeBackend, check_dtype_backend, records_frame
from outreach_frames.resources.paging import keeping_partial, list_frame
from outreach_frames.tables.result_columns import DETAIL, OUTCOME

_STOPPING: Final = (AuthenticationError, ConfigurationError, WaitTooLongError)


def mailboxes(
    *,
    status: str | None = None,
    email_provider: str | None = None,
    user_email: str | None = None,
    dtype_backend: DtypeBackend = "numpy_nullable",
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
) -> pd.DataFrame:
    """List the account's mailboxes.

    Parameters
    ----------
    status : str, optional
        One of active, inactive, needs_reconnection.
    email_provider : str, optional
        One of google, outlook, other, other_mixed.
    user_email : str, optional
        The email address of the mailbox's user.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' nullable dtypes, or Arrow dtypes for all columns.
    refresh : bool
        Ask the service even if the cache has a fresh response.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, for long runs.
    client : Client, optional
        By default the client of the last `connect`.

    Returns
    -------
    DataFrame
        One row per mailbox: id, email, email_provider (str), daily_email_limit (Int64), status,
        user_id, user_name, user_email (str), created_at, updated_at (datetime64, UTC). Empty if
        nothing matches.

    Raises
    ------
    InvalidInputError
        An argument is invalid; nothing was sent.
    ServiceError
        The service failed or could not be reached.

    Notes
    -----
    Interface: GET /mailboxes.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     set(of.mailboxes(status="active")["status"])
    {'active'}
    """
    return list_frame(
        client,
        spec.LIST_MAILBOXES,
        {"status": status, "email_provider": email_provider, "user_email": user_email},
        dtype_backend=dtype_backend,
        refresh=refresh,
        progress=progress,
    )


def set_daily_email_limit(
    mailbox_id: str | Iterable[str],
    limit: int,
    *,
    progress: bool | None = None,
    dtype_backend: DtypeBackend = "numpy_nullable",
    client: Client | None = None,
) -> pd.DataFrame:
    """Change how many emails one or several mailboxes may send per day.

    Parameters
    ----------
    mailbox_id : str or iterable of str
        The mailbox's id, from `mailboxes()`, or several ids: a list or a column of a frame.
    limit : int
        Emails per day. The service decides which limits are valid.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, for long runs.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' nullable dtypes, or Arrow dtypes for all columns.
    client : Client, optional
        By default the client of the last `connect`.

    Returns
    -------
    DataFrame
        For one id, the updated mailbox with the columns of `mailboxes()`. For several, one row per
        id in the given order, with the index of a Series and the columns `outcome` (str: changed;
        differs, if the service reports another limit; failed; unknown, if the limit may have
        changed; not_sent) and `detail` (str, the reason).

    Raises
    ------
    InvalidInputError
        An id or the limit is invalid; nothing was sent.
    ServiceError
        With one id: the service failed or could not be reached; `may_have_acted` says whether the
        limit may have changed anyway.

    Warns
    -----
    OutreachWarning
        With several ids: some limits were not changed.

    Notes
    -----
    Interface: PATCH /mailboxes/{id}.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     mailbox = of.mailboxes(status="active")["id"].iloc[0]
    ...     of.set_daily_email_limit(mailbox, 40)["daily_email_limit"].tolist()
    [40]
    """
    check_dtype_backend(dtype_backend)
    number = check_integer("limit", limit)
    one = check_id("mailbox_id", mailbox_id) if isinstance(mailbox_id, str) else None
    identities = [] if isinstance(mailbox_id, str) else check_ids("mailbox_id", mailbox_id)
    connected = resolve(client)
    done: dict[str, dict[str, Any]] = {}

    def framed(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
        return records_frame(list(rows), (*spec.MAILBOX, OUTCOME, DETAIL), dtype_backend)

    try:
        if one is not None:
            return records_frame([_change(connected, one, number)], spec.MAILBOX, dtype_backend)
        with keeping_partial(lambda: framed(done.values())):
            _change_all(connected, identities, number, progress, done)
    finally:
        connected.forget(spec.LIST_MAILBOXES)
    frame = framed(done[identity] for identity in identities)
    if isinstance(mailbox_id, pd.Series):
        frame.index = mailbox_id.index
    return frame


def _change_all(
    client: Client,
    identities: Sequence[str],
    limit: int,
    progress: bool | None,
    done: dict[str, dict[str, Any]],
) -> None:
    """Change each limit once, store the outcomes by id, and warn of those that did not change."""
    distinct = list(dict.fromkeys(identities))
    bar = progress_bar(len(distinct), description="limits", unit="mailboxes", progress=progress)
    with bar:
        for identity, row in zip(distinct, _outcomes(client, distinct, limit), strict=True):
            done[identity] = row
            bar.update()
    wrong = [row for row in done.values() if row[OUTCOME.name] != "changed"]
    if wrong:
        counts = Counter(row[OUTCOME.name] for row in wrong)
        counted = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
        warn(
            f"Not all of {plural(len(done), 'mailbox', 'mailboxes')} were changed: {counted}. "
            f"The first is {wrong[0]['id']}: {wrong[0][DETAIL.name]}"
        )


def stops_all(error: OutreachError) -> bool:
    """Return whether the other mailboxes would fail with the same error."""
    unreachable = isinstance(error, ConnectionFailedError) and not error.may_have_acted
    return unreachable or isinstance(error, _STOPPING) or type(error) is OutreachError


def _change(client: Client, identity: str, limit: int) -> dict[str, Any]:
    """Change one limit and return the mailbox in the response."""
    body = {spec.DAILY_EMAIL_LIMIT_BODY[0].name: limit}
    updated = client.write(spec.UPDATE_MAILBOX, path={"id": identity}, body=body)
    if not isinstance(updated, dict) or "id" not in updated:
        raise InvalidResponseError(
            f"{spec.UPDATE_MAILBOX.label}: the response is not a mailbox. "
            "Check with mailboxes(refresh=True) whether the limit has changed."
        )
    return updated


def _outcomes(client: Client, identities: Iterable[str], limit: int) -> Iterator[dict[str, Any]]:
    """Change limits in order and yield the outcome of each."""
    stopped = False
    for identity in identities:
        mailbox: dict[str, Any] = {"id": identity}
        outcome, detail = "not_sent", "Not sent, because an earlier error would have recurred."
        if not stopped:
            try:
                mailbox = _change(client, identity, limit)
                reported = mailbox.get(spec.DAILY_EMAIL_LIMIT_BODY[0].name)
                outcome, detail = "changed", ""
                if reported != limit:
                    outcome, detail = "differs", f"The service now reports {reported!r}."
            except OutreachError as error:
                acted = isinstance(error, ServiceError) and error.may_have_acted
                outcome, detail = "unknown" if acted else "failed", str(error)
                stopped = stops_all(error)
        yield {**mailbox, OUTCOME.name: outcome, DETAIL.name: detail}
