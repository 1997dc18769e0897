"""Check whether the first row of another program's table is its header."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.keys import emails_in, is_certain, profnet_urls_in
from outreach_frames.tables.columns import columns_like

_FIRST_ROWS: Final = 20
_MIN_COLUMNS: Final = 3
_ADDRESS: Final = re.compile(r"\S*[@/]\S*")
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
    """Return whether a column name holds an email address or a profile URL, read as a cell.

    >>> is_identifier("Ada <ada@x.example>"), is_identifier("ada@x.example (work)")
    (True, True)
    >>> is_identifier("Email (name@x.example)"), is_identifier("Company/Domain")
    (False, False)
    """
    emails, urls = emails_in(name), profnet_urls_in(name)
    has_url = any(map(is_certain, urls.keys)) or bool(
        urls.keys and not urls.is_ambiguous and _HAS_SCHEME.match(name)
    )
    has_email = any("." in key.rpartition("@")[2] for key in emails.keys)
    # A column's name may have an example of its cells.
    words = [_ADDRESS.sub(" ", name)]
    return (has_email and not (emails.is_ambiguous and columns_like("email", words))) or (
        has_url and not (urls.is_ambiguous and columns_like("profnet_url", words))
    )


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
