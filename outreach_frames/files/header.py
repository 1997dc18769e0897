"""Check whether the first row of another program's table is its header."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.keys import email_key, is_certain, profnet_url_key

_FIRST_ROWS: Final = 20
_MIN_COLUMNS: Final = 3
_HAS_SCHEME: Final = re.compile(r"(?i)\s*(https?://|www\.)")
# Rows of a table with their number in the file.
NumberedRows = Sequence[tuple[int, Sequence[Any]]]


def require_names(header: Iterable[object], where: str) -> None:
    """Raise if the header has an email address or a profile URL in place of a column name.

    >>> require_names(["Email", "Company/Domain"], "people.csv")
    """
    if any(is_identifier(str(name)) for name in header):
        raise InvalidInputError(
            f"{where} has no header: its first row holds an email address or profile URL. Add a "
            "first row with the column names, such as email; else that person would be lost."
        )


def is_identifier(name: str) -> bool:
    """Return whether a column name is an email address or a profile URL.

    >>> is_identifier("ada@x.example"), is_identifier("user@id"), is_identifier("Company/Domain")
    (True, False, False)
    """
    if "@" in name:
        return "." in email_key(name).rpartition("@")[2]
    key = profnet_url_key(name) if "/" in name else ""
    return is_certain(key) or bool(key and _HAS_SCHEME.match(name))


def header_below_text(rows: NumberedRows) -> int | None:
    """Return the number of the header's row if text precedes the header, else None.

    >>> header_below_text([(1, ["Export", ""]), (3, ["Name", "Email", "Phone"])])
    3
    """
    filled = [
        (number, [place for place, cell in enumerate(row) if cell is not None and cell != ""])
        for number, row in rows[:_FIRST_ROWS]
    ]
    if not filled or filled[0][1] != [0]:
        return None
    return next((number for number, places in filled if len(places) >= _MIN_COLUMNS), None)
