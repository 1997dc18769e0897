"""Common behaviour of all listings: pages, refresh, progress, errors and duplicates."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.errors import InvalidResponseError, OutreachWarning, UnsafeLinkError
from tests.scripted import json, scripted


@pytest.mark.parametrize("response", [[], {}, {"sequences": None}, {"sequences": {}}, "text", None])
def test_a_response_without_the_list_is_an_error(response: Any) -> None:
    """A response without the list raises an error instead of returning an empty frame."""
    with scripted([json(response)] * 9) as service:
        with of.connect(service.url, "token", cache=None, max_wait=0):
            with pytest.raises(InvalidResponseError):
                of.sequences()


def test_an_error_has_the_rows_read_before() -> None:
    """A next link to another host raises an error with the rows of the pages before."""
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
    """Undocumented fields are columns after the documented ones."""
    page = {"sequences": [{"id": "1", "priority": 5, "owner": {"team": "North"}}]}
    with scripted([json(page)]) as service, of.connect(service.url, "token", cache=None):
        frame = of.sequences()
    assert list(frame.columns) == [*spec.columns(spec.SEQUENCE), "priority", "owner_team"]
    assert frame[["priority", "owner_team"]].iloc[0].tolist() == [5, "North"]


def test_a_repeated_item_is_kept_once() -> None:
    """A sequence on two pages is kept once, with a warning."""
    pages = [
        json(
            {"sequences": [{"id": "1"}], "_links": {"next": {"href": "/sequences?page[after]=1"}}}
        ),
        json({"sequences": [{"id": "1"}, {"id": "2"}]}),
    ]
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
        (lambda: of.mailboxes(dtype_backend="arrow"), "dtype_backend"),
        (lambda: of.set_daily_email_limit("", 5), "mailbox_id"),
        (lambda: of.set_daily_email_limit("..", 5), "mailbox_id"),
        (lambda: of.set_daily_email_limit("1", True), "whole number"),
        (lambda: of.set_daily_email_limit("1", 5.0), "whole number"),
        (lambda: of.set_daily_email_limit("1", "5"), "whole number"),
        (lambda: of.lead_list(""), "lead_list_id"),
        (lambda: of.lead_list(".."), "lead_list_id"),
        (lambda: of.lead_list(None), "lead_list_id"),
        (of.contacts, "needs ids, emails="),
        (lambda: of.contacts(["x1", "a@b.example"]), "1 email address.*emails="),
        (lambda: of.contacts(emails=["a@b.example", 5]), "position 1 has 5"),
        (lambda: of.set_daily_email_limit(["1", None], 5), "1 of 2 mailbox_id"),
        (lambda: of.contacts(ids=5), "ids takes"),
    ],
)
def test_bad_arguments_send_nothing(call: Any, words: str) -> None:
    """An invalid argument is an error that describes valid values, before any request."""
    with scripted([]) as service, of.connect(service.url, "token", cache=None):
        with pytest.raises(of.OutreachError, match=words):
            call()
        assert service.requests == []
