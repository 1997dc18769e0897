"""The sandbox's world is complete, consistent, varied, and fixed by its seed."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from outreach_frames.sandbox import serve
from outreach_frames.sandbox.records import open_world
from outreach_frames.sandbox.search import PeopleIndex
from tests.sandbox.http import Api

pytestmark = pytest.mark.long

PEOPLE = 2_000
Person = dict[str, Any]


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    """Return a world of the default size."""
    with closing(open_world(PEOPLE, 0)) as store:
        yield store.connection


@pytest.fixture(scope="module")
def people(connection: sqlite3.Connection) -> list[Person]:
    """Return all people as search results."""
    _, bodies = PeopleIndex(connection).search({}, page=1, page_size=PEOPLE)
    return [msgspec.json.decode(body) for body in bodies]


def test_all_addresses_are_reserved_ones(people: list[Person]) -> None:
    """All addresses in the world are reserved, so that they can belong to nobody."""
    for person in people:
        for host in re.findall(rb"https?://([^/\"]+)", msgspec.json.encode(person)):
            assert host.endswith(b".example")
        assert re.fullmatch(r"https://profnet\.example/in/[a-z0-9-]+", person["profnet_url"])


SPICES: dict[str, Callable[[Person], bool]] = {
    "formula =": lambda person: person["title"].startswith("="),
    "formula +": lambda person: person["title"].startswith("+"),
    "formula -": lambda person: person["title"].startswith("-"),
    "formula @": lambda person: person["title"].startswith("@"),
    "markup": lambda person: "<b>" in person["headline"],
    "emoji": lambda person: "🚀" in person["headline"],
    "quote, comma, newline": lambda person: all(mark in (person["about"] or "") for mark in '",\n'),
    "carriage return": lambda person: "\r" in (person["about"] or ""),
    "empty text": lambda person: person["about"] == "",
    "very long text": lambda person: len(person["about"] or "") > 1_500,
    "apostrophe": lambda person: "'" in person["name"],
    "company without state": lambda person: person["company"]["location_details"]["state"] is None,
}


@pytest.mark.parametrize("spice", SPICES)
def test_difficult_values_occur(people: list[Person], spice: str) -> None:
    """A world of the default size contains some values that are difficult for files and pages."""
    assert 0 < sum(SPICES[spice](person) for person in people) < PEOPLE / 20


def test_a_seed_has_the_world_of_earlier_versions() -> None:
    """The people, account and lists of a seed never change; the changelog mentions any change."""
    digest = hashlib.sha256()
    # Enough people for the maximum number of contacts.
    with serve(people=520, seed=3) as sandbox, Api(sandbox) as api:

        def add(*texts: object) -> None:
            digest.update("\n".join(map(str, texts)).replace(sandbox.url, "").encode())

        def add_people() -> None:
            add(*(api.search(page=page, page_size=100).text for page in range(1, 7)))

        add_people()
        ids = sandbox.contact_ids
        for start in range(0, len(ids), 20):
            add(api.get("/contacts", {"ids[]": ids[start : start + 20]}).text)
        add(api.get("/mailboxes").text, api.get("/sequences", {"page[size]": 100}).text)
        add(*(api.get(f"/lead-lists/{one}").text for one in sandbox.lead_list_ids))
        add(sandbox.exclusion_list, sandbox.recently_contacted)
        add(sandbox.draft_leads, sandbox.active_leads)
        sandbox.advance(days=30)
        add_people()
    assert digest.hexdigest()[:12] == "123bede35177"
