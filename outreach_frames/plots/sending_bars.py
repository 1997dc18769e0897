"""Draw bar charts of a submission's outcomes, and of emails per day and mailbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import matplotlib.dates as mdates
import numpy as np
import pandas as pd

from outreach_frames.analysis.companies import require_columns
from outreach_frames.analysis.tenure import iso_days
from outreach_frames.common.text import plural, quoted, readable
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots import canvas
from outreach_frames.plots.bars import largest_first, plot_bars, sum_others
from outreach_frames.plots.labels import (
    COUNT,
    NOT_GIVEN,
    count_text,
    drawable,
    share_text,
)
from outreach_frames.tables.interchange import FrameLike, is_frame
from outreach_frames.tables.value_text import column_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_IN_SEQUENCE: Final = frozenset({"added", "present"})
_FAILED: Final = frozenset({"invalid", "rejected", "unknown", "not_sent"})
_OUTCOME_INPUT: Final = "a report of add_to_sequence, its .rows or its .summary()"
_MAX_STATUSES: Final = 30
_SENDING_DAYS: Final = ("date", "email", "emails", "leads_reached")
# Show domains if mailboxes beyond `top` send more than this share of the emails.
_MAX_OTHER_SHARE: Final = 1 / 3
# Sum the days by week, month or year if there are more bars than this.
_MAX_BARS: Final = 90
# Width of a date label, in multiples of the font size.
_DATE_WIDTH: Final = 4
_MAX_TICKS: Final = 8
_PERIODS: Final = {"D": "day", "W": "week", "M": "month", "Y": "year"}
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
        are blue, skipped rows orange, failed rows vermillion.

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
    if not total:
        rows = rows.head(0)
    inside = int(rows[rows.index.isin(_IN_SEQUENCE)].sum())
    verb = "is" if total == 1 else "are"
    return plot_bars(
        ax,
        rows.to_frame("rows").set_axis([readable(str(name)) for name in rows.index]),
        title=f"{inside:,} of {plural(total, 'row')} {verb} in the sequence",
        empty_text="No rows to show",
        xlabel="Rows",
        top=_MAX_STATUSES,
        labels=lambda shown: [
            f"{count_text(number)} ({share_text(number / total)})" for number in shown["rows"]
        ],
        colors=[_color(str(status)) for status in rows.index],
    )


def capacity(data: FrameLike, *, top: int = 5, ax: Axes | None = None) -> Axes:
    """Plot the number of emails per day and mailbox until all leads have received all emails.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        The table that `sending_capacity` returns.
    top : int
        Number of mailboxes or domains to show separately, at most six. The largest are shown; the
        others are summed.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes
        One bar per day; more than 90 days are summed by week, month or year. Bars are stacked by
        mailbox, or by domain if mailboxes beyond `top` send more than a third of the emails. If
        not all dates fit, only the first sending day of each week, month, quarter or year is
        labelled. The title has the last sending day. A line marks the day on which the last lead
        starts, unless the last bar contains that day.

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
    ...     "email": "ada@example.com", "emails": [40, 20], "leads_reached": [40, 60]})
    >>> of.plots.capacity(days).get_title()
    '60 leads by 24 November 2026, in 2 sending days'
    """
    table = canvas.check_frame(data, _CAPACITY_INPUT)
    top = min(canvas.check_top(top), len(canvas.SERIES))
    require_columns(table, _SENDING_DAYS, "sending days", _CAPACITY_INPUT)
    axes = canvas.new_axes(ax)
    if table.empty:
        return canvas.show_empty(axes, "0 leads, in 0 sending days", "No sending days to show")
    table = table.assign(
        date=_dates(table["date"]),
        email=table["email"].astype("str").fillna(NOT_GIVEN),
        emails=canvas.check_numbers(table, "emails"),
        leads_reached=canvas.check_numbers(table, "leads_reached").fillna(0),
    )
    days = table.pivot_table(index="email", columns="date", values="emails", aggfunc="sum")
    if _other_share(days, top) > _MAX_OTHER_SHARE:
        days = days.groupby(lambda email: email.rpartition("@")[2]).sum(min_count=1)
    shown = sum_others(largest_first(days).astype("Float64").fillna(0), top)
    periods, period = _group_by_period(shown)
    sent = pd.DatetimeIndex(days.columns).normalize()
    _draw_periods(axes, periods, _last_start(table), has_other=len(shown) < len(days))
    _label_periods(axes, pd.DatetimeIndex(periods.columns), sent, period)
    last = pd.Timestamp(table["date"].max())
    leads = plural(int(table["leads_reached"].max()), "lead")
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
        statuses = frame["status"].astype("str").fillna(NOT_GIVEN)
        return canvas.check_numbers(frame, "rows").fillna(0).groupby(statuses, sort=False).sum()
    counts = frame["status"].astype("str").fillna(NOT_GIVEN).value_counts()
    # The sort is stable: within a kind, the most frequent status stays first.
    return counts.loc[sorted(counts.index, key=lambda status: _status_kind(str(status)))]


def _status_kind(status: str) -> int:
    if status in _IN_SEQUENCE:
        return 0
    return 2 if status in _FAILED else 1


def _color(status: str) -> str:
    return (canvas.BLUE, canvas.ORANGE, canvas.VERMILLION)[_status_kind(status)]


def _dates(column: pd.Series) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(column):
        return pd.to_datetime(column)
    dates = pd.Series(iso_days(column_texts(column).texts), column.index)
    bad = np.flatnonzero(dates.isna() & column.notna())
    if len(bad):
        raise InvalidInputError(
            f"The column 'date' has {plural(len(bad), 'value')} not in the format YYYY-MM-DD, "
            f"such as {quoted(column.iloc[bad[0]])} in row {bad[0]}. Correct them."
        )
    return dates


def _other_share(days: pd.DataFrame, top: int) -> float:
    """Return the share of emails from mailboxes other than the `top` largest."""
    emails = days.sum(axis="columns").sort_values(ascending=False)
    return float(emails.iloc[top:].sum() / max(emails.sum(), 1))


def _group_by_period(days: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Sum the days by week, month or year if one bar per day would be too many."""
    dates = pd.DatetimeIndex(days.columns)
    starts = {word: dates.to_period(code).start_time for code, word in _PERIODS.items()}
    word = next((word for word in starts if starts[word].nunique() <= _MAX_BARS), "year")
    return days.T.groupby(starts[word]).sum().T, word


def _last_start(table: pd.DataFrame) -> pd.Timestamp:
    """Return the day on which the last lead starts; without `leads_started`, the last day."""
    if "leads_started" not in table:
        return pd.Timestamp(table["date"].max())
    started = canvas.check_numbers(table, "leads_started").fillna(0)
    return pd.Timestamp(table["date"][started == started.max()].min())


def _draw_periods(
    axes: Axes, table: pd.DataFrame, last_start: pd.Timestamp, *, has_other: bool
) -> None:
    dates = np.asarray(mdates.date2num(table.columns.to_numpy()))
    step = np.diff(dates).min() if len(dates) > 1 else 1
    width = 0.8 * step
    below = np.zeros(len(dates))
    names = drawable(table.index)
    for row, name in enumerate(names):
        is_other = has_other and row == len(names) - 1
        style = canvas.series_style(axes, row, is_other=is_other)
        emails = table.iloc[row].to_numpy(dtype=float)
        axes.bar(dates, emails, width, bottom=below, label=name, **style)
        below = below + emails
    axes.xaxis_date()
    canvas.number_axis(axes, axes.yaxis, COUNT)
    axes.margins(x=0.02, y=0.02)
    top = canvas.add_legend(axes, names, has_other=has_other)
    last = dates[dates <= mdates.date2num(last_start)].max()
    if last < dates.max():
        top += canvas.mark_line(axes, last + step / 2, "all started", top)
    canvas.reserve_top(axes, top)


def _label_periods(axes: Axes, bars: pd.DatetimeIndex, sent: pd.DatetimeIndex, period: str) -> None:
    """Label each bar, or the first bar per week, month, quarter or year, with its date."""
    days = bars[bars.isin(sent)] if period == "week" else bars
    width = canvas.axes_size(axes)[0] / canvas.points("xtick.labelsize") / _DATE_WIDTH
    fitting = int(min(max(width, 2), _MAX_TICKS))
    ticks = days
    for code in ("D", "W", "M", "Q", "Y"):
        ticks = days[~days.to_period(code).duplicated()]
        # Skip the first label if its week or month is too short for the text.
        if len(ticks) > 2 and (ticks[1] - ticks[0]) / (days[-1] - days[0]) < 1 / width:
            ticks = ticks[1:]
        if len(ticks) <= fitting:
            break
    ticks = ticks[:: -(-len(ticks) // fitting)]
    labels = []
    for tick, is_same_year in zip(ticks, ticks.year.duplicated(), strict=True):
        text = f"{tick:%b}" if period == "month" or code in "MQY" else f"{tick.day} {tick:%b}"
        labels.append(text if is_same_year else f"{text}\n{tick.year}")
    if period == "year":
        labels = [str(year) for year in ticks.year]
    axes.set_xticks(mdates.date2num(ticks), labels)
