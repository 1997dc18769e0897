"""Contacts: the people whom the account has already, by id or by email address."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pandas as pd

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.arguments import check_ids
from outreach_frames.common.parallel import ordered_map
from outreach_frames.common.progress import progress_bar
from outreach_frames.errors import (
    InvalidInputError,
    InvalidResponseError,
    NotFoundError,
    OutreachError,
)
from outreach_frames.resources.paging import carry_partial, now, page_items
from outreach_frames.tables.flatten import DtypeBackend, check_dtype_backend, records_frame

FOUND = spec.Field("found", "boolean", required=True, note="whether the service has the contact")
_FIELDS = (*spec.CONTACT, FOUND)

_ID, _EMAIL = "id", "email"

Record = dict[str, Any]
Answers = dict[tuple[str, str], Record]


def contacts(
    ids: Iterable[str] | None = None,
    *,
    emails: Iterable[str] | None = None,
    dtype_backend: DtypeBackend = "numpy_nullable",
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
) -> pd.DataFrame:
    """Read contacts by id or by email address, any number of either.

    Parameters
    ----------
    ids : iterable of str, optional
        Contact ids: a list, or a column of a frame.
    emails : iterable of str, optional
        Email addresses. These come with `recent_activity`. Each takes a request of its own.
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
        One row per input, in input order, the ids before the addresses: the contact's fields
        (str; last_contacted_at datetime64, UTC; phone_numbers, recent_activity lists) and `found`
        (boolean). A row that is not found has the id or address asked for and nothing else.

    Raises
    ------
    InvalidInputError
        Neither is given, or entries are missing; nothing was sent.
    ServiceError
        The service, or the way to it, failed.

    Notes
    -----
    Interface: GET /contacts, GET /contacts/email/{email}.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     of.contacts(emails=["nobody@brightforge.example"])["found"].tolist()
    [False]
    """
    check_dtype_backend(dtype_backend)
    if ids is None and emails is None:
        raise InvalidInputError("contacts() takes ids, or emails=, or both.")
    wanted_ids = [] if ids is None else check_ids("ids", ids)
    wanted_emails = [] if emails is None else check_ids("emails", emails)
    connected = resolve(client)

    size = spec.MAX_CONTACT_IDS
    distinct_ids = list(dict.fromkeys(wanted_ids))
    chunks = [distinct_ids[start : start + size] for start in range(0, len(distinct_ids), size)]
    distinct_emails = list(dict.fromkeys(wanted_emails))
    reads = [partial(_read_by_ids, connected, chunk, refresh) for chunk in chunks]
    reads += [partial(_read_by_email, connected, email, refresh) for email in distinct_emails]
    answers: Answers = {}

    def frame_so_far() -> pd.DataFrame:
        wanted = [(_ID, value) for value in wanted_ids]
        wanted += [(_EMAIL, value) for value in wanted_emails]
        rows = [answers[asked] for asked in wanted if asked in answers]
        return records_frame(rows, _FIELDS, dtype_backend)

    total = len(distinct_ids) + len(distinct_emails)
    with progress_bar(total, description="contacts", unit="contacts", progress=progress) as bar:
        try:
            for part in ordered_map(_call, reads, workers=connected.workers):
                answers.update(part)
                bar.update(len(part))
        except (OutreachError, KeyboardInterrupt) as error:
            carry_partial(error, frame_so_far())
            raise
    frame = frame_so_far()
    frame.attrs.update(total=len(frame), fetched_at=now(), errors=[])
    return frame


def _call(read: Callable[[], Answers]) -> Answers:
    return read()


def _read_by_ids(client: Client, ids: list[str], refresh: bool) -> Answers:
    answer: Any = client.read(
        spec.GET_CONTACTS,
        query={spec.CONTACT_IDS.name: ids},
        refresh=refresh,
        is_complete=lambda body: (
            len(page_items(body, spec.CONTACTS_KEY, spec.GET_CONTACTS)) >= len(ids)
        ),
    )
    items = page_items(answer, spec.CONTACTS_KEY, spec.GET_CONTACTS)
    known = [item for item in items if isinstance(item, dict) and isinstance(item.get(_ID), str)]
    if len(known) < len(items):
        raise InvalidResponseError(f"{spec.GET_CONTACTS.label}: a contact in the answer has no id.")
    found = {item[_ID].casefold(): item for item in known}
    return {(_ID, asked): _row(_ID, asked, found.get(asked.casefold())) for asked in ids}


def _read_by_email(client: Client, email: str, refresh: bool) -> Answers:
    try:
        answer: Any = client.read(spec.GET_CONTACT_BY_EMAIL, path={_EMAIL: email}, refresh=refresh)
    except NotFoundError:
        return {(_EMAIL, email): _row(_EMAIL, email, None)}
    if not isinstance(answer, dict) or _ID not in answer:
        raise InvalidResponseError(f"{spec.GET_CONTACT_BY_EMAIL.label}: the answer is no contact.")
    return {(_EMAIL, email): _row(_EMAIL, email, answer)}


def _row(field: str, asked: str, contact: Record | None) -> Record:
    return {**(contact or {field: asked}), FOUND.name: contact is not None}
