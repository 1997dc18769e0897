"""Contacts: people in the account, read by id or email address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import pandas as pd

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.client.error_bodies import service_words
from outreach_frames.common import terms
from outreach_frames.common.arguments import check_list, is_missing
from outreach_frames.common.parallel import ordered_map
from outreach_frames.common.placeholders import PLACEHOLDERS
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError, InvalidResponseError, StatusError
from outreach_frames.reading.flatten import DtypeBackend, check_dtype_backend, records_frame
from outreach_frames.resources.paging import keeping_partial, now, page_items
from outreach_frames.tables.result_columns import ASKED, CONTACT_DETAIL, FOUND

_FIELDS = (*spec.CONTACT, ASKED, FOUND, CONTACT_DETAIL)

_TABLE_FILES: Final = (".csv", ".tsv", ".txt", ".xlsx", ".parquet")
_ID, _EMAIL = "id", "email"
_NAMES: Final = {_ID: "id", _EMAIL: "address"}
# Statuses that concern one contact; other statuses concern all, and end the call.
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_NO_CONTACT: Final = (_NOT_FOUND, 410)
_REFUSED: Final = (_BAD_REQUEST, *_NO_CONTACT, 451)

Record = dict[str, Any]
# Contacts by requested id or address; None if the response lacks the contact, or the error with
# which the service refuses it.
Contacts = dict[tuple[str, str], Record | StatusError | None]


class _Entry(NamedTuple):
    """An id or email address to look up."""

    field: str
    given: str | None
    requested: str | None  # None for a missing or blank entry or a placeholder


def contacts(
    ids: Iterable[str] | None = None,
    *,
    emails: Iterable[str] | None = None,
    dtype_backend: DtypeBackend = "numpy_nullable",
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
) -> pd.DataFrame:
    """Read any number of contacts by id or email address.

    Parameters
    ----------
    ids : iterable of str, optional
        Ids of contacts. Pass a list or a column of a frame.
    emails : iterable of str, optional
        Email addresses. Each address takes one request, and its contact includes
        `recent_activity`. In both lists, missing or blank entries and placeholders such as "n/a"
        are not requested.
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
        One row per id or address in the given order, ids first. Columns: the contact's fields (str;
        last_contacted_at is datetime64, UTC; phone_numbers and recent_activity are lists), `asked`
        (str, the id or address as given), `found` (boolean; missing if it is not known whether the
        service has the contact, because it refuses the id or address, or because a placeholder was
        not requested) and `detail` (str, why there is no contact). Without a contact, a row has
        only the id or address. A Series keeps its index, unless both `ids` and `emails` are given.

    Raises
    ------
    InvalidInputError
        Neither `ids` nor `emails` is given, an entry is not text, or an id is an email address;
        nothing was sent.
    ServiceError
        The service failed, could not be reached, or refuses all ids and addresses with status 400.

    Warns
    -----
    OutreachWarning
        Entries were not requested because they are missing, blank or placeholders, or the service
        refuses some of them (status 400, 410 or 451).

    Notes
    -----
    Interface: GET /contacts, GET /contacts/email/{email}. The interface cannot find contacts by
    profile URL, and search results have no addresses. To get addresses or contact ids for people
    from a search, read a lead list that contains these people, or match them with a CRM export:
    `people.outreach.match(crm, profnet_url=...)`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     of.contacts(emails=["nobody@brightforge.example"])["found"].tolist()
    [False]
    """
    check_dtype_backend(dtype_backend)
    if ids is None and emails is None:
        raise InvalidInputError(
            f"The search for contacts needs ids, {terms.argument('emails')} or both."
        )
    entries = [] if ids is None else _parse_entries("ids", _ID, ids)
    entries += [] if emails is None else _parse_entries("emails", _EMAIL, emails)
    index = next((values.index for values in (ids, emails) if isinstance(values, pd.Series)), None)
    _check_ids(entries)
    _warn_of_blanks(entries)
    connected = resolve(client)

    size = spec.MAX_CONTACT_IDS
    distinct_ids = _distinct(entries, _ID)
    chunks = [distinct_ids[start : start + size] for start in range(0, len(distinct_ids), size)]
    distinct_emails = _distinct(entries, _EMAIL)
    reads = [partial(_read_by_ids, connected, chunk, refresh) for chunk in chunks]
    reads += [partial(_read_by_email, connected, email, refresh) for email in distinct_emails]
    known: Contacts = {}

    def frame_so_far() -> pd.DataFrame:
        positions = [
            position
            for position, entry in enumerate(entries)
            if entry.requested is None or (entry.field, entry.requested) in known
        ]
        rows = [_row(entries[position], known) for position in positions]
        frame = records_frame(rows, _FIELDS, dtype_backend)
        if index is not None and (ids is None or emails is None):
            frame.index = index.take(positions)
        return frame

    total = len(distinct_ids) + len(distinct_emails)
    with (
        progress_bar(total, description="contacts", unit="contacts", progress=progress) as bar,
        keeping_partial(frame_so_far, connected),
    ):
        for part in ordered_map(lambda read: read(), reads, workers=connected._session.workers):
            known.update(part)
            bar.update(len(part))
        _raise_if_all_are_bad(list(known.values()))
    _warn_of_refused(known)
    frame = frame_so_far()
    frame.attrs.update(total=len(frame), fetched_at=now(), errors=[])
    return frame


def _read_by_ids(client: Client, ids: list[str], refresh: bool) -> Contacts:
    try:
        response: Any = client._session.read(
            spec.GET_CONTACTS,
            query={spec.CONTACT_IDS.name: ids},
            refresh=refresh,
            is_complete=lambda body: len(page_items(body, spec.GET_CONTACTS)) >= len(ids),
        )
    except StatusError as error:
        if error.status_code not in _REFUSED:
            raise
        if len(ids) == 1:
            return {(_ID, ids[0]): error}
        middle = len(ids) // 2
        halves = (_read_by_ids(client, half, refresh) for half in (ids[:middle], ids[middle:]))
        both = {key: contact for half in halves for key, contact in half.items()}
        _raise_if_all_are_bad(list(both.values()))
        return both
    items = page_items(response, spec.GET_CONTACTS)
    usable = [item for item in items if isinstance(item, dict) and isinstance(item.get(_ID), str)]
    if len(usable) < len(items):
        raise InvalidResponseError(
            "A contact in the response has no id.", request=spec.GET_CONTACTS.label
        )
    by_id = {item[_ID].casefold(): item for item in usable}
    return {(_ID, requested): by_id.get(requested.casefold()) for requested in ids}


def _read_by_email(client: Client, email: str, refresh: bool) -> Contacts:
    try:
        response: Any = client._session.read(
            spec.GET_CONTACT_BY_EMAIL, path={_EMAIL: email}, refresh=refresh
        )
    except StatusError as error:
        if error.status_code not in _REFUSED:
            raise
        return {(_EMAIL, email): error}
    if not isinstance(response, dict) or _ID not in response:
        raise InvalidResponseError(
            "The response is not a contact.",
            request=spec.GET_CONTACT_BY_EMAIL.label,
            reason=service_words(response),
        )
    return {(_EMAIL, email): response}


def _raise_if_all_are_bad(contacts: Sequence[Record | StatusError | None]) -> None:
    """Raise the first error if each request is a bad one, which is not the contacts' fault."""
    errors = [contact for contact in contacts if isinstance(contact, StatusError)]
    bad = [error for error in errors if error.status_code == _BAD_REQUEST]
    if bad and len(bad) == len(contacts):
        raise bad[0]


def _warn_of_refused(contacts: Contacts) -> None:
    errors = [contact for contact in contacts.values() if isinstance(contact, StatusError)]
    refused = [error for error in errors if error.status_code != _NOT_FOUND]
    if refused:
        warn(
            f"The service refuses {len(refused):,} of {plural(len(contacts), 'contact')}. `detail` "
            f"has the reasons; the first is: {refused[0]}"
        )


def _row(entry: _Entry, contacts: Contacts) -> Record:
    contact = None if entry.requested is None else contacts[entry.field, entry.requested]
    is_found: bool | None = isinstance(contact, dict)
    detail = None
    name = _NAMES[entry.field]
    if entry.requested is None:
        is_found = None
        detail = f"The {name} is missing, blank or a placeholder, and was not requested."
    elif isinstance(contact, StatusError) and contact.status_code not in _NO_CONTACT:
        is_found, detail = None, f"The service refuses this {name}: {contact}"
    elif not is_found:
        reason = contact.reason if isinstance(contact, StatusError) else ""
        detail = f"The service has no contact with this {name}{reason and f': {reason}'}."
    return {
        **(contact if isinstance(contact, dict) else {entry.field: entry.requested}),
        ASKED.name: entry.given,
        FOUND.name: is_found,
        CONTACT_DETAIL.name: detail,
    }


def _parse_entries(name: str, field: str, values: object) -> list[_Entry]:
    entries: list[_Entry] = []
    for value in [values] if isinstance(values, str) else check_list(name, values):
        if is_missing(value):
            entries.append(_Entry(field, None, None))
        elif isinstance(value, str):
            text = value.strip()
            is_blank = text.lower() in {"", *PLACEHOLDERS}
            entries.append(_Entry(field, value, None if is_blank else text))
        else:
            raise InvalidInputError(
                f"{terms.name(name)} takes text, but position {len(entries)} has {quoted(value)}. "
                "Convert it to text first, for example with .astype(str)."
            )
    return entries


def _check_ids(entries: Sequence[_Entry]) -> None:
    """Raise InvalidInputError if ids contain email addresses or names of files."""
    texts = [entry.requested for entry in entries if entry.field == _ID and entry.requested]
    if files := [text for text in texts if text.lower().endswith(_TABLE_FILES)]:
        raise InvalidInputError(
            f"{quoted(files[0])} is a file, not an id. Pass the file's ids, or its email addresses "
            f"as {terms.argument('emails')}."
        )
    if addresses := [text for text in texts if "@" in text]:
        raise InvalidInputError(
            f"ids has {plural(len(addresses), 'email address', 'email addresses')}, such as "
            f"{quoted(addresses[0])}. Pass addresses as {terms.argument('emails')}."
        )


def _warn_of_blanks(entries: Sequence[_Entry]) -> None:
    blank = [position for position, entry in enumerate(entries) if entry.requested is None]
    if blank:
        given = entries[blank[0]].given
        shown = "missing" if given is None else quoted(given)
        warn(
            f"{len(blank):,} of {plural(len(entries), 'contact')} were not requested, because the "
            "id or address is missing, blank or a placeholder. The first is at position "
            f"{blank[0]} ({shown})."
        )


def _distinct(entries: Sequence[_Entry], field: str) -> list[str]:
    values = (entry.requested for entry in entries if entry.field == field)
    return list(dict.fromkeys(value for value in values if value is not None))
