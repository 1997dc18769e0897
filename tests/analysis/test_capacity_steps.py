"""Sending capacity for sequences with several steps, changing limits, and holidays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.cli import main
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from tests.examples import share_of_examples

MONDAY = "2026-03-02"
DAYS = pd.date_range(MONDAY, periods=2_000)
# A mailbox's name in the simulation, and its limit on each day.
Limits = dict[str, list[int]]


def mailboxes(*limits: int | None, status: str = "active") -> pd.DataFrame:
    """Make mailboxes m0, m1, ... with a daily limit each."""
    ids = pd.Series([f"m{number}" for number in range(len(limits))], dtype="str")
    limit = pd.array(limits, dtype="Int64")
    return pd.DataFrame(
        {"id": ids, "email": ids + "@x.example", "daily_email_limit": limit, "status": status}
    )


def shares(room: dict[str, int], leads: int) -> dict[str, int]:
    """Divide leads in proportion to room, largest remainders first."""
    total = sum(room.values())
    if total <= leads:
        return room
    given = {name: leads * free // total for name, free in room.items()}
    rest = sorted(room, key=lambda name: -(leads * room[name] % total))
    for name in rest[: leads - sum(given.values())]:
        given[name] += 1
    return given


def sent_by(limit: list[int], leads: float, email_days: list[int], end: int) -> list[list[int]]:
    """Send one mailbox's emails lead by lead; return each lead's sending days before `end`."""
    started: list[list[int]] = []
    for day in range(end):
        follow_ups = [
            lead
            for lead in started
            if len(lead) < len(email_days)
            and day - lead[-1] >= email_days[len(lead)] - email_days[len(lead) - 1]
        ][: limit[day]]
        for lead in follow_ups:
            lead.append(day)
        room = min(limit[day] - len(follow_ups), leads - len(started))
        started += [[day] for _ in range(int(room))]
    return started


def finished_by(limit: list[int], email_days: list[int], end: int) -> int:
    """Count the leads that a mailbox can finish in so many days."""
    leads = sent_by(limit, math.inf, email_days, end)
    return sum(len(lead) == len(email_days) for lead in leads)


def leads_of(limits: Limits, leads: int, email_days: list[int], spread: str) -> dict[str, int]:
    """Return each mailbox's number of leads."""
    given = dict.fromkeys(limits, 0)
    if spread == "evenly":
        turn = sorted(limits, key=lambda name: -limits[name][0])
        for lead in range(leads):
            given[turn[lead % len(turn)]] += 1
        return given
    for end in range(len(DAYS)):
        can = {name: finished_by(limit, email_days, end + 1) for name, limit in limits.items()}
        if sum(can.values()) >= leads:
            last = shares(
                {name: can[name] - given[name] for name in can}, leads - sum(given.values())
            )
            return {name: given[name] + last[name] for name in can}
        given = can
    raise AssertionError("The simulation does not end.")


def simulated(
    limits: Limits, leads: int, email_days: list[int], spread: str
) -> Iterator[tuple[int, str, int, int, int]]:
    """Send lead by lead; return day, mailbox, emails, and leads finished and started so far."""
    given = leads_of(limits, leads, email_days, spread)
    sent = {
        name: sent_by(limit, given[name], email_days, min(len(limit), 300))
        for name, limit in limits.items()
    }
    everyone = [lead for started in sent.values() for lead in started]
    assert len(everyone) == leads
    for day in sorted({day for lead in everyone for day in lead}):
        finished = sum(len(lead) == len(email_days) and lead[-1] <= day for lead in everyone)
        begun = sum(lead[0] <= day for lead in everyone)
        for name, started in sent.items():
            if number := sum(day in lead for lead in started):
                yield day, name, number, finished, begun


def limits_of_days(base: list[int], ramps: list[dict[int, int]], days: list[int]) -> Limits:
    """Return each mailbox's limit on these days."""
    found: Limits = {}
    for number, (limit, ramp) in enumerate(zip(base, ramps, strict=True)):
        found[f"m{number}"] = [
            ramp[max(begun)] if (begun := [change for change in ramp if change <= day]) else limit
            for day in days
        ]
    return found


STEPS = st.lists(st.integers(1, 6), max_size=3).map(lambda gaps: [0, *np.cumsum(gaps).tolist()])
# The last limit is positive, so that every email is sent eventually.
RAMP = st.builds(
    lambda steps, last: steps | {40: last},
    st.dictionaries(st.integers(0, 30), st.integers(0, 9), max_size=4),
    st.integers(1, 9),
)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.just({}) | RAMP), min_size=1, max_size=4),
    st.integers(0, 50),
    STEPS,
    st.sets(st.integers(0, 30), max_size=8),
    st.sampled_from(["by_limit", "evenly"]),
)
@example([(5, {}), (3, {0: 0, 4: 2, 9: 7})], 40, [0, 3, 7], {1, 2, 8}, "by_limit")
@example([(9, {}), (9, {3: 0, 40: 1})], 30, [0, 1, 2], set(), "evenly")
@example([(2, {})], 4, [0, 1, 3], {2, 3}, "by_limit")
def test_the_plan_equals_a_simulation_of_each_lead(
    boxes: list[tuple[int, dict[int, int]]],
    leads: int,
    email_days: list[int],
    holidays: set[int],
    spread: Any,
) -> None:
    """Rows and counts equal those of a lead-by-lead simulation, with ramps and holidays."""
    base, ramps = [limit for limit, _ in boxes], [ramp for _, ramp in boxes]
    days = [day for day in range(len(DAYS)) if day not in holidays]
    plan = of.sending_capacity(
        mailboxes(*base),
        leads,
        start=MONDAY,
        freq="D",
        spread=spread,
        email_days=email_days,
        ramp={
            f"m{number}": {DAYS[day]: limit for day, limit in ramp.items()}
            for number, ramp in enumerate(ramps)
        },
        holidays={DAYS[day].date() for day in holidays},
    )
    rows = simulated(limits_of_days(base, ramps, [*days, *days[:40]]), leads, email_days, spread)
    columns = ["date", "mailbox_id", "emails", "leads_finished", "leads_started"]
    found = plan[columns].assign(date=plan["date"].dt.strftime("%Y-%m-%d"))
    expected = [(f"{DAYS[days[day]]:%Y-%m-%d}", *others) for day, *others in rows]
    assert list(found.itertuples(index=False, name=None)) == expected


@share_of_examples(0.5)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=3), st.integers(1, 14), STEPS)
def test_no_distribution_ends_earlier(limits: list[int], leads: int, email_days: list[int]) -> None:
    """By limit, the last day is the earliest of all distributions of leads to mailboxes."""
    plan = of.sending_capacity(
        mailboxes(*limits), leads, start=MONDAY, freq="D", email_days=email_days
    )

    def last_day(limit: int, own: int) -> int:
        sent = sent_by([limit] * 99, own, email_days, 99)
        return max((lead[-1] for lead in sent), default=0)

    ends = [[last_day(limit, own) for own in range(leads + 1)] for limit in limits]
    best = min(
        max(of_box[own] for of_box, own in zip(ends, split, strict=True))
        for split in product(range(leads + 1), repeat=len(limits))
        if sum(split) == leads
    )
    assert plan.attrs["last_day"] == f"{DAYS[best]:%Y-%m-%d}"


@pytest.mark.parametrize("email_days", [None, [0, 3, 7]])
def test_a_number_of_mailboxes_is_a_frame_of_such_mailboxes(email_days: Any) -> None:
    """Twelve mailboxes of 40 a day send like a frame of them, and attrs has the last day."""
    arguments: dict[str, Any] = {"start": MONDAY, "email_days": email_days}
    plan = of.sending_capacity(mailboxes=12, leads=5_000, daily_email_limit=40, **arguments)
    same = of.sending_capacity(mailboxes(*[40] * 12), 5_000, **arguments)
    counts = ["date", "emails", "leads_finished", "leads_started"]
    pd.testing.assert_frame_equal(plan[counts], same[counts])
    assert plan.attrs["last_day"] == f"{plan['date'].max():%Y-%m-%d}"
    assert plan["mailbox_id"].nunique() == 12
    assert of.sending_capacity(mailboxes=1, leads=0, daily_email_limit=1).attrs["last_day"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"mailboxes": 12},
        {"mailboxes": mailboxes(5), "daily_email_limit": 40},
        {"mailboxes": 0, "daily_email_limit": 40},
        {"mailboxes": 12, "daily_email_limit": 0},
        {"mailboxes": 10**9, "daily_email_limit": 40},
    ],
)
def test_a_number_of_mailboxes_needs_a_limit(arguments: dict[str, Any]) -> None:
    """A number of mailboxes without a limit, and a limit without a number, are errors."""
    with pytest.raises(InvalidInputError, match=r"mailboxes.*daily_email_limit"):
        of.sending_capacity(leads=10, **arguments)
    with pytest.raises(InvalidInputError, match="by name"):
        of.sending_capacity(12, 5_000, daily_email_limit=40)


def test_email_days_count_the_sending_days_of_any_frequency() -> None:
    """With a sending day a week, the third email is seven weeks after the first."""
    plan = of.sending_capacity(
        mailboxes(5), 5, email_days=[0, 3, 7], freq="W-WED", start="2026-03-02"
    )
    days = pd.to_datetime(["2026-03-04", "2026-03-25", "2026-04-22"])
    assert plan["date"].tolist() == days.tolist()


@share_of_examples(0.4)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.integers(0, 60),
    st.integers(1, 4),
    st.sampled_from(["by_limit", "evenly"]),
)
def test_a_ramp_of_the_same_limits_changes_nothing(
    limits: list[int], leads: int, each: int, spread: Any
) -> None:
    """A ramp with the same limit every day gives the same plan as a constant limit."""
    frame = mailboxes(*limits)
    plan = of.sending_capacity(frame, leads, emails_per_lead=each, start=MONDAY, spread=spread)
    ramp = {f"m{number}": {"2020-01-01": limit} for number, limit in enumerate(limits)}
    same = of.sending_capacity(
        frame, leads, emails_per_lead=each, start=MONDAY, spread=spread, ramp=ramp
    )
    pd.testing.assert_frame_equal(same, plan)
    assert plan["leads_started"].tolist() == [
        -(-emails // each) for emails in plan.groupby("date")["emails"].sum().cumsum()[plan["date"]]
    ]
    one = of.sending_capacity(frame, leads, start=MONDAY, spread=spread, email_days=[0])
    pd.testing.assert_frame_equal(
        one, of.sending_capacity(frame, leads, start=MONDAY, spread=spread)
    )
    assert one["leads_started"].equals(one["leads_finished"])


def by_day(plan: pd.DataFrame) -> dict[str, tuple[int, int, int]]:
    """Return each day's emails, and the leads started and reached by its end."""
    days = plan.groupby(plan["date"].dt.strftime("%m-%d"))
    found = days.agg({"emails": "sum", "leads_started": "max", "leads_finished": "max"})
    return {str(day): tuple(map(int, row)) for day, *row in found.itertuples(name=None)}


def test_mailboxes_warm_up() -> None:
    """A ramp replaces every limit from its dates on, whether or not they are sending days."""
    ramp = {
        "2026-03-04": 1,
        date(2026, 3, 7): 3,
        pd.Timestamp("2026-03-10 09:00"): 0,
        "2026-03-12": 4,
    }
    plan = of.sending_capacity(mailboxes(2, 1), 20, start=MONDAY, ramp=ramp)
    assert plan.groupby("date")["emails"].sum().tolist() == [3, 3, 2, 2, 2, 6, 2]
    assert plan["date"].max() == pd.Timestamp("2026-03-12")
    one = of.sending_capacity(mailboxes(2, 1), 9, start=MONDAY, ramp={"m1": {"2026-03-03": 4}})
    assert one.groupby("date")["emails"].sum().tolist() == [3, 6]
    # Limits with an earlier date apply from the first day.
    late = of.sending_capacity(mailboxes(2, 1), 20, start="2026-03-11", ramp=ramp)
    assert by_day(late) == {"03-12": (8, 8, 8), "03-13": (8, 16, 16), "03-16": (4, 20, 20)}


def test_a_mailbox_with_only_a_ramp_sends() -> None:
    """A mailbox without a limit sends from the ramp's first date; inactive ones do not send."""
    frame = mailboxes(None, 0, 5).assign(status=["active", "active", "inactive"])
    below = of.sending_capacity(mailboxes(-4), 9, start=MONDAY, ramp={"2026-03-03": 4})
    assert below["emails"].tolist() == [4, 4, 1]
    with pytest.warns(OutreachWarning) as caught:
        plan = of.sending_capacity(frame, 12, start=MONDAY, ramp={"m0": {"2026-03-03": 4}})
    assert plan["mailbox_id"].unique().tolist() == ["m0"]
    assert plan["date"].min() == pd.Timestamp("2026-03-03")
    (message,) = (str(warning.message) for warning in caught)
    assert message == (
        "2 mailboxes cannot send: m1@x.example (id m1, status active, limit 0), m2@x.example (id "
        "m2, status inactive, limit 5)."
    )


CHRISTMAS = date(2026, 12, 25)


class Calendar:
    """A calendar that accepts any year but only dates, like the `holidays` package."""

    def __contains__(self, day: object) -> bool:
        """Return whether a date is Christmas Day."""
        assert type(day) is date
        return (day.month, day.day) == (12, 25)


@pytest.mark.parametrize(
    "holidays",
    [
        Calendar(),
        [CHRISTMAS],
        {CHRISTMAS},
        {pd.Timestamp(CHRISTMAS)},
        {CHRISTMAS: "Christmas"},
        {"2026-12-25": "Christmas"},
        ("2026-12-25",),
        [datetime(2026, 12, 25, 12)],
        np.array(["2026-12-25"], dtype="datetime64[ns]"),
        pd.Series(["2026-12-25"]),
        pd.Series([CHRISTMAS], index=[7]),
        pd.DatetimeIndex([CHRISTMAS]),
        pa.array([CHRISTMAS]),
        (day for day in [CHRISTMAS]),
    ],
    ids=lambda holidays: type(holidays).__name__,
)
def test_nothing_is_sent_on_holidays(holidays: Any) -> None:
    """Any collection of dates or calendar closes the same days, and steps skip them."""
    plan = of.sending_capacity(
        mailboxes(5), 5, email_days=[0, 2], start="2026-12-24", holidays=holidays
    )
    assert by_day(plan) == {"12-24": (5, 5, 0), "12-29": (5, 5, 5)}


def test_a_plan_of_many_leads_over_years_is_fast() -> None:
    """Steps are computed per group of leads: ten times the leads and limits take no longer."""
    few = of.sending_capacity(mailboxes(40, 7), 9_400, email_days=[0, 3, 7, 14], start=MONDAY)
    many = of.sending_capacity(
        mailboxes(40_000, 7_000), 9_400_000, email_days=[0, 3, 7, 14], start=MONDAY
    )
    counts = ["emails", "leads_finished", "leads_started"]
    pd.testing.assert_frame_equal(few[counts] * 1_000, many[counts])
    assert few["date"].equals(many["date"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            {"email_days": [0, 3], "emails_per_lead": 2},
            "emails_per_lead=2 conflicts with email_days=.0, 3.",
        ),
        *(({"email_days": days}, "ascending list from 0") for days in ([], [1, 2], [0, 3, 3])),
        *(({"email_days": days}, "whole number") for days in ([0, 1.5], [0, True], ["0"], "037")),
        *(({"email_days": days}, "takes a list") for days in (3, {0: 1}, pd.DataFrame([0]))),
        ({"email_days": [0, 40_000]}, "more than 36,525 days"),
        ({"email_days": [0, 1], "leads": 10**12}, "more than 36,525 days"),
        ({"ramp": {MONDAY: 0}}, "more than 36,525 days at 5 a day or the limits in ramp"),
        ({"ramp": 5}, "ramp=5 is not a dict"),
        ({"ramp": {"m1": {MONDAY: 5}}}, "'m1', which is not the id of a mailbox in the frame"),
        ({"ramp": {"m0@x.example": {MONDAY: 5}}}, "Pass ids from the column id"),
        ({"ramp": {"m0": {MONDAY: 5}, MONDAY: 5}}, f"'{MONDAY}', which is not the id"),
        ({"ramp": {"m0": 5, "m1": {MONDAY: 5}}}, "'m1', which is not the id"),
        ({"ramp": {"m0": 5}}, "ramp='m0' is not a day"),
        ({"ramp": {None: 5}}, "ramp=NaT is not a day"),
        ({"ramp": {"m0": {"2.3.2026": 5}}}, r"ramp\['m0'\]='2.3.2026' is not a day"),
        ({"ramp": {MONDAY: -1}}, "-1} has a negative limit"),
        ({"ramp": {MONDAY: 1, date(2026, 3, 2): 2}}, "or a repeated date"),
        *(({"ramp": {MONDAY: limit}}, "takes a whole number") for limit in (None, 1.5, "9", True)),
        *(({"holidays": days}, "does not support `date in holidays`") for days in ("DE", 5)),
        *(({"holidays": [day]}, "is not a day") for day in ("25.12.2026", None, 5, pd.NaT)),
        ({"holidays": pd.DataFrame({"date": [CHRISTMAS]})}, "a frame's column"),
        ({"holidays": pd.date_range(MONDAY, periods=60_000)}, "36,525 days.*or holidays"),
    ],
)
def test_invalid_steps_are_an_error(arguments: dict[str, Any], says: str) -> None:
    """Invalid or contradictory steps, limits and holidays are errors that say what to pass."""
    with pytest.raises(InvalidInputError, match=says):
        of.sending_capacity(mailboxes(5), **{"leads": 10, "start": MONDAY, **arguments})


@pytest.mark.usefixtures("environment")
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_the_command_line_plans_the_same(
    tmp_path: Path, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line gives the function's plan, and prints how many leads started."""
    line = "capacity 900 --email-days 0 3 --start 2026-03-02"
    out = tmp_path / "days.parquet"
    assert main([*line.split(), "--holidays", "2026-03-03", "--out", str(out)]) == 0
    expected = of.sending_capacity(
        of.mailboxes(client=client),
        900,
        email_days=[0, 3],
        holidays=["2026-03-03"],
        start=MONDAY,
    )
    pd.testing.assert_frame_equal(of.read_prospects(out), expected, check_dtype=False)
    capsys.readouterr()
    assert main(line.split()) == 0
    assert "leads_started" in capsys.readouterr().out
