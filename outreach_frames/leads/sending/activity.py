"""Read the recent activity of the people in a report."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.analysis.child_tables import list_entries, objects_frame
from outreach_frames.client.client import Client
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.identity.keys import email_keys
from outreach_frames.leads import statuses
from outreach_frames.reading.untyped_reader import RAW_SUFFIX
from outreach_frames.resources.contacts import contacts
from outreach_frames.resources.sequences import sequences

SENT: Final = "sent"
_FIELDS: Final = [field.name for field in spec.ACTIVITY]
_EVENT_AT, _TYPE, _, _SEQUENCE_NAME = _FIELDS
_OWNERS: Final = {"row": "Int64", "contact_id": STR, "email": STR}
_LIST: Final = "recent_activity"


def read_activity(
    rows: pd.DataFrame,
    emails: pa.Array | None,
    *,
    since: object,
    sequence_id: str,
    all_sequences: bool,
    client: Client | None,
    progress: bool | None,
) -> pd.DataFrame:
    """Read the recent events of a report's people."""
    if emails is None:
        raise InvalidInputError(
            "This report has no addresses, so activity cannot be read. Create the report with "
            "df.outreach.report(journal=...)."
        )
    people = _people(rows, emails, since)
    addresses = people["asked"].unique()
    name = None if all_sequences or not len(addresses) else _name_of(sequence_id, client)
    try:
        read = contacts(emails=addresses, refresh=True, client=client, progress=progress)
    except (OutreachError, KeyboardInterrupt) as error:
        if (partial := getattr(error, "partial", None)) is not None:
            error.partial = _events(people, partial, name)  # type: ignore[union-attr]
        raise
    is_contact = read["found"].dropna()  # missing: refused or not requested
    if unknown := int((~is_contact).sum()):
        warn(
            f"No contact was found for {unknown:,} of "
            f"{plural(len(is_contact), 'address', 'addresses')}, so their rows have no events. The "
            "column found of of.contacts(emails=...) shows which. If no address has a contact, "
            "check which account is connected."
        )
    return _events(people, read, name)


def _people(rows: pd.DataFrame, emails: pa.Array, since: object) -> pd.DataFrame:
    """Return the rows whose people are or may be in the sequence and have an address."""
    sent = pd.DataFrame({"row": rows.index}).assign(
        email=pd.array(emails.to_pylist(), dtype=STR),
        key=pc.coalesce(email_keys(emails), emails).to_pylist(),
        since=_limits(since, rows["sent_at"]),
    )[rows["status"].isin(statuses.MAY_BE_IN_SEQUENCE)]
    people = sent.dropna(subset="email").copy()
    if since is not None and (undated := int(people["since"].isna().sum())):
        raise InvalidInputError(
            f"{plural(undated, 'row of this report has', 'rows of this report have')} no sent_at. "
            "Pass since=None for all activity, or a day as since."
        )
    if lacking := len(sent) - len(people):
        have = "row that may be in the sequence has", "rows that may be in the sequence have"
        warn(
            f"{plural(lacking, *have)} no email address, and the interface finds contacts by "
            "address only, so their activity was not read."
        )
    # Read one contact for all spellings of an address.
    people["asked"] = people.groupby("key")["email"].transform("first")
    return people


def _name_of(sequence_id: str, client: Client | None) -> str | None:
    """Return the name that the events of a sequence have; warn if it is unknown or ambiguous."""
    try:
        listed = sequences(refresh=True, client=client, progress=False)
    except OutreachError as error:
        why = f"the sequences could not be listed ({error})"
    else:
        names = listed.loc[listed["id"] == sequence_id, "name"].dropna().tolist()
        if names and listed["name"].eq(names[0]).sum() == 1:
            return str(names[0])
        why = "several sequences have its name" if names else "its name was not found"
    warn(
        "Events of all sequences were kept, because events have only the sequence's name and "
        f"{why}."
    )
    return None


def _limits(since: object, sent_at: pd.Series[Any]) -> pd.Series[Any]:
    """Return the earliest time of each row's events, or missing to keep all events."""
    if isinstance(since, str) and since == SENT:
        return sent_at
    given: Any = since
    with suppress(ValueError):
        given = datetime.fromisoformat(since.strip()) if isinstance(since, str) else since
        if since is None or (isinstance(given, date | np.datetime64) and not pd.isna(given)):
            # A time without a zone is in UTC.
            return pd.Series(pd.to_datetime(given, utc=True), sent_at.index, sent_at.dtype)
    raise InvalidInputError(
        f"since={quoted(since)} is not a time. Pass 'sent', None, or a day or time such as "
        "'2026-03-02' or '2026-03-02T09:30+01:00'. A time without a zone is in UTC."
    )


def _events(people: pd.DataFrame, read: pd.DataFrame, name: str | None) -> pd.DataFrame:
    """Return each row's events of the sequence since the row's earliest time.

    Events without a name or time are kept. Without a name, the events of all sequences are kept.
    """
    positions, entries = list_entries(read[_LIST])
    events = objects_frame(entries, spec.ACTIVITY)
    _warn_of_unreadable(read, events)
    contact = read.iloc[positions]
    events = events[_FIELDS].assign(asked=contact["asked"].array, contact_id=contact["id"].array)
    merged = people.merge(events, on="asked")
    if name is not None:
        merged = merged[merged[_SEQUENCE_NAME].fillna(name) == name]
    merged = merged[~(merged[_EVENT_AT] < merged["since"])].reset_index(drop=True)
    return merged[[*_OWNERS, *_FIELDS]].astype(_OWNERS)


def _warn_of_unreadable(read: pd.DataFrame, events: pd.DataFrame) -> None:
    """Warn of events without a time, type or sequence, and of dropped data."""
    see = "of.contacts(emails=...) returns"
    for name in (_EVENT_AT, _TYPE, _SEQUENCE_NAME):
        if lacking := int(events[name].isna().sum()):
            warn(f"Kept {plural(lacking, 'event')} without a readable {name}. {see} all events.")
    if lacking := int((read["found"] & read[_LIST].isna()).sum()):
        warn(
            f"The activity of {plural(lacking, 'contact')} is missing or cannot be read, so their "
            f"rows have no events. {see} {_LIST}, and {_LIST}{RAW_SUFFIX} if it cannot be read."
        )
    others = [
        name for name in map(str, events) if name not in _FIELDS and not name.endswith(RAW_SUFFIX)
    ]
    if others:
        warn(f"Undocumented fields of events were dropped: {', '.join(others)}. {see} all fields.")
