"""Tenure: since when people are in their position, and which one they held before; pure."""

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
    spec.Field("start_date", format="date", note="when the current position began"),
    spec.Field("years", "number", note="years in the current position"),
    spec.Field("previous_title", note="title of the position before it"),
    spec.Field("previous_company", note="company of the position before it"),
    spec.Field(
        "changed_employer", "boolean", note="whether the position before it was at another company"
    ),
)
_POSITIONS: Final = "experiences"
_START: Final = "current_position_start_date"
_NAME, _URL = "company_name", "company_profnet_url"
_DAYS_PER_YEAR: Final = 365.25
# A position that a list lacks.
_NONE: Final = -1

Flags = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def tenure(frame: pd.DataFrame, as_of: str | date | None = None) -> pd.DataFrame:
    """Return how long people have been in their position, and which one they held before.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`.
    as_of : str or date, optional
        The day to look from; by default today. What began later does not count, and what ended
        later has not ended.

    Returns
    -------
    DataFrame
        With the frame's index: start_date (datetime64), years (Float64), previous_title,
        previous_company (str), changed_employer (boolean). Missing where the frame does not tell.

    Raises
    ------
    InvalidInputError
        The frame lacks these columns, or the day cannot be read.

    Notes
    -----
    Interface: Person, `experiences` and `current_position_start_date`. The current position is the
    one that began last of those that have not ended; a missing end is none. Where a person has no
    experiences, or the current one no start, `current_position_start_date` is taken. The previous
    position is the one that began last before it; one of the same day counts if it has ended. Its
    employer is another one if the companies' profile URLs differ, or their names where a URL is
    missing, so that a promotion is no change.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=50)
    >>> tenure = people.outreach.tenure(as_of="2026-03-02")
    >>> bool(tenure["years"].median() > 0)
    True
    """
    require_columns(frame, [_POSITIONS, _START], "columns of positions", "search_people()")
    day = check_day("as_of", as_of).to_numpy().astype("datetime64[us]")
    rows, entries = list_entries(frame[_POSITIONS])
    held = objects_frame(entries, spec.EXPERIENCE)
    told = held[[field.name for field in spec.EXPERIENCE if not field.constant]].notna()
    is_position = told.any(axis="columns").to_numpy("bool")
    starts = held["start_date"].to_numpy("datetime64[us]")
    ends = held["end_date"].to_numpy("datetime64[us]")
    # A comparison with a missing date is never true.
    counts = is_position & ~(starts > day)
    ended = ends < day
    current = _latest(counts & ~ended, rows, starts, len(frame))
    since = _taken(starts, current)
    own = current[rows]
    before = (starts < since[rows]) | (ended & ~(starts > since[rows]))
    is_previous = counts & before & (own != _NONE) & (own != np.arange(len(rows)))
    previous = _latest(is_previous, rows, starts, len(frame))

    stated = _days(frame[_START])
    has_none = np.bincount(rows[is_position], minlength=len(frame)) == 0
    takes_stated = np.isnat(since) & (has_none | (current != _NONE)) & (stated <= day)
    since = np.where(takes_stated, stated, since)
    changed = _differs(_employers(held, current), _employers(held, previous))
    values = [
        since,
        (day - since) / np.timedelta64(1, "D") / _DAYS_PER_YEAR,
        _texts(held, "title", previous),
        _texts(held, _NAME, previous),
        changed,
    ]
    return frame_of_columns(TENURE, values).set_axis(frame.index, axis="index")


def _days(column: pd.Series[Any]) -> np.ndarray[Any, Any]:
    """Return a column's days; of a time with a zone, its day in UTC."""
    times = pd.to_datetime(column, errors="coerce", utc=True).dt.tz_localize(None)
    return times.astype("datetime64[us]").to_numpy()


def _latest(candidates: Flags, rows: Numbers, starts: np.ndarray[Any, Any], size: int) -> Numbers:
    """Return of each row the candidate that began last, the first in the list of several such."""
    places = np.flatnonzero(candidates)
    # A missing start is the smallest number.
    ranks = starts[places].astype("int64")
    places = places[np.lexsort((-places, ranks, rows[places]))]
    latest = np.full(size, _NONE)
    # Of several values for one place, the last stays.
    latest[rows[places]] = places
    return latest


def _taken(dates: np.ndarray[Any, Any], places: Numbers) -> np.ndarray[Any, Any]:
    """Return the dates at places, missing where there is no place."""
    return np.append(dates, np.array("NaT", dates.dtype))[places]


def _texts(held: pd.DataFrame, column: str, places: Numbers) -> pa.Array:
    """Return a column's text at places; blank text is missing."""
    texts = pa.array(held[column], pa.large_string(), from_pandas=True)
    return filled_texts(texts).take(pa.array(places, mask=places == _NONE))


def _employers(held: pd.DataFrame, places: Numbers) -> tuple[pa.Array, pa.Array]:
    """Return URLs and names at places, in the form that they are compared in."""
    urls, names = (_texts(held, column, places) for column in (_URL, _NAME))
    return company_url_keys(urls), company_name_keys(names)


def _differs(ours: tuple[pa.Array, pa.Array], theirs: tuple[pa.Array, pa.Array]) -> pa.Array:
    """Return whether employers differ, by URL or else by name; missing where neither tells."""
    by_url, by_name = (pc.not_equal(*pair) for pair in zip(ours, theirs, strict=True))
    return pc.coalesce(by_url, by_name)
