"""The form, checks and Python code of an edited people search; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from outreach_frames import spec
from outreach_frames.common.arguments import Headcount
from outreach_frames.common.text import readable
from outreach_frames.errors import InvalidInputError
from outreach_frames.resources.search_arguments import DEFAULT_LIMIT, check_filters
from outreach_frames.widgets.python_code import call

DEFAULT_HEADCOUNT: Final[Headcount] = get_args(Headcount)[0]

# Filters with these words in the name have values with commas: "Austin, Texas", "Acme, Inc.".
_WORDS_OF_COMMA_VALUES = frozenset({"locations", "names", "investors"})


def build_form(filters: Sequence[spec.Filter] = spec.FILTERS) -> dict[str, Any]:
    """Build the page's form: groups of rows; a row has a filter and its excluding filter, if any.

    >>> form = build_form()
    >>> [field["label"] for field in form["groups"][1]["rows"][0]]
    ['Names', 'Exclude names']
    """
    named = dict.fromkeys([*spec.FILTER_GROUPS, *(one.group for one in filters)])
    return {
        "order": [one.name for one in filters],
        "groups": [
            {"name": group, "title": readable(group), "rows": _rows(filters, group)}
            for group in named
        ],
    }


def _rows(filters: Sequence[spec.Filter], group: str) -> list[list[dict[str, Any]]]:
    by_name = {one.name: one for one in filters if one.group == group}
    opposites = {one.excludes: one for one in by_name.values() if one.excludes in by_name}
    return [
        [_field(field) for field in (one, opposites.get(one.name)) if field is not None]
        for one in by_name.values()
        if one.excludes not in by_name
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
    return {one.name: kept[one.name] for one in spec.FILTERS if one.name in kept}


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
    found = {}
    for name, given in value.items():
        try:
            check_filters({name: given})
        except InvalidInputError as error:
            found[name] = str(error)
    return found


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
    named = [f"{name}={value!r}" for name, value in arguments.items()]
    return call("people = of.search_people", [*named, *["client=client"] * with_client])
