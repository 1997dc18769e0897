"""The bars and texts of maps, outcomes, tenure, sending days, segments and changes."""

from __future__ import annotations

import json
from importlib import resources
from itertools import product
from typing import Any

import matplotlib as mpl
import matplotlib.dates
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex

import outreach_frames as of
from outreach_frames.leads.statuses import KINDS, STATUSES, kind_of
from tests.examples import share_of_examples
from tests.gallery import frames
from tests.plots.artists import bars, draw, extent, flaws, overlapping, plain_axes

pytestmark = pytest.mark.long


def test_everybody_is_on_the_map_or_counted() -> None:
    """Circles' areas show numbers of people; the title counts people without coordinates."""
    table = frames.places(5)
    axes = of.plots.people_map(table, ax=plain_axes())
    (circles,) = axes.collections
    counts = table.groupby(["location_details_lat", "location_details_long"]).size()
    areas = np.sort(circles.get_sizes())
    assert areas / areas.max() == pytest.approx(np.sort(counts) / counts.max())
    missing = table["location_details_lat"].isna().sum()
    assert (
        axes.get_title() == f"{counts.sum()} people in 5 places; {missing} more without coordinates"
    )
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert table["location_details_long"].dropna().between(low, high).all()
    assert table["location_details_lat"].dropna().between(bottom, top).all()


def located(*rows: tuple[str | None, float, float, int]) -> pd.DataFrame:
    """Return people with these cities, latitudes, longitudes and numbers."""
    names = [f"location_details_{name}" for name in ("city", "lat", "long")]
    return pd.DataFrame([row[:3] for row in rows for _ in range(row[3])], columns=names)


def named(table: pd.DataFrame) -> list[str]:
    """Return the labels of all places on a map."""
    axes = of.plots.people_map(table, top=100, ax=plain_axes(figsize=(20, 20)))
    return sorted(text.get_text() for text in axes.texts)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("Berlin", 52.5, 13.4, 1), ("Mitte", 52.5, 13.4, 2)], ["Mitte 3"]),
        ([("Berlin", 52.549, 13.4, 1), ("Berlin", 52.551, 13.4, 2)], ["Berlin 3"]),
        ([("Berlin", 52.4, 13.449, 1), ("berlin ", 52.6, 13.451, 2)], ["berlin 3"]),
        ([("A", 50.01, 8.01, 1), ("B", 49.99, 8.04, 2)], ["A 1", "B 2"]),
        ([("Taveuni", -16.8, 179.99, 1), ("Taveuni", -16.8, -179.98, 2)], ["Taveuni 3"]),
        ([(None, 50.04, 8.0, 5), ("A", 50.04, 8.0, 1), ("B", 50.01, 8.0, 1)], ["A 6", "B 1"]),
        ([(None, 50.01, 8.0, 1), (None, 50.02, 8.0, 1)], ["not given 2"]),
        ([("", 50.0, 8.0, 1), (None, 70.0, 8.0, 1)], ["not given 1", "not given 1"]),
    ],
)
def test_a_place_is_a_city(rows: list[Any], expected: list[str]) -> None:
    """A city's near points form one place with the most frequent name; cities are not merged."""
    assert named(located(*rows)) == expected
    assert named(located(*rows[::-1])) == expected


def test_labels_of_places_have_the_colour_of_the_title() -> None:
    """Labels on the map have the colour of the axes' title, as all texts of a plot."""
    with mpl.rc_context({"axes.titlecolor": "#123456"}):
        axes = of.plots.people_map(located(("Berlin", 52.5, 13.4, 2)))
    assert [to_hex(text.get_color()) for text in axes.texts] == ["#123456"]


def test_cities_of_two_countries_are_two_places() -> None:
    """Cities with the same name in different states or countries are separate places."""
    table = located(("Rome", 41.9, 12.5, 1), ("Rome", 34.3, -85.2, 2))
    table["location_details_country"] = ["Italy", "United States", "United States"]
    assert named(table) == ["Rome 1", "Rome 2"]


@share_of_examples(0.2)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["A", "B", None]),
            st.floats(50, 52).map(lambda x: round(x, 2)),
            st.sampled_from([-179.9, -179.4, 8.0, 179.8]),
            st.integers(1, 3),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_no_city_is_split_and_nobody_is_lost(rows: list[Any]) -> None:
    """Each person is in one circle, and places of the same city are over half a degree apart."""
    axes = of.plots.people_map(located(*rows), top=1, ax=plain_axes())
    (circles,) = axes.collections
    assert axes.get_title().startswith(f"{sum(row[3] for row in rows)} p")
    drawn = {tuple(spot) for spot in np.round(circles.get_offsets().tolist(), 6).tolist()}
    points = {
        (row[2], row[1]): {other[0] for other in rows if other[1:3] == row[1:3]} for row in rows
    }
    assert drawn <= set(points)
    for one in drawn:
        for other in drawn - {one}:
            across = abs((one[0] - other[0] + 180) % 360 - 180)
            is_near = across <= 0.5 and abs(one[1] - other[1]) <= 0.5
            names = points[one] | points[other]
            assert not is_near or len(names) > 1 or names == {None}


def test_areas_are_proportions_or_explained() -> None:
    """Areas are in proportion to people; if small circles are enlarged, a legend says so."""
    for most in (1, 2, 10, 40, 1000, 20_000):
        axes = of.plots.people_map(located(("A", 50, 8, most), ("B", 40, 8, 1)))
        sizes = np.sort(axes.collections[0].get_sizes())
        if axes.get_legend() is None:
            assert sizes[0] / sizes[1] == pytest.approx(1 / most)
        else:
            first, *_, last = axes.get_legend().get_texts()
            enlarged = int(first.get_text().split()[2].replace(",", ""))
            assert enlarged / most <= sizes[0] / sizes[1] <= (enlarged + 1) / most
            markers = [handle.get_markersize() ** 2 for handle in axes.get_legend().get_lines()]
            assert markers[0] == pytest.approx(sizes[0])
            number = int(last.get_text().split()[0].replace(",", ""))
            assert markers[-1] / sizes[1] == pytest.approx(number / most)


def test_circles_are_whole() -> None:
    """The map's edge cuts no circle, at the date line, at a pole or on small axes."""
    places = located(("A", -17, 179.9, 90), ("B", 50, 8, 3), ("C", 89, -180, 80), ("D", -80, 0, 70))
    for table in (places, places.head(90), places.tail(70), places.iloc[90:]):
        for size in ((9, 5), (3, 6), (10, 3)):
            axes = of.plots.people_map(table, ax=plain_axes(figsize=size))
            axes.figure.draw_without_rendering()
            (circles,) = axes.collections
            spots = axes.transData.transform(circles.get_offsets())
            radii = np.sqrt(circles.get_sizes())[:, None] / 2 * axes.figure.dpi / 72
            assert (spots - radii >= axes.bbox.min).all()
            assert (spots + radii <= axes.bbox.max).all()


def test_the_title_names_companies_or_people(people: pd.DataFrame) -> None:
    """The title counts companies for a frame of companies, and people for other frames."""
    companies = people.outreach.companies()
    assert f"{len(companies)} companies in" in of.plots.people_map(companies).get_title()
    some = companies[["name", "location_details_lat", "location_details_long", "industry"]]
    assert "companies in" in of.plots.people_map(some).get_title()
    for table in (people, people.assign(size="1-10"), frames.places(3)):
        assert "people in" in of.plots.people_map(table).get_title()


def test_places_have_their_names_and_numbers() -> None:
    """The largest places are labelled with their names and numbers of people."""
    table = frames.places(5)
    london = (table["location_details_city"] == "London") & table["location_details_lat"].notna()
    axes = of.plots.people_map(table, ax=plain_axes())
    assert f"London {london.sum()}" in [text.get_text() for text in axes.texts]
    # The labels are outlined, so that they are legible above circles.
    assert all(text.get_path_effects() for text in axes.texts)


def test_labels_of_places_hide_no_circle(people: pd.DataFrame) -> None:
    """A label overlaps no other label or circle, and the largest places have labels."""
    for table in (people, frames.places(50)):
        axes = of.plots.people_map(table)
        draw(axes)
        assert len(axes.texts) == 10
        circles = axes.collections[0]
        spots = axes.transData.transform(circles.get_offsets())
        radii = np.sqrt(circles.get_sizes()) / 2 * axes.figure.dpi / 72
        for label in axes.texts:
            box = extent(label)
            reach = np.hypot(*(spots - np.clip(spots, box.min, box.max)).T)
            assert (reach >= radii).all(), label
        assert overlapping(axes) == []


def test_the_land_is_drawn_behind_the_people() -> None:
    """London, Nairobi and Siberia beyond the date line are on land, and the Atlantic is not."""
    axes = of.plots.people_map(frames.places(5), ax=plain_axes())
    (land,) = (patch for patch in axes.patches if patch.get_zorder() == 0)
    outlines = land.get_path()
    on_land = [
        outlines.contains_point(place) for place in [(-0.5, 52), (37, -1), (-175, 67), (-35, 30)]
    ]
    assert on_land == [True, True, True, False]
    assert land.get_visible()
    assert 0 < land.get_alpha() < 0.5
    (circles,) = axes.collections
    assert circles.get_zorder() > 0


def test_the_outlines_are_a_small_file_in_the_package() -> None:
    """The package contains the outlines of the map's land, which cover the world."""
    file = resources.files("outreach_frames.plots").joinpath("land.json")
    rings = json.loads(file.read_text("utf-8"))
    assert len(file.read_bytes()) < 100_000
    assert min(x for ring in rings for x, _ in ring) == -180
    # Except at the pole, no line crosses the whole map.
    jumps = [abs(np.diff([x for x, _ in ring])).max() for ring in rings if ring[0][1] > -62]
    assert max(jumps) < 180


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
PLACE = {"location_details_lat": [50.0], "location_details_long": [8.0]}
SEGMENT = {"title": ["CEO"], "people": [1], "companies": [1], "share": [1.0]}


@pytest.mark.parametrize(
    ("name", "table", "column"),
    [
        ("capacity", DAYS, "date"),
        ("capacity", DAYS, "emails"),
        ("capacity", DAYS, "leads_reached"),
        ("outcomes", {"status": ["added"], "rows": [1]}, "rows"),
        ("people_map", PLACE, "location_details_lat"),
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
