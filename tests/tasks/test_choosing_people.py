"""Tasks that choose the people to write to, each in three lines."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
from msgspec.structs import replace

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachWarning
from outreach_frames.leads.sending import memory
from outreach_frames.leads.sending.events import OutcomeEvent
from outreach_frames.leads.sending.journal_file import (
    JournalFile,
    SequenceAddress,
    read_only,
)
from outreach_frames.sandbox import Sandbox


@pytest.fixture
def campaigns(sandbox: Sandbox, client: Client, people: pd.DataFrame, tmp_path: Path) -> Path:
    """Add some people to a sequence in three campaigns, each with a journal."""
    sequence_id = sandbox.sequence_ids["accepts_any"]
    for number in range(3):
        rows = people.iloc[number * 5 : number * 5 + 5]
        memory.clear()  # as in a process per campaign
        rows.outreach.add_to_sequence(sequence_id, journal=tmp_path / f"{number}.journal")
    return tmp_path


def age(path: Path, days: int, status: str) -> None:
    """Make a journal's events older, and give them another outcome."""
    with read_only(path) as file:
        events = [*file.events.log]
        sequence = SequenceAddress(file.service, file.sequence_id)
    path.unlink()
    for number, event in enumerate(events):
        events[number] = replace(event, time=event.time - timedelta(days=days))
        if isinstance(event, OutcomeEvent):
            outcome = event.outcome._replace(status=status)
            events[number] = replace(event, time=event.time - timedelta(days=days), outcome=outcome)
    with JournalFile(path, sequence) as file:
        file.write(events)


def test_exclude_three_journals(people: pd.DataFrame, campaigns: Path) -> None:
    """The people of three campaigns are excluded by a pattern or a list of their journals."""
    new = people.outreach.without(campaigns / "*.journal")
    assert new.index.tolist() == people.index[15:].tolist()
    listed = [f"{campaigns}/{number}.journal" for number in range(3)]
    pd.testing.assert_frame_equal(people.outreach.without(listed), new)


def test_exclude_people_contacted_in_the_last_90_days(
    people: pd.DataFrame, campaigns: Path
) -> None:
    """The people of recent campaigns and of a table are excluded, and all who unsubscribed."""
    age(campaigns / "0.journal", days=91, status="added")
    age(campaigns / "1.journal", days=89, status="unknown")
    age(campaigns / "2.journal", days=200, status="in_exclusion_list")
    suppressed = people[["profnet_url"]].tail(2)
    rested = people.outreach.without(campaigns / "*.journal", suppressed, since="90D")
    assert rested.index.tolist() == [*people.index[:5], *people.index[15:-2]]
    day = (pd.Timestamp.now("UTC") - pd.Timedelta(days=91)).date()
    for since, kept in ((day, 0), (f"{day}", 0), (pd.Timedelta("90D"), 5), ("80D", 10)):
        rested = people.head(15).outreach.without([campaigns / "*.journal"], since=since)
        assert len(rested) == kept


def test_people_who_left_a_customer(people: pd.DataFrame) -> None:
    """People whose former company is a customer are found by the company's name."""
    company = ["company_id", "company_name", "company_website", "company_profnet_url"]
    before, after = people, people.copy()
    after[company] = people[company].iloc[::-1].to_numpy()
    firms = before["company_name"].iloc[[0, 1]]
    customers = pd.DataFrame({"Company": firms.str.upper() + ", Ltd."})
    moved = of.compare_people(before, after).employer_changes
    matches = moved.outreach.match(customers, company_name=("company_before", "Company"))
    left = moved[matches["match_row"].notna()]
    assert set(left["company_before"]) == set(firms)


@pytest.mark.usefixtures("client")
def test_companies_that_the_service_does_not_know(people: pd.DataFrame) -> None:
    """Companies without a match are unknown or have other people, by their number of people."""
    sites = [people["company_website"].iloc[0], "nonsense.example"]
    accounts = pd.DataFrame({"Website": sites})
    with pytest.warns(OutreachWarning, match="Nobody matches"):
        found = accounts.outreach.find_people(domain="Website", person_titles=["Xyzzy"])
    counts = found.explain_nobody()["people_without_filters"]
    assert (counts > 0).tolist() == [True, False]


@pytest.mark.usefixtures("client")
def test_leads_with_owners_by_name_and_hold_out(sandbox: Sandbox) -> None:
    """Everybody but a hold-out is planned to be sent from the mailbox of the named owner."""
    owner = of.mailboxes(status="active")["user_name"].iloc[0]
    sequence_id = sandbox.sequence_ids["accepts_any"]
    leads = pd.DataFrame({"Work Email": [f"p{n}@x.example" for n in range(40)], "Owner": owner})
    keys = of.keys.email(leads["Work Email"])
    is_held_out = pd.util.hash_pandas_object(keys, index=False) % 100 < 20
    plan = leads[~is_held_out].outreach.plan(sequence_id, email="Work Email", mailbox="Owner")
    assert 0 < len(plan.positions) == (~is_held_out).sum() < 40
    spelled = of.keys.email(leads["Work Email"].str.upper().iloc[::-1])
    again = pd.util.hash_pandas_object(spelled, index=False) % 100 < 20
    assert again.sort_index().equals(is_held_out)
    assert sum(plan.mailboxes.values()) == len(plan.positions)
