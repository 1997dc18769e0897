"""Where a link of the service may lead.

A link is text that came over the wire and becomes the address of a request that carries the token.
This is the one place that decides whether to follow it.
"""

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

# An address with its scheme, a path from the root, a query, or a path from the base address.
# Spelled narrowly, because URL parsers disagree about everything else. Patterns are text: `re`
# compiles one when it is first used, and importing is to be quick.
_HREF = r"(?ai)https?://[^/?#]|/(?!/)|\?|[\w.~%-]+(?![\w.~%:@-])"
_ABSOLUTE = r"(?i)https?://"
_NEVER_IN_HREF = r"[\x00-\x1f\x7f\\\ud800-\udfff]|^\s|\s$"
_HOST = r"[a-z0-9_:][a-z0-9_.:-]*"
_BASE_URL = r"[^\s\\?#\x00-\x1f\x7f-\U0010ffff]+"


def origin(url: str) -> Origin:
    """Return scheme, host and port of an absolute address; ValueError where it has none.

    >>> origin("https://API.example.com/v1")
    ('https', 'api.example.com', 443)
    """
    parts = urlsplit(url)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        raise ValueError("not an http address with a host and without credentials")
    port = _DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    return parts.scheme, parts.hostname, port


def checked_base_url(base_url: str) -> str:
    """Return the service's address without a slash at its end, or raise ConfigurationError."""
    text = base_url.rstrip("/") if isinstance(base_url, str) else ""
    try:
        _, host, _ = origin(text)
    except ValueError:
        host = ""
    if not re.fullmatch(_HOST, host) or not re.fullmatch(_BASE_URL, text):
        raise ConfigurationError(
            "The service's address cannot be used: it must look like https://api.example.com or "
            "https://api.example.com/api/v1, with no user name, password, query or blanks in it. "
            "Check base_url or OUTREACH_BASE_URL."
        )
    return text


def leaves_machine_in_clear(base_url: str) -> bool:
    """Whether requests to this address can be read by others on their way."""
    scheme, host, _ = origin(base_url)
    if scheme == "https" or host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return True


def next_href(page: Any) -> str | None:
    """Return the link to the page after this one as the service gave it; None on the last page.

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
            "The page's link to the next one has an unknown form, so the rest cannot be read. "
            "Report this to the service."
        )
    return link


def redirected(label: str, status: int, location: str) -> UnsafeLinkError:
    """Return the error for a redirect; of the address, it names the host."""
    try:
        host = urlsplit(location).hostname
    except ValueError:
        host = None
    return UnsafeLinkError(
        f"{label}: the service redirects (status {status}) to {host or 'another path'}. That is "
        "refused, because the token would follow. If the service has moved, connect to its new "
        "address.",
        status_code=status,
    )


def endless(label: str, pages: int) -> UnsafeLinkError:
    """Return the error for pages that lead back, or never to an end."""
    return UnsafeLinkError(
        f"{label}: the service's pages do not end; after {pages} of them the next link leads back "
        "or still further on. Report this to the service."
    )


def resolve(href: str, *, page_url: str, base_url: str) -> str:
    """Return the absolute address that a link on a page means, or raise UnsafeLinkError.

    A path from the root may have the base address's own path in front or not; other paths count
    from the base address, and a bare query from the page.

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
    """Raise UnsafeLinkError unless both addresses have the same scheme, host and port."""
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
