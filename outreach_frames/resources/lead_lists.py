"""Lead lists: people whom a user has gathered in the service's web app."""

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
from outreach_frames.resources.paging import now, read_items, whole_content

# What identifies a lead, so that a list that has none yet can be added to a sequence like others.
_NO_LEADS = spec.LEAD_REFERENCE
_COMPLETED = spec.LEAD_LIST_STATUSES[-1]
_NOT_OWN = {spec.LEADS_KEY, spec.LINKS_KEY, spec.ERRORS_KEY}


def lead_list(
    lead_list_id: str,
    *,
    dtype_backend: DtypeBackend = "numpy_nullable",
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
) -> pd.DataFrame:
    """Read one lead list, one row per lead.

    Parameters
    ----------
    lead_list_id : str
        The list's id, from the web app.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' own nullable dtypes, or Arrow for every column.
    refresh : bool
        Ask the service even where the cache has a fresh response.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, when it takes a while.
    client : Client, optional
        By default the one of the last `connect`.

    Returns
    -------
    DataFrame
        One row per lead, with whatever fields the leads have: the interface does not show them. A
        list without leads has the columns email and profnet_url.
        The list's own fields (name, status, type, ...) are in `.attrs["lead_list"]`, what the
        service reports as errors in `.attrs["errors"]`.

    Raises
    ------
    InvalidInputError
        The id is not usable; nothing was sent.
    NotFoundError
        The account has no such list.
    ServiceError
        The service, or the way to it, failed.

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
    pages = resolve(client).read_pages(spec.GET_LEAD_LIST, path={"id": identity}, refresh=refresh)

    def framed(leads: list[Any]) -> pd.DataFrame:
        return undocumented_frame(leads, dtype_backend)

    listed = read_items(pages, spec.GET_LEAD_LIST, framed, progress, identity=whole_content)
    own = {name: value for name, value in listed.first.items() if name not in _NOT_OWN}
    frame = framed(listed.items) if listed.items else records_frame([], _NO_LEADS, dtype_backend)
    if own.get("status", _COMPLETED) != _COMPLETED:
        warn(f"The lead list is {own['status']}, not {_COMPLETED}: more leads may follow.")
    frame.attrs.update(lead_list=own, total=len(frame), fetched_at=now(), errors=listed.errors)
    return frame
