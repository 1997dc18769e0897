"""Bars, names and texts of plots of segments, sizes, outcomes and sending days."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import matplotlib.dates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

import outreach_frames as of
from outreach_frames.leads.statuses import DRY_RUN_KINDS, STATUSES, kind_of
from tests.gallery import frames
from tests.plots.artists import bars, extent, flaws, numbers

pytestmark = pytest.mark.long
WIDTHS = pytest.mark.parametrize("inches", [5, 14])

SIZES = ["Self-employed", "1-10", "11 to 50 employees", "51\N{EN DASH}200", "1,001-5,000", "10001+"]


@pytest.mark.parametrize("top", [20, 3])
def test_sizes_are_in_the_order_of_their_numbers(top: int) -> None:
    """The most frequent sizes are shown in the order of their first number, unknown ones on top."""
    counts = [1, 2, 7, 4, 5, 6, 3]
    labels = pd.Series([*SIZES, None]).repeat(counts)
    names = [*SIZES, "not given"]
    expected = {n: c for n, c in zip(names, counts, strict=True) if top == 20 or c > 4}
    people = pd.DataFrame({"company_size": labels, "company_id": "1"}).sample(
        frac=1, random_state=1
    )
    shown = bars(of.plots.segments(people, by="company_size", top=top))
    assert list(shown.items()) == list(expected.items())


def test_segments_by_size_count_companies(people: pd.DataFrame) -> None:
    """Each company is in the bar of its size."""
    shown = bars(of.plots.segments(people, by="company_size", value="companies"))
    assert sum(shown.values()) == people["company_id"].nunique()


def test_segments_have_formatted_numbers_and_a_note() -> None:
    """Numbers have separators or percent signs, and a note has what `top` hides."""
    table = pd.DataFrame({"k": [*"abc"], "people": [12345, 678, 9], "companies": 1})
    table["share"] = [0.94, 0.05, 0.01]
    axes = of.plots.segments(table, top=2)
    assert numbers(axes) == ["678", "12,345"]
    assert "1 other segments, together 9" in axes.get_xlabel()
    assert "10,000" in [label.get_text() for label in axes.get_xticklabels()]
    shares = of.plots.segments(table, value="share")
    assert numbers(shares) == ["1%", "5%", "94%"]
    assert "50%" in [label.get_text() for label in shares.get_xticklabels()]


@pytest.mark.parametrize(
    ("shares", "texts"),
    [
        ([0.25, 0.25, 0.5], ["25%", "25%", "50%"]),
        ([0.254, 0.246, 0.5], ["25.4%", "24.6%", "50.0%"]),
        ([1 / 3, 1 / 3, 1 / 3], ["33.3%"] * 3),
        ([0.004, 0.003, 0.993], ["0.4%", "0.3%", "99%"]),
        ([0.0004, 0.4996, 0.5], ["0.04%", "50.0%", "50.0%"]),
    ],
)
def test_shares_have_a_decimal_where_whole_percents_mislead(
    shares: list[float], texts: list[str]
) -> None:
    """Different bars have different labels, and labels have the sum of their bars."""
    table = pd.DataFrame({"k": [*"abc"], "people": 1, "companies": 1, "share": shares})
    shown = numbers(of.plots.segments(table.sort_values("share"), value="share"))
    assert sorted(shown) == sorted(texts)


def test_titles_have_the_labels_of_columns() -> None:
    """A title names each column by its label, and cuts no label of the interface's columns."""
    keys = {"company_size": ["1-10"], "company_location_details_country": ["France"]}
    table = pd.DataFrame(keys | {"people": 1, "companies": 1, "share": 1.0})
    assert of.plots.segments(table).get_title() == "People by company size and company country"


def test_medians_need_five_companies() -> None:
    """A median has its number of companies; with fewer than 5 it is only counted in a note."""
    table = frames.segments(4).assign(companies=[4, 5, 6, 7], median_legal=[9.0, 2.5, 1.0, 2.0])
    axes = of.plots.segments(table, value="median_legal", top=2)
    assert numbers(axes) == ["2 (n = 7)", "2.5 (n = 5)"]
    assert axes.get_title().startswith("Median people in Legal by")
    assert "1 other segments\nNot shown: 1 segments with fewer than 5" in axes.get_xlabel()


def grey(color: str) -> float:
    """Return a colour's relative luminance."""
    channels = np.array(mpl.colors.to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_colors_of_kinds_differ_in_grey() -> None:
    """Added, skipped and failed rows, and growth and decline, differ in colour and in grey."""
    table = pd.DataFrame({"status": STATUSES, "rows": range(1, len(STATUSES) + 1)})
    patches = of.plots.outcomes(table).patches
    drawn = {patch.get_width(): to_hex(patch.get_facecolor()) for patch in patches}
    colors = {status: drawn[rows] for rows, status in enumerate(STATUSES, 1)}
    kinds = [colors[status] for status in ("added", "recently_contacted", "rejected")]
    every = [*kinds, colors["would_send"]]
    assert len(set(every)) == len(every)
    assert all(
        color == every[DRY_RUN_KINDS.index(kind_of(status))] for status, color in colors.items()
    )
    changes = of.plots.headcount_change(frames.changes(9), by="company").patches
    signs = sorted({to_hex(patch.get_facecolor()) for patch in changes})
    for several in (kinds, signs):
        light = sorted(map(grey, several))
        ratios = [(b + 0.05) / (a + 0.05) for a, b in pairwise(light)]
        assert len(ratios) == len(several) - 1
        assert min(ratios) > 1.5


def test_outcomes_count_rows_in_every_form() -> None:
    """Rows and summary give the same plot; a missing status has a bar, equal ones are summed."""
    rows = pd.DataFrame({"status": ["added"] * 3 + ["recently_contacted"]})
    summary = pd.DataFrame({"status": ["added", "added", "recently_contacted"], "rows": [2, 1, 1]})
    for data in (rows, summary):
        assert bars(of.plots.outcomes(data)) == {"Recently contacted": 1, "Added": 3}
    axes = of.plots.outcomes(pd.DataFrame({"status": [None, "added"]}))
    assert axes.get_title() == "1 of 2 rows are in the sequence"
    assert numbers(axes) == ["1 (50%)", "1 (50%)"]
    assert set(numbers(of.plots.outcomes(summary.assign(rows=0)))) == {"0 (0%)"}


def sending(number: int, **columns: Any) -> pd.DataFrame:
    """Return one mailbox's table of sending days."""
    days = pd.bdate_range("2026-11-23", periods=number)
    table = pd.DataFrame({"date": days, "email": "a", "emails": 5, "leads_finished": 5})
    return table.assign(**columns)


@pytest.mark.parametrize(
    ("started", "after"), [([4, 9, 9, 9], 1.5), ([1, 2, 3, 9], None), ([], None)]
)
def test_the_last_first_email_is_marked(started: list[int], after: float | None) -> None:
    """A line follows the bar with the last lead's first email, if there are later bars."""
    axes = of.plots.capacity(sending(4, **({"leads_started": started} if started else {})))
    first = mpl.dates.date2num(pd.Timestamp("2026-11-23"))
    assert [line.get_xdata()[0] - first for line in axes.lines] == ([after] if after else [])
    marks = [text.get_text() for text in axes.get_legend().get_texts()]
    assert ("all leads started" in marks) is bool(after)


def test_many_mailboxes_are_one_colour_unless_top_is_passed() -> None:
    """Up to six mailboxes are shown each, more as their total, and `top` as its mailboxes."""

    def series(number: int, **options: Any) -> list[str]:
        axes = of.plots.capacity(frames.sending_days(number), **options)
        texts = axes.get_legend().get_texts()
        return [text.get_text() for text in texts if text.get_text() != "all leads started"]

    assert len(series(6)) == 6
    assert series(7) == ["7 mailboxes"]
    assert len(series(7, top=9)) == 7
    assert series(7, top=2)[2:] == ["other (5)"]
    few = of.plots.capacity(frames.sending_days(7), top=2)
    total = of.plots.capacity(frames.sending_days(7))
    heights = [sum(bar.get_height() for bar in axes.patches) for axes in (few, total)]
    assert heights[0] == heights[1]


def test_similar_long_addresses_have_different_names() -> None:
    """Names that would be cut to the same text have two lines."""
    names = [f"first.name.of.a.person.{n}@an.outreach.domain.example" for n in (1, 2)]
    days = frames.sending_days(2)
    days["email"] = days["email"].map(dict(zip(sorted(set(days["email"])), names, strict=True)))
    legend = of.plots.capacity(days).get_legend()
    assert {text.get_text().replace("\n", "") for text in legend.get_texts()} >= set(names)


@pytest.mark.parametrize(
    ("number", "ticks", "unit"),
    [
        (1, ["23 Nov 2026"], "day"),
        (3, ["23 Nov", "24 Nov", "25 Nov"], "day"),
        (60, ["01 Dec", "15 Dec"], "day"),
        (400, ["2027"], "week"),
    ],
)
def test_ticks_are_dates(number: int, ticks: list[str], unit: str) -> None:
    """A few days have one tick each, and more days have round dates; long plans are by week."""
    axes = of.plots.capacity(sending(number))
    axes.figure.draw_without_rendering()
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert set(ticks) <= set(shown)
    assert len(shown) <= 9
    assert axes.xaxis.get_offset_text().get_text() == ""
    assert axes.get_ylabel() == f"Emails per {unit}"
    assert sum(patch.get_height() for patch in axes.patches) == 5 * number


@WIDTHS
@pytest.mark.parametrize("number", [8, 18, 24, 25, 60, 300, 700])
def test_dates_do_not_overlap(inches: float, number: int) -> None:
    """Any number of sending days has at least two dates that do not overlap."""
    axes = plt.figure(figsize=(inches, 4), layout="constrained").gca()
    assert flaws(of.plots.capacity(sending(number), ax=axes)) == []
    assert len(axes.get_xticks()) > 1


@WIDTHS
@pytest.mark.parametrize("largest", [3, 30_000, 300_000_000])
def test_counts_do_not_overlap(inches: float, largest: int) -> None:
    """Small and large counts beside long names have at least two ticks that do not overlap."""
    table = pd.DataFrame({"k": [LONG, "b"], "people": [largest, 1], "companies": 1, "share": 0.5})
    axes = plt.figure(figsize=(inches, 4), layout="constrained").gca()
    assert flaws(of.plots.segments(table, ax=axes)) == []
    assert len(axes.get_xticks()) > 1


SEGMENT = {"title": ["CEO"], "people": [1], "companies": [1], "share": [1.0]}
DAYS = {"date": ["2026-03-02"], "email": ["a"], "emails": [3], "leads_finished": [3]}


@pytest.mark.parametrize(
    ("name", "table", "column"),
    [
        ("capacity", DAYS, "date"),
        ("capacity", DAYS, "emails"),
        ("capacity", DAYS, "leads_finished"),
        ("outcomes", {"status": ["added"], "rows": [1]}, "rows"),
        ("segments", SEGMENT, "people"),
    ],
)
def test_numbers_that_are_text_are_rejected(
    name: str, table: dict[str, list[Any]], column: str
) -> None:
    """A column of text is an error that names it, and the same column with numbers is drawn."""
    getattr(of.plots, name)(pd.DataFrame(table))
    values = ("many", "02.03.2026", "2026-03", 20260302) if column == "date" else ("many",)
    for value in values:
        with pytest.raises(
            of.OutreachError, match=f"'{column}' has values (that are not numbers|not in)"
        ):
            getattr(of.plots, name)(pd.DataFrame(table | {column: [value]}))


def test_infinite_values_are_not_drawn() -> None:
    """Infinite values are treated as missing."""
    axes = of.plots.segments(pd.DataFrame(SEGMENT | {"people": [np.inf]}))
    assert numbers(axes) == ["No segments to show"]


def labels(*names: object) -> list[str]:
    """Return the labels of segments with these names, from top to bottom."""
    table = frames.segments(len(names)).assign(company_industry=pd.Series(names, dtype=object))
    axes = of.plots.segments(table)
    axes.figure.draw_without_rendering()
    return list(bars(axes))[::-1]


LONG = "a name that is very much longer than a label has room for"
# No fonts of common operating systems have these scripts.
ANCIENT = ["\U00012000" * 20, "\U00013000" * 20]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["$5 and $10", "$\\frac$", "$5"], ["\\$5 and \\$10", "\\$\\frac\\$", "$5"]),
        (["two\nlines", "a\u200bb\u202ec\x00d"], ["two lines", "abcd"]),
        (["", None, "\u200b"], ["not given", "not given (2)", "not given (3)"]),
        (["Acme", "Acme", "Acme (2)"], ["Acme", "Acme (3)", "Acme (2)"]),
    ],
    ids=["formulas", "lines", "blanks", "twins"],
)
def test_names_are_literal_and_distinct(names: list[object], expected: list[str]) -> None:
    """A name is drawn literally on one line, and is distinct from all others."""
    assert labels(*names) == expected


def drawn_on(inches: float, names: list[str]) -> Axes:
    """Return the drawn axes of segments with these names, on a figure of this width."""
    table = frames.segments(len(names)).assign(company_industry=names)
    axes = of.plots.segments(table, ax=plt.figure(figsize=(inches, 4), layout="constrained").gca())
    assert flaws(axes) == []
    return axes


@WIDTHS
@pytest.mark.filterwarnings("ignore:The plot has boxes")
def test_names_take_at_most_a_third_of_the_width(inches: float) -> None:
    """Names of all scripts are cut if they would take more than a third of the figure."""
    axes = drawn_on(inches, ["W" * 199, "i" * 1_000_000, LONG * 2, "光" * 99, *ANCIENT])
    widths = [extent(label).width / axes.figure.bbox.width for label in axes.get_yticklabels()]
    assert 0.3 < max(widths) < 1 / 3
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert sum("…" in text for text in shown) == (6 if inches == 5 else 4)


@WIDTHS
def test_names_that_would_be_cut_alike_are_distinct(inches: float) -> None:
    """Names that differ only in the middle show the difference, and a number as a last resort."""
    words = ("Norway", "Sweden")
    names = [f"The Holding of the Southern and of the Western {word} {LONG}" for word in words]
    shown = [label.get_text() for label in drawn_on(inches, names).get_yticklabels()]
    assert len(set(shown)) == 2
    assert all(word in text for word, text in zip(words[::-1], shown, strict=True))
    same_ends = [f"{'m' * 99}{middle}{'m' * 99}" for middle in "xy"]
    shown = [label.get_text() for label in drawn_on(inches, same_ends).get_yticklabels()]
    assert len(set(shown)) == 2


@pytest.mark.parametrize("names", [ANCIENT, ["Компания", "شركة"]], ids=["missing", "known"])
def test_scripts_without_a_font_are_one_warning(names: list[str]) -> None:
    """Scripts that no font has are one warning that names them and the remedy."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labels(*names)
    if names is not ANCIENT:
        assert not caught
        return
    (warning,) = caught
    assert warning.category is of.OutreachWarning
    scripts = f"EGYPTIAN (such as {ANCIENT[1][0]}), CUNEIFORM (such as {ANCIENT[0][0]})"
    assert f"characters that its fonts lack: {scripts}. Install a font" in str(warning.message)


def test_names_that_differ_at_one_end_stay_distinct() -> None:
    """Long names that differ only at the beginning or only at the end have distinct labels."""
    for names in ((f"1 {LONG}", f"2 {LONG}"), (f"{LONG} 1", f"{LONG} 2")):
        shown = labels(*names)
        assert len(set(shown)) == 2
        assert all("…" in text and "(" not in text for text in shown)
