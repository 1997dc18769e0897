"""The form, suggestions, checks and Python code of an edited people search; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, get_args

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.common.arguments import Headcount
from outreach_frames.common.text import readable
from outreach_frames.errors import InvalidInputError
from outreach_frames.resources.search_arguments import (
    COLUMNS,
    DEFAULT_LIMIT,
    bare_domain,
    check_filters,
)
from outreach_frames.tables.interchange import A_FRAME, FrameLike, as_frame
from outreach_frames.widgets.python_code import call

DEFAULT_HEADCOUNT: Final[Headcount] = get_args(Headcount)[0]
MAX_SUGGESTIONS: Final = 300
_TAKES: Final = f"{A_FRAME} of people"
# pandas reads the lists of Parquet files as arrays.
_LISTS: Final = (list, tuple, np.ndarray)

# Filters with these words in the name have values with commas: "Austin, Texas", "Acme, Inc.".
_WORDS_OF_COMMA_VALUES = frozenset({"locations", "names", "investors"})


def build_form(filters: Sequence[spec.Filter] = spec.FILTERS) -> dict[str, Any]:
    """Build the page's form: groups of rows; a row has a filter and its excluding filter, if any.

    >>> form = build_form()
    >>> [field["label"] for field in form["groups"][1]["rows"][0]]
    ['Names', 'Exclude names']
    """
    named = dict.fromkeys([*spec.FILTER_GROUPS, *(field.group for field in filters)])
    return {
        "order": [field.name for field in filters],
        "groups": [
            {"name": group, "title": readable(group), "rows": _rows(filters, group)}
            for group in named
        ],
    }


def _rows(filters: Sequence[spec.Filter], group: str) -> list[list[dict[str, Any]]]:
    by_name = {field.name: field for field in filters if field.group == group}
    opposites = {field.excludes: field for field in by_name.values() if field.excludes in by_name}
    return [
        [_field(part) for part in (field, opposites.get(field.name)) if part is not None]
        for field in by_name.values()
        if field.excludes not in by_name
    ]


def _field(field: spec.Filter) -> dict[str, Any]:
    commas = _WORDS_OF_COMMA_VALUES.isdisjoint(field.name.split("_"))
    return {
        "name": field.name,
        "label": _label(field),
        "type": field.type,
        "title": _tooltip(field, commas),
        "format": field.format,
        "suggestions": list(field.suggestions),
        "excludes": field.excludes,
        "commas": commas,  # whether a typed comma ends a value
    }


def _label(field: spec.Filter) -> str:
    name = (field.excludes or field.name).removeprefix(f"{field.group}_")
    return f"Exclude {readable(name, capital=False)}" if field.excludes else readable(name)


def _tooltip(field: spec.Filter, commas: bool) -> str:
    """Return a field's tooltip: its name in code, its note, and how to enter values."""
    parts = [f"{field.name}: {field.note}" if field.note else field.name]
    if field.type == "array":
        parts.append(
            "Press Enter, Tab or comma to add a value. A pasted list is split at line breaks and "
            "tabs, or at commas if it is a single line."
            if commas
            else "Press Enter or Tab to add a value, which may contain commas. A pasted list is "
            "split at line breaks and tabs."
        )
    return ". ".join(parts)


def tidy_filters(value: Mapping[str, Any]) -> dict[str, Any]:
    """Order filters as in the interface, drop empty filters and reject values of wrong types."""
    check_filters(dict.fromkeys(value))
    kept = {}
    for name, given in value.items():
        if given is None:
            continue
        if not _fits_form(given, spec.FILTERS_BY_NAME[name].type):
            kept.update(check_filters({name: given}))
        elif given not in ("", []):
            kept[name] = list(given) if isinstance(given, list) else given
    return {field.name: kept[field.name] for field in spec.FILTERS if field.name in kept}


def _fits_form(given: object, kind: spec.JsonType) -> bool:
    """Return whether a form can show the value unchanged."""
    if kind == "array":
        return isinstance(given, list) and all(isinstance(text, str) for text in given)
    return isinstance(given, bool if kind == "boolean" else str)


def find_problems(value: Mapping[str, Any]) -> dict[str, str]:
    """Return an error message per invalid filter.

    >>> find_problems({"company_ids": ["Brightforge"]})["company_ids"]
    "company_ids takes ids (UUIDs) as the service returns them, not 'Brightforge'."
    """
    problems = {}
    for name, given in value.items():
        try:
            check_filters({name: given})
        except InvalidInputError as error:
            problems[name] = str(error)
    return problems


def search_code(
    filters: Mapping[str, Any],
    limit: int | None = DEFAULT_LIMIT,
    headcount: Headcount = DEFAULT_HEADCOUNT,
    *,
    with_client: bool = False,
) -> str:
    """Write the Python code of a search, without default arguments."""
    arguments = dict(filters)
    if limit != DEFAULT_LIMIT:
        arguments["limit"] = limit
    if headcount != DEFAULT_HEADCOUNT:
        arguments["headcount"] = headcount
    code = [f"{name}={value!r}" for name, value in arguments.items()]
    if with_client:
        code.append("client=client")
    return call("people = of.search_people", code)


def suggest(
    source: FrameLike | None, known: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> dict[str, list[str]]:
    """Return suggestions per filter from a frame and known suggestions, the most frequent first."""
    values = {} if source is None else _from_frame(as_frame(source, "suggest_from", _TAKES))
    suggestions = {}
    for field in spec.FILTERS:
        if field.type != "array":
            continue
        texts = chain(known.get(field.name, ()), values.get(field.name, ()))
        counts = Counter(_usable(texts, field.format))
        if counts:
            suggestions[field.name] = [text for text, _ in counts.most_common(MAX_SUGGESTIONS)]
    return suggestions


def _from_frame(frame: pd.DataFrame) -> dict[str, list[Any]]:
    columns = {column: _texts(frame, column) for column in set(chain(*COLUMNS.values()))}
    return {
        field.name: [text for column in COLUMNS[source] for text in columns[column]]
        for field in spec.FILTERS
        if (source := field.excludes or field.name) in COLUMNS
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
