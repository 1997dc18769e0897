"""Format the Python code that widgets show, with each argument on one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

LINE_LENGTH: Final = 88


def literal(value: object) -> str:
    """Format a value as Python, in double quotes unless single quotes need fewer backslashes.

    >>> literal({"first_name": ["Ada", None]})
    '{"first_name": ["Ada", None]}'
    """
    match value:
        case Mapping():
            items = (f"{literal(key)}: {literal(one)}" for key, one in value.items())
            return f"{{{', '.join(items)}}}"
        case list() | tuple():
            return f"[{', '.join(map(literal, value))}]"
        case str():
            return _quoted(value)
    return repr(value)


def call(function: str, arguments: Sequence[str]) -> str:
    """Format a call with one argument per line.

    >>> print(call("of.search_people", ['person_titles=["CEO"]', "client=client"]))
    of.search_people(
        person_titles=["CEO"],
        client=client,
    )
    """
    if not arguments:
        return f"{function}()"
    lines = [f"    {argument}," for argument in arguments]
    return "\n".join([f"{function}(", *lines, ")"])


def one_line_call(function: str, arguments: Sequence[str]) -> str:
    """Format a call on one line if the line is short enough, or else like `call`."""
    line = f"{function}({', '.join(arguments)})"
    return line if len(line) <= LINE_LENGTH else call(function, arguments)


def _quoted(text: str) -> str:
    # If a text has both kinds of quotes, repr escapes only single quotes.
    inner = repr(text + "'\"")[1:-4]
    if text.count('"') > text.count("'"):
        return f"'{inner}'"
    escaped = inner.replace("\\'", "'").replace('"', '\\"')
    return f'"{escaped}"'
