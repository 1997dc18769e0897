"""How many emails mailboxes can send on each day, as stacked bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import matplotlib.dates as mdates
import numpy as np
import pandas as pd

from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots.arguments import check_frame, check_numbers, check_top
from outreach_frames.plots.bars import with_rest
from outreach_frames.plots.canvas import (
    add_legend,
    axes_size,
    finish,
    keep_clear,
    new_axes,
    number_axis,
    pixels,
    points,
    set_title,
    show_empty,
)
from outreach_frames.plots.colors import SERIES, series_style
from outreach_frames.plots.labels import NOT_GIVEN, count_text, drawable
from outreach_frames.tables.interchange import FrameLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS: Final = ("date", "email", "emails", "leads_reached")
# How many bars there are at most, and what is summed where there would be more.
_MOST_BARS: Final = 90
_PERIODS: Final = {"D": "day", "W": "week", "M": "month", "Y": "year"}
_TAKES: Final = "the table that sending_capacity returns"


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
    table = check_frame(data, _TAKES)
    most = min(check_top(top), len(SERIES))
    require_columns(table, _COLUMNS, "sending days", _TAKES)
    axes = new_axes(ax)
    if table.empty:
        set_title(axes, "0 leads, in 0 sending days")
        return show_empty(axes, "No sending days to show")
    table = table.assign(
        date=_dates(table["date"]),
        email=table["email"].astype("str").fillna(NOT_GIVEN),
        emails=check_numbers(table, "emails"),
        leads_reached=check_numbers(table, "leads_reached").fillna(0),
    )
    days = table.pivot_table(
        index="email", columns="date", values="emails", aggfunc="sum", observed=True
    )
    days = days.loc[days.sum(axis="columns").sort_values(ascending=False, kind="stable").index]
    shown = with_rest(days.astype("Float64").fillna(0), most)
    periods, period = _by_period(shown)
    _draw_periods(axes, periods, rest=len(shown) < len(days))
    last = pd.Timestamp(table["date"].max())
    leads = plural(int(table["leads_reached"].max()), "lead")
    sending_days = plural(days.shape[1], "sending day")
    set_title(axes, f"{leads} by {last.day} {last:%B %Y}, in {sending_days}")
    axes.set(ylabel=f"Emails a {period}")
    return finish(axes)


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
        style = series_style(axes, place, len(names) if rest else 0)
        emails = table.iloc[place].to_numpy(dtype=float)
        axes.bar(dates, emails, width, bottom=below, label=name, **style)
        below = below + emails
    axes.xaxis_date()
    locator = mdates.AutoDateLocator(minticks=1, maxticks=_date_ticks(axes))
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))
    number_axis(axes.yaxis, lambda value, _: count_text(value), whole=True)
    axes.margins(x=0.02, y=0.02)
    keep_clear(axes, add_legend(axes, names, rest=rest))


def _date_ticks(axes: Axes) -> int:
    """Return how many dates have room beside one another, each some six letters wide."""
    wide = pixels(axes, points("xtick.labelsize") * 6)
    return int(min(max(axes_size(axes)[0] / wide, 2), 8))
