"""Read the errors that a service describes: in the body of an error response, or in `_errors`.

The interface document shows neither form. Services send texts or objects, one or several, often
with a `detail` and the `source` of the error in the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from outreach_frames import spec
from outreach_frames.common.text import quoted, shorten

_MAX_SHOWN: Final = 3
_MAX_CHARACTERS: Final = 200
_MAX_CHARACTERS_OF_PLACE: Final = 100
# The members of a body that hold errors, and the members of an error with its words, best first.
_LISTS: Final = (spec.ERRORS_KEY, "errors", "error")
_WORDS: Final = (
    *("detail", "title", "message", "error_description", "msg", "errorMessage", "description"),
    *("reason", "error", "code"),
)
_CODES: Final = ("error_code", "code")


class ErrorEntry(NamedTuple):
    """One error: its words, its code, and the part of the request that it concerns, if given."""

    text: str
    code: str = ""
    pointer: str = ""  # a JSON pointer into the request's body, such as /leads/3/email
    parameter: str = ""  # of the query
    header: str = ""

    def with_code(self) -> ErrorEntry:
        """Return the error with its code before its words."""
        return self._replace(text=f"{self.code}: {self.text}".removeprefix(": "))

    def place(self, filters: Mapping[str, Any], documented: Callable[[str], str] = str) -> str:
        """Return where the error is in the request, with the value if a filter is concerned."""
        places = {"at": self.pointer, "parameter": self.parameter, "header": self.header}
        place = next((f"{name} {text}" for name, text in places.items() if text), "")
        segments = [documented(segment) for segment in (self.pointer or self.parameter).split("/")]
        for name, index in zip(segments, [*segments[1:], ""], strict=True):
            if name in filters:
                value = filters[name]
                if isinstance(value, list) and index.isdecimal() and int(index) < len(value):
                    value = value[int(index)]
                return f"{shorten(place, _MAX_CHARACTERS_OF_PLACE)} ({name}={quoted(value)})"
        return shorten(place, _MAX_CHARACTERS_OF_PLACE)


def read_errors(value: Any) -> list[ErrorEntry]:
    """Return the errors in the parsed body of an error response, or in the value of `_errors`.

    The words of an error are its `detail`, else its `title`, `message` or code, else its JSON.

    >>> read_errors({"_errors": [{"title": "No.", "source": {"pointer": "/leads/3/email"}}]})
    [ErrorEntry(text='No.', code='', pointer='/leads/3/email', parameter='', header='')]
    >>> [one.text for one in read_errors(["One.", {"code": "two"}])]
    ['One.', 'two']
    """
    return read_entries(_listed(value))


def service_words(body: Any) -> str:
    """Return the service's words in a body without the documented data, or an empty text.

    >>> service_words({"success": False, "error": "Plan expired."}), service_words({"results": 1})
    ('Plan expired.', '')
    """
    entries = [
        _entry(error)
        for error in (_listed(body) if isinstance(body, dict) else ())
        if isinstance(error, str)
        or (isinstance(error, dict) and any(_text(error.get(name)) for name in _WORDS))
    ]
    return describe_errors(entries, {})


def _listed(value: Any) -> list[Any]:
    """Return the errors in a body as a list of texts and objects."""
    if isinstance(value, dict):
        names = (*(_LISTS), "detail") if isinstance(value.get("detail"), list) else _LISTS
        nested = (value[name] for name in names if isinstance(value.get(name), list | dict))
        inner = next(filter(None, nested), value)
        if inner is not value and isinstance(inner, dict) and _is_map(inner):
            return [
                {"detail": words, "source": {"pointer": str(name)}}
                for name, texts in inner.items()
                for words in (texts if isinstance(texts, list) else [texts])
            ]
        value = inner
    return [*filter(None, value)] if isinstance(value, list) else [value] if value else []


def _is_map(errors: Mapping[str, Any]) -> bool:
    """Return whether an object has errors by the names of fields, and is not one error."""
    is_named = errors.keys().isdisjoint({*_WORDS, *_CODES, "source"})
    kinds = list | str if is_named else list
    return all(isinstance(value, kinds) for value in errors.values())


def read_entries(value: Any) -> list[ErrorEntry]:
    """Return one error, or each error of a list, such as `validation_errors`."""
    return [_entry(entry) for entry in (value if isinstance(value, list) else [value])]


def describe_errors(
    entries: Sequence[ErrorEntry],
    filters: Mapping[str, Any],
    *,
    documented: Callable[[str], str] = str,
    redact: Callable[[str], str] = str,
) -> str:
    """Return the first errors as one line, each with its place in the request, and their number.

    Parameters
    ----------
    entries : sequence of ErrorEntry
        The errors, from `read_errors`.
    filters : mapping
        The filters of the request, whose values may be shown.
    documented : callable
        Returns the documented name of a field that was sent, as `NetworkName.documented`.
    redact : callable
        Removes the token from a text of the service.

    Examples
    --------
    >>> entry = ErrorEntry("Not supported.", pointer="/person_seniorities/0")
    >>> describe_errors([entry], {"person_seniorities": ["boss"]})
    "Not supported, at /person_seniorities/0 (person_seniorities='boss')"
    """
    shown = []
    distinct = list(dict.fromkeys(entries))  # each page of a search may report the same error
    for entry in distinct[:_MAX_SHOWN]:
        redacted = ErrorEntry(*map(redact, entry))
        text = shorten(" ".join(redacted.text.split()), _MAX_CHARACTERS)
        place = redacted.place(filters, documented)
        shown.append(f"{text.rstrip('.')}, {place}" if place else text)
    if len(distinct) > _MAX_SHOWN:
        shown.append(f"{len(distinct):,} different errors in total")
    return "; ".join([*(line.rstrip(".") for line in shown[:-1]), *shown[-1:]])


def _entry(error: Any) -> ErrorEntry:
    if not isinstance(error, dict):
        return ErrorEntry(error if isinstance(error, str) else quoted(error, _MAX_CHARACTERS))
    text = next(filter(None, (_text(error.get(name)) for name in _WORDS)), "")
    code = next(filter(None, (_text(error.get(name)) for name in _CODES)), "")
    source = error.get("source")
    given = source if isinstance(source, dict) else {}
    places = [_text(given.get(name)) for name in ("pointer", "parameter", "header")]
    location = error.get("loc")
    if isinstance(location, list) and location[1:] and not any(places):
        kind, path = location[0], "/".join(map(str, location[1:]))
        places = ["", path, ""] if kind == "query" else [f"/{path}", "", ""]
    return ErrorEntry(text or quoted(error, _MAX_CHARACTERS), code, *places)


def _text(value: Any) -> str:
    """Return a text or number as text, and "" for other values."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value.strip() if isinstance(value, str) else str(value) if is_number else ""
