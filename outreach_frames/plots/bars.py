"""Draw horizontal bars with numbers that stay legible for many categories and series."""

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
_BAR_SHARE: Final = 0.8
# The height of a bar below its label, as a multiple of the label's height.
_BAR_BELOW_LABEL: Final = 0.8
_LINE_HEIGHT: Final = 1.25
# If row labels have less width than this (in points), long labels are drawn above the bars.
_MIN_LABEL_WIDTH: Final = 80
_LABEL_GAP: Final = 3
_MIN_ROWS: Final = 4
# The minimum height of a bar in points, if a row has several bars with numbers.
_MIN_SERIES_HEIGHT: Final = 7


class _Layout(NamedTuple):
    """The position and font size of row labels, and the height of rows and bars."""

    above: bool
    size: float
    rows: int
    row_height: float
    bars: float  # height of all bars of a row, as a share of the row's height


def _figure_height(categories: int, series: int = 1) -> float:
    """Return a figure's height in inches.

    >>> _figure_height(0), _figure_height(10)
    (2.4, 4.2)
    """
    row = _INCHES_PER_BAR if series == 1 else _INCHES_PER_SERIES * (series + 0.7)
    return max(2.4, 1.2 + row * categories)


def largest_first(table: pd.DataFrame) -> pd.DataFrame:
    """Sort the rows of a table by their sums in descending order.

    >>> largest_first(pd.DataFrame({"people": [1, 5, 3]}, index=list("abc"))).index.tolist()
    ['b', 'c', 'a']
    """
    return table.iloc[(-table.sum(axis="columns").to_numpy(dtype=float)).argsort(kind="stable")]


def sum_others(table: pd.DataFrame, top: int) -> pd.DataFrame:
    """Keep the first `top` rows, and sum the other rows in a row named "other (…)".

    >>> sum_others(pd.DataFrame({"people": [5, 3, 2, 1]}, index=list("abcd")), 2).index.tolist()
    ['a', 'b', 'other (2)']
    """
    others = table.iloc[top:]
    if len(others) <= 1:
        return table
    row = others.sum(min_count=1).to_frame(f"other ({len(others):,})").T
    return pd.concat([table.iloc[:top], row])


def plot_bars(
    ax: Axes | None,
    table: pd.DataFrame,
    *,
    title: str,
    empty_text: str,
    # Appended to the title if some rows have no separate bar. Format arguments: the number of rows
    # with a separate bar, the number of all rows.
    truncation: str = "",
    xlabel: str,
    ylabel: str = "",
    top: int,
    number: Number = COUNT,
    # Whether one more bar shows the sum of the rows without a separate bar; else they are dropped.
    summed: bool = True,
    # Returns a label per bar for the table of rows shown; by default, the labels are the numbers.
    labels: Callable[[pd.DataFrame], list[str]] | None = None,
    # One colour per row of the table; allowed only for a single series.
    colors: Sequence[Any] = (),
    # One sort key per row, with the highest key on top; by default, the table's order is kept.
    order: Sequence[Any] = (),
) -> Axes:
    """Plot a table that is sorted by importance: one bar per row, one series per column."""
    height = _figure_height(min(len(table), top + 1), len(table.columns))
    width = canvas.width_for_labels(drawable(table.index[:top]))
    axes = canvas.new_axes(ax, height=height, width=width)
    if table.empty:
        return canvas.show_empty(axes, title, empty_text)
    separate = _draw_bars(
        axes, table, top, number, summed=summed, labels=labels, colors=colors, order=order
    )
    if separate < len(table):
        title += truncation.format(separate, len(table))
    return canvas.finish(axes, title, xlabel=xlabel, ylabel=ylabel)


def _draw_bars(
    axes: Axes,
    table: pd.DataFrame,
    top: int,
    number: Number,
    *,
    summed: bool,
    labels: Callable[[pd.DataFrame], list[str]] | None,
    colors: Sequence[Any],
    order: Sequence[Any],
) -> int:
    """Draw the bars, and return how many rows have a separate bar."""
    series = len(table.columns)
    names = drawable(table.columns)
    legend = canvas.add_legend(axes, names) if series > 1 else 0.0
    layout = _layout(axes, drawable(table.index[: top + summed]), series, legend)
    separate = min(top, max(layout.rows - summed, 1))
    shown = sum_others(table, separate) if summed else table.iloc[:separate]
    separate = separate if len(shown) < len(table) else len(table)
    palette = [*(colors or [canvas.BLUE] * separate)[:separate], canvas.OTHER_COLOR]
    bar_labels = labels(shown) if labels else []
    if order:
        # The bar "other" comes last, at the bottom.
        places = sorted(range(separate), key=order.__getitem__, reverse=True)
        places += range(separate, len(shown))
        shown, palette = shown.iloc[places], [palette[place] for place in places]
        bar_labels = [bar_labels[place] for place in places] if labels else []
    positions = _label_rows(axes, unique(drawable(shown.index)), layout)
    values = shown.astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    number = number.fitted(values[:separate])
    height = layout.bars / series
    upper = positions + (0.0 if layout.above else layout.bars / 2)
    size = min(layout.size, height * layout.row_height)
    texts: list[str] = []
    for column, name in enumerate(names):
        # Draw bars from the bottom up, in the order of the axis labels.
        rows = np.flatnonzero(~np.isnan(values[:, column]))[::-1].tolist()
        row_colors = {"color": [palette[row] for row in rows]}
        drawn = axes.barh(
            (upper - height * (column + 0.5))[rows],
            values[rows, column],
            height=height,
            label=name,
            **(row_colors if series == 1 else canvas.series_style(axes, column)),
        )
        if size >= canvas.SMALLEST_FONT - 1:
            all_labels = bar_labels or [*map(number.at_bar, values[:, column])]
            shown_labels = [all_labels[row] for row in rows]
            color = canvas.text_color(axes)
            axes.bar_label(drawn, shown_labels, padding=_LABEL_GAP, fontsize=size, color=color)
            texts += shown_labels
    _widen_limits(axes, values, positions, canvas.text_width(texts, size), layout)
    canvas.reserve_top(axes, legend)
    canvas.number_axis(axes, axes.xaxis, number)
    return separate


def _layout(axes: Axes, names: list[str], series: int, legend: float) -> _Layout:
    """Fit all rows in the largest possible font, or as many rows as fit in the smallest font."""
    height = max(canvas.axes_size(axes)[1] - legend, 1)
    requested = max(len(names), 1)
    room, _ = canvas.label_room(axes)
    narrow = room < _MIN_LABEL_WIDTH
    size = canvas.points("ytick.labelsize")
    if series == 1:
        lines = _LINE_HEIGHT * (1 + _BAR_BELOW_LABEL if narrow else 1)
        size = max(min(size, height / requested / lines), canvas.SMALLEST_FONT)
    above = narrow and canvas.text_width(names, size) > room
    line = size * _LINE_HEIGHT
    # A single bar is scaled to the row's label; several bars need a minimum height for numbers.
    bars = _MIN_SERIES_HEIGHT * series if series > 1 else line * _BAR_BELOW_LABEL
    row = line + bars if above else max(line, bars)
    # The margin prevents a rounding error from dropping a row that just fits.
    rows = min(requested, max(int(height / row + 0.01), 2))
    row = height / max(rows, _MIN_ROWS)
    share = min(1 - line / row, _BAR_SHARE) if above else _BAR_SHARE
    return _Layout(above=above, size=size, rows=rows, row_height=row, bars=share)


def _label_rows(axes: Axes, names: list[str], layout: _Layout) -> Any:
    """Put row labels beside or above the bars, and return the rows' positions on the axis."""
    # Category units keep each row at its position if other axes share this axis.
    axes.yaxis.update_units(names[::-1])
    full = axes.yaxis.get_major_formatter()
    if isinstance(full, StrCategoryFormatter):
        room = canvas.axes_size(axes)[0] if layout.above else canvas.label_room(axes)[0]
        axes.yaxis.set_major_formatter(lambda x, _: canvas.clip_text(full(x), layout.size, room))
    axes.tick_params(axis="y", length=0, labelsize=layout.size)
    if layout.above:
        axes.tick_params(axis="y", pad=-_LABEL_GAP)
        for label in axes.get_yticklabels():
            label.set(ha="left", va="bottom")
    return np.asarray(axes.convert_yunits(names))


def _widen_limits(
    axes: Axes, values: np.ndarray[Any, Any], positions: Any, text: float, layout: _Layout
) -> None:
    """Widen the axis limits, so that the numbers at the longest bars stay inside the axes."""
    # Leave space above and below if there are few bars.
    free = max(_MIN_ROWS - len(positions), 0) / 2 + 0.1
    below, above = (layout.bars, 1 - layout.bars) if layout.above else (0.5, 0.5)
    right = 0 if np.nan_to_num(values).any() else 1
    corners = [(0, positions.min() - below - free), (right, positions.max() + above + free)]
    axes.update_datalim(corners)
    width, _ = canvas.inner_size(axes, canvas.label_room(axes)[0])
    share = min((text + 2 * _LABEL_GAP) * 1.2 / width, 0.4)
    sides = (np.nanmin(values, initial=0) < 0) + (np.nanmax(values, initial=0) > 0)
    axes.margins(x=share / (1 - share * sides), y=0)
