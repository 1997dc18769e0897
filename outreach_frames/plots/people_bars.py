"""Draw bar charts of people: by segment, by company size and by years in the position."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from outreach_frames.analysis import companies
from outreach_frames.analysis.segments import segments as segment_table
from outreach_frames.analysis.tenure import tenure as tenure_table
from outreach_frames.common.arguments import check_one_of
from outreach_frames.common.text import plural, readable
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots import canvas
from outreach_frames.plots.bars import plot_bars
from outreach_frames.plots.labels import COUNT, NOT_GIVEN, SHARE, count_text, shorten
from outreach_frames.tables.interchange import FrameLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COUNTED: Final = ("people", "companies", "share")
# Each person is in one segment, so these values can be summed; companies and medians cannot.
_SUMMED: Final = frozenset({"people", "share"})
_MAX_LETTERS: Final = 60
# The last bar includes all longer tenures, so that one wrong date does not stretch the axis.
_MAX_YEARS: Final = 20
_SIZE_COLUMNS: Final = frozenset({"company_size", "size"})
_SELF_EMPLOYED: Final = re.compile(r"\W*self[\W_]*employed", re.IGNORECASE)
# Matches an integer with optional separators, optional decimals, and an optional k or m.
_SIZE: Final = re.compile(
    r"(\d{1,3}(?:[\s,.'\N{RIGHT SINGLE QUOTATION MARK}]\d{3})+(?!\d)|\d+)"
    r"(?:[.,](\d+))?\s?([km]\b)?",
    re.IGNORECASE,
)
_FACTORS: Final = {"": 1, "k": 1_000, "m": 1_000_000}


def segments(
    data: FrameLike,
    *,
    by: str | Sequence[str] | None = None,
    value: str = "people",
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot the size of segments of people, or another number per segment.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`), or the result of `df.outreach.segments(by)`.
    by : str or list of str, optional
        Columns that define the segments; required if `data` contains people.
    value : str
        The number to plot: "people", "companies", "share", "median_employees" or
        "median_<department>".
    top : int
        Maximum number of segments, largest first. If `value` is "people" or "share", one more bar
        "other" shows the sum of the remaining segments; otherwise they are dropped.
    ax : Axes, optional
        Axes to draw on; by default a new figure, sized to fit.

    Returns
    -------
    Axes
        One horizontal bar per segment, largest segment on top. If `by` is company_size, the bars
        are in the order of size, largest companies on top.

    Raises
    ------
    InvalidInputError
        `data` contains people but `by` is missing, or a column does not exist.

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
    data = canvas.check_frame(data)
    top = canvas.check_top(top)
    table = data
    if not set(_COUNTED) <= set(data.columns):
        if by is None:
            raise InvalidInputError(
                'The data is not a table of segments. Pass by="company_industry", for example, to '
                "segment people, or pass df.outreach.segments(by)."
            )
        table = segment_table(data, by)
    keys = list(table.columns[: list(table.columns).index(_COUNTED[0])])
    check_one_of("value", value, [str(name) for name in table.columns if name not in keys])
    bars = table.set_axis(pd.Index(_segment_names(table[keys])), axis="index")[[]]
    bars[value] = canvas.check_numbers(table, value).array
    bars = bars[bars[value].notna()].sort_values(value, ascending=False, kind="stable")
    is_size = len(keys) == 1 and keys[0] in _SIZE_COLUMNS
    by_keys = " and ".join(readable(str(key), capital=False) for key in keys)
    return plot_bars(
        ax,
        bars,
        title=f"{_value_name(value)} by {by_keys}",
        empty_text="No segments to show",
        truncation=", the {:,} largest of {:,} segments",
        xlabel=_value_name(value),
        top=top,
        number=SHARE if value == "share" else COUNT,
        summed=value in _SUMMED,
        order=[_size_order(label) for label in bars.index] if is_size else (),
    )


def company_sizes(data: FrameLike, *, top: int = 20, ax: Axes | None = None) -> Axes:
    """Plot the number of companies per size.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`) or companies (`companies()`); each company counts once.
    top : int
        Maximum number of sizes, most frequent first; one more bar "other" shows the sum of the
        remaining sizes.
    ax : Axes, optional
        Axes to draw on; by default a new figure, sized to fit.

    Returns
    -------
    Axes
        One horizontal bar per size label, in the order of the smallest number in the label:
        self-employed at the bottom, labels without a number on top.

    Raises
    ------
    InvalidInputError
        The data has no column of company sizes.

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
    data = canvas.check_frame(data)
    top = canvas.check_top(top)
    table = companies.companies(data) if "company_size" in data.columns else data
    companies.require_columns(table, ["size"], "company sizes")
    sizes = table["size"].astype("str").fillna(NOT_GIVEN).value_counts()
    return plot_bars(
        ax,
        sizes.to_frame("companies"),
        title=f"Size of {plural(int(sizes.sum()), 'company', 'companies')}",
        empty_text="No companies to show",
        truncation=", {:,} of {:,} sizes",
        xlabel="Companies",
        ylabel="Employees",
        top=top,
        order=[_size_order(str(label)) for label in sizes.index],
    )


def tenure(data: FrameLike, *, as_of: Any = None, ax: Axes | None = None) -> Axes:
    """Plot the number of people by full years in the current position.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`), or the result of `df.outreach.tenure()`.
    as_of : date, str or Timestamp, optional
        Count years up to this day, given as text YYYY-MM-DD or a date; by default today. Allowed
        only if `data` contains people.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes
        One bar per number of full years, the last bar for 20 or more years, and a line at the
        median. The title counts people without a start date.

    Raises
    ------
    InvalidInputError
        The data has no positions, or `as_of` is passed with the result of `tenure()`.

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
    data = canvas.check_frame(data)
    counted = "years" in data.columns and as_of is None
    table = data if counted else tenure_table(data, as_of)
    years = canvas.check_numbers(table, "years")
    known = years.dropna().to_numpy(dtype=float)
    missing = len(years) - len(known)
    axes = canvas.new_axes(ax)
    title = f"Time in the current position of {plural(len(known), 'person', 'people')}"
    if missing:
        title += f"; {missing:,} more without a start date"
    if not len(known):
        return canvas.show_empty(axes, title, "No positions to show")
    full_years = np.clip(np.floor(known), 0, _MAX_YEARS).astype(int)
    _draw_years(axes, np.bincount(full_years))
    _mark_median(axes, float(np.median(known)))
    return canvas.finish(axes, title, xlabel="Full years in the position", ylabel="People")


def _segment_names(keys: pd.DataFrame) -> list[str]:
    parts = [keys[name].astype("str").fillna(NOT_GIVEN) for name in keys.columns]
    return [", ".join(row) for row in zip(*parts, strict=True)]


def _value_name(value: str) -> str:
    return "Share of people" if value == "share" else shorten(readable(value), _MAX_LETTERS)


def _size_order(label: str) -> tuple[float, float, str]:
    """Return the sort key of a size label: its smallest number, its largest number, the label.

    The labels are undocumented.

    >>> sorted(["5.000+", "1K-5K", "1 001", "11-50", "Self-employed"], key=_size_order)
    ['Self-employed', '11-50', '1K-5K', '1 001', '5.000+']
    """
    if _SELF_EMPLOYED.match(label):
        return (-1, -1, label)
    numbers = [
        float(f"{''.join(filter(str.isdigit, whole))}.{decimals or 0}") * _FACTORS[factor.lower()]
        for whole, decimals, factor in _SIZE.findall(label)
    ]
    most = math.inf if "+" in label or not numbers else max(numbers)
    return (min(numbers, default=math.inf), most, label)


def _draw_years(axes: Axes, counts: np.ndarray[Any, Any]) -> None:
    years = np.arange(len(counts))
    # Each bar covers the range of its year, so that the median line is at the right place.
    edge = canvas.background_color(axes)
    drawn = axes.bar(years + 0.5, counts, width=1, color=canvas.BLUE, edgecolor=edge)
    names = [f"{_MAX_YEARS}+" if year == _MAX_YEARS else str(year) for year in years]
    width, height = canvas.axes_size(axes)
    bar_width = width / len(counts)
    size = canvas.points("xtick.labelsize")
    step = max(1, int(np.ceil(canvas.text_width(names, size) * 1.4 / bar_width)))
    axes.set_xticks(years[::step] + 0.5, names[::step], fontsize=size)
    texts = [count_text(count) if count else "" for count in counts.tolist()]
    size = min(size, size * bar_width / canvas.text_width(texts, size))
    if size >= canvas.SMALLEST_FONT:
        # The box keeps the median line from crossing a number.
        box = {"facecolor": canvas.background_color(axes), "edgecolor": "none", "pad": 0.5}
        color = canvas.text_color(axes)
        axes.bar_label(drawn, texts, padding=2, fontsize=size, color=color, bbox=box)
    # Leave room for two lines of text above the highest bar: the bar's number and the median.
    axes.margins(x=0.02, y=min(size * 4 / height, 1))
    canvas.number_axis(axes, axes.yaxis, COUNT)


def _mark_median(axes: Axes, median: float) -> None:
    """Draw a labelled line at the median, or in the last bar if the median is beyond it."""
    canvas.mark_line(axes, min(max(median, 0), _MAX_YEARS + 0.5), f"median {median:.1f}")
