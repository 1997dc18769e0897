"""What the service accepts in a query or a body, and how it refuses the rest.

Every refusal is `{"error": {"code": .., "message": ..}}`. The interface shows neither that format
nor the points below, so these are plain choices:

- unknown query parameters, a parameter given twice, and unknown fields of a body are refused (400);
- `page[size]` of sequences and of lead lists is 20 unless given, and at most 100; that of mailboxes
  is 20 unless given;
- `page[after]` and `page[before]` together, and a cursor that names nothing, are refused (400);
- `page` of people search may be 1 to 2**63 - 1;
- `daily_email_limit` may be 0 to 1000;
- a body may have 4 MB, one that adds leads 64 MB: room for the largest request within the limits of
  the interface, 250 leads with 50 fields of 1024 characters of 4 bytes.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson

from outreach_frames import spec

DEFAULT_PAGE_SIZE = 20
MAX_PAGE_SIZE = 100
MAX_PAGE = 2**63 - 1
DAILY_EMAIL_LIMITS = range(1001)
MAX_BODY_BYTES = 4_000_000
MAX_LEADS_BODY_BYTES = 64_000_000

Query = Sequence[tuple[str, str]]

CODES = {
    400: "bad_request",
    401: "unauthorized",
    404: "not_found",
    405: "method_not_allowed",
    413: "content_too_large",
    429: "too_many_requests",
    500: "internal_error",
    503: "unavailable",
}


class Refusal(Exception):  # noqa: N818
    """A response with an error status, on its way to the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def error_body(status: int, message: str) -> bytes:
    """Write an error in the sandbox's standard format."""
    return orjson.dumps({"error": {"code": CODES.get(status, "error"), "message": message}})


def bad_request(message: str) -> Refusal:
    """Make the refusal of a request that is malformed in itself."""
    return Refusal(400, message)


def read_json(body: bytes) -> Any:
    """Parse a body; no NaN, no bottomless nesting, no broken UTF-8."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"The body is not JSON: {error}") from error


def read_object(value: object, what: str, known: Sequence[str]) -> dict[str, Any]:
    """Take a JSON object that has no other fields than the known ones."""
    if not isinstance(value, dict):
        raise bad_request(f"{what} must be an object")
    unknown = [name for name in value if name not in known]
    if unknown:
        raise bad_request(f"{what} has an unknown field {unknown[0]!r}")
    return value


def as_integer(value: object) -> int | None:
    """Take a JSON value that is a whole number, written 7 or 7.0; true and false are none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_query(endpoint: spec.Endpoint, query: Query) -> dict[str, str]:
    """Take an endpoint's query parameters, each at most once, with values from its lists."""
    fields = {field.name: field for field in endpoint.query}
    taken: dict[str, str] = {}
    for name, value in query:
        field = fields.get(name)
        if field is None:
            raise bad_request(f"{endpoint.label} has no query parameter {name!r}")
        if name in taken:
            raise bad_request(f"{name} is given twice")
        if field.values and value not in field.values:
            raise bad_request(f"{name} must be one of {', '.join(field.values)}, not {value!r}")
        taken[name] = value
    return taken


def read_page_size(query: Mapping[str, str], *, maximum: int = MAX_PAGE_SIZE) -> int:
    """Take `page[size]`: a whole number from 1 to the endpoint's maximum."""
    text = query.get(spec.PAGE_SIZE.name, str(DEFAULT_PAGE_SIZE))
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= maximum):
        raise bad_request(f"{spec.PAGE_SIZE.name} must be a whole number from 1 to {maximum}")
    return int(text)


def read_contact_ids(query: Query) -> list[str]:
    """Take the `ids[]` of a request for contacts."""
    name = spec.CONTACT_IDS.name
    if any(key != name for key, _ in query):
        raise bad_request(f"{spec.GET_CONTACTS.label} takes {name} and nothing else")
    if not 1 <= len(query) <= spec.MAX_CONTACT_IDS:
        raise bad_request(f"{name} must be given 1 to {spec.MAX_CONTACT_IDS} times")
    return [value for _, value in query]


def read_daily_email_limit(body: bytes) -> int:
    """Take the new daily limit of a mailbox."""
    (field,) = spec.DAILY_EMAIL_LIMIT_BODY
    limit = as_integer(read_object(read_json(body), "The body", [field.name]).get(field.name))
    if limit is None or limit not in DAILY_EMAIL_LIMITS:
        raise bad_request(
            f"{field.name} must be a whole number from {DAILY_EMAIL_LIMITS[0]}"
            f" to {DAILY_EMAIL_LIMITS[-1]}"
        )
    return limit


def read_search(body: bytes) -> tuple[dict[str, Any], int, int]:
    """Take a people search: its filters, the page and the page size."""
    page_field, size_field = spec.SEARCH_PAGING
    known = (*spec.FILTERS_BY_NAME, page_field.name, size_field.name)
    filters = dict(read_object(read_json(body), "The body", known))
    page = as_integer(filters.pop(page_field.name, 1))
    page_size = as_integer(filters.pop(size_field.name, spec.DEFAULT_SEARCH_PAGE_SIZE))
    if page is None or not 1 <= page <= MAX_PAGE:
        raise bad_request(f"{page_field.name} must be a whole number from 1 to {MAX_PAGE:,}")
    smallest, largest = spec.MIN_SEARCH_PAGE_SIZE, spec.MAX_SEARCH_PAGE_SIZE
    if page_size is None or not smallest <= page_size <= largest:
        raise bad_request(f"{size_field.name} must be a whole number from {smallest} to {largest}")
    for name, value in filters.items():
        _check_filter(spec.FILTERS_BY_NAME[name], value)
    return filters, page, page_size


def _check_filter(search_filter: spec.Filter, value: object) -> None:
    name = search_filter.name
    if search_filter.type == "string" and not isinstance(value, str):
        raise bad_request(f"{name} must be a string")
    if search_filter.type == "boolean" and not isinstance(value, bool):
        raise bad_request(f"{name} must be true or false")
    if search_filter.type == "array":
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise bad_request(f"{name} must be an array of strings")
        if search_filter.format == "uuid" and not all(map(_is_uuid, value)):
            raise bad_request(f"{name} must be an array of uuids")
        if search_filter.values and not set(value) <= set(search_filter.values):
            raise bad_request(f"{name} takes only {', '.join(search_filter.values)}")


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def email_key(email: str) -> str:
    """Write an address the way that addresses are compared: without regard to case."""
    return f"mailto:{email.strip().lower()}"


def url_key(url: str) -> str | None:
    """Write a profile URL the way that URLs are compared; None for what is none.

    Scheme, `www.`, the case of the host, a trailing slash and a fragment make no difference.

    >>> url_key("https://WWW.Profnet.example/in/anna/") == url_key("profnet.example/in/anna")
    True
    """
    text = url.strip()
    try:
        parts = urlsplit(text if re.match(r"https?://", text, re.IGNORECASE) else f"//{text}")
    except ValueError:
        return None
    host = (parts.hostname or "").removeprefix("www.")
    path = parts.path.rstrip("/")
    if "." not in host or not path or re.search(r"\s", text):
        return None
    return f"{host}{path}" + (f"?{parts.query}" if parts.query else "")


def identifiers(email: str | None, profnet_url: str | None) -> dict[str, str | None]:
    """Put a lead's identifiers and the keys that they are compared by into a row's columns."""
    return {
        "email": email,
        "profnet_url": profnet_url,
        "email_key": None if email is None else email_key(email),
        "url_key": None if profnet_url is None else url_key(profnet_url),
    }


def link(path: str, query: Mapping[str, str]) -> dict[str, str]:
    """Make a link object: a relative path with its query string."""
    return {"href": f"{path}?{urlencode(query)}" if query else path}
