"""Behaviour of all endpoints of the sandbox: tokens, methods, bodies, pages and error codes."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
import requests

from outreach_frames import spec
from outreach_frames.sandbox import Sandbox
from tests.sandbox.http import Api, connect, everything, head, refused

UNKNOWN_UUID = "00000000-0000-4000-8000-000000000000"


def _path(endpoint: spec.Endpoint) -> str:
    return endpoint.path.replace("{id}", "unknown").replace("{email}", "nobody@example.com")


class TestEveryEndpoint:
    """Behaviour of every endpoint."""

    @pytest.mark.parametrize("endpoint", spec.ENDPOINTS, ids=lambda each: each.name)
    @pytest.mark.parametrize(
        "header", [None, "", "Bearer", "Bearer wrong", "Basic {key}", "{key}", "Bearer {key}x"]
    )
    def test_needs_the_token(self, api: Api, endpoint: spec.Endpoint, header: str | None) -> None:
        """Every endpoint returns 401 without the bearer header and the right token."""
        value = header and header.format(key=api.sandbox.api_key)
        response = api.send(endpoint.method, _path(endpoint), headers={"Authorization": value})
        assert refused(response, 401)
        assert response.headers["WWW-Authenticate"] == "Bearer"

    @pytest.mark.parametrize("endpoint", spec.ENDPOINTS, ids=lambda each: each.name)
    @pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "PUT", "DELETE"])
    def test_other_methods(self, api: Api, endpoint: spec.Endpoint, method: str) -> None:
        """A wrong method returns 405 with the right methods in Allow."""
        if method == endpoint.method:
            assert api.send(method, _path(endpoint)).status_code != 405
            return
        response = api.send(method, _path(endpoint))
        assert refused(response, 405)
        assert endpoint.method in response.headers["Allow"].split(", ")

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

    def test_too_large_in_chunks(self, sandbox: Sandbox) -> None:
        """A chunked body returns 413 as soon as it is too large, before its end."""
        chunk = b"%x\r\n%s\r\n" % (1_000_000, b" " * 1_000_000)
        with connect(sandbox) as connection:
            connection.sendall(
                head(sandbox, "POST", "/people/search", "Transfer-Encoding: chunked")
            )
            for _ in range(11):
                connection.sendall(chunk)
            response = connection.recv(65_536)
        assert response.startswith(b"HTTP/1.1 413 ")

    def test_connection_survives_a_large_body(self, api: Api) -> None:
        """After a rejected body of 11 MB the same connection serves the next request."""
        assert refused(api.send("POST", "/people/search", data=b" " * 11_000_000), 413)
        assert api.search(page_size=1).status_code == 200


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
    def test_prev_leads_back(self, api: Api, name: str, size: int) -> None:
        """The prev link of each page leads to the page before, and the first page has none."""
        path, key, _ = self.paths(api.sandbox)[name]
        pages = list(api.pages(path, {"page[size]": size}))
        assert "prev" not in pages[0]["_links"]
        for page, earlier in zip(pages[1:], pages, strict=False):
            back = api.get(page["_links"]["prev"]["href"]).json()
            assert back[key] == earlier[key]

    @pytest.mark.parametrize("name", ["sequences", "mailboxes", "leads"])
    def test_self_is_the_same_page(self, api: Api, name: str) -> None:
        """The self link returns the same page, and all links are relative."""
        path, _, _ = self.paths(api.sandbox)[name]
        for page in api.pages(path, {"page[size]": 15}):
            assert api.get(page["_links"]["self"]["href"]).json() == page
            assert all(link["href"].startswith(f"{path}?") for link in page["_links"].values())

    @pytest.mark.parametrize("name", ["sequences", "mailboxes", "leads"])
    @pytest.mark.parametrize(
        "size", ["", "0", "-1", "many", "1.5", "1e1", "101", "9" * 5000, "٣", " 5"]
    )
    def test_wrong_page_sizes(self, api: Api, name: str, size: str) -> None:
        """A page size that is not a number from 1 to the maximum is rejected."""
        path, _, largest = self.paths(api.sandbox)[name]
        assert refused(api.get(path, {"page[size]": size}), 400)
        assert refused(api.get(path, {"page[size]": largest + 1}), 400)
        assert api.get(path, {"page[size]": largest}).status_code == 200

    @pytest.mark.parametrize("name", ["sequences", "mailboxes", "leads"])
    def test_wrong_cursors(self, api: Api, name: str) -> None:
        """Unknown cursors, two cursors, and a repeated cursor are rejected."""
        path, key, _ = self.paths(api.sandbox)[name]
        first = api.get(path).json()[key][0]["id"]
        assert refused(api.get(path, {"page[after]": "nothing"}), 400)
        assert refused(api.get(path, {"page[after]": ""}), 400)
        assert refused(api.get(path, {"page[before]": "nothing"}), 400)
        assert refused(api.get(path, {"page[after]": first, "page[before]": first}), 400)
        assert refused(api.get(path, {"page[after]": [first, first]}), 400)

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


class TestHead:
    """Hosts of a request, and bodies in parts."""

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost", "localhost:80"])
    def test_hosts_of_this_machine(self, sandbox: Sandbox, host: str) -> None:
        """The service accepts all names of this machine, with any port."""
        assert _status(sandbox, host) == 200

    @pytest.mark.parametrize(
        "host",
        [
            "",
            "attacker.example",
            "127.0.0.1.attacker.example",
            "x@localhost.example",
            "[",
            "192.0.2.1",
            "evil@localhost",
            "localhost@evil",
            "localhost.",
            "localhost evil",
            "127.1",
            "[::1].evil",
            "[127.0.0.1]",
            "\xa0localhost",
        ],
    )
    def test_foreign_hosts(self, sandbox: Sandbox, host: str) -> None:
        """Any other host name returns 400, even with the token."""
        assert _status(sandbox, host) == 400

    def test_a_body_in_many_parts(self, sandbox: Sandbox) -> None:
        """A body in many parts is accepted, and so is the next request."""
        body = b'{"person_titles": ["' + b"x" * 200_000 + b'"]}'
        first = head(sandbox, "POST", "/people/search", f"Content-Length: {len(body)}")
        with connect(sandbox) as connection:
            connection.sendall(
                first + body + head(sandbox, "GET", "/mailboxes", "Connection: close")
            )
            assert everything(connection).count(b"HTTP/1.1 200") == 2


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

    def with_token(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    refusals: dict[int, tuple[str, Callable[[], requests.Response]]] = {
        400: ("bad_request", lambda: api.search([])),
        401: ("unauthorized", lambda: api.send("GET", "/mailboxes", headers=with_token("x"))),
        404: ("not_found", lambda: api.get("/nowhere")),
        405: ("method_not_allowed", lambda: api.send("DELETE", "/mailboxes")),
        413: ("content_too_large", lambda: api.search(title=" " * 4_000_000)),
    }
    for status, (code, send) in refusals.items():
        response = send()
        assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    faults = {
        "rate_limit": (429, "too_many_requests"),
        "server_error": (500, "internal_error"),
        "unavailable": (503, "unavailable"),
    }
    for kind, expected in faults.items():
        api.sandbox.faults = kind
        response = api.get("/mailboxes")
        assert (response.status_code, response.json()["error"]["code"]) == expected
