"""The sandbox's state: people and companies in SQLite, the account in memory."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from outreach_frames.sandbox.rules import email_key, lead_keys

Row = dict[str, Any]

# Lists are in JSON; `body` is the resource, in `people` without its company.
SCHEMA = """
CREATE TABLE companies (
    number INTEGER PRIMARY KEY, id TEXT, name TEXT, domain TEXT, profnet_url TEXT, location TEXT,
    size TEXT, type TEXT, industry TEXT, focuses TEXT, group_number INTEGER, investors TEXT,
    body BLOB
);
CREATE TABLE people (
    position INTEGER PRIMARY KEY, company INTEGER, name TEXT, title TEXT, seniority TEXT,
    department TEXT, job_function TEXT, location TEXT, networks TEXT, school_ids TEXT,
    schools TEXT, body BLOB
);
"""


@dataclass
class Account:
    """The account's resources by id, in the account's order; documents are in JSON."""

    users: dict[str, Row] = field(default_factory=dict)  # with their abilities
    mailboxes: dict[str, Row] = field(default_factory=dict)
    sequences: dict[str, Row] = field(default_factory=dict)  # with their design
    contacts: dict[str, bytes] = field(default_factory=dict)
    contact_ids: dict[str, str] = field(default_factory=dict)  # by the email's key
    lead_lists: dict[str, bytes] = field(default_factory=dict)
    # In order of arrival, each with its place: a sequence's id, or the name of a list that skips.
    leads: list[Row] = field(default_factory=list)
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by a lead's key

    def add_contact(self, contact: Row) -> None:
        """Add a contact, unless another contact has its email."""
        key = contact["email"] and email_key(contact["email"])
        if key not in self.contact_ids:
            self.contacts[contact["id"]] = msgspec.json.encode(contact)
        if key is not None:
            self.contact_ids.setdefault(key, contact["id"])

    def add_lead(self, place: str, email: str | None, profnet_url: str | None, **rest: Any) -> None:
        """Add a lead to a sequence or list."""
        self.leads.append({"place": place, "email": email, "profnet_url": profnet_url, **rest})
        for key in lead_keys(email, profnet_url):
            self.places[key] = (*self.places.get(key, ()), place)

    def leads_in(self, *kinds: str) -> list[Row]:
        """Return the leads in places of these names, and in sequences of these statuses."""
        statuses = {sequence["id"]: sequence["status"] for sequence in self.sequences.values()}
        return [
            lead
            for lead in self.leads
            if lead["place"] in kinds or statuses.get(lead["place"]) in kinds
        ]


@dataclass
class Store:
    """A world: its people, its account and its date; hold the lock while using it."""

    connection: sqlite3.Connection
    account: Account
    seed: int
    positions: int  # ever assigned to people
    days: int = 0  # since the creation
    lock: threading.RLock = field(default_factory=threading.RLock)

    def close(self) -> None:
        """Close the database; repeated calls do nothing."""
        self.connection.close()


def as_text(value: object) -> str:
    """Return a value as JSON text for a column."""
    return msgspec.json.encode(value).decode()


def insert(connection: sqlite3.Connection, table: str, rows: Iterable[Row]) -> None:
    """Append rows, which must all have the same columns."""
    values = list(rows)
    if values:
        marks = ", ".join(f":{column}" for column in values[0])
        columns = ", ".join(values[0])
        connection.executemany(
            f"INSERT INTO {table} ({columns}) VALUES ({marks})",  # noqa: S608
            values,
        )
