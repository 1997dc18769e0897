"""Find the rows because of which the service refused a request: one strategy per kind of refusal.

The service refuses a request as a whole. `ByPointer` continues without the rows that the service
points at, `ByFields` looks for a required field that rows lack, and `ByHalves` sends each half.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from outreach_frames.errors import OutreachError

# Each refusal because of single rows settles a row, so their number is not limited; but after this
# number in a row, the service may be refusing all rows.
MAX_POINTED_IN_A_ROW: Final = 64
# The maximum numbers of further requests by halves for a chunk, and for all chunks of a run.
MAX_REQUESTS: Final = 64
MAX_REQUESTS_OF_RUN: Final = 640
# A chunk's halves, quarters and eighths, which are sent first. If all are refused, and so are the
# parts of an eighth down to single rows, the request itself is at fault.
LARGE_PARTS: Final = 2 + 4 + 8
MAX_REFUSED_PARTS: Final = 24


class Chunk(NamedTuple):
    """A request's rows, its chunk number, and whether the request has only part of the chunk."""

    number: int
    positions: Sequence[int]
    is_part: bool = False
    by_halves: ByHalves | None = None
    # Whether the next part has a refused row if this part is accepted.
    is_first_half: bool = False


@dataclass(eq=False)
class ByPointer:
    """Send a refused request again without the rows that the service points at."""

    # The number of refusals because of single rows since the last accepted request.
    refused_in_a_row: int = 0

    def next_parts(self, chunk: Chunk, pointed: Collection[int]) -> list[Chunk]:
        """Return the rows without the pointed ones as a part; none if the chunk ends."""
        self.refused_in_a_row += 1
        if chunk.by_halves is not None:
            chunk.by_halves.has_progress = True
        others = [row for index, row in enumerate(chunk.positions) if index not in pointed]
        if not others or self.reason_to_end():
            return []
        return [Chunk(chunk.number, others, is_part=True)]

    def reason_to_end(self) -> str:
        """Return, after a refusal, why its rows are not sent again, or an empty text."""
        if self.refused_in_a_row % MAX_POINTED_IN_A_ROW:
            return ""
        return f"{MAX_POINTED_IN_A_ROW} requests in a row were refused because of single rows"


class ByFields:
    """Send rows that may lack a required field apart from rows that have more fields.

    The service refuses a request if one lead lacks a field that the sequence requires, and may not
    name the field, so required fields are inferred from accepted and refused requests. A set of
    fields is an integer with one bit per field.
    """

    def __init__(self, fields_of_row: Mapping[int, int]) -> None:
        self._fields_of_row = fields_of_row
        # The fields that may be required: every accepted row had all of them.
        self._possible = reduce(or_, fields_of_row.values(), 0)
        # Each of these sets contains at least one required field.
        self._suspect_sets: set[int] = set()

    def record_accepted(self, rows: Sequence[int]) -> None:
        """Rule out the fields that an accepted row lacks."""
        for row in rows:
            self._possible &= self._fields_of_row[row]
        # An empty set means that the request was refused for another reason.
        self._suspect_sets = {fields & self._possible for fields in self._suspect_sets} - {0}

    def next_parts(self, chunk: Chunk) -> list[Chunk]:
        """Split a refused chunk into the rows that may be accepted, and the others."""
        lacking = {row: self._possible & ~self._fields_of_row[row] for row in chunk.positions}
        # One of the fields that any of the rows lacks is required.
        self._suspect_sets |= {reduce(or_, lacking.values())} - {0}
        if any(map(self._is_refused, chunk.positions)):
            return self.split(chunk)
        fullest_first = sorted(set(lacking.values()), key=int.bit_count)
        fuller = fullest_first[: len(fullest_first) // 2]
        return _divide(chunk, {row for row in chunk.positions if lacking[row] in fuller})

    def split(self, chunk: Chunk) -> list[Chunk]:
        """Split off the rows that would certainly be refused; return nothing if all or none are."""
        return _divide(chunk, {row for row in chunk.positions if not self._is_refused(row)})

    def _is_refused(self, row: int) -> bool:
        """Return whether the row certainly lacks a required field."""
        fields = self._fields_of_row[row]
        return any(not fields & suspects for suspects in self._suspect_sets)


def _divide(chunk: Chunk, first: Collection[int]) -> list[Chunk]:
    """Divide a chunk into these rows and the others; return nothing if either part is empty."""
    others = [row for row in chunk.positions if row not in first]
    if not first or not others:
        return []
    parts = [row for row in chunk.positions if row in first], others
    return [chunk._replace(positions=part, is_part=True, is_first_half=False) for part in parts]


@dataclass(eq=False)
class ByHalves:
    """Send the halves of a refused chunk's parts, until each refused part is a single row."""

    last_refusal: OutreachError
    requests: int = 0
    # Whether a part was accepted, or refused because of single rows.
    has_progress: bool = False

    def next_parts(self, part: Chunk, waiting: list[Chunk], *, is_too_large: bool) -> list[Chunk]:
        """Return the chunk's waiting parts and the halves of a refused part, in sending order."""
        rows, half = part.positions, len(part.positions) // 2
        # All rows of a request that was too large may be accepted in smaller requests.
        first = Chunk(part.number, rows[:half], True, self, is_first_half=not is_too_large)
        second = Chunk(part.number, rows[half:], True, self)
        # If no large part was accepted, small parts show whether any row is.
        if is_too_large or (self.requests >= LARGE_PARTS and not self.has_progress):
            return [first, second, *waiting]
        return [*waiting, first, second]

    def parts_after_accepted(self, accepted: Chunk, waiting: list[Chunk]) -> list[Chunk]:
        """Return the waiting parts; after a first half, divide the second, which is at fault."""
        self.has_progress = True
        if not accepted.is_first_half or len(waiting[0].positions) == 1:
            return waiting
        return self.next_parts(waiting[0], waiting[1:], is_too_large=False)

    def reason_to_end(self, requests_of_run: int) -> str:
        """Return why the chunk's other rows are not sent again, or an empty text."""
        if self.requests >= MAX_REFUSED_PARTS and not self.has_progress:
            return f"none of {MAX_REFUSED_PARTS} further requests was accepted"
        if self.requests >= MAX_REQUESTS:
            return f"{MAX_REQUESTS} further requests did not find all refused rows"
        if requests_of_run >= MAX_REQUESTS_OF_RUN:
            return f"{MAX_REQUESTS_OF_RUN} further requests of this run looked for such rows"
        return ""
