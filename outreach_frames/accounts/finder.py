"""Repeat the searches of `find_people` until every company is finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from outreach_frames.accounts.agenda import MAX_GROUP, PAGE, Agenda, Company
from outreach_frames.accounts.companies import IDENTIFIER_KINDS
from outreach_frames.accounts.searches import CompanySearch
from outreach_frames.client.client import Client
from outreach_frames.common.parallel import ordered_map
from outreach_frames.errors import OutreachError
from outreach_frames.reading.fast_reader import PeoplePage

# This filter also finds people at subsidiaries; the results do not show which searched company
# matched.
_AFFILIATES_FILTER: Final = "company_domains_match_subsidiaries_and_affiliates"


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
            alone = kind.column is None or bool(filters.get(_AFFILIATES_FILTER))
            agenda = Agenda(companies, self.per_company, 1 if alone else MAX_GROUP)
            yield _Stage(self, agenda, filters, value, **options)


@dataclass
class _Stage:
    """All searches with one kind of company identifier and one `split_by` value."""

    finder: Finder
    agenda: Agenda
    filters: Mapping[str, Any]
    value: str | None
    needs_proof: bool  # whether a company without people needs a search without results
    is_only: bool
    is_last: bool

    def finish_companies_without_people(self) -> None:
        """Finish the companies of searches without results."""
        searches = [self._search(group) for group in self.agenda.next_searches()]
        self._read((search, 1) for search in searches)
        for search in searches:
            if search.is_complete and not search.received:
                self._evaluate(search)

    def run(self) -> None:
        while self.agenda.open:
            searches = [self._search(group) for group in self.agenda.next_searches()]
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

    def _search(self, companies: Sequence[Company]) -> CompanySearch:
        size = PAGE if len(companies) > 1 else min(PAGE, self.finder.per_company or PAGE)
        return CompanySearch(companies, self.filters, size, self.finder.columns)

    def _read(self, requested: Iterable[tuple[CompanySearch, int]]) -> None:
        finder = self.finder

        def read(request: tuple[CompanySearch, int]) -> tuple[CompanySearch, PeoplePage]:
            search, number = request
            return search, search.read(number, finder.client, refresh=finder.refresh)

        useful = ((search, number) for search, number in requested if not search.is_over)
        pages = ordered_map(read, useful, workers=finder.client.workers)
        with closing(pages):
            for search, page in pages:
                finder.requests += 1
                # If a search covers a single company, its further pages are not extra requests.
                self.agenda.spare -= not (search.is_single and search.pages)
                search.add(page)

    def _evaluate(self, search: CompanySearch) -> range:
        """Finish companies if their pages suffice, and return the page numbers to read next."""
        first = search.companies[0]
        is_proven = self.needs_proof or first.is_proven or bool(first.kept)
        positions = search.company_positions(trusts_single=is_proven)
        if (positions < 0).any():
            if search.is_single:
                # People of an earlier value may be missing too, so search all values once more.
                self.agenda.remove(search.companies)
            else:
                self.agenda.shrink_groups(search.companies)
            return range(0)
        is_new = search.is_new(positions)
        seen, new = (
            np.bincount(some, minlength=len(search.companies))
            for some in (positions, positions[is_new])
        )
        missing = np.array([company.missing for company in search.companies]) - new
        finished = missing <= 0
        if further := self._further_pages(search, seen[~finished], float(missing.max())):
            return range(search.pages + 1, search.pages + 1 + further)
        if search.is_single or (search.is_complete and not search.received):
            finished[:] = True
        elif search.is_complete:
            # Only a search without results proves that a company has no people.
            for company in np.flatnonzero(~finished & (seen == 0)).tolist():
                search.companies[company].is_proven = False
            finished |= (seen > 0) | (not self.needs_proof)
        self._keep(search, np.flatnonzero(finished), positions, is_new)
        still_open = {
            search.companies[position]: int(seen[position])
            for position in np.flatnonzero(~finished).tolist()
        }
        self.agenda.estimate_sizes(
            still_open, search.received, 0 if search.is_complete else search.total or 0
        )
        if not search.is_complete and (search.is_over or not search.received):
            self.agenda.shrink_groups(list(still_open))
        return range(0)

    def _further_pages(
        self, search: CompanySearch, seen: np.ndarray[Any, Any], missing: float
    ) -> int:
        """Return how many further pages to read; `seen` counts people per unfinished company."""
        remaining = search.remaining_pages
        if search.is_single:
            return int(min(remaining, max(0, np.ceil(missing / search.size))))
        total = search.received if search.total is None else search.total
        people = seen.sum() * total / max(search.received, 1)
        present = int(np.count_nonzero(seen))
        return remaining if self.agenda.is_worth_reading(remaining, present, people) else 0

    def _keep(
        self,
        search: CompanySearch,
        finished: np.ndarray[Any, Any],
        positions: np.ndarray[Any, Any],
        is_new: np.ndarray[Any, Any],
    ) -> None:
        ids = search.people.column("id")
        selected: list[np.ndarray[Any, Any]] = [np.empty(0, dtype=np.int64)]
        for position in finished.tolist():
            company = search.companies[position]
            found = np.flatnonzero((positions == position) & is_new)
            kept = found[: int(min(company.missing, len(found)))]
            selected.append(kept)
            company.kept += ids.take(pa.array(kept)).to_pylist()
            company.missing -= len(kept)
            self._count(company, search, len(found))
        rows = np.concatenate(selected)
        if len(rows):
            account_rows = np.array([company.account.row for company in search.companies])
            people = search.people.take(pa.array(rows))
            self.finder.batches.append(
                PeopleBatch(people, account_rows[positions[rows]], self.value)
            )
        self.finder.errors.extend(search.errors)
        self.agenda.remove([search.companies[position] for position in finished.tolist()])

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
