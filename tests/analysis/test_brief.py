"""The brief view: a dozen columns of a wide frame."""

from __future__ import annotations

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError
from outreach_frames.sandbox import Sandbox


def test_brief_shows_a_dozen_columns_of_each_table(
    people: pd.DataFrame, client: Client, sandbox: Sandbox
) -> None:
    """The brief view of people, companies and contacts has the main columns and all rows."""
    contacts = of.contacts(sandbox.contact_ids[:3])
    companies = people.outreach.companies()
    for frame, fields in [(people, spec.PERSON), (companies, spec.COMPANY)]:
        brief = frame.outreach.brief()
        assert len(brief.columns) - ("people_in_frame" in brief) == 12
        assert {*brief} - {"people_in_frame"} <= {*spec.columns(fields)}
        assert brief.index.equals(frame.index)
    assert list(people.outreach.brief())[:3] == ["name", "title", "company_name"]
    assert "email" in contacts.outreach.brief()
    assert "phone_numbers" not in contacts.outreach.brief()


def test_brief_keeps_custom_columns(people: pd.DataFrame) -> None:
    """Custom columns come first, a dozen at most; two columns are enough to recognise a table."""
    assert list(people.assign(account_row=1).outreach.brief())[:2] == ["account_row", "name"]
    many = people.assign(**{f"own_{number}": 1 for number in range(40)})
    assert len(many.outreach.brief().columns) == 24
    frame = pd.DataFrame(columns=["title", "own", "name"])
    assert list(frame.outreach.brief()) == ["own", "name", "title"]
    assert list(frame[["title", "own"]].outreach.brief()) == ["title", "own"]
    assert list(pd.DataFrame([range(20)]).outreach.brief()) == list(range(12))
    assert pd.DataFrame().outreach.brief().empty


def test_brief_shows_the_requested_columns(people: pd.DataFrame) -> None:
    """columns= replaces the default columns, and an unknown name is an error."""
    assert list(people.outreach.brief(["title", "name"])) == ["title", "name"]
    assert list(people.outreach.brief("title")) == ["title"]
    with pytest.raises(InvalidInputError, match="Did you mean 'title'"):
        people.outreach.brief(["titel"])


def test_constant_columns_are_omitted(people: pd.DataFrame) -> None:
    """`object` and `company_object` are in no default view."""
    few = people[["object", "company_object", "id", "gender"]]
    assert list(few.outreach.brief()) == ["id", "gender"]
    assert list(few.outreach.brief(["object"])) == ["object"]
    assert "object" not in people.outreach.experiences().outreach.brief()
