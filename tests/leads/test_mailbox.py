"""`mailbox=` names the column with each row's mailbox."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import (
    ConfigurationError,
    InvalidInputError,
    OutreachWarning,
    ServiceError,
)
from outreach_frames.leads.planning.mailboxes import AccountMailboxes
from outreach_frames.leads.sending import memory
from tests import scripted as script
from tests.leads.sending.lead_service import added, connected, notes, refused, sent
from tests.scripted import Received, Reply, Service, scripted

CUSTOM = "custom_mailboxes"
# Email, user's email, user's id and status; two users have the email twin@x.example. A user's name
# begins with the first part of the email.
LISTED = [
    ("a@x.example", "ann@x.example", "u1", "active"),
    ("b@x.example", "bob@x.example", "u2", "active"),
    ("una1@x.example", "Una@x.example", "u3", "active"),
    ("una2@x.example", "una@x.example", "u3", "active"),
    ("una3@x.example", "una@x.example", "u3", "needs_reconnection"),
    ("off@x.example", "olga@x.example", "u4", "inactive"),
    ("t1@x.example", "twin@x.example", "u5", "active"),
    ("t2@x.example", "twin@x.example", "u6", "active"),
]


def listed(boxes: list[tuple[str, str, str, str]]) -> list[dict[str, Any]]:
    """Return mailboxes as the service lists them."""
    return [
        {
            "id": email,
            "email": email,
            "status": status,
            "user": {"id": number, "email": user, "name": f"{user.partition('@')[0]} Lee"},
        }
        for email, user, number, status in boxes
    ]


class Account:
    """A service with a list of mailboxes, which can change, and scripted replies to new leads."""

    def __init__(self, *turns: Any) -> None:
        self.turns, self.boxes = list(turns), LISTED

    def __call__(self, received: Received) -> Reply:
        """Reply to a request."""
        if received.path == "/mailboxes":
            odd = [{"id": "odd", "email": "odd@x.example"}, {"id": "none"}]
            return script.json({"mailboxes": [*listed(self.boxes), *odd], "_links": {}})
        if received.method == "GET":
            return script.json({"sequences": [{"id": "s1", "status": "active"}], "_links": {}})
        turn = self.turns.pop(0) if self.turns else added
        reply: Reply = turn(received) if callable(turn) else turn
        return reply


@contextmanager
def serving(*turns: Any) -> Iterator[tuple[Account, Service, Client]]:
    """Serve an account, and connect to it."""
    account = Account(*turns)
    with scripted(account) as service, connected(service) as client:
        yield account, service, client


def leads(*mailboxes: str | None, first: int = 0) -> pd.DataFrame:
    """Make one lead per mailbox."""
    emails = [f"p{row}.x@example.com" for row in range(first, first + len(mailboxes))]
    return pd.DataFrame({"email": emails, "owner": pd.Series(mailboxes, dtype="object")})


def add(frame: pd.DataFrame, client: Client, **options: Any) -> Any:
    """Add leads with the column `owner` as mailboxes; ignore warnings."""
    memory.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        options = {"mailbox": "owner", "progress": False, **options}
        return frame.outreach.add_to_sequence("s1", client=client, **options)


def boxes(service: Service) -> list[Any]:
    """Return the mailboxes of each request that adds leads; None for the sequence's senders."""
    found = []
    for body in (each.json for each in service.requests if each.method == "POST"):
        settings = body.get("settings", {})
        assert settings.keys() in (set(), {"leads_distribution", "mailboxes"})
        assert settings.get("leads_distribution") in (None, CUSTOM)
        found.append(settings.get("mailboxes"))
    return found


def test_requests_per_mailbox() -> None:
    """Each request has the rows of one mailbox; each row still has its own outcome."""
    owners = ["a@x.example", None, " B@X.example ", "bob@x.example", "n/a", "a@x.example", ""]
    skips = [
        script.json(
            {
                "total": 2,
                "total_added_to_sequence": 1,
                "recently_contacted_and_skipped": [{"email": "p5.x@example.com"}],
            }
        )
    ]
    with serving(*skips) as (_, service, client):
        report = add(leads(*owners), client)
        assert boxes(service) == [["a@x.example"], None, ["b@x.example"]]
        assert sent(service) == [["p0", "p5"], ["p1", "p4", "p6"], ["p2", "p3"]]
        assert report.rows["chunk"].tolist() == [1, 2, 3, 3, 2, 1, 2]
        expected = ["added"] * 5 + ["recently_contacted", "added"]
        assert report.rows["status"].tolist() == expected
        told = ["is a placeholder" in detail for detail in report.rows["detail"]]
        assert told == [False] * 4 + [True] + [False] * 2
        assert "sequence's senders" in str(report)
        add(leads(*owners, first=10), client, mailboxes=["t1@x.example", "t2@x.example"])
        shared = ["t1@x.example", "t2@x.example"]
        assert boxes(service)[3:] == [["a@x.example"], shared, ["b@x.example"]]
        add(leads(*["a@x.example"] * 3, first=20), client, chunk_size=2)
        assert [len(chunk) for chunk in sent(service)[6:]] == [2, 1]


def test_an_id_in_place_of_an_address() -> None:
    """An error about a mailbox's id in place of its address gives the address."""
    with scripted(Account()) as service, Client(service.url, "token", backoff=0) as client:
        frame = leads("odd")
        with pytest.raises(InvalidInputError, match=r"'odd' is a mailbox's id\. .*'odd@x.example'"):
            frame.outreach.plan("s1", mailboxes=["odd"], client=client)
        with pytest.raises(InvalidInputError, match="mailboxes: 'even' is not an e-mail address"):
            frame.outreach.plan("s1", mailboxes=["even"], client=client)
        (message,) = frame.outreach.plan("s1", mailbox="owner", client=client).problems["message"]
        assert message == "'odd' is a mailbox's id. Use its address, 'odd@x.example'."


def test_unusable_mailboxes() -> None:
    """An unusable mailbox is a problem of its row; a plan lists the mailboxes once, uncached."""
    owners = {
        "nobody@x.example": "unknown_mailbox",
        "off@x.example": "mailbox_unusable",
        "olga@x.example": "mailbox_unusable",
        "una3@x.example": "mailbox_unusable",
        "twin@x.example": "ambiguous_mailbox",
        "odd@x.example": "mailbox_unusable",
        "Anne Lee": "unknown_mailbox",
        "Olga Lee": "mailbox_unusable",
        "Twin lee": "ambiguous_mailbox",
        "Ann Lee <ann@x.example>": "invalid_mailbox",
        "a@x.example; b@x.example": "invalid_mailbox",
        "t1@x.example": None,
        " ann  LEE": None,
    }
    frame = leads(*owners)
    frame.loc[len(frame)] = ["p99.x@example.com", ["a@x.example"]]
    codes = [*owners.values(), "not_a_plain_value"]
    with scripted(Account()) as service, Client(service.url, "token", backoff=0) as client:
        of.mailboxes(client=client)
        plan = frame.outreach.plan("s1", mailbox="owner", client=client)
        listings = [each for each in service.requests if each.path == "/mailboxes"]
        assert len(listings) == 2
        assert plan.problems["code"].tolist() == [code for code in codes if code]
        assert set(plan.problems["field"]) == {"mailbox"}
        assert plan.mailboxes == {"t1@x.example": 1, "a@x.example": 1}
        messages = plan.problems["message"]
        assert "una3@x.example (needs_reconnection)" in messages[3]
        assert "Did you mean 'ann Lee'? The users: 'ann Lee', 'bob Lee', " in messages[6]
        assert "2 users are called 'Twin lee'" in messages[8]
        assert messages[8].endswith("Use the address of a mailbox: t1@x.example, t2@x.example.")
        found = add(frame, client).rows["error_code"].fillna("").tolist()
        assert found == [code or "" for code in codes]
        assert sent(service) == [["p11"], ["p12"]]
        before = len(service.requests)
        problems = frame.outreach.validate(mailbox="owner")
        assert problems["code"].tolist() == ["invalid_mailbox"] * 2 + ["not_a_plain_value"]
        assert len(service.requests) == before


def test_a_plan_shows_its_mailboxes() -> None:
    """A plan shows the number of leads per mailbox in `mailboxes`, text and HTML."""
    with serving() as (account, _, client):
        owners = ["a@x.example", "b@x.example", "b@x.example", None]
        plan = leads(*owners).outreach.plan("s1", mailbox="owner", client=client)
        assert list(plan.mailboxes.items()) == [("b@x.example", 2), ("a@x.example", 1)]
        text = r"b@x.example 2\n +a@x.example 1\n +the sequence's senders 1"
        assert re.search(text, repr(plan))
        assert "Leads per mailbox" in plan._repr_html_()
        assert len(list(plan.payloads())) == 3
        assert leads(*owners).outreach.plan("s1", client=client).mailboxes == {}
        account.boxes = [(f"m{one}@x.example", "u@x.example", "u", "active") for one in range(12)]
        plan = leads(*(box for box, *_ in account.boxes)).outreach.plan(
            "s1", mailbox="owner", client=client
        )
        assert re.search(r"m9@x.example 1\n +and 2 more, in plan.mailboxes\n", repr(plan))


def test_without_a_list_of_mailboxes() -> None:
    """Without the service's list of mailboxes, nothing is sent."""
    with pytest.raises(ConfigurationError):
        leads("a@x.example").outreach.plan("s1", mailbox="owner")
    with scripted([script.json({}, 401)]) as service, connected(service) as client:
        with pytest.raises(ServiceError):
            add(leads("a@x.example"), client)
        assert [each.method for each in service.requests] == ["GET"]


def find(boxes: list[tuple[str, str, str, str]], emails: list[str], owner: str) -> dict[str, str]:
    """Return each person's mailbox among the owner's mailboxes."""
    rows = [
        {"email": email, "user_email": user, "user_name": None, "user_id": number, "status": status}
        for email, user, number, status in boxes
    ]
    frame = pd.DataFrame({"email": emails, "owner": owner})
    mapping = of.leads.planning.mapping.read_mapping(
        frame, email="email", profnet_url=None, data=None, overrides=None, mailbox="owner"
    )
    checked = of.leads.planning.checks.check_rows(frame, mapping, AccountMailboxes(rows))
    assert checked.mailboxes is not None
    return dict(zip(emails, checked.mailboxes.to_pylist(), strict=True))


@given(st.integers(2, 6), st.randoms(use_true_random=False))
def test_the_mailbox_of_a_person(count: int, rng: random.Random) -> None:
    """A person keeps the same mailbox of a user in any frame; only a new mailbox changes some."""
    own = [(f"m{number}@x.example", "una@x.example", "u", "active") for number in range(count + 1)]
    emails = [f"p{number}@example.com" for number in range(60)]
    before = find(own[:count], emails, "una@x.example")
    shuffled = rng.sample(own[:count], count)
    some = rng.sample(emails, 20)
    again = find([*LISTED[:2], *shuffled], [text.upper() for text in some], " UNA@x.example")
    assert {email.lower(): box for email, box in again.items()} == {
        one: before[one] for one in some
    }
    assert len(set(before.values())) > 1
    after = find(own, emails, "una@x.example")
    assert {after[one] for one in emails if after[one] != before[one]} <= {own[count][0]}
    # The choice is the same on every machine.
    known = find(own[:2], ["ada@example.com", "bo@example.com", "cy@example.com"], "una@x.example")
    assert [box.partition("@")[0] for box in known.values()] == ["m1", "m1", "m0"]


def test_a_mailbox_that_changed(tmp_path: Path) -> None:
    """A recorded person is not sent again from another mailbox, and the detail has the reason."""
    with serving(added, refused("brand_new"), added, script.reset()) as (account, service, client):
        journal = tmp_path / "j"
        owners = ["a@x.example", "b@x.example", None, "una1@x.example"]
        report = add(leads(*owners), client, journal=journal)
        assert report.rows["status"].tolist() == ["added", "rejected", "added", "unknown"]
        moved = leads("b@x.example", "t1@x.example", "a@x.example", "una2@x.example")
        report = add(moved, client, journal=journal)
        assert report.rows["status"].tolist() == ["added", "added", "added", "unknown"]
        assert boxes(service)[4:] == [["t1@x.example"]]
        assert sent(service)[4:] == [["p1"]]
        other = "The row was sent from another mailbox and is not resent."
        without = "The row was sent without this mailbox and is not resent."
        assert notes(report)[:3] == [other, "", without]
        assert other in report.rows["detail"][3]
        # An unknown row is resent only from its first mailbox.
        again = report.retry_unknown()
        assert again.rows["detail"][3].endswith("the mailbox changed since the row was sent.")
        account.boxes = [one for one in LISTED if one[0] != "una1@x.example"]
        report = add(leads(*owners), client, journal=journal)
        assert report.rows["status"].tolist() == ["added", "added", "added", "unknown"]
        unusable = report.retry_unknown().rows["detail"][3]
        assert "because the row is invalid now; see the plan's problems" in unusable
        assert len(sent(service)) == 5
        account.boxes = LISTED
        report = add(leads(*owners), client, journal=journal).retry_unknown()
        assert report.rows["status"].tolist() == ["added"] * 4
        assert boxes(service)[5:] == [["una1@x.example"]]


UNA = [box for box in LISTED if box[0].startswith("una")]


def test_any_mailbox_of_a_user_is_unchanged(tmp_path: Path) -> None:
    """A recorded row of a user has no note when its email or the user's mailboxes change."""
    url = "https://profnet.example/in/p{}".format
    frame = pd.DataFrame({"email": None, "profnet_url": map(url, range(8)), "owner": "una lee"})
    with serving() as (account, service, client):
        journal = tmp_path / "j"
        add(frame, client, journal=journal)
        assert {box for (box,) in boxes(service)} == {"una1@x.example", "una2@x.example"}
        filled = frame.assign(email=[f"p{row}.x@example.com" for row in range(8)])
        report = add(filled, client, journal=journal)
        assert set(report.rows["status"]) == {"added"}
        assert set(notes(report)) == {"The row was sent without this email and is not resent."}
        # The mailboxes that sent are inactive: they are still the user's, who has a new one.
        off = [(email, user, number, "inactive") for email, user, number, _ in UNA]
        account.boxes = [*off, ("una4@x.example", "una@x.example", "u3", "active")]
        assert set(notes(add(frame, client, journal=journal))) == {""}
        # A mailbox of another user, or an address in place of the user, is a change.
        for boxes_now, owner in ((LISTED, "ann lee"), (account.boxes, "una4@x.example")):
            account.boxes = boxes_now
            report = add(frame.assign(owner=owner), client, journal=journal)
            other = "The row was sent from another mailbox and is not resent."
            assert set(notes(report)) == {other}
        assert len(sent(service)) == 2


@pytest.mark.parametrize("state", ["active", "inactive", "gone"])
def test_a_retry_uses_the_recorded_mailbox(state: str, tmp_path: Path) -> None:
    """A retry by a user's name uses the recorded mailbox if it is active, else another."""
    frame = leads(*["una lee"] * 8)
    with serving(script.reset()) as (account, service, client):
        journal = tmp_path / "j"
        account.boxes = [("una1@x.example", "una@x.example", "u3", "active")]
        report = add(frame, client, journal=journal)
        assert set(report.rows["status"]) == {"unknown"}
        new = [(f"una{number}@x.example", "una@x.example", "u3", "active") for number in (2, 4)]
        account.boxes = new if state == "gone" else [(*account.boxes[0][:3], state), *new]
        report = add(frame, client, journal=journal)
        assert ("from another mailbox" in report.rows["detail"][0]) is (state == "gone")
        again = report.retry_unknown()
        used = {box for (box,) in boxes(service)[1:]}
        expected = {
            "active": {"una1@x.example"},
            "inactive": {"una2@x.example", "una4@x.example"},
            "gone": set(),
        }
        assert used == expected[state]
        assert set(again.rows["status"]) == {"unknown" if state == "gone" else "added"}
        if state != "gone":
            # The journal has the mailboxes that the retry used.
            account.boxes = [box for box in account.boxes if box[0] in used]
            assert set(notes(add(frame, client, journal=journal))) == {""}


def test_resuming_with_other_settings(tmp_path: Path) -> None:
    """A journal resumes with and without mailboxes: remaining rows go by the call's settings."""
    with serving() as (_, service, client):
        journal, box = tmp_path / "j", "a@x.example"
        add(leads(box), client, journal=journal)
        add(leads(box, box), client, journal=journal, mailbox=None)
        add(leads(box, box, box), client, journal=journal, mailbox=None, mailboxes=[box])
        assert sent(service) == [["p0"], ["p1"], ["p2"]]
        posts = [request.json for request in service.requests if request.method == "POST"]
        chosen = {"leads_distribution": "custom_mailboxes", "mailboxes": [box]}
        assert [post.get("settings") for post in posts] == [chosen, None, chosen]


def test_one_person_with_two_owners(tmp_path: Path) -> None:
    """Rows of one person with several owners are sent once, even if an invalid row links them."""
    url = "https://profnet.example/in/ada"
    frame = pd.DataFrame(
        {
            "email": ["ada@example.com", "ada@example.com", None, "bo@example.com"],
            "profnet_url": [url, None, url, None],
            "owner": ["nobody@x.example", "a@x.example", "b@x.example", "b@x.example"],
        }
    )
    with serving() as (_, service, client):
        for journal in (None, tmp_path / "j"):
            report = add(frame, client, journal=journal)
            found = ["invalid", "added", "duplicate_in_frame", "added"]
            assert report.rows["status"].tolist() == found
        assert len(sent(service)) == 4
        # The journal also has the identifiers of the invalid row.
        add(frame.iloc[[0, 1]], client, journal=tmp_path / "k")
        add(frame.iloc[[2]], client, journal=tmp_path / "k")
        assert sent(service)[4:] == [["ada@example"]]


def test_the_sent_row_keeps_its_outcome(tmp_path: Path) -> None:
    """Of equal rows with several owners, the sent row has the outcome in any order."""
    frame = leads("a@x.example", "b@x.example").assign(email="p0.x@example.com")
    with serving() as (account, service, client):
        for rows in (frame, frame[::-1], frame):
            report = add(rows, client, journal=tmp_path / "j")
            found = dict(zip(rows["owner"], report.rows["status"], strict=True))
            assert found == {"a@x.example": "added", "b@x.example": "duplicate_in_frame"}
            assert "from another mailbox" not in " ".join(report.rows["detail"])
        account.boxes = LISTED[1:]
        report = add(frame, client, journal=tmp_path / "j")
        assert report.rows["status"].tolist() == ["added", "duplicate_in_frame"]
        assert len(sent(service)) == 1
