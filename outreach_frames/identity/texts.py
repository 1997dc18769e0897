"""Find people in texts by their emails and profile URLs, in any spelling."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from outreach_frames.common import terms
from outreach_frames.common.arguments import check_ids
from outreach_frames.common.text import visible
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.keys import (
    email_key,
    profnet_url_key,
)
from outreach_frames.identity.persons import Identifiers, identifiers

# Matches at the start of an address; a dash or stop is part of it only after a letter.
_START: Final = r"(?<![\w+%])(?<![\w+%][.-])"
# Matches at the end of an address or URL.
_END: Final = r"(?![\w%~-]|\.\w)"
_JSON_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|([bfnrt])|(.))", re.DOTALL)
# A text may be JSON within JSON.
_MAX_ESCAPES: Final = 3

# A part of each text with an identifier, and the identifier's pattern in normalised texts.
Pattern = tuple[str, re.Pattern[str]]


class PeopleToForget(NamedTuple):
    """The people to search for in texts and, by hash, in journals."""

    patterns: list[Pattern]
    identifiers: Identifiers

    def holds(self, text: str) -> bool:
        """Check whether a text names any of the people."""
        texts = [text]
        while "\\" in texts[-1] and len(texts) <= _MAX_ESCAPES:
            texts.append(_without_escapes(texts[-1]))
        # Invisible characters may be within an escape sequence, or be encoded themselves.
        plain = _with_visible(_plain(_with_visible("\n".join(texts))))
        return any(part in plain and pattern.search(plain) for part, pattern in self.patterns)


def people_to_forget(
    email: str | Iterable[str] | None, profnet_url: str | Iterable[str] | None
) -> PeopleToForget:
    """Return the people with these emails and profile URLs."""
    if email is None and profnet_url is None:
        raise InvalidInputError(
            f"No people were passed. Pass {terms.argument('email')}, "
            f"{terms.argument('profnet_url')} or both."
        )
    emails = _keys("email", email, email_key, "an email address")
    urls = _keys("profnet_url", profnet_url, profnet_url_key, "a profile URL")
    # Use one row per identifier, since a weak URL identifies only rows without other identifiers.
    columns = [*emails, *[None] * len(urls)], [*[None] * len(emails), *urls]
    return PeopleToForget(
        [*map(_email_pattern, emails), *map(_url_pattern, urls)],
        identifiers(*(pa.array(column, pa.large_string()) for column in columns)),
    )


def _keys(
    name: str, given: str | Iterable[str] | None, key_of: Callable[[str], str], what: str
) -> list[str]:
    """Return the keys of an argument's values, and raise for a value without a key."""
    keys: list[str] = []
    for text in [] if given is None else check_ids(name, given):
        keys.append(key_of(text))
        if not keys[-1]:
            raise InvalidInputError(f"{terms.argument(name, text)} is not {what}; correct it.")
    return keys


def _email_pattern(key: str) -> Pattern:
    name, _, domain = _plain(key).rpartition("@")
    hosts = "|".join(map(re.escape, {domain, _ascii(domain)}))
    return name, re.compile(rf"{_START}{re.escape(name)}@(?:{hosts}){_END}")


def _url_pattern(key: str) -> Pattern:
    host, _, path = _plain(key).rpartition("://")[2].partition("/")
    folders = "/+".join(map(re.escape, path.split("/")))
    url = rf"(?<![\w-]){re.escape(host)}(?::\d+)?/+{folders}{_END}"
    return path.rpartition("/")[2], re.compile(url)


def _without_escapes(text: str) -> str:
    """Replace the escape sequences of JSON."""

    def character(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 16)) if escape[1] else "\n" if escape[2] else escape[3]

    # A character beyond 16 bits consists of two escapes.
    plain = _JSON_ESCAPE.sub(character, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _with_visible(text: str) -> str:
    """Append a text without its invisible characters, if it has any."""
    return text if (shown := visible(text)) == text else f"{text}\n{shown}"


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
