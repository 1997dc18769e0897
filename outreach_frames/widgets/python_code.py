"""Format the Python code that widgets show, in the style of a code formatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

LINE_LENGTH: Final = 88
_INDENT: Final = "    "


def literal(value: object) -> str:
    """Format a value as Python, in double quotes unless single quotes need fewer backslashes.

    >>> literal({"first_name": ["Ada", None]})
    '{"first_name": ["Ada", None]}'
    """
    match value:
        case Mapping() | list() | tuple():
            opening, closing = _brackets(value)
            return f"{opening}{', '.join(_items(value))}{closing}"
        case str():
            return _quoted(value)
    return repr(value)


def call(function: str, arguments: Sequence[str | tuple[str, object]]) -> str:
    """Format a call with one argument per line; an argument is code or a prefix with a value.

    >>> print(call("of.search_people", [("person_titles=", ["CEO"]), "client=client"]))
    of.search_people(
        person_titles=["CEO"],
        client=client,
    )
    """
    if not arguments:
        return f"{function}()"
    lines = [f"{_INDENT}{line}" for argument in arguments for line in _lines(argument)]
    return "\n".join([f"{function}(", *lines, ")"])


def one_line_call(function: str, arguments: Sequence[str | tuple[str, object]]) -> str:
    """Format a call on one line if the line is short enough, or else like `call`."""
    line = f"{function}({', '.join(map(_text, arguments))})"
    return line if len(line) <= LINE_LENGTH else call(function, arguments)


def _text(argument: str | tuple[str, object]) -> str:
    return argument if isinstance(argument, str) else f"{argument[0]}{literal(argument[1])}"


def _lines(argument: str | tuple[str, object]) -> list[str]:
    """Format an argument on one line, or one item per line if the line is too long."""
    line = f"{_text(argument)},"
    if isinstance(argument, str) or len(_INDENT) + len(line) <= LINE_LENGTH:
        return [line]
    name, value = argument
    if not isinstance(value, Mapping | list | tuple):
        return [line]
    opening, closing = _brackets(value)
    return [f"{name}{opening}", *(f"{_INDENT}{item}," for item in _items(value)), f"{closing},"]


def _brackets(value: Mapping[Any, Any] | Sequence[Any]) -> tuple[str, str]:
    return ("{", "}") if isinstance(value, Mapping) else ("[", "]")


def _items(value: Mapping[Any, Any] | Sequence[Any]) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{literal(key)}: {literal(one)}" for key, one in value.items()]
    return [literal(one) for one in value]


def _quoted(text: str) -> str:
    # If a text has both kinds of quotes, repr escapes only single quotes.
    inner = repr(text + "'\"")[1:-4]
    if text.count('"') > text.count("'"):
        return f"'{inner}'"
    escaped = inner.replace("\\'", "'").replace('"', '\\"')
    return f'"{escaped}"'
