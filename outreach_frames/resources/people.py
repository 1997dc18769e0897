"""Search and count people."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, Unpack, overload

import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common import terms
from outreach_frames.common.arguments import HEADCOUNTS, Headcount, check_choice
from outreach_frames.common.cancellation import Progress, notify
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.text import plain_names
from outreach_frames.errors import InvalidInputError
from outreach_frames.reading.flatten import (
    DtypeBackend,
    check_dtype_backend,
    concat_people,
    seen_columns,
    select_columns,
)
from outreach_frames.reading.untyped_reader import RAW_SUFFIX
from outreach_frames.resources.counts import (
    count_by,
    values_to_count,
)
from outreach_frames.resources.paging import keeping_partial, report_errors
from outreach_frames.resources.people_filters import PeopleFilters
from outreach_frames.resources.search import Search, count_matches, report_unknown_values
from outreach_frames.resources.search_arguments import (
    DEFAULT_LIMIT,
    DefaultLimit,
    check_columns,
    check_filters,
    check_limit,
    check_page_size,
    shows_filters,
)
from outreach_frames.tables.schema import empty_table, to_frame

_COLUMNS: Final = spec.columns(spec.PERSON)
_LOGGER: Final = logging.getLogger(__name__)
_DEPARTMENT_PREFIX = "company_department_headcount_"
_FUNCTION_PREFIX = "company_job_function_headcount_"
_DROPPED: Mapping[str, tuple[str, ...]] = {
    "all": (),
    "department": (_FUNCTION_PREFIX,),
    "none": (_DEPARTMENT_PREFIX, _FUNCTION_PREFIX),
}


@shows_filters()
def search_people(
    filters: Mapping[str, Any] | str | PathLike[str] | None = None,
    *,
    columns: Sequence[str] | None = None,
    limit: int | None = DEFAULT_LIMIT,
    headcount: Headcount = "all",
    page_size: int | None = None,
    split_by: str | None = None,
    dtype_backend: DtypeBackend = "numpy_nullable",
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Unpack[PeopleFilters],
) -> pd.DataFrame:
    """Search people and return one row per person, including the company's fields.

    Parameters
    ----------
    filters : mapping or path, optional
        Search filters by name, or the path of a search that `save_filters` saved.
    columns : list of str, optional
        The columns to return, in this order: columns of `of.columns()`, ``<column>_raw``, and
        columns of undocumented fields that this process has read before, from a search or a file.
        If nobody has an undocumented field, its column has only missing values. All other columns
        are not built, which saves time and memory; cached responses keep all columns.
    limit : int or None
        Maximum number of people to read. None reads all. If more people match, `.attrs["total"]`
        has their number; with the default limit, a warning says so, too.
    headcount : {"all", "department", "none"}
        Headcount columns of the company to keep: 14 by department and 194 by job function, only
        the 14, or none. `columns` must not have a column that `headcount` excludes.
    page_size : int, optional
        People per request, 1 to 100; chosen automatically by default.
    split_by : str, optional
        A filter whose values are searched one by one, in the given order. Each person is returned
        once, with the first matching value in a column with the filter's name. List preferred
        values first. Splitting also finds more people if the service limits the results of one
        search. `limit` applies to all values together.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' nullable dtypes, or Arrow dtypes for all columns.
    refresh : bool
        Ask the service even if the cache has a fresh response.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, for long runs.
    client : Client, optional
        By default the client of the last `connect`.
    **fields
        Search filters by name, such as ``person_titles=["Head of Sales"]``; they override
        `filters`.

    Returns
    -------
    DataFrame
        One row per person in the service's order; empty, with all columns, if nobody matches.
        Names of nested fields are joined with `_`, such as company_location_details_city. Text is
        str, counts Int64, other numbers Float64, flags boolean, dates datetime64; lists such as
        experiences, educations and languages are Arrow lists. The column of `split_by` is an
        ordered category, and the last column unless it is in `columns`. `.attrs` has filters,
        limit, total, errors, fetched_at (the time of the service's first response, up to an hour
        ago if cached) and undocumented (the columns of undocumented fields that were read; if all
        `columns` are documented, these fields are skipped).

    Raises
    ------
    InvalidInputError
        A filter or column does not exist or a value is invalid; nothing was sent.
    ServiceError
        The service failed or could not be reached; `.partial` has the people before the error.

    Warns
    -----
    OutreachWarning
        More people match than the default limit, the service reported errors, or a chosen column
        lacks values because the service sent values of the wrong type. Nobody matches, or the
        sandbox does not know a filter value.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(
    ...         person_seniorities=["vp"], person_departments=["marketing"], limit=None
    ...     )
    >>> people[["name", "title", "company_size"]]
                      name                             title company_size
    0  Jean-Pierre Lefèvre           VP of Product Marketing   5001-10000
    1      Martina Mancini            VP Technical Marketing   5001-10000
    2       Grace Fletcher  Vice President, Public Relations      201-500
    3       Thomas Tindall       VP Strategic Communications       10001+
    4       Nathan Bennett       VP Strategic Communications    1001-5000
    """
    check_dtype_backend(dtype_backend)
    check_choice("headcount", headcount, HEADCOUNTS)
    chosen = check_columns(columns, [split_by])
    check_headcount(headcount, chosen)
    search = Search(
        resolve(client),
        check_filters(filters, fields, search_people),
        limit=check_limit(limit),
        page_size=check_page_size(page_size),
        refresh=refresh,
        columns=without_added(chosen, [split_by]),
        split_by=split_by,
        warns_of_limit=isinstance(limit, DefaultLimit),
    )
    stored = search.load()
    tables: list[pa.Table] = [] if stored is None else [stored]
    del stored

    def joined() -> pa.Table:
        people = concat_people(tables or [empty_table(spec.PERSON)])
        tables.clear()  # keep only one copy of a large result
        return people if search.columns is None else select_columns(people, search.columns)

    def frame_so_far() -> pd.DataFrame:
        frame = with_headcount(to_frame(joined(), dtype_backend), headcount)
        frame = search.add_split_column(frame)
        return frame if chosen is None else frame[chosen]

    if not tables:
        bar = progress_bar(search.limit, description="people", unit="people", progress=progress)
        with bar, keeping_partial(frame_so_far, search.client):
            for table in search.tables():
                tables.append(table)
                bar.total = search.expected
                bar.update(table.num_rows)
                notify(Progress(search.rows, search.expected))
                del table
        tables = [joined()]
        search.save(tables[0])
    frame = frame_so_far()
    read = frame.columns if chosen is None else search.undocumented
    frame.attrs.update(search.attrs, undocumented=undocumented_columns(read, search.split_by))
    with keeping_partial(lambda: frame):
        search.report(len(frame))
    return frame


def undocumented_columns(columns: Iterable[str], split_by: str | None = None) -> list[str]:
    """List the columns of undocumented fields, and log each column once."""
    known = {*_COLUMNS, *(f"{name}{RAW_SUFFIX}" for name in _COLUMNS), split_by}
    undocumented = [name for name in columns if name not in known]
    if new := set(undocumented) - seen_columns:
        seen_columns.update(new)
        _LOGGER.info("undocumented fields of people: %s", plain_names(new))
    return undocumented


def without_added(columns: Sequence[str] | None, added: Iterable[str | None]) -> list[str] | None:
    """Return the columns to read: the chosen columns without the added columns, or only `id`."""
    if columns is None:
        return None
    return [name for name in columns if name not in [*added]] or ["id"]


def check_headcount(headcount: Headcount, columns: Sequence[str] | None) -> None:
    """Raise an error if the chosen columns contain headcounts that `headcount` excludes."""
    excluded = [name for name in columns or () if name.startswith(_DROPPED[headcount])]
    if excluded:
        raise InvalidInputError(
            f"{terms.name('columns')} has {excluded[0]!r}, which "
            f"{terms.argument('headcount', headcount)} excludes. Omit "
            f"{terms.argument('headcount')} or this column."
        )


def with_headcount(people: pd.DataFrame, headcount: Headcount) -> pd.DataFrame:
    """Return people with only the requested headcount columns."""
    dropped = _DROPPED[headcount]
    if not dropped:
        return people  # selecting all columns would copy each of them
    return people[[name for name in people.columns if not name.startswith(dropped)]]


@overload
def count_people(
    filters: Mapping[str, Any] | str | PathLike[str] | None = None,
    *,
    by: None = None,
    max_requests: int | None = 200,
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Unpack[PeopleFilters],
) -> int: ...
@overload
def count_people(
    filters: Mapping[str, Any] | str | PathLike[str] | None = None,
    *,
    by: str | Iterable[str],
    max_requests: int | None = 200,
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Unpack[PeopleFilters],
) -> pd.DataFrame: ...
@shows_filters()
def count_people(
    filters: Mapping[str, Any] | str | PathLike[str] | None = None,
    *,
    by: str | Iterable[str] | None = None,
    max_requests: int | None = 200,
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Unpack[PeopleFilters],
) -> int | pd.DataFrame:
    """Count the people that a search would find, as a whole or per value of a filter.

    Each count is one small request.

    Parameters
    ----------
    filters : mapping or path, optional
        Search filters by name, or the path of a search that `save_filters` saved.
    by : str or list of str, optional
        A filter, to count the people per value; or several filters, to count the people per
        combination of values. The values are the search's values in the given order, else True and
        False or, only with the sandbox, those in `filters()`.
    max_requests : int or None
        Maximum number of requests with `by`, which takes one request per row and one for the
        total. None sets no maximum.
    refresh : bool
        Ask the service even if the cache has a fresh response.
    progress : bool, optional
        Show a progress bar with `by`; by default in a notebook or terminal, for long runs.
    client : Client, optional
        By default the client of the last `connect`.
    **fields
        Search filters by name; they override `filters`.

    Returns
    -------
    int or DataFrame
        The number of matching people. With `by`, one row per value or combination: a column per
        filter (named like the filter; category, in the order of the values) and `people` (Int64).
        `.attrs["total"]` is the count of the whole search; `.attrs["filters"]` has its filters.

    Raises
    ------
    InvalidInputError
        A filter does not exist or its value is invalid, the values of a filter in `by` are neither
        known nor in the search, or `by` needs more requests than `max_requests`; nothing was sent.
    ServiceError
        The service failed or could not be reached; `.partial` has the counts before the error.

    Warns
    -----
    OutreachWarning
        Nobody matches, the service reported errors, or the sandbox does not know a value. With
        `by`, the rows do not add up to the total, because people match several values or no value.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     of.count_people()
    ...     of.count_people(by="person_seniorities", person_seniorities=["vp", "c_suite"])
    2000
      person_seniorities  people
    0                 vp      61
    1            c_suite      46
    """
    connected, body = resolve(client), check_filters(filters, fields, count_people)
    most = check_limit(max_requests, "max_requests")
    if by is not None:
        values = values_to_count(body, by, is_sandbox=connected._session.is_sandbox)
        return count_by(
            connected, body, values, max_requests=most, refresh=refresh, progress=progress
        )
    total, errors = count_matches(connected, body, refresh=refresh)
    report_errors(errors, body)
    report_unknown_values(connected, body, is_empty=total == 0)
    return total
