"""The journals in memory: for each service and sequence, the events that this process knows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, RLock
from typing import Final, NamedTuple

from outreach_frames.errors import InvalidInputError
from outreach_frames.leads.sending.digests import Digest
from outreach_frames.leads.sending.events import EventStore
from outreach_frames.leads.sending.journal_file import Head

_memories: Final[dict[tuple[str, str], Memory]] = {}
_lock = Lock()


class CommonEvents(NamedTuple):
    """The head of a journal file, and the number of the memory's events that the file has."""

    head: Head
    number: int


class Memory(EventStore):
    """The events of one sequence of a service, and the people that runs are sending now."""

    def __init__(self, base_url: str, sequence_id: str) -> None:
        super().__init__()
        self.base_url: Final = base_url
        self.sequence_id: Final = sequence_id
        self.lock = RLock()
        self._under_way: list[set[Digest]] = []
        # What each journal file had in common with the memory after its last run.
        self.common: dict[Path, CommonEvents] = {}

    @contextmanager
    def sending(self, people: set[Digest]) -> Iterator[None]:
        """Reserve people for a run; raise if another run is sending any of them."""
        with self.lock:
            if not all(people.isdisjoint(others) for others in self._under_way):
                raise InvalidInputError(
                    "Another run is adding some of these people to this sequence. Wait until it "
                    "ends."
                )
            self._under_way.append(people)
        try:
            yield
        finally:
            with self.lock:
                self._under_way = [others for others in self._under_way if others is not people]

    def renew(self) -> None:
        """Replace the locks in a forked process, in which no run continues."""
        self.lock = RLock()
        self._under_way = []


def memory_of(base_url: str, sequence_id: str) -> Memory:
    """Return this process's journal of a service and a sequence, whatever the token."""
    # Only a process that runs a sandbox has imported this module, which is slow to import.
    service = sys.modules.get("outreach_frames.sandbox.service")
    if service is not None and clear not in service.stop_listeners:
        service.stop_listeners.append(clear)
    with _lock:
        return _memories.setdefault((base_url, sequence_id), Memory(base_url, sequence_id))


def clear(base_url: str | None = None) -> None:
    """Drop the events of one service, or of all services."""
    with _lock:
        for key, memory in list(_memories.items()):
            if base_url in {None, memory.base_url}:
                del _memories[key]


def _after_fork_in_child() -> None:
    global _lock  # noqa: PLW0603 - the parent's thread holds the old lock
    _lock = Lock()
    for memory in _memories.values():
        memory.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
