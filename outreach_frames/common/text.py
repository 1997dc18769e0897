"""Format text for people: shortened, pluralised and without control characters."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Container, Iterable
from functools import cache

# Control and format characters, lone surrogates and line separators. Joiners are allowed: names in
# some languages and emoji need them.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"

# Words that labels do not write in lower case.
_ACRONYMS = "ai|api|b2b|b2c|crm|erp|hr|id|it|itsm|naics|qa|sic|ui|url|ux|vp"
_SPELLINGS = {word: word.upper() for word in _ACRONYMS.split("|")} | {
    "devops": "DevOps",
    "ecommerce": "e-commerce",
    "ediscovery": "e-discovery",
    "ids": "IDs",
    "urls": "URLs",
}
# Names of the interface that are no good labels.
_LABELS = {"engineering_technical": "engineering", "medical_health": "medical and health"}

# Python's white space, and invisible characters that come with copied text.
BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u200b\u200c\u200d\u2060\ufeff"
_DIRECTION_MARKS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ASCII = frozenset(map(chr, range(128)))
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def hidden_in(text: str) -> str:
    r"""Return a text's distinct invisible characters, except joiners and direction marks.

    >>> ascii(hidden_in("Zo\xeb\ufe0f \ufe0f"))
    "'\\ufe0f'"
    """
    return "" if text.isascii() else "".join(filter(_is_hidden, set(text) - _ASCII))


@cache
def _is_hidden(character: str) -> bool:
    import idna  # noqa: PLC0415 - slow to import, rarely needed

    try:
        # The blank Braille pattern is a symbol in Unicode.
        return character == "\u2800" or not idna.uts46_remap(character, std3_rules=False)
    except idna.IDNAError:
        return False


def strip_blanks(text: str) -> str:
    r"""Strip blanks and invisible characters around a text.

    >>> strip_blanks(" \u3164Ada\ufe0f")
    'Ada'
    """
    return text.strip(BLANKS + hidden_in(text))


def visible(text: str) -> str:
    r"""Drop a text's invisible characters, except joiners.

    >>> visible("A\u200bd\u202ea")
    'Ada'
    """
    # The text may be a whole response, so look only at the letters beyond ASCII.
    for letter in set() if text.isascii() else set(_BEYOND_ASCII.findall(text)):
        if letter in _DIRECTION_MARKS or _is_hidden(letter):
            text = text.replace(letter, "")
    return text


def printable(text: str, *, keep: str = "") -> str:
    r"""Return text with its control characters escaped, except those in `keep`.

    >>> print(printable("Ada \x1b[2J\nLovelace"))
    Ada \x1b[2J\nLovelace
    """
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _UNSAFE and character not in _JOINERS + keep
        else character
        for character in text
    )


def readable(name: str, *, capital: bool = True) -> str:
    """Return an interface name as readable text.

    >>> readable("medical_health"), readable("it_audit_it_compliance"), readable("devops")
    ('Medical and health', 'IT audit IT compliance', 'DevOps')
    >>> readable("company_ids", capital=False)
    'company IDs'
    """
    text = _LABELS.get(name) or " ".join(_SPELLINGS.get(word, word) for word in name.split("_"))
    return text[:1].upper() + text[1:] if capital else text


def plain_names(names: Collection[str]) -> str:
    """List names of letters, digits and underscores, and count the others, which may be data.

    >>> plain_names(["zeta", "alpha", "ada@x.example"])
    'alpha, zeta, 1 other name'
    """
    shown = sorted(name for name in names if re.fullmatch(r"[A-Za-z0-9_]+", name))
    others = len(names) - len(shown)
    return ", ".join([*shown, *([plural(others, "other name")] if others else [])])


def has_lone_surrogate(text: str) -> bool:
    r"""Return whether a text has a lone surrogate, which cannot be encoded.

    >>> has_lone_surrogate("Ada \ud800")
    True
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def shorten(text: str, max_length: int = 200) -> str:
    """Return printable text, cut to a maximum length.

    >>> shorten("brightforge.example", 8)
    'brightf…'
    """
    # Cut first: the text may be a whole response.
    shown = printable(text[: max_length + 1])
    return shown if len(shown) <= max_length else f"{shown[: max_length - 1]}…"


def excerpt(body: bytes) -> str:
    """Return the first characters of a response's body, on one line."""
    return shorten(" ".join(body[:800].decode(errors="replace").split()))


def beginning(body: bytes) -> str:
    """Describe how an unreadable body begins; do not show values, which may name a person.

    >>> beginning(b"<h1>Bad gateway</h1>"), beginning(b'{"name": "Ad')
    ("it begins with '<h1>Bad gateway</h1>'", 'it has 12 bytes')
    """
    text = excerpt(body)
    if text.startswith("<") or (text and '"' not in text):
        return f"it begins with {text!r}"
    return f"it has {len(body):,} bytes" if text else "it is empty"


def quoted(value: object, max_length: int = 60) -> str:
    """Return the repr of a value, cut to a maximum length.

    >>> quoted("a" * 100, 10)
    "'aaaaaaaa…"
    """
    try:
        return shorten(repr(value), max_length)
    except RecursionError:
        return f"({type(value).__name__}, too deeply nested to show)"


def listed(names: Iterable[object], most: int = 10) -> str:
    """Return the first names as quoted text for messages.

    >>> listed(["a", "b", "c"], most=2), listed([])
    ("'a', 'b' and 1 more", 'none')
    """
    entries = list(names)
    others = len(entries) - most
    more = f" and {others:,} more" if others > 0 else ""
    return ", ".join(map(quoted, entries[:most])) + more or "none"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number and its noun; pass `nouns` if the plural is not formed with an s.

    >>> plural(1, "lead"), plural(1200, "lead"), plural(2, "person", "people")
    ('1 lead', '1,200 leads', '2 people')
    """
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def duration(seconds: float, rounded: Callable[[float], int] = math.ceil) -> str:
    """Format seconds for people; more than two minutes are minutes, more than two hours hours.

    >>> duration(0.25), duration(120), duration(300), duration(3601), duration(86_400)
    ('0.25 s', '120 s', '5 minutes', '60.1 minutes', '24 hours')
    """
    if seconds <= 120:
        return f"{seconds:.3g} s"
    unit, length = ("minutes", 60) if seconds <= 7200 else ("hours", 3600)
    return f"{rounded(10 * seconds / length) / 10:,g} {unit}"


def unique_name(name: str, taken: Container[object]) -> str:
    """Return the name, with a number appended if it is taken.

    >>> unique_name("status", {"status", "status_2"})
    'status_3'
    """
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


def numbered(texts: Iterable[str]) -> list[str]:
    """Add to each repeated text a number that makes it unique.

    >>> numbered(["Acme", "Acme", "Acme (2)"])
    ['Acme', 'Acme (3)', 'Acme (2)']
    """
    texts = list(texts)
    taken = set(texts)
    counts: dict[str, int] = {}
    unique = []
    for text in texts:
        name, number = text, counts.get(text, 0) + 1
        while number > 1 and (name := f"{text} ({number})") in taken:
            number += 1
        counts[text] = number
        taken.add(name)
        unique.append(name)
    return unique
