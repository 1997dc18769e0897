"""Search filters as Python code, and such code read back without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, get_args

from outreach_frames.common.arguments import (
    HEADCOUNTS,
    Headcount,
    check_filters,
    check_limit,
    check_one_of,
)
from outreach_frames.errors import InvalidInputError

DEFAULT_LIMIT: Final = 1000
DEFAULT_HEADCOUNT: Final[Headcount] = get_args(Headcount)[0]

_FUNCTIONS: Final = ("search_people", "count_people")
# How a search is made, not what it finds.
_WAYS: Final = frozenset({"page_size", "dtype_backend", "refresh", "progress", "client"})
_LINE_LENGTH: Final = 88


class SearchCall(NamedTuple):
    """What a call of `search_people` asks for."""

    filters: dict[str, Any]
    limit: int | None = DEFAULT_LIMIT
    headcount: Headcount = DEFAULT_HEADCOUNT


def filters_code(
    filters: Mapping[str, Any],
    limit: int | None = DEFAULT_LIMIT,
    headcount: Headcount = DEFAULT_HEADCOUNT,
    *,
    with_client: bool = False,
) -> str:
    r"""Return the Python code of a search; what is a default anyway is left out.

    `with_client` says whether the call names its client.

    >>> print(filters_code({"person_titles": ["CEO"]}, limit=50))
    people = of.search_people(
        person_titles=["CEO"],
        limit=50,
    )
    """
    arguments = dict(filters)
    if limit != DEFAULT_LIMIT:
        arguments["limit"] = limit
    if headcount != DEFAULT_HEADCOUNT:
        arguments["headcount"] = headcount
    lines = [f"    {line}" for name, value in arguments.items() for line in _argument(name, value)]
    lines += ["    client=client,"] * with_client
    if not lines:
        return "people = of.search_people()"
    return "\n".join(["people = of.search_people(", *lines, ")"])


def _argument(name: str, value: object) -> list[str]:
    if not isinstance(value, list):
        return [f"{name}={_literal(value)},"]
    literals = [_literal(one) for one in value]
    line = f"{name}=[{', '.join(literals)}],"
    if len(line) + len("    ") <= _LINE_LENGTH:
        return [line]
    return [f"{name}=[", *(f"    {literal}," for literal in literals), "],"]


def _literal(value: object) -> str:
    """Return a literal, text in double quotes unless that takes more backslashes."""
    if not isinstance(value, str):
        return repr(value)
    # With both quotes in a text, repr escapes the single ones and nothing but those.
    inner = repr(value + "'\"")[1:-4]
    if value.count('"') > value.count("'"):
        return f"'{inner}'"
    escaped = inner.replace("\\'", "'").replace('"', '\\"')
    return f'"{escaped}"'


def code_to_filters(code: str) -> dict[str, Any]:
    """Return the filters of a search in Python code, which is read and never run.

    >>> code_to_filters('people = of.search_people(person_titles=["CEO"], limit=50)')
    {'person_titles': ['CEO']}
    """
    return read_code(code).filters


def read_code(code: str) -> SearchCall:
    """Return what a search in Python code asks for; the code is read and never run.

    Raises
    ------
    InvalidInputError
        It is no Python, has not exactly one search, or values that are not written out.

    Examples
    --------
    >>> read_code("of.search_people({'person_name': 'Ada'}, limit=None)")
    SearchCall(filters={'person_name': 'Ada'}, limit=None, headcount='all')
    """
    call = _the_call(code)
    if len(call.args) > 1:
        raise InvalidInputError("A search takes one dict of filters; the rest by name.")
    given: dict[str, Any] = {}
    filters = None
    for name, node in [("filters", node) for node in call.args] + [
        (keyword.arg, keyword.value) for keyword in call.keywords
    ]:
        if name is None:
            raise InvalidInputError("The code unpacks arguments with **; write the filters out.")
        if name == "filters":
            filters = _value(name, node)
        elif name not in _WAYS:
            given[name] = _value(name, node)
    limit = check_limit(given.pop("limit", DEFAULT_LIMIT))
    headcount = given.pop("headcount", DEFAULT_HEADCOUNT)
    check_one_of("headcount", headcount, HEADCOUNTS)
    return SearchCall(check_filters(filters, given), limit, headcount)


def _the_call(code: str) -> ast.Call:
    try:
        tree = ast.parse(code.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidInputError(f"This is no Python code: {error}.") from error
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _called(node.func) in _FUNCTIONS
    ]
    if len(calls) != 1:
        raise InvalidInputError(
            f"The code has {len(calls) or 'no'} call{'s' * (len(calls) != 1)} of search_people; "
            "give code with exactly one."
        )
    return calls[0]


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _value(name: str, node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise InvalidInputError(
            f"{name} is not written out in the code; only plain values can be read from it."
        ) from error
