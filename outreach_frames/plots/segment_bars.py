"""Segments of people, and sizes of companies, as bars."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pandas as pd

from outreach_frames.analysis import companies
from outreach_frames.analysis.segments import segments as segment_table
from outreach_frames.common.arguments import check_one_of
from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots.arguments import check_frame, check_numbers, check_top
from outreach_frames.plots.bars import COUNT, SHARE, draw_bars, figure_height
from outreach_frames.plots.canvas import finish, new_axes, set_title, show_empty
from outreach_frames.plots.labels import NOT_GIVEN, readable
from outreach_frames.tables.interchange import FrameLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COUNTED: Final = ("people", "companies", "share")
# Each person is in one segment, so these add up over segments; companies and medians do not.
_SUMMED: Final = frozenset({"people", "share"})


def segments(
    data: FrameLike,
    *,
    by: str | Sequence[str] | None = None,
    value: str = "people",
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot segments of people by size, or by another column of the table of segments.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`), with `by`, or the table that `df.outreach.segments(by)` returns.
    by : str or list of str, optional
        Columns that make a segment, where the data is people.
    value : str
        What a bar shows: "people", "companies", "share", "median_employees" or
        "median_<department>".
    top : int
        How many segments, the largest first. The rest is summed as "other" where that makes sense
        (people and share), and left out where it does not; the title says how many there are.
    ax : Axes, optional
        Where to draw; by default on a new figure of fitting height.

    Returns
    -------
    Axes
        With one horizontal bar per segment.

    Raises
    ------
    InvalidInputError
        The data is people and `by` is missing, or there is no such column.

    Notes
    -----
    Interface: Person and Company, as in people search.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=20)
    >>> of.plots.segments(people, by="company_industry").get_xlabel()
    'People'
    """
    data = check_frame(data)
    most = check_top(top)
    table = data
    if not set(_COUNTED) <= set(data.columns):
        if by is None:
            raise InvalidInputError(
                'The data is no table of segments: name columns with by="company_industry", say, '
                "or pass df.outreach.segments(by)."
            )
        table = segment_table(data, by)
    keys = list(table.columns[: list(table.columns).index(_COUNTED[0])])
    check_one_of("value", value, [str(name) for name in table.columns if name not in keys])
    bars = table.set_axis(pd.Index(_segment_names(table[keys])), axis="index")[[]]
    bars[value] = check_numbers(table, value).array
    bars = bars[bars[value].notna()].sort_values(value, ascending=False, kind="stable")
    axes = new_axes(ax, height=figure_height(min(len(bars), most + 1)))
    title = f"{_value_name(value)} by {' and '.join(readable(str(key)).lower() for key in keys)}"
    if bars.empty:
        set_title(axes, title)
        return show_empty(axes, "No segments to show")
    number = SHARE if value == "share" else COUNT
    own = draw_bars(axes, bars, top=most, number=number, summed=value in _SUMMED)
    if own < len(bars):
        title += f", the {own:,} largest of {plural(len(bars), 'segment')}"
    set_title(axes, title)
    axes.set(xlabel=_value_name(value))
    return finish(axes)


def company_sizes(data: FrameLike, *, top: int = 20, ax: Axes | None = None) -> Axes:
    """Plot how many companies there are of each size.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`) or companies (`companies()`); each company counts once.
    top : int
        How many sizes, those with the most companies; the rest is summed as "other".
    ax : Axes, optional
        Where to draw; by default on a new figure of fitting height.

    Returns
    -------
    Axes
        With one horizontal bar per size label, the smallest at the bottom.

    Raises
    ------
    InvalidInputError
        The data has no company sizes.

    Notes
    -----
    Interface: Company, `size`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=20)
    >>> of.plots.company_sizes(people).get_xlabel()
    'Companies'
    """
    data = check_frame(data)
    most = check_top(top)
    table = companies.companies(data) if "company_size" in data.columns else data
    companies.require_columns(table, ["size"], "company sizes")
    sizes = table["size"].astype("str").fillna(NOT_GIVEN).value_counts()
    axes = new_axes(ax, height=figure_height(min(len(sizes), most + 1)))
    title = f"Size of {plural(int(sizes.sum()), 'company', 'companies')}"
    if sizes.empty:
        set_title(axes, title)
        return show_empty(axes, "No companies to show")
    kept = sorted(sizes.index[:most], key=_size_order, reverse=True)
    bars = sizes.loc[[*kept, *sizes.index[most:]]].to_frame("companies")
    own = draw_bars(axes, bars, top=most)
    if own < len(bars):
        title += f", {own:,} of {plural(len(bars), 'size')}"
    set_title(axes, title)
    axes.set(xlabel="Companies", ylabel="Employees")
    return finish(axes)


def _segment_names(keys: pd.DataFrame) -> list[str]:
    parts = [keys[name].astype("str").fillna(NOT_GIVEN) for name in keys.columns]
    return [", ".join(row) for row in zip(*parts, strict=True)]


def _value_name(value: str) -> str:
    return "Share of people" if value == "share" else readable(value)


def _size_order(label: str) -> tuple[float, str]:
    """Order size labels by the first number in them; the labels are the service's own."""
    number = re.search(r"\d+", label.replace(",", ""))
    return (float(number[0]) if number else float("inf"), label)
