"""Format the Python code that widgets show, with each argument on one line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

LINE_LENGTH: Final = 88


def variable_of(value: object, default: str) -> str:
    """Return the name of a variable of the notebook that holds this object, or the default."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    variables = {} if shell is None else shell.user_ns
    names = (name for name, held in [*variables.items()] if held is value and name[0] != "_")
    return next(names, default)


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
