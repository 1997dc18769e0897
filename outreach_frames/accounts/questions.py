"""Which companies to ask about in one search, so that few requests are needed: pure.

Many companies fit into one search where few people match. Where many match, the companies with
most people fill the pages, and the rest has to be asked about again: those that have all they need
are left out of the next search, and companies of about the same size go together.

What is promised holds whatever the sizes are: no more than one request per company, plus a tenth.
`spare` counts how many requests may still lead to nothing without breaking that; a search that
settles one company or more has paid for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Final

from outreach_frames import spec

PAGE: Final = spec.MAX_SEARCH_PAGE_SIZE
# The service's own limit is not shown; a list this long is 15 KB of domains.
MOST_TOGETHER: Final = 500
# Reading this many times what is needed, most companies of like size have what they need.
_READ_FOR_ONE: Final = 1.5
# How many people to ask for at once: whole pages are used better, a wrong guess costs more.
_AIM: Final = 3 * PAGE
_SHARE_TO_SPARE: Final = 10


@dataclass
class Open:
    """A company that is still to be settled.

    `size` is how many people of it probably match, None before anything is known; `together` the
    most companies that it may be asked about with.
    """

    size: float | None = None
    together: int = MOST_TOGETHER


@dataclass
class Agenda:
    """The companies that are still open, and what may be spent on them.

    Parameters
    ----------
    companies : iterable of int
        Whom to ask about.
    most : int or None
        People wanted of each, None for all.
    together : int
        The most companies that one search may ask about.
    """

    companies: Iterable[int]
    most: int | None
    together: int = MOST_TOGETHER
    open: dict[int, Open] = field(init=False)
    limit: int = field(init=False)
    spent: int = 0
    met_strangers: bool = False

    def __post_init__(self) -> None:
        self.open = {company: Open(together=self.together) for company in self.companies}
        self.limit = len(self.open) + len(self.open) // _SHARE_TO_SPARE

    @property
    def spare(self) -> int:
        """How many requests may lead to nothing."""
        return self.limit - self.spent - len(self.open)

    def next_searches(self) -> list[tuple[int, ...]]:
        """Return companies to ask about next, those of one search together."""
        groups, alone = self._groups()
        # The first search of all is made on trust that people can be told apart by company.
        affordable = max(self.spare, 0 if self.met_strangers else 1)
        chosen = groups[:affordable]
        if not chosen and not alone:
            return [(company,) for company in self.open]
        return [*chosen, *((company,) for company in alone)]

    def _groups(self) -> tuple[list[tuple[int, ...]], list[int]]:
        groups: list[tuple[int, ...]] = []
        alone: list[int] = []
        group: list[int] = []
        expected = 0.0

        def close() -> None:
            nonlocal expected
            if len(group) == 1:
                alone.append(group[0])
            elif group:
                groups.append(tuple(group))
            group.clear()
            expected = 0.0

        for company, state in sorted(self.open.items(), key=_by_size):
            together = min(state.together, MOST_TOGETHER if self.spare > 0 else self._safe)
            cost = self._cost(state)
            is_new = not group or len(group) >= together or expected + cost > self._aim(state)
            # Only a search that finds nobody at all proves that nobody is there.
            if is_new or (cost and not expected):
                close()
            group.append(company)
            expected += cost
        close()
        return groups, alone

    @property
    def _safe(self) -> int:
        """How many companies may share a search that is sure to settle one of them."""
        if self.most is None or self.most == 1:
            return MOST_TOGETHER
        return max(1, (PAGE - 1) // (self.most - 1))

    def _cost(self, state: Open) -> float:
        """Return how many people have to be read for a company."""
        if state.size is None:
            return 0.0
        return min(state.size, _READ_FOR_ONE * (self.most or inf))

    def _aim(self, state: Open) -> float:
        return _AIM if state.size is None or state.size <= self._cost(state) else PAGE

    def is_worth_reading(self, pages: int, read: int, seen: Mapping[int, int], total: int) -> bool:
        """Whether to read the rest of a search, or to ask again about who is still open in it.

        Parameters
        ----------
        pages : int
            How many pages there are still.
        read : int
            How many people were read.
        seen : mapping of int to int
            How many people of each of its open companies are among them.
        total : int
            How many people match.
        """
        present = {company: count for company, count in seen.items() if count}
        is_affordable = pages <= len(present) + max(self.spare, 0)
        if self.most is None:
            # Read alone, each of them would need its part of these pages as well.
            return is_affordable or self.spare <= 0
        sizes = estimates(present, read, total)
        anew = sum(min(size, _READ_FOR_ONE * self.most) for size in sizes.values())
        return bool(present) and is_affordable and pages <= ceil(anew / PAGE)

    def settle(self, companies: Iterable[int]) -> None:
        """Take companies off the agenda."""
        for company in companies:
            del self.open[company]

    def guess(self, sizes: Mapping[int, float]) -> None:
        """Note how many people companies probably have."""
        for company, size in sizes.items():
            self.open[company].size = size

    def suspect(self, companies: Sequence[int]) -> None:
        """Note that a search of these companies does not tell whose people it found."""
        self.met_strangers = True
        for company in companies:
            self.open[company].together = max(1, len(companies) // 4)


def _by_size(item: tuple[int, Open]) -> tuple[bool, float, int, int]:
    company, state = item
    return (state.size is not None, state.size or 0.0, -state.together, company)


def estimates(seen: Mapping[int, int], read: int, total: int) -> dict[int, float]:
    """Guess how many people of each company match, when some of them were read.

    Whom a sample shows once may be the only one or one of many; so every guess is drawn towards
    the mean of all.

    >>> estimates({1: 3, 2: 1}, read=10, total=100)
    {1: 25.0, 2: 15.0}
    """
    if not seen:
        return {}
    mean = max(sum(seen.values()), 1) / len(seen)
    scale = total / read / 2 if read else 0.0
    return {company: scale * (count + mean) for company, count in seen.items()}
