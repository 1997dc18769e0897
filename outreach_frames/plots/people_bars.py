"""Draw bar charts of people by segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from outreach_frames import spec
from outreach_frames.analysis.interface_columns import column_label
from outreach_frames.analysis.segments import SIZE, size_order
from outreach_frames.analysis.segments import segments as segment_table
from outreach_frames.common.arguments import check_choice
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import readable
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots import canvas
from outreach_frames.plots.bars import plot_bars
from outreach_frames.plots.canvas import HasPeople
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
# A median of fewer companies says little.
_MIN_FOR_MEDIAN: Final = 5


def segments(
    data: FrameLike | HasPeople,
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
        People (`search_people`, or the result of `find_people`), or the result of
        `df.outreach.segments(by)`.
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
    check_choice("value", value, [str(name) for name in table.columns if name not in keys])
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
