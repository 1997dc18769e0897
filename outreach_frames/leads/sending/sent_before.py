"""Remember the people that this process sent to each sequence, to warn of repeated sending."""

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
# Functions that return the keys of sent rows; the keys of a running submission grow.
_sent_keys: dict[_Target, list[Callable[[], list[pa.RecordBatch]]]] = {}
_targets_under_way: set[_Target] = set()


@contextmanager
def recording(
    client: Client, plan: PreparedLeads, sent_rows: Callable[[], Positions]
) -> Iterator[None]:
    """During and after a run, record the people who were or may have been added."""

    def keys_now() -> list[pa.RecordBatch]:
        rows = pa.array(sent_rows())
        return [keys.take(rows) for keys in (plan.keys, *plan.earlier_keys)]

    target = _target(client, plan)
    with _lock:
        _sent_keys.setdefault(target, []).append(keys_now)
    try:
        yield
    finally:
        final_keys = keys_now()
        with _lock:
            others = [each for each in _sent_keys.get(target, []) if each is not keys_now]
            _sent_keys[target] = [*others, lambda: final_keys]


def are_sent(client: Client, plan: PreparedLeads, rows: Positions) -> Mask:
    """Return whether each row's person was sent before."""
    target = _target(client, plan)
    with _lock:
        before = [keys for keys_now in _sent_keys.get(target, []) for keys in keys_now()]
    if not any(map(len, before)) or not len(rows):
        return np.zeros(len(rows), dtype=bool)
    known = pa.concat_batches(before)
    numbers = person_numbers([plan.keys, *plan.earlier_keys], known)
    return first_rows(numbers)[len(known) :][rows] < len(known)


@contextmanager
def sending(client: Client, plan: PreparedLeads) -> Iterator[bool]:
    """Mark a sequence as in use by a submission; yield False if another submission uses it."""
    target = _target(client, plan)
    with _lock:
        is_free = target not in _targets_under_way
        _targets_under_way.add(target)
    try:
        yield is_free
    finally:
        if is_free:
            with _lock:
                _targets_under_way.discard(target)


def clear() -> None:
    """Drop all records."""
    with _lock:
        _sent_keys.clear()


def _target(client: Client, plan: PreparedLeads) -> _Target:
    return client.account, plan.sequence_id
