"""Choose the companies to search together, so that few requests are needed.

One search covers many companies if few people match. If many people match, the largest companies
fill the pages, and the other companies are searched again: in smaller groups of similar size.

All searches together take at most as many requests as a separate search of each company, plus 10 %
of the number of companies, at least one. `spare` is the number of extra requests still allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from outreach_frames import spec
from outreach_frames.accounts.companies import FOUND, NOBODY, Account, Outcome

PAGE: Final = spec.MAX_SEARCH_PAGE_SIZE
# The service documents no limit of values per filter; 500 domains take 15 KB.
MAX_GROUP: Final = 500
# To finish most companies of similar size, read 1.5 x `per_company` people per company.
_READ_FACTOR: Final = 1.5
# More pages per search waste less of the last page, but make wrong size estimates more expensive.
_PAGES: Final = 3
_COMPANIES_PER_SPARE: Final = 10


@dataclass(eq=False)
class Company:
    """The search progress of one company."""

    account: Account
    missing: float  # number of people still to find; inf for all
    kept: list[str | None] = field(default_factory=list)  # person ids
    total: int | None = 0  # None if some people were not counted
    detail: str = ""
    is_finished: bool = False
    is_proven: bool = True  # False if a search for other companies' people had none of this company
    size: float = 0.0  # estimated number of matching people; 0 if unknown
    max_group: int = MAX_GROUP

    def outcome(self) -> Outcome:
        """Return the outcome of the row that names this company."""
        if not self.is_finished:
            return Outcome(
                None, self.detail or "the search stopped before this company was finished"
            )
        if self.kept:
            return Outcome(FOUND, self.detail, self.total)
        detail = f"no person matches the {self.account.kind.noun} {self.account.label}"
        return Outcome(NOBODY, self.detail or detail, self.total)


class Agenda:
    """The unfinished companies, and the number of extra requests allowed for them."""

    def __init__(
        self, companies: Iterable[Company], per_company: int | None, max_group: int = MAX_GROUP
    ) -> None:
        self.open: dict[Company, None] = dict.fromkeys(companies)
        self.per_company = per_company
        self.spare: int = len(self.open) // _COMPANIES_PER_SPARE
        self._has_failed_group = False
        for company in self.open:
            company.size, company.max_group = 0.0, max_group

    def next_searches(self) -> list[list[Company]]:
        """Return groups of companies; each group is one search."""
        groups: list[list[Company]] = []
        for company in sorted(self.open, key=lambda one: (one.size, -one.max_group)):
            # Only a search without results proves that its companies have no people, so companies
            # of unknown size get separate groups.
            is_first = not groups or (company.size and not groups[-1][0].size)
            if is_first or len(groups[-1]) >= self._group_limit(company):
                groups.append([])
            groups[-1].append(company)
        shared = [group for group in groups if len(group) > 1]
        alone = [group for group in groups if len(group) == 1]
        # Always allow one shared search until a shared search fails.
        affordable = max(self.spare, 0 if self._has_failed_group else 1)
        return shared[:affordable] + alone or [[company] for company in self.open]

    def _group_limit(self, company: Company) -> float:
        limit = company.max_group
        if self.spare <= 0 and self.per_company is not None and self.per_company > 1:
            # A full page certainly finishes one company of a group of this size.
            limit = min(limit, (PAGE - 1) // (self.per_company - 1))
        if not company.size:
            return limit
        needed = company.size if self.per_company is None else _READ_FACTOR * self.per_company
        return min(limit, max(PAGE / needed, _PAGES * PAGE / company.size))

    def is_worth_reading(self, pages: int, present: int, people: float) -> bool:
        """Return whether `pages` more pages are worth reading for `present` open companies."""
        if self.per_company is None:
            # Separate searches of the companies would need these pages too.
            return self.spare <= 0 or pages <= present + self.spare
        needed = min(people, _READ_FACTOR * self.per_company * present)
        return pages <= min(present + max(self.spare, 0), ceil(needed / PAGE))

    def remove(self, companies: Sequence[Company]) -> None:
        """Remove finished companies, and allow one extra request per removed company."""
        self.spare += len(companies)
        for company in companies:
            del self.open[company]

    def estimate_sizes(self, seen: Mapping[Company, int], read: int, total: int) -> None:
        """Estimate each company's number of people from a sample, shrunk towards the mean."""
        mean = max(sum(seen.values()), 1) / max(len(seen), 1)
        for company, count in seen.items():
            company.size = total / read / 2 * (count + mean) if read else 0.0

    def shrink_groups(self, companies: Sequence[Company]) -> None:
        """Reduce the group size of companies that a shared search did not finish."""
        self._has_failed_group = True
        for company in companies:
            company.max_group = max(1, len(companies) // 4)
