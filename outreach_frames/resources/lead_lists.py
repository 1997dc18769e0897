"""Lead lists: people that a user collected in the service's web app."""

from __future__ import annotations

from typing import Any

import pandas as pd

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.arguments import check_id
from outreach_frames.common.warnings import warn
from outreach_frames.reading.flatten import (
    DtypeBackend,
    check_dtype_backend,
    records_frame,
    undocumented_frame,
)
from outreach_frames.resources.paging import content_key, now, read_items

# An empty list gets these columns, so that `add_to_sequence` accepts the list.
_LEAD_KEYS = spec.LEAD_REFERENCE
*_GROWING, _COMPLETED = spec.LEAD_LIST_STATUSES
_PAGE_KEYS = {spec.LEADS_KEY, spec.LINKS_KEY, spec.ERRORS_KEY}


def lead_list(
    lead_list_id: str,
    *,
    dtype_backend: DtypeBackend = "numpy_nullable",
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
) -> pd.DataFrame:
    """Read the leads of a lead list.

    Parameters
    ----------
    lead_list_id : str
        The list's id, from the web app.
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
        One row per lead with all fields, which are undocumented. An empty list has the columns
        email and profnet_url. `.attrs["lead_list"]` has the list's fields (name, status, type,
        ...), and `.attrs["errors"]` has the errors that the service reported.

    Raises
    ------
    InvalidInputError
        The id is invalid; nothing was sent.
    NotFoundError
        The list does not exist in the account.
    ServiceError
        The service failed or could not be reached.

    Notes
    -----
    Interface: GET /lead-lists/{id}.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None) as client:
    ...     leads = of.lead_list(client.sandbox.lead_list_ids[0])
    ...     leads.attrs["lead_list"]["object"]
    'lead_list'
    """
    check_dtype_backend(dtype_backend)
    identity = check_id("lead_list_id", lead_list_id)
    pages = resolve(client)._session.read_pages(
        spec.GET_LEAD_LIST, path={"id": identity}, refresh=refresh
    )

    def framed(leads: list[Any]) -> pd.DataFrame:
        return undocumented_frame(leads, dtype_backend)

    listed = read_items(pages, spec.GET_LEAD_LIST, framed, progress, identity=content_key)
    own = {name: value for name, value in listed.first.items() if name not in _PAGE_KEYS}
    frame = framed(listed.items) if listed.items else records_frame([], _LEAD_KEYS, dtype_backend)
    if (status := own.get("status", _COMPLETED)) != _COMPLETED:
        outlook = "more leads may follow" if status in _GROWING else "it may be incomplete"
        warn(f"The lead list is {status}, not {_COMPLETED}: {outlook}.")
    frame.attrs.update(lead_list=own, total=len(frame), fetched_at=now(), errors=listed.errors)
    return frame
