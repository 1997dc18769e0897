"""Tenure: since when people are in their position, as reading them one by one gives it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import orjson
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from outreach_frames.analysis.tenure import TENURE
from outreach_frames.errors import InvalidInputError
from outreach_frames.reading.flatten import people_frame
from outreach_frames.reading.pages import read_people_page

DAY = "2024-06-30"
DATES = st.none() | st.dates(date(2023, 12, 28), date(2024, 7, 3)).map(str)
URLS = [
    "https://profnet.example/company/acme",
    "profnet.example/company/acme/",
    "https://x.example/b",
]
POSITIONS = st.none() | st.fixed_dictionaries(
    {
        "title": st.sampled_from(["VP", "Director", None]),
        "company_name": st.sampled_from(["Acme", " acme", "Brightforge", "", None]),
        "company_profnet_url": st.sampled_from([*URLS, None]),
        "start_date": DATES,
        "end_date": DATES,
    }
)
PEOPLE = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.just("1"),
            "current_position_start_date": DATES,
            "experiences": st.none() | st.lists(POSITIONS, max_size=4),
        }
    ),
    max_size=4,
)


def frame_of(people: list[dict[str, Any]], backend: Any = "numpy_nullable") -> pd.DataFrame:
    """Read people as a search does."""
    body = orjson.dumps({"results": people, "_pagination": {}})
    return people_frame([read_people_page(body)], backend)


def brute_force(person: dict[str, Any], day: str) -> tuple[Any, ...]:
    """Read one person's positions one by one."""
    held = [
        one
        for one in person["experiences"] or ()
        if one and any(v is not None for v in one.values())
    ]
    begun = [one for one in held if not one["start_date"] or one["start_date"] <= day]
    open_ones = [one for one in begun if not one["end_date"] or one["end_date"] >= day]
    current = max(open_ones, key=lambda one: one["start_date"] or "", default=None)
    start = current["start_date"] if current else None
    stated = person["current_position_start_date"]
    if not start and (current or not held) and stated and stated <= day:
        start = stated
    earlier = [
        one
        for one in begun
        if current is not None
        and one is not current
        and (
            (one not in open_ones and not later(one["start_date"], current["start_date"]))
            or later(current["start_date"], one["start_date"])
        )
    ]
    previous = max(earlier, key=lambda one: one["start_date"] or "", default=None)
    if previous is None:
        return start, None, None, None
    return (start, previous["title"], previous["company_name"] or None, moved(current, previous))


def later(one: str | None, other: str | None) -> bool:
    """Whether both dates are known and the first is later."""
    return bool(one and other and one > other)


def moved(current: Any, previous: Any) -> bool | None:
    """Whether two positions are at different companies."""
    ours, theirs = (
        URLS.index(one["company_profnet_url"]) // 2 if one["company_profnet_url"] else None
        for one in (current, previous)
    )
    if ours is not None and theirs is not None:
        return ours != theirs
    ours, theirs = ((one["company_name"] or "").strip().lower() for one in (current, previous))
    return ours != theirs if ours and theirs else None


@settings(max_examples=60)
@given(PEOPLE, st.sampled_from([DAY, "2024-01-02"]), st.sampled_from(["numpy_nullable", "pyarrow"]))
def test_tenure_is_that_of_a_brute_force(
    people: list[dict[str, Any]], day: str, backend: Any
) -> None:
    """Start, previous position and change of employer are those of reading row by row."""
    table = frame_of(people, backend).outreach.tenure(as_of=day)
    expected = [brute_force(person, day) for person in people]
    starts = table["start_date"].dt.strftime("%Y-%m-%d")
    found = table.assign(start_date=starts).drop(columns="years").astype(object)
    assert [*map(tuple, found.where(found.notna(), None).to_numpy().tolist())] == expected
    years = [
        None if pd.isna(start) else birthdays(start.date(), day) for start in table["start_date"]
    ]
    assert [None if pd.isna(value) else int(value) for value in table["years"]] == years


def birthdays(start: date, day: str) -> int:
    """Count the anniversaries of a day, year by year; that of 29 February may be 1 March."""
    today = date.fromisoformat(day)
    return sum(
        (year, start.month, start.day) <= (today.year, today.month, today.day)
        for year in range(start.year + 1, today.year + 1)
    )


def years_until(starts: list[str], day: str) -> pd.Series:
    """Return the years of people who have held one position each."""
    people = [{"id": "1", "current_position_start_date": start} for start in starts]
    return frame_of(people).outreach.tenure(as_of=day)["years"]


LEAP_DAYS = [date(2020, 2, 29), date(2020, 2, 28), date(2020, 3, 1), date(1996, 2, 29)]


@given(
    st.lists(st.dates(date(1970, 1, 1), date(2026, 3, 2)), max_size=20),
    st.sampled_from(["2026-03-02", "2026-02-28", "2024-02-29"]),
)
@example(LEAP_DAYS, "2025-02-28")
@example(LEAP_DAYS, "2025-03-01")
def test_years_are_counted_by_the_calendar(starts: list[date], day: str) -> None:
    """The whole part of years is the number of anniversaries, and earlier starts are never less."""
    begun = sorted((start for start in starts if str(start) <= day), reverse=True)
    years = years_until([str(start) for start in begun], day)
    assert years.astype(int).tolist() == [birthdays(start, day) for start in begun]
    assert years.is_monotonic_increasing


def test_anniversaries_are_whole_years() -> None:
    """On an anniversary years are whole, and the day before they are not yet."""
    for month_and_day in ("01-01", "02-28", "03-01", "12-31"):
        starts = [f"{2026 - years}-{month_and_day}" for years in range(1, 41)]
        day = f"2026-{month_and_day}"
        before = str(date.fromisoformat(day) - timedelta(days=1))
        assert years_until(starts, day).tolist() == [*range(1, 41)]
        shortly = years_until(starts, before) - pd.Series(range(1, 41))
        assert shortly.between(-0.003, 0, inclusive="left").all()


def position(
    company: str, start: str | None, end: str | None = None, title: str = "x"
) -> dict[str, Any]:
    """Make a position."""
    return {"title": title, "company_name": company, "start_date": start, "end_date": end}


CASES = {
    "a promotion": (
        [position("A", "2022-01-01"), position("A", "2020-01-01", "2021-12-31", "first")],
        ("2022-01-01", "first", "A", False),
    ),
    "an employer that is written in another way": (
        [position("Á GmbH", "2022-01-01"), position(" A\u0301 GMBH", "2020-01-01", "2021-12-31")],
        ("2022-01-01", "x", " A\u0301 GMBH", False),
    ),
    "a new employer": (
        [position("A", "2022-01-01"), position("B", "2020-01-01", "2021-12-31", "first")],
        ("2022-01-01", "first", "B", True),
    ),
    "positions beside each other": (
        [position("A", "2022-01-01"), position("B", "2021-01-01", "2023-01-01", "beside")],
        ("2022-01-01", "beside", "B", True),
    ),
    "an end that is missing": (
        [position("A", "2022-01-01"), position("B", "2020-01-01", None, "first")],
        ("2022-01-01", "first", "B", True),
    ),
    "begun on the same day": (
        [position("A", "2022-01-01"), position("B", "2022-01-01")],
        ("2022-01-01", None, None, None),
    ),
    "not begun yet": (
        [position("A", "2025-01-01"), position("B", "2020-01-01", "2024-12-31")],
        ("2020-01-01", None, None, None),
    ),
    "ended": ([position("A", "2020-01-01", "2021-12-31")], (None, None, None, None)),
    "ends today": ([position("A", "2020-01-01", DAY)], ("2020-01-01", None, None, None)),
    "none at all": ([], ("2019-05-05", None, None, None)),
    "a start that is missing": (
        [position("A", None)],
        ("2019-05-05", None, None, None),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_tenure_in_cases_that_occur(case: str) -> None:
    """Promotions, overlaps, gaps and missing dates are read as a person would."""
    positions, expected = CASES[case]
    person = {"id": "1", "experiences": positions, "current_position_start_date": "2019-05-05"}
    (row,) = frame_of([person]).outreach.tenure(as_of=DAY).astype(object).itertuples(index=False)
    start = None if pd.isna(row.start_date) else str(row.start_date.date())
    others = [None if pd.isna(value) else value for value in row[2:]]
    assert (start, *others) == expected


def test_tenure_keeps_the_index_and_the_dtypes(people: pd.DataFrame) -> None:
    """The table has the frame's index, and the same columns and dtypes for nobody."""
    some = people.sample(20, random_state=1).set_index("name")
    table = some.outreach.tenure()
    assert table.index.equals(some.index)
    assert list(table) == [field.name for field in TENURE]
    dtypes = ["datetime64[us]", "Float64", "str", "str", "boolean"]
    assert table.dtypes.astype(str).tolist() == dtypes
    assert some.head(0).outreach.tenure().dtypes.equals(table.dtypes)
    assert (
        table["start_date"]
        .reset_index(drop=True)
        .equals(some["current_position_start_date"].rename("start_date").reset_index(drop=True))
    )


def test_by_default_tenure_is_as_of_today() -> None:
    """With no day given, years are counted to today."""
    person = {"id": "1", "current_position_start_date": str(date.today() - timedelta(days=731))}
    assert frame_of([person]).outreach.tenure()["years"].round(1).tolist() == [2.0]


def test_a_frame_or_day_that_does_not_fit_is_told(people: pd.DataFrame) -> None:
    """A frame with no positions, and a day that cannot be read, are errors that say so."""
    with pytest.raises(InvalidInputError, match="'experiences' is missing"):
        people.drop(columns="experiences").outreach.tenure()
    with pytest.raises(InvalidInputError, match="as_of takes a day"):
        people.outreach.tenure(as_of="last month")


def test_a_start_with_a_zone_is_its_day_in_utc() -> None:
    """A column of times with a zone is read like one of days."""
    frame = frame_of([{"id": "1", "current_position_start_date": "2020-01-01"}])
    zoned = frame.assign(current_position_start_date=pd.Timestamp("2020-01-01", tz="UTC"))
    pd.testing.assert_frame_equal(zoned.outreach.tenure(DAY), frame.outreach.tenure(DAY))


def test_dates_in_place_of_text_are_told() -> None:
    """Positions made by hand hold text, as those of the service; dates are an error in words."""
    positions = [{"title": "VP", "start_date": date(2020, 1, 1)}]
    frame = pd.DataFrame({"experiences": [positions], "current_position_start_date": [None]})
    with pytest.raises(InvalidInputError, match=r"datetime.date\(2020, 1, 1\)"):
        frame.outreach.tenure(DAY)
