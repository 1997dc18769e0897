"""Behaviour of all endpoints of the sandbox: tokens, methods, bodies, pages and error codes."""

from __future__ import annotations

import http.client
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from outreach_frames import spec
from outreach_frames.sandbox import Sandbox
from tests.sandbox.http import Api, refused

UNKNOWN_UUID = "00000000-0000-4000-8000-000000000000"


def _path(endpoint: spec.Endpoint) -> str:
    return endpoint.path.replace("{id}", "unknown").replace("{email}", "nobody@example.com")


class TestEveryEndpoint:
    """Behaviour of every endpoint."""

    @pytest.mark.parametrize("endpoint", spec.ENDPOINTS, ids=lambda each: each.name)
    def test_needs_the_token(self, api: Api, endpoint: spec.Endpoint) -> None:
        """Every endpoint returns 401 without the bearer header and the right token."""
        key = api.sandbox.api_key
        for header in (None, "", "Bearer", "Bearer wrong", f"Basic {key}", key, f"Bearer {key}x"):
            response = api.send(endpoint.method, _path(endpoint), headers={"Authorization": header})
            assert refused(response, 401)
            assert response.headers["WWW-Authenticate"] == "Bearer"

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", "/sequences/unknown/leads", {"leads": [{"email": "anna@example.com"}]}),
            ("GET", "/contacts/email/nobody@example.com", None),
            ("GET", f"/lead-lists/{UNKNOWN_UUID}", None),
            ("PATCH", "/mailboxes/unknown", {"daily_email_limit": 10}),
        ],
    )
    def test_unknown_ids(self, api: Api, method: str, path: str, body: object) -> None:
        """An unknown id or address returns 404."""
        assert refused(api.send(method, path, json=body), 404)

    @pytest.mark.parametrize("endpoint", spec.ENDPOINTS, ids=lambda each: each.name)
    def test_unknown_query_parameters(self, api: Api, endpoint: spec.Endpoint) -> None:
        """An unknown query parameter is rejected, not ignored."""
        response = api.send(endpoint.method, _path(endpoint), params={"colour": "red"}, json={})
        assert refused(response, 400)


class TestBodies:
    """Invalid request bodies."""

    BODIES = (
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"7",
        b'{"page": NaN}',
        b'{"page": 1e999}',
        b'{"page": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"person_name": "\xff"}',
        b'{"person_name": "\\ud800"}',
    )

    @pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:20]))
    @pytest.mark.parametrize(
        "endpoint",
        [spec.SEARCH_PEOPLE, spec.ADD_LEADS, spec.UPDATE_MAILBOX],
        ids=lambda each: each.name,
    )
    def test_no_json_object(self, api: Api, endpoint: spec.Endpoint, body: bytes) -> None:
        """A body that is not a JSON object returns 400, never 500."""
        path = endpoint.path.format(id=api.sandbox.sequence_ids["accepts_any"])
        assert refused(api.send(endpoint.method, path, data=body), 400)


class Listed(NamedTuple):
    """A list: its path, key and maximum page size, and its items on pages of the default size."""

    path: str
    key: str
    largest: int
    items: list[dict[str, Any]]


@pytest.fixture(params=["sequences", "mailboxes", "leads"])
def listed(request: pytest.FixtureRequest, api: Api) -> Listed:
    """Return one of the lists."""
    path, key, largest = {
        "sequences": ("/sequences", spec.SEQUENCES_KEY, 100),
        "mailboxes": ("/mailboxes", spec.MAILBOXES_KEY, spec.MAX_MAILBOX_PAGE_SIZE),
        "leads": (f"/lead-lists/{api.sandbox.lead_list_ids[0]}", spec.LEADS_KEY, 100),
    }[request.param]
    return Listed(path, key, largest, [item for page in api.pages(path) for item in page[key]])


class TestLists:
    """Cursor paging of all lists."""

    @pytest.mark.parametrize("size", [4, 20])
    def test_links_lead_to_every_page(self, api: Api, listed: Listed, size: int) -> None:
        """Relative links lead to each page, also back; the pages hold each item once, in order."""
        pages = list(api.pages(listed.path, {"page[size]": size}))
        assert len(pages) > 1
        assert [item for page in pages for item in page[listed.key]] == listed.items
        assert len({item["id"] for item in listed.items}) == len(listed.items)
        assert "prev" not in pages[0]["_links"]
        for page in pages:
            links = page["_links"].values()
            assert all(link["href"].startswith(f"{listed.path}?") for link in links)
            assert api.get(page["_links"]["self"]["href"]).json() == page
        for page, earlier in zip(pages[1:], pages, strict=False):
            back = api.get(page["_links"]["prev"]["href"]).json()
            assert back[listed.key] == earlier[listed.key]

    def test_wrong_page_sizes(self, api: Api, listed: Listed) -> None:
        """A page size that is not a number from 1 to the maximum is rejected."""
        above = listed.largest + 1
        for size in ("", "0", "-1", "many", "1.5", "1e1", "9" * 5000, "٣", " 5", above):
            assert refused(api.get(listed.path, {"page[size]": size}), 400)
        most = api.get(listed.path, {"page[size]": listed.largest}).json()[listed.key]
        assert most == listed.items[: listed.largest]

    def test_wrong_cursors(self, api: Api, listed: Listed) -> None:
        """Unknown cursors, two cursors, and a repeated cursor are rejected."""
        first = listed.items[0]["id"]
        for query in (
            {"page[after]": "nothing"},
            {"page[after]": ""},
            {"page[before]": "nothing"},
            {"page[after]": first, "page[before]": first},
            {"page[after]": [first, first]},
        ):
            assert refused(api.get(listed.path, query), 400)

    @pytest.mark.parametrize("listed", ["mailboxes", "leads"], indirect=True)
    def test_before_is_the_nearest(self, api: Api, listed: Listed) -> None:
        """`page[before]` returns the items right before the cursor, in the list's order."""
        ids = [item["id"] for item in listed.items]
        page = api.get(listed.path, {"page[before]": ids[12], "page[size]": 5}).json()
        assert page[listed.key] == listed.items[7:12]
        start = api.get(listed.path, {"page[before]": ids[0]}).json()
        assert start[listed.key] == []
        assert "prev" not in start["_links"]
        assert api.get(start["_links"]["next"]["href"]).json()[listed.key][0] == listed.items[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost", "localhost:80"])
def test_hosts_of_this_machine(sandbox: Sandbox, host: str) -> None:
    """The service accepts all names of this machine, with any port."""
    assert _status(sandbox, host) == 200


HOSTS = ["", "attacker.example", "127.0.0.1.attacker.example", "localhost@evil", "[", "127.1"]


@pytest.mark.parametrize("host", HOSTS)
def test_foreign_hosts(sandbox: Sandbox, host: str) -> None:
    """Any other host name returns 400, even with the token."""
    assert _status(sandbox, host) == 400


def _status(sandbox: Sandbox, host: str) -> int:
    """Return the status of a request with the token and any Host."""
    target = urlsplit(sandbox.url)
    connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=20)
    headers = {"Host": host, "Authorization": f"Bearer {sandbox.api_key}"}
    connection.request("GET", "/mailboxes", headers=headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_each_status_has_its_code(api: Api) -> None:
    """An error's code is the documented code of its status."""
    headers = {"Authorization": "Bearer x"}
    refusals = {
        (400, "bad_request"): api.search([]),
        (401, "unauthorized"): api.send("GET", "/mailboxes", headers=headers),
        (404, "not_found"): api.get("/nowhere"),
        (405, "method_not_allowed"): api.send("DELETE", "/mailboxes"),
        (413, "content_too_large"): api.send("POST", "/people/search", data=bytes(64_000_001)),
    }
    for expected, response in refusals.items():
        assert (response.status_code, response.json()["error"]["code"]) == expected
    faults = {
        "rate_limit": (429, "too_many_requests"),
        "server_error": (500, "internal_error"),
        "unavailable": (503, "unavailable"),
    }
    for kind, expected in faults.items():
        api.sandbox.faults = kind
        response = api.get("/mailboxes")
        assert (response.status_code, response.json()["error"]["code"]) == expected
