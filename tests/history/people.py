"""Tables of people for tests, and a brute-force comparison of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pandas as pd

from outreach_frames.reading.flatten import DtypeBackend
from tests.reading.pages import people_frame, read_people_page

Record = dict[str, Any]
DEPARTMENTS = ("finance", "legal")
FIELDS = ("name", "profnet_url", "title", "current_position_start_date", "languages")
COLUMNS = [
    "id",
    *FIELDS,
    *(f"company_{name}" for name in ("id", "profnet_url", "name", "website")),
    *(f"company_department_headcount_{name}" for name in DEPARTMENTS),
]


def frame_of(people: list[Record], dtype_backend: DtypeBackend = "numpy_nullable") -> pd.DataFrame:
    """Return records as a search does, without the columns that most records lack."""
    page = read_people_page(msgspec.json.encode({"results": people, "_pagination": {}}))
    others = [name for name in page.people.column_names if name not in COLUMNS]
    return people_frame([page], dtype_backend).drop(columns=others)


class Expected(NamedTuple):
    """The expected matches; people are given by their positions in the lists."""

    pairs: list[tuple[int, int]]
    disappeared: list[int]
    appeared: list[int]


def key_of(person: Record) -> str | None:
    """Return the normalised profile URL if it is certain."""
    url = person.get("profnet_url") or ""
    return url.removeprefix("https://").lower().rstrip("/") if "/in/" in url else None


def first_of_each(people: list[Record]) -> list[int]:
    """Return the position of each identifiable person's first row."""
    of_ids = {key_of(person) for person in people if person.get("id")}
    seen: set[Any] = set()
    kept = []
    for place, person in enumerate(people):
        url = key_of(person)
        if not person.get("id") and (url is None or url in of_ids):
            continue
        identity = ("id", person["id"]) if person.get("id") else ("url", url)
        if identity not in seen:
            kept.append(place)
        seen.add(identity)
    return kept


def matched(before: list[Record], after: list[Record]) -> Expected:
    """Match two lists of people one by one."""
    partner: dict[int, int] = {}
    old, new = first_of_each(before), first_of_each(after)

    def free(place: int) -> bool:
        return place not in partner.values()

    for one in old:
        for other in new:
            if before[one].get("id") and before[one]["id"] == after[other].get("id"):
                partner[one] = other
    pair_by_url(before, after, (old, new), partner, with_ids=False)
    urls = {key_of(before[one]) for one in partner}
    urls |= {key_of(after[other]) for other in partner.values()}
    old = once(before, old, urls, [*partner])
    new = once(after, new, urls, [*partner.values()])
    pair_by_url(before, after, (old, new), partner, with_ids=True)
    return Expected(
        sorted(partner.items()),
        [place for place in old if place not in partner],
        [place for place in new if free(place)],
    )


def pair_by_url(
    before: list[Record],
    after: list[Record],
    places: tuple[list[int], list[int]],
    partner: dict[int, int],
    *,
    with_ids: bool,
) -> None:
    """Match unmatched people by URL; `with_ids` also allows pairs with two ids."""
    for one in places[0]:
        for other in places[1]:
            url = key_of(before[one])
            same = url is not None and url == key_of(after[other])
            both = bool(before[one].get("id") and after[other].get("id"))
            if same and both <= with_ids and one not in partner and other not in partner.values():
                partner[one] = other


def once(
    people: list[Record], places: list[int], urls: set[str | None], sure: list[int]
) -> list[int]:
    """Drop people who have the URL of a matched or an earlier person."""
    kept = sorted(sure)
    seen = set(urls)
    for place in places:
        url = key_of(people[place])
        if place not in sure and (url is None or url not in seen):
            kept.append(place)
            seen.add(url)
    return sorted(kept)


def identity_of(before: Record, after: Record) -> str:
    """Return the expected `person_id`."""
    values = (after.get("id"), before.get("id"), after.get("profnet_url"))
    return next(value for value in values if value)


def changes(before: list[Record], after: list[Record]) -> list[tuple[str, str]]:
    """Return the person and field of every changed value."""
    return [
        (identity_of(before[one], after[other]), field)
        for one, other in matched(before, after).pairs
        for field in FIELDS
        if plain(before[one].get(field)) != plain(after[other].get(field))
    ]


def plain(value: Any) -> Any:
    """Return a value without its missing members."""
    if isinstance(value, list):
        return [plain(element) for element in value]
    if isinstance(value, dict):
        return {name: member for name, member in value.items() if member is not None}
    return value


def moves(before: list[Record], after: list[Record]) -> list[str]:
    """Return the people whose employers differ."""
    everybody = [person.get("company") or {} for person in before + after]
    found = []
    for one, other in matched(before, after).pairs:
        old, new = (person.get("company") or {} for person in (before[one], after[other]))
        keys = [key for key in ("id", "profnet_url", "name") if old.get(key) and new.get(key)]
        is_other = keys and old[keys[0]] != new[keys[0]]
        if is_other and certain(new).isdisjoint(linked(old, everybody)):
            found.append(identity_of(before[one], after[other]))
    return found


def certain(company: Record) -> set[str]:
    """Return a company's id and profile URL."""
    return {company[key] for key in ("id", "profnet_url") if company.get(key)}


def linked(company: Record, everybody: list[Record]) -> set[str]:
    """Return all ids and profile URLs of a company in the rows of both tables."""
    known = certain(company)
    for _ in everybody:
        for other in everybody:
            known |= set() if known.isdisjoint(certain(other)) else certain(other)
    return known


def known_values(counts: Record) -> int:
    """Count the known headcounts."""
    return sum(count is not None for count in counts.values())


def headcounts(before: list[Record], after: list[Record]) -> dict[tuple[str, str], list[Any]]:
    """Return both sides' counts by company id and department; all companies have ids."""
    sides: list[dict[str, Record]] = [{}, {}]
    for side, people in zip(sides, (before, after), strict=True):
        for person in people:
            company = person.get("company") or {}
            if company.get("id"):
                counts = {
                    name: (company.get("department_headcount") or {}).get(name)
                    for name in DEPARTMENTS
                }
                best = side.setdefault(company["id"], counts)
                if known_values(counts) > known_values(best):
                    side[company["id"]] = counts
    pairs = {}
    for company in sides[0] | sides[1]:
        counts = [side.get(company, {}) for side in sides]
        counted = [any(count is not None for count in side.values()) for side in counts]
        for name in DEPARTMENTS:
            pair = [side.get(name) for side in counts]
            if pair.count(None) == 1 and all(counted):
                pair = [count or 0 for count in pair]
            pairs[company, name] = pair
    return pairs
