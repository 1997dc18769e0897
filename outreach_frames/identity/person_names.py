"""Read people's names in many spellings, and compare them with the service's."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

# Titles in front of a name, degrees behind it, and suffixes, as `_fold` returns them.
_TITLES: Final = frozenset(
    ["dr", "prof", "professor", "mr", "mrs", "ms", "miss", "mx", "herr", "frau", "dipling"]
)
_DEGREES: Final = frozenset(["phd", "dphil", "mba", "emba", "msc", "bsc", "md", "cpa", "cfa"])
_SUFFIXES: Final = frozenset(["jr", "sr", "ii", "iii", "iv"])
# A nickname or note, such as (Tom) or "Tom".
_NICKNAME: Final = re.compile(r"\([^()]*\)|\"[^\"]*\"|\u201c[^\u201d]*\u201d")
_REMOVED: Final = re.compile(r"[.'`\u00b4\u02bc\u2018\u2019\u2032]")
_HYPHENS: Final = re.compile(r"[-\u2010-\u2015\u2212\u30fb]")
# Latin letters that Unicode does not decompose into a base letter and an accent.
_UNDECOMPOSED: Final[dict[int, int | str]] = {
    **str.maketrans("øłđð\u0131", "olddi"),
    ord("æ"): "ae",
    ord("œ"): "oe",
}
_ALPHABETS: Final = ("LATIN", "GREEK", "CYRILLIC")


class PersonName(NamedTuple):
    """A name in natural order, without titles and degrees.

    `tokens` has the comparable words of each part between blanks: two for Smith-Jones.
    `last_tokens` is the number of tokens of the last name, or 0 if it is unknown.
    """

    tokens: tuple[tuple[str, ...], ...]
    last_tokens: int
    suffix: str
    searched: str  # the name to send, in its own letters

    @property
    def words(self) -> tuple[str, ...]:
        """The comparable words of the whole name."""
        return tuple(word for token in self.tokens for word in token)

    @property
    def key(self) -> tuple[tuple[str, ...], str]:
        """The comparable form of the whole name."""
        return self.words, self.suffix


def read_person_name(*cells: str) -> PersonName | None:
    """Read a name from one cell, or from a first and a last name; None without any word.

    >>> read_person_name("Brooks, Dr. Thomas M.").searched
    'Thomas Brooks'
    >>> read_person_name("Zoë", "Smith-Jones").tokens
    (('zoe',), ('smith', 'jones'))
    """
    is_split = len(cells) > 1
    texts = cells if is_split else cells[0].replace("\uff0c", ",").split(",")
    last_name = len(texts) - 1 if is_split else 0
    parts, suffix = [], ""
    for number, text in enumerate(texts):
        # A last name beside another part may look like a title.
        is_last_name = len(texts) > 1 and number == last_name
        part, own_suffix = _without_additions(text, at_least=int(is_last_name))
        suffix = own_suffix or suffix
        if part:
            parts.append(part)
    if not is_split:
        parts = [*parts[1:], *parts[:1]]
    spellings = [spelling for part in parts for spelling in part]
    if spellings and all(map(_is_east_asian, spellings)):
        # These names begin with the last name, and need no blanks.
        spellings = [*parts[-1], *(spelling for part in parts[:-1] for spelling in part)]
        searched = ("" if len(parts) > 1 else " ").join(spellings)
        return PersonName((_fold("".join(spellings)),), 0, suffix, searched)
    tokens = tuple(_fold(spelling) for spelling in spellings)
    full = [spelling for spelling in spellings if not _is_initial(_fold(spelling))]
    searched = " ".join(full if len(full) > 1 else spellings)
    last_tokens = len(parts[-1]) if len(parts) > 1 else 0
    return PersonName(tokens, last_tokens, suffix, searched) if tokens else None


def is_same_person(listed: PersonName, name: str, first: str, last: str) -> bool:
    """Return whether a name on a list equals the service's full, first and last name.

    Middle names are compared only if both have them, and an initial fits its name.

    >>> is_same_person(read_person_name("Ann B. Lee"), "Ann Beth Lee", "Ann", "Lee")
    True
    >>> is_same_person(read_person_name("Ann B. Lee"), "Ann Cara Lee", "Ann", "Lee")
    False
    """
    parts = read_person_name(first, last)
    served = read_person_name(name) or parts
    first_words, _ = _without_additions(first, at_least=1)
    last_words, suffix = _without_additions(last, at_least=1)
    if served is None or listed.suffix != (served.suffix or suffix):
        return False
    if listed.words in (served.words, parts.words if parts else ()):
        return True
    middle = _middle(listed, first_words, last_words)
    if middle is None or not first_words or not last_words:
        return False
    pairs = zip(middle, _middle(served, first_words, last_words) or (), strict=False)
    return all(
        own == other or (1 in (len(own), len(other)) and own[0] == other[0]) for own, other in pairs
    )


def _middle(
    name: PersonName, first_name: Sequence[str], last_name: Sequence[str]
) -> tuple[str, ...] | None:
    """Return the words between a first and a last name, or None if the name has other ones."""
    words, first, last = name.words, _fold(" ".join(first_name)), _fold(" ".join(last_name))
    end = len(words) - len(last)
    if end < len(first) or words[: len(first)] != first or words[end:] != last:
        return None
    # Half of a double name with a hyphen is another name.
    sizes = [len(token) for token in name.tokens]
    ends = {sum(sizes[:number]) for number in range(len(sizes) + 1)}
    if not {len(first), end} <= ends:
        return None
    known_last = sum(sizes[len(sizes) - name.last_tokens :])
    return words[len(first) : end] if known_last in (0, len(last)) else None


@lru_cache(maxsize=10_000)
def _without_additions(text: str, at_least: int) -> tuple[tuple[str, ...], str]:
    """Return the words of a part of a name without titles and degrees, and its suffix."""
    words = _NICKNAME.sub(" ", text.replace(",", " ")).split()
    words = [word for word in words if _fold(word)]
    suffix = ""
    while len(words) > at_least and "".join(_fold(words[0])) in _TITLES:
        del words[0]
    while len(words) > at_least and (end := "".join(_fold(words[-1]))) in _DEGREES | _SUFFIXES:
        suffix = end if end in _SUFFIXES else suffix
        del words[-1]
    return tuple(words), suffix


@lru_cache(maxsize=10_000)
def _fold(text: str) -> tuple[str, ...]:
    """Return the comparable words of a text: without case, accents, apostrophes and stops."""
    text = _HYPHENS.sub(" ", _REMOVED.sub("", text))
    text = unicodedata.normalize("NFKC", text).casefold().translate(_UNDECOMPOSED)
    letters = ""
    base = ""
    for letter in unicodedata.normalize("NFD", text):
        if not unicodedata.combining(letter):
            base = letter
        # Marks of other scripts are vowels or voices.
        elif unicodedata.name(base, "").startswith(_ALPHABETS):
            continue
        letters += letter
    words = unicodedata.normalize("NFC", letters).split()
    return tuple(word for word in words if any(map(str.isalnum, word)))


def _is_east_asian(text: str) -> bool:
    return all(unicodedata.name(letter, "").startswith(("CJK", "HANGUL")) for letter in text)


def _is_initial(token: tuple[str, ...]) -> bool:
    letter = "".join(token)
    return len(letter) == 1 and letter.upper() != letter.lower()
