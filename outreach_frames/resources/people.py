"""People search: filters in, one flat row per person out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.arguments import HEADCOUNTS, Headcount, check_one_of
from outreach_frames.common.progress import progress_bar
from outreach_frames.errors import InvalidResponseError
from outreach_frames.reading.flatten import DtypeBackend, check_dtype_backend, concat_people
from outreach_frames.resources.paging import keeping_partial, report_errors
from outreach_frames.resources.search import Search, report_unknown_values
from outreach_frames.resources.search_arguments import check_filters, check_limit, check_page_size
from outreach_frames.resources.split_search import WholeSearch
from outreach_frames.tables.schema import empty_table, to_frame

_DEPARTMENT_PREFIX = "company_department_headcount_"
_FUNCTION_PREFIX = "company_job_function_headcount_"
_DROPPED: Mapping[str, tuple[str, ...]] = {
    "all": (),
    "department": (_FUNCTION_PREFIX,),
    "none": (_DEPARTMENT_PREFIX, _FUNCTION_PREFIX),
}


def search_people(
    filters: Mapping[str, Any] | None = None,
    *,
    limit: int | None = 1000,
    headcount: Headcount = "all",
    page_size: int | None = None,
    split_by: str | None = None,
    dtype_backend: DtypeBackend = "numpy_nullable",
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Any,
) -> pd.DataFrame:
    """Search people, and return one flat row per person with the company's fields.

    Parameters
    ----------
    filters : mapping, optional
        Search filters by name, for example from `load_filters`.
    limit : int or None
        How many people to read at most; None reads all. A warning says when there are more.
    headcount : {"all", "department", "none"}
        Which of the company's headcount columns to keep: 14 by department and 194 by job function,
        the 14 alone, or none.
    page_size : int, optional
        People per request, 1 to 100; by default as many as are of use.
    split_by : str, optional
        A filter that is given with a list of values. There is one search per value, in the given
        order, and each person comes once, with the first value that found them in a column of the
        filter's name. So the most wanted come first, and more can be read where the service
        limits what one search returns. `limit` is for all values together.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' own nullable dtypes, or Arrow for every column.
    refresh : bool
        Ask the service even where the cache has a fresh response.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, when it takes a while.
    client : Client, optional
        By default the one of the last `connect`.
    **fields
        Search filters by name, such as ``person_titles=["Head of Sales"]``.

    Returns
    -------
    DataFrame
        One row per person in the service's order. Nested fields are joined with `_`, such as
        company_location_details_city. Text is str, counts Int64, numbers Float64, yes or no
        boolean, dates datetime64; experiences, educations, languages and the like are Arrow lists.
        `.attrs` has filters, limit, total, errors, and as fetched_at when the first page came from
        the service, for a search from the cache up to an hour ago. Empty, with all columns, when
        nobody matches. The column of `split_by` is the last one, an ordered category.

    Raises
    ------
    InvalidInputError
        A filter does not exist or has a wrong value; nothing was sent.
    ServiceError
        The service, or the way to it, failed; `.partial` has the people read before.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(person_seniorities=["director"], limit=5, headcount="none")
    ...     people.shape
    (5, 54)
    """
    check_dtype_backend(dtype_backend)
    check_one_of("headcount", headcount, HEADCOUNTS)
    whole = Search(
        resolve(client),
        check_filters(filters, fields),
        limit=check_limit(limit),
        page_size=check_page_size(page_size),
        refresh=refresh,
    )
    search = WholeSearch(whole, split_by)
    with progress_bar(search.limit, description="people", unit="people", progress=progress) as bar:

        def show(rows: int) -> None:
            bar.total = search.expected
            bar.update(rows)

        return read_frame(search, headcount, dtype_backend, show)


def read_frame(
    search: WholeSearch,
    headcount: Headcount,
    dtype_backend: DtypeBackend,
    show: Callable[[int], None],
) -> pd.DataFrame:
    """Read a search to its end as `search_people` returns it; `show` hears how many came."""
    tables: list[pa.Table] = []

    def taken() -> pa.Table:
        people = concat_people(tables or [empty_table(spec.PERSON)])
        tables.clear()  # a search of many people is then in memory only once
        return people

    def frame_so_far() -> pd.DataFrame:
        return search.labelled(with_headcount(to_frame(taken(), dtype_backend), headcount))

    with keeping_partial(frame_so_far):
        for table in search.tables():
            tables.append(table)
            show(table.num_rows)
            del table
    frame = frame_so_far()
    search.report(len(frame))
    frame.attrs.update(search.attrs)
    return frame


def with_headcount(people: pd.DataFrame, headcount: Headcount) -> pd.DataFrame:
    """Return people with no more headcount columns than are wanted."""
    dropped = _DROPPED[headcount]
    return people[[name for name in people.columns if not name.startswith(dropped)]]


def count_people(
    filters: Mapping[str, Any] | None = None,
    *,
    refresh: bool = False,
    client: Client | None = None,
    **fields: Any,
) -> int:
    """Count the people whom a search would find, with one small request.

    Parameters
    ----------
    filters : mapping, optional
        Search filters by name.
    refresh : bool
        Ask the service even where the cache has a fresh response.
    client : Client, optional
        By default the one of the last `connect`.
    **fields
        Search filters by name.

    Returns
    -------
    int
        How many people match.

    Raises
    ------
    InvalidInputError
        A filter does not exist or has a wrong value; nothing was sent.
    ServiceError
        The service, or the way to it, failed.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     of.count_people()
    2000
    """
    search = Search(
        resolve(client),
        check_filters(filters, fields),
        limit=1,
        page_size=spec.MIN_SEARCH_PAGE_SIZE,
        refresh=refresh,
    )
    total = search.count()
    if total is None:
        raise InvalidResponseError(
            f"{spec.SEARCH_PEOPLE.label}: the response gives no valid total."
        )
    report_errors(search.errors)
    if total == 0:
        report_unknown_values(search.filters)
    return total
