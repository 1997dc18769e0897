"""Search for people at one or more companies, and assign each person to a company."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.accounts.agenda import PAGE, Company
from outreach_frames.client.client import Client
from outreach_frames.reading.fast_reader import PeoplePage
from outreach_frames.reading.flatten import concat_tables
from outreach_frames.resources.search_pages import SearchPages

# End a search with a wrong total after this many consecutive pages without new people.
_MAX_PAGES_WITHOUT_NEW: Final = 3


@dataclass(eq=False)
class CompanySearch:
    """A search by one kind of company identifier, and the results received so far."""

    companies: Sequence[Company]
    filters: Mapping[str, Any]
    size: int = PAGE
    columns: Sequence[str] | None = None  # columns to read; all by default
    pages: int = 0
    received: int = 0
    total: int | None = None
    errors: list[Any] = field(default_factory=list)
    _tables: list[pa.Table] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _pages_without_new: int = 0

    def read(self, number: int, client: Client, *, refresh: bool) -> PeoplePage:
        """Read one page."""
        accounts = [company.account for company in self.companies]
        values = [value for account in accounts for value in account.search_values]
        filters = {**self.filters, accounts[0].kind.filter: values}
        pages = SearchPages(client, filters, self.size, not refresh, columns=self.columns)
        return pages.read([number])

    def add(self, page: PeoplePage) -> None:
        """Add the next page to the results."""
        self.pages += 1
        self.received += page.people.num_rows
        self._tables.append(page.people)
        self.errors.extend(page.errors)
        total = page.pagination.get("total")
        if isinstance(total, int) and not isinstance(total, bool) and total >= 0:
            self.total = total
        elif self.total is None and page.people.num_rows < self.size:
            self.total = self.received
        known = len(self._ids)
        self._ids.update(page.people.column("id").drop_null().to_pylist())
        has_new = len(self._ids) > known
        self._pages_without_new = 0 if has_new else self._pages_without_new + 1

    @property
    def is_single(self) -> bool:
        """Whether the search covers a single company."""
        return len(self.companies) == 1

    @property
    def is_complete(self) -> bool:
        """Whether the results contain all people that the service counted."""
        return self.total is not None and self.received >= self.total

    @property
    def is_over(self) -> bool:
        """Whether further pages cannot contain new people."""
        return self.is_complete or self._pages_without_new >= _MAX_PAGES_WITHOUT_NEW

    @property
    def remaining_pages(self) -> int:
        """The number of remaining pages; 1 if the service returned no total."""
        if self.is_over:
            return 0
        return 1 if self.total is None else ceil((self.total - self.received) / self.size)

    @property
    def people(self) -> pa.Table:
        """The people received so far, in the service's order."""
        if len(self._tables) > 1:
            self._tables = [concat_tables(self._tables)]
        return self._tables[0]

    def company_positions(self, *, trusts_single: bool) -> np.ndarray[Any, Any]:
        """Return the position of each person's company in `companies`; -1 if it is not there.

        With `trusts_single`, all people of a search for a single company are at this company.
        """
        kind = self.companies[0].account.kind
        if kind.column is None or (self.is_single and trusts_single):
            return np.zeros(self.received, dtype=np.int64)
        texts = self.people.column(kind.column).cast(pa.large_string()).combine_chunks()
        known = pa.array([company.account.key for company in self.companies], pa.large_string())
        found = pc.index_in(kind.keys(texts), value_set=known)
        return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def is_new(self, positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return which people were not found at their company before."""
        known = [set(company.kept) for company in self.companies]
        is_new = np.ones(len(positions), dtype=bool)
        ids = self.people.column("id").to_pylist()
        for row, (position, identity) in enumerate(zip(positions.tolist(), ids, strict=True)):
            is_new[row] = identity is None or identity not in known[position]
            known[position].add(identity)
        return is_new
