"""Describe the limitations of a comparison of two tables of people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from outreach_frames.common.text import plural, quoted, shorten
from outreach_frames.history.snapshots import filter_differences
from outreach_frames.history.source import Source
from outreach_frames.identity.matching import Matching

_NAMES: Final = ("before", "after")
_SHOWN: Final = 5


def describe_searches(before: Source, after: Source, people: Matching) -> Iterator[str]:
    """Yield messages on the searches' differences, incompleteness and reported errors."""
    old, new = before.attrs.get("filters"), after.attrs.get("filters")
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        if differences := filter_differences(old, new):
            yield f"The filters differ: {'; '.join(differences)}."
        limits = [side.attrs.get("limit") for side in (before, after)]
        if limits[0] != limits[1]:
            shown = ["none" if limit is None else _limit_text(limit) for limit in limits]
            yield f"The limits differ: {shown[0]} in 'before', {shown[1]} in 'after'."
    rows = people.before, people.after
    for name, side, own in zip(_NAMES, (before, after), rows, strict=True):
        total = known_total(side)
        present = side.rows - len(own.repeated)
        if total is not None and present < total:
            yield f"{name!r} is incomplete: it has {present:,} of {total:,} matching people."
        errors = side.attrs.get("errors")
        if isinstance(errors, Sequence) and errors:
            count = plural(len(errors), "error")
            yield f"The service reported {count} for {name!r}: {shorten(repr(errors[0]))}"


def describe_unknown_filters(before: Source, after: Source) -> Iterator[str]:
    """Yield a message if the filters of either table are unknown."""
    unknown = [
        name
        for name, side in zip(_NAMES, (before, after), strict=True)
        if not isinstance(side.attrs.get("filters"), Mapping)
    ]
    if unknown:
        yield (
            f"The filters, limit and total of {' and '.join(map(repr, unknown))} are unknown, so "
            "the searches may differ. The filters are in .attrs, which many pandas operations drop."
        )


def describe_skipped_rows(people: Matching) -> Iterator[str]:
    """Yield messages on rows that were not compared."""
    for name, side in zip(_NAMES, (people.before, people.after), strict=True):
        if count := len(side.repeated):
            verb = "repeats" if count == 1 else "repeat"
            yield (
                f"{plural(count, 'row')} in {name!r} {verb} a person of an earlier row; only the "
                "first row was compared."
            )
        if count := len(side.keyless):
            have, were = ("has", "was") if count == 1 else ("have", "were")
            yield (
                f"{plural(count, 'row')} in {name!r} {have} neither an id nor a profile URL "
                f"/in/<name> and {were} not compared."
            )


def describe_new_ids(ids: Sequence[str], one: str, several: str, key: str) -> Iterator[str]:
    """Yield a message on people or companies with a new id that were matched by another key."""
    if ids:
        count = plural(len(ids), f"{one} has", f"{several} have")
        shown = _listed([*map(quoted, ids)])
        yield f"{count} a different id in 'after' (matched by {key}): {shown}."


def describe_shared_keys(
    ids: Sequence[Sequence[str]], one: str, several: str, key: str
) -> Iterator[str]:
    """Yield messages on people or companies with two ids in the same table."""
    for name, own in zip(_NAMES, ids, strict=True):
        if own:
            count = plural(len(own), f"{one} in {name!r} has", f"{several} in {name!r} have")
            shown = _listed([*map(quoted, own)])
            reason = f"the {key} of a row with another id"
            yield f"{count} {reason}; duplicates are counted once: {shown}."


def describe_unknown_employers(ids: Sequence[str]) -> Iterator[str]:
    """Yield a message on people whose employer is known in only one table."""
    if ids:
        count = plural(len(ids), "person", "people")
        yield (
            f"The employers of {count} cannot be compared, because the employer is missing in one "
            f"table: {_listed([*map(quoted, ids)])}."
        )


def describe_skipped_columns(before: Source, after: Source) -> Iterator[str]:
    """Yield messages on columns that only one table has."""
    for name, side, other in (("before", before, after), ("after", after, before)):
        alone = [column for column in side.columns if column not in set(other.columns)]
        if alone:
            columns = _listed(alone)
            yield f"Only {name!r} has these columns, which were not compared: {columns}."


def _listed(names: Sequence[str]) -> str:
    """Join the first few names, and append the number of others."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _limit_text(limit: object) -> str:
    return f"{limit:,}" if isinstance(limit, int) else quoted(limit)


def known_total(side: Source) -> int | None:
    """Return the service's count of people, or None if it is unknown."""
    total: Any = side.attrs.get("total")
    return total if isinstance(total, int) and not isinstance(total, bool) else None
