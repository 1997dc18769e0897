"""Describe the limitations of a comparison of two tables of people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from outreach_frames.common import terms
from outreach_frames.common.text import listed
from outreach_frames.history.snapshots import filter_differences
from outreach_frames.history.source import Source
from outreach_frames.identity.matching import Matching

_NAMES: Final = ("before", "after")
_SHOWN: Final = 5


def describe(what: str, things: Sequence[object]) -> Iterator[str]:
    """Yield a message that lists the first of some things, or nothing without any.

    >>> list(describe("The searches have no filters", ["before"]))
    ["The searches have no filters: 'before'."]
    """
    if len(things):
        yield f"{what}: {listed(things, _SHOWN)}."


def describe_searches(sides: Sequence[Source], people: Matching) -> Iterator[str]:
    """Yield messages on the searches' differences, incompleteness and reported errors."""
    old, new = (side.attrs.get("filters") for side in sides)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        before, after = (side.attrs.get("limit") for side in sides)
        differences = filter_differences({**old, "limit": before}, {**new, "limit": after})
        if differences:
            yield f"The searches differ: {'; '.join(differences)}."
    matched_sides = people.before, people.after
    for name, side, matched in zip(_NAMES, sides, matched_sides, strict=True):
        total = known_total(side)
        present = side.rows - len(matched.repeated)
        if total is not None and present < total:
            yield f"{name!r} is incomplete: it has {present:,} of {total:,} matching people."
        errors = side.attrs.get("errors")
        if isinstance(errors, Sequence):
            yield from describe(f"The service reported errors for {name!r}", errors)


def describe_unknown_filters(sides: Sequence[Source]) -> Iterator[str]:
    """Yield a message if the filters of either table are unknown."""
    unknown = [
        name
        for name, side in zip(_NAMES, sides, strict=True)
        if not isinstance(side.attrs.get("filters"), Mapping)
    ]
    yield from describe(
        terms.wording(
            "The searches may differ, because these tables have no filters in .attrs, which many "
            "pandas operations drop",
            in_shell="The searches may differ, because these tables do not record their filters",
        ),
        unknown,
    )


def describe_skipped_rows(people: Matching) -> Iterator[str]:
    """Yield messages on rows that were not compared."""
    for name, side in zip(_NAMES, (people.before, people.after), strict=True):
        yield from describe(
            f"Positions in {name!r} of rows that repeat an earlier person and were not compared",
            side.repeated.tolist(),
        )
        yield from describe(
            f"Positions in {name!r} of rows without id and URL /in/<name>, which were not compared",
            side.keyless.tolist(),
        )


def describe_ids(who: str, new: Sequence[str], shared: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield messages on new ids in 'after', and on ids per table that share a profile URL."""
    yield from describe(f"{who} with a new id in 'after', matched by profile URL", new)
    for name, ids in zip(_NAMES, shared, strict=True):
        yield from describe(
            f"{who} in {name!r} with the profile URL of a row with another id, counted once", ids
        )


def describe_skipped_columns(before: Source, after: Source) -> Iterator[str]:
    """Yield messages on columns that only one table has."""
    for name, side, other in (("before", before, after), ("after", after, before)):
        known = set(other.columns)
        alone = [column for column in side.columns if column not in known]
        yield from describe(f"Columns only in {name!r}, which were not compared", alone)


def known_total(side: Source) -> int | None:
    """Return the service's count of people, or None if it is unknown."""
    total: Any = side.attrs.get("total")
    return total if isinstance(total, int) and not isinstance(total, bool) else None
