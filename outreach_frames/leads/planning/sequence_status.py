"""Look up the name and status of a sequence within seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Final

from outreach_frames import spec
from outreach_frames.client import connect
from outreach_frames.client.client import Client
from outreach_frames.client.links import next_href
from outreach_frames.common.arguments import suggestion
from outreach_frames.common.cancellation import CancellationToken, bind_thread
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.resources.paging import page_items, record_id

# No caller asks for this look-up, so it must be fast.
_MAX_SECONDS: Final = 1.9
_MAX_REQUESTS: Final = 5
# Compare few ids, since the search for similar ids is slow.
_MAX_COMPARED: Final = 500


@dataclass(frozen=True, slots=True)
class SequenceStatus:
    """A sequence's name and status; `why` has the reason if they are unknown."""

    name: str | None = None
    status: str | None = None
    why: str = ""


def look_up(sequence_id: str, client: Client | None) -> SequenceStatus:
    """Look up a sequence in at most 2 seconds and 5 requests; warn if it accepts no leads.

    Raise if the account certainly has no such sequence. A cached list is then read once more.
    """
    client = client or connect.current()
    if client is None:
        return SequenceStatus(why="no service is connected")
    search = _Search(sequence_id, client)
    search.run()
    if search.has_ended and search.found is None and client.cache is not None:
        # The cached list may lack a new sequence.
        search = _Search(sequence_id, client, refresh=True)
        search.run()
    if search.found is None:
        return SequenceStatus(why=_why_not(search))
    name, status = (_text(search.found.get(field)) for field in ("name", "status"))
    if status is not None and not spec.SEQUENCE_STATUSES.get(status, True):
        open_to_leads = (one for one, accepts in spec.SEQUENCE_STATUSES.items() if accepts)
        warn(
            f"The sequence {name!r} is {status} and accepts no leads until it is "
            f"{' or '.join(open_to_leads)}. Change its status in the web app."
        )
    return SequenceStatus(name, status)


@dataclass(slots=True)
class _Search:
    """A search for a sequence, in a thread that is abandoned after `_MAX_SECONDS`."""

    sequence_id: str
    client: Client
    refresh: bool = False
    found: dict[str, Any] | None = None
    seen: list[dict[str, Any]] = field(default_factory=list)
    # Whether the last page was read, and whether its and all other pages' items were readable.
    has_ended: bool = False
    is_complete: bool = True
    error: OutreachError | None = None
    _token: CancellationToken = field(default_factory=CancellationToken)
    _requests: int = 0

    def run(self) -> None:
        """Search until the sequence is found or `_MAX_SECONDS` have passed."""
        thread = Thread(target=self._search, name="outreach_frames", daemon=True)
        try:
            thread.start()
            thread.join(_MAX_SECONDS)
        finally:
            self._token.set()

    def _search(self) -> None:
        bind_thread(self._token, self._count_retry)
        try:
            for page in self.client.read_pages(spec.LIST_SEQUENCES, refresh=self.refresh):
                self._requests += 1
                items = page_items(page, spec.LIST_SEQUENCES)
                known = [item for item in items if record_id(item) is not None]
                self.found = next((item for item in known if item["id"] == self.sequence_id), None)
                self.seen = [*self.seen, *known]
                # If items are repeated, the list changed between pages and may lack others.
                is_distinct = len({item["id"] for item in self.seen}) == len(self.seen)
                is_readable = len(known) == len(items) and not page.get(spec.ERRORS_KEY)
                self.is_complete = self.is_complete and is_distinct and is_readable
                self.has_ended = next_href(page) is None
                if self.found is not None or self._requests >= _MAX_REQUESTS:
                    return
        except OutreachError as error:
            self.error = None if self._token.is_set else error

    def _count_retry(self, status: str) -> None:
        """Count a retry or wait as a request; stop the search at `_MAX_REQUESTS`."""
        self._requests += bool(status)
        if self._requests >= _MAX_REQUESTS:
            self._token.set()


def _why_not(search: _Search) -> str:
    """Return why the search failed; raise if the id is a name or certainly does not exist."""
    sequence_id = search.sequence_id
    ids = [item["id"] for item in search.seen if _text(item.get("name")) == sequence_id]
    if ids:
        raise InvalidInputError(
            f"{sequence_id!r} is the name of a sequence, not its id. Pass the id: "
            f"{' or '.join(map(repr, ids))}. Nothing was sent."
        )
    # Read in this order: an abandoned search may still find the sequence.
    if search.has_ended and search.found is None:
        close = suggestion(sequence_id, [item["id"] for item in search.seen[:_MAX_COMPARED]])
        lacking = f"The account has no sequence with the id {sequence_id!r}.{close}"
        if search.is_complete and search.seen:
            raise InvalidInputError(
                f"{lacking} of.sequences() lists all sequences of the connected account, with "
                "their ids. Nothing was sent."
            )
        warn(f"{lacking} The list may be incomplete: check the id with of.sequences().")
        return "the id is not among the account's sequences"
    if search.error is not None:
        return f"the sequences could not be listed: {search.error}"
    if search.seen:
        return f"the id is not among the first {len(search.seen):,} of the account's sequences"
    return "the service did not list its sequences in time"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
