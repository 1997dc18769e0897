"""Look up the name and status of a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from threading import Timer
from typing import Any, Final

from outreach_frames import spec
from outreach_frames.client import connect
from outreach_frames.client.client import Client
from outreach_frames.client.request import next_href
from outreach_frames.common import terms
from outreach_frames.common.arguments import near_names, similar, suggestion
from outreach_frames.common.cancellation import CancellationToken, current_cancellation
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.resources.paging import page_items, record_id

# A plan's look-up must be fast: it only improves messages.
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

    @property
    def refusal(self) -> str:
        """Return why the sequence accepts no leads, or ""; an unknown status accepts leads."""
        if self.status is None or spec.SEQUENCE_STATUSES.get(self.status, True):
            return ""
        return f"the sequence is {self.status}"


def look_up(sequence_id: str, client: Client | None, *, all_pages: bool = False) -> SequenceStatus:
    """Look up a sequence; warn if it accepts no leads, and raise if the account lacks it.

    Without `all_pages`, read at most 5 pages in 2 seconds.
    """
    client = client or connect.current()
    if client is None:
        return SequenceStatus(why="no service is connected")
    seen: dict[str, dict[str, Any]] = {}
    is_complete, why = False, "the service listed no sequences in time"
    token = CancellationToken()
    timer, before = Timer(_MAX_SECONDS, token.set), current_cancellation.set(token)
    if not all_pages:
        timer.start()
    try:
        is_readable = True
        pages = client._session.read_pages(spec.LIST_SEQUENCES, refresh=True)
        for page in islice(pages, None if all_pages else _MAX_PAGES):
            items = page_items(page, spec.LIST_SEQUENCES)
            known = {item["id"]: item for item in items if record_id(item) is not None}
            # After a repeated id, other sequences may be missing: the list has changed meanwhile.
            is_new = len(known) == len(items) and known.keys().isdisjoint(seen)
            is_readable &= is_new and not page.get(spec.ERRORS_KEY)
            seen |= known
            if seen:
                why = f"the id is not among the first {len(seen):,} of the account's sequences"
            if sequence_id in seen:
                break
            is_complete = is_readable and next_href(page) is None
    except OutreachError as error:
        if not token.is_set:
            why = f"the sequences could not be listed: {error}"
    finally:
        timer.cancel()
        current_cancellation.reset(before)
    if sequence_id not in seen:
        _require_known(sequence_id, seen, is_complete=is_complete)
        return SequenceStatus(
            why=why if seen or not is_complete else "the account has no sequences"
        )
    name, status = (_text(seen[sequence_id].get(field)) for field in ("name", "status"))
    known_status = SequenceStatus(name, status)
    if known_status.refusal:
        open_statuses = (name for name, is_open in spec.SEQUENCE_STATUSES.items() if is_open)
        warn(
            f"The sequence {name!r} is {status} and accepts no leads until it is "
            f"{' or '.join(open_statuses)}. Change its status in the web app."
        )
    return known_status


def _require_known(
    sequence_id: str, seen: Mapping[str, Mapping[str, Any]], *, is_complete: bool
) -> None:
    """Raise if the id is the name of a sequence, or if all sequences are known without it."""
    names = {id_: name for id_, item in seen.items() if (name := _text(item.get("name")))}
    same = near_names(sequence_id, names.values())
    if ids := [id_ for id_, name in names.items() if name in same]:
        raise InvalidInputError(
            f"{sequence_id!r} is the name of a sequence, not its id. Pass the id: "
            f"{' or '.join(map(repr, ids))}. Nothing was sent."
        )
    if is_complete and seen:
        close = similar(sequence_id, islice(names.values(), _MAX_COMPARED))
        ids = [f"{id_!r} ({name})" for id_, name in names.items() if name in close]
        hint = f" Did you mean {' or '.join(ids)}?" if ids else ""
        hint = hint or suggestion(sequence_id, islice(seen, _MAX_COMPARED))
        raise InvalidInputError(
            f"The account has no sequence with the id {sequence_id!r}.{hint} "
            f"{terms.function('sequences')} lists all sequences of the connected account, with "
            "their ids. Nothing was sent."
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
