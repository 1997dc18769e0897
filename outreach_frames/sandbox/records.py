"""The account's contacts, lead lists and existing leads, generated from the seed."""

from __future__ import annotations

import pickle
import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from functools import lru_cache
from itertools import cycle
from typing import Any, Final

import msgspec

from outreach_frames import spec
from outreach_frames.sandbox import careers
from outreach_frames.sandbox.account import format_timestamp, new_account, random_moment
from outreach_frames.sandbox.add_leads import EXCLUDED, RECENT
from outreach_frames.sandbox.companies import Employer, companies
from outreach_frames.sandbox.search import place_words, words
from outreach_frames.sandbox.store import SCHEMA, Account, Row, Store, as_text, insert
from outreach_frames.sandbox.world import ACCOUNT, COUNTRIES, User, new_id, new_rng, slug, users

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
        "focuses": as_text([name for name in spec.SUGGESTED_COMPANY_FOCUSES if body[f"is_{name}"]]),
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


Record = dict[str, Any]

# A world of 2,000 people takes 8 MB; larger worlds are generated each time.
MAX_CACHED_PEOPLE = 2_000

CONTACTS = 500
# Of 12 contacts, 1 is excluded, 1 recently contacted, 1 in a draft and 1 in an active sequence.
CONTACTS_PER_LEAD = 12

COPIED_PERSON_FIELDS = ("name", "first_name", "last_name", "profnet_url", "title", "location")
EVENT_TYPES = ("email_sent", "email_opened", "email_replied", "profnet_visited", "call_logged")
SEQUENCE_TYPES = ("outbound", "inbound", "nurture")
PHONE_TYPES = ("mobile", "work")
PHONE_KINDS = ("direct", "switchboard")
PHONE_SOURCES = ("manual", "enrichment", "import")

TIME_ZONES = {country["name"]: country.get("time_zone") for country in COUNTRIES}


def open_world(people: int, seed: int) -> Store:
    """Generate a world in memory."""
    if people > MAX_CACHED_PEOPLE:
        connection, account = _new_world(people, seed)
    else:
        content, pickled = _cached_world(people, seed)
        # Four times as fast as a deep copy.
        connection, account = _connect(), pickle.loads(pickled)  # noqa: S301 - of this process
        connection.deserialize(content)
    return Store(connection, account, seed, people)


@lru_cache(maxsize=2)
def _cached_world(people: int, seed: int) -> tuple[bytes, bytes]:
    """Generate a world once; sandboxes with the same arguments copy it."""
    connection, account = _new_world(people, seed)
    with closing(connection):
        return connection.serialize(), pickle.dumps(account)


def _connect() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", check_same_thread=False)


def _new_world(people: int, seed: int) -> tuple[sqlite3.Connection, Account]:
    """Generate people, then an account whose contacts are some of them."""
    connection = _connect()
    # People of 3 KB waste a third of the space in pages of 4 KB.
    connection.executescript(f"PRAGMA page_size = 16384; BEGIN; {SCHEMA}")
    fill(connection, people=people, seed=seed)
    connection.commit()
    account_users = users(seed)
    account, rng = new_account(account_users, seed=seed), random.Random(f"records {seed}")
    contacts = list(_contacts(sample_people(connection, CONTACTS, seed), account_users, rng))
    for contact in contacts:
        account.add_contact(contact)
    _add_known_leads(account, contacts, rng)
    for design in ACCOUNT["lead_lists"]:
        lead_list = _lead_list(design, account_users, rng)
        if spec.ERRORS_KEY in design:
            lead_list[spec.ERRORS_KEY] = design[spec.ERRORS_KEY]
        kind = design["type"]
        leads = [_list_lead(kind, rng.choice(contacts), rng) for _ in range(design["leads"])]
        account.lead_lists[lead_list["id"]] = msgspec.json.encode(lead_list | {"leads": leads})
    return connection, account


def _add_known_leads(account: Account, contacts: Sequence[Record], rng: random.Random) -> None:
    """Add some contacts as existing leads, which later requests to add leads will skip."""
    latest_first = sorted(contacts, key=lambda lead: lead["last_contacted_at"] or "", reverse=True)
    share = max(1, len(contacts) // CONTACTS_PER_LEAD)
    recent, others = latest_first[:share], latest_first[share:]
    rng.shuffle(others)
    excluded, draft, active = (others[part * share : (part + 1) * share] for part in range(3))
    plain = [sequence for sequence in account.sequences.values() if sequence["shows"] is None]
    drafts, running = (
        [sequence["id"] for sequence in plain if sequence["status"] in statuses]
        for statuses in (("draft",), ("active", "paused"))
    )
    for leads, places in (
        (excluded, [EXCLUDED]),
        (recent, [RECENT]),
        (draft, drafts),
        (active, running),
    ):
        for contact, place in zip(leads, cycle(places), strict=False):
            account.add_lead(place, contact["email"], contact["profnet_url"], data={})


def _contacts(
    people: Sequence[Mapping[str, Any]], users: Sequence[User], rng: random.Random
) -> Iterator[Record]:
    taken: set[str] = set()
    for place, person in enumerate(people):
        email = _email(person, place, taken)
        contacted = random_moment(rng, 1, 60)
        activity = [
            {
                "event_at": format_timestamp(contacted - timedelta(hours=49 * step)),
                "event_type": rng.choice(EVENT_TYPES),
                "sequence_type": rng.choice(SEQUENCE_TYPES),
                "sequence_name": rng.choice(("CFO outreach DACH", "Webinar follow-up Logistics")),
            }
            for step in range(rng.choice((0, 1, 2, 3, 5)))
        ]
        contact: Record = {
            "id": new_id(rng),
            "email": None if place % 25 == 24 else email,
            **{name: person[name] for name in COPIED_PERSON_FIELDS},
            "time_zone": TIME_ZONES[person["location_details"]["country"]],
            "company_name": person["experiences"][0]["company_name"],
            "company_domain": person["company_domain"],
            "owner": rng.choice(users).email,
            "last_contacted_at": format_timestamp(contacted) if activity else None,
            "phone_numbers": [_phone_number(rng) for _ in range(rng.choice((0, 0, 1, 1, 2)))],
            "recent_activity": activity,
        }
        for name in ("title", "location", "time_zone", "company_domain", "owner"):
            if rng.random() < 0.06:
                contact[name] = None
        if place % 25 == 23:
            contact["profnet_url"] = None
        yield contact


def _email(person: Mapping[str, Any], place: int, taken: set[str]) -> str:
    """Return a unique email, sometimes with an unusual character."""
    # The profile URL has the name in Latin letters, followed by a suffix.
    words = slug(person["profnet_url"].rpartition("/")[2]).split("-")
    first, last = words[0], words[-2] if len(words) > 2 else words[-1]
    unusual = {7: f"{first}.{last}+events", 13: f"{first[:1]}'{last}", 19: f"{last}/{first}"}
    local = unusual.get(place % 25, f"{first}.{last}")
    email = f"{local}@{person['company_domain']}"
    number = 2
    while email in taken:
        email = f"{local}{number}@{person['company_domain']}"
        number += 1
    taken.add(email)
    return email


def _phone_number(rng: random.Random) -> Record:
    return {
        "id": new_id(rng),
        "object": "phone_number",
        "number": f"+1 555 01{rng.randrange(100):02d}",
        "type": rng.choice(PHONE_TYPES),
        "source": rng.choice(PHONE_SOURCES),
        "kind": rng.choice(PHONE_KINDS),
    }


def _lead_list(design: Record, users: Sequence[User], rng: random.Random) -> Record:
    created = random_moment(rng, 1, 200)
    return {
        "id": new_id(rng),
        "object": "lead_list",
        "name": design["name"],
        "status": design["status"],
        "shared": rng.random() < 0.5,
        "visible": True,
        "owner": rng.choice(users).email,
        "type": design["type"],
        "created_at": format_timestamp(created),
        "updated_at": format_timestamp(created + timedelta(minutes=rng.randrange(1, 600))),
        "options": {field.name: rng.random() < 0.5 for field in spec.LEAD_LIST_OPTIONS},
    }


def _list_lead(kind: str, contact: Record, rng: random.Random) -> Record:
    """Generate a lead of a list; leads of one list may have different fields."""
    lead: Record = {"id": new_id(rng)}
    for name in ACCOUNT["lead_fields"][kind]:
        if contact[name] is not None or rng.random() < 0.5:
            lead[name] = contact[name]
    if kind == "crm_a":
        lead["crm"] = {"id": f"00Q{rng.getrandbits(48):012X}", "stage": rng.choice(("open", "won"))}
    if kind == "adaptive":
        lead["score"] = round(rng.random(), 3)
        lead["signals"] = rng.sample(("hiring", "funding", "new_office"), rng.randrange(3))
    return lead
