"""Read what the service says of a report's people since they were sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any, Final, NamedTuple

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
from outreach_frames.leads.prepared import Positions
from outreach_frames.reading.flatten import records_frame
from outreach_frames.reading.lenient_reader import RAW_SUFFIX
from outreach_frames.resources.contacts import Found, read_by_emails

SENT: Final = "sent"
# Of these, the interface may have activity.
_READ: Final = statuses.IN_SEQUENCE | {statuses.UNKNOWN, statuses.ALREADY_IN_SEQUENCE}
_EMAIL: Final = spec.LEAD_IDENTIFIERS[0]
_AT, _TYPE = (field.name for field in spec.ACTIVITY[:2])
_COLUMNS: Final = ("row", "contact_id", "email", *(field.name for field in spec.ACTIVITY))
_COUNT: Final = "events_"


class _Rows(NamedTuple):
    """The rows to read: their positions, addresses and times, and the address to request."""

    positions: Positions
    emails: list[str]
    since: pd.Series[Any]
    requested: list[str]


def read_events(rows: pd.DataFrame, emails: pa.Array | None, **options: Any) -> pd.DataFrame:
    """Return one row per event of a report's rows."""
    events, _ = _read(rows, emails, lambda events, _: events[list(_COLUMNS)], **options)
    return events[list(_COLUMNS)]


def count_events(rows: pd.DataFrame, emails: pa.Array | None, **options: Any) -> pd.DataFrame:
    """Return a report's rows with the number of events of each type."""

    def count(events: pd.DataFrame, found: pd.Series[Any]) -> pd.DataFrame:
        counts = rows.assign(contact_found=found)
        at = events["row"].to_numpy(dtype=np.int64)
        for name in sorted(events[_TYPE].dropna().unique()):
            times = np.bincount(at[(events[_TYPE] == name).to_numpy()], minlength=len(rows))
            counts[f"{_COUNT}{name}"] = pd.Series(times, dtype="Int64").where(found.notna())
        return counts

    def count_so_far(events: pd.DataFrame, found: pd.Series[Any]) -> pd.DataFrame:
        return count(events, found)[found.notna()]

    events, found = _read(rows, emails, count_so_far, **options)
    if untyped := int(events[_TYPE].isna().sum()):
        warn(f"{plural(untyped, 'event')} without {_TYPE} not counted; recent_activity() has all.")
    return count(events, found)


def _read(
    rows: pd.DataFrame,
    emails: pa.Array | None,
    shape: Callable[[pd.DataFrame, pd.Series[Any]], pd.DataFrame],
    *,
    since: str | date | None,
    client: Client | None,
    progress: bool | None,
) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return the events of all rows, and per row whether it has a contact; missing if not read.

    `shape` builds the partial result of an interrupted read.
    """
    asked = _rows_to_read(rows, emails, since)
    contacts: Found = {}

    def so_far() -> tuple[pd.DataFrame, pd.Series[Any]]:
        found = pd.Series(pd.NA, index=rows.index, dtype="boolean")
        for position, address in zip(asked.positions.tolist(), asked.requested, strict=True):
            if (_EMAIL, address) in contacts:
                found[position] = contacts[_EMAIL, address] is not None
        return _events(asked, contacts), found

    distinct = list(dict.fromkeys(asked.requested))
    if distinct:
        connected = resolve(client)
        read_by_emails(distinct, contacts, lambda: shape(*so_far()), connected, progress=progress)
    events, found = so_far()
    _warn_of_unreadable(events)
    return events, found


def _rows_to_read(rows: pd.DataFrame, emails: pa.Array | None, since: str | date | None) -> _Rows:
    """Return the rows that may be in the sequence and have an address."""
    if emails is None:
        raise InvalidInputError(
            "This report was made by hand or without an email column, so nobody's activity can be "
            "read. Make it with df.outreach.report(journal=..., email=...)."
        )
    is_read = rows["status"].isin(_READ).to_numpy() & np.asarray(emails.is_valid())
    positions = np.flatnonzero(is_read)
    addresses = emails.take(pa.array(positions))
    keys = pc.coalesce(email_keys(addresses), addresses.cast(pa.large_string())).to_pylist()
    first: dict[str, str] = {}
    texts = addresses.to_pylist()
    requested = [first.setdefault(key, text) for key, text in zip(keys, texts, strict=True)]
    return _Rows(positions, texts, _times(rows["sent_at"].iloc[positions], since), requested)


def _times(sent_at: pd.Series[Any], since: str | date | None) -> pd.Series[Any]:
    """Return the time of each row before which events are dropped; missing for all events."""
    if isinstance(since, str) and since == SENT:
        if unsent := int(sent_at.isna().sum()):
            raise InvalidInputError(
                f"{plural(unsent, 'row')} of this report lack the time when they were sent. Pass "
                "since=None for all activity, or a day."
            )
        return sent_at
    moment = pd.NaT if since is None else _moment(since)
    return pd.Series(moment, index=sent_at.index, dtype=sent_at.dtype)


def _moment(since: object) -> pd.Timestamp:
    """Return a time in UTC, which is also the zone of a time without one."""
    try:
        given = datetime.fromisoformat(since.strip()) if isinstance(since, str) else since
        moment = pd.Timestamp(given if isinstance(given, date | np.datetime64) else None)
    except ValueError:
        moment = pd.NaT
    if moment is pd.NaT:
        raise InvalidInputError(
            f"since={quoted(since)} is not a time. Pass 'sent', None, or a day or time such as "
            "'2026-03-02' or '2026-03-02T09:30+01:00'; without a zone it is in UTC."
        )
    return moment.tz_localize("UTC") if moment.tz is None else moment.tz_convert("UTC")


def _events(asked: _Rows, contacts: Found) -> pd.DataFrame:
    """Return one row per event since the rows' times; events without a time are kept."""
    owners: list[tuple[int, str, str, pd.Timestamp]] = []
    records: list[Any] = []
    for position, email, since, address in zip(*asked, strict=True):
        contact = contacts.get((_EMAIL, address)) or {}
        listed = contact.get("recent_activity") or []
        events = listed if isinstance(listed, list) else [listed]
        owners += [(position, str(contact.get("id")), email, since)] * len(events)
        records += events
    dtypes = {"row": "Int64", "contact_id": "str", "email": "str", "since": asked.since.dtype}
    owned = pd.DataFrame(owners, columns=list(dtypes), dtype="object").astype(dtypes)
    frame = pd.concat([owned, records_frame(records, spec.ACTIVITY)], axis=1)
    return frame[~(frame[_AT] < frame.pop("since"))].reset_index(drop=True)


def _warn_of_unreadable(events: pd.DataFrame) -> None:
    """Warn of events without a time, and of fields that the frames leave out."""
    undated = events[events[_AT].isna()]
    raw = f"{_AT}{RAW_SUFFIX}"
    if len(undated):
        texts = undated[raw].dropna() if raw in undated else undated[_AT].dropna()
        example = f", such as {quoted(texts.iloc[0])}" if len(texts) else ""
        warn(
            f"{plural(len(undated), 'event')} without a readable {_AT}{example}, first of row "
            f"{undated['row'].iloc[0]}: kept, since nothing shows when they happened."
        )
    if others := [name for name in events if name not in {*_COLUMNS, raw}]:
        warn(
            f"Events have undocumented fields, which are left out: "
            f"{', '.join(map(quoted, others))}. of.contacts(emails=...) returns them."
        )
