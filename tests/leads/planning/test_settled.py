"""Plans after leads were settled, with whatever columns identify leads by then."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.planning.settled import SettledLeads

EMAILS = st.sampled_from(["n/a", "ada@example.com", "bo@example.com", "cy@example.com"])
URLS = st.sampled_from([None, "profnet.example/in/ada", "profnet.example/in/bo"])
ROWS = st.lists(st.tuples(EMAILS, EMAILS, URLS), min_size=1, max_size=7)
COLUMNS = st.sampled_from([("work", None), ("home", None), ("work", "url"), ("home", "url")])
SOME = st.integers(0, 2**7 - 1)


def planned(
    frame: pd.DataFrame, columns: tuple[str, str | None], settled: SettledLeads | None = None
) -> SubmissionPlan:
    """Return a plan by some columns."""
    return make_plan(frame, "s1", email=columns[0], profnet_url=columns[1], settled=settled)


def settle(plan: SubmissionPlan, rows: list[int]) -> SettledLeads:
    """Return some of a plan's leads as settled."""
    some = plan.only(np.array(rows, dtype=np.int64))
    outcomes = pd.DataFrame({"position": some.positions, "status": "added", "detail": "In."})
    return SettledLeads(some.positions, some.keys, outcomes.assign(error_code=None))


def leads_of(frame: pd.DataFrame, columns: tuple[str, str | None]) -> list[set[str]]:
    """Return what identifies each row; nothing where the row is not valid."""
    return [
        {row[name] for name in columns if name is not None and row[name] not in {None, "n/a"}}
        for row in frame.to_dict("records")
    ]


def reached(start: set[str], people: list[set[str]]) -> set[str]:
    """Return everything that identifies whoever is the same person, over any number of steps."""
    known = set(start)
    while more := set().union(*(each for each in people if each & known)) - known:
        known |= more
    return known


@given(ROWS, COLUMNS, COLUMNS, SOME)
def test_nobody_settled_is_sent_and_everybody_else_is(
    rows: list[tuple[str | None, str | None, str | None]],
    first: tuple[str, str | None],
    second: tuple[str, str | None],
    some: int,
) -> None:
    """Of the people that no settled row is, by then or now, each is sent once; of others, none."""
    frame = pd.DataFrame(rows, columns=["work", "home", "url"], dtype="object")
    before = planned(frame, first)
    settled = settle(before, [row for row in before.positions.tolist() if some >> row & 1])
    plan = planned(frame, second, settled)

    then, now = leads_of(frame, first), leads_of(frame, second)
    # A settled row is one person, by the columns of then and those of now.
    people = [
        who | then[row] if row in settled.rows.tolist() else who for row, who in enumerate(now)
    ]
    open_people = []
    for row, who in enumerate(now):
        whole = reached(who, people)
        if who and not any(whole & (then[one] | now[one]) for one in settled.rows.tolist()):
            if not any(who & known for known in open_people):
                assert row in plan.positions.tolist()
            open_people.append(whole)
    for row in plan.positions.tolist():
        assert any(now[row] & known for known in open_people)
    assert len(plan.positions) == len({frozenset(known) for known in open_people})


@given(ROWS, COLUMNS, COLUMNS)
def test_every_row_has_one_outcome(
    rows: list[tuple[str | None, str | None, str | None]],
    first: tuple[str, str | None],
    second: tuple[str, str | None],
) -> None:
    """A row is sent, is settled with what became of it, or is not sent for a reason."""
    frame = pd.DataFrame(rows, columns=["work", "home", "url"], dtype="object")
    before = planned(frame, first)
    settled = settle(before, before.positions.tolist())
    plan = planned(frame, second, settled)
    unsent = plan.outcome_of_unsent()
    every = [*plan.positions.tolist(), *unsent["position"].tolist()]
    assert sorted(every) == list(range(len(frame)))
    known = unsent.set_index("position")["status"]
    assert set(known[settled.rows.tolist()]) <= {"added"}
    assert set(known.drop(settled.rows.tolist())) <= {"invalid", "duplicate_in_frame"}
    assert unsent["detail"].str.len().gt(0).all()


def test_a_duplicate_of_a_settled_row_names_it() -> None:
    """The reason says which row was sent, also where that one comes later in the frame."""
    frame = pd.DataFrame(
        {
            "work": ["n/a", "ada@example.com", "bo@example.com"],
            "home": ["ada@example.com", "ada@example.com", "n/a"],
        }
    )
    settled = settle(planned(frame, ("work", None)), [1])
    unsent = planned(frame, ("home", None), settled).outcome_of_unsent()
    assert unsent["detail"].iloc[0] == "same email as row 1"
    assert unsent["status"].tolist() == ["duplicate_in_frame", "added", "invalid"]


def test_nothing_settled_changes_nothing() -> None:
    """With no settled lead a plan is what it would be anyway."""
    frame = pd.DataFrame({"work": ["ada@example.com", "ADA@example.com", "n/a"]})
    nothing = settle(planned(frame, ("work", None)), [])
    assert isinstance(nothing.keys, pa.RecordBatch)
    plan = planned(frame, ("work", None), nothing)
    assert plan.positions.tolist() == [0]
    assert plan.outcome_of_unsent()["position"].tolist() == [1, 2]
