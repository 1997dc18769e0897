"""Read what the service says of a report's people since they were sent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.keys import email_keys
from outreach_frames.leads import statuses
from outreach_frames.reading.flatten import records_frame
from outreach_frames.reading.lenient_reader import RAW_SUFFIX
from outreach_frames.resources.contacts import Found, read_by_emails

SENT: Final = "sent"
# Rows of people who are or may be in the sequence.
_READ: Final = statuses.IN_SEQUENCE | {statuses.UNKNOWN, statuses.ALREADY_IN_SEQUENCE}
_EMAIL: Final = spec.LEAD_IDENTIFIERS[0]
_AT, _TYPE = (field.name for field in spec.ACTIVITY[:2])
_OWNERS: Final = {"row": "Int64", "contact_id": "str", "email": "str"}
_COLUMNS: Final = (*_OWNERS, *(field.name for field in spec.ACTIVITY))

# Builds a frame from a report's rows, their events, and whether each row has a contact; that is
# missing where none was read.
_Shape = Callable[[pd.DataFrame, pd.DataFrame, "pd.Series[Any]"], pd.DataFrame]


def list_events(_rows: pd.DataFrame, events: pd.DataFrame, _found: pd.Series[Any]) -> pd.DataFrame:
    """Return one row per event."""
    return events[list(_COLUMNS)]


def count_events(rows: pd.DataFrame, events: pd.DataFrame, found: pd.Series[Any]) -> pd.DataFrame:
    """Return a report's rows with the number of events of each type."""
    counts = rows.assign(contact_found=found)
    at = events["row"].to_numpy(dtype=np.int64)
    for name in sorted(events[_TYPE].dropna().unique()):
        times = np.bincount(at[(events[_TYPE] == name).to_numpy()], minlength=len(rows))
        counts[f"events_{name}"] = pd.Series(times, dtype="Int64").where(found.notna())
    return counts


def read_activity(
    shape: _Shape,
    rows: pd.DataFrame,
    emails: pa.Array | None,
    *,
    since: str | date | None,
    client: Client | None,
    progress: bool | None,
) -> pd.DataFrame:
    """Read the contacts of a report's rows by address, and build a frame from their events."""
    if emails is None:
        raise InvalidInputError(
            "This report was made without the addresses of its rows, so their activity cannot be "
            "read. Make it with df.outreach.report(journal=...)."
        )
    is_sent = rows["status"].isin(_READ).to_numpy()
    is_read = is_sent & np.asarray(emails.is_valid())
    if is_sent.any() and not is_read.any():
        warn(
            f"None of {plural(int(is_sent.sum()), 'row')} that may be in the sequence has an email "
            "address, and the interface finds contacts by address only: no activity was read."
        )
    addresses = emails.filter(pa.array(is_read))
    asked = rows.loc[is_read, ["sent_at"]].rename_axis("row").reset_index()
    asked["email"] = addresses.to_pylist()
    # Spellings of one address are one contact.
    keys = pc.coalesce(email_keys(addresses), addresses).to_pylist()
    asked["requested"] = asked.groupby(keys)["email"].transform("first")
    if since != SENT:
        asked["sent_at"] = pd.Series(_moment(since), asked.index, asked["sent_at"].dtype)
    elif unsent := int(asked["sent_at"].isna().sum()):
        raise InvalidInputError(
            f"{plural(unsent, 'row')} of this report have no time of sending. Pass since=None for "
            "all activity, or a day."
        )
    contacts: Found = {}

    def so_far() -> tuple[pd.DataFrame, pd.Series[Any]]:
        known = [(_EMAIL, address) in contacts for address in asked["requested"]]
        read = asked[np.array(known, dtype=bool)]
        records = [contacts[_EMAIL, address] for address in read["requested"]]
        found = pd.Series(pd.NA, index=rows.index, dtype="boolean")
        found[read["row"]] = [record is not None for record in records]
        return _events(read, [record or {} for record in records]), found

    def partial() -> pd.DataFrame:
        events, found = so_far()
        frame = shape(rows, events, found)
        return frame if shape is list_events else frame[found.notna()]

    if len(asked):
        requested = asked["requested"].unique().tolist()
        read_by_emails(requested, contacts, partial, resolve(client), progress=progress)
    events, found = so_far()
    _warn_of_unreadable(events)
    return shape(rows, events, found)


def _moment(since: object) -> pd.Timestamp | None:
    """Return a time in UTC, which is also the zone of a time without one."""
    if since is None:
        return None
    given: Any = since
    with suppress(ValueError):
        given = datetime.fromisoformat(since.strip()) if isinstance(since, str) else since
        if isinstance(given, date | np.datetime64) and not pd.isna(given):
            moment = pd.Timestamp(given)
            return moment.tz_localize("UTC") if moment.tz is None else moment.tz_convert("UTC")
    raise InvalidInputError(
        f"since={quoted(since)} is not a time. Pass 'sent', None, or a day or time such as "
        "'2026-03-02' or '2026-03-02T09:30+01:00'; without a zone it is in UTC."
    )


def _events(read: pd.DataFrame, contacts: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the events of rows since their times; events without a time are kept."""
    found = [contact.get("recent_activity") or [] for contact in contacts]
    lists = [events if isinstance(events, list) else [events] for events in found]
    owners = read.assign(contact_id=[str(contact.get("id")) for contact in contacts])
    owners = owners.loc[read.index.repeat(list(map(len, lists)))].reset_index(drop=True)
    events = records_frame([event for events in lists for event in events], spec.ACTIVITY)
    frame = pd.concat([owners[list(_OWNERS)].astype(_OWNERS), events], axis=1)
    return frame[~(frame[_AT] < owners["sent_at"])].reset_index(drop=True)


def _warn_of_unreadable(events: pd.DataFrame) -> None:
    """Warn of events without a time or type, and of fields that the frames leave out."""
    for name, used in ((_AT, "they are kept"), (_TYPE, "activity_counts() has no column for them")):
        lacking = events[events[name].isna()]
        if len(lacking):
            texts = [*lacking.get(f"{name}{RAW_SUFFIX}", pd.Series(dtype="str")).dropna(), ""]
            example = f" ({quoted(texts[0])})" if texts[0] else ""
            warn(
                f"{plural(len(lacking), 'event')} without a readable {name}, such as one of row "
                f"{lacking['row'].iloc[0]}{example}: {used}."
            )
    known = {*_COLUMNS, f"{_AT}{RAW_SUFFIX}", f"{_TYPE}{RAW_SUFFIX}"}
    if others := [name for name in events if name not in known]:
        warn(
            f"Events have undocumented fields, which are left out: {', '.join(map(quoted, others))}"
            ". of.contacts(emails=...) returns them."
        )
