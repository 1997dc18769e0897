"""Persons that this process sent to each sequence of an account, whether in a cell or a widget.

Without a journal nothing outlives the process, and nothing is withheld: this is for a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np
import pyarrow as pa

from outreach_frames.client.client import Client
from outreach_frames.identity.persons import first_rows, person_numbers
from outreach_frames.leads.prepared import Mask, Positions, PreparedLeads

_Target = tuple[str, str]

_lock = Lock()
# Functions that return keys: of a run under way, those of the rows that it has sent by then.
_sent: dict[_Target, list[Callable[[], list[pa.RecordBatch]]]] = {}
_under_way: set[_Target] = set()


@contextmanager
def recording(
    client: Client, plan: PreparedLeads, sent_rows: Callable[[], Positions]
) -> Iterator[None]:
    """Add the persons of rows that a run sends, or may have sent, during it and afterwards."""

    def sent() -> list[pa.RecordBatch]:
        rows = pa.array(sent_rows())
        return [keys.take(rows) for keys in (plan.keys, *plan.earlier_keys)]

    target = _target(client, plan)
    with _lock:
        _sent.setdefault(target, []).append(sent)
    try:
        yield
    finally:
        keys = sent()
        with _lock:
            others = [each for each in _sent.get(target, []) if each is not sent]
            _sent[target] = [*others, lambda: keys]


def are_sent(client: Client, plan: PreparedLeads, rows: Positions) -> Mask:
    """Return whether the persons of rows were sent before."""
    target = _target(client, plan)
    with _lock:
        before = [keys for sent in _sent.get(target, []) for keys in sent()]
    if not any(map(len, before)) or not len(rows):
        return np.zeros(len(rows), dtype=bool)
    known = pa.concat_batches(before)
    numbers = person_numbers([plan.keys, *plan.earlier_keys], known)
    return first_rows(numbers)[len(known) :][rows] < len(known)


@contextmanager
def sending(client: Client, plan: PreparedLeads) -> Iterator[bool]:
    """Mark a sequence as being sent to; yield False where it already is."""
    target = _target(client, plan)
    with _lock:
        is_free = target not in _under_way
        _under_way.add(target)
    try:
        yield is_free
    finally:
        if is_free:
            with _lock:
                _under_way.discard(target)


def clear() -> None:
    """Drop everything, as a new process would."""
    with _lock:
        _sent.clear()


def _target(client: Client, plan: PreparedLeads) -> _Target:
    return client.account, plan.sequence_id
