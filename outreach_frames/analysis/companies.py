"""Return companies and headcounts of a prospect table, and check columns."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.common.arguments import check_choice
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import numbered
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.keys import email_cells, filled_texts, profnet_url_cells
from outreach_frames.identity.persons import (
    NONE,
    Rows,
    first_company_rows,
    first_known,
    first_rows,
    identifiers,
    numbers_of,
)
from outreach_frames.tables.column_checks import column_of, require_columns, to_numbers
from outreach_frames.tables.result_columns import PEOPLE_IN_FRAME
from outreach_frames.tables.value_text import TEXT

Level = Literal["department", "job_function"]
LEVELS: tuple[Level, ...] = ("department", "job_function")

COMPANY_KEY = "company_id"
COMPANY_PREFIX = "company_"
_HEADCOUNT = "_headcount_"
_EMPLOYEES = "estimated_number_of_employees"
# Shares of fewer known employees would mislead.
_MIN_COVERED = 0.5
_ORDER = {name: place for place, name in enumerate(spec.columns(spec.COMPANY))}
COMPANY_KEYS = tuple(f"{COMPANY_PREFIX}{key}" for key in ("id", "profnet_url", "name"))


def companies(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per company of a prospect table.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`.

    Returns
    -------
    DataFrame
        One row per company in order of appearance. Rows with the same id or profile URL are one
        company; rows with neither are identified by name. The columns are the company columns
        without their prefix (id, name, website, ...), and people_in_frame (Int64), the number of
        distinct people: rows with the same id, email or profile URL are one person. If a company's
        rows differ, its headcounts are those of the row with the most headcounts, and every other
        column has the first known value. People without a company are dropped.

    Raises
    ------
    InvalidInputError
        The frame lacks the company columns, or its rows are companies.

    Notes
    -----
    Interface: Company (the `company` of a person).

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=100)
    >>> int(people.outreach.companies()["people_in_frame"].sum())
    100
    """
    if f"{COMPANY_PREFIX}{PEOPLE_IN_FRAME.name}" in frame.columns:
        raise InvalidInputError(
            "The rows of the frame are companies, not people. To join tables of companies, sum "
            "people_in_frame by id: table.groupby('id')['people_in_frame'].sum()."
        )
    numbers, first = company_numbers(frame)
    columns = [name for name in frame.columns if str(name).startswith(COMPANY_PREFIX)]
    columns.sort(key=lambda name: _ORDER.get(name.removeprefix(COMPANY_PREFIX), len(_ORDER)))
    people = frame[columns]
    table = people.iloc[first].reset_index(drop=True)
    table.columns = pd.Index([name.removeprefix(COMPANY_PREFIX) for name in columns])
    first_of_row = np.arange(len(frame))
    has_company = numbers != NONE
    first_of_row[has_company] = first[numbers[has_company]]
    is_headcount = np.array([_HEADCOUNT in name for name in columns], dtype="bool")
    known = people.loc[:, is_headcount].notna().sum(axis="columns").reset_index(drop=True)
    fullest = known.groupby(first_of_row).idxmax()[first].to_numpy("int64")
    for place in np.flatnonzero(table.isna().any() | is_headcount).tolist():
        column = people.iloc[:, place]
        rows = fullest
        if not is_headcount[place]:
            rows = first_known(first_of_row, column.isna().to_numpy("bool"))[first]
        table.isetitem(place, column.array[rows])
    persons = pd.Series(person_rows(frame)).groupby(numbers).nunique()
    count = persons.reindex(range(len(first))).rename(PEOPLE_IN_FRAME.name).astype("Int64")
    # Assigning a column would make pandas warn about fragmented frames, so concatenate.
    return pd.concat([table, count], axis="columns")


def headcount(frame: pd.DataFrame, level: Level = "department") -> pd.DataFrame:
    """Return the companies' headcounts as a tidy table.

    Parameters
    ----------
    frame : DataFrame
        People with the columns of `search_people`, or companies from `companies()`.
    level : {"department", "job_function"}
        The level of detail: departments give 14 rows per company, job functions 194.

    Returns
    -------
    DataFrame
        company (str), department (str), job_function (str, only for level="job_function"), people
        (Int64), share (Float64) and company_id (str). The share is the row's part of the company's
        known headcounts at this level and sums to 1; it is missing if these headcounts cover less
        than half of `estimated_number_of_employees`, or that number is unknown. If companies share
        a name, their website, id or a number is added in brackets.

    Raises
    ------
    InvalidInputError
        The level is unknown, or the frame lacks the headcount columns.

    Notes
    -----
    Interface: Company, `department_headcount` and `job_function_headcount`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=10)
    >>> list(people.outreach.headcount().columns)
    ['company', 'department', 'people', 'share', 'company_id']
    """
    check_choice("level", level, LEVELS)
    table = companies(frame) if f"{COMPANY_PREFIX}name" in frame.columns else frame
    keys = _headcount_columns(level)
    require_columns(table, [*keys, "name"], "headcount columns")
    counts = to_numbers(table[list(keys)], "Int64")
    missing = counts.isna().to_numpy()
    numbers = counts.fillna(0).to_numpy("int64")
    totals = numbers.sum(axis=1, keepdims=True)
    shares = numbers / np.where(totals == 0, 1, totals)
    employees = to_numbers(table.filter([_EMPLOYEES]).reindex(columns=[_EMPLOYEES]))
    # A comparison with an unknown number is false.
    least = employees.to_numpy(float, na_value=np.nan) * _MIN_COVERED
    is_covered = (totals > 0) & (totals >= least)
    ids = table["id"] if "id" in table.columns else pd.Series(pd.NA, index=table.index)
    rows = np.arange(len(table)).repeat(len(keys))
    columns = np.tile(np.arange(len(keys)), len(table))
    tidy: dict[str, Any] = {"company": company_labels(table).array[rows]}
    for place, name in enumerate(LEVELS[: len(next(iter(keys.values())))]):
        tidy[name] = pd.array([path[place] for path in keys.values()], dtype=STR)[columns]
    tidy["people"] = pd.arrays.IntegerArray(numbers.ravel(), missing.ravel())
    tidy["share"] = pd.arrays.FloatingArray(shares.ravel(), (missing | ~is_covered).ravel())
    tidy[COMPANY_KEY] = ids.astype(STR).array[rows]
    return pd.DataFrame(tidy)


def _headcount_columns(level: str) -> dict[str, tuple[str, ...]]:
    """Map each headcount column of a level to (department,) or (department, job function)."""
    members = {field.name: field.members for field in spec.COMPANY}
    field = f"{level}_headcount"
    return {"_".join((field, *path)): path for path, _ in spec.leaves(members[field])}


def company_labels(table: pd.DataFrame) -> pd.Series:
    """Return company names; add the website, id or a number in brackets to shared names."""
    labels = table["name"].astype(STR).copy()
    for column in ("website", "id"):
        shared = labels.notna() & labels.duplicated(keep=False)
        if column in table.columns and shared.any():
            known = shared & table[column].notna()
            labels = labels.mask(known, labels + " (" + table[column].astype(STR) + ")")
    is_named = labels.notna().to_numpy("bool")
    labels[is_named] = pd.array(numbered(labels[is_named]), dtype=STR)
    return labels


def company_numbers(frame: pd.DataFrame) -> tuple[Rows, Rows]:
    """Return each row's company number, -1 if missing, and the first row of each company."""
    present = [key for key in COMPANY_KEYS if key in frame.columns]
    require_columns(frame, present or [COMPANY_KEY], "company columns")
    first_of_row = first_company_rows(*(_texts(frame, key) for key in COMPANY_KEYS))
    first = np.flatnonzero(first_of_row == np.arange(len(frame)))
    return np.where(first_of_row == NONE, NONE, np.searchsorted(first, first_of_row)), first


def person_rows(frame: pd.DataFrame) -> Rows:
    """Return each row's first row of the same person: of the same id, email or profile URL.

    A profile URL other than `/in/<name>` identifies only rows that have nothing else.
    """
    ids, emails, urls = (_texts(frame, name) for name in ("id", *spec.LEAD_IDENTIFIERS))
    keys = identifiers(email_cells(emails).single_keys(), profnet_url_cells(urls).single_keys())
    weak = pc.if_else(ids.is_valid(), pa.scalar(None, TEXT), keys.weak_url)
    of_ids = pd.factorize(ids.to_pandas())[0].astype("int64")
    return first_rows([*numbers_of(keys._replace(weak_url=weak)), of_ids])


def _texts(frame: pd.DataFrame, name: str) -> pa.Array:
    """Return a column's values as text without blank texts; missing if the column is missing."""
    if name not in frame.columns:
        return pa.nulls(len(frame), TEXT)
    texts = column_of(frame, name).astype(STR).tolist()
    return filled_texts(pa.array(texts, TEXT, from_pandas=True))
