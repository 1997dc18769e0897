"""Horizontal bars with their numbers: legible whatever the number of categories and of series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.category import StrCategoryFormatter

from outreach_frames.plots import canvas
from outreach_frames.plots.labels import COUNT, Number, drawable, unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES_PER_BAR: Final = 0.3
_INCHES_PER_SERIES: Final = 0.13
_BARS_OF_ROW: Final = 0.8
# A bar below its label, in heights of that.
_BAR_UNDER_LABEL: Final = 0.8
_LINE_HEIGHT: Final = 1.25
# Long labels beside the bars are worth having if they may take so many points; else they go above.
_LEAST_ROOM: Final = 80
_POINTS_BEHIND_BAR: Final = 3
_LEAST_ROWS: Final = 4
# The least height of one of several bars of a row, in points, so that its number is legible.
_SERIES_HEIGHT: Final = 7


class _Layout(NamedTuple):
    """Where the rows' labels go and in which size, how high rows are, and their bars' share."""

    above: bool
    size: float
    rows: int
    row_height: float
    bars: float


def _figure_height(categories: int, series: int = 1) -> float:
    """Return the height in inches of a figure for so many rows of bars.

    >>> _figure_height(0), _figure_height(10)
    (2.4, 4.2)
    """
    row = _INCHES_PER_BAR if series == 1 else _INCHES_PER_SERIES * (series + 0.7)
    return max(2.4, 1.2 + row * categories)


def largest_first(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by their sums, the largest on top.

    >>> largest_first(pd.DataFrame({"people": [1, 5, 3]}, index=list("abc"))).index.tolist()
    ['b', 'c', 'a']
    """
    return table.iloc[(-table.sum(axis="columns").to_numpy(dtype=float)).argsort(kind="stable")]


def with_rest(table: pd.DataFrame, top: int) -> pd.DataFrame:
    """Keep the first rows and sum the others as one more, named "other (…)".

    >>> with_rest(pd.DataFrame({"people": [5, 3, 2, 1]}, index=list("abcd")), 2).index.tolist()
    ['a', 'b', 'other (2)']
    """
    rest = table.iloc[top:]
    if len(rest) <= 1:
        return table
    row = rest.sum(min_count=1).to_frame(_rest_name(len(rest))).T
    return pd.concat([table.iloc[:top], row])


def _rest_name(rows: int) -> str:
    return f"other ({rows:,})"


def plot_bars(
    ax: Axes | None,
    table: pd.DataFrame,
    *,
    title: str,
    nothing: str,
    cut: str = "",
    xlabel: str,
    ylabel: str = "",
    top: int,
    number: Number = COUNT,
    summed: bool = True,
    notes: Callable[[pd.DataFrame], list[str]] | None = None,
    colors: Sequence[Any] = (),
) -> Axes:
    """Plot the rows of a table as bars, the first on top; the rest is summed as one more.

    Parameters
    ----------
    ax : Axes, optional
        Where to draw; by default on a new figure of fitting height.
    table : DataFrame
        One column of numbers per series; the index is the labels, the most important first.
    title, nothing : str
        The title, and what stands in place of bars where the table is empty.
    cut : str
        What the title says of rows that have no bar of their own, from how many have one and how
        many there are.
    xlabel, ylabel : str
        What the axes say.
    top : int
        How many rows at most; fewer where the axes are too low for them.
    number : Number
        How the numbers read.
    summed : bool
        Whether the rest makes sense as a sum. It is one more bar, or left out.
    notes : callable, optional
        From the rows shown to what stands behind their bars; by default their numbers.
    colors : sequence, optional
        Of one series: a colour for each row of the table.
    """
    height = _figure_height(min(len(table), top + 1), len(table.columns))
    axes = canvas.new_axes(ax, height=height)
    if table.empty:
        return canvas.show_empty(axes, title, nothing)
    own = _draw_bars(axes, table, top, number, summed=summed, notes=notes, colors=colors)
    if own < len(table):
        title += cut.format(own, len(table))
    return canvas.finish(axes, title, xlabel=xlabel, ylabel=ylabel)


def _draw_bars(
    axes: Axes,
    table: pd.DataFrame,
    top: int,
    number: Number,
    *,
    summed: bool,
    notes: Callable[[pd.DataFrame], list[str]] | None,
    colors: Sequence[Any],
) -> int:
    """Draw the bars, and return how many rows have one of their own."""
    series = len(table.columns)
    names = drawable(table.columns)
    legend = canvas.add_legend(axes, names) if series > 1 else 0.0
    layout = _layout(axes, drawable(table.index[: top + summed]), series, legend)
    own = min(top, max(layout.rows - summed, 1))
    shown = with_rest(table, own) if summed else table.iloc[:own]
    own = own if len(shown) < len(table) else len(table)
    places = _place_rows(axes, unique(drawable(shown.index)), layout)
    values = shown.astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    palette = [*(colors or [canvas.BLUE] * own)[:own], canvas.REST]
    height = layout.bars / series
    upper = places + (0.0 if layout.above else layout.bars / 2)
    size = min(layout.size, height * layout.row_height)
    texts: list[str] = []
    for place, name in enumerate(names):
        # From the bottom up, in the order of the axis' labels.
        given = np.flatnonzero(~np.isnan(values[:, place]))[::-1].tolist()
        one = {"color": [palette[min(row, own)] for row in given]}
        drawn = axes.barh(
            (upper - height * (place + 0.5))[given],
            values[given, place],
            height=height,
            label=name,
            **(one if series == 1 else canvas.series_style(axes, place)),
        )
        if size >= canvas.SMALLEST_FONT - 1:
            told = notes(shown) if notes else [number.at_bar(value) for value in values[:, place]]
            told = [told[row] for row in given]
            axes.bar_label(
                drawn, told, padding=_POINTS_BEHIND_BAR, fontsize=size, color=canvas.ink(axes)
            )
            texts += told
    _make_room(axes, values, places, canvas.text_width(texts, size), layout)
    canvas.keep_clear(axes, legend)
    canvas.number_axis(axes, axes.xaxis, number)
    return own


def _layout(axes: Axes, names: list[str], series: int, legend: float) -> _Layout:
    """Find the largest letters with which the rows fit, and how many rows fit with the smallest."""
    height = max(canvas.axes_size(axes)[1] - legend, 1)
    wanted = max(len(names), 1)
    room, _ = canvas.label_room(axes)
    narrow = room < _LEAST_ROOM
    size = canvas.points("ytick.labelsize")
    if series == 1:
        lines = _LINE_HEIGHT * (1 + _BAR_UNDER_LABEL if narrow else 1)
        size = max(min(size, height / wanted / lines), canvas.SMALLEST_FONT)
    above = narrow and canvas.text_width(names, size) > room
    line = size * _LINE_HEIGHT
    # A single bar is as high as its label; several need the height of their numbers each.
    bars = _SERIES_HEIGHT * series if series > 1 else line * _BAR_UNDER_LABEL
    row = line + bars if above else max(line, bars)
    # A little more, as what just fits must not be lost by a rounding error.
    rows = min(wanted, max(int(height / row + 0.01), 2))
    row = height / max(rows, _LEAST_ROWS)
    share = min(1 - line / row, _BARS_OF_ROW) if above else _BARS_OF_ROW
    return _Layout(above=above, size=size, rows=rows, row_height=row, bars=share)


def _place_rows(axes: Axes, names: list[str], layout: _Layout) -> Any:
    """Name the rows beside or above their bars, and return their places on the axis."""
    # By way of the axis' own units, so that axes that share them keep each row in its place.
    axes.yaxis.update_units(names[::-1])
    full = axes.yaxis.get_major_formatter()
    if isinstance(full, StrCategoryFormatter):
        room = canvas.axes_size(axes)[0] if layout.above else canvas.label_room(axes)[0]
        axes.yaxis.set_major_formatter(lambda x, _: canvas.clip_text(full(x), layout.size, room))
    axes.tick_params(axis="y", length=0, labelsize=layout.size)
    if layout.above:
        axes.tick_params(axis="y", pad=-_POINTS_BEHIND_BAR)
        for label in axes.get_yticklabels():
            label.set(ha="left", va="bottom")
    return np.asarray(axes.convert_yunits(names))


def _make_room(
    axes: Axes, values: np.ndarray[Any, Any], places: Any, text: float, layout: _Layout
) -> None:
    """Widen the axes' limits so that the numbers at the longest bars stay inside."""
    # A few bars do not fill axes made for more.
    free = max(_LEAST_ROWS - len(places), 0) / 2 + 0.1
    below, above = (layout.bars, 1 - layout.bars) if layout.above else (0.5, 0.5)
    right = 0 if np.nan_to_num(values).any() else 1
    axes.update_datalim([(0, places.min() - below - free), (right, places.max() + above + free)])
    width, _ = canvas.inner_size(axes, canvas.label_room(axes)[0])
    share = min((text + 2 * _POINTS_BEHIND_BAR) * 1.2 / width, 0.4)
    sides = (np.nanmin(values, initial=0) < 0) + (np.nanmax(values, initial=0) > 0)
    axes.margins(x=share / (1 - share * sides), y=0)
