"""The vocabulary of the sandbox's world, read from the JSON files in `data`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from random import Random
from typing import Any, Final, TypeAlias

import orjson

from outreach_frames import spec

Entry: TypeAlias = Mapping[str, Any]  # a city, a country or an industry


def _read(name: str) -> Any:
    return orjson.loads(resources.files(__package__).joinpath("data", name).read_bytes())


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


def draw(weights: Mapping[str, float], rng: Random) -> str:
    """Draw a key with a probability proportional to its weight."""
    return rng.choices(list(weights), list(weights.values()))[0]


def draw_entry(entries: Sequence[Entry], rng: Random) -> Entry:
    """Draw an entry with a probability proportional to its `weight`."""
    return rng.choices(entries, [entry["weight"] for entry in entries])[0]


def location(city: Entry) -> str:
    """Return the city, state and country as one text."""
    return f"{city['city']}, {city['state']}, {city['country']}"
