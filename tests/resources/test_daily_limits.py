"""Limits of mailboxes: sent values, early errors, and one outcome per mailbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning, ServiceError
from outreach_frames.sandbox import Sandbox
from tests.libraries import LIBRARIES
from tests.scripted import Received, Reply, json, reset, scripted

LIMITS = {"m1": 30, "m2": 40, "m3": 50}


def listing(request: Received) -> Reply:
    """Reply with three mailboxes; m2 was updated in May."""
    if request.method == "GET":
        days = {"m1": "2027-01-01", "m2": "2027-05-01", "m3": "2027-01-01"}
        boxes = [
            {"id": one, "daily_email_limit": limit, "updated_at": f"{days[one]}T00:00:00Z"}
            for one, limit in LIMITS.items()
        ]
        return json({"mailboxes": boxes})
    identity = request.path.rpartition("/")[2]
    return json({"id": identity, "daily_email_limit": request.json["daily_email_limit"]})


def sent(requests: list[Received]) -> dict[str, int]:
    """Return the sent limits by mailbox."""
    return {
        request.path.rpartition("/")[2]: request.json["daily_email_limit"]
        for request in requests
        if request.method == "PATCH"
    }


def test_only_changed_limits_of_a_frame_are_sent() -> None:
    """Only rows whose limit differs from the service's are sent, and newer limits are warned of."""
    frame = pd.DataFrame({"id": [*LIMITS], "daily_email_limit": [30, 41, 51]}, index=list("abc"))
    frame["updated_at"] = pd.Timestamp("2027-02-01", tz="UTC")
    with scripted(listing) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="^1 mailbox was updated .* such as m2"):
            changed = of.set_daily_email_limit(frame)
        assert sent(service.requests) == {"m2": 41, "m3": 51}
        assert of.set_daily_email_limit(frame.head(1)).shape == (0, changed.shape[1])
    assert changed["daily_email_limit"].tolist() == [41, 51]
    assert changed.index.tolist() == ["b", "c"]
    assert changed["outcome"].tolist() == ["changed", "changed"]
    assert changed["detail"].tolist() == ["Updated since the frame was read: the limit was 40.", ""]


@pytest.mark.parametrize("columns", [{}, {"updated_at": pd.NaT}])
def test_the_replaced_limit_is_named_if_its_age_is_unknown(columns: dict[str, Any]) -> None:
    """Without `updated_at`, the detail of each sent limit has the replaced limit."""

    def service_of(request: Received) -> Reply:
        return json({"id": "m3"}) if request.path.endswith("m3") else listing(request)

    frame = pd.DataFrame({"id": [*LIMITS, "m4"], "daily_email_limit": [30, 41, 51, 9]})
    with scripted(service_of) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="1 differs"):
            changed = of.set_daily_email_limit(frame.assign(**columns))
        assert [request.method for request in service.requests] == ["GET", *["PATCH"] * 3]
    assert changed["detail"].tolist() == [
        "The limit was 40.",
        "The service now reports None. The limit was 50.",
        "",
    ]


def test_current_limits_are_never_cached(sandbox: Sandbox, tmp_path: Path) -> None:
    """Current limits are read from the service, not from a cached listing."""
    with (
        of.connect(sandbox.url, sandbox.api_key, cache=None) as other,
        of.connect(sandbox.url, sandbox.api_key, cache=tmp_path / "cache.sqlite"),
    ):
        cached = of.mailboxes()
        one, limit = cached["id"].iloc[3], int(cached["daily_email_limit"].iloc[3])
        of.set_daily_email_limit(one, limit + 1, client=other)
        with pytest.warns(OutreachWarning, match="updated after the frame was read"):
            changed = of.set_daily_email_limit(cached)
        assert changed["id"].tolist() == [one]
        assert changed.index.tolist() == [3]
        assert f"the limit was {limit + 1}" in changed["detail"].iloc[0]
        assert of.mailboxes().set_index("id")["daily_email_limit"][one] == limit


@pytest.mark.parametrize("number", [41.0, "41", "41.0", np.float64(41)])
def test_a_whole_number_may_be_a_float_or_text(number: Any) -> None:
    """A limit of 41.0 or "41" is 41, for one and several mailboxes and in every table."""
    ids = ["m2", "m3"]
    frame = pd.DataFrame({"id": ids, "daily_email_limit": pd.Series([number, number])})
    tables: list[Any] = [dict.fromkeys(ids, number), pd.Series(number, index=ids), frame]
    for given in ([ids[0], number], [ids, number], *([table] for table in tables)):
        with scripted(listing) as service, of.connect(service.url, "token", cache=None):
            of.set_daily_email_limit(*given)
            assert set(sent(service.requests).values()) == {41}
            assert all(type(limit) is int for limit in sent(service.requests).values())


def test_frames_of_other_libraries_are_accepted() -> None:
    """An edited frame of any library sends the same rows."""
    frame = pd.DataFrame({"id": [*LIMITS, "m3"], "daily_email_limit": [30, 40, 7, 7]})
    for make in LIBRARIES.values():
        with scripted(listing) as service, of.connect(service.url, "token", cache=None):
            assert of.set_daily_email_limit(make(frame))["id"].tolist() == ["m3", "m3"]
            assert sent(service.requests) == {"m3": 7}


def test_unreadable_limits_change_nothing() -> None:
    """Unreadable current limits are an error before any change."""
    with scripted([json({}, 400)]) as service, of.connect(service.url, "token", cache=None):
        with pytest.raises(ServiceError):
            of.set_daily_email_limit(pd.DataFrame({"id": ["m1"], "daily_email_limit": [9]}))
        assert sent(service.requests) == {}


ADDRESSES = {"m1": "ada@x.example", "m2": "bo@x.example", "m3": "bo@x.example", "m4": None}


def with_addresses(request: Received) -> Reply:
    """Reply like `listing`, with mailboxes that have addresses."""
    if request.method == "GET":
        boxes = [{"id": one, "email": email} for one, email in ADDRESSES.items()]
        return json({"mailboxes": boxes})
    return listing(request)


@pytest.mark.parametrize(
    "given",
    [
        {"m2": 41, " Ada@x.example": 42},
        pd.Series({"m2": 41, "ada@X.example": 42}),
        pd.DataFrame({"email": ["ada@x.example", "m2"], "daily_email_limit": [42, 41]}),
    ],
    ids=lambda given: type(given).__name__,
)
def test_an_address_names_its_mailbox(given: Any) -> None:
    """Addresses in any case and ids may be mixed, and a Series keeps its labels."""
    with scripted(with_addresses) as service, of.connect(service.url, "token", cache=None):
        changed = of.set_daily_email_limit(given)
        assert sent(service.requests) == {"m2": 41, "m1": 42}
        one = of.set_daily_email_limit("ADA@x.example", 9)
        of.set_daily_email_limit(pd.Series(["ada@x.example"]), 9)
    assert changed.set_index("id")["daily_email_limit"].to_dict() == {"m2": 41, "m1": 42}
    if isinstance(given, pd.Series):
        assert changed.index.equals(given.index)
    assert one["id"].tolist() == ["m1"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (({"eve@x.example": 9},), "'eve@x.example' belongs to no mailbox.*Pass the mailbox's id"),
        ((["m1", "bo@x.example"], 9), r"belongs to several mailboxes \(m2, m3\)"),
        (("no@address@", 9), "belongs to no mailbox"),
        (({"m1": 9, "ada@x.example": 8},), "'m1' has two limits, 9 and 8"),
    ],
)
def test_an_address_without_a_single_mailbox_changes_nothing(
    given: tuple[Any, ...], words: str
) -> None:
    """An address of no mailbox or of several is an error before any change."""
    with scripted(with_addresses) as service, of.connect(service.url, "token", cache=None):
        with pytest.raises(InvalidInputError, match=words):
            of.set_daily_email_limit(*given)
        assert sent(service.requests) == {}


def frame_of(**columns: Any) -> pd.DataFrame:
    """Return a frame of two mailboxes with these columns."""
    return pd.DataFrame({"id": ["m1", "m2"], "daily_email_limit": [9, 9]} | columns)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (({"m1": 9}, 9), "Omit limit="),
        ((frame_of(), 9), "Omit limit="),
        ((["m1", None], 9), "1 of 2 mailboxes are missing"),
        *((("m1", bad), "limit takes a whole number") for bad in (None, True, 9.5, "x")),
        *(
            (({"m1": 9, "m2": bad},), "mailbox 'm2' takes a whole")
            for bad in (9.5, "x", True, np.True_)
        ),
        (({"m1": 9, "m2": None},), "1 mailbox has no limit, such as 'm2'"),
        ((frame_of(daily_email_limit=[9.5, 9.0]),), "takes a whole number, not float"),
        (
            (frame_of(daily_email_limit=pd.array([9, None], "Int64")),),
            r"1 mailbox has no limit, such as 'm2' \(position 1\)",
        ),
        ((frame_of(id=["m1", None]),), "1 of 2 mailboxes are missing"),
        ((pd.Series(["m1", "m2"]),), "limit takes a whole number"),
        ((pd.Series({"m1": 9.5}),), "mailbox 'm1' takes a whole number"),
        ((pd.Series([9, 8]),), "2 of 2 mailboxes are missing or not text"),
        ((frame_of(id=["m1", "m1 "], daily_email_limit=[9, 8]),), "two limits, 9 and 8"),
        (({"m1": 9, " m1": 8},), "two limits"),
        (({None: 9},), "1 of 1 mailboxes are missing"),
        ((frame_of().rename(columns={"id": "ID"}),), "no column 'id'.* Did you mean 'ID'"),
        ((frame_of().drop(columns="daily_email_limit"),), "no column 'daily_email_limit'"),
    ],
)
def test_invalid_limits_send_no_request(given: tuple[Any, ...], words: str) -> None:
    """A missing id, or a missing, invalid or ambiguous limit, is an error before requests."""
    with scripted([]) as service, of.connect(service.url, "token", cache=None):
        with pytest.raises(InvalidInputError, match=words):
            of.set_daily_email_limit(*given)
        assert service.requests == []


IDS = ["m1", "m2", "m3"]


def test_several_limits_are_changed(client: Client) -> None:
    """The result has the Series' index and one row per mailbox; no ids give the same columns."""
    ids = of.mailboxes()["id"].iloc[[2, 0, 2]]
    frame = of.set_daily_email_limit(ids, 41)
    assert list(frame.columns) == [*spec.columns(spec.MAILBOX), "outcome", "detail"]
    assert frame["id"].tolist() == ids.tolist()
    assert frame["outcome"].tolist() == ["changed"] * 3
    assert frame["daily_email_limit"].tolist() == [41] * 3
    pd.testing.assert_index_equal(frame.index, ids.index)
    listed = of.mailboxes().set_index("id")["daily_email_limit"]
    assert listed[ids].eq(41).all()
    assert list(of.set_daily_email_limit([], 41)) == list(frame)


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
