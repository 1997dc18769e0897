"""The sandbox's sequences, mailboxes, contacts, lead lists and people, over HTTP."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

from outreach_frames import spec
from outreach_frames.sandbox import serve
from tests.sandbox.http import PEOPLE, Api, refused

UNKNOWN_UUID = "00000000-0000-4000-8000-000000000000"


class TestSequences:
    """GET /sequences."""

    def all(self, api: Api, **query: str) -> list[dict[str, Any]]:
        """Return all sequences that match the filters, read in small pages."""
        return [
            each
            for page in api.pages("/sequences", {**query, "page[size]": 3})
            for each in page["sequences"]
        ]

    def test_fields(self, api: Api) -> None:
        """There are more than 40 sequences of several users."""
        found = self.all(api)
        assert len(found) > 40
        assert len({each["created_by_user_id"] for each in found}) == 6
        assert len({each["name"] for each in found}) == len(found)
        assert all(each["created_at"] < each["updated_at"] for each in found)

    @pytest.mark.parametrize("status", spec.SEQUENCE_STATUSES)
    def test_status(self, api: Api, status: str) -> None:
        """Every status occurs, and its filter returns exactly the sequences with it."""
        found = self.all(api, status=status)
        assert len(found) >= 2
        assert found == [each for each in self.all(api) if each["status"] == status]

    @pytest.mark.parametrize("text", ["nordics", "NORDICS", "rdic"])
    def test_name(self, api: Api, text: str) -> None:
        """A name is found by any part of it, in any case."""
        found = self.all(api, name=text)
        assert found
        assert found == [each for each in self.all(api) if text.lower() in each["name"].lower()]

    @pytest.mark.parametrize("text", ["%", "_", "' OR 1=1 --", "C%Os", "\\"])
    def test_name_is_literal(self, api: Api, text: str) -> None:
        """Wildcards of databases match only themselves."""
        assert self.all(api, name=text) == []

    @pytest.mark.parametrize("name", ["created_by_user_id", "created_by_user_email"])
    def test_creator(self, api: Api, name: str) -> None:
        """Sequences are found by their creators, and an unknown user has none."""
        found = self.all(api)
        for value in {each[name] for each in found}:
            assert self.all(api, **{name: value}) == [e for e in found if e[name] == value]
        assert self.all(api, **{name: "nobody@example.com"}) == []

    def test_filters_together(self, api: Api) -> None:
        """Filters are combined with AND, and the next links keep them."""
        email = self.all(api, status="active")[0]["created_by_user_email"].upper()
        found = self.all(api, status="active", created_by_user_email=email, name="a")
        assert found
        assert {each["status"] for each in found} == {"active"}
        assert {each["created_by_user_email"].upper() for each in found} == {email}

    @pytest.mark.parametrize("status", ["", "ACTIVE", "running"])
    def test_unknown_status(self, api: Api, status: str) -> None:
        """An unknown status is rejected."""
        assert refused(api.get("/sequences", {"status": status}), 400)

    def test_cursor_of_another_status(self, api: Api) -> None:
        """A cursor keeps its place even if the filter excludes its item."""
        ids = [each["id"] for each in self.all(api)]
        draft = self.all(api, status="draft")[1]["id"]
        page = api.get("/sequences", {"status": "active", "page[after]": draft}).json()
        rest = [each["id"] for each in self.all(api, status="active")]
        assert [each["id"] for each in page["sequences"]] == [
            each for each in rest if ids.index(each) > ids.index(draft)
        ][:20]


class TestMailboxes:
    """GET /mailboxes and PATCH /mailboxes/{id}."""

    def all(self, api: Api, **query: str) -> list[dict[str, Any]]:
        """Return all mailboxes that match the filters."""
        return [each for page in api.pages("/mailboxes", query) for each in page["mailboxes"]]

    def test_fields(self, api: Api) -> None:
        """There are more than 24 mailboxes, each with a self link."""
        found = self.all(api)
        assert len(found) > 24
        assert len({each["email"] for each in found}) == len(found)
        assert all(set(each["_links"]) == {"self"} for each in found)

    @pytest.mark.parametrize("status", spec.MAILBOX_STATUSES)
    @pytest.mark.parametrize("provider", spec.EMAIL_PROVIDERS)
    def test_filters(self, api: Api, status: str, provider: str) -> None:
        """The filters by status and provider work alone and together."""
        found = self.all(api)
        both = [e for e in found if e["status"] == status and e["email_provider"] == provider]
        assert self.all(api, status=status, email_provider=provider) == both
        assert self.all(api, status=status) == [e for e in found if e["status"] == status]
        assert self.all(api, email_provider=provider)
        assert self.all(api, status=status)

    def test_user(self, api: Api) -> None:
        """Mailboxes are found by their user's address, in any case."""
        found = self.all(api)
        for email in {each["user"]["email"] for each in found}:
            expected = [each for each in found if each["user"]["email"] == email]
            assert self.all(api, user_email=email.upper()) == expected
        assert self.all(api, user_email="nobody@example.com") == []

    @pytest.mark.parametrize("name", ["status", "email_provider"])
    def test_unknown_values(self, api: Api, name: str) -> None:
        """An unknown status or provider is rejected."""
        assert refused(api.get("/mailboxes", {name: "carrier_pigeon"}), 400)

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
        for contact in found:
            for email in (contact["email"], contact["email"].upper()):
                response = api.get(f"/contacts/email/{quote(email, safe='')}")
                read = response.json()
                activity = read.pop("recent_activity")
                assert read == contact
                activities.append(activity)
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


class TestLeadLists:
    """GET /lead-lists/{id}."""

    def test_every_type_and_status(self, api: Api) -> None:
        """Every type and status occurs, and one list has errors."""
        found = [api.get(f"/lead-lists/{each}").json() for each in api.sandbox.lead_list_ids]
        assert {each["type"] for each in found} == set(spec.LEAD_LIST_TYPES)
        assert {each["status"] for each in found} == set(spec.LEAD_LIST_STATUSES)
        assert sum("_errors" in each for each in found) == 1
        assert any(each["leads"] == [] for each in found)
        shapes = {frozenset(lead) for each in found for lead in each["leads"]}
        assert len(shapes) > 8


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

    def test_nobody(self, api: Api) -> None:
        """A search without matches has no results and no pages."""
        response = api.search(person_name="zzzzzz").json()
        assert response["results"] == []
        assert response["_pagination"] == {"page": 1, "page_size": 5, "total_pages": 0, "total": 0}

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


def test_another_seed_is_another_account(api: Api) -> None:
    """Another seed gives other mailboxes, sequences and known leads."""
    with serve(people=PEOPLE, seed=6) as sandbox, Api(sandbox) as other:
        for path in ("/sequences", "/mailboxes"):
            assert other.get(path).text != api.get(path).text
        assert sandbox.exclusion_list != api.sandbox.exclusion_list


def test_sample_data_uses_reserved_domains(api: Api) -> None:
    """All addresses in the account have reserved domains, which nobody can own."""
    texts = [api.get("/mailboxes").text, api.get("/sequences", {"page[size]": 100}).text]
    texts += [api.get("/contacts", {"ids[]": api.sandbox.contact_ids[:20]}).text]
    domains = {found for text in texts for found in re.findall(r"@[\w.-]+\.(\w+)", text)}
    assert domains <= {"example", "test"}
