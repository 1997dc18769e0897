"""Child tables: one row per entry of a list column, with the key of the person or company."""

from __future__ import annotations

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.companies import COMPANY_KEY, companies, require_columns
from outreach_frames.tables.flatten import free_frame, records_frame
from outreach_frames.tables.schema import to_frame, wire_type

PERSON_KEY = "person_id"
CONTACT_KEY = "contact_id"
POSITION = "position"


def experiences(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per position that the people of a prospect table have held.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`.

    Returns
    -------
    DataFrame
        person_id (str), position (Int64, from 0, in the service's order), object, title,
        company_name, company_profnet_url (str), start_date, end_date (datetime64).

    Raises
    ------
    InvalidInputError
        The frame lacks these columns.

    Notes
    -----
    Interface: Person, `experiences`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=10)
    >>> list(people.outreach.experiences().columns[:4])
    ['person_id', 'position', 'object', 'title']
    """
    return _object_table(frame, "experiences", PERSON_KEY, spec.PERSON)


def educations(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per education of the people of a prospect table.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`.

    Returns
    -------
    DataFrame
        person_id (str), position (Int64, from 0, in the service's order), object, degree,
        field_of_study, school_name, school_profnet_url (str), start_date, end_date (datetime64).

    Raises
    ------
    InvalidInputError
        The frame lacks these columns.

    Notes
    -----
    Interface: Person, `educations`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=10)
    >>> list(people.outreach.educations().columns[:4])
    ['person_id', 'position', 'object', 'degree']
    """
    return _object_table(frame, "educations", PERSON_KEY, spec.PERSON)


def languages(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per language that the people of a prospect table speak.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`.

    Returns
    -------
    DataFrame
        person_id (str), position (Int64, from 0, in the service's order), object, language,
        iso_code, proficiency (str).

    Raises
    ------
    InvalidInputError
        The frame lacks these columns.

    Notes
    -----
    Interface: Person, `languages`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=10)
    >>> list(people.outreach.languages().columns)
    ['person_id', 'position', 'object', 'language', 'iso_code', 'proficiency']
    """
    return _object_table(frame, "languages", PERSON_KEY, spec.PERSON)


def technologies(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per technology that the companies of a prospect table use.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`, or companies, from `companies()`.

    Returns
    -------
    DataFrame
        company_id (str), position (Int64, from 0, in the service's order), technology (str). Where
        the service gives objects instead of text, their fields are the columns.

    Raises
    ------
    InvalidInputError
        The frame lacks these columns.

    Notes
    -----
    Interface: Company, `technologies`; its elements are not shown.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=10)
    >>> list(people.outreach.technologies().columns)
    ['company_id', 'position', 'technology']
    """
    return _company_table(frame, "technologies", "technology")


def locations(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per location of the companies of a prospect table.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`, or companies, from `companies()`.

    Returns
    -------
    DataFrame
        company_id (str), position (Int64, from 0, in the service's order), location (str). Where
        the service gives objects instead of text, their fields are the columns.

    Raises
    ------
    InvalidInputError
        The frame lacks these columns.

    Notes
    -----
    Interface: Company, `locations`; its elements are not shown.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=10)
    >>> list(people.outreach.locations().columns)
    ['company_id', 'position', 'location']
    """
    return _company_table(frame, "locations", "location")


def keywords(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per keyword of the companies of a prospect table.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`, or companies, from `companies()`.

    Returns
    -------
    DataFrame
        company_id (str), position (Int64, from 0, in the service's order), keyword (str).

    Raises
    ------
    InvalidInputError
        The frame lacks these columns.

    Notes
    -----
    Interface: Company, `keywords`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=10)
    >>> list(people.outreach.keywords().columns)
    ['company_id', 'position', 'keyword']
    """
    return _company_table(frame, "keywords", "keyword")


def sic_codes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per SIC code of the companies of a prospect table.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`, or companies, from `companies()`.

    Returns
    -------
    DataFrame
        company_id (str), position (Int64, from 0, in the service's order), sic_code (Int64).

    Raises
    ------
    InvalidInputError
        The frame lacks these columns.

    Notes
    -----
    Interface: Company, `sic_codes`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=10)
    >>> list(people.outreach.sic_codes().columns)
    ['company_id', 'position', 'sic_code']
    """
    return _company_table(frame, "sic_codes", "sic_code")


def naics_codes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per NAICS code of the companies of a prospect table.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`, or companies, from `companies()`.

    Returns
    -------
    DataFrame
        company_id (str), position (Int64, from 0, in the service's order), naics_code (Int64).

    Raises
    ------
    InvalidInputError
        The frame lacks these columns.

    Notes
    -----
    Interface: Company, `naics_codes`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=10)
    >>> list(people.outreach.naics_codes().columns)
    ['company_id', 'position', 'naics_code']
    """
    return _company_table(frame, "naics_codes", "naics_code")


def phone_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per phone number of contacts.

    Parameters
    ----------
    frame : DataFrame
        Contacts, with the columns of `contacts`.

    Returns
    -------
    DataFrame
        contact_id (str), position (Int64, from 0, in the service's order), id, object,
        number, type, source, kind (str).

    Raises
    ------
    InvalidInputError
        The frame lacks these columns.

    Notes
    -----
    Interface: Contact, `phone_numbers`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None) as client:
    ...     contacts = of.contacts(client.sandbox.contact_ids[:5])
    >>> list(contacts.outreach.phone_numbers().columns[:4])
    ['contact_id', 'position', 'id', 'object']
    """
    return _object_table(frame, "phone_numbers", CONTACT_KEY, spec.CONTACT)


def recent_activity(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per activity of contacts.

    Parameters
    ----------
    frame : DataFrame
        Contacts, with the columns of `contacts`.

    Returns
    -------
    DataFrame
        contact_id (str), position (Int64, from 0, in the service's order), event_at
        (datetime64, UTC), event_type, sequence_type, sequence_name (str).

    Raises
    ------
    InvalidInputError
        The frame lacks these columns.

    Notes
    -----
    Interface: Contact, `recent_activity`; contacts read by address have it, newest first.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None) as client:
    ...     contacts = of.contacts(client.sandbox.contact_ids[:5])
    >>> list(contacts.outreach.recent_activity().columns[:4])
    ['contact_id', 'position', 'event_at', 'event_type']
    """
    return _object_table(frame, "recent_activity", CONTACT_KEY, spec.CONTACT)


def _object_table(
    frame: pd.DataFrame, column: str, key: str, fields: tuple[spec.Field, ...]
) -> pd.DataFrame:
    """Return the child table of a list of objects whose fields the interface shows."""
    source = "contacts()" if key == CONTACT_KEY else "search_people()"
    require_columns(frame, ["id", column], f"{column} that this takes", source)
    keys, entries = _entries(frame["id"], frame[column], key)
    members = next(field.members for field in fields if field.name == column)
    return keys.join(records_frame(entries.to_pylist(), members))


def _company_table(frame: pd.DataFrame, column: str, noun: str) -> pd.DataFrame:
    table = companies(frame) if f"company_{column}" in frame.columns else frame
    require_columns(table, ["id", column], f"{column} of companies")
    keys, entries = _entries(table["id"], table[column], COMPANY_KEY)
    (field,) = (field for field in spec.COMPANY if field.name == column)
    if field.items is not None:
        return keys.join(to_frame(pa.table({noun: _of_type(entries, field)}), "numpy_nullable"))
    objects = [_unpacked(text) for text in entries.to_pylist()]
    child = free_frame(objects) if objects else pd.DataFrame({"value": pd.Series(dtype="str")})
    return keys.join(child.rename(columns={"value": noun}))


def _of_type(entries: pa.Array, field: spec.Field) -> pa.Array:
    """Return entries in the interface's type, or as they are where they are of another."""
    try:
        return entries.cast(wire_type(field).value_type)
    except pa.ArrowInvalid:
        return entries


def _entries(keys: pd.Series, lists: pd.Series, key: str) -> tuple[pd.DataFrame, pa.Array]:
    """Return key and position of the lists' entries, one after the other, and the entries."""
    arrow = pa.array(lists.array, from_pandas=True)
    if isinstance(arrow, pa.ChunkedArray):
        arrow = arrow.combine_chunks()
    if pa.types.is_null(arrow.type):
        arrow = arrow.cast(pa.list_(pa.null()))
    if not (pa.types.is_list(arrow.type) or pa.types.is_large_list(arrow.type)):
        raise InvalidInputError(
            f"The column {lists.name!r} has no lists in it. Where the frame comes from a CSV file, "
            "read that with outreach_frames.read_prospects(), which makes lists of them."
        )
    parents = pc.list_parent_indices(arrow).to_numpy()
    positions = np.arange(len(parents)) - np.searchsorted(parents, parents)
    columns = {
        key: keys.iloc[parents].astype("str").array,
        POSITION: pd.array(positions, dtype="Int64"),
    }
    return pd.DataFrame(columns), pc.list_flatten(arrow)


def _unpacked(text: object) -> object:
    """Return the object that a list of unshown elements keeps as JSON text, else the text."""
    if not isinstance(text, str) or not text.startswith("{"):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
