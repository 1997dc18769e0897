"""Sequences, mailboxes, contacts and lead lists: one frame each, whole and in order."""

from __future__ import annotations

import uuid
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import (
    AuthenticationError,
    InvalidResponseError,
    NotFoundError,
    OutreachWarning,
    UnsafeLinkError,
)
from outreach_frames.sandbox import Sandbox
from tests.scripted import Received, Reply, json, scripted

BACKENDS = ["numpy_nullable", "pyarrow"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_sequences_have_the_interfaces_columns(client: Client, backend: Any) -> None:
    """All sequences are there over several pages, with the same dtypes as for none."""
    everything = of.sequences(dtype_backend=backend)
    nothing = of.sequences(name="there is no such name", dtype_backend=backend)
    assert list(everything.columns) == list(spec.columns(spec.SEQUENCE))
    assert everything["id"].is_unique
    assert set(everything["status"]) == set(spec.SEQUENCE_STATUSES)
    pd.testing.assert_series_equal(nothing.dtypes, everything.dtypes)
    assert len(nothing) == 0


@pytest.mark.parametrize("status", spec.SEQUENCE_STATUSES)
def test_sequences_by_status(client: Client, status: str) -> None:
    """Each status finds exactly the sequences that have it."""
    everything = of.sequences()
    expected = everything[everything["status"] == status].reset_index(drop=True)
    pd.testing.assert_frame_equal(of.sequences(status=status), expected, check_flags=False)


@pytest.mark.parametrize("column", ["created_by_user_id", "created_by_user_email"])
def test_sequences_by_creator(client: Client, column: str) -> None:
    """The creator's id and address find exactly that user's sequences."""
    everything = of.sequences()
    value = everything[column].iloc[0]
    found = of.sequences(**{column: value})
    assert list(found["id"]) == list(everything.loc[everything[column] == value, "id"])


def test_sequences_by_name_in_any_case(client: Client) -> None:
    """Part of a name in another case finds the sequence."""
    name = of.sequences()["name"].iloc[3]
    assert name in set(of.sequences(name=name[1:].upper())["name"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_mailboxes_have_the_interfaces_columns(client: Client, backend: Any) -> None:
    """All mailboxes are there over several pages, with the user's fields joined by _."""
    everything = of.mailboxes(dtype_backend=backend)
    assert list(everything.columns) == list(spec.columns(spec.MAILBOX))
    assert len(everything) > spec.MAX_MAILBOX_PAGE_SIZE
    assert set(everything["status"]) == set(spec.MAILBOX_STATUSES)
    assert set(everything["email_provider"]) == set(spec.EMAIL_PROVIDERS)
    nobody = of.mailboxes(user_email="nobody@brightforge.example", dtype_backend=backend)
    pd.testing.assert_series_equal(nobody.dtypes, everything.dtypes)


@pytest.mark.parametrize(
    ("column", "values"),
    [("status", spec.MAILBOX_STATUSES), ("email_provider", spec.EMAIL_PROVIDERS)],
)
def test_mailboxes_by_status_and_provider(
    client: Client, column: str, values: tuple[str, ...]
) -> None:
    """Each value finds exactly the mailboxes that have it."""
    everything = of.mailboxes()
    for value in values:
        found = of.mailboxes(**{column: value})
        assert list(found["id"]) == list(everything.loc[everything[column] == value, "id"])


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
        (lambda: of.mailboxes(dtype_backend="arrow"), "dtype_backend"),
        (lambda: of.set_daily_email_limit("", 5), "mailbox_id"),
        (lambda: of.set_daily_email_limit("..", 5), "mailbox_id"),
        (lambda: of.set_daily_email_limit("1", True), "whole number"),
        (lambda: of.set_daily_email_limit("1", 5.0), "whole number"),
        (lambda: of.set_daily_email_limit("1", "5"), "whole number"),
        (lambda: of.lead_list(""), "lead_list_id"),
        (lambda: of.lead_list(".."), "lead_list_id"),
        (lambda: of.lead_list(None), "lead_list_id"),
        (of.contacts, "ids, or emails="),
        (lambda: of.contacts(["x1", "a@b.example"]), "1 email address.*emails="),
        (lambda: of.contacts(emails=["a@b.example", 5]), "position 1 has 5"),
        (lambda: of.set_daily_email_limit(["1", None], 5), "1 of 2 mailbox_id"),
        (lambda: of.contacts(ids=5), "ids takes"),
    ],
)
def test_bad_arguments_send_nothing(call: Any, words: str) -> None:
    """A bad argument is an error that says what would be right, before any request."""
    with scripted([]) as service, of.connect(service.url, "token", cache=None):
        with pytest.raises(of.OutreachError, match=words):
            call()
        assert service.requests == []


def test_a_changed_limit_is_what_the_service_then_reports(client: Client) -> None:
    """The updated mailbox comes back as one row, and the next listing has the limit."""
    mailbox = of.mailboxes().iloc[0]
    limit = int(mailbox["daily_email_limit"]) + 7
    updated = of.set_daily_email_limit(mailbox["id"], limit)
    listed = of.mailboxes().set_index("id")["daily_email_limit"]
    assert list(updated.columns) == list(of.mailboxes().columns)
    assert updated["daily_email_limit"].tolist() == [limit]
    assert listed[mailbox["id"]] == limit


def test_a_changed_limit_makes_cached_listings_fresh(sandbox: Sandbox, tmp_path: Any) -> None:
    """After a change no listing comes from the cache as it was before, whatever its filter."""
    with of.connect(sandbox.url, sandbox.api_key, cache=tmp_path / "cache.sqlite"):
        mailbox = of.mailboxes().iloc[1]
        by_status = {"status": mailbox["status"]}
        of.mailboxes(**by_status)
        limit = int(mailbox["daily_email_limit"]) + 3
        of.set_daily_email_limit(mailbox["id"], limit)
        for listing in (of.mailboxes(), of.mailboxes(**by_status)):
            assert listing.set_index("id")["daily_email_limit"][mailbox["id"]] == limit


def test_an_unknown_mailbox_is_not_found(client: Client) -> None:
    """An id that the account has not is a 404, told as such."""
    with pytest.raises(NotFoundError) as caught:
        of.set_daily_email_limit(str(uuid.UUID(int=9)), 5)
    assert caught.value.status_code == 404


def test_contacts_by_id_keep_the_inputs_order(client: Client, sandbox: Sandbox) -> None:
    """One row per id in input order, repeats and unknown ids included."""
    known = list(sandbox.contact_ids[:45])
    unknown = str(uuid.UUID(int=1))
    wanted = [*reversed(known), unknown, known[0]]
    frame = of.contacts(wanted)
    assert list(frame["id"]) == wanted
    assert frame["found"].tolist() == [True] * 45 + [False, True]
    assert list(frame["asked"]) == wanted
    assert list(frame.columns) == [*spec.columns(spec.CONTACT), "asked", "found"]
    missing = frame.loc[frame["id"] == unknown].drop(columns=["id", "asked", "found"])
    assert missing.isna().all(axis=None)


def test_contacts_by_email_keep_the_inputs_order(client: Client, sandbox: Sandbox) -> None:
    """One row per address in input order; these come with recent activity, newest first."""
    emails = of.contacts(sandbox.contact_ids[:30])["email"].dropna().tolist()
    wanted = pd.Series([*emails, "nobody@brightforge.example", emails[0].upper()])
    frame = of.contacts(emails=wanted)
    assert list(frame["email"].str.lower()) == list(wanted.str.lower())
    assert frame["found"].tolist() == [True] * len(emails) + [False, True]
    activities = [cell for cell in frame["recent_activity"].dropna() if len(cell) > 1]
    assert activities
    for activity in activities:
        moments = [item["event_at"] for item in activity]
        assert moments == sorted(moments, reverse=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_contacts_have_the_same_dtypes_for_none_and_many(
    client: Client, sandbox: Sandbox, backend: Any
) -> None:
    """No input, nobody found, and many found give the same columns and dtypes."""
    many = of.contacts(sandbox.contact_ids[:25], dtype_backend=backend)
    for frame in (
        of.contacts([], dtype_backend=backend),
        of.contacts(emails=["nobody@brightforge.example"], dtype_backend=backend),
    ):
        pd.testing.assert_series_equal(frame.dtypes, many.dtypes)


def test_contacts_ask_for_at_most_twenty_ids_and_take_any_order() -> None:
    """21 ids make two requests, and a reversed answer is put in the input's order."""
    wanted = [str(uuid.UUID(int=number)) for number in range(1, 22)]

    def reversing(request: Received) -> Reply:
        ids = [part.split("=")[1] for part in unquote(request.target).split("?")[1].split("&")]
        return json(
            {"contacts": [{"id": identity.upper(), "email": None} for identity in ids[::-1]]}
        )

    with scripted(reversing) as service, of.connect(service.url, "token", cache=None):
        frame = of.contacts(wanted)
        sizes = sorted(target.count("ids") for target in service.targets)
    assert sizes == [1, spec.MAX_CONTACT_IDS]
    assert [identity.lower() for identity in frame["id"]] == wanted
    assert frame["found"].all()


@pytest.mark.parametrize(
    "email", ["a+b@c.example", "o'neil/x@c.example", "50%@c.example", "q?#@c.example"]
)
def test_an_address_arrives_as_it_is(email: str) -> None:
    """Characters that mean something in a path reach the service as part of the address."""
    with scripted(lambda request: json({"id": "1", "email": email})) as service:
        with of.connect(service.url, "token", cache=None):
            assert of.contacts(emails=[email])["found"].all()
        assert unquote(service.targets[0]) == f"/contacts/email/{email}"
        assert service.targets[0].count("/") == 3


def test_interrupted_contacts_carry_every_answer() -> None:
    """What is known before an error is in .partial in input order, who is not found included."""

    def failing(request: Received) -> Reply:
        name = request.target.rsplit("/", 1)[-1]
        if name.startswith("c"):
            return json({}, status=401)
        found = json({"id": "1", "email": unquote(name)})
        return found if name.startswith("a") else json({}, status=404)

    emails = ["b@x.example", "a@x.example", "c@x.example"]
    with scripted(failing) as service:
        with of.connect(service.url, "token", cache=None, workers=1):
            with pytest.raises(AuthenticationError) as caught:
                of.contacts(emails=emails)
    assert caught.value.partial is not None
    assert caught.value.partial["email"].tolist() == emails[:2]
    assert caught.value.partial["found"].tolist() == [False, True]


def test_every_lead_list_is_read_whole(client: Client, sandbox: Sandbox) -> None:
    """Lists of every type and status come as one row per lead, with their own fields in attrs."""
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


def test_a_lead_list_keeps_whatever_fields_its_leads_have() -> None:
    """Leads of different shapes, and even leads that are no objects, are rows."""
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


def test_errors_of_a_lead_list_are_kept_and_told() -> None:
    """`_errors` of a lead list are in .attrs, and a warning says so."""
    page = {"status": "completed", "leads": [], "_errors": [{"reason": "enrichment failed"}]}
    with scripted([json(page)]) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="enrichment failed"):
            frame = of.lead_list("1")
    assert frame.attrs["errors"] == page["_errors"]


@pytest.mark.parametrize("errors", ["enrichment failed", {"reason": "enrichment failed"}])
def test_errors_of_any_shape_are_kept(errors: Any) -> None:
    """`_errors` that are no list are one error, in lead lists and listings alike."""
    pages = [json({"leads": [], "sequences": [], "_errors": errors})] * 2
    with scripted(pages) as service, of.connect(service.url, "token", cache=None):
        for read in (lambda: of.lead_list("1"), of.sequences):
            with pytest.warns(OutreachWarning, match="1 error.*enrichment failed"):
                frame = read()
            assert frame.attrs["errors"] == [errors]


def test_a_long_report_of_errors_is_cut_in_the_warning() -> None:
    """A warning stays readable whatever the service reports; .attrs has it whole."""
    page = {"leads": [], "_errors": ["why " * 5000]}
    with scripted([json(page)]) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning) as caught:
            frame = of.lead_list("1")
    assert len(str(caught[0].message)) < 400
    assert frame.attrs["errors"] == page["_errors"]


def test_leads_that_share_an_id_are_all_kept() -> None:
    """What a lead's id stands for is not known: only a lead that comes again unchanged is one."""
    leads = [{"id": "a", "list": 1}, {"id": "a", "list": 2}, {"list": 3}, {"list": 3}]
    again = {"leads": leads[:1], "_links": {}}
    first = {"leads": leads, "_links": {"next": {"href": "/lead-lists/1?page[after]=a"}}}
    with scripted([json(first), json(again)]) as service:
        with of.connect(service.url, "token", cache=None):
            with pytest.warns(OutreachWarning, match="1 of the leads came twice"):
                frame = of.lead_list("1")
    assert frame["list"].tolist() == [1, 2, 3, 3]


def test_an_unknown_lead_list_is_not_found(client: Client) -> None:
    """An id that the account has not raises; it is no empty frame."""
    with pytest.raises(NotFoundError):
        of.lead_list(str(uuid.UUID(int=3)))


@pytest.mark.parametrize("answer", [[], {}, {"sequences": None}, {"sequences": {}}, "text", None])
def test_an_answer_without_the_list_is_an_error(answer: Any) -> None:
    """An answer of another shape raises; it is no empty frame."""
    with scripted([json(answer)] * 9) as service:
        with of.connect(service.url, "token", cache=None, max_wait=0):
            with pytest.raises(InvalidResponseError):
                of.sequences()


def test_an_interrupted_listing_carries_what_was_read() -> None:
    """A link that leads elsewhere raises, with the rows of the pages before."""
    pages = [
        json(
            {"sequences": [{"id": "1"}], "_links": {"next": {"href": "/sequences?page[after]=1"}}}
        ),
        json({"sequences": [{"id": "2"}], "_links": {"next": {"href": "//elsewhere.example/x"}}}),
    ]
    with scripted(pages) as service, of.connect(service.url, "token", cache=None):
        with pytest.raises(UnsafeLinkError) as caught:
            of.sequences()
    assert caught.value.partial is not None
    assert caught.value.partial["id"].tolist() == ["1", "2"]


def test_unknown_fields_are_extra_columns_at_the_end() -> None:
    """A field that the interface does not know is kept behind those that it knows."""
    page = {"sequences": [{"id": "1", "priority": 5, "owner": {"team": "North"}}]}
    with scripted([json(page)]) as service, of.connect(service.url, "token", cache=None):
        frame = of.sequences()
    assert list(frame.columns) == [*spec.columns(spec.SEQUENCE), "priority", "owner_team"]
    assert frame[["priority", "owner_team"]].iloc[0].tolist() == [5, "North"]


def test_an_item_listed_twice_is_kept_once_and_told() -> None:
    """A sequence that comes on two pages is kept once, with a warning."""
    pages = [
        json(
            {"sequences": [{"id": "1"}], "_links": {"next": {"href": "/sequences?page[after]=1"}}}
        ),
        json({"sequences": [{"id": "1"}, {"id": "2"}]}),
    ]
    with scripted(pages) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="came twice"):
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
def test_refresh_asks_again(name: str, tmp_path: Path) -> None:
    """Every read is answered from the cache a second time, and by the service with refresh."""
    read, page = READS[name]
    with scripted([json(page)] * 3) as service:
        with of.connect(service.url, "token", cache=tmp_path / "cache.sqlite"):
            for options, requests in (({}, 1), ({}, 1), ({"refresh": True}, 2)):
                read(**options)
                assert len(service.requests) == requests


@pytest.mark.parametrize("name", [name for name in READS if name != "count_people"])
def test_progress_is_shown_when_asked_for(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """progress=True shows a bar anywhere; False, and nobody looking, none."""
    read, page = READS[name]
    with scripted([json(page)] * 3) as service, of.connect(service.url, "token", cache=None):
        for progress in (None, False, True):
            read(progress=progress)
            assert bool(capsys.readouterr().err) == bool(progress)


def test_mailboxes_are_asked_for_in_the_largest_pages() -> None:
    """The page size is the interface's largest; .attrs has the filters alone."""
    with scripted([json({"mailboxes": []})]) as service:
        with of.connect(service.url, "token", cache=None):
            frame = of.mailboxes(status="active")
        assert unquote(service.targets[0]).endswith("?status=active&page[size]=20")
    assert frame.attrs["filters"] == {"status": "active"}


def test_the_first_page_tells_what_a_lead_list_is() -> None:
    """The list's own fields come from the first page, where later ones leave them out."""
    pages = [
        json({"name": "Fair", "leads": [], "_links": {"next": {"href": "/lead-lists/1?a=1"}}}),
        json({"leads": []}),
    ]
    with scripted(pages) as service, of.connect(service.url, "token", cache=None):
        assert of.lead_list("1").attrs["lead_list"] == {"name": "Fair"}


def test_errors_beside_a_count_are_told() -> None:
    """`_errors` that come with a count are warned of."""
    page = {"results": [], "_pagination": {"total": 3}, "_errors": [{"reason": "index is old"}]}
    with scripted([json(page)]) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match="index is old"):
            assert of.count_people() == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_list_without_leads_can_be_added_to_a_sequence(backend: Any) -> None:
    """A queued list has the identifiers' columns, and adding it reports nobody."""
    page = {"id": "1", "object": "lead_list", "status": "queued", "leads": []}
    with scripted(lambda request: json(page)) as service:
        with of.connect(service.url, "token", cache=None) as client:
            with pytest.warns(OutreachWarning, match="queued"):
                frame = of.lead_list("1", dtype_backend=backend)
            assert list(frame.columns) == ["email", "profnet_url"]
            report = frame.outreach.add_to_sequence("s1", client=client, dry_run=True)
    assert report.rows.empty
    assert report.summary().empty
