"""Sending as bars: the outcomes of a submission, and what mailboxes can send on each day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import matplotlib.dates as mdates
import numpy as np
import pandas as pd

from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots import canvas
from outreach_frames.plots.bars import largest_first, plot_bars, with_rest
from outreach_frames.plots.labels import (
    COUNT,
    NOT_GIVEN,
    count_text,
    drawable,
    readable,
    share_text,
)
from outreach_frames.tables.interchange import FrameLike, is_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_IN_SEQUENCE: Final = frozenset({"added", "present"})
_FAILED: Final = frozenset({"invalid", "rejected", "unknown", "not_sent"})
_TAKES_OUTCOMES: Final = "a report of add_to_sequence, its .rows or its .summary()"
_MOST_STATUSES: Final = 30
_SENDING_DAYS: Final = ("date", "email", "emails", "leads_reached")
# How many bars there are at most, and what is summed where there would be more.
_MOST_BARS: Final = 90
# What a date on the axis takes, in heights of its font.
_DATE_WIDTH: Final = 4
_PERIODS: Final = {"D": "day", "W": "week", "M": "month", "Y": "year"}
_TAKES_DAYS: Final = "the table that sending_capacity returns"


def outcomes(data: Any, *, ax: Axes | None = None) -> Axes:
    """Plot what became of the rows of a submission.

    Parameters
    ----------
    data : SubmissionReport or DataFrame, also of Polars, DuckDB or Arrow
        The report that `df.outreach.add_to_sequence` returns, its `.rows`, `.frame` or
        `.summary()`.
    ax : Axes, optional
        Where to draw; by default on a new figure of fitting height.

    Returns
    -------
    Axes
        With one horizontal bar per status that occurs, in the order of the report's summary: what
        is in the sequence (blue), what was skipped (orange), what needs a look (vermillion).

    Raises
    ------
    InvalidInputError
        The data is neither a report nor such a frame.

    Notes
    -----
    Interface: Add-leads success result.

    Examples
    --------
    >>> import outreach_frames as of
    >>> rows = pd.DataFrame({"status": ["added", "added", "recently_contacted"]})
    >>> of.plots.outcomes(rows).get_title()
    '2 of 3 rows are in the sequence'
    """
    rows = _rows_by_status(data)
    total = int(rows.sum())
    if not total:
        rows = rows.head(0)
    inside = int(rows[rows.index.isin(_IN_SEQUENCE)].sum())
    verb = "is" if total == 1 else "are"
    return plot_bars(
        ax,
        rows.to_frame("rows").set_axis([readable(str(name)) for name in rows.index]),
        title=f"{inside:,} of {plural(total, 'row')} {verb} in the sequence",
        nothing="No rows to show",
        xlabel="Rows",
        top=_MOST_STATUSES,
        notes=lambda shown: [
            f"{count_text(number)} ({share_text(number / total)})" for number in shown["rows"]
        ],
        colors=[_color(str(status)) for status in rows.index],
    )


def capacity(data: FrameLike, *, top: int = 5, ax: Axes | None = None) -> Axes:
    """Plot how many emails each mailbox sends on each day until all leads are reached.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        What `sending_capacity` returns.
    top : int
        How many mailboxes have a colour of their own, six at most, those that send the most first;
        the rest is summed as "other".
    ax : Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes
        With one bar per day, divided among mailboxes. The title says when all leads are reached.

    Raises
    ------
    InvalidInputError
        The data is another table.

    Notes
    -----
    Interface: Mailbox, `daily_email_limit`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> days = pd.DataFrame({"date": pd.to_datetime(["2026-11-23", "2026-11-24"]),
    ...     "email": "ada@example.com", "emails": [40, 20], "leads_reached": [40, 60]})
    >>> of.plots.capacity(days).get_title()
    '60 leads by 24 November 2026, in 2 sending days'
    """
    table = canvas.check_frame(data, _TAKES_DAYS)
    most = min(canvas.check_top(top), len(canvas.SERIES))
    require_columns(table, _SENDING_DAYS, "sending days", _TAKES_DAYS)
    axes = canvas.new_axes(ax)
    if table.empty:
        return canvas.show_empty(axes, "0 leads, in 0 sending days", "No sending days to show")
    table = table.assign(
        date=_dates(table["date"]),
        email=table["email"].astype("str").fillna(NOT_GIVEN),
        emails=canvas.check_numbers(table, "emails"),
        leads_reached=canvas.check_numbers(table, "leads_reached").fillna(0),
    )
    days = table.pivot_table(
        index="email", columns="date", values="emails", aggfunc="sum", observed=True
    )
    shown = with_rest(largest_first(days).astype("Float64").fillna(0), most)
    periods, period = _by_period(shown)
    _draw_periods(axes, periods, rest=len(shown) < len(days))
    last = pd.Timestamp(table["date"].max())
    leads = plural(int(table["leads_reached"].max()), "lead")
    sending_days = plural(days.shape[1], "sending day")
    title = f"{leads} by {last.day} {last:%B %Y}, in {sending_days}"
    return canvas.finish(axes, title, ylabel=f"Emails a {period}")


def _rows_by_status(data: Any) -> pd.Series:
    """Return how many rows each status has, in the summary's order where there is a summary."""
    # A frame may have a column of that name.
    if not is_frame(data) and hasattr(data, "summary"):
        data = data.summary()
    frame = canvas.check_frame(data, _TAKES_OUTCOMES)
    require_columns(frame, ["status"], "statuses", _TAKES_OUTCOMES)
    if "rows" in frame.columns:
        statuses = frame["status"].astype("str").fillna(NOT_GIVEN)
        return canvas.check_numbers(frame, "rows").fillna(0).groupby(statuses, sort=False).sum()
    counts = frame["status"].astype("str").fillna(NOT_GIVEN).value_counts()
    # Stable, so that what is most frequent stays first among those of one kind.
    return counts.loc[sorted(counts.index, key=lambda status: _kind(str(status)))]


def _kind(status: str) -> int:
    if status in _IN_SEQUENCE:
        return 0
    return 2 if status in _FAILED else 1


def _color(status: str) -> str:
    return (canvas.BLUE, canvas.ORANGE, canvas.VERMILLION)[_kind(status)]


def _dates(column: pd.Series) -> pd.Series:
    try:
        return pd.to_datetime(column)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"The column 'date' is not of days: {error}.") from error


def _by_period(days: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Sum the days of a week or month where there are too many for bars of their own."""
    dates = pd.DatetimeIndex(days.columns)
    starts = {word: dates.to_period(code).start_time for code, word in _PERIODS.items()}
    word = next((word for word in starts if starts[word].nunique() <= _MOST_BARS), "year")
    return days.T.groupby(starts[word]).sum().T, word


def _draw_periods(axes: Axes, table: pd.DataFrame, *, rest: bool) -> None:
    dates = np.asarray(mdates.date2num(table.columns.to_numpy()))
    width = 0.8 * (np.diff(dates).min() if len(dates) > 1 else 1)
    below = np.zeros(len(dates))
    names = drawable(table.index)
    for place, name in enumerate(names):
        style = canvas.series_style(axes, place, len(names) if rest else 0)
        emails = table.iloc[place].to_numpy(dtype=float)
        axes.bar(dates, emails, width, bottom=below, label=name, **style)
        below = below + emails
    axes.xaxis_date()
    most = canvas.axes_size(axes)[0] / canvas.points("xtick.labelsize") / _DATE_WIDTH
    locator = mdates.AutoDateLocator(minticks=1, maxticks=int(min(max(most, 2), 8)))
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))
    canvas.number_axis(axes, axes.yaxis, COUNT)
    axes.margins(x=0.02, y=0.02)
    canvas.keep_clear(axes, canvas.add_legend(axes, names, rest=rest))
