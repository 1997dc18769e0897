"""Describe cells that do not fit the type of their column, so that the column stays text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from outreach_frames.common.text import quoted, shorten
from outreach_frames.tables.schema import empty_documented_columns, is_list

# Text with an address or URL, which no warning may show.
_PERSONAL: Final = re.compile(r"[@\uff20\ufe6b]|%40|\w\.\w{2,}/|://|www\.", re.IGNORECASE)


def misfit(name: str, cell: str, place: str) -> str:
    """Describe the first cell of a column that does not fit the column's type.

    >>> misfit("founded_year", "many", "line 2")
    "`founded_year` stays text: line 2 has 'many'"
    >>> misfit("founded_year", "ada@x.example", "line 2")
    '`founded_year` stays text: line 2'
    """
    shown = "" if _PERSONAL.search(cell) else f" has {quoted(cell)}"
    return f"`{shorten(name, 60)}` stays text: {place}{shown}"


def misfits_remark(misfits: Mapping[str, str]) -> str:
    """Return the warning of all columns that stay text, by name.

    >>> misfits_remark({"founded_year": misfit("founded_year", "many", "line 2")})
    "`founded_year` stays text: line 2 has 'many'. Correct the cells, or convert the columns."
    """
    documented = empty_documented_columns()
    has_lists = any(name in documented and is_list(documented[name].type) for name in misfits)
    lists = (
        " Lists are read from files that df.outreach.to_csv, or --out in a shell, wrote."
        if has_lists
        else ""
    )
    return f"{'; '.join(misfits.values())}. Correct the cells, or convert the columns.{lists}"
