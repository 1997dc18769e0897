"""Validate queries and bodies, and format errors.

Choices where the interface document is silent: errors are `{"error": {"code": .., "message": ..}}`;
unknown or repeated query parameters, unknown fields of a body, two cursors at once and cursors not
in the list are rejected (400). The limits below are choices too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Meta

from outreach_frames import spec

DEFAULT_PAGE_SIZE = 20
MAX_PAGE_SIZE = 100  # `spec` has another maximum for mailboxes
MAX_PAGE = 2**63 - 1
DAILY_EMAIL_LIMITS = range(1001)
MAX_BODY_BYTES = 64_000_000  # 250 leads x 50 fields x 1024 characters x 4 bytes

_UUID: Final = r"(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z"

Query = Sequence[tuple[str, str]]
Form = TypeVar("Form")

ERROR_CODES = {
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
    """A rejected request, with the status and message of its response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def error_body(status: int, message: str) -> bytes:
    """Format an error response's body."""
    return msgspec.json.encode(
        {"error": {"code": ERROR_CODES.get(status, "error"), "message": message}}
    )


def read_body(body: bytes, form: type[Form]) -> Form:
    """Parse and validate a body; NaN and invalid UTF-8 are rejected, 7.0 counts as an integer."""
    try:
        fields = msgspec.json.decode(body)
        if isinstance(fields, dict):
            fields = {name: _as_integer(value) for name, value in fields.items()}
        return msgspec.convert(fields, form)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"The body is malformed: {error}") from error


def _as_integer(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_query(endpoint: spec.Endpoint, query: Query) -> None:
    """Reject unknown and repeated parameters, and invalid values."""
    fields = {field.name: field for field in endpoint.query}
    names = [name for name, _ in query]
    for name, value in query:
        field = fields.get(name)
        if field is None:
            raise Refusal(400, f"{endpoint.label} has no query parameter {name!r}")
        if field.type != "array" and names.count(name) > 1:
            raise Refusal(400, f"{name} must not be repeated")
        if field.values and value not in field.values:
            raise Refusal(400, f"{name} must be one of {', '.join(field.values)}, not {value!r}")
        most = field.maximum or MAX_PAGE_SIZE
        if name == spec.PAGE_SIZE.name and value not in map(str, range(1, most + 1)):
            raise Refusal(400, f"{name} must be a whole number from 1 to {most}")


class DailyEmailLimit(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request that updates a mailbox."""

    daily_email_limit: Annotated[int, Meta(ge=DAILY_EMAIL_LIMITS[0], le=DAILY_EMAIL_LIMITS[-1])]


def _filter_type(search_filter: spec.Filter) -> type:
    if search_filter.format == "uuid":
        return list[Annotated[str, Meta(pattern=_UUID)]]
    return {"string": str, "boolean": bool}.get(search_filter.type, list[str])


_Search: Final = msgspec.defstruct(
    "_Search",
    [
        *((entry.name, _filter_type(entry), None) for entry in spec.FILTERS),
        *(
            (paging.name, Annotated[int, Meta(ge=1, le=paging.maximum or MAX_PAGE)], paging.default)
            for paging in spec.SEARCH_PAGING
        ),
    ],
    forbid_unknown_fields=True,
)


def read_search(body: bytes) -> tuple[dict[str, Any], int, int]:
    """Parse a people search: its filters, page and page size."""
    fields = msgspec.structs.asdict(read_body(body, _Search))
    page, page_size = (fields.pop(field.name) for field in spec.SEARCH_PAGING)
    return {name: value for name, value in fields.items() if value is not None}, page, page_size


def email_key(email: str) -> str:
    """Return the normalised key of an email, which ignores case."""
    return f"mailto:{email.strip().lower()}"


def url_key(url: str) -> str | None:
    """Return the normalised key of a profile URL, or None if the text is not a URL.

    The key ignores scheme, `www.`, the case of the host, a trailing slash and a fragment.

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


def lead_keys(email: str | None, profnet_url: str | None) -> dict[str, str]:
    """Return a lead's identifiers by their normalised keys."""
    keys = {email_key(email): email} if email else {}
    if profnet_url and (key := url_key(profnet_url)):
        keys[key] = profnet_url
    return keys


def link(path: str, query: Mapping[str, str]) -> dict[str, str]:
    """Return a link object: a relative path with its query string."""
    return {"href": f"{path}?{urlencode(query)}" if query else path}
