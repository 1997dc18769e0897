"""Rows that are the same person: by e-mail address or profile URL, over any number of steps."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.tables.keys import certain_keys

Rows = np.ndarray[Any, Any]

_NOBODY: Final = -1


def find_kept(emails: pa.Array, urls: pa.Array, is_valid: Rows) -> Rows:
    """Return for each row the row that is kept of the same person: itself, or an earlier one.

    Only valid rows take part, so that an invalid row never stands in the way of a valid one.

    Rows are the same person by one address, or by one URL that tells for certain who it is, over
    any number of steps. Any other URL says so only of a row that has nothing else, and only where
    all rows with an address that have this URL are one person.

    Parameters
    ----------
    emails, urls : Array of large_string
        The keys of the rows, missing where there is none.
    is_valid : ndarray of bool
        Which rows are sent.

    Returns
    -------
    ndarray of int64
        A row's own position where it is kept.
    """
    certain = certain_keys(urls)
    strong = [_codes(keys, is_valid) for keys in (emails, certain)]
    kept = _first_rows(*strong)
    weak = _codes(pc.if_else(certain.is_null(), urls, pa.scalar(None, urls.type)), is_valid)
    is_named = (weak != _NOBODY) & emails.is_valid().to_numpy(zero_copy_only=False)
    owners = np.unique(np.stack([weak[is_named], kept[is_named]]), axis=1)
    urls_of_owners, times = np.unique(owners[0], return_counts=True)
    says_nothing = is_named & np.isin(weak, urls_of_owners[times > 1])
    # A row without an address has no other key, so that it never joins two people.
    return _first_rows(*strong, np.where(says_nothing, _NOBODY, weak))


def _first_rows(*keys: Rows) -> Rows:
    """Return for each row the first of those that it shares keys with, over any number of steps."""
    roots = list(range(len(keys[0])))
    first_with: dict[tuple[int, int], int] = {}
    rows = np.flatnonzero(np.logical_or.reduce([codes != _NOBODY for codes in keys])).tolist()
    for row in rows:
        found = [
            _root(roots, first_with.setdefault((kind, int(codes[row])), row))
            for kind, codes in enumerate(keys)
            if codes[row] != _NOBODY
        ]
        for root in [*found, row]:
            roots[root] = min(found)
    first = np.arange(len(roots))
    first[rows] = [_root(roots, row) for row in rows]
    return first


def _codes(keys: pa.Array, is_valid: Rows) -> Rows:
    """Return a number for each key that several valid rows have; -1 elsewhere."""
    numbers = keys.dictionary_encode().indices.fill_null(_NOBODY).to_numpy(zero_copy_only=False)
    codes = np.where(is_valid, numbers, _NOBODY)
    times = np.bincount(codes + 1, minlength=1)
    return np.where(times[codes + 1] > 1, codes, _NOBODY)


def _root(roots: list[int], row: int) -> int:
    """Follow a row to the one that is kept, and shorten the path for later look-ups."""
    root = row
    while roots[root] != root:
        root = roots[root]
    while roots[row] != root:
        roots[row], row = root, roots[row]
    return root
