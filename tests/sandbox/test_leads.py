"""Adding leads in the sandbox: rejected requests, skipped leads and stored leads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from outreach_frames import spec
from outreach_frames.sandbox import Sandbox
from tests.sandbox.http import Api

Lead = dict[str, Any]

NUMBERS = count()

SKIPPED_LISTS = [
    field.name for field in spec.ADD_LEADS_RESULT if field.name.endswith(spec.SKIPPED_SUFFIX)
]


@pytest.fixture
def open_id(sandbox: Sandbox) -> str:
    """Return the id of a sequence that accepts any lead."""
    return sandbox.sequence_ids["accepts_any"]


def new_lead(**more: object) -> Lead:
    """Return a lead that is not in the world yet."""
    number = next(NUMBERS)
    return {
        "email": f"lead{number}@example.com",
        "profnet_url": f"https://profnet.example/in/lead-{number}",
        **more,
    }


def reference(lead: Lead) -> Lead:
    """Return a lead as the result lists show it."""
    return {name: lead.get(name) for name in spec.LEAD_IDENTIFIERS}


def identifiers(sandbox: Sandbox, sequence_id: str) -> list[Lead]:
    """Return the identifiers of the stored leads."""
    return [reference(lead) for lead in sandbox.leads(sequence_id)]


def lists(result: dict[str, Any]) -> dict[str, Any]:
    """Return the lists of a result that are not empty."""
    return {name: value for name, value in result.items() if isinstance(value, list) and value}


NINES = {f"field_{number}": "x" for number in range(spec.MAX_DATA_FIELDS)}


class TestMalformed:
    """Malformed requests return status 400 and store nothing."""

    # What the OpenAPI document excludes is rejected too; see `test_conformance`.
    BODIES: tuple[dict[str, Any], ...] = (
        {},
        {"leads": []},
        {"leads": [{}]},
        {"leads": [{"email": None, "profnet_url": None}]},
        {"leads": [{"data": {"profnet_url": "https://profnet.example/in/anna"}}]},
        *(
            {"leads": [{"email": text}]}
            for text in ("", "unknown", "N/A", "-", "anna\0@example.com")
        ),
        {"leads": [{"email": f"{'a' * 1013}@example.com"}]},
        *({"leads": [{"profnet_url": text}]} for text in ("", "nan", "http://[")),
        {"leads": [{"profnet_url": "https://profnet.example/in/\0anna"}]},
        {"leads": [{"profnet_url": f"https://profnet.example/in/{'a' * 1000}"}]},
        {"leads": [{"profnet_url": "https://profnet.example"}]},
        {"leads": [new_lead()], "settings": {"leads_distribution": "custom_mailboxes"}},
    )
    MEMBERS = (
        {"data": {**NINES, "one_more": "x"}},
        {"data": {"a" * (spec.MAX_DATA_NAME_LENGTH + 1): "x"}},
        {"data": {"a": "x" * (spec.MAX_DATA_VALUE_LENGTH + 1)}},
        *({"data": {name: "x"}} for name in ("", "First", "first name", "1st", "größe", "first\n")),
        {"overrides": {"ignore_everything": True}},
        *({"overrides": {field.name: 1}} for field in spec.OVERRIDES),
    )

    @pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body)[:70])
    def test_bodies(self, api: Api, open_id: str, body: object) -> None:
        """A malformed body is rejected."""
        before = api.sandbox.leads(open_id)
        response = api.send("POST", f"/sequences/{open_id}/leads", json=body)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_request")
        assert api.sandbox.leads(open_id) == before

    @pytest.mark.parametrize("member", MEMBERS, ids=lambda member: repr(member)[:70])
    def test_leads(self, api: Api, open_id: str, member: Lead) -> None:
        """One malformed lead rejects the whole request, and no lead is stored."""
        before = api.sandbox.leads(open_id)
        response = api.add(open_id, [new_lead(), new_lead(**member), new_lead()])
        assert response.status_code == 400
        assert "leads[1]" in response.json()["error"]["message"]
        assert api.sandbox.leads(open_id) == before

    def test_too_many(self, api: Api, open_id: str) -> None:
        """250 leads are accepted, and 251 are rejected."""
        before = api.sandbox.leads(open_id)
        leads = [new_lead() for _ in range(spec.MAX_LEADS_PER_REQUEST + 1)]
        assert api.add(open_id, leads).status_code == 400
        assert api.sandbox.leads(open_id) == before
        assert api.add(open_id, leads[1:]).json()["total_added_to_sequence"] == 250
        assert identifiers(api.sandbox, open_id)[len(before) :] == leads[1:]

    @pytest.mark.parametrize(
        "data",
        [
            NINES,
            {"a" * spec.MAX_DATA_NAME_LENGTH: "x" * spec.MAX_DATA_VALUE_LENGTH},
            {"email": "", "profnet_url": "-", "a1_": "\n\0'\"; --"},
        ],
        ids=len,
    )
    def test_within_the_limits(self, api: Api, open_id: str, data: Lead) -> None:
        """Values at the limits are accepted and stored unchanged."""
        lead = new_lead(data=data)
        assert api.add(open_id, [lead]).status_code == 200
        assert api.sandbox.leads(open_id)[-1] == {**reference(lead), "data": data}


class TestUnprocessable:
    """Well-formed requests that cannot be completed return status 422 and store nothing."""

    def codes(self, api: Api, shows: str, leads: list[Lead], **more: object) -> list[str]:
        """Return the error codes of a response, after checking that no leads are stored."""
        sequence_id = api.sandbox.sequence_ids[shows]
        before = api.sandbox.leads(sequence_id)
        response = api.add(sequence_id, leads, **more)
        if response.status_code == 200:
            return []
        assert response.status_code == 422
        assert api.sandbox.leads(sequence_id) == before
        (errors,) = response.json().values()
        assert response.json() == {"validation_errors": errors}
        assert all(set(error) == {"error_code", "message"} for error in errors)
        assert all(error["message"] for error in errors)
        return [error["error_code"] for error in errors]

    @pytest.mark.parametrize("code", spec.ADD_LEADS_ERRORS)
    def test_every_code(self, api: Api, code: str) -> None:
        """Every error code has a sequence that causes only this code."""
        assert self.codes(api, code, [new_lead()]) == [code]

    @pytest.mark.parametrize("status", spec.SEQUENCE_STATUSES)
    def test_statuses(self, api: Api, status: str) -> None:
        """Only active and paused sequences accept leads."""
        plain = [
            each["id"]
            for page in api.pages("/sequences", {"status": status})
            for each in page["sequences"]
            if each["id"] not in api.sandbox.sequence_ids.values()
        ]
        assert plain
        for sequence_id in plain:
            response = api.add(sequence_id, [new_lead()])
            assert response.status_code == (200 if status in {"active", "paused"} else 422)
            if response.status_code == 422:
                codes = [error["error_code"] for error in response.json()["validation_errors"]]
                assert codes == ["invalid_sequence_status"]

    def test_fields_of_leads(self, api: Api) -> None:
        """One lead without a field that the sequence requires is an error; empty means missing."""
        full = {"first_name": "Anna", "company_name": "Brightforge"}
        good = new_lead(data=full)
        for data in ({}, {"first_name": "Anna"}, {**full, "company_name": ""}):
            leads = [good, new_lead(data=data)]
            assert self.codes(api, "missing_lead_field", leads) == ["missing_lead_field"]
        assert self.codes(api, "missing_lead_field", [good]) == []

    @pytest.mark.parametrize(
        ("shows", "expected"),
        [
            ("needs_email", ["missing_lead_field"]),
            ("paused", ["missing_lead_field"]),
            ("conditional_email", []),
            ("accepts_any", []),
        ],
    )
    def test_email_stages(self, api: Api, shows: str, expected: list[str]) -> None:
        """Email stages without conditional logic require every lead's email, and others do not."""
        assert self.codes(api, shows, [new_lead(), new_lead(email=None)]) == expected
        assert self.codes(api, shows, [new_lead()]) == []

    def test_limit_of_leads(self, api: Api) -> None:
        """A sequence accepts leads up to the account's limit."""
        leads = [new_lead() for _ in range(11)]
        assert self.codes(api, "nearly_full", leads) == ["max_leads_threshold_reached"]
        assert self.codes(api, "nearly_full", leads[:10]) == []
        assert self.codes(api, "nearly_full", leads[10:]) == ["max_leads_threshold_reached"]

    def test_custom_mailboxes(self, api: Api) -> None:
        """Custom mailboxes must be connected and active, even if the sequence has valid ones."""
        boxes = [box for page in api.pages("/mailboxes") for box in page["mailboxes"]]
        by_status = {box["status"]: box["email"] for box in boxes}
        good = by_status["active"]

        def settings(*emails: str) -> dict[str, object]:
            return {"leads_distribution": "custom_mailboxes", "mailboxes": emails}

        for bad in (by_status["inactive"], by_status["needs_reconnection"], "nobody@example.com"):
            codes = self.codes(api, "accepts_any", [new_lead()], settings=settings(good, bad))
            assert codes == ["mailbox_unusable"]
        assert self.codes(api, "accepts_any", [new_lead()], settings=settings(good.upper())) == []
        assert self.codes(api, "mailbox_unusable", [new_lead()], settings=settings(good)) == []


class TestResult:
    """The outcome of each lead."""

    def known(self, sandbox: Sandbox) -> dict[str, list[Lead]]:
        """Return the leads with both identifiers by the check that skips them."""
        known = {
            "in_exclusion_list_and_skipped": sandbox.exclusion_list,
            "recently_contacted_and_skipped": sandbox.recently_contacted,
            "in_other_draft_sequences_and_skipped": sandbox.draft_leads,
            "in_other_active_sequences_and_skipped": sandbox.active_leads,
        }
        return {
            name: [lead for lead in leads if all(lead.values())] for name, leads in known.items()
        }

    @pytest.mark.parametrize("name", sorted(spec.CHECK_OVERRIDES))
    def test_skipped(self, api: Api, open_id: str, name: str) -> None:
        """A lead that a check skips is in the check's list, with its identifiers unchanged."""
        known = self.known(api.sandbox)[name][0]
        for sent in (
            known,
            {"email": known["email"].upper()},
            {"profnet_url": known["profnet_url"].replace("https://", "http://WWW.") + "/"},
            {"email": known["email"], "profnet_url": "https://profnet.example/in/other"},
            {**known, "overrides": {field.name: False for field in spec.OVERRIDES}},
        ):
            new = new_lead()
            result = api.add(open_id, [sent, new]).json()
            assert (result["total"], result["total_added_to_sequence"]) == (2, 1)
            assert lists(result) == {name: [reference(sent)]}
            assert identifiers(api.sandbox, open_id)[-1] == new

    @pytest.mark.parametrize("name", sorted(spec.CHECK_OVERRIDES))
    @pytest.mark.parametrize("override", [field.name for field in spec.OVERRIDES])
    def test_overrides(self, api: Api, sandbox: Sandbox, name: str, override: str) -> None:
        """An override disables only its own check."""
        sequence_id = sandbox.sequence_ids["needs_email"]
        place = [field.name for field in spec.OVERRIDES].index(override)
        known = self.known(sandbox)[name][1 + place]
        result = api.add(sequence_id, [{**known, "overrides": {override: True}}]).json()
        if spec.CHECK_OVERRIDES[name] == override:
            assert (result["total_added_to_sequence"], lists(result)) == (1, {})
        else:
            assert (result["total_added_to_sequence"], lists(result)) == (0, {name: [known]})

    def test_already_in_the_sequence(self, api: Api, open_id: str) -> None:
        """A lead already in the sequence, by either identifier, is skipped despite overrides."""
        lead = new_lead(data={"first_name": "Anna"})
        api.add(open_id, [lead])
        stored = api.sandbox.leads(open_id)
        everything = {field.name: True for field in spec.OVERRIDES}
        for sent in (
            {**lead, "data": {"first_name": "Other"}, "overrides": everything},
            {"email": lead["email"].title()},
            {"profnet_url": lead["profnet_url"]},
        ):
            result = api.add(open_id, [sent]).json()
            assert lists(result) == {"already_in_sequence_and_skipped": [reference(sent)]}
        assert api.sandbox.leads(open_id) == stored

    def test_first_check_wins(self, api: Api, sandbox: Sandbox, open_id: str) -> None:
        """A lead that several checks skip is only in the first list of the result."""
        known = self.known(sandbox)
        mixed = {
            "email": known[SKIPPED_LISTS[1]][-1]["email"],
            "profnet_url": known[SKIPPED_LISTS[0]][-1]["profnet_url"],
        }
        assert lists(api.add(open_id, [mixed]).json()) == {SKIPPED_LISTS[0]: [mixed]}
        passing = {**mixed, "overrides": {spec.CHECK_OVERRIDES[SKIPPED_LISTS[0]]: True}}
        assert lists(api.add(open_id, [passing]).json()) == {SKIPPED_LISTS[1]: [mixed]}

    def test_duplicates(self, api: Api, open_id: str) -> None:
        """The first of leads with the same identifier is added, and the value is listed once."""
        first, other, third = new_lead(), new_lead(), new_lead(profnet_url=None)
        leads = [
            first,
            {"email": first["email"].upper()},
            {"email": first["email"], "profnet_url": other["profnet_url"] + "/"},
            other,
            third,
            {"profnet_url": other["profnet_url"]},
        ]
        result = api.add(open_id, leads).json()
        assert (result["total"], result["total_added_to_sequence"]) == (6, 2)
        assert lists(result) == {
            "duplicate_emails": [first["email"]],
            "duplicate_profnet_urls": [other["profnet_url"] + "/"],
        }
        assert identifiers(api.sandbox, open_id)[-2:] == [first, third]


def test_parallel_requests_add_a_lead_once(api: Api, sandbox: Sandbox, open_id: str) -> None:
    """The same leads sent 16 times in parallel are added once and skipped 15 times."""
    before = len(sandbox.leads(open_id))
    leads = [new_lead() for _ in range(40)]

    def send(_: int) -> int:
        with Api(sandbox) as own:
            return int(own.add(open_id, leads).json()["total_added_to_sequence"])

    with ThreadPoolExecutor(16) as pool:
        added = list(pool.map(send, range(16)))
    assert sorted(added) == [0] * 15 + [40]
    assert identifiers(sandbox, open_id)[before:] == leads
