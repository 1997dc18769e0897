"""Fill the tables of companies and people, and sample people.

`search` prepares the searched texts. Numbers and positions count from 0.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Final

import msgspec

from outreach_frames import spec
from outreach_frames.sandbox import careers
from outreach_frames.sandbox.companies import Employer, companies
from outreach_frames.sandbox.search import place_words, words
from outreach_frames.sandbox.store import Row, as_text, insert
from outreach_frames.sandbox.world import new_rng

MAX_COMPANIES: Final = 3_000  # because of memory
# Rows per insertion; thousands of dicts would slow down the garbage collector.
_BATCH: Final = 1_000


def fill(connection: sqlite3.Connection, *, people: int, seed: int) -> None:
    """Insert companies and people; the same seed and number of people give the same bytes."""
    # Larger worlds have more people per company.
    count = min(MAX_COMPANIES, max(1, round(people**0.75)))
    employers = list(companies(seed, count))
    insert(connection, "companies", map(_company_row, employers))
    market, rng = careers.Market(employers, seed, staff={}), new_rng(seed, "people")
    for first in range(0, people, _BATCH):
        positions = range(first, min(first + _BATCH, people))
        rows = (careers.new_person(position, market, rng) for position in positions)
        insert(connection, "people", rows)


def _company_row(employer: Employer) -> Row:
    body = employer.body
    return {
        "number": employer.number,
        "id": body["id"],
        "name": words(body["name"]),
        "domain": body["website"].removeprefix("https://www."),
        "profnet_url": body["profnet_url"],
        "location": place_words(body["location"]),
        "size": body["size"],
        "type": body["type"],
        "industry": body["industry"].casefold(),
        "focuses": as_text([one for one in spec.SUGGESTED_COMPANY_FOCUSES if body[f"is_{one}"]]),
        "group_number": employer.group,
        "investors": as_text([words(name) for name in employer.investors]),
        "body": msgspec.json.encode(body),
    }


def sample_people(connection: sqlite3.Connection, count: int, seed: int) -> list[dict[str, Any]]:
    """Draw distinct people in random order, each with `company_domain` instead of `company`."""
    (total,) = connection.execute("SELECT count(*) FROM people").fetchone()
    positions = new_rng(seed, "sample").sample(range(total), min(count, total))
    rows = connection.execute(
        """SELECT people.body, domain FROM json_each(?) AS drawn
        JOIN people ON position = drawn.value JOIN companies ON number = company
        ORDER BY drawn.key""",
        (as_text(positions),),
    )
    return [msgspec.json.decode(body) | {"company_domain": domain} for body, domain in rows]
