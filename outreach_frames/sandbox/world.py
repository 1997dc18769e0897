"""The world's date, names and identifiers, and its users, schools and investors."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from random import Random
from typing import Final, NamedTuple

from outreach_frames.sandbox.search import words
from outreach_frames.sandbox.vocabulary import COUNTRIES, CULTURES, WORDS, Entry, draw, draw_entry

# A fixed date, so that the same seed gives the same bytes in any year.
TODAY: Final = date(2026, 11, 2)

USERS: Final = 6
SCHOOLS: Final = 160
INVESTORS: Final = 80
ACCOUNT_DOMAIN: Final = "brightforge.example"
PROFNET: Final = "https://profnet.example"


class FullName(NamedTuple):
    """A person's full name, its parts, and its ASCII form for URLs and emails."""

    name: str
    first_name: str
    last_name: str
    slug: str
    gender: str


class User(NamedTuple):
    """A user of the account."""

    id: str
    name: str
    email: str


@dataclass(frozen=True, slots=True)
class School:
    """An invented school; `number` counts from 0."""

    number: int
    id: str
    name: str
    profnet_url: str
    country: str


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
    plain = words(text.replace("'", "")).encode("ascii", "ignore").decode()
    return "-".join(plain.split())


def invented_stem(rng: Random) -> str:
    """Return an invented word that starts a company, school or investor name."""
    parts = WORDS["company_names"]
    return "".join(rng.choice(parts[part]) for part in ("first", "middle", "last"))


def person_name(country: Entry, rng: Random) -> FullName:
    """Draw a name that is common in the country."""
    is_local = rng.random() > 0.08
    culture = CULTURES[draw(country["cultures"], rng) if is_local else rng.choice(list(CULTURES))]
    gender = "nonbinary" if rng.random() < 0.01 else rng.choice(("female", "male"))
    form = gender if gender != "nonbinary" else rng.choices(("female", "male"))[0]
    family_names = culture.get(f"family_{form}", culture["family"])
    # A name in Latin letters, and in the native script if that is another one.
    given, _, native_given = rng.choices(culture[form])[0].partition(":")
    family, _, native_family = rng.choices(family_names)[0].partition(":")
    address = f"{slug(given)}-{slug(family)}"
    if not native_family or rng.random() < 0.5:
        return FullName(f"{given} {family}", given, family, address, gender)
    name = f"{native_given} {native_family}"
    if culture.get("family_first"):
        name = f"{native_family}{native_given}"
    return FullName(name, native_given, native_family, address, gender)


def users(seed: int) -> tuple[User, ...]:
    """Return the users of the account.

    >>> len(users(0)), users(0) == users(0)
    (6, True)
    """
    rng = new_rng(seed, "users")
    found: dict[str, User] = {}
    while len(found) < USERS:
        name = person_name(COUNTRIES[0], rng)
        email = f"{name.slug.replace('-', '.')}@{ACCOUNT_DOMAIN}"
        found.setdefault(email, User(new_id(rng), name.name, email))
    return tuple(found.values())


def schools(seed: int) -> tuple[School, ...]:
    """Return the world's schools, with names in the language of their country."""
    rng = new_rng(seed, "schools")
    found: dict[str, School] = {}
    while len(found) < SCHOOLS:
        country = draw_entry(COUNTRIES, rng)
        patterns = WORDS["schools"].get(country["languages"][0], WORDS["schools"][""])
        name = rng.choice(patterns).format(invented_stem(rng))
        if slug(name) not in found:
            url = f"{PROFNET}/school/{slug(name)}"
            found[slug(name)] = School(len(found), new_id(rng), name, url, country["name"])
    return tuple(found.values())


def investors(seed: int) -> tuple[str, ...]:
    """Return the names of the world's investors."""
    rng = new_rng(seed, "investors")
    found: dict[str, None] = {}
    while len(found) < INVESTORS:
        found[f"{invented_stem(rng)} {rng.choice(WORDS['company_names']['investor'])}"] = None
    return tuple(found)
