"""Searches from the cache: the pages of a frame belong together, and it says since when."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.client.connect import current
from outreach_frames.common.parallel import ordered_map
from outreach_frames.errors import OutreachWarning
from tests.resources.search_service import connected, numbers, person, result, service_of
from tests.scripted import Received, Reply, Service, json, scripted

WHOLE = 730
SEARCH: dict[str, Any] = {"limit": None, "progress": False}


class People:
    """The people of a scripted service, which may change between two searches."""

    def __init__(self) -> None:
        self.ids = list(range(1, WHOLE + 1))
        self.is_lost = False

    def reply(self, request: Received) -> Reply:
        """Give the page that is asked for."""
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
    """Give people who can be changed."""
    return People()


@pytest.fixture
def service(people: People, tmp_path: Path) -> Iterator[Service]:
    """Serve them, with a client that has a cache connected."""
    with scripted(people.reply) as running, warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)  # of the limit
        with connected(running, cache=tmp_path / "cache", max_wait=0):
            yield running


def asked(service: Service) -> list[int]:
    """Return which pages were asked for since the last time."""
    pages = sorted(request.json["page"] for request in service.requests)
    service.requests.clear()
    return pages


def moments(folder: Path) -> set[float]:
    """Return when the stored pages expire."""
    with closing(sqlite3.connect(folder / "cache")) as connection:
        return {moment for (moment,) in connection.execute("SELECT expires FROM answers")}


def age_pages(folder: Path, seconds: float, *, limit: int = -1) -> None:
    """Make the stored pages, or those that were stored first, so much older."""
    with closing(sqlite3.connect(folder / "cache")) as connection:
        rows = connection.execute("SELECT key FROM answers ORDER BY rowid LIMIT ?", [limit])
        keys = [key for (key,) in rows]
    client = current()
    assert client is not None
    for key, entry in client.cache.entries(keys).items():
        client.cache.set_many({key: entry.body}, entry.expires_unix - seconds, entry.lifetime)


def test_pages_of_one_search_expire_together(service: Service, tmp_path: Path) -> None:
    """A search that is repeated comes from the cache as a whole, or from the service as a whole."""
    of.search_people(**SEARCH)
    assert len(moments(tmp_path)) == 1
    assert len(asked(service)) == 8
    age_pages(tmp_path, 3600, limit=1)
    of.search_people(**SEARCH)
    assert len(asked(service)) == 8


def test_pages_of_a_clock_that_is_ahead_are_read_anew(service: Service, tmp_path: Path) -> None:
    """Pages that expire later than a lifetime from now are not served, and are replaced."""
    of.search_people(**SEARCH)
    asked(service)
    age_pages(tmp_path, -31_536_000)
    of.search_people(**SEARCH)
    assert len(asked(service)) == 8
    of.search_people(**SEARCH)
    assert asked(service) == []


def test_pages_from_before_the_first_one_do_not_count(service: Service, people: People) -> None:
    """After a part was read anew, what was stored before it never stands behind it in a frame."""
    of.search_people(**SEARCH)
    people.ids[200:] = people.ids[:199:-1]
    of.search_people(limit=200, refresh=True)
    assert numbers(of.search_people(**SEARCH)) == people.ids


@pytest.mark.parametrize("at_once", [1, 200])
def test_a_larger_limit_goes_on_behind_what_is_stored(
    at_once: int, service: Service, tmp_path: Path
) -> None:
    """Only the last stored page is asked for again, and what is added expires with the rest."""
    of.search_people(limit=at_once, page_size=100)
    asked(service)
    assert len(of.search_people(**SEARCH, page_size=100)) == WHOLE
    assert asked(service) == list(range(-(-at_once // 100), 9))
    of.search_people(**SEARCH)
    assert asked(service) == []
    assert len(moments(tmp_path)) == 1


@pytest.mark.parametrize(
    "change", ["one more before", "one less before", "another order", "one more behind"]
)
def test_a_larger_limit_reads_all_anew_where_people_changed(
    change: str, service: Service, people: People
) -> None:
    """Where the last stored page has other people, or their count is another, none is mixed in."""
    of.search_people(limit=200)
    people.ids = {
        "one more before": [1000, *people.ids],
        "one less before": people.ids[1:],
        "another order": people.ids[::-1],
        "one more behind": [*people.ids, 1000],
    }[change]
    asked(service)
    assert numbers(of.search_people(**SEARCH)) == people.ids
    assert asked(service) == [1, 2, 2, 3, 4, 5, 6, 7, 8]


def test_stored_people_are_there_when_the_service_is_not(service: Service, people: People) -> None:
    """A search that cannot go on has the stored people in its error; a shorter one is whole."""
    of.search_people(limit=200)
    people.is_lost = True
    with pytest.raises(of.OutreachError, match="page 3 of 8") as caught:
        of.search_people(**SEARCH)
    assert caught.value.partial is not None
    assert numbers(caught.value.partial) == list(range(1, 201))
    assert numbers(of.search_people(limit=150, page_size=100)) == list(range(1, 151))


@pytest.mark.parametrize("options", [{}, {"split_by": "person_titles"}], ids=["whole", "split"])
def test_a_frame_says_when_its_people_came(
    options: dict[str, Any], service: Service, tmp_path: Path
) -> None:
    """`fetched_at` of a frame from the cache is when its first page came from the service."""
    search: dict[str, Any] = {"limit": 50, "person_titles": ["a"], **options}
    first = of.search_people(**search)
    assert of.search_people(**search).attrs["fetched_at"] == first.attrs["fetched_at"]
    age_pages(tmp_path, 600)
    stored = datetime.fromisoformat(of.search_people(**search).attrs["fetched_at"])
    assert datetime.fromisoformat(first.attrs["fetched_at"]) - stored == timedelta(seconds=600)


def test_pages_that_the_service_only_claims_are_not_looked_for(tmp_path: Path) -> None:
    """A search of any claimed length goes on from the cache at once."""
    script = service_of(300, total=10**9, total_pages=10**9)
    with scripted(script) as service, warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        with connected(service, cache=tmp_path / "cache"):
            first = of.search_people(**SEARCH)
            assert numbers(of.search_people(**SEARCH)) == numbers(first) == list(range(1, 301))


def test_searches_at_the_same_time_share_a_file(
    service: Service, people: People, tmp_path: Path
) -> None:
    """Clients that read and renew one search at once all get it whole, and so do those after."""
    clients = [Client(service.url, "token", cache=tmp_path / "cache") for _ in range(3)]

    def search(number: int) -> list[int]:
        refresh = number % 2 == 0
        return numbers(of.search_people(**SEARCH, client=clients[number % 3], refresh=refresh))

    for found in ordered_map(search, range(6), workers=3):
        assert found == people.ids
    assert search(1) == people.ids
    asked(service)
    assert search(5) == people.ids
    assert asked(service) == []
    for client in clients:
        client.close()
