"""Generate the people of the sandbox's world and their careers.

Educations end before the first job. Jobs never overlap and are sorted newest first; the newest
job has the person's title and company, and no end.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import accumulate
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from outreach_frames import spec
from outreach_frames.sandbox import world
from outreach_frames.sandbox.companies import FOUNDER, JOBS, LEADERSHIP, Employer
from outreach_frames.sandbox.search import place_words, words
from outreach_frames.sandbox.store import Row, as_text
from outreach_frames.sandbox.world import COUNTRIES, WORDS, Entry, draw, draw_entry, location

_STAFF: Final = {name: rank["share"] for name, rank in world.SENIORITIES.items()}
OWNER, FOUNDING, CHIEF, VICE_PRESIDENT = spec.SUGGESTED_SENIORITIES[:4]
_LADDER: Final = spec.SUGGESTED_SENIORITIES[3:9]
_MAX_JOBS: Final = 4

_CURRENT_MONTH: Final = world.TODAY.year * 12 + world.TODAY.month - 1  # months since year 0


class Role(NamedTuple):
    """A job title and its searchable attributes."""

    title: str
    seniority: str
    department: str
    job_function: str


class Market:
    """Draws employers by size and schools by country; `staff` counts people by employer."""

    def __init__(self, employers: Sequence[Employer], seed: int, staff: Mapping[int, int]) -> None:
        self.user_emails = [user.email for user in world.users(seed)]
        self._employers = employers
        self._sizes = tuple(accumulate(employer.employees**0.5 for employer in employers))
        self._vacancies = [firm.employees - staff.get(firm.number, 0) for firm in employers]
        self._by_age = sorted(employers, key=lambda employer: employer.body["founded_year"])
        self._years = [employer.body["founded_year"] for employer in self._by_age]
        self._schools = world.schools(seed)
        self._local: dict[str, list[world.School]] = {}
        for school in self._schools:
            self._local.setdefault(school.country, []).append(school)

    def hire(self, rng: Random) -> Employer:
        """Draw an employer that has a vacancy."""
        while True:
            employer = rng.choices(self._employers, cum_weights=self._sizes)[0]
            if self._vacancies[employer.number]:
                self._vacancies[employer.number] -= 1
                return employer

    def former(self, year: int, rng: Random) -> Employer:
        """Draw an employer founded before the year, or the oldest employer."""
        return self._by_age[int(rng.random() * max(1, bisect(self._years, year - 1)))]

    def school(self, country: Entry, rng: Random) -> world.School:
        """Draw a school, usually from the country."""
        local = self._local.get(country["name"], self._schools)
        return rng.choice(local if rng.random() < 0.85 else self._schools)


def new_person(position: int, market: Market, rng: Random) -> Row:
    """Generate a person with a career up to `TODAY`, as a row of the table `people`."""
    employer = market.hire(rng)
    country = employer.country if rng.random() < 0.8 else draw_entry(COUNTRIES, rng)
    stays = country is employer.country and rng.random() < 0.7
    city = employer.city if stays else draw_entry(country["cities"], rng)
    full_name = world.person_name(country, rng)
    # Rare values that are hard for tables, files and pages.
    awkward_field, pattern = WORDS["awkward_values"].get(str(position % 331), ("", "{}"))
    role = _role(employer, rng)
    if awkward_field == "title":
        role = role._replace(title=pattern.format(role.title))
    jobs = _experiences(employer, role, market, rng)
    attended, educations = _educations(jobs[-1]["start_date"], role, country, market, rng)
    facts = {
        "company": employer.body["name"],
        "industry": employer.industry["name"],
        "function": world.AREAS[role.job_function],
        "field": rng.choice(WORDS["fields_of_study"][role.department]),
        "city": city["city"],
        "years": 1 + (_CURRENT_MONTH - _month(jobs[-1]["start_date"])) // 12,
        "percent": rng.randint(5, 60),
        "small": rng.randint(2, 9),
        "large": rng.randint(10, 40),
    }
    about = None if rng.random() < 0.15 else _about(facts, rng)
    described = rng.random() > 0.35
    identifier = world.new_id(rng)
    body = {
        "id": identifier,
        "object": "person",
        "name": full_name.name,
        "first_name": full_name.first_name,
        "last_name": full_name.last_name,
        "profnet_url": f"{world.PROFNET}/in/{full_name.slug}-{_unique_suffix(position)}",
        "title": role.title,
        "headline": _headline(role, employer, rng),
        "about": about,
        "current_position_start_date": jobs[0]["start_date"],
        "current_position_description": (
            rng.choice(WORDS["descriptions"]).format(**facts) if described else None
        ),
        "image_url": f"{world.PROFNET}/images/{identifier}.jpg",
        "location": location(city),
        "location_details": {
            name: city[name] for name in ("city", "state", "country", "lat", "long")
        },
        "experiences": jobs,
        "educations": educations,
        "languages": _languages(country, rng),
        "gender": full_name.gender,
    }
    if awkward_field in {"headline", "about"}:
        body[awkward_field] = pattern.format(body[awkward_field] or "Long story, told in full.")
    networks = [
        email for place, email in enumerate(market.user_emails, 1) if rng.random() < 0.02 * place
    ]
    return {
        "position": position,
        "company": employer.number,
        "name": words(full_name.name),
        **role._replace(title=words(role.title))._asdict(),
        "location": place_words(body["location"]),
        "networks": as_text([spec.ALL_NETWORKS, *networks] if networks else []),
        "school_ids": as_text([school.id for school in attended]),
        "schools": as_text([words(school.name) for school in attended]),
        "body": msgspec.json.encode(body),
    }


def next_role(role: Role, *, promoted: bool, rng: Random) -> Role:
    """Return the next role: the same seniority, or one step higher if promoted."""
    seniority = role.seniority
    if promoted and seniority in _LADDER[1:]:
        seniority = _LADDER[_LADDER.index(seniority) - 1]
    return role._replace(title=_title(seniority, role.job_function, rng), seniority=seniority)


def begin_job(
    person: dict[str, Any], role: Role, employer: Employer, day: date, rng: Random
) -> None:
    """End a person's current job and insert the new one before it."""
    current, *_ = person["experiences"]
    current["end_date"] = (day - timedelta(days=1)).isoformat()
    person["experiences"].insert(0, _job(role.title, employer, day.isoformat()))
    person["title"] = role.title
    person["headline"] = _headline(role, employer, rng)
    person["current_position_start_date"] = day.isoformat()
    person["current_position_description"] = None


def _unique_suffix(position: int) -> str:
    high, low = divmod(position, 0x10000)
    return f"{low * 40503 % 0x10000:04x}{f'{high:x}' if high else ''}"


def _role(employer: Employer, rng: Random) -> Role:
    functions = employer.body["job_function_headcount"].values()
    headcounts = [count for counts in functions for count in counts.values()]
    department, function = rng.choices(JOBS, headcounts)[0]
    if department != LEADERSHIP:
        seniority = draw(_STAFF, rng)
        if seniority == VICE_PRESIDENT and employer.employees < 100:
            seniority = _LADDER[1]
    elif function == FOUNDER:
        seniority = FOUNDING
    else:
        seniority = OWNER if employer.employees <= 50 and rng.random() < 0.4 else CHIEF
    return Role(_title(seniority, function, rng), seniority, department, function)


def _title(seniority: str, function: str, rng: Random) -> str:
    area = world.AREAS[function]
    patterns: list[str] = world.SENIORITIES[seniority]["titles"]
    return rng.choice(patterns).format(
        area=area,
        specialist=world.SPECIALISTS.get(function, f"{area} Specialist"),
        executive=world.EXECUTIVES.get(function, f"Chief {area} Officer"),
    )


def _day(month: int, day: int = 1) -> str:
    return f"{month // 12}-{month % 12 + 1:02}-{day:02}"


def _month(day: str) -> int:
    return int(day[:4]) * 12 + int(day[5:7]) - 1


def _experiences(
    employer: Employer, role: Role, market: Market, rng: Random
) -> list[dict[str, Any]]:
    """Return the jobs, newest first; earlier jobs are less senior."""
    low, high = world.SENIORITIES[role.seniority]["years"]
    career = _CURRENT_MONTH - rng.randint(low * 12, high * 12 + 1)
    founded = employer.body["founded_year"] * 12
    if role.seniority == FOUNDING:
        since = founded + rng.randint(0, 11)
        career = min(career, since - rng.randint(0, 60))
    else:
        since = max(founded, _CURRENT_MONTH - int((_CURRENT_MONTH - career) * rng.random() ** 1.6))
    jobs = [_job(role.title, employer, _day(since))]
    last = since
    rung = _LADDER.index(role.seniority) if role.seniority in _LADDER else 0
    while len(jobs) < _MAX_JOBS:
        end = last - 1 - int(rng.random() ** 4 * 10)
        start = max(career, end - rng.randint(8, 70))
        if end - start < 4:
            break
        rung = min(rung + 1 if rng.random() < 0.6 else rung, len(_LADDER) - 1)
        functions = spec.JOB_FUNCTIONS[role.department]
        function = role.job_function if rng.random() < 0.7 else rng.choice(functions)
        stayed = rng.random() < 0.2 and founded <= start
        former = employer if stayed else market.former(start // 12, rng)
        jobs.append(_job(_title(_LADDER[rung], function, rng), former, _day(start), _day(end, 28)))
        last = start
    return jobs


def _job(title: str, employer: Employer, start: str, end: str | None = None) -> dict[str, Any]:
    return {
        "object": "experience",
        "title": title,
        "company_name": employer.body["name"],
        "company_profnet_url": employer.body["profnet_url"],
        "start_date": start,
        "end_date": end,
    }


def _educations(
    first_job: str, role: Role, country: Entry, market: Market, rng: Random
) -> tuple[list[world.School], list[dict[str, Any]]]:
    """Return schools and educations, newest first, all before the first job."""
    chance = rng.random()
    if chance < 0.07:
        return [], []
    end = (_month(first_job) - 6) // 12
    degrees = [(rng.choice(WORDS["degrees"]), rng.randint(3, 4))]
    if chance > 0.55:
        degrees.insert(0, (rng.choice(WORDS["higher_degrees"]), 2))
    attended, educations = [], []
    for degree, years in degrees:
        school = market.school(country, rng)
        attended.append(school)
        educations.append(
            {
                "object": "education",
                "degree": degree,
                "field_of_study": rng.choice(WORDS["fields_of_study"][role.department]),
                "school_name": school.name,
                "school_profnet_url": school.profnet_url,
                "start_date": f"{end - years}-09-01",
                "end_date": f"{end}-06-30",
            }
        )
        end -= years
    return attended, educations


def _languages(country: Entry, rng: Random) -> list[dict[str, Any]]:
    """Draw languages of the country; a few people add another language, or list none."""
    if rng.random() < 0.1:
        return []
    names = dict.fromkeys(country["languages"][: rng.randint(1, len(country["languages"]))])
    if rng.random() < 0.2:
        names[rng.choice(draw_entry(COUNTRIES, rng)["languages"])] = None
    return [
        {
            "object": "language",
            "language": language,
            "iso_code": world.LANGUAGE_CODES[language],
            "proficiency": _proficiency(language == country["languages"][0], rng),
        }
        for language in names
    ]


def _proficiency(is_native: bool, rng: Random) -> str | None:
    levels: list[str] = WORDS["proficiencies"]
    if rng.random() < 0.15:
        return None
    return levels[0] if is_native else rng.choice(levels[1:])


def _headline(role: Role, employer: Employer, rng: Random) -> str:
    chance = rng.random()
    if chance < 0.6:
        return f"{role.title} at {employer.body['name']}"
    if chance < 0.85:
        return f"{role.title} | {world.AREAS[role.job_function]} | {employer.industry['name']}"
    return f"{world.AREAS[role.job_function]} in {employer.industry['name']}"


def _about(facts: dict[str, Any], rng: Random) -> str:
    parts = ("about_openings", "about_middles", "about_closings")
    return " ".join(rng.choice(WORDS[part]) for part in parts).format(**facts).strip()
