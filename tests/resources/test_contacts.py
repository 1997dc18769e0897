"""Contacts have one row per input, in input order, also of a messy column."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import AuthenticationError, InvalidResponseError, OutreachWarning
from outreach_frames.sandbox import Sandbox
from tests.scripted import Received, Reply, json, scripted

BACKENDS = ["numpy_nullable", "pyarrow"]


def test_contacts_by_id_keep_the_inputs_order(client: Client, sandbox: Sandbox) -> None:
    """Contacts by id have one row per id in input order, with repeated and unknown ids."""
    known = list(sandbox.contact_ids[:45])
    unknown = str(uuid.UUID(int=1))
    wanted = [*reversed(known), unknown, known[0]]
    frame = of.contacts(wanted)
    assert list(frame["id"]) == wanted
    assert frame["found"].tolist() == [True] * 45 + [False, True]
    assert list(frame["asked"]) == wanted
    assert list(frame.columns) == [*spec.columns(spec.CONTACT), "asked", "found"]
    missing = frame.loc[frame["id"] == unknown].drop(columns=["id", "asked", "found"])
    assert missing.isna().all(axis=None)


def test_contacts_by_email_keep_the_inputs_order(client: Client, sandbox: Sandbox) -> None:
    """Contacts by email have one row per address in input order, and activity, newest first."""
    emails = of.contacts(sandbox.contact_ids[:30])["email"].dropna().tolist()
    wanted = pd.Series([*emails, "nobody@brightforge.example", emails[0].upper()])
    frame = of.contacts(emails=wanted)
    assert list(frame["email"].str.lower()) == list(wanted.str.lower())
    assert frame["found"].tolist() == [True] * len(emails) + [False, True]
    activities = [cell for cell in frame["recent_activity"].dropna() if len(cell) > 1]
    assert activities
    for activity in activities:
        moments = [item["event_at"] for item in activity]
        assert moments == sorted(moments, reverse=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_contacts_always_have_the_same_dtypes(
    client: Client, sandbox: Sandbox, backend: Any
) -> None:
    """No input, unknown contacts and many contacts give the same columns and dtypes."""
    many = of.contacts(sandbox.contact_ids[:25], dtype_backend=backend)
    for frame in (
        of.contacts([], dtype_backend=backend),
        of.contacts(emails=["nobody@brightforge.example"], dtype_backend=backend),
    ):
        pd.testing.assert_series_equal(frame.dtypes, many.dtypes)


def test_contacts_request_at_most_twenty_ids() -> None:
    """21 ids need two requests, and a response in reverse order is sorted by the input."""
    wanted = [str(uuid.UUID(int=number)) for number in range(1, 22)]

    def reversing(request: Received) -> Reply:
        ids = [part.split("=")[1] for part in unquote(request.target).split("?")[1].split("&")]
        return json(
            {"contacts": [{"id": identity.upper(), "email": None} for identity in ids[::-1]]}
        )

    with scripted(reversing) as service, of.connect(service.url, "token", cache=None):
        frame = of.contacts(wanted)
        sizes = sorted(target.count("ids") for target in service.targets)
    assert sizes == [1, spec.MAX_CONTACT_IDS]
    assert [identity.lower() for identity in frame["id"]] == wanted
    assert frame["found"].all()


def test_an_error_has_the_contacts_read_before() -> None:
    """An error's .partial has the rows read before it, found or not, with their index labels."""

    def failing(request: Received) -> Reply:
        name = request.target.rsplit("/", 1)[-1]
        if name.startswith("c"):
            return json({}, status=401)
        found = json({"id": "1", "email": unquote(name)})
        return found if name.startswith("a") else json({}, status=404)

    emails = pd.Series(["b@x.example", "a@x.example", "c@x.example"], index=["x", "y", "z"])
    with scripted(failing) as service:
        with of.connect(service.url, "token", cache=None, workers=1):
            with pytest.raises(AuthenticationError) as caught:
                of.contacts(emails=emails)
    assert caught.value.partial is not None
    assert caught.value.partial["email"].to_dict() == emails[:2].to_dict()
    assert caught.value.partial["found"].tolist() == [False, True]


@pytest.mark.parametrize(
    ("body", "arguments", "words"),
    [
        ({"contacts": [{"email": "ada@x.example"}]}, {"ids": ["1"]}, "has no id"),
        ({"contacts": ["1"]}, {"ids": ["1"]}, "has no id"),
        ({"contacts": {"1": {}}}, {"ids": ["1"]}, "lacks the list"),
        ({"email": "ada@x.example"}, {"emails": ["ada@x.example"]}, "not a contact"),
        (["ada@x.example"], {"emails": ["ada@x.example"]}, "not a contact"),
    ],
)
def test_a_malformed_contact_is_an_error(body: Any, arguments: dict[str, Any], words: str) -> None:
    """A malformed response is an error, and not a contact or an unknown contact."""
    with scripted([json(body)]) as service, of.connect(service.url, "token", cache=None):
        with pytest.raises(InvalidResponseError, match=words):
            of.contacts(**arguments)


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
