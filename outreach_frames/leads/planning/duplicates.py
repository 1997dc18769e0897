"""Rows that are the same person: by e-mail address or profile URL, over any number of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa


def find_kept(keys: Mapping[str, pa.Array], is_valid: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return for each row the row that is kept of the same person: itself, or an earlier one.

    Only valid rows take part, so that an invalid row never stands in the way of a valid one.
    """
    kept = list(range(len(is_valid)))
    shared = [_shared_codes(column, is_valid) for column in keys.values()]
    any_shared = np.logical_or.reduce([codes >= 0 for codes in shared])
    first_with: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(any_shared).tolist():
        found = [
            _root(kept, first_with.setdefault((kind, int(codes[row])), row))
            for kind, codes in enumerate(shared)
            if codes[row] >= 0
        ]
        for root in found:
            kept[root] = min(found)
        kept[row] = min(found)
    return np.array([_root(kept, row) for row in kept], dtype=np.int64)


def _shared_codes(keys: pa.Array, is_valid: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a number for each key that several valid rows have; -1 elsewhere."""
    numbers = keys.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    codes = np.where(is_valid, numbers, -1)
    times = np.bincount(codes + 1, minlength=1)
    return np.where(times[codes + 1] > 1, codes, -1)


def _root(kept: list[int], row: int) -> int:
    """Follow a row to the one that is kept, and shorten the way for the next."""
    root = row
    while kept[root] != root:
        root = kept[root]
    while kept[row] != root:
        kept[row], row = root, kept[row]
    return root
