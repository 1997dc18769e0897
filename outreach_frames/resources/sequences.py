"""Sequences: the outreach cadences that users create in the service's web app."""

from __future__ import annotations

import pandas as pd

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.reading.flatten import DtypeBackend
from outreach_frames.resources.paging import list_frame


def sequences(
    *,
    name: str | None = None,
    status: str | None = None,
    created_by_user_id: str | None = None,
    created_by_user_email: str | None = None,
    dtype_backend: DtypeBackend = "numpy_nullable",
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
) -> pd.DataFrame:
    """List the account's sequences.

    Parameters
    ----------
    name : str, optional
        Part of the name; case is ignored.
    status : str, optional
        One of active, paused, draft, archived, archiving, pausing, resuming.
    created_by_user_id : str, optional
        The id of the user who created the sequence.
    created_by_user_email : str, optional
        The email address of the user who created the sequence.
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
        One row per sequence: id, name, status (str), created_at, updated_at (datetime64, UTC),
        created_by_user_id, created_by_user_email (str). The frame is empty if nothing matches.

    Raises
    ------
    InvalidInputError
        An argument is invalid; nothing was sent.
    ServiceError
        The service failed or could not be reached.

    Notes
    -----
    Interface: GET /sequences.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     set(of.sequences(status="active")["status"])
    {'active'}
    """
    filters = {
        "name": name,
        "status": status,
        "created_by_user_id": created_by_user_id,
        "created_by_user_email": created_by_user_email,
    }
    return list_frame(
        client,
        spec.LIST_SEQUENCES,
        filters,
        dtype_backend=dtype_backend,
        refresh=refresh,
        progress=progress,
    )
