"""Draw horizontal bars with their numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from outreach_frames.plots import canvas
from outreach_frames.plots.labels import (
    count_text,
    share_decimals,
    share_text,
    share_tick,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR_SHARE: Final = 0.8
_MIN_ROWS: Final = 4
# With more bars of several series, numbers would overlap on a slide.
_MAX_NUMBERS: Final = 24
# Larger figures exceed what matplotlib can save.
_MAX_INCHES: Final = 200


def largest_first(table: pd.DataFrame) -> pd.DataFrame:
    """Sort the rows of a table by their sums in descending order.

    >>> largest_first(pd.DataFrame({"people": [1, 5, 3]}, index=list("abc"))).index.tolist()
    ['b', 'c', 'a']
    """
    return table.iloc[(-table.sum(axis="columns").to_numpy(dtype=float)).argsort(kind="stable")]


def plot_bars(
    ax: Axes | None,
    table: pd.DataFrame,
    *,
    title: str,
    xlabel: str,
    ylabel: str = "",
    top: int,
    # What the rows are, in the plural, for notes and empty plots.
    rows: str,
    # Formats the numbers at bars and the sum of the rows that are not shown.
    number: Callable[[float], str] = count_text,
    # Whether a sum of the rows that are not shown makes sense.
    summed: bool = True,
    note: str = "",
    # One text per row in place of its number.
    texts: Sequence[str] = (),
    # One colour per row; allowed only for a single series.
    colors: Sequence[str] = (),
    # One sort key per row, with the highest key on top; by default, the table's order is kept.
    order: Sequence[Any] = (),
) -> Axes:
    """Plot a table that is sorted by importance: one bar per row, one series per column."""
    shown = min(top, len(table))
    series = len(table.columns)
    has_numbers = series == 1 or shown * series <= _MAX_NUMBERS
    row_height = 0.3 if series == 1 else (0.18 if has_numbers else 0.1) * series + 0.2
    axes = canvas.new_axes(ax, min(max(2.4, 1.3 + row_height * shown), _MAX_INCHES))
    if table.empty:
        return canvas.show_empty(axes, title, f"No {rows} to show" + (f"\n{note}" if note else ""))
    values = table.astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    is_share = number is share_text
    if is_share:
        number = partial(share_text, decimals=share_decimals(values[:shown].ravel().tolist()))
    bars = pd.DataFrame(
        {
            "name": canvas.names_that_fit(axes, table.index[:shown]),
            "text": texts[:shown] if texts else "",
            "color": colors[:shown] if colors else canvas.BLUE,
        }
    )
    if order:
        bars = bars.iloc[sorted(bars.index, key=order.__getitem__, reverse=True)]
    # Axes count from the bottom. Inverting an axis twice would undo it on axes that share it.
    bars = bars.iloc[::-1]
    # Category units keep each row at its position if other axes share this axis.
    names = bars["name"].tolist()
    axes.yaxis.update_units(names)
    positions = np.asarray(axes.convert_yunits(names))
    height = _BAR_SHARE / series
    for column, name in enumerate(canvas.names_that_fit(axes, table.columns)):
        lengths = values[bars.index, column]
        style = canvas.series_style(axes, column)
        if series == 1:
            style = {"color": bars["color"].tolist()}
        drawn = axes.barh(
            positions + _BAR_SHARE / 2 - height * (column + 0.5),
            lengths,
            height=height,
            label=name,
            **style,
        )
        if has_numbers:
            numbers = bars["text"].tolist() if texts else [number(length) for length in lengths]
            axes.bar_label(drawn, numbers, padding=3, color=canvas.text_color(axes))
    # A few bars would be too thick without free space above and below.
    free = max(_MIN_ROWS - shown, 0) / 2 + 0.6
    right = 0 if np.nan_to_num(values).any() else 1
    axes.update_datalim([(0, positions.min() - free), (right, positions.max() + free)])
    # Constrained layout has room for numbers at the right, but not between bars and names.
    axes.margins(x=0.5 if np.nanmin(values) < 0 else 0.1, y=0)
    axes.autoscale_view()
    if series > 1:
        canvas.legend_above_bars(axes)
    axes.tick_params(axis="y", length=0)
    canvas.number_axis(axes.xaxis, share_tick if is_share else number, whole=not is_share)
    notes = [note] if note else []
    if hidden := len(table) - shown:
        total = np.nansum(values[shown:])
        together = f", together {number(total)}" if summed and series == 1 else ""
        notes.insert(0, f"Not shown: {hidden:,} other {rows}{together}")
    return canvas.finish(axes, title, xlabel="\n".join([xlabel, *notes]), ylabel=ylabel)
