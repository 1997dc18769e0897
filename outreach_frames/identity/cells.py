"""Read columns whose cells may hold several keys, such as 'Ann <ann@x.example>; bo@x.example'."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common.arguments import is_missing
from outreach_frames.common.placeholders import PLACEHOLDERS
from outreach_frames.common.text import (
    BLANKS,
    has_lone_surrogate,
    strip_blanks,
    visible,
)
from outreach_frames.tables.value_text import python_values

QUOTES: Final = "'`\xb4\u2018\u2019*"
STOPS: Final = ".,;:!?\u2026"
# A text without keys, for cells that are not text.
_UNREADABLE: Final = "\ufffd"
_MAX_CHARACTERS: Final = 10_000
# Separates the entries of a list, each of which is read as a cell.
_ENTRY: Final = "\x1e"
_LIKE_IDENTIFIER: Final = re.compile("[@/]")
_LABEL: Final = re.compile(
    r"(?i)(?<![^\s<>()\[\]{}\"'*])"
    r"(?:mailto|e-?mail|mail|work|home|private|business|url|web|website|profile)\s*:"
)
# A name in front of `<`. Matches "Berg, Ann " in "Berg, Ann <ann@x.example>" and " Bo " in
# "ann@x.example; Bo <bo@x.example>"; does not match in "ann@x.example <Ann>" and "x.example/a <b>".
_NAME: Final = re.compile(
    r"""
    (                                       # in front of the name, and kept:
      (?<=[@/]) [^<>@:/;,|\n]*+ [;,|\n]     # the end of another identifier, and a separator
    | (?<![^<>:])                           # or the start of the text, a bracket or a colon
    )
    [^<>@:/]*+                              # the name
    (?=<)
    """,
    re.VERBOSE,
)
# Drops joiners, and replaces wide punctuation.
_PLAIN: Final = str.maketrans(
    "\uff20\ufe6b\uff1b\uff0c\u3001\uff5c\uff1a\uff1c\uff1e",
    "@@;,,|:<>",
    "\u200c\u200d",
)

Positions = np.ndarray[Any, np.dtype[np.int64]]


class Reading(NamedTuple):
    """The distinct keys in a text, and whether the text is ambiguous.

    A text is ambiguous if it holds a broken identifier, or words that may be a part of an
    identifier: any text but labels, punctuation and a name in front of `<...>`.
    """

    keys: list[str]
    is_ambiguous: bool


class Cells(NamedTuple):
    """The keys of a column's cells."""

    keys: pa.Array  # in the order of the cells; one missing key for a cell without keys
    counts: Positions  # number of keys per cell, at least 1
    ambiguous: Positions  # positions of ambiguous cells

    @classmethod
    def without_keys(cls, size: int) -> Cells:
        """Return cells without a key."""
        return cls(
            pa.nulls(size, pa.large_string()), np.ones(size, np.int64), np.empty(0, np.int64)
        )

    def single_keys(self) -> pa.Array:
        """Return one key per cell; missing if the cell has several keys or is ambiguous."""
        if len(self.keys) == len(self.counts) and not len(self.ambiguous):
            return self.keys
        is_single = self.counts == 1
        is_single[self.ambiguous] = False
        first = self.keys.take(pa.array(self.starts))
        return pc.if_else(pa.array(is_single), first, pa.scalar(None, first.type))

    @property
    def starts(self) -> Positions:
        """The position of each cell's first key."""
        return np.cumsum(self.counts) - self.counts


def read_cells(keys: pa.Array, texts: pa.Array, read: Callable[[str], Reading]) -> Cells:
    """Read all keys of the texts whose key is missing."""
    counts = np.ones(len(texts), np.int64)
    is_other = pc.and_not(texts.is_valid(), keys.is_valid())
    others = texts.filter(is_other).dictionary_encode()
    if not len(others):
        return Cells(keys, counts, np.empty(0, np.int64))
    readings = [_read_entries(text, read) for text in others.dictionary.to_pylist()]
    lists: list[list[Any]] = [reading.keys or [None] for reading in readings]
    other_keys = pa.array(lists, pa.large_list(keys.type)).take(others.indices)
    mask = is_other.to_numpy(zero_copy_only=False)
    counts[mask] = other_keys.value_lengths().to_numpy()
    keys = pc.replace_with_mask(
        keys.take(pa.array(np.repeat(np.arange(len(keys)), counts))),
        pa.array(np.repeat(mask, counts)),
        other_keys.flatten(),
    )
    is_ambiguous = np.array([reading.is_ambiguous for reading in readings])
    return Cells(keys, counts, np.flatnonzero(mask)[is_ambiguous[others.indices.to_numpy()]])


def _read_entries(text: str, read: Callable[[str], Reading]) -> Reading:
    """Read each entry of a list; among keys, entries unlike an identifier are ignored."""
    if _ENTRY not in text:
        return read(text)
    entries = {entry: read(entry) for entry in text.split(_ENTRY)}
    keys = [*dict.fromkeys(key for reading in entries.values() for key in reading.keys)]
    return Reading(
        keys,
        any(
            reading.is_ambiguous and (not keys or _LIKE_IDENTIFIER.search(entry) is not None)
            for entry, reading in entries.items()
        ),
    )


def join_cells(columns: Sequence[Cells]) -> Cells:
    """Join the cells of each row; a missing key remains only in rows without a key."""
    if len(columns) == 1:
        return columns[0]
    size = len(columns[0].counts)
    keys = pa.concat_arrays([column.keys for column in columns])
    rows = np.concatenate([np.repeat(np.arange(size), column.counts) for column in columns])
    order = np.argsort(rows, kind="stable")
    keys, rows = keys.take(pa.array(order)), rows[order]
    has_key = keys.is_valid().to_numpy(zero_copy_only=False)
    is_kept = has_key | (np.bincount(rows[has_key], minlength=size)[rows] == 0)
    is_kept[1:] &= has_key[1:] | (rows[1:] != rows[:-1])
    counts = np.bincount(rows[is_kept], minlength=size)
    ambiguous = np.unique(np.concatenate([column.ambiguous for column in columns]))
    return Cells(keys.filter(pa.array(is_kept)), counts, ambiguous)


def are_plain(texts: pa.Array) -> pa.Array:
    """Return whether each text is that of a text cell, not of a list or another type."""
    return pc.invert(pc.match_substring_regex(texts, f"[{_ENTRY}{_UNREADABLE}]"))


def drop_names(text: str) -> str:
    """Drop the labels and names in front of identifiers.

    >>> drop_names("Work: Berg, Ann <ann@x.example>; see bo@x.example")
    '<ann@x.example>; see bo@x.example'
    """
    text = _NAME.sub(r"\1", text) if "<" in text else text
    return _LABEL.sub("", text) if ":" in text else text


def is_word(text: str) -> bool:
    """Return whether a text has a letter or digit."""
    return any(map(str.isalnum, text))


def plain_text(text: str) -> str:
    """Remove a text's invisible characters, and replace unusual punctuation."""
    return unicodedata.normalize("NFC", visible(text)).translate(_PLAIN).strip(BLANKS)


def reading_of(text: str, keys: Sequence[str]) -> Reading:
    """Build a `Reading` from the keys of a text's parts; an empty key marks any other part.

    >>> reading_of("a; a; b", ["a", "a", ""]), reading_of("n/a", [])
    (Reading(keys=['a'], is_ambiguous=True), Reading(keys=[], is_ambiguous=False))
    """
    distinct = [key for key in dict.fromkeys(keys) if key]
    if not distinct:
        word = strip_blanks(text).casefold()
        return Reading([], bool(word) and word not in PLACEHOLDERS)
    return Reading(distinct, "" in keys)


def texts_of(column: pd.Series[Any]) -> pa.Array:
    """Convert a column to text: lists with separated entries, other types without a key.

    Text of more than 10,000 characters has no key, because it would take long to read.
    """
    if isinstance(column.dtype, pd.StringDtype):
        try:
            texts = pa.array(column.array, pa.large_string(), from_pandas=True)
            texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
            is_long = pc.greater(pc.utf8_length(texts), _MAX_CHARACTERS)
            return pc.if_else(is_long, pa.scalar(_UNREADABLE, texts.type), texts)
        except (UnicodeEncodeError, pa.ArrowInvalid, TypeError):
            pass
    return pa.array([*map(_text_of, python_values(column))], pa.large_string())


def _text_of(cell: Any) -> str | None:
    if isinstance(cell, str):
        is_readable = len(cell) <= _MAX_CHARACTERS and not has_lone_surrogate(cell)
        return cell if is_readable else _UNREADABLE
    if cell is None or is_missing(cell):
        return None
    if isinstance(cell, Mapping):
        cell = cell.values()
    elif not isinstance(cell, list | tuple | set | frozenset | np.ndarray | pd.Series):
        return _UNREADABLE
    return _ENTRY.join(filter(None, map(_text_of, cell))) or None
