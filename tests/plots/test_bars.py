"""Bar charts of headcounts: several companies, shares, and limited space."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
import pytest

import outreach_frames as of
from tests.gallery import frames
from tests.plots.artists import bars, extent, overlapping, plain_axes, texts

pytestmark = pytest.mark.long


def test_shares_are_of_all_people_of_the_companies(people: pd.DataFrame) -> None:
    """With share=True the bars show shares of all people, even if some departments are missing."""
    tidy = people.outreach.headcount()
    sums = tidy.groupby("department")["people"].sum()
    shown = bars(of.plots.headcount(people, share=True))
    assert shown["Legal"] == pytest.approx(sums["legal"] / sums.sum())


def test_a_subset_of_a_table_keeps_its_shares(people: pd.DataFrame) -> None:
    """Removing the other departments from a table does not change a department's share."""
    tidy = people.outreach.headcount()
    name = tidy["company"].iloc[0]
    marketing = tidy[tidy["department"] == "marketing"]
    shown = bars(of.plots.headcount(marketing, company=name, share=True))
    expected = marketing.loc[marketing["company"] == name, "share"].iloc[0]
    assert shown == {"Marketing": pytest.approx(expected)}


def test_the_label_of_the_sum_is_never_cut() -> None:
    """The label of the sum of other bars is never cut, even if it is the longest."""
    table = pd.DataFrame({"k": [f"s{number}" for number in range(60)]})
    table = table.assign(people=1, companies=1, share=0.1)
    assert "other (57)" in bars(of.plots.segments(table, top=3))
    twins = pd.DataFrame({"k": ["x", "X", "x"], "people": 1, "companies": 1, "share": 0.1})
    assert "x (2)" in bars(of.plots.segments(twins))


def test_companies_with_the_same_name_are_separate() -> None:
    """Companies with the same name but different profiles are counted separately."""
    url = "https://profnet.example/company/"
    counts = {
        f"company_department_headcount_{department}": [0, 0] for department in of.spec.DEPARTMENTS
    } | {
        "company_department_headcount_legal": [30, 10],
        "company_department_headcount_finance": [70, 90],
    }
    keys = {"company_profnet_url": [f"{url}a", f"{url}b"], "company_name": ["X", "X"]}
    people = pd.DataFrame(keys | counts)
    assert people.outreach.headcount()["company"].unique().tolist() == ["X", "X (2)"]
    axes = of.plots.headcount(people, share=True)
    assert bars(axes) == {"Finance": pytest.approx(0.8), "Legal": pytest.approx(0.2)}
    assert axes.get_title() == "Share of people in 2 companies"


def test_companies_without_a_name_count(people: pd.DataFrame) -> None:
    """Companies without a name count in every sum and share."""
    companies = people.outreach.companies().head(6)
    expected = bars(of.plots.headcount(companies, share=True))
    companies.loc[:1, "name"] = None
    assert bars(of.plots.headcount(companies, share=True)) == pytest.approx(expected)


@pytest.mark.parametrize("largest", [0.2, 0.012, 0.0099, 0.003, 0.0004])
def test_small_shares_have_decimals(largest: float) -> None:
    """If all shares are under 1%, they have as many decimals as the largest needs."""
    table = pd.DataFrame({"k": [f"s{n}" for n in range(40)], "people": 1, "companies": 1})
    table["share"] = [largest] + [largest / 2] * 39
    shown = [text.get_text() for text in of.plots.segments(table, value="share").texts]
    tidy = pd.DataFrame(
        {
            "company": ["A"] * 3,
            "department": ["legal", "finance", "revenue"],
            "people": [round(largest * 1e6), round(largest * 5e5), 0],
            "share": [largest, largest / 2, 0],
        }
    )
    headcount = of.plots.headcount(tidy, share=True)
    numbers = [text.get_text() for text in headcount.texts]
    for texts_shown in (shown, numbers):
        values = {text: float(text.strip("<%")) / 100 for text in texts_shown}
        assert any(value == pytest.approx(largest, rel=0.2) for value in values.values())
        assert (largest >= 0.01) == all("." not in text for text in values)
    assert headcount.get_title().startswith("Share of ")
    one = of.plots.headcount(tidy, share=True, company="A")
    assert one.get_title() == "Share of people in A"


def test_a_small_growth_has_decimals() -> None:
    """If all companies have grown by less than 1%, the growth has decimals."""
    table = frames.changes(2).assign(before=1000, change=3)
    axes = of.plots.headcount_change(table)
    assert {text.get_text() for text in axes.texts} == {"+6 (+0.3%)"}


def test_numbers_behind_bars_are_formatted() -> None:
    """Numbers behind bars have separators or percent signs, and the axis has the same format."""
    table = pd.DataFrame({"k": ["first", "second"], "people": [12345, 678], "companies": 1})
    table["share"] = [0.948, 0.052]
    axes = of.plots.segments(table)
    assert [text.get_text() for text in texts(axes) if text in axes.texts] == ["678", "12,345"]
    drawn = [text.get_text() for text in texts(axes)]
    assert {"10,000", "first", "second"} <= set(drawn)
    shares = of.plots.segments(table, value="share")
    assert [text.get_text() for text in shares.texts] == ["5%", "95%"]
    assert "75%" in [text.get_text() for text in texts(shares)]


def test_companies_side_by_side(people: pd.DataFrame) -> None:
    """Each department has one bar per company, and a legend names the companies."""
    tidy = people.outreach.headcount().set_index(["company", "department"])["share"]
    names = list(people["company_name"].unique()[:5])
    axes = of.plots.headcount(people, company=names, share=True)
    assert [container.get_label() for container in axes.containers if container.patches] == names
    row = [label.get_text() for label in axes.get_yticklabels()].index("Marketing")
    drawn = [container.patches[row] for container in axes.containers if container.patches]
    assert [patch.get_width() for patch in drawn] == [
        pytest.approx(tidy[name, "marketing"]) for name in names
    ]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == names
    assert len({patch.get_hatch() for patch in drawn}) == 5
    assert overlapping(axes) == []


def test_too_many_companies_are_an_error(people: pd.DataFrame) -> None:
    """Too many companies for bars side by side are an error with the maximum."""
    with pytest.raises(of.OutreachError, match="at most 6"):
        of.plots.headcount(people, company=people["company_name"].unique()[:7])


def test_one_department_has_its_job_functions(people: pd.DataFrame) -> None:
    """`job_functions` of a department shows only that department's functions."""
    axes = of.plots.job_functions(people, department="legal", top=50)
    tidy = people.outreach.headcount("job_function")
    assert sum(bars(axes).values()) == tidy.loc[tidy["department"] == "legal", "people"].sum()
    assert axes.get_ylabel() == "Legal"


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_a_row_of_axes_overprints_nothing(layout: str | None) -> None:
    """On five narrow axes in a row, no labels, ticks, numbers or titles overlap."""
    row = mpl.figure.Figure(figsize=(12, 4), layout=layout).subplots(1, 5)
    for axes, number in zip(row, (1, 5, 14, 50, 1000), strict=True):
        of.plots.headcount(frames.departments(number), ax=axes)
    assert overlapping(*row) == []


def test_a_thousand_categories_fit_into_low_axes() -> None:
    """On low axes the bars that fit are legible, and the other categories are summed."""
    table = frames.departments(1000)
    axes = plain_axes(figsize=(5, 2))
    of.plots.headcount(table, ax=axes)
    assert sum(bars(axes).values()) == table["people"].sum()
    assert overlapping(axes) == []
    assert min(text.get_fontsize() for text in texts(axes)) >= 5


def test_numbers_stay_inside_the_axes() -> None:
    """Thousands have separators, and the number behind the longest bar is inside the axes."""
    axes = plain_axes()
    of.plots.headcount(frames.departments(3), ax=axes)
    assert "50,001" in [text.get_text() for text in axes.texts]
    axes.figure.draw_without_rendering()
    assert all(extent(text).x1 <= axes.bbox.x1 for text in axes.texts)
    assert "20,000" in [label.get_text() for label in axes.get_xticklabels()]


def test_axes_with_sharey_keep_their_own_order(people: pd.DataFrame) -> None:
    """With sharey each bar is next to its own department, even if the axes sort differently."""
    left, right = mpl.figure.Figure(layout="constrained").subplots(1, 2, sharey=True)
    tidy = people.outreach.headcount()
    names = list(tidy["company"].unique()[:2])
    for axes, name in zip((left, right), names, strict=True):
        of.plots.headcount(people, company=name, ax=axes)
    rows = {label.get_text(): place for place, label in enumerate(left.get_yticklabels())}
    widths = {round(patch.get_y() + patch.get_height() / 2): patch for patch in right.patches}
    second = tidy[tidy["company"] == names[1]].set_index("department")["people"]
    shown = widths[left.get_yticks()[rows["Marketing"]]]
    assert shown.get_width() == second["marketing"]


def test_bars_have_colors_of_the_style(people: pd.DataFrame) -> None:
    """On a dark background the texts are light."""
    with mpl.style.context("dark_background"):
        axes = plain_axes()
        of.plots.headcount(people, ax=axes)
    assert {mpl.colors.to_hex(text.get_color()) for text in texts(axes)} == {"#ffffff"}


def test_an_axis_of_zeros_ends_at_one() -> None:
    """If all numbers are zero, the axis is from zero to one."""
    table = pd.DataFrame({"k": ["x", "y"], "people": 0, "companies": 0, "share": 0.0})
    axes = of.plots.segments(table)
    low, high = axes.get_xlim()
    assert low == 0
    assert 1 <= high < 1.5
