"""Which data fields a sequence needs, found out by what the service accepts and refuses.

The service refuses a whole request where one lead lacks a needed field, and need not say which. So
after a refusal, parts of the request are sent, chosen so that each response halves what is left to
find out; every part that is accepted is done with. What was learned holds for the rest of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import NamedTuple


class Parts(NamedTuple):
    """A refused chunk's rows: what to send next, and what to send after that.

    `rest` holds a row that is refused again where the service accepts `first`.
    """

    first: list[int]
    rest: list[int]


class NeededFields:
    """What is known of the fields that a sequence needs.

    Parameters
    ----------
    brought : mapping of int to int
        Which fields each row brings; a set of fields is a number, with one bit for each field.
    """

    def __init__(self, brought: Mapping[int, int]) -> None:
        self._brought = brought
        # Each of these may be needed: no row without it was accepted.
        self._possible = reduce(or_, brought.values(), 0)
        # Each of these sets holds a field that is needed.
        self._guilty: set[int] = set()

    def accepted(self, rows: Iterable[int]) -> None:
        """Learn that the service completed a request with these rows."""
        self._possible = reduce(and_, (self._brought[row] for row in rows), self._possible)
        # A set that is empty by now says nothing: the service refuses for another reason, too.
        self._guilty = {fields & self._possible for fields in self._guilty} - {0}

    def refused(self, rows: Iterable[int]) -> None:
        """Learn that a field is missing from at least one of these rows."""
        self._guilty |= {reduce(or_, map(self._lacking, rows), 0)} - {0}

    def sorted_out(self, rows: Sequence[int]) -> list[list[int]]:
        """Return the rows that may be accepted, and apart from them those that cannot be."""
        bad = {row for row in rows if self._is_bad(self._lacking(row))}
        parts = [[row for row in rows if row not in bad], [row for row in rows if row in bad]]
        return [part for part in parts if part]

    def parts(self, rows: Sequence[int]) -> Parts | None:
        """Return how to go on with rows of which at least one lacks a needed field.

        None where all of them are alike in what they lack, or each is known to lack such a field.
        """
        lacking = {row: self._lacking(row) for row in rows}
        if len(set(lacking.values())) == 1:
            return None
        everything = reduce(or_, lacking.values())
        suspects = self._suspects()

        def rank(row: int) -> tuple[int, int]:
            return (lacking[row] & suspects).bit_count(), lacking[row].bit_count()

        tried: int | None = None
        first: set[int] = set()
        for row in sorted(rows, key=rank):
            if self._is_bad(lacking[row]):
                continue
            wider = lacking[row] | (tried or 0)
            halves = 2 * (wider & suspects).bit_count() <= suspects.bit_count()
            if tried in (None, wider) or (halves and wider != everything):
                tried = wider
                first.add(row)
        if not first:
            return None
        return Parts(
            [row for row in rows if row in first], [row for row in rows if row not in first]
        )

    def _lacking(self, row: int) -> int:
        return self._possible & ~self._brought[row]

    def _is_bad(self, lacking: int) -> bool:
        return any(not fields & ~lacking for fields in self._guilty)

    def _suspects(self) -> int:
        """Return the fields that explain all refusals at once, else those of the narrowest."""
        common = reduce(and_, self._guilty, self._possible)
        return common or min(self._guilty, key=int.bit_count, default=self._possible)
