"""Generate the activity of added leads as the world's days pass.

Choices where the interface document is silent: a lead with an email address gets one email within a
day, regardless of the sequence's stages; at the sequence's rates, an opening follows within 2 days
and a reply within 7 more days. Everyone who replies has opened the email, unless the reply rate is
higher than the open rate. Paused sequences send nothing. An event is dated at the real time when
the lead was added, plus the days that the world's date has advanced since then.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from typing import Any

import orjson

from outreach_frames.sandbox.account import format_timestamp
from outreach_frames.sandbox.records import EVENT_TYPES, SEQUENCE_TYPES
from outreach_frames.sandbox.world import new_rng

SENT, OPENED, REPLIED = EVENT_TYPES[:3]
# Maximum hours between each event and the previous event, or the addition of the lead.
_MAX_HOURS = {SENT: 23, OPENED: 48, REPLIED: 167}
_DAYS_TO_LAST_EVENT = 10


def record_events(connection: sqlite3.Connection, seed: int, passed: int, days: int) -> None:
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
