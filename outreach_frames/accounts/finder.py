"""The run behind `find_people`: searches in rounds, until every company is settled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from outreach_frames.accounts.companies import KINDS
from outreach_frames.accounts.questions import MOST_TOGETHER, PAGE, Agenda, Company
from outreach_frames.accounts.searches import CompanySearch
from outreach_frames.client.client import Client
from outreach_frames.common.parallel import ordered_map
from outreach_frames.errors import OutreachError
from outreach_frames.reading.fast_reader import PeoplePage

# With this filter a company's search finds people of other companies too, and nothing in a person
# tells which of the companies asked about they came with.
_WIDENS: Final = "company_domains_match_subsidiaries_and_affiliates"


@dataclass(frozen=True, slots=True)
class Chosen:
    """People found, the account's row of each, and the filter value that found them."""

    people: pa.Table
    account_rows: np.ndarray[Any, Any]
    value: str | None


@dataclass
class Finder:
    """Asks about accounts until each has as many people as wanted, or has no more.

    Parameters
    ----------
    client : Client
        Whom to ask.
    companies : sequence of Company
        Each once.
    most : int or None
        People per company, None for all.
    refresh : bool
        Ask the service even where the cache has a fresh response.
    show : callable
        Hears how many companies were settled.
    """

    client: Client
    companies: Sequence[Company]
    most: int | None
    refresh: bool
    show: Callable[[int], object]
    chosen: list[Chosen] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    requests: int = 0

    def run(
        self, filters: Mapping[str, Any], split_by: str | None, values: Sequence[str | None]
    ) -> None:
        """Ask about every company, by each value of `split_by` in turn while people are wanted."""
        for value in values:
            narrowed = filters if split_by is None else {**filters, split_by: [value]}
            for kind in KINDS:
                companies = [
                    company
                    for company in self.companies
                    if company.account.kind is kind and not company.is_settled
                ]
                alone = kind.column is None or bool(filters.get(_WIDENS))
                agenda = Agenda(companies, self.most, 1 if alone else MOST_TOGETHER)
                is_last = value == values[-1]
                _Stage(self, agenda, narrowed, value, len(values) == 1, is_last).run()


@dataclass
class _Stage:
    """All companies of one kind, asked about with one value."""

    finder: Finder
    agenda: Agenda
    filters: Mapping[str, Any]
    value: str | None
    is_only: bool
    is_last: bool

    def run(self) -> None:
        while self.agenda.open:
            searches = [self._search(group) for group in self.agenda.next_searches()]
            wanted = [(search, 1) for search in searches]
            while wanted:
                touched = dict.fromkeys(search for search, _ in wanted)
                try:
                    self._read(wanted)
                except (OutreachError, KeyboardInterrupt):
                    # What came before the failure settles some companies.
                    for search in touched:
                        if search.pages:
                            self._judge(search)
                    raise
                wanted = [(search, page) for search in touched for page in self._judge(search)]

    def _search(self, companies: Sequence[Company]) -> CompanySearch:
        size = PAGE if len(companies) > 1 else min(PAGE, self.finder.most or PAGE)
        return CompanySearch(companies, self.filters, size)

    def _read(self, wanted: Iterable[tuple[CompanySearch, int]]) -> None:
        finder = self.finder

        def read(request: tuple[CompanySearch, int]) -> tuple[CompanySearch, PeoplePage]:
            search, number = request
            return search, search.read(number, finder.client, refresh=finder.refresh)

        useful = ((search, number) for search, number in wanted if not search.is_over)
        pages = ordered_map(read, useful, workers=finder.client.workers)
        with closing(pages):
            for search, page in pages:
                finder.requests += 1
                # A company's further pages are not wasted: alone it would need them as well.
                self.agenda.spare -= not (search.is_alone and search.pages)
                search.take(page)

    def _judge(self, search: CompanySearch) -> range:
        """Settle whom a search settles, and return the pages of it that are worth reading."""
        places = search.places()
        if (places < 0).any():
            self.agenda.suspect(search.companies)
            return range(0)
        is_new = search.is_new(places)
        seen, new = (
            np.bincount(some, minlength=len(search.companies)) for some in (places, places[is_new])
        )
        missing = np.array([company.missing for company in search.companies]) - new
        settled = missing <= 0
        if further := self._worth_reading(search, seen[~settled], float(missing.max())):
            return range(search.pages + 1, search.pages + 1 + further)
        if search.is_alone or (search.is_whole and not search.received):
            settled[:] = True
        elif search.is_whole:
            # That nobody came of a company is proof only where nobody came at all.
            settled |= seen > 0
        self._keep(search, np.flatnonzero(settled), places, is_new)
        still_open = {
            search.companies[place]: int(seen[place]) for place in np.flatnonzero(~settled).tolist()
        }
        self.agenda.guess(still_open, search.received, 0 if search.is_whole else search.total or 0)
        if not search.is_whole and (search.is_over or not search.received):
            self.agenda.suspect(list(still_open))
        return range(0)

    def _worth_reading(
        self, search: CompanySearch, seen: np.ndarray[Any, Any], missing: float
    ) -> int:
        """Return how many further pages to read for open companies of whom so many were seen."""
        left = search.pages_left
        if search.is_alone:
            return int(min(left, max(0, np.ceil(missing / search.size))))
        total = search.received if search.total is None else search.total
        people = seen.sum() * total / max(search.received, 1)
        present = int(np.count_nonzero(seen))
        return left if self.agenda.is_worth_reading(left, present, people) else 0

    def _keep(
        self,
        search: CompanySearch,
        settled: np.ndarray[Any, Any],
        places: np.ndarray[Any, Any],
        is_new: np.ndarray[Any, Any],
    ) -> None:
        """Keep the people of the companies that the search has settled."""
        ids = search.people.column("id")
        chosen: list[np.ndarray[Any, Any]] = [np.empty(0, dtype=np.int64)]
        for place in settled.tolist():
            company = search.companies[place]
            found = np.flatnonzero((places == place) & is_new)
            kept = found[: int(min(company.missing, len(found)))]
            chosen.append(kept)
            company.kept += ids.take(pa.array(kept)).to_pylist()
            company.missing -= len(kept)
            self._count(company, search, len(found))
        rows = np.concatenate(chosen)
        if len(rows):
            account_rows = np.array([company.account.row for company in search.companies])
            people = search.people.take(pa.array(rows))
            self.finder.chosen.append(Chosen(people, account_rows[places[rows]], self.value))
        self.finder.errors.extend(search.errors)
        self.agenda.settle([search.companies[place] for place in settled.tolist()])

    def _count(self, company: Company, search: CompanySearch, found: int) -> None:
        """Note how many people match, and whether that is all that is wanted of the company."""
        if search.is_whole and company.total is not None:
            company.total += found
        else:
            company.total = search.total if search.is_alone and self.is_only else None
        if search.is_alone and search.is_over and not search.is_whole:
            company.detail = (
                f"the service counts {search.total:,} people and returned {search.received:,}"
            )
        if self.is_last or not company.missing:
            company.is_settled = True
            company.total = company.total if self.is_last else None
            self.finder.show(1)
