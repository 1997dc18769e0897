"""Persons in a table: rows that share an identifier, over any number of steps.

An email and a certain profile URL identify a person. A weak URL identifies only rows that have
nothing else, so that it never joins such a row to another person.
"""

from __future__ import annotations

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
    """Identifiers as numbers that are equal where the identifiers are; -1 where there is none.

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


def numbers_of(of: Identifiers, takes_part: Mask | None = None) -> Numbers:
    """Return identifiers as numbers; rows that do not take part have none."""
    emails, urls, weak = (
        column.dictionary_encode().indices.fill_null(NONE).to_numpy(zero_copy_only=False)
        for column in of
    )
    first = np.where(weak == NONE, emails, weak + len(emails)).astype(np.int64)
    found = Numbers(first, urls.astype(np.int64))
    if takes_part is None:
        return found
    return Numbers(*(np.where(takes_part, one, NONE) for one in found))


def same_rows(numbers: Numbers) -> Rows:
    """Return a number for each row, the same for rows with the same identifiers."""
    base = int(numbers.url.max(initial=NONE)) + 2
    return (numbers.first + 1) * base + numbers.url + 1


def first_rows(numbers: Numbers) -> Rows:
    """Return for each row the first row of its person; a row without identifiers is alone.

    >>> keys = identifiers(pa.array(["a@x.example", "b@x.example", None]), pa.nulls(3, pa.string()))
    >>> first_rows(numbers_of(keys)).tolist()
    [0, 1, 2]
    """
    first = np.arange(len(numbers.first))
    _, places, inverse = np.unique(same_rows(numbers), return_index=True, return_inverse=True)
    distinct = Numbers(numbers.first[places], numbers.url[places])
    shared = _shared(distinct)
    roots = dict(zip(places.tolist(), places.tolist(), strict=True))
    first_with: dict[tuple[int, int], int] = {}
    linked = np.flatnonzero((shared.first != NONE) | (shared.url != NONE))
    for place in linked[np.argsort(places[linked])].tolist():
        row = int(places[place])
        found = [
            _root(roots, first_with.setdefault((kind, int(column[place])), row))
            for kind, column in enumerate(shared)
            if column[place] != NONE
        ]
        for root in [*found, row]:
            roots[root] = min(found)
    of_place = places.copy()
    of_place[linked] = [_root(roots, row) for row in places[linked].tolist()]
    is_identified = (numbers.first != NONE) | (numbers.url != NONE)
    return np.where(is_identified, of_place[inverse], first)


def _shared(numbers: Numbers) -> Numbers:
    """Keep the numbers that several rows have."""
    kept = []
    for column in numbers:
        times = np.bincount(column + 1, minlength=1)
        kept.append(np.where(times[column + 1] > 1, column, NONE))
    return Numbers(*kept)


def _root(roots: dict[int, int], row: int) -> int:
    """Follow a row to the first of its person, and shorten the path for later look-ups."""
    root = row
    while roots[root] != root:
        root = roots[root]
    while roots[row] != root:
        roots[row], row = root, roots[row]
    return root
