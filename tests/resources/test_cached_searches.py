"""Searches from the cache: stored pages belong together, have a date, and give the same frames."""

from __future__ import annotations

import shutil
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.common.parallel import ordered_map
from outreach_frames.errors import OutreachWarning
from tests.client.cache_file import age
from tests.resources.search_service import connected, numbers, person, result, service_of
from tests.scripted import Received, Reply, Service, json, scripted

WHOLE = 730
SEARCH: dict[str, Any] = {"limit": None, "progress": False}


class People:
    """A scripted service's people, who may change between searches."""

    def __init__(self) -> None:
        self.ids = list(range(1, WHOLE + 1))
        self.is_lost = False

    def reply(self, request: Received) -> Reply:
        """Return the requested page."""
        if self.is_lost:
            return json({}, 500)
        page, size = request.json["page"], request.json["page_size"]
        ids = self.ids[(page - 1) * size : page * size]
        total = len(self.ids)
        return result(
            [person(number) for number in ids], total=total, total_pages=-(-total // size)
        )


@pytest.fixture
def people() -> People:
    """Return people who can be changed."""
    return People()


@pytest.fixture
def service(people: People, tmp_path: Path) -> Iterator[Service]:
    """Start the service and connect a client with a cache."""
    with scripted(people.reply) as running, warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)  # the limit's warning
        with connected(running, cache=tmp_path / "cache", max_wait=0):
            yield running


def asked(service: Service) -> list[int]:
    """Return the pages requested since the last call."""
    pages = sorted(request.json["page"] for request in service.requests)
    service.requests.clear()
    return pages


def rows(file: Path) -> int:
    """Count the entries of a cache's file."""
    with closing(sqlite3.connect(file)) as connection:
        count: int = connection.execute("SELECT count(*) FROM answers").fetchone()[0]
    return count


def test_pages_of_one_search_expire_together(service: Service, tmp_path: Path) -> None:
    """A repeated search is read completely from the cache or completely from the service."""
    of.search_people(**SEARCH)
    assert len(asked(service)) == 8
    age(tmp_path / "cache", 3600, limit=1)
    of.search_people(**SEARCH)
    assert len(asked(service)) == 8


def test_pages_older_than_the_first_are_ignored(service: Service, people: People) -> None:
    """After the first pages are refreshed, older stored pages are not combined with them."""
    of.search_people(**SEARCH)
    people.ids[200:] = people.ids[:199:-1]
    of.search_people(limit=200, refresh=True)
    assert numbers(of.search_people(**SEARCH)) == people.ids


@pytest.mark.parametrize("at_once", [1, 200])
def test_a_larger_limit_continues_after_stored_pages(
    at_once: int, service: Service, tmp_path: Path
) -> None:
    """A larger limit requests only the pages after the stored ones."""
    of.search_people(limit=at_once, page_size=100)
    asked(service)
    assert len(of.search_people(**SEARCH, page_size=100)) == WHOLE
    assert asked(service) == list(range(-(-at_once // 100) + 1, 9))
    of.search_people(**SEARCH)
    assert asked(service) == []


def test_a_finished_search_is_one_entry(service: Service, people: People, tmp_path: Path) -> None:
    """A repeated search needs only its result and first page; other searches need the pages."""
    file = tmp_path / "cache"
    first = of.search_people(**SEARCH)
    assert rows(file) == 8 + 1
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM answers WHERE rowid BETWEEN 2 AND 8")
    asked(service)
    for options in ({}, {"dtype_backend": "pyarrow"}, {"headcount": "none"}):
        again = of.search_people(**SEARCH, **options)
        assert numbers(again) == numbers(first)
        assert again.attrs == first.attrs
    pd.testing.assert_frame_equal(of.search_people(**SEARCH), first)
    assert asked(service) == []
    of.search_people(**SEARCH, columns=["id"])
    assert asked(service) == list(range(2, 9))
    people.ids.reverse()
    of.search_people(limit=100, refresh=True)
    assert numbers(of.search_people(**SEARCH)) == people.ids


def test_a_repeated_search_warns_again(tmp_path: Path) -> None:
    """The warnings of a search are repeated when its result comes from the cache."""
    replies = service_of(30, total=40, total_pages=1)
    with scripted(replies) as service, connected(service, cache=tmp_path / "cache"):
        texts = []
        for _ in range(2):
            with pytest.warns(OutreachWarning, match="counts 40 people but returned 30") as caught:
                of.search_people(**SEARCH)
            texts.append([str(one.message) for one in caught])
    assert texts[0] == texts[1]


def test_only_finished_searches_without_errors_are_results(tmp_path: Path) -> None:
    """A search that failed, or with errors of the service, is read again from its pages."""
    file, is_broken = tmp_path / "cache", True

    def reply(request: Received) -> Reply:
        if request.json["page"] == 2 and is_broken:
            return json({}, 400)
        paging = {"page": request.json["page"], "total": 2, "total_pages": 2}
        found = [person(request.json["page"])]
        return json({"results": found, "_pagination": paging, "_errors": ["odd"]})

    search = {**SEARCH, "page_size": 1}
    with scripted(reply) as service, connected(service, cache=file):
        with pytest.raises(of.OutreachError):
            of.search_people(**search)
        assert rows(file) == 1
        is_broken = False
        for _ in range(2):
            with pytest.warns(OutreachWarning, match="odd"):
                assert len(of.search_people(**search)) == 2
            assert rows(file) == 2
        assert len(service.requests) == 3


def test_stored_people_survive_a_failed_service(service: Service, people: People) -> None:
    """If the service fails, the error has the stored people, and a shorter search succeeds."""
    of.search_people(limit=200)
    people.is_lost = True
    with pytest.raises(of.OutreachError, match="page 3 of 8") as caught:
        of.search_people(**SEARCH)
    assert caught.value.partial is not None
    assert numbers(caught.value.partial) == list(range(1, 201))
    assert numbers(of.search_people(limit=150, page_size=100)) == list(range(1, 151))


@pytest.mark.parametrize("options", [{}, {"split_by": "person_titles"}], ids=["whole", "split"])
def test_a_frame_has_its_fetch_time(
    options: dict[str, Any], service: Service, tmp_path: Path
) -> None:
    """`fetched_at` of a cached frame is the time when the service returned its first page."""
    search: dict[str, Any] = {"limit": 50, "person_titles": ["a"], **options}
    first = of.search_people(**search)
    assert of.search_people(**search).attrs["fetched_at"] == first.attrs["fetched_at"]
    age(tmp_path / "cache", 600)
    stored = datetime.fromisoformat(of.search_people(**search).attrs["fetched_at"])
    assert datetime.fromisoformat(first.attrs["fetched_at"]) - stored == timedelta(seconds=600)


def test_claimed_pages_are_not_looked_up(tmp_path: Path) -> None:
    """A cached search resumes at once, whatever total the service claims."""
    script = service_of(300, total=10**9, total_pages=10**9)
    with scripted(script) as service, warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        with connected(service, cache=tmp_path / "cache"):
            first = of.search_people(**SEARCH)
            assert numbers(of.search_people(**SEARCH)) == numbers(first) == list(range(1, 301))


def test_searches_at_the_same_time_share_a_file(
    service: Service, people: People, tmp_path: Path
) -> None:
    """Clients that refresh one search at the same time all get it whole, and later ones do too."""
    clients = [Client(service.url, "token", cache=tmp_path / "cache") for _ in range(3)]

    def search(number: int) -> list[int]:
        refresh = number % 2 == 0
        return numbers(of.search_people(**SEARCH, client=clients[number % 3], refresh=refresh))

    for found in ordered_map(search, range(4), workers=3):
        assert found == people.ids
    assert search(1) == people.ids
    asked(service)
    assert search(5) == people.ids
    assert asked(service) == []
    for client in clients:
        client.close()


REUSED: list[tuple[dict[str, Any], int]] = [
    ({}, 0),
    ({"workers": 1}, 0),
    ({"limit": 100}, 0),
    ({"limit": 450}, 0),
    ({"limit": 50}, 1),
    ({"page_size": 50}, 15),
    ({"refresh": True}, 8),
    ({"network_name": "other"}, 0),
    ({"token": "other"}, 8),
    ({"split_by": "person_titles"}, 1),
    ({"person_titles": ["b"]}, 8),
]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_stored_pages_are_reused(tmp_path: Path) -> None:
    """Stored pages are reused for any limit, workers or split, and for no other change."""
    search: dict[str, Any] = {"limit": None, "progress": False, "person_titles": ["a"]}
    with scripted(service_of(WHOLE)) as service:
        with connected(service, cache=tmp_path / "stored"):
            of.search_people(**search)
        for given, asked in REUSED:
            options = dict(given)
            names = options.keys() & {"workers", "network_name"}
            connection = {name: options.pop(name) for name in names}
            cache = shutil.copy(tmp_path / "stored", tmp_path / "cache")
            service.requests.clear()
            with of.connect(service.url, options.pop("token", "token"), cache=cache, **connection):
                found = of.search_people(**{**search, **options})
            assert len(service.requests) == asked, given
            assert numbers(found) == list(range(1, len(found) + 1))
            assert len(found) == (options.get("limit") or WHOLE)


@pytest.mark.long
def test_only_damaged_pages_are_requested_again(tmp_path: Path) -> None:
    """If some pages after the first are damaged, only these are requested again."""
    path = tmp_path / "cache"
    with scripted(service_of(900)) as service:
        with connected(service, cache=path):
            first = of.search_people(limit=None)
        with closing(sqlite3.connect(path)) as connection, connection:
            damaged = connection.execute(
                "UPDATE answers SET value = substr(value, 1, 300) WHERE rowid % 3 = 2"
            ).rowcount
            connection.execute("DELETE FROM answers WHERE rowid > 9")  # the result
        before = len(service.requests)
        with connected(service, cache=path):
            pd.testing.assert_frame_equal(of.search_people(limit=None), first)
        assert len(service.requests) - before == damaged == 3
        with connected(service, cache=path):
            of.search_people(limit=None)
        assert len(service.requests) - before == 3


@pytest.mark.long
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
