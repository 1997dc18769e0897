"""What every plot keeps to: axes, empty data, untouched data, names, and errors."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.axes import Axes

import outreach_frames as of
from outreach_frames.sandbox import Sandbox
from tests.gallery import frames
from tests.gallery.__main__ import PLOTS, SLIDE
from tests.plots.artists import flaws, plain_axes

pytestmark = pytest.mark.long

NAMES = set(of.plots.__all__)
OF_PEOPLE: dict[str, Callable[..., Axes]] = {
    "companies": of.plots.companies,
    "headcount": of.plots.headcount,
    "segments": lambda data, **more: of.plots.segments(data, by="company_industry", **more),
}


def test_the_gallery_has_every_plot() -> None:
    """The gallery, whose plots are tested here, has all plots of the module."""
    assert {name.split("_share")[0].split("_side")[0] for name in PLOTS} >= NAMES


@pytest.mark.parametrize("name", OF_PEOPLE)
def test_people_are_enough(people: pd.DataFrame, name: str) -> None:
    """A frame of people is drawn on the axes given, and left as it was."""
    axes = plain_axes()
    people = people.head(30)
    before = people.copy(deep=True)
    assert OF_PEOPLE[name](people, ax=axes) is axes
    assert axes.patches
    assert people.equals(before)


@pytest.fixture(scope="module")
def arrow_people(sandbox: Sandbox) -> pd.DataFrame:
    """Return the sandbox's people in Arrow-backed columns."""
    with of.connect(sandbox.url, sandbox.api_key, cache=None):
        return of.search_people(limit=30, dtype_backend="pyarrow")


@pytest.mark.parametrize("name", ["headcount", "segments"])
def test_people_of_arrow_are_the_same(
    people: pd.DataFrame, arrow_people: pd.DataFrame, name: str
) -> None:
    """Arrow-backed people give the same texts as others."""
    shown = []
    for data in (people, arrow_people):
        axes = OF_PEOPLE[name](data.head(30), ax=plain_axes())
        shown.append([text.get_text() for text in axes.texts])
    assert shown[0] == shown[1] != []


@pytest.mark.parametrize("name", PLOTS)
def test_nothing_to_show_is_said(name: str) -> None:
    """Empty data gives axes with no ticks and no bars that say so."""
    axes = PLOTS[name](0, plain_axes())
    assert not axes.patches
    assert not axes.get_xticks().size
    assert not axes.get_yticks().size
    assert any(text.get_text().startswith("No ") for text in axes.texts)


# The other plots differ from one of these only in the numbers at the bars.
ON_SLIDES = [
    *("headcount_side_by_side", "companies", "job_functions", "segments_median"),
    *("outcomes", "capacity_top", "headcount_change_companies"),
]
ON_FIGURES = [*ON_SLIDES, "headcount", "segments", "capacity", "headcount_change"]


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_names_what_it_shows(name: str) -> None:
    """A plot has a title, the name of its numbers, and a name at each of its ticks."""
    axes = PLOTS[name](7, plain_axes())
    assert axes.get_title()
    assert axes.get_xlabel() or axes.get_ylabel()
    labels = [label.get_text() for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    assert len(labels) > 3
    assert all(labels)


@pytest.mark.parametrize("name", ON_FIGURES)
def test_figures_have_room_for_all_texts(name: str) -> None:
    """On a figure of its own no text of a plot is cut off or overprinted."""
    assert flaws(PLOTS[name](50, None)) == []


@pytest.mark.parametrize("name", ON_SLIDES)
def test_slides_have_room_for_all_texts(name: str) -> None:
    """On a slide, with its larger letters, no text of a plot is cut off or overprinted."""
    with plt.rc_context(SLIDE):
        assert flaws(PLOTS[name](50, plt.subplots(layout="constrained")[1])) == []


@pytest.mark.parametrize("name", sorted(NAMES))
def test_other_data_is_an_error(name: str) -> None:
    """What is no frame, or lacks the columns, is an error that says what the plot takes."""
    options = {"by": "company_industry"} if name == "segments" else {}
    for data in ([1, 2], pd.DataFrame({"e-mail": []})):
        with pytest.raises(of.OutreachError, match=r"takes|lacks|level"):
            getattr(of.plots, name)(data, **options)


@pytest.mark.parametrize("projection", [None, "polar"])
def test_axes_that_are_none_are_told(projection: str | None) -> None:
    """Several axes at once, or ones without an x axis, are errors that say what to give."""
    axes = plt.subplots(1, 2, subplot_kw={"projection": projection})[1]
    with pytest.raises(of.OutreachError, match="ax must be one Axes"):
        of.plots.headcount(frames.departments(1), ax=axes[0] if projection else axes)


def test_the_result_of_find_people_is_drawn_by_its_people(sandbox: Sandbox) -> None:
    """A plot of people takes the result as its `.people`; another result's tables are named."""
    accounts = pd.DataFrame({"name": ["Brightforge", "Northforge"]})
    with of.connect(sandbox.url, sandbox.api_key, cache=None):
        result = accounts.outreach.find_people(company_name="name", per_company=2)
    for plot in OF_PEOPLE.values():
        shown = [plot(data, ax=plain_axes()).texts for data in (result, result.people)]
        assert [text.get_text() for text in shown[0]] == [text.get_text() for text in shown[1]]
    comparison = of.compare_people(result.people, result.people)
    with pytest.raises(of.OutreachError, match=r"Pass one of its tables: \.appeared, "):
        of.plots.companies(comparison)
    with pytest.raises(of.OutreachError, match=r"Pass one of its tables: \.people, "):
        of.sending_capacity(result, 5)


def test_objects_are_taken_by_what_they_hold() -> None:
    """A comparison is drawn by its headcount, and a report by its summary."""
    comparison = SimpleNamespace(headcount=frames.changes(3))
    assert of.plots.headcount_change(comparison, ax=plain_axes()).patches
    report = SimpleNamespace(summary=lambda: frames.outcomes(3))
    assert len(of.plots.outcomes(report, ax=plain_axes()).patches) == 3
