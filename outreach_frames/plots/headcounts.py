"""Draw bar charts of headcounts and of headcount changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from outreach_frames import spec
from outreach_frames.analysis import companies
from outreach_frames.common.arguments import check_choice, check_list, check_one_of, suggestion
from outreach_frames.common.text import plural, readable
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots import canvas
from outreach_frames.plots.bars import largest_first, plot_bars, sum_others
from outreach_frames.plots.labels import (
    COUNT,
    NOT_GIVEN,
    SHARE,
    Number,
    count_text,
    share_decimals,
    share_text,
)
from outreach_frames.tables.interchange import FrameLike, is_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MINUS: Final = "\N{MINUS SIGN}"
_TIDY: Final = {"company", "people", "share"}
_GROUPINGS: Final = ("department", "company")
_CHANGES: Final = ("company", "department", "before", "change")
_CHANGE_INPUT: Final = "the result of compare_people, or its .headcount"


def headcount(
    data: FrameLike,
    *,
    level: companies.Level = "department",
    company: str | Sequence[str] | None = None,
    share: bool = False,
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot headcounts of companies per department or job function.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`), companies (`companies()`) or a tidy headcount (`headcount()`).
    level : {"department", "job_function"}
        Show one bar per department or per job function.
    company : str or list of str, optional
        One company name, or up to six names to compare; by default, all companies together, each
        counted once.
    share : bool
        Show shares of the total headcount (per company if several names are passed), not counts.
    top : int
        Maximum number of departments or job functions, largest first; one more bar "other" shows
        the sum of the others.
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
        The data has no headcounts, or does not contain a requested company.

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
        tidy_headcount(data, level), level, company, share=share, top=canvas.check_top(top), ax=ax
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
    """Plot the number of people per job function, in one department or in all departments.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`), companies (`companies()`) or a tidy headcount
        (`headcount("job_function")`).
    department : str, optional
        One department, such as "engineering_technical"; by default, all departments.
    company : str or list of str, optional
        One company name, or up to six names to compare side by side; by default, all companies
        together.
    share : bool
        Show shares of the total headcount of all departments instead of counts.
    top : int
        Maximum number of job functions, largest first; one more bar "other" shows the sum of the
        remaining job functions.
    ax : Axes, optional
        Axes to draw on; by default a new figure, sized to fit.

    Returns
    -------
    Axes
        One horizontal bar per job function, and per company if several names are passed.

    Raises
    ------
    InvalidInputError
        The data has no headcounts, the department is unknown, or the data does not contain a
        requested company.

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
    bars = canvas.check_top(top)
    tidy = tidy_headcount(data, "job_function")
    axes = _draw(tidy, "job_function", company, share=share, top=bars, ax=ax, department=department)
    if department is not None:
        axes.set_ylabel(readable(department))
    return axes


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
        Maximum number of bars: the largest growths and declines, if possible equally many of both.
        One more bar "other" shows the sum of the remaining changes.
    ax : Axes, optional
        Axes to draw on; by default a new figure, sized to fit.

    Returns
    -------
    Axes
        One horizontal bar per department or company: growths point right (blue), declines left
        (vermillion). The largest growth is on top. Companies that are missing in one of the
        compared tables are ignored.

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
    check_one_of("by", by, _GROUPINGS)
    most = canvas.check_top(top)
    # Check for a frame first, because a frame may have a column named "headcount".
    data = data if is_frame(data) else getattr(data, "headcount", data)
    table = canvas.check_frame(data, _CHANGE_INPUT)
    companies.require_columns(table, _CHANGES, "changes of headcount", _CHANGE_INPUT)
    names = named_companies(table, company)
    if names:
        table = table[table["company"].isin(names)]
    known = table[table["change"].notna()]
    bars = known.groupby(by, dropna=False)[["change", "before"]].sum().astype("Float64")
    changed = bars[bars["change"] != 0]
    changed = changed.sort_values("change", key=abs, ascending=False, kind="stable")
    # Alternate growths and declines: largest growth, largest decline, second largest growth, ...
    changed = changed.iloc[changed.groupby(changed["change"] > 0).cumcount().argsort(kind="stable")]
    if by == "department":
        changed = changed.rename(index=lambda name: readable(str(name)))
    matched = plural(count_companies(known), "company", "companies")
    axes = plot_bars(
        ax,
        changed[["change"]],
        title=", ".join(names) or f"Change of headcount, {matched} in both tables",
        empty_text="No headcount changes to show",
        truncation=", {:,} of {:,} changes",
        xlabel="Change of people",
        top=most,
        number=Number(_signed, _signed, whole=True),
        labels=lambda shown: _change_labels(sum_others(changed, len(shown) - 1)),
        order=changed["change"].tolist(),
        colors=[canvas.BLUE if change > 0 else canvas.VERMILLION for change in changed["change"]],
    )
    if len(changed):
        axes.axvline(0, color=canvas.text_color(axes), linewidth=0.8)
    return axes


def tidy_headcount(data: FrameLike, level: companies.Level) -> pd.DataFrame:
    """Convert people or companies to a tidy headcount; return a tidy headcount unchanged."""
    data = canvas.check_frame(data)
    tidy = data if set(data.columns) >= _TIDY else companies.headcount(data, level)
    if level not in tidy.columns:
        raise InvalidInputError(
            f"The data has no column {level!r}. Pass the result of headcount({level!r})."
        )
    numbers = companies.to_numbers(tidy[["people", "share"]])
    return tidy.assign(company=tidy["company"].astype("str").fillna(NOT_GIVEN), **numbers)


def named_companies(tidy: pd.DataFrame, company: object) -> list[str]:
    """Return the requested company names; reject names that the table does not contain."""
    if company is None:
        return []
    requested = [company] if isinstance(company, str) else check_list("company", company)
    known = tidy["company"].dropna().unique()
    for name in requested:
        if name not in known:
            close = suggestion(str(name), map(str, known))
            raise InvalidInputError(f"The data has no company named {name!r}.{close}")
    return list(dict.fromkeys(map(str, requested)))


def count_companies(tidy: pd.DataFrame) -> int:
    """Count the companies of a tidy headcount, including companies without a name or an id."""
    keys = [name for name in ("company", companies.COMPANY_KEY) if name in tidy.columns]
    return len(tidy[keys].drop_duplicates())


def company_totals(tidy: pd.DataFrame) -> pd.Series:
    """Return each company's total headcount, even if the table has only some departments."""
    ids = tidy["company_id"] if "company_id" in tidy.columns else tidy["company"]
    totals = (tidy["people"] / tidy["share"]).astype("Float64").astype(float)
    per_company = totals.groupby([tidy["company"], ids.rename("id")], dropna=False).max()
    return per_company.groupby(level="company").sum()


def people_by_category(
    tidy: pd.DataFrame, level: companies.Level, series: pd.Series
) -> pd.DataFrame:
    """Count people per category (row) and series (column); drop empty categories."""
    counts = tidy["people"].astype("Float64").astype(float)
    keys = companies.LEVELS[: companies.LEVELS.index(level) + 1]
    by = [*(tidy[key] for key in keys), series.rename("series")]
    people = counts.groupby(by).sum(min_count=1).unstack("series")
    people = people[people.sum(axis="columns") > 0]
    return people.set_axis(_category_labels(people.index))


def _category_labels(keys: pd.Index) -> list[str]:
    """Return readable labels; add the department to job functions with the same name."""
    if keys.nlevels == 1:
        return [readable(str(key)) for key in keys]
    functions = keys.get_level_values(-1)
    shared = functions.duplicated(keep=False)
    return [
        f"{readable(function)} ({readable(department)})" if is_shared else readable(function)
        for (department, function), is_shared in zip(keys, shared, strict=True)
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
    if len(names) > len(canvas.SERIES):
        raise InvalidInputError(
            f"A plot cannot compare {len(names)} companies side by side. Pass at most "
            f"{len(canvas.SERIES)}."
        )
    if names:
        tidy = tidy[tidy["company"].isin(names)]
    totals = company_totals(tidy)
    if department is not None:
        tidy = tidy[tidy["department"] == department]
    several = len(names) > 1
    series = tidy["company"] if several else pd.Series("people", index=tidy.index)
    people = people_by_category(tidy, level, series)
    if several:
        people = people.reindex(columns=names)
    if share:
        people = people / (totals.reindex(names) if several else totals.sum())
    together = plural(len(names) or count_companies(tidy), "company", "companies")
    if share:
        title = f"Share of people in {names[0] if len(names) == 1 else together}"
    else:
        title = names[0] if len(names) == 1 else f"Headcount of {together}"
    return plot_bars(
        ax,
        largest_first(people),
        title=title,
        empty_text="No headcounts to show",
        truncation=f", the {{:,}} largest of {{:,}} {level.replace('_', ' ')}s",
        xlabel="Share of people" if share else "People",
        top=top,
        number=SHARE if share else COUNT,
    )


def _change_labels(shown: pd.DataFrame) -> list[str]:
    """Format each change; add the growth in percent if the previous headcount was not 0."""
    known = shown[shown["before"] != 0]
    decimals = share_decimals(known["change"] / known["before"])
    return [
        f"{_signed(change)} ({_growth(change / before, decimals)})" if before else _signed(change)
        for change, before in zip(shown["change"], shown["before"], strict=True)
    ]


def _growth(value: float, decimals: int = 0) -> str:
    """Format a growth in percent with a sign; format small growths as "<1%" without a sign.

    >>> _growth(0.2), _growth(-0.3) == f"{_MINUS}30%", _growth(0.003)
    ('+20%', True, '<1%')
    """
    text = share_text(abs(value), decimals)
    if not value or text.startswith("<"):
        return text
    return f"{'+' if value > 0 else _MINUS}{text}"


def _signed(value: float) -> str:
    """Format a change with a sign; format zero without a sign.

    >>> _signed(1200), _signed(-3) == f"{_MINUS}3", _signed(0)
    ('+1,200', True, '0')
    """
    sign = "+" if value > 0 else _MINUS if value < 0 else ""
    return f"{sign}{count_text(abs(value))}"
