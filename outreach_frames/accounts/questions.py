"""Which companies to ask about in one search, so that few requests are needed: pure.

Many companies fit into one search where few people match. Where many match, the companies with
most people fill the pages, and the others have to be asked about again: those that have all they
need are left out of the next search, and companies of about the same size go together.

What is promised holds whatever the sizes are: no more than one request per company, plus a tenth.
`spare` counts how many requests may still lead to nothing without breaking that; a search that
settles one company or more has paid for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from outreach_frames import spec
from outreach_frames.accounts.companies import FOUND, NOBODY, Account, Outcome

PAGE: Final = spec.MAX_SEARCH_PAGE_SIZE
# The service's own limit is not shown; a list this long is 15 KB of domains.
MOST_TOGETHER: Final = 500
# Reading this many times what is needed, most companies of like size have what they need.
_READ_FOR_ONE: Final = 1.5
# How many pages to read at once: whole pages are used better, a wrong guess costs more.
_PAGES: Final = 3
_SHARE_TO_SPARE: Final = 10


@dataclass(eq=False)
class Company:
    """The progress of one company.

    `missing` is how many more people are wanted, `kept` the ids of those who were found. `total` is
    None where not everybody was counted. `size` is how many people probably match, 0 before
    anything is known, and `together` the most companies that it may be asked about with.
    """

    account: Account
    missing: float
    kept: list[str | None] = field(default_factory=list)
    total: int | None = 0
    detail: str = ""
    is_settled: bool = False
    size: float = 0.0
    together: int = MOST_TOGETHER

    def outcome(self) -> Outcome:
        """Return the outcome of the company's row."""
        if not self.is_settled:
            return Outcome(None, self.detail or "not settled before the failure")
        if self.kept:
            return Outcome(FOUND, self.detail, self.total)
        detail = f"nobody matches with the {self.account.kind.noun} {self.account.name}"
        return Outcome(NOBODY, self.detail or detail, self.total)


class Agenda:
    """The companies that are still open, and how many requests may be wasted on them.

    Parameters
    ----------
    companies : iterable of Company
        The companies to ask about.
    most : int or None
        People wanted of each, None for all.
    together : int
        The most companies that one search may ask about.
    """

    def __init__(
        self, companies: Iterable[Company], most: int | None, together: int = MOST_TOGETHER
    ) -> None:
        self.open: dict[Company, None] = dict.fromkeys(companies)
        self.most = most
        self.spare: int = len(self.open) // _SHARE_TO_SPARE
        self._met_strangers = False
        for company in self.open:
            company.size, company.together = 0.0, together

    def next_searches(self) -> list[list[Company]]:
        """Return companies to ask about next, those of one search together."""
        groups: list[list[Company]] = []
        for company in sorted(self.open, key=lambda one: (one.size, -one.together)):
            # Only a search that finds nobody at all proves that nobody is there.
            is_first = not groups or (company.size and not groups[-1][0].size)
            if is_first or len(groups[-1]) >= self._most_together(company):
                groups.append([])
            groups[-1].append(company)
        shared = [group for group in groups if len(group) > 1]
        alone = [group for group in groups if len(group) == 1]
        # The first search of all is made on trust that people can be told apart by company.
        affordable = max(self.spare, 0 if self._met_strangers else 1)
        return shared[:affordable] + alone or [[company] for company in self.open]

    def _most_together(self, company: Company) -> float:
        most = company.together
        if self.spare <= 0 and self.most is not None and self.most > 1:
            # So few that one page is sure to settle one of them.
            most = min(most, (PAGE - 1) // (self.most - 1))
        if not company.size:
            return most
        wanted = company.size if self.most is None else _READ_FOR_ONE * self.most
        return min(most, max(PAGE / wanted, _PAGES * PAGE / company.size))

    def is_worth_reading(self, pages: int, present: int, people: float) -> bool:
        """Whether to read the rest of a search, or to ask again about who is still open in it.

        Parameters
        ----------
        pages : int
            How many pages there are still.
        present : int
            How many of its open companies have people on the pages that were read.
        people : float
            How many people these companies probably have.
        """
        if self.most is None:
            # Read alone, each of them would need its part of these pages as well.
            return self.spare <= 0 or pages <= present + self.spare
        anew = min(people, _READ_FOR_ONE * self.most * present)
        return pages <= min(present + max(self.spare, 0), ceil(anew / PAGE))

    def settle(self, companies: Sequence[Company]) -> None:
        """Take companies off the agenda."""
        self.spare += len(companies)
        for company in companies:
            del self.open[company]

    def guess(self, seen: Mapping[Company, int], read: int, total: int) -> None:
        """Guess how many people of each company match, when some of them were read.

        A company that a sample shows once may have one person or many; so every guess is drawn
        towards the mean of all.
        """
        mean = max(sum(seen.values()), 1) / max(len(seen), 1)
        for company, count in seen.items():
            company.size = total / read / 2 * (count + mean) if read else 0.0

    def suspect(self, companies: Sequence[Company]) -> None:
        """Note that a search of these companies does not tell whose people it found."""
        self._met_strangers = True
        for company in companies:
            company.together = max(1, len(companies) // 4)
