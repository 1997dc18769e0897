"""Select the most useful columns of a frame with many columns."""

from __future__ import annotations

from typing import Final

import pandas as pd

from outreach_frames import spec

# For each table: its selected columns, and all its documented columns.
_TABLES: Final = [
    ((*spec.FIRST_COLUMNS[table], "id"), frozenset(spec.columns(spec.FRAMES[table][1])))
    for table in ("people", "companies", "contacts")
]
_MAX_COLUMNS: Final = 12
# These columns have the same value in every row.
_CONSTANTS: Final = frozenset({"object", "company_object"})


def brief(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the 12 columns that you will use most.

    Parameters
    ----------
    frame : DataFrame
        People, companies or contacts, with or without custom columns. For any other frame, the
        function returns the first 12 columns. Constant columns, such as `object`, are omitted.

    Returns
    -------
    DataFrame
        All rows with an unchanged index. Up to 12 custom columns, such as the status of a result,
        come first.

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
    # The table that shares the most columns with the frame decides.
    names = [name for name in frame.columns if name not in _CONSTANTS]
    present = set(names)
    selected, documented = max(_TABLES, key=lambda table: len(present & table[1]))
    if len(present & set(selected)) < 2:
        return frame.loc[:, names[:_MAX_COLUMNS]]
    custom = [name for name in names if name not in documented and name not in selected]
    return frame.loc[:, [*custom[:_MAX_COLUMNS], *(name for name in selected if name in present)]]
