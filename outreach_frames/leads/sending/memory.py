"""The journals in memory: for each account and sequence, the leads that this process recorded."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, RLock
from typing import Final

from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError
from outreach_frames.leads.prepared import Text
from outreach_frames.leads.sending.records import Records

_memories: Final[dict[tuple[str, str], Memory]] = {}
_lock = Lock()


class Memory(Records):
    """The leads of one account's sequence, and the people that runs are sending now."""

    def __init__(self, base_url: str) -> None:
        super().__init__()
        self.base_url: Final = base_url
        self.lock = RLock()
        self._under_way: list[set[Text]] = []

    @contextmanager
    def sending(self, people: set[Text]) -> Iterator[None]:
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
                self._under_way = [each for each in self._under_way if each is not people]

    def renew(self) -> None:
        """Replace the locks in a forked process, in which no run continues."""
        self.lock = RLock()
        self._under_way = []


def memory_of(client: Client, sequence_id: str, memory: Memory | None = None) -> Memory:
    """Return the journal in memory of a client's account and a sequence.

    A plan that began with another token keeps its `memory`, and the account has no other memory
    yet: then it has the plan's.
    """
    # Only a process that runs a sandbox has imported this module, which is slow to import.
    service = sys.modules.get("outreach_frames.sandbox.service")
    if service is not None and clear not in service.stop_listeners:
        service.stop_listeners.append(clear)
    with _lock:
        new = memory or Memory(client.base_url)
        return _memories.setdefault((client.account, sequence_id), new)


def clear(base_url: str | None = None) -> None:
    """Drop the records of one service, or of all services."""
    with _lock:
        for key, memory in list(_memories.items()):
            if base_url in {None, memory.base_url}:
                del _memories[key]


def erase_texts(erase: Callable[[str], str]) -> None:
    """Apply `erase` to details; the keys stay, so that nobody is contacted again."""
    with _lock:
        for memory in _memories.values():
            with memory.lock:
                memory.put([lead.erased(erase) for lead in memory.leads.values()])


def _after_fork_in_child() -> None:
    global _lock  # noqa: PLW0603 - the parent's thread holds the old lock
    _lock = Lock()
    for memory in _memories.values():
        memory.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
