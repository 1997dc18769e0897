"""Companies against departments, as a heatmap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import PowerNorm
from matplotlib.ticker import FuncFormatter

from outreach_frames.analysis import companies
from outreach_frames.common.arguments import check_one_of
from outreach_frames.common.text import plural
from outreach_frames.plots.arguments import check_top
from outreach_frames.plots.bars import with_rest
from outreach_frames.plots.canvas import (
    SMALLEST_FONT,
    axes_size,
    clip_text,
    finish,
    new_axes,
    pixels,
    points,
    room_below,
    room_on_the_left,
    set_title,
    show_empty,
    text_width,
)
from outreach_frames.plots.colors import ink, luminance
from outreach_frames.plots.headcounts import (
    category_labels,
    company_totals,
    keys_of,
    named_companies,
    tidy_headcount,
)
from outreach_frames.plots.labels import count_text, drawable, share_text, share_tick
from outreach_frames.tables.interchange import FrameLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Even in steps of lightness, for all kinds of colour vision and in black and white.
_COLORS: Final = "cividis"
_INCHES_PER_ROW: Final = 0.32


def headcount_heatmap(
    data: FrameLike,
    *,
    level: companies.Level = "department",
    company: str | Sequence[str] | None = None,
    share: bool = True,
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot companies against departments, or job functions, with a cell for each headcount.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`), companies (`companies()`) or a tidy headcount (`headcount()`).
    level : {"department", "job_function"}
        What a column stands for.
    company : str or list of str, optional
        The companies to show; by default all.
    share : bool
        Whether a cell is the share of the company's people, which companies of different sizes can
        be compared by, or their number.
    top : int
        How many companies, and columns, the largest first; the rest is summed as "other". Axes that
        are too small for so many show fewer.
    ax : Axes, optional
        Where to draw; by default on a new figure of fitting height.

    Returns
    -------
    Axes
        With one row per company, the largest on top, and one column per department or job function.
        Cells that are too small for a number have a colour bar beside them.

    Raises
    ------
    InvalidInputError
        The data has no headcounts, or no such company.

    Notes
    -----
    Interface: Company, `department_headcount` and `job_function_headcount`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=20)
    >>> of.plots.headcount_heatmap(people, top=5).get_title()
    'Share of people by department, the 5 largest of 18 companies'
    """
    check_one_of("level", level, companies.LEVELS)
    top = check_top(top)
    tidy = tidy_headcount(data, level)
    names = named_companies(tidy, company)
    if names:
        tidy = tidy[tidy["company"].isin(names)]
    people = _by_company(tidy, level)
    axes = new_axes(ax, height=2.3 + _INCHES_PER_ROW * min(max(len(people), 1), top + 1), width=9)
    title = f"{'Share of people' if share else 'People'} by {level.replace('_', ' ')}"
    if people.empty:
        set_title(axes, title)
        return show_empty(axes, "No headcounts to show")
    size = points("ytick.labelsize")
    shown, totals = _fitting(axes, people, company_totals(tidy), top, size)
    left_out = len(people) - len(shown)
    if left_out > 0:
        title += (
            f", the {len(shown) - 1:,} largest of {plural(len(people), 'company', 'companies')}"
        )
    cells = shown.div(totals, axis="index") if share else shown
    _draw_cells(axes, cells, size, share=share, rest=left_out > 0)
    set_title(axes, title)
    return finish(axes)


def _by_company(tidy: pd.DataFrame, level: companies.Level) -> pd.DataFrame:
    """Return one row per company and one column per category, both with the largest first."""
    people = tidy.pivot_table(
        index="company", columns=keys_of(level), values="people", aggfunc="sum", dropna=False
    )
    people = people.astype("Float64").astype(float)
    people = people.loc[:, (people.sum() > 0).to_numpy()]
    people = people.dropna(how="all")
    by_column = people.sum().to_numpy().argsort(kind="stable")[::-1]
    by_row = people.sum(axis="columns").to_numpy().argsort(kind="stable")[::-1]
    people = people.iloc[by_row, by_column]
    people.columns = pd.Index(category_labels(people.columns))
    return people


def _fitting(
    axes: Axes, people: pd.DataFrame, totals: pd.Series, top: int, size: float
) -> tuple[pd.DataFrame, pd.Series]:
    """Keep as many rows and columns as have room, the rest summed, and each row's total."""
    width, height = axes_size(axes)
    line = pixels(axes, size * 1.2)
    rows = min(top, max(int(height / line) - 1, 1))
    columns = min(top, max(int(width * 0.8 / line) - 1, 1))
    own = with_rest(people.assign(_total=totals.reindex(people.index)), rows)
    totals = own.pop("_total")
    return with_rest(own.T, columns).T, totals


def _draw_cells(axes: Axes, cells: pd.DataFrame, size: float, *, share: bool, rest: bool) -> None:
    values = cells.to_numpy(dtype=float, na_value=np.nan)
    # The sum of many companies must not make all others look alike.
    highest = np.nanmax(values[: len(values) - rest], initial=0) or 1
    norm = PowerNorm(1 if share else 0.5, vmin=0, vmax=highest)
    mesh = axes.pcolormesh(np.ma.masked_invalid(values), cmap=_COLORS, norm=norm)
    axes.set_ylim(len(values), 0)
    room = room_on_the_left(axes)
    names = [clip_text(axes, name, size, room) for name in drawable(cells.index)]
    below = room_below(axes)
    heads = [clip_text(axes, name, size, below) for name in drawable(cells.columns)]
    axes.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=size)
    axes.set_xticks(np.arange(len(heads)) + 0.5, heads, fontsize=size)
    axes.tick_params(length=0)
    axes.tick_params(axis="x", rotation=90)
    axes.spines[:].set_visible(False)
    texts = [[_cell_text(value, share) for value in row] for row in values]
    width, height = axes_size(axes)
    used = min(room, text_width(axes, names, size)) if width != axes.bbox.width else 0
    cell_width = (width - used) / len(heads)
    cell_height = height * 0.85 / len(names)
    small = min(size, 9)
    everything = [text for row in texts for text in row]
    while small >= SMALLEST_FONT and (
        text_width(axes, everything, small) > cell_width * 0.92
        or pixels(axes, small * 1.1) > cell_height
    ):
        small -= 0.5
    if small < SMALLEST_FONT:
        bar = axes.figure.colorbar(mesh, ax=axes, label="Share of people" if share else "People")
        bar.ax.yaxis.set_major_formatter(FuncFormatter(share_tick if share else _count_tick))
        return
    colormap = mpl.colormaps[_COLORS]
    for row, line in enumerate(texts):
        for column, text in enumerate(line):
            value = values[row, column]
            light = not np.isnan(value) and luminance(colormap(norm(value))) > 0.45
            color: Any = "black" if light else "white"
            axes.text(
                column + 0.5,
                row + 0.5,
                text,
                ha="center",
                va="center",
                fontsize=small,
                color=ink(axes) if np.isnan(value) else color,
            )


def _cell_text(value: float, share: bool) -> str:
    if np.isnan(value):
        return "\N{EN DASH}"
    return share_text(value) if share else count_text(value)


def _count_tick(value: float, _: int | None) -> str:
    return count_text(value)
