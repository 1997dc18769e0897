"""The map, outcomes, tenure, sending days, segments and changes: what their bars and texts say."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.leads.statuses import KINDS, STATUSES, kind_of
from tests.gallery import frames
from tests.plots.artists import bars, plain_axes

pytestmark = pytest.mark.long


def test_everybody_is_on_the_map_or_counted() -> None:
    """Circles stand for places by area, and who has no coordinates is in the title."""
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


def test_places_have_their_names_and_numbers() -> None:
    """The largest places are named, with how many people are there."""
    table = frames.places(5)
    london = (table["location_details_city"] == "London") & table["location_details_lat"].notna()
    axes = of.plots.people_map(table, ax=plain_axes())
    assert f"London {london.sum()}" in [text.get_text() for text in axes.texts]


def test_the_land_is_drawn_behind_the_people() -> None:
    """London and Nairobi lie on drawn land, the middle of the Atlantic does not."""
    axes = of.plots.people_map(frames.places(5), ax=plain_axes())
    (land,) = (patch for patch in axes.patches if patch.get_zorder() == 0)
    outlines = land.get_path()
    on_land = [outlines.contains_point(place) for place in [(-0.5, 52), (37, -1), (-35, 30)]]
    assert on_land == [True, True, False]
    assert land.get_visible()
    assert 0 < land.get_alpha() < 0.5
    (circles,) = axes.collections
    assert circles.get_zorder() > 0


def test_the_outlines_are_a_small_file_in_the_package() -> None:
    """The map's land is installed with the package, and covers the world."""
    file = resources.files("outreach_frames.plots").joinpath("land.json")
    rings = json.loads(file.read_text("utf-8"))
    assert len(file.read_bytes()) < 100_000
    assert min(x for ring in rings for x, _ in ring) == -180
    # No line across the whole map: neighbours are never half a world apart, but at the pole.
    jumps = [abs(np.diff([x for x, _ in ring])).max() for ring in rings if ring[0][1] > -62]
    assert max(jumps) < 180


@pytest.mark.parametrize("status", STATUSES)
def test_colors_of_outcomes_are_the_kinds_of_statuses(status: str) -> None:
    """What is in the sequence, what was skipped and what failed have the colours of their kinds."""
    table = pd.DataFrame({"status": [status], "rows": [3]})
    colors = [
        of.plots.outcomes(frame, ax=plain_axes()).patches[0].get_facecolor()
        for frame in (table, *(pd.DataFrame({"status": [s], "rows": [1]}) for s in SAMPLES))
    ]
    assert colors[0] == colors[1 + KINDS.index(kind_of(status))]


SAMPLES = ("added", "recently_contacted", "rejected")


def test_rows_and_summary_give_the_same_outcomes() -> None:
    """The rows of a report and its summary are drawn alike."""
    rows = pd.DataFrame({"status": ["added"] * 3 + ["recently_contacted"]})
    expected = {"Recently contacted": 1, "Added": 3}
    assert bars(of.plots.outcomes(rows, ax=plain_axes())) == expected
    summary = pd.DataFrame({"status": ["added", "recently_contacted"], "rows": [3, 1]})
    assert bars(of.plots.outcomes(summary, ax=plain_axes())) == expected


def test_tenure_is_counted_by_full_years() -> None:
    """Each person is in the bar of the full years, very long ones together, unknown ones told."""
    years = pd.Series([0.2, 0.9, 1.0, 3.5, 31.0, None], dtype="Float64")
    axes = of.plots.tenure(pd.DataFrame({"years": years}), ax=plain_axes())
    heights = [patch.get_height() for patch in axes.patches]
    assert (heights[0], heights[1], heights[3], heights[20], sum(heights)) == (2, 1, 1, 1, 5)
    assert "; 1 more without a start date" in axes.get_title()
    assert "median 1.0" in [text.get_text() for text in axes.texts]


def test_sending_days_add_up() -> None:
    """All emails are in the bars, by day or, where there are very many, by week."""
    for number, unit in ((8, "day"), (150, "week")):
        table = frames.sending_days(number)
        axes = of.plots.capacity(table, ax=plain_axes())
        assert sum(patch.get_height() for patch in axes.patches) == table["emails"].sum()
        assert axes.get_ylabel() == f"Emails per {unit}"
        assert len(axes.get_legend().get_texts()) == 6


def test_what_does_not_add_up_is_not_summed() -> None:
    """The rest of the segments is summed for people, and left out, but said, for a median."""
    table = frames.segments(50)
    people = bars(of.plots.segments(table, top=5, ax=plain_axes()))
    assert people["other (45)"] == table["people"].iloc[5:].sum()
    axes = of.plots.segments(table, value="median_employees", top=5, ax=plain_axes())
    assert len(bars(axes)) == 5
    assert "the 5 largest of 50 segments" in axes.get_title()


def test_changes_are_of_companies_on_both_sides() -> None:
    """A change is summed over companies that have one, with its growth behind the bar."""
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


def test_rows_without_a_status_count() -> None:
    """A status that is missing is one of its own; statuses that come twice are summed."""
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
    """A column that cannot be drawn is named; with numbers in it, it is drawn."""
    getattr(of.plots, name)(pd.DataFrame(table))
    with pytest.raises(of.OutreachError, match=f"'{column}' (is not numeric|does not hold dates)"):
        getattr(of.plots, name)(pd.DataFrame(table | {column: ["many"]}))


@pytest.mark.parametrize("day", ["02.03.2026", "3/2/26", "2026-03", "2026", 20260302])
def test_days_that_are_not_iso_are_not_guessed(day: Any) -> None:
    """A plan with another form of date is an error with its row, and ISO text is drawn."""
    with pytest.raises(of.OutreachError, match=f"does not hold dates: 1 value .*{day}'? in row 1"):
        of.plots.capacity(pd.DataFrame(DAYS | {"date": ["2026-03-02", day]} | TWICE))


TWICE = {"email": ["a", "a"], "emails": [3, 3], "leads_reached": [3, 6]}


def test_what_is_infinite_is_not_drawn() -> None:
    """A value without bounds is missing, and the others keep their bars."""
    axes = of.plots.segments(pd.DataFrame(SEGMENT | {"people": [np.inf]}))
    assert axes.texts[0].get_text() == "No segments to show"
