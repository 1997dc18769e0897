"""What is known of the sequence that leads are meant for, where that can be told."""

from __future__ import annotations

from dataclasses import dataclass

from outreach_frames import spec
from outreach_frames.client import connect
from outreach_frames.client.client import Client
from outreach_frames.common.arguments import suggestion
from outreach_frames.common.warnings import warn
from outreach_frames.errors import OutreachError
from outreach_frames.resources.sequences import sequences


@dataclass(frozen=True, slots=True)
class SequenceStatus:
    """A sequence's name and status, None where they are not known, and `why` not."""

    name: str | None = None
    status: str | None = None
    why: str = ""


def look_up(sequence_id: str, client: Client | None) -> SequenceStatus:
    """Ask the service for the sequence where one is connected, and warn where leads are refused.

    The answer is a hint: it never stands in the way of a plan.
    """
    client = client or connect.current()
    if client is None:
        return SequenceStatus(why="no service is connected")
    try:
        known = sequences(progress=False, client=client)
    except OutreachError as error:
        return SequenceStatus(why=f"the sequences could not be listed: {error}")
    found = known[known["id"] == sequence_id]
    if found.empty:
        close = suggestion(sequence_id, known["id"].dropna())
        warn(f"The account has no sequence {sequence_id!r}.{close} of.sequences() lists them.")
        return SequenceStatus(why="it is not among the account's sequences")
    name, status = (
        text if isinstance(text, str) else None for text in found.iloc[0][["name", "status"]]
    )
    if status is not None and not spec.SEQUENCE_STATUSES.get(status, True):
        takes = " or ".join(state for state, accepts in spec.SEQUENCE_STATUSES.items() if accepts)
        warn(
            f"The sequence {name!r} is {status}; the service takes leads only where it is {takes}."
        )
    return SequenceStatus(name, status)
