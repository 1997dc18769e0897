"""The sandbox's sequences, mailboxes, contacts, lead lists and people, over HTTP."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any
from urllib.parse import quote

import pytest

from outreach_frames import spec
from tests.sandbox.http import PEOPLE, Api, Query, refused

UNKNOWN_UUID = "00000000-0000-4000-8000-000000000000"


def read_all(api: Api, endpoint: spec.Endpoint, query: Query | None = None) -> list[dict[str, Any]]:
    """Return all items of a list that match the filters, read in small pages."""
    pages = api.pages(endpoint.path, {**(query or {}), spec.PAGE_SIZE.name: 8})
    return [item for page in pages for item in page[endpoint.listed.name]]


def value_of(item: dict[str, Any], name: str) -> str:
    """Return the value that a filter compares."""
    return str(item["user"]["email"] if name == "user_email" else item[name])


def matches(item: dict[str, Any], name: str, text: str) -> bool:
    """Return whether an item matches a filter."""
    found, text = value_of(item, name).lower(), text.lower()
    return text in found if name == "name" else text == found


@pytest.mark.parametrize("endpoint", spec.LISTS, ids=lambda each: each.name)
def test_filters_keep_exactly_the_matching_items(api: Api, endpoint: spec.Endpoint) -> None:
    """Values match as a whole, emails in any case, names in part; several filters must match."""
    found = read_all(api, endpoint)
    names = [field.name for field in endpoint.query if not field.name.startswith("page")]
    for item in found[::8]:
        texts = {name: value_of(item, name) for name in names}
        for name in names:
            if name == "name":
                texts[name] = texts[name][1:6].upper()
            if name.endswith("_email"):
                texts[name] = texts[name].upper()
        for chosen in (*combinations(names, 1), *combinations(names, 2)):
            query = {name: texts[name] for name in chosen}
            expected = [one for one in found if all(matches(one, *pair) for pair in query.items())]
            assert read_all(api, endpoint, query) == expected


@pytest.mark.parametrize("endpoint", spec.LISTS, ids=lambda each: each.name)
def test_values_that_no_item_has(api: Api, endpoint: spec.Endpoint) -> None:
    """Unknown statuses and providers are rejected; other unknown values match nothing."""
    for field in endpoint.query:
        for text in ("%", "_", "' OR 1=1 --", "ACTIVE", "\\"):
            if field.values:
                assert refused(api.get(endpoint.path, {field.name: text}), 400)
            elif not field.name.startswith("page"):
                assert read_all(api, endpoint, {field.name: text}) == []


class TestSequences:
    """GET /sequences."""

    def test_cursor_of_another_status(self, api: Api) -> None:
        """A cursor keeps its place even if the filter excludes its item."""
        found = read_all(api, spec.LIST_SEQUENCES)
        place = [each["status"] for each in found].index("draft")
        query = {"status": "active", "page[after]": found[place]["id"]}
        page = api.get("/sequences", query).json()
        expected = [each for each in found[place:] if each["status"] == "active"]
        assert page["sequences"] == expected[:20]


class TestMailboxes:
    """GET /mailboxes and PATCH /mailboxes/{id}."""

    def all(self, api: Api) -> list[dict[str, Any]]:
        """Return all mailboxes."""
        return read_all(api, spec.LIST_MAILBOXES)

    @pytest.mark.parametrize("limit", [0, 37, 1000])
    def test_update(self, api: Api, limit: int) -> None:
        """The response has the stored new limit, and only `updated_at` changes with it."""
        before = self.all(api)[3]
        path = f"/mailboxes/{before['id']}"
        response = api.send("PATCH", path, json={"daily_email_limit": limit})
        assert response.status_code == 200
        after = response.json()
        assert after["updated_at"] >= before["updated_at"]
        changed = {"daily_email_limit": limit, "updated_at": after["updated_at"]}
        assert after == {**before, **changed}
        assert self.all(api)[3] == after

    @pytest.mark.parametrize("limit", [None, True, "50", 50.5, -1, 1001, 10**30])
    def test_wrong_updates(self, api: Api, limit: object) -> None:
        """A limit that is not an integer within the bounds is rejected and changes nothing."""
        before = self.all(api)[5]
        response = api.send(
            "PATCH", f"/mailboxes/{before['id']}", json={"daily_email_limit": limit}
        )
        assert refused(response, 400)
        assert "daily_email_limit" in response.json()["error"]["message"]
        assert self.all(api)[5] == before


class TestContacts:
    """GET /contacts and GET /contacts/email/{email}."""

    def all(self, api: Api) -> list[dict[str, Any]]:
        """Read all contacts."""
        ids = api.sandbox.contact_ids
        parts = [ids[start : start + 20] for start in range(0, len(ids), 20)]
        return [
            each
            for part in parts
            for each in api.get("/contacts", {"ids[]": part}).json()["contacts"]
        ]

    def test_fields(self, api: Api) -> None:
        """All contacts are returned without activity, and some values are null."""
        found = self.all(api)
        assert [each["id"] for each in found] == api.sandbox.contact_ids
        assert all("recent_activity" not in each for each in found)
        for name in ("email", "profnet_url", "time_zone", "title"):
            assert {each[name] is None for each in found} == {True, False}
        assert any(each["phone_numbers"] for each in found)

    def test_contacts_are_in_the_accounts_order(self, api: Api) -> None:
        """Contacts are in the account's order without repeats, and unknown ids are dropped."""
        ids = api.sandbox.contact_ids[:5]
        asked = [*reversed(ids), UNKNOWN_UUID, ids[0]]
        found = api.get("/contacts", {"ids[]": asked}).json()["contacts"]
        assert [each["id"] for each in found] == ids

    def test_at_most_twenty(self, api: Api) -> None:
        """Twenty ids are accepted; 21 ids and no ids are rejected."""
        ids = api.sandbox.contact_ids
        twenty = api.get("/contacts", {"ids[]": ids[: spec.MAX_CONTACT_IDS]})
        assert len(twenty.json()["contacts"]) == spec.MAX_CONTACT_IDS
        assert refused(api.get("/contacts", {"ids[]": ids[: spec.MAX_CONTACT_IDS + 1]}), 400)
        assert refused(api.get("/contacts"), 400)
        assert refused(api.get("/contacts", {"ids": ids[:1]}), 400)

    def test_by_email(self, api: Api) -> None:
        """Every address is found, in any case, and returns the recent activity."""
        found = [each for each in self.all(api) if each["email"]]
        assert {"+", "'", "/"} <= set("".join(each["email"] for each in found))
        activities = []
        for place, contact in enumerate(found):
            email = contact["email"].upper() if place % 2 else contact["email"]
            read = api.get(f"/contacts/email/{quote(email, safe='')}").json()
            activities.append(read.pop("recent_activity"))
            assert read == contact
        assert any(activities)
        for activity in activities:
            times = [each["event_at"] for each in activity]
            assert times == sorted(times, reverse=True)

    @pytest.mark.parametrize(
        "email", ["a?b@example.com", "a#b@example.com", "100%25@example.com", ""]
    )
    def test_unknown_addresses(self, api: Api, email: str) -> None:
        """URL characters are part of the address, which is unknown."""
        assert refused(api.get(f"/contacts/email/{quote(email, safe='')}"), 404)


class TestPeopleSearch:
    """POST /people/search: request bodies, pages and errors."""

    def test_defaults(self, api: Api) -> None:
        """An empty search returns the first five of all people."""
        response = api.search({}).json()
        assert response["object"] == "person_search_result"
        assert len(response["results"]) == spec.DEFAULT_SEARCH_PAGE_SIZE
        assert response["_pagination"] == {
            "page": 1,
            "page_size": 5,
            "total_pages": PEOPLE // 5,
            "total": PEOPLE,
        }
        assert set(response) == {field.name for field in spec.PEOPLE_SEARCH_RESULT} - {"_errors"}

    @pytest.mark.parametrize(
        "body", [{"page": 2**63}, {"page": 1e300}, {"page": True}, {"person_name": None}]
    )
    def test_wrong_bodies(self, api: Api, body: object) -> None:
        """What fits no type of the OpenAPI document is rejected, also what JSON makes doubtful."""
        assert refused(api.search(body), 400)


def test_whole_numbers_may_be_written_with_a_point(api: Api) -> None:
    """A page number or limit of 2.0 is accepted, because JSON integers may be written so."""
    assert api.search(page=2.0, page_size=5.0).json() == api.search(page=2, page_size=5).json()
    mailbox = api.get("/mailboxes").json()["mailboxes"][0]
    response = api.send("PATCH", f"/mailboxes/{mailbox['id']}", json={"daily_email_limit": 77.0})
    assert response.json()["daily_email_limit"] == 77


def test_sample_data_uses_reserved_domains(api: Api) -> None:
    """All addresses in the account have reserved domains, which nobody can own."""
    texts = [api.get("/mailboxes").text, api.get("/sequences", {"page[size]": 100}).text]
    texts += [api.get("/contacts", {"ids[]": api.sandbox.contact_ids[:20]}).text]
    domains = {found for text in texts for found in re.findall(r"@[\w.-]+\.(\w+)", text)}
    assert domains <= {"example", "test"}
