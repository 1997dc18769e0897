"""The world's date, and its users, schools and investors, generated from the seed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

from outreach_frames.sandbox.names import PROFNET, invented_stem, new_id, new_rng, person_name, slug
from outreach_frames.sandbox.vocabulary import ANY_COUNTRY, COUNTRIES, WORDS

# A fixed date, so that the same seed gives the same bytes in any year.
TODAY: Final = date(2026, 11, 2)

USERS: Final = 6
SCHOOLS: Final = 160
INVESTORS: Final = 80
ACCOUNT_DOMAIN: Final = "brightforge.example"


@dataclass(frozen=True, slots=True)
class User:
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


def users(seed: int) -> tuple[User, ...]:
    """Return the users of the account.

    >>> len(users(0)), users(0) == users(0)
    (6, True)
    """
    rng = new_rng(seed, "users")
    found: dict[str, User] = {}
    while len(found) < USERS:
        name = person_name(COUNTRIES["United States"], rng)
        email = f"{name.slug.replace('-', '.')}@{ACCOUNT_DOMAIN}"
        found.setdefault(email, User(new_id(rng), name.name, email))
    return tuple(found.values())


def schools(seed: int) -> tuple[School, ...]:
    """Return the world's schools, with names in the language of their country."""
    rng = new_rng(seed, "schools")
    found: dict[str, School] = {}
    while len(found) < SCHOOLS:
        country = ANY_COUNTRY.draw(rng)
        patterns = WORDS["schools"].get(country.languages[0], WORDS["schools"][""])
        name = rng.choice(patterns).format(invented_stem(rng))
        if slug(name) not in found:
            url = f"{PROFNET}/school/{slug(name)}"
            found[slug(name)] = School(len(found), new_id(rng), name, url, country.name)
    return tuple(found.values())


def investors(seed: int) -> tuple[str, ...]:
    """Return the names of the world's investors."""
    rng = new_rng(seed, "investors")
    found: dict[str, None] = {}
    while len(found) < INVESTORS:
        found[f"{invented_stem(rng)} {rng.choice(WORDS['company_names']['investor'])}"] = None
    return tuple(found)
