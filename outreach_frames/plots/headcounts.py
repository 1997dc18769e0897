"""Draw bar charts of headcounts, of companies by department, and of headcount changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from outreach_frames import spec
from outreach_frames.analysis.companies import COMPANY_KEY, LEVELS, Level
from outreach_frames.analysis.companies import headcount as headcount_table
from outreach_frames.common.arguments import (
    check_choice,
    check_list,
    check_optional_choice,
    suggestion,
)
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import plural, readable
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots import canvas
from outreach_frames.plots.bars import largest_first, plot_bars
from outreach_frames.plots.canvas import HasPeople
from outreach_frames.plots.labels import (
    MINUS,
    NOT_GIVEN,
    count_text,
    share_text,
    short_name,
    signed_text,
)
from outreach_frames.tables.column_checks import require_columns, to_numbers
from outreach_frames.tables.interchange import FrameLike, is_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TIDY: Final = {"company", "people", "share"}
_GROUPINGS: Final = ("department", "company")
_CHANGES: Final = ("company", "department", "before", "change")
_CHANGE_INPUT: Final = "the result of compare_people, or its .headcount"


def headcount(
    data: FrameLike | HasPeople,
    *,
    level: Level = "department",
    department: str | None = None,
    company: str | Sequence[str] | None = None,
    share: bool = False,
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot headcounts of companies per department or job function.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`, or the result of `find_people`), companies (`companies()`) or a
        tidy headcount (`headcount(level)`).
    level : {"department", "job_function"}
        Show one bar per department or per job function.
    department : str, optional
        Show only the job functions of this department, such as "engineering_technical"; by default
        all. Allowed only with level="job_function".
    company : str or list of str, optional
        One company name, or up to six names to compare; by default, all companies together, each
        counted once.
    share : bool
        Show shares of the total headcount of all departments (per company if several names are
        passed), not counts. Companies without a known share in `df.outreach.headcount` are
        excluded.
    top : int
        Maximum number of departments or job functions, largest first; a note has the sum of the
        others.
    ax : Axes, optional
        Axes to draw on; by default a new figure, sized to fit.

    Returns
    -------
    Axes
        One horizontal bar per department or job function, and per company if several names are
        passed.

    Raises
    ------
    InvalidInputError
        The data has no headcounts, the department is unknown, or the data does not contain a
        requested company.

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
    >>> of.plots.headcount(people, level="job_function", department="revenue").get_ylabel()
    'Revenue'
    """
    check_choice("level", level, LEVELS)
    check_optional_choice("department", department, spec.DEPARTMENTS)
    if department is not None and level == "department":
        raise InvalidInputError(
            f'department={department!r} selects job functions. Pass level="job_function" too.'
        )
    top = canvas.check_top(top)
    tidy, names = _select_companies(_tidy(data, level), company)
    if len(names) > len(canvas.SERIES):
        raise InvalidInputError(
            f"A plot cannot compare {len(names)} companies side by side. Pass at most "
            f"{len(canvas.SERIES)}, or use plots.companies to rank them by a department."
        )
    together = plural(len(names) or _count_companies(tidy), "company", "companies")
    note = ""
    if share:
        known = tidy[tidy["share"].notna()]
        if unknown := _count_companies(tidy) - _count_companies(known):
            note = f"Not shown: {plural(unknown, 'company', 'companies')} without known shares"
        tidy = known
        together = plural(_count_companies(tidy), "company", "companies")
    total = _total_people(tidy)
    if department is not None:
        tidy = tidy[tidy["department"] == department]
    several = len(names) > 1
    series = tidy["company"] if several else pd.Series("people", index=tidy.index)
    value = "share" if share and several else "people"
    by = [*(tidy[key] for key in LEVELS[: LEVELS.index(level) + 1]), series.rename("series")]
    table = tidy[value].astype(float).groupby(by).sum(min_count=1).unstack("series")
    table = table.dropna(how="all")
    table.index = pd.Index(map(readable, table.index.get_level_values(-1)))
    if several:
        table = table.reindex(columns=names)
    elif share:
        table = table / total
    whose = short_name(names[0]) if len(names) == 1 else together
    return plot_bars(
        ax,
        largest_first(table),
        title=f"Share of people in {whose}" if share else f"Headcount of {whose}",
        xlabel="Share of people" if share else "People",
        top=top,
        rows=f"{level.replace('_', ' ')}s",
        ylabel="" if department is None else readable(department),
        number=share_text if share else count_text,
        note=note,
    )


def companies(
    data: FrameLike | HasPeople,
    department: str | None = None,
    *,
    share: bool = False,
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot the companies with the most people in a department, or the largest shares of it.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`, or the result of `find_people`), companies (`companies()`) or a
        tidy headcount (`headcount()`).
    department : str, optional
        The department that ranks the companies, such as "legal"; by default
        "engineering_technical". The axis label notes if it is the default.
    share : bool
        Show the department's share of each company's people, as in `df.outreach.headcount`, not
        its headcount.
    top : int
        Maximum number of companies, largest first; a note counts the others, and the companies
        without a known headcount or share.
    ax : Axes, optional
        Axes to draw on; by default a new figure, sized to fit.

    Returns
    -------
    Axes
        One horizontal bar per company, the largest headcount or share on top.

    Raises
    ------
    InvalidInputError
        The data has no headcounts, or the department is unknown.

    Notes
    -----
    Interface: Company, `department_headcount`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=20)
    >>> of.plots.companies(people, "legal", share=True).get_xlabel()
    "Share of the company's people"
    """
    check_optional_choice("department", department, spec.DEPARTMENTS)
    notes = []
    if department is None:
        department = "engineering_technical"
        notes = [f"{readable(department)} is the default. Pass department= to choose another."]
    tidy = _tidy(data, "department")
    rows = tidy[tidy["department"] == department].set_index("company")
    value = "share" if share else "people"
    known = rows[[value]].dropna()
    if len(known) < len(rows):
        unknown = plural(len(rows) - len(known), "company", "companies")
        notes.append(f"Not shown: {unknown} without a known {'share' if share else 'headcount'}")
    return plot_bars(
        ax,
        largest_first(known),
        title=f"{readable(department)} in {plural(len(known), 'company', 'companies')}",
        xlabel="Share of the company's people" if share else "People in the department",
        top=canvas.check_top(top),
        rows="companies",
        number=share_text if share else count_text,
        summed=not share,
        note="\n".join(notes),
    )


def headcount_change(
    data: Any,
    *,
    by: str = "department",
    company: str | Sequence[str] | None = None,
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot headcount changes per department or company.

    Parameters
    ----------
    data : PeopleComparison or DataFrame, also of Polars, DuckDB or Arrow
        The result of `compare_people`, or the result's `.headcount`.
    by : {"department", "company"}
        Show one bar per department or per company.
    company : str or list of str, optional
        Names of the companies to include; by default, all companies in both compared tables.
    top : int
        Maximum number of bars: the largest changes, whether growth or decline. A note has the sum
        of the others.
    ax : Axes, optional
        Axes to draw on; by default a new figure, sized to fit.

    Returns
    -------
    Axes
        One horizontal bar per department or company: growths point right (blue), declines left
        (orange). The largest growth is on top. Companies that are missing in one of the compared
        tables are ignored.

    Raises
    ------
    InvalidInputError
        The data is neither a comparison nor its `.headcount`, or does not contain a requested
        company.

    Notes
    -----
    Interface: Company, `department_headcount`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> table = pd.DataFrame({"company_id": "1", "company": "Brightforge",
    ...     "department": ["legal", "finance"], "before": [10, 20], "change": [2, -5]})
    >>> of.plots.headcount_change(table).texts[-1].get_text()
    '+2 (+20%)'
    """
    check_choice("by", by, _GROUPINGS)
    most = canvas.check_top(top)
    # Check for a frame first, because a frame may have a column named "headcount".
    data = data if is_frame(data) else getattr(data, "headcount", data)
    table = canvas.check_frame(data, _CHANGE_INPUT)
    require_columns(table, _CHANGES, "changes of headcount", _CHANGE_INPUT)
    table, names = _select_companies(table, company)
    known = table[table["change"].notna()]
    groups = known.groupby([by, COMPANY_KEY] if by == "company" else [by], dropna=False)
    changes = groups[["change", "before"]].sum().astype("Float64")
    changes.index = changes.index.get_level_values(by)
    changes = changes.sort_values("change", key=abs, ascending=False, kind="stable")
    if by == "department":
        changes = changes.rename(index=lambda name: readable(str(name)))
    matched = (
        short_name(names[0])
        if len(names) == 1
        else plural(_count_companies(known), "company", "companies")
    )
    axes = plot_bars(
        ax,
        changes[["change"]],
        title=f"Change of headcount, {matched} in both tables",
        xlabel="Change of people",
        top=most,
        rows="departments" if by == "department" else "companies",
        number=signed_text,
        texts=[
            _change_text(change, before)
            for change, before in zip(changes["change"], changes["before"], strict=True)
        ],
        order=changes["change"].tolist(),
        colors=[canvas.BLUE if change > 0 else canvas.ORANGE for change in changes["change"]],
    )
    if len(changes):
        axes.axvline(0, color=canvas.text_color(axes), linewidth=0.8)
    return axes


def _tidy(data: FrameLike | HasPeople, level: Level) -> pd.DataFrame:
    """Convert people or companies to a tidy headcount; return a tidy headcount unchanged."""
    data = canvas.check_frame(data)
    tidy = data if set(data.columns) >= _TIDY else headcount_table(data, level)
    keys = LEVELS[: LEVELS.index(level) + 1]
    require_columns(tidy, keys, "headcounts", f"the result of headcount({level!r})")
    numbers = to_numbers(tidy[["people", "share"]])
    return tidy.assign(company=tidy["company"].astype(STR).fillna(NOT_GIVEN), **numbers)


def _select_companies(tidy: pd.DataFrame, company: object) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows and names of the requested companies; without a request, all rows."""
    if COMPANY_KEY not in tidy.columns:
        tidy = tidy.assign(**{COMPANY_KEY: tidy["company"]})
    if company is None:
        return tidy, []
    requested = [company] if isinstance(company, str) else check_list("company", company)
    known = tidy["company"].dropna().unique()
    for name in requested:
        if name not in known:
            close = suggestion(str(name), map(str, known))
            raise InvalidInputError(f"The data has no company named {name!r}.{close}")
    names = list(dict.fromkeys(map(str, requested)))
    return tidy[tidy["company"].isin(names)], names


def _count_companies(tidy: pd.DataFrame) -> int:
    """Count the companies of a tidy headcount; several may share a name."""
    return len(tidy[["company", COMPANY_KEY]].drop_duplicates())


def _total_people(tidy: pd.DataFrame) -> float:
    """Return all companies' total headcount, even if the table has only some departments."""
    totals = (tidy["people"] / tidy["share"]).astype("Float64").astype(float)
    per_company = totals.groupby([tidy["company"], tidy[COMPANY_KEY]], dropna=False).max()
    return float(per_company.sum())


def _change_text(change: float, before: float) -> str:
    """Format a change; add the growth in percent if the previous headcount was not 0.

    >>> _change_text(2, 10), _change_text(3, 0), _change_text(0, 5)
    ('+2 (+20%)', '+3', '0 (0%)')
    """
    if not before:
        return signed_text(change)
    sign = "+" if change > 0 else MINUS if change < 0 else ""
    return f"{signed_text(change)} ({sign}{share_text(abs(change / before))})"
