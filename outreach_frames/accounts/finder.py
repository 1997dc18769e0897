"""Repeat the searches of `find_people` until every company is finished.

One search covers up to 500 companies. If its results have too many pages, the companies that have
enough people on the first page are finished, and the others are searched in smaller groups.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames.accounts.companies import IDENTIFIER_KINDS, RowResult
from outreach_frames.accounts.result import (
    SENIORITIES,
    list_once,
    merged,
    people_table,
)
from outreach_frames.accounts.searches import (
    PAGE_SIZE,
    CompanyProgress,
    CompanySearch,
    PeopleBatch,
)
from outreach_frames.client.client import Client
from outreach_frames.common.parallel import ordered_map
from outreach_frames.reading.fast_reader import PeoplePage
from outreach_frames.reading.flatten import DtypeBackend

# This filter also finds people at subsidiaries; the results do not show which searched company
# matched.
AFFILIATES_FILTER: Final = "company_domains_match_subsidiaries_and_affiliates"
# The service documents no limit of values per filter; 500 domains take 15 KB.
_MAX_GROUP: Final = 500
# A group that is divided is searched in groups of the next smaller power of this number.
_DIVISOR: Final = 4
# Read on if the remaining pages hold about as many people as are missing, and half more.
_READ_FACTOR: Final = 1.5

Group = Sequence[CompanyProgress]
Request = tuple[CompanySearch, int]  # a search and the number of a page


class Decision(NamedTuple):
    """How to continue a search, by the positions of its companies.

    Read more pages of it, finish companies, and search others in smaller groups.
    """

    pages: int = 0
    finished: Sequence[int] = ()
    divided: Sequence[int] = ()


@dataclass
class Finder:
    """Searches companies until each has enough people or no further matches."""

    client: Client
    filters: Mapping[str, Any]
    split_by: str | None
    companies: Sequence[CompanyProgress]
    index: pd.Index[Any]  # labels of the table's rows
    per_company: int | None
    refresh: bool
    columns: Sequence[str] | None = None  # columns to read; all by default
    on_finished: Callable[[int], object] = int
    batches: list[PeopleBatch] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    requests: int = 0

    def people(
        self, outcomes: Mapping[int, RowResult], dtype_backend: DtypeBackend
    ) -> tuple[pd.DataFrame, dict[int, RowResult]]:
        """Return the people found so far, and the outcome of each row."""
        searched = {company.account.row: company.outcome() for company in self.companies}
        batch = merged(self.batches)
        rows, explained = list_once(batch, {**outcomes, **searched}, self.index)
        people = people_table(
            batch, rows, dtype_backend, self.split_by, self.filters, columns=self.columns
        )
        return people, explained

    def run(self) -> None:
        """Search the companies for each value of `split_by`, else of the seniorities."""
        filters = self.filters
        by_seniority = self.split_by is None and SENIORITIES in filters
        order_by = SENIORITIES if by_seniority else self.split_by
        values = [None] if order_by is None else [*dict.fromkeys(filters[order_by])]
        searches = [
            (filters if order_by is None else {**filters, order_by: [value]}, value)
            for value in values
        ]
        for kind in IDENTIFIER_KINDS:
            companies = [company for company in self.companies if company.account.kind is kind]
            is_alone = kind.column is None or bool(filters.get(AFFILIATES_FILTER))
            groups = _groups(companies, 1 if is_alone else _MAX_GROUP)
            self._find(groups, searches, trusts_single=is_alone or len(values) == 1)
            # A search of its company alone finds a person who shows another company.
            unproven = [company for company in companies if not company.is_finished]
            alone: list[Group] = [[company] for company in unproven if company.is_unlike]
            unseen = [company for company in unproven if not company.is_unlike]
            checks = [CompanySearch(group, filters, 1) for group in _groups(unseen, _MAX_GROUP)]
            self._repeat(checks, partial(self._check, alone=alone))
            self._find(alone, searches, trusts_single=True)

    def _find(
        self,
        groups: Sequence[Group],
        searches: Sequence[tuple[Mapping[str, Any], str | None]],
        *,
        trusts_single: bool,
    ) -> None:
        """Find each company's people for each value, until the company has enough."""
        for company in chain(*groups):
            company.start(len(searches))
        for filters, value in searches:
            open_groups = [[company for company in group if company.is_open] for group in groups]
            self._repeat(
                [self._search(group, filters) for group in open_groups if group],
                partial(self._evaluate, value=value, trusts_single=trusts_single),
            )

    def _search(self, companies: Group, filters: Mapping[str, Any]) -> CompanySearch:
        size = PAGE_SIZE if len(companies) > 1 else min(PAGE_SIZE, self.per_company or PAGE_SIZE)
        return CompanySearch(companies, filters, size, self.columns)

    def _repeat(
        self,
        searches: Iterable[CompanySearch],
        evaluate: Callable[[CompanySearch], Iterable[Request]],
    ) -> None:
        """Read the first pages of searches, then those that their evaluation requests."""
        requests = [(search, 1) for search in searches]
        while requests:
            active = dict.fromkeys(search for search, _ in requests)
            try:
                with closing(self._read(requests)) as pages:
                    for _ in pages:
                        pass
            finally:
                # Pages read before a failure may finish some companies.
                requests = [
                    request for search in active if search.pages for request in evaluate(search)
                ]

    def _read(self, requests: Iterable[Request]) -> Generator[CompanySearch]:
        """Read pages in parallel, and yield the search of each."""

        def read(request: Request) -> tuple[CompanySearch, PeoplePage]:
            search, number = request
            return search, search.read(number, self.client, refresh=self.refresh)

        useful = (request for request in requests if not request[0].is_over)
        with closing(ordered_map(read, useful, workers=self.client._session.workers)) as pages:
            for search, page in pages:
                self.requests += 1
                self.errors.extend(page.errors)
                search.add(page)
                yield search

    def _check(self, search: CompanySearch, alone: list[Group]) -> Iterator[Request]:
        """Finish companies without people; request smaller groups, or add a company to `alone`."""
        if search.is_complete and not search.received:
            for company in search.companies:
                company.start(0)
            self.on_finished(len(search.companies))
        elif search.is_single:
            alone.append(search.companies)
        else:
            for group in _groups(search.companies, _part_size(len(search.companies))):
                yield CompanySearch(group, search.filters, 1), 1

    def _evaluate(
        self, search: CompanySearch, value: str | None, *, trusts_single: bool
    ) -> Iterator[Request]:
        """Keep the people of finished companies; request further pages, or smaller groups."""
        companies = search.companies
        positions = search.company_positions(trusts_single or bool(companies[0].kept))
        new_people = search.new_people(positions)
        decision = decide(
            [company.missing for company in companies],
            [*map(len, new_people)],
            per_company=self.per_company,
            page_size=search.size,
            remaining_pages=search.remaining_pages,
            is_complete=search.is_complete,
            has_unrequested=-1 in positions,
        )
        companies[0].is_unlike = search.is_single and -1 in positions
        for number in range(search.pages + 1, search.pages + 1 + decision.pages):
            yield search, number
        if decision.finished:
            self._keep(search, decision.finished, new_people, value)
        remaining = [companies[place] for place in decision.divided]
        for group in _groups(remaining, _part_size(len(companies))):
            yield self._search(group, search.filters), 1

    def _keep(
        self,
        search: CompanySearch,
        places: Sequence[int],
        new_people: Sequence[Sequence[int]],
        value: str | None,
    ) -> None:
        """Keep the people of companies; `new_people` has the rows of each company."""
        rows: list[int] = []
        account_rows: list[int] = []
        ids = search.people.column("id")
        for place in places:
            company = search.companies[place]
            new = new_people[place]
            kept = new[: int(min(company.missing, len(new)))]
            company.add(search, ids.take(pa.array(kept, pa.int64())).to_pylist(), len(new))
            rows += kept
            account_rows += [company.account.row] * len(kept)
        if rows:
            people = search.people.take(pa.array(rows))
            values = np.full(len(rows), value, dtype=object)
            self.batches.append(PeopleBatch(people, np.array(account_rows), values))
        self.on_finished(sum(search.companies[place].is_finished for place in places))


def decide(
    missing: Sequence[float],
    new_people: Sequence[int],
    *,
    per_company: int | None,
    page_size: int,
    remaining_pages: int,
    is_complete: bool,
    has_unrequested: bool,
) -> Decision:
    """Decide how to continue the search of a group, by the counts of the pages read so far.

    `missing` has the number of people that each company still needs, `new_people` the number
    received. With `has_unrequested`, some people show a company outside the group: they may be at
    any of its companies, so that each is searched alone in the end.

    >>> counts = {"per_company": 2, "page_size": 100, "is_complete": False}
    >>> decide([2, 2, 2], [9, 1, 0], **counts, remaining_pages=1, has_unrequested=False).pages
    1
    >>> decide([2, 2, 2], [9, 1, 0], **counts, remaining_pages=8, has_unrequested=False)
    Decision(pages=0, finished=[0], divided=[1, 2])
    """
    everyone = [*range(len(missing))]
    is_single = len(everyone) == 1
    if has_unrequested:
        return Decision() if is_single else Decision(divided=everyone)
    unfinished = [place for place in everyone if new_people[place] < missing[place]]
    if is_single:
        needed = max(0, missing[0] - new_people[0]) / page_size
        pages = ceil(min(remaining_pages, needed))
    else:
        # At most a page per company on the page, for as many people as are missing and half more.
        partly_filled = sum(new_people[place] > 0 for place in unfinished)
        share_of_page = min(1, _READ_FACTOR * (per_company or page_size) / page_size)
        is_worthwhile = remaining_pages <= ceil(share_of_page * partly_filled)
        pages = remaining_pages if is_worthwhile else 0
    if pages:
        return Decision(pages=pages)
    if is_complete or is_single:
        return Decision(finished=everyone)
    finished = [place for place in everyone if place not in unfinished]
    return Decision(finished=finished, divided=unfinished)


def _groups(companies: Group, size: int) -> list[Group]:
    return [companies[start : start + size] for start in range(0, len(companies), size)]


def _part_size(size: int) -> int:
    """Return the largest power of four below a group's size, with the fewest searches at worst.

    >>> [_part_size(size) for size in (2, 4, 5, 16, 17, 500)]
    [1, 1, 4, 4, 16, 256]
    """
    part = 1
    while part * _DIVISOR < size:
        part *= _DIVISOR
    return part
