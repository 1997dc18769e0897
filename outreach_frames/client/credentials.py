"""The token: signs requests, tells accounts apart, and never shows itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NoReturn
from urllib.parse import quote

from outreach_frames import spec
from outreach_frames.errors import ConfigurationError

_REDACTED = "[token]"
_SHORTEST_REDACTED = 12


class Token:
    """An account's token, readable by nothing but the requests that it signs."""

    __slots__ = ("_reveal",)

    def __init__(self, api_key: str) -> None:
        problem = _problem(api_key)
        if problem:
            raise ConfigurationError(
                f"The token {problem}. Check api_key or OUTREACH_API_KEY; nothing was sent."
            )
        # In a closure, so that no listing of attributes shows it.
        self._reveal: Callable[[], str] = lambda: api_key

    def __repr__(self) -> str:
        return "Token(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a token is never written down; connect again where it is needed")

    def __call__(self, request: Any) -> Any:
        """Sign a request."""
        value = f"{spec.AUTHORIZATION_SCHEME} {self._reveal()}"
        request.headers[spec.AUTHORIZATION_HEADER] = value.encode("latin-1")
        return request

    def fingerprint(self, base_url: str) -> str:
        """Return a short mark of the account at this address, from which no token can be read."""
        account = f"outreach_frames\0{base_url}\0{self._reveal()}"
        return hashlib.sha256(account.encode()).hexdigest()[:16]

    def redact_body(self, body: bytes) -> bytes:
        """Take a token that the service echoes out of an answer's body.

        A short token could be an ordinary word of the data, so it is left.
        """
        token = self._reveal().encode("latin-1")
        if len(token) < _SHORTEST_REDACTED or token not in body:
            return body
        return body.replace(token, _REDACTED.encode())

    def redact(self, text: str) -> str:
        """Take the token out of a text that the service wrote."""
        import html  # noqa: PLC0415 - slow to import, and only for what went wrong

        token = self._reveal()
        for spelling in {token, quote(token, safe=""), html.escape(token)}:
            text = text.replace(spelling, _REDACTED)
        return text


def _problem(api_key: Any) -> str:
    if api_key is None or api_key == "":
        return "is missing"
    if not isinstance(api_key, str):
        return "is no text"
    if api_key != api_key.rstrip("\r\n"):
        return "ends in a line break, as a copy from a file does; take it off with .strip()"
    if any(character.isspace() or not character.isprintable() for character in api_key):
        return "has blanks or control characters in it, so it is not one"
    try:
        api_key.encode("latin-1")
    except UnicodeEncodeError:
        return "has characters in it that cannot be sent in a header, so it is not one"
    return ""
