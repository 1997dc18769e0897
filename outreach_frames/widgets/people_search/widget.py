"""PeopleSearch: build search filters by hand, and see how many people they find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pandas as pd
import traitlets

from outreach_frames.client.client import Client
from outreach_frames.common.arguments import HEADCOUNTS, Headcount, check_one_of
from outreach_frames.common.text import plural, printable, shorten
from outreach_frames.common.warnings import collected
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.resources.people import count_people, read_frame
from outreach_frames.resources.saved_filters import load_filters, save_filters
from outreach_frames.resources.search import Search
from outreach_frames.resources.search_arguments import check_filters, check_limit
from outreach_frames.resources.split_search import WholeSearch
from outreach_frames.tables.interchange import FrameLike
from outreach_frames.widgets.background import Task
from outreach_frames.widgets.base import Panel, error_notice, notice, source
from outreach_frames.widgets.people_search.code import (
    DEFAULT_HEADCOUNT,
    DEFAULT_LIMIT,
    search_code,
)
from outreach_frames.widgets.people_search.state import clashes, describe_form, problems, tidy
from outreach_frames.widgets.people_search.suggestions import suggest

_DEBOUNCE_SECONDS = 0.4
_SHOWN_ROWS = 20
_SHOWN_COLUMNS = {
    "name": "Name",
    "title": "Title",
    "company_name": "Company",
    "company_industry": "Industry",
    "location": "Location",
}


class _Found(NamedTuple):
    """The result of a search: `frame` is what was read, up to the error where there is one."""

    filters: dict[str, Any]
    total: int | None
    frame: pd.DataFrame | None
    suggestions: dict[str, list[str]]
    error: OutreachError | None
    cancelled: bool


class PeopleSearch(Panel):
    """Build a people search by hand in a notebook, see how many people it finds, and fetch them.

    The number of people follows every change. `code` is Python that does the same.

    Parameters
    ----------
    filters : mapping, optional
        Initial filters, for example from `load_filters`.
    client : Client, optional
        By default the one of the last `connect`.
    limit : int or None
        How many people Search fetches at most; None fetches all.
    suggest_from : DataFrame, also of Polars, DuckDB or Arrow; or mapping, optional
        What to suggest: a frame of people or contacts, or a dict of filter names and texts.
        Results of searches are suggested too.
    headcount : {"all", "department", "none"}
        Which of the company's headcount columns the results have, as in `search_people`.

    Attributes
    ----------
    value : dict
        The filters being edited; can be assigned.
    filters : dict
        The same, checked, as the body of a search.
    total : int or None
        How many people the service counts; None while that is unknown.
    results : DataFrame or None
        The people of the last search, as `search_people` returns them; `.attrs["filters"]` has its
        filters. After Cancel or an error, what was read until then.
    code : str
        Python that does the same; it names the client, as `client`, if one was given.
    limit : int or None
        How many people Search fetches at most; can be assigned.

    Raises
    ------
    InvalidInputError
        A filter does not exist or has an invalid value.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None) as client:
    ...     builder = of.widgets.PeopleSearch({"person_seniorities": ["vp"]}, client, limit=50)
    >>> builder.filters
    {'person_seniorities': ['vp']}
    >>> print(builder.code)
    people = of.search_people(
        person_seniorities=["vp"],
        limit=50,
        client=client,
    )
    """

    unsaved: ClassVar[tuple[str, ...]] = (*Panel.unsaved, "count")
    actions: ClassVar[tuple[str, ...]] = (
        "ready",
        "count_again",
        "search_page",
        "cancel",
        "save_preset",
        "load",
    )

    _esm = source("common.js", "people_search/widget.js")
    _css = source("common.css", "people_search/widget.css")

    value: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    limit: traitlets.Int[int | None, int | None] = traitlets.Int(
        DEFAULT_LIMIT, allow_none=True
    ).tag(sync=True)
    total: traitlets.Int[int | None, int | None] = traitlets.Int(None, allow_none=True)
    code: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    form: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    marks: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    count: traitlets.Dict[str, Any] = traitlets.Dict()
    progress: traitlets.List[int] = traitlets.List(traitlets.Int(), [0, 0]).tag(sync=True)
    preset_to_replace: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        filters: Mapping[str, Any] | None = None,
        client: Client | None = None,
        *,
        limit: int | None = DEFAULT_LIMIT,
        suggest_from: FrameLike | Mapping[str, Iterable[Any]] | None = None,
        headcount: Headcount = DEFAULT_HEADCOUNT,
    ) -> None:
        check_one_of("headcount", headcount, HEADCOUNTS)
        self._headcount = headcount
        self._suggest_from = suggest(suggest_from)
        super().__init__(
            client, value=check_filters(filters), limit=check_limit(limit), form=describe_form()
        )
        self._results: pd.DataFrame | None = None
        self._suggestions = self._suggest_from
        self._revision = 0
        self._counting: Task | None = None
        # The page's changes may come in any thread.
        self.observe(lambda _: self._background.on_loop(self._on_edit), ["value"])
        self.observe(lambda _: self._background.on_loop(self._write_code), ["value", "limit"])
        self._write_code()
        self._on_edit(delay=0)

    @property
    def filters(self) -> dict[str, Any]:
        """The filters as the body of a search; raises InvalidInputError if they cannot be used."""
        return check_filters(self.value)

    @property
    def results(self) -> pd.DataFrame | None:
        """The people of the last search, or None."""
        return self._results

    def ready(self) -> None:
        """Send a new view what is not in a trait."""
        self._send_suggestions()
        self._send_results()

    def count_again(self) -> None:
        """Count again how many people the filters find."""
        self._on_edit(delay=0)

    def search_page(self, value: Mapping[str, Any], limit: int | None) -> None:
        """Search with what the page shows, which may not have arrived as traits yet."""
        if not self.busy:
            self.value, self.limit = dict(value), limit
            self.search()

    def search(self) -> None:
        """Start fetching the people; `results` has them afterwards."""
        if self.busy:
            return
        client = self._client()
        search = WholeSearch(
            Search(client, self.filters, self.limit, page_size=None, refresh=False)
        )
        self.progress = [0, 0]
        self._start("Reading people", partial(self._read, search), self._take)

    def cancel(self) -> None:
        """Cancel the search under way; what was read is kept."""
        task = self._task
        if task is not None:
            task.cancel()

    def save(self, path: str | Path) -> Path:
        """Save the filters to a file, as `save_filters` does; an existing file is replaced."""
        return save_filters(path, self.filters)

    def load(self, path: str | Path) -> None:
        """Load filters from a file, as `load_filters` does; a damaged file changes nothing."""
        self.value = load_filters(_file(path))
        self.preset_to_replace = ""
        self._notify(notice("info", f"Loaded {path}."))

    def save_preset(self, path: str, value: Mapping[str, Any], replace: bool = False) -> None:
        """Save the page's filters; ask before replacing a file."""
        self.value = dict(value)
        file = _file(path)
        self.preset_to_replace = ""
        if not replace and _exists(file):
            self.filters  # noqa: B018 - what cannot be saved is an error, not a question
            self.preset_to_replace = path
            self._notify(notice("warning", f"{path} exists. Replace it?"))
            return
        self.save(file)
        self._notify(notice("info", f"Saved {path}."))

    @traitlets.validate("value")
    def _tidy_value(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        return tidy(proposal["value"])

    @traitlets.validate("limit")
    def _check_limit(self, proposal: Mapping[str, Any]) -> int | None:
        return check_limit(proposal["value"])

    def _write_code(self) -> None:
        # Without it the code would search the account of the last connect.
        with_client = self._given_client is not None
        self.code = search_code(self.value, self.limit, self._headcount, with_client=with_client)

    def _on_edit(self, *, delay: float = _DEBOUNCE_SECONDS) -> None:
        unusable = problems(self.value)
        self.marks = {"problems": unusable, "clashes": clashes(self.value)}
        self._revision += 1
        if self._counting is not None:
            self._counting.cancel()
        self.total = None
        if unusable:
            self._show_count("waiting", "Not counted: correct the marked fields first.")
            return
        self._show_count("counting", "Counting …")
        start = partial(self._start_count, self._revision)
        if delay:
            self._background.later(delay, start)
        else:
            start()

    def _show_count(self, state: str, text: str, notes: Iterable[str] = ()) -> None:
        # With the filters, because the page may be ahead of a busy kernel.
        shown = {"state": state, "text": printable(text), "notes": [*map(printable, notes)]}
        self.count = {**shown, "filters": self.value}

    def _start_count(self, revision: int) -> None:
        """Count in a thread of its own, whatever else is under way; late results are dropped."""
        if revision != self._revision:
            return
        try:
            client, filters = self._client(), self.filters
        except OutreachError as error:
            self._show_count("failed", str(error))
            return

        def work(_task: Task) -> tuple[int, list[str]]:
            with collected() as warnings:
                return count_people(filters, client=client), warnings

        def done(future: Future[tuple[int, list[str]]]) -> None:
            if revision == self._revision:
                self._counting = None
                self._take_count(future)

        def show_status(words: str) -> None:
            if revision == self._revision and self._counting is not None:
                self._show_count("counting", f"Counting … {words}".rstrip())

        self._counting = self._background.start(work, done, show_status)

    def _take_count(self, future: Future[tuple[int, list[str]]]) -> None:
        error = future.exception()
        if error is None:
            total, warnings = future.result()
            self._show_total(total, warnings)
            return
        shown = error_notice(error)
        self._show_count("failed", shown["text"], shown["details"])
        if not isinstance(error, OutreachError):
            raise error

    def _show_total(self, total: int, warnings: Iterable[str] = ()) -> None:
        self.total = total
        self._show_count("done", plural(total, "person", "people"), warnings)

    def _read(self, search: WholeSearch, task: Task) -> _Found:
        rows = 0

        def show(read: int) -> None:
            nonlocal rows
            rows += read
            self._background.deliver(self._show_progress, rows, search.expected or 0)

        error: OutreachError | None = None
        try:
            frame: pd.DataFrame | None = read_frame(search, self._headcount, "numpy_nullable", show)
        except OutreachError as caught:
            frame, error = caught.partial, caught
        if frame is not None and error is not None:
            frame.attrs["filters"] = search.filters
        found = suggest(self._suggest_from, frame)
        return _Found(search.filters, search.total, frame, found, error, task.cancelled)

    def _show_progress(self, rows: int, expected: int) -> None:
        if self.busy:
            self.progress = [rows, expected]

    def _take(self, found: _Found, warnings: list[str]) -> None:
        rows = 0 if found.frame is None else len(found.frame)
        if found.error is None or rows:
            self._results = found.frame
            self._suggestions = found.suggestions
            self._send_suggestions()
        self._notify(*self._notices(found, rows), *(notice("warning", one) for one in warnings))
        if found.error is None and found.total is not None and found.filters == self.value:
            self._settle_count(found.total)
        self._send_results()

    def _notices(self, found: _Found, rows: int) -> list[dict[str, Any]]:
        people = plural(rows, "person", "people")
        if found.error is None:
            if not rows:
                return [notice("info", "Nobody matches: .results is empty.")]
            return [notice("info", f"Read {people}: see .results, and below.")]
        if rows:
            kept = f"What was read before is in .results: {people}, not all."
        elif self._results is not None:
            kept = "Nobody was read; .results still has the previous search."
        else:
            kept = "Nobody was read."
        if found.cancelled:
            return [notice("info", f"Cancelled. {kept}")]
        return [error_notice(found.error), notice("warning", kept)]

    def _settle_count(self, total: int) -> None:
        """Show the total of a finished search, and drop a count that is under way."""
        self._revision += 1
        if self._counting is not None:
            self._counting.cancel()
        self._show_total(total)

    def _send_suggestions(self) -> None:
        # People's data is sent as messages, so that a saved notebook does not hold it unseen.
        self.send({"kind": "suggestions", "suggestions": self._suggestions})

    def _send_results(self) -> None:
        if self._results is None:
            return
        rows, columns = self._results.shape
        first = self._results.head(_SHOWN_ROWS)
        shown = [name for name in _SHOWN_COLUMNS if name in first.columns]
        cells = first[shown].astype(object).where(first[shown].notna(), None).to_numpy()
        words = f".results has {rows:,} row{'s' * (rows != 1)} and {columns:,} columns"
        if rows > _SHOWN_ROWS:
            words += f"; the first {_SHOWN_ROWS} are shown"
        self.send(
            {
                "kind": "results",
                "words": f"{words}.",
                "columns": [_SHOWN_COLUMNS[name] for name in shown],
                "rows": [[c if c is None else shorten(str(c)) for c in row] for row in cells],
            }
        )


def _exists(file: Path) -> bool:
    # Where that cannot be found out, saving says why.
    with suppress(OSError, RuntimeError):
        return file.expanduser().exists()
    return False


def _file(path: str | Path) -> Path:
    if not str(path).strip():
        raise InvalidInputError("Give the preset file a name, such as people.json.")
    return Path(path)
