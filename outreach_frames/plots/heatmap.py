"""Draw a heatmap of headcounts by company and by department or job function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import PowerNorm

from outreach_frames.analysis import companies
from outreach_frames.common.arguments import check_one_of
from outreach_frames.common.text import plural
from outreach_frames.plots import canvas
from outreach_frames.plots.bars import largest_first, sum_others
from outreach_frames.plots.headcounts import (
    company_totals,
    named_companies,
    people_by_category,
    tidy_headcount,
)
from outreach_frames.plots.labels import COUNT, SHARE, Number, drawable
from outreach_frames.tables.interchange import FrameLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The lightness changes evenly, so the colours are legible with any colour vision and in grey.
_COLORS: Final = "cividis"
_INCHES_PER_ROW: Final = 0.32
# Longer column names do not enlarge the figure further.
_MAX_LETTERS: Final = 40
_LINE_HEIGHT: Final = 1.2
# The minimum width of a cell, as a multiple of its text's width.
_CELL_WIDTH: Final = 1.1


def headcount_heatmap(
    data: FrameLike,
    *,
    level: companies.Level = "department",
    company: str | Sequence[str] | None = None,
    share: bool = True,
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot a heatmap of headcounts by company and by department or job function.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`), companies (`companies()`) or a tidy headcount (`headcount()`).
    level : {"department", "job_function"}
        Show one column per department or per job function.
    company : str or list of str, optional
        The companies to show; by default, all companies.
    share : bool
        Show shares of each company's people instead of counts.
    top : int
        Maximum number of rows and of columns, largest first; one more row and column "other" show
        the sums of the remaining rows and columns.
    ax : Axes, optional
        Axes to draw on; by default a new figure, sized to fit.

    Returns
    -------
    Axes
        The heatmap, with one row per company, largest on top, and one column per department or job
        function. The cells of "other" have no colour. A colour bar replaces the numbers if cells
        are too small for numbers.

    Raises
    ------
    InvalidInputError
        The data has no headcounts, or does not contain a requested company.

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
    top = canvas.check_top(top)
    tidy = tidy_headcount(data, level)
    names = named_companies(tidy, company)
    if names:
        tidy = tidy[tidy["company"].isin(names)]
    by_size = largest_first(people_by_category(tidy, level, tidy["company"]))
    people = largest_first(by_size.T)
    # Column names are rotated and may take half of the figure's height.
    column_names = [str(name)[:_MAX_LETTERS] for name in people.columns[:top]]
    below = canvas.text_width(column_names, canvas.points("xtick.labelsize")) / 72
    height = max(2.3 + _INCHES_PER_ROW * min(max(len(people), 1), top + 1), 2 * below)
    axes = canvas.new_axes(ax, height=height, width=9)
    title = f"{'Share of people' if share else 'People'} by {level.replace('_', ' ')}"
    if people.empty:
        return canvas.show_empty(axes, title, "No headcounts to show")
    shown, totals = _fit_to_axes(axes, people, company_totals(tidy), top)
    has_other = len(shown) < len(people)
    if has_other:
        title += (
            f", the {len(shown) - 1:,} largest of {plural(len(people), 'company', 'companies')}"
        )
    cells = shown.div(totals, axis="index") if share else shown
    others = has_other, shown.shape[1] < people.shape[1]
    _draw_cells(axes, cells, share=share, others=others)
    return canvas.finish(axes, title)


def _fit_to_axes(
    axes: Axes, people: pd.DataFrame, totals: pd.Series, top: int
) -> tuple[pd.DataFrame, pd.Series]:
    """Sum the rows and columns that do not fit on the axes; also return the total of each row."""
    size = canvas.points("xtick.labelsize")
    below = min(canvas.label_room(axes)[1], canvas.text_width(people.columns, size))
    width, _ = canvas.axes_size(axes)
    _, height = canvas.inner_size(axes, 0, below)
    rows = min(top, max(int(height / canvas.SMALLEST_FONT / _LINE_HEIGHT) - 1, 1))
    columns = min(top, max(int(width * 0.8 / size / _LINE_HEIGHT) - 1, 1))
    shown, sums = (
        sum_others(table, rows) for table in (people, totals.reindex(people.index).to_frame())
    )
    return sum_others(shown.T, columns).T, sums.iloc[:, 0]


def _draw_cells(axes: Axes, cells: pd.DataFrame, *, share: bool, others: tuple[bool, bool]) -> None:
    """Draw the cells; `others` marks whether the last row, and the last column, is a sum."""
    values = cells.to_numpy(dtype=float, na_value=np.nan)
    # The sums in "other" have no colour, because they may be much larger than all other cells.
    separate = values.copy()
    separate[len(values) - others[0] :] = separate[:, values.shape[1] - others[1] :] = np.nan
    norm = PowerNorm(1 if share else 0.5, vmin=0, vmax=np.nanmax(separate, initial=0) or 1)
    mesh = axes.pcolormesh(np.ma.masked_invalid(separate), cmap=_COLORS, norm=norm)
    axes.set_ylim(len(values), 0)
    size = canvas.points("ytick.labelsize")
    beside, below = canvas.label_room(axes)
    column_names = [canvas.clip_text(name, size, below) for name in drawable(cells.columns)]
    names = [canvas.clip_text(name, size, beside) for name in drawable(cells.index)]
    beside, below = canvas.text_width(names, size), canvas.text_width(column_names, size)
    width, height = canvas.inner_size(axes, beside, below)
    line = height / len(names) / _LINE_HEIGHT
    axes.set_xticks(np.arange(len(column_names)) + 0.5, column_names, fontsize=size)
    axes.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=min(size, line))
    axes.tick_params(length=0)
    axes.tick_params(axis="x", rotation=90)
    axes.spines[:].set_visible(False)
    number = (SHARE if share else COUNT).fitted(separate)
    texts = [_cell_text(value, number) for value in values.flat]
    widest = canvas.text_width(texts, _CELL_WIDTH)
    small = min(size, 9, width / len(column_names) / widest, line)
    if small < canvas.SMALLEST_FONT:
        bar = axes.figure.colorbar(mesh, ax=axes, label="Share of people" if share else "People")
        bar.ax.yaxis.set_major_formatter(lambda value, _: number.on_axis(value))
        return
    for ((row, column), value), text in zip(np.ndenumerate(values), texts, strict=True):
        is_plain = np.isnan(separate[row, column])
        light = canvas.luminance(mpl.colormaps[_COLORS](norm(value))) > 0.45
        axes.text(
            column + 0.5,
            row + 0.5,
            text,
            ha="center",
            va="center",
            fontsize=small,
            color=canvas.text_color(axes) if is_plain else "black" if light else "white",
        )


def _cell_text(value: float, number: Number) -> str:
    return "\N{EN DASH}" if np.isnan(value) else number.at_bar(value)
