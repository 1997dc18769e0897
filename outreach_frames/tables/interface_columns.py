"""Which columns the frames have: the interface's fields, as a frame."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pandas as pd

from outreach_frames import spec
from outreach_frames.common.arguments import check_one_of
from outreach_frames.tables.schema import empty_table, to_frame

TABLES: Final[Mapping[str, tuple[spec.Field, ...]]] = MappingProxyType(
    {
        "people": spec.PERSON,
        "companies": spec.COMPANY,
        "contacts": spec.CONTACT,
        "mailboxes": spec.MAILBOX,
        "sequences": spec.SEQUENCE,
    }
)


def columns(table: str = "people") -> pd.DataFrame:
    """List the columns that the interface gives a table.

    Parameters
    ----------
    table : {"people", "companies", "contacts", "mailboxes", "sequences"}
        Which table.

    Returns
    -------
    DataFrame
        One row per column, in the frame's order: column, dtype, field (where the interface has
        it, with dots), note (str).

    Raises
    ------
    InvalidInputError
        There is no such table.

    Notes
    -----
    Interface: Person, Company, Contact, Mailbox, Sequence.

    Examples
    --------
    >>> import outreach_frames as of
    >>> columns = of.columns()
    >>> columns[columns["column"].str.contains("headcount_legal")]["field"].iloc[0]
    'company.department_headcount.legal'
    """
    fields = TABLES[check_one_of("table", table, TABLES)]
    leaves = list(spec.leaves(fields))
    dtypes = to_frame(empty_table(fields), "numpy_nullable").dtypes
    return pd.DataFrame(
        {
            "column": ["_".join(path) for path, _ in leaves],
            "dtype": [
                f"list of {field.items or 'any'}" if field.type == "array" else str(dtype)
                for (_, field), dtype in zip(leaves, dtypes, strict=True)
            ],
            "field": [".".join(path) for path, _ in leaves],
            "note": [field.note or ", ".join(field.values) for _, field in leaves],
        },
        dtype="str",
    )
