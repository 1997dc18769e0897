"""People search of the sandbox: its filters and pages."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import hypothesis
import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from outreach_frames import spec
from outreach_frames.sandbox.population import fill
from outreach_frames.sandbox.rules import Refusal
from outreach_frames.sandbox.search import (
    RULES,
    SWITCHES,
    TITLE_EXACT,
    WHOLE_GROUPS,
    PeopleIndex,
    place_words,
    words,
)

pytestmark = pytest.mark.long

PEOPLE = 2_000
Person = dict[str, Any]


class World:
    """A filled database, its index, and every person by the bytes of the search result."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.index = PeopleIndex(connection)
        _, bodies = self.index.search({}, page=1, page_size=PEOPLE)
        self.people: dict[bytes, Person] = {body: orjson.loads(body) for body in bodies}

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
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, people=PEOPLE, seed=0)
        yield World(connection)


def seen(*path: str) -> Callable[[World], list[str]]:
    """Return two different values of a person's field."""

    def values(world: World) -> list[str]:
        found = []
        for person in world.people.values():
            value: Any = person
            for name in path:
                value = value[name]
            found.append(value)
        return list(dict.fromkeys(found))[:2]

    return values


def asked(sql: str) -> Callable[[World], list[str]]:
    """Return the first two values of an SQL query, for filters on hidden fields."""
    return lambda world: world.column(sql)[:2]


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
    "education_company_ids": asked("SELECT id FROM schools"),
    "education_company_names": asked("SELECT name FROM schools"),
    "company_domains": asked(
        "SELECT DISTINCT domain FROM companies JOIN people ON company = number"
    ),
    "company_profnet_urls": seen("company", "profnet_url"),
    "company_focuses": lambda _: list(spec.SUGGESTED_COMPANY_FOCUSES),
    "company_types": lambda _: list(spec.SUGGESTED_COMPANY_TYPES[:2]),
    "company_sizes": lambda _: list(spec.SUGGESTED_COMPANY_SIZES[2:4]),
    "company_industries": seen("company", "industry"),
    "profnet_networks": asked("SELECT email FROM network_users"),
    "company_investors": asked(
        "SELECT DISTINCT investors.name FROM investors JOIN company_investors ON number = investor "
        "JOIN people USING (company)"
    ),
    "company_shares_investors_with": asked(
        "SELECT DISTINCT name FROM companies JOIN company_investors ON company = number"
    ),
}


def given(world: World, name: str, values: list[str] | None = None) -> dict[str, object]:
    """Return a search with one filter and values of its JSON type."""
    search_filter = spec.FILTERS_BY_NAME[name]
    values = values or VALUES[search_filter.excludes or name](world)[:1]
    return {name: values[0] if search_filter.type == "string" else values}


def names(**attributes: object) -> list[str]:
    """Return the names of spec's filters with certain attributes."""
    return [
        search_filter.name
        for search_filter in spec.FILTERS
        if all(getattr(search_filter, key) == value for key, value in attributes.items())
    ]


def _including(name: str) -> str:
    return spec.FILTERS_BY_NAME[name].excludes or name


EXCLUDING = [search_filter.name for search_filter in spec.FILTERS if search_filter.excludes]
WITH_VALUES = [name for name in names() if name not in names(type="boolean")]


def test_every_filter_of_the_interface_has_a_rule() -> None:
    """The rules, their opposites and the two switches cover exactly the interface's filters."""
    assert {*RULES, *EXCLUDING, *SWITCHES} == set(names())
    assert set(SWITCHES) == set(names(type="boolean"))
    assert set(VALUES) == set(RULES)


@pytest.mark.parametrize("name", WITH_VALUES)
def test_every_filter_narrows_the_search(world: World, name: str) -> None:
    """A value in the world matches some people and not all."""
    assert 0 < len(world.found(given(world, name))) < PEOPLE


@pytest.mark.parametrize("name", EXCLUDING)
def test_excluding_is_the_complement_of_including(world: World, name: str) -> None:
    """An including filter and its opposite split everybody into two groups."""
    values = VALUES[spec.FILTERS_BY_NAME[name].excludes](world)
    included = world.found({spec.FILTERS_BY_NAME[name].excludes: values})
    assert world.found({name: values}) == set(world.people) - included


@pytest.mark.parametrize("name", names(type="array"))
def test_several_values_mean_any_of_them(world: World, name: str) -> None:
    """Two values match people with either, and two excluded values match people with neither."""
    excludes = spec.FILTERS_BY_NAME[name].excludes
    first, second = VALUES[excludes or name](world)
    apart = [world.found({name: [value]}) for value in (first, second)]
    expected = apart[0] & apart[1] if excludes else apart[0] | apart[1]
    assert apart[0] != apart[1]
    assert world.found({name: [first, second]}) == expected


@pytest.mark.parametrize("name", WITH_VALUES)
def test_different_filters_mean_all_of_them(world: World, name: str) -> None:
    """Different filters match people who match all of them."""
    other: dict[str, object] = {"person_exclude_locations": ["France"], "company_focuses": ["b2b"]}
    other.pop(name, None)
    both = world.found({**other, **given(world, name)})
    assert both == world.found(other) & world.found(given(world, name))


@pytest.mark.parametrize("name", WITH_VALUES)
def test_letters_match_in_any_case(world: World, name: str) -> None:
    """The same value in capitals matches the same people."""
    values = VALUES[spec.FILTERS_BY_NAME[name].excludes or name](world)[:1]
    upper = [value.upper() for value in values]
    assert world.found(given(world, name, upper)) == world.found(given(world, name, values))


@pytest.mark.parametrize("name", WITH_VALUES)
def test_special_characters_are_literal(world: World, name: str) -> None:
    """Wildcards and quotes are no wildcards and match nobody."""
    expected = PEOPLE if spec.FILTERS_BY_NAME[name].excludes else 0
    for value in ("%", "_", "%arke%", "*", "'; DROP TABLE people; --", '"', "\0"):
        assert world.total(given(world, name, [value])) == expected, value


# Checks of visible fields, to compare with the search's results.
VISIBLE: dict[str, Callable[[Person, str], bool]] = {
    "person_name": lambda person, value: value in person["name"].split(),
    "person_titles": lambda person, value: value in person["title"],
    "person_locations": lambda person, value: value in person["location"],
    "company_locations": lambda person, value: value in person["company"]["location"],
    "company_names": lambda person, value: value in person["company"]["name"],
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
    for value in VALUES[name](world):
        expected = {body for body, p in world.people.items() if VISIBLE[name](p, value)}
        assert world.found(given(world, name, [value])) == expected


def plain_words(text: str) -> list[str]:
    """Return the words of a text, lowercase and without accents, letter by letter."""
    dotless = "\N{LATIN SMALL LETTER DOTLESS I}"
    without_stroke = {"ł": "l", "ø": "o", "đ": "d", "æ": "ae", dotless: "i"}
    written = ""
    for letter in unicodedata.normalize("NFD", text.casefold()):
        name = unicodedata.name(letter, "")
        if not unicodedata.combining(letter):
            plain = without_stroke.get(letter, letter)
            written += plain if letter.isalnum() or "VOWEL SIGN" in name else " "
    return written.split()


def has_words(text: str, value: str) -> bool:
    """Return whether a text has the words of a value in a row; the last may be a prefix."""
    asked, present = plain_words(value), plain_words(text)
    for start in range(len(present) - len(asked) + 1 if asked else 0):
        *first, last = present[start : start + len(asked)]
        if first == asked[:-1] and (
            last == asked[-1] or (len(asked[-1]) >= 3 and last.startswith(asked[-1]))
        ):
            return True
    return False


def has_place(location: str, value: str) -> bool:
    """Return whether the city, state or country has the words, or is the same if it is short."""
    is_short = len(plain_words(value)[-1]) < 3 if plain_words(value) else True
    return any(
        plain_words(part) == plain_words(value) if is_short else has_words(part, value)
        for part in location.split(", ")
    )


SEARCHED_TEXTS: dict[str, tuple[Callable[[Person], str], Callable[[str, str], bool]]] = {
    "person_name": (lambda person: person["name"], has_words),
    "person_titles": (lambda person: person["title"], has_words),
    "company_names": (lambda person: person["company"]["name"], has_words),
    "person_locations": (lambda person: person["location"], has_place),
    "company_locations": (lambda person: person["company"]["location"], has_place),
}


@pytest.mark.parametrize("name", SEARCHED_TEXTS)
@hypothesis.given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_texts_match_by_words(world: World, name: str, data: st.DataObject) -> None:
    """Any part of a text matches the same people as a comparison of words, one by one."""
    text_of, matches = SEARCHED_TEXTS[name]
    texts = sorted({text_of(person) for person in world.people.values()})
    text = data.draw(st.sampled_from(texts)).split(", ")[0]
    start = data.draw(st.integers(0, len(text) - 1))
    value = text[start : data.draw(st.integers(start + 1, len(text)))]
    value = data.draw(st.sampled_from([str.lower, str.upper, str.title]))(value)
    expected = {body for body, p in world.people.items() if matches(text_of(p), value)}
    assert world.found(given(world, name, [value])) == expected


@pytest.mark.parametrize(
    ("name", "value", "found", "missed"),
    [
        ("person_titles", "CTO", "CTO", "Director"),
        ("person_titles", "dir", "Director", "Redirector"),
        ("person_titles", "software eng", "Software Engineer", "Engineer of Software"),
        ("person_titles", "engineer software", "Engineer, Software", "Software Engineer"),
        ("person_titles", "vp", "VP, Sales", "VPN Engineer"),
        ("person_locations", "DE", "Delft, DE", "Paris, Île-de-France, France"),
        ("person_locations", "munchen", "München, Bavaria, Germany", "Garching, Bavaria, Germany"),
        ("person_locations", "Munich, Germany", "Munich, Bavaria, Germany", "Germany, Munich"),
        ("person_locations", "York", "New York, New York, United States", "Newyork, England"),
        ("person_name", "jose", "José Núñez", "Banjose Li"),
        ("person_name", "प्रि", "प्रिया शर्मा", "अप्रिया"),
    ],
)
def test_how_a_text_matches(name: str, value: str, found: str, missed: str) -> None:
    """Short values are whole words or places, longer ones prefixes, without accents."""
    column = {"person_titles": "roles.title", "person_locations": "places.location"}
    table, field = column.get(name, "people.name").split(".")
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, people=1, seed=0)
        for text, total in ((found, 1), (missed, 0)):
            searched = place_words(text) if field == "location" else words(text)
            connection.execute(f"UPDATE {table} SET {field} = ?", [searched])
            query = {name: value if field == "name" else [value]}
            assert PeopleIndex(connection).search(query, page=1, page_size=1)[0] == total, text


def test_accented_and_other_letters_are_found_in_any_case(world: World) -> None:
    """Case is ignored in every script, not only in ASCII."""
    words = [word for person in world.people.values() for word in person["name"].split()]
    for letter in "üßкŁ田":
        text = next(word for word in words if letter in word)
        expected = {body for body, person in world.people.items() if text in person["name"]}
        for written in (text, text.upper(), text.lower()):
            assert world.found({"person_name": written}) == expected


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
    """With the switch for groups, any member's domain matches the parent and all subsidiaries."""
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


def test_excluding_a_domain_excludes_no_other(world: World) -> None:
    """The switch for groups does not affect excluded domains."""
    excluded: dict[str, object] = {"company_exclude_domains": VALUES["company_domains"](world)}
    assert world.found({**excluded, WHOLE_GROUPS: True}) == world.found(excluded)


def test_switches_alone_change_nothing(world: World) -> None:
    """A switch without its filter matches everybody."""
    assert world.found(dict.fromkeys(SWITCHES, True)) == set(world.people)


def test_all_networks_are_the_networks_of_all_users(world: World) -> None:
    """The special value matches people in any user's network."""
    emails = world.column("SELECT email FROM network_users")
    everyone = world.found({"profnet_networks": [spec.ALL_NETWORKS]})
    assert everyone == world.found({"profnet_networks": emails})
    assert 0 < len(everyone) < PEOPLE


def test_companies_share_investors_with_other_companies(world: World) -> None:
    """The filter matches people at other companies with a common investor."""
    (name,) = VALUES["company_shares_investors_with"](world)[:1]
    common = world.column(
        f"""SELECT DISTINCT other.company FROM company_investors AS other WHERE investor IN (
            SELECT investor FROM company_investors JOIN companies ON number = company
            WHERE name = '{name}') AND other.company <> (
            SELECT number FROM companies WHERE name = '{name}')"""
    )
    ids = dict(world.connection.execute("SELECT number, id FROM companies").fetchall())
    expected = world.found({"company_ids": [ids[company] for company in common]})
    assert world.found({"company_shares_investors_with": [name]}) == expected


@pytest.mark.parametrize("name", names(type="array"))
def test_unknown_values_match_nobody(world: World, name: str) -> None:
    """An unknown value matches nobody and excludes nobody."""
    expected = PEOPLE if spec.FILTERS_BY_NAME[name].excludes else 0
    assert world.total({name: ["nobody-has-this.test"]}) == expected


@pytest.mark.parametrize("values", [[], [""]])
def test_empty_values_are_ignored(world: World, values: list[str]) -> None:
    """An empty list or text matches everybody."""
    for name in names(type="array"):
        assert world.total({name: values}) == PEOPLE
        assert world.total({name: [*values, "nobody"]}) == world.total({name: ["nobody"]})


def test_every_value_of_the_index_matches(world: World) -> None:
    """Every school, investor and network user of the index matches somebody."""
    for name, school_id in world.index.school_ids().items():
        found = world.total({"education_company_ids": [school_id]})
        assert 0 < found <= world.total({"education_company_names": [name]})
    for investor in world.index.investors():
        assert world.total({"company_investors": [investor]})
    for email in world.index.network_users():
        assert world.total({"profnet_networks": [email]})
    attended = {
        education["school_name"]
        for person in world.people.values()
        for education in person["educations"]
    }
    assert set(world.index.school_ids()) == attended
    assert len(world.index.investors()) > 20
    assert len(world.index.network_users()) == 6


SEARCHED = [name for name in names(type="array") if "instr" in RULES[_including(name)].condition]


@pytest.mark.parametrize("name", names(type="array"))
def test_many_values(world: World, name: str) -> None:
    """Filters that search in texts accept at most 1,000 values, and others have no limit."""
    known = VALUES[_including(name)](world)[:1]
    most = 999 if name in SEARCHED else 40_000
    many = [f"nobody-{number}" for number in range(most)]
    assert world.found({name: many + known}) == world.found({name: known})
    if name in SEARCHED:
        with pytest.raises(Refusal, match=f"{name} accepts at most 1,000 values") as refused:
            world.total({name: [*many, "nobody", *known]})
        assert refused.value.status == 400


def test_many_exact_titles(world: World) -> None:
    """Titles that match exactly have no limit."""
    many = [f"nobody-{number}" for number in range(40_000)]
    assert world.total({"person_titles": many, TITLE_EXACT: True}) == 0


@pytest.mark.parametrize("filters", [{}, {"company_focuses": ["b2b"]}, {"person_name": "mar"}])
@pytest.mark.parametrize("page_size", [1, 7, 100])
def test_pages_have_no_gaps_and_no_repeats(
    world: World, filters: dict[str, object], page_size: int
) -> None:
    """The pages together are the whole result in the same order."""
    total, whole = world.index.search(filters, page=1, page_size=PEOPLE)
    pages: list[bytes] = []
    for page in range(1, -(-total // page_size) + 1):
        page_total, bodies = world.index.search(filters, page=page, page_size=page_size)
        assert page_total == total
        pages += bodies
    assert pages == whole
    assert world.index.search(filters, page=page + 1, page_size=page_size) == (total, [])
    assert world.index.search(filters, page=10**12, page_size=page_size) == (total, [])


def test_results_come_in_the_worlds_order(world: World) -> None:
    """A filtered result has the order of the unfiltered one."""
    filters: dict[str, object] = {"person_locations": ["Germany", "Japan"]}
    _, bodies = world.index.search(filters, page=1, page_size=PEOPLE)
    found = set(bodies)
    assert bodies == [body for body in world.people if body in found]


def test_cached_searches_are_independent(world: World) -> None:
    """Each search keeps its own result, even with more searches than the cache holds."""
    searches = [given(world, name) for name in WITH_VALUES]
    fresh = [world.found(filters) for filters in searches]
    assert [world.found(filters) for filters in reversed(searches)] == fresh[::-1]


def test_a_result_is_a_whole_person(world: World) -> None:
    """Every result is JSON with exactly the documented fields, also of the company."""
    for person in world.people.values():
        assert set(person) == {field.name for field in spec.PERSON}
        assert set(person["company"]) == {field.name for field in spec.COMPANY}
    companies = {
        orjson.loads(body)["id"]
        for (body,) in world.connection.execute("SELECT body FROM company_bodies")
    }
    assert {person["company"]["id"] for person in world.people.values()} <= companies
