"""The few columns of a wide frame that one looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from outreach_frames import spec
from outreach_frames.common.arguments import suggestion
from outreach_frames.errors import InvalidInputError

_PEOPLE: Final = (
    "name",
    "title",
    "company_name",
    "location",
    "company_industry",
    "company_size",
    "company_location",
    "company_website",
    "current_position_start_date",
    "headline",
    "profnet_url",
    "id",
)
_COMPANIES: Final = (
    "name",
    "website",
    "industry",
    "size",
    "estimated_number_of_employees",
    "location",
    "founded_year",
    "type",
    "latest_funding_stage",
    "estimated_revenue",
    "profnet_url",
    "id",
)
_CONTACTS: Final = (
    "name",
    "email",
    "title",
    "company_name",
    "company_domain",
    "location",
    "time_zone",
    "owner",
    "last_contacted_at",
    "profnet_url",
    "id",
)
# What is shown of a table, and all columns that the interface gives it.
_TABLES: Final = (
    (_PEOPLE, frozenset(spec.columns(spec.PERSON))),
    (_COMPANIES, frozenset(spec.columns(spec.COMPANY))),
    (_CONTACTS, frozenset(spec.columns(spec.CONTACT))),
)
_MOST: Final = 12


def brief(frame: pd.DataFrame, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the dozen columns of a frame that one looks at.

    Parameters
    ----------
    frame : DataFrame
        People, companies or contacts, also with columns of one's own; of any other frame, its
        first dozen columns.
    columns : list of str, optional
        Other columns to show instead, in this order.

    Returns
    -------
    DataFrame
        All rows and the index. Columns of one's own, such as a result's status, come first, at
        most a dozen.

    Raises
    ------
    InvalidInputError
        The frame lacks a column that is named.

    Notes
    -----
    Interface: Person, Company, Contact.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=10)
    >>> list(people.outreach.brief().columns[:4])
    ['name', 'title', 'company_name', 'location']
    """
    if columns is None:
        return frame.loc[:, _shown(frame)]
    wanted = [columns] if isinstance(columns, str) else list(columns)
    for name in wanted:
        if name not in frame.columns:
            close = suggestion(str(name), [str(known) for known in frame.columns])
            raise InvalidInputError(f"The frame lacks the column {name!r}.{close}")
    return frame.loc[:, wanted]


def _shown(frame: pd.DataFrame) -> list[object]:
    """Return which columns to show: those of the table that the frame most looks like."""
    present = set(frame.columns)
    shown, known = max(_TABLES, key=lambda table: len(present & table[1]))
    if len(present & set(shown)) < 2:
        return list(frame.columns[:_MOST])
    own = [name for name in frame.columns if name not in known]
    return [*own[:_MOST], *(name for name in shown if name in present)]
