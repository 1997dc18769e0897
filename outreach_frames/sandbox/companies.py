"""Generate the companies of the sandbox's world.

Choices where the interface document shows no values: `locations` holds texts like "Berlin, Berlin,
Germany", headquarters first; the three funding fields are null for a company without outside
funding, and a company's `state` is sometimes null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import exp, log
from random import Random
from typing import Any, Final, NamedTuple

from outreach_frames import spec
from outreach_frames.sandbox import world
from outreach_frames.sandbox.world import COUNTRIES, WORDS, Entry, draw, draw_entry, location

PRIVATE, PUBLIC, *_OTHER_TYPES, SELF_OWNED = spec.SUGGESTED_COMPANY_TYPES


def _bounds(label: str) -> tuple[int, int]:
    """Return the bounds of a size label; an open-ended label ends at 12 times its start."""
    low, _, high = label.rstrip("+").partition("-")
    return int(low), int(high or 12 * int(low))


SIZES: Final = {label: _bounds(label) for label in spec.SUGGESTED_COMPANY_SIZES}
_SIZE_WEIGHTS: Final = dict(zip(SIZES, (22, 28, 22, 10, 7, 7, 2, 2), strict=True))
HUGE: Final = spec.SUGGESTED_COMPANY_SIZES[-1]

_FUNDED_SINCE: Final = 1995

LEADERSHIP: Final = "senior_leadership"
FOUNDER: Final = "founder"
JOBS: Final = tuple(
    (department, function)
    for department, functions in spec.JOB_FUNCTIONS.items()
    for function in functions
)


class Employer(NamedTuple):
    """A company's resource `body`, and what the world knows of the company besides."""

    number: int
    stem: str
    country: Entry
    city: Entry
    industry: Entry
    group: int  # number of the parent company; if none, of this company
    investors: Sequence[str]
    body: dict[str, Any]

    @property
    def employees(self) -> int:
        """The number of employees."""
        return int(self.body["estimated_number_of_employees"])


def size_label(employees: int) -> str | None:
    """Return the size label of a number of employees, or None if no label covers it.

    >>> size_label(12)
    '11-50'
    """
    return next((size for size, (low, high) in SIZES.items() if low <= employees <= high), None)


def companies(seed: int, count: int) -> Iterator[Employer]:
    """Generate companies."""
    # The first company is old and huge, so that every career finds a former employer.
    rng, investors = world.new_rng(seed, "companies"), world.investors(seed)
    taken: set[str] = set()
    parents: list[Employer] = []
    for number in range(count):
        parent = rng.choice(parents) if parents and rng.random() < 0.12 else None
        employer = _company(number, parent, taken, investors, rng)
        if parent is None and employer.employees > SIZES[spec.SUGGESTED_COMPANY_SIZES[2]][1]:
            parents.append(employer)
        yield employer


def _company(
    number: int, parent: Employer | None, taken: set[str], investors: Sequence[str], rng: Random
) -> Employer:
    country = draw_entry(COUNTRIES, rng)
    city = draw_entry(country["cities"], rng)
    industry = (
        parent.industry if parent and rng.random() < 0.6 else draw_entry(world.INDUSTRIES, rng)
    )
    size = draw(_SIZE_WEIGHTS, rng) if number else HUGE
    employees = _log_uniform(*SIZES[size], rng)
    founded = _founded_year(industry, employees, rng) if number else 1908
    stem, short_name = _name(parent, country, industry, taken, rng)
    name = f"{short_name} {rng.choice(country['legal_forms'])}".strip()
    domain = f"{world.slug(short_name)}.example"
    kind = _type(industry, employees, rng)
    funding = _funding(industry, kind, employees, founded, rng)
    is_b2c = rng.random() < industry["b2c"]
    is_b2b = rng.random() < industry["b2b"] or not is_b2c
    departments, functions = _headcounts(
        employees, industry, has_founder=founded >= world.TODAY.year - 35, rng=rng
    )
    identifier = world.new_id(rng)
    own_investors = rng.sample(investors, rng.randint(1, 4)) if funding else ()
    stage, total, day = funding or (None, None, None)
    body = {
        "id": identifier,
        "object": "company",
        "name": name,
        "website": f"https://www.{domain}",
        "profnet_url": f"{world.PROFNET}/company/{world.slug(name)}",
        "industry": industry["name"],
        "logo_url": f"{world.PROFNET}/images/{identifier}.png",
        "location": location(city),
        "overview": _overview(name, industry, founded, city, rng),
        "keywords": rng.sample(
            industry["keywords"], min(len(industry["keywords"]), rng.randint(3, 6))
        ),
        "estimated_number_of_employees": employees,
        "size": size,
        "location_details": {
            "city": city["city"],
            "state": None if number % 60 == 7 else city["state"],
            "country": city["country"],
            "postal_code": _postal_code(city["postal_code"], rng),
            "lat": round(city["lat"] + rng.uniform(-0.06, 0.06), 5),
            "long": round(city["long"] + rng.uniform(-0.06, 0.06), 5),
        },
        "locations": _locations(country, city, employees, rng),
        "followers": int(employees * exp(rng.gauss(1.2, 0.9))) + rng.randint(3, 400),
        "founded_year": founded,
        "traffic_rank": int(4_000_000 / employees**0.55 * exp(rng.gauss(0.0, 0.8))) + 900,
        "sic_codes": list(industry["sic_codes"][: rng.randint(1, 2)]),
        "naics_codes": list(industry["naics_codes"][: rng.randint(1, 2)]),
        "type": kind,
        "total_funding": total,
        "latest_funding_stage": stage,
        "latest_funding_date": day,
        "is_b2b": is_b2b,
        "is_b2c": is_b2c,
        "technologies": rng.sample(industry["technologies"], rng.randint(3, 9)),
        "department_headcount": departments,
        "job_function_headcount": functions,
        "estimated_revenue": _revenue(industry, employees, rng),
    }
    group = parent.number if parent else number
    return Employer(number, stem, country, city, industry, group, own_investors, body)


def _log_uniform(low: int, high: int, rng: Random) -> int:
    return min(high, int(exp(rng.uniform(log(low), log(high + 1)))))


def _founded_year(industry: Entry, employees: int, rng: Random) -> int:
    """Draw a founding year: later for venture-funded industries, earlier for larger companies."""
    chance = rng.random()
    if industry["funded"] > 0.5 or chance < 0.45:
        return rng.randint(1998, world.TODAY.year - 2 - 2 * int(log(employees, 3)))
    return rng.randint(1955, 1998) if chance < 0.9 else rng.randint(1846, 1955)


def _name(
    parent: Employer | None, country: Entry, industry: Entry, taken: set[str], rng: Random
) -> tuple[str, str]:
    """Draw a stem and a unique name; companies of a group often share the stem."""
    while True:
        stem = parent.stem if parent and rng.random() < 0.9 else world.invented_stem(rng)
        word = (
            country["name"] if parent and rng.random() < 0.4 else rng.choice(industry["name_words"])
        )
        if rng.random() < 0.04:
            word = f"& {world.invented_stem(rng)} {word}"
        address = world.slug(f"{stem} {word}")
        if address not in taken:
            taken.add(address)
            return stem, f"{stem} {word}"


def _type(industry: Entry, employees: int, rng: Random) -> str:
    """Draw a company type; only larger companies are public, only the smallest self-owned."""
    kind = draw(dict(zip(spec.SUGGESTED_COMPANY_TYPES, industry["type_weights"], strict=True)), rng)
    if (kind == PUBLIC and employees <= 200) or (kind == SELF_OWNED and employees > 10):
        return PRIVATE
    return kind


def _funding(
    industry: Entry, kind: str, employees: int, founded: int, rng: Random
) -> tuple[str, float, str] | None:
    """Draw the last round's stage, all funding in US dollars and the last round's date, or None."""
    if (
        kind not in (PRIVATE, PUBLIC)
        or founded < _FUNDED_SINCE
        or rng.random() > industry["funded"]
    ):
        return None
    most = min(len(WORDS["funding_rounds"]), 1 + int(log(employees + 1, 6)))
    count = min(rng.randint(1, most), world.TODAY.year - founded)
    year = max(rng.sample(range(founded, world.TODAY.year), count))
    rounds = WORDS["funding_rounds"][:count]
    total = sum(round(_log_uniform(low, high, rng), -4) for _, low, high in rounds)
    day = f"{year}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    stage, *_ = rounds[-1]
    return stage, float(total), day


def _revenue(industry: Entry, employees: int, rng: Random) -> str:
    revenue = employees * industry["revenue_per_employee"] * exp(rng.gauss(0.0, 0.35))
    return next(str(label) for low, label in reversed(WORDS["revenues"]) if low <= revenue)


def _locations(country: Entry, city: Entry, employees: int, rng: Random) -> list[str]:
    """Draw the offices, headquarters first, some abroad; larger companies have more offices."""
    offices = {location(city): None}
    for _ in range(rng.randint(0, int(log(employees + 1, 8)))):
        place = country if rng.random() < 0.5 else draw_entry(COUNTRIES, rng)
        offices[location(draw_entry(place["cities"], rng))] = None
    return list(offices)


def _overview(name: str, industry: Entry, founded: int, city: Entry, rng: Random) -> str:
    text = rng.choice(WORDS["overviews"]).format(
        name=name,
        activity=industry["activity"],
        year=founded,
        city=city["city"],
        countries=rng.randint(2, 30),
    )
    return f"{text} {rng.choice(WORDS['overview_endings'])}".strip()


def _postal_code(pattern: str, rng: Random) -> str:
    """Replace each `#` by a digit and each `A` by a letter."""
    characters = {"#": "0123456789", "A": "BCDEFGHJKLNPRSTX"}
    return "".join(rng.choice(characters[mark]) if mark in characters else mark for mark in pattern)


def shares(total: int, weights: Sequence[float], rng: Random) -> list[int]:
    """Split a count by weights into integers that sum to it.

    >>> sum(shares(101, [1.0, 2.5, 0.0], Random(0)))
    101
    """
    offset, reached = rng.random(), list(accumulate(weights))
    # Rounding must not exceed the total.
    ends = [min(total, int(total * (end / reached[-1]) + offset)) for end in reached]
    return [end - start for start, end in pairwise([0, *ends])]


def _headcounts(
    employees: int, industry: Entry, *, has_founder: bool, rng: Random
) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Return a company's `department_headcount` and `job_function_headcount`."""
    weights = [
        industry["departments"][name] * (0.6 + 0.8 * rng.random()) for name in spec.DEPARTMENTS
    ]
    departments = dict(zip(spec.DEPARTMENTS, shares(employees - 1, weights, rng), strict=True))
    departments[LEADERSHIP] += 1  # every company has a leader
    functions = {}
    for department, names in spec.JOB_FUNCTIONS.items():
        weights = [_weight(name, industry, has_founder, rng) for name in names]
        counts = shares(departments[department], weights, rng)
        functions[department] = dict(zip(names, counts, strict=True))
    return departments, functions


def _weight(function: str, industry: Entry, has_founder: bool, rng: Random) -> float:
    """Draw the weight of a job function; boosted and specialist functions weigh more."""
    weight = 2.0 if function in world.SPECIALISTS else 1.0
    if function in industry["boosted_functions"]:
        weight = 12.0
    if function == FOUNDER:
        weight *= 2.0 if has_founder else 0.0
    return weight * (0.4 + 1.2 * rng.random())
