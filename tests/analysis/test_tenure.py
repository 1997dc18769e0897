"""Tenure: time in the current position equals that of reading positions one by one."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.analysis.tenure import TENURE
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from tests.examples import share_of_examples
from tests.reading.pages import frame_of

DAY = "2024-06-30"
DATES = (
    st.none()
    | st.dates(date(2023, 12, 28), date(2024, 7, 3)).map(str)
    | st.sampled_from(["2024-01", "2024-06", "Present", "04.01.2024"])
)
URLS = [
    "https://profnet.example/company/acme",
    "profnet.example/company/acme/",
    "https://x.example/b",
]
POSITIONS = st.none() | st.fixed_dictionaries(
    {
        "title": st.sampled_from(["VP", "Director", None]),
        "company_name": st.sampled_from(["Acme", " acme, Inc.", "Brightforge", "", None]),
        "company_profnet_url": st.sampled_from([*URLS, None]),
        "start_date": DATES,
        "end_date": DATES,
    }
)
ENDS = ("start_date", "end_date")
EMPTY = {"title": None, "company_name": None, "company_profnet_url": None} | dict.fromkeys(ENDS)
ENDED = EMPTY | {"title": "VP", "company_name": "Acme", "end_date": "2023-12-28"}
# The current position has only a company, and a start or end month.
MONTHS = [
    {"id": end, "current_position_start_date": None, "company": {"name": "Acme"}}
    | {"experiences": [EMPTY | {"company_name": "Acme", end: month}, ENDED]}
    for end, month in zip(ENDS, ("2024-01", "2024-06"), strict=True)
]
PEOPLE = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.just("1"),
            "current_position_start_date": DATES,
            "company": st.none()
            | st.fixed_dictionaries(
                {
                    "name": st.sampled_from(["ACME GmbH", "Brightforge", None]),
                    "profnet_url": st.sampled_from([*URLS, None]),
                }
            ),
            "experiences": st.none() | st.lists(POSITIONS, max_size=4),
        }
    ),
    max_size=4,
)


def day_of(text: str | None) -> str | None:
    """Return the day of a date."""
    text = f"{text}-01" if text and re.fullmatch(r"\d{4}-\d{2}", text) else text
    return text if text and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) else None


def company_of(one: dict[str, Any] | None, prefix: str = "") -> tuple[Any, Any]:
    """Return the keys of a company's URL and name."""
    url, name = ((one or {}).get(f"{prefix}{key}") for key in ("profnet_url", "name"))
    words = re.sub(r"[^\w\s]", "", name or "").lower().split()
    key = " ".join(word for word in words if word not in ("inc", "gmbh"))
    return URLS.index(url) // 2 if url else None, key or None


def urls_of_names(people: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the URL of each name that occurs with only one URL."""
    urls: dict[str, set[Any]] = {}
    for person in people:
        held = [company_of(one, "company_") for one in person["experiences"] or ()]
        for url, name in [company_of(person["company"]), *held]:
            if url is not None and name:
                urls.setdefault(name, set()).add(url)
    return {name: found.pop() for name, found in urls.items() if len(found) == 1}


def brute_force(person: dict[str, Any], day: str, known: dict[str, Any]) -> tuple[Any, ...]:
    """Apply the definitions to one person's positions, one by one."""
    held = [
        one | {"start": day_of(one["start_date"]), "end": day_of(one["end_date"])}
        for one in person["experiences"] or ()
        if one
    ]
    stated = day_of(person["current_position_start_date"])
    own = company_of(person["company"])
    current = None
    for one in held:
        is_open = not one["end_date"] or (one["end"] and one["end"] > day)
        if not is_open or (one["start"] and one["start"] > day):
            continue
        if moved(company_of(one, "company_"), own, known) is not False:
            continue

        def rank(position: dict[str, Any]) -> tuple[bool, str]:
            return bool(stated and position["start"] == stated), position["start"] or ""

        if current is None or rank(one) > rank(current):
            current = one
    start = current["start"] if current else None
    start = start or (stated if stated and stated <= day else None)
    ended = [one for one in held if start and one["end"] and one["end"] <= start]
    if not ended:
        return start, None, None, None
    previous = max(ended, key=lambda one: (one["end"], one["start"] or ""))
    changed = moved(own, company_of(previous, "company_"), known)
    return start, previous["title"], previous["company_name"] or None, changed


def moved(ours: tuple[Any, Any], theirs: tuple[Any, Any], known: dict[str, Any]) -> bool | None:
    """Return whether two employers differ."""
    one, other = (known.get(name) if url is None else url for url, name in (ours, theirs))
    if one is not None and other is not None:
        return bool(one != other)
    return ours[1] != theirs[1] if ours[1] and theirs[1] else None


def position(
    company: str, start: str | None, end: str | None = None, title: str = "x"
) -> dict[str, Any]:
    """Make a position."""
    return {"title": title, "company_name": company, "start_date": start, "end_date": end}


ADVISER = position("Bolt", "2015-01-01", title="Adviser")
# Promotions, side positions, gaps and missing dates at a company A.
CAREERS = [
    [position("A", "2022-01-01"), position("A", "2020-01-01", "2021-12-31", "first")],
    [position("A", "2022-01-01"), position("B", "2020-01-01", "2021-12-31", "first")],
    [position("A", "2022-01-01"), position("B", "2020-01-01", "2022-01-01", "first")],
    [position("A", "2022-01-01"), position("B", "2021-01-01", "2023-01-01", "beside")],
    [position("A", "2022-01-01"), ADVISER],
    [ADVISER, position("A", "2010-01-01", "2019-01-01", "CFO")],
    [
        position("A", "2022-01-01"),
        position("B", "2019-01-01", "2019-12-31", "short"),
        position("C", "2010-01-01", "2021-12-31", "long"),
        position("D", "2021-01-01", "2021-06-30", "between"),
    ],
    [position("A", "2021-01-01"), position("A", "2019-05-05")],
    [position("A", "2018-01-01"), position("A", "2021-01-01")],
    [position("A", "2025-01-01")],
    [position("A", "2020-01-01", DAY)],
    [position("A", "2020-01-01", "2024-07-01")],
    [position("A", "2020-01-01", "Present"), position("A", "2018-01-01")],
    [position("A", None), position("B", "2018-01-01", "2019-05-05", "first")],
    [],
]
PERSON = {"id": "1", "current_position_start_date": "2019-05-05", "company": {"name": "A"}}


@share_of_examples(1)
@example(MONTHS, "2024-01-02", "numpy_nullable")
@example([PERSON | {"experiences": held} for held in CAREERS], DAY, "numpy_nullable")
@given(PEOPLE, st.sampled_from([DAY, "2024-01-02"]), st.sampled_from(["numpy_nullable", "pyarrow"]))
def test_tenure_equals_a_brute_force(people: list[dict[str, Any]], day: str, backend: Any) -> None:
    """Start, previous position and change of employer equal those of reading row by row."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = frame_of(people, backend).outreach.tenure(as_of=day)
    known = urls_of_names(people)
    expected = [brute_force(person, day, known) for person in people]
    dates = [one[key] for p in people for one in p["experiences"] or () if one for key in ENDS]
    dates += [person["current_position_start_date"] for person in people]
    unknown = sum(bool(text) and not day_of(text) for text in dates)
    counts = [int(n) for one in caught for n in re.findall(r"(\d+) in ", str(one.message))]
    assert sum(counts) == unknown
    assert len(caught) == bool(unknown)
    starts = table["start_date"].dt.strftime("%Y-%m-%d")
    found = table.assign(start_date=starts).drop(columns="years").astype(object)
    assert [*map(tuple, found.where(found.notna(), None).to_numpy().tolist())] == expected
    years = [
        None if pd.isna(start) else birthdays(start.date(), day) for start in table["start_date"]
    ]
    assert [None if pd.isna(value) else int(value) for value in table["years"]] == years


def birthdays(start: date, day: str) -> int:
    """Count a date's anniversaries year by year; that of 29 February may be 1 March."""
    today = date.fromisoformat(day)
    return sum(
        (year, start.month, start.day) <= (today.year, today.month, today.day)
        for year in range(start.year + 1, today.year + 1)
    )


def years_until(starts: list[str], day: str) -> pd.Series:
    """Return the tenure in years of people with one position each."""
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
    """Complete years equal the number of anniversaries; an earlier start never has fewer."""
    begun = sorted((start for start in starts if str(start) <= day), reverse=True)
    years = years_until([str(start) for start in begun], day)
    assert years.astype(int).tolist() == [birthdays(start, day) for start in begun]
    assert years.is_monotonic_increasing


def test_names_with_one_profile_url_are_one_employer() -> None:
    """A name without a URL is the company whose URL other rows give with both names."""
    acme, stated = {"company_profnet_url": URLS[0]}, {"current_position_start_date": "2022-01-01"}
    former = position("Acme Labs", "2020-01-01", "2021-12-31")
    people: list[dict[str, Any]] = [
        stated | {"id": "1", "company": {"name": "Acme"}, "experiences": [former]},
        {"id": "2", "experiences": [former | acme]},
        {"id": "3", "company": {"name": "ACME", "profnet_url": URLS[1]}},
    ]
    assert frame_of(people).outreach.tenure(as_of=DAY)["changed_employer"].tolist()[0] is False
    assert frame_of(people[:2]).outreach.tenure(as_of=DAY)["changed_employer"][0]
    # A name with two URLs may be either company.
    people.append({"id": "4", "company": {"name": "Acme", "profnet_url": URLS[2]}})
    assert frame_of(people).outreach.tenure(as_of=DAY)["changed_employer"][0]


def test_tenure_keeps_the_index_and_the_dtypes(people: pd.DataFrame) -> None:
    """The result has the frame's index, and the same columns and dtypes without rows."""
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
    """Without a date, years are counted to today."""
    person = {"id": "1", "current_position_start_date": str(date.today() - timedelta(days=731))}
    assert frame_of([person]).outreach.tenure()["years"].round(1).tolist() == [2.0]


def test_an_invalid_frame_or_day_is_an_error(people: pd.DataFrame) -> None:
    """A frame without positions and an unreadable date are errors."""
    with pytest.raises(InvalidInputError, match="'experiences' is missing"):
        people.drop(columns="experiences").outreach.tenure()
    with pytest.raises(InvalidInputError, match=r"as_of=.* is not a day"):
        people.outreach.tenure(as_of="last month")


def test_a_start_with_a_time_zone_is_its_day_in_utc() -> None:
    """A column of zoned times is read like a column of dates."""
    frame = frame_of([{"id": "1", "current_position_start_date": "2020-01-01"}])
    zoned = frame.assign(current_position_start_date=pd.Timestamp("2020-01-01", tz="UTC"))
    pd.testing.assert_frame_equal(zoned.outreach.tenure(DAY), frame.outreach.tenure(DAY))


def test_dates_instead_of_text_are_an_error() -> None:
    """Dates of positions must be text, as in the service's responses; date objects are an error."""
    positions = [{"title": "VP", "start_date": date(2020, 1, 1)}]
    frame = pd.DataFrame({"experiences": [positions], "current_position_start_date": [None]})
    with pytest.raises(InvalidInputError, match=r"datetime.date\(2020, 1, 1\)"):
        frame.outreach.tenure(DAY)


OTHER_DAYS: list[Any] = [
    "04.01.2027", "13.01.2027", "1/4/27", "01-04-2027", "2027/01/04", "2027-1-4", "20270104",
    "../2027-01-04", "2027", "2027-01", "2027-W01-1", "2027-02-30", "2027-01-04 09:30",
    "2027-01-04T09:30Z", "now", "today", "tomorrow", "12:30", "", " 2027-01-04", "\uff12027-01-04",
    2027, 1.5, True, pd.NaT, pd.NA, np.datetime64("2027"), b"2027-01-04", ("2027-01-04",),
]  # fmt: skip
MAILBOXES = pd.DataFrame(
    {"id": ["m"], "email": ["a@b.example"], "status": ["active"], "daily_email_limit": [5]}
)
NOBODY = pd.DataFrame({"experiences": [None], "current_position_start_date": ["2020-01-04"]})
NO_ID = "00000000-0000-0000-0000-000000000000"


def test_only_iso_days_and_date_objects_are_days(tmp_path: Path, client: Client) -> None:
    """Each date argument rejects other text and values, and the error shows the right form."""
    calls: dict[str, Callable[[Any], Any]] = {
        "start": lambda day: of.sending_capacity(MAILBOXES, 1, start=day, freq="D"),
        "as_of": lambda day: NOBODY.outreach.tenure(as_of=day),
        "date": lambda day: of.snapshot_people(tmp_path, date=day, company_ids=[NO_ID]),
    }
    for name, call in calls.items():
        for value in OTHER_DAYS:
            with pytest.raises(InvalidInputError, match=f"^{name}=.* is not a day.*'2026-03-02'"):
                call(value)
    assert not [*tmp_path.iterdir()]
    moment = datetime(2027, 1, 4, 23, 30, tzinfo=timezone(timedelta(hours=-9)))
    same = ["2027-01-04", date(2027, 1, 4), np.datetime64("2027-01-04"), moment]
    for day in (*same, pd.Timestamp(moment)):
        assert calls["start"](day)["date"].tolist() == [pd.Timestamp("2027-01-04")]
        assert calls["as_of"](day)["years"].round(3).tolist() == [7.0]
        assert calls["date"](day).name == "snapshot=2027-01-04"


STATED = {
    "2018-01-04": "2018-01-04",
    "2018-01": "2018-01-01",
    "2018-01-04T23:30-02:00": "2018-01-05",
    "2018-01-04 12:00:00.5": "2018-01-04",
    pd.Timestamp("2018-01-04 09:00"): "2018-01-04",
    date(2018, 1, 4): "2018-01-04",
    **dict.fromkeys(["04.01.2018", "1/4/18", "2018", "Jan 2018", "20180104", "2018-02-30", 2018]),
    **dict.fromkeys(["", " ", None]),
}


def test_dates_that_are_not_iso_are_unknown_and_counted() -> None:
    """Ambiguous dates are not guessed; one warning has their count, row, column and text."""
    frame = pd.DataFrame({"current_position_start_date": [*STATED], "experiences": None})
    with pytest.warns(OutreachWarning) as caught:
        table = frame.outreach.tenure(as_of="2026-01-01")
    found = table["start_date"].dt.strftime("%Y-%m-%d").astype(object)
    assert found.where(found.notna(), None).tolist() == [*STATED.values()]
    (message,) = (str(one.message) for one in caught)
    words = "7 in current_position_start_date (first: row 6, '04.01.2018')"
    assert message == f"Dates other than YYYY-MM-DD were treated as unknown: {words}."
    lists = NOBODY.assign(current_position_start_date=[[1]])
    with pytest.warns(OutreachWarning, match=r"1 in current_.* row 0, \[1\]"):
        assert lists.outreach.tenure()["start_date"].isna().all()
    numbers = frame.assign(current_position_start_date=2018)
    with pytest.warns(OutreachWarning, match="16 in current_position_start_date"):
        assert numbers.outreach.tenure()["start_date"].isna().all()
