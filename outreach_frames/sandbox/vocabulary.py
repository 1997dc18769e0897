"""The words and numbers that the sandbox's world is made of, read from the JSON files in `data`.

`places.json` has real cities, `names.json` common given and family names, `industries.json` what
sets industries apart, `titles.json` job titles, `words.json` the parts of invented names and texts.
"""

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
    """Values to draw from, each with its weight."""

    __slots__ = ("_bounds", "values")

    def __init__(self, weights: Iterable[tuple[T, float]]) -> None:
        pairs = [(value, weight) for value, weight in weights if weight > 0]
        self.values: tuple[T, ...] = tuple(value for value, _ in pairs)
        self._bounds = tuple(accumulate(weight for _, weight in pairs))

    def draw(self, rng: Random) -> T:
        """Return one value, as often as its weight says."""
        return self.values[bisect(self._bounds, rng.random() * self._bounds[-1], 0, -1)]


@dataclass(frozen=True, slots=True)
class City:
    """A real city, and the pattern of its postal codes: `#` is a digit, `A` a letter."""

    name: str
    state: str
    country: str
    lat: float
    long: float
    postal_code_pattern: str

    @property
    def location(self) -> str:
        """City, state and country as one text."""
        return f"{self.name}, {self.state}, {self.country}"


@dataclass(frozen=True, slots=True)
class Country:
    """A country: its cities, whose names its people have, what they speak, how firms end.

    One with several time zones has none here.
    """

    name: str
    weight: float
    cities: Weighted[City]
    cultures: Weighted[str]
    languages: Sequence[str]
    legal_forms: Sequence[str]
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class NamePart:
    """A given or family name in Latin letters, and in its own script where that is another."""

    latin: str
    native: str


@dataclass(frozen=True, slots=True)
class Culture:
    """The given and family names that go together."""

    female: tuple[NamePart, ...]
    male: tuple[NamePart, ...]
    family_female: tuple[NamePart, ...]
    family_male: tuple[NamePart, ...]
    family_first: bool
    has_script: bool


_FEW, _SOME, _MANY = 1.0, 2.0, 12.0


@dataclass(frozen=True)
class Industry:
    """What sets the companies of an industry apart, in the words of `industries.json`.

    `departments` are shares of the employees, `b2b`, `b2c` and `funded` probabilities,
    `revenue_per_employee` US dollars a year. Numbers of employees grow with `boosted_functions`.
    """

    name: str
    weight: float
    departments: Mapping[str, float]
    boosted_functions: Sequence[str]
    name_words: Sequence[str]
    b2b: float
    b2c: float
    funded: float
    revenue_per_employee: int
    sic_codes: Sequence[int]
    naics_codes: Sequence[int]
    keywords: Sequence[str]
    type_weights: Sequence[float]
    technologies: Sequence[str]
    activity: str

    @cached_property
    def functions(self) -> Mapping[str, tuple[float, ...]]:
        """Weights in each department: what the industry lives on, functions that have a name."""
        return {
            department: tuple(
                _MANY if name in self.boosted_functions else _SOME if name in SPECIALISTS else _FEW
                for name in functions
            )
            for department, functions in spec.JOB_FUNCTIONS.items()
        }

    @cached_property
    def types(self) -> Weighted[str]:
        """The types of its companies."""
        return Weighted(zip(spec.SUGGESTED_COMPANY_TYPES, self.type_weights, strict=True))


def _read(name: str) -> Any:
    return orjson.loads(resources.files(__package__).joinpath("data", name).read_bytes())


def _name_parts(text: str, alternative: int = 0) -> tuple[NamePart, ...]:
    """Read "Latin:Native" entries; "male/female" gives a family name's two forms."""
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

# By seniority: title patterns, years at work from and to, and how many people have it.
SENIORITIES: Final[Mapping[str, Mapping[str, Any]]] = _TITLES["seniorities"]
# A job function's plain title, its executive's title, and its name as an area of work.
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
