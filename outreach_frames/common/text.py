"""Text for people: shortened, counted, and free of terminal control characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Container

# Control characters, halves of a character, line separators; of invisible ones, all that change
# the order of what is shown. Joiners are part of some languages' names and of emoji.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"

# What people and programs write into a cell that they have no value for, in lower case.
_WORDS = (
    "unknown|n/a|#n/a|n.a.|na|<na>|none|null|nil|nan|-|--|---|—|.|..|...|?|??|???|#|x|xx|xxx|tbd|tba|"
    "http://|https://|no email|no e-mail|no mail|no url|no profile|not available|not known|"
    "not provided|missing|empty|undefined"
)
PLACEHOLDERS = frozenset(_WORDS.split("|"))

# White space as Python has it, and the invisible characters that travel with copied text.
BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u200b\u200c\u200d\u2060\ufeff"


def printable(text: str, *, keep: str = "") -> str:
    r"""Return text with its control characters visible, as Python would write them.

    `keep` has characters that stay as they are, such as the line breaks of a table.

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


def has_lone_surrogate(text: str) -> bool:
    r"""Return whether a text has a lone surrogate, which neither file nor request can hold.

    >>> has_lone_surrogate("Ada \ud800")
    True
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def shorten(text: str, most: int = 200) -> str:
    """Return printable text of at most so many characters.

    >>> shorten("brightforge.example", 8)
    'brightf…'
    """
    # What is cut off need not be looked at: it may be a whole response.
    shown = printable(text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def quoted(value: object, most: int = 60) -> str:
    """Return a value as Python would write it, in at most so many characters.

    >>> quoted("a" * 100, 10)
    "'aaaaaaaa…"
    """
    try:
        return shorten(repr(value), most)
    except RecursionError:
        return f"({type(value).__name__}, too deeply nested to show)"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number of things in words; `nouns` where the plural takes more than an s.

    >>> plural(1, "lead"), plural(1200, "lead"), plural(2, "person", "people")
    ('1 lead', '1,200 leads', '2 people')
    """
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def unique_name(name: str, taken: Container[object]) -> str:
    """Return the name, with a number behind it where it is taken.

    >>> unique_name("status", {"status", "status_2"})
    'status_3'
    """
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique
