"""People search of the sandbox: its filters and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from outreach_frames import spec
from outreach_frames.sandbox.records import open_world
from outreach_frames.sandbox.search import (
    RULES,
    SWITCHES,
    TITLE_EXACT,
    WHOLE_GROUPS,
    PeopleIndex,
    place_words,
    words,
)
from outreach_frames.sandbox.store import Store
from outreach_frames.sandbox.world import users

pytestmark = pytest.mark.long

PEOPLE = 1_000
Person = dict[str, Any]


class World:
    """A filled database, its index, and every person by the bytes of the search result."""

    def __init__(self, store: Store) -> None:
        self.connection = store.connection
        self.index = PeopleIndex(self.connection)
        _, bodies = self.index.search({}, page=1, page_size=PEOPLE)
        self.people: dict[bytes, Person] = {body: msgspec.json.decode(body) for body in bodies}

    def found(self, filters: dict[str, object]) -> set[bytes]:
        """Return all matching people."""
        total, bodies = self.index.search(filters, page=1, page_size=PEOPLE)
        assert total == len(bodies)
        return set(bodies)

    def total(self, filters: dict[str, object]) -> int:
        """Return the number of matching people."""
        return self.index.search(filters, page=1, page_size=1)[0]

    def column(self, sql: str) -> list[str]:
        """Return the first column of an SQL query's result."""
        return [row[0] for row in self.connection.execute(sql)]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Return one world for all tests, since searches change nothing."""
    with closing(open_world(PEOPLE, 0)) as store:
        yield World(store)


def seen(*path: str) -> Callable[[World], list[str]]:
    """Return the values of a person's field."""

    def values(world: World) -> list[str]:
        found = []
        for person in world.people.values():
            value: Any = person
            for name in path:
                value = value[name]
            found.append(value)
        return found

    return values


# Existing values for each including filter of spec.
VALUES: dict[str, Callable[[World], list[str]]] = {
    "person_name": seen("last_name"),
    "person_titles": seen("title"),
    "person_seniorities": lambda _: list(spec.SUGGESTED_SENIORITIES[3:5]),
    "person_departments": lambda _: list(spec.DEPARTMENTS[3:5]),
    "person_job_functions": lambda _: ["software_development", "logistics"],
    "person_locations": seen("location_details", "country"),
    "company_locations": seen("company", "location_details", "city"),
    "company_names": seen("company", "name"),
    "company_ids": seen("company", "id"),
    "education_company_ids": lambda world: world.column(
        "SELECT DISTINCT value FROM people, json_each(school_ids)"
    ),
    "education_company_names": lambda world: [
        education["school_name"]
        for person in world.people.values()
        for education in person["educations"]
    ],
    "company_domains": lambda world: world.column(
        "SELECT domain FROM companies JOIN people ON company = number"
    ),
    "company_profnet_urls": seen("company", "profnet_url"),
    "company_focuses": lambda _: list(spec.SUGGESTED_COMPANY_FOCUSES),
    "company_types": lambda _: list(spec.SUGGESTED_COMPANY_TYPES[:2]),
    "company_sizes": lambda _: list(spec.SUGGESTED_COMPANY_SIZES[2:4]),
    "company_industries": seen("company", "industry"),
    "profnet_networks": lambda _: [user.email for user in users(0)],
    "company_investors": lambda world: world.column(
        "SELECT DISTINCT value FROM companies, json_each(investors)"
        " WHERE number IN (SELECT company FROM people)"
    ),
    "company_shares_investors_with": lambda world: world.column(
        "SELECT name FROM companies WHERE investors <> '[]'"
    ),
}


def two_values(world: World, name: str) -> list[str]:
    """Return two different values for a filter or its opposite."""
    return list(dict.fromkeys(VALUES[spec.FILTERS_BY_NAME[name].excludes or name](world)))[:2]


def given(name: str, *values: str) -> dict[str, object]:
    """Return a search with one filter and values of its JSON type."""
    return {name: values[0] if spec.FILTERS_BY_NAME[name].type == "string" else list(values)}


EXCLUDING = [search_filter.name for search_filter in spec.FILTERS if search_filter.excludes]
SWITCH_NAMES = [switch for switch, _ in SWITCHES.values()]
ARRAYS = [search_filter.name for search_filter in spec.FILTERS if search_filter.type == "array"]


def test_every_filter_of_the_interface_has_a_rule() -> None:
    """The rules, their opposites and the two switches cover exactly the interface's filters."""
    assert {*RULES, *EXCLUDING, *SWITCH_NAMES} == set(spec.FILTERS_BY_NAME)
    assert set(VALUES) == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_values_are_alternatives_and_filters_are_conditions(world: World, name: str) -> None:
    """People match any value of a filter, in any case, and all filters."""
    first, second = two_values(world, name)
    found = world.found(given(name, first))
    assert 0 < len(found) < PEOPLE
    assert world.found(given(name, first.upper())) == found
    other: dict[str, object] = {"person_exclude_locations": ["France"], "company_ids": []}
    assert world.found({**other, **given(name, first)}) == world.found(other) & found
    if name in ARRAYS:
        alone = world.found(given(name, second))
        assert found != alone
        assert world.found(given(name, first, second)) == found | alone


@pytest.mark.parametrize("name", EXCLUDING)
def test_excluding_is_the_complement_of_including(world: World, name: str) -> None:
    """An including filter and its opposite split everybody into two groups."""
    values = two_values(world, name)
    included = world.found(given(spec.FILTERS_BY_NAME[name].excludes, *values))
    assert world.found(given(name, *values)) == set(world.people) - included


def test_values_that_nobody_has(world: World) -> None:
    """Unknown values and wildcards match nobody and exclude nobody; empty ones are ignored."""
    hostile = ("nobody-has-this.test", "%", "_", "%arke%", "*", "'; DROP TABLE people; --", '"')
    for name in [*RULES, *EXCLUDING]:
        expected = PEOPLE if name in EXCLUDING else 0
        for value in (*hostile, "\0"):
            assert world.total(given(name, value)) == expected, (name, value)
        assert world.total(given(name, "")) == PEOPLE
    for name in ARRAYS:
        assert world.total({name: []}) == PEOPLE
        assert world.total({name: ["", "nobody"]}) == world.total({name: ["nobody"]})


# Checks of visible fields, to compare with the search's results.
VISIBLE: dict[str, Callable[[Person, str], bool]] = {
    "company_ids": lambda person, value: value == person["company"]["id"],
    "company_domains": lambda person, value: person["company"]["website"] == f"https://www.{value}",
    "company_profnet_urls": lambda person, value: value == person["company"]["profnet_url"],
    "company_focuses": lambda person, value: person["company"][f"is_{value}"],
    "company_types": lambda person, value: value == person["company"]["type"],
    "company_sizes": lambda person, value: value == person["company"]["size"],
    "company_industries": lambda person, value: value == person["company"]["industry"],
    "education_company_names": lambda person, value: any(
        value in education["school_name"] for education in person["educations"]
    ),
}


@pytest.mark.parametrize("name", VISIBLE)
def test_the_search_agrees_with_visible_fields(world: World, name: str) -> None:
    """A search matches exactly the people whose visible fields match."""
    for value in two_values(world, name):
        expected = {body for body, p in world.people.items() if VISIBLE[name](p, value)}
        assert world.found(given(name, value)) == expected


@pytest.mark.parametrize(
    ("name", "value", "found", "missed"),
    [
        ("title", "CTO", "CTO", "Director"),
        ("title", "dir", "Director", "Redirector"),
        ("title", "software eng", "Software Engineer", "Engineer of Software"),
        ("title", "engineer software", "Engineer, Software", "Software Engineer"),
        ("title", "vp", "VP, Sales", "VPN Engineer"),
        ("location", "DE", "Delft, DE", "Paris, Île-de-France, France"),
        ("location", "munchen", "München, Bavaria, Germany", "Garching, Bavaria, Germany"),
        ("location", "Munich, Germany", "Munich, Bavaria, Germany", "Germany, Munich"),
        ("location", "York", "New York, New York, United States", "Newyork, England"),
        ("name", "jose", "José Núñez", "Banjose Li"),
        ("name", "GROSSMANN", "Jörn Großmann", "Jörn Grosmann"),
        ("name", "łukasz", "LUKASZ Nowak", "Ukasz Nowak"),
        ("name", "田", "田 太郎", "由 太郎"),
        ("name", "प्रि", "प्रिया शर्मा", "अप्रिया"),
    ],
)
def test_how_a_text_matches(name: str, value: str, found: str, missed: str) -> None:
    """Short values are whole words or places, longer ones prefixes, without case and accents."""
    filters = {"title": "person_titles", "location": "person_locations", "name": "person_name"}
    with closing(open_world(1, 0)) as store:
        for text, total in ((found, 1), (missed, 0)):
            searched = place_words(text) if name == "location" else words(text)
            store.connection.execute(f"UPDATE people SET {name} = ?", [searched])
            index = PeopleIndex(store.connection)
            assert index.search(given(filters[name], value), page=1, page_size=1)[0] == total, text


def test_titles_match_in_part_or_exactly(world: World) -> None:
    """Titles match in part, or as a whole with the exact match."""
    part = world.found({"person_titles": ["software engineer"]})
    exact = world.found({"person_titles": ["software engineer"], TITLE_EXACT: True})
    assert {world.people[body]["title"] for body in exact} == {"Software Engineer"}
    assert exact < part
    accented = {"person_titles": ["SÓFTWARE engineer"], TITLE_EXACT: True}
    assert world.found(accented) == exact
    assert not world.found({"person_titles": ["software eng"], TITLE_EXACT: True})
    assert world.found({"person_titles": ["software engineer"], TITLE_EXACT: False}) == part


def test_a_domain_can_match_its_whole_group(world: World) -> None:
    """With the switch, a domain matches its whole group, but excludes only itself."""
    groups = """SELECT group_number FROM companies WHERE number IN (SELECT company FROM people)
        GROUP BY group_number HAVING count(*) > 2"""
    group = world.column(groups)[0]
    domains = world.column(
        f"SELECT domain FROM companies WHERE group_number = {group} AND number IN "
        "(SELECT company FROM people)"
    )
    alone = world.found({"company_domains": domains[:1]})
    whole = world.found({"company_domains": domains[:1], WHOLE_GROUPS: True})
    assert alone < whole == world.found({"company_domains": domains})
    assert whole == world.found({"company_domains": domains[-1:], WHOLE_GROUPS: True})
    excluded: dict[str, object] = {"company_exclude_domains": domains[:1], WHOLE_GROUPS: True}
    assert world.found(excluded) == set(world.people) - alone
    assert world.found(dict.fromkeys(SWITCH_NAMES, True)) == set(world.people)


def test_companies_share_investors_with_other_companies(world: World) -> None:
    """The filter matches people at other companies with a common investor."""
    companies = world.connection.execute("SELECT name, id, investors FROM companies").fetchall()
    investors = {name: set(msgspec.json.decode(found)) for name, _, found in companies}
    name = two_values(world, "company_shares_investors_with")[0]
    common = [
        company_id
        for other, company_id, _ in companies
        if other != name and investors[other] & investors[name]
    ]
    expected = world.found({"company_ids": common})
    assert expected
    assert world.found({"company_shares_investors_with": [name]}) == expected


def test_many_values(world: World) -> None:
    """A filter accepts many thousands of values."""
    many = [f"nobody-{number}" for number in range(40_000)]
    known = two_values(world, "company_domains")[:1]
    assert world.found({"company_domains": many + known}) == world.found({"company_domains": known})
    assert world.total({"person_titles": many, TITLE_EXACT: True}) == 0


@pytest.mark.parametrize("filters", [{}, {"person_locations": ["Germany", "Japan"]}])
@pytest.mark.parametrize("page_size", [1, 7, 100])
def test_pages_have_no_gaps_and_no_repeats(
    world: World, filters: dict[str, object], page_size: int
) -> None:
    """The pages together are the whole result, in the order of the world."""
    total, whole = world.index.search(filters, page=1, page_size=PEOPLE)
    pages: list[bytes] = []
    for page in range(1, -(-total // page_size) + 1):
        page_total, bodies = world.index.search(filters, page=page, page_size=page_size)
        assert page_total == total
        pages += bodies
    assert pages == whole == [body for body in world.people if body in set(whole)]
    assert world.index.search(filters, page=page + 1, page_size=page_size) == (total, [])
    assert world.index.search(filters, page=10**12, page_size=page_size) == (total, [])
