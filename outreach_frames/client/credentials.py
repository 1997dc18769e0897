"""The account's token, which signs requests and is never shown.

Tracebacks may show local variables and attributes (``capture_locals``, IPython's verbose mode), so
no variable holds the token as text. The token is a `memoryview`, shown as ``<memory at …>``, and
becomes text only within an expression.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NoReturn

import msgspec
import numpy as np

from outreach_frames import spec
from outreach_frames.errors import ConfigurationError

# The token's name in a keyring entry.
TOKEN_KEY: Final = "api_key"  # noqa: S105 - no token
_REDACTED = b"[token]"
_MISSING = "is missing"
# A shorter token could be an ordinary word.
_SHORTEST_REDACTED_IN_DATA = 12
# The escapes that JSON may write for ASCII characters.
_ESCAPED_ASCII = rb"\\u00[2-7]"
_SLASHED = b'"\\/'
_BACKSLASH, _UNICODE_ESCAPE = b"\\u"


class Token:
    """An account's token; callers delete the text, then `check` raises if it was invalid."""

    __slots__ = ("_hidden", "_problem")

    def __init__(self, api_key: Any) -> None:
        self._problem = _problem(api_key)
        self._hidden = memoryview(b"" if self._problem else api_key.encode("latin-1"))

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
        """Replace the token in a response's body, plain or escaped, by `[token]`.

        A short token may be a common word, so it is replaced only after the word `Bearer`.
        """
        if len(self._hidden) < _SHORTEST_REDACTED_IN_DATA:
            scheme = f"{spec.AUTHORIZATION_SCHEME} ".encode()
            if scheme not in body:
                return body
            return re.sub(
                b"(?<=%b)%b(?![a-zA-Z0-9_-])" % (scheme, self._pattern()), _REDACTED, body
            )
        if self._may_be_in(body):
            return re.sub(self._pattern(), _REDACTED, body)
        return body

    def redact(self, text: str) -> str:
        """Remove the token from a text that the service sent, in every spelling."""
        if not text:  # building the pattern is slow, and most texts are empty
            return text
        plain = re.sub(self._pattern(), _REDACTED, text.encode("utf-8", "surrogatepass"))
        return plain.decode("utf-8", "surrogatepass")

    def _may_be_in(self, body: bytes) -> bool:
        """Return whether a body may contain the token, plain or escaped."""
        # Among all spellings, only JSON's escapes change letters and digits.
        if max(re.split(rb"[^a-zA-Z0-9]+", self._hidden), key=len) in body:
            return True
        # NumPy finds the two characters of an escape ten times faster than `in`.
        characters = np.frombuffer(body, np.uint8)
        escapes = characters[np.flatnonzero(characters[:-1] == _BACKSLASH) + 1]
        return bool((escapes == _UNICODE_ESCAPE).any() and re.search(_ESCAPED_ASCII, body))

    def _pattern(self) -> bytes:
        return b"".join(map(_spellings, self._hidden))


@cache
def _spellings(character: int) -> bytes:
    """Return a pattern of all spellings of a character in JSON, URLs and HTML."""
    import html.entities  # noqa: PLC0415 - slow to import, and rarely needed

    text = chr(character)
    spellings = {text, f"&#{character};"}
    spellings |= {f"&{name}" for name, meant in html.entities.html5.items() if meant == text}
    for code in ("utf-8", "latin-1"):
        quoted = text.encode(code).hex("%")
        spellings |= {f"%{quoted}", f"%{quoted.upper()}"}
    for digits in (f"{character:02x}", f"{character:02X}"):
        spellings |= {f"\\u00{digits}", f"&#x{digits};"}
    if character in _SLASHED:
        spellings.add(f"\\{text}")
    plain = [re.escape(one.encode(code)) for one in spellings for code in ("utf-8", "latin-1")]
    return b"(?:%b)" % b"|".join(sorted(set(plain), reverse=True))


def _problem(api_key: Any) -> str:
    if api_key is None or api_key == "":
        return _MISSING
    if not isinstance(api_key, str):
        return "is not text"
    if api_key != api_key.rstrip("\r\n"):
        return "ends in a line break; remove it with .strip()"
    if any(character.isspace() or not character.isprintable() for character in api_key):
        return "contains blanks or control characters"
    try:
        api_key.encode("latin-1")
    except UnicodeEncodeError:
        return "contains characters that cannot be sent in a header"
    return ""
