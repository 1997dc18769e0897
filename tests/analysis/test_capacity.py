"""Sending capacity: the plan equals a day-by-day simulation, and warnings name unused capacity."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.analysis.capacity import CAPACITY
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning

MONDAY = "2026-03-02"


def mailboxes(*rows: tuple[int | None, str]) -> pd.DataFrame:
    """Make mailboxes m0, m1, ... with a daily limit and a status each."""
    return pd.DataFrame(
        {
            "id": pd.array([f"m{number}" for number in range(len(rows))], dtype="str"),
            "email": pd.array([f"{number}@x.example" for number in range(len(rows))], dtype="str"),
            "daily_email_limit": pd.array([limit for limit, _ in rows], dtype="Int64"),
            "status": pd.array([status for _, status in rows], dtype="str"),
        }
    )


def active(*limits: int) -> pd.DataFrame:
    """Make active mailboxes."""
    return mailboxes(*((limit, "active") for limit in limits))


def simulated(limits: list[int], leads: int, each: int, spread: str) -> list[tuple[int, int]]:
    """Send email by email; return each day's number of emails and finished leads."""
    pool = [lead for lead in range(leads) for _ in range(each)]
    tasks = dict.fromkeys(range(len(limits)), 0)
    if spread == "evenly":
        # Mailboxes send in turn; if the emails do not divide evenly, the highest limits send first.
        turn = sorted(tasks, key=lambda number: -limits[number])
        for place in range(len(pool)):
            tasks[turn[place % len(turn)]] += 1
    days, open_emails, done = [], pool, 0
    while open_emails:
        sent = 0
        for number, limit in enumerate(limits):
            most = min(limit, len(open_emails) - sent)
            if spread == "evenly":
                most = min(most, tasks[number])
                tasks[number] -= most
            sent += most
        left = open_emails[sent:]
        done = leads - len(set(left))
        open_emails = left
        days.append((sent, done))
    return days


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.integers(0, 60),
    st.integers(1, 4),
    st.sampled_from(["by_limit", "evenly"]),
)
@example([1, 100], 30, 3, "evenly")
def test_the_plan_is_that_of_a_day_by_day_simulation(
    limits: list[int], leads: int, each: int, spread: Any
) -> None:
    """Each day has as many emails and finished leads as in a simulation, within each limit."""
    plan = of.sending_capacity(
        active(*limits), leads, emails_per_lead=each, start=MONDAY, freq="D", spread=spread
    )
    days = plan.groupby("date")
    expected = simulated(limits, leads, each, spread)
    assert list(zip(days["emails"].sum(), days["leads_finished"].max(), strict=True)) == expected
    assert list(days["date"].first()) == list(pd.date_range(MONDAY, periods=len(expected)))
    assert plan["emails"].gt(0).all()
    assert (
        plan["emails"] <= plan["mailbox_id"].str[1:].astype(int).map(dict(enumerate(limits)))
    ).all()
    totals = plan.groupby("mailbox_id")["emails"].sum()
    for number, limit in enumerate(limits):
        part = limit / sum(limits) if spread == "by_limit" else 1 / len(limits)
        assert abs(int(totals.get(f"m{number}", 0)) - leads * each * part) < 1
    assert not plan.duplicated(["date", "mailbox_id"]).any()
    assert days["leads_finished"].nunique().le(1).all()


def test_the_frame_of_mailboxes_is_accepted(client: Client) -> None:
    """The frame of mailboxes() is accepted with either dtype backend, and leads may be a frame."""
    frame = of.mailboxes(status="active")
    arrow = of.mailboxes(status="active", dtype_backend="pyarrow")
    plan = of.sending_capacity(frame, 1_500, start=MONDAY)
    leads = pd.DataFrame({"email": ["a@b.example"] * 1_500})
    pd.testing.assert_frame_equal(of.sending_capacity(arrow, leads, start=MONDAY), plan)
    first = plan[plan["date"] == MONDAY].set_index("mailbox_id")["emails"]
    assert first.equals(
        frame.set_index("id")["daily_email_limit"].rename("emails").rename_axis("mailbox_id")
    )
    assert plan["email"].isin(frame["email"]).all()


def test_the_index_makes_no_difference() -> None:
    """Concatenated mailboxes of two accounts, with repeated labels, are planned like others."""
    frame = active(5, 3, 9)
    plan = of.sending_capacity(frame, 40, start=MONDAY)
    twice = of.sending_capacity(frame.set_axis([0, 0, 1]), 40, start=MONDAY)
    pd.testing.assert_frame_equal(twice, plan)


@pytest.mark.parametrize("address", ["0@x.example", "0@X.EXAMPLE", " 0@x.example ", "0@X.example"])
def test_an_address_counts_once(address: str) -> None:
    """Mailboxes with the same address, in any case, count once, with a warning."""
    frame = active(5, 3, 9)
    expected = of.sending_capacity(frame[:2], 40, start=MONDAY)
    frame.loc[2, "email"] = address
    with pytest.warns(OutreachWarning, match="1 mailbox has the address of another row") as caught:
        plan = of.sending_capacity(frame, 40, start=MONDAY)
    assert len(caught) == 1
    pd.testing.assert_frame_equal(plan, expected)


def test_an_inactive_mailbox_does_not_replace_an_active_one_of_its_address() -> None:
    """Of two mailboxes with the same address, the one that can send counts."""
    frame = mailboxes((9, "inactive"), (5, "active")).assign(email="0@x.example")
    with pytest.warns(OutreachWarning, match="1 mailbox cannot send"):
        plan = of.sending_capacity(frame, 40, start=MONDAY)
    assert set(plan["mailbox_id"]) == {"m1"}


def test_mailboxes_without_address_are_distinct() -> None:
    """Mailboxes with missing addresses are distinct mailboxes."""
    frame = active(5, 5)
    plan = of.sending_capacity(frame, 40, start=MONDAY)
    missing = of.sending_capacity(frame.assign(email=None), 40, start=MONDAY)
    assert missing["emails"].equals(plan["emails"])


def test_a_huge_limit_sends_no_more_than_all_leads() -> None:
    """Limits near the 64-bit maximum do not overflow."""
    plan = of.sending_capacity(active(2**62, 2**62, 2**62), 10, start=MONDAY)
    assert plan["emails"].sum() == plan["leads_finished"].iloc[-1] == 10
    assert len(plan["date"].unique()) == 1


@pytest.mark.parametrize("leads", [0, pd.DataFrame({"email": []})])
def test_no_leads_make_an_empty_plan_with_the_same_dtypes(leads: Any) -> None:
    """A plan for no leads has no rows, and the usual columns and dtypes."""
    empty = of.sending_capacity(mailboxes((5, "active"), (5, "inactive")), leads)
    full = of.sending_capacity(active(5), 7)
    assert empty.empty
    assert empty.dtypes.equals(full.dtypes)
    assert list(full) == [field.name for field in CAPACITY]
    dtypes = ["datetime64[us]", "str", "str", "Int64", "Int64", "Int64"]
    assert full.dtypes.astype(str).tolist() == dtypes


@pytest.mark.parametrize(
    ("freq", "start", "days"),
    [
        ("B", "2026-03-07", ["2026-03-09", "2026-03-10"]),
        ("D", pd.Timestamp("2026-03-07 15:00"), ["2026-03-07", "2026-03-08"]),
        ("W-WED", MONDAY, ["2026-03-04", "2026-03-11"]),
        (
            pd.offsets.CustomBusinessDay(holidays=[MONDAY, "2026-03-04"]),
            MONDAY,
            ["2026-03-03", "2026-03-05"],
        ),
    ],
)
def test_days_are_those_of_the_frequency(freq: Any, start: Any, days: list[str]) -> None:
    """Emails go out on the dates that pandas generates for the frequency."""
    plan = of.sending_capacity(active(10), 20, start=start, freq=freq)
    assert plan["date"].dt.strftime("%Y-%m-%d").tolist() == days


def test_the_default_start_is_the_next_sending_day() -> None:
    """Without a start, the first day is today, or the next day of the frequency."""
    before = pd.Timestamp.today().normalize()
    plan = of.sending_capacity(active(10), 1)
    assert plan["date"].iloc[0] in {
        pd.offsets.BDay().rollforward(before),
        pd.offsets.BDay().rollforward(pd.Timestamp.today().normalize()),
    }


def test_mailboxes_that_cannot_send_are_a_warning() -> None:
    """A warning names mailboxes that are inactive or have no limit."""
    frame = mailboxes(
        (10, "active"), (30, "needs_reconnection"), (10, "inactive"), (None, "active")
    )
    with pytest.warns(OutreachWarning) as caught:
        plan = of.sending_capacity(frame, 100, start=MONDAY)
    assert set(plan["mailbox_id"]) == {"m0"}
    (message,) = (str(warning.message) for warning in caught)
    assert message == (
        "3 mailboxes cannot send: 1@x.example (id m1, status needs_reconnection, limit 30), "
        "2@x.example (id m2, status inactive, limit 10), 3@x.example (id m3, status active, limit "
        "none)."
    )


def test_there_is_no_warning_if_every_mailbox_sends() -> None:
    """There is no warning if every mailbox sends, or if there is nothing to send."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of.sending_capacity(active(10, 20), 100)
        of.sending_capacity(mailboxes((5, "active"), (5, "inactive")), 0)


@pytest.mark.parametrize(
    ("frame", "arguments", "says"),
    [
        (mailboxes((5, "inactive"), (0, "active"), (None, "active")), {}, "No mailbox can send"),
        (active(), {}, r"above 0 \(no mailboxes\)"),
        (pd.concat([active(5), active(5)]), {}, "more than once"),
        (active(5).drop(columns="status"), {}, "'status' is missing"),
        (active(5).assign(daily_email_limit="many"), {}, "not whole numbers"),
        (active(5), {"leads": -1}, "leads=-1"),
        (active(5), {"leads": "100"}, "leads takes a whole number"),
        (active(5), {"leads": 10**12}, "take more than 36,525 days"),
        (active(5), {"emails_per_lead": 0}, "emails_per_lead=0"),
        (active(5), {"freq": "h"}, "distinct days in order"),
        (active(5), {"freq": "-1D"}, "distinct days in order"),
        (active(5), {"freq": None}, "distinct days in order"),
        (active(5), {"freq": pd.DateOffset(days=0)}, "distinct days in order"),
        (active(5), {"freq": pd.DateOffset(month=2, day=30)}, "distinct days in order"),
        (active(5, 5).assign(id=pd.Series(["1", 1], dtype=object)), {}, "more than once"),
        (active(5, 5).assign(id=None, email="0@x.example"), {}, "more than once"),
        (active(5).assign(daily_email_limit=float("inf")), {}, "not whole numbers"),
        (active(5).assign(daily_email_limit=pd.Timestamp(MONDAY)), {}, "not whole numbers"),
        (active(5).assign(daily_email_limit=True), {}, "not whole numbers"),
        (active(2**62, 2**62), {"leads": 2**62}, "exceed the maximum"),
        (active(5), {"freq": "weekly"}, "is not a pandas frequency"),
        (active(5), {"start": "soon"}, "is not a day"),
        (active(5), {"spread": "even"}, "Did you mean 'evenly'"),
    ],
)
def test_invalid_arguments_are_an_error(
    frame: pd.DataFrame, arguments: dict[str, Any], says: str
) -> None:
    """Invalid arguments are errors that say what to pass."""
    with pytest.raises(InvalidInputError, match=says):
        of.sending_capacity(frame, **{"leads": 10, **arguments})
