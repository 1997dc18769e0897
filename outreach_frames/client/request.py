"""Build and check the paths, queries and bodies of requests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from string import Formatter
from typing import Any
from urllib.parse import quote, urlencode

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError

# Messages may show this path parameter unless it is an email address; others are personal data.
_ID = "id"


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
    text = urlencode(list(_pairs(query)))
    return f"?{text}" if text else ""


def _pairs(query: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in query.items():
        for item in value if isinstance(value, list | tuple) else (value,):
            if item is not None:
                yield name, str(item).lower() if isinstance(item, bool) else str(item)


def json_body(body: Mapping[str, Any]) -> bytes:
    """Return a body as JSON; equal bodies give equal bytes."""
    try:
        return json.dumps(
            body, allow_nan=False, ensure_ascii=False, sort_keys=True, separators=(",", ":")
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        problem = str(error)
    raise InvalidInputError(f"The request cannot be sent as JSON: {problem}. Nothing was sent.")


def canonical_url(url: str) -> bytes:
    """Return an address with sorted query parameters; values of one parameter keep their order."""
    address, _, query = url.partition("?")
    parameters = sorted(query.split("&"), key=lambda pair: pair.partition("=")[0])
    return f"{address}?{'&'.join(parameters)}".encode()
