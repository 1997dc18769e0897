"""Build requests: addresses, links, bodies, and the network's name in field names.

Links are checked, because following a link sends the token to its address.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from string import Formatter
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

from outreach_frames import spec
from outreach_frames.errors import (
    ConfigurationError,
    InvalidInputError,
    InvalidResponseError,
    UnsafeLinkError,
)

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
# Messages may show this path parameter unless it is an email address; others are personal data.
_ID = "id"
# The bodies of endpoints do not describe the leads in their arrays, so add the leads' fields.
_SENT = (*spec.LEAD, *(field for endpoint in spec.ENDPOINTS for field in endpoint.body))
_RECEIVED = tuple(endpoint.result for endpoint in spec.ENDPOINTS)


def filled_path(endpoint: spec.Endpoint, values: Mapping[str, str]) -> tuple[str, str]:
    """Return an endpoint's path with values inserted, and a label of the request for messages.

    >>> filled_path(spec.UPDATE_MAILBOX, {"id": "a/b"})
    ('/mailboxes/a%2Fb', 'PATCH /mailboxes/a%2Fb')
    """
    names = [name for _, name, _, _ in Formatter().parse(endpoint.path) if name]
    quoted = {name: _segment(endpoint, name, values.get(name)) for name in names}
    shown = {
        name: value if name == _ID and "%40" not in value else f"{{{name}}}"
        for name, value in quoted.items()
    }
    return endpoint.path.format(**quoted), endpoint.label.format(**shown)


def _segment(endpoint: spec.Endpoint, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or value in {".", ".."}:
        raise InvalidInputError(
            f"The {endpoint.identifies}'s {name} is invalid. Nothing was sent. ({endpoint.label})"
        )
    return quote(value, safe="")


def query_string(query: Mapping[str, Any]) -> str:
    """Return a query with its question mark; None is dropped, a list repeats its parameter.

    >>> query_string({"ids[]": ["a", "b"], "name": None})
    '?ids%5B%5D=a&ids%5B%5D=b'
    """
    given = {name: value for name, value in query.items() if value is not None}
    text = urlencode(given, doseq=True)
    return f"?{text}" if text else ""


def json_body(body: Mapping[str, Any]) -> bytes:
    """Return a body as JSON; equal bodies give equal bytes."""
    try:
        return json.dumps(
            body, allow_nan=False, ensure_ascii=False, sort_keys=True, separators=(",", ":")
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        problem = str(error)
    raise InvalidInputError(f"The request cannot be sent as JSON: {problem}. Nothing was sent.")


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
    """Return the service's address in one spelling, or raise ConfigurationError.

    Journals and caches belong to an address, whatever the case of its host.

    >>> checked_base_url("HTTPS://API.example.com:443/v1/")
    'https://api.example.com/v1'
    """
    text = base_url.rstrip("/") if isinstance(base_url, str) else ""
    try:
        scheme, host, port = origin(text)
    except ValueError:
        scheme, host, port = "", "", 0
    if not re.fullmatch(_HOST, host) or not re.fullmatch(_BASE_URL, text):
        raise ConfigurationError(
            "The service's address is invalid: it must look like https://api.example.com or "
            "https://api.example.com/api/v1, without user name, password, query or blanks, or be "
            "'sandbox'. It was passed or set in OUTREACH_BASE_URL."
        )
    place = f"[{host}]" if ":" in host else host
    if port != _DEFAULT_PORTS[scheme]:
        place += f":{port}"
    return urlsplit(text)._replace(scheme=scheme, netloc=place).geturl()


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
    links = page.get(spec.LINKS_KEY)
    link = links.get("next") if isinstance(links, dict) else links
    if isinstance(link, dict):
        link = link.get("href", link)  # an object without a link is an error, but {} is none
    if not link and not _has_cursor(page):
        return None
    if not link or not isinstance(link, str):
        raise InvalidResponseError(
            f"The next page has no valid link in {spec.LINKS_KEY}.next.href, so the remaining "
            "pages cannot be read. Report this to the service."
        )
    return link


def _has_cursor(page: Mapping[str, Any]) -> bool:
    """Return whether a page without a link names a next page by a cursor."""
    places = (page.get(spec.PAGINATION_KEY), page.get("meta"), page)
    return any(
        place.get("has_more") is True and bool(place.get("next_cursor"))
        for place in places
        if isinstance(place, dict)
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


class NetworkName:
    """Translates field names in requests and responses, but no values."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise ConfigurationError(
                "network_name must be lowercase letters, digits and underscores, beginning with a "
                "letter, because it is part of field names."
            )
        self.name = name
        self._to_wire = {
            field.name: self._spelled(field.name)
            for field in _SENT
            if self._spelled(field.name) != field.name
        }
        self._from_wire = {
            self._spelled(field).encode(): field.encode()
            for resource in _RECEIVED
            for field in _names(resource)
            if self._spelled(field) != field
        }
        keys = b"|".join(re.escape(name) for name in self._from_wire)
        # An unescaped quote delimits a string, and only keys are followed by a colon.
        self._keys = re.compile(rb'(?<!\\)"(' + keys + rb')"(?=\s*:)')

    def _spelled(self, field: str) -> str:
        return field.replace(spec.NETWORK_NAME, self.name)

    @property
    def translates(self) -> bool:
        """Whether any field name differs on the wire."""
        return bool(self._to_wire)

    def documented(self, name: str) -> str:
        """Return the documented name of a field that was sent."""
        return next((key for key, wire in self._to_wire.items() if wire == name), name)

    def outgoing(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Translate the field names of a body and its leads, but not of the leads' data."""
        return {self._to_wire.get(key, key): self._leads(value) for key, value in body.items()}

    def _leads(self, value: Any) -> Any:
        if not self._to_wire or not isinstance(value, list | tuple):
            return value
        return [
            {self._to_wire.get(key, key): inner for key, inner in item.items()}
            if isinstance(item, Mapping)
            else item
            for item in value
        ]

    def incoming(self, body: bytes) -> bytes:
        """Translate the documented keys of a JSON response."""
        if not self._from_wire:
            return body
        return self._keys.sub(lambda key: b'"' + self._from_wire[key[1]] + b'"', body)


def _names(fields: tuple[spec.Field, ...]) -> Iterator[str]:
    for field in fields:
        yield field.name
        yield from _names(field.members)
