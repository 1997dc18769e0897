"""What to know before a comparison is read: in how far the two sides can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from outreach_frames.common.text import plural, quoted, shorten
from outreach_frames.history.snapshots import filter_differences
from outreach_frames.history.source import Source
from outreach_frames.identity.matching import Matching

_NAMES: Final = ("before", "after")
_SHOWN: Final = 5


def of_searches(before: Source, after: Source, people: Matching) -> Iterator[str]:
    """Say in what the two searches differ, and which of them is incomplete."""
    old, new = before.attrs.get("filters"), after.attrs.get("filters")
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        if differences := filter_differences(old, new):
            yield f"The filters differ: {'; '.join(differences)}."
        limits = [side.attrs.get("limit") for side in (before, after)]
        if limits[0] != limits[1]:
            said = ["none" if limit is None else _written(limit) for limit in limits]
            yield f"The limits differ: {said[0]} before, {said[1]} after."
    rows = people.before, people.after
    for name, side, own in zip(_NAMES, (before, after), rows, strict=True):
        total = counted(side)
        there = side.rows - len(own.repeated)
        if total is not None and there < total:
            yield f"The people {name} are {there:,} of the {total:,} who match."
        errors = side.attrs.get("errors")
        if isinstance(errors, Sequence) and errors:
            count = plural(len(errors), "error")
            yield f"The service reported {count} with the people {name}: {shorten(repr(errors[0]))}"


def of_unknown_searches(before: Source, after: Source) -> Iterator[str]:
    """Say whose filters are not known."""
    unknown = [
        name
        for name, side in zip(_NAMES, (before, after), strict=True)
        if not isinstance(side.attrs.get("filters"), Mapping)
    ]
    if unknown:
        yield (
            "It is not known whether both sides had the same filters, limit and total: the people "
            f"{' and '.join(unknown)} come without them (.attrs, which pandas drops on many "
            "operations)."
        )


def of_rows(people: Matching) -> Iterator[str]:
    """Say which rows were not compared."""
    for name, side in zip(_NAMES, (people.before, people.after), strict=True):
        if count := len(side.repeated):
            verb = "is" if count == 1 else "are"
            yield (
                f"{plural(count, 'row')} {name} {verb} of somebody who has an earlier row there; "
                "the first row was compared."
            )
        if count := len(side.keyless):
            verb = "has" if count == 1 else "have"
            yield (
                f"{plural(count, 'row')} {name} {verb} neither id nor profile URL /in/<name>, and "
                f"{'was' if count == 1 else 'were'} not compared."
            )


def of_new_ids(ids: Sequence[str]) -> Iterator[str]:
    """Name the people who were matched by profile URL although their ids differ."""
    if ids:
        count = plural(len(ids), "person has", "people have")
        yield f"{count} another id after, matched by profile URL: {_listed([*map(quoted, ids)])}."


def of_columns(before: Source, after: Source) -> Iterator[str]:
    """Say which columns only one side has."""
    for name, side, other in (("before", before, after), ("after", after, before)):
        alone = [column for column in side.columns if column not in set(other.columns)]
        if alone:
            yield f"Only the people {name} have these columns, not compared: {_listed(alone)}."


def _listed(names: Sequence[str]) -> str:
    """Join the first few names, and count the rest."""
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


def _written(limit: object) -> str:
    return f"{limit:,}" if isinstance(limit, int) else quoted(limit)


def counted(side: Source) -> int | None:
    """Return how many people the service counted, where that is known."""
    total: Any = side.attrs.get("total")
    return total if isinstance(total, int) and not isinstance(total, bool) else None
