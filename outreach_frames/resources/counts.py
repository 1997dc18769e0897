"""Count the people that searches find, in parallel and per filter value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any, Final

import pandas as pd

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common import terms
from outreach_frames.common.arguments import check_list, suggestion
from outreach_frames.common.parallel import ordered_map
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.resources.paging import keeping_partial, report_errors
from outreach_frames.resources.search import count_matches, report_unknown_values

_COUNTABLE: Final = [known.name for known in spec.FILTERS if not known.excludes]
# The values to count by, per filter.
Values = Mapping[str, Sequence[Any]]


def count_searches(
    client: Client,
    searches: Iterable[Mapping[str, Any]],
    framed: Callable[[list[int]], pd.DataFrame],
    *,
    refresh: bool,
    progress: bool | None,
) -> pd.DataFrame:
    """Count the people of checked searches in parallel, and return the counts as a frame.

    After an error, `.partial` has the earlier counts. If the service reports errors with its
    results, warn once.
    """
    pending = list(searches)
    counts: list[int] = []
    errors: list[Any] = []
    with (
        progress_bar(
            len(pending), description="Counting", unit="searches", progress=progress
        ) as bar,
        keeping_partial(lambda: framed(counts), client),
    ):
        count = partial(count_matches, client, refresh=refresh)
        for total, reported in ordered_map(count, pending, workers=client._session.workers):
            counts.append(total)
            errors += reported
            bar.update(1)
    report_errors(errors)
    return framed(counts)


def values_to_count(
    filters: Mapping[str, Any], by: str | Iterable[str], *, is_sandbox: bool
) -> Values:
    """Return the values of each filter in `by`: the search's values, else those of the sandbox.

    >>> by = ["company_types", "company_focuses"]
    >>> values_to_count({"company_types": ["nonprofit"]}, by, is_sandbox=True)
    {'company_types': ['nonprofit'], 'company_focuses': ['b2b', 'b2c']}
    """
    names = [by] if isinstance(by, str) else check_list("by", by)
    if not names:
        raise InvalidInputError(f"{terms.name('by')} is empty. Pass a filter's name, or omit it.")
    counted: list[str] = []
    for given in names:
        name = str(given)
        if given not in _COUNTABLE:
            raise InvalidInputError(
                f"{terms.argument('by', given)} is not a filter that includes people."
                f"{suggestion(name, _COUNTABLE)} {terms.call('filters')} to list all filters."
            )
        if name in counted:
            raise InvalidInputError(
                f"{terms.name('by')} has {name!r} twice. Pass each filter once."
            )
        counted.append(name)
    return {name: _values(name, filters.get(name), is_sandbox=is_sandbox) for name in counted}


def _values(name: str, given: Any, *, is_sandbox: bool) -> Sequence[Any]:
    known = spec.FILTERS_BY_NAME[name]
    if given is not None:
        return list(dict.fromkeys(given)) if isinstance(given, list) else [given]
    if known.type == "boolean":
        return [True, False]
    # A single known value is an example, not a list.
    if len(known.suggestions) < 2 or not is_sandbox:
        raise InvalidInputError(
            f"The service's values of {known.name} are not known. Pass "
            f"{terms.argument(known.name)} too, with the values to count."
        )
    return list(known.suggestions)


def count_by(
    client: Client,
    filters: Mapping[str, Any],
    values: Values,
    *,
    max_requests: int | None,
    refresh: bool,
    progress: bool | None,
) -> pd.DataFrame:
    """Count the people of a search per combination of filter values."""
    names = ", ".join(values)
    requests = 1 + prod(map(len, values.values()))
    if max_requests is not None and requests > max_requests:
        raise InvalidInputError(
            f"Counting by {names} takes {requests:,} requests, one per row and one for the total: "
            f"more than {terms.argument('max_requests', max_requests)}. Pass fewer values or "
            f"filters, or {terms.argument('max_requests', requests)}."
        )
    rows = list(product(*values.values()))
    is_list = [spec.FILTERS_BY_NAME[name].type == "array" for name in values]
    searches = [filters]
    for row in rows:
        cells = ([cell] if listed else cell for cell, listed in zip(row, is_list, strict=True))
        searches.append({**filters, **dict(zip(values, cells, strict=True))})

    def framed(counts: list[int]) -> pd.DataFrame:
        people = counts[1:]
        frame = pd.DataFrame(
            {
                name: pd.Categorical(
                    [row[level] for row in rows[: len(people)]], list(values[name]), ordered=True
                )
                for level, name in enumerate(values)
            }
        ).assign(people=pd.array(people, dtype="Int64"))
        frame.attrs.update(filters=dict(filters), total=next(iter(counts), None))
        return frame

    frame = count_searches(client, searches, framed, refresh=refresh, progress=progress)
    total = frame.attrs["total"]
    # The table shows which of its values match nobody.
    others = {name: value for name, value in filters.items() if not total or name not in values}
    report_unknown_values(client, others, is_empty=total == 0)
    if (counted := int(frame["people"].sum())) != total:
        reason = "some people match several" if counted > total else "the others match none"
        warn(
            f"The counts add up to {counted:,}, but the search finds "
            f"{plural(total, 'person', 'people')}: {reason} of these values of {names}."
        )
    return frame
