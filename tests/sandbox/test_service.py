"""Behaviour of all endpoints of the sandbox: tokens, methods, bodies, pages and error codes."""

from __future__ import annotations

import http.client
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
        "path", ["/x", "/sequence", "/sequences/", "/sequences/x", "/people", "/mailboxes/x/y"]
    )
    def test_unknown_paths(self, api: Api, path: str) -> None:
        """An undocumented path, or one with a trailing slash, returns 404."""
        assert refused(api.get(path), 404)

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


class TestLists:
    """Cursor paging of all lists."""

    def paths(self, sandbox: Sandbox) -> dict[str, tuple[str, str, int]]:
        """Return the path, key and maximum page size of each list."""
        longest = sandbox.lead_list_ids[0]
        return {
            "sequences": ("/sequences", spec.SEQUENCES_KEY, 100),
            "mailboxes": ("/mailboxes", spec.MAILBOXES_KEY, spec.MAX_MAILBOX_PAGE_SIZE),
            "leads": (f"/lead-lists/{longest}", spec.LEADS_KEY, 100),
        }

    @pytest.mark.parametrize("name", ["sequences", "mailboxes", "leads"])
    def test_default_pages_leave_nothing_out(self, api: Api, name: str) -> None:
        """The links from the first page lead to every item once, on more than one page."""
        path, key, largest = self.paths(api.sandbox)[name]
        pages = list(api.pages(path))
        ids = [item["id"] for page in pages for item in page[key]]
        assert len(pages) > 1
        assert len(set(ids)) == len(ids)
        large = [
            item["id"] for page in api.pages(path, {"page[size]": largest}) for item in page[key]
        ]
        assert large == ids

    @pytest.mark.parametrize("name", ["sequences", "mailboxes", "leads"])
    @pytest.mark.parametrize("size", [1, 7, 20])
    def test_links_lead_back(self, api: Api, name: str, size: int) -> None:
        """Relative links lead to each page and the page before; the first page has none before."""
        path, key, _ = self.paths(api.sandbox)[name]
        pages = list(api.pages(path, {"page[size]": size}))
        assert "prev" not in pages[0]["_links"]
        for page in pages:
            assert all(link["href"].startswith(f"{path}?") for link in page["_links"].values())
            assert api.get(page["_links"]["self"]["href"]).json() == page
        for page, earlier in zip(pages[1:], pages, strict=False):
            back = api.get(page["_links"]["prev"]["href"]).json()
            assert back[key] == earlier[key]

    @pytest.mark.parametrize("name", ["sequences", "mailboxes", "leads"])
    def test_wrong_page_sizes(self, api: Api, name: str) -> None:
        """A page size that is not a number from 1 to the maximum is rejected."""
        path, _, largest = self.paths(api.sandbox)[name]
        for size in ("", "0", "-1", "many", "1.5", "1e1", "9" * 5000, "٣", " 5", largest + 1):
            assert refused(api.get(path, {"page[size]": size}), 400)
        assert api.get(path, {"page[size]": largest}).status_code == 200

    @pytest.mark.parametrize("name", ["sequences", "mailboxes", "leads"])
    def test_wrong_cursors(self, api: Api, name: str) -> None:
        """Unknown cursors, two cursors, and a repeated cursor are rejected."""
        path, key, _ = self.paths(api.sandbox)[name]
        first = api.get(path).json()[key][0]["id"]
        for query in (
            {"page[after]": "nothing"},
            {"page[after]": ""},
            {"page[before]": "nothing"},
            {"page[after]": first, "page[before]": first},
            {"page[after]": [first, first]},
        ):
            assert refused(api.get(path, query), 400)

    @pytest.mark.parametrize("name", ["mailboxes", "leads"])
    def test_before_is_the_nearest(self, api: Api, name: str) -> None:
        """`page[before]` returns the items right before the cursor, in the list's order."""
        path, key, _ = self.paths(api.sandbox)[name]
        ids = [item["id"] for page in api.pages(path) for item in page[key]]
        page = api.get(path, {"page[before]": ids[12], "page[size]": 5}).json()
        assert [item["id"] for item in page[key]] == ids[7:12]
        start = api.get(path, {"page[before]": ids[0]}).json()
        assert start[key] == []
        assert "prev" not in start["_links"]
        assert api.get(start["_links"]["next"]["href"]).json()[key][0]["id"] == ids[0]

    @pytest.mark.parametrize("name", ["sequences", "mailboxes", "leads"])
    def test_after_the_last(self, api: Api, name: str) -> None:
        """After the last item there is an empty page without a next link."""
        path, key, _ = self.paths(api.sandbox)[name]
        last = list(api.pages(path))[-1][key][-1]["id"]
        page = api.get(path, {"page[after]": last}).json()
        assert page[key] == []
        assert "next" not in page["_links"]


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
        (413, "content_too_large"): api.search(title=" " * 64_000_000),
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
