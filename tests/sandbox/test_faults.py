"""The sandbox's faults, as clients receive them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from typing import Any

import pytest
import requests

from outreach_frames.sandbox import Fault, Sandbox, serve
from tests.sandbox.http import Api, connect, everything, head

pytestmark = pytest.mark.long


def raw(sandbox: Sandbox, path: str = "/mailboxes") -> tuple[bytes, bytes]:
    """Read the response's bytes: the head and the body."""
    with connect(sandbox) as connection:
        connection.sendall(head(sandbox, "GET", path, "Connection: close"))
        first, _, body = everything(connection).partition(b"\r\n\r\n")
    return first.lower(), body


class TestWhen:
    """The requests that a fault affects."""

    def statuses(self, api: Api, requests_: int = 6) -> list[int]:
        """Return the statuses of several equal requests."""
        return [api.get("/mailboxes").status_code for _ in range(requests_)]

    def test_after_and_times(self, api: Api) -> None:
        """A fault starts after `after` requests and ends after `times` affected ones."""
        api.sandbox.faults = [{"kind": "unavailable", "after": 2, "times": 3}]
        assert self.statuses(api) == [200, 200, 503, 503, 503, 200]

    def test_endpoint(self, api: Api) -> None:
        """A fault of one endpoint counts and affects only that endpoint's requests."""
        api.sandbox.faults = [Fault("rate_limit", endpoint="search_people", after=1)]
        assert self.statuses(api) == [200] * 6
        assert [api.search().status_code for _ in range(3)] == [200, 429, 429]

    def test_probability(self, api: Api) -> None:
        """A fault with a probability affects some requests, the same ones in each run."""
        seen = []
        for _ in range(2):
            api.sandbox.faults = Fault("server_error", probability=0.5)
            seen.append(self.statuses(api, 60))
        assert seen[0] == seen[1]
        assert 10 < seen[0].count(500) < 50
        api.sandbox.faults = Fault("server_error", probability=0.0)
        assert self.statuses(api) == [200] * 6

    def test_token_comes_first(self) -> None:
        """Faults passed to `serve` are active at once; a wrong token does not count for one."""
        fault = Fault("server_error", times=1)
        with serve(people=20, faults=[fault]) as sandbox, Api(sandbox) as api:
            assert sandbox.faults == (fault,)
            wrong = api.send("GET", "/mailboxes", headers={"Authorization": "Bearer wrong"})
            assert wrong.status_code == 401
            assert self.statuses(api, 2) == [500, 200]

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ("gremlins", "rate_limit"),
            ({"kind": "gremlins"}, "rate_limit"),
            ({"kind": "rate_limit", "seconds": 1}, "may have kind, endpoint, times"),
            ({"kind": "rate_limit", "endpoint": "/mailboxes"}, "list_mailboxes"),
            ({"kind": "page_drift", "endpoint": "list_mailboxes"}, "search_people"),
            ({"kind": "rate_limit", "times": -1}, "negative"),
            ({"kind": "rate_limit", "after": -1}, "negative"),
            ({"kind": "slow_body", "delay": -1}, "negative"),
            ({"kind": "rate_limit", "probability": 2}, "probability"),
        ],
    )
    def test_unknown(self, api: Api, wrong: str | Mapping[str, Any], said: str) -> None:
        """An unknown fault is a ValueError that lists the known ones."""
        api.sandbox.faults = [Fault("rate_limit")]
        with pytest.raises(ValueError, match=said):
            api.sandbox.faults = [wrong]
        assert api.sandbox.faults == (Fault("rate_limit"),)
        with pytest.raises(ValueError, match=said):
            serve(people=20, faults=[wrong])


class TestStatuses:
    """Faults that respond with an error status or with Retry-After."""

    DATE = "Wed, 21 Oct 2015 07:28:00 GMT"

    @pytest.mark.parametrize(
        ("kind", "asked", "status", "sent"),
        [
            ("rate_limit", None, 429, "1"),
            ("rate_limit", 7, 429, "7"),
            ("rate_limit", "soon", 429, "soon"),
            ("rate_limit_date", DATE, 429, DATE),
            ("rate_limit_bare", 7, 429, None),
            ("unavailable", 0.5, 503, "0.5"),
            ("unavailable_bare", 7, 503, None),
            ("server_error", 7, 500, None),
            ("token_revoked", None, 401, None),
            ("retry_after", 3, 200, "3"),
        ],
    )
    def test_status(
        self, api: Api, kind: str, asked: float | str | None, status: int, sent: str | None
    ) -> None:
        """A response has the status and the passed Retry-After; an error changes nothing."""
        sequence_id = api.sandbox.sequence_ids["accepts_any"]
        before = len(api.sandbox.leads(sequence_id))
        api.sandbox.faults = Fault(kind, retry_after=asked)
        response = api.add(sequence_id, [{"email": "refused@example.com"}])
        assert (response.status_code, response.headers.get("Retry-After")) == (status, sent)
        assert status == 200 or set(response.json()["error"]) == {"code", "message"}
        assert len(api.sandbox.leads(sequence_id)) - before == (status == 200)

    def test_error_objects(self, api: Api) -> None:
        """Errors can be objects that point at a value, a parameter or a lead."""
        api.sandbox.faults = ["rate_limit_reset"]
        reset = api.get("/mailboxes")
        assert (reset.status_code, reset.headers["RateLimit-Reset"]) == (429, "1")
        api.sandbox.faults = ["media_type", "refused_value"]
        searched = api.search(person_titles=["CEO"])
        assert searched.headers["Content-Type"] == "application/vnd.sandbox+json"
        assert searched.json()["_errors"][0]["source"] == {"pointer": "/person_titles/0"}
        (error,) = api.get("/sequences?status=draft").json()["_errors"]
        assert error["source"] == {"parameter": "status"}
        api.sandbox.faults = "refused_contact"
        assert api.get("/contacts/email/ada@x.example").status_code == 451

    def test_a_refused_lead(self, api: Api) -> None:
        """A request with a lead of the refused address is rejected, and others succeed."""
        sequence_id = api.sandbox.sequence_ids["accepts_any"]
        api.sandbox.faults = "refused_lead"
        leads = [{"email": "kept@x.example"}, {"email": "refused@x.example"}]
        refused = api.add(sequence_id, leads)
        assert refused.status_code == 400
        pointers = [error["source"]["pointer"] for error in refused.json()["_errors"]]
        assert pointers == ["/leads/1/email"]
        assert api.add(sequence_id, leads[:1]).json()["total_added_to_sequence"] == 1
        assert [api.add(sequence_id, odd).status_code for odd in (5, ["x"])] == [400] * 2


class TestConnections:
    """Faults of the connection between service and client."""

    @pytest.mark.parametrize(
        ("kind", "stored"), [("drop_before_commit", 0), ("drop_after_commit", 1)]
    )
    def test_dropped(self, api: Api, kind: str, stored: int) -> None:
        """The connection breaks without a response, and only one kind of fault stores the lead."""
        sequence_id = api.sandbox.sequence_ids["conditional_email"]
        before = len(api.sandbox.leads(sequence_id))
        api.sandbox.faults = Fault(kind, times=1)
        with pytest.raises(requests.ConnectionError):
            api.add(sequence_id, [{"email": f"{kind}@example.com"}])
        assert len(api.sandbox.leads(sequence_id)) - before == stored
        again = api.add(sequence_id, [{"email": f"{kind}@example.com"}]).json()
        assert again["total_added_to_sequence"] == 1 - stored
        assert len(again["already_in_sequence_and_skipped"]) == stored

    def test_truncated(self, api: Api) -> None:
        """The body is shorter than Content-Length."""
        whole = api.get("/mailboxes").content
        api.sandbox.faults = "truncated_body"
        first, body = raw(api.sandbox)
        assert body == whole
        assert f"content-length: {len(whole) + 1 + len(whole) // 10}".encode() in first
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            api.get("/mailboxes")

    def test_truncated_gzip(self, api: Api) -> None:
        """The compressed body is incomplete, although its length equals Content-Length."""
        whole = api.get("/mailboxes").content
        api.sandbox.faults = "truncated_gzip"
        first, body = raw(api.sandbox)
        assert b"content-encoding: gzip" in first
        assert f"content-length: {len(body)}".encode() in first
        assert whole.startswith(zlib.decompressobj(31).decompress(body))
        with pytest.raises(EOFError):
            gzip.decompress(body)

    def test_slow(self, api: Api) -> None:
        """The body is sent byte by byte with pauses, and is complete."""
        path = f"/contacts?ids[]={api.sandbox.contact_ids[0]}"
        whole = api.get(path).content
        api.sandbox.faults = Fault("slow_body", delay=0.0002)
        with connect(api.sandbox) as connection:
            connection.sendall(head(api.sandbox, "GET", path, "Connection: close"))
            parts = []
            while part := connection.recv(65_536):
                parts.append(part)
        assert len(parts) > len(whole) // 4
        assert b"".join(parts).partition(b"\r\n\r\n")[2] == whole

    def test_slow_responses_leave_others_alone(self, api: Api) -> None:
        """Other requests are served during a slow response."""
        api.sandbox.faults = Fault("slow_body", endpoint="list_mailboxes", delay=30)
        with connect(api.sandbox) as connection:
            connection.sendall(head(api.sandbox, "GET", "/mailboxes"))
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
            assert api.get("/sequences").status_code == 200


class TestResponses:
    """Faults that change a response's content."""

    def lists(self, sandbox: Sandbox) -> list[str]:
        """Return the path of each list."""
        return ["/sequences", "/mailboxes", f"/lead-lists/{sandbox.lead_list_ids[0]}"]

    def test_repeated_next_link(self, api: Api) -> None:
        """The next link of every page, also the last one, leads to the page itself."""
        api.sandbox.faults = "repeated_next_link"
        for path in self.lists(api.sandbox):
            for size in (5, 20):
                page = api.get(path, {"page[size]": size}).json()
                assert page["_links"]["next"] == page["_links"]["self"]
                assert api.get(page["_links"]["next"]["href"]).json() == page

    def test_foreign_next_link(self, api: Api) -> None:
        """The next link of every page leads to another host, or to the fault's URL."""
        for href in ("http://foreign.example/sequences", "//other.example/x"):
            api.sandbox.faults = Fault("foreign_next_link", href=href)
            for path in self.lists(api.sandbox):
                assert api.get(path).json()["_links"]["next"] == {"href": href}

    def test_page_drift(self, api: Api) -> None:
        """A person moves to the next page, so that one person is repeated and another is missed."""

        def ids() -> list[str]:
            return [
                person["id"]
                for page in range(1, 5)
                for person in api.search(page=page, page_size=15).json()["results"]
            ]

        everybody = ids()
        for fault, missed in (
            (Fault("page_drift"), 59),
            (Fault("page_drift", after=1, times=1), 29),
        ):
            api.sandbox.faults = fault
            seen = ids()
            assert len(seen) == 60
            assert set(everybody) - set(seen) == {everybody[missed]}
            assert [each for each in everybody if seen.count(each) == 2] == [everybody[14]]

    def test_errors(self, api: Api) -> None:
        """A successful response has additional errors."""
        lists = [f"/lead-lists/{each}" for each in api.sandbox.lead_list_ids]
        good = [api.get(path).json() for path in lists]
        api.sandbox.faults = "errors"
        for path, before in zip(lists, good, strict=True):
            response = api.get(path).json()
            assert len(response["_errors"]) == len(before.get("_errors", [])) + 1
            assert response["leads"] == before["leads"]
        response = api.search(page_size=3).json()
        assert len(response["results"]) == 3
        assert response["_errors"]

    def test_refusals_stay_as_they_are(self, api: Api) -> None:
        """Faults that change a successful response do not change an error."""
        api.sandbox.faults = ["errors", "repeated_next_link", "foreign_next_link", "page_drift"]
        assert api.search(page=0).status_code == 400
        assert api.get("/mailboxes", {"page[size]": 21}).status_code == 400
        assert api.get("/lead-lists/unknown").status_code == 404
