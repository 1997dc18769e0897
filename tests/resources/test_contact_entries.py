"""Contacts of a messy column: gaps do not stop them, and every row is where it was."""

from __future__ import annotations

import uuid

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning, ServerError
from outreach_frames.sandbox import Sandbox
from tests.scripted import Received, Reply, json, scripted

BLANK = [None, float("nan"), pd.NA, "", "  ", "n/a", "Unknown", "-", "..", "."]


@pytest.mark.parametrize("blank", BLANK, ids=repr)
@pytest.mark.parametrize("kind", ["ids", "emails"])
def test_a_blank_among_many_does_not_stop_them(
    client: Client, sandbox: Sandbox, blank: object, kind: str
) -> None:
    """What is missing, blank or a placeholder is not found, a warning says so, the rest is."""
    known = of.contacts(sandbox.contact_ids[:20]).dropna(subset="email").head(3)
    values = [*known["id" if kind == "ids" else "email"]]
    with pytest.warns(OutreachWarning, match=r"1 of 4 contacts were not requested.*position 1"):
        frame = of.contacts(**{kind: [values[0], blank, *values[1:]]})
    assert frame["found"].tolist() == [True, False, True, True]
    assert frame["id"].tolist()[2:] == known["id"].tolist()[1:]
    told = frame["asked"].iloc[1]
    assert told == blank if isinstance(blank, str) else pd.isna(told)
    assert frame.drop(columns=["asked", "found"]).iloc[1].isna().all()


def test_nothing_is_sent_for_blanks_alone() -> None:
    """A column of blanks asks the service for nothing."""
    with scripted([]) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="2 of 2 contacts"):
            frame = of.contacts(emails=[None, "n/a"])
        assert service.requests == []
    assert frame["found"].tolist() == [False, False]


def test_what_was_asked_is_told_as_it_was_given(client: Client, sandbox: Sandbox) -> None:
    """`asked` is the entry as given, whatever case or blanks the contact has it in."""
    contact = of.contacts(sandbox.contact_ids[:9]).dropna(subset="email").iloc[0]
    given = [f" {contact['email'].upper()} ", contact["email"]]
    frame = of.contacts([contact["id"]], emails=given)
    assert frame["asked"].tolist() == [contact["id"], *given]
    assert frame["found"].all()


def test_a_column_keeps_its_index(client: Client, sandbox: Sandbox) -> None:
    """The result of a Series has its index; of a list, and of both kinds, a new one."""
    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 1), ("b", 1)], names=["team", None])
    ids = pd.Series(sandbox.contact_ids[:3], index=index)
    pd.testing.assert_index_equal(of.contacts(ids).index, index)
    emails = of.contacts(ids)["email"].fillna("nobody@x.example")
    pd.testing.assert_index_equal(of.contacts(emails=emails).index, index)
    assert of.contacts(ids, emails=emails).index.equals(pd.RangeIndex(6))
    assert of.contacts(list(ids)).index.equals(pd.RangeIndex(3))


def test_an_interrupted_read_keeps_the_index_of_what_came() -> None:
    """What was read before a failure is on the error, each row with its own label."""

    def failing(request: Received) -> Reply:
        if "bo" in request.target:
            return json({}, 500)
        return json({"id": str(uuid.uuid4()), "email": "ada@x.example"})

    emails = pd.Series(["ada@x.example", "bo@x.example"], index=["x", "y"])
    with scripted(failing) as service:
        connected = Client(service.url, "token", cache=None, workers=1, backoff=0)
        with connected, pytest.raises(ServerError) as caught:
            of.contacts(emails=emails, client=connected)
    partial: pd.DataFrame = caught.value.partial  # type: ignore[attr-defined]
    assert partial.index.tolist() == ["x"]


def test_addresses_given_as_ids_are_told(client: Client) -> None:
    """An address among the ids is an error that says where it belongs."""
    with pytest.raises(InvalidInputError, match="Pass addresses as emails="):
        of.contacts(["ada@brightforge.example"])
