"""Count people and companies per segment, such as a title, an industry or a country."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.analysis.companies import (
    COMPANY_PREFIX,
    companies,
    company_numbers,
    person_rows,
)
from outreach_frames.analysis.unlist import as_lists
from outreach_frames.common.pandas_versions import STR
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.column_checks import require_columns, to_numbers
from outreach_frames.tables.schema import frame_of_columns

SIZE: Final = "company_size"
# Maps each median's name to the source column in the frame of people.
_MEDIANS: Final = {
    "median_employees": "company_estimated_number_of_employees",
    **{
        f"median_{department}": f"company_department_headcount_{department}"
        for department in spec.DEPARTMENTS
    },
}
# The result has these columns after the columns of `by`.
SEGMENTS: Final = (
    spec.Field("people", "integer", note="number of distinct people in the segment"),
    spec.Field("companies", "integer", note="number of distinct companies in the segment"),
    spec.Field("share", "number", note="part of the frame's people in this segment, 0 to 1"),
    spec.Field("median_employees", "number", note="median number of employees per company"),
    *(
        spec.Field(
            f"median_{department}",
            "number",
            note=f"median number of employees in {department.replace('_', ' ')} per company",
        )
        for department in spec.DEPARTMENTS
    ),
)


def segments(frame: pd.DataFrame, by: str | Sequence[str]) -> pd.DataFrame:
    """Count people and companies per segment of a prospect table, largest segment first.

    Of segments with equally many people, smaller company sizes come first if `by` has company_size,
    and then the segments that the frame has first.

    Parameters
    ----------
    frame : DataFrame
        People with the columns of `search_people`, and optional other columns.
    by : str or list of str
        The columns that define the segments: rows with the same values form one segment, and so do
        rows with missing values.

    Returns
    -------
    DataFrame
        The columns of `by`; people, companies (Int64); share (Float64, the share of all people in
        the frame); median_employees and median_<department> (Float64) for each department of the
        interface. Each person and company counts once per segment, and a company has its headcounts
        of `df.outreach.companies` in every segment. Medians are missing if the frame lacks
        headcounts.

    Raises
    ------
    InvalidInputError
        The frame lacks a column of `by` or the company columns, or a column of `by` contains lists.

    Notes
    -----
    Interface: Company, `estimated_number_of_employees` and `department_headcount`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=100)
    >>> segments = people.outreach.segments("company_size")
    >>> int(segments["people"].sum()), float(segments["share"].sum().round(6))
    (100, 1.0)
    """
    keys = _check_keys(frame, by)
    plain = frame.reset_index(drop=True)
    numbers = _segment_numbers(plain, keys)
    first = np.unique(numbers, return_index=True)[1]
    persons = pd.DataFrame({"segment": numbers, "person": person_rows(plain)})
    people = persons.groupby("segment")["person"].nunique()
    of_companies = pd.DataFrame({"segment": numbers, "company": company_numbers(plain)[0]})
    pairs = of_companies[of_companies["company"] >= 0].drop_duplicates()
    segment = pairs["segment"].to_numpy()
    table = companies(plain).add_prefix(COMPANY_PREFIX).iloc[pairs["company"]]
    figures = {name: _numbers(table, column).array for name, column in _MEDIANS.items()}
    medians = pd.DataFrame(figures).groupby(segment).median().reindex(people.index)
    counts = np.bincount(segment, minlength=len(people))
    share = people / max(persons["person"].nunique(), 1)
    columns = [people, counts, share, *(medians[name] for name in medians)]
    table = pd.concat(
        [plain[keys].iloc[first].reset_index(drop=True), frame_of_columns(SEGMENTS, columns)],
        axis="columns",
    )
    if SIZE in keys:
        sizes = list(map(size_order, table[SIZE].astype(STR).fillna("")))
        table = table.iloc[sorted(range(len(table)), key=sizes.__getitem__)]
    return table.sort_values("people", ascending=False, kind="stable", ignore_index=True)


def size_order(label: str) -> tuple[float, str]:
    """Return the sort key of a company size: its first number, and the label.

    >>> sorted(["10001+", "not given", "1,001-5,000", "11-50", "Self-employed"], key=size_order)
    ['Self-employed', '11-50', '1,001-5,000', '10001+', 'not given']
    """
    number = re.search(r"\d+", label.replace(",", ""))
    if label.lower().startswith("self"):
        return (-1, label)
    return (float(number.group()) if number else math.inf, label)


def _check_keys(frame: pd.DataFrame, by: object) -> list[str]:
    keys: list[Any] = [by] if isinstance(by, str) else list(by) if isinstance(by, Iterable) else []
    if not keys or len(set(map(str, keys))) < len(keys):
        raise InvalidInputError(
            f"by={by!r} is not valid. Pass a column name or a list of distinct column names."
        )
    require_columns(frame, keys, "columns of by", "a frame of people with these columns")
    taken = {field.name for field in SEGMENTS}
    for name in keys:
        if name in taken:
            raise InvalidInputError(
                f"The result would have two columns {name!r}. Rename yours, for example with "
                f"frame.rename(columns={{{name!r}: 'key'}})."
            )
        if as_lists(frame[name]) is not None:
            raise InvalidInputError(
                f"The column {name!r} contains lists. Use frame.explode({name!r}) to count a "
                "person in the segment of each entry, or frame.outreach.unlist() to convert "
                "each list to text."
            )
    return keys


def _segment_numbers(frame: pd.DataFrame, keys: list[str]) -> np.ndarray[Any, Any]:
    """Return the segment number of each row; segments are numbered in order of appearance."""
    try:
        groups = frame.groupby(keys, dropna=False, sort=False, observed=True)
        return groups.ngroup().to_numpy("int64")
    except TypeError as error:
        raise InvalidInputError(
            f"The columns {keys} have values that cannot be compared: {error}. Convert the columns "
            "to text."
        ) from error


def _numbers(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    if name not in frame.columns:
        return pd.Series(pd.NA, index=frame.index, dtype="Float64")
    require_columns(frame, [name], "numbers")
    return to_numbers(frame[[name]])[name]
