"""Plots of headcounts and of companies show the right bars, names and notes."""

from __future__ import annotations

from typing import Any, Literal

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.errors import InvalidInputError
from tests.examples import share_of_examples
from tests.gallery import frames
from tests.plots.artists import bars, numbers, plain_axes

pytestmark = pytest.mark.long


def tidy(*rows: tuple[str, str, Any, Any]) -> pd.DataFrame:
    """Return a tidy headcount of rows of company, department, people and share."""
    return pd.DataFrame(rows, columns=["company", "department", "people", "share"])


def test_headcount_counts_each_company_once(people: pd.DataFrame) -> None:
    """The bars are sums over companies, largest on top, for every form of the data."""
    people = people.head(40)
    table = people.outreach.headcount()
    expected = table.groupby("department")["people"].sum()
    for data in (people, people.outreach.companies(), table, table.astype(object)):
        axes = of.plots.headcount(data)
        shown = bars(axes)
        assert sum(shown.values()) == expected.sum()
        assert list(shown.values()) == sorted(shown.values())
        assert shown["Medical and health"] == expected["medical_health"]
        assert shown["Engineering"] == expected["engineering_technical"]
        assert f"{people['company_id'].nunique():,} companies" in axes.get_title()


def test_shares_are_of_all_people_of_the_companies(people: pd.DataFrame) -> None:
    """Shares are of all people, also if the table lacks some departments."""
    table = people.outreach.headcount()
    table = table[table["share"].notna()]
    totals = table.groupby("department")["people"].sum()
    shares = totals / totals.sum()
    legal = table[table["department"] == "legal"]
    assert bars(of.plots.headcount(people, share=True))["Legal"] == pytest.approx(shares["legal"])
    name = legal.loc[legal["share"].idxmax(), "company"]
    shown = bars(of.plots.headcount(legal, company=name, share=True))
    assert shown == {"Legal": pytest.approx(legal["share"].max())}


def test_unknown_shares_are_noted() -> None:
    """Companies without a known share are excluded from shares, and a note counts them."""
    table = tidy(("A", "legal", 3, 0.3), ("A", "product", 7, 0.7), ("B", "legal", 9, None))
    axes = of.plots.headcount(table, share=True)
    assert bars(axes) == pytest.approx({"Legal": 0.3, "Product": 0.7})
    assert "1 company without known shares" in axes.get_xlabel()
    axes = of.plots.companies(table, "legal", share=True)
    assert bars(axes) == {"A": 0.3}
    assert "1 company without a known share" in axes.get_xlabel()


@pytest.mark.parametrize("share", [False, True])
def test_companies_are_ranked_by_a_department(people: pd.DataFrame, share: bool) -> None:
    """`companies` shows the largest headcounts or shares of `headcount()`, and notes the others."""
    table = people.outreach.headcount()
    value = "share" if share else "people"
    expected = table[table["department"] == "engineering_technical"].dropna(subset=[value])
    expected = expected.sort_values(value, ascending=False, kind="stable")
    axes = of.plots.companies(people, share=share, top=5)
    assert list(bars(axes).values())[::-1] == expected[value].head(5).tolist()
    assert f"{len(expected) - 5} other companies" in axes.get_xlabel()
    assert ("together" in axes.get_xlabel()) is not share


def test_the_default_department_is_named(people: pd.DataFrame) -> None:
    """Only a department that the caller did not choose is called the default."""
    note = "Engineering is the default. Pass department= to choose another."
    assert note in of.plots.companies(people).get_xlabel()
    assert "default" not in of.plots.companies(people, "engineering_technical").get_xlabel()


def test_companies_with_the_same_name_are_separate() -> None:
    """Companies with the same name are counted separately, and have distinct labels."""
    table = tidy(
        ("Acme", "legal", 30, 1.0), ("Acme", "legal", 10, 1.0), ("Acme (2)", "legal", 5, 1.0)
    )
    table["company_id"] = ["1", "2", "3"]
    assert bars(of.plots.companies(table, "legal")) == {"Acme": 30, "Acme (3)": 10, "Acme (2)": 5}
    assert of.plots.headcount(table).get_title() == "Headcount of 3 companies"
    changes = table.assign(before=10, change=[3, -2, 1])
    shown = bars(of.plots.headcount_change(changes, by="company"))
    assert shown == {"Acme": 3, "Acme (3)": -2, "Acme (2)": 1}


def test_companies_without_a_name_count(people: pd.DataFrame) -> None:
    """Companies without a name count in every sum and share."""
    companies = people.outreach.companies().head(6)
    expected = bars(of.plots.headcount(companies, share=True))
    companies.loc[:1, "name"] = None
    assert bars(of.plots.headcount(companies, share=True)) == pytest.approx(expected)
    assert "not given" in bars(of.plots.companies(companies))


def test_known_zeros_are_drawn() -> None:
    """Headcounts and changes of zero are bars of zero; missing headcounts have no bar."""
    table = tidy(("A", "legal", 0, None), ("A", "product", 0, None), ("A", "design", None, None))
    for axes in (of.plots.headcount(table), of.plots.headcount(table.iloc[[0, 2]])):
        assert set(bars(axes).values()) == {0}
        assert "Design" not in bars(axes)
        assert numbers(axes)[0] == "0"
        assert axes.get_xlim()[1] >= 1
    assert bars(of.plots.companies(table, "legal")) == {"A": 0}
    changes = table.assign(before=5, change=0)
    assert numbers(of.plots.headcount_change(changes)) == ["0 (0%)"] * 3


@pytest.mark.parametrize("largest", [0.2, 0.012, 0.003, 0.0004])
def test_small_shares_have_decimals(largest: float) -> None:
    """Shares under 1% have one significant digit."""
    axes = of.plots.headcount(
        tidy(("A", "legal", largest * 1e6, largest), ("A", "design", 0, 0.0)), share=True
    )
    zero, text = numbers(axes)
    assert zero == "0%"
    assert float(text.strip("%")) / 100 == pytest.approx(largest, rel=0.2)
    assert ("." in text) is (largest < 0.01)


def test_companies_side_by_side(people: pd.DataFrame) -> None:
    """Each department has one bar per company, in the order of the names, and a legend."""
    people = people.head(40)
    table = people.outreach.headcount().set_index(["company", "department"])["share"]
    names = list(people["company_name"].unique()[:5])
    axes = of.plots.headcount(people, company=names, share=True)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == names
    row = [label.get_text() for label in axes.get_yticklabels()].index("Marketing")
    drawn = [container.patches[row] for container in axes.containers if container.patches]
    expected = [table[name, "marketing"] for name in names]
    assert [patch.get_width() for patch in drawn] == pytest.approx(expected, nan_ok=True)
    assert len({patch.get_hatch() for patch in drawn}) == 5
    # So many numbers would overlap; a few have room.
    assert not numbers(axes)
    assert len(numbers(of.plots.headcount(people, company=names[:2], top=5))) == 10


@pytest.mark.parametrize("size", [(5, 4), (8, 5), (14, 6)])
@pytest.mark.parametrize("layout", ["constrained", None])
def test_the_legend_of_six_companies_covers_no_bar(
    size: tuple[float, float], layout: Literal["constrained"] | None
) -> None:
    """The legend of six companies stands above all bars, and within the figure."""
    axes = plt.figure(figsize=size, layout=layout).gca()
    of.plots.headcount(frames.companies(6), company=frames.names(6), share=True, ax=axes)
    axes.figure.draw_without_rendering()
    legend = axes.get_legend().get_window_extent()
    assert max(patch.get_window_extent().y1 for patch in axes.patches) < legend.y0
    assert legend.x0 >= 0
    assert legend.y1 <= axes.title.get_window_extent().y0 + 1


@pytest.mark.parametrize("total", [None, "legal"])
def test_other_job_functions_are_a_note(people: pd.DataFrame, total: str | None) -> None:
    """The `top` largest job functions are shown, and a note has the sum of the others."""
    people = people.head(12)
    axes = of.plots.headcount(people, level="job_function", department=total, top=5)
    table = people.outreach.headcount("job_function")
    table = table[table["department"] == total] if total else table
    sums = table.groupby(["department", "job_function"])["people"].sum().sort_values()
    assert list(bars(axes).values()) == sums.tail(5).tolist()
    note = f"{len(sums) - 5} other job functions, together {sums.iloc[:-5].sum():,}"
    assert note in axes.get_xlabel()
    assert axes.get_ylabel() == (total or "").title()


def test_axes_with_sharey_keep_their_own_order(people: pd.DataFrame) -> None:
    """With sharey each bar is next to its own department, even if the axes sort differently."""
    left, right = mpl.figure.Figure(layout="constrained").subplots(1, 2, sharey=True)
    people = people.head(10)
    table = people.outreach.headcount()
    names = list(table["company"].unique()[:2])
    for axes, name in zip((left, right), names, strict=True):
        of.plots.headcount(people, company=name, ax=axes)
    rows = {label.get_text(): place for place, label in enumerate(left.get_yticklabels())}
    widths = {round(patch.get_y() + patch.get_height() / 2): patch for patch in right.patches}
    second = table[table["company"] == names[1]].set_index("department")["people"]
    assert widths[left.get_yticks()[rows["Marketing"]]].get_width() == second["marketing"]


CHANGES = pd.DataFrame(
    {
        "company_id": ["1", "2", "3", "4"],
        "company": ["A", "B", "C", "D"],
        "department": "medical_health",
        "before": pd.array([100, 50, None, 400], dtype="Int64"),
        "change": pd.array([20, -5, None, 1], dtype="Int64"),
    }
)


def test_changes_sum_companies_with_a_known_change() -> None:
    """A change sums only companies with a known change, and has the growth in percent."""
    axes = of.plots.headcount_change(CHANGES)
    assert bars(axes) == {"Medical and health": 16}
    assert numbers(axes) == ["+16 (+3%)"]
    assert "3 companies" in axes.get_title()
    assert bars(of.plots.headcount_change(CHANGES, company=["A", "B"])) == {
        "Medical and health": 15
    }
    growth = of.plots.headcount_change(CHANGES.assign(before=1000, change=3))
    assert numbers(growth) == ["+12 (+0.3%)"]


@share_of_examples(0.5)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=9, unique_by=abs), st.integers(1, 9))
def test_the_shown_changes_equal_a_brute_force(changes: list[int], top: int) -> None:
    """The `top` changes of the largest size are shown, growth above decline."""
    companies = [f"company {number}" for number in range(len(changes))]
    table = pd.DataFrame({"company": companies, "change": changes, "before": 100})
    axes = of.plots.headcount_change(table.assign(department="legal"), by="company", top=top)
    assert list(bars(axes).values()) == sorted(sorted(changes, key=abs, reverse=True)[:top])
    plt.close(axes.figure)


BAD_OPTIONS = [
    ("headcount", {"level": "team"}, "level"),
    ("headcount", {"level": None}, "level"),
    ("headcount", {"company": "There Is None"}, "no company named"),
    ("headcount", {"company": [*"ABCDEFG"]}, "no company named"),
    ("companies", {"department": "legall"}, "Did you mean 'legal'"),
    ("headcount_change", {"by": "team"}, "by='team' is not one of"),
    ("headcount", {"department": "legall"}, "Did you mean 'legal'"),
    ("headcount", {"department": "legal"}, "Pass level=.job_function. too"),
    ("segments", {"by": "company_size", "value": "age"}, "value='age' is not one of"),
    ("segments", {}, "Pass by="),
    *((name, {"top": top}, "top") for name in sorted(of.plots.__all__) for top in (0, "5")),
]


def test_invalid_options_are_an_error(people: pd.DataFrame) -> None:
    """An invalid option is an error that names it and what to pass."""
    people = people.head(40)
    for name, options, words in BAD_OPTIONS:
        if name != "outcomes":
            with pytest.raises(of.OutreachError, match=words):
                getattr(of.plots, name)(people, **options)
    with pytest.raises(of.OutreachError, match=r"at most 6, or use plots\.companies"):
        of.plots.headcount(people, company=people["company_name"].unique()[:7])
    with pytest.raises(of.OutreachError, match="'department' is missing"):
        of.plots.headcount(frames.departments(2).drop(columns="department"))


@pytest.mark.parametrize("column", ["people", "share"])
def test_a_value_that_is_not_a_number_is_an_error(column: str) -> None:
    """The error for a value that is not a number names the column."""
    with pytest.raises(InvalidInputError, match=rf"{column}.*not numbers"):
        of.plots.headcount(frames.departments(2).assign(**{column: "many"}), ax=plain_axes())
