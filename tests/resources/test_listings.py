"""Listings are read completely and once, with their errors, and from the cache until a refresh."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidResponseError, OutreachWarning, UnsafeLinkError
from outreach_frames.sandbox import Sandbox
from tests.scripted import Reply, json, scripted

BACKENDS = ["numpy_nullable", "pyarrow"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_mailboxes_have_the_interfaces_columns(client: Client, backend: Any) -> None:
    """All mailboxes of several pages are listed, and the user's fields have the prefix user_."""
    everything = of.mailboxes(dtype_backend=backend)
    assert list(everything.columns) == list(spec.columns(spec.MAILBOX))
    assert len(everything) > spec.MAX_MAILBOX_PAGE_SIZE
    assert set(everything["status"]) == set(spec.MAILBOX_STATUSES)
    assert set(everything["email_provider"]) == set(spec.EMAIL_PROVIDERS)
    nobody = of.mailboxes(user_email="nobody@brightforge.example", dtype_backend=backend)
    pd.testing.assert_series_equal(nobody.dtypes, everything.dtypes)


@pytest.mark.parametrize(
    ("read", "column", "values"),
    [
        (of.mailboxes, "status", spec.MAILBOX_STATUSES),
        (of.mailboxes, "email_provider", spec.EMAIL_PROVIDERS),
        (of.sequences, "status", spec.SEQUENCE_STATUSES),
        (of.sequences, "created_by_user_id", None),
        (of.sequences, "created_by_user_email", None),
        (of.sequences, "name", None),
    ],
)
def test_listings_are_filtered(client: Client, read: Any, column: str, values: Any) -> None:
    """Each value of a filter returns exactly its mailboxes or sequences."""
    everything = read()
    for value in values or [everything[column].iloc[3]]:
        expected = everything[everything[column] == value].reset_index(drop=True)
        pd.testing.assert_frame_equal(read(**{column: value}), expected, check_flags=False)


def test_a_changed_limit_makes_cached_listings_fresh(sandbox: Sandbox, tmp_path: Any) -> None:
    """After a change, no listing is read from the old cache, whatever its filter."""
    with of.connect(sandbox.url, sandbox.api_key, cache=tmp_path / "cache.sqlite"):
        mailbox = of.mailboxes().iloc[1]
        by_status = {"status": mailbox["status"]}
        of.mailboxes(**by_status)
        limit = int(mailbox["daily_email_limit"]) + 3
        of.set_daily_email_limit(mailbox["id"], limit)
        for listing in (of.mailboxes(), of.mailboxes(**by_status)):
            assert listing.set_index("id")["daily_email_limit"][mailbox["id"]] == limit


def test_mailboxes_use_the_maximum_page_size() -> None:
    """Mailboxes are requested with the maximum page size, and .attrs has only the filters."""
    with scripted([json({"mailboxes": []})]) as service:
        with of.connect(service.url, "token", cache=None):
            frame = of.mailboxes(status="active")
        assert unquote(service.targets[0]).endswith("?status=active&page[size]=20")
    assert frame.attrs["filters"] == {"status": "active"}


@pytest.mark.parametrize("body", [[], {"status": "done"}, "done", None])
def test_a_malformed_response_makes_a_change_uncertain(body: Any) -> None:
    """After a malformed response the error explains how to check whether the limit changed."""
    with scripted([json(body)]) as service, of.connect(service.url, "token", cache=None) as client:
        with pytest.raises(InvalidResponseError, match=r"mailboxes\(refresh=True\)"):
            of.set_daily_email_limit("m1", 40, client=client)
        assert len(service.requests) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_sequences_have_the_interfaces_columns(client: Client, backend: Any) -> None:
    """All sequences of several pages are listed, with the same dtypes as an empty listing."""
    everything = of.sequences(dtype_backend=backend)
    nothing = of.sequences(name="there is no such name", dtype_backend=backend)
    assert list(everything.columns) == list(spec.columns(spec.SEQUENCE))
    assert everything["id"].is_unique
    assert set(everything["status"]) == set(spec.SEQUENCE_STATUSES)
    pd.testing.assert_series_equal(nothing.dtypes, everything.dtypes)
    assert len(nothing) == 0


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


@pytest.mark.parametrize(
    ("status", "outlook"),
    [("queued", "more leads may follow"), ("canceled", "it may be incomplete")],
)
def test_a_canceled_lead_list_promises_no_leads(status: str, outlook: str) -> None:
    """Only lists that are queued or processing may get more leads."""
    with scripted([json({"id": "1", "status": status, "leads": []})]) as service:
        with of.connect(service.url, "token", cache=None):
            with pytest.warns(OutreachWarning, match=f"is {status}, not completed: {outlook}"):
                of.lead_list("1")


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


def sequences(*ids: str, next_page: str | None = None) -> Reply:
    """Return a page of sequences."""
    links = {"next": {"href": next_page}} if next_page else {}
    return json({"sequences": [{"id": one} for one in ids], "_links": links})


CURSOR = {"has_more": True, "next_cursor": "c"}
LISTS: dict[str, Any] = {
    "sequences": of.sequences,
    "mailboxes": of.mailboxes,
    "leads": lambda: of.lead_list("1"),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize(
    "rest",
    [
        {"_links": {"next": {"url": "/x"}}},
        {"_links": {"next": {"href": 7}}},
        *({"_links": {"next": link}} for link in (5, ["/x"], True)),
        *({"_links": {"next": link}, "meta": CURSOR} for link in (None, {}, {"href": None})),
        {"_pagination": CURSOR},
        CURSOR,
    ],
    ids=str,
)
def test_a_next_page_without_a_link_is_an_error(name: str, rest: dict[str, Any]) -> None:
    """A list does not end in silence if the service names a next page without a link to it."""
    page = {"id": "1", name: [{"id": "1"}]}
    with scripted(lambda _: json(page | rest)) as service, of.connect(service.url, "t", cache=None):
        with pytest.raises(InvalidResponseError, match="remaining pages cannot be read") as caught:
            LISTS[name]()
        assert len(service.requests) == 1
    assert caught.value.partial is not None
    assert len(caught.value.partial) == 1


@pytest.mark.parametrize("link", [None, {}, {"href": None}], ids=str)
def test_a_next_link_without_an_address_ends_a_list(link: Any) -> None:
    """A list whose next link is null or empty, or has the address null, is complete."""
    page = {"sequences": [{"id": "1"}], "_links": {"next": link}, "has_more": False}
    with scripted(lambda _: json(page)) as service, of.connect(service.url, "t", cache=None):
        assert len(of.sequences()) == 1


def test_an_error_has_the_rows_read_before() -> None:
    """A next link to another host raises an error with the rows of the pages before."""
    pages = [sequences("1", next_page="/sequences?page[after]=1")]
    pages += [sequences("2", next_page="//elsewhere.example/x")]
    with scripted(pages) as service, of.connect(service.url, "token", cache=None):
        with pytest.raises(UnsafeLinkError) as caught:
            of.sequences()
    assert caught.value.partial is not None
    assert caught.value.partial["id"].tolist() == ["1", "2"]


def test_unknown_fields_are_extra_columns_at_the_end() -> None:
    """Undocumented fields are columns after the documented ones."""
    page = {"sequences": [{"id": "1", "priority": 5, "owner": {"team": "North"}}]}
    with scripted([json(page)]) as service, of.connect(service.url, "token", cache=None):
        frame = of.sequences()
    assert list(frame.columns) == [*spec.columns(spec.SEQUENCE), "priority", "owner_team"]
    assert frame[["priority", "owner_team"]].iloc[0].tolist() == [5, "North"]


def test_a_repeated_item_is_kept_once() -> None:
    """A sequence on two pages is kept once, with a warning."""
    pages = [sequences("1", next_page="/sequences?page[after]=1"), sequences("1", "2")]
    with scripted(pages) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="of the sequences twice"):
            assert of.sequences()["id"].tolist() == ["1", "2"]


READS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sequences": (of.sequences, {"sequences": []}),
    "mailboxes": (of.mailboxes, {"mailboxes": []}),
    "contacts by id": (lambda **options: of.contacts(["1"], **options), {"contacts": []}),
    "contacts by email": (
        lambda **options: of.contacts(emails=["a@b.example"], **options),
        {"id": "1", "email": "a@b.example"},
    ),
    "lead_list": (lambda **options: of.lead_list("1", **options), {"leads": [{"id": "1"}]}),
    "search_people": (of.search_people, {"results": [], "_pagination": {"total": 0}}),
    "count_people": (of.count_people, {"results": [], "_pagination": {"total": 0}}),
}


@pytest.mark.parametrize("name", READS)
def test_refresh_reads_from_the_service(name: str, tmp_path: Path) -> None:
    """Repeated reads are served from the cache, or by the service with refresh=True."""
    read, page = READS[name]
    with scripted([json(page)] * 3) as service:
        with of.connect(service.url, "token", cache=tmp_path / "cache.sqlite"):
            for options, requests in (({}, 1), ({}, 1), ({"refresh": True}, 2)):
                read(**options)
                assert len(service.requests) == requests


def test_unknown_dtypes_send_nothing() -> None:
    """All functions with dtype_backend check it before the first request."""
    reads = [read for name, (read, _) in READS.items() if name != "count_people"]
    accounts = pd.DataFrame({"domain": ["brightforge.example"]}).outreach
    with scripted([]) as service, of.connect(service.url, "token", cache=None):
        for call in (*reads, accounts.find_people, partial(of.set_daily_email_limit, "1", 5)):
            with pytest.raises(of.OutreachError, match=r"dtype_backend is 'arrow'\. Pass"):
                call(dtype_backend="arrow")
        assert service.requests == []


def test_errors_of_a_count_are_warned_of() -> None:
    """`_errors` in the response to a count cause a warning."""
    page = {"results": [], "_pagination": {"total": 3}, "_errors": [{"reason": "index is old"}]}
    with scripted([json(page)]) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="index is old"):
            assert of.count_people() == 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: of.sequences(status="activ"), "Did you mean 'active'"),
        (lambda: of.sequences(name=5), "name takes text"),
        (lambda: of.sequences(name=" "), "name is blank"),
        (lambda: of.sequences(status=pd.Series(["active", "paused"])), "status takes one of"),
        (lambda: of.sequences(status=pd.NA), "status takes one of"),
        (lambda: of.mailboxes(status="open"), "needs_reconnection"),
        (lambda: of.mailboxes(email_provider="gogle"), "Did you mean 'google'"),
        (lambda: of.set_daily_email_limit("", 5), "mailboxes"),
        (lambda: of.set_daily_email_limit("..", 5), "mailboxes"),
        (lambda: of.lead_list(""), "lead_list_id"),
        (lambda: of.lead_list(".."), "lead_list_id"),
        (lambda: of.lead_list(None), "lead_list_id"),
        (of.contacts, "needs ids, emails="),
        (lambda: of.contacts(["x1", "a@b.example"]), "1 email address.*emails="),
        (lambda: of.contacts(emails=["a@b.example", 5]), "position 1 has 5"),
        (lambda: of.contacts(ids=5), "ids takes"),
    ],
)
def test_bad_arguments_send_nothing(call: Any, words: str) -> None:
    """An invalid argument is an error that describes valid values, before any request."""
    with scripted([]) as service, of.connect(service.url, "token", cache=None):
        with pytest.raises(of.OutreachError, match=words):
            call()
        assert service.requests == []
