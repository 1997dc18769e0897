"""List the search filters, and find the filters that make a search empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Unpack

import msgspec
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.pandas_versions import STR
from outreach_frames.resources.counts import count_searches
from outreach_frames.resources.people_filters import PeopleFilters
from outreach_frames.resources.search import report_unknown_values
from outreach_frames.resources.search_arguments import check_filters, shows_filters

Filters = Mapping[str, Any]
_COLUMNS = {"filter": STR, "value": STR, "people_without": "Int64", "people_alone": "Int64"}
_LIST_OF_TEXT = pd.ArrowDtype(pa.list_(pa.string()))


def filters() -> pd.DataFrame:
    """List the filters of `search_people`.

    Returns
    -------
    DataFrame
        One row per filter: `name`, `type` (string, boolean or array), `group` (str), `values` (a
        list of the sandbox's values; the interface does not list those of a service), `excludes`
        (str: the filter whose matches this filter excludes, if any), `meaning` (str: the interface
        document's words, if any) and `example` (a valid value: str, True or a list of str).

    Notes
    -----
    Interface: POST /people/search. The interface does not say how text is matched: try it with
    `of.count_people`.

    Examples
    --------
    >>> table = filters().set_index("name")
    >>> table.loc["person_exclude_locations", "excludes"]
    'person_locations'
    >>> table.loc["person_locations", "example"]
    ['Germany']
    """
    known: list[Sequence[str] | None] = [entry.suggestions or None for entry in spec.FILTERS]
    return pd.DataFrame(
        {
            "name": pd.array([entry.name for entry in spec.FILTERS], dtype=STR),
            "type": pd.array([entry.type for entry in spec.FILTERS], dtype=STR),
            "group": pd.array([entry.group for entry in spec.FILTERS], dtype=STR),
            "values": pd.Series(known, dtype=_LIST_OF_TEXT),
            "excludes": pd.array([entry.excludes or None for entry in spec.FILTERS], dtype=STR),
            "meaning": pd.array([entry.note or None for entry in spec.FILTERS], dtype=STR),
            "example": pd.Series([_example(entry) for entry in spec.FILTERS], dtype=object),
        }
    )


def _example(entry: spec.Filter) -> str | bool | list[str]:
    if entry.type == "boolean":
        return True
    included = spec.FILTERS_BY_NAME[entry.excludes or entry.name]
    text = entry.example or (entry.suggestions or [included.example])[0]
    return [text] if entry.type == "array" else text


@shows_filters()
def explain_search(
    filters: Mapping[str, Any] | str | PathLike[str] | None = None,
    *,
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Unpack[PeopleFilters],
) -> pd.DataFrame:
    """Count the people that a search finds without each filter and value, and with it alone.

    If the search finds nobody, drop a filter or value whose `people_without` is not 0. If all are
    0, several filters exclude everybody: begin with those whose `people_alone` is small. The counts
    take at most two small requests per row, and one for the whole search.

    Parameters
    ----------
    filters : mapping or path, optional
        Search filters by name, or the path of a search that `save_filters` saved.
    refresh : bool
        Ask the service even if the cache has a fresh response.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, for long runs.
    client : Client, optional
        By default the client of the last `connect`.
    **fields
        Search filters by name; they override `filters`.

    Returns
    -------
    DataFrame
        Columns `filter`, `value` (str), `people_without` (Int64: the number of people found without
        that filter or value) and `people_alone` (Int64: the number found with that filter or value
        and no other). A filter with several values has a row for the whole filter, with a missing
        value, and then one row per value. `.attrs["total"]` is the count of the whole search.

    Raises
    ------
    InvalidInputError
        A filter does not exist or its value is invalid; nothing was sent.
    ServiceError
        The service failed or could not be reached; `.partial` has the rows before the error.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     of.explain_search(person_seniorities=["vp"], company_names=["Nobody & Sons"])
                   filter          value  people_without  people_alone
    0  person_seniorities             vp               0            61
    1       company_names  Nobody & Sons              61             0
    """
    client = resolve(client)
    body = check_filters(filters, fields, explain_search)
    rows = list(_searches(body))
    # A search is counted once, even if several rows need it.
    needed = [body, *(search for _, _, *pair in rows for search in pair)]
    searches = {msgspec.json.encode(search): search for search in needed}

    def framed(counts: list[int]) -> pd.DataFrame:
        people = dict(zip(searches, counts, strict=False))
        counted = [
            (name, value, *(people.get(msgspec.json.encode(search)) for search in pair))
            for name, value, *pair in rows
        ]
        known = [row for row in counted if None not in row[2:]]
        frame = pd.DataFrame(known, columns=list(_COLUMNS)).astype(_COLUMNS)
        frame.attrs.update(filters=body, total=next(iter(counts), None))
        return frame

    frame = count_searches(client, searches.values(), framed, refresh=refresh, progress=progress)
    report_unknown_values(client, body, is_empty=frame.attrs["total"] == 0, is_explained=True)
    return frame


def _searches(body: Filters) -> Iterator[tuple[str, str | None, Filters, Filters]]:
    """Yield filter, value, and the searches without and with it; the value is None for a filter."""
    for name, value in body.items():
        others = {other: given for other, given in body.items() if other != name}
        values: Sequence[Any] = list(dict.fromkeys(value)) if isinstance(value, list) else [value]
        if len(values) == 1:
            yield name, str(values[0]), others, {name: value}
            continue
        yield name, None, others, {name: value}
        for text in values:
            without = {**body, name: [other for other in values if other != text]}
            yield name, text, without, {name: [text]}
