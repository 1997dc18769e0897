"""Draw bar charts of people: by segment and by years in the position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.analysis.interface_columns import column_label
from outreach_frames.analysis.segments import SIZE, size_order
from outreach_frames.analysis.segments import segments as segment_table
from outreach_frames.analysis.tenure import tenure as tenure_table
from outreach_frames.common.arguments import check_one_of
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import plural, readable
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots import canvas
from outreach_frames.plots.bars import plot_bars
from outreach_frames.plots.labels import (
    NOT_GIVEN,
    count_text,
    share_text,
    short_name,
)
from outreach_frames.tables.interchange import FrameLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COUNTED: Final = ("people", "companies", "share")
# Each person is in one segment, so these values can be summed; companies and medians cannot.
_SUMMED: Final = frozenset({"people", "share"})
_MEDIAN: Final = "median_"
# A median of fewer people or companies says little.
_MIN_FOR_MEDIAN: Final = 5
# The last bar includes all longer tenures, so that one wrong date does not stretch the axis.
_MAX_YEARS: Final = 20
# Longer numbers do not fit above the bars.
_MAX_NUMBER: Final = 10_000


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
        Maximum number of segments, largest first; a note counts the others.
    ax : Axes, optional
        Axes to draw on; by default a new figure, sized to fit.

    Returns
    -------
    Axes
        One horizontal bar per segment, largest segment on top. If `by` is only company_size, the
        bars are in the order of size, largest companies on top. A median is shown with its
        number of companies, and only for segments with at least 5.

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
    table = table.assign(**{value: canvas.check_numbers(table, value)})
    table = table[table[value].notna()].sort_values(value, ascending=False, kind="stable")
    by_keys = " and ".join(short_name(_key_name(str(key))) for key in keys)
    note, texts = "", []
    if value.startswith(_MEDIAN):
        enough = canvas.check_numbers(table, "companies") >= _MIN_FOR_MEDIAN
        if few := int((~enough).sum()):
            note = f"Not shown: {few:,} segments with fewer than {_MIN_FOR_MEDIAN} companies"
        table = table[enough]
        texts = [
            f"{count_text(median)} (n = {companies:,})"
            for median, companies in zip(table[value], table["companies"], strict=True)
        ]
    labels = [_key_labels(table[key]) for key in keys]
    names = pd.Index([", ".join(row) for row in zip(*labels, strict=True)])
    return plot_bars(
        ax,
        table[[value]].set_axis(names, axis="index"),
        title=f"{_value_name(value)} by {by_keys}",
        xlabel=f"{_value_name(value)}{' (n: companies)' if texts else ''}",
        top=top,
        rows="segments",
        number=share_text if value == "share" else count_text,
        summed=value in _SUMMED,
        note=note,
        texts=texts,
        order=list(map(size_order, names)) if keys == [SIZE] else (),
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
        One bar per number of full years, from tick to tick, the last bar for 20 or more years. If
        at least 5 people have a start date, a line marks their median. A note counts people without
        a start date.

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
    note = f"\nNot shown: {missing:,} without a start date" if missing else ""
    if not len(known):
        return canvas.show_empty(axes, title, "No positions to show")
    full_years = np.clip(np.floor(known), 0, _MAX_YEARS).astype(int)
    _draw_years(axes, np.bincount(full_years))
    if len(known) >= _MIN_FOR_MEDIAN:
        median = float(np.median(known))
        text = f"median of {len(known):,} people: {median:.1f} years"
        place = min(max(median, 0), _MAX_YEARS + 0.5)
        color = canvas.text_color(axes)
        axes.axvline(place, color=color, linestyle="--", linewidth=1, label=text)
        axes.legend()
    return canvas.finish(axes, title, xlabel=f"Years in the position{note}", ylabel="People")


def _key_labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the labels of a segment column's values."""
    texts = column.astype(STR).fillna(NOT_GIVEN)
    return texts.map(readable) if "department" in str(column.name) else texts


def _key_name(key: str) -> str:
    """Return the label of a key column within a title."""
    label = column_label(key)
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def _value_name(value: str) -> str:
    if value.startswith(_MEDIAN) and value.removeprefix(_MEDIAN) in spec.DEPARTMENTS:
        return f"Median people in {readable(value.removeprefix(_MEDIAN))}"
    return "Share of people" if value == "share" else short_name(readable(value))


def _draw_years(axes: Axes, counts: np.ndarray[Any, Any]) -> None:
    years = np.arange(len(counts))
    edge, color = axes.get_facecolor(), canvas.text_color(axes)
    drawn = axes.bar(years, counts, width=1, align="edge", color=canvas.BLUE, edgecolor=edge)
    ticks = years[:: 1 if len(years) <= _MAX_YEARS // 2 else 2]
    axes.set_xticks(ticks, [f"{year}+" if year == _MAX_YEARS else str(year) for year in ticks])
    if counts.max() < _MAX_NUMBER:
        texts = [count_text(count) if count else "" for count in counts.tolist()]
        # The box keeps the median line from crossing a number.
        box = {"facecolor": edge, "edgecolor": "none", "pad": 0.5}
        axes.bar_label(drawn, texts, padding=2, fontsize="small", color=color, bbox=box)
    axes.margins(x=0, y=0.1)
    canvas.number_axis(axes.yaxis)
