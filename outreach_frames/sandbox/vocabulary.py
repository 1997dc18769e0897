"""The vocabulary of the sandbox's world, read from the JSON files in `data`."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import accumulate
from random import Random
from typing import Any, Final, Generic, TypeVar

import orjson

from outreach_frames import spec

T = TypeVar("T")


class Weighted(Generic[T]):
    """Values to draw by their weights."""

    __slots__ = ("_bounds", "values")

    def __init__(self, weights: Iterable[tuple[T, float]]) -> None:
        pairs = [(value, weight) for value, weight in weights if weight > 0]
        self.values: tuple[T, ...] = tuple(value for value, _ in pairs)
        self._bounds = tuple(accumulate(weight for _, weight in pairs))

    def draw(self, rng: Random) -> T:
        """Draw a value with a probability proportional to its weight."""
        return self.values[bisect(self._bounds, rng.random() * self._bounds[-1], 0, -1)]


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


@dataclass(frozen=True, slots=True)
class Country:
    """A country, with the distribution of its cities and of its people's cultures."""

    name: str
    weight: float
    cities: Weighted[City]
    cultures: Weighted[str]
    languages: Sequence[str]
    legal_forms: Sequence[str]
    time_zone: str | None = None  # None if it has several


@dataclass(frozen=True, slots=True)
class NamePart:
    """A given or family name in Latin letters and in its native script."""

    latin: str
    native: str


@dataclass(frozen=True, slots=True)
class Culture:
    """Given and family names that are combined into full names."""

    female: tuple[NamePart, ...]
    male: tuple[NamePart, ...]
    family_female: tuple[NamePart, ...]
    family_male: tuple[NamePart, ...]
    family_first: bool
    has_script: bool


_FEW, _SOME, _MANY = 1.0, 2.0, 12.0


@dataclass(frozen=True)
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
    type_weights: Sequence[float]
    technologies: Sequence[str]
    activity: str

    @cached_property
    def functions(self) -> Mapping[str, tuple[float, ...]]:
        """Weights of job functions by department; boosted and specialist functions weigh more."""
        return {
            department: tuple(
                _MANY if name in self.boosted_functions else _SOME if name in SPECIALISTS else _FEW
                for name in functions
            )
            for department, functions in spec.JOB_FUNCTIONS.items()
        }

    @cached_property
    def types(self) -> Weighted[str]:
        """The distribution of company types."""
        return Weighted(zip(spec.SUGGESTED_COMPANY_TYPES, self.type_weights, strict=True))


def _read(name: str) -> Any:
    return orjson.loads(resources.files(__package__).joinpath("data", name).read_bytes())


def _name_parts(text: str, alternative: int = 0) -> tuple[NamePart, ...]:
    """Parse "Latin:Native" entries; a family name may have the two forms "male/female"."""
    parts = []
    for entry in text.split(", "):
        latin, _, native = entry.partition(":")
        latin, native = (form.split("/")[-1 if alternative else 0] for form in (latin, native))
        parts.append(NamePart(latin, native or latin))
    return tuple(parts)


def _culture(names: Mapping[str, str]) -> Culture:
    return Culture(
        female=_name_parts(names["female"]),
        male=_name_parts(names["male"]),
        family_female=_name_parts(names["family"], alternative=1),
        family_male=_name_parts(names["family"]),
        family_first=names.get("order") == "family_first",
        has_script=":" in names["family"],
    )


def _country(name: str, fields: Mapping[str, Any]) -> Country:
    cities = Weighted(
        (City(city, state, name, lat, long, pattern), weight)
        for city, state, lat, long, pattern, weight in fields["cities"]
    )
    cultures = Weighted(fields["cultures"].items())
    return Country(**{**fields, "name": name, "cities": cities, "cultures": cultures})


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
CULTURES: Final[Mapping[str, Culture]] = {
    name: _culture(names) for name, names in _read("names.json").items()
}
COUNTRIES: Final[Mapping[str, Country]] = {
    name: _country(name, country) for name, country in _PLACES["countries"].items()
}
INDUSTRIES: Final[Mapping[str, Industry]] = {
    name: _industry(name, industry) for name, industry in _INDUSTRIES["industries"].items()
}
ANY_COUNTRY: Final = Weighted((country, country.weight) for country in COUNTRIES.values())
ANY_INDUSTRY: Final = Weighted((industry, industry.weight) for industry in INDUSTRIES.values())
