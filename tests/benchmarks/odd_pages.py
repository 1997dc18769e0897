"""Measure the CPU time of pages with undocumented content relative to documented pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import process_time
from typing import Any

import msgspec
import pandas as pd

from outreach_frames import spec
from outreach_frames.reading.pages import PeopleReader
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.pages import people_pages
from tests.benchmarks.timing import seconds
from tests.reading.pages import people_frame

PAGES = 100
# A search reads the first page alone, then groups of this size.
_AT_ONCE = 6


def compare() -> Iterator[Comparison]:
    """Measure 100 pages of 100 people with several kinds of changes."""
    plain = people_pages(PAGES)
    shown = seconds(lambda: read_as_search(plain), clock=process_time)
    for what, change, goal in (
        ("pages with objects in `locations`", with_objects, 2),
        ("pages with five undocumented fields", with_unknown_fields, 2),
        ("pages with mixed types in one field", with_mixed_types, 6),
    ):
        bodies = [changed(body, change) for body in plain]
        yield Comparison(
            f"processor time to parse {what}",
            "pages exactly as documented",
            seconds(lambda bodies=bodies: read_as_search(bodies), clock=process_time),
            shown,
            goal=goal,
            at_most=True,
        )


def read_as_search(bodies: Sequence[bytes]) -> pd.DataFrame:
    """Read pages in the order and groups of a search with one worker."""
    groups = [bodies[:1], *(bodies[i : i + _AT_ONCE] for i in range(1, len(bodies), _AT_ONCE))]
    reader = PeopleReader()
    return people_frame([page for group in groups for page in reader.read(group)])


def changed(body: bytes, change: Callable[[dict[str, Any], int], None]) -> bytes:
    """Apply a change to every person on a page."""
    document = msgspec.json.decode(body)
    for number, person in enumerate(document[spec.RESULTS_KEY]):
        change(person, number)
    return msgspec.json.encode(document)


def with_objects(person: dict[str, Any], number: int) -> None:
    """Replace each of a company's locations by an object."""
    company = person["company"]
    company["locations"] = [
        {"name": name, "is_primary": not place, "lat": 48.5 + number / 7, "long": 7.25}
        for place, name in enumerate(company["locations"])
    ]


def with_one_unknown_field(person: dict[str, Any], number: int) -> None:
    """Add an undocumented field to a person."""
    person["score"] = number


def with_unknown_fields(person: dict[str, Any], number: int) -> None:
    """Add undocumented fields to a person and the company."""
    person.update(department="sales", score=number, updated_at="2024-01-31T10:20:30Z")
    person["company"].update(growth=number + 0.5, address={"street": f"Street {number}"})


def with_mixed_types(person: dict[str, Any], number: int) -> None:
    """Replace every fiftieth year by text."""
    if number % 50 == 3:
        person["company"]["founded_year"] = str(person["company"]["founded_year"])
