"""Which columns the frames have, and what they mean: the interface's fields, as a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

import pandas as pd

from outreach_frames import spec
from outreach_frames.analysis.capacity import CAPACITY
from outreach_frames.analysis.child_tables import CHILD_TABLES
from outreach_frames.analysis.segments import SEGMENTS
from outreach_frames.analysis.tenure import TENURE
from outreach_frames.common.arguments import check_one_of
from outreach_frames.tables.result_columns import (
    ASKED,
    DETAIL,
    FOUND,
    OUTCOME,
    PEOPLE_IN_FRAME,
    RESULT_DTYPES,
    RESULT_TABLES,
)
from outreach_frames.tables.schema import empty_table, to_frame

# What a row of these frames is, with its fields, and the columns that this package puts behind.
_RESOURCES: Final = {
    **spec.FRAMES,
    "set_daily_email_limit": spec.FRAMES["mailboxes"],
    "lead_list": ("lead", ()),
}
_ADDED: Final[Mapping[str, tuple[spec.Field, ...]]] = {
    "companies": (PEOPLE_IN_FRAME,),
    "contacts": (ASKED, FOUND),
    "set_daily_email_limit": (OUTCOME, DETAIL),
}
_OTHERS: Final = {
    **CHILD_TABLES,
    "tenure": TENURE,
    "segments": SEGMENTS,
    "sending_capacity": CAPACITY,
    **RESULT_TABLES,
}
TABLES: Final[Mapping[str, tuple[spec.Field, ...]]] = MappingProxyType(
    {name: (*fields, *_ADDED.get(name, ())) for name, (_, fields) in _RESOURCES.items()} | _OTHERS
)
# So many columns of a table tell a frame to be of it, if it has not all of them.
_TELLING: Final = 8


class Column(NamedTuple):
    """One column: its name, and what is to know of it."""

    name: str
    dtype: str
    meaning: str
    group: str


def columns(table: str = "people") -> pd.DataFrame:
    """List the columns of a table: what they are called, their dtypes, and what they mean.

    Parameters
    ----------
    table : str
        A table by the name of what returns it: people, companies, contacts, mailboxes, sequences,
        headcount, experiences, tenure, segments, sending_capacity, match, validate, report_rows,
        accounts, snapshots, changed, employer_changes, headcount_change, filters and others. A name
        that does not exist is an error that lists all.

    Returns
    -------
    DataFrame
        One row per column, in the frame's order: name, dtype (as pandas names it), meaning, and
        group, which is what the column is about (all str). Not in it are columns that depend on
        what is asked: the keys of segments, a frame's own columns beside a result, and a lead
        list's, which the interface does not show.

    Raises
    ------
    InvalidInputError
        There is no such table.

    Notes
    -----
    Interface: Person, Company, Contact, Mailbox, Sequence and what they hold. The same meaning and
    group are in the metadata of the columns in Parquet files.

    Examples
    --------
    >>> import outreach_frames as of
    >>> columns = of.columns().set_index("name")
    >>> columns.loc["company_department_headcount_legal", "meaning"]
    'employees in legal'
    """
    rows = _columns_of(check_one_of("table", table, TABLES))
    return pd.DataFrame(rows, columns=list(Column._fields), dtype="str")


@cache
def _columns_of(table: str) -> tuple[Column, ...]:
    if table in _RESOURCES:
        noun, fields = _RESOURCES[table]
        added, group = _ADDED.get(table, ()), "added to the interface's"
    else:
        noun, fields, added, group = "", (), _OTHERS[table], table.replace("_", " ")
    columns: list[Column] = []
    for (path, field), dtype in zip(spec.leaves(fields), _dtypes(fields), strict=True):
        # Each in the group of the object that has it.
        objects = path[:-1] if path[0] == "company" else (noun, *path[:-1])
        of_object = " ".join(objects[:2]).replace("_", " ")
        columns.append(Column("_".join(path), dtype, field.note, of_object))
    for field, dtype in zip(added, _dtypes(added), strict=True):
        shown = RESULT_DTYPES.get((table, field.name)) or dtype
        columns.append(Column(field.name, shown, field.note, group))
    return tuple(columns)


def _dtypes(fields: tuple[spec.Field, ...]) -> Sequence[str]:
    return [str(dtype) for dtype in to_frame(empty_table(fields), "numpy_nullable").dtypes]


def meanings(names: Sequence[str]) -> Mapping[str, Column]:
    """Return what is to know of a frame's columns, where they tell which table they are of.

    >>> meanings(["mailbox_id", "email", "emails", "date", "leads_reached"])["emails"].meaning
    'emails that the mailbox sends on that day'
    >>> meanings(["id", "name"])
    {}
    """
    present = frozenset(names)
    table = max(_known(), key=lambda table: (len(present & table.keys()), -len(table)))
    known = present & table.keys()
    if len(known) < min(_TELLING, len(table)):
        return {}
    return {name: table[name] for name in names if name in known}


@cache
def _known() -> tuple[Mapping[str, Column], ...]:
    return tuple(
        {column.name: column for column in rows} for name in TABLES if (rows := _columns_of(name))
    )
