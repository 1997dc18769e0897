"""Align the columns of numbers in frames to the right; pandas' HTML does not tell their types."""

from __future__ import annotations

import re
from typing import Any, Final

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

_NUMBER: Final = re.compile(r"[-+]?(?!0\d)[\d,]+(\.\d+)?(e[-+]?\d+)?%?")
_MISSING: Final = frozenset({"", "...", "\N{HORIZONTAL ELLIPSIS}", "NaN", "<NA>", "None", "null"})


class NumberColumns(SphinxPostTransform):
    """Give the class `number` to the cells of such columns."""

    default_priority = 200  # after myst-nb has chosen a format for each result

    def run(self, **_options: Any) -> None:
        """Mark the columns of all frames on a page."""
        for node in list(self.document.findall(nodes.raw)):
            if 'class="dataframe"' in node.astext():
                node.replace_self(nodes.raw("", mark_numbers(node.astext()), format="html"))


def mark_numbers(html: str) -> str:
    """Return a frame's HTML with marked columns; columns are counted from the right.

    >>> row = "<tr><th>{}</th><td>{}</td></tr>"
    >>> mark_numbers(f"<tbody>{row.format(0, 7)}{row.format(1, 'NaN')}</tbody>").count('"number"')
    2
    >>> mark_numbers(f"<tbody>{row.format(0, '007')}{row.format(1, 8)}</tbody>").count('"number"')
    0
    """
    soup = BeautifulSoup(html, "html.parser")
    rows = [row.find_all("td") for row in soup.select("tbody tr")]
    names = soup.select("thead tr:first-child th") if soup.thead else []
    for place in range(1, min(map(len, rows), default=0) + 1):
        cells = [row[-place] for row in rows]
        if _are_numbers(cells):
            for cell in cells + names[-place : len(names) - place + 1]:
                cell["class"] = "number"
    return str(soup)


def _are_numbers(cells: list[Tag]) -> bool:
    filled = [text for cell in cells if (text := cell.get_text().strip()) not in _MISSING]
    return bool(filled) and all(map(_NUMBER.fullmatch, filled))
