"""Who is who in two tables: rows matched by keys, the surest first, and never by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

Rows = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Side:
    """One table's rows, apart.

    Attributes
    ----------
    kept : ndarray of int
        The first row of everybody who can be told, in order.
    repeated : ndarray of int
        Rows of somebody who has one already.
    nameless : ndarray of int
        Rows without any key.
    """

    kept: Rows
    repeated: Rows
    nameless: Rows


@dataclass(frozen=True, slots=True)
class Matching:
    """Two tables' rows, matched.

    Attributes
    ----------
    before, after : Side
        The rows of each.
    pairs_before, pairs_after : ndarray of int
        The rows that belong together, in the order of the table before.
    gone, new : ndarray of int
        The kept rows of the one table that are not in the other.
    """

    before: Side
    after: Side
    pairs_before: Rows
    pairs_after: Rows
    gone: Rows
    new: Rows


def match_rows(before: Sequence[pa.Array], after: Sequence[pa.Array]) -> Matching:
    """Match the rows of two tables.

    Rows with the same first key belong together. Where one of two rows lacks that key, the next one
    decides, and so on. Of several rows that could be meant, the first is.

    Parameters
    ----------
    before, after : sequence of pyarrow.Array
        The keys as text, the surest first; the same keys for both tables.

    Returns
    -------
    Matching
        Every row of either table is in it once.

    Examples
    --------
    >>> ids, urls = pa.array(["a", None, "c"]), pa.array([None, "u", None])
    >>> found = match_rows([ids, urls], [pa.array(["c", "b"]), pa.array([None, "u"])])
    >>> found.pairs_before.tolist(), found.pairs_after.tolist(), found.gone.tolist()
    ([1, 2], [1, 0], [0])
    """
    codes = [_codes(one, other) for one, other in zip(before, after, strict=True)]
    ours, theirs = [code[0] for code in codes], [code[1] for code in codes]
    old, new = _side(ours), _side(theirs)
    partner = np.full(len(ours[0]), -1)
    free = np.zeros(len(theirs[0]), dtype=bool)
    free[new.kept] = True
    for level in range(len(codes)):
        waiting = old.kept[partner[old.kept] < 0]
        candidates = new.kept[free[new.kept]]
        # Of two rows that have both a surer key, and not the same one, no other key is asked.
        for rows, others in (
            (_lacking(waiting, ours, level), candidates),
            (waiting, _lacking(candidates, theirs, level)),
        ):
            found, their = _first_with(
                ours[level], rows[partner[rows] < 0], theirs[level], others[free[others]]
            )
            partner[found] = their
            free[their] = False
    pairs = old.kept[partner[old.kept] >= 0]
    return Matching(
        old,
        new,
        pairs,
        partner[pairs],
        old.kept[partner[old.kept] < 0],
        new.kept[free[new.kept]],
    )


def _codes(before: pa.Array, after: pa.Array) -> tuple[Rows, Rows]:
    """Give the keys of both tables the same numbers; -1 is missing."""
    keys = pa.concat_arrays([before.cast(pa.large_string()), after.cast(pa.large_string())])
    indices = keys.dictionary_encode().indices
    codes = indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes[: len(before)], codes[len(before) :]


def _side(codes: Sequence[Rows]) -> Side:
    """Tell apart whom a table has once, again, and without any key."""
    size = len(codes[0])
    left = np.ones(size, dtype=bool)
    kept = np.zeros(size, dtype=bool)
    for level in codes:
        known = level[~left & (level >= 0)]
        rows = np.flatnonzero(left & (level >= 0))
        left[rows] = False
        _, first = np.unique(level[rows], return_index=True)
        firsts = rows[first]
        kept[firsts[~np.isin(level[firsts], known)]] = True
    every = np.arange(size)
    return Side(every[kept], every[~kept & ~left], every[left])


def _lacking(rows: Rows, codes: Sequence[Rows], level: int) -> Rows:
    """Return the rows without any key that is surer than that of a level."""
    lacks = np.ones(len(rows), dtype=bool)
    for surer in codes[:level]:
        lacks &= surer[rows] < 0
    return rows[lacks]


def _first_with(ours: Rows, rows: Rows, theirs: Rows, others: Rows) -> tuple[Rows, Rows]:
    """Return the first of these rows and of those for each key that both have."""
    (codes, first), (other_codes, other_first) = (
        np.unique(level[some][level[some] >= 0], return_index=True)
        for level, some in ((ours, rows), (theirs, others))
    )
    rows, others = rows[ours[rows] >= 0], others[theirs[others] >= 0]
    _, left, right = np.intersect1d(codes, other_codes, assume_unique=True, return_indices=True)
    return rows[first[left]], others[other_first[right]]
