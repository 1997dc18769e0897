"""Search people page by page, without duplicates, optionally once per value of a filter."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from math import ceil
from typing import Any, Final, TypeGuard

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.response import require_object
from outreach_frames.client.session import Dated
from outreach_frames.common import terms
from outreach_frames.common.parallel import ordered_map
from outreach_frames.common.text import plural, quoted, unique_name
from outreach_frames.common.warnings import are_collected, warn
from outreach_frames.errors import BadRequestError, InvalidResponseError, OutreachError
from outreach_frames.reading.fast_reader import PeoplePage
from outreach_frames.reading.flatten import select_columns
from outreach_frames.reading.pages import PeopleReader, as_one_page
from outreach_frames.reading.untyped_reader import RAW_SUFFIX
from outreach_frames.resources.paging import moment, report_errors, report_repeats
from outreach_frames.resources.search_arguments import (
    PAGE_NUMBER,
    PAGE_SIZE,
    check_split_by,
    has_free_text,
    unknown_values,
)
from outreach_frames.tables.columns import PROFNET_URL, find_profile_urls

DOCUMENTED: Final = frozenset(spec.columns(spec.PERSON))
# Number of pages to parse together, which takes less time per page.
_PAGES_AT_ONCE: Final = 6
# Results of more bytes are not cached, only their pages.
_MAX_RESULT_BYTES: Final = 1 << 28
# End a search after this number of pages without new people: the service's totals are wrong.
_MAX_USELESS_PAGES: Final = 3


@dataclass
class SearchProgress:
    """The progress of one search in plain values, from which another process can resume."""

    page: int = 0  # the last page read
    pages: int | None = None  # number of pages, reported by the service
    total: int | None = None  # number of people, reported by the service
    received: int = 0  # number of people, duplicates included
    rows: int = 0  # number of people returned to the caller
    repeats: int = 0  # number of people that the search had returned before
    useless: int = 0  # number of last pages in a row without new people
    unix: float | None = None  # time of the first page
    urls: str | None = None  # field of the first page with profile URLs of another network's name

    def update_totals(self, page: PeoplePage) -> None:
        """Note the numbers of people and pages that the service reports."""
        total, pages = page.pagination.get("total"), page.pagination.get("total_pages")
        self.total = total if _is_count(total) else self.total
        self.pages = pages if _is_count(pages) else self.pages

    def last_page(self, size: int, limit: int | None) -> int:
        """Estimate the last page to request."""
        if self.useless >= _MAX_USELESS_PAGES:
            return self.page

        def page_after(people: int) -> int:
            """Return the page with the last of this many further people."""
            return self.page + ceil(people / size)

        last = max(self.pages or 0, self.page)
        if self.total is not None:
            # A service may return fewer people per page than requested.
            last = max(last, page_after(self.total - self.received))
        elif self.pages is None:
            last = self.page + 1
        return last if limit is None else min(last, page_after(limit - self.rows))


class SeenIds:
    """The ids that searches found, each with the number of the search that found it first."""

    def __init__(self) -> None:
        self._first: dict[str | None, int] = {}

    def add(self, ids: Sequence[str | None], search: int) -> list[int | None]:
        """Add ids, and return the search that found each one before; None if it is new."""
        present = set(ids)
        if len(present) == len(ids) and None not in present and self._first.keys().isdisjoint(ids):
            # Fast path for pages of new people.
            self._first.update(dict.fromkeys(present, search))
            return [None] * len(ids)
        searches = []
        for identity in ids:
            searches.append(self._first.get(identity))
            if identity is not None:
                self._first.setdefault(identity, search)
        return searches


@dataclass
class Search:
    """A people search, read as a whole or once per value of the filter `split_by`."""

    client: Client
    filters: dict[str, Any]
    limit: int | None
    page_size: int | None
    refresh: bool
    columns: Sequence[str] | None = None  # columns to return, in order; all by default
    split_by: str | None = None
    store: bool = True  # whether to cache the pages and the result
    record_ids: Callable[[Sequence[str | None], int], list[int | None]] = field(
        default_factory=lambda: SeenIds().add
    )
    warns_of_limit: bool = False  # whether to warn if more people match
    errors: list[Any] = field(default_factory=list)
    undocumented: dict[str, None] = field(default_factory=dict)  # columns that were read
    values: tuple[Any, ...] = field(default=(None,), init=False)  # of `split_by`, as given
    progress: list[SearchProgress] = field(default_factory=list, init=False)  # per value read
    _whole: int | None = field(default=None, init=False)  # people that a split search can find

    def __post_init__(self) -> None:
        if self.split_by is not None:
            name = check_split_by(self.filters, self.split_by)
            self.values = tuple(dict.fromkeys(self.filters[name]))

    def people_per_page(self, limit: int | None) -> int:
        """Return the number of people per request, if at most `limit` people are read."""
        largest = spec.MAX_SEARCH_PAGE_SIZE
        return self.page_size or min(largest, limit or largest)

    @property
    def value(self) -> Any:
        """The value of `split_by` that is being read."""
        return self.values[len(self.progress) - 1]

    @property
    def rows(self) -> int:
        """The number of people read."""
        return sum(so_far.rows for so_far in self.progress)

    @property
    def total(self) -> int | None:
        """The number of matching people, reported by the service."""
        if self.split_by is not None:
            return self._whole
        return self.progress[0].total if self.progress else None

    @property
    def expected(self) -> int | None:
        """The number of people that will be read, or None if it is unknown."""
        return min((n for n in (self.limit, self.total) if n is not None), default=None)

    @property
    def attrs(self) -> dict[str, Any]:
        """The `.attrs` of the frame."""
        attrs = {
            "filters": self.filters,
            "limit": self.limit,
            "total": self.total,
            # The time when the service returned the earliest page.
            "fetched_at": moment(self._unix),
            "errors": self.errors,
        }
        return attrs if self.split_by is None else attrs | {"split_by": self.split_by}

    @property
    def _unix(self) -> float:
        return min((so_far.unix for so_far in self.progress if so_far.unix), default=time.time())

    @property
    def state(self) -> dict[str, Any]:
        """The progress of the search in plain values, for checkpoints."""
        return {"progress": [asdict(so_far) for so_far in self.progress], "whole": self._whole}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Resume a search from a stored state."""
        self.progress = [SearchProgress(**so_far) for so_far in state["progress"]]
        self._whole = state["whole"]

    def load(self) -> pa.Table | None:
        """Return the people of the same search from the cache, if it was finished."""
        if self.refresh:
            return None
        stored = self.client._session.load_table(spec.SEARCH_PEOPLE, self._arguments)
        if stored is None:
            return None
        people, notes = stored
        self.resume(notes["state"])
        # A result is out of date if its first page was read again.
        for index, so_far in enumerate(self.progress):
            first = page_body(self._filters(index), 1, self.people_per_page(self._limit(index)))
            if self.client._session.date_of(spec.SEARCH_PEOPLE, first) != so_far.unix:
                self.resume({"progress": [], "whole": None})
                return None
        self.undocumented = dict.fromkeys(notes["others"])
        return people

    def save(self, people: pa.Table) -> None:
        """Cache the people of a finished search without errors."""
        if not self.store or self.errors or self.client._session.cache is None:
            return
        if people.nbytes <= _MAX_RESULT_BYTES:
            notes = {"state": self.state, "others": list(self.undocumented)}
            self.client._session.store_table(
                spec.SEARCH_PEOPLE, self._arguments, people, notes, self._unix
            )

    @property
    def _arguments(self) -> dict[str, Any]:
        names = ("filters", "limit", "page_size", "columns", "split_by")
        return {name: getattr(self, name) for name in names}

    def _filters(self, index: int) -> dict[str, Any]:
        value = {} if self.split_by is None else {self.split_by: [self.values[index]]}
        return {**self.filters, **value}

    def _limit(self, index: int) -> int | None:
        """Return the number of people that the search of a value may return."""
        if self.limit is None:
            return None
        return self.limit - sum(so_far.rows for so_far in self.progress[:index])

    def tables(self) -> Iterator[pa.Table]:
        """Yield new people value by value, up to the limit; update the progress before each."""
        if self.split_by is not None and self._whole is None:
            self._whole, _ = count_matches(
                self.client, self.filters, refresh=self.refresh, store=self.store
            )
        for index in range(max(len(self.progress) - 1, 0), len(self.values)):
            if self.limit is not None and self.rows >= self.limit:
                return
            if index == len(self.progress):
                self.progress.append(SearchProgress())
            yield from self._tables_of_value(index)

    def _tables_of_value(self, index: int) -> Iterator[pa.Table]:
        so_far, limit = self.progress[index], self._limit(index)
        try:
            for page in self._pages(so_far, self._filters(index), limit):
                yield self._accept(page, so_far, limit)
        except OutreachError as error:
            if so_far.page:
                last = so_far.last_page(self.people_per_page(limit), limit)
                where = f"page {so_far.page + 1:,} of {last:,}"
                people = plural(so_far.rows, "person was", "people were")
                words = f"{error} The error occurred on {where}, after {people} read."
                if isinstance(error, BadRequestError):
                    words += (
                        f" If the service limits the results of one search, {_smaller_searches()}"
                    )
                error.args = (words,)
            raise

    def _pages(
        self, so_far: SearchProgress, filters: Mapping[str, Any], limit: int | None
    ) -> Iterator[PeoplePage]:
        """Yield the next pages while the caller's progress shows that more are needed."""
        size, columns = self.people_per_page(limit), readable_columns(self.columns)
        if not so_far.page:
            first = page_body(filters, 1, size)
            since = math.inf if self.refresh else 0
            page, so_far.unix = read_page(
                self.client, first, since=since, store=self.store, columns=columns
            )
            yield page
        while (last := so_far.last_page(size, limit)) > so_far.page:
            runs = _runs(so_far.page + 1, last, self.client._session.workers)
            bodies = ([page_body(filters, number, size) for number in run] for run in runs)
            read = partial(
                read_pages,
                self.client,
                since=so_far.unix or 0,
                store=self.store,
                columns=columns,
            )
            with closing(ordered_map(read, bodies, workers=self.client._session.workers)) as reads:
                for pages, error in reads:
                    if pages:
                        yield as_one_page(pages)
                    if error is not None:
                        raise error
                    if so_far.useless >= _MAX_USELESS_PAGES:
                        break

    def _accept(self, page: PeoplePage, so_far: SearchProgress, limit: int | None) -> pa.Table:
        """Add a page to the progress, and return the new people up to the limit."""
        table, index = page.people, len(self.progress) - 1
        if not so_far.page:
            so_far.urls = other_network_field(table)
        so_far.update_totals(page)
        self.errors.extend(page.errors)
        so_far.received += table.num_rows
        # The search of an earlier value may have found a person; that is not a repeat.
        searches = self.record_ids(table.column("id").to_pylist(), index)
        repeats = searches.count(index)
        if self.columns is not None:
            names = (name for name in table.column_names if name not in DOCUMENTED)
            self.undocumented.update(dict.fromkeys(names))
            table = select_columns(table, self.columns)
        if searches.count(None) < len(searches):
            table = table.filter(pa.array([search is None for search in searches], pa.bool_()))
        if limit is not None:
            table = table.slice(0, min(limit - so_far.rows, table.num_rows))
        so_far.page += len(page.heads)
        so_far.useless = 0 if len(searches) > repeats else so_far.useless + len(page.heads)
        so_far.rows += table.num_rows
        so_far.repeats += repeats
        return table

    def add_split_column(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Append a column with the filter value that found each person."""
        if self.split_by is None:
            return frame
        rows = [so_far.rows for so_far in self.progress]
        codes = np.repeat(np.arange(len(rows)), rows)[: len(frame)]
        dtype: pd.CategoricalDtype[str] = pd.CategoricalDtype(list(self.values), ordered=True)
        names = {self.split_by: unique_name(self.split_by, frame.columns)}
        values = pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=frame.index)
        return frame.rename(columns=names).assign(**{self.split_by: values})

    def report(self, rows: int) -> None:
        """Warn of duplicates, errors, unknown filter values and missing people."""
        repeats = sum(so_far.repeats for so_far in self.progress)
        is_short = self.total is not None and rows < min(self.total, self.limit or self.total)
        is_capped = is_short and any(map(self._is_capped, self.progress))
        report_repeats(0 if is_capped else repeats, "people")
        report_errors(self.errors, self.filters)
        report_dropped_values(self.columns, self.undocumented)
        report_other_network(self.client, (so_far.urls for so_far in self.progress))
        is_empty = not rows and not self.total
        report_unknown_values(self.client, self.filters, is_empty=is_empty)
        if self.total is None or rows >= self.total:
            return
        if self.limit is not None and rows >= self.limit:
            if self.warns_of_limit:
                warn(
                    f"{rows:,} of {self.total:,} people were read. Pass "
                    f"{terms.argument('limit', None)} to read all."
                )
        elif is_capped:
            people = plural(self.total, "person", "people")
            warn(
                f"The service counts {people} but repeated a page after {rows:,}: it limits the "
                f"results of one search. To read more, {_smaller_searches()}"
            )
        elif self.split_by is not None or self.progress[0].received < self.total:
            people = plural(self.total, "person", "people")
            warn(
                f"The service counts {people} but returned {rows:,}. If its data changed between "
                f"pages, pass {terms.argument('refresh', True)} to read again. If it limits the "
                f"results of one search, {_smaller_searches()}"
            )

    def _is_capped(self, search: SearchProgress) -> bool:
        """Return whether a search ended with whole pages of people that were read before."""
        is_full = (
            search.repeats >= self.people_per_page(None) or search.useless >= _MAX_USELESS_PAGES
        )
        return search.useless > 0 and search.repeats > 0 and is_full


def _smaller_searches() -> str:
    """Return advice for a service that limits the results of one search."""
    return (
        f"run smaller searches: pass {terms.argument('split_by')} with a filter that has many "
        "values, such as company_sizes, person_locations or person_seniorities."
    )


def other_network_field(people: pa.Table) -> str | None:
    """Return the field that has profile URLs under another network's name, if there is one."""
    return find_profile_urls(people.column_names, lambda name: people[name].to_pylist())


def report_other_network(client: Client, fields: Iterable[str | None]) -> None:
    """Warn once per client of the first field with profile URLs of another network's name."""
    field = next(filter(None, fields), None)
    if field is not None and PROFNET_URL not in client._session.warned_of:
        client._session.warned_of.add(PROFNET_URL)
        warn(
            f"People have no {PROFNET_URL}, but {field} has profile URLs. "
            f"{network_advice(field.removesuffix('_url'))}"
        )


def network_advice(network: str) -> str:
    """Return how to set the network's name."""
    return terms.wording(
        f"Pass network_name={quoted(network)} to of.connect() or of.login().",
        in_shell=f"Run outreach-frames login --network-name {quoted(network)}.",
    )


def report_dropped_values(columns: Sequence[str] | None, present: Iterable[str]) -> None:
    """Warn of chosen columns with values of the wrong type, if the `_raw` column is not chosen."""
    raws = {f"{name}{RAW_SUFFIX}" for name in columns or ()}.difference(columns or ())
    if dropped := sorted(raws.intersection(present)):
        names = ", ".join(name.removesuffix(RAW_SUFFIX) for name in dropped)
        warn(
            f"Values of the wrong type are missing in {names}. Add "
            f"{', '.join(map(quoted, dropped))} to {terms.name('columns')} to get these values as "
            "text."
        )


def report_unknown_values(
    client: Client, filters: Mapping[str, Any], *, is_empty: bool, is_explained: bool = False
) -> None:
    """Warn of values that the sandbox does not know and, unless `is_explained`, of an empty search.

    Outside of widgets, a value of a search with matches is named only once per client. The values
    of other services are not known.
    """
    named = []
    for name, text, close in unknown_values(filters) if client._session.is_sandbox else ():
        if is_empty or are_collected() or (name, text) not in client._session.warned_of:
            named.append(f"{terms.argument(name, text)}.{close}")
            client._session.warned_of.add((name, text))
    is_open = (
        is_empty
        and not is_explained
        and (named or has_free_text(filters, client._session.is_sandbox))
    )
    words = ["Nobody matches."] if is_open else []
    if named:
        nobody = "" if is_empty else " and may match nobody"
        words.append(f"These filter values are not known{nobody}: {' '.join(named)}")
    if is_open:
        words.append(f"{terms.call('explain_search')} to see which filter excludes everybody.")
    elif words:
        words.append(f"{terms.call('filters')} to list the filters and their known values.")
    if words:
        warn(" ".join(words))


def page_body(filters: Mapping[str, Any], number: int, size: int) -> dict[str, Any]:
    """Return the body of a request for one page."""
    return {**filters, PAGE_NUMBER: number, PAGE_SIZE: size}


def readable_columns(columns: Sequence[str] | None) -> list[str] | None:
    """Return the columns to read from pages, with ids; None for undocumented or all columns."""
    if columns is None or not DOCUMENTED.issuperset(columns):
        return None
    return [*dict.fromkeys([*columns, "id"])]


def read_page(
    client: Client,
    body: Mapping[str, Any],
    *,
    since: float = 0,
    store: bool = True,
    columns: Sequence[str] | None = None,
) -> Dated[PeoplePage]:
    """Read a page with its time, from the cache if it is not older than `since`."""

    def parse(content: bytes) -> PeoplePage:
        (page,) = _reader(client).read([content], columns)
        urls = [name for name in columns or () if spec.NETWORK_NAME in name]
        if urls and all(page.people[name].null_count == len(page.people) for name in urls):
            # Their fields may have another network's name, so read all fields.
            (page,) = _reader(client).read([content])
        return page

    return client._session.read_dated(spec.SEARCH_PEOPLE, body, parse, since=since, store=store)


def read_pages(
    client: Client,
    bodies: Sequence[Mapping[str, Any]],
    *,
    since: float,
    store: bool,
    columns: Sequence[str] | None,
) -> tuple[list[PeoplePage], OutreachError | None]:
    """Read pages, parse them together, and return those before an error with the error."""
    contents: list[bytes] = []
    error: OutreachError | None = None
    try:
        for body in bodies:
            sent = client._session.read_dated(
                spec.SEARCH_PEOPLE, body, require_object, since=since, store=store
            )
            contents.append(sent.value)
    except OutreachError as caught:
        error = caught
    reader = _reader(client)
    with suppress(InvalidResponseError):
        return reader.read(contents, columns), error
    pages: list[PeoplePage] = []
    for body, content in zip(bodies, contents, strict=False):
        try:
            pages += reader.read([content], columns)
        except InvalidResponseError:
            # Request an invalid page again, which explains the error.
            try:
                page, _ = read_page(client, body, since=math.inf, store=store, columns=columns)
            except OutreachError as caught:
                return pages, caught
            pages.append(page)
    return pages, error


def _reader(client: Client) -> PeopleReader:
    reader: PeopleReader = client._session.readers.setdefault(
        spec.SEARCH_PEOPLE.name, PeopleReader()
    )
    return reader


def _runs(first: int, last: int, workers: int) -> Iterator[range]:
    """Split pages into growing runs, so that wrong totals cause few useless requests."""
    while first <= last:
        most = min(_PAGES_AT_ONCE, first // workers, (last - first + 1) // workers)
        run = range(first, min(first + max(1, most) - 1, last) + 1)
        yield run
        first = run.stop


def count_matches(
    client: Client, filters: Mapping[str, Any], *, refresh: bool, store: bool = True
) -> tuple[int, list[Any]]:
    """Return the number of people that a search finds, and the service's errors."""
    body = page_body(filters, 1, spec.MIN_SEARCH_PAGE_SIZE)
    page, _ = read_page(client, body, since=math.inf if refresh else 0, store=store)
    total = page.pagination.get("total")
    if not _is_count(total):
        raise InvalidResponseError(
            f"The response's total is {quoted(total)}, not a whole number.",
            request=spec.SEARCH_PEOPLE.label,
        )
    return total, page.errors


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
