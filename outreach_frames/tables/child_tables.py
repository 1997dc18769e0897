"""Child tables: one row per entry of a list column, with the key of the person or company."""

from __future__ import annotations

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.companies import companies, require_columns
from outreach_frames.tables.flatten import free_frame, records_frame

PERSON_KEY = "person_id"
COMPANY_KEY = "company_id"
POSITION = "position"

_MEMBERS = {field.name: field.members for field in spec.PERSON}


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
        The frame has no such columns.

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
    return _person_table(frame, "experiences")


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
        The frame has no such columns.

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
    return _person_table(frame, "educations")


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
        The frame has no such columns.

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
    return _person_table(frame, "languages")


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
        The frame has no such columns.

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
        The frame has no such columns.

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


def _person_table(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    require_columns(frame, ["id", column], f"{column} of people")
    keys, entries = _entries(frame["id"], frame[column])
    return keys.rename(columns={"key": PERSON_KEY}).join(records_frame(entries, _MEMBERS[column]))


def _company_table(frame: pd.DataFrame, column: str, noun: str) -> pd.DataFrame:
    table = companies(frame) if f"company_{column}" in frame.columns else frame
    require_columns(table, ["id", column], f"{column} of companies")
    keys, texts = _entries(table["id"], table[column])
    entries = [_unpacked(text) for text in texts]
    child = free_frame(entries) if entries else pd.DataFrame({"value": pd.Series(dtype="str")})
    return keys.rename(columns={"key": COMPANY_KEY}).join(child.rename(columns={"value": noun}))


def _entries(keys: pd.Series, lists: pd.Series) -> tuple[pd.DataFrame, list[object]]:
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
        "key": keys.iloc[parents].astype("str").array,
        POSITION: pd.array(positions, dtype="Int64"),
    }
    return pd.DataFrame(columns), pc.list_flatten(arrow).to_pylist()


def _unpacked(text: object) -> object:
    """Return the object that a list of unshown elements keeps as JSON text, else the text."""
    if not isinstance(text, str) or not text.startswith("{"):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
