"""The vocabulary of the sandbox's world, read from the JSON files in `data`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from random import Random
from typing import Any, Final, TypeVar

import orjson

from outreach_frames import spec

T = TypeVar("T")


def draw(weights: Mapping[T, float], rng: Random) -> T:
    """Draw a value with a probability proportional to its weight."""
    return rng.choices(list(weights), list(weights.values()))[0]


@dataclass(frozen=True, slots=True)
class City:
    """A real city."""

    name: str
    state: str
    country: str
    lat: float
    long: float
    postal_code_pattern: str  # `#` is a digit, `A` a letter

    @property
    def location(self) -> str:
        """City, state and country as one text."""
        return f"{self.name}, {self.state}, {self.country}"


@dataclass(frozen=True, eq=False, slots=True)
class Country:
    """A country, with the weights of its cities and of its people's cultures."""

    name: str
    weight: float
    cities: Mapping[City, float]
    cultures: Mapping[str, float]
    languages: Sequence[str]
    legal_forms: Sequence[str]
    time_zone: str | None = None  # None if it has several


@dataclass(frozen=True, eq=False, slots=True)
class Industry:
    """The features of an industry's companies, with the field names of `industries.json`."""

    name: str
    weight: float
    departments: Mapping[str, float]  # shares of the employees
    boosted_functions: Sequence[str]  # job functions with many employees
    name_words: Sequence[str]
    b2b: float  # `b2b`, `b2c` and `funded` are probabilities
    b2c: float
    funded: float
    revenue_per_employee: int  # US dollars a year
    sic_codes: Sequence[int]
    naics_codes: Sequence[int]
    keywords: Sequence[str]
    type_weights: Sequence[float]  # in the order of `spec.SUGGESTED_COMPANY_TYPES`
    technologies: Sequence[str]
    activity: str


def _read(name: str) -> Any:
    return orjson.loads(resources.files(__package__).joinpath("data", name).read_bytes())


def _country(name: str, fields: Mapping[str, Any]) -> Country:
    cities = {
        City(city, state, name, lat, long, pattern): weight
        for city, state, lat, long, pattern, weight in fields["cities"]
    }
    return Country(**{**fields, "name": name, "cities": cities})


def _industry(name: str, fields: Mapping[str, Any]) -> Industry:
    groups = _INDUSTRIES["technologies"]
    technologies = groups[fields["technologies"]] + groups["common"]
    return Industry(**{**fields, "name": name, "technologies": technologies})


_PLACES: Final = _read("places.json")
_INDUSTRIES: Final = _read("industries.json")
_TITLES: Final = _read("titles.json")
WORDS: Final[Mapping[str, Any]] = _read("words.json")

# Title patterns, range of years at work, and share of people, by seniority.
SENIORITIES: Final[Mapping[str, Mapping[str, Any]]] = _TITLES["seniorities"]
# Titles of specialists and executives, and the area of work, by job function.
SPECIALISTS: Final[Mapping[str, str]] = _TITLES["specialists"]
EXECUTIVES: Final[Mapping[str, str]] = _TITLES["executives"]
AREAS: Final[Mapping[str, str]] = {
    function: _TITLES["areas"].get(function, function.replace("_", " ").title())
    for function in spec.SUGGESTED_JOB_FUNCTIONS
}

LANGUAGE_CODES: Final[Mapping[str, str]] = _PLACES["languages"]
# Given and family names by culture, in Latin letters or as "Latin:Native".
CULTURES: Final[Mapping[str, Mapping[str, Any]]] = _read("names.json")
COUNTRIES: Final[Mapping[str, Country]] = {
    name: _country(name, country) for name, country in _PLACES["countries"].items()
}
ANY_COUNTRY: Final = {country: country.weight for country in COUNTRIES.values()}
ANY_INDUSTRY: Final = {
    industry: industry.weight
    for industry in (_industry(*item) for item in _INDUSTRIES["industries"].items())
}
