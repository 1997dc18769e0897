"""An example request per operation, and its response in a small world."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, time
from typing import Any

import msgspec

from outreach_frames import spec
from outreach_frames.sandbox.faults import Call, Faults
from outreach_frames.sandbox.operations import Service, respond
from outreach_frames.sandbox.records import open_world
from outreach_frames.sandbox.search import PeopleIndex
from outreach_frames.sandbox.store import Store
from outreach_frames.sandbox.world import TODAY

# The search among the examples finds one person in this world.
_PEOPLE, _SEED = 20, 9


def exchanges() -> dict[spec.Endpoint, tuple[Call, Any]]:
    """Return an example request per operation and its response from a small world.

    >>> call, response = exchanges()[spec.GET_CONTACT_BY_EMAIL]
    >>> call.path_values["email"] == response["email"]
    True
    """
    noon = datetime.combine(TODAY, time(12), UTC)
    with closing(open_world(_PEOPLE, _SEED)) as store:
        service = Service(
            store, PeopleIndex(store.connection), "", Faults(None, seed=0), lambda: noon
        )
        return {
            endpoint: (call, msgspec.json.decode(respond(service, call).body))
            for endpoint, call in _requests(store).items()
        }


def _requests(store: Store) -> Mapping[spec.Endpoint, Call]:
    """Return an example request per operation."""
    account = store.account
    documents = map(msgspec.json.decode, account.contacts.values())
    contact = next(one for one in documents if one["email"])
    sequence = next(row for row in account.sequences.values() if row["shows"] == "accepts_any")
    mailbox = next(iter(account.mailboxes.values()))
    lead_list = {"id": [*account.lead_lists][-1]}
    lead = {
        "email": "anna.larsen@lumenforge.example",
        "data": {"first_name": "Anna", "company_name": "Lumenforge Analytics AS"},
        "overrides": {"ignore_recently_contacted": True},
    }
    search = {
        "person_seniorities": ["director", "vp"],
        "person_departments": ["revenue"],
        "page": 1,
        "page_size": 5,
    }
    page = (spec.PAGE_SIZE.name, "20")
    name, owner = ("name", sequence["name"].lower()), ("user_email", mailbox["user_email"])
    specific = (
        Call(spec.LIST_SEQUENCES, {}, (name, ("status", "active"), page)),
        Call(
            spec.ADD_LEADS,
            {"id": sequence["id"]},
            body=msgspec.json.encode({spec.LEADS_KEY: [lead]}),
        ),
        Call(spec.GET_CONTACTS, {}, ((spec.CONTACT_IDS.name, contact["id"]),)),
        Call(spec.GET_CONTACT_BY_EMAIL, {"email": contact["email"]}),
        Call(spec.SEARCH_PEOPLE, {}, body=msgspec.json.encode(search)),
        Call(spec.GET_LEAD_LIST, lead_list, (page,)),
        Call(spec.LIST_MAILBOXES, {}, (("status", "active"), owner, page)),
        Call(spec.UPDATE_MAILBOX, {"id": mailbox["id"]}, body=b'{"daily_email_limit":40}'),
    )
    examples = {call.endpoint: call for call in specific}
    # Any other endpoint is a list, which needs no data of the world.
    return {one: examples.get(one) or Call(one, {}, (page,)) for one in spec.ENDPOINTS}
