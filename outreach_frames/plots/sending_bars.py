"""Draw bar charts of a submission's outcomes, and of emails per day and mailbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import matplotlib.dates as mdates
import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator

from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import plural, readable
from outreach_frames.errors import InvalidInputError
from outreach_frames.leads import statuses
from outreach_frames.plots import canvas
from outreach_frames.plots.bars import largest_first, plot_bars
from outreach_frames.plots.labels import (
    NOT_GIVEN,
    count_text,
    share_decimals,
    share_text,
)
from outreach_frames.tables.column_checks import require_columns
from outreach_frames.tables.interchange import FrameLike, is_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OUTCOME_INPUT: Final = "a report of add_to_sequence, its .rows or its .summary()"
# The colours of `statuses.DRY_RUN_KINDS`.
_COLORS: Final = (canvas.BLUE, canvas.ORANGE, canvas.DARK_RED, canvas.OTHER_COLOR)
_MAX_STATUSES: Final = 20
_SENDING_DAYS: Final = ("date", "email", "emails", "leads_finished")
# Sum the days by week if there are more than this.
_MAX_BARS: Final = 90
# Round dates have gaps of one week or more if there are more bars than this.
_MAX_LABELLED: Final = 24
_MAX_TICKS: Final = 7
_CAPACITY_INPUT: Final = "the table that sending_capacity returns"


def outcomes(data: Any, *, ax: Axes | None = None) -> Axes:
    """Plot the number of rows of a submission per outcome.

    Parameters
    ----------
    data : SubmissionReport or DataFrame, also of Polars, DuckDB or Arrow
        The report from `df.outreach.add_to_sequence`, or the report's `.rows`, `.frame` or
        `.summary()`.
    ax : Axes, optional
        Axes to draw on; by default a new figure, sized to fit.

    Returns
    -------
    Axes
        One horizontal bar per status, in the order of the report's summary. Rows in the sequence
        are blue, skipped rows orange, failed rows dark red, rows that a dry run would send grey.

    Raises
    ------
    InvalidInputError
        The data is neither a report of `add_to_sequence` nor one of the report's frames.

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
    inside = int(rows[rows.index.isin(statuses.IN_SEQUENCE)].sum())
    verb = "is" if total == 1 else "are"
    shares = (rows / max(total, 1)).astype(float).tolist()
    return plot_bars(
        ax,
        rows.to_frame("rows").set_axis([readable(str(name)) for name in rows.index]),
        title=f"{inside:,} of {plural(total, 'row')} {verb} in the sequence",
        xlabel="Rows",
        top=_MAX_STATUSES,
        rows="statuses",
        texts=[
            f"{count_text(number)} ({share_text(share, share_decimals(shares))})"
            for number, share in zip(rows, shares, strict=True)
        ],
        colors=[_COLORS[_kind_order(status)] for status in rows.index],
    )


def capacity(data: FrameLike, *, top: int | None = None, ax: Axes | None = None) -> Axes:
    """Plot the number of emails per day and mailbox until all leads have received all emails.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        The table that `sending_capacity` returns.
    top : int, optional
        Number of mailboxes to show separately, at most six; the largest are shown, and the others
        are summed. By default up to six mailboxes are shown, and more only as their total.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes
        One bar per day; more than 90 days are summed by week. Bars are stacked by mailbox. The
        title has the last sending day. A line marks the day on which the last lead starts, unless
        the last bar contains that day.

    Raises
    ------
    InvalidInputError
        The data is not a table of `sending_capacity`.

    Notes
    -----
    Interface: Mailbox, `daily_email_limit`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> days = pd.DataFrame({"date": pd.to_datetime(["2026-11-23", "2026-11-24"]),
    ...     "email": "ada@example.com", "emails": [40, 20], "leads_finished": [40, 60]})
    >>> of.plots.capacity(days).get_title()
    '60 leads by 24 November 2026, in 2 sending days'
    """
    table = canvas.check_frame(data, _CAPACITY_INPUT)
    shown = None if top is None else min(canvas.check_top(top), len(canvas.SERIES))
    require_columns(table, _SENDING_DAYS, "sending days", _CAPACITY_INPUT)
    axes = canvas.new_axes(ax)
    if table.empty:
        return canvas.show_empty(axes, "0 leads, in 0 sending days", "No sending days to show")
    table = table.assign(
        date=_dates(table["date"]),
        email=table["email"].astype(STR).fillna(NOT_GIVEN),
        emails=canvas.check_numbers(table, "emails"),
        leads_finished=canvas.check_numbers(table, "leads_finished").fillna(0),
    )
    days = table.pivot_table(index="email", columns="date", values="emails", aggfunc="sum")
    days = largest_first(days).astype("Float64").fillna(0)
    periods, period = _group_by_period(days)
    if shown is None and len(periods) > len(canvas.SERIES):
        total = plural(len(periods), "mailbox", "mailboxes")
        periods = periods.sum().to_frame(total).T
    _draw_periods(axes, periods, _last_start(table), shown or len(canvas.SERIES))
    last = pd.Timestamp(table["date"].max())
    leads = plural(int(table["leads_finished"].max()), "lead")
    sending_days = plural(days.shape[1], "sending day")
    title = f"{leads} by {last.day} {last:%B %Y}, in {sending_days}"
    return canvas.finish(axes, title, ylabel=f"Emails per {period}")


def _rows_by_status(data: Any) -> pd.Series:
    """Count the rows per status, in the order of the report's summary."""
    # A frame with a column named "summary" has the attribute, too.
    if not is_frame(data) and hasattr(data, "summary"):
        data = data.summary()
    frame = canvas.check_frame(data, _OUTCOME_INPUT)
    require_columns(frame, ["status"], "statuses", _OUTCOME_INPUT)
    if "rows" in frame.columns:
        names = frame["status"].astype(STR).fillna(NOT_GIVEN)
        return canvas.check_numbers(frame, "rows").fillna(0).groupby(names, sort=False).sum()
    counts = frame["status"].astype(STR).fillna(NOT_GIVEN).value_counts()
    # The sort is stable: within a kind, the most frequent status stays first.
    return counts.loc[sorted(counts.index, key=_kind_order)]


def _kind_order(status: object) -> int:
    return statuses.DRY_RUN_KINDS.index(statuses.kind_of(str(status)))


def _dates(column: pd.Series) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(column):
        return pd.to_datetime(column)
    try:
        return pd.to_datetime(column.astype(STR), format="%Y-%m-%d")
    except ValueError as error:
        raise InvalidInputError(
            f"The column 'date' has values not in the format YYYY-MM-DD: {error}. Correct them."
        ) from error


def _group_by_period(days: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Sum the days by week if one bar per day would be too many."""
    dates = pd.DatetimeIndex(days.columns)
    code, period = ("D", "day") if len(dates) <= _MAX_BARS else ("W", "week")
    return days.T.groupby(dates.to_period(code).start_time).sum().T, period


def _last_start(table: pd.DataFrame) -> pd.Timestamp:
    """Return the day on which the last lead starts; without `leads_started`, the last day."""
    if "leads_started" not in table:
        return pd.Timestamp(table["date"].max())
    started = canvas.check_numbers(table, "leads_started").fillna(0)
    return pd.Timestamp(table["date"][started == started.max()].min())


def _draw_periods(axes: Axes, table: pd.DataFrame, last_start: pd.Timestamp, top: int) -> None:
    dates = np.asarray(mdates.date2num(table.columns.to_numpy()))
    step = np.diff(dates).min() if len(dates) > 1 else 1
    others = table.iloc[top:]
    emails = table.iloc[:top].to_numpy(dtype=float)
    below = np.zeros(len(dates))
    for row, name in enumerate(canvas.names_that_fit(axes, table.index[:top])):
        style = canvas.series_style(axes, row)
        axes.bar(dates, emails[row], 0.8 * step, bottom=below, label=name, **style)
        below = below + emails[row]
    if len(others):
        name, color = f"other ({len(others):,})", canvas.OTHER_COLOR
        sums = others.sum().to_numpy(dtype=float)
        axes.bar(dates, sums, 0.8 * step, bottom=below, label=name, color=color)
    last = dates[dates <= mdates.date2num(last_start)].max()
    if last < dates.max():
        marked, color = [last + step / 2] * 2, canvas.text_color(axes)
        line = {"color": color, "linestyle": "--", "linewidth": 1}
        axes.plot(marked, [0, table.sum().max()], label="all leads started", **line)
    axes.margins(x=0.02)
    canvas.legend_above_bars(axes)
    canvas.number_axis(axes.yaxis)
    # Label each bar, or each second bar and so on, or round dates if there are many bars.
    step_of_labels = int(np.ceil((np.ptp(dates) / step + 1) / canvas.max_ticks(axes, "23 Nov")))
    few = FixedLocator(dates[::step_of_labels].tolist()) if len(dates) <= _MAX_LABELLED else None
    locator = few or mdates.AutoDateLocator(minticks=3, maxticks=_MAX_TICKS)
    # The title has the year.
    concise = mdates.ConciseDateFormatter(locator, show_offset=False)
    concise.formats[2] = concise.zero_formats[2] = "%d %b"
    # The concise formatter would show the hour of a single day.
    formatter = concise if len(dates) > 1 else mdates.DateFormatter("%d %b %Y")
    axes.xaxis_date()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(formatter)
