"""Suggestions for search filters, from columns of frames; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.common.arguments import suggestion
from outreach_frames.errors import InvalidInputError
from outreach_frames.resources.search_arguments import COLUMNS, bare_domain
from outreach_frames.tables.interchange import A_FRAME, FrameLike, as_frame

MAX_SUGGESTIONS: Final = 300

_TAKES: Final = f"{A_FRAME} of people, or a dict of filter names and lists of texts"

# pandas reads the lists of Parquet files as arrays.
_LISTS: Final = (list, tuple, np.ndarray)


def suggest(
    *sources: FrameLike | Mapping[str, Iterable[Any]] | None,
) -> dict[str, list[str]]:
    """Return suggestions per filter from frames and mappings, the most frequent first."""
    by_filter = [_by_filter(source) for source in sources if source is not None]
    found = {}
    for one in spec.FILTERS:
        if one.type != "array":
            continue
        texts = chain.from_iterable(source.get(one.name, ()) for source in by_filter)
        counts = Counter(_usable(texts, one.format))
        if counts:
            found[one.name] = [text for text, _ in counts.most_common(MAX_SUGGESTIONS)]
    return found


def _by_filter(source: object) -> Mapping[str, Iterable[Any]]:
    if not isinstance(source, Mapping):
        return _from_frame(as_frame(source, "suggest_from", _TAKES))
    for name, texts in source.items():
        if name not in spec.FILTERS_BY_NAME:
            close = suggestion(str(name), spec.FILTERS_BY_NAME)
            raise InvalidInputError(f"suggest_from: {name!r} is not a search filter.{close}")
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise InvalidInputError(f"suggest_from: {name} takes a list of texts or a column.")
    return source


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
