"""Persons in a table: rows that share an identifier, over any number of steps.

An email and a certain profile URL identify a person. A weak URL identifies only rows that have
nothing else, so that it never joins such a row to another person.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.identity.keys import certain_keys

Rows = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

NONE: Final = -1


class Identifiers(NamedTuple):
    """The identifiers of rows, a column for each kind; missing where a row has none."""

    email: pa.Array
    url: pa.Array
    weak_url: pa.Array


class Numbers(NamedTuple):
    """Identifiers as numbers: equal numbers are equal identifiers, -1 is missing.

    `first` is the email or the weak URL, since no row is identified by both; `url` the certain one.
    """

    first: Rows
    url: Rows


def identifiers(emails: pa.Array, urls: pa.Array) -> Identifiers:
    """Sort the keys of emails and profile URLs into kinds of identifiers.

    >>> urls = pa.array(["x.example/in/a", "https://x.example/1", "https://x.example/1"])
    >>> found = identifiers(pa.array([None, "a@x.example", None]), urls)
    >>> found.url.to_pylist(), found.weak_url.to_pylist()
    (['x.example/in/a', None, None], [None, None, 'https://x.example/1'])
    """
    certain = certain_keys(urls)
    is_alone = pc.and_(certain.is_null(), emails.is_null())
    return Identifiers(emails, certain, pc.if_else(is_alone, urls, pa.scalar(None, urls.type)))


def numbers_of(of: Identifiers) -> Numbers:
    """Return identifiers as numbers."""
    emails, urls, weak = (
        column.dictionary_encode().indices.fill_null(NONE).to_numpy(zero_copy_only=False)
        for column in of
    )
    first = np.where(weak == NONE, emails, weak + len(emails))
    return Numbers(first.astype(np.int64), urls.astype(np.int64))


def person_numbers(
    keys: Sequence[pa.RecordBatch], known: pa.RecordBatch | None = None
) -> list[Rows]:
    """Return the columns of numbers that link rows into persons.

    Parameters
    ----------
    keys : sequence of RecordBatch
        The rows' keys of emails and profile URLs, by one or several pairs of columns.
    known : RecordBatch, optional
        The keys of other rows, which come first.
    """
    others = [] if known is None else [known]
    numbers = list(numbers_of(identifiers(*pa.concat_batches([*others, *keys]).columns)))
    if len(keys) > 1:
        rows = np.tile(np.arange(len(keys[0])), len(keys))
        numbers.append(np.pad(rows, (sum(map(len, others)), 0), constant_values=NONE))
    return numbers


def set_numbers(numbers: Sequence[Rows]) -> Rows:
    """Return a number for each row, the same for rows with the same identifiers; -1 for none."""
    found = np.zeros(len(numbers[0]), dtype=np.int64)
    for column in numbers:
        distinct = found * (column.max(initial=NONE) + 2) + column + 1
        _, found = np.unique(distinct, return_inverse=True)
        # The first number is that of rows without any identifier, where there are such rows.
        found += distinct.min(initial=1) > 0
    return found - 1


def first_rows(numbers: Sequence[Rows]) -> Rows:
    """Return for each row the first row of its person; a row without identifiers is alone.

    Parameters
    ----------
    numbers : sequence of ndarray
        Columns of numbers, of which one that is equal makes two rows one person; -1 is missing.

    >>> keys = identifiers(pa.array(["a@x.example", "b@x.example", None]), pa.nulls(3, pa.string()))
    >>> first_rows(numbers_of(keys)).tolist()
    [0, 1, 2]
    """
    sets = set_numbers(numbers)
    _, places, inverse = np.unique(sets, return_index=True, return_inverse=True)
    shared = [_shared(column[places]) for column in numbers]
    linked = np.flatnonzero(np.logical_or.reduce([column != NONE for column in shared]))
    roots = {row: row for row in places[linked].tolist()}
    first_with: dict[tuple[int, int], int] = {}
    for place in linked[np.argsort(places[linked])].tolist():
        row = int(places[place])
        found = [
            _root(roots, first_with.setdefault((kind, int(column[place])), row))
            for kind, column in enumerate(shared)
            if column[place] != NONE
        ]
        for root in [*found, row]:
            roots[root] = min(found)
    first = places.copy()
    first[linked] = [_root(roots, row) for row in places[linked].tolist()]
    return np.where(sets == NONE, np.arange(len(sets)), first[inverse])


def _shared(column: Rows) -> Rows:
    """Keep the numbers that several rows have."""
    times = np.bincount(column + 1, minlength=1)
    return np.where(times[column + 1] > 1, column, NONE)


def _root(roots: dict[int, int], row: int) -> int:
    """Follow a row to the first of its person, and shorten the path for later look-ups."""
    root = row
    while roots[root] != root:
        root = roots[root]
    while roots[row] != root:
        roots[row], row = root, roots[row]
    return root
