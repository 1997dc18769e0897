"""Match the rows of two tables by keys, the strongest first; missing keys never match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.identity.cells import Cells
from outreach_frames.identity.keys import certain_keys
from outreach_frames.identity.persons import (
    NONE,
    Mask,
    Rows,
    first_rows,
    identifiers,
    key_numbers,
    numbers_of,
)

# The keys of two tables as numbers, -1 if missing, and the number of distinct keys.
_Numbered = tuple[Rows, Rows, int]


class Keys(NamedTuple):
    """The keys of a table's rows, the strongest first; keys that are not compared are missing.

    With several columns per kind, the columns' keys follow each other.
    """

    email: pa.Array
    profnet_url: pa.Array
    domain: pa.Array
    company_name: pa.Array


class Matches(NamedTuple):
    """Each row's match in another table."""

    rows: Rows  # position of the first matching row, -1 if unmatched
    kinds: Rows  # index of the matching key in `Keys`, -1 if unmatched
    counts: Rows  # number of rows of the other table with this key


def find_matches(ours: Keys, theirs: Keys, size: int, other_size: int) -> Matches:
    """Match each row by its strongest matching key; weak URLs match only rows without email.

    `size` and `other_size` are the tables' numbers of rows. Of several columns, the first that
    matches decides.

    >>> none = pa.nulls(1, pa.large_string())
    >>> one, other = pa.array(["a@x.example"]), pa.array(["https://x.example/1"])
    >>> find_matches(Keys(one, other, none, none), Keys(none, other, none, none), 1, 1).rows
    array([-1])
    """
    matches = Matches(np.full(size, NONE), np.full(size, NONE), np.zeros(size, np.int64))
    pairs = zip(_matchable(ours, size), _matchable(theirs, other_size), strict=True)
    for kind, (our_keys, their_keys) in enumerate(pairs):
        # Nothing to compare, for example in an empty table.
        if len(our_keys) == our_keys.null_count or len(their_keys) == their_keys.null_count:
            continue
        numbers, other_numbers, distinct = _numbered(our_keys, their_keys)
        first = _first(other_numbers, True, distinct)
        other_rows = np.arange(len(other_numbers)) % other_size
        # A row counts once, even if several of its columns have the key.
        once = other_numbers
        if len(once) > other_size:
            once = np.unique(other_numbers * other_size + other_rows) // other_size
        times = np.bincount(once + 1, minlength=distinct + 1)
        for column in np.split(numbers, len(numbers) // size):
            is_new = (matches.rows == NONE) & (first[column] != NONE)
            matches.rows[is_new] = other_rows[first[column[is_new]]]
            matches.kinds[is_new] = kind
            matches.counts[is_new] = times[column[is_new] + 1]
    return matches


def repeat_rows(cells: Sequence[Cells]) -> tuple[Keys, Rows]:
    """Repeat rows whose cells have several keys; return the keys and their row positions.

    >>> emails = Cells(pa.array(["a@x.example", "b@x.example"]), np.array([2]), np.array([]))
    >>> keys, rows = repeat_rows([emails, *[Cells.without_keys(1)] * 3])
    >>> keys.email.to_pylist(), rows.tolist()
    (['a@x.example', 'b@x.example'], [0, 0])
    """
    size = len(cells[0].counts)
    if all(len(column.keys) == size for column in cells):
        return Keys(*(column.keys for column in cells)), np.arange(size)
    counts = np.maximum.reduce([column.counts for column in cells])
    rows = np.repeat(np.arange(size), counts)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)

    def repeated(column: Cells) -> pa.Array:
        # Repeat a cell's last key in all further rows.
        places = column.starts[rows] + np.minimum(place, column.counts[rows] - 1)
        return column.keys.take(pa.array(places))

    keys = Keys(*map(repeated, cells))
    # Ignore the weak URLs of rows that have a certain URL.
    certain = certain_keys(keys.profnet_url)
    has_certain = np.bincount(rows, certain.is_valid(), len(counts))[rows] > 0
    return keys._replace(profnet_url=pc.if_else(has_certain, certain, keys.profnet_url)), rows


def same_persons(keys: Keys, rows: Mask, origins: Rows) -> Mask:
    """Extend a selection of rows to all rows with the same person or origin.

    >>> emails, none = pa.array(["a@x.example", "b@x.example"]), pa.nulls(2, pa.large_string())
    >>> urls = pa.array(["x.example/in/a", "x.example/in/a"])
    >>> same_persons(Keys(emails, urls, none, none), np.array([False, True]), np.arange(2)).tolist()
    [True, True]
    """
    numbers: list[Rows] = [*numbers_of(identifiers(keys.email, keys.profnet_url))]
    if len(origins) and origins[-1] < len(origins) - 1:
        numbers.append(origins)
    persons = first_rows(numbers)
    is_selected = np.zeros(len(rows), dtype=bool)
    is_selected[persons[rows]] = True
    return is_selected[persons]


@dataclass(frozen=True, slots=True)
class Side:
    """A table's rows: first rows per key, repeated rows, and rows without keys."""

    first: Rows
    repeated: Rows
    keyless: Rows
    first_of_row: Rows  # a row without keys is its own first row


@dataclass(frozen=True, slots=True)
class Matching:
    """The rows of two tables, matched one to one."""

    before: Side
    after: Side
    pairs_before: Rows  # in ascending order
    pairs_after: Rows
    gone: Rows  # unmatched first rows of `before`
    new: Rows  # unmatched first rows of `after`


def match_rows(before: Sequence[pa.Array], after: Sequence[pa.Array]) -> Matching:
    """Match rows one to one by their first key that is not missing.

    >>> ids, urls = pa.array(["a", None, "c"]), pa.array([None, "u", None])
    >>> matching = match_rows([ids, urls], [pa.array(["c", "b"]), pa.array([None, "u"])])
    >>> matching.pairs_before.tolist(), matching.pairs_after.tolist(), matching.gone.tolist()
    ([1, 2], [1, 0], [0])
    """
    levels = [_numbered(*keys) for keys in zip(before, after, strict=True)]
    old = _side([(ours, distinct) for ours, _, distinct in levels])
    new = _side([(theirs, distinct) for _, theirs, distinct in levels])
    partner = np.full(len(before[0]), NONE)
    is_open, other_open = (np.zeros(len(keys[0]), dtype=bool) for keys in (before, after))
    is_open[old.first] = other_open[new.first] = True
    # Whether a row has no stronger key.
    is_keyless, other_keyless = (np.ones(len(keys[0]), dtype=bool) for keys in (before, after))
    for level in levels:
        # Unmatched rows whose stronger keys differ must not match by this key.
        for among, other_among in ((is_keyless, True), (True, other_keyless)):
            rows, others = _first_pairs(level, is_open & among, other_open & other_among)
            partner[rows] = others
            is_open[rows] = other_open[others] = False
        numbers, other_numbers, _ = level
        is_keyless &= numbers == NONE
        other_keyless &= other_numbers == NONE
    pairs = np.flatnonzero(partner != NONE)
    gone, unmatched = np.flatnonzero(is_open), np.flatnonzero(other_open)
    return Matching(old, new, pairs, partner[pairs], gone, unmatched)


def match_remaining(
    matching: Matching, before: pa.Array, after: pa.Array
) -> tuple[Matching, Rows, Rows]:
    """Match the unmatched rows `gone` and `new` by another key, even if stronger keys differ.

    `before` and `after` hold the keys of the matched rows, then of the unmatched rows. Unmatched
    rows are dropped if a matched row, or an earlier row of their table, has the same key. Also
    return the dropped rows.

    >>> matching = match_rows([pa.array(["a", "b"])], [pa.array(["c", "a", "d"])])
    >>> keys = pa.array([None, "u"]), pa.array([None, "u", "u"])
    >>> matching, _, dropped = match_remaining(matching, *keys)
    >>> matching.pairs_before.tolist(), matching.pairs_after.tolist(), dropped.tolist()
    ([0, 1], [1, 0], [2])
    """
    size = len(matching.pairs_before)
    ours, theirs, distinct = _numbered(before, after)
    is_matched = np.zeros(distinct + 1, dtype=bool)
    is_matched[np.concatenate([ours[:size], theirs[:size]])] = True
    unmatched = []
    for numbers in (ours[size:], theirs[size:]):
        is_first = _first(numbers, True, distinct)[numbers] == np.arange(len(numbers))
        unmatched.append((numbers, (is_first & ~is_matched[numbers]) | (numbers == NONE)))
    (old, is_old), (new, is_new) = unmatched
    rows, others = _first_pairs((old, new, distinct), is_old, is_new)
    pairs = np.concatenate([matching.pairs_before, matching.gone[rows]])
    dropped = matching.gone[~is_old], matching.new[~is_new]
    is_old[rows] = is_new[others] = False
    order = np.argsort(pairs)
    extended = replace(
        matching,
        pairs_before=pairs[order],
        pairs_after=np.concatenate([matching.pairs_after, matching.new[others]])[order],
        gone=matching.gone[is_old],
        new=matching.new[is_new],
    )
    return extended, *dropped


def _matchable(keys: Keys, size: int) -> Keys:
    """Drop each weak URL whose row has an email or a certain URL."""
    certain = certain_keys(keys.profnet_url)
    is_alone = np.ones(size, dtype=bool)
    for column in (keys.email, certain):
        has_key = column.is_valid().to_numpy(zero_copy_only=False)
        is_alone &= ~has_key.reshape(-1, max(size, 1)).any(axis=0)
    is_weak = pa.array(np.tile(is_alone, len(certain) // max(size, 1)))
    return keys._replace(profnet_url=pc.if_else(is_weak, keys.profnet_url, certain))


def _numbered(ours: pa.Array, theirs: pa.Array) -> _Numbered:
    keys = pa.concat_arrays([key.cast(pa.large_string()) for key in (ours, theirs)])
    numbers = key_numbers(keys)
    return numbers[: len(ours)], numbers[len(ours) :], numbers.max(initial=NONE) + 1


def _first(numbers: Rows, among: Mask | bool, distinct: int) -> Rows:
    """Return the first selected row per key number, or -1 without a row."""
    rows = np.flatnonzero(np.broadcast_to(among, numbers.shape))
    first = np.full(distinct + 1, NONE)
    # Assign in reverse, so that the first row wins.
    first[numbers[rows[::-1]]] = rows[::-1]
    first[NONE] = NONE
    return first


def _first_pairs(
    keys: _Numbered, among: Mask | bool, other_among: Mask | bool
) -> tuple[Rows, Rows]:
    """Return the first selected row of each table per common key."""
    ours, theirs, distinct = keys
    first, other_first = _first(ours, among, distinct), _first(theirs, other_among, distinct)
    in_both = (first != NONE) & (other_first != NONE)
    return first[in_both], other_first[in_both]


def _side(levels: Sequence[tuple[Rows, int]]) -> Side:
    """Split a table's rows into first, repeated and keyless rows."""
    rows = np.arange(len(levels[0][0]))
    is_keyless = np.ones(len(rows), dtype=bool)
    first_of_row = rows.copy()
    for numbers, distinct in levels:
        # A row repeats another row with the same key even if that row also has a stronger key.
        stronger_of_key = _first(numbers, ~is_keyless, distinct)
        first_of_key = _first(numbers, is_keyless, distinct)
        has_stronger = stronger_of_key != NONE
        first_of_key[has_stronger] = first_of_row[stronger_of_key[has_stronger]]
        has_key = is_keyless & (numbers != NONE)
        first_of_row[has_key] = first_of_key[numbers[has_key]]
        is_keyless &= numbers == NONE
    is_first = first_of_row == rows
    first, repeated = np.flatnonzero(is_first & ~is_keyless), np.flatnonzero(~is_first)
    return Side(first, repeated, np.flatnonzero(is_keyless), first_of_row)
