"""Limits of several mailboxes: one row with an outcome per mailbox."""

from __future__ import annotations

import uuid

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachWarning
from tests.scripted import Received, Reply, json, reset, scripted

IDS = ["m1", "m2", "m3"]


def test_several_limits_are_changed(client: Client) -> None:
    """Each mailbox of a Series is changed, and the result has the Series' index."""
    ids = of.mailboxes()["id"].iloc[[2, 0, 2]]
    frame = of.set_daily_email_limit(ids, 41)
    assert list(frame.columns) == [*spec.columns(spec.MAILBOX), "outcome", "detail"]
    assert frame["id"].tolist() == ids.tolist()
    assert frame["outcome"].tolist() == ["changed"] * 3
    assert frame["daily_email_limit"].tolist() == [41] * 3
    pd.testing.assert_index_equal(frame.index, ids.index)
    listed = of.mailboxes().set_index("id")["daily_email_limit"]
    assert listed[ids].eq(41).all()


def test_no_ids_make_no_rows(client: Client) -> None:
    """An empty list returns an empty frame with the same columns."""
    frame = of.set_daily_email_limit([], 41)
    assert frame.shape == (0, len(spec.columns(spec.MAILBOX)) + 2)


def test_an_unknown_mailbox_does_not_stop_the_others(client: Client) -> None:
    """An unknown mailbox fails in its row and in a warning, and the others are changed."""
    known = of.mailboxes()["id"].iloc[0]
    unknown = str(uuid.UUID(int=9))
    with pytest.warns(OutreachWarning, match="Not all of 2 mailboxes were changed: 1 failed"):
        frame = of.set_daily_email_limit([unknown, known], 42)
    assert frame["outcome"].tolist() == ["failed", "changed"]
    assert frame["id"].tolist() == [unknown, known]
    assert "404" in frame["detail"].iloc[0] or "no such" in frame["detail"].iloc[0].lower()


def test_each_mailbox_has_its_outcome(client: Client) -> None:
    """Another limit, a malformed response and a rejection are outcomes of the mailbox's own row."""

    def service_of(request: Received) -> Reply:
        identity = request.path.rpartition("/")[2]
        replies = {
            "m1": json({"id": "m1", "daily_email_limit": 30}),
            "m2": reset(),
            "m3": json({"id": "m3", "daily_email_limit": 40}),
        }
        return replies[identity]

    with scripted(service_of) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="1 differs, 1 unknown"):
            frame = of.set_daily_email_limit(IDS, 40)
        assert len(service.requests) == 3
    assert frame["outcome"].tolist() == ["differs", "unknown", "changed"]
    assert frame["daily_email_limit"].tolist()[::2] == [30, 40]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *dict.fromkeys((400, 404, 405, 413, 422, 425), "failed").items(),
        *dict.fromkeys((303, 408, 409, 418, 499, 500), "unknown").items(),
    ],
)
def test_only_a_refusal_is_a_failure(status: int, outcome: str) -> None:
    """A limit that may have changed is unknown, and later limits are still sent."""
    replies = [json({"error": "no"}, status), json({"id": "m2", "daily_email_limit": 40})]
    with scripted(replies) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match=f"1 {outcome}"):
            frame = of.set_daily_email_limit(IDS[:2], 40)
    assert frame["outcome"].tolist() == [outcome, "changed"]


def test_a_rejected_token_stops_the_remaining_rows() -> None:
    """After status 401 no further request is sent, and the remaining rows are not_sent."""
    with scripted([json({}, 401)]) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="1 failed, 2 not_sent"):
            frame = of.set_daily_email_limit(IDS, 40)
        assert len(service.requests) == 1
    assert frame["outcome"].tolist() == ["failed", "not_sent", "not_sent"]
