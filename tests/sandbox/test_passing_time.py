"""Changes of the sandbox's world as days pass."""

from __future__ import annotations

from collections import Counter
from datetime import date
from itertools import pairwise
from typing import Any

import pytest

from outreach_frames.sandbox import Sandbox, serve
from outreach_frames.sandbox.companies import SIZES
from tests.sandbox.http import Api

pytestmark = pytest.mark.long

PEOPLE = 150
Person = dict[str, Any]


def everybody(sandbox: Sandbox, **filters: Any) -> list[Person]:
    """Return all people of a search, page by page."""
    found: list[Person] = []
    with Api(sandbox) as api:
        while True:
            body = {**filters, "page": len(found) // 100 + 1, "page_size": 100}
            result = api.search(body).json()
            found += result["results"]
            if len(found) >= result["_pagination"]["total"]:
                return found


def test_remaining_people_keep_their_identity() -> None:
    """Some people leave, some join, few change jobs; the others keep id, URL, name and order."""
    with serve(people=PEOPLE, seed=5) as sandbox:
        before = everybody(sandbox)
        sandbox.advance()
        after = everybody(sandbox)
    ids = [[person["id"] for person in people] for people in (before, after)]
    stayed = set(ids[0]) & set(ids[1])
    assert 0 < len(ids[0]) - len(stayed) < PEOPLE / 10
    assert 0 < len(ids[1]) - len(stayed) < PEOPLE / 10
    assert [one for one in ids[0] if one in stayed] == [one for one in ids[1] if one in stayed]
    new = {person["id"]: person for person in after}
    moved = 0
    for person in before:
        if person["id"] in stayed:
            now = new[person["id"]]
            for field in ("profnet_url", "name", "educations", "location"):
                assert now[field] == person[field]
            moved += now["company"]["id"] != person["company"]["id"]
    assert 0 < moved < PEOPLE / 10


@pytest.mark.parametrize("months", [0, 12])
def test_the_world_is_consistent(months: int) -> None:
    """A new world and a year-old one have consistent careers, counts, sizes and addresses."""
    with serve(people=PEOPLE, seed=7) as sandbox:
        for _ in range(months):
            sandbox.advance(days=30)
        people, today = everybody(sandbox), sandbox.today.isoformat()
    for key in ("id", "profnet_url", "image_url"):
        assert len({person[key] for person in people}) == len(people)
    staff = Counter(person["company"]["id"] for person in people)
    for person in people:
        company, jobs = person["company"], person["experiences"]
        counts = company["department_headcount"]
        employees = company["estimated_number_of_employees"]
        assert sum(counts.values()) == employees >= staff[company["id"]]
        assert counts["senior_leadership"] >= 1
        low, high = SIZES[company["size"]]
        assert low <= employees <= high
        for department, functions in company["job_function_headcount"].items():
            assert sum(functions.values()) == counts[department]
        assert jobs[0]["title"] == person["title"]
        assert jobs[0]["company_profnet_url"] == company["profnet_url"]
        assert jobs[0]["start_date"] == person["current_position_start_date"] <= today
        assert [job["end_date"] is None for job in jobs] == [True] + [False] * (len(jobs) - 1)
        for newer, older in pairwise(jobs):
            assert older["start_date"] < older["end_date"] < newer["start_date"]
        for newer, older in pairwise(person["educations"]):
            assert older["end_date"] <= newer["start_date"]
        for education in person["educations"]:
            assert education["start_date"] < education["end_date"] < jobs[-1]["start_date"]


def test_searches_find_the_changed_people() -> None:
    """Searches find movers by their new title and company, and do not find people who left."""
    with serve(people=PEOPLE, seed=5) as sandbox:
        before = {person["id"]: person for person in everybody(sandbox)}
        sandbox.advance(days=90)
        after = {person["id"]: person for person in everybody(sandbox)}
        mover = next(
            now
            for now in after.values()
            if now["id"] in before and now["company"]["id"] != before[now["id"]]["company"]["id"]
        )
        found = everybody(
            sandbox, person_titles=[mover["title"]], company_ids=[mover["company"]["id"]]
        )
        assert mover["id"] in {person["id"] for person in found}
        left = next(person for person in before.values() if person["id"] not in after)
        named = everybody(sandbox, person_name=left["name"])
        assert left["id"] not in {person["id"] for person in named}


@pytest.mark.parametrize("days", [0, -1, 3651, 1.5, True, "30"])
def test_days_are_a_whole_number(days: Any) -> None:
    """An invalid number of days is an error and changes nothing."""
    with serve(people=5) as sandbox:
        with pytest.raises(ValueError, match="days must be a whole number from 1 to 3,650"):
            sandbox.advance(days=days)
        assert sandbox.today == date(2026, 11, 2)


def test_the_last_person_never_leaves() -> None:
    """The last person never leaves, and advancing a stopped sandbox is an error."""
    with serve(people=1) as sandbox:
        sandbox.advance(days=3650)
        assert len(everybody(sandbox)) >= 1
    with pytest.raises(RuntimeError, match="is stopped"):
        sandbox.advance()
