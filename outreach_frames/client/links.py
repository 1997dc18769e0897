"""Check links in responses, because following a link sends the token to its address."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Any
from urllib.parse import urljoin, urlsplit

from outreach_frames import spec
from outreach_frames.errors import ConfigurationError, InvalidResponseError, UnsafeLinkError

MAX_PAGES = 10_000

Origin = tuple[str, str, int]

_DEFAULT_PORTS = {"http": 80, "https": 443}

# A link is an absolute address, a path from the root, a query, or a relative path. The
# pattern is narrow because URL parsers disagree about anything else. Patterns are text, which `re`
# compiles on first use, to keep imports fast.
_HREF = r"(?ai)https?://[^/?#]|/(?!/)|\?|[\w.~%-]+(?![\w.~%:@-])"
_ABSOLUTE = r"(?i)https?://"
_NEVER_IN_HREF = r"[\x00-\x1f\x7f\\\ud800-\udfff]|^\s|\s$"
_HOST = r"[a-z0-9_:][a-z0-9_.:-]*"
_BASE_URL = r"[^\s\\?#\x00-\x1f\x7f-\U0010ffff]+"


def origin(url: str) -> Origin:
    """Return scheme, host and port of an absolute address, or raise ValueError.

    >>> origin("https://API.example.com/v1")
    ('https', 'api.example.com', 443)
    """
    parts = urlsplit(url)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        raise ValueError("not an http address with a host and without credentials")
    port = _DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    return parts.scheme, parts.hostname, port


def checked_base_url(base_url: str) -> str:
    """Return the service's address without trailing slashes, or raise ConfigurationError."""
    text = base_url.rstrip("/") if isinstance(base_url, str) else ""
    try:
        _, host, _ = origin(text)
    except ValueError:
        host = ""
    if not re.fullmatch(_HOST, host) or not re.fullmatch(_BASE_URL, text):
        raise ConfigurationError(
            "The service's address is invalid: it must look like https://api.example.com or "
            "https://api.example.com/api/v1, without user name, password, query or blanks, or be "
            "'sandbox'. Check base_url or OUTREACH_BASE_URL."
        )
    return text


def is_sent_unencrypted(base_url: str) -> bool:
    """Return whether requests to this address leave the machine unencrypted."""
    scheme, host, _ = origin(base_url)
    if scheme == "https" or host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return True


def next_href(page: Any) -> str | None:
    """Return the link to the next page as the service sent it, or None on the last page.

    >>> next_href({"_links": {"next": {"href": "/sequences?page[after]=s1"}}})
    '/sequences?page[after]=s1'
    """
    link = page.get(spec.LINKS_KEY)
    for name in ("next", "href"):
        if not link:
            return None
        if not isinstance(link, dict):
            break
        link = link.get(name)
    if not link:
        return None
    if not isinstance(link, str):
        raise InvalidResponseError(
            "The link to the next page has an unknown format, so the remaining pages cannot be "
            "read. Report this to the service."
        )
    return link


def redirected(label: str, status: int, location: str) -> UnsafeLinkError:
    """Return the error for a redirect; the message names only the host of the new address."""
    try:
        host = urlsplit(location).hostname
    except ValueError:
        host = None
    return UnsafeLinkError(
        f"The service redirects to {host or 'another path'}. Redirects are refused, because the "
        "token would be sent there. If the service has moved, connect to its new address.",
        request=label,
        status_code=status,
    )


def endless(label: str, pages: int) -> UnsafeLinkError:
    """Return the error for next links that repeat a page or never end."""
    return UnsafeLinkError(
        f"The service's pages do not end: page {pages} still has a next link. Report this to the "
        "service.",
        request=label,
    )


def resolve(href: str, *, page_url: str, base_url: str) -> str:
    """Return the absolute address of a link, or raise UnsafeLinkError.

    Queries are relative to the page. Paths are relative to the base address; paths from the root
    may also include the base address's path.

    >>> resolve("/sequences?n=2", page_url="", base_url="https://api.example.com/api/v1")
    'https://api.example.com/api/v1/sequences?n=2'
    """
    if re.search(_NEVER_IN_HREF, href) or not re.match(_HREF, href):
        raise UnsafeLinkError(
            "The service sent a link that cannot be followed safely: it is neither a path, a query "
            "nor an http address. Nothing was sent to it. Report this to the service."
        )
    if href.startswith("?"):
        url = urljoin(page_url, href)
    elif re.match(_ABSOLUTE, href):
        url = href
    else:
        base_path = urlsplit(base_url).path
        path = href if href.startswith("/") else f"/{href}"
        if re.match(f"{re.escape(base_path)}(?![^/?#])", path):
            path = path.removeprefix(base_path)
        url = base_url + path
    require_same_origin(url, base_url)
    return url


def require_same_origin(url: str, base_url: str) -> None:
    """Raise UnsafeLinkError if the addresses differ in scheme, host or port."""
    try:
        target = origin(url)
    except ValueError:
        target = None
    if target != origin(base_url):
        where = "{}://{}:{}".format(*target) if target else "an address that cannot be read"
        raise UnsafeLinkError(
            f"The service sent a link to {where}, which is not the service that you connected to. "
            "Nothing was sent there. Report this to the service, or check base_url."
        )
