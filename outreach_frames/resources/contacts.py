"""Contacts: the people whom the account has already, by id or by email address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.arguments import check_list, is_missing
from outreach_frames.common.parallel import ordered_map
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.text import PLACEHOLDERS, plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError, InvalidResponseError, NotFoundError
from outreach_frames.reading.flatten import DtypeBackend, check_dtype_backend, records_frame
from outreach_frames.resources.paging import keeping_partial, now, page_items
from outreach_frames.tables.result_columns import ASKED, FOUND

_FIELDS = (*spec.CONTACT, ASKED, FOUND)

_ID, _EMAIL = "id", "email"

Record = dict[str, Any]
# The contact of each id or address that was asked for, None where there is none.
Found = dict[tuple[str, str], Record | None]


class _Wanted(NamedTuple):
    """One entry: in which field it is, as it was given, and what is asked for, if anything."""

    field: str
    asked: str | None
    value: str | None


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
        Email addresses. These come with `recent_activity`. Each takes a request of its own, some
        at a time. What is missing, blank or a placeholder such as "n/a" is not asked for.
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
        One row per input, in input order, the ids before the addresses, with the index of a
        Series (a new one where ids and addresses are given): the contact's fields (str;
        last_contacted_at datetime64, UTC; phone_numbers, recent_activity lists), `asked` (str, as
        it was given) and `found` (boolean). A row that is not found has the id or address that
        was asked for and nothing else.

    Raises
    ------
    InvalidInputError
        Neither is given, entries are not text, or addresses are given as ids; nothing was sent.
    ServiceError
        The service, or the way to it, failed.

    Warns
    -----
    OutreachWarning
        Entries were not asked for, since they are missing, blank or placeholders.

    Notes
    -----
    Interface: GET /contacts, GET /contacts/email/{email}. It finds nobody by profile URL, and
    people whom a search found have no address: read a lead list that holds them, or match them
    with an export of the CRM by `people.outreach.match(crm, profnet_url=...)`, whose addresses or
    contact ids this takes.

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
    given_ids = [] if ids is None else _entries("ids", ids)
    given_emails = [] if emails is None else _entries("emails", emails)
    index = next((values.index for values in (ids, emails) if isinstance(values, pd.Series)), None)
    wanted = [_Wanted(_ID, *entry) for entry in given_ids]
    wanted += [_Wanted(_EMAIL, *entry) for entry in given_emails]
    _check_kinds(wanted)
    _warn_of_blanks(wanted)
    connected = resolve(client)

    size = spec.MAX_CONTACT_IDS
    distinct_ids = _distinct(wanted, _ID)
    chunks = [distinct_ids[start : start + size] for start in range(0, len(distinct_ids), size)]
    distinct_emails = _distinct(wanted, _EMAIL)
    reads = [partial(_read_by_ids, connected, chunk, refresh) for chunk in chunks]
    reads += [partial(_read_by_email, connected, email, refresh) for email in distinct_emails]
    found: Found = {}

    def frame_so_far() -> pd.DataFrame:
        known = [
            place
            for place, one in enumerate(wanted)
            if one.value is None or (one.field, one.value) in found
        ]
        rows = [_row(one, found) for one in (wanted[place] for place in known)]
        frame = records_frame(rows, _FIELDS, dtype_backend)
        if index is not None and (ids is None or emails is None):
            frame.index = index.take(known)
        return frame

    total = len(distinct_ids) + len(distinct_emails)
    with (
        progress_bar(total, description="contacts", unit="contacts", progress=progress) as bar,
        keeping_partial(frame_so_far),
    ):
        for part in ordered_map(lambda read: read(), reads, workers=connected.workers):
            found.update(part)
            bar.update(len(part))
    frame = frame_so_far()
    frame.attrs.update(total=len(frame), fetched_at=now(), errors=[])
    return frame


def _read_by_ids(client: Client, ids: list[str], refresh: bool) -> Found:
    response: Any = client.read(
        spec.GET_CONTACTS,
        query={spec.CONTACT_IDS.name: ids},
        refresh=refresh,
        is_complete=lambda body: len(page_items(body, spec.GET_CONTACTS)) >= len(ids),
    )
    items = page_items(response, spec.GET_CONTACTS)
    known = [item for item in items if isinstance(item, dict) and isinstance(item.get(_ID), str)]
    if len(known) < len(items):
        raise InvalidResponseError(
            f"{spec.GET_CONTACTS.label}: a contact in the response has no id."
        )
    found = {item[_ID].casefold(): item for item in known}
    return {(_ID, asked): found.get(asked.casefold()) for asked in ids}


def _read_by_email(client: Client, email: str, refresh: bool) -> Found:
    try:
        response: Any = client.read(
            spec.GET_CONTACT_BY_EMAIL, path={_EMAIL: email}, refresh=refresh
        )
    except NotFoundError:
        return {(_EMAIL, email): None}
    if not isinstance(response, dict) or _ID not in response:
        raise InvalidResponseError(
            f"{spec.GET_CONTACT_BY_EMAIL.label}: the response is not a contact."
        )
    return {(_EMAIL, email): response}


def _row(one: _Wanted, found: Found) -> Record:
    contact = None if one.value is None else found[one.field, one.value]
    return {
        **(contact or {one.field: one.value}),
        ASKED.name: one.asked,
        FOUND.name: contact is not None,
    }


def _entries(name: str, values: object) -> list[tuple[str | None, str | None]]:
    """Return entries as they were given, and what is asked for, None where that is nothing."""
    entries: list[tuple[str | None, str | None]] = []
    for entry in [values] if isinstance(values, str) else check_list(name, values):
        if is_missing(entry):
            entries.append((None, None))
        elif isinstance(entry, str):
            text = entry.strip()
            entries.append((entry, None if text.lower() in {"", *PLACEHOLDERS} else text))
        else:
            raise InvalidInputError(
                f"{name} takes text, and position {len(entries)} has {quoted(entry)}. "
                "Convert it to text first, for example with .astype(str)."
            )
    return entries


def _check_kinds(wanted: Sequence[_Wanted]) -> None:
    """Refuse addresses among the ids, which the service would not find."""
    addresses = [one for one in wanted if one.field == _ID and "@" in (one.value or "")]
    if addresses:
        raise InvalidInputError(
            f"ids has {plural(len(addresses), 'email address', 'email addresses')}, such as "
            f"{quoted(addresses[0].value)}. Give addresses as emails=."
        )


def _warn_of_blanks(wanted: Sequence[_Wanted]) -> None:
    blank = [place for place, one in enumerate(wanted) if one.value is None]
    if blank:
        one = wanted[blank[0]]
        shown = "missing" if one.asked is None else quoted(one.asked)
        warn(
            f"{len(blank):,} of {plural(len(wanted), 'contact')} were not asked for, and are not "
            "found: their id or address is missing, blank or a placeholder. The first is at "
            f"position {blank[0]} ({shown})."
        )


def _distinct(wanted: Sequence[_Wanted], field: str) -> list[str]:
    values = (one.value for one in wanted if one.field == field)
    return list(dict.fromkeys(value for value in values if value is not None))
