"""Matching of two tables by keys, the strongest first; a missing key matches nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.identity.persons import NONE, Mask, Rows, first_rows, identifiers, numbers_of

# The keys of two tables as numbers, -1 where missing, and how many distinct ones there are.
_Numbered = tuple[Rows, Rows, int]


class Keys(NamedTuple):
    """The keys of a table's rows, the strongest first; all missing where not compared."""

    email: pa.Array
    profnet_url: pa.Array
    domain: pa.Array


class Found(NamedTuple):
    """For each row, its match in another table.

    Attributes
    ----------
    rows : ndarray of int
        The first row that matches, -1 if none does.
    kinds : ndarray of int
        The position of the key in `Keys`, -1 if no row matches.
    counts : ndarray of int
        How many rows match by that key.
    """

    rows: Rows
    kinds: Rows
    counts: Rows


def find_rows(ours: Keys, theirs: Keys) -> Found:
    """Find each row's match in another table, by the strongest key that matches.

    A weak URL matches only where both rows have nothing else.

    >>> none = pa.nulls(1, pa.large_string())
    >>> one, other = pa.array(["a@x.example"]), pa.array(["https://x.example/1"])
    >>> find_rows(Keys(one, other, none), Keys(none, other, none)).rows.tolist()
    [-1]
    """
    size = len(ours.email)
    found = Found(np.full(size, NONE), np.full(size, NONE), np.zeros(size, np.int64))
    pairs = zip(_matchable(ours), _matchable(theirs), strict=True)
    for kind, (wanted, there) in enumerate(pairs):
        numbers, other_numbers, distinct = _numbered(wanted, there)
        first = _first(other_numbers, True, distinct)[numbers]
        times = np.bincount(other_numbers + 1)
        is_new = (found.rows == NONE) & (first != NONE)
        found.rows[is_new] = first[is_new]
        found.kinds[is_new] = kind
        found.counts[is_new] = times[numbers[is_new] + 1]
    return found


def same_persons(keys: Keys, rows: Mask) -> Mask:
    """Return all rows of the persons of these rows.

    >>> emails, none = pa.array(["a@x.example", "b@x.example"]), pa.nulls(2, pa.large_string())
    >>> urls = pa.array(["x.example/in/a", "x.example/in/a"])
    >>> same_persons(Keys(emails, urls, none), np.array([False, True])).tolist()
    [True, True]
    """
    persons = first_rows(numbers_of(identifiers(keys.email, keys.profnet_url)))
    is_among = np.zeros(len(rows), dtype=bool)
    is_among[persons[rows]] = True
    return is_among[persons]


@dataclass(frozen=True, slots=True)
class Side:
    """The rows of one of two tables.

    Attributes
    ----------
    kept : ndarray of int
        The first row of each key, in order.
    repeated : ndarray of int
        Later rows of a key.
    keyless : ndarray of int
        Rows without any key.
    """

    kept: Rows
    repeated: Rows
    keyless: Rows


@dataclass(frozen=True, slots=True)
class Matching:
    """The rows of two tables, matched one to one.

    Attributes
    ----------
    before, after : Side
        The rows of each.
    pairs_before, pairs_after : ndarray of int
        The rows that match, in the order of the table before.
    gone, new : ndarray of int
        The kept rows before and after that match no other.
    """

    before: Side
    after: Side
    pairs_before: Rows
    pairs_after: Rows
    gone: Rows
    new: Rows


def match_rows(before: Sequence[pa.Array], after: Sequence[pa.Array]) -> Matching:
    """Match the rows of two tables one to one.

    Rows with the same first key match. Where one of two rows lacks that key, the next one decides,
    and so on. Of several rows with the same key, the first matches.

    Parameters
    ----------
    before, after : sequence of pyarrow.Array
        The keys as text, the strongest first; the same keys for both tables.

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
    levels = [_numbered(one, other) for one, other in zip(before, after, strict=True)]
    old = _side([(ours, distinct) for ours, _, distinct in levels])
    new = _side([(theirs, distinct) for _, theirs, distinct in levels])
    partner = np.full(len(before[0]), NONE)
    waiting, free = np.zeros(len(partner), dtype=bool), np.zeros(len(after[0]), dtype=bool)
    waiting[old.kept] = free[new.kept] = True
    lack, other_lack = np.ones(len(waiting), dtype=bool), np.ones(len(free), dtype=bool)
    for level in levels:
        # Rows that both have a stronger key differ in it, so that this one does not match them.
        for some, others in ((lack, True), (True, other_lack)):
            rows, their = _first_pairs(level, waiting & some, free & others)
            partner[rows] = their
            waiting[rows] = free[their] = False
        lack &= level[0] == NONE
        other_lack &= level[1] == NONE
    pairs = np.flatnonzero(partner != NONE)
    return Matching(old, new, pairs, partner[pairs], np.flatnonzero(waiting), np.flatnonzero(free))


def match_remaining(found: Matching, before: pa.Array, after: pa.Array) -> Matching:
    """Match the remaining rows by one more key, although their stronger keys differ.

    The keys are those of the rows `gone` and `new`.

    >>> found = match_rows([pa.array(["a", "b"])], [pa.array(["c", "a"])])
    >>> found = match_remaining(found, pa.array(["u"]), pa.array(["u"]))
    >>> found.pairs_before.tolist(), found.pairs_after.tolist(), found.gone.tolist()
    ([0, 1], [1, 0], [])
    """
    rows, others = _first_pairs(_numbered(before, after), True, True)
    pairs = np.concatenate([found.pairs_before, found.gone[rows]])
    order = np.argsort(pairs)
    return replace(
        found,
        pairs_before=pairs[order],
        pairs_after=np.concatenate([found.pairs_after, found.new[others]])[order],
        gone=np.delete(found.gone, rows),
        new=np.delete(found.new, others),
    )


def _matchable(keys: Keys) -> Keys:
    """Drop each weak URL whose row has an email."""
    of = identifiers(keys.email, keys.profnet_url)
    return keys._replace(profnet_url=pc.coalesce(of.url, of.weak_url))


def _numbered(ours: pa.Array, theirs: pa.Array) -> _Numbered:
    keys = pa.concat_arrays([key.cast(pa.large_string()) for key in (ours, theirs)])
    encoded = keys.dictionary_encode()
    numbers = encoded.indices.fill_null(NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers[: len(ours)], numbers[len(ours) :], len(encoded.dictionary)


def _first(numbers: Rows, among: Mask | bool, distinct: int) -> Rows:
    """Return for each number the first of some rows with it, or -1; and -1 for a missing key."""
    rows = np.flatnonzero(np.broadcast_to(among, numbers.shape))
    first = np.full(distinct + 1, NONE)
    # Written backwards, so that the first row remains.
    first[numbers[rows[::-1]]] = rows[::-1]
    first[NONE] = NONE
    return first


def _first_pairs(keys: _Numbered, some: Mask | bool, others: Mask | bool) -> tuple[Rows, Rows]:
    """Return the first of some rows of two tables for each key that both have."""
    ours, theirs, distinct = keys
    first, other_first = _first(ours, some, distinct), _first(theirs, others, distinct)
    in_both = (first != NONE) & (other_first != NONE)
    return first[in_both], other_first[in_both]


def _side(levels: Sequence[tuple[Rows, int]]) -> Side:
    """Split a table's rows into first, repeated and keyless ones."""
    left = np.ones(len(levels[0][0]), dtype=bool)
    kept = np.zeros(len(left), dtype=bool)
    for numbers, distinct in levels:
        first = _first(numbers, left, distinct)
        # A row that shares this key with one that has a stronger key repeats it.
        first[numbers[~left]] = NONE
        kept[first[first != NONE]] = True
        left &= numbers == NONE
    return Side(*(np.flatnonzero(some) for some in (kept, ~kept & ~left, left)))
