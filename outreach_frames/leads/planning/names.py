"""Column names, and the field names that the service takes for a lead's data."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from outreach_frames import spec
from outreach_frames.common.text import quoted
from outreach_frames.errors import InvalidInputError


class DefaultColumn(str):
    """The name of a column that nobody asked for by name, so that it may be absent."""

    __slots__ = ()


EMAIL_COLUMN: Final = DefaultColumn(spec.LEAD_IDENTIFIERS[0])
PROFNET_URL_COLUMN: Final = DefaultColumn(spec.LEAD_IDENTIFIERS[1])


def field_name(column: object) -> str:
    """Return a column's name as a field name that the service takes.

    Parameters
    ----------
    column : str or any other column label
        For example "First Name".

    Returns
    -------
    str
        Lowercase letters, digits and underscores, beginning with a letter; cut to the longest that
        is allowed.

    Raises
    ------
    InvalidInputError
        Nothing is left of the name, as it has no letter or digit of the Latin alphabet.

    Notes
    -----
    Interface: Limits.

    Examples
    --------
    >>> field_name("First Name")
    'first_name'
    >>> field_name("Größe (m²)")
    'grosse_m2'
    >>> field_name("2nd choice")
    'field_2nd_choice'
    """
    letters = unicodedata.normalize("NFKD", str(column).casefold())
    ascii_letters = letters.encode("ascii", "ignore").decode()
    name = re.sub(r"[^a-z0-9]+", "_", ascii_letters.lower()).strip("_")
    if not name:
        raise InvalidInputError(
            f"No field name can be made from the column {quoted(column)}. "
            f'Name the field yourself: data={{"a_name": {quoted(column)}}}.'
        )
    if not name[0].isalpha():
        name = f"field_{name}"
    return name[: spec.MAX_DATA_NAME_LENGTH].rstrip("_")


def is_field_name(name: object) -> bool:
    """Whether the service takes this as the name of a data field."""
    return (
        isinstance(name, str)
        and len(name) <= spec.MAX_DATA_NAME_LENGTH
        and re.fullmatch(spec.DATA_NAME_PATTERN, name) is not None
    )
