"""Recent activity of a report's people."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import AuthenticationError, InvalidInputError, OutreachWarning
from outreach_frames.leads.sending.report import SubmissionReport
from tests import scripted as script
from tests.examples import share_of_examples
from tests.leads.sending.lead_service import added
from tests.scripted import Received, Reply, scripted

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*no email address"),
    pytest.mark.filterwarnings("ignore:No contact was found"),
]

DTYPES = {
    "row": "Int64",
    "contact_id": "str",
    "email": "str",
    "event_at": "datetime64[us, UTC]",
    "event_type": "str",
    "sequence_type": "str",
    "sequence_name": "str",
}
SENT_AT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
NAMES = "abcd"
STATUSES = ["added", "present", "unknown", "already_in_sequence", "rejected", "not_sent", "invalid"]


def sequence_list(**names: str | None) -> Reply:
    """Reply with active sequences of these ids and names."""
    rows = [{"id": one, "name": name, "status": "active"} for one, name in names.items()]
    return script.json({"sequences": rows, "_links": {}})


NAMED = sequence_list(s1="Spring", s2="Autumn")


class Contacts:
    """A service with contacts, which records each request for a contact."""

    def __init__(self) -> None:
        self.events: dict[str, Any] = {}
        self.asked: list[str] = []
        self.refused, self.refusal = "", 401
        self.sequences: Reply = NAMED

    def __call__(self, received: Received) -> Reply:
        """Reply to a request."""
        if received.method == "POST":
            return added(received)
        if "/contacts/email/" not in received.target:
            return self.sequences
        email = unquote(received.target.rpartition("/")[2])
        self.asked.append(email)
        if email == self.refused:
            return script.json({}, self.refusal)
        if email.lower() not in self.events:
            return script.json({}, 404)
        contact = {"id": f"id of {email.lower()}", "email": email.lower()}
        return script.json({**contact, "recent_activity": self.events[email.lower()]})


@pytest.fixture(scope="module")
def service() -> Contacts:
    """Return the service's contacts."""
    return Contacts()


@pytest.fixture(scope="module")
def connection(
    service: Contacts, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Client, SubmissionReport]]:
    """Return a client with a cache, and a report of eight rows, two without an address."""
    cache = tmp_path_factory.mktemp("cache") / "cache.sqlite"
    with scripted(service) as running:
        with Client(running.url, "token", cache=cache, backoff=0, workers=2) as client:
            urls = [f"https://profnet.example/in/{n}" for n in range(8)]
            emails = [*(f"{name}@example.com" for name in NAMES * 2)]
            emails[4:6] = [email.upper() for email in emails[4:6]]
            frame = pd.DataFrame({"email": emails, "profnet_url": urls}, dtype="str")
            frame.loc[6:, "email"] = None
            yield client, frame.outreach.add_to_sequence("s1", client=client, progress=False)


@pytest.fixture
def report(service: Contacts, connection: tuple[Client, SubmissionReport]) -> SubmissionReport:
    """Reset the service and the report's statuses and times; return the report."""
    service.events, service.asked, service.refused, service.refusal = {}, [], "", 401
    service.sequences = NAMED
    of.clear_cache(client=connection[0])
    made = connection[1]
    made.rows["status"] = "added"
    made.rows["sent_at"] = pd.Timestamp(SENT_AT).as_unit("us")
    return made


def event(hours: float, kind: str = "opened", **more: Any) -> dict[str, Any]:
    """Make an event at a time in hours after sending."""
    at = (SENT_AT + timedelta(hours=hours)).isoformat()
    names = {"sequence_type": "outbound", "sequence_name": "Spring"}
    return {"event_at": at, "event_type": kind, **names, **more}


EVENTS = st.lists(
    st.builds(
        event,
        st.integers(-60, 60),
        st.sampled_from(["opened", "email replied", "x"]),
        sequence_name=st.sampled_from(["Spring", "Autumn"]),
    ),
    max_size=4,
)
SINCE: Any = st.one_of(
    st.sampled_from(["sent", None]),
    st.integers(-60, 60).map(lambda h: SENT_AT + timedelta(hours=h)),
)


@pytest.mark.long
@share_of_examples(1)
@given(
    events=st.dictionaries(st.sampled_from([f"{name}@example.com" for name in NAMES]), EVENTS),
    statuses=st.lists(st.sampled_from(STATUSES), min_size=8, max_size=8),
    hours=st.lists(st.integers(-60, 60), min_size=8, max_size=8),
    since=SINCE,
    all_sequences=st.booleans(),
)
def test_against_brute_force(  # noqa: PLR0917 - fixtures
    events: dict[str, list[Any]],
    statuses: list[str],
    hours: list[int],
    since: Any,
    all_sequences: bool,
    service: Contacts,
    connection: tuple[Client, SubmissionReport],
) -> None:
    """Each row has its person's events of the sequence since sending."""
    report = connection[1]
    report.rows["status"] = statuses
    times = [SENT_AT + timedelta(hours=each) for each in hours]
    report.rows["sent_at"] = pd.Series(times, dtype="datetime64[us, UTC]")
    service.events, service.asked, service.refused = events, [], ""
    service.sequences = NAMED
    emails = report.frame["email"].tolist()
    expected, requested = [], set()
    for row, (email, status) in enumerate(zip(emails, statuses, strict=True)):
        is_read = status in STATUSES[:4] and isinstance(email, str)
        if is_read:
            requested.add(email.lower())
            limit = times[row] if since == "sent" else since
            for one in events.get(email.lower(), []):
                at = datetime.fromisoformat(one["event_at"])
                is_own = all_sequences or one["sequence_name"] == "Spring"
                if is_own and (limit is None or at >= limit):
                    expected.append((row, email, at, one["event_type"]))
    events_read = report.recent_activity(since=since, all_sequences=all_sequences)
    assert events_read.dtypes.astype(str).to_dict() == DTYPES
    columns = events_read[["row", "email", "event_at", "event_type"]]
    assert list(columns.itertuples(index=False, name=None)) == expected
    assert sorted(map(str.lower, service.asked)) == sorted(requested)


@pytest.mark.parametrize(
    ("sequences", "why"),
    [
        (sequence_list(s2="Autumn"), "name was not found"),
        (sequence_list(s1=None), "name was not found"),
        (sequence_list(s1="Spring", s2="Spring"), "several sequences have its name"),
        (script.json({}, 403), "could not be listed"),
    ],
)
def test_a_sequence_without_its_own_name(
    sequences: Reply, why: str, service: Contacts, report: SubmissionReport
) -> None:
    """If its name is unknown or not unique, a warning says that all events were kept."""
    service.sequences = sequences
    service.events = {"a@example.com": [event(1), event(1, sequence_name="Autumn")]}
    with pytest.warns(OutreachWarning, match=f"Events of all sequences were kept.*{why}"):
        events = report.recent_activity()
    assert events["row"].tolist() == [0, 0, 4, 4]
    assert report.recent_activity(all_sequences=True).equals(events)


def test_times(service: Contacts, report: SubmissionReport) -> None:
    """`since` accepts dates and times of many types, in UTC by default; other values are errors."""
    service.events = {"a@example.com": [event(hours) for hours in (40, 15, 14.25, 0, -20)]}
    east = timezone(timedelta(hours=2))
    for since, number in {
        "sent": 4,
        None: 5,
        "2026-03-03": 2,
        "2026-03-03T00:00+01:00": 3,
        " 2026-03-02T09:30:00.000001Z": 3,
        date(2026, 3, 3): 2,
        datetime(2026, 3, 3, 2, tzinfo=east): 2,
        datetime(2026, 3, 3, 1, 45, tzinfo=east): 3,
        pd.Timestamp("2026-03-02 09:30"): 4,
        np.datetime64("2027-01-01"): 0,
    }.items():
        service.asked.clear()
        assert report.recent_activity(since=since)["row"].isin([0, 4]).sum() == 2 * number, since
        assert len(service.asked) == 4
    service.asked.clear()
    for since in ("soon", "04.01.2027", "", 3, pd.NaT, ["sent"], pd.Series(["sent"])):
        with pytest.raises(InvalidInputError, match="is not a time"):
            report.recent_activity(since=since)
    report.rows.loc[0, "sent_at"] = pd.NaT
    with pytest.raises(InvalidInputError, match="1 row of this report has no sent_at"):
        report.recent_activity()
    assert service.asked == []


def test_unreadable_activity_is_reported(service: Contacts, report: SubmissionReport) -> None:
    """Events without a time or type are kept; warnings count unreadable activity."""
    more = {"channel": "mail", "email": "x", "row": 7}
    service.events = {
        "a@example.com": [event(1), event(1) | {"event_at": "last week"}, event(1, **more)],
        "b@example.com": [event(1, event_at=None, event_type=None, sequence_name=None)],
        "c@example.com": None,
        "d@example.com": [{"event_at": 5, "event_type": 7}],
    }
    with pytest.warns(OutreachWarning) as caught:
        events = report.recent_activity()
    assert events.dtypes.astype(str).to_dict() == DTYPES
    assert events["row"].tolist() == [0, 0, 0, 1, 4, 4, 4, 5]
    messages = "\n".join(str(warning.message) for warning in caught)
    assert "2 events without a readable event_at" in messages
    assert "1 event without a readable event_type" in messages
    assert "1 event without a readable sequence_name" in messages
    assert "activity of 2 contacts is missing or cannot be read" in messages
    assert "channel, email, row." in messages


def test_an_error_has_the_partial_result(service: Contacts, report: SubmissionReport) -> None:
    """An error's `.partial` has the events that were read before the error."""
    service.events = {f"{name}@example.com": [event(1)] for name in NAMES}
    service.refused = "d@example.com"
    with pytest.raises(AuthenticationError) as raised:
        report.recent_activity()
    partial = raised.value.partial
    assert partial.dtypes.astype(str).to_dict() == DTYPES
    assert set(partial["row"]) <= {0, 1, 2, 4, 5}
    assert len(partial)


def test_rows_without_events_are_counted(service: Contacts, report: SubmissionReport) -> None:
    """Warnings count the rows without an address and the addresses without a contact."""
    service.events = {f"{name}@example.com": [event(1)] for name in "abd"}
    service.refused, service.refusal = "b@example.com", 451
    with pytest.warns(OutreachWarning) as caught:
        events = report.recent_activity()
    assert events["row"].tolist() == [0, 3, 4]
    messages = "\n".join(str(warning.message) for warning in caught)
    assert "refuses 1 of 4 contacts" in messages
    assert "No contact was found for 1 of 3 addresses" in messages
    assert "2 rows that may be in the sequence have no email address" in messages


def test_no_rows_to_read(service: Contacts, report: SubmissionReport) -> None:
    """Without rows to read, frames have the usual columns, and no request is sent."""
    report.rows["status"] = "not_sent"
    events = report.recent_activity()
    assert events.dtypes.astype(str).to_dict() == DTYPES
    assert events.empty
    empty = pd.DataFrame({"email": pd.Series(dtype="str")}).outreach
    made = empty.add_to_sequence("s1", client=report._client)
    assert made.recent_activity().dtypes.astype(str).to_dict() == DTYPES
    dry = report.frame[:2].outreach.add_to_sequence("s1", client=report._client, dry_run=True)
    assert dry.recent_activity().empty
    urls = pd.DataFrame({"profnet_url": ["https://profnet.example/in/z"]}).outreach
    by_url = urls.add_to_sequence("s1", client=report._client)
    with pytest.warns(OutreachWarning, match="1 row that may be in the sequence has no email"):
        assert by_url.recent_activity().empty
    by_hand = SubmissionReport(report.frame[:1], report.rows[:1], sequence_id="s1")
    with pytest.raises(InvalidInputError, match="has no addresses"):
        by_hand.recent_activity()
    assert service.asked == []


def test_client(service: Contacts, report: SubmissionReport) -> None:
    """The report's client is used unless another is passed; a pickled report has none."""
    service.events = {"a@example.com": [event(1)]}
    assert b"token" not in pickle.dumps(report).replace(b"CancellationToken", b"")
    stored = pickle.loads(pickle.dumps(report))  # noqa: S301
    for made, options in ((report, {}), (stored, {"client": report._client})):
        assert len(made.recent_activity(**options)) == 2
    with scripted([script.json({}, 404)] * 9) as other:
        with of.connect(other.url, "other", cache=None) as client:
            for made, options in ((stored, {}), (report, {"client": client})):
                options |= {"all_sequences": True}
                with pytest.warns(OutreachWarning, match="for 4 of 4 .* check which account"):
                    assert made.recent_activity(**options).empty
            assert len(other.requests) == 8
