"""Examples: a request of each operation, and what a field of a response may hold."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import orjson

from outreach_frames import spec

if TYPE_CHECKING:
    from outreach_frames.sandbox.store import Store

_UUID: Final = "3f0c8a52-6d1e-4b79-9a44-0c5e8d2b7f16"
_ID: Final = "e229d7c465bfda739d8dfcbc"
_EMAIL: Final = "anna.larsen@lumenforge.example"
_USER: Final = "charlotte.walsh@brightforge.example"
_OFFICE: Final = "Oslo, Oslo, Norway"
_COMPANY: Final = "Lumenforge Analytics AS"
_COMPANY_URL: Final = "https://profnet.example/company/lumenforge-analytics"


@dataclass(frozen=True, slots=True)
class Ids:
    """What requests name of a world; unless they are given, they are in none."""

    sequence: str = _ID
    contact: str = _UUID
    email: str = _EMAIL
    lead_list: str = _UUID
    mailbox: str = _ID


def world_ids(store: Store) -> Ids:
    """Return what requests name of a world; whoever calls holds the store's lock."""
    contacts = store.contacts(store.ids("contacts")[:2])
    contact = next(contact for contact in contacts if contact["email"])
    sequence = next(row for row in store.sequences() if row["shows"] == "accepts_any")
    return Ids(
        sequence["id"],
        contact["id"],
        contact["email"],
        store.ids("lead_lists")[0],
        store.mailboxes()[0]["id"],
    )


@dataclass(frozen=True, slots=True)
class ExampleRequest:
    """A request that the interface allows."""

    endpoint: spec.Endpoint
    path_values: Mapping[str, str]
    query: tuple[tuple[str, str], ...] = ()
    body: Mapping[str, Any] | None = None

    def curl(self, base_url: str, token: str) -> str:
        """Write the request as a line for a shell; `token` as a shell writes it in quotes."""
        path = self.endpoint.path.format_map(
            {name: quote(value, safe="") for name, value in self.path_values.items()}
        )
        url = f"{base_url}{path}" + (f"?{urlencode(self.query)}" if self.query else "")
        header = f'-H "{spec.AUTHORIZATION_HEADER}: {spec.AUTHORIZATION_SCHEME} {token}"'
        words = ["curl -s", header]
        if self.endpoint.method == "PATCH":
            words.append("-X PATCH")
        if self.body is not None:
            words.append("-H 'Content-Type: application/json'")
            words.append(f"-d {shlex.quote(orjson.dumps(self.body).decode())}")
        return " ".join((*words, shlex.quote(url)))


def requests(ids: Ids) -> Mapping[spec.Endpoint, ExampleRequest]:
    """Return a request of each operation.

    >>> print(requests(Ids())[spec.GET_CONTACT_BY_EMAIL].curl("http://127.0.0.1:8000", "$KEY"))
    curl -s -H "Authorization: Bearer $KEY" http://127.0.0.1:8000/contacts/email/anna...
    """
    lead = {
        "email": _EMAIL,
        "data": {"first_name": "Anna", "company_name": _COMPANY},
        "overrides": {"ignore_recently_contacted": True},
    }
    search = {
        "person_seniorities": ["director", "vp"],
        "person_departments": ["revenue"],
        "page": 1,
        "page_size": 5,
    }
    page = (spec.PAGE_SIZE.name, "5")
    made = (
        ExampleRequest(spec.LIST_SEQUENCES, {}, (("status", "active"), page)),
        ExampleRequest(spec.ADD_LEADS, {"id": ids.sequence}, body={spec.LEADS_KEY: [lead]}),
        ExampleRequest(spec.GET_CONTACTS, {}, ((spec.CONTACT_IDS.name, ids.contact),)),
        ExampleRequest(spec.GET_CONTACT_BY_EMAIL, {"email": ids.email}),
        ExampleRequest(spec.SEARCH_PEOPLE, {}, body=search),
        ExampleRequest(spec.GET_LEAD_LIST, {"id": ids.lead_list}, (page,)),
        ExampleRequest(spec.LIST_MAILBOXES, {}, (("status", "active"), page)),
        ExampleRequest(spec.UPDATE_MAILBOX, {"id": ids.mailbox}, body={"daily_email_limit": 40}),
    )
    return {request.endpoint: request for request in made}


_BY_TYPE: Final[Mapping[str, Any]] = {
    "integer": 12,
    "number": 12.5,
    "boolean": True,
    "object": {},
    "array": [],
    "string": "text",
}
_BY_FORMAT: Final[Mapping[str, str]] = {
    "uuid": _UUID,
    "date": "2024-03-01",
    "date-time": "2026-03-01T09:00:00Z",
    "uri": "https://profnet.example/in/anna-larsen",
    "email": _EMAIL,
}
# By the field's name, after that of what it is in where this says more.
_BY_NAME: Final[Mapping[str, Any]] = {
    "_links": {"self": {"href": f"/mailboxes/{_ID}"}},
    "about": None,
    "city": "Oslo",
    "company.location": _OFFICE,
    "company.name": _COMPANY,
    "company.profnet_url": _COMPANY_URL,
    "company.size": "51-200",
    "company.type": "privately_held",
    "company_domain": "lumenforge.example",
    "company_name": _COMPANY,
    "company_profnet_url": _COMPANY_URL,
    "country": "Norway",
    "created_by_user_email": _USER,
    "created_by_user_id": _UUID,
    "current_position_description": None,
    "daily_email_limit": 40,
    "degree": "Master of Science",
    "email": _EMAIL,
    "end_date": None,
    "educations.end_date": "2016-06-30",
    "educations.start_date": "2012-09-01",
    "estimated_number_of_employees": 140,
    "estimated_revenue": "$10M-$50M",
    "event_type": "email_opened",
    "field_of_study": "Economics",
    "first_name": "Anna",
    "founded_year": 2011,
    "get_lead_list._links": {"self": {"href": f"/lead-lists/{_UUID}"}},
    "get_lead_list.name": "Trade fair badges",
    "get_lead_list.status": "completed",
    "gender": "female",
    "headline": "Head of Sales | Business Analytics",
    "image_url": "https://profnet.example/images/anna-larsen.jpg",
    "industry": "Business Analytics",
    "iso_code": "nor",
    "keywords": ["analytics", "forecasting"],
    "kind": "direct",
    "language": "Norwegian",
    "last_name": "Larsen",
    "lat": 59.9139,
    "latest_funding_date": "2023-05-04",
    "latest_funding_stage": "Series A",
    "leads": [{"id": _UUID, "email": _EMAIL, "name": "Anna Larsen"}],
    "list_mailboxes._links": {"self": {"href": "/mailboxes"}},
    "list_sequences._links": {"self": {"href": "/sequences"}},
    "location": _OFFICE,
    "locations": [_OFFICE],
    "logo_url": "https://profnet.example/images/lumenforge.png",
    "long": 10.7522,
    "mailboxes.email": _USER,
    "mailboxes.id": _ID,
    "naics_codes": [541511],
    "name": "Anna Larsen",
    "number": "+1 555 0142",
    "overview": "Lumenforge Analytics AS forecasts demand for shops.",
    "owner": _USER,
    "page": 1,
    "page_size": 5,
    "postal_code": "0150",
    "profnet_url": _BY_FORMAT["uri"],
    "proficiency": "Native or bilingual",
    "school_name": "Academy of Halmelforge",
    "school_profnet_url": "https://profnet.example/school/academy-of-halmelforge",
    "sequence_name": "CFO outreach Nordics",
    "sequence_type": "outbound",
    "sequences._links": [],
    "sequences.id": _ID,
    "sequences.name": "CFO outreach Nordics",
    "sic_codes": [7372],
    "source": "import",
    "state": "Oslo",
    "technologies": ["Python", "PostgreSQL"],
    "time_zone": "Europe/Oslo",
    "title": "Head of Sales",
    "total": 1,
    "total_added_to_sequence": 1,
    "total_funding": 4_500_000.0,
    "total_pages": 1,
    "traffic_rank": 80_000,
    "type": "work",
    "update_mailbox.email": _USER,
    "update_mailbox.id": _ID,
    "user.email": _USER,
    "user.id": _UUID,
    "user.name": "Charlotte Walsh",
    "website": "https://www.lumenforge.example",
}


def example_of(fields: Sequence[spec.Field], owner: str) -> dict[str, Any]:
    """Make an example of a resource, with every field; `owner` is what the fields are in.

    >>> example_of(spec.MAILBOX_USER, "user")["name"]
    'Charlotte Walsh'
    """
    return {field.name: _example(field, owner) for field in fields}


def _example(field: spec.Field, owner: str) -> Any:
    if f"{owner}.{field.name}" in _BY_NAME:
        return _BY_NAME[f"{owner}.{field.name}"]
    if field.constant or field.values:
        return field.constant or field.values[0]
    if field.name in _BY_NAME:
        return _BY_NAME[field.name]
    if field.members == spec.LEAD_REFERENCE:  # no lead was skipped
        return []
    if field.members:
        inner = example_of(field.members, field.name)
        return [inner] if field.type == "array" else inner
    return _BY_FORMAT.get(field.format, _BY_TYPE[field.type])
