"""Suggestions for search filters, from columns of frames; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.resources.search_arguments import COLUMNS, bare_domain
from outreach_frames.tables.interchange import A_FRAME, FrameLike, as_frame

MAX_SUGGESTIONS: Final = 300

_TAKES: Final = f"{A_FRAME} of people"

# pandas reads the lists of Parquet files as arrays.
_LISTS: Final = (list, tuple, np.ndarray)


def suggest(
    source: FrameLike | None, known: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> dict[str, list[str]]:
    """Return suggestions per filter from a frame and known suggestions, the most frequent first."""
    values = {} if source is None else _from_frame(as_frame(source, "suggest_from", _TAKES))
    found = {}
    for one in spec.FILTERS:
        if one.type != "array":
            continue
        texts = chain(known.get(one.name, ()), values.get(one.name, ()))
        counts = Counter(_usable(texts, one.format))
        if counts:
            found[one.name] = [text for text, _ in counts.most_common(MAX_SUGGESTIONS)]
    return found


def _from_frame(frame: pd.DataFrame) -> dict[str, list[Any]]:
    columns = {column: _texts(frame, column) for column in set(chain(*COLUMNS.values()))}
    return {
        one.name: [text for column in COLUMNS[source] for text in columns[column]]
        for one in spec.FILTERS
        if (source := one.excludes or one.name) in COLUMNS
    }


def _texts(frame: pd.DataFrame, column: str) -> list[Any]:
    name, _, member = column.partition(".")
    # Select columns by position, because names may be duplicated.
    positions = [position for position, label in enumerate(frame.columns) if label == name]
    cells = [cell for position in positions[:1] for cell in frame.iloc[:, position].dropna()]
    if not member:
        return cells
    elements = [element for cell in cells if isinstance(cell, _LISTS) for element in cell]
    return [element.get(member) for element in elements if isinstance(element, Mapping)]


def _usable(texts: Iterable[Any], expected: spec.Format) -> Iterable[str]:
    for text in texts:
        if isinstance(text, str) and text.strip():
            usable = bare_domain(text) if expected == "domain" else text.strip()
            if usable:
                yield usable
