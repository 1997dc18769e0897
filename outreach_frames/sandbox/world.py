"""The world's vocabulary, date, names and identifiers, and its users, schools and investors."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from importlib import resources
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from outreach_frames import spec
from outreach_frames.sandbox.search import words

Entry: TypeAlias = Mapping[str, Any]  # a city, a country or an industry


def _read(name: str) -> Any:
    return msgspec.json.decode(resources.files(__package__).joinpath("data", name).read_bytes())


_PLACES: Final = _read("places.json")
_TITLES: Final = _read("titles.json")
WORDS: Final[Entry] = _read("words.json")

# Title patterns, range of years at work, and share of people, by seniority.
SENIORITIES: Final[Mapping[str, Entry]] = _TITLES["seniorities"]
# Titles of specialists and executives, and the area of work, by job function.
SPECIALISTS: Final[Mapping[str, str]] = _TITLES["specialists"]
EXECUTIVES: Final[Mapping[str, str]] = _TITLES["executives"]
AREAS: Final[Mapping[str, str]] = {
    function: _TITLES["areas"].get(function, function.replace("_", " ").title())
    for function in spec.SUGGESTED_JOB_FUNCTIONS
}

LANGUAGE_CODES: Final[Mapping[str, str]] = _PLACES["languages"]
# Given and family names by culture, in Latin letters or as "Latin:Native".
CULTURES: Final[Mapping[str, Entry]] = _read("names.json")
# In the postal codes of a country's cities, `#` is a digit and `A` a letter. A country with several
# time zones has none here.
COUNTRIES: Final[Sequence[Entry]] = _PLACES["countries"]
# `departments` are shares of the employees; `b2b`, `b2c` and `funded` are probabilities;
# the revenue is in US dollars a year; `type_weights` has the order of the types in `spec`.
INDUSTRIES: Final[Sequence[Entry]] = _read("industries.json")
# Users, sequences and lead lists; each sequence `shows` an outcome of adding leads, and `room` is
# the number of leads that can still be added.
ACCOUNT: Final[Entry] = _read("account.json")

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


class School(NamedTuple):
    """An invented school."""

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
    by_email: dict[str, User] = {}
    while len(by_email) < USERS:
        name = person_name(COUNTRIES[0], rng)
        email = f"{name.slug.replace('-', '.')}@{ACCOUNT_DOMAIN}"
        by_email.setdefault(email, User(new_id(rng), name.name, email))
    return tuple(by_email.values())


def schools(seed: int) -> tuple[School, ...]:
    """Return the world's schools, with names in the language of their country."""
    rng = new_rng(seed, "schools")
    by_slug: dict[str, School] = {}
    while len(by_slug) < SCHOOLS:
        country = draw_entry(COUNTRIES, rng)
        patterns = WORDS["schools"].get(country["languages"][0], WORDS["schools"][""])
        name = rng.choice(patterns).format(invented_stem(rng))
        if slug(name) not in by_slug:
            url = f"{PROFNET}/school/{slug(name)}"
            by_slug[slug(name)] = School(new_id(rng), name, url, country["name"])
    return tuple(by_slug.values())


def investors(seed: int) -> tuple[str, ...]:
    """Return the names of the world's investors."""
    rng = new_rng(seed, "investors")
    names: dict[str, None] = {}
    while len(names) < INVESTORS:
        names[f"{invented_stem(rng)} {rng.choice(WORDS['company_names']['investor'])}"] = None
    return tuple(names)


def draw(weights: Mapping[str, float], rng: Random) -> str:
    """Draw a key with a probability proportional to its weight."""
    return rng.choices(list(weights), list(weights.values()))[0]


def draw_entry(entries: Sequence[Entry], rng: Random) -> Entry:
    """Draw an entry with a probability proportional to its `weight`."""
    return rng.choices(entries, [entry["weight"] for entry in entries])[0]


def location(city: Entry) -> str:
    """Return the city, state and country as one text."""
    return f"{city['city']}, {city['state']}, {city['country']}"
