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
from outreach_frames.reading.lenient_reader import RAW_SUFFIX
from outreach_frames.resources.contacts import contacts
from outreach_frames.resources.sequences import sequences

SENT: Final = "sent"
# Statuses of rows whose people are or may be in the sequence.
_READ: Final = statuses.IN_SEQUENCE | {statuses.UNKNOWN, statuses.ALREADY_IN_SEQUENCE}
_FIELDS: Final = [field.name for field in spec.ACTIVITY]
_AT, _TYPE, _, _SEQUENCE_NAME = _FIELDS
_OWNERS: Final = {"row": "Int64", "contact_id": STR, "email": STR}
_LIST: Final = "recent_activity"


def read_activity(
    rows: pd.DataFrame,
    emails: pa.Array | None,
    *,
    count: bool,
    since: object,
    sequence_id: str,
    all_sequences: bool,
    client: Client | None,
    progress: bool | None,
) -> pd.DataFrame:
    """Read the activity of a report's people; return their events or, with `count`, counts."""
    if emails is None:
        raise InvalidInputError(
            "This report has no addresses, so activity cannot be read. Create the report with "
            "df.outreach.report(journal=...)."
        )
    sent = pd.DataFrame({"row": rows.index}).assign(
        email=pd.array(emails.to_pylist(), dtype=STR),
        key=pc.coalesce(email_keys(emails), emails).to_pylist(),
        since=_limits(since, rows["sent_at"]),
    )[rows["status"].isin(_READ)]
    people = sent.dropna(subset="email").copy()
    # Read one contact for all spellings of an address.
    people["asked"] = people.groupby("key")["email"].transform("first")
    if since is not None and (undated := int(people["since"].isna().sum())):
        raise InvalidInputError(
            f"{plural(undated, 'row of this report has', 'rows of this report have')} no sent_at. "
            "Pass since=None for all activity, or a day as since."
        )
    if len(sent) > len(people) == 0:
        warn(
            f"None of {plural(len(sent), 'row')} that may be in the sequence has an email address, "
            "and the interface finds contacts by address only: no activity was read."
        )

    asked = people["asked"].unique()
    name = None if all_sequences or not len(asked) else _name_of(sequence_id, client)

    def build(read: pd.DataFrame) -> pd.DataFrame:
        contacts = read.assign(has_activity=read[_LIST].notna()).set_index("asked")
        known = contacts[["found", "has_activity"]].reindex(people["asked"])
        known = known.set_axis(people.index).reindex(rows.index)
        events = _events(people, read, name)
        known = known.astype("boolean").fillna({"has_activity": False})
        return _counts(rows, events, known) if count else events

    try:
        read = contacts(emails=asked, refresh=True, client=client, progress=progress)
    except (OutreachError, KeyboardInterrupt) as error:
        if (partial := getattr(error, "partial", None)) is not None:
            error.partial = build(partial)  # type: ignore[union-attr]
        raise
    known = read["found"].dropna()  # missing where the service refuses an address
    if len(known) and not known.any():
        addresses = plural(len(known), "address", "addresses")
        warn(f"None of {addresses} belongs to a contact. Check which account is connected.")
    return build(read)


def _counts(rows: pd.DataFrame, events: pd.DataFrame, read: pd.DataFrame) -> pd.DataFrame:
    """Return a report's rows with the number of events per type."""
    counts = rows.assign(contact_found=read["found"])
    for name, owners in events.groupby(_TYPE)["row"]:
        times = np.bincount(owners.to_numpy(dtype=np.int64), minlength=len(rows))
        counts[f"events_{name}"] = pd.Series(times, dtype="Int64").where(read["has_activity"])
    return counts


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
    warn(f"Events of all sequences count, because events have only the sequence's name and {why}.")
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
    at, entries = list_entries(read[_LIST])
    events = objects_frame(entries, spec.ACTIVITY)
    _warn_of_unreadable(read, events)
    owners = {"asked": read["asked"].iloc[at].array, "contact_id": read["id"].iloc[at].array}
    merged = people.merge(events[_FIELDS].assign(**owners), on="asked")
    if name is not None:
        merged = merged[merged[_SEQUENCE_NAME].fillna(name) == name]
    merged = merged[~(merged[_AT] < merged["since"])].reset_index(drop=True)
    return merged[[*_OWNERS, *_FIELDS]].astype(_OWNERS)


def _warn_of_unreadable(read: pd.DataFrame, events: pd.DataFrame) -> None:
    """Warn of events without a time, type or sequence, and of dropped data."""
    see = "of.contacts(emails=...) returns"
    uses = dict.fromkeys((_AT, _SEQUENCE_NAME), "they are kept")
    uses[_TYPE] = "activity_counts() has no column for them"
    for name, used in uses.items():
        if lacking := int(events[name].isna().sum()):
            warn(f"{plural(lacking, 'event')} without a readable {name}: {used}. {see} all events.")
    if lacking := int((read["found"] & read[_LIST].isna()).sum()):
        warn(
            f"The activity of {plural(lacking, 'contact')} is missing or cannot be read, so its "
            f"counts are missing. {see} {_LIST}, and {_LIST}{RAW_SUFFIX} if it cannot be read."
        )
    others = [
        name for name in map(str, events) if name not in _FIELDS and not name.endswith(RAW_SUFFIX)
    ]
    if others:
        warn(f"Undocumented fields of events were dropped: {', '.join(others)}. {see} all fields.")
