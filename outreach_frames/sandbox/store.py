"""The sandbox's database: one connection per process; hold `Store.lock` while using it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from outreach_frames.sandbox.rules import email_key

Row = dict[str, Any]


SCHEMA = """
-- `days` passed since the creation; `positions`: the number of positions ever assigned to people.
CREATE TABLE world (
    people INTEGER, seed INTEGER, days INTEGER, positions INTEGER
);
-- Lists are in JSON; `body` is the resource, in `people` without its company.
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
CREATE TABLE account_users (
    position INTEGER PRIMARY KEY, id TEXT UNIQUE, name TEXT, email TEXT, abilities TEXT
);
CREATE TABLE sequences (
    position INTEGER PRIMARY KEY, id TEXT UNIQUE, name TEXT, status TEXT,
    created_at TEXT, updated_at TEXT, created_by_user_id TEXT, created_by_user_email TEXT,
    shows TEXT, design TEXT, open_rate REAL DEFAULT 0.5, reply_rate REAL DEFAULT 0.1
);
CREATE TABLE mailboxes (
    position INTEGER PRIMARY KEY, id TEXT UNIQUE, email TEXT, email_provider TEXT,
    daily_email_limit INTEGER, status TEXT, user_id TEXT, created_at TEXT, updated_at TEXT
);
CREATE TABLE contacts (
    position INTEGER PRIMARY KEY, id TEXT UNIQUE, email_key TEXT UNIQUE, document BLOB
);
CREATE TABLE lead_lists (position INTEGER PRIMARY KEY, id TEXT UNIQUE, document BLOB);
CREATE TABLE exclusion_list (
    position INTEGER PRIMARY KEY, email TEXT, profnet_url TEXT, email_key TEXT, url_key TEXT
);
CREATE TABLE recently_contacted (
    position INTEGER PRIMARY KEY, email TEXT, profnet_url TEXT, email_key TEXT, url_key TEXT
);
-- The real time and the world's day when a request added the lead; missing for generated leads.
CREATE TABLE leads (
    position INTEGER PRIMARY KEY AUTOINCREMENT, sequence_id TEXT, email TEXT, profnet_url TEXT,
    email_key TEXT, url_key TEXT, data TEXT, added_at TEXT, added_day INTEGER
);
CREATE UNIQUE INDEX leads_once_by_email ON leads (sequence_id, email_key);
CREATE UNIQUE INDEX leads_once_by_url ON leads (sequence_id, url_key);
CREATE INDEX leads_by_email ON leads (email_key);
CREATE INDEX leads_by_url ON leads (url_key);
"""


class Store:
    """A world's database, and the lock to hold while using it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.lock: threading.RLock = threading.RLock()

    def close(self) -> None:
        """Close the connection; repeated calls do nothing."""
        self.connection.close()

    def _rows(self, query: str, *values: object) -> list[Row]:
        cursor = self.connection.cursor()
        cursor.row_factory = sqlite3.Row
        return [dict(row) for row in cursor.execute(query, values)]

    def _update(self, statement: str, *values: object) -> bool:
        """Update one row in a transaction; return False if there is no such row."""
        with self.connection:
            return self.connection.execute(statement, values).rowcount == 1

    def sequences(self) -> list[Row]:
        """Return all sequences in the account's order."""
        return self._rows("SELECT * FROM sequences ORDER BY position")

    def sequence(self, sequence_id: str) -> Row | None:
        """Return a sequence with its design, or None."""
        found = self._rows("SELECT * FROM sequences WHERE id = ?", sequence_id)
        return {**msgspec.json.decode(found[0]["design"]), **found[0]} if found else None

    def user(self, user_id: str) -> Row:
        """Return a user of the account with their abilities."""
        (found,) = self._rows("SELECT * FROM account_users WHERE id = ?", user_id)
        return {**found, **msgspec.json.decode(found["abilities"])}

    def mailboxes(self) -> list[Row]:
        """Return all mailboxes in the account's order, with their users' names and emails."""
        return self._rows(
            "SELECT mailboxes.*, account_users.name AS user_name, account_users.email AS user_email"
            " FROM mailboxes JOIN account_users ON account_users.id = mailboxes.user_id"
            " ORDER BY mailboxes.position"
        )

    def set_daily_email_limit(self, mailbox_id: str, limit: int, now: str) -> bool:
        """Update a mailbox; return False if the id is unknown."""
        # The world's date may be later than the clock, so keep the later time.
        return self._update(
            "UPDATE mailboxes SET daily_email_limit = ?, updated_at = max(updated_at, ?)"
            " WHERE id = ?",
            limit,
            now,
            mailbox_id,
        )

    def documents(self, table: str, column: str, values: Sequence[str]) -> list[bytes]:
        """Return the documents of the rows with these values, in the table's order."""
        marks = ",".join("?" * len(values))
        found = self._rows(
            f"SELECT document FROM {table} WHERE {column} IN ({marks}) ORDER BY position",  # noqa: S608
            *values,
        )
        return [row["document"] for row in found]

    def set_response_rates(
        self, sequence_id: str, open_rate: float | None, reply_rate: float | None
    ) -> bool:
        """Update the rates that are not None; return False if the sequence's id is unknown."""
        return self._update(
            "UPDATE sequences SET open_rate = coalesce(?, open_rate),"
            " reply_rate = coalesce(?, reply_rate) WHERE id = ?",
            open_rate,
            reply_rate,
            sequence_id,
        )

    def leads(self, sequence_id: str) -> list[Row]:
        """Return a sequence's leads in order of arrival."""
        found = self._rows(
            "SELECT email, profnet_url, data FROM leads WHERE sequence_id = ? ORDER BY position",
            sequence_id,
        )
        return [row | {"data": msgspec.json.decode(row["data"])} for row in found]

    def world(self) -> Row:
        """Return the world's number of people, seed and number of days passed."""
        return self._rows("SELECT * FROM world")[0]

    def count_leads(self, sequence_id: str) -> int:
        """Count the leads in a sequence."""
        found = self._rows("SELECT count(*) AS n FROM leads WHERE sequence_id = ?", sequence_id)
        return int(found[0]["n"])

    def leads_by_status(self, *statuses: str) -> list[Row]:
        """Return the identifiers of all leads in sequences with these statuses."""
        return self._rows(
            "SELECT email, profnet_url FROM leads JOIN sequences ON sequences.id = sequence_id"
            " WHERE status IN (SELECT value FROM json_each(?)) ORDER BY leads.position",
            as_text(statuses),
        )

    def ids(self, table: str) -> list[str]:
        """Return all ids of a table in the table's order."""
        found = self._rows(f"SELECT id FROM {table} ORDER BY position")  # noqa: S608
        return [row["id"] for row in found]

    def list_identifiers(self, table: str) -> list[Row]:
        """Return the identifiers of the leads in a table."""
        return self._rows(f"SELECT email, profnet_url FROM {table} ORDER BY position")  # noqa: S608

    def known(self, table: str, keys: Iterable[str]) -> list[tuple[str, Row]]:
        """Return the keys found in a table of leads, each with its row."""
        key_list = as_text(list(keys))
        return [
            (row[column], row)
            for column in ("email_key", "url_key")
            for row in self._rows(
                f"SELECT * FROM {table}"  # noqa: S608
                f" WHERE {column} IN (SELECT value FROM json_each(?))",
                key_list,
            )
        ]


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


def insert_contacts(connection: sqlite3.Connection, contacts: Iterable[Row]) -> None:
    """Insert contacts, but none with the email of another contact."""
    connection.executemany(
        "INSERT OR IGNORE INTO contacts (id, email_key, document) VALUES (?, ?, ?)",
        (
            (
                contact["id"],
                contact["email"] and email_key(contact["email"]),
                msgspec.json.encode(contact),
            )
            for contact in contacts
        ),
    )
