"""Cached responses: contents, accounts and lifetimes; a broken file only disables the cache."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sqlite3
import stat
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client import cache as cache_module
from outreach_frames.client.cache import ResponseCache, unpack
from outreach_frames.client.client import Client
from outreach_frames.client.session import LIFETIMES
from outreach_frames.common.parallel import ordered_map
from outreach_frames.errors import (
    InvalidResponseError,
    OutreachWarning,
)
from tests import forked
from tests.client.cache_file import age
from tests.client.connection import LIMIT, TOKEN, connected
from tests.scripted import Received, Reply, Service, delayed, json, reset, respond, scripted

pytestmark = pytest.mark.long

READS = [endpoint for endpoint in spec.ENDPOINTS if endpoint.name in LIFETIMES]


def numbered(request: Received) -> Reply:
    """Respond to each request with a unique response that has the documented data."""
    own = {"number": time.monotonic_ns(), "for": request.target, "body": request.body.decode()}
    return json({**{endpoint.listed.name: [] for endpoint in READS}, "id": "c1", **own})


@pytest.fixture
def service() -> Iterator[Service]:
    """Serve unique responses."""
    with scripted(numbered) as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a path for the cache in a folder that does not exist yet."""
    return tmp_path / "folder" / "responses"


def values(endpoint: spec.Endpoint, value: str = "x") -> dict[str, Any]:
    """Return arguments for one request of an endpoint."""
    if endpoint is spec.SEARCH_PEOPLE:
        return {"body": {"person_name": value}}
    if "{" in endpoint.path:
        return {"path": {"id": value, "email": value}}
    return {"query": {"name": value}}


@pytest.mark.parametrize("endpoint", READS, ids=lambda endpoint: endpoint.name)
def test_a_second_read_costs_no_request(
    endpoint: spec.Endpoint, service: Service, file: Path
) -> None:
    """A repeated request is served from the cache, also for a later client, until a refresh."""
    with connected(service, cache=file) as client:
        first = client._session.read(endpoint, **values(endpoint))
        assert client._session.read(endpoint, **values(endpoint)) == first
        assert client._session.read(endpoint, **values(endpoint, "other")) != first
    with connected(service, cache=str(file)) as client:
        assert client._session.read(endpoint, **values(endpoint)) == first
        second = client._session.read(endpoint, **values(endpoint), refresh=True)
        assert client._session.read(endpoint, **values(endpoint)) == second != first
    assert len(service.requests) == 3


def test_an_expired_page_expires_all_later_pages(file: Path) -> None:
    """If the first page of a list has expired, all pages are requested again and replaced."""
    link = {"next": {"href": "/sequences?page[after]=a"}}
    first = json({"n": 1, "sequences": [], "_links": link})
    replies = [first, *(json({"n": n, "sequences": []}) for n in (2, 3))]
    replies.insert(2, first)
    with scripted(replies) as service, connected(service, cache=file) as client:
        list(client._session.read_pages(spec.LIST_SEQUENCES))
        age(file, 61, limit=1)
        for _ in range(2):
            assert [page["n"] for page in client._session.read_pages(spec.LIST_SEQUENCES)] == [1, 3]
    assert len(service.requests) == 4


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"page": 1, "person_name": "a"}, {"person_name": "a", "page": 1}, True),
        ({"person_titles": ["a", "b"]}, {"person_titles": ["b", "a"]}, False),
        ({"person_titles": ["a,b"]}, {"person_titles": ["a", "b"]}, False),
        ({"page": 1}, {"page": 2}, False),
        ({"page": 1}, {"page": True}, False),
    ],
)
def test_what_counts_as_the_same_request(one: Any, other: Any, same: bool, file: Path) -> None:
    """The order of fields does not matter; the order of values and every value does."""
    with scripted(numbered) as service, connected(service, cache=file) as client:
        first = client._session.read(spec.SEARCH_PEOPLE, body=one)
        assert (client._session.read(spec.SEARCH_PEOPLE, body=other) == first) is same


def test_accounts_in_one_file_are_kept_apart(service: Service, file: Path) -> None:
    """Another token or another address does not get this account's responses."""
    with scripted(numbered) as elsewhere:
        responses = []
        for address, token in ((service, "a"), (service, "b"), (elsewhere, "a")):
            with Client(address.url, token, cache=file) as client:
                responses.append(client._session.read(spec.LIST_SEQUENCES)["number"])
    assert len(set(responses)) == 3


@pytest.mark.parametrize(
    "bad", [json({}, 404), respond(b"<html>"), respond(b"[1, 2"), json({}, 302), reset()]
)
def test_bad_responses_are_not_cached(bad: Reply, file: Path) -> None:
    """After an error or a broken response, the next call requests again."""
    turns = iter([bad] * 5)
    with scripted(lambda _: next(turns)) as service, connected(service, cache=file) as client:
        with pytest.raises(Exception, match="GET /sequences"):
            client._session.read(spec.LIST_SEQUENCES)
        turns = iter([json({"good": 1})])
        assert client._session.read(spec.LIST_SEQUENCES) == {"good": 1}


def test_writes_always_reach_the_service(service: Service, file: Path) -> None:
    """A repeated write is sent again."""
    with connected(service, cache=file) as client:
        for _ in range(2):
            client._session.write(spec.ADD_LEADS, path={"id": "s"}, body={"leads": []})
            client._session.write(spec.UPDATE_MAILBOX, path={"id": "m"}, body=LIMIT)
    assert len(service.requests) == 4


def test_forget_drops_all_listings_of_an_endpoint(service: Service, file: Path) -> None:
    """All cached variants of this account's listing are requested again, and nothing else."""
    queries: list[dict[str, Any]] = [{}, {"status": "active"}, {"page[after]": "m1"}]
    with connected(service, cache=file) as client, Client(service.url, "b", cache=file) as other:
        before = [client._session.read(spec.LIST_MAILBOXES, query=query) for query in queries]
        sequences, others = (
            client._session.read(spec.LIST_SEQUENCES),
            other._session.read(spec.LIST_MAILBOXES),
        )
        client._session.drop_cached(spec.LIST_MAILBOXES)
        after = [client._session.read(spec.LIST_MAILBOXES, query=query) for query in queries]
        assert not any(old == new for old, new in zip(before, after, strict=True))
        assert client._session.read(spec.LIST_SEQUENCES) == sequences
        assert other._session.read(spec.LIST_MAILBOXES) == others


def test_a_response_in_flight_during_forget_is_not_cached(file: Path) -> None:
    """A listing requested before a change is not served from the cache after the change."""
    slow = lambda request: delayed(0.3, numbered(request))  # noqa: E731 - a script of one line
    with scripted(slow) as service, connected(service, cache=file) as client:
        thread = threading.Thread(target=client._session.read, args=[spec.LIST_MAILBOXES])
        thread.start()
        while not service.requests:
            time.sleep(0.01)
        client._session.drop_cached(spec.LIST_MAILBOXES)
        thread.join()
        client._session.read(spec.LIST_MAILBOXES)
    assert len(service.requests) == 2


def test_a_hit_does_not_wait(file: Path) -> None:
    """A cached response is returned at once, even while the service requests a wait."""
    patience = json({"sequences": []}, headers={"Retry-After": "1000"})
    with scripted([patience]) as service, connected(service, cache=file, max_wait=0) as client:
        assert client._session.read(spec.LIST_SEQUENCES) == {"sequences": []}
        assert client._session.read(spec.LIST_SEQUENCES) == {"sequences": []}


def test_the_files_are_private_and_hold_no_secrets(file: Path) -> None:
    """Other users cannot read the files, and the files have no token, cookie or address."""
    before = os.umask(0)
    try:
        cookie = json({"id": 1}, headers={"Set-Cookie": "session=cookie-7"})
        with scripted([cookie]) as service, connected(service, cache=file) as client:
            client._session.read(spec.GET_CONTACT_BY_EMAIL, path={"email": "ann@example.com"})
            files = sorted(file.parent.iterdir())
            assert len(files) >= 3
            assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}
            assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
            content = b"".join(one.read_bytes() for one in files)
        with closing(sqlite3.connect(file)) as connection:
            (row,) = connection.execute("SELECT value FROM answers").fetchone()
    finally:
        os.umask(before)
    entry = unpack(row)
    assert entry is not None
    assert entry.body == b'{"id":1}'
    for secret in (TOKEN, "cookie-7", "ann", "Authorization", "Bearer"):
        assert secret.encode() not in content


def test_a_public_file_is_made_private(service: Service, file: Path) -> None:
    """A cache file that other users can read becomes private."""
    file.parent.mkdir()
    file.touch(0o644)
    with connected(service, cache=file) as client:
        client._session.read(spec.LIST_SEQUENCES)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


class Burglar:
    """An object that writes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("burgled"),))


DAMAGES: list[Any] = [
    None,
    "",
    "text",
    5,
    b"",
    b"short",
    b"\x00" * 500,
    b'{"number": 1}',
    pickle.dumps(Burglar()),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: repr(damage)[:12])
def test_damaged_rows_are_misses(
    damage: Any,
    service: Service,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A manipulated row is requested again and replaced, and nothing in it is executed."""
    monkeypatch.chdir(tmp_path)
    with connected(service, cache=file) as client:
        first = client._session.read(spec.LIST_SEQUENCES)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE answers SET value = ?", (damage,))
    connection.close()
    with connected(service, cache=file) as client:
        second = client._session.read(spec.LIST_SEQUENCES)
        assert second != first
        assert client._session.read(spec.LIST_SEQUENCES) == second
    assert not Path("burgled").exists()


def test_an_unreadable_cached_response_is_a_miss(service: Service, file: Path) -> None:
    """A cached response that cannot be parsed is requested again and replaced."""
    with connected(service, cache=file) as client:
        client._session.read(spec.LIST_SEQUENCES)
        with closing(sqlite3.connect(file)) as connection:
            (key,) = connection.execute("SELECT key FROM answers").fetchone()
        assert client._session.cache is not None
        client._session.cache.set(key, b"{", 60)
        assert client._session.read(spec.LIST_SEQUENCES) == client._session.read(
            spec.LIST_SEQUENCES
        )
    assert len(service.requests) == 2


def test_a_flipped_bit_in_the_header_is_a_miss(file: Path) -> None:
    """A damaged expiry, lifetime or checksum never changes how long a response is used."""
    cache = ResponseCache(file)
    cache.set("key", b"{}", 60)
    with closing(sqlite3.connect(file)) as connection:
        (value,) = connection.execute("SELECT value FROM answers").fetchone()
        for place in range(len(value)):
            for bit in range(8):
                damaged = bytearray(value)
                damaged[place] ^= 1 << bit
                with connection:
                    connection.execute("UPDATE answers SET value = ?", (bytes(damaged),))
                assert cache.get("key") is None
        with connection:
            connection.execute("UPDATE answers SET value = ?", (value,))
    assert text(cache, "key") == b"{}"
    cache.close()


@pytest.mark.parametrize("endpoint", READS, ids=lambda endpoint: endpoint.name)
def test_a_response_from_a_clock_ahead_is_a_miss(
    endpoint: spec.Endpoint, service: Service, file: Path
) -> None:
    """A response that expires later than a full lifetime from now is requested again."""
    with connected(service, cache=file) as client:
        first = client._session.read(endpoint, **values(endpoint))
        for ahead in (60, 31_536_000):
            age(file, -ahead)
            second = client._session.read(endpoint, **values(endpoint))
            assert second != first
            assert client._session.read(endpoint, **values(endpoint)) == second
            first = second


def test_a_file_that_is_not_a_database_disables_the_cache(service: Service, file: Path) -> None:
    """Another program's file stays unchanged; results are correct, with one warning."""
    file.parent.mkdir()
    file.write_text("name,email\n" * 100)
    with pytest.warns(OutreachWarning, match="not cached.*Delete the file") as caught:
        client = connected(service, cache=file)
    with client:
        assert client._session.read(spec.LIST_SEQUENCES) != client._session.read(
            spec.LIST_SEQUENCES
        )
        client._session.drop_cached(spec.LIST_SEQUENCES)
    assert len(caught) == 1
    assert file.read_text() == "name,email\n" * 100


def test_a_folder_that_cannot_be_created_disables_the_cache(
    service: Service, tmp_path: Path
) -> None:
    """If the file cannot be created, a warning says that responses are not cached."""
    (tmp_path / "file").touch()
    with pytest.warns(OutreachWarning, match="not cached"):
        client = connected(service, cache=tmp_path / "file" / "responses")
    with client:
        assert client._session.read(spec.LIST_SEQUENCES) != client._session.read(
            spec.LIST_SEQUENCES
        )


@pytest.mark.parametrize("when", ["opening", "reading"])
def test_a_locked_file_blocks_nothing(when: str, service: Service, file: Path) -> None:
    """If another process locks the file, the service is used after a moment, with a warning."""
    connected(service, cache=file).close()
    other = sqlite3.connect(file, isolation_level=None)
    try:
        if when == "opening":
            other.execute("BEGIN EXCLUSIVE")
            with pytest.warns(OutreachWarning, match="locked"):
                client = connected(service, cache=file)
        else:
            client = connected(service, cache=file)
            other.execute("BEGIN EXCLUSIVE")
            with pytest.warns(OutreachWarning, match="locked"):
                client._session.read(spec.LIST_SEQUENCES)
        with client:
            read = ordered_map(
                lambda _: client._session.read(spec.LIST_SEQUENCES), range(8), workers=8
            )
            assert len({one["number"] for one in read}) == 8
    finally:
        other.close()


def _use(file: Path, start: Any, complaints: Any) -> None:
    """Open, write, read and forget in a separate process."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start.wait()
        cache = ResponseCache(file)
        for number in range(20):
            key = f"sequences:{number}"
            cache.set(key, b"x" * 10_000, 60)
            if text(cache, key) not in {b"x" * 10_000, None}:
                complaints.put("wrong response")
        cache.drop("mailboxes:")
        cache.close()
    complaints.put([str(one.message) for one in caught])


def test_processes_share_a_file(file: Path) -> None:
    """Processes that open the same new file at the same time do not fail."""
    # The forked processes share their imports, which take longer than opening the file.
    context = multiprocessing.get_context("forkserver")
    start, complaints = context.Barrier(3), context.Queue()
    processes = [context.Process(target=_use, args=(file, start, complaints)) for _ in range(3)]
    for process in processes:
        process.start()
    assert [complaints.get(timeout=200) for _ in processes] == [[]] * 3
    for process in processes:
        process.join()
    complaints.close()
    complaints.join_thread()


def text(cache: ResponseCache, key: str) -> bytes | None:
    """Return the cached body of a key."""
    entry = cache.get(key)
    return None if entry is None else entry.body


def kept(file: Path) -> int:
    """Count the rows of a cache file."""
    connection = sqlite3.connect(file)
    try:
        count: int = connection.execute("SELECT count(*) FROM answers").fetchone()[0]
    finally:
        connection.close()
    return count


READ_ELSEWHERE = """
import contextlib, sqlite3, sys
with contextlib.closing(sqlite3.connect(sys.argv[1])) as connection:
    print(*connection.execute("SELECT count(*) FROM answers").fetchone())
"""


def test_a_second_client_does_not_release_the_lock_of_the_first(file: Path) -> None:
    """Other processes see what either of two clients stores, even after many opened the file."""
    first, second = ResponseCache(file), ResponseCache(file)
    seen = []
    for number, cache in enumerate([first, second, first]):
        cache.set(str(number), b"1", 60)
        seen.append(int(forked.run(READ_ELSEWHERE, file).stdout))
    first.close()
    second.close()
    assert seen == [1, 2, 3]
    assert kept(file) == 3


def test_useless_responses_are_deleted_at_opening(file: Path) -> None:
    """Expired responses, and those that would expire in a year, are deleted from the file."""
    cache = ResponseCache(file)
    cache.set("old", b"1", -5)
    cache.set("ahead", b"1", 60, time.time() + 31_536_000)
    cache.set("good", b"2", 60)
    cache.close()
    assert kept(file) == 3
    ResponseCache(file).close()
    assert kept(file) == 1


def test_the_file_has_a_size_limit(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the file exceeds its limit, the responses that expire first are deleted."""
    monkeypatch.setattr(cache_module, "MAX_BYTES", 100_000)
    monkeypatch.setattr(cache_module, "_PURGE_EVERY", 10_000)
    cache = ResponseCache(file)
    for number in range(100):
        cache.set(f"key{number}", os.urandom(10_000), 60 + number)
    assert cache.get("key99") is not None
    assert cache.get("key0") is None
    cache.close()
    assert file.stat().st_size < 400_000


def test_the_default_file_is_in_the_users_cache_folder(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a path, responses are stored in the system's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "home" / name))
    with Client(service.url, TOKEN) as client:
        assert client._session.read(spec.LIST_SEQUENCES) == client._session.read(
            spec.LIST_SEQUENCES
        )
    folder = tmp_path / "home" / "outreach_frames"
    assert (folder / "responses.sqlite").is_file()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


THEIRS = {
    "unmarked": "CREATE TABLE notes (text)",
    "marked": "PRAGMA application_id = 7",
    "with our table": (
        "CREATE TABLE answers (key TEXT PRIMARY KEY, value BLOB, expires INTEGER);"
        "INSERT INTO answers VALUES ('a', 'ada@x.example', 1);"
    ),
    "marked, with our table": (
        "PRAGMA application_id = 7; CREATE TABLE answers (key TEXT, value BLOB, expires INTEGER)"
    ),
}


@pytest.mark.parametrize("statements", THEIRS.values(), ids=THEIRS.keys())
def test_another_programs_database_is_unchanged(
    statements: str, service: Service, tmp_path: Path
) -> None:
    """A database that is not a cache keeps its bytes and mode, and no file is added next to it."""
    theirs = tmp_path / "theirs.sqlite"
    with closing(sqlite3.connect(theirs)) as connection:
        connection.executescript(statements)
    theirs.chmod(0o644)
    before = theirs.read_bytes()
    with pytest.warns(OutreachWarning, match="not a cache"):
        client = Client(service.url, TOKEN, cache=theirs)
    with closing(client):
        client._session.read(spec.LIST_SEQUENCES)
        client._session.drop_cached(spec.LIST_SEQUENCES)
        of.forget(email="ada@x.example", client=client)
        of.clear_cache(client=client)
    assert theirs.read_bytes() == before
    assert theirs.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [theirs]


@pytest.mark.parametrize(("by", "is_found"), [("ids", False), ("ids", True), ("emails", False)])
def test_contacts_not_found_are_cached_for_a_minute(by: str, is_found: bool, file: Path) -> None:
    """A missing contact is not requested again for a minute, and expires before other responses."""
    contacts = [{"id": "c1", "email": "ada@x.example"}] if is_found else []
    reply = json({"contacts": contacts}) if by == "ids" else json({}, 404)
    with scripted(lambda _: reply) as service:
        with closing(Client(service.url, TOKEN, cache=file)) as client:
            for requests, refresh in ((1, False), (1, False), (2, True)):
                frame = of.contacts(**{by: ["c1"]}, client=client, refresh=refresh)
                assert frame["found"].tolist() == [is_found]
                assert len(service.requests) == requests
    with closing(sqlite3.connect(file)) as connection:
        (expires,) = connection.execute("SELECT expires FROM answers").fetchone()
    assert (expires > time.time() + 60) == is_found


UNDOCUMENTED: dict[str, Any] = {
    "maintenance": {"maintenance": True, "message": "Back at 9."},
    "plan": {"success": False, "error": "Plan expired. Contact billing."},
    "no list": {
        "sequences": None,
        "contacts": {},
        "leads": "none",
        "errors": [{"message": "Odd."}],
    },
    "text": "soon",
    "list": [],
}
CALLS: dict[str, Any] = {
    "sequences": of.sequences,
    "mailboxes": of.mailboxes,
    "contacts": lambda: of.contacts(["c1"]),
    "emails": lambda: of.contacts(emails=["ada@x.example"]),
    "lead list": lambda: of.lead_list("l1"),
    "search": of.search_people,
    "search pages": lambda: of.search_people(limit=None),
}


@pytest.mark.parametrize("body", UNDOCUMENTED)
@pytest.mark.parametrize("call", CALLS)
def test_a_body_without_the_documented_data_is_not_cached(call: str, body: str, file: Path) -> None:
    """A maintenance page with status 200 is asked for once per call, told and not cached."""
    content = UNDOCUMENTED[body]
    with scripted(lambda _: json(content)) as service, of.connect(service.url, TOKEN, cache=file):
        for requests in (1, 2):
            with pytest.raises(InvalidResponseError) as caught:
                CALLS[call]()
            assert len(service.requests) == requests
        for words in ("Back at 9", "Plan expired. Contact billing", "Odd"):
            is_there = words in str(content)
            assert (words in caught.value.reason) == is_there
            assert words not in caught.value.summary
