"""What became of the rows of a submission, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.text import plural
from outreach_frames.plots.arguments import check_frame, check_numbers
from outreach_frames.plots.bars import draw_bars, figure_height
from outreach_frames.plots.canvas import finish, new_axes, set_title, show_empty
from outreach_frames.plots.colors import BLUE, ORANGE, VERMILLION
from outreach_frames.plots.labels import NOT_GIVEN, count_text, readable, share_text
from outreach_frames.tables.interchange import is_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_IN_SEQUENCE: Final = frozenset({"added", "present"})
_FAILED: Final = frozenset({"invalid", "rejected", "unknown", "not_sent"})
_TAKES: Final = "a report of add_to_sequence, its .rows or its .summary()"
_MOST: Final = 30


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
    axes = new_axes(ax, height=figure_height(len(rows)))
    if not total:
        set_title(axes, "What became of 0 rows")
        return show_empty(axes, "No rows to show")
    inside = int(rows[rows.index.isin(_IN_SEQUENCE)].sum())
    bars = rows.to_frame("rows").set_axis([readable(str(name)) for name in rows.index])
    draw_bars(
        axes,
        bars,
        top=_MOST,
        colors=[_color(str(status)) for status in rows.index],
        notes=lambda shown: [
            f"{count_text(number)} ({share_text(number / total)})" for number in shown["rows"]
        ],
    )
    verb = "is" if total == 1 else "are"
    set_title(axes, f"{inside:,} of {plural(total, 'row')} {verb} in the sequence")
    axes.set(xlabel="Rows")
    return finish(axes)


def _rows_by_status(data: Any) -> pd.Series:
    """Return how many rows each status has, in the summary's order where there is a summary."""
    # A frame may have a column of that name.
    if not is_frame(data) and hasattr(data, "summary"):
        data = data.summary()
    frame = check_frame(data, _TAKES)
    require_columns(frame, ["status"], "statuses", _TAKES)
    if "rows" in frame.columns:
        statuses = frame["status"].astype("str").fillna(NOT_GIVEN)
        return check_numbers(frame, "rows").fillna(0).groupby(statuses, sort=False).sum()
    counts = frame["status"].astype("str").fillna(NOT_GIVEN).value_counts()
    # Stable, so that what is most frequent stays first among those of one kind.
    return counts.loc[sorted(counts.index, key=lambda status: _kind(str(status)))]


def _kind(status: str) -> int:
    if status in _IN_SEQUENCE:
        return 0
    return 2 if status in _FAILED else 1


def _color(status: str) -> str:
    return (BLUE, ORANGE, VERMILLION)[_kind(status)]
