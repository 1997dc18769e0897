"""PeopleSearch: build search filters by hand, count and fetch people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pandas as pd
import traitlets

from outreach_frames.client.client import Client
from outreach_frames.common.arguments import HEADCOUNTS, Headcount, check_choice
from outreach_frames.common.atomic_files import check_portable_name
from outreach_frames.common.cancellation import CancellationToken, Progress
from outreach_frames.common.text import plural, printable, shorten
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.resources.people import count_people, search_people
from outreach_frames.resources.saved_filters import load_filters, save_filters
from outreach_frames.resources.search_arguments import DEFAULT_LIMIT, check_filters, check_limit
from outreach_frames.tables.interchange import FrameLike
from outreach_frames.widgets.base import Done, Panel, error_notice, notice, read_assets
from outreach_frames.widgets.people_search.state import (
    DEFAULT_HEADCOUNT,
    build_form,
    find_problems,
    search_code,
    suggest,
    tidy_filters,
)

_DEBOUNCE_SECONDS = 0.4
_SHOWN_ROWS = 20
_SHOWN_COLUMNS = {
    "name": "Name",
    "title": "Title",
    "company_name": "Company",
    "company_industry": "Industry",
    "location": "Location",
}


# The people found, suggestions from them, and the error after which they are partial.
_Fetched = tuple[pd.DataFrame | None, dict[str, list[str]], OutreachError | None]


class PeopleSearch(Panel):
    """Build a people search by hand in a notebook, count its people and fetch them.

    People are counted after each change. `code` is the equivalent Python code.

    Parameters
    ----------
    filters : mapping or path, optional
        Initial filters by name, or the path of a search that `save_filters` saved.
    client : Client, optional
        By default the client of the last `connect`.
    limit : int or None
        Maximum number of people to fetch; None fetches all. You can change this attribute later.
    suggest_from : DataFrame, also of Polars, DuckDB or Arrow, optional
        The source of suggested filter values: a frame of people or contacts. Values from search
        results are suggested, too.
    headcount : {"all", "department", "none"}
        The company's headcount columns in the results, as in `search_people`.

    Attributes
    ----------
    value : dict
        The filters being edited; you can assign new filters.
    filters : dict
        The checked filters, as the body of a search request.
    total : int or None
        The service's count of people; None while unknown.
    results : DataFrame or None
        The people of the last search, as `search_people` returns them; `.attrs["filters"]` has the
        filters. After Cancel or an error, only the people that were read until then.
    code : str
        The equivalent Python code, with the argument `client` if you passed a client.

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
    >>> print(builder.code)
    people = of.search_people(
        person_seniorities=['vp'],
        limit=50,
        client=client,
    )
    """

    message_traits: ClassVar[tuple[str, ...]] = (*Panel.message_traits, "count")
    actions: ClassVar[tuple[str, ...]] = (
        "ready",
        "count_again",
        "search_page",
        "cancel",
        "save_preset",
        "load",
    )

    _esm = read_assets("common.js", "people_search/widget.js")
    _css = read_assets("common.css", "people_search/widget.css")

    value: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    limit: traitlets.Int[int | None, int | None] = traitlets.Int(
        DEFAULT_LIMIT, allow_none=True
    ).tag(sync=True)
    total: traitlets.Int[int | None, int | None] = traitlets.Int(None, allow_none=True)
    code: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    form: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    # An error message per invalid filter.
    problems: traitlets.Dict[str, str] = traitlets.Dict().tag(sync=True)
    count: traitlets.Dict[str, Any] = traitlets.Dict()
    preset_to_replace: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        filters: Mapping[str, Any] | str | PathLike[str] | None = None,
        client: Client | None = None,
        *,
        limit: int | None = DEFAULT_LIMIT,
        suggest_from: FrameLike | None = None,
        headcount: Headcount = DEFAULT_HEADCOUNT,
    ) -> None:
        check_choice("headcount", headcount, HEADCOUNTS)
        self._headcount = headcount
        self._suggest_from = suggest(suggest_from)
        super().__init__(
            client, value=check_filters(filters), limit=check_limit(limit), form=build_form()
        )
        self.results: pd.DataFrame | None = None
        # The token of the current count; results of earlier counts are dropped.
        self._counting = CancellationToken()
        # Changes from the page may arrive in any thread.
        self.observe(lambda _: self._background.on_loop(self._on_edit), ["value"])
        self.observe(lambda _: self._background.on_loop(self._update_code), ["value", "limit"])
        self._update_code()
        self._show("suggestions", suggestions=self._suggest_from)
        self._on_edit(delay=0)

    @property
    def filters(self) -> dict[str, Any]:
        """The filters as the body of a search request; invalid filters raise InvalidInputError."""
        return check_filters(self.value)

    def count_again(self) -> None:
        """Count the people again."""
        self._on_edit(delay=0)

    def search_page(self, value: Mapping[str, Any], limit: int | None) -> None:
        """Search with the page's values, because the traits may not have changed yet."""
        if not self.busy:
            self.value, self.limit = dict(value), limit
            self.search()

    def search(self) -> None:
        """Start to fetch people; `results` has the people afterwards."""
        if self.busy:
            return
        fetch = partial(self._fetch, self._client(), self.filters, self.limit)
        self._start("Reading people", fetch, self._show_fetched)

    def cancel(self) -> None:
        """Cancel the current search and keep the people read so far."""
        self._cancellation.set()

    def save(self, path: str | Path) -> Path:
        """Save the filters to a file, as `save_filters` does; an existing file is replaced."""
        return save_filters(path, self.filters)

    def load(self, path: str | Path) -> None:
        """Load filters from a file, as `load_filters` does; an invalid file changes nothing."""
        self.value = load_filters(_preset_path(path))
        self.preset_to_replace = ""
        self._notify(notice("info", f"Loaded {path}."))

    def save_preset(self, path: str, value: Mapping[str, Any], replace: bool = False) -> None:
        """Save the page's filters and ask before replacing a file."""
        self.value = dict(value)
        file = _preset_path(path)
        check_portable_name(file.name)
        self.preset_to_replace = ""
        if not replace and _file_exists(file):
            self.filters  # noqa: B018 - raise for invalid filters before asking
            self.preset_to_replace = path
            self._notify(notice("warning", f"{path} exists. Replace it?"))
            return
        self.save(file)
        self._notify(notice("info", f"Saved {path}."))

    @traitlets.validate("value")
    def _tidy_value(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        return tidy_filters(proposal["value"])

    @traitlets.validate("limit")
    def _check_limit(self, proposal: Mapping[str, Any]) -> int | None:
        return check_limit(proposal["value"])

    def _update_code(self) -> None:
        # Without `client`, the code would search the account of the last `connect`.
        with_client = self._client_argument is not None
        self.code = search_code(self.value, self.limit, self._headcount, with_client=with_client)

    def _on_edit(self, *, delay: float = _DEBOUNCE_SECONDS) -> None:
        self.problems = find_problems(self.value)
        self._counting.set()
        self.total = None
        if self.problems:
            self._show_count("waiting", "Not counted: correct the marked fields first.")
            return
        self._show_count("counting", "Counting …")
        try:
            self._count_later(self._client(), self.filters, delay)
        except OutreachError as error:
            self._show_count("failed", str(error))

    def _show_count(self, state: str, text: str, notes: Iterable[str] = ()) -> None:
        # The filters tell the page if the count is outdated, because the kernel may be busy.
        shown = {"state": state, "text": printable(text), "notes": [*map(printable, notes)]}
        self.count = {**shown, "filters": self.value}

    def _count_later(self, client: Client, filters: Mapping[str, Any], delay: float) -> None:
        """Count in a separate thread when there were no edits for some time."""
        counting = self._counting = CancellationToken()

        def work() -> int:
            edited = Event()
            with counting.calling(edited.set):
                edited.wait(delay)
            return count_people(filters, client=client)

        def done(future: Done[int]) -> None:
            if not counting.is_set:
                counting.set()
                self._show_count_result(future)

        def show_status(words: str | Progress) -> None:
            if not counting.is_set:
                self._show_count("counting", f"Counting … {words}".rstrip())

        self._background.start(counting, work, done, show_status)

    def _show_count_result(self, future: Done[int]) -> None:
        error = future.exception()
        if error is None:
            self.total, warnings = future.result()
            self._show_count("done", plural(self.total, "person", "people"), warnings)
            return
        shown = error_notice(error)
        self._show_count("failed", shown["text"], shown["details"])
        if not isinstance(error, OutreachError):
            raise error

    def _fetch(self, client: Client, filters: dict[str, Any], limit: int | None) -> _Fetched:
        error: OutreachError | None = None
        try:
            frame: pd.DataFrame | None = search_people(
                filters, limit=limit, headcount=self._headcount, progress=False, client=client
            )
        except OutreachError as caught:
            frame, error = caught.partial, caught
        if frame is not None and error is not None:
            frame.attrs["filters"] = filters
        return frame, suggest(frame, self._suggest_from), error

    def _show_fetched(self, result: _Fetched, warnings: list[str]) -> None:
        frame, suggestions, error = result
        rows = 0 if frame is None else len(frame)
        total = None if frame is None else frame.attrs.get("total")
        self._notify(*self._notices(rows, total, error), warnings=warnings)
        if frame is not None and (rows or error is None):
            self.results = frame
            self._show("suggestions", suggestions=suggestions)
            self._show("results", **_result_content(frame))

    def _notices(
        self, rows: int, total: int | None, error: OutreachError | None
    ) -> list[dict[str, Any]]:
        people = plural(rows, "person", "people")
        if error is None:
            if total is not None and total > rows:
                people = f"{rows:,} of {plural(total, 'person', 'people')}"
            sentence = f"Read {people}: see .results, and below."
            return [notice("info", sentence if rows else "No people match: .results is empty.")]
        kept = f".results is partial: it has {people}."
        if not rows:
            kept = "No people were read; .results is unchanged."
        if self._cancellation.is_set:
            return [notice("info", f"Cancelled. {kept}")]
        return [error_notice(error), notice("warning", kept)]


def _result_content(people: pd.DataFrame) -> dict[str, Any]:
    first = people.head(_SHOWN_ROWS)
    shown = [name for name in _SHOWN_COLUMNS if name in first.columns]
    cells = first[shown].astype(object).where(first[shown].notna(), None).to_numpy()
    words = f".results has {plural(len(people), 'row')} and {people.shape[1]:,} columns"
    if len(people) > _SHOWN_ROWS:
        words += f"; the first {_SHOWN_ROWS} rows are shown"
    return {
        "words": f"{words}.",
        "columns": [_SHOWN_COLUMNS[name] for name in shown],
        "rows": [[c if c is None else shorten(str(c)) for c in row] for row in cells],
    }


def _file_exists(file: Path) -> bool:
    # Ignore errors here, because saving raises a better error.
    with suppress(OSError, RuntimeError):
        return file.expanduser().exists()
    return False


def _preset_path(path: str | Path) -> Path:
    if not str(path).strip():
        raise InvalidInputError("The preset file has no name. Enter a name such as people.json.")
    return Path(path)
