"""Fields that are not as the interface shows them: found in a response, and cut out of its bytes.

What is left is as Arrow's reader wants it: each cut value's number stands in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from outreach_frames import spec
from outreach_frames.tables.json_values import LARGEST_INT64, LossyParseError

# A field by the names that lead to it from the top of a response; elements of lists have none.
Path = tuple[str, ...]

# Beyond so many the other ways are no slower.
MOST_PATHS: Final = 100
_LONGEST_NAME: Final = 100
_MOST_LEVELS: Final = 6
_MOST_SPACE: Final = 20
_MOST_BYTES_OF_CHARACTER: Final = 4
_MAKE_ANYTHING: Final = np.frombuffer(b"u/", np.uint8)
_QUOTE, _BACKSLASH, _COLON, _SPACE = b'"\\: '
PEOPLE: Final = (spec.RESULTS_KEY,)
# Of these the whole is wanted as Python objects.
_WHOLE: Final = frozenset({(spec.PAGINATION_KEY,), (spec.ERRORS_KEY,)})


_TEXT: Final = rb'"(?:[^"\\]++|\\.)*+"'


def _value() -> bytes:
    """Make the pattern of a JSON value; inside lists and objects it is lax."""
    nested = rb"(?!)"
    for _ in range(_MOST_LEVELS):
        nested = rb'[\[{](?:[^]["{}]++|' + _TEXT + rb"|" + nested + rb")*+[\]}]"
    number = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?"
    return rb"[ \t]*(" + rb"|".join([_TEXT, number, rb"true|false|null", nested]) + rb")[ \t]*"


_COMMA: Final = re.compile(b",")
_VALUE: Final = re.compile(_value() + rb"(?=[],}])", re.DOTALL)
_FIRST_PERSON: Final = re.compile(
    rb'\{[ \t]*(?:%b:%b,[ \t]*)*?"%b":[ \t]*\[' % (_TEXT, _value(), spec.RESULTS_KEY.encode()),
    re.DOTALL,
)


def unexpected_paths(documents: Iterable[Any]) -> frozenset[Path]:
    """Tell which fields of responses the interface does not show, or shows with another type.

    Parameters
    ----------
    documents : iterable
        Parsed responses of people search.

    Returns
    -------
    frozenset of tuple of str
        A field inside a list is there by its own name where the interface does not know it. Where
        it does, the whole list is.

    Raises
    ------
    LossyParseError
        When a response is not an object, or a field cannot be cut out.

    Examples
    --------
    >>> person = {"new": 1, "company": {"followers": "many"}}
    >>> sorted(unexpected_paths([{"results": [person], "_pagination": {}}]))
    [('results', 'company', 'followers'), ('results', 'new')]
    """
    found: set[Path] = set()
    for document in documents:
        if type(document) is not dict:
            raise LossyParseError
        _look(document, _TOP, (), found)
    paths = {path[:1] if path[:1] in _WHOLE else path for path in found}
    paths |= _lists_with_members_of({path[-1] for path in paths})
    if len(paths) > MOST_PATHS or not all(_can_be_cut(path) for path in paths):
        raise LossyParseError
    return frozenset(paths)


def cut_out(body: bytes, names: Iterable[str], values: list[bytes]) -> bytes:
    """Put numbers where the values of some fields stand, wherever fields of these names are.

    Parameters
    ----------
    body : bytes
        A response in one line.
    names : iterable of str
        Without characters that JSON escapes.
    values : list of bytes
        Gets the values as they were written; the first one cut gets the number that is its length.

    Returns
    -------
    bytes
        As valid, and as invalid, as `body` is, but for what is wrong inside the values.

    Raises
    ------
    LossyParseError
        When a field may be among those named and cannot be told to be.

    Examples
    --------
    >>> values = []
    >>> cut_out(b'{"a":"x","b":{"a":[1]},"c":true}', ["a"], values), values
    (b'{"a":0,"b":{"a":1},"c":true}', [b'"x"', b'[1]'])
    """
    pieces = []
    end = 0
    for start in _value_starts(body, names):
        if start < end:
            continue  # inside a value that is cut out already
        match = _VALUE.match(body, start)
        if match is None:
            raise LossyParseError
        pieces += [body[end:start], b"%d" % len(values)]
        values.append(match[1])
        end = match.end(1)
    pieces.append(body[end:])
    return b"".join(pieces)


def first_people(body: bytes) -> Iterator[Any]:
    """Yield people of a response in one line from the first on, as long as they can be told.

    >>> list(first_people(b'{"page":{"a":1},"results":[{"id":"1"},null],"more":0}'))
    [{'id': '1'}, None]
    """
    match = _FIRST_PERSON.match(body)
    while match and (match := _VALUE.match(body, match.end())):
        yield orjson.loads(match[1])
        if body[match.end() : match.end() + 1] != b",":
            return
        match = _COMMA.match(body, match.end())


def parsed(values: Sequence[bytes]) -> list[Any]:
    """Parse what `cut_out` found.

    >>> parsed([b'"x"', b"[1]"])
    ['x', [1]]
    """
    found: list[Any] = orjson.loads(b"[%b]" % b",".join(values))
    return found


def _value_starts(body: bytes, names: Iterable[str]) -> list[int]:
    """Find where the values of all fields with some names begin, in order."""
    # So that positions may be counted back from the first name's end.
    margin = b" " * (_LONGEST_NAME * _MOST_BYTES_OF_CHARACTER + 2)
    array = np.frombuffer(margin + body, np.uint8)
    colons = np.flatnonzero(array == _COLON)
    before = array[colons - 1]
    _check_space(array, colons[before <= _SPACE])
    ends = colons[before == _QUOTE] - 1
    ends = _without_escapes(array, ends)
    starts = []
    for name in names:
        spelled = b'"%b' % name.encode()
        at = ends
        for back, character in enumerate(reversed(spelled), 1):
            at = at[array[at - back] == character]
        if (array[at - len(spelled) - 1] == _BACKSLASH).any():
            raise LossyParseError  # the end of a longer name
        starts.append(at)
    offset = len(array) - len(body) - 2  # what follows the name is a quote and a colon
    positions: list[int] = (np.sort(np.concatenate(starts)) - offset).tolist()
    return positions


def _check_space(array: NDArray[np.uint8], colons: NDArray[np.intp]) -> None:
    """Refuse a response where a name may have space behind it."""
    for _ in range(_MOST_SPACE):
        if not len(colons):
            return
        before = array[colons - 1]
        if (before == _QUOTE).any():
            raise LossyParseError
        colons = colons[before <= _SPACE] - 1
    raise LossyParseError


def _without_escapes(array: NDArray[np.uint8], ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Leave out quotes inside text, and refuse a response where a name has an escape in it."""
    escapes = np.flatnonzero(array == _BACKSLASH)
    if not len(escapes):
        return ends
    is_escaped = (array[ends - 1] == _BACKSLASH) & (array[ends - 2] != _BACKSLASH)
    ends = ends[~is_escaped]
    # No other escapes make a character that may be in the names that are looked for.
    escapes = escapes[np.isin(array[escapes + 1], _MAKE_ANYTHING)]
    last = np.searchsorted(escapes, ends) - 1
    has_any = last >= 0
    if not has_any.any():
        return ends
    # Between the last escape before a name's end and that end a quote begins the name.
    quotes = np.flatnonzero(array == _QUOTE)
    past_escape = np.searchsorted(quotes, escapes[last[has_any]] + 2)
    if (np.searchsorted(quotes, ends[has_any]) <= past_escape).any():
        raise LossyParseError
    return ends


def _can_be_cut(path: Path) -> bool:
    name = path[-1]
    return (
        path != PEOPLE
        and len(name) <= _LONGEST_NAME
        and orjson.dumps(name) == b'"%b"' % name.encode()
    )


def _lists_with_members_of(names: set[str]) -> set[Path]:
    """Give the lists of people whose elements have a known field that will be cut out."""
    return {
        (*PEOPLE, field.name)
        for field in spec.PERSON
        if field.type == "array" and any(member.name in names for member in field.members)
    }


class _Shown(NamedTuple):
    """What the interface shows of a field."""

    type: str
    items: str | None
    members: dict[str, _Shown]


def _tree(fields: Iterable[spec.Field]) -> dict[str, _Shown]:
    return {field.name: _Shown(field.type, field.items, _tree(field.members)) for field in fields}


_TOP: Final = _tree(spec.PEOPLE_SEARCH_RESULT)
SHOWN_PERSON: Final = _TOP[spec.RESULTS_KEY].members


def _look(value: dict[str, Any], shown: dict[str, _Shown], path: Path, found: set[Path]) -> None:
    """Find the fields of an object that the interface does not show so."""
    for name, member in value.items():
        field = shown.get(name)
        if field is None or not _fits(member, field, (*path, name), found):
            found.add((*path, name))


def _fits(value: Any, field: _Shown, path: Path, found: set[Path]) -> bool:
    """Tell whether Arrow's reader takes a value for a field's type."""
    if value is None:
        return True
    if field.type == "object":
        if type(value) is not dict:
            return False
        _look(value, field.members, path, found)
        return True
    if field.type == "array":
        return type(value) is list and all(_is_element(one, field, path, found) for one in value)
    return _is_scalar(value, field.type)


def _is_element(value: Any, field: _Shown, path: Path, found: set[Path]) -> bool:
    if value is None:
        return True
    if field.items != "object":
        return _is_scalar(value, field.items or "string")
    if type(value) is not dict:
        return False
    if path == PEOPLE:
        _look(value, field.members, path, found)
        return True
    inside: set[Path] = set()
    _look(value, field.members, path, inside)
    further = {one for one in inside if one[-1] not in field.members}
    found |= further
    return inside == further


def _is_scalar(value: Any, type_name: str) -> bool:
    if type_name == "integer":
        return type(value) is int and value <= LARGEST_INT64
    return type(value) in _SCALARS[type_name]


_SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (),
}
