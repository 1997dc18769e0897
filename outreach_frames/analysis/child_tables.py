"""Build child tables: one row per entry of a list column, with the id of the list's owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.analysis.companies import COMPANY_KEY, companies
from outreach_frames.analysis.unlist import as_lists
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.reading.flatten import records_frame, undocumented_frame
from outreach_frames.reading.untyped_reader import (
    MAX_UNDOCUMENTED_COLUMNS,
    RAW_SUFFIX,
    named_columns,
    parse_dates,
)
from outreach_frames.tables.column_checks import require_columns
from outreach_frames.tables.schema import column_type, to_frame, wire_type

POSITION: Final = "position"
_PLAIN: Final = (pa.string(), pa.large_string(), pa.int64(), pa.float64(), pa.bool_(), pa.null())
_DOCSTRING: Final = """Return one row per {entry}.

Parameters
----------
frame : DataFrame
    {owner.takes}

Returns
-------
DataFrame
    {columns}.

Raises
------
InvalidInputError
    The frame lacks the column with ids or the column with lists.

Notes
-----
Interface: {owner.resource}, `{name}`{note}.

Examples
--------
>>> import outreach_frames as of
>>> with of.connect("sandbox", cache=None) as client:
...     frame = {owner.example}
>>> list(frame.outreach.{name}().columns[:3])
{shown}
"""


@dataclass(frozen=True, slots=True)
class _Owner:
    """A resource, such as Person, with list columns that become child tables."""

    resource: str
    fields: tuple[spec.Field, ...]
    key: spec.Field
    takes: str
    source: str = "a frame from search_people()"
    example: str = "of.search_people(limit=10)"


_PERSON: Final = _Owner(
    "Person",
    spec.PERSON,
    spec.Field("person_id", note="id of the person"),
    "People with the columns of `search_people`.",
)
_COMPANY: Final = _Owner(
    "Company",
    spec.COMPANY,
    spec.Field(COMPANY_KEY, note="id of the company"),
    "People with the columns of `search_people`, or companies from `companies()`.",
)
_CONTACT: Final = _Owner(
    "Contact",
    spec.CONTACT,
    spec.Field("contact_id", note="id of the contact"),
    "Contacts with the columns of `contacts`.",
    "a frame from contacts()",
    "of.contacts(client.sandbox.contact_ids[:5])",
)

# Maps the name of each list column to the columns of its child table.
CHILD_TABLES: Final[dict[str, tuple[spec.Field, ...]]] = {}


def _child_table(
    owner: _Owner, name: str, entry: str, note: str = ""
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Build a function that returns a child table."""
    (listed,) = (field for field in owner.fields if field.name == name)
    members = listed.members or (spec.Field(name.removesuffix("s"), note=entry),)
    position = spec.Field(POSITION, "integer", note="position in the list, from 0")
    CHILD_TABLES[name] = (owner.key, position, *members)

    def child_table(frame: pd.DataFrame) -> pd.DataFrame:
        if owner is _COMPANY and f"company_{name}" in frame.columns:
            frame = companies(frame)
        require_columns(frame, ["id", name], f"columns of {name}", owner.source)
        rows, entries = list_entries(frame[name])
        if name == "recent_activity":
            _warn_of_unread_activity(frame)
        keys = {
            owner.key.name: frame["id"].iloc[rows].astype(STR).array,
            POSITION: pd.array(np.arange(len(rows)) - np.searchsorted(rows, rows), dtype="Int64"),
        }
        if listed.members:
            return pd.DataFrame(keys).join(objects_frame(entries, members))
        return pd.DataFrame(keys).join(_undocumented_values(entries, members[0]))

    columns = ", ".join(f"{field.name} ({_dtype_in_words(field)})" for field in CHILD_TABLES[name])
    child_table.__name__ = child_table.__qualname__ = name
    child_table.__doc__ = _DOCSTRING.format(
        name=name,
        entry=entry,
        owner=owner,
        columns=columns,
        note=note and f"; {note}",
        shown=[field.name for field in CHILD_TABLES[name][:3]],
    )
    return child_table


def _warn_of_unread_activity(contacts: pd.DataFrame) -> None:
    """Warn of contacts read by id, whose activity the service does not send."""
    unread = contacts["recent_activity"].isna()
    if "found" in contacts.columns:
        unread &= contacts["found"].astype("boolean").fillna(False)
    if count := int(unread.sum()):
        warn(
            f"{plural(count, 'contact has', 'contacts have')} no recent_activity, which the "
            "service sends only for contacts read by address: of.contacts(emails=...)."
        )


def _dtype_in_words(field: spec.Field) -> str:
    if field.format in ("date", "date-time"):
        return "datetime64" if field.format == "date" else "datetime64, UTC"
    return {"string": "str", "integer": "Int64"}[field.type]


def list_entries(column: pd.Series[Any]) -> tuple[np.ndarray[Any, Any], pa.Array]:
    """Return the row of each list entry, and all entries of a column's lists in one array.

    >>> list_entries(pd.Series([["a", "b"], None, ["c"]]))[0]
    array([0, 0, 2])
    """
    lists = as_lists(column)
    if lists is None and column.isna().all():
        lists = pa.nulls(len(column), pa.list_(pa.null()))
    if lists is None:
        raise InvalidInputError(
            f"The column {column.name!r} does not contain lists. If the table is from a CSV file, "
            "read the file with of.read_prospects(), which restores lists. In Dask, pass meta=: "
            "Dask's sample has text instead of lists."
        )
    return pc.list_parent_indices(lists).to_numpy(), pc.list_flatten(lists)


def objects_frame(entries: pa.Array, fields: tuple[spec.Field, ...]) -> pd.DataFrame:
    """Build a frame from objects: documented columns first, then undocumented columns.

    >>> objects_frame(pa.array([{"language": "Czech"}]), spec.LANGUAGE)["language"].tolist()
    ['Czech']
    """
    columns = _plain_columns(entries, fields)
    if columns is None:
        return records_frame(entries.to_pylist(), fields)
    return to_frame(pa.table(columns), "numpy_nullable")


def _plain_columns(entries: pa.Array, fields: tuple[spec.Field, ...]) -> dict[str, pa.Array] | None:
    """Build the columns of `records_frame` faster; return None if only `records_frame` can."""
    if not pa.types.is_struct(entries.type) or not len(entries):
        return None
    members = {member.name: member.type for member in entries.type}
    if len(members) < entries.type.num_fields or not set(members.values()) <= set(_PLAIN):
        return None
    known: dict[str, pa.Array] = {}
    raws: list[tuple[str, pa.Array]] = []
    for field in fields:
        column = pa.nulls(len(entries))
        if field.name in members:
            column = pc.struct_field(entries, field.name)
        if column.type not in {wire_type(field), pa.null(), pa.large_string()}:
            return None
        column = column.cast(wire_type(field))
        if column_type(field) != column.type:
            column, unreadable = parse_dates(column, field)
            raws += [] if unreadable is None else [(field.name + RAW_SUFFIX, unreadable)]
        known[field.name] = column
    undocumented = [name for name in members if name not in known and name != spec.LINKS_KEY]
    if len(undocumented) > MAX_UNDOCUMENTED_COLUMNS:
        return None
    extras = [(name, pc.struct_field(entries, name)) for name in undocumented]
    return named_columns(known, [*extras, *raws])


def _undocumented_values(entries: pa.Array, field: spec.Field) -> pd.DataFrame:
    """Build a frame from entries with an undocumented form."""
    objects = [_parse_object(text) for text in entries.to_pylist()]
    child = (
        undocumented_frame(objects) if objects else pd.DataFrame({"value": pd.Series(dtype=STR)})
    )
    return child.rename(columns={"value": field.name})


def _parse_object(text: object) -> object:
    """Parse the JSON text of an object; return other values unchanged."""
    if not isinstance(text, str) or not text.startswith("{"):
        return text
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text


# Each child table's owner, name, entry and note.
_TABLES: Final = (
    (_PERSON, "experiences", "current or former position of a person"),
    (_PERSON, "educations", "education of a person"),
    (_PERSON, "languages", "language of a person"),
    (
        _COMPANY,
        "locations",
        "location of a company",
        "entries are undocumented; the fields of an object become columns",
    ),
    (_CONTACT, "phone_numbers", "phone number of a contact"),
    (
        _CONTACT,
        "recent_activity",
        "activity of a contact",
        "newest first; only contacts requested by email address have entries",
    ),
)
# The function of each child table by name.
CHILD_FUNCTIONS: Final = {name: _child_table(owner, name, *rest) for owner, name, *rest in _TABLES}
