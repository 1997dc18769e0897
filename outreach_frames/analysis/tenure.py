"""Compute each person's years in the current position, and find the previous position."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.analysis.child_tables import list_entries, objects_frame
from outreach_frames.common.arguments import check_day
from outreach_frames.common.text import quoted
from outreach_frames.common.warnings import warn
from outreach_frames.identity.keys import company_name_keys, company_url_keys, filled_texts
from outreach_frames.identity.persons import Mask, Rows, key_numbers
from outreach_frames.reading.untyped_reader import RAW_SUFFIX
from outreach_frames.tables.column_checks import column_of, require_columns
from outreach_frames.tables.schema import frame_of_columns
from outreach_frames.tables.value_text import column_texts, strip_texts

TENURE: Final = (
    spec.Field("start_date", format="date", note="start of the current position"),
    spec.Field("years", "number", note="years in the current position"),
    spec.Field("previous_title", note="job title in the previous position"),
    spec.Field("previous_company", note="company of the previous position"),
    spec.Field(
        "changed_employer", "boolean", note="whether the previous position was at another company"
    ),
)
_POSITIONS: Final = "experiences"
_START: Final = "current_position_start_date"
_NAME, _URL = "company_name", "company_profnet_url"
_NO_POSITION: Final = -1
_ISO: Final = (
    r"\A\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?\z"
)


def tenure(frame: pd.DataFrame, as_of: str | date | None = None) -> pd.DataFrame:
    """Return each person's years in the current position, and the previous position.

    Parameters
    ----------
    frame : DataFrame
        People, with the columns of `search_people`.
    as_of : str or date, optional
        The reference day, as text YYYY-MM-DD or a date; by default today. Starts after this day
        are ignored.

    Returns
    -------
    DataFrame
        One row per row of `frame`, with the same index: start_date (datetime64), years (Float64),
        previous_title, previous_company (str), changed_employer (boolean). Unknown values are
        missing. The integer part of `years` counts anniversaries; a start on 29 February has its
        anniversary on 1 March in years without that day.

    Raises
    ------
    InvalidInputError
        The frame lacks the columns, or the day is not a date.

    Warns
    -----
    OutreachWarning
        Some dates are not ISO 8601. These dates are treated as unknown, and the warning counts
        them.

    Notes
    -----
    Interface: Person, `experiences` and `current_position_start_date`. A month (2018-01) counts as
    its first day.

    ==================  ============================================================================
    Term                Definition
    ==================  ============================================================================
    open position       It has begun, and has no end or ends after the reference day.
    current position    The open position at the person's company: of several, the one that began on
                        `current_position_start_date`, else the latest.
    start date          The current position's start. If it has none, or no position is current:
                        `current_position_start_date`.
    previous position   The position that ended last, before or on the start date.
    changed employer    The previous position was not at the person's company.
    same company        The same profile URL; if a URL is missing, the same name without case,
                        punctuation and legal form. Two names are one company if the frame lists
                        both with the same profile URL.
    ==================  ============================================================================

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
    documented = {field.name for field in spec.EXPERIENCE if not field.constant}
    # A value that does not fit its column, such as a month, is text in a raw column.
    columns = [name for name in held.columns if str(name).removesuffix(RAW_SUFFIX) in documented]
    is_position = held[columns].notna().any(axis="columns").to_numpy("bool")
    problems: list[str] = []
    starts, _ = _days(held, "start_date", rows, problems)
    ends, has_unknown_end = _days(held, "end_date", rows, problems)
    stated, _ = _days(frame, _START, np.arange(len(frame)), problems)
    if problems:
        warn(f"Dates other than YYYY-MM-DD were treated as unknown: {'; '.join(problems)}.")
    is_elsewhere = _are_elsewhere(held, frame, rows)
    is_own = np.logical_not(is_elsewhere.fill_null(True))
    # A comparison with a missing date is false, so an unknown start counts as begun.
    is_open = is_position & ~(starts > day) & ~(ends <= day) & ~has_unknown_end
    numbers = starts.astype("int64")
    current = _latest(is_open & is_own, rows, (numbers, starts == stated[rows]), len(frame))
    # The index of a missing position selects the appended missing date.
    since = np.append(starts, np.array("NaT", starts.dtype))[current]
    since = np.where(np.isnat(since) & (stated <= day), stated, since)
    previous = _latest(ends <= since[rows], rows, (numbers, ends.astype("int64")), len(frame))
    values = [
        since,
        _calendar_years(since, day),
        _take_texts(held, "title", previous),
        _take_texts(held, _NAME, previous),
        is_elsewhere.take(pa.array(previous, mask=previous == _NO_POSITION)),
    ]
    return frame_of_columns(TENURE, values).set_axis(frame.index, axis="index")


def _calendar_years(since: np.ndarray[Any, Any], day: np.datetime64) -> np.ndarray[Any, Any]:
    """Return full calendar years, plus the elapsed fraction of the year since the anniversary."""
    starts, today = since.astype("datetime64[D]"), day.astype("datetime64[D]")
    months = starts.astype("datetime64[M]")
    # In years without 29 February, the anniversary is 1 March.
    days = starts - months
    full = today.astype("datetime64[Y]") - starts.astype("datetime64[Y]")
    full = full - ((months + full).astype("datetime64[D]") + days > today).astype("timedelta64[Y]")
    last, following = (
        (months + n).astype("datetime64[D]") + days for n in (full, full + np.timedelta64(1, "Y"))
    )
    years: np.ndarray[Any, Any] = full.astype(float) + (today - last) / (following - last)
    return years


def iso_days(texts: pa.Array) -> np.ndarray[Any, Any]:
    """Return the UTC day of each ISO date or time; other texts give missing days.

    >>> days = iso_days(pa.array(["2018-01-04", "2018-01-04T23:30-02:00", "04.01.2018"]))
    >>> days.astype("datetime64[D]").astype(str).tolist()
    ['2018-01-04', '2018-01-05', 'NaT']
    """
    is_iso = pc.match_substring_regex(texts, _ISO)
    dates = pc.if_else(is_iso, texts, pa.scalar(None, texts.type)).to_pandas()
    times = pd.to_datetime(dates, format="ISO8601", errors="coerce", utc=True)
    days: np.ndarray[Any, Any] = times.to_numpy("datetime64[D]").astype("datetime64[us]")
    return days


def _days(
    table: pd.DataFrame, name: str, rows: Rows, problems: list[str]
) -> tuple[np.ndarray[Any, Any], Mask]:
    """Return the days of a column, and which days are unknown; a month counts as its first day."""
    column = table[name]
    raw = f"{name}{RAW_SUFFIX}"
    if pd.api.types.is_datetime64_any_dtype(column) and raw not in table.columns:
        times = pd.to_datetime(column, utc=True).to_numpy("datetime64[D]")
        return times.astype("datetime64[us]"), np.zeros(len(table), dtype=bool)
    columns = [column_of(table, label) for label in (name, raw) if label in table]
    written = [*map(column_texts, columns)]
    texts = strip_texts(pc.coalesce(*(part.texts for part in written)))
    days = iso_days(pc.replace_substring_regex(texts, r"\A(\d{4}-\d{2})\z", r"\1-01"))
    unknown = np.isnat(days) & np.asarray(texts.is_valid())
    unknown[[place for part in written for place in part.unreadable]] = True
    places = np.flatnonzero(unknown)
    if len(places):
        value = texts[places[0]].as_py() or column.iloc[places[0]]
        first = f"row {rows[places[0]]}, {quoted(value)}"
        where = name if name == _START else f"{name} of {_POSITIONS}"
        problems.append(f"{len(places):,} in {where} (first: {first})")
    return days, unknown


def _latest(
    candidates: Mask, rows: Rows, ranks: tuple[np.ndarray[Any, Any], ...], size: int
) -> Rows:
    """Return the highest-ranked candidate of each row; on ties, the first in the list."""
    places = np.flatnonzero(candidates)
    # Converted to an integer, a missing start date is smaller than any other date.
    keys = [rank[places] for rank in ranks]
    places = places[np.lexsort((-places, *keys, rows[places]))]
    latest = np.full(size, _NO_POSITION)
    # Assignment keeps the last value if a row occurs several times.
    latest[rows[places]] = places
    return latest


def _take_texts(held: pd.DataFrame, column: str, places: Rows) -> pa.Array:
    """Return a column's texts at `places`; return blank texts as missing values."""
    texts = pa.array(held[column], pa.large_string(), from_pandas=True)
    return filled_texts(texts).take(pa.array(places, mask=places == _NO_POSITION))


def _are_elsewhere(held: pd.DataFrame, frame: pd.DataFrame, rows: Rows) -> pa.Array:
    """Return whether each position is not at the person's company; missing if unknown."""
    # The numbers of all positions, then of all people.
    urls = _numbers(held, frame, _URL, company_url_keys)
    names = _numbers(held, frame, _NAME, company_name_keys)
    # If the frame has a single URL for a name, the name counts as that URL.
    pairs = pd.DataFrame({"name": names, "url": urls}).drop_duplicates()
    pairs = pairs[(pairs != _NO_POSITION).all(axis="columns")]
    url_of = pairs.drop_duplicates("name", keep=False).set_index("name")["url"]
    named = url_of.reindex(names, fill_value=_NO_POSITION).to_numpy()
    urls = np.where(urls == _NO_POSITION, named, urls)
    positions, people = np.arange(len(rows)), len(rows) + rows
    has_urls, has_names = (
        np.minimum(numbers[positions], numbers[people]) != _NO_POSITION for numbers in (urls, names)
    )
    differs = np.where(has_urls, urls[positions] != urls[people], names[positions] != names[people])
    return pa.array(differs, mask=~(has_urls | has_names))


def _numbers(
    held: pd.DataFrame, frame: pd.DataFrame, column: str, keys_of: Callable[[pa.Array], pa.Array]
) -> Rows:
    """Convert the keys of a column to numbers: one number per distinct key, -1 if missing."""
    people = (
        column_texts(column_of(frame, column)).texts if column in frame else pa.nulls(len(frame))
    )
    parts = [column_texts(held[column]).texts, people]
    texts = pa.concat_arrays([part.cast(pa.large_string()) for part in parts]).dictionary_encode()
    return key_numbers(keys_of(texts.dictionary).take(texts.indices))
