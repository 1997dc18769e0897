"""Mailboxes: the connected addresses that sequences send from, and their daily limits."""

from __future__ import annotations

import pandas as pd

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.arguments import check_choice, check_id, check_integer, check_text
from outreach_frames.errors import InvalidResponseError
from outreach_frames.resources.paging import list_frame
from outreach_frames.tables.flatten import DtypeBackend, check_dtype_backend, records_frame


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
    """List the mailboxes that are connected to the account.

    Parameters
    ----------
    status : str, optional
        One of active, inactive, needs_reconnection.
    email_provider : str, optional
        One of google, outlook, other, other_mixed.
    user_email : str, optional
        The address of the user whom the mailbox belongs to.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' own nullable dtypes, or Arrow for every column.
    refresh : bool
        Ask the service even where the cache has a fresh answer.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, when it takes a while.
    client : Client, optional
        By default the one of the last `connect`.

    Returns
    -------
    DataFrame
        One row per mailbox: id, email, email_provider (str), daily_email_limit (Int64), status,
        user_id, user_name, user_email (str), created_at, updated_at (datetime64, UTC). Empty when
        none matches.

    Raises
    ------
    InvalidInputError
        An argument is not usable; nothing was sent.
    ServiceError
        The service, or the way to it, failed.

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
    query = {
        "status": check_choice("status", status, spec.MAILBOX_STATUSES),
        "email_provider": check_choice("email_provider", email_provider, spec.EMAIL_PROVIDERS),
        "user_email": check_text("user_email", user_email),
        spec.PAGE_SIZE.name: str(spec.MAX_MAILBOX_PAGE_SIZE),
    }
    return list_frame(
        resolve(client),
        spec.LIST_MAILBOXES,
        key=spec.MAILBOXES_KEY,
        fields=spec.MAILBOX,
        query=query,
        dtype_backend=dtype_backend,
        refresh=refresh,
        progress=progress,
    )


def set_daily_email_limit(
    mailbox_id: str,
    limit: int,
    *,
    dtype_backend: DtypeBackend = "numpy_nullable",
    client: Client | None = None,
) -> pd.DataFrame:
    """Change how many emails a mailbox may send in a day.

    Parameters
    ----------
    mailbox_id : str
        The mailbox's id, from `mailboxes()`.
    limit : int
        Emails per day. The service knows its bounds; a limit outside them is its error.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' own nullable dtypes, or Arrow for every column.
    client : Client, optional
        By default the one of the last `connect`.

    Returns
    -------
    DataFrame
        One row, the updated mailbox, with the columns of `mailboxes()`.

    Raises
    ------
    InvalidInputError
        The id or the limit is not usable; nothing was sent.
    ServiceError
        The service, or the way to it, failed; `may_have_acted` says whether the limit may have
        changed all the same.

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
    identity = check_id("mailbox_id", mailbox_id)
    field = spec.DAILY_EMAIL_LIMIT_BODY[0].name
    body = {field: check_integer("limit", limit)}
    connected = resolve(client)
    try:
        updated = connected.write(spec.UPDATE_MAILBOX, path={"id": identity}, body=body)
    finally:
        connected.forget(spec.LIST_MAILBOXES)
    if not isinstance(updated, dict) or "id" not in updated:
        raise InvalidResponseError(
            f"{spec.UPDATE_MAILBOX.label}: the answer is no mailbox. "
            "Look with mailboxes(refresh=True) whether the limit has changed."
        )
    return records_frame([updated], spec.MAILBOX, dtype_backend)
