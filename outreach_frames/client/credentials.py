"""The account's token, which signs requests and is never shown.

Tracebacks may show local variables and attributes (``capture_locals``, IPython's verbose mode), so
no variable holds the token as text. The token is a `memoryview`, shown as ``<memory at …>``, and
becomes text only within an expression.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final, NoReturn
from urllib.parse import quote

import msgspec

from outreach_frames import spec
from outreach_frames.errors import ConfigurationError

# The token's name in a keyring entry.
TOKEN_KEY: Final = "api_key"  # noqa: S105 - no token
_REDACTED = b"[token]"
_MISSING = "is missing"
# A shorter token could be an ordinary word.
_SHORTEST_REDACTED_IN_DATA = 12
# How a service may write a text, and then its JSON; some services also escape slashes in JSON.
_IN_TEXT: Final[tuple[Callable[[str], str], ...]] = (
    str,
    lambda text: quote(text, safe=""),
    html.escape,
)
_IN_BODY: Final[tuple[Callable[[str], str], ...]] = (
    str,
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
)


class Token:
    """An account's token; callers delete the text, then `check` raises if it was invalid."""

    __slots__ = ("_hidden", "_problem", "_spellings")

    def __init__(self, api_key: Any) -> None:
        self._problem = _problem(api_key)
        self._hidden = memoryview(b"" if self._problem else api_key.encode("latin-1"))
        self._spellings = _spellings(self._hidden)

    def __repr__(self) -> str:
        return "Token(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Token cannot be copied; call connect() instead")

    @property
    def is_given(self) -> bool:
        """Whether a token was given, valid or not."""
        return self._problem != _MISSING

    def check(self) -> None:
        """Raise ConfigurationError if the token is invalid."""
        if self._problem:
            raise ConfigurationError(
                f"The token {self._problem}. It was passed or set in OUTREACH_API_KEY. Nothing was "
                "sent."
            )

    def signed(self, head: bytes) -> memoryview:
        """Return the head of a request with the token added, as a memoryview."""
        line = f"\r\n{spec.AUTHORIZATION_HEADER}: {spec.AUTHORIZATION_SCHEME} ".encode()
        return memoryview(head.replace(b"\r\n", b"".join((line, self._hidden, b"\r\n")), 1))

    def fingerprint(self, base_url: str) -> str:
        """Return a short hash of address and token, which does not reveal the token."""
        account = hashlib.sha256(f"outreach_frames\0{base_url}\0".encode())
        account.update(str(self._hidden, "latin-1").encode())
        return account.hexdigest()[:16]

    def entry(self, settings: Mapping[str, Any]) -> memoryview:
        """Return a keyring entry: the settings and the token as JSON, in a memoryview."""
        return memoryview(
            msgspec.json.encode({**settings, TOKEN_KEY: str(self._hidden, "latin-1")})
        )

    def redact_body(self, body: bytes) -> bytes:
        """Replace the token in a response's body, as written or escaped, by `[token]`.

        A short token may be a common word, so it is replaced only after the word `Bearer`.
        """
        if len(self._hidden) >= _SHORTEST_REDACTED_IN_DATA:
            return self._redact_everywhere(body)
        scheme = f"{spec.AUTHORIZATION_SCHEME} ".encode()
        if scheme not in body:
            return body
        return re.sub(
            b"(?<=%b)(?:%b)(?![a-zA-Z0-9_-])"
            % (scheme, b"|".join(map(re.escape, map(bytes, self._spellings)))),
            _REDACTED,
            body,
        )

    def redact(self, text: str) -> str:
        """Replace the token in a text that the service sent, as written or escaped."""
        return self._redact_everywhere(text.encode("utf-8", "surrogatepass")).decode(
            "utf-8", "surrogatepass"
        )

    def _redact_everywhere(self, content: bytes) -> bytes:
        for spelling in self._spellings:
            content = content.replace(spelling, _REDACTED)
        return content


def _spellings(token: memoryview) -> list[memoryview]:
    """Return the token as written, percent-encoded, in HTML and in JSON, longest first."""
    spellings = {
        memoryview(in_body(in_text(str(token, "latin-1"))).encode(code))
        for in_text, in_body, code in product(_IN_TEXT, _IN_BODY, ("utf-8", "latin-1"))
    }
    # JSON's spelling of a token that contains a quote ends in the token as written.
    return sorted(spellings, key=len, reverse=True)


def _problem(api_key: Any) -> str:
    if api_key is None or api_key == "":
        return _MISSING
    if not isinstance(api_key, str):
        return "is not text"
    if api_key != api_key.rstrip("\r\n"):
        return "ends in a line break; remove the line break"
    if any(character.isspace() or not character.isprintable() for character in api_key):
        return "contains blanks or control characters"
    try:
        api_key.encode("latin-1")
    except UnicodeEncodeError:
        return "contains characters that cannot be sent in a header"
    return ""
