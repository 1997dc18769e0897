"""Lead lists are read completely, with all fields of their leads."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import (
    OutreachWarning,
)
from outreach_frames.sandbox import Sandbox
from tests.scripted import json, scripted

BACKENDS = ["numpy_nullable", "pyarrow"]


def test_every_lead_list_is_read_whole(client: Client, sandbox: Sandbox) -> None:
    """Lists of every type and status have one row per lead, and the list's fields in attrs."""
    types, statuses, rows = set(), set(), []
    for identity in sandbox.lead_list_ids:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frame = of.lead_list(identity)
        own = frame.attrs["lead_list"]
        assert own["id"] == identity
        assert {field.name for field in spec.LEAD_LIST if field.required} - {"leads"} <= set(own)
        incomplete = any("more leads may follow" in str(one.message) for one in caught)
        assert incomplete == (own["status"] != "completed")
        types.add(own["type"])
        statuses.add(own["status"])
        rows.append(len(frame))
    assert types == set(spec.LEAD_LIST_TYPES)
    assert statuses == set(spec.LEAD_LIST_STATUSES)
    assert max(rows) > 100


def test_a_lead_list_keeps_all_fields_of_its_leads() -> None:
    """Leads with different fields, and leads that are not objects, are rows."""
    leads = [{"email": "a@b.example", "data": {"plan": "x"}}, {"score": 5}, "odd"]
    page = {"id": "1", "object": "lead_list", "status": "completed", "leads": leads}
    with scripted([json(page)]) as service, of.connect(service.url, "token", cache=None):
        frame = of.lead_list("1")
    assert len(frame) == 3
    assert frame["email"].iloc[0] == "a@b.example"
    assert frame["data_plan"].iloc[0] == "x"
    assert frame["score"].iloc[1] == 5
    assert frame["value"].iloc[2] == "odd"
    assert frame.attrs["lead_list"] == {"id": "1", "object": "lead_list", "status": "completed"}


@pytest.mark.parametrize("errors", ["enrichment failed", {"reason": "enrichment failed"}])
def test_errors_of_any_shape_are_kept(errors: Any) -> None:
    """`_errors` that are not a list become one error, in lead lists and other listings."""
    pages = [json({"leads": [], "sequences": [], "_errors": errors})] * 2
    with scripted(pages) as service, of.connect(service.url, "token", cache=None):
        for read in (lambda: of.lead_list("1"), of.sequences):
            with pytest.warns(OutreachWarning, match="1 error.*enrichment failed"):
                frame = read()
            assert frame.attrs["errors"] == [errors]


def test_leads_that_share_an_id_are_all_kept() -> None:
    """Leads with the same id are all kept, except for a lead that is repeated unchanged."""
    leads = [{"id": "a", "list": 1}, {"id": "a", "list": 2}, {"list": 3}, {"list": 3}]
    again = {"leads": leads[:1], "_links": {}}
    first = {"leads": leads, "_links": {"next": {"href": "/lead-lists/1?page[after]=a"}}}
    with scripted([json(first), json(again)]) as service:
        with of.connect(service.url, "token", cache=None):
            with pytest.warns(OutreachWarning, match="returned 1 of the leads twice"):
                frame = of.lead_list("1")
    assert frame["list"].tolist() == [1, 2, 3, 3]


def test_the_first_page_has_the_lists_own_fields() -> None:
    """The list's own fields are read from the first page if later pages lack them."""
    pages = [
        json({"name": "Fair", "leads": [], "_links": {"next": {"href": "/lead-lists/1?a=1"}}}),
        json({"leads": []}),
    ]
    with scripted(pages) as service, of.connect(service.url, "token", cache=None):
        assert of.lead_list("1").attrs["lead_list"] == {"name": "Fair"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_list_without_leads_can_be_added_to_a_sequence(backend: Any) -> None:
    """A queued list has the identifier columns, and submitting it reports zero leads."""
    page = {"id": "1", "object": "lead_list", "status": "queued", "leads": []}
    with scripted(lambda request: json(page)) as service:
        with of.connect(service.url, "token", cache=None) as client:
            with pytest.warns(OutreachWarning, match="queued"):
                frame = of.lead_list("1", dtype_backend=backend)
            assert list(frame.columns) == ["email", "profnet_url"]
            report = frame.outreach.add_to_sequence("s1", client=client, dry_run=True)
    assert report.rows.empty
    assert report.summary().empty
