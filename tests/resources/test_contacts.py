"""Contacts have one row per input, in input order, also of a messy column."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import (
    AuthenticationError,
    BadRequestError,
    InvalidResponseError,
    OutreachWarning,
)
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
    assert list(frame.columns) == ["asked", "found", "detail", *spec.columns(spec.CONTACT)]
    missing = frame.loc[frame["id"] == unknown].drop(columns=["id", "asked", "found", "detail"])
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
def test_a_blank_entry_is_not_requested(
    client: Client, sandbox: Sandbox, blank: object, kind: str
) -> None:
    """Missing, blank and placeholder entries are not known and warned of; others are found."""
    known = of.contacts(sandbox.contact_ids[:20]).dropna(subset="email").head(3)
    values = [*known["id" if kind == "ids" else "email"]]
    with pytest.warns(OutreachWarning, match=r"1 of 4 contacts were not requested.*position 1"):
        frame = of.contacts(**{kind: [values[0], blank, *values[1:]]})
    assert frame["found"].tolist() == [True, pd.NA, True, True]
    assert frame["id"].tolist()[2:] == known["id"].tolist()[1:]
    told = frame["asked"].iloc[1]
    assert told == blank if isinstance(blank, str) else pd.isna(told)
    assert frame.drop(columns=["asked", "found", "detail"]).iloc[1].isna().all()


def test_blanks_send_no_request() -> None:
    """A column of blanks sends no request."""
    with scripted([]) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="2 of 2 contacts"):
            frame = of.contacts(emails=[None, "n/a"])
        assert service.requests == []
    assert frame["found"].isna().all()


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


def refusing(statuses: dict[str, int]) -> Callable[[Received], Reply]:
    """Return a service that refuses some contacts, and a request of ids with one of them."""

    def reply(request: Received) -> Reply:
        target = urlsplit(request.target)
        asked = parse_qs(target.query).get("ids[]") or [unquote(target.path.rpartition("/")[2])]
        status = max((statuses.get(one, 200) for one in asked), default=200)
        if status != 200:
            return json({"errors": [{"detail": "On legal hold."}]}, status)
        found = [{"id": one, "email": f"{one}@x.example"} for one in asked]
        return json({"contacts": found} if target.query else found[0])

    return reply


REFUSED = {"b": 404, "c": 451, "d": 400, "e": 410}


@pytest.mark.parametrize("kind", ["ids", "emails"])
def test_a_refused_contact_costs_only_its_row(kind: str) -> None:
    """A status that concerns one contact is in its row, and one warning counts the refusals."""
    with scripted(refusing(REFUSED)) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="refuses 3 of 6 contacts.*On legal hold") as told:
            frame = of.contacts(**{kind: list("abcdef")})
        assert len(told) == 1
    assert frame["found"].tolist() == [True, False, pd.NA, pd.NA, False, True]
    details = frame["detail"].fillna("").tolist()
    assert [details[0], details[5]] == ["", ""]
    assert details[1].startswith("The service has no contact with this")
    assert details[2].startswith("The service refuses this")
    assert all("On legal hold" in detail for detail in details[1:5])


@pytest.mark.parametrize("kind", ["ids", "emails"])
def test_a_request_that_is_always_bad_is_an_error(kind: str) -> None:
    """If the service answers 400 for each contact, the request is at fault, and the call fails."""
    bad = refusing(dict.fromkeys("abc", 400))
    with scripted(bad) as service, of.connect(service.url, "token", cache=None):
        with pytest.raises(BadRequestError, match="On legal hold"):
            of.contacts(**{kind: list("abc")})


def test_activity_of_contacts_read_by_id_is_missing(client: Client, sandbox: Sandbox) -> None:
    """A warning counts the contacts without activity because they were read by id."""
    contacts = of.contacts([*sandbox.contact_ids[:3], str(uuid.UUID(int=1))])
    with pytest.warns(OutreachWarning, match=r"3 contacts have no recent_activity.*emails="):
        assert contacts.outreach.recent_activity().empty
