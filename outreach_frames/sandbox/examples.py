"""A working example request per operation."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from urllib.parse import quote, urlencode

import orjson

from outreach_frames import spec
from outreach_frames.sandbox.faults import Call
from outreach_frames.sandbox.store import Store


def requests(store: Store) -> Mapping[spec.Endpoint, Call]:
    """Return an example request per operation; the caller holds the store's lock."""
    contacts = store.contacts(store.ids("contacts")[:2])
    contact = next(contact for contact in contacts if contact["email"])
    sequence = next(row for row in store.sequences() if row["shows"] == "accepts_any")
    mailbox = store.mailboxes()[0]
    lead_list = {"id": store.ids("lead_lists")[-1]}
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
        Call(spec.ADD_LEADS, {"id": sequence["id"]}, body=orjson.dumps({spec.LEADS_KEY: [lead]})),
        Call(spec.GET_CONTACTS, {}, ((spec.CONTACT_IDS.name, contact["id"]),)),
        Call(spec.GET_CONTACT_BY_EMAIL, {"email": contact["email"]}),
        Call(spec.SEARCH_PEOPLE, {}, body=orjson.dumps(search)),
        Call(spec.GET_LEAD_LIST, lead_list, (page,)),
        Call(spec.LIST_MAILBOXES, {}, (("status", "active"), owner, page)),
        Call(spec.UPDATE_MAILBOX, {"id": mailbox["id"]}, body=b'{"daily_email_limit":40}'),
    )
    examples = {call.endpoint: call for call in specific}
    # Any other endpoint is a list, which needs no data of the world.
    return {one: examples.get(one) or Call(one, {}, (page,)) for one in spec.ENDPOINTS}


def curl(call: Call, base_url: str, token: str) -> str:
    """Return the curl command of a request; the shell expands a variable in `token`."""
    path = call.endpoint.path.format_map(
        {name: quote(value, safe="") for name, value in call.path_values.items()}
    )
    url = f"{base_url}{path}" + (f"?{urlencode(call.query)}" if call.query else "")
    header = f'-H "{spec.AUTHORIZATION_HEADER}: {spec.AUTHORIZATION_SCHEME} {token}"'
    words = ["curl -s", header]
    if call.endpoint.method == "PATCH":
        words.append("-X PATCH")
    if call.body:
        words.append("-H 'Content-Type: application/json'")
        words.append(f"-d {shlex.quote(call.body.decode())}")
    return " ".join((*words, shlex.quote(url)))
