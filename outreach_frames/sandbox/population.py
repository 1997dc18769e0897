"""Create, fill and sample the tables of companies and people.

Search filters read narrow tables; separate tables store the bodies. `search` prepares the
searched texts. Numbers and positions count from 0.
"""

from __future__ import annotations

import math
import sqlite3
from typing import Any, Final

import orjson

from outreach_frames import spec
from outreach_frames.sandbox import careers
from outreach_frames.sandbox.companies import Employer, companies
from outreach_frames.sandbox.search import place_words, words
from outreach_frames.sandbox.store import insert
from outreach_frames.sandbox.world import investors, new_rng, schools, users

# Larger worlds have more people per company; `MAX_COMPANIES` bounds memory.
COMPANIES_EXPONENT: Final = 0.75
MAX_COMPANIES: Final = 10_000
_BATCH: Final = 10_000

_TABLES: Final = """
    CREATE TABLE companies (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL, domain TEXT NOT NULL,
        profnet_url TEXT NOT NULL, location TEXT NOT NULL, size TEXT NOT NULL, type TEXT NOT NULL,
        industry TEXT NOT NULL, focuses TEXT NOT NULL, group_number INTEGER NOT NULL);
    CREATE TABLE company_bodies (number INTEGER PRIMARY KEY, body BLOB NOT NULL);
    CREATE TABLE company_investors (investor INTEGER NOT NULL, company INTEGER NOT NULL);
    CREATE TABLE investors (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL, folded TEXT NOT NULL);
    CREATE TABLE schools (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL);
    CREATE TABLE network_users (bit INTEGER PRIMARY KEY, email TEXT NOT NULL);
    CREATE TABLE roles (
        number INTEGER PRIMARY KEY, title TEXT NOT NULL, seniority TEXT NOT NULL,
        department TEXT NOT NULL, job_function TEXT NOT NULL,
        UNIQUE (title, seniority, department, job_function));
    CREATE TABLE places (number INTEGER PRIMARY KEY, location TEXT NOT NULL UNIQUE);
    CREATE TABLE people (
        position INTEGER PRIMARY KEY, name TEXT NOT NULL, role INTEGER NOT NULL,
        place INTEGER NOT NULL, company INTEGER NOT NULL, networks INTEGER NOT NULL);
    CREATE TABLE person_bodies (
        position INTEGER PRIMARY KEY, company INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE TABLE educations (school INTEGER NOT NULL, person INTEGER NOT NULL);
"""
# These indexes are created after inserting the rows, which is faster.
_INDEXES: Final = """
    CREATE INDEX people_company ON people (company, position);
    CREATE INDEX educations_school ON educations (school, person);
    CREATE INDEX company_investors_investor ON company_investors (investor, company);
"""


def fill(connection: sqlite3.Connection, *, people: int, seed: int) -> None:
    """Create the tables and fill them; the same seed and number of people give the same bytes.

    >>> connection = sqlite3.connect(":memory:")
    >>> fill(connection, people=20, seed=0)
    >>> connection.execute("SELECT count(*) FROM people").fetchone()
    (20,)
    >>> connection.close()
    """
    connection.executescript(_TABLES)
    emails = [(bit, user.email.casefold()) for bit, user in enumerate(users(seed))]
    connection.executemany("INSERT INTO network_users VALUES (?, ?)", emails)
    funds = [(number, name, words(name)) for number, name in enumerate(investors(seed))]
    connection.executemany("INSERT INTO investors VALUES (?, ?, ?)", funds)
    learned = [(one.number, one.id, one.name, words(one.name)) for one in schools(seed)]
    connection.executemany("INSERT INTO schools VALUES (?, ?, ?, ?)", learned)
    employers = []
    for employer, body in companies(seed, company_count(people)):
        _add_company(connection, employer, body)
        employers.append(employer)
    market, rng = careers.Market(employers, schools(seed), staff={}), new_rng(seed, "people")
    for first in range(0, people, _BATCH):
        positions = range(first, min(first + _BATCH, people))
        batch = [careers.new_person(position, market, rng) for position in positions]
        add_people(connection, first, batch)
        connection.commit()
    connection.executescript(_INDEXES)
    connection.commit()


def company_count(people: int) -> int:
    """Return the number of companies for a number of people.

    >>> company_count(2_000), company_count(1_000_000)
    (299, 10000)
    """
    return min(MAX_COMPANIES, max(1, round(math.pow(people, COMPANIES_EXPONENT))))


def add_people(connection: sqlite3.Connection, first: int, joining: list[careers.Person]) -> None:
    """Add people at consecutive positions from `first`."""
    roles = {
        role: role_number(connection, role) for role in dict.fromkeys(one.role for one in joining)
    }
    places = {
        location: _find_or_add(connection, "places", location=place_words(location))
        for location in dict.fromkeys(one.location for one in joining)
    }
    people, bodies, educations = [], [], []
    for position, person in enumerate(joining, first):
        role, place = roles[person.role], places[person.location]
        searched = words(person.name)
        people.append((position, searched, role, place, person.company, person.networks))
        bodies.append((position, person.company, person.body))
        educations += [(school, position) for school in person.schools]
    connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", people)
    connection.executemany("INSERT INTO person_bodies VALUES (?, ?, ?)", bodies)
    connection.executemany("INSERT INTO educations VALUES (?, ?)", educations)


def role_number(connection: sqlite3.Connection, role: careers.Role) -> int:
    """Return the number of a role; add it if it is new."""
    searched = role._replace(title=words(role.title))
    return _find_or_add(connection, "roles", **searched._asdict())


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


def _add_company(connection: sqlite3.Connection, employer: Employer, body: dict[str, Any]) -> None:
    focuses = [focus for focus in spec.SUGGESTED_COMPANY_FOCUSES if body[f"is_{focus}"]]
    row = {
        "number": employer.number,
        "id": body["id"],
        "name": words(employer.name),
        "domain": body["website"].removeprefix("https://www."),
        "profnet_url": employer.profnet_url,
        "location": place_words(body["location"]),
        "size": body["size"],
        "type": body["type"],
        "industry": body["industry"].casefold(),
        "focuses": orjson.dumps(focuses).decode(),
        "group_number": employer.group,
    }
    insert(connection, "companies", [row])
    stored = (employer.number, orjson.dumps(body))
    connection.execute("INSERT INTO company_bodies VALUES (?, ?)", stored)
    pairs = [(investor, employer.number) for investor in employer.investors]
    connection.executemany("INSERT INTO company_investors VALUES (?, ?)", pairs)


def _find_or_add(connection: sqlite3.Connection, table: str, **texts: str) -> int:
    """Return the `number` of a role or place; add the role or place if it is new."""
    columns, marks, values = ", ".join(texts), ", ".join("?" * len(texts)), list(texts.values())
    sql = f"({columns}) VALUES ({marks})"
    connection.execute(f"INSERT OR IGNORE INTO {table} {sql}", values)
    query = f"SELECT number FROM {table} WHERE ({columns}) = ({marks})"  # noqa: S608
    return int(connection.execute(query, values).fetchone()[0])
