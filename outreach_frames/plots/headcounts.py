"""Headcounts as bars: of all companies together, or of a few side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from outreach_frames import spec
from outreach_frames.analysis import companies
from outreach_frames.common.arguments import check_choice, check_list, check_one_of, suggestion
from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots.arguments import check_frame, check_top
from outreach_frames.plots.bars import COUNT, SHARE, draw_bars, figure_height
from outreach_frames.plots.canvas import finish, new_axes, set_title, show_empty
from outreach_frames.plots.colors import SERIES
from outreach_frames.plots.labels import NOT_GIVEN, readable
from outreach_frames.tables.interchange import FrameLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TIDY = {"company", "people", "share"}
_NOUNS = {"department": ("department", "departments"), "job_function": ("job function", None)}


def headcount(
    data: FrameLike,
    *,
    level: companies.Level = "department",
    company: str | Sequence[str] | None = None,
    share: bool = False,
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot how many people work in each department, or job function, of the companies.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`), companies (`companies()`) or a tidy headcount (`headcount()`).
    level : {"department", "job_function"}
        What a bar stands for.
    company : str or list of str, optional
        One company's name, or several to put side by side, six at most; by default all companies
        of the data together, each counted once.
    share : bool
        Whether to show shares of each company's people instead of their number.
    top : int
        How many departments or job functions, the largest first; the rest is summed as "other".
        Axes that are too low for so many show fewer.
    ax : Axes, optional
        Where to draw; by default on a new figure of fitting height.

    Returns
    -------
    Axes
        With one horizontal bar per department or job function, and company where several are named.

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
    >>> five = people.outreach.companies()["name"].head(5)
    >>> of.plots.headcount(people, company=five, share=True).get_xlabel()
    'Share of people'
    """
    check_one_of("level", level, companies.LEVELS)
    return _draw(
        tidy_headcount(data, level), level, company, share=share, top=check_top(top), ax=ax
    )


def job_functions(
    data: FrameLike,
    *,
    department: str | None = None,
    company: str | Sequence[str] | None = None,
    share: bool = False,
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot how many people have each job function, in one department or in all.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`), companies (`companies()`) or a tidy headcount
        (`headcount("job_function")`).
    department : str, optional
        One department, such as "engineering_technical".
    company : str or list of str, optional
        One company's name, or several to put side by side, six at most; by default all together.
    share : bool
        Whether to show shares of all of a company's people, whatever their department.
    top : int
        How many job functions, the largest first; the rest is summed as "other".
    ax : Axes, optional
        Where to draw; by default on a new figure of fitting height.

    Returns
    -------
    Axes
        With one horizontal bar per job function, and company where several are named.

    Raises
    ------
    InvalidInputError
        The data has no headcounts, or there is no such department or company.

    Notes
    -----
    Interface: Company, `job_function_headcount`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=20)
    >>> of.plots.job_functions(people, department="revenue", top=5).get_ylabel()
    'Revenue'
    """
    check_choice("department", department, spec.DEPARTMENTS)
    bars = check_top(top)
    tidy = tidy_headcount(data, "job_function")
    axes = _draw(tidy, "job_function", company, share=share, top=bars, ax=ax, department=department)
    if department is not None:
        axes.set_ylabel(readable(department))
    return axes


def tidy_headcount(data: FrameLike, level: companies.Level) -> pd.DataFrame:
    """Return a tidy headcount of people, companies, or what is one already."""
    data = check_frame(data)
    tidy = data if set(data.columns) >= _TIDY else companies.headcount(data, level)
    if level not in tidy.columns:
        raise InvalidInputError(
            f"The data has no column {level}: build it with headcount({level!r})."
        )
    return tidy.assign(company=tidy["company"].astype("str").fillna(NOT_GIVEN))


def named_companies(tidy: pd.DataFrame, company: object) -> list[str]:
    """Return the companies that are named, each of which the table has."""
    if company is None:
        return []
    given = [company] if isinstance(company, str) else check_list("company", company)
    known = tidy["company"].dropna().unique()
    for name in given:
        if name not in known:
            close = suggestion(str(name), map(str, known))
            raise InvalidInputError(f"The data has no company named {name!r}.{close}")
    return list(dict.fromkeys(map(str, given)))


def count_companies(tidy: pd.DataFrame) -> int:
    """Count companies, those without a name or an id too."""
    keys = [name for name in ("company", companies.COMPANY_KEY) if name in tidy.columns]
    return len(tidy[keys].drop_duplicates())


def company_totals(tidy: pd.DataFrame) -> pd.Series:
    """Return all people of each company, also where the table has only some departments."""
    ids = tidy["company_id"] if "company_id" in tidy.columns else tidy["company"]
    totals = (tidy["people"] / tidy["share"]).astype("Float64").astype(float)
    each = totals.groupby([tidy["company"], ids.rename("id")], dropna=False).max()
    return each.groupby(level="company").sum()


def keys_of(level: companies.Level) -> list[str]:
    """Return the columns that tell the bars of a level apart."""
    return list(companies.LEVELS[: companies.LEVELS.index(level) + 1])


def category_labels(keys: pd.Index) -> list[str]:
    """Return readable labels; a job function names its department where another has it too."""
    if keys.nlevels == 1:
        return [readable(str(key)) for key in keys]
    functions = keys.get_level_values(-1)
    shared = functions.duplicated(keep=False)
    return [
        f"{readable(function)} ({readable(department)})" if twice else readable(function)
        for (department, function), twice in zip(keys, shared, strict=True)
    ]


def _draw(
    tidy: pd.DataFrame,
    level: companies.Level,
    company: object,
    *,
    share: bool,
    top: int,
    ax: Axes | None,
    department: str | None = None,
) -> Axes:
    names = named_companies(tidy, company)
    if len(names) > len(SERIES):
        raise InvalidInputError(
            f"{len(names)} companies are too many to put side by side; name {len(SERIES)} at most, "
            "or use plots.headcount_heatmap."
        )
    if names:
        tidy = tidy[tidy["company"].isin(names)]
    totals = company_totals(tidy)
    if department is not None:
        tidy = tidy[tidy["department"] == department]
    several = len(names) > 1
    series = tidy["company"] if several else pd.Series("people", index=tidy.index)
    counts = tidy["people"].astype("Float64").astype(float)
    by = [*(tidy[key] for key in keys_of(level)), series.rename("series")]
    people = counts.groupby(by).sum(min_count=1).unstack("series")
    people = people[people.sum(axis="columns") > 0]
    if several:
        people = people.reindex(columns=names)
    if share:
        people = people / (totals.reindex(names) if several else totals.sum())
    people = people.loc[people.sum(axis="columns").sort_values(ascending=False).index]
    people.index = pd.Index(category_labels(people.index))
    axes = new_axes(ax, height=figure_height(min(len(people), top + 1), max(len(names), 1)))
    title = _title(names, count_companies(tidy))
    if people.empty:
        set_title(axes, title)
        return show_empty(axes, "No headcounts to show")
    own = draw_bars(axes, people, top=top, number=SHARE if share else COUNT)
    if own < len(people):
        title += f", the {own:,} largest of {plural(len(people), *_NOUNS[level])}"
    set_title(axes, title)
    axes.set(xlabel="Share of people" if share else "People")
    return finish(axes)


def _title(names: list[str], companies_shown: int) -> str:
    if len(names) == 1:
        return names[0]
    return f"Headcount of {plural(len(names) or companies_shown, 'company', 'companies')}"
