"""Read columns whose cells may hold several keys, such as 'Ann <ann@x.example>; bo@x.example'."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common.arguments import is_missing
from outreach_frames.common.text import (
    BLANKS,
    PLACEHOLDERS,
    has_lone_surrogate,
    strip_blanks,
    visible,
)
from outreach_frames.tables.value_text import python_values

QUOTES: Final = "'`\xb4\u2018\u2019*"
STOPS: Final = ".,;:!?\u2026"
# A text without keys, for cells that are not text.
_UNREADABLE: Final = "\ufffd"
# Drops joiners, and replaces wide punctuation.
_PLAIN: Final = str.maketrans(
    "\uff20\ufe6b\uff1b\uff0c\u3001\uff5c\uff1a\uff1c\uff1e",
    "@@;,,|:<>",
    "\u200c\u200d",
)

Positions = np.ndarray[Any, np.dtype[np.int64]]


class Reading(NamedTuple):
    """The distinct keys in a text; the text is broken if any of its parts lacks an expected key."""

    keys: list[str]
    is_broken: bool


class Cells(NamedTuple):
    """The keys of a column's cells."""

    keys: pa.Array  # in the order of the cells; one missing key for a cell without keys
    counts: Positions  # number of keys per cell, at least 1
    broken: Positions  # positions of broken cells

    def single(self) -> pa.Array:
        """Return one key per cell; missing if the cell has several keys or is broken."""
        if len(self.keys) == len(self.counts) and not len(self.broken):
            return self.keys
        is_single = self.counts == 1
        is_single[self.broken] = False
        first = self.keys.take(pa.array(self.starts))
        return pc.if_else(pa.array(is_single), first, pa.scalar(None, first.type))

    @property
    def starts(self) -> Positions:
        """The position of each cell's first key."""
        return np.cumsum(self.counts) - self.counts


def read_cells(
    keys: pa.Array, is_simple: pa.Array, texts: pa.Array, read: Callable[[str], Reading]
) -> Cells:
    """Keep the keys of simple texts, and read all keys of the other texts."""
    counts = np.ones(len(texts), np.int64)
    is_other = pc.invert(is_simple).fill_null(False)
    others = texts.filter(is_other).dictionary_encode()
    if not len(others):
        return Cells(keys, counts, np.empty(0, np.int64))
    readings = [read(text) for text in others.dictionary.to_pylist()]
    lists: list[list[Any]] = [reading.keys or [None] for reading in readings]
    found = pa.array(lists, pa.large_list(keys.type)).take(others.indices)
    mask = is_other.to_numpy(zero_copy_only=False)
    counts[mask] = found.value_lengths().to_numpy()
    keys = pc.replace_with_mask(
        keys.take(pa.array(np.repeat(np.arange(len(keys)), counts))),
        pa.array(np.repeat(mask, counts)),
        found.flatten(),
    )
    is_broken = np.array([reading.is_broken for reading in readings])[others.indices.to_numpy()]
    return Cells(keys, counts, np.flatnonzero(mask)[is_broken])


def plain_text(text: str) -> str:
    """Remove a text's invisible characters, and replace unusual punctuation."""
    return unicodedata.normalize("NFC", visible(text)).translate(_PLAIN).strip(BLANKS)


def reading_of(text: str, keys: Sequence[str]) -> Reading:
    """Build a `Reading` from the keys of a text's parts; an empty key marks a broken part.

    >>> reading_of("a; a; b", ["a", "a", ""]), reading_of("n/a", [])
    (Reading(keys=['a'], is_broken=True), Reading(keys=[], is_broken=False))
    """
    found = [key for key in dict.fromkeys(keys) if key]
    if not found:
        word = strip_blanks(text).casefold()
        return Reading([], bool(word) and word not in PLACEHOLDERS)
    return Reading(found, "" in keys)


def texts_of(column: pd.Series[Any]) -> pa.Array:
    """Convert a column to text: a line per list entry; other types become a text with no key."""
    if isinstance(column.dtype, pd.StringDtype):
        try:
            texts = pa.array(column.array, pa.large_string(), from_pandas=True)
            return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        except (UnicodeEncodeError, pa.ArrowInvalid, TypeError):
            pass
    cells = list(python_values(column))
    return pa.array(
        [c if isinstance(c, str) and not has_lone_surrogate(c) else _text_of(c) for c in cells],
        pa.large_string(),
    )


def _text_of(cell: Any) -> str | None:
    if cell is None or is_missing(cell):
        return None
    if isinstance(cell, str) and not has_lone_surrogate(cell):
        return cell
    if isinstance(cell, Mapping):
        cell = cell.values()
    elif not isinstance(cell, list | tuple | set | frozenset | np.ndarray | pd.Series):
        return _UNREADABLE
    return "\n".join(filter(None, map(_text_of, cell))) or None
