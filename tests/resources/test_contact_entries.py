"""Contacts of a messy column: missing entries stop nothing, and rows keep their order."""

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
def test_a_blank_entry_is_not_found(
    client: Client, sandbox: Sandbox, blank: object, kind: str
) -> None:
    """Missing, blank and placeholder entries are not found and warned of; others are found."""
    known = of.contacts(sandbox.contact_ids[:20]).dropna(subset="email").head(3)
    values = [*known["id" if kind == "ids" else "email"]]
    with pytest.warns(OutreachWarning, match=r"1 of 4 contacts were not requested.*position 1"):
        frame = of.contacts(**{kind: [values[0], blank, *values[1:]]})
    assert frame["found"].tolist() == [True, False, True, True]
    assert frame["id"].tolist()[2:] == known["id"].tolist()[1:]
    told = frame["asked"].iloc[1]
    assert told == blank if isinstance(blank, str) else pd.isna(told)
    assert frame.drop(columns=["asked", "found"]).iloc[1].isna().all()


def test_blanks_send_no_request() -> None:
    """A column of blanks sends no request."""
    with scripted([]) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="2 of 2 contacts"):
            frame = of.contacts(emails=[None, "n/a"])
        assert service.requests == []
    assert frame["found"].tolist() == [False, False]


def test_asked_is_the_entry_as_passed(client: Client, sandbox: Sandbox) -> None:
    """`asked` contains the entry as passed, even if the contact's case or whitespace differs."""
    contact = of.contacts(sandbox.contact_ids[:9]).dropna(subset="email").iloc[0]
    given = [f" {contact['email'].upper()} ", contact["email"]]
    frame = of.contacts([contact["id"]], emails=given)
    assert frame["asked"].tolist() == [contact["id"], *given]
    assert frame["found"].all()


def test_a_column_keeps_its_index(client: Client, sandbox: Sandbox) -> None:
    """A result has the index of a passed Series; for a list, or two arguments, it has a new one."""
    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 1), ("b", 1)], names=["team", None])
    ids = pd.Series(sandbox.contact_ids[:3], index=index)
    pd.testing.assert_index_equal(of.contacts(ids).index, index)
    emails = of.contacts(ids)["email"].fillna("nobody@x.example")
    pd.testing.assert_index_equal(of.contacts(emails=emails).index, index)
    assert of.contacts(ids, emails=emails).index.equals(pd.RangeIndex(6))
    assert of.contacts(list(ids)).index.equals(pd.RangeIndex(3))


def test_a_partial_result_keeps_its_index() -> None:
    """A failure's partial result keeps the index labels of the rows read before."""

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


def test_addresses_as_ids_are_an_error(client: Client) -> None:
    """An email address among the ids is an error that names the right argument."""
    with pytest.raises(InvalidInputError, match="Pass addresses as emails="):
        of.contacts(["ada@brightforge.example"])
