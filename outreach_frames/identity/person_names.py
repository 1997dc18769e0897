"""Read people's names in many spellings, and compare them with the service's."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

# Titles in front of a name, degrees behind it, and suffixes, as `_fold` returns them.
_TITLES: Final = frozenset(
    ["dr", "dr-ing", "prof", "professor", "mr", "mrs", "ms", "miss", "herr", "frau", "dipl-ing"]
)
_DEGREES: Final = frozenset(["phd", "dphil", "mba", "emba", "msc", "bsc", "md", "cpa", "cfa"])
_SUFFIXES: Final = frozenset(["jr", "sr", "ii", "iii", "iv"])
_REMOVED: Final = re.compile(r"[.'`\u00b4\u02bc\u2018\u2019\u2032]")
_HYPHENS: Final = re.compile(r"[\u2010-\u2015\u2212\u30fb]")
# Latin letters that Unicode does not decompose into a letter and an accent.
_STROKES: Final = str.maketrans("øłđ\u0131", "oldi")
_ALPHABETS: Final = ("LATIN", "GREEK", "CYRILLIC")


class PersonName(NamedTuple):
    """A name without titles and degrees; its parts are comparable, and keep their hyphens."""

    first: str  # with middle names; the whole name if the last name is unknown
    last: str
    suffix: str
    searched: str  # the name to send, in its own letters

    @property
    def full(self) -> str:
        """The comparable name in natural order."""
        return f"{self.first} {self.last}".strip()

    @property
    def key(self) -> tuple[str, str]:
        """The comparable name, with blanks in place of hyphens, and its suffix."""
        return self.full.replace("-", " "), self.suffix


def read_person_name(*cells: str) -> PersonName | None:
    """Read a name from one cell, or from a first and a last name; None without any word.

    >>> read_person_name("Brooks, Dr. Thomas M.").searched
    'Thomas Brooks'
    >>> read_person_name("Zoë", "Smith-Jones").full
    'zoe smith-jones'
    """
    has_columns = len(cells) > 1
    if not has_columns:
        last_name, *others = cells[0].replace("\uff0c", ",").split(",")
        cells = (*others, last_name)
    parts, suffix = [], ""
    for number, cell in enumerate(cells, 1):
        # A first or last name may look like a title, such as Herr, or a degree, such as Md.
        is_name = has_columns or 1 < number == len(cells)
        part, own_suffix = _without_additions(cell, at_least=int(is_name))
        suffix = own_suffix or suffix
        if part:
            parts.append(part)
    if not parts:
        return None
    *others, last = parts if len(parts) > 1 else [*parts, ""]
    first = " ".join(others)
    if all(map(_is_east_asian, f"{first}{last}".replace(" ", ""))):
        # These names begin with the last name, and need no blanks.
        full = f"{last}{first}"
        return PersonName(_fold(full).replace(" ", ""), "", suffix, full)
    words = f"{first} {last}".split()
    long_words = [word for word in words if not _is_initial(_fold(word))]
    searched = " ".join(long_words if len(long_words) > 1 else words)
    return PersonName(_fold(first), _fold(last), suffix, searched)


def is_same_person(listed: PersonName, name: str, first: str, last: str) -> bool:
    """Return whether a name on a list equals the service's full, or first and last name.

    Middle names are compared only if both have them, and an initial fits its name.

    >>> is_same_person(read_person_name("Ann B. Lee"), "Ann Beth Lee", "Ann", "Lee")
    True
    >>> is_same_person(read_person_name("Ann B. Lee"), "Ann Cara Lee", "Ann", "Lee")
    False
    """
    parts = read_person_name(first, last)
    served = read_person_name(name) or parts
    if served is None or parts is None:
        return served is not None and listed.key == served.key
    if listed.suffix != (served.suffix or parts.suffix):
        return False
    if listed.key[0] in (served.key[0], parts.key[0]):
        return True
    own, other = (_middle_names(full_name, parts) for full_name in (listed, served))
    return own is not None and all(
        word == middle or (1 in (len(word), len(middle)) and word[0] == middle[0])
        for word, middle in zip(own, other or (), strict=False)
    )


def _middle_names(name: PersonName, parts: PersonName) -> list[str] | None:
    """Return the words between a first and a last name, or None if the name has other ones."""
    # Half of a double name with a hyphen is another name, so blanks surround the middle names.
    first, last = ("[ -]".join(map(re.escape, re.split("[ -]", part))) for part in parts[:2])
    match = re.fullmatch(f"{first} (?:(.*) )?{last}", name.full)
    has_other_last = bool(name.last) and re.fullmatch(last, name.last) is None
    if match is None or has_other_last or not parts.last:
        return None
    return re.split("[ -]", match[1]) if match[1] else []


@lru_cache(maxsize=10_000)
def _without_additions(text: str, at_least: int) -> tuple[str, str]:
    """Return a part of a name without titles and degrees, and its suffix."""
    words = [word for word in text.replace(",", " ").split() if _fold(word)]
    suffix = ""
    while len(words) > at_least and _fold(words[0]) in _TITLES:
        del words[0]
    while len(words) > at_least and (end := _fold(words[-1])) in _DEGREES | _SUFFIXES:
        suffix = end if end in _SUFFIXES else suffix
        del words[-1]
    return " ".join(words), suffix


@lru_cache(maxsize=10_000)
def _fold(text: str) -> str:
    """Return the comparable form of a text: without case, accents, apostrophes and stops.

    >>> _fold("O'Núñez-Groß  J.")
    'onunez-gross j'
    """
    text = _HYPHENS.sub("-", _REMOVED.sub("", text))
    text = unicodedata.normalize("NFKC", text).casefold().translate(_STROKES)
    letters = base = ""
    for letter in unicodedata.normalize("NFD", text):
        if not unicodedata.combining(letter):
            base = letter
        # Marks of other scripts are vowels or voices.
        elif unicodedata.name(base, "").startswith(_ALPHABETS):
            continue
        letters += letter
    words = (word.strip("-") for word in unicodedata.normalize("NFC", letters).split())
    return " ".join(word for word in words if any(map(str.isalnum, word)))


def _is_east_asian(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(("CJK", "HANGUL"))


def _is_initial(word: str) -> bool:
    return len(word) == 1 and word.upper() != word.lower()
