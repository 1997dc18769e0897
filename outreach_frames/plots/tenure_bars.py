"""How long people have been in their position, as a histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from outreach_frames.analysis.tenure import tenure as tenure_table
from outreach_frames.common.text import plural
from outreach_frames.plots.arguments import check_frame, check_numbers
from outreach_frames.plots.canvas import (
    SMALLEST_FONT,
    axes_size,
    finish,
    new_axes,
    number_axis,
    pixels,
    points,
    set_title,
    show_empty,
    text_width,
)
from outreach_frames.plots.colors import BLUE, ink, paper
from outreach_frames.plots.labels import count_text
from outreach_frames.tables.interchange import FrameLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Longer ones are pooled, so that one careless date does not squeeze all others together.
_MOST_YEARS: Final = 20


def tenure(data: FrameLike, *, as_of: Any = None, ax: Axes | None = None) -> Axes:
    """Plot how many years people have been in their current position.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`), or the table that `df.outreach.tenure()` returns.
    as_of : date, str or Timestamp, optional
        The day that years are counted up to, where the data is people; by default today.
    ax : Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes
        With one bar per full year, 20 and more together, and a line at the median. The title says
        of how many people no start is known.

    Raises
    ------
    InvalidInputError
        The data has no positions.

    Notes
    -----
    Interface: Person, `current_position_start_date` and `experiences`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=20)
    >>> of.plots.tenure(people, as_of="2026-01-01").get_ylabel()
    'People'
    """
    data = check_frame(data)
    table = data if "years" in data.columns else tenure_table(data, as_of)
    years = check_numbers(table, "years")
    known = years.dropna().to_numpy(dtype=float)
    missing = len(years) - len(known)
    axes = new_axes(ax)
    title = f"Time in the current position of {plural(len(known), 'person', 'people')}"
    if missing:
        title += f"; of {missing:,} more it is not given"
    set_title(axes, title)
    if not len(known):
        return show_empty(axes, "No positions to show")
    full = np.clip(np.floor(known), 0, _MOST_YEARS).astype(int)
    counts = np.bincount(full)
    _draw_years(axes, counts)
    _mark_median(axes, float(np.median(known)))
    axes.set(xlabel="Full years in the position", ylabel="People")
    return finish(axes)


def _draw_years(axes: Axes, counts: np.ndarray[Any, Any]) -> None:
    years = np.arange(len(counts))
    drawn = axes.bar(years, counts, width=0.9, color=BLUE)
    names = [f"{_MOST_YEARS}+" if year == _MOST_YEARS else str(year) for year in years]
    width, height = axes_size(axes)
    place = width * 0.9 / len(counts)
    size = points("xtick.labelsize")
    step = max(1, int(np.ceil(text_width(axes, names, size) * 1.4 / place)))
    axes.set_xticks(years[::step], names[::step], fontsize=size)
    texts = [count_text(count) if count else "" for count in counts.tolist()]
    while size >= SMALLEST_FONT and text_width(axes, texts, size) > place * 0.95:
        size -= 0.5
    if size >= SMALLEST_FONT:
        # On a ground of their own, so that the line at the median does not run through one.
        ground = {"facecolor": paper(axes), "edgecolor": "none", "pad": 0.5}
        axes.bar_label(drawn, texts, padding=2, fontsize=size, color=ink(axes), bbox=ground)
    # A line of text stays free above the highest bar, and one more for the median.
    free = min(pixels(axes, size * 4) / height, 0.5)
    axes.margins(x=0.02, y=0)
    axes.update_datalim([(0, counts.max() / (1 - free))])
    axes.autoscale_view()
    number_axis(axes.yaxis, lambda value, _: count_text(value), whole=True)


def _mark_median(axes: Axes, median: float) -> None:
    """Mark the median, which lies within the bar of its full year, with its value on the line."""
    place = min(median, float(_MOST_YEARS)) - 0.5 + 0.05
    axes.axvline(place, color=ink(axes), linestyle="--", linewidth=1, zorder=2)
    right = place > axes.get_xlim()[1] / 2
    axes.annotate(
        f"median {median:.1f}",
        (place, axes.get_ylim()[1]),
        xytext=(-4 if right else 4, -2),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
        fontsize=points("xtick.labelsize"),
        color=ink(axes),
    )
