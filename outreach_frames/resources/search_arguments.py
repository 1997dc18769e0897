"""Check the arguments of a people search: filters, limit and page size."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from os import PathLike
from typing import Any, Final, TypeVar

import numpy as np

from outreach_frames import spec
from outreach_frames.common import terms
from outreach_frames.common.arguments import (
    check_integer,
    check_list,
    check_text,
    format_positions,
    is_usable,
    similar,
    suggestion,
)
from outreach_frames.common.atomic_files import expanded, require_readable_file, unreadable
from outreach_frames.common.text import quoted
from outreach_frames.common.web_addresses import split_address
from outreach_frames.errors import InvalidInputError
from outreach_frames.reading.flatten import seen_columns
from outreach_frames.reading.untyped_reader import RAW_SUFFIX
from outreach_frames.resources.people_filters import PeopleFilters

F = TypeVar("F", bound=Callable[..., Any])

PAGE_NUMBER, PAGE_SIZE = (paging.name for paging in spec.SEARCH_PAGING)
_KEYWORD = Parameter.KEYWORD_ONLY
_DOMAIN = re.compile(r"[^\s/@:]+\.[^\s/@:]+")
FILTER_TYPES: Final = {"string": "str", "boolean": "bool", "array": "ListOfText"}
SAVED_KIND: Final = "outreach_frames people search"
_PARAMETERS: Final = {
    known.name: Parameter(
        known.name, _KEYWORD, default=None, annotation=f"{FILTER_TYPES[known.type]} | None"
    )
    for known in spec.FILTERS
}

_PLACES: Final = (
    "location_details_country",
    "location_details_state",
    "location_details_city",
    "location",
)

# Columns of people or contacts whose values are suggested for a filter; `a.b` is the field `b` of
# the objects in column `a`. An excluding filter uses the columns of the filter that it negates.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "person_titles": ("title",),
    "person_locations": _PLACES,
    "company_locations": tuple(f"company_{place}" for place in _PLACES),
    "company_names": ("company_name",),
    "company_ids": ("company_id",),
    "education_company_names": ("educations.school_name",),
    "company_domains": ("company_website", "company_domain"),
    "company_profnet_urls": ("company_profnet_url",),
    "company_types": ("company_type",),
    "company_sizes": ("company_size",),
    "company_industries": ("company_industry",),
    "company_shares_investors_with": ("company_name",),
}


def shows_filters(filters: type[Any] = PeopleFilters) -> Callable[[F], F]:
    """Show the filters in the signature of a function with `**fields`, for editors and `help`."""

    def show(function: F) -> F:
        takes = signature(function)
        *others, fields = takes.parameters.values()
        shown = [known for name, known in _PARAMETERS.items() if name in filters.__annotations__]
        takes = takes.replace(parameters=[*others, *shown, fields])
        function.__signature__ = takes  # type: ignore[attr-defined]
        return function

    return show


def check_filters(
    filters: Mapping[str, Any] | str | PathLike[str] | None = None,
    fields: Mapping[str, Any] | None = None,
    caller: Callable[..., Any] | None = None,
) -> dict[str, Any]:
    """Return the filters that are set, in the interface's order; `fields` override `filters`.

    `filters` may be the path of a saved search. The error for an unknown filter also suggests
    similar arguments of `caller`.

    >>> check_filters({"person_titles": ["CEO"]}, {"person_name": None})
    {'person_titles': ['CEO']}
    """
    if isinstance(filters, str | PathLike):
        filters = _read_saved(filters)
    given = _mapping({} if filters is None else filters)
    given.update({name: value for name, value in (fields or {}).items() if value is not None})
    for name in given:
        if name in (PAGE_NUMBER, PAGE_SIZE):
            raise InvalidInputError(
                f"{name} is not a filter: all pages are read automatically. Set the number of "
                f"people with {terms.argument('limit')}, and people per request with "
                f"{terms.argument('page_size')}."
            )
        if name not in spec.FILTERS_BY_NAME:
            raise InvalidInputError(
                f"{quoted(name)} is not a search "
                f"filter.{_filters_and_arguments_like(str(name), caller)} {terms.call('filters')} "
                "to list all filters."
            )
    return {
        known.name: _filter_value(known, given[known.name])
        for known in spec.FILTERS
        if given.get(known.name) is not None
    }


def _mapping(filters: object) -> dict[Any, Any]:
    if not isinstance(filters, Mapping):
        raise InvalidInputError(
            "filters takes a dict of filter names and values, or the path of a saved search, "
            f"not {type(filters).__name__}."
        )
    return dict(filters)


def _read_saved(path: str | PathLike[str]) -> dict[str, Any]:
    """Read and check the filters of a file that `save_filters` wrote."""
    source = expanded(path)
    if not source.exists():
        raise InvalidInputError(
            f"{source} cannot be read: there is no such file. Check the path. Pass filters by "
            f"name, such as {terms.argument('person_titles', ['CEO'])}, or as the path of a file "
            "written by save_filters; in Python also as a dict."
        )
    require_readable_file(source, open_pipes=True)
    try:
        saved = json.loads(source.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise unreadable(source, error) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{source} is damaged or not a saved search: it is not valid JSON ({error}). Pass a "
            "file written by save_filters."
        ) from error
    if not isinstance(saved, dict) or saved.get("kind") != SAVED_KIND:
        raise InvalidInputError(
            f"{source} is not a saved search. Pass a file written by save_filters."
        )
    try:
        return check_filters(_mapping(saved.get("filters", ())))
    except InvalidInputError as error:
        raise InvalidInputError(f"{source} cannot be used: {error}") from error


def check_columns(columns: object, added: Iterable[str | None] = ()) -> list[str] | None:
    """Return the chosen columns in order, and then the `added` columns that were not chosen.

    >>> check_columns(["name", "id"], ["company_sizes", None])
    ['name', 'id', 'company_sizes']
    """
    if columns is None:
        return None
    if isinstance(columns, str | set | frozenset):
        raise InvalidInputError(
            f"{terms.name('columns')} takes a list of names, not {type(columns).__name__}. Put "
            "names in [ ]."
        )
    names = [name for name in added if name is not None]
    documented = spec.columns(spec.PERSON)
    shown = [*documented, *names, *sorted(seen_columns)]
    known = {*shown, *(f"{name}{RAW_SUFFIX}" for name in documented)}
    chosen = check_list("columns", columns)
    if not chosen:
        raise InvalidInputError(
            f"{terms.name('columns')} is an empty list. Omit it to get all columns."
        )
    for name in chosen:
        if not isinstance(name, str) or name not in known:
            is_email = "mail" in str(name).lower()
            no_email = " People search returns no email addresses." if is_email else ""
            advice = terms.wording(
                "Call of.columns() to list all columns. To use a column of an undocumented field, "
                "read it first in this process: call of.search_people(limit=100), or "
                "of.read_prospects() with a file that has the column.",
                in_shell="The file of outreach-frames search --out has all columns.",
            )
            raise InvalidInputError(
                f"{terms.name('columns')} has {quoted(name)}, which is not a column of "
                f"people.{no_email}{suggestion(str(name), shown, most=3)} {advice}"
            )
    if len(set(chosen)) < len(chosen):
        repeated = next(name for name in chosen if chosen.count(name) > 1)
        raise InvalidInputError(
            f"{terms.name('columns')} has {quoted(repeated)} more than once. Name it once."
        )
    return [*dict.fromkeys([*map(str, chosen), *names])]


def _filters_and_arguments_like(name: str, caller: Callable[..., Any] | None) -> str:
    """Return sentences that suggest filters and arguments of `caller` with a similar name."""
    hint = suggestion(name, spec.FILTERS_BY_NAME)
    if caller is None:
        return hint
    arguments = [
        parameter.name
        for parameter in signature(caller).parameters.values()
        if parameter.kind is _KEYWORD and parameter.name not in spec.FILTERS_BY_NAME
    ]
    # An unknown name may contain an argument's name: company_domain contains domain.
    contained = [argument for argument in arguments if argument in name.split("_")]
    close = contained or similar(name, arguments, 2)
    if close or not hint:
        hint += f" {caller.__name__} takes {'=, '.join(close or arguments)}=."
    return hint


def unknown_values(body: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the values unknown to the sandbox: filter, value and a hint at similar known values.

    >>> unknown_values({"person_seniorities": ["vp", "directors"]})
    [('person_seniorities', 'directors', " Did you mean 'director'?")]
    """
    unknown = []
    for name, value in body.items():
        known = spec.FILTERS_BY_NAME[name].suggestions
        for text in dict.fromkeys(value if known else ()):
            if text in known:
                continue
            parts = [part.strip() for part in text.split(",")]
            if len(parts) > 1 and all(part in known for part in parts):
                close = f" Pass {' '.join(map(quoted, parts))}, each as a separate value."
            else:
                close = suggestion(text, known, most=3)
            # A single known value is an example, not a list.
            if close or len(known) > 1:
                unknown.append((name, text, close))
    return unknown


def has_free_text(body: Mapping[str, Any], is_sandbox: bool) -> bool:
    """Return whether any filter takes text without a checked format or known values."""
    filters = (spec.FILTERS_BY_NAME[name] for name in body)
    return any(
        item.type != "boolean" and not item.format and (len(item.suggestions) < 2 or not is_sandbox)
        for item in filters
    )


class DefaultLimit(int):
    """A limit that the caller has not chosen, so that a warning names it."""


DEFAULT_LIMIT: Final = DefaultLimit(1000)


def check_limit(value: object, name: str = "limit") -> int | None:
    """Check and return a maximum number; None sets no maximum."""
    if value is None:
        return None
    limit = check_integer(name, value)
    if limit < 1:
        raise InvalidInputError(
            f"{terms.argument(name, limit)} reads nothing. Pass 1 or more, or "
            f"{terms.argument(name, None)} to read all."
        )
    return limit


def check_page_size(value: object) -> int | None:
    """Check and return the number of people per request; None means automatic."""
    if value is None:
        return None
    size = check_integer("page_size", value)
    low, high = spec.MIN_SEARCH_PAGE_SIZE, spec.MAX_SEARCH_PAGE_SIZE
    if not low <= size <= high:
        raise InvalidInputError(
            f"{terms.argument('page_size', size)} is out of range: {low} to {high}."
        )
    return size


def _filter_value(known: spec.Filter, value: object) -> object:
    if known.type == "boolean":
        if not isinstance(value, bool | np.bool_):
            raise InvalidInputError(
                f"{terms.name(known.name)} takes True or False, not {type(value).__name__}."
            )
        return bool(value)
    if known.type == "string":
        return check_text(known.name, value)
    if isinstance(value, str):
        raise InvalidInputError(
            f"{terms.name(known.name)} takes a list of text, not a single text. Put it in [ ]."
        )
    return _filter_list(known, check_list(known.name, value))


def _filter_list(known: spec.Filter, entries: list[object]) -> list[str]:
    if not entries:
        raise InvalidInputError(
            f"{terms.name(known.name)} is an empty list, which would not narrow the search. Omit "
            "it, or pass values."
        )
    bad = [position for position, entry in enumerate(entries) if not is_usable(entry)]
    if bad:
        raise InvalidInputError(
            f"{terms.name(known.name)} takes a list of text; {len(bad)} of {len(entries)} values "
            f"are blank or not text ({format_positions(bad)})."
        )
    texts = [str(entry) for entry in entries]
    for text in texts:
        _check_format(known, text)
    return [bare_domain(text) if known.format == "domain" else text for text in texts]


def _check_format(known: spec.Filter, text: str) -> None:
    if known.format == "uuid" and canonical_uuid(text) is None:
        raise InvalidInputError(
            f"{terms.name(known.name)} takes ids (UUIDs) as the service returns them, not "
            f"{quoted(text)}."
        )
    if known.format == "domain" and not bare_domain(text):
        raise InvalidInputError(
            f"{terms.name(known.name)} takes domains or web addresses such as "
            f"'brightforge.example', not {quoted(text)}."
        )


def bare_domain(text: str) -> str:
    """Return the domain of a web address without ``www.``, or "" for other text.

    >>> bare_domain("https://www.Brightforge.example/about"), bare_domain("none")
    ('brightforge.example', '')
    """
    # As typed: find_people searches the registered domain instead (identity.domains).
    parts = split_address(text.strip().removeprefix("//"))
    domain = (parts.hostname or "" if parts else "").rstrip(".").removeprefix("www.")
    return domain if _DOMAIN.fullmatch(domain) else ""


def canonical_uuid(text: str) -> str | None:
    """Return a UUID in lower case, or None if the text is not a UUID."""
    try:
        canonical = str(uuid.UUID(text))
    except ValueError:
        return None
    return canonical if text.lower() == canonical else None


def check_split_by(filters: Mapping[str, Any], split_by: object) -> str:
    """Return the filter's name; raise InvalidInputError if it cannot split a search."""
    lists = [known.name for known in spec.FILTERS if known.type == "array" and not known.excludes]
    if split_by not in lists:
        close = suggestion(str(split_by), lists)
        raise InvalidInputError(
            f"{terms.argument('split_by', split_by)} is not a filter that takes a list of values "
            f"to include.{close} {terms.call('filters')} to list all filters."
        )
    if split_by not in filters:
        raise InvalidInputError(
            f"{terms.argument('split_by', split_by)} needs values to split by. Pass "
            f"{terms.argument(str(split_by))} too."
        )
    return str(split_by)
