"""Compare companies' headcounts in two tables, each company once."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.analysis.companies import COMPANY_PREFIX, company_labels
from outreach_frames.common.pandas_versions import STR
from outreach_frames.errors import InvalidInputError
from outreach_frames.history.source import Source
from outreach_frames.history.values import texts
from outreach_frames.identity.matching import Matching
from outreach_frames.identity.persons import NONE, Rows, first_known, fullest_rows
from outreach_frames.tables.schema import to_frame

_COLUMNS: Final = {
    department: f"{COMPANY_PREFIX}department_headcount_{department}"
    for department in spec.DEPARTMENTS
}
_SHOWN: Final = ("id", "name", "website")


class Headcounts(NamedTuple):
    """The headcounts of two tables, one row per company and department, and their counts."""

    table: pd.DataFrame
    compared: int  # number of companies with headcounts in both tables
    changed: int  # number of these companies whose headcount changed


def compare_headcounts(before: Source, after: Source, companies: Matching | None) -> Headcounts:
    """Read both tables' headcounts, new companies last; without `companies`, return no rows."""
    departments = [
        department
        for department, column in _COLUMNS.items()
        if column in before.columns and column in after.columns
    ]
    # Each company's row in both tables, -1 if a table lacks the company.
    old = new = np.empty(0, dtype=np.int64)
    firsts = old, new
    if companies is not None and departments:
        kept = np.sort(np.concatenate([companies.pairs_before, companies.gone]))
        old = np.concatenate([kept, np.full(len(companies.new), NONE)])
        new = np.concatenate([np.full(len(kept), NONE), companies.new])
        new[np.searchsorted(kept, companies.pairs_before)] = companies.pairs_after
        firsts = companies.before.first_of_row, companies.after.first_of_row
    shown = {}
    for name in _SHOWN:
        column = f"{COMPANY_PREFIX}{name}"
        after_before = _known(after, column, new, firsts[1]), _known(before, column, old, firsts[0])
        shown[name] = pc.coalesce(*after_before)
    counted = departments or list(_COLUMNS)
    counts = _counts(before, old, firsts[0], counted), _counts(after, new, firsts[1], counted)
    filled = (
        _fill_absent(own, other, [name for name in counted if _COLUMNS[name] in side.columns])
        for side, own, other in ((before, *counts), (after, *counts[::-1]))
    )
    return _tidy(to_frame(pa.table(shown), "numpy_nullable"), *filled)


def _tidy(companies: pd.DataFrame, before: pd.DataFrame, after: pd.DataFrame) -> Headcounts:
    """Arrange headcounts of companies by department; the frames have one row per company."""
    changed = (before != after).to_numpy(bool, na_value=False).any(axis=1)
    compared = (before.notna() & after.notna()).to_numpy().any(axis=1)
    old, new = (
        cast("pd.Series[Any]", side.stack(future_stack=True)).astype("Int64")
        for side in (before, after)
    )
    rows, departments = (old.index.get_level_values(level) for level in (0, 1))
    change = new - old
    table = {
        "company_id": companies["id"].array[rows],
        "company": company_labels(companies).array[rows],
        "department": departments.astype(STR),
        "before": old.array,
        "after": new.array,
        "change": change.array,
        "growth": (change / old.mask(old == 0)).array,
    }
    return Headcounts(pd.DataFrame(table), int(compared.sum()), int(changed.sum()))


def _fill_absent(own: pd.DataFrame, other: pd.DataFrame, present: list[str]) -> pd.DataFrame:
    """Set a row's missing headcounts to 0 if `other` has them and the row has any headcount."""
    # The service omits departments without people.
    is_counted = own.notna().any(axis=1).to_numpy()[:, None]
    absent = own[present].isna() & other[present].notna() & is_counted
    if not absent.to_numpy().any():
        return own
    return own.assign(**own[present].mask(absent, 0))


def _known(side: Source, name: str, rows: Rows, first: Rows) -> pa.Array:
    """Return each company's first known value as text.

    `first` has, for each row, the first row of the same company.
    """
    column = side.column(name)
    missing = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    known = first_known(first, missing) if len(rows) and missing.any() else first
    return _texts(side, name, np.append(known, NONE)[rows])


def _texts(side: Source, name: str, rows: Rows) -> pa.Array:
    """Return some rows of a column as text, missing for the row -1."""
    return texts(side.column(name).take(pa.array(rows, mask=rows < 0)))


def _counts(side: Source, rows: Rows, first: Rows, departments: list[str]) -> pd.DataFrame:
    """Return each company's headcounts from its row with the most."""
    known = np.zeros(len(first), dtype=np.int64)
    for department in departments if len(rows) else ():
        column = side.column(_COLUMNS[department])
        known += ~column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    rows = np.append(fullest_rows(first, known), NONE)[rows]
    counts: dict[str, pa.Array] = {}
    for department in departments:
        name = _COLUMNS[department]
        try:
            # Cast from text: a direct cast would accept dates and times too.
            counts[department] = _texts(side, name, rows).cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise InvalidInputError(
                f"{side.name}: the column {name!r} has values that are not whole numbers."
            ) from error
    return to_frame(pa.table(counts), "numpy_nullable")
