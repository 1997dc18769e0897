"""People search: filters in, one flat row per person out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard, TypeVar

import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.client.response import OversizedResponseError, load_object
from outreach_frames.common.arguments import (
    HEADCOUNTS,
    Headcount,
    check_filters,
    check_limit,
    check_one_of,
    check_page_size,
)
from outreach_frames.common.parallel import ordered_map
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError, InvalidResponseError, OutreachError
from outreach_frames.resources.paging import carry_partial, now, report_errors, report_repeats
from outreach_frames.tables.flatten import (
    DtypeBackend,
    PeoplePage,
    as_one_page,
    check_dtype_backend,
    people_frame,
    read_people_pages,
)

T = TypeVar("T")

# A search whose totals make no sense ends after so many pages in a row with nobody new on them.
_USELESS_PAGES_THAT_END = 3
# Pages that become a table together: the reader needs less time for each then.
_PAGES_AT_ONCE = 6
# A person has some 300 values; where a page has far more, its people are counted first.
_USUAL_VALUES = 1000

_PAGE, _SIZE = (paging.name for paging in spec.SEARCH_PAGING)
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
        How many people to read at the most; None reads all. A warning says when there are more.
    headcount : {"all", "department", "none"}
        Which of the company's headcount columns to keep: 14 by department and 194 by job function,
        the 14 alone, or none.
    page_size : int, optional
        People per request, 1 to 100; by default as many as are of use.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' own nullable dtypes, or Arrow for every column.
    refresh : bool
        Ask the service even where the cache has a fresh answer.
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
        company_location_details_city. Text is str, counts Int64, numbers Float64, switches boolean,
        dates datetime64; experiences, educations, languages and the like are Arrow lists. `.attrs`
        has filters, total, fetched_at and errors. Empty, with all columns, when nobody matches.

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
    search = Search(
        resolve(client),
        check_body(filters, fields),
        limit=check_limit(limit),
        page_size=check_page_size(page_size),
        refresh=refresh,
    )
    with progress_bar(search.limit, description="people", unit="people", progress=progress) as bar:

        def show(rows: int) -> None:
            bar.total = search.expected
            bar.update(rows)

        return read_frame(search, headcount, dtype_backend, show)


def read_frame(
    search: Search, headcount: Headcount, dtype_backend: DtypeBackend, show: Callable[[int], None]
) -> pd.DataFrame:
    """Read a search to its end as `search_people` returns it; `show` hears how many came."""
    tables: list[pa.Table] = []

    def frame_so_far() -> pd.DataFrame:
        return with_headcount(people_frame(tables, dtype_backend), headcount)

    try:
        for table in search.tables():
            tables.append(table)
            show(table.num_rows)
    except (OutreachError, KeyboardInterrupt) as error:
        carry_partial(error, frame_so_far())
        raise
    frame = frame_so_far()
    search.report(len(frame))
    frame.attrs.update(
        filters=search.filters, total=search.total, fetched_at=now(), errors=search.errors
    )
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
        Ask the service even where the cache has a fresh answer.
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
        check_body(filters, fields),
        limit=1,
        page_size=spec.MIN_SEARCH_PAGE_SIZE,
        refresh=refresh,
    )
    page = search.read_pages([1])
    total = page.pagination.get("total")
    if not _is_count(total):
        raise InvalidResponseError(
            f"{spec.SEARCH_PEOPLE.label}: the answer gives no total that is a count ({total!r})."
        )
    report_errors(page.errors)
    return total


@dataclass
class SearchProgress:
    """How far a search has come, in plain values, so that another process can go on there.

    Attributes
    ----------
    page : int
        The last page that was read.
    pages, total : int or None
        What the service says there is.
    received, rows, repeats : int
        How many people came, how many of them were of use, and how many came twice.
    useless : int
        Pages in a row with nobody new on them.
    """

    page: int = 0
    pages: int | None = None
    total: int | None = None
    received: int = 0
    rows: int = 0
    repeats: int = 0
    useless: int = 0


def _remember() -> Callable[[Sequence[str | None]], list[bool]]:
    """Make what says of ids which are new, and keeps them in memory."""
    seen: set[str] = set()

    def are_new(ids: Sequence[str | None]) -> list[bool]:
        keep = []
        for identity in ids:
            keep.append(identity is None or identity not in seen)
            if identity is not None:
                seen.add(identity)
        return keep

    return are_new


@dataclass
class Search:
    """One people search while it is read: what the service has said, and what has been seen.

    `read_bodies` makes people out of answers, `are_new` says whose ids did not come before, and
    `store` whether answers go into the cache.
    """

    client: Client
    filters: dict[str, Any]
    limit: int | None
    page_size: int | None
    refresh: bool
    store: bool = True
    read_bodies: Callable[[Sequence[bytes]], PeoplePage] = read_people_pages
    are_new: Callable[[Sequence[str | None]], list[bool]] = field(default_factory=_remember)
    so_far: SearchProgress = field(default_factory=SearchProgress)
    errors: list[Any] = field(default_factory=list)

    @property
    def total(self) -> int | None:
        """How many people match, as far as the service has told."""
        return self.so_far.total

    @property
    def expected(self) -> int | None:
        """How many people will be read, as far as the service has told."""
        counts = [count for count in (self.limit, self.total) if count is not None]
        return min(counts, default=None)

    @property
    def size(self) -> int:
        """How many people one request asks for."""
        largest = spec.MAX_SEARCH_PAGE_SIZE
        return self.page_size or min(largest, self.limit or largest)

    def read_pages(self, numbers: Sequence[int]) -> PeoplePage:
        """Read some pages of the search as one."""
        _, page, error = self._read_run(numbers)
        if error is not None:
            raise error
        return page

    def _parse(self, bodies: Sequence[bytes]) -> PeoplePage:
        """Make people out of responses, unless there are more of them than were asked for."""
        for body in bodies:
            # Counted before they become rows of 262 columns, where there may be far too many.
            if body.count(b"{") + body.count(b",") > _USUAL_VALUES * self.size:
                results = load_object(body).get(spec.RESULTS_KEY)
                self._check_count(len(results) if isinstance(results, list) else 0)
        page = self.read_bodies(bodies)
        self._check_count(page.people.num_rows, len(bodies))
        return page

    def _check_count(self, people: int, pages: int = 1) -> None:
        if people > self.size * pages:
            raise OversizedResponseError(
                f"The service returned {people:,} people where {self.size * pages} were asked for."
            )

    def _read(self, number: int, parse: Callable[[bytes], T]) -> T:
        body = {**self.filters, _PAGE: number, _SIZE: self.size}
        return self.client.read(
            spec.SEARCH_PEOPLE, body=body, refresh=self.refresh, store=self.store, parse=parse
        )

    def tables(self) -> Iterator[pa.Table]:
        """Yield the people in order, some pages at a time, each once, up to the limit.

        Every table is one that `so_far` counts already; a search that goes on begins behind it.
        """
        try:
            yield from self._tables()
        except OutreachError as error:
            so_far = self.so_far
            if so_far.page:
                where = f"page {so_far.page + 1:,} of {self._last_page():,}"
                came = plural(so_far.rows, "person was", "people were")
                error.args = (f"{error} This was {where}; {came} read before it.",)
            raise

    def _tables(self) -> Iterator[pa.Table]:
        so_far = self.so_far
        if not so_far.page:
            yield self._take([1], self.read_pages([1]))
        while (
            so_far.useless < _USELESS_PAGES_THAT_END and (last := self._last_page()) > so_far.page
        ):
            runs = self._runs(so_far.page + 1, last)
            pages = ordered_map(self._read_run, runs, workers=self.client.workers)
            with closing(pages):
                for run, page, error in pages:
                    yield self._take(run, page)
                    if error is not None:
                        raise error
                    if self._is_useless:
                        break

    def report(self, rows: int, *, in_frame: bool = True) -> None:
        """Warn of what the analyst would not see in the frame, or in the file."""
        report_repeats(self.so_far.repeats, "people")
        report_errors(self.errors, in_frame=in_frame)
        if self.total is None:
            return
        if self.limit is not None and self.limit <= rows < self.total:
            warn(f"{rows:,} of {self.total:,} people were read; limit=None reads them all.")
        elif self.so_far.received < self.total and (self.limit is None or rows < self.limit):
            warn(
                f"The service counts {self.total:,} people and returned {rows:,}: its data may "
                "have changed while it was read. refresh=True reads it again."
            )

    @property
    def _is_useless(self) -> bool:
        return self.so_far.useless >= _USELESS_PAGES_THAT_END

    def _take(self, run: Sequence[int], page: PeoplePage) -> pa.Table:
        so_far = self.so_far
        total, pages = page.pagination.get("total"), page.pagination.get("total_pages")
        so_far.total = total if _is_count(total) else so_far.total
        so_far.pages = pages if _is_count(pages) else so_far.pages
        self.errors.extend(page.errors)
        so_far.received += page.people.num_rows
        table = self._without_repeats(page.people)
        if self.limit is not None:
            table = table.slice(0, min(self.limit - so_far.rows, table.num_rows))
        so_far.rows += table.num_rows
        so_far.page = run[-1]
        so_far.useless = 0 if table.num_rows else so_far.useless + len(run)
        return table

    def _without_repeats(self, people: pa.Table) -> pa.Table:
        keep = self.are_new(people.column("id").to_pylist())
        self.so_far.repeats += len(keep) - sum(keep)
        return people if all(keep) else people.filter(pa.array(keep))

    def _runs(self, first: int, last: int) -> Iterator[range]:
        """Cut pages into runs that are read as one: longer ones the more pages came before.

        So a service that is wrong about its pages is not asked for many that it has not.
        """
        while first <= last:
            longest = max(1, first // self.client.workers)
            run = range(first, min(first + min(longest, _PAGES_AT_ONCE), last + 1))
            yield run
            first = run.stop

    def _read_run(
        self, run: Sequence[int]
    ) -> tuple[Sequence[int], PeoplePage, OutreachError | None]:
        """Read pages as one up to an error; return which came, what is on them, and the error."""
        read = partial(self._read, parse=lambda body: self._parse([body]))
        if len(run) == 1:
            return run, read(run[0]), None
        bodies, error = _until_error(partial(self._read, parse=bytes), run)
        try:
            return run[: len(bodies)], self._parse(bodies), error
        except InvalidResponseError:
            # Parsed one by one, so that the client asks again for the one that is broken.
            pages, broken = _until_error(read, run[: len(bodies)])
            return run[: len(pages)], as_one_page(pages), broken or error

    def _last_page(self) -> int:
        """Return the last page worth asking for, as far as one can tell after those read."""
        so_far = self.so_far
        number = so_far.page
        last = max(so_far.pages or 0, number)
        if so_far.total is not None:
            # By what came, not by what was asked for: a service may put fewer on a page.
            last = max(last, number + -(-(so_far.total - so_far.received) // self.size))
        elif so_far.pages is None:
            last = number + 1
        if self.limit is None:
            return last
        return min(last, number + -(-(self.limit - so_far.rows) // self.size))


def _until_error(
    read: Callable[[int], T], numbers: Sequence[int]
) -> tuple[list[T], OutreachError | None]:
    """Read pages one after the other; an error after the first comes with what came before it."""
    pages: list[T] = []
    for number in numbers:
        try:
            pages.append(read(number))
        except OutreachError as error:
            if not pages:
                raise
            return pages, error
    return pages, None


def check_body(filters: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters of a search, checked; paging is no filter."""
    for name in (_PAGE, _SIZE):
        if name in fields or (isinstance(filters, Mapping) and name in filters):
            raise InvalidInputError(
                f"{name} is no filter: all pages are read for you. "
                "Say how many people you want with limit=, how many per request with page_size=."
            )
    return check_filters(filters, fields)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
