"""Plots: a frame in, matplotlib Axes out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from outreach_frames.common.arguments import check_integer, check_one_of, suggestion
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables import companies

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOR = "#3b6fa0"
_UNKNOWN = "not given"
_INCHES_PER_BAR = 0.3
_TIDY = {"company", "people", "share"}


def headcount(
    data: pd.DataFrame,
    *,
    level: companies.Level = "department",
    company: str | None = None,
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot how many people work in each department, or job function, of the companies.

    Parameters
    ----------
    data : DataFrame
        People (`search_people`), companies (`companies()`) or a tidy headcount (`headcount()`).
    level : {"department", "job_function"}
        What a bar stands for.
    company : str, optional
        One company's name; by default all companies of the data together, each counted once.
    top : int
        How many bars, the largest first.
    ax : Axes, optional
        Where to draw; by default on a new figure of fitting height.

    Returns
    -------
    Axes
        With one horizontal bar per department or job function.

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
    >>> of.plots.headcount(people).get_xlabel()
    'People'
    """
    check_one_of("level", level, companies.LEVELS)
    bars = check_integer("top", top)
    if bars < 1:
        raise InvalidInputError(f"top={bars} shows nothing. Give 1 or more.")
    tidy = data if set(data.columns) >= _TIDY else companies.headcount(data, level)
    if level not in tidy.columns:
        raise InvalidInputError(
            f"The data has no column {level}: build it with headcount({level!r})."
        )
    if company is not None:
        names = tidy["company"].dropna().unique()
        tidy = tidy[tidy["company"] == company]
        if tidy.empty:
            close = suggestion(str(company), names)
            raise InvalidInputError(f"The data has no company named {company!r}.{close}")
    keys = list(companies.LEVELS[: companies.LEVELS.index(level) + 1])
    people = tidy.groupby(keys)["people"].sum()
    people = people[people > 0].sort_values()
    shown = "" if len(people) <= bars else f", the {bars} largest of {len(people)}"
    people = people.tail(bars)
    labels = [_label(key, people.index) for key in people.index]
    axes = _axes(ax, len(people))
    axes.barh(labels, people.astype(float), color=_COLOR)
    title = company or f"Headcount of {tidy['company'].nunique():,} companies"
    axes.set(title=f"{title}{shown}", xlabel="People")
    return _finish(axes)


def company_sizes(data: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Plot how many companies there are of each size.

    Parameters
    ----------
    data : DataFrame
        People (`search_people`) or companies (`companies()`); each company counts once.
    ax : Axes, optional
        Where to draw; by default on a new figure.

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
    table = companies.companies(data) if "company_size" in data.columns else data
    companies.require_columns(table, ["size"], "company sizes")
    sizes = table["size"].astype("str").fillna(_UNKNOWN).value_counts()
    sizes = sizes.loc[sorted(sizes.index, key=_size_order)]
    axes = _axes(ax, len(sizes))
    axes.barh(list(sizes.index), sizes.astype(float), color=_COLOR)
    axes.set(title=f"Size of {sizes.sum():,} companies", xlabel="Companies", ylabel="Employees")
    return _finish(axes)


def _axes(ax: Axes | None, bars: int) -> Axes:
    if ax is not None:
        return ax
    height = max(2.4, 1.2 + _INCHES_PER_BAR * bars)
    return plt.subplots(figsize=(8, height), layout="constrained")[1]


def _finish(axes: Axes) -> Axes:
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _label(key: str | tuple[str, str], index: pd.Index) -> str:
    """Return a readable label; a job function names its department where another has it too."""
    if isinstance(key, str):
        return _readable(key)
    department, function = key
    shared = sum(other[1] == function for other in index) > 1
    return f"{_readable(function)} ({_readable(department)})" if shared else _readable(function)


def _readable(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _size_order(label: str) -> tuple[float, str]:
    """Order size labels by the first number in them; the labels are the service's own."""
    number = re.search(r"\d+", label.replace(",", ""))
    return (float(number[0]) if number else float("inf"), label)
