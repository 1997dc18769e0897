"""Compare companies' headcounts in two tables, each company once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

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


@dataclass(frozen=True)
class Headcounts:
    """The headcounts of two tables, with one row per company in the same order."""

    companies: pd.DataFrame
    before: pd.DataFrame  # Int64, one column per compared department
    after: pd.DataFrame

    @cached_property
    def table(self) -> pd.DataFrame:
        """The headcounts as a tidy table, one row per company and department."""
        before, after = (
            cast("pd.Series[Any]", side.stack(future_stack=True)).astype("Int64")
            for side in (self.before, self.after)
        )
        rows, departments = (before.index.get_level_values(level) for level in (0, 1))
        change = after - before
        table = {
            "company_id": self.companies["id"].array[rows],
            "company": company_labels(self.companies).array[rows],
            "department": departments.astype(STR),
            "before": before.array,
            "after": after.array,
            "change": change.array,
            "growth": (change / before.mask(before == 0)).array,
        }
        return pd.DataFrame(table)

    def count_changed(self) -> int:
        """Count the companies in both tables whose headcount changed."""
        changed = (self.before != self.after).to_numpy(bool, na_value=False)
        return int(changed.any(axis=1).sum())

    def count_compared(self) -> int:
        """Count the companies with headcounts in both tables."""
        compared = self.before.notna() & self.after.notna()
        return int(compared.to_numpy().any(axis=1).sum())


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
    return Headcounts(to_frame(pa.table(shown), "numpy_nullable"), *filled)


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
