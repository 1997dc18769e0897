"""Valid and invalid targets of links, tested with tables of addresses."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.client.request import (
    checked_base_url,
    is_sent_unencrypted,
    origin,
    resolve,
)
from outreach_frames.errors import UnsafeLinkError

BASE = "https://api.example.com/api/v1"
PAGE = f"{BASE}/lead-lists/7?page[size]=5"

GOOD = {
    "/sequences?page[after]=a": f"{BASE}/sequences?page[after]=a",
    "/api/v1/sequences?page[after]=a": f"{BASE}/sequences?page[after]=a",
    "/api/v1x/sequences": f"{BASE}/api/v1x/sequences",
    "/api/v1?x": f"{BASE}?x",
    "sequences?page[after]=a": f"{BASE}/sequences?page[after]=a",
    "api/v1/sequences": f"{BASE}/sequences",
    "lead-lists/7?page[after]=a": f"{BASE}/lead-lists/7?page[after]=a",
    "?page[after]=a": f"{BASE}/lead-lists/7?page[after]=a",
    "https://api.example.com/api/v1/sequences": f"{BASE}/sequences",
    "https://api.example.com:443/api/v1/sequences": "https://api.example.com:443/api/v1/sequences",
    "HTTPS://API.EXAMPLE.COM/api/v1/sequences": "HTTPS://API.EXAMPLE.COM/api/v1/sequences",
    "/sequences?created_by_user_email=ann@example.com": (
        f"{BASE}/sequences?created_by_user_email=ann@example.com"
    ),
    "/sequences?next=http://evil.example": f"{BASE}/sequences?next=http://evil.example",
}

BAD = [
    "//evil.example/x",
    "///evil.example/x",
    "\t//evil.example/x",
    "/\t/evil.example/x",
    "\\\\evil.example\\x",
    "/\\evil.example/x",
    "@evil.example/x",
    "evil.example:80/x",
    "http://api.example.com/api/v1/sequences",
    "https://api.example.com:444/x",
    "https://api.example.com@evil.example/x",
    "https://evil.example\\@api.example.com/x",
    "https:/evil.example/x",
    "https:///evil.example/x",
    "https://api.example.com:port/x",
    "javascript:alert(1)",
    "/sequences\r\nX-Header: 1",
    "/sequences\x00",
    "/sequences?\ud83d",
    "\u2028/sequences",
    "#top",
]


@pytest.mark.parametrize("href", GOOD)
def test_valid_links_resolve_to_the_service(href: str) -> None:
    """Each style of link resolves to the intended address of the service."""
    assert resolve(href, page_url=PAGE, base_url=BASE) == GOOD[href]


@pytest.mark.parametrize("base", [BASE, "https://api.example.com"])
def test_other_links_are_an_error(base: str) -> None:
    """A link to another place is an error, and its message does not repeat the link."""
    for href in BAD:
        with pytest.raises(UnsafeLinkError, match="Nothing was sent") as caught:
            resolve(href, page_url=PAGE, base_url=base)
        assert href not in str(caught.value)


@given(st.text("/\\?#@:.%[]\t\n ahtps1evil-", max_size=30))
def test_no_link_leaves_the_service(href: str) -> None:
    """Any text resolves to an address of the service or raises an error."""
    try:
        url = resolve(href, page_url=PAGE, base_url=BASE)
    except UnsafeLinkError:
        return
    assert origin(url) == origin(BASE)
    assert urlsplit(url).username is None


@pytest.mark.parametrize(
    ("address", "spelled"),
    [
        ("HTTPS://API.Example.com:443/V1//", "https://api.example.com/V1"),
        ("http://example.com:443", "http://example.com:443"),
        ("http://[::1]:80/a", "http://[::1]/a"),
        ("http://[2001:DB8::1]:8000", "http://[2001:db8::1]:8000"),
    ],
)
def test_an_address_has_one_spelling(address: str, spelled: str) -> None:
    """The case of scheme and host, a default port and trailing slashes do not matter."""
    assert checked_base_url(address) == spelled


@pytest.mark.parametrize(
    ("address", "exposed"),
    [
        ("https://api.example.com", False),
        ("http://localhost:8000", False),
        ("http://a.localhost", False),
        ("http://127.1.2.3", False),
        ("http://[::1]:80", False),
        ("http://api.example.com", True),
        ("http://192.0.2.1", True),
        ("http://localhost.example.com", True),
    ],
)
def test_http_is_unencrypted_beyond_the_machine(address: str, exposed: bool) -> None:
    """Plain http is private only within this machine."""
    assert is_sent_unencrypted(address) is exposed
