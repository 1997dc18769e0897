"""Compute how long people have been in their position, and which one they held before."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.analysis.child_tables import list_entries, objects_frame
from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.arguments import check_day
from outreach_frames.identity.keys import company_name_keys, company_url_keys, filled_texts
from outreach_frames.tables.schema import frame_of_columns

TENURE: Final = (
    spec.Field("start_date", format="date", note="start of the current position"),
    spec.Field("years", "number", note="years in the current position"),
    spec.Field("previous_title", note="title of the previous position"),
    spec.Field("previous_company", note="company of the previous position"),
    spec.Field(
        "changed_employer", "boolean", note="whether the previous position was at another company"
    ),
)
_POSITIONS: Final = "experiences"
_START: Final = "current_position_start_date"
_NAME, _URL = "company_name", "company_profnet_url"
_NO_POSITION: Final = -1

Flags = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def tenure(frame: pd.DataFrame, as_of: str | date | None = None) -> pd.DataFrame:
    """Return how long people have been in their position, and which one they held before.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`.
    as_of : str or date, optional
        The reference day; by default today. Positions that begin later are ignored, and positions
        that end later have not ended.

    Returns
    -------
    DataFrame
        With the frame's index: start_date (datetime64), years (Float64), previous_title,
        previous_company (str), changed_employer (boolean). Unknown values are missing. The whole
        part of years is the number of anniversaries; 1 March is the one of 29 February in other
        years.

    Raises
    ------
    InvalidInputError
        The frame lacks the columns, or the day is not a date.

    Notes
    -----
    Interface: Person, `experiences` and `current_position_start_date`. The current position is the
    position that has not ended and began last; a missing end means that it has not ended. If a
    person has no experiences, or the current position has no start, `current_position_start_date`
    is used. The previous position is the one that began last before the current one; one that began
    on the same day counts if it has ended. The employer changed if the companies' profile URLs
    differ, or, if a URL is missing, their names; a promotion is not a change.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=50)
    >>> tenure = people.outreach.tenure(as_of="2026-03-02")
    >>> bool(tenure["years"].median() > 0)
    True
    """
    columns = [_POSITIONS, _START]
    require_columns(frame, columns, "columns of positions", "a frame from search_people()")
    day = check_day("as_of", as_of).to_numpy().astype("datetime64[us]")
    rows, entries = list_entries(frame[_POSITIONS])
    held = objects_frame(entries, spec.EXPERIENCE)
    present = held[[field.name for field in spec.EXPERIENCE if not field.constant]].notna()
    is_position = present.any(axis="columns").to_numpy("bool")
    starts = held["start_date"].to_numpy("datetime64[us]")
    ends = held["end_date"].to_numpy("datetime64[us]")
    # Comparisons with a missing date are false.
    has_begun = is_position & ~(starts > day)
    ended = ends < day
    current = _latest(has_begun & ~ended, rows, starts, len(frame))
    since = _take_dates(starts, current)
    current_of_row = current[rows]
    before = (starts < since[rows]) | (ended & ~(starts > since[rows]))
    is_other = (current_of_row != _NO_POSITION) & (current_of_row != np.arange(len(rows)))
    is_previous = has_begun & before & is_other
    previous = _latest(is_previous, rows, starts, len(frame))

    stated_start = _days(frame[_START])
    has_no_position = np.bincount(rows[is_position], minlength=len(frame)) == 0
    uses_stated = (
        np.isnat(since) & (has_no_position | (current != _NO_POSITION)) & (stated_start <= day)
    )
    since = np.where(uses_stated, stated_start, since)
    changed = _differs(_employers(held, current), _employers(held, previous))
    values = [
        since,
        _calendar_years(since, day),
        _take_texts(held, "title", previous),
        _take_texts(held, _NAME, previous),
        changed,
    ]
    return frame_of_columns(TENURE, values).set_axis(frame.index, axis="index")


def _calendar_years(since: np.ndarray[Any, Any], day: np.datetime64) -> np.ndarray[Any, Any]:
    """Return full years by the calendar, plus the share of the year since the last anniversary."""
    starts, today = since.astype("datetime64[D]"), day.astype("datetime64[D]")
    months = starts.astype("datetime64[M]")
    # In other years, the anniversary of 29 February is 1 March.
    days = starts - months
    full = today.astype("datetime64[Y]") - starts.astype("datetime64[Y]")
    full = full - ((months + full).astype("datetime64[D]") + days > today).astype("timedelta64[Y]")
    last, following = ((months + n).astype("datetime64[D]") + days for n in (full, full + 1))
    years: np.ndarray[Any, Any] = full.astype(float) + (today - last) / (following - last)
    return years


def _days(column: pd.Series[Any]) -> np.ndarray[Any, Any]:
    """Return a column's days; a time with a zone counts as its day in UTC."""
    times = pd.to_datetime(column, errors="coerce", utc=True).dt.tz_localize(None)
    return times.astype("datetime64[us]").to_numpy()


def _latest(candidates: Flags, rows: Numbers, starts: np.ndarray[Any, Any], size: int) -> Numbers:
    """Return each row's candidate that began last; on ties, the first of the list."""
    places = np.flatnonzero(candidates)
    # As an integer, a missing start is smaller than any date.
    ranks = starts[places].astype("int64")
    places = places[np.lexsort((-places, ranks, rows[places]))]
    latest = np.full(size, _NO_POSITION)
    # If an index occurs several times, the last value is kept.
    latest[rows[places]] = places
    return latest


def _take_dates(dates: np.ndarray[Any, Any], places: Numbers) -> np.ndarray[Any, Any]:
    """Return the dates at `places`, missing for _NO_POSITION."""
    return np.append(dates, np.array("NaT", dates.dtype))[places]


def _take_texts(held: pd.DataFrame, column: str, places: Numbers) -> pa.Array:
    """Return a column's text at `places`; blank text is missing."""
    texts = pa.array(held[column], pa.large_string(), from_pandas=True)
    return filled_texts(texts).take(pa.array(places, mask=places == _NO_POSITION))


def _employers(held: pd.DataFrame, places: Numbers) -> tuple[pa.Array, pa.Array]:
    """Return the normalised company URLs and names at `places`."""
    urls, names = (_take_texts(held, column, places) for column in (_URL, _NAME))
    return company_url_keys(urls), company_name_keys(names)


def _differs(ours: tuple[pa.Array, pa.Array], theirs: tuple[pa.Array, pa.Array]) -> pa.Array:
    """Return whether employers differ by URL, else by name; missing if unknown."""
    by_url, by_name = (pc.not_equal(*pair) for pair in zip(ours, theirs, strict=True))
    return pc.coalesce(by_url, by_name)
