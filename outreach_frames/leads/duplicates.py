"""Rows that are the same person: by e-mail address or profile URL, over any number of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

Codes = np.ndarray[Any, Any]


def find_kept(keys: Mapping[str, pa.Array], is_valid: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return for each row the row that is kept of the same person: itself, or an earlier one.

    Only valid rows take part, so that an invalid row never stands in the way of a valid one.
    """
    kept = np.arange(len(is_valid))
    shared = [codes for codes in map(_shared_codes, keys.values(), [is_valid] * len(keys))]
    roots: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(np.logical_or.reduce([codes >= 0 for codes in shared])).tolist():
        found = [
            _root(kept, roots.setdefault((kind, int(codes[row])), row))
            for kind, codes in enumerate(shared)
            if codes[row] >= 0
        ]
        first = min([row, *found])
        for root in found:
            kept[root] = first
        kept[row] = first
    for row in np.flatnonzero(kept != np.arange(len(kept))).tolist():
        kept[row] = _root(kept, row)
    return kept


def _shared_codes(keys: pa.Array, is_valid: np.ndarray[Any, Any]) -> Codes:
    """Number the keys that several valid rows have; -1 elsewhere."""
    codes = keys.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False).copy()
    codes[~is_valid] = -1
    times = np.bincount(codes + 1)
    times[0] = 0
    codes[times[codes + 1] < 2] = -1
    return codes


def _root(kept: np.ndarray[Any, Any], row: int) -> int:
    """Follow a row to the one that is kept, and shorten the way for the next."""
    root = row
    while kept[root] != root:
        root = int(kept[root])
    while kept[row] != root:
        kept[row], row = root, int(kept[row])
    return root
