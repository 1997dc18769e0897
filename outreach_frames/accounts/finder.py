"""Repeat the searches of `find_people` until every company is finished.

One search covers many companies if few people match. If many people match, the largest companies
fill the pages, and the other companies are searched again, in smaller groups of similar size.

All searches together take at most as many requests as a separate search of each company, plus 10 %
of the number of companies, rounded up. Companies whose people show another company may be searched
twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any, Final

import numpy as np
import pyarrow as pa

from outreach_frames.accounts.companies import IDENTIFIER_KINDS
from outreach_frames.accounts.searches import PAGE, Company, CompanySearch
from outreach_frames.client.client import Client
from outreach_frames.common.parallel import ordered_map
from outreach_frames.errors import OutreachError
from outreach_frames.reading.fast_reader import PeoplePage

# This filter also finds people at subsidiaries; the results do not show which searched company
# matched.
AFFILIATES_FILTER: Final = "company_domains_match_subsidiaries_and_affiliates"
# The service documents no limit of values per filter; 500 domains take 15 KB.
_MAX_GROUP: Final = 500
_COMPANIES_PER_EXTRA_REQUEST: Final = 10
# To finish most companies of similar size, read 1.5 x `per_company` people per company.
_READ_FACTOR: Final = 1.5
# More people per search waste less of the last page, but make wrong estimates more expensive.
_PEOPLE_PER_SEARCH: Final = 3 * PAGE
# If people's companies are unknown, divide the group into so many parts.
_PARTS: Final = 4


@dataclass(frozen=True, slots=True)
class PeopleBatch:
    """The people found by one search, their account rows, and the `split_by` value searched."""

    people: pa.Table
    account_rows: np.ndarray[Any, Any]
    value: str | None


@dataclass
class Finder:
    """Searches companies until each has enough people or no further matches."""

    client: Client
    companies: Sequence[Company]
    per_company: int | None
    refresh: bool
    on_finished: Callable[[int], object]
    columns: Sequence[str] | None = None  # columns to read; all by default
    batches: list[PeopleBatch] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    requests: int = 0

    def run(
        self, filters: Mapping[str, Any], split_by: str | None, values: Sequence[str | None]
    ) -> None:
        """Search every unfinished company for each value of `split_by`.

        Companies without people are proven by one search for all values, instead of one per value.
        """
        searches = [
            (filters if split_by is None else {**filters, split_by: [value]}, value)
            for value in values
        ]
        if len(values) > 1:
            self._search_values(searches, needs_proof=False)
            for stage in self._stages(filters, None, needs_proof=True, is_only=True, is_last=True):
                stage.finish_companies_without_people()
        self._search_values(searches, needs_proof=True)

    def _search_values(
        self, searches: Sequence[tuple[Mapping[str, Any], str | None]], *, needs_proof: bool
    ) -> None:
        for number, (filters, value) in enumerate(searches, 1):
            place = {"is_only": len(searches) == 1, "is_last": number == len(searches)}
            for stage in self._stages(filters, value, needs_proof=needs_proof, **place):
                stage.run()

    def _stages(
        self, filters: Mapping[str, Any], value: str | None, **options: bool
    ) -> Iterator[_Stage]:
        """Yield a stage for each kind of identifier, with its unfinished companies."""
        for kind in IDENTIFIER_KINDS:
            companies = [
                company
                for company in self.companies
                if company.account.kind is kind and not company.is_finished
            ]
            for company in companies:
                company.size = 0.0
            alone = kind.column is None or filters.get(AFFILIATES_FILTER)
            extra = ceil(len(companies) / _COMPANIES_PER_EXTRA_REQUEST)
            max_group = 1 if alone else _MAX_GROUP
            yield _Stage(self, filters, value, companies, max_group, extra, **options)


@dataclass
class _Stage:
    """All searches with one kind of company identifier and one `split_by` value."""

    finder: Finder
    filters: Mapping[str, Any]
    value: str | None
    open: list[Company]  # companies without a group
    max_group: int  # number of companies per search
    extra: int  # number of requests allowed beyond those of separate searches
    needs_proof: bool  # whether a company without people needs a search without results
    is_only: bool
    is_last: bool
    groups: list[list[Company]] = field(default_factory=list, init=False)  # one per search

    def finish_companies_without_people(self) -> None:
        """Finish the companies of searches without results."""
        searches = self._next_searches()
        self._read((search, 1) for search in searches)
        for search in searches:
            if search.is_complete and not search.received:
                self._evaluate(search)

    def run(self) -> None:
        while searches := self._next_searches():
            requested = [(search, 1) for search in searches]
            while requested:
                active = dict.fromkeys(search for search, _ in requested)
                try:
                    self._read(requested)
                except (OutreachError, KeyboardInterrupt):
                    # Pages read before the failure may finish some companies.
                    for search in active:
                        if search.pages:
                            self._evaluate(search)
                    raise
                requested = [(search, page) for search in active for page in self._evaluate(search)]

    def _next_searches(self) -> list[CompanySearch]:
        """Return the next searches: of as many groups as `extra` allows, else of companies."""
        self._group_by_size()
        allowed = max(self.extra, 0)
        shared = [group for group in self.groups if len(group) > 1]
        alone = [group for group in self.groups if len(group) == 1]
        shared, self.groups = shared[:allowed], shared[allowed:]
        if not shared and not alone:
            alone = [[company] for group in self.groups for company in group]
            self.groups = []
        return [self._search(group) for group in [*shared, *alone]]

    def _group_by_size(self) -> None:
        """Group companies of similar size, which finish after a few pages."""
        people, group = 0.0, list[Company]()
        for company in sorted(self.open, key=lambda one: one.size):
            is_full = people >= _PEOPLE_PER_SEARCH and len(group) * self._needed >= PAGE
            if not group or is_full or len(group) == self.max_group:
                people, group = 0.0, []
                self.groups.append(group)
            group.append(company)
            people += company.size
        self.open = []

    @property
    def _needed(self) -> float:
        """The number of people per company to read."""
        return _READ_FACTOR * (self.finder.per_company or inf)

    def _search(self, companies: Sequence[Company]) -> CompanySearch:
        size = PAGE if len(companies) > 1 else min(PAGE, self.finder.per_company or PAGE)
        return CompanySearch(companies, self.filters, size, self.finder.columns)

    def _read(self, requested: Iterable[tuple[CompanySearch, int]]) -> None:
        finder = self.finder

        def read(request: tuple[CompanySearch, int]) -> tuple[CompanySearch, PeoplePage]:
            search, number = request
            return search, search.read(number, finder.client, refresh=finder.refresh)

        useful = ((search, number) for search, number in requested if not search.is_over)
        pages = ordered_map(read, useful, workers=finder.client._session.workers)
        with closing(pages):
            for search, page in pages:
                finder.requests += 1
                finder.errors.extend(page.errors)
                # If a search covers a single company, its further pages are not extra requests.
                self.extra -= not (search.is_single and search.pages)
                search.add(page)

    def _evaluate(self, search: CompanySearch) -> range:
        """Finish companies if their pages suffice, and return the page numbers to read next."""
        companies = search.companies
        is_certain = self.needs_proof or companies[0].is_proven or bool(companies[0].kept)
        positions = search.company_positions(trusts_single=is_certain)
        if -1 in positions:
            # People of an earlier value may be missing at a single company too, so it stays
            # unfinished, and all values are searched once more.
            if not search.is_single:
                self._split(companies)
            return range(0)
        seen = Counter(positions)
        found = search.new_people(positions)
        unfinished = [
            place for place, company in enumerate(companies) if len(found[place]) < company.missing
        ]
        counts = [seen[place] for place in unfinished]
        missing = companies[0].missing - len(found[0])
        if further := self._further_pages(search, counts, missing):
            return range(search.pages + 1, search.pages + 1 + further)
        if search.is_single or (search.is_complete and not search.received):
            unfinished = []
        elif search.is_complete:
            # Only a search without results proves that a company has no people.
            unfinished = [place for place in unfinished if not seen[place]]
            for place in unfinished:
                companies[place].is_proven = False
            unfinished = unfinished if self.needs_proof else []
        finished = [place for place in range(len(companies)) if place not in {*unfinished}]
        self._keep(search, finished, found)
        rest = [companies[place] for place in unfinished]
        if search.is_over and not search.is_complete:
            self._split(rest)
            return range(0)
        mean = sum(seen[place] for place in unfinished) / max(len(unfinished), 1)
        for place in unfinished:
            # The sample is small, so estimates are shrunk towards the mean.
            companies[place].size = search.scale * (seen[place] + mean) / 2
        self.open += rest
        return range(0)

    def _split(self, companies: Sequence[Company]) -> None:
        """Search the companies again in smaller groups."""
        size = max(1, len(companies) // _PARTS)
        for start in range(0, len(companies), size):
            self.groups.append([*companies[start : start + size]])

    def _further_pages(self, search: CompanySearch, counts: Sequence[int], missing: float) -> int:
        """Return how many further pages to read.

        `counts` has the number of people received per unfinished company, and `missing` is the
        number of people still to find at a single company.
        """
        remaining = search.remaining_pages
        if search.is_single:
            return ceil(min(remaining, max(0, missing) / search.size))
        present = sum(count > 0 for count in counts)
        needed = min(search.scale * sum(counts), self._needed * present)
        allowed = min(present + max(self.extra, 0), ceil(needed / PAGE))
        return remaining if remaining <= allowed else 0

    def _keep(
        self, search: CompanySearch, finished: Iterable[int], found: Sequence[Sequence[int]]
    ) -> None:
        """Keep the people of finished companies; `found` has the rows of new people per company."""
        ids = search.people.column("id")
        rows: list[int] = []
        account_rows: list[int] = []
        for position in finished:
            company = search.companies[position]
            kept = found[position][: int(min(company.missing, len(found[position])))]
            rows += kept
            account_rows += [company.account.row] * len(kept)
            company.kept += ids.take(pa.array(kept, pa.int64())).to_pylist()
            company.missing -= len(kept)
            self._count(company, search, len(found[position]))
            self.extra += 1
        if rows:
            people = search.people.take(pa.array(rows))
            self.finder.batches.append(PeopleBatch(people, np.array(account_rows), self.value))

    def _count(self, company: Company, search: CompanySearch, found: int) -> None:
        """Set the company's total; finish a company that has enough people or no further search."""
        if search.is_complete and company.total is not None:
            company.total += found
        else:
            company.total = search.total if search.is_single and self.is_only else None
        if search.is_single and search.is_over and not search.is_complete:
            company.detail = (
                f"the service counted {search.total:,} people but returned {search.received:,}"
            )
        is_certain = self.needs_proof or bool(company.kept) or company.is_proven
        if (self.is_last and is_certain) or not company.missing:
            company.is_finished = True
            company.total = company.total if self.is_last else None
            self.finder.on_finished(1)
