"""Link a table's rows by person: rows that share an identifier, directly or through other rows.

Emails and certain profile URLs identify a person. A weak URL identifies only rows without other
identifiers, and never links these rows to rows with other identifiers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.identity.keys import (
    certain_keys,
    company_name_keys,
    company_url_keys,
    filled_texts,
)
from outreach_frames.tables.value_text import TEXT, strip_texts

Rows = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

NONE: Final = -1


class Identifiers(NamedTuple):
    """The rows' identifiers, one column per kind, with missing values."""

    email: pa.Array
    url: pa.Array
    weak_url: pa.Array


class Numbers(NamedTuple):
    """Each row's identifiers as numbers: equal for equal identifiers, -1 if missing."""

    first: Rows  # email or weak URL; no row has both
    url: Rows  # certain URL


def identifiers(emails: pa.Array, urls: pa.Array) -> Identifiers:
    """Split keys of emails and profile URLs by kind of identifier.

    >>> urls = pa.array(["x.example/in/a", "https://x.example/1", "https://x.example/1"])
    >>> columns = identifiers(pa.array([None, "a@x.example", None]), urls)
    >>> columns.url.to_pylist(), columns.weak_url.to_pylist()
    (['x.example/in/a', None, None], [None, None, 'https://x.example/1'])
    """
    certain = certain_keys(urls)
    is_alone = pc.and_(certain.is_null(), emails.is_null())
    return Identifiers(emails, certain, pc.if_else(is_alone, urls, pa.scalar(None, urls.type)))


def numbers_of(columns: Identifiers) -> Numbers:
    """Convert identifiers to numbers."""
    emails, urls, weak = map(key_numbers, columns)
    return Numbers(np.where(weak == NONE, emails, weak + len(emails)), urls)


def key_numbers(keys: pa.Array) -> Rows:
    """Return each key's number, equal for equal keys, -1 if missing.

    >>> key_numbers(pa.array(["b", None, "a", "b"])).tolist()
    [0, -1, 1, 0]
    """
    numbers: Rows = np.asarray(keys.dictionary_encode().indices.fill_null(NONE), dtype=np.int64)
    return numbers


def first_rows(numbers: Sequence[Rows]) -> Rows:
    """Return each row's first row of the same person; an equal number in a column links rows.

    >>> keys = identifiers(pa.array(["a@x.example", "b@x.example", None]), pa.nulls(3, pa.string()))
    >>> first_rows(numbers_of(keys)).tolist()
    [0, 1, 2]
    """
    first = np.arange(len(numbers[0]))
    shared = [_shared(column) for column in numbers]
    before = None
    while before is None or not np.array_equal(first, before):
        before = first.copy()
        for rows, column in shared:
            least = np.full(column.max(initial=NONE) + 1, len(first))
            np.minimum.at(least, column, first[rows])
            # Update the first rows too, so that long chains need few rounds.
            np.minimum.at(first, first[rows], least[column])
            first[rows] = np.minimum(first[rows], least[column])
        first = first[first]
    return first


def first_valid_rows(persons: Rows, is_valid: Mask) -> Rows:
    """Return each valid row's first valid row of the same person, and every other row itself.

    >>> first_valid_rows(np.array([0, 0, 0]), np.array([False, True, True])).tolist()
    [0, 1, 1]
    """
    rows = np.flatnonzero(is_valid)
    _, first, inverse = np.unique(persons[rows], return_index=True, return_inverse=True)
    kept = np.arange(len(is_valid))
    kept[rows] = rows[first][inverse]
    return kept


def first_known(first: Rows, missing: Mask) -> Rows:
    """Return, per row, its group's first row with a value; `first` has its group's first row.

    >>> first_known(np.array([0, 1, 0]), np.array([True, False, False])).tolist()
    [2, 1, 2]
    """
    rows = np.flatnonzero(missing[first] & ~missing)
    if not len(rows):
        return first
    known = np.arange(len(first))
    # Assign in reverse, so that the first row wins.
    known[first[rows[::-1]]] = rows[::-1]
    return known[first]


def first_company_rows(ids: pa.Array, urls: pa.Array, names: pa.Array) -> Rows:
    """Return each row's first row of the same company, or -1 without any text.

    Rows with the same id or the same normalised profile URL are one company, directly or through
    other rows. A name identifies only rows that have neither.

    >>> ids = pa.array(["1", None, "2"])
    >>> urls = pa.array(["x.example/a", "https://X.example/a/", ""])
    >>> first_company_rows(ids, urls, pa.nulls(3, pa.string())).tolist()
    [0, 0, 2]
    """
    ids, urls = filled_texts(strip_texts(ids.cast(TEXT))), company_url_keys(urls)
    is_alone = pc.and_(ids.is_null(), urls.is_null())
    alone = pc.if_else(is_alone, filled_texts(names.cast(TEXT)), pa.scalar(None, TEXT))
    numbers = numbers_of(Identifiers(ids, urls, company_name_keys(alone)))
    return np.where(np.maximum(*numbers) == NONE, NONE, first_rows(numbers))


def _shared(column: Rows) -> tuple[Rows, Rows]:
    """Return the rows whose number is not unique, and their numbers."""
    times = np.bincount(column + 1, minlength=1)
    rows = np.flatnonzero((times[column + 1] > 1) & (column != NONE))
    return rows, column[rows]
