"""Mailboxes: listing them, and changing their limits."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import (
    InvalidResponseError,
    NotFoundError,
)
from outreach_frames.sandbox import Sandbox
from tests.scripted import json, scripted

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
    ("column", "values"),
    [("status", spec.MAILBOX_STATUSES), ("email_provider", spec.EMAIL_PROVIDERS)],
)
def test_mailboxes_by_status_and_provider(
    client: Client, column: str, values: tuple[str, ...]
) -> None:
    """Each status and provider returns exactly its mailboxes."""
    everything = of.mailboxes()
    for value in values:
        found = of.mailboxes(**{column: value})
        assert list(found["id"]) == list(everything.loc[everything[column] == value, "id"])


def test_a_changed_limit_is_listed(client: Client) -> None:
    """The updated mailbox is returned as one row, and the next listing has the new limit."""
    mailbox = of.mailboxes().iloc[0]
    limit = int(mailbox["daily_email_limit"]) + 7
    updated = of.set_daily_email_limit(mailbox["id"], limit)
    listed = of.mailboxes().set_index("id")["daily_email_limit"]
    assert list(updated.columns) == list(of.mailboxes().columns)
    assert updated["daily_email_limit"].tolist() == [limit]
    assert listed[mailbox["id"]] == limit


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


def test_an_unknown_mailbox_is_not_found(client: Client) -> None:
    """An unknown mailbox raises NotFoundError."""
    with pytest.raises(NotFoundError) as caught:
        of.set_daily_email_limit(str(uuid.UUID(int=9)), 5)
    assert caught.value.status_code == 404


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
