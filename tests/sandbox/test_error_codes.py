"""The codes of the sandbox's errors, by which clients can distinguish them."""

from __future__ import annotations

from collections.abc import Callable

import requests

from tests.sandbox.http import Api


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
