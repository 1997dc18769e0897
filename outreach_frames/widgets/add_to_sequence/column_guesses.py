"""Guess from column names and cells which columns identify a frame's leads."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

import pandas as pd

from outreach_frames.common.text import listed
from outreach_frames.identity.keys import SIMPLE_EMAIL
from outreach_frames.leads.planning.mapping import EMAIL, PROFNET_URL
from outreach_frames.leads.planning.syntax import SIMPLE_URL
from outreach_frames.tables.columns import columns_like

_PATTERNS: Final = {EMAIL: SIMPLE_EMAIL, PROFNET_URL: SIMPLE_URL}
# Maximum number of cells to examine per column, and maximum length of a matching text.
_MAX_CELLS: Final = 500
_MAX_CHARACTERS: Final = 300
# The minimum share of matching cells; a column without text has this share.
_MIN_SHARE: Final = 0.3
# A column named exactly like the field is preferred to one with this much more matching cells.
_EXACT_NAME: Final = 0.3
# Columns match equally well if their shares differ by less than this.
_TIE_MARGIN: Final = 0.2


class Guess(NamedTuple):
    """The guessed column (None if ambiguous) and a note for the analyst."""

    column: str | None = None
    note: str = ""


def guess_columns(
    frame: pd.DataFrame, columns: Sequence[str], networks: Collection[str] = ()
) -> dict[str, Guess]:
    """Guess the columns of `email` and `profnet_url`; `networks` has names of the network."""
    return {
        field: _guess(frame, field, columns_like(field, columns, networks)) for field in _PATTERNS
    }


def _guess(frame: pd.DataFrame, field: str, named: Sequence[str]) -> Guess:
    """Choose the column with the most matching cells among those with a matching name."""
    shares = {name: _share(frame[name], _PATTERNS[field]) for name in named}
    scores = {
        name: share + _EXACT_NAME * (name == field)
        for name, share in shares.items()
        if share >= _MIN_SHARE
    }
    if not scores:
        note = f"No column is chosen for {field}: the cells of {listed(named)} do not match."
        return Guess(None, note if named else "")
    highest = max(scores.values())
    best = [name for name, score in scores.items() if highest - score < _TIE_MARGIN]
    if len(best) > 1:
        return Guess(None, f"Columns match {field} equally well: {listed(best)}. Choose one.")
    others = listed(name for name in named if name != best[0])
    note = f"Chosen for {field}: {listed(best)}; not chosen: {others}."
    return Guess(best[0], note if len(named) > 1 else "")


def _share(cells: pd.Series[Any], pattern: str) -> float:
    """Return the share of a column's texts that match."""
    first = cells.head(_MAX_CELLS)
    texts = [cell.strip() for cell in first if isinstance(cell, str) and cell.strip()]
    if not texts:
        return _MIN_SHARE
    matches = re.compile(pattern).fullmatch
    return fmean(len(text) <= _MAX_CHARACTERS and bool(matches(text)) for text in texts)
