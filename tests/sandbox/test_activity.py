"""Events of added leads in the sandbox as days pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from outreach_frames.sandbox import Sandbox, serve
from tests.sandbox.http import PEOPLE, Api, refused

Event = dict[str, str]
LEADS = [{"email": f"lead{number}@example.com"} for number in range(120)]


@pytest.fixture
def own() -> Iterator[Api]:
    """Start a sandbox for this test, whose clock the test advances."""
    with serve(people=PEOPLE, seed=3) as sandbox, Api(sandbox) as api:
        yield api


def add(api: Api, leads: list[dict[str, Any]], shows: str = "needs_email") -> str:
    """Add leads to a sequence, and return its id."""
    sequence_id = api.sandbox.sequence_ids[shows]
    response = api.add(sequence_id, leads)
    assert response.json()["total_added_to_sequence"] == len(leads)
    return sequence_id


def contact(api: Api, lead: dict[str, Any]) -> dict[str, Any]:
    """Read the contact with a lead's email."""
    response = api.get(f"/contacts/email/{lead['email']}")
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


def activity(api: Api, lead: dict[str, Any]) -> list[Event]:
    """Read the events of a lead's contact."""
    events: list[Event] = contact(api, lead)["recent_activity"]
    return events


def counts(api: Api, leads: list[dict[str, Any]]) -> Counter[str]:
    """Count leads' events by type."""
    return Counter(event["event_type"] for lead in leads for event in activity(api, lead))


def kinds(sandbox: Sandbox, steps: tuple[int, ...]) -> list[list[str]]:
    """Return the types of each new lead's events after some days."""
    with Api(sandbox) as api:
        add(api, LEADS[:40])
        for days in steps:
            sandbox.advance(days)
        return [[event["event_type"] for event in activity(api, lead)] for lead in LEADS[:40]]


def test_an_added_lead_is_a_contact(own: Api) -> None:
    """An added lead becomes a contact at once, with the sent fields, no activity and a valid id."""
    sent = {
        "email": "Anna.Larsen@example.com",
        "profnet_url": "profnet.example/in/anna-große",
        "data": {"first_name": "Anna", "company_name": "Lumenforge", "title": "", "other": "x"},
    }
    add(own, [sent], "accepts_any")
    add(own, [{"profnet_url": "https://profnet.example/in/bo"}], "accepts_any")
    found = contact(own, {"email": "anna.larsen@EXAMPLE.com"})
    assert {name: value for name, value in found.items() if value and name != "id"} == {
        "email": "Anna.Larsen@example.com",
        "profnet_url": "https://profnet.example/in/anna-gro%C3%9Fe",
        "first_name": "Anna",
        "company_name": "Lumenforge",
    }
    (by_id,) = own.get("/contacts", {"ids[]": found["id"]}).json()["contacts"]
    assert by_id == {name: found[name] for name in found if name != "recent_activity"}
    assert refused(own.get("/contacts/email/bo@example.com"), 404)


def test_events_occur_as_days_pass(own: Api) -> None:
    """No events occur before days pass, and then all events are dated within these days."""
    before = datetime.now(UTC).replace(microsecond=0)
    sequence_id = add(own, LEADS)
    after = datetime.now(UTC)
    assert counts(own, LEADS[:20]) == {}
    own.sandbox.set_response_rates(sequence_id, open_rate=0.5, reply_rate=0.25)
    own.sandbox.advance(1)
    early = [activity(own, lead) for lead in LEADS]
    own.sandbox.advance(29)
    total: Counter[str] = Counter()
    for lead, first in zip(LEADS, early, strict=True):
        found = contact(own, lead)
        events = found["recent_activity"]
        assert events[len(events) - len(first) :] == first
        times = [datetime.fromisoformat(event["event_at"]) for event in events]
        assert times == sorted(times, reverse=True)
        assert before < times[-1] < after + timedelta(days=1)
        assert times[0] < after + timedelta(days=10)
        kinds = [event["event_type"] for event in reversed(events)]
        assert kinds == ["email_sent", "email_opened", "email_replied"][: len(kinds)]
        assert {event["sequence_name"] for event in events} == {"CFO outreach DACH"}
        assert found["last_contacted_at"] == events[-1]["event_at"]
        total.update(kinds)
    # The shares are within four standard deviations of the rates.
    assert total["email_sent"] == 120
    assert 38 < total["email_opened"] < 82
    assert 11 < total["email_replied"] < 49


def test_events_depend_on_the_seed_and_the_lead_only() -> None:
    """The same seed gives the same events, however the days are split; other seeds give others."""
    found = []
    for seed, steps in ((3, (30,)), (3, (1, 2, 3, 4, 20)), (4, (30,))):
        with serve(people=PEOPLE, seed=seed) as sandbox:
            found.append(kinds(sandbox, steps))
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_rates_apply_to_later_events_of_a_sequence(own: Api) -> None:
    """Rates of 0 and 1 are exact, for one active sequence, and do not change past events."""
    add(own, LEADS[110:], "paused")
    groups = LEADS[:30], LEADS[30:60]
    ids = add(own, groups[0]), add(own, groups[1], "accepts_any")
    own.sandbox.set_response_rates(ids[0], open_rate=1, reply_rate=0)
    own.sandbox.set_response_rates(ids[1], open_rate=0, reply_rate=1.0)
    own.sandbox.advance(30)
    assert counts(own, groups[0]) == {"email_sent": 30, "email_opened": 30}
    assert counts(own, groups[1]) == {"email_sent": 30, "email_replied": 30}
    own.sandbox.set_response_rates(ids[0], reply_rate=1)
    own.sandbox.advance(30)
    assert counts(own, groups[0]) == {"email_sent": 30, "email_opened": 30}
    add(own, LEADS[60:70])
    own.sandbox.advance(30)
    assert counts(own, LEADS[60:70])["email_replied"] == 10
    assert counts(own, LEADS[110:]) == {}


def test_rates_are_checked(sandbox: Sandbox) -> None:
    """A rate out of range, an unknown sequence and a stopped sandbox are errors."""
    sequence_id = sandbox.sequence_ids["needs_email"]
    for rate in (-0.01, 1.01, float("nan"), "5%"):
        rates: dict[str, Any] = {"open_rate": rate}
        with pytest.raises(ValueError, match="open_rate must be a number from 0 to 1"):
            sandbox.set_response_rates(sequence_id, **rates)
    with pytest.raises(ValueError, match="no sequence with the id 'x'"):
        sandbox.set_response_rates("x", reply_rate=0.1)
    with serve(people=5) as stopped:
        pass
    with pytest.raises(RuntimeError, match="is stopped"):
        stopped.set_response_rates(sequence_id)
