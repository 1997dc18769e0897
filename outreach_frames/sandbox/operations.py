"""The sandbox's operations: short functions from a `Call` and the `Service` to a `Reply`.

Choices where the interface document is silent: an unknown id is a 404, except that unknown contact
ids are skipped; contacts are returned in the account's order, not in that of the requested ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from outreach_frames import spec
from outreach_frames.sandbox import add_leads as adding
from outreach_frames.sandbox import rules
from outreach_frames.sandbox.account import format_timestamp
from outreach_frames.sandbox.faults import Call, Faults, Reply
from outreach_frames.sandbox.search import PeopleIndex
from outreach_frames.sandbox.store import Row, Store
from outreach_frames.sandbox.submission import Submission

Item = Mapping[str, Any]
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
    return _page(service.store.sequences(), call)


def add_leads(service: Service, call: Call) -> Reply:
    """POST /sequences/{id}/leads: see the modules `submission` and `add_leads`."""
    sequence = service.store.sequence(call.path_values["id"])
    if sequence is None:
        raise rules.Refusal(404, "There is no sequence with that id.")
    submission = rules.read_body(call.body, Submission)
    now = format_timestamp(service.now())
    status, document = adding.add_leads(service.store, sequence, submission, now)
    return Reply(status, msgspec.json.encode(document))


def get_contacts(service: Service, call: Call) -> Reply:
    """GET /contacts: the contacts with known ids, without recent activity."""
    ids = [value for _, value in call.query]
    if not 1 <= len(ids) <= spec.MAX_CONTACT_IDS:
        limit, name = spec.MAX_CONTACT_IDS, spec.CONTACT_IDS.name
        raise rules.bad_request(f"{name} must be given 1 to {limit} times")
    found = [msgspec.json.decode(one) for one in service.store.documents("contacts", "id", ids)]
    for contact in found:
        del contact["recent_activity"]
    return _json_reply({spec.CONTACTS_KEY: found})


def get_contact_by_email(service: Service, call: Call) -> Reply:
    """GET /contacts/email/{email}: the email matches in any case."""
    key = rules.email_key(call.path_values["email"])
    found = service.store.documents("contacts", "email_key", [key])
    if not found:
        raise rules.Refusal(404, "There is no contact with that email.")
    return Reply(200, found[0])


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
    found = service.store.documents("lead_lists", "id", [call.path_values["id"]])
    if not found:
        raise rules.Refusal(404, "There is no lead list with that id.")
    lead_list = msgspec.json.decode(found[0])
    page, links = _paginate(lead_list[spec.LEADS_KEY], call)
    return _json_reply(lead_list | {spec.LEADS_KEY: page, spec.LINKS_KEY: links})


def list_mailboxes(service: Service, call: Call) -> Reply:
    """GET /mailboxes: `user_email` matches in any case."""
    return _page([_mailbox(row) for row in service.store.mailboxes()], call)


def update_mailbox(service: Service, call: Call) -> Reply:
    """PATCH /mailboxes/{id}: the new limit applies immediately."""
    limit = rules.read_body(call.body, rules.DailyEmailLimit).daily_email_limit
    mailbox_id = call.path_values["id"]
    if not service.store.set_daily_email_limit(mailbox_id, limit, format_timestamp(service.now())):
        raise rules.Refusal(404, "There is no mailbox with that id.")
    (row,) = (row for row in service.store.mailboxes() if row["id"] == mailbox_id)
    return _json_reply(_select_fields(_mailbox(row), spec.MAILBOX))


def _page(rows: Sequence[Row], call: Call) -> Reply:
    page, links = _paginate(rows, call)
    listed = call.endpoint.listed
    items = [_select_fields(row, listed.members) for row in page]
    return _json_reply({listed.name: items, spec.LINKS_KEY: links})


def _select_fields(row: Mapping[str, Any], fields: Sequence[spec.Field]) -> Row:
    return {field.name: row[field.name] for field in fields if field.name in row}


def _mailbox(row: Row) -> Row:
    user = {field.name: row[f"user_{field.name}"] for field in spec.MAILBOX_USER}
    own = rules.link(spec.UPDATE_MAILBOX.path.format(id=row["id"]), {})
    return row | {"user": user, spec.LINKS_KEY: {"self": own}}


def _paginate(items: Sequence[Item], call: Call) -> tuple[list[Item], dict[str, dict[str, str]]]:
    """Return the requested page of a list and its links.

    A cursor may name an item that the filters exclude; its position in the whole list counts. If
    the endpoint has no `page[before]`, the `prev` link uses `page[after]`.
    """
    path, query = call.path, dict(call.query)
    size = int(query.get(SIZE, rules.DEFAULT_PAGE_SIZE))
    filters = {name: value for name, value in query.items() if name not in (AFTER, BEFORE)}
    if AFTER in query and BEFORE in query:
        raise rules.bad_request(f"{AFTER} and {BEFORE} cannot be combined")
    places = {item["id"]: place for place, item in enumerate(items)}
    for name in (AFTER, BEFORE):
        if name in query and query[name] not in places:
            raise rules.bad_request(f"{name} must be the id of an item in this list")
    kept = [
        item
        for item in items
        if all(_matches(item, name, value) for name, value in filters.items() if name != SIZE)
    ]
    start, stop = 0, size
    if BEFORE in query:
        stop = sum(places[item["id"]] < places[query[BEFORE]] for item in kept)
        start = max(0, stop - size)
    elif AFTER in query:
        start = sum(places[item["id"]] <= places[query[AFTER]] for item in kept)
        stop = start + size
    page = kept[start:stop]
    links = {"self": rules.link(path, query)}
    if stop < len(kept):
        links["next"] = rules.link(path, filters | ({AFTER: page[-1]["id"]} if page else {}))
    if start > 0 and page:
        if spec.PAGE_BEFORE in call.endpoint.query:
            links["prev"] = rules.link(path, filters | {BEFORE: page[0]["id"]})
        elif start > size:
            links["prev"] = rules.link(path, filters | {AFTER: kept[start - size - 1]["id"]})
        else:
            links["prev"] = rules.link(path, filters)
    return page, links


def _matches(item: Item, name: str, value: str) -> bool:
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
