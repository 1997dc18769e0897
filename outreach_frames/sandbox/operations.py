"""The sandbox's operations: short functions from a `Call` and the `Service` to a `Reply`.

Choices where the interface document is silent: an unknown id is a 404, except that unknown contact
ids are skipped; contacts are returned in the account's order, not in that of the requested ids.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from outreach_frames import spec
from outreach_frames.sandbox import add_leads as adding
from outreach_frames.sandbox import rules
from outreach_frames.sandbox.account import format_timestamp
from outreach_frames.sandbox.faults import Call, Faults, Reply
from outreach_frames.sandbox.search import PeopleIndex
from outreach_frames.sandbox.store import Row, Store
from outreach_frames.sandbox.submission import Submission

T = TypeVar("T")
SIZE, AFTER, BEFORE = spec.PAGE_SIZE.name, spec.PAGE_AFTER.name, spec.PAGE_BEFORE.name

SEARCH_RESULT_START = b'{"object":"person_search_result","results":['


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Service:
    """The state that the operations read and change."""

    store: Store
    people: PeopleIndex
    api_key: str
    faults: Faults
    now: Callable[[], datetime] = _utc_now


def _json_reply(document: object) -> Reply:
    return Reply(200, msgspec.json.encode(document))


def list_sequences(service: Service, call: Call) -> Reply:
    """GET /sequences: `name` matches any part of a name, emails match in any case."""
    return _page(service.store.account.sequences, call)


def add_leads(service: Service, call: Call) -> Reply:
    """POST /sequences/{id}/leads: see the modules `submission` and `add_leads`."""
    sequence = _find(service.store.account.sequences, call)
    submission = rules.read_body(call.body, Submission)
    now = format_timestamp(service.now())
    status, document = adding.add_leads(service.store, sequence, submission, now)
    return Reply(status, msgspec.json.encode(document))


def get_contacts(service: Service, call: Call) -> Reply:
    """GET /contacts: the contacts with known ids, without recent activity."""
    ids = [value for _, value in call.query]
    if not 1 <= len(ids) <= spec.MAX_CONTACT_IDS:
        limit, name = spec.MAX_CONTACT_IDS, spec.CONTACT_IDS.name
        raise rules.Refusal(400, f"{name} must be given 1 to {limit} times")
    contacts = service.store.account.contacts.items()
    requested = [msgspec.json.decode(contact) for name, contact in contacts if name in ids]
    for contact in requested:
        del contact["recent_activity"]
    return _json_reply({spec.CONTACTS_KEY: requested})


def get_contact_by_email(service: Service, call: Call) -> Reply:
    """GET /contacts/email/{email}: the email matches in any case."""
    account = service.store.account
    contact_id = account.contact_ids.get(rules.email_key(call.path_values["email"]))
    if contact_id is None:
        raise rules.Refusal(404, "There is no contact with that email.")
    return Reply(200, account.contacts[contact_id])


def search_people(service: Service, call: Call) -> Reply:
    """POST /people/search: a page after the last page is empty."""
    filters, page, page_size = rules.read_search(call.body)
    total, people = service.people.search(filters, page=page, page_size=page_size)
    pagination = {
        "page": page,
        "page_size": page_size,
        "total_pages": -(-total // page_size),
        "total": total,
    }
    end = b'],"_pagination":' + msgspec.json.encode(pagination) + b"}"
    return Reply(200, b"".join((SEARCH_RESULT_START, b",".join(people), end)))


def get_lead_list(service: Service, call: Call) -> Reply:
    """GET /lead-lists/{id}: a page of its leads; the cursor is a lead's id."""
    lead_list = msgspec.json.decode(_find(service.store.account.lead_lists, call))
    page, links = _paginate({lead["id"]: lead for lead in lead_list[spec.LEADS_KEY]}, call)
    return _json_reply(lead_list | {spec.LEADS_KEY: page, spec.LINKS_KEY: links})


def list_mailboxes(service: Service, call: Call) -> Reply:
    """GET /mailboxes: `user_email` matches in any case."""
    return _page(service.store.account.mailboxes, call)


def update_mailbox(service: Service, call: Call) -> Reply:
    """PATCH /mailboxes/{id}: the new limit applies immediately."""
    limit = rules.read_body(call.body, rules.DailyEmailLimit).daily_email_limit
    mailbox = _find(service.store.account.mailboxes, call)
    # The world's date may be later than the clock, so keep the later time.
    updated = max(mailbox["updated_at"], format_timestamp(service.now()))
    mailbox |= {"daily_email_limit": limit, "updated_at": updated}
    return _json_reply(_select_fields(mailbox, spec.MAILBOX))


def _find(items: Mapping[str, T], call: Call) -> T:
    """Return the item with the id in the path."""
    try:
        return items[call.path_values["id"]]
    except KeyError:
        raise rules.Refusal(404, f"There is no {call.endpoint.identifies} with that id.") from None


def _page(items: Mapping[str, Row], call: Call) -> Reply:
    page, links = _paginate(items, call)
    listed = call.endpoint.listed
    rows = [_select_fields(row, listed.members) for row in page]
    return _json_reply({listed.name: rows, spec.LINKS_KEY: links})


def _select_fields(row: Row, fields: Sequence[spec.Field]) -> Row:
    return {field.name: row[field.name] for field in fields if field.name in row}


def _paginate(items: Mapping[str, Row], call: Call) -> tuple[list[Row], dict[str, dict[str, str]]]:
    """Return the requested page of a list and its links.

    A cursor may name an item that the filters exclude; its position in the whole list counts. If
    the endpoint has no `page[before]`, the `prev` link uses `page[after]`.
    """
    path, query = call.path, dict(call.query)
    size = int(query.get(SIZE, rules.DEFAULT_PAGE_SIZE))
    cursors = [name for name in (AFTER, BEFORE) if name in query]
    filters = {name: value for name, value in query.items() if name not in cursors}
    if len(cursors) > 1:
        raise rules.Refusal(400, f"{AFTER} and {BEFORE} cannot be combined")
    for name in cursors:
        if query[name] not in items:
            raise rules.Refusal(400, f"{name} must be the id of an item in this list")
    ids = list(items)
    kept = [
        place
        for place, item in enumerate(items.values())
        if all(_matches(item, name, value) for name, value in filters.items() if name != SIZE)
    ]
    start, stop = 0, size
    if BEFORE in query:
        stop = bisect_left(kept, ids.index(query[BEFORE]))
        start = max(0, stop - size)
    elif AFTER in query:
        start = bisect_right(kept, ids.index(query[AFTER]))
        stop = start + size
    page = [ids[place] for place in kept[start:stop]]
    links = {"self": rules.link(path, query)}
    if stop < len(kept):
        links["next"] = rules.link(path, filters | ({AFTER: page[-1]} if page else {}))
    if start > 0 and page:
        cursor = {}
        if spec.PAGE_BEFORE in call.endpoint.query:
            cursor = {BEFORE: page[0]}
        elif start > size:
            cursor = {AFTER: ids[kept[start - size - 1]]}
        links["prev"] = rules.link(path, filters | cursor)
    return [items[identifier] for identifier in page], links


def _matches(item: Row, name: str, value: str) -> bool:
    """Check a filter: names contain the value, emails ignore case, other fields are equal."""
    if name == "name":
        return value.casefold() in item[name].casefold()
    if name.endswith("_email"):
        return value.lower() in {"", item[name].lower()}
    return bool(item[name] == value)


_OPERATIONS: Mapping[spec.Endpoint, Callable[[Service, Call], Reply]] = {
    spec.LIST_SEQUENCES: list_sequences,
    spec.ADD_LEADS: add_leads,
    spec.GET_CONTACTS: get_contacts,
    spec.GET_CONTACT_BY_EMAIL: get_contact_by_email,
    spec.SEARCH_PEOPLE: search_people,
    spec.GET_LEAD_LIST: get_lead_list,
    spec.LIST_MAILBOXES: list_mailboxes,
    spec.UPDATE_MAILBOX: update_mailbox,
}


def respond(service: Service, call: Call) -> Reply:
    """Check a request's query and run its operation."""
    with service.store.lock:
        try:
            rules.check_query(call.endpoint, call.query)
            return _OPERATIONS[call.endpoint](service, call)
        except rules.Refusal as refusal:
            return error_reply(refusal)


def error_reply(refusal: rules.Refusal) -> Reply:
    """Convert a refusal to a response."""
    return Reply(refusal.status, rules.error_body(refusal.status, refusal.message))
