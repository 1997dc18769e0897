"""Contacts: the people whom the account has already, by id or by email address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pandas as pd

from outreach_frames import spec
from outreach_frames.arguments import check_ids
from outreach_frames.client import Client
from outreach_frames.connection import resolve
from outreach_frames.errors import (
    InvalidInputError,
    InvalidResponseError,
    NotFoundError,
    OutreachError,
)
from outreach_frames.flatten import DtypeBackend, check_dtype_backend, records_frame
from outreach_frames.listing import carry_partial, now, page_items
from outreach_frames.parallel import ordered_map
from outreach_frames.progress import progress_bar

FOUND = spec.Field("found", "boolean", required=True, note="whether the service has the contact")
_FIELDS = (*spec.CONTACT, FOUND)

Record = dict[str, Any]


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

    def by_ids(chunk: list[str]) -> dict[str, Record]:
        return _read_by_ids(connected, chunk, refresh)

    def by_email(email: str) -> dict[str, Record]:
        return _read_by_email(connected, email, refresh)

    distinct_ids = list(dict.fromkeys(wanted_ids))
    distinct_emails = list(dict.fromkeys(wanted_emails))
    size = spec.MAX_CONTACT_IDS
    chunks = [distinct_ids[start : start + size] for start in range(0, len(distinct_ids), size)]

    total = len(distinct_ids) + len(distinct_emails)
    found_ids: dict[str, Record] = {}
    found_emails: dict[str, Record] = {}
    bar = progress_bar(total, description="contacts", unit="contacts", progress=progress)
    with bar:
        try:
            for chunk in _gather(by_ids, chunks, connected.workers, found_ids):
                bar.update(len(chunk))
            for _ in _gather(by_email, distinct_emails, connected.workers, found_emails):
                bar.update()
        except (OutreachError, KeyboardInterrupt) as error:
            read = [*found_ids.values(), *found_emails.values()]
            carry_partial(error, records_frame(read, _FIELDS, dtype_backend))
            raise
    rows = [_row("id", value, found_ids.get(value.casefold())) for value in wanted_ids]
    rows += [_row("email", value, found_emails.get(value)) for value in wanted_emails]
    frame = records_frame(rows, _FIELDS, dtype_backend)
    frame.attrs.update(total=len(frame), fetched_at=now(), errors=[])
    return frame


def _gather(
    read: Callable[[Any], dict[str, Record]],
    items: list[Any],
    workers: int,
    found: dict[str, Record],
) -> Iterator[Any]:
    for item, answer in zip(items, ordered_map(read, items, workers=workers), strict=True):
        found.update(answer)
        yield item


def _read_by_ids(client: Client, ids: list[str], refresh: bool) -> dict[str, Record]:
    answer: Any = client.read(
        spec.GET_CONTACTS, query={spec.CONTACT_IDS.name: ids}, refresh=refresh
    )
    items = page_items(answer, spec.CONTACTS_KEY, spec.GET_CONTACTS)
    known = [item for item in items if isinstance(item, dict) and isinstance(item.get("id"), str)]
    if len(known) < len(items):
        raise InvalidResponseError(f"{spec.GET_CONTACTS.label}: a contact in the answer has no id.")
    return {item["id"].casefold(): {**item, FOUND.name: True} for item in known}


def _read_by_email(client: Client, email: str, refresh: bool) -> dict[str, Record]:
    try:
        answer: Any = client.read(spec.GET_CONTACT_BY_EMAIL, path={"email": email}, refresh=refresh)
    except NotFoundError:
        return {}
    if not isinstance(answer, dict) or "id" not in answer:
        raise InvalidResponseError(f"{spec.GET_CONTACT_BY_EMAIL.label}: the answer is no contact.")
    return {email: {**answer, FOUND.name: True}}


def _row(field: str, asked: str, contact: Record | None) -> Record:
    return {field: asked, FOUND.name: False} if contact is None else contact
