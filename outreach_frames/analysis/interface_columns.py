"""Describe the columns of the package's tables by name, dtype and meaning."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

import pandas as pd

from outreach_frames import spec
from outreach_frames.analysis.capacity import CAPACITY
from outreach_frames.analysis.child_tables import CHILD_TABLES
from outreach_frames.analysis.segments import SEGMENTS
from outreach_frames.analysis.tenure import TENURE
from outreach_frames.common.arguments import check_choice
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import readable
from outreach_frames.tables.result_columns import (
    ASKED,
    CONTACT_DETAIL,
    DETAIL,
    FOUND,
    OUTCOME,
    PEOPLE_IN_FRAME,
    RESULT_DTYPES,
    RESULT_TABLES,
)
from outreach_frames.tables.schema import empty_table, to_frame

# Maps each table to the noun for its rows and to its documented fields.
_RESOURCES: Final = {
    **spec.FRAMES,
    "set_daily_email_limit": spec.FRAMES["mailboxes"],
    "lead_list": ("lead", ()),
}
# Maps a table to the columns that the package appends.
_ADDED: Final[Mapping[str, tuple[spec.Field, ...]]] = {
    "companies": (PEOPLE_IN_FRAME,),
    "contacts": (ASKED, FOUND, CONTACT_DETAIL),
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
_HEADCOUNT: Final = "_headcount"
# A frame with at least this many columns of a table counts as that table.
_MIN_MATCHING_COLUMNS: Final = 8


class Column(NamedTuple):
    """The name, label, dtype and meaning of a column, and the object that has the column."""

    name: str
    label: str
    dtype: str
    meaning: str
    group: str


def columns(table: str = "people") -> pd.DataFrame:
    """List the columns of a table with their dtypes and meanings.

    Parameters
    ----------
    table : str
        The name of the function or attribute that returns the table: people, companies, contacts,
        mailboxes, sequences, headcount, experiences, tenure, segments, sending_capacity, match,
        validate, report_rows, accounts, snapshots, changed, employer_changes, headcount_change,
        filters and others. An unknown name raises an error that lists all names.

    Returns
    -------
    DataFrame
        One row per column, in the frame's order, with the columns name, label (the words of the
        plots, unique within the table), dtype (pandas' name), meaning, and group, the object that
        has the column (all str). The list omits columns that depend on the call: the keys of
        segments, custom columns of the caller's frame, and undocumented columns of a lead list.

    Raises
    ------
    InvalidInputError
        The table is unknown.

    Notes
    -----
    Interface: Person, Company, Contact, Mailbox, Sequence and their nested objects.

    Examples
    --------
    >>> import outreach_frames as of
    >>> client = of.connect("sandbox", cache=None)
    >>> columns = of.columns().set_index("name")
    >>> columns.loc["company_department_headcount_legal", "meaning"]
    'employees in legal'
    >>> people = of.search_people(limit=10).rename(columns=columns["label"])
    >>> list(people[["Company name", "Engineering"]])
    ['Company name', 'Engineering']
    """
    rows = _columns_of(check_choice("table", table, TABLES))
    return pd.DataFrame(rows, columns=list(Column._fields), dtype=STR)


@cache
def _columns_of(table: str) -> tuple[Column, ...]:
    if table in _RESOURCES:
        noun, fields = _RESOURCES[table]
        added, group = _ADDED.get(table, ()), "added by outreach_frames"
    else:
        noun, fields, added, group = "", (), _OTHERS[table], table.replace("_", " ")
    columns: list[Column] = []
    every = (*fields, *added)
    paths = {"_".join(path): path for path, _ in spec.leaves(fields)}
    dtypes = to_frame(empty_table(every), "numpy_nullable").dtypes.map(str)
    for name, field in spec.columns(every).items():
        if name not in paths:
            dtype = RESULT_DTYPES.get((table, name)) or dtypes[name]
            columns.append(Column(name, readable(name), dtype, field.note, group))
            continue
        path = paths[name]
        # The group names the object that has the field.
        objects = path[:-1] if path[0] == "company" else (noun, *path[:-1])
        of_object = " ".join(objects[:2]).replace("_", " ")
        label = _label(path, {column.label for column in columns})
        columns.append(Column(name, label, dtypes[name], field.note, of_object))
    return tuple(columns)


def _label(path: tuple[str, ...], taken: Container[str]) -> str:
    """Return a field's words in plots; a taken label gets the name of the field's object.

    >>> path = ("company", "job_function_headcount", "finance", "finance")
    >>> _label(path, {"Finance"}), _label(("company", "location_details", "city"), ())
    ('Finance (job function)', 'Company city')
    """
    counted = [part.removesuffix(_HEADCOUNT) for part in path if part.endswith(_HEADCOUNT)]
    words = path[-1:] if counted else [part for part in path if part != "location_details"]
    label = readable("_".join(words))
    return f"{label} ({readable(counted[0], capital=False)})" if label in taken else label


def column_label(name: str) -> str:
    """Return the label of a column of people, or a custom column's name as readable text.

    >>> column_label("company_location_details_country"), column_label("account_owner")
    ('Company country', 'Account owner')
    """
    labels = {column.name: column.label for column in _columns_of("people")}
    return labels.get(name) or readable(name)


def table_of(names: Iterable[object]) -> str:
    """Return the name of the table with the most of these columns; "" if no table matches.

    >>> names = ["mailbox_id", "email", "emails", "date", "leads_finished", "leads_started"]
    >>> table_of(names), table_of(["id"])
    ('sending_capacity', '')
    """
    present = frozenset(names)
    tables = _column_names()
    matching = {name: len(present & columns) for name, columns in tables.items()}
    best = max(matching, key=lambda name: (matching[name], -len(tables[name])))
    return best if matching[best] >= min(_MIN_MATCHING_COLUMNS, len(tables[best])) else ""


@cache
def _column_names() -> Mapping[str, frozenset[str]]:
    names = {name: frozenset(column.name for column in _columns_of(name)) for name in TABLES}
    return {name: columns for name, columns in names.items() if columns}
