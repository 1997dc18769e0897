"""Search for people at one or more companies, and assign each person to a company."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.accounts.companies import (
    FOUND_STATUS,
    NOBODY_STATUS,
    RowResult,
    SearchedAccount,
)
from outreach_frames.client.client import Client
from outreach_frames.reading.fast_reader import PeoplePage
from outreach_frames.reading.flatten import concat_tables
from outreach_frames.resources.search import page_body, read_page, readable_columns

PAGE_SIZE: Final = spec.MAX_SEARCH_PAGE_SIZE


@dataclass(frozen=True, slots=True)
class PeopleBatch:
    """The people found by one search, and each person's account row and value.

    The value is that of `split_by`, or how the person's name matches.
    """

    people: pa.Table
    account_rows: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]


@dataclass(eq=False)
class CompanyProgress:
    """The search progress of one company."""

    account: SearchedAccount
    missing: float  # number of people still to find; inf for all
    kept: list[str | None] = field(default_factory=list)  # person ids
    searches: int = 1  # number of searches still to finish, one per value
    total: int | None = 0  # None if some people were not counted
    detail: str = ""
    is_proven: bool = True  # False if a search for other companies' people had none of this company
    is_unlike: bool = False  # whether its people show another company

    def start(self, searches: int) -> None:
        """Prepare for a search per value."""
        self.searches, self.total, self.is_proven, self.is_unlike = searches, 0, True, False

    @property
    def is_open(self) -> bool:
        """Whether searches with other companies may find further people."""
        return bool(self.missing) and not self.is_unlike

    @property
    def is_finished(self) -> bool:
        """Whether the company has enough people or no further ones."""
        return not self.missing or (not self.searches and (bool(self.kept) or self.is_proven))

    def add(self, search: CompanySearch, kept: Sequence[str | None], new_people: int) -> None:
        """Keep the first of a search's new people."""
        self.searches -= 1
        if search.is_complete and self.total is not None:
            self.total += new_people
        else:
            is_only = search.is_single and not self.searches and self.total == 0
            self.total = search.total if is_only else None
        if search.is_single and search.is_over and not search.is_complete:
            self.detail = (
                f"the service counted {search.total:,} people but returned {search.received:,}"
            )
        if not new_people and search.received and not search.is_single:
            self.is_proven = False
        self.kept += kept
        self.missing -= len(kept)

    def outcome(self) -> RowResult:
        """Return the outcome of the row that names this company."""
        if not self.is_finished:
            return RowResult(
                None, self.detail or "the search stopped before this company was finished"
            )
        total = None if self.searches else self.total
        if self.kept:
            return RowResult(FOUND_STATUS, self.detail, total)
        detail = f"no person matches the {self.account.kind.noun} {self.account.label}"
        return RowResult(NOBODY_STATUS, self.detail or detail, total)


@dataclass(eq=False)
class CompanySearch:
    """A search by one kind of company identifier, and the results received so far."""

    companies: Sequence[CompanyProgress]
    filters: Mapping[str, Any]
    size: int = PAGE_SIZE
    columns: Sequence[str] | None = None  # columns to read; all by default
    pages: int = 0
    received: int = 0
    total: int | None = None
    unix: float = 0  # time of the first page
    is_over: bool = False  # whether further pages cannot contain new people
    _tables: list[pa.Table] = field(default_factory=list)
    _ids: set[str | None] = field(default_factory=set)

    def read(self, number: int, client: Client, *, refresh: bool) -> PeoplePage:
        """Read one page."""
        accounts = [company.account for company in self.companies]
        values = [value for account in accounts for value in account.search_values]
        filters = {**self.filters, accounts[0].kind.filter: values}
        body = page_body(filters, number, self.size)
        since = math.inf if refresh else self.unix
        page, unix = read_page(client, body, since=since, columns=readable_columns(self.columns))
        self.unix = self.unix or unix
        return page

    def add(self, page: PeoplePage) -> None:
        """Add the next page to the results."""
        self.pages += 1
        self.received += page.people.num_rows
        self._tables.append(page.people)
        total = page.pagination.get("total")
        if isinstance(total, int) and not isinstance(total, bool) and total >= 0:
            self.total = total
        elif self.total is None and page.people.num_rows < self.size:
            self.total = self.received
        ids = set(page.people.column("id").to_pylist())
        # A page without new people ends a search with a wrong total.
        self.is_over = self.is_complete or ids <= self._ids
        self._ids |= ids

    @property
    def is_single(self) -> bool:
        """Whether the search covers a single company."""
        return len(self.companies) == 1

    @property
    def is_complete(self) -> bool:
        """Whether the results contain all people that the service counted."""
        return self.total is not None and self.received >= self.total

    @property
    def remaining_pages(self) -> int:
        """The number of remaining pages; 1 if the service returned no total."""
        if self.is_over:
            return 0
        return 1 if self.total is None else math.ceil((self.total - self.received) / self.size)

    @property
    def people(self) -> pa.Table:
        """The people received so far, in the service's order."""
        if len(self._tables) > 1:
            self._tables = [concat_tables(self._tables)]
        return self._tables[0]

    def company_positions(self, trusts_single: bool) -> list[int]:
        """Return the position of each person's company in `companies`; -1 if it is not there.

        With `trusts_single`, all people of a search for a single company are at this company.
        """
        kind = self.companies[0].account.kind
        if kind.column is None or (self.is_single and trusts_single):
            return [0] * self.received
        texts = self.people.column(kind.column).cast(pa.large_string()).combine_chunks()
        known = pa.array([company.account.key for company in self.companies], pa.large_string())
        positions: list[int] = (
            pc.index_in(kind.keys(texts), value_set=known).fill_null(-1).to_pylist()
        )
        return positions

    def new_people(self, positions: Sequence[int]) -> list[list[int]]:
        """Return, per company, the rows of people who were not found there before."""
        known = [set(company.kept) for company in self.companies]
        rows: list[list[int]] = [[] for _ in self.companies]
        ids = self.people.column("id").to_pylist()
        for row, (position, identity) in enumerate(zip(positions, ids, strict=True)):
            if identity is None or identity not in known[position]:
                rows[position].append(row)
                known[position].add(identity)
        return rows
