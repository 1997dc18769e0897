"""Plots draw the right bars on the passed axes and leave the data unchanged."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
import pytest

import outreach_frames as of
from tests.plots.artists import bars

pytestmark = pytest.mark.long


def test_headcount_counts_each_company_once(people: pd.DataFrame) -> None:
    """The bars are the sums of departments over companies, with the largest on top."""
    axes = of.plots.headcount(people)
    tidy = people.outreach.headcount()
    expected = tidy.groupby("department")["people"].sum()
    shown = bars(axes)
    assert sum(shown.values()) == expected.sum()
    assert list(shown.values()) == sorted(shown.values())
    assert shown["Human resources"] == expected["human_resources"]
    assert f"{people['company_id'].nunique():,} companies" in axes.get_title()


def test_headcount_accepts_people_companies_and_tidy_tables(people: pd.DataFrame) -> None:
    """People, companies() and headcount() give the same bars."""
    expected = bars(of.plots.headcount(people))
    for data in (people.outreach.companies(), people.outreach.headcount()):
        assert bars(of.plots.headcount(data)) == expected


def test_headcount_of_one_company(people: pd.DataFrame) -> None:
    """One company's bars add up to that company's headcount."""
    company = people["company_name"].iloc[0]
    tidy = people.outreach.headcount()
    axes = of.plots.headcount(people, company=company)
    assert sum(bars(axes).values()) == tidy.loc[tidy["company"] == company, "people"].sum()
    assert axes.get_title() == company


def test_job_functions_are_cut_to_the_top(people: pd.DataFrame) -> None:
    """The `top` largest job functions are shown, largest on top, and the others are summed."""
    axes = of.plots.headcount(people, level="job_function", top=5)
    tidy = people.outreach.headcount("job_function")
    sums = tidy.groupby(["department", "job_function"])["people"].sum()
    shown = bars(axes)
    (rest,) = [label for label in shown if label.startswith("other (")]
    assert next(iter(shown)) == rest
    assert sum(shown.values()) == sums.sum()
    del shown[rest]
    assert list(shown.values()) == sorted(sums.sort_values().tail(5))
    assert f"the 5 largest of {(sums > 0).sum()} job functions" in axes.get_title()


def test_company_sizes_are_in_order(people: pd.DataFrame) -> None:
    """Each company is in one bar, and sizes are ordered by their numbers."""
    shown = bars(of.plots.company_sizes(people))
    assert sum(shown.values()) == people["company_id"].nunique()
    starts = [int(label.split("-")[0].strip("+")) for label in shown]
    assert starts == sorted(starts)


SIZES = [
    "Self-employed",
    "1",
    "1-10",
    "11 to 50 employees",
    "51\u202f-\u202f200",
    "201\N{EN DASH}500",
    "501-1K",
    "1\u202f001-2\u202f000",
    "2,001-3,000",
    "3.001-4.000",
    "4 001-4 500",
    "4.6K-5k",
    "5'001-9'999",
    "10000+",
    "20K+",
    "1M+",
    "not given",
    "unknown",
]


@pytest.mark.parametrize("top", [20, 6])
def test_sizes_are_in_the_order_of_their_numbers(top: int) -> None:
    """Sizes are sorted by the smallest number in their text, and the text stays unchanged."""
    shuffled = pd.Series(SIZES).sample(frac=1, random_state=top)
    frequent = [" ".join(text.split()) for text in SIZES if text in set(shuffled.head(top))]
    labels = shuffled.replace({"not given": None}).repeat([*range(len(SIZES), 0, -1)])
    shown = bars(of.plots.company_sizes(pd.DataFrame({"size": labels}), top=top))
    assert [text for text in shown if not text.startswith("other")] == frequent
    people = pd.DataFrame({"company_size": labels, "company_id": "1"})
    shown = bars(of.plots.segments(people, by="company_size", top=top))
    assert [text for text in shown if not text.startswith("other")] == frequent
    assert sum(shown.values()) == len(labels)


def test_low_axes_keep_the_most_frequent_sizes() -> None:
    """If not all sizes fit, the rarest sizes are summed."""
    axes = mpl.figure.Figure(figsize=(6, 1.5)).subplots()
    labels = pd.Series(SIZES[:-2]).repeat([*range(len(SIZES) - 2, 0, -1)])
    shown = list(bars(of.plots.company_sizes(pd.DataFrame({"size": labels}), ax=axes)))
    assert 2 < len(shown) < len(SIZES) - 2
    assert shown[1:] == [" ".join(text.split()) for text in SIZES[: len(shown) - 1]]


def test_missing_sizes_are_shown(people: pd.DataFrame) -> None:
    """Companies without a size have their own bar."""
    companies = people.outreach.companies()
    companies.loc[:2, "size"] = None
    assert bars(of.plots.company_sizes(companies))["not given"] == 3


@pytest.mark.parametrize("plot", ["headcount", "company_sizes"])
def test_a_plot_of_an_empty_table_has_no_bars(people: pd.DataFrame, plot: str) -> None:
    """An empty table gives axes without bars, not an error."""
    assert not getattr(of.plots, plot)(people.head(0)).patches


BAD_OPTIONS = [
    ("headcount", {"level": "team"}, "level"),
    ("headcount", {"level": None}, "level"),
    ("headcount", {"company": "There Is None"}, "no company named"),
    ("headcount_change", {"by": "team"}, "by='team' is not one of"),
    ("job_functions", {"department": "legall"}, "Did you mean 'legal'"),
    ("job_functions", {"company": "There Is None"}, "no company named"),
    ("segments", {"by": "company_size", "value": "age"}, "value='age' is not one of"),
    ("segments", {}, "Pass by="),
]
WITH_TOP = ("capacity", "company_sizes", "headcount", "job_functions")


def test_invalid_options_are_an_error(people: pd.DataFrame) -> None:
    """An invalid option is an error that names it and what to pass."""
    tops = [(name, {"top": top}, "top") for name in WITH_TOP for top in (0, 1.5, "5")]
    for name, options, words in (*BAD_OPTIONS, *tops):
        with pytest.raises(of.OutreachError, match=words):
            getattr(of.plots, name)(people, **options)
    for name in ("headcount_change", "segments"):
        with pytest.raises(of.OutreachError, match="top=0 is too small"):
            getattr(of.plots, name)(people, top=0)


def test_missing_columns_are_an_error() -> None:
    """A frame without the required columns is an error that names the missing ones."""
    for plot in (of.plots.headcount, of.plots.company_sizes):
        with pytest.raises(of.OutreachError, match="is missing"):
            plot(pd.DataFrame({"email": []}))


def test_departments_with_nobody_have_no_bar(people: pd.DataFrame) -> None:
    """A department without people has no bar."""
    tidy = people.outreach.headcount()
    tidy.loc[tidy["department"] == "legal", "people"] = 0
    assert "Legal" not in bars(of.plots.headcount(tidy))
