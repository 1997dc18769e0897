"""Argument checks that run before any request."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from numbers import Integral
from typing import Any, Literal, Protocol, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames.common import terms
from outreach_frames.common.text import BLANKS, has_lone_surrogate, quoted
from outreach_frames.errors import InvalidInputError

Headcount = Literal["all", "department", "none"]
HEADCOUNTS: tuple[Headcount, ...] = ("all", "department", "none")

_MAX_SHOWN_POSITIONS = 5
# Unicode categories of dashes, underscores and invisible characters.
_JOINING = ("Pd", "Pc", "Cf")
_NOT_LISTS = (bytes, bytearray, Mapping)


class ListOfText(Protocol):
    """A list, tuple, set or column of text; type checkers reject a single text."""

    # A `str` does not match, because its `__contains__` accepts only `str`.
    def __contains__(self, value: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...


def suggestion(word: str, known: Iterable[str], most: int = 1) -> str:
    """Return a "did you mean" hint if a word resembles or contains a known one, otherwise "".

    >>> suggestion("person_titel", ["person_titles", "person_title"])
    " Did you mean 'person_title'?"
    >>> suggestion("11-50 employees", ["1-10", "11-50"])
    " Did you mean '11-50'?"
    """
    names = list(known)
    inner = [name for name in names if len(_bare(name)) > 2 and _bare(name) in _bare(word)]
    close = similar(word, names, most) or sorted(inner, key=len)[-1:]
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


def similar(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Return known words that resemble a word, or a few that contain it; ignore case and blanks.

    >>> similar("C Suite", ["c_suite", "vp"]), similar("industry", ["vp", "company_industries"])
    (['c_suite'], ['company_industries'])
    """
    import difflib  # noqa: PLC0415 - slow to import, and rarely needed

    by_letters: dict[str, str] = {}
    for known_word in known:
        by_letters.setdefault(_bare(known_word) or known_word, known_word)
    bare = _bare(word) or word
    close = difflib.get_close_matches(bare, by_letters, n=most)
    if not close and len(stem := bare.rstrip("sy")) > 2:  # of singular and plural
        close = [letters for letters in by_letters if stem in letters][: max(most, 3)]
    return [by_letters[letters] for letters in close]


def near_names(name: Hashable, names: Iterable[Any]) -> list[Any]:
    """Return the names that differ from a name only in case, blanks, hyphens or underscores.

    >>> near_names("email", ["E-Mail", "e mail", "mail", 5])
    ['E-Mail', 'e mail']
    """
    if not isinstance(name, str):
        return [other for other in dict.fromkeys(names) if other == name]
    key = _bare(name)
    texts = [other for other in dict.fromkeys(names) if isinstance(other, str)]
    return [text for text in texts if _bare(text) == key]


@lru_cache(4096)  # Each plan compares the names of hundreds of columns.
def _bare(name: str) -> str:
    text = unicodedata.normalize("NFKC", name).casefold()
    return "".join(c for c in text if c not in BLANKS and unicodedata.category(c) not in _JOINING)


def is_missing(cell: Any) -> bool:
    """Return whether a cell is missing: None, NaN, NaT or NA.

    >>> is_missing(pd.NA), is_missing(""), is_missing([])
    (True, False, False)
    """
    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


def check_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return a value after checking that it is one of the choices."""
    if not isinstance(value, str):
        raise InvalidInputError(
            f"{terms.name(name)} takes one of {', '.join(choices)}, not {_kind(value)}."
        )
    if value not in choices:
        raise InvalidInputError(
            f"{terms.argument(name, value)} is not one of "
            f"{', '.join(choices)}.{suggestion(value, choices)}"
        )
    return value


def check_optional_choice(name: str, value: object, choices: Iterable[str]) -> str | None:
    """Return a value after checking that it is one of the choices, or None if it is not set."""
    return None if value is None else check_choice(name, value, choices)


def check_text(name: str, value: object) -> str | None:
    """Return a text after checking that it is not blank, or None if it is not set."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInputError(f"{terms.name(name)} takes text, not {_kind(value)}.")
    if not value.strip():
        raise InvalidInputError(f"{terms.name(name)} is blank. Omit it, or pass a value.")
    if has_lone_surrogate(value):
        raise InvalidInputError(f"{terms.name(name)} contains a lone surrogate. Remove it.")
    return value


def check_id(name: str, value: object) -> str:
    """Return an id after checking that a URL path can contain it."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{terms.name(name)} takes an id as text, not {_kind(value)}.")
    if not _is_id(value):
        raise InvalidInputError(
            f"{terms.argument(name, value)} is not an id. Pass the service's id."
        )
    return str(value)  # numpy's text cannot be encoded


def check_integer(name: str, value: object) -> int:
    """Return an integer; booleans are rejected."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise InvalidInputError(
            f"{terms.name(name)} takes a whole number, not {_kind(value)} ({quoted(value)})."
        )
    return int(value)


def check_day(name: str, value: object) -> pd.Timestamp:
    """Return midnight of a day, given as YYYY-MM-DD or a date object; None means today.

    >>> check_day("start", "2026-03-02"), check_day("start", pd.Timestamp("2026-03-02 09:30"))
    (Timestamp('2026-03-02 00:00:00'), Timestamp('2026-03-02 00:00:00'))
    """
    if value is None:
        return pd.Timestamp.today().normalize()
    # YYYY-MM-DD is the only unambiguous text: 04.01.2027 is in January or April.
    is_date = isinstance(value, date | np.datetime64) and not is_missing(value)
    if isinstance(value, np.datetime64):
        is_date &= np.datetime_data(value)[0] not in {"Y", "M", "W"}
    if not (is_day(value) if isinstance(value, str) else is_date):
        raise InvalidInputError(
            f"{terms.argument(name, value)} is not a day. Pass it as YYYY-MM-DD, such as "
            "'2026-03-02'."
        )
    day = pd.Timestamp(cast("Any", value))
    return day.tz_localize(None).normalize()


def is_day(text: str) -> bool:
    """Return whether a text is a day as YYYY-MM-DD."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def check_ids(name: str, values: object) -> list[str]:
    """Return ids or addresses as a list of stripped text; no entry may be missing."""
    entries = [values] if isinstance(values, str) else check_list(name, values)
    bad = [position for position, entry in enumerate(entries) if not _is_id(entry)]
    if bad:
        raise InvalidInputError(
            f"{len(bad)} of {len(entries)} {terms.name(name)} are missing or not text "
            f"({format_positions(bad)}). Drop missing entries, and convert the others to text."
        )
    return [str(entry).strip() for entry in entries]


def _is_id(value: object) -> bool:
    return is_usable(value) and value not in {".", ".."}


def is_usable(value: object) -> bool:
    """Return whether a value is non-blank text that can be encoded."""
    return isinstance(value, str) and bool(value.strip()) and not has_lone_surrogate(value)


def check_list(name: str, values: object) -> list[object]:
    """Return the entries of a list, column or set; mappings and frames are rejected."""
    if isinstance(values, set | frozenset):
        return sorted(values, key=str)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return list(values.to_pylist())
    # Iterating over a frame of any library yields its column names.
    is_frame = hasattr(values, "columns")
    if isinstance(values, Iterable) and not isinstance(values, _NOT_LISTS) and not is_frame:
        return list(values)
    raise InvalidInputError(
        f"{terms.name(name)} takes a list of text or a frame's column, not {_kind(values)}."
    )


def format_positions(positions: list[int]) -> str:
    """Return the first few positions as text for a message."""
    shown = ", ".join(map(str, positions[:_MAX_SHOWN_POSITIONS]))
    more = ", …" if len(positions) > _MAX_SHOWN_POSITIONS else ""
    return f"position{'s' if len(positions) > 1 else ''} {shown}{more}"


def _kind(value: object) -> str:
    return type(value).__name__
