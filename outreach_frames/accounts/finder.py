"""The run behind `find_people`: searches in rounds, until every company is settled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final

import numpy as np
import pyarrow as pa

from outreach_frames.accounts.companies import FOUND, KINDS, NOBODY, Account, Outcome
from outreach_frames.accounts.questions import MOST_TOGETHER, PAGE, Agenda, estimates
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
class Company:
    """The progress of one company; `total` is None where not everybody was counted."""

    account: Account
    kept: int = 0
    total: int | None = 0
    detail: str = ""
    ids: set[str] = field(default_factory=set)
    is_settled: bool = False

    def outcome(self) -> Outcome:
        """Return what became of it."""
        if not self.is_settled:
            return Outcome(None, self.detail or "not settled before the failure")
        if self.kept:
            return Outcome(FOUND, self.detail, self.total)
        detail = f"nobody matches with the {self.account.kind.noun} {self.account.name}"
        return Outcome(NOBODY, self.detail or detail, self.total)


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
                numbers = [
                    number
                    for number, company in enumerate(self.companies)
                    if company.account.kind is kind and not company.is_settled
                ]
                alone = kind.column is None or bool(filters.get(_WIDENS))
                agenda = Agenda(numbers, self.most, 1 if alone else MOST_TOGETHER)
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
            searches = [self._search(members) for members in self.agenda.next_searches()]
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

    def _search(self, members: Sequence[int]) -> CompanySearch:
        accounts = [self.finder.companies[member].account for member in members]
        size = PAGE if len(members) > 1 else min(PAGE, self.finder.most or PAGE)
        return CompanySearch(members, accounts, self.filters, size)

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
                self.agenda.spent += not (search.is_alone and search.pages)
                search.take(page)

    def _judge(self, search: CompanySearch) -> range:
        """Settle whom a search settles, and return the pages of it that are worth reading."""
        places = search.places()
        if (places < 0).any():
            self._give_up(search)
            return range(0)
        is_new = self._is_new(search, places)
        seen = np.bincount(places, minlength=len(search.members))
        new = np.bincount(places[is_new], minlength=len(search.members))
        enough = new >= self._needs(search)
        if not search.is_over and (pages := self._worth_reading(search, seen, new, enough)):
            return range(search.pages + 1, search.pages + 1 + pages)
        settled = enough.copy()
        if search.is_alone or (search.is_whole and not search.received):
            settled[:] = True
        elif search.is_whole:
            # That nobody came of a company is proof only where nobody came at all.
            settled |= seen > 0
        self._keep(search, np.flatnonzero(settled), places, is_new)
        still_open = {
            search.members[place]: int(seen[place]) for place in np.flatnonzero(~settled).tolist()
        }
        if search.is_over and not search.is_whole:
            self._give_up(search)
        elif search.is_whole:
            self.agenda.guess(dict.fromkeys(still_open, 0.0))
        else:
            self.agenda.guess(estimates(still_open, search.received, search.total or 0))
        return range(0)

    def _give_up(self, search: CompanySearch) -> None:
        """Ask again, fewer at a time: the search does not tell whose people it found."""
        members = [member for member in search.members if member in self.agenda.open]
        if members:
            self.agenda.suspect(members)

    def _needs(self, search: CompanySearch) -> np.ndarray[Any, Any]:
        most = self.finder.most
        if most is None:
            return np.full(len(search.members), np.inf)
        return np.array([most - self.finder.companies[member].kept for member in search.members])

    def _is_new(self, search: CompanySearch, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return which people did not come before, on other pages or by an earlier value."""
        is_new = search.is_first(places)
        known = [self.finder.companies[member].ids for member in search.members]
        if any(known):
            pairs = zip(search.people.column("id").to_pylist(), places.tolist(), strict=True)
            is_new &= np.array([identity not in known[place] for identity, place in pairs], bool)
        return is_new

    def _worth_reading(
        self,
        search: CompanySearch,
        seen: np.ndarray[Any, Any],
        new: np.ndarray[Any, Any],
        enough: np.ndarray[Any, Any],
    ) -> int:
        """Return how many further pages of a search to read."""
        left = search.pages_left
        if enough.all():
            return 0
        if search.is_alone:
            wanted = self._needs(search)[0] - new[0]
            return left if np.isinf(wanted) else min(left, ceil(wanted / search.size))
        counts = {
            search.members[place]: int(seen[place]) for place in np.flatnonzero(~enough).tolist()
        }
        total = search.total if search.total is not None else search.received
        return left if self.agenda.is_worth_reading(left, search.received, counts, total) else 0

    def _keep(
        self,
        search: CompanySearch,
        settled: np.ndarray[Any, Any],
        places: np.ndarray[Any, Any],
        is_new: np.ndarray[Any, Any],
    ) -> None:
        """Keep the people of the companies that the search has settled."""
        needs = self._needs(search)
        ids = search.people.column("id")
        chosen: list[np.ndarray[Any, Any]] = [np.empty(0, dtype=np.int64)]
        for place in settled.tolist():
            company = self.finder.companies[search.members[place]]
            found = np.flatnonzero((places == place) & is_new)
            kept = found[: int(min(needs[place], len(found)))]
            chosen.append(kept)
            company.kept += len(kept)
            company.ids.update(ids.take(pa.array(found)).drop_null().to_pylist())
            self._count(company, search, len(found))
        rows = np.concatenate(chosen)
        account_rows = np.array([account.row for account in search.accounts])[places[rows]]
        people = search.people.take(pa.array(rows))
        if len(rows):
            self.finder.chosen.append(Chosen(people, account_rows, self.value))
        self.finder.errors.extend(search.errors)
        self.agenda.settle(search.members[place] for place in settled.tolist())

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
        if self.is_last or company.kept == self.finder.most:
            company.is_settled = True
            company.total = company.total if self.is_last else None
            self.finder.show(1)
