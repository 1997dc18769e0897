"""Sending capacity equals a simulation of each lead, and warnings name unused capacity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.analysis.capacity import CAPACITY
from outreach_frames.cli import main
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning

MONDAY = "2026-03-02"
DAYS = pd.date_range(MONDAY, periods=2_000)
# A mailbox's name in the simulation, and its limit on each day.
Limits = dict[str, list[int]]


def mailboxes(*limits: int | None, status: str | list[str] = "active") -> pd.DataFrame:
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


def leads_of(limits: Limits, leads: int, email_days: list[int]) -> dict[str, int]:
    """Return each mailbox's number of leads."""
    given = dict.fromkeys(limits, 0)
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
    limits: Limits, leads: int, email_days: list[int]
) -> Iterator[tuple[int, str, int, int, int]]:
    """Send lead by lead; return day, mailbox, emails, and leads finished and started so far."""
    given = leads_of(limits, leads, email_days)
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
    st.integers(0, 40),
    STEPS,
    st.sets(st.integers(0, 30), max_size=8),
)
@example([(5, {}), (3, {0: 0, 4: 2, 9: 7})], 40, [0, 3, 7], {1, 2, 8})
@example([(2, {})], 4, [0, 1, 3], {2, 3})
def test_the_plan_equals_a_simulation_of_each_lead(
    boxes: list[tuple[int, dict[int, int]]], leads: int, steps: list[int], holidays: set[int]
) -> None:
    """Rows and counts equal those of a lead-by-lead simulation, with ramps and holidays."""
    base, ramps = [limit for limit, _ in boxes], [ramp for _, ramp in boxes]
    days = [day for day in range(len(DAYS)) if day not in holidays]
    plan = of.sending_capacity(
        mailboxes(*base),
        leads,
        email_days=steps,
        start=MONDAY,
        freq=pd.offsets.CDay(weekmask="1111111", holidays=[DAYS[day] for day in holidays]),
        ramp={
            f"m{number}": {DAYS[day]: limit for day, limit in ramp.items()}
            for number, ramp in enumerate(ramps)
        },
    )
    limits = limits_of_days(base, ramps, [*days, *days[:40]])
    rows = [(f"{DAYS[days[day]]:%Y-%m-%d}", *row) for day, *row in simulated(limits, leads, steps)]
    columns = ["date", "mailbox_id", "emails", "leads_finished", "leads_started"]
    found = plan[columns].assign(date=plan["date"].dt.strftime("%Y-%m-%d"))
    assert list(found.itertuples(index=False, name=None)) == rows


def test_two_columns_are_enough() -> None:
    """Without ids and statuses, addresses are the ids and all mailboxes are active."""
    whole = mailboxes(40, 3)
    plan = of.sending_capacity(whole[["email", "daily_email_limit"]], 500, start=MONDAY)
    expected = of.sending_capacity(whole.assign(id=whole["email"]), 500, start=MONDAY)
    pd.testing.assert_frame_equal(plan, expected)
    assert plan.attrs["last_day"] == f"{plan['date'].max():%Y-%m-%d}"


@pytest.mark.parametrize("address", ["m0@x.example", "M0@X.EXAMPLE", " m0@x.example "])
def test_an_address_counts_once(address: str) -> None:
    """Mailboxes with the same address, in any case, count once, with a warning."""
    frame = mailboxes(5, 3, 9)
    expected = of.sending_capacity(frame[:2], 40, start=MONDAY)
    frame.loc[2, "email"] = address
    with pytest.warns(OutreachWarning, match="1 mailbox has the address of another row") as caught:
        plan = of.sending_capacity(frame, 40, start=MONDAY)
    assert len(caught) == 1
    pd.testing.assert_frame_equal(plan, expected)


def test_repeated_rows_count_once() -> None:
    """Of an address's rows, the one that can send counts, else ids count; labels change nothing."""
    frame = mailboxes(9, 5, status=["inactive", "active"]).assign(email="m0@x.example")
    with pytest.warns(OutreachWarning, match="1 mailbox cannot send"):
        plan = of.sending_capacity(frame, 40, start=MONDAY)
    assert set(plan["mailbox_id"]) == {"m1"}
    frame = mailboxes(5, 3, 9)
    plan = of.sending_capacity(frame, 40, start=MONDAY)
    labelled = of.sending_capacity(frame.set_axis([0, 0, 1]), 40, start=MONDAY)
    pd.testing.assert_frame_equal(labelled, plan)
    missing = frame.assign(email=None)
    assert of.sending_capacity(missing, 40, start=MONDAY)["emails"].equals(plan["emails"])
    with pytest.warns(OutreachWarning, match="3 mailboxes have the address of another row"):
        twice = of.sending_capacity(pd.concat([missing, missing]), 40, start=MONDAY)
    assert twice["emails"].equals(plan["emails"])


def test_a_huge_limit_sends_no_more_than_all_leads() -> None:
    """Limits near the 64-bit maximum do not overflow."""
    plan = of.sending_capacity(mailboxes(2**62, 2**62, 2**62), 10, start=MONDAY)
    assert plan["emails"].sum() == plan["leads_finished"].iloc[-1] == 10
    assert len(plan["date"].unique()) == 1


@pytest.mark.parametrize("leads", [0, pd.DataFrame({"email": []})])
def test_no_leads_make_an_empty_plan_with_the_same_dtypes(leads: Any) -> None:
    """A plan for no leads has no rows, and the usual columns and dtypes."""
    empty = of.sending_capacity(mailboxes(5, 5, status=["active", "inactive"]), leads)
    full = of.sending_capacity(mailboxes(5), 7)
    assert empty.empty
    assert empty.dtypes.equals(full.dtypes)
    assert list(full) == [field.name for field in CAPACITY]
    dtypes = ["datetime64[us]", "str", "str", "Int64", "Int64", "Int64"]
    assert full.dtypes.astype(str).tolist() == dtypes


@pytest.mark.parametrize(
    ("freq", "start", "days"),
    [
        ("B", "2026-03-07", ["2026-03-09", "2026-03-10"]),
        ("MS", MONDAY, ["2026-04-01", "2026-05-01"]),
        ("D", pd.Timestamp("2026-03-07 15:00"), ["2026-03-07", "2026-03-08"]),
        ("W-WED", MONDAY, ["2026-03-04", "2026-03-11"]),
        (pd.offsets.CDay(holidays=[MONDAY, "2026-03-04"]), MONDAY, ["2026-03-03", "2026-03-05"]),
    ],
)
def test_days_are_those_of_the_frequency(freq: Any, start: Any, days: list[str]) -> None:
    """Emails go out on the dates of the pandas frequency, and `email_days` counts these dates."""
    for steps, leads in (([0], 20), ([0, 1], 10)):
        options: Any = {"start": start, "freq": freq, "email_days": steps}
        plan = of.sending_capacity(mailboxes(10), leads, **options)
        assert plan["date"].dt.strftime("%Y-%m-%d").tolist() == days


def test_the_default_start_is_the_next_sending_day() -> None:
    """Without a start, the first day is today, or the next day of the frequency."""
    before = pd.Timestamp.today().normalize()
    plan = of.sending_capacity(mailboxes(10), 1)
    assert plan["date"].iloc[0] in {
        pd.offsets.BDay().rollforward(before),
        pd.offsets.BDay().rollforward(pd.Timestamp.today().normalize()),
    }


def test_mailboxes_that_cannot_send_are_a_warning() -> None:
    """A warning names mailboxes that are inactive or have no limit."""
    statuses = ["active", "needs_reconnection", "inactive", "active"]
    frame = mailboxes(10, 30, 10, None, status=statuses)
    with pytest.warns(OutreachWarning) as caught:
        plan = of.sending_capacity(frame, 100, start=MONDAY)
    assert set(plan["mailbox_id"]) == {"m0"}
    (message,) = (str(warning.message) for warning in caught)
    assert message == (
        "3 mailboxes cannot send: m1@x.example (id m1, status needs_reconnection, limit 30), "
        "m2@x.example (id m2, status inactive, limit 10), m3@x.example (id m3, status active, "
        "limit none)."
    )


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
    days = late.groupby(late["date"].dt.strftime("%m-%d"))["emails"].sum()
    assert days.to_dict() == {"03-12": 8, "03-13": 8, "03-16": 4}


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


BOX = mailboxes(5)
NO_SENDER = mailboxes(5, 0, None, status=["inactive", "active", "active"])
HUGE = mailboxes(2**62, 2**62)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"mailboxes": NO_SENDER}, r"No mailbox can send: m0@x.example \(id m0, status inactive"),
        ({"mailboxes": mailboxes()}, "there are no mailboxes"),
        ({"mailboxes": BOX.drop(columns="email")}, "'email' is missing"),
        ({"mailboxes": 12}, "one with the columns email and daily_email_limit, not int"),
        *(
            ({"mailboxes": BOX.assign(daily_email_limit=limit)}, "not whole numbers")
            for limit in ("many", float("inf"), pd.Timestamp(MONDAY), True)
        ),
        ({"mailboxes": HUGE, "leads": 2**62}, "exceed the maximum"),
        ({"leads": -1}, "leads=-1"),
        ({"leads": "100"}, "leads takes a whole number"),
        ({"leads": 10**12}, "take more than 36,525 days"),
        *(({"freq": freq}, "is not a pandas frequency") for freq in ("weekly", None)),
        *(({"freq": freq}, "distinct days in order") for freq in ("h", "-1D")),
        *(
            ({"freq": pd.DateOffset(**offset)}, "distinct days in order")
            for offset in ({"days": 0}, {"month": 2, "day": 30})
        ),
        ({"start": "soon"}, "is not a day"),
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
    ],
)
def test_invalid_arguments_are_an_error(arguments: dict[str, Any], says: str) -> None:
    """Invalid or contradictory arguments are errors that say what to pass."""
    with pytest.raises(InvalidInputError, match=says):
        of.sending_capacity(**{"mailboxes": BOX, "leads": 10, "start": MONDAY, **arguments})


@pytest.mark.usefixtures("environment")
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_the_command_line_plans_the_same(
    tmp_path: Path, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line gives the function's plan, and prints how many leads started."""
    line = "capacity 900 --email-days 0 3 --start 2026-03-02"
    out = tmp_path / "days.parquet"
    assert main([*line.split(), "--out", str(out)]) == 0
    expected = of.sending_capacity(
        of.mailboxes(client=client), 900, email_days=[0, 3], start=MONDAY
    )
    pd.testing.assert_frame_equal(of.read_prospects(out), expected, check_dtype=False)
    capsys.readouterr()
    assert main(line.split()) == 0
    assert "leads_started" in capsys.readouterr().out
