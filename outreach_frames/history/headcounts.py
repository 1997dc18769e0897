"""The companies' headcounts on two sides, each company once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.analysis.companies import COMPANY_PREFIX, company_labels
from outreach_frames.errors import InvalidInputError
from outreach_frames.history.source import Source
from outreach_frames.history.values import texts
from outreach_frames.identity.matching import Matching
from outreach_frames.identity.persons import Rows
from outreach_frames.tables.value_text import TEXT

_COLUMNS: Final = {
    department: f"{COMPANY_PREFIX}department_headcount_{department}"
    for department in spec.DEPARTMENTS
}
_SHOWN: Final = ("id", "name", "website")


@dataclass(frozen=True)
class Headcounts:
    """Two sides' headcounts, a row per company and a column per department.

    Attributes
    ----------
    companies : DataFrame
        id, name and website of each company.
    departments : list of str
        Those that either side has.
    before, after : numpy.ma.MaskedArray
        The counts; masked where they are missing.
    """

    companies: pd.DataFrame
    departments: list[str]
    before: Any
    after: Any

    @cached_property
    def table(self) -> pd.DataFrame:
        """The tidy table: a row per company and department."""
        size, width = self.before.shape
        rows = np.arange(size).repeat(width)
        change = self.after - self.before
        return pd.DataFrame(
            {
                "company_id": self.companies["id"].array[rows],
                "company": company_labels(self.companies).array[rows],
                "department": pd.array(self.departments, dtype="str")[
                    np.tile(np.arange(width), size)
                ],
                "before": _integers(self.before),
                "after": _integers(self.after),
                "change": _integers(change),
                "growth": _shares(change, self.before),
            }
        )

    def count_changed(self) -> int:
        """Count the companies on both sides that have another headcount."""
        changed = np.ma.filled(self.before != self.after, False)
        return int(changed.any(axis=1).sum())

    def count_compared(self) -> int:
        """Count the companies that have headcounts on both sides."""
        there = ~(np.ma.getmaskarray(self.before) | np.ma.getmaskarray(self.after))
        return int(there.any(axis=1).sum())


def compare_headcounts(before: Source, after: Source, companies: Matching | None) -> Headcounts:
    """Read the headcounts of both sides.

    Parameters
    ----------
    before, after : Source
        The people of both sides.
    companies : Matching or None
        Which rows of the two sides have the same company; None where that cannot be told.

    Returns
    -------
    Headcounts
        The companies of the side before in their order, then those that are only in the other.
    """
    departments = [
        department
        for department, column in _COLUMNS.items()
        if column in before.columns or column in after.columns
    ]
    if companies is None or not departments:
        none = _all_missing(0, len(departments))
        empty = pd.DataFrame({name: pd.array([], dtype="str") for name in _SHOWN})
        return Headcounts(empty, departments, none, none)
    # A company's rows on both sides, -1 where it is not there.
    old = np.concatenate([companies.before.kept, np.full(len(companies.new), -1)])
    new = np.full(len(old), -1)
    new[np.searchsorted(companies.before.kept, companies.pairs_before)] = companies.pairs_after
    new[len(companies.before.kept) :] = companies.new
    shown = {
        name: pc.coalesce(*(_texts(side, f"{COMPANY_PREFIX}{name}", rows) for side, rows in sides))
        for sides in [((after, new), (before, old))]
        for name in _SHOWN
    }
    return Headcounts(
        pd.DataFrame({name: pd.array(column, dtype="str") for name, column in shown.items()}),
        departments,
        _counts(before, old, departments),
        _counts(after, new, departments),
    )


def _taken(column: pa.Array, rows: Rows) -> pa.Array:
    return column.take(pa.array(rows, mask=rows < 0))


def _texts(side: Source, name: str, rows: Rows) -> pa.Array:
    if name not in side.columns:
        return pa.nulls(len(rows), TEXT)
    return texts(_taken(side.column(name), rows))


def _counts(side: Source, rows: Rows, departments: list[str]) -> Any:
    counts = _all_missing(len(rows), len(departments))
    for place, department in enumerate(departments):
        column = _COLUMNS[department]
        if column in side.columns:
            try:
                # By way of text, as a date or a time would be cast to a number too.
                numbers = texts(_taken(side.column(column), rows)).cast(pa.int64())
            except pa.ArrowInvalid as error:
                raise InvalidInputError(
                    f"{side.name}: the column {column!r} has values that are not whole numbers."
                ) from error
            counts[:, place] = np.ma.array(
                numbers.fill_null(0).to_numpy(zero_copy_only=False),
                mask=numbers.is_null().to_numpy(zero_copy_only=False),
            )
    return counts


def _all_missing(rows: int, columns: int) -> Any:
    return np.ma.array(np.zeros((rows, columns), np.int64), mask=True)


def _integers(counts: Any) -> pd.arrays.IntegerArray:
    mask = np.ma.getmaskarray(counts).ravel()
    return pd.arrays.IntegerArray(np.ma.filled(counts, 0).ravel(), mask)


def _shares(parts: Any, wholes: Any) -> pd.arrays.FloatingArray:
    divisor = np.ma.filled(wholes, 0).ravel()
    unknown = np.ma.getmaskarray(parts).ravel() | (divisor == 0)
    quotients = np.ma.filled(parts, 0).ravel() / np.where(divisor == 0, 1, divisor)
    return pd.arrays.FloatingArray(quotients, unknown)
