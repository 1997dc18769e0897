"""How headcounts changed, as bars to both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.arguments import check_one_of
from outreach_frames.common.text import plural
from outreach_frames.plots.arguments import check_frame, check_top
from outreach_frames.plots.bars import Number, draw_bars, figure_height
from outreach_frames.plots.canvas import finish, new_axes, set_title, show_empty
from outreach_frames.plots.colors import BLUE, VERMILLION, ink
from outreach_frames.plots.headcounts import count_companies, named_companies
from outreach_frames.plots.labels import count_text, readable, share_text
from outreach_frames.tables.interchange import is_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MINUS: Final = "\N{MINUS SIGN}"
_BY: Final = ("department", "company")
_COLUMNS: Final = ("company", "department", "before", "change")
_TAKES: Final = "a comparison of compare_people, or its .headcount"


def headcount_change(
    data: Any,
    *,
    by: str = "department",
    company: str | Sequence[str] | None = None,
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot by how many people departments, or companies, grew and shrank.

    Parameters
    ----------
    data : PeopleComparison or DataFrame, also of Polars, DuckDB or Arrow
        What `compare_people` returns, or its `.headcount`.
    by : {"department", "company"}
        What a bar stands for.
    company : str or list of str, optional
        Names of companies; by default all companies that are on both sides together.
    top : int
        How many bars, those that changed the most; the rest is summed as "other".
    ax : Axes, optional
        Where to draw; by default on a new figure of fitting height.

    Returns
    -------
    Axes
        With one horizontal bar per department or company: to the right (blue) where it grew, to
        the left (vermillion) where it shrank. Companies that are on one side only are not counted.

    Raises
    ------
    InvalidInputError
        The data is neither a comparison nor such a table, or has no such company.

    Notes
    -----
    Interface: Company, `department_headcount`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> table = pd.DataFrame({"company_id": ["1"], "company": ["Brightforge"],
    ...     "department": ["legal"], "before": [10], "after": [12], "change": [2], "growth": [0.2]})
    >>> of.plots.headcount_change(table).texts[0].get_text()
    '+2 (+20%)'
    """
    check_one_of("by", by, _BY)
    most = check_top(top)
    # A frame may have a column of that name.
    table = check_frame(data if is_frame(data) else getattr(data, "headcount", data), _TAKES)
    require_columns(table, _COLUMNS, "changes of headcount", _TAKES)
    names = named_companies(table, company)
    if names:
        table = table[table["company"].isin(names)]
    known = table[table["change"].notna()]
    bars = known.groupby(by, dropna=False)[["change", "before"]].sum().astype("Float64")
    order = bars["change"].abs().to_numpy(dtype=float).argsort(kind="stable")[::-1]
    bars = bars.iloc[order]
    changed = bars[bars["change"] != 0]
    if by == "department":
        changed = changed.rename(index=lambda name: readable(str(name)))
    axes = new_axes(ax, height=figure_height(min(len(changed), most + 1)))
    sides = count_companies(known)
    title = (
        ", ".join(names) or f"Headcount of {plural(sides, 'company', 'companies')} on both sides"
    )
    if changed.empty:
        set_title(axes, title)
        return show_empty(axes, "No changes of headcount to show")
    own = draw_bars(
        axes,
        changed[["change"]],
        top=most,
        number=Number(_signed, lambda value, _: _signed(value)),
        notes=lambda shown: _notes(shown["change"], changed["before"]),
        colors=[BLUE if change > 0 else VERMILLION for change in changed["change"]],
    )
    axes.axvline(0, color=ink(axes), linewidth=0.8)
    if own < len(changed):
        title += f", the {own:,} largest of {len(changed):,} changes"
    set_title(axes, title)
    axes.set(xlabel="Change of people")
    return finish(axes)


def _notes(changes: pd.Series, before: pd.Series) -> list[str]:
    """Return the changes with their growth; of the rest, whatever came before it."""
    counts = before.to_numpy(dtype=float)
    if len(changes) < len(counts):
        own = len(changes) - 1
        counts = np.append(counts[:own], counts[own:].sum())
    return [
        f"{_signed(change)} ({_growth(change / count)})" if count else _signed(change)
        for change, count in zip(changes, counts, strict=True)
    ]


def _growth(value: float) -> str:
    """Return a growth with its sign; what is nearly nothing has the sign of its change only.

    >>> _growth(0.2), _growth(-0.3) == f"{_MINUS}30%", _growth(0.003)
    ('+20%', True, '<1%')
    """
    text = share_text(abs(value))
    if not value or text.startswith("<"):
        return text
    return f"{'+' if value > 0 else _MINUS}{text}"


def _signed(value: float) -> str:
    """Return a change with its sign, zero without one.

    >>> _signed(1200), _signed(-3) == f"{_MINUS}3", _signed(0)
    ('+1,200', True, '0')
    """
    sign = "+" if value > 0 else _MINUS if value < 0 else ""
    return f"{sign}{count_text(abs(value))}"
