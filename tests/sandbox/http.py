"""Helpers of the sandbox's tests: requests, and sockets for bytes that requests cannot send.

>>> with serve(people=60) as sandbox, Api(sandbox) as api:
...     api.get("/mailboxes").status_code
200
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import Any, Self
from urllib.parse import urlsplit

import requests

from outreach_frames.sandbox import Sandbox

PEOPLE = 120
Query = Mapping[str, object]


class Api:
    """A session with the sandbox's token that ignores the machine's proxy settings."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["Authorization"] = f"Bearer {sandbox.api_key}"

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send one request."""
        return self.session.request(method, self.sandbox.url + path, timeout=20, **options)

    def get(self, path: str, query: Query | None = None) -> requests.Response:
        """Send a GET request."""
        return self.send("GET", path, params=query)

    def search(self, body: object = None, **fields: object) -> requests.Response:
        """Search people by fields or with any body."""
        return self.send("POST", "/people/search", json=fields if body is None else body)

    def add(self, sequence_id: str, leads: object, **more: object) -> requests.Response:
        """Add leads to a sequence."""
        return self.send("POST", f"/sequences/{sequence_id}/leads", json={"leads": leads, **more})

    def pages(self, path: str, query: Query | None = None) -> Iterator[dict[str, Any]]:
        """Yield all pages by following the next links."""
        page = self.get(path, query).json()
        yield page
        while "next" in page["_links"]:
            page = self.get(page["_links"]["next"]["href"]).json()
            yield page

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()


def refused(response: requests.Response, status: int) -> bool:
    """Return whether the response is an error with this status in the standard format."""
    error = response.json()["error"]
    return (
        response.status_code == status
        and response.headers["Content-Type"] == "application/json"
        and set(error) == {"code", "message"}
        and all(isinstance(text, str) and text for text in error.values())
    )


def head(sandbox: Sandbox, method: str, path: str, *headers: str) -> bytes:
    """Return the head of a request with the token."""
    lines = (
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {sandbox.api_key}",
        *headers,
    )
    return "\r\n".join((*lines, "", "")).encode()


def connect(sandbox: Sandbox) -> socket.socket:
    """Open a connection to the sandbox."""
    parts = urlsplit(sandbox.url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20)


def everything(connection: socket.socket) -> bytes:
    """Read until the other side closes the connection."""
    received = b""
    while part := connection.recv(65_536):
        received += part
    return received
