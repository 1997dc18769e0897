"""Pages are read as the untyped reader reads them, whatever a reader has learned before."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outreach_frames.errors import InvalidResponseError
from outreach_frames.reading.flatten import concat_people
from outreach_frames.reading.pages import PeopleReader, as_one_page
from tests.examples import share_of_examples
from tests.reading.pages import read_slowly
from tests.reading.people_strategies import responses_at_every_level

CHOSEN = [
    ["id", "company_name", "company_founded_year", "current_position_start_date"],
    ["company_locations", "experiences", "id"],
]
THREADS = 3

Make = Callable[[Random], Any]
# Values of one kind; the last ones need the untyped reader now and then.
KINDS: list[Make] = [
    lambda r: str(r.randint(0, 9)),
    lambda r: r.randint(-9, 9),
    lambda r: r.randint(0, 9) / 4,
    lambda r: r.random() < 0.5,
    lambda r: [text(r) for _ in range(r.randint(0, 2))],
    lambda r: [r.randint(0, 9) / 2 for _ in range(r.randint(0, 2))],
    lambda r: {"a": text(r), "z": {"deep": r.randint(0, 9)}},
    lambda r: [{"a": r.choice([1, 2.5, None]), "b": text(r)} for _ in range(r.randint(0, 2))],
    lambda r: [
        {"y": r.choice([{}, {"k": text(r)}, {"k": None}, None]), "x": r.randint(0, 9)}
        for _ in range(r.randint(0, 2))
    ],
    lambda r: r.choice([{}, {"a": None}, {"a": 1}]),
    lambda r: r.choice([2**53 + 1, 0.5, 2**63, 1e22, float("nan"), -0.0, "2020-01-01T00:00:00Z"]),
]
# Names of undocumented and documented fields at every level.
PLACES: dict[str, list[str]] = {
    "response": ["took", "_links"],
    "_pagination": ["has_more", "total"],
    "person": ["score", "zz", "name", "id", "company_name", "current_position_start_date", "value"],
    "location_details": ["zip", "lat", "city"],
    "experience": ["company_id", "title", "zz", "location"],
    "company": [
        *("growth", "zz", "founded_year", "locations", "total_funding", "is_b2b", "keywords"),
        *("sic_codes", "technologies", "title"),
    ],
}


def text(random: Random) -> str:
    """Return a short text, at times with the name of a field."""
    return random.choice(["x", "", "Zoë", '"zz": 1', ',"score":', "2024-02-29", "\\u0041"])


class Service:
    """A service that sends some fields with other types, or that are not documented."""

    def __init__(self, random: Random) -> None:
        self.random = random
        every = [(place, name) for place, names in PLACES.items() for name in names]
        chosen = random.sample(every, random.randint(0, 5))
        self.kinds = {one: random.choice(KINDS) for one in chosen}

    def page(self) -> bytes:
        """Return a page on which some of the fields are absent, null or of other types."""
        random = self.random
        modes = {one: random.choice(["some", "all", "all", "null", "absent"]) for one in self.kinds}
        ascii_only = random.random() < 0.2

        def further(place: str) -> dict[str, Any]:
            found = {}
            for (where, name), make in self.kinds.items():
                mode = modes[where, name]
                if mode == "some":
                    mode = random.choice(["all", "null", "absent"])
                if where == place and mode != "absent":
                    other = random.choice(KINDS) if random.random() < 0.02 else make
                    found[name] = other(random) if mode == "all" else None
            return found

        def person(number: int) -> dict[str, Any] | None:
            if random.random() < 0.05:
                return None
            experiences = [{"title": "CTO", **further("experience")}] * random.randint(0, 2)
            company = {"name": "Brightforge", "founded_year": 1999, "total_funding": 2.5}
            return {
                "id": str(number),
                "current_position_start_date": random.choice(["2020-01-02", None, "2020-01-02"]),
                "location_details": random.choice(
                    [None, {"lat": 1, **further("location_details")}]
                ),
                "experiences": experiences,
                "company": random.choice([None, company | further("company")]),
            } | further("person")

        people = [person(number) for number in range(random.randint(0, 3))]
        page = {"results": people, "_pagination": {"page": 1, **further("_pagination")}}
        return json.dumps(page | further("response"), ensure_ascii=ascii_only).encode()


def check(bodies: Sequence[bytes], random: Random) -> None:
    """Check threads that share a reader: each reads the pages in other groups."""
    expected = [read_slowly(one) for one in bodies]
    reader = PeopleReader()

    def read(thread: int) -> None:
        order = [(thread + number) % len(bodies) for number in range(len(bodies))]
        sizes = [1, len(bodies), random.randint(1, len(bodies))]
        size = sizes[thread % len(sizes)]
        for begin in range(0, len(order), size):
            group = order[begin : begin + size]
            check_group([bodies[number] for number in group], [expected[one] for one in group])

    def check_group(sent: Sequence[bytes], wanted: Sequence[Any]) -> None:
        if None in wanted:
            with pytest.raises(InvalidResponseError):
                reader.read(sent)
            return
        people = concat_people([page[0] for page in wanted])
        found = as_one_page(reader.read(sent))
        assert found.people.schema.equals(people.schema)
        assert found.people.equals(people)
        heads = [[head.rows, head.pagination, head.errors] for head in found.heads]
        assert heads == [[len(page[0]), *page[1:]] for page in wanted]
        for columns in CHOSEN:
            some = as_one_page(reader.read(sent, columns)).people
            assert some.select(columns).equals(people.select(columns))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(read, range(THREADS)))


def check_services(first: int, last: int) -> None:
    """Check a group of pages of each of these services, which are drawn by number."""
    for number in range(first, last):
        random = Random(number)
        service = Service(random)
        check([service.page() for _ in range(random.randint(1, 6))], random)


@share_of_examples(0.5)
@example([b'{"took":3,"results":[{"zz":1}],"_pagination":{}}'] * 3)
@given(st.lists(responses_at_every_level(), min_size=1, max_size=4))
def test_pages_do_not_depend_on_what_was_learned(bodies: list[bytes]) -> None:
    """Threads that learn from random pages read them as the untyped reader does."""
    check(bodies, Random(0))


def test_groups_are_read_as_single_pages() -> None:
    """Groups of pages with learned fields have the columns, types and values of single pages."""
    check_services(0, 10)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_groups_are_read_as_single_pages() -> None:
    """2,000 groups of pages have the columns, types and values of single pages."""
    check_services(10, 2010)
