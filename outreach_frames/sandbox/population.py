"""Create, fill and sample the tables of companies and people.

Search filters read narrow tables; separate tables store the bodies. `search` prepares the
searched texts. Numbers and positions count from 0.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

import orjson

from outreach_frames.sandbox import careers
from outreach_frames.sandbox.companies import Employer, companies
from outreach_frames.sandbox.names import new_rng
from outreach_frames.sandbox.search import place_words, words
from outreach_frames.sandbox.world import investors, schools, users

# Larger worlds have more people per company; `MAX_COMPANIES` bounds memory.
COMPANIES_EXPONENT: Final = 0.75
MAX_COMPANIES: Final = 10_000
_BATCH: Final = 2_000

_TABLES: Final = {
    "companies": """
        number INTEGER PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL, domain TEXT NOT NULL,
        profnet_url TEXT NOT NULL, location TEXT NOT NULL, size TEXT NOT NULL, type TEXT NOT NULL,
        industry TEXT NOT NULL, group_number INTEGER NOT NULL""",
    "company_bodies": "number INTEGER PRIMARY KEY, body BLOB NOT NULL",
    "company_focuses": "focus TEXT NOT NULL, company INTEGER NOT NULL",
    "company_investors": "investor INTEGER NOT NULL, company INTEGER NOT NULL",
    "investors": "number INTEGER PRIMARY KEY, name TEXT NOT NULL, folded TEXT NOT NULL",
    "schools": """
        number INTEGER PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL""",
    "network_users": "bit INTEGER PRIMARY KEY, email TEXT NOT NULL",
    "roles": """
        number INTEGER PRIMARY KEY, title TEXT NOT NULL, seniority TEXT NOT NULL,
        department TEXT NOT NULL, job_function TEXT NOT NULL""",
    "places": "number INTEGER PRIMARY KEY, location TEXT NOT NULL",
    "people": """
        position INTEGER PRIMARY KEY, name TEXT NOT NULL, role INTEGER NOT NULL,
        place INTEGER NOT NULL, company INTEGER NOT NULL, networks INTEGER NOT NULL""",
    "person_bodies": "position INTEGER PRIMARY KEY, company INTEGER NOT NULL, body BLOB NOT NULL",
    "educations": "school INTEGER NOT NULL, person INTEGER NOT NULL",
}
# These indexes are created after inserting the rows, which is faster.
_INDEXES: Final = {
    "people_company": "people (company, position)",
    "educations_school": "educations (school, person)",
    "company_investors_investor": "company_investors (investor, company)",
}


T = TypeVar("T")


def fill(connection: sqlite3.Connection, *, people: int, seed: int) -> None:
    """Create the tables and fill them; the same seed and number of people give the same bytes.

    >>> connection = sqlite3.connect(":memory:")
    >>> fill(connection, people=20, seed=0)
    >>> connection.execute("SELECT count(*) FROM people").fetchone()
    (20,)
    >>> connection.close()
    """
    for table, columns in _TABLES.items():
        connection.execute(f"CREATE TABLE {table} ({columns})")
    learned = schools(seed)
    _insert(connection, "schools", ((s.number, s.id, s.name, words(s.name)) for s in learned))
    known = enumerate(users(seed))
    _insert(connection, "network_users", ((bit, user.email.casefold()) for bit, user in known))
    funds = enumerate(investors(seed))
    _insert(connection, "investors", ((number, name, words(name)) for number, name in funds))
    employers = _fill_companies(connection, seed, company_count(people))
    roles: dict[careers.Role, int] = {}
    places: dict[str, int] = {}
    market, rng = careers.Market(employers, learned), new_rng(seed, "people")
    for positions in _batches(range(people)):
        batch = [careers.new_person(position, market, rng) for position in positions]
        _insert_people(connection, positions[0], batch, roles, places)
        connection.commit()
    _insert(
        connection,
        "roles",
        ((number, words(role.title), *role[1:]) for role, number in roles.items()),
    )
    _insert(connection, "places", ((number, place_words(text)) for text, number in places.items()))
    for index, columns in _INDEXES.items():
        connection.execute(f"CREATE INDEX {index} ON {columns}")
    connection.commit()


def company_count(people: int) -> int:
    """Return the number of companies for a number of people.

    >>> company_count(2_000), company_count(1_000_000)
    (299, 10000)
    """
    return min(MAX_COMPANIES, max(1, round(math.pow(people, COMPANIES_EXPONENT))))


def add_people(connection: sqlite3.Connection, first: int, joining: list[careers.Person]) -> None:
    """Add people to a filled database, at consecutive positions from `first`."""
    roles = {person.role: role_number(connection, person.role) for person in joining}
    places = {
        one.location: _find_or_add(connection, "places", place_words(one.location))
        for one in joining
    }
    _insert_people(connection, first, joining, roles, places)


def role_number(connection: sqlite3.Connection, role: careers.Role) -> int:
    """Return the number of a role; add it if it is new."""
    return _find_or_add(connection, "roles", words(role.title), *role[1:])


def _find_or_add(connection: sqlite3.Connection, table: str, *texts: str) -> int:
    """Return the `number` of a role or place; add the role or place if it is new."""
    columns = _TABLES[table].replace("TEXT NOT NULL", "").split(",", 1)[1]
    marks = ", ".join("?" * len(texts))
    query = f"SELECT number FROM {table} WHERE ({columns}) = ({marks})"  # noqa: S608 - from _TABLES
    found = connection.execute(query, texts).fetchone()
    if found is None:
        found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
        _insert(connection, table, [(*found, *texts)])
    return int(found[0])


def sample_people(connection: sqlite3.Connection, count: int, seed: int) -> list[dict[str, Any]]:
    """Draw distinct people in random order, each with `company_domain` instead of `company`."""
    (total,) = connection.execute("SELECT count(*) FROM people").fetchone()
    positions = new_rng(seed, "sample").sample(range(total), min(count, total))
    rows = connection.execute(
        """SELECT person_bodies.body, companies.domain FROM json_each(?) AS drawn
        JOIN person_bodies ON position = drawn.value
        JOIN companies ON companies.number = company ORDER BY drawn.key""",
        (orjson.dumps(positions).decode(),),
    )
    return [orjson.loads(body) | {"company_domain": domain} for body, domain in rows]


def _insert(connection: sqlite3.Connection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    marks = ", ".join("?" * (_TABLES[table].count(",") + 1))
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - from _TABLES


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch


def _fill_companies(connection: sqlite3.Connection, seed: int, count: int) -> list[Employer]:
    employers: list[Employer] = []
    for batch in _batches(companies(seed, count)):
        chosen = [employer for employer, _ in batch]
        employers += chosen
        _insert(connection, "companies", (_company_row(employer) for employer in chosen))
        _insert(connection, "company_bodies", ((e.number, body) for e, body in batch))
        _insert(
            connection,
            "company_focuses",
            ((focus, e.number) for e in chosen for focus in e.focuses),
        )
        _insert(
            connection,
            "company_investors",
            ((investor, e.number) for e in chosen for investor in e.investors),
        )
        connection.commit()
    return employers


def _company_row(employer: Employer) -> tuple[object, ...]:
    return (
        employer.number,
        employer.id,
        words(employer.name),
        employer.domain,
        employer.profnet_url,
        place_words(employer.city.location),
        employer.size,
        employer.type,
        employer.industry.name.casefold(),
        employer.group,
    )


def _insert_people(
    connection: sqlite3.Connection,
    first: int,
    batch: list[careers.Person],
    roles: dict[careers.Role, int],
    places: dict[str, int],
) -> None:
    """Insert a batch of people; new roles and places get the next number."""
    _insert(
        connection,
        "people",
        (
            (
                position,
                words(person.name),
                roles.setdefault(person.role, len(roles)),
                places.setdefault(person.location, len(places)),
                person.company,
                person.networks,
            )
            for position, person in enumerate(batch, first)
        ),
    )
    _insert(
        connection,
        "person_bodies",
        ((position, p.company, p.body) for position, p in enumerate(batch, first)),
    )
    _insert(
        connection,
        "educations",
        ((school, position) for position, p in enumerate(batch, first) for school in p.schools),
    )
