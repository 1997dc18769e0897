"""The bars and texts of maps, outcomes, tenure, sending days, segments and changes."""

from __future__ import annotations

from itertools import product
from typing import Any

import matplotlib as mpl
import matplotlib.dates
import numpy as np
import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.leads.statuses import KINDS, STATUSES, kind_of
from tests.gallery import frames
from tests.plots.artists import bars, flaws, overlapping, plain_axes

pytestmark = pytest.mark.long


def located(*rows: tuple[str | None, float, float, int]) -> pd.DataFrame:
    """Return people with these cities, latitudes, longitudes and numbers."""
    names = [f"location_details_{name}" for name in ("city", "lat", "long")]
    return pd.DataFrame([row[:3] for row in rows for _ in range(row[3])], columns=names)


def named(table: pd.DataFrame) -> list[str]:
    """Return the labels of all places on a map."""
    axes = of.plots.people_map(table, top=100, ax=plain_axes(figsize=(20, 20)))
    return sorted(text.get_text() for text in axes.texts)


def test_colors_of_outcomes_depend_on_kinds_of_status() -> None:
    """Added, skipped and failed rows have the colours of their kinds of status."""
    table = pd.DataFrame({"status": STATUSES, "rows": range(1, len(STATUSES) + 1)})
    patches = of.plots.outcomes(table, ax=plain_axes()).patches
    drawn = {patch.get_width(): patch.get_facecolor() for patch in patches}
    colors = {status: drawn[rows] for rows, status in enumerate(STATUSES, 1)}
    samples = [colors[status] for status in SAMPLES]
    assert len(set(samples)) == len(KINDS)
    for status in STATUSES:
        assert colors[status] == samples[KINDS.index(kind_of(status))], status


SAMPLES = ("added", "recently_contacted", "rejected")


def test_rows_and_summary_give_the_same_outcomes() -> None:
    """A report's rows and its summary give the same plot."""
    rows = pd.DataFrame({"status": ["added"] * 3 + ["recently_contacted"]})
    expected = {"Recently contacted": 1, "Added": 3}
    assert bars(of.plots.outcomes(rows, ax=plain_axes())) == expected
    summary = pd.DataFrame({"status": ["added", "recently_contacted"], "rows": [3, 1]})
    assert bars(of.plots.outcomes(summary, ax=plain_axes())) == expected


def test_tenure_is_counted_by_full_years() -> None:
    """People are counted by full years, with one bar for very long tenures and one for unknown."""
    years = pd.Series([0.2, 0.9, 1.0, 3.5, 31.0, None], dtype="Float64")
    axes = of.plots.tenure(pd.DataFrame({"years": years}), ax=plain_axes())
    heights = [patch.get_height() for patch in axes.patches]
    assert (heights[0], heights[1], heights[3], heights[20], sum(heights)) == (2, 1, 1, 1, 5)
    assert "; 1 more without a start date" in axes.get_title()
    assert "median 1.0" in [text.get_text() for text in axes.texts]


def test_anniversaries_are_in_the_bar_of_their_year() -> None:
    """A person who started on today's date some years ago is in the bar of that many years."""
    # As many people as years, so that each bar has a different height.
    starts = [f"{2026 - years}-11-23" for years in range(1, 21) for _ in range(years)]
    table = pd.DataFrame({"experiences": [[]] * 210, "current_position_start_date": starts})
    axes = of.plots.tenure(table, as_of="2026-11-23", ax=plain_axes())
    shown = [patch for patch in axes.patches if patch.get_height()]
    assert [bar.get_x() for bar in shown] == [*range(1, 21)]
    assert all(bar.get_x() + bar.get_width() == bar.get_x() + 1 for bar in shown)
    assert [bar.get_height() for bar in shown] == [*range(1, 21)]


def test_the_median_line_is_in_its_bar() -> None:
    """The line is at the median, inside the bar of its full years, or in 20+."""
    for years in ([2.9], [0.0, 1.0], [3.0, 3.98, 7.0], [19.99], [20.2], [0.5, 0.2, 12.0]):
        axes = of.plots.tenure(pd.DataFrame({"years": years}), ax=plain_axes())
        assert list(axes.lines[0].get_xdata()) == [np.median(years)] * 2
    axes = of.plots.tenure(pd.DataFrame({"years": [31.0]}), ax=plain_axes())
    assert 20 < axes.lines[0].get_xdata()[0] < 21
    labels = {tick.get_text(): tick.get_position()[0] for tick in axes.get_xticklabels()}
    assert 20 < labels["20+"] < 21


def test_as_of_needs_people(people: pd.DataFrame) -> None:
    """as_of with a table of years is an error; with people it computes their years again."""
    years = people.outreach.tenure(as_of="2020-01-01")
    with pytest.raises(of.OutreachError, match="'experiences' is missing"):
        of.plots.tenure(years, as_of="2026-01-01")
    both = of.plots.tenure(people.join(years), as_of="2026-01-01", ax=plain_axes())
    alone = of.plots.tenure(people, as_of="2026-01-01", ax=plain_axes())
    assert [bar.get_height() for bar in both.patches] == [bar.get_height() for bar in alone.patches]


def sending(days: pd.DatetimeIndex) -> pd.DataFrame:
    """Return one mailbox's table of sending days."""
    return pd.DataFrame({"date": days, "email": "a", "emails": 5, "leads_reached": 5})


def test_ticks_are_on_days_that_begin_a_week_or_month() -> None:
    """Each tick is at a bar's sending day, and at the first of a week or month if not all fit."""
    starts = ("2026-11-25", "2026-10-30", "2026-12-28")
    for turn, (start, number) in enumerate(product(starts, (1, 2, 8, 60, 300))):
        width = (3, 8)[turn % 2]
        days = pd.bdate_range(start, periods=number)
        axes = of.plots.capacity(sending(days), ax=plain_axes(figsize=(width, 4)))
        ticks = mpl.dates.num2date(axes.get_xticks())
        shown = pd.DatetimeIndex(ticks).tz_localize(None)
        assert shown.isin(days).all()
        assert len(shown) >= min(2, number)
        bars = {patch.get_x() + patch.get_width() / 2 for patch in axes.patches}
        assert all(np.isclose(list(bars), tick).any() for tick in axes.get_xticks())
        firsts = [days[~days.to_period(code).duplicated()] for code in ("W", "M")]
        if number >= 60:
            assert shown.isin(firsts[0].union(firsts[1])).all()
        assert overlapping(axes) == []


def test_the_last_first_email_is_marked() -> None:
    """A line follows the bar with the last lead's first email, if there are later bars."""
    days = sending(pd.bdate_range("2026-11-23", periods=4)).assign(leads_reached=[0, 0, 5, 9])
    for started, after in (([4, 9, 9, 9], 1.5), ([9] * 4, 0.5), ([1, 2, 3, 9], None)):
        axes = of.plots.capacity(days.assign(leads_started=started), ax=plain_axes())
        first = mpl.dates.date2num(days["date"].iloc[0])
        lines = [line.get_xdata()[0] - first for line in axes.lines]
        assert lines == ([] if after is None else [after])
        assert [text.get_text() for text in axes.texts] == ["all started"] * len(lines)
        assert overlapping(axes) == []
    # Tables from older versions lack the column and are drawn too.
    assert not of.plots.capacity(days, ax=plain_axes()).lines


def test_ticks_have_their_dates() -> None:
    """A tick shows the day and month, or only the month, and the year at its first tick."""
    for number, expected in (
        (3, ["23 Nov\n2026", "24 Nov", "25 Nov"]),
        (60, ["Nov\n2026", "Dec", "Jan\n2027", "Feb"]),
        (400, ["Jan\n2027", "Apr", "Jul", "Oct", "Jan\n2028", "Apr"]),
    ):
        axes = of.plots.capacity(sending(pd.bdate_range("2026-11-23", periods=number)))
        assert [label.get_text() for label in axes.get_xticklabels()] == expected


def test_many_mailboxes_are_shown_by_domain() -> None:
    """If mailboxes without a colour send over a third of the emails, the bars show domains."""
    table = frames.sending_days(9)
    for top, expected in ((5, "person.number.0@team-0.example"), (2, "team-0.example")):
        axes = of.plots.capacity(table, top=top, ax=plain_axes(figsize=(12, 6)))
        assert axes.get_legend().get_texts()[0].get_text() == expected
        assert sum(patch.get_height() for patch in axes.patches) == table["emails"].sum()


def test_sending_days_add_up() -> None:
    """The bars contain all emails, by day or, for very long plans, by week."""
    for number, unit in ((8, "day"), (150, "week")):
        table = frames.sending_days(number)
        axes = of.plots.capacity(table, ax=plain_axes())
        assert sum(patch.get_height() for patch in axes.patches) == table["emails"].sum()
        assert axes.get_ylabel() == f"Emails per {unit}"
        assert len(axes.get_legend().get_texts()) == 6


def test_medians_of_other_segments_are_not_summed() -> None:
    """Other segments are summed for counts of people; for a median they are dropped with a note."""
    table = frames.segments(50)
    people = bars(of.plots.segments(table, top=5, ax=plain_axes()))
    assert people["other (45)"] == table["people"].iloc[5:].sum()
    axes = of.plots.segments(table, value="median_employees", top=5, ax=plain_axes())
    assert len(bars(axes)) == 5
    assert "the 5 largest of 50 segments" in axes.get_title()


def test_changes_sum_companies_with_a_known_change() -> None:
    """A change sums only companies with a known change, and shows the growth behind the bar."""
    table = pd.DataFrame(
        {
            "company_id": ["1", "2", "3"],
            "company": ["A", "B", "C"],
            "department": "legal",
            "before": pd.array([100, 50, None], dtype="Int64"),
            "change": pd.array([20, -5, None], dtype="Int64"),
        }
    )
    axes = of.plots.headcount_change(table, ax=plain_axes())
    assert bars(axes) == {"Legal": 15}
    assert [text.get_text() for text in axes.texts] == ["+15 (+10%)"]
    assert "2 companies" in axes.get_title()
    apart = of.plots.headcount_change(table, by="company", ax=plain_axes())
    assert bars(apart) == {"B": -5, "A": 20}
    named = of.plots.headcount_change(table, company=["A", "B"], ax=plain_axes())
    assert bars(named) == {"Legal": 15}
    assert named.get_title() == "A, B"


def test_changes_have_both_directions() -> None:
    """Growth and decline have different colours, from the largest growth to the largest decline."""
    table = pd.DataFrame({"company": [*"ABCDEF"], "department": "legal", "before": 100})
    table["change"] = [9, 8, -1, 7, 6, -2]
    axes = of.plots.headcount_change(table, by="company", top=4)
    assert list(bars(axes).items())[::-1] == [
        ("A", 9),
        ("B", 8),
        ("C", -1),
        ("F", -2),
        ("other (2)", 13),
    ]
    assert [text.get_text() for text in axes.texts][-1] == "+9 (+9%)"
    colors = [patch.get_facecolor() for patch in axes.patches]
    assert colors[1] == colors[2] != colors[3] == colors[4]


def test_segments_of_two_columns_have_whole_names(people: pd.DataFrame) -> None:
    """Titles and labels of industries by country are not cut on the plot's own figure."""
    by = ["company_industry", "location_details_country"]
    axes = of.plots.segments(people, by=by)
    shown = [*(label.get_text() for label in axes.get_yticklabels()), axes.get_title()]
    assert not [text for text in shown if "…" in text]
    assert flaws(axes) == []


def test_rows_without_a_status_count() -> None:
    """A missing status has its own bar, and rows with the same status are summed."""
    axes = of.plots.outcomes(pd.DataFrame({"status": [None, "added"]}))
    assert axes.get_title() == "1 of 2 rows are in the sequence"
    summary = pd.DataFrame({"status": ["added", "added", "invalid"], "rows": [2, 3, 1]})
    assert bars(of.plots.outcomes(summary)) == {"Added": 5, "Invalid": 1}
    nothing = of.plots.outcomes(summary.assign(rows=0))
    assert nothing.texts[0].get_text() == "No rows to show"


DAYS = {"date": ["2026-03-02"], "email": ["a"], "emails": [3], "leads_reached": [3]}
SEGMENT = {"title": ["CEO"], "people": [1], "companies": [1], "share": [1.0]}


@pytest.mark.parametrize(
    ("name", "table", "column"),
    [
        ("capacity", DAYS, "date"),
        ("capacity", DAYS, "emails"),
        ("capacity", DAYS, "leads_reached"),
        ("outcomes", {"status": ["added"], "rows": [1]}, "rows"),
        ("segments", SEGMENT, "people"),
        ("tenure", {"years": [1.0]}, "years"),
    ],
)
def test_numbers_that_are_text_are_rejected(
    name: str, table: dict[str, list[Any]], column: str
) -> None:
    """A column of text is an error that names it, and the same column with numbers is drawn."""
    getattr(of.plots, name)(pd.DataFrame(table))
    with pytest.raises(of.OutreachError, match=f"'{column}' (is not numeric|has 1 value not in)"):
        getattr(of.plots, name)(pd.DataFrame(table | {column: ["many"]}))


@pytest.mark.parametrize("day", ["02.03.2026", "3/2/26", "2026-03", "2026", 20260302])
def test_dates_must_be_iso(day: Any) -> None:
    """A plan with dates in another format is an error that names the row; ISO text is drawn."""
    with pytest.raises(of.OutreachError, match=f"has 1 value not in .*{day}'? in row 1"):
        of.plots.capacity(pd.DataFrame(DAYS | {"date": ["2026-03-02", day]} | TWICE))


TWICE = {"email": ["a", "a"], "emails": [3, 3], "leads_reached": [3, 6]}


def test_infinite_values_are_not_drawn() -> None:
    """Infinite values are treated as missing, and other bars are unchanged."""
    axes = of.plots.segments(pd.DataFrame(SEGMENT | {"people": [np.inf]}))
    assert axes.texts[0].get_text() == "No segments to show"
