"""Advance the world's date: people, careers and headcounts change, and leads get events.

Choices where the interface document is silent: a lead with an email address gets one email within a
day, regardless of the sequence's stages; at the sequence's rates, an opening follows within 2 days
and a reply within 7 more days. Everyone who replies has opened the email, unless the reply rate is
higher than the open rate. Paused sequences send nothing. An event is dated at the real time when
the lead was added, plus the days that the world's date has advanced since then.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from operator import itemgetter
from random import Random
from typing import Any, Final

import msgspec

from outreach_frames import spec
from outreach_frames.sandbox import careers
from outreach_frames.sandbox.account import format_timestamp
from outreach_frames.sandbox.companies import LEADERSHIP, Employer, companies, size_label
from outreach_frames.sandbox.records import EVENT_TYPES, SEQUENCE_TYPES
from outreach_frames.sandbox.rules import email_key
from outreach_frames.sandbox.search import words
from outreach_frames.sandbox.store import Account, Store, as_text, insert
from outreach_frames.sandbox.world import TODAY, new_rng

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


def advance_world(store: Store, days: int) -> None:
    """Advance a world by one day or more."""
    connection, seed, passed, positions = store.connection, store.seed, store.days, store.positions
    rng = new_rng(seed, f"days {passed} to {passed + days}")
    with connection:
        present: dict[int, int] = dict(
            connection.execute("SELECT position, company FROM people ORDER BY company, position")
        )
        staff = Counter(present.values())
        employers = _grow_companies(connection, seed, staff, days / _DAYS_PER_MONTH, rng)
        leaving = _draw_share([*present], _LEAVE, days, rng)
        connection.execute(
            "DELETE FROM people WHERE position IN (SELECT value FROM json_each(?))",
            (as_text([*leaving]),),
        )
        market = careers.Market(employers, seed, staff)
        remaining = sorted(present.keys() - leaving)
        moving = _draw_share(remaining, _MOVE, days, rng)
        promoted = _draw_share(sorted(set(remaining).difference(moving)), _PROMOTE, days, rng)
        today = TODAY + timedelta(days=passed)
        for position in sorted([*moving, *promoted]):
            employer = market.hire(rng) if position in moving else employers[present[position]]
            day = today + timedelta(days=rng.randint(1, days))
            _change_job(connection, position, employer, day, rng)
        count = len(_draw_share([*present], _JOIN, days, rng))
        joining = range(positions, positions + count)
        insert(connection, "people", (careers.new_person(place, market, rng) for place in joining))
    _record_events(store.account, seed, passed, days)
    store.days, store.positions = passed + days, positions + count


def _draw_share(positions: Sequence[int], monthly: float, days: int, rng: Random) -> set[int]:
    """Draw a share of the people: at least one person, but not everyone."""
    count = round(len(positions) * (1 - (1 - monthly) ** (days / _DAYS_PER_MONTH)))
    return set(rng.sample(positions, min(max(count, 1), len(positions) - 1)))


def _change_job(
    connection: sqlite3.Connection, position: int, employer: Employer, day: date, rng: Random
) -> None:
    """Move a person to another employer, or promote the person at the same one."""
    company, document, *columns = connection.execute(
        "SELECT company, body, title, seniority, department, job_function FROM people"
        " WHERE position = ?",
        (position,),
    ).fetchone()
    body, old_role = msgspec.json.decode(document), careers.Role(*columns)
    moves = employer.number != company
    role = careers.next_role(old_role, promoted=not moves or rng.random() < 0.4, rng=rng)
    since = date.fromisoformat(body["current_position_start_date"])
    may_change = (day - since).days >= _MIN_JOB_DAYS
    is_owner = role.seniority in (careers.OWNER, careers.FOUNDING)
    if is_owner or not may_change or not (moves or role.seniority != old_role.seniority):
        return
    careers.begin_job(body, role, employer, day, rng)
    connection.execute(
        "UPDATE people SET company = ?, title = ?, seniority = ?, body = ? WHERE position = ?",
        (employer.number, words(role.title), role.seniority, msgspec.json.encode(body), position),
    )


def _grow_companies(
    connection: sqlite3.Connection, seed: int, staff: Counter[int], months: float, rng: Random
) -> list[Employer]:
    bodies = dict(connection.execute("SELECT number, body FROM companies ORDER BY number"))
    employers: list[Employer] = []
    for employer in companies(seed, len(bodies)):
        body = msgspec.json.decode(bodies[employer.number])
        grown = {**body, **_grown_headcounts(body["job_function_headcount"], months, rng)}
        # Skip growth to fewer employees than the company has people, or outside all size labels.
        if grown["size"] and grown["estimated_number_of_employees"] >= staff[employer.number]:
            body = grown
        employers.append(employer._replace(body=body))
        connection.execute(
            "UPDATE companies SET size = ?, body = ? WHERE number = ?",
            (body["size"], msgspec.json.encode(body), employer.number),
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


def _record_events(account: Account, seed: int, passed: int, days: int) -> None:
    """Record the events that added leads have in the next `days` days; `passed` days are over."""
    for lead in account.leads_in("active"):
        if lead["email"] is None or "added_at" not in lead:
            continue
        key, sequence = email_key(lead["email"]), account.sequences[lead["place"]]
        rng = new_rng(seed, f"events of {key} in {lead['place']}")
        chance = rng.random()
        rates = {SENT: 1, OPENED: sequence["open_rate"], REPLIED: sequence["reply_rate"]}
        begin = timedelta(days=passed - lead["added_day"])
        after = timedelta()
        for event_type, hours in _MAX_HOURS.items():
            after += timedelta(hours=rng.uniform(1, hours))
            # A rate applies to later events only, so that the past does not change.
            if begin < after <= begin + timedelta(days=days) and chance < rates[event_type]:
                moment = format_timestamp(datetime.fromisoformat(lead["added_at"]) + after)
                _record_event(account, key, moment, event_type, sequence["name"])


def _record_event(
    account: Account, key: str, moment: str, event_type: str, sequence_name: str
) -> None:
    """Add an event to a contact's activity, newest first."""
    contact = msgspec.json.decode(account.contacts[account.contact_ids[key]])
    event = {
        "event_at": moment,
        "event_type": event_type,
        "sequence_type": SEQUENCE_TYPES[0],
        "sequence_name": sequence_name,
    }
    contact["recent_activity"].append(event)
    contact["recent_activity"].sort(key=itemgetter("event_at"), reverse=True)
    if event_type == SENT:
        contact["last_contacted_at"] = max(contact["last_contacted_at"] or "", moment)
    account.contacts[contact["id"]] = msgspec.json.encode(contact)
