"""Advance the world's date: people, careers and headcounts change, and leads get events.

Choices where the interface document is silent: a lead with an email address gets one email within a
day, regardless of the sequence's stages; at the sequence's rates, an opening follows within 2 days
and a reply within 7 more days. Everyone who replies has opened the email, unless the reply rate is
higher than the open rate. Paused sequences send nothing. An event is dated at the real time when
the lead was added, plus the days that the world's date has advanced since then.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import accumulate
from random import Random
from typing import Any, Final, NamedTuple

import orjson

from outreach_frames import spec
from outreach_frames.sandbox import careers
from outreach_frames.sandbox.account import format_timestamp
from outreach_frames.sandbox.companies import LEADERSHIP, Employer, companies, size_label
from outreach_frames.sandbox.population import add_people, role_number
from outreach_frames.sandbox.records import EVENT_TYPES, SEQUENCE_TYPES
from outreach_frames.sandbox.world import TODAY, new_rng, schools

MAX_DAYS: Final = 3_650
_DAYS_PER_MONTH: Final = 30
# Shares of people who leave, join, move or are promoted per month.
_LEAVE, _JOIN, _MOVE, _PROMOTE = 0.02, 0.03, 0.03, 0.02
# Mean growth of companies per month, and its deviations across companies and departments.
_GROWTH, _SPREAD, _DEPARTMENT_SPREAD = 0.012, 0.03, 0.03
_MIN_JOB_DAYS: Final = 60

SENT, OPENED, REPLIED = EVENT_TYPES[:3]
# Maximum hours between each event and the previous event, or the addition of the lead.
_MAX_HOURS = {SENT: 23, OPENED: 48, REPLIED: 167}
_DAYS_TO_LAST_EVENT = 10


class _Worker(NamedTuple):
    """A person and their current job."""

    position: int
    company: int
    role: careers.Role
    body: dict[str, Any]


def advance_world(connection: sqlite3.Connection, days: int) -> None:
    """Advance a world by one day or more, in one transaction."""
    ((seed, passed, positions),) = connection.execute("SELECT seed, days, positions FROM world")
    rng = new_rng(seed, f"days {passed} to {passed + days}")
    with connection:
        staff = _count_staff(connection)
        employers = _grow_companies(connection, seed, staff, days / _DAYS_PER_MONTH, rng)
        present = [row[0] for row in connection.execute("SELECT position FROM people")]
        leaving = _draw_share(present, _LEAVE, days, rng)
        _remove(connection, leaving)
        market = careers.Market(employers, schools(seed), staff)
        remaining = sorted(set(present).difference(leaving))
        moving = _draw_share(remaining, _MOVE, days, rng)
        promoted = _draw_share(sorted(set(remaining).difference(moving)), _PROMOTE, days, rng)
        today = TODAY + timedelta(days=passed)
        for position in sorted([*moving, *promoted]):
            worker = _worker(connection, position)
            employer = market.hire(rng) if position in moving else employers[worker.company]
            day = today + timedelta(days=rng.randint(1, days))
            _change_job(connection, worker, employer, day, rng)
        count = len(_draw_share(present, _JOIN, days, rng))
        joining = [
            careers.new_person(position, market, rng)
            for position in range(positions, positions + count)
        ]
        add_people(connection, positions, joining)
        _record_events(connection, seed, passed, days)
        connection.execute(
            "UPDATE world SET days = ?, positions = ?", (passed + days, positions + count)
        )


def _count_staff(connection: sqlite3.Connection) -> Counter[int]:
    return Counter(dict(connection.execute("SELECT company, count(*) FROM people GROUP BY 1")))


def _draw_share(positions: Sequence[int], monthly: float, days: int, rng: Random) -> set[int]:
    """Draw a share of the people: at least one person, but not everyone."""
    count = round(len(positions) * (1 - (1 - monthly) ** (days / _DAYS_PER_MONTH)))
    return set(rng.sample(positions, min(max(count, 1), len(positions) - 1)))


def _remove(connection: sqlite3.Connection, positions: set[int]) -> None:
    for table, column in (
        ("people", "position"),
        ("person_bodies", "position"),
        ("educations", "person"),
    ):
        connection.executemany(
            f"DELETE FROM {table} WHERE {column} = ?",  # noqa: S608 - names from above
            [(position,) for position in positions],
        )


def _change_job(
    connection: sqlite3.Connection, worker: _Worker, employer: Employer, day: date, rng: Random
) -> None:
    """Move a person to another employer, or promote the person at the same one."""
    moves = employer.number != worker.company
    role = careers.next_role(worker.role, promoted=not moves or rng.random() < 0.4, rng=rng)
    since = date.fromisoformat(worker.body["current_position_start_date"])
    may_change = (day - since).days >= _MIN_JOB_DAYS
    is_owner = role.seniority in (careers.OWNER, careers.FOUNDING)
    if is_owner or not may_change or not (moves or role.seniority != worker.role.seniority):
        return
    careers.begin_job(worker.body, role, employer, day, rng)
    number = role_number(connection, role)
    connection.execute(
        "UPDATE people SET role = ?, company = ? WHERE position = ?",
        (number, employer.number, worker.position),
    )
    connection.execute(
        "UPDATE person_bodies SET company = ?, body = ? WHERE position = ?",
        (employer.number, orjson.dumps(worker.body), worker.position),
    )


def _worker(connection: sqlite3.Connection, position: int) -> _Worker:
    company, body, *role = connection.execute(
        """SELECT people.company, body, title, seniority, department, job_function FROM people
        JOIN person_bodies USING (position) JOIN roles ON number = role WHERE position = ?""",
        (position,),
    ).fetchone()
    return _Worker(position, company, careers.Role(*role), orjson.loads(body))


def _grow_companies(
    connection: sqlite3.Connection, seed: int, staff: Counter[int], months: float, rng: Random
) -> list[Employer]:
    bodies = dict(connection.execute("SELECT number, body FROM company_bodies ORDER BY number"))
    employers: list[Employer] = []
    for employer, _ in companies(seed, len(bodies)):
        body = orjson.loads(bodies[employer.number])
        grown = {**body, **_grown_headcounts(body["job_function_headcount"], months, rng)}
        # Skip growth to fewer employees than the company has people, or outside all size labels.
        if grown["size"] and grown["estimated_number_of_employees"] >= staff[employer.number]:
            body = grown
        counts = [n for part in body["job_function_headcount"].values() for n in part.values()]
        employers.append(
            replace(
                employer,
                employees=body["estimated_number_of_employees"],
                cumulative_headcounts=array("I", accumulate(counts)),
            )
        )
        connection.execute(
            "UPDATE company_bodies SET body = ? WHERE number = ?",
            (orjson.dumps(body), employer.number),
        )
        connection.execute(
            "UPDATE companies SET size = ? WHERE number = ?", (body["size"], employer.number)
        )
    return employers


def _grown_headcounts(
    departments: Mapping[str, Mapping[str, int]], months: float, rng: Random
) -> dict[str, Any]:
    """Return a company's headcount fields some months later; senior leadership is constant."""
    growth = rng.gauss(_GROWTH * months, _SPREAD * months**0.5)
    functions: dict[str, dict[str, int]] = {}
    for department, counts in departments.items():
        factor = max(0.0, 1 + rng.gauss(growth, _DEPARTMENT_SPREAD * months**0.5))
        functions[department] = {
            # Random rounding lets small departments change too.
            name: count if department == LEADERSHIP else int(count * factor + rng.random())
            for name, count in counts.items()
        }
    totals = {department: sum(counts.values()) for department, counts in functions.items()}
    employees = sum(totals.values())
    return {
        "estimated_number_of_employees": employees,
        "size": size_label(employees),
        "department_headcount": {name: totals[name] for name in spec.DEPARTMENTS},
        "job_function_headcount": functions,
    }


def _record_events(connection: sqlite3.Connection, seed: int, passed: int, days: int) -> None:
    """Record the events that added leads have in the next `days` days; `passed` days are over."""
    leads = connection.execute(
        "SELECT sequence_id, email_key, name, open_rate, reply_rate, added_at, ? - added_day"
        " FROM leads JOIN sequences ON sequences.id = sequence_id"
        " WHERE status = 'active' AND email_key IS NOT NULL AND added_day > ?"
        " ORDER BY leads.position",
        (passed, passed - _DAYS_TO_LAST_EVENT),
    )
    for sequence_id, key, name, open_rate, reply_rate, added_at, elapsed in leads.fetchall():
        rng = new_rng(seed, f"events of {key} in {sequence_id}")
        chance, rates = rng.random(), {SENT: 1, OPENED: open_rate, REPLIED: reply_rate}
        begin, end = timedelta(days=elapsed), timedelta(days=elapsed + days)
        after = timedelta()
        events = []
        for event_type, hours in _MAX_HOURS.items():
            after += timedelta(hours=rng.uniform(1, hours))
            # A rate applies to later events only, so that the past does not change.
            if begin < after <= end and chance < rates[event_type]:
                event = {
                    "event_at": format_timestamp(datetime.fromisoformat(added_at) + after),
                    "event_type": event_type,
                    "sequence_type": SEQUENCE_TYPES[0],
                    "sequence_name": name,
                }
                events.append(event)
        if events:
            _record(connection, key, events)


def _record(connection: sqlite3.Connection, key: str, events: list[dict[str, Any]]) -> None:
    """Add events to a contact's activity, newest first."""
    (found,) = connection.execute("SELECT document FROM contacts WHERE email_key = ?", (key,))
    contact = orjson.loads(found[0])
    activity = sorted(
        [*contact["recent_activity"], *events], key=lambda event: event["event_at"], reverse=True
    )
    contact["recent_activity"] = activity
    if events[0]["event_type"] == SENT:
        contact["last_contacted_at"] = max(
            contact["last_contacted_at"] or "", events[0]["event_at"]
        )
    connection.execute(
        "UPDATE contacts SET document = ? WHERE email_key = ?", (orjson.dumps(contact), key)
    )
