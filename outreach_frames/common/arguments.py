"""Checks of arguments before any request: pure, one clear error each."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from numbers import Integral
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.common.text import has_lone_surrogate, quoted
from outreach_frames.errors import InvalidInputError

Headcount = Literal["all", "department", "none"]
HEADCOUNTS: tuple[Headcount, ...] = ("all", "department", "none")

_DOMAIN = re.compile(r"[^\s/@:]+\.[^\s/@:]+")
_SHOWN_POSITIONS = 5
_NO_LISTS = (bytes, bytearray, Mapping)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a "did you mean" for a word that is close to a known one, else the empty string.

    >>> suggestion("person_title", ["person_titles", "company_names"])
    " Did you mean 'person_titles'?"
    """
    import difflib  # noqa: PLC0415 - slow to import, and only for somebody's mistake

    close = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def is_missing(cell: Any) -> bool:
    """Return whether a cell of a frame is missing: None, NaN, NaT or NA.

    >>> is_missing(pd.NA), is_missing(""), is_missing([])
    (True, False, False)
    """
    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


def bare_domain(text: str) -> str:
    """Return the domain of a web address, without ``www.``; "" where there is none.

    >>> bare_domain("https://www.Brightforge.example/about"), bare_domain("none")
    ('brightforge.example', '')
    """
    text = text.strip()
    try:
        host = urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:
        return ""
    domain = host.rstrip(".").removeprefix("www.")
    return domain if _DOMAIN.fullmatch(domain) else ""


def check_one_of(name: str, value: object, choices: Iterable[str]) -> str:
    """Return a value of a closed list."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} takes one of {', '.join(choices)}, not {_kind(value)}.")
    if value not in choices:
        raise InvalidInputError(
            f"{name}={quoted(value)} is not one of {', '.join(choices)}."
            f"{suggestion(value, choices)}"
        )
    return value


def check_choice(name: str, value: object, choices: Iterable[str]) -> str | None:
    """Return a value of a closed list, or None where it is not set."""
    return None if value is None else check_one_of(name, value, choices)


def check_text(name: str, value: object) -> str | None:
    """Return a text that is not blank, or None where it is not set."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} takes text, not {_kind(value)}.")
    if not value.strip():
        raise InvalidInputError(f"{name} is blank. Leave it out to search without it.")
    if has_lone_surrogate(value):
        raise InvalidInputError(f"{name} contains half a character (a lone surrogate).")
    return value


def check_id(name: str, value: object) -> str:
    """Return an id that can stand in a path."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} takes an id as text, not {_kind(value)}.")
    if not _is_usable(value) or value in {".", ".."}:
        raise InvalidInputError(f"{name}={quoted(value)} is not an id.")
    return value


def check_integer(name: str, value: object) -> int:
    """Return an integer; a boolean is not one."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise InvalidInputError(
            f"{name} takes a whole number, not {_kind(value)} ({quoted(value)})."
        )
    return int(value)


def check_day(name: str, value: object) -> pd.Timestamp:
    """Return a day, for None today's, as the start of it.

    >>> check_day("start", "2026-03-02 09:30")
    Timestamp('2026-03-02 00:00:00')
    """
    if value is None:
        return pd.Timestamp.today().normalize()
    day: Any = pd.NaT
    if isinstance(value, str | date | np.datetime64):
        with suppress(ValueError):
            day = pd.Timestamp(value)
    if pd.isna(day):
        raise InvalidInputError(f"{name} takes a day such as '2026-03-02', not {quoted(value)}.")
    return cast("pd.Timestamp", day.tz_localize(None).normalize())


def check_limit(value: object, name: str = "limit") -> int | None:
    """Return how many to read at most, None for all."""
    if value is None:
        return None
    limit = check_integer(name, value)
    if limit < 1:
        raise InvalidInputError(f"{name}={limit} reads nothing. Give 1 or more, or None for all.")
    return limit


def check_ids(name: str, values: object) -> list[str]:
    """Return ids or addresses as a list of text, with every entry present.

    A single text is a list of one. Blanks around an entry are dropped: no id or address has any.
    """
    entries = [values] if isinstance(values, str) else check_list(name, values)
    bad = [
        position
        for position, entry in enumerate(entries)
        if not _is_usable(entry) or entry in {".", ".."}
    ]
    if bad:
        raise InvalidInputError(
            f"{len(bad)} of {len(entries)} {name} are missing or not text ({_positions(bad)}). "
            "Drop what is missing, for example with .dropna(), and make text of the rest."
        )
    return [str(entry).strip() for entry in entries]


def check_filters(
    filters: Mapping[str, Any] | None = None, fields: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return search filters as the body of a people search, in the interface's order.

    Parameters
    ----------
    filters, fields : mapping or None
        Filter names to values: text, lists of text, booleans. None means that a filter is not set.
        A field takes the place of the filter of its name.

    Returns
    -------
    dict
        JSON-ready, with the filters that are set, and nothing else.

    Raises
    ------
    InvalidInputError
        A filter does not exist, or has a value of another type.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> check_filters({"person_titles": ["CEO"]}, {"person_name": None})
    {'person_titles': ['CEO']}
    """
    if filters is not None and not isinstance(filters, Mapping):
        raise InvalidInputError(
            f"filters takes a dict of filter names and values, not {_kind(filters)}."
        )
    given = dict(filters or {})
    given.update({name: value for name, value in (fields or {}).items() if value is not None})
    for name in given:
        if name not in spec.FILTERS_BY_NAME:
            close = suggestion(str(name), spec.FILTERS_BY_NAME)
            raise InvalidInputError(
                f"{name!r} is not a search filter.{close} "
                "All filters: [f.name for f in outreach_frames.spec.FILTERS]."
            )
    return {
        known.name: _filter_value(known, given[known.name])
        for known in spec.FILTERS
        if given.get(known.name) is not None
    }


def unknown_values(body: Mapping[str, Any]) -> list[str]:
    """Describe the filter values that are not on the lists of known ones.

    >>> unknown_values({"person_seniorities": ["vp", "directors"], "person_name": "Ada"})
    ["person_seniorities='directors'. Did you mean 'director'?"]
    """
    found = []
    for name, value in body.items():
        known = spec.FILTERS_BY_NAME[name]
        choices = known.values or known.suggestions
        lower = {choice.lower() for choice in choices}
        others = [text for text in value if text.lower() not in lower] if choices else []
        for text in others:
            close = suggestion(text.lower(), choices)
            # One known word is an exception among others, not a list of them.
            if close or len(choices) > 1:
                found.append(f"{name}={quoted(text)}.{close}")
    return found


def check_page_size(value: object) -> int | None:
    """Return how many people one request asks for, or None where it is not set."""
    if value is None:
        return None
    size = check_integer("page_size", value)
    low, high = spec.MIN_SEARCH_PAGE_SIZE, spec.MAX_SEARCH_PAGE_SIZE
    if not low <= size <= high:
        raise InvalidInputError(f"page_size={size} is out of range: {low} to {high}.")
    return size


def _filter_value(known: spec.Filter, value: object) -> object:
    if known.type == "boolean":
        if not isinstance(value, bool | np.bool_):
            raise InvalidInputError(f"{known.name} takes True or False, not {_kind(value)}.")
        return bool(value)
    if known.type == "string":
        return check_text(known.name, value)
    if isinstance(value, str):
        raise InvalidInputError(
            f"{known.name} takes a list of text, and this is one text: put it in [ ]."
        )
    return _filter_list(known, check_list(known.name, value))


def _filter_list(known: spec.Filter, entries: list[object]) -> list[str]:
    if not entries:
        raise InvalidInputError(
            f"{known.name} is an empty list, which would not narrow the search. "
            "Leave it out, or give values."
        )
    bad = [position for position, entry in enumerate(entries) if not _is_usable(entry)]
    if bad:
        raise InvalidInputError(
            f"{known.name} takes a list of text; {len(bad)} of {len(entries)} values are blank "
            f"or not text ({_positions(bad)})."
        )
    texts = [str(entry) for entry in entries]
    for text in texts:
        _check_format(known, text)
    return [bare_domain(text) if known.format == "domain" else text for text in texts]


def _is_usable(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and not has_lone_surrogate(value)


def _check_format(known: spec.Filter, text: str) -> None:
    if known.format == "uuid" and canonical_uuid(text) is None:
        raise InvalidInputError(
            f"{known.name} takes ids (UUIDs) as the service gives them, not {quoted(text)}."
        )
    if known.format == "domain" and not bare_domain(text):
        raise InvalidInputError(
            f"{known.name} takes domains or web addresses such as 'brightforge.example', "
            f"not {quoted(text)}."
        )


def canonical_uuid(text: str) -> str | None:
    """Return a UUID in lower case; None for any other text."""
    try:
        canonical = str(uuid.UUID(text))
    except ValueError:
        return None
    return canonical if text.lower() == canonical else None


def check_list(name: str, values: object) -> list[object]:
    """Return the entries of a list, column or set; a mapping or frame is refused."""
    if isinstance(values, set | frozenset):
        return sorted(values, key=str)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return list(values.to_pylist())
    # A frame of any library would give its columns.
    is_frame = hasattr(values, "columns")
    if isinstance(values, Iterable) and not isinstance(values, _NO_LISTS) and not is_frame:
        return list(values)
    raise InvalidInputError(
        f"{name} takes a list of text or a frame's column, not {_kind(values)}."
    )


def _positions(positions: list[int]) -> str:
    shown = ", ".join(map(str, positions[:_SHOWN_POSITIONS]))
    more = ", …" if len(positions) > _SHOWN_POSITIONS else ""
    return f"position{'s' if len(positions) > 1 else ''} {shown}{more}"


def _kind(value: object) -> str:
    return type(value).__name__
