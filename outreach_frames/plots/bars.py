"""Horizontal bars with their numbers: legible whatever the number of categories and of series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.ticker import Formatter

from outreach_frames.plots.canvas import (
    SMALLEST_FONT,
    add_legend,
    axes_size,
    clip_text,
    keep_clear,
    number_axis,
    pixels,
    points,
    room_on_the_left,
    text_width,
)
from outreach_frames.plots.colors import BLUE, REST, ink, series_style
from outreach_frames.plots.labels import count_text, drawable, share_text, share_tick, unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES_PER_BAR: Final = 0.3
_INCHES_PER_SERIES: Final = 0.13
_BARS_OF_ROW: Final = 0.8
# A bar below its label, in heights of that.
_BAR_UNDER_LABEL: Final = 0.8
_LINE_HEIGHT: Final = 1.25
# Labels beside the bars are worth having if they may take so many inches; else they go above.
_LEAST_ROOM: Final = 1.1
_POINTS_BEHIND_BAR: Final = 3
_LEAST_ROWS: Final = 4
# The least height of one of several bars of a row, in points, so that its number is legible.
_SERIES_HEIGHT: Final = 7


class Number(NamedTuple):
    """How a number reads at a bar and on the axis, and whether only whole ones make sense."""

    at_bar: Callable[[float], str] = count_text
    on_axis: Callable[[float, int | None], str] = lambda value, _: count_text(value)
    whole: bool = True


COUNT: Final = Number()
SHARE: Final = Number(share_text, share_tick, whole=False)


@dataclass(frozen=True)
class _Layout:
    """Where the rows' labels go and in which size, what is left in pixels, and the bars' share."""

    above: bool
    size: float
    rows: int
    label_room: float
    plot_width: float
    row_height: float
    bars: float


def figure_height(categories: int, series: int = 1) -> float:
    """Return the height in inches of a figure for so many rows of bars.

    >>> figure_height(0), figure_height(10)
    (2.4, 4.2)
    """
    row = _INCHES_PER_BAR if series == 1 else _INCHES_PER_SERIES * (series + 0.7)
    return max(2.4, 1.2 + row * categories)


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


def draw_bars(
    axes: Axes,
    table: pd.DataFrame,
    *,
    top: int,
    number: Number = COUNT,
    summed: bool = True,
    notes: Callable[[pd.DataFrame], list[str]] | None = None,
    colors: Sequence[Any] = (),
) -> int:
    """Draw the rows of a table as bars, the first on top; the rest is summed as one more.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    table : DataFrame
        One column of numbers per series; the index is the labels, the most important first.
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

    Returns
    -------
    int
        How many rows have a bar of their own.
    """
    series = len(table.columns)
    names = drawable(table.columns)
    legend = add_legend(axes, names) if series > 1 else 0.0
    layout = _layout(axes, list(table.index), series, top + summed, legend)
    own = min(top, max(layout.rows - summed, 1))
    shown = with_rest(table, own) if summed else table.iloc[:own]
    own = own if len(shown) < len(table) else len(table)
    places = _place_rows(axes, shown.index, layout)
    values = shown.astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    palette = [*(colors or [BLUE] * own)[:own], REST]
    height = layout.bars / series
    upper = places + (0.0 if layout.above else layout.bars / 2)
    size = min(layout.size, height * layout.row_height / pixels(axes, 1))
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
            **(one if series == 1 else series_style(axes, place)),
        )
        if size >= SMALLEST_FONT - 1:
            told = notes(shown) if notes else [number.at_bar(value) for value in values[:, place]]
            told = [told[row] for row in given]
            axes.bar_label(drawn, told, padding=_POINTS_BEHIND_BAR, fontsize=size, color=ink(axes))
            texts += told
    _make_room(axes, values, places, text_width(axes, texts, size), layout)
    keep_clear(axes, legend)
    number_axis(axes.xaxis, number.on_axis, whole=number.whole)
    return own


def _layout(axes: Axes, labels: list[Any], series: int, most: int, legend: float) -> _Layout:
    """Find the largest letters with which the rows fit, and how many rows fit with the smallest."""
    width, height = axes_size(axes)
    height = max(height - legend, 1)
    wanted = max(min(len(labels), most), 1)
    texts = unique(drawable(labels[:wanted]))
    room = room_on_the_left(axes)
    size = points("ytick.labelsize")
    # A single bar is as high as its label; several need the height of their numbers each.
    bars = pixels(axes, _SERIES_HEIGHT * series) if series > 1 else 0.0
    while True:
        needed = text_width(axes, texts, size)
        above = needed > room and room < pixels(axes, _LEAST_ROOM * 72)
        line = pixels(axes, size * _LINE_HEIGHT)
        row = line + (bars or line * _BAR_UNDER_LABEL) if above else max(line, bars)
        if wanted * row <= height or size <= SMALLEST_FONT or line < row - line:
            break
        size = max(size - 0.5, SMALLEST_FONT)
    rows = min(wanted, max(int(height / row), 2))
    row = height / max(rows, _LEAST_ROWS)
    if rows < len(labels):
        needed = max(needed, text_width(axes, [_rest_name(len(labels))], size))
    label_room = width if above else min(room, needed)
    beside = 0 if above or width == axes.bbox.width else label_room
    return _Layout(
        above=above,
        size=size,
        rows=rows,
        label_room=max(label_room, 1),
        plot_width=width - beside,
        row_height=row,
        bars=min(1 - line / row, _BARS_OF_ROW) if above else _BARS_OF_ROW,
    )


def _place_rows(axes: Axes, labels: pd.Index, layout: _Layout) -> Any:
    """Name the rows beside or above their bars, and return their places on the axis."""
    full = unique(drawable(labels))
    clipped = [clip_text(axes, text, layout.size, layout.label_room) for text in full]
    # By way of the axis' own units, so that axes that share them keep each row in its place.
    axes.yaxis.update_units(full[::-1])
    places = np.asarray(axes.convert_yunits(full))
    names = axes.yaxis.get_major_formatter()
    if not isinstance(names, _Names):
        names = _Names()
        axes.yaxis.set_major_formatter(names)
    names.texts.update(zip(places, clipped, strict=True))
    axes.tick_params(axis="y", length=0, labelsize=layout.size)
    if layout.above:
        axes.tick_params(axis="y", pad=-_POINTS_BEHIND_BAR)
        for label in axes.get_yticklabels():
            label.set(ha="left", va="bottom")
    return places


class _Names(Formatter):
    """The rows' names, as far as there is room for them."""

    def __init__(self) -> None:
        self.texts: dict[float, str] = {}

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - the protocol
        return self.texts.get(x, "")


def _make_room(
    axes: Axes, values: np.ndarray[Any, Any], places: Any, text: float, layout: _Layout
) -> None:
    """Widen the axes' limits so that the numbers at the longest bars stay inside."""
    text += pixels(axes, 2 * _POINTS_BEHIND_BAR)
    share = min(text / layout.plot_width, 0.4)
    low = min(np.nanmin(values, initial=0), 0)
    high = max(np.nanmax(values, initial=0), 0)
    left = share if low < 0 else 0
    right = share if high > 0 else 0
    whole = (high - low or 1) / (1 - left - right)
    axes.margins(x=0, y=0)
    # A few bars do not fill axes made for more.
    free = max(_LEAST_ROWS - len(places), 0) / 2 + 0.1
    below, above = (layout.bars, 1 - layout.bars) if layout.above else (0.5, 0.5)
    ends = places.min() - below - free, places.max() + above + free
    axes.update_datalim([(low - left * whole, ends[0]), (high + right * whole, ends[1])])
    axes.autoscale_view()
