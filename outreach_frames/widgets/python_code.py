"""Format the Python code that widgets show, with each argument on one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

LINE_LENGTH: Final = 88


def call(function: str, arguments: Sequence[str]) -> str:
    """Format a call with one argument per line.

    >>> print(call("of.search_people", ["person_titles=['CEO']", "client=client"]))
    of.search_people(
        person_titles=['CEO'],
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
