"""Names, identifiers and random numbers, generated from the world's seed."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Final

from outreach_frames.sandbox.vocabulary import CULTURES, WORDS, Country, NamePart

PROFNET: Final = "https://profnet.example"

FEMALE, MALE, NONBINARY = GENDERS = ("female", "male", "nonbinary")

# Letters that Unicode does not decompose into a base letter and an accent.
UNDECOMPOSED: Final = str.maketrans(
    {
        "ß": "ss",
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
        "đ": "d",
        "Đ": "D",
        "æ": "ae",
        "\N{LATIN SMALL LETTER DOTLESS I}": "i",
    }
)
_STEM_PARTS: Final = tuple(
    tuple(WORDS["company_names"][part]) for part in ("first", "middle", "last")
)


def new_rng(seed: int, part: str) -> Random:
    """Return a random generator for one part of the world, independent of the other parts."""
    return Random(f"{seed}/{part}")


def new_id(rng: Random) -> str:
    """Return a random UUID."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


@lru_cache(maxsize=20_000)
def slug(text: str) -> str:
    """Return the text as lowercase ASCII words joined by hyphens, for URLs and emails.

    >>> slug("Jörn Großmann")
    'jorn-grossmann'
    """
    plain = unicodedata.normalize("NFKD", text.translate(UNDECOMPOSED))
    plain = plain.encode("ascii", "ignore").decode().lower().replace("'", "")
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def invented_stem(rng: Random) -> str:
    """Return an invented word that starts a company, school or investor name."""
    return "".join(rng.choice(parts) for parts in _STEM_PARTS)


def postcode(pattern: str, rng: Random) -> str:
    """Fill a postal code pattern: `#` with a digit, `A` with a letter.

    >>> postcode("10###", Random(1))
    '10291'
    """
    return re.sub(
        "[#A]",
        lambda match: rng.choice("0123456789" if match[0] == "#" else "BCDEFGHJKLNPRSTX"),
        pattern,
    )


@dataclass(frozen=True, slots=True)
class FullName:
    """A person's full name, its parts, and its ASCII form for URLs and emails."""

    name: str
    first_name: str
    last_name: str
    slug: str
    gender: str


_CULTURES: Final = tuple(CULTURES.values())


def person_name(country: Country, rng: Random) -> FullName:
    """Draw a name that is common in the country."""
    chance = rng.random()
    culture = CULTURES[country.cultures.draw(rng)] if chance > 0.08 else rng.choice(_CULTURES)
    gender = NONBINARY if rng.random() < 0.01 else rng.choice(GENDERS[:2])
    looks_female = gender == FEMALE or (gender == NONBINARY and rng.random() < 0.5)
    given = _pick(culture.female if looks_female else culture.male, rng)
    family = _pick(culture.family_female if looks_female else culture.family_male, rng)
    address = f"{slug(given.latin)}-{slug(family.latin)}"
    if not culture.has_script or rng.random() < 0.5:
        name = f"{given.latin} {family.latin}"
        return FullName(name, given.latin, family.latin, address, gender)
    joined = f"{family.native}{given.native}" if culture.family_first else ""
    name = joined or f"{given.native} {family.native}"
    return FullName(name, given.native, family.native, address, gender)


def _pick(parts: Sequence[NamePart], rng: Random) -> NamePart:
    return parts[int(rng.random() * len(parts))]
