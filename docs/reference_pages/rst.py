"""Helpers that write reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import indent

_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_SPECIAL = re.compile(r"([*|\\]|_(?!\w))")


def heading(title: str, level: int = 0, label: str = "") -> str:
    """Return a heading, with a label as a link target if one is given."""
    target = f".. _{label}:\n\n" if label else ""
    return f"{target}{title}\n{'=-~^'[level] * len(title)}\n\n"


def code(text: str) -> str:
    """Return text as code."""
    return f"``{text}``" if text else ""


def codes(texts: Iterable[str]) -> str:
    """Return texts as code, separated by commas."""
    return ", ".join(map(code, texts))


def prose(text: str) -> str:
    """Return a sentence with `code` as code and all other text unchanged.

    >>> print(prose("a `frame`, or *.csv"))
    a ``frame``, or \N{REVERSE SOLIDUS}*.csv
    """
    parts = _CODE.split(text)
    return "".join(
        code(part) if place % 2 else _SPECIAL.sub(r"\\\1", part) for place, part in enumerate(parts)
    )


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, widths: Sequence[int] = ()
) -> str:
    """Return a table whose cells are reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", "   :class: reference-table"]
    if widths:
        lines.append(f"   :widths: {' '.join(map(str, widths))}")
    lines.append("")
    for row in (columns, *rows):
        for place, cell in enumerate(row):
            first, *rest = cell.splitlines() or [""]
            lines.append(f"   {'*' if place == 0 else ' '} - {first}".rstrip())
            lines.extend(f"       {line}".rstrip() for line in rest)
    return "\n".join(lines) + "\n\n"


def directive(name: str, argument: str, body: str = "", options: Iterable[str] = ()) -> str:
    """Return a directive with its body."""
    head = "\n".join([f".. {name}:: {argument}".rstrip(), *(f"   :{one}:" for one in options)])
    return f"{head}\n\n{indent(body.strip(chr(10)), '   ')}\n\n"
