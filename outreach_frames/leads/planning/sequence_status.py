"""Look up the name and status of a sequence within seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from threading import Thread
from typing import Any, Final

from outreach_frames import spec
from outreach_frames.client import connect
from outreach_frames.client.client import Client
from outreach_frames.client.request import next_href
from outreach_frames.common.arguments import near_names, similar, suggestion
from outreach_frames.common.cancellation import CancellationToken, bind_thread
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.resources.paging import page_items, record_id

# No caller asks for this look-up, so it must be fast.
_MAX_SECONDS: Final = 1.9
_MAX_PAGES: Final = 5
# Compare few ids, since the search for similar ids is slow.
_MAX_COMPARED: Final = 500


@dataclass(frozen=True, slots=True)
class SequenceStatus:
    """A sequence's name and status; `why` has the reason if they are unknown."""

    name: str | None = None
    status: str | None = None
    why: str = ""


@dataclass(slots=True)
class _Listing:
    """The sequences that were read, by id; `is_complete` if these are certainly all."""

    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_complete: bool = False
    error: OutreachError | None = None


def look_up(sequence_id: str, client: Client | None) -> SequenceStatus:
    """Look up a sequence in at most 2 seconds and 5 pages; warn if it accepts no leads.

    Raise if the list of sequences could be read and lacks the sequence.
    """
    client = client or connect.current()
    if client is None:
        return SequenceStatus(why="no service is connected")
    listing, token = _Listing(), CancellationToken()
    arguments = sequence_id, client, token, listing
    # The thread is abandoned if it takes too long.
    thread = Thread(target=_read, args=arguments, name="outreach_frames", daemon=True)
    try:
        thread.start()
        thread.join(_MAX_SECONDS)
    finally:
        token.set()
    found = listing.items.get(sequence_id)
    if found is None:
        return SequenceStatus(why=_why_not(sequence_id, listing))
    name, status = (_text(found.get(field)) for field in ("name", "status"))
    if status is not None and not spec.SEQUENCE_STATUSES.get(status, True):
        open_to_leads = (one for one, accepts in spec.SEQUENCE_STATUSES.items() if accepts)
        warn(
            f"The sequence {name!r} is {status} and accepts no leads until it is "
            f"{' or '.join(open_to_leads)}. Change its status in the web app."
        )
    return SequenceStatus(name, status)


def _read(sequence_id: str, client: Client, token: CancellationToken, listing: _Listing) -> None:
    """Read pages of sequences, without the cache, until the sequence is found."""
    bind_thread(token)
    is_readable = True
    try:
        pages = client.read_pages(spec.LIST_SEQUENCES, refresh=True)
        for page in islice(pages, _MAX_PAGES):
            items = page_items(page, spec.LIST_SEQUENCES)
            known = {item["id"]: item for item in items if record_id(item) is not None}
            # After a repeated id, other sequences may be missing: the list has changed meanwhile.
            is_new = len(known) == len(items) and known.keys().isdisjoint(listing.items)
            is_readable &= is_new and not page.get(spec.ERRORS_KEY)
            listing.items = listing.items | known
            if sequence_id in known:
                return
            listing.is_complete = is_readable and next_href(page) is None
    except OutreachError as error:
        listing.error = None if token.is_set else error


def _why_not(sequence_id: str, listing: _Listing) -> str:
    """Return why the sequence was not found; raise if the id is a name or does not exist."""
    seen = listing.items
    names = {one: name for one, item in seen.items() if (name := _text(item.get("name")))}
    same = near_names(sequence_id, names.values())
    if ids := [one for one, name in names.items() if name in same]:
        raise InvalidInputError(
            f"{sequence_id!r} is the name of a sequence, not its id. Pass the id: "
            f"{' or '.join(map(repr, ids))}. Nothing was sent."
        )
    if listing.is_complete and not seen:
        return "the account has no sequences"
    if listing.is_complete:
        close = similar(sequence_id, islice(names.values(), _MAX_COMPARED))
        ids = [f"{one!r} ({name})" for one, name in names.items() if name in close]
        hint = f" Did you mean {' or '.join(ids)}?" if ids else ""
        hint = hint or suggestion(sequence_id, islice(seen, _MAX_COMPARED))
        raise InvalidInputError(
            f"The account has no sequence with the id {sequence_id!r}.{hint} of.sequences() lists "
            "all sequences of the connected account, with their ids. Nothing was sent."
        )
    if listing.error is not None:
        return f"the sequences could not be listed: {listing.error}"
    if seen:
        return f"the id is not among the first {len(seen):,} of the account's sequences"
    return "the service listed no sequences in time"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
