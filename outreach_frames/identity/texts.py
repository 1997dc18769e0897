"""Find people in texts by their emails and profile URLs, in any spelling."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from outreach_frames.common.arguments import check_ids
from outreach_frames.common.text import visible
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.keys import (
    email_key,
    emails_in,
    is_certain,
    profnet_url_key,
    profnet_urls_in,
)
from outreach_frames.identity.persons import Identifiers, identifiers

_PARTS: Final = re.compile(r"[/?#&=]")
# Matches at the end of an address or URL.
_END: Final = r"(?![\w%~-]|\.\w)"
_JSON_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})")
_ERASED: Final = "[removed]"

# A part of each text with an identifier, and the identifier's pattern in normalised texts.
Pattern = tuple[str, re.Pattern[str]]


class People(NamedTuple):
    """The people to search for in texts and, by hash, in journals."""

    patterns: list[Pattern]
    identifiers: Identifiers
    keys: set[str]

    def holds(self, text: str) -> bool:
        """Check whether a text names any of the people."""
        if "\\" in text:
            text = _JSON_ESCAPE.sub(lambda code: chr(int(code[1], 16)), text.replace("\\/", "/"))
            # A character beyond 16 bits consists of two escapes.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        plain = _plain(text)
        if (shown := visible(plain)) != plain:
            plain = f"{plain}\n{shown}"
        return any(part in plain and pattern.search(plain) for part, pattern in self.patterns)

    def erase(self, text: str) -> str:
        """Replace the people's identifiers in a text, or else the whole text."""
        for _, pattern in self.patterns:
            text = re.sub(pattern.pattern, _ERASED, text, flags=re.IGNORECASE)
        return _ERASED if self.holds(text) else text

    def have(self, cells: Sequence[str]) -> bool:
        """Check whether a row is theirs; `cells` are the row's cells with identifiers.

        All emails, or all URLs, of a cell must be theirs. A weak URL counts only if the row has no
        other email or certain URL.
        """
        if not any(map(self.holds, cells)):
            return False
        found = [set(read(cell).keys) for cell in cells for read in (emails_in, profnet_urls_in)]
        own = self.keys & set().union(*found)
        others = [
            {key for key in keys if not any(_overlap(key, one) for one in own)} for keys in found
        ]
        is_alone = not any(map(is_certain, set().union(*others)))
        return any(
            keys & own and not rest and (is_alone or any(map(is_certain, keys & own)))
            for keys, rest in zip(found, others, strict=True)
        )


def people_of(email: str | Iterable[str] | None, profnet_url: str | Iterable[str] | None) -> People:
    """Return the people with these emails and profile URLs."""
    if email is None and profnet_url is None:
        raise InvalidInputError("forget() needs people. Pass email=, profnet_url= or both.")
    emails = _keys("email", email, email_key, "an email address")
    urls = _keys("profnet_url", profnet_url, profnet_url_key, "a profile URL")
    # Use one row per identifier, since a weak URL identifies only rows without other identifiers.
    columns = [*emails, *[None] * len(urls)], [*[None] * len(emails), *urls]
    return People(
        [*map(_email_pattern, emails), *map(_url_pattern, urls)],
        identifiers(*(pa.array(column, pa.large_string()) for column in columns)),
        {*emails, *urls},
    )


def _keys(
    name: str, given: str | Iterable[str] | None, key_of: Callable[[str], str], what: str
) -> list[str]:
    """Return the keys of an argument's values, and raise for a value without a key."""
    keys: list[str] = []
    for text in [] if given is None else check_ids(name, given):
        keys.append(key_of(text))
        if not keys[-1]:
            raise InvalidInputError(f"{name}={text!r} is not {what}; correct it.")
    return keys


def _email_pattern(key: str) -> Pattern:
    name, _, domain = _plain(key).rpartition("@")
    hosts = "|".join(map(re.escape, {domain, _ascii(domain)}))
    return name, re.compile(rf"(?<![\w.+%-]){re.escape(name)}@(?:{hosts}){_END}")


def _url_pattern(key: str) -> Pattern:
    host, _, path = _plain(key).rpartition("://")[2].partition("/")
    folders = "/+".join(map(re.escape, path.split("/")))
    url = rf"(?<![\w-]){re.escape(host)}(?::\d+)?/+{folders}{_END}"
    return path.rpartition("/")[2], re.compile(url)


def _overlap(key: str, other: str) -> bool:
    """Check whether two keys are equal or one is part of the other, as in `Sales/ada@x.example`."""
    return key in (other, *_PARTS.split(other)) or other in _PARTS.split(key)


def _plain(text: str) -> str:
    """Normalise a text's case, percent-encoding and Unicode form."""
    # Decode twice, for redirect links that contain another link.
    text = unquote(unquote(text)) if "%" in text else text
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()


def _ascii(domain: str) -> str:
    try:
        return domain.encode("idna").decode()
    except UnicodeError:
        return domain
