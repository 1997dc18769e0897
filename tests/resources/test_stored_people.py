"""Searches from the cache: the stored pages give the same frames as the service."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachWarning
from outreach_frames.sandbox import Sandbox
from tests.resources.search_service import connected, numbers, person, result, service_of
from tests.scripted import Received, Reply, json, scripted

pytestmark = pytest.mark.long

THERE = 730


def rows(path: Path) -> list[tuple[str, bytes]]:
    """Return the rows of the cache file."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT key, value FROM answers ORDER BY key").fetchall()


def test_a_search_from_the_cache_is_the_same(sandbox: Sandbox, tmp_path: Path) -> None:
    """The cached frame has the same values, dtypes and attributes, without a request."""
    path = tmp_path / "cache"
    with of.connect(sandbox.url, sandbox.api_key, cache=None):
        plain = of.search_people(limit=None)
    with of.connect(sandbox.url, sandbox.api_key, cache=path):
        first = of.search_people(limit=None)
    with scripted(lambda _: json({}, 500)) as broken:
        # The same account and address, but the service is stopped.
        proxies = {"http": broken.url}
        with Client(sandbox.url, sandbox.api_key, cache=path, proxies=proxies) as cut_off:
            again = of.search_people(limit=None, client=cut_off)
        assert not broken.requests
    for frame in (first, again):
        pd.testing.assert_frame_equal(frame, plain)
        assert {**frame.attrs, "fetched_at": 0} == {**plain.attrs, "fetched_at": 0}
    assert again.attrs == first.attrs


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, 0),
        ({"workers": 1}, 0),
        ({"limit": 100}, 0),
        ({"limit": 450}, 0),
        ({"limit": 50}, 1),
        ({"page_size": 50}, 15),
        ({"refresh": True}, 8),
        ({"network_name": "other"}, 8),
        ({"token": "other"}, 8),
        ({"split_by": "person_titles"}, 1),
        ({"person_titles": ["b"]}, 8),
    ],
    ids=str,
)
def test_stored_pages_are_reused(options: dict[str, Any], asked: int, tmp_path: Path) -> None:
    """Stored pages are reused for any limit, workers or split, and for no other change."""
    search = {"limit": None, "progress": False, "person_titles": ["a"]}
    connection = {
        name: options.pop(name) for name in ("workers", "network_name") if name in options
    }
    with scripted(service_of(THERE)) as service:
        with connected(service, cache=tmp_path / "cache"):
            of.search_people(**search)
        before = len(service.requests)
        token = options.pop("token", "token")
        with of.connect(service.url, token, cache=tmp_path / "cache", **connection):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OutreachWarning)  # the limit's warning
                found = of.search_people(**{**search, **options})
        assert len(service.requests) - before == asked
    assert numbers(found) == list(range(1, len(found) + 1))
    assert len(found) == (options.get("limit") or THERE)


def test_only_damaged_pages_are_requested_again(tmp_path: Path) -> None:
    """If some pages after the first are damaged, only these are requested again."""
    path = tmp_path / "cache"
    with scripted(service_of(3_000)) as service:
        with connected(service, cache=path):
            first = of.search_people(limit=None)
        with closing(sqlite3.connect(path)) as connection, connection:
            damaged = connection.execute(
                "UPDATE answers SET value = substr(value, 1, 300) WHERE rowid % 3 = 2"
            ).rowcount
        before = len(service.requests)
        with connected(service, cache=path):
            pd.testing.assert_frame_equal(of.search_people(limit=None), first)
        assert len(service.requests) - before == damaged == 10
        with connected(service, cache=path):
            of.search_people(limit=None)
        assert len(service.requests) - before == 10


@pytest.mark.parametrize(
    "odd", [{"zz": 1}, {"about": 5}, {"experiences": [{"new": 1}]}], ids=lambda odd: next(iter(odd))
)
def test_a_cached_page_is_independent_of_its_batch(odd: dict[str, Any], tmp_path: Path) -> None:
    """A shorter search has no column or type that only a page beyond its limit needs."""
    people = [person(number) for number in range(80)]
    people[69] |= odd  # on the last page of the batch from 4 to 7
    people[75] |= odd

    def reply(request: Received) -> Reply:
        begin = (request.json["page"] - 1) * 10
        return result(people[begin : begin + 10], total=80, total_pages=8)

    search = {"page_size": 10, "progress": False}
    with scripted(reply) as service, warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)  # the limit's warning
        with connected(service, cache=tmp_path / "cache", workers=1):
            whole = of.search_people(limit=None, **search)
            before = len(service.requests)
            pd.testing.assert_frame_equal(of.search_people(limit=None, **search), whole)
            part = of.search_people(limit=45, **search)
            assert len(service.requests) == before
        with connected(service):
            pd.testing.assert_frame_equal(part, of.search_people(limit=45, **search))
            pd.testing.assert_frame_equal(whole, of.search_people(limit=None, **search))
