"""Test the sandbox with Schemathesis, which generates requests from the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from outreach_frames import spec
from tests.sandbox.http import Api

pytestmark = pytest.mark.long

# Operations with status 400 for requests that fit the schema: unknown cursors, or no ids.
STRICTER = (spec.LIST_SEQUENCES, spec.LIST_MAILBOXES, spec.GET_LEAD_LIST, spec.GET_CONTACTS)


def settings(api: Api, phases: dict[str, bool], examples: int) -> dict[str, Any]:
    """Return the settings, with ids of this world for paths and queries."""
    sandbox = api.sandbox
    contacts = api.get("/contacts", {"ids[]": sandbox.contact_ids[:20]}).json()["contacts"]
    mailboxes = [mailbox["id"] for mailbox in api.get("/mailboxes").json()["mailboxes"]]
    known = {
        (spec.ADD_LEADS, "path.id"): list(sandbox.sequence_ids.values()),
        (spec.GET_CONTACTS, "query.ids[]"): sandbox.contact_ids[:20],
        (spec.GET_CONTACT_BY_EMAIL, "path.email"): [
            contact["email"] for contact in contacts if contact["email"]
        ],
        (spec.GET_LEAD_LIST, "path.id"): sandbox.lead_list_ids,
        (spec.UPDATE_MAILBOX, "path.id"): mailboxes,
    }
    # A schema cannot express unknown ids and a sequence's required fields.
    accepted = ["200", "404", "422"]
    operations = [
        {
            "include-operation-id": endpoint.name,
            "parameters": {
                parameter: {"dictionary": endpoint.name, "probability": 0.9}
                for user, parameter in known
                if user is endpoint
            },
            "checks": {
                "positive_data_acceptance": {
                    "expected-statuses": [*accepted, "400"] if endpoint in STRICTER else accepted
                }
            },
        }
        for endpoint in spec.ENDPOINTS
    ]
    return {
        "base-url": sandbox.url,
        "seed": 1,
        "continue-on-failure": True,
        "headers": {"Authorization": f"Bearer {sandbox.api_key}"},
        "generation": {"max-examples": examples, "database": "none"},
        "phases": {name: {"enabled": wanted} for name, wanted in phases.items()},
        "dictionaries": {
            endpoint.name: {"values": values} for (endpoint, _), values in known.items()
        },
        "operations": operations,
    }


def failures(
    api: Api, phases: dict[str, bool], *, examples: int, has_all_filters: bool
) -> Iterator[str]:
    """Send requests generated from the served document, and yield the failures."""
    import schemathesis
    from schemathesis import engine
    from schemathesis.config import SchemathesisConfig
    from schemathesis.engine import events

    config = SchemathesisConfig.from_dict(settings(api, phases, examples))
    document = api.get("/openapi.json").json()
    filters = document["components"]["schemas"]["PeopleSearch"]["properties"]
    if not has_all_filters:
        # One filter per JSON type and format: each filter causes dozens of requests.
        alike = {(one.type, one.format): one.name for one in spec.FILTERS}
        for name in spec.FILTERS_BY_NAME.keys() - alike.values():
            del filters[name]
    schema = schemathesis.openapi.from_dict(document, config=config)
    met = set()
    for event in engine.from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            yield str(event)
        if not isinstance(event, events.ScenarioFinished):
            continue
        for key, checks in event.recorder.checks.items():
            response = event.recorder.interactions[key].response
            assert response is not None
            met.add((event.recorder.cases[key].value.operation.label, response.status_code))
            for check in checks:
                if check.failure_info is not None:
                    failure = check.failure_info.failure
                    yield f"{check.name}: {failure.message}\n{check.failure_info.code_sample}"
    # Fail if a status never occurred, because then it was not tested.
    wanted = {(endpoint.label, status) for endpoint in spec.ENDPOINTS for status in (200, 400)}
    wanted -= {(spec.GET_CONTACT_BY_EMAIL.label, 400)}
    wanted |= {(spec.ADD_LEADS.label, 422)}
    if not wanted <= met:
        yield f"never met: {wanted - met}"


def test_schemathesis_finds_no_failure(api: Api) -> None:
    """Hundreds of valid and invalid requests cause no server error or undocumented response."""
    phases = {"examples": False, "coverage": True, "fuzzing": True, "stateful": False}
    assert list(failures(api, phases, examples=5, has_all_filters=False)) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_schemathesis_finds_no_failure_in_long_runs(api: Api) -> None:
    """All filters, 500 more requests per operation, and follow-up requests cause no failure."""
    phases = {"examples": True, "coverage": True, "fuzzing": True, "stateful": True}
    assert list(failures(api, phases, examples=500, has_all_filters=True)) == []
