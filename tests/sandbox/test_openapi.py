"""The OpenAPI document is up to date, is served, and agrees with `spec` and the sandbox."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import requests

from docs.openapi.document import PATH, describe
from outreach_frames import spec
from outreach_frames.sandbox import Sandbox
from tests.sandbox.http import Api

DOCUMENT = describe()


def operation(endpoint: spec.Endpoint) -> dict[str, Any]:
    """Return an endpoint's operation in the document."""
    return DOCUMENT["paths"][endpoint.path][endpoint.method.lower()]


def problems(value: object, schema: dict[str, Any]) -> list[str]:
    """Return the errors of a value against a schema of the document."""
    from jsonschema_rs import Draft202012Validator

    whole = {**schema, "components": DOCUMENT["components"]}
    errors = Draft202012Validator(whole, validate_formats=True).iter_errors(value)
    return [f"{error.instance_path}: {error.message}" for error in errors]


def described(endpoint: spec.Endpoint, response: requests.Response) -> bool:
    """Return whether the document describes a response."""
    said = operation(endpoint)["responses"][str(response.status_code)]
    if "$ref" in said:
        said = DOCUMENT["components"]["responses"][said["$ref"].rpartition("/")[2]]
    return problems(response.json(), said["content"]["application/json"]["schema"]) == []


def places(inside: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects of the document except those in examples."""
    if isinstance(inside, dict):
        yield inside
        for name, inner in inside.items():
            if name != "example":
                yield from places(inner)
    elif isinstance(inside, list):
        for inner in inside:
            yield from places(inner)


def test_the_stored_document_is_up_to_date() -> None:
    """The served file is what `python -m docs.openapi` writes."""
    assert json.loads(PATH.read_text(encoding="utf-8")) == DOCUMENT


def test_it_is_served_without_a_token(sandbox: Sandbox) -> None:
    """The sandbox serves the stored file unchanged, without a token."""
    response = requests.get(f"{sandbox.url}/openapi.json", timeout=20)
    assert response.content == PATH.read_bytes()
    assert response.headers["Content-Type"] == "application/json"


def test_every_example_fits_its_schema() -> None:
    """All examples of parameters, bodies and responses fit their schemas."""
    found = [place for place in places(DOCUMENT) if {"schema", "example"} <= set(place)]
    assert len(found) > 2 * len(spec.ENDPOINTS)
    for place in found:
        assert problems(place["example"], place["schema"]) == []


@pytest.mark.parametrize("endpoint", spec.ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_operations_agree_with_spec(endpoint: spec.Endpoint) -> None:
    """Each operation has the parameters, body, result and errors of spec and of the sandbox."""
    said = operation(endpoint)
    assert said["operationId"] == endpoint.name
    parameters = [(each["in"], each["name"]) for each in said.get("parameters", ())]
    assert parameters == [
        *(("path", name) for name in re.findall(r"\{(\w+)\}", endpoint.path)),
        *(("query", field.name) for field in endpoint.query),
    ]
    assert ("requestBody" in said) == bool(endpoint.body)
    needed = {"200", "400", "401", *map(str, endpoint.refusals)}
    if endpoint.body:
        needed.add("413")
    if "{" in endpoint.path:
        needed.add("404")
    assert set(said["responses"]) == needed


def test_the_whole_world_fits_the_document(api: Api) -> None:
    """All people, contacts, sequences, mailboxes and lead lists fit the document."""
    ids = api.sandbox.contact_ids
    for start in range(0, len(ids), spec.MAX_CONTACT_IDS):
        page = {"ids[]": ids[start : start + spec.MAX_CONTACT_IDS]}
        response = api.get("/contacts", page)
        assert described(spec.GET_CONTACTS, response)
        for email in filter(None, (one["email"] for one in response.json()["contacts"])):
            path = f"/contacts/email/{quote(email, safe='')}"
            assert described(spec.GET_CONTACT_BY_EMAIL, api.get(path))
    for lead_list_id in api.sandbox.lead_list_ids:
        assert described(spec.GET_LEAD_LIST, api.get(f"/lead-lists/{lead_list_id}"))
    assert described(spec.LIST_SEQUENCES, api.get("/sequences", {"page[size]": 100}))
    assert described(spec.LIST_MAILBOXES, api.get("/mailboxes"))
    assert described(spec.SEARCH_PEOPLE, api.search(page_size=100))
