"""Compare companies' headcounts in two tables, each company once."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.analysis.companies import COMPANY_PREFIX, company_labels
from outreach_frames.common.pandas_versions import STR
from outreach_frames.errors import InvalidInputError
from outreach_frames.history.source import Source
from outreach_frames.history.values import texts
from outreach_frames.identity.matching import Matching
from outreach_frames.identity.persons import NONE, Rows
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
    old_rows = new_rows = np.empty(0, dtype=np.int64)
    old_first, new_first = np.full(before.rows, NONE), np.full(after.rows, NONE)
    if companies is not None and departments:
        kept = np.sort(np.concatenate([companies.pairs_before, companies.gone]))
        old_rows = np.concatenate([kept, np.full(len(companies.new), NONE)])
        new_rows = np.concatenate([np.full(len(kept), NONE), companies.new])
        new_rows[np.searchsorted(kept, companies.pairs_before)] = companies.pairs_after
        old_first, new_first = companies.before.first_of_row, companies.after.first_of_row
    departments = departments or list(_COLUMNS)
    old_companies, old = _by_company(before, old_rows, old_first, departments)
    new_companies, new = _by_company(after, new_rows, new_first, departments)
    shown = new_companies.fillna(old_companies)
    return _tidy(shown, _fill_absent(old, new), _fill_absent(new, old))


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


def _fill_absent(own: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Set a row's missing headcounts to 0 if `other` has them and the row has any headcount."""
    # The service omits departments without people.
    is_counted = own.notna().any(axis=1).to_numpy()[:, None]
    return own.mask(own.isna() & other.notna() & is_counted, 0)


def _by_company(
    side: Source, rows: Rows, first: Rows, departments: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the companies at `rows`: their first known values, and their fullest headcounts.

    `first` has the first row of each row's company, -1 without a company.
    """
    shown = {name: texts(side.column(f"{COMPANY_PREFIX}{name}")) for name in _SHOWN}
    counts = {name: _integers(side, _COLUMNS[name]) for name in departments}
    values, numbers = (to_frame(pa.table(columns), "numpy_nullable") for columns in (shown, counts))
    company = pd.Series(first).mask(first == NONE)
    known = numbers.notna().sum(axis="columns")
    fullest = known.groupby(company).idxmax().reindex(rows)
    companies = values.groupby(company).first().reindex(rows)
    return companies.reset_index(drop=True), numbers.reindex(fullest).reset_index(drop=True)


def _integers(side: Source, name: str) -> pa.Array:
    try:
        # Cast from text: a direct cast would accept dates and times too.
        return texts(side.column(name)).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"{side.name}: the column {name!r} has values that are not whole numbers."
        ) from error
