"""PeopleSearch without a browser: counts, requests, results and messages."""

from __future__ import annotations

import asyncio
import json as json_module
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.warnings import collect_warnings
from outreach_frames.errors import InvalidInputError
from outreach_frames.sandbox import Sandbox
from outreach_frames.widgets import PeopleSearch
from outreach_frames.widgets.people_search.state import search_code
from tests.conftest import PEOPLE
from tests.filter_values import good_value
from tests.scripted import Received, Reply, as_sandbox, delayed, json, respond, scripted
from tests.widgets.lead_page import in_a_kernel

pytestmark = pytest.mark.long

TOKEN = "secret-token"
ALL = {one.name: good_value(one) for one in spec.FILTERS}
PATIENCE = 20


async def until(predicate: Callable[[], object]) -> None:
    """Run the loop until a condition is true."""
    async with asyncio.timeout(PATIENCE):
        while not predicate():
            await asyncio.sleep(0.01)


def click(builder: PeopleSearch, action: str, **given: Any) -> None:
    """Send the event of a clicked button."""
    builder._handle_custom_msg({"action": action, **given}, [])


def people(received: Received, total: int = 250) -> Reply:
    """Respond to a search with this many people, page by page."""
    number, size = received.json["page"], received.json["page_size"]
    rows = range((number - 1) * size, min(number * size, total))
    pagination = {"page": number, "page_size": size, "total": total}
    return json(
        {
            "object": "person_search_result",
            "results": [{"id": f"p{row}", "name": f"Person {row}"} for row in rows],
            "_pagination": pagination | {"total_pages": -(-total // size)},
        }
    )


def searches(requests: list[Received]) -> list[Received]:
    """Return the requests that are not counts."""
    return [one for one in requests if one.json["page_size"] > 1]


def counted(builder: PeopleSearch) -> bool:
    """Return whether no count is running."""
    return builder.count["state"] != "counting"


def texts(builder: PeopleSearch) -> str:
    """Return the text of all the widget's messages."""
    return " ".join(text for one in builder.notices for text in (one["text"], *one["details"]))


@in_a_kernel
async def test_the_total_follows_the_filters(client: Client) -> None:
    """The number of people is shown at the start and after each change."""
    builder = PeopleSearch()
    await until(lambda: builder.total == PEOPLE)
    assert builder.count["text"] == f"{PEOPLE} people"
    builder.value = {"person_seniorities": ["vp"]}
    assert builder.total is None
    await until(lambda: builder.total is not None)
    assert builder.total == of.count_people(person_seniorities=["vp"])


def test_it_works_in_a_plain_script(client: Client) -> None:
    """Without an event loop the widget counts and searches too."""
    builder = PeopleSearch({"person_seniorities": ["vp"]}, limit=None)

    async def wait(predicate: Callable[[], object]) -> None:
        await until(predicate)

    asyncio.run(wait(lambda: builder.total is not None))
    builder.search()
    asyncio.run(wait(lambda: builder.results is not None))
    assert len(builder.results) == builder.total


@in_a_kernel
async def test_edits_in_a_row_are_counted_once() -> None:
    """Five quick changes send one request, for the last change."""
    with scripted(people) as service, Client(service.url, TOKEN, cache=None) as client:
        builder = PeopleSearch(client=client)
        await until(lambda: builder.total == 250)
        for number in range(5):
            builder.value = {"person_name": f"Ada {number}"}
        await until(lambda: builder.total == 250)
        assert [one.json.get("person_name") for one in service.requests] == [None, "Ada 4"]
        assert service.requests[-1].json["page_size"] == 1


@in_a_kernel
async def test_a_late_response_is_dropped() -> None:
    """A late count of earlier filters is not shown for the current ones."""
    late = threading.Event()

    def respond(received: Received) -> Reply:
        if received.json.get("person_name") == "slow":
            late.wait(PATIENCE)
            return people(received, 111)
        return people(received, 222)

    with scripted(respond) as service, Client(service.url, TOKEN, cache=None) as client:
        builder = PeopleSearch({"person_name": "slow"}, client)
        await until(lambda: service.requests)
        builder.value = {"person_name": "fast"}
        totals: list[object] = []
        builder.observe(lambda change: totals.append(change.new), "total")
        await until(lambda: builder.total == 222)
        late.set()
        await asyncio.sleep(0.3)
        assert totals == [222]
        assert builder.count["text"] == "222 people"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"company_ids": ["Brightforge"]}, "UUID"),
        ({"company_domains": ["brightforge"]}, "domains or web addresses"),
        ({"person_name": "  "}, "blank"),
    ],
)
@in_a_kernel
async def test_an_invalid_value_is_marked(value: dict[str, Any], words: str) -> None:
    """An invalid value is marked at its field, and is neither counted nor searched."""
    with scripted([]) as service, Client(service.url, TOKEN, cache=None) as client:
        builder = PeopleSearch(client=client)
        await until(lambda: counted(builder))
        before = len(service.requests)
        builder.value = value
        (name,) = value
        assert words in builder.problems[name]
        assert builder.total is None
        click(builder, "search_page", value=value, limit=None)
        assert words in texts(builder)
        with pytest.raises(InvalidInputError, match=words):
            _ = builder.filters
        await asyncio.sleep(0.6)
        assert len(service.requests) == before


@pytest.mark.parametrize(
    "given",
    [
        {"filters": {"person_title": ["CEO"]}},
        {"filters": ["CEO"]},
        {"limit": 0},
        {"headcount": "some"},
        {"suggest_from": 5},
    ],
)
def test_invalid_arguments_are_an_error(given: dict[str, Any]) -> None:
    """Invalid initial filters, limits, headcounts and suggestions are an error."""
    with pytest.raises(InvalidInputError):
        PeopleSearch(**given)


def test_a_wrong_assignment_changes_nothing() -> None:
    """An invalid value or limit is an error, and the previous one is kept."""
    builder = PeopleSearch({"person_titles": ["CEO"]}, limit=5)
    with pytest.raises(InvalidInputError):
        builder.value = {"person_titles": "CTO"}
    with pytest.raises(InvalidInputError):
        builder.limit = 0
    assert (builder.value, builder.limit) == ({"person_titles": ["CEO"]}, 5)


@pytest.mark.parametrize("limit", [None, 120])
@in_a_kernel
async def test_the_body_of_a_search_is_the_filters(limit: int | None) -> None:
    """Search sends `.filters` and the paging fields only; its frame equals `search_people`'s."""
    with scripted(people) as service, Client(service.url, TOKEN, cache=None) as client:
        builder = PeopleSearch(client=client, limit=limit)
        value = {**ALL, "person_titles": [], "person_name": ""}
        builder.value = value
        click(builder, "search_page", value=value, limit=limit)
        assert builder.busy
        click(builder, "search_page", value=value, limit=limit)
        await until(lambda: builder.results is not None and counted(builder))
        sent = searches(service.requests)
        paging = {one.name for one in spec.SEARCH_PAGING}
        for one in sent:
            body = {name: given for name, given in one.json.items() if name not in paging}
            assert body == builder.filters
            assert not {"person_titles", "person_name"} & set(body)
        assert sorted(one.json["page"] for one in sent) == list(range(1, len(sent) + 1))
        with collect_warnings():
            expected = of.search_people(builder.filters, limit=limit, progress=False, client=client)
        pd.testing.assert_frame_equal(builder.results, expected)
        assert builder.results.attrs["filters"] == builder.filters
        assert builder.total == 250


@in_a_kernel
async def test_a_search_uses_the_filters_on_the_page() -> None:
    """A click that arrives before the last change searches with the filters on the page."""
    with scripted(people) as service, Client(service.url, TOKEN, cache=None) as client:
        builder = PeopleSearch({"person_name": "Ada"}, client)
        click(builder, "search_page", value={"person_titles": ["CEO"]}, limit=30)
        await until(lambda: builder.results is not None)
        (sent,) = searches(service.requests)
        paging = {"page": 1, "page_size": 30}
        assert sent.json == {"person_titles": ["CEO"]} | paging
        assert (builder.filters, builder.limit) == ({"person_titles": ["CEO"]}, 30)


@in_a_kernel
async def test_events_of_other_threads_run_on_the_loop(client: Client) -> None:
    """Changes and clicks from another thread run on the event loop and are counted."""
    builder = PeopleSearch(client=client)
    builder.value = {"company_ids": ["x"]}
    threads: set[str] = set()
    note = ["code", "count", "problems", "busy", "notices"]
    builder.observe(lambda _: threads.add(threading.current_thread().name), note)
    await asyncio.to_thread(lambda: setattr(builder, "value", {}))
    await until(lambda: builder.total == PEOPLE)
    await asyncio.to_thread(lambda: click(builder, "search_page", value={}, limit=5))
    await until(lambda: builder.results is not None)
    assert threads == {threading.main_thread().name}


@in_a_kernel
async def test_an_empty_result_is_reported(client: Client) -> None:
    """A search without matches has an empty frame with all columns, and a message says so."""
    builder = PeopleSearch({"person_name": "nobody is called so"}, client)
    builder.search()
    await until(lambda: builder.results is not None)
    assert builder.results.shape == (0, len(of.search_people(limit=None).columns))
    assert "No people match" in texts(builder)
    assert builder.total == 0


@in_a_kernel
async def test_a_misspelt_value_is_named_each_time() -> None:
    """A misspelt value is named at each count and search."""
    with scripted(as_sandbox(people)) as service, Client(service.url, TOKEN, cache=None) as client:
        builder = PeopleSearch({"person_seniorities": ["vp", "directr"]}, client)
        await until(lambda: builder.total == 250)
        assert "'directr'. Did you mean 'director'" in " ".join(builder.count["notes"])
        builder.search()
        await until(lambda: builder.results is not None)
        assert "'directr'. Did you mean 'director'" in texts(builder)
        builder.value = {**builder.value, "person_titles": ["CEO"]}
        await until(lambda: builder.total == 250)
        assert "'directr'. Did you mean 'director'" in " ".join(builder.count["notes"])


@in_a_kernel
async def test_a_count_and_a_search_do_not_wait_for_each_other() -> None:
    """Search works while a count hangs."""
    late = threading.Event()

    def respond(received: Received) -> Reply:
        if received.json["page_size"] == 1:
            late.wait(PATIENCE)
            return people(received, 111)
        return people(received)

    with scripted(respond) as service, Client(service.url, TOKEN, cache=None) as client:
        builder = PeopleSearch(client=client, limit=None)
        await until(lambda: service.requests)
        builder.search()
        await until(lambda: builder.results is not None)
        assert (len(builder.results), builder.total) == (250, None)
        late.set()
        await until(lambda: builder.total == 111)


@in_a_kernel
async def test_a_limit_and_headcount_columns(client: Client) -> None:
    """A message says if the limit is below the total; `headcount` is used by results and code."""
    builder = PeopleSearch(client=client, limit=5, headcount="none")
    builder.search()
    await until(lambda: builder.results is not None)
    assert f"Read 5 of {PEOPLE} people" in texts(builder)
    assert builder.results.shape == (5, 54)
    assert "headcount='none'" in builder.code


@in_a_kernel
async def test_a_partial_result_is_kept() -> None:
    """Cancel or an error keeps the people read so far, or else the earlier results."""
    second: list[Any] = []

    def respond(received: Received) -> Reply:
        if received.json["page"] == 1 and second != ["refuse"]:
            return people(received)
        return json({}, 401) if second else delayed(30, people(received))

    with scripted(respond) as service, Client(service.url, TOKEN, cache=None) as client:
        builder = PeopleSearch({"person_titles": ["CEO"]}, client, limit=None)
        builder.search()
        await until(lambda: builder.progress == [100, 250])
        click(builder, "cancel")
        await until(lambda: not builder.busy)
        assert len(builder.results) == 100
        assert builder.results.attrs["filters"] == builder.filters
        assert texts(builder).startswith("Cancelled.")
        assert "partial: it has 100 people" in texts(builder)
        for refusal, words in (("later", "partial: it has 100"), ("refuse", "is unchanged")):
            second[:] = [refusal]
            builder.search()
            await until(lambda: not builder.busy)
            assert len(builder.results) == 100
            assert "401" in texts(builder)
            assert words in texts(builder)
        fresh = PeopleSearch(client=client)
        fresh.search()
        await until(lambda: not fresh.busy)
        assert fresh.results is None
        assert "No people were read" in texts(fresh)


@in_a_kernel
async def test_a_wait_is_shown_at_once() -> None:
    """A wait requested by the service is shown, and a change of filters ends it."""
    with scripted(lambda _: json({}, 429, {"Retry-After": "30"})) as service:
        with Client(service.url, TOKEN, cache=None) as client:
            builder = PeopleSearch(client=client)
            await until(lambda: "waiting 30 s" in builder.count["text"])
            waiting = builder._counting
            builder.value = {"company_ids": ["x"]}
            assert waiting.is_set
            await asyncio.sleep(0.2)
            assert builder.count["text"].startswith("Not counted")


@in_a_kernel
async def test_a_wait_is_shown_until_it_ends() -> None:
    """The message about a wait stays until it ends, even if other pages arrive."""
    waits, is_over = iter([True]), threading.Event()

    def respond(received: Received) -> Reply:
        number = received.json["page"]
        if number == 4 and next(waits, False):
            return json({}, 429, {"Retry-After": "1"})
        if number == 8:
            is_over.wait(PATIENCE)
        return delayed(0.6 if number == 2 else 0, people(received, 800))

    with scripted(respond) as service, Client(service.url, TOKEN, cache=None) as client:
        builder = PeopleSearch(client=client, limit=None)
        builder.search()
        await until(lambda: builder.progress[0] >= 200)
        assert "waiting" in builder.status
        await until(lambda: builder.progress[0] >= 400)
        await until(lambda: not builder.status)
        assert builder.busy
        is_over.set()
        await until(lambda: builder.results is not None)
        assert len(builder.results) == 800


@in_a_kernel
async def test_a_missing_connection_is_explained(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A widget without a connection says what to do, and counts after connecting."""
    monkeypatch.setattr("outreach_frames.client.connect._default", None)
    monkeypatch.delenv("OUTREACH_BASE_URL", raising=False)

    builder = PeopleSearch()
    assert "of.connect(" in builder.count["text"]
    click(builder, "search_page", value={}, limit=5)
    assert "of.connect(" in texts(builder)
    with of.connect(sandbox.url, sandbox.api_key, cache=None):
        click(builder, "count_again")
        await until(lambda: builder.total == PEOPLE)


def test_code_follows_value_and_limit() -> None:
    """The code always has the current filters and limit."""
    builder = PeopleSearch(limit=50)
    builder.value = ALL
    assert builder.code == search_code(ALL, 50)
    builder.limit = None
    assert "limit=None" in builder.code
    builder.value, builder.limit = {}, 1000
    assert builder.code == "people = of.search_people()"


def test_code_names_the_client_that_was_given(client: Client) -> None:
    """The code of a widget with its own client names that client."""
    of.connect("http://127.0.0.1:9", "t", cache=None).close()
    builder = PeopleSearch({"person_seniorities": ["vp"]}, client, limit=5)
    names: dict[str, Any] = {"of": of, "client": client}
    with collect_warnings():
        exec(builder.code, names)
    assert len(names["people"]) == 5
    bare = PeopleSearch(client=client)
    assert bare.code == "people = of.search_people(\n    client=client,\n)"


def test_a_preset_is_loaded(tmp_path: Path) -> None:
    """A saved preset can be loaded, by method or button, in the format of `save_filters`."""
    path = tmp_path / "all.json"
    builder = PeopleSearch(ALL)
    assert builder.save(path) == path
    assert of.load_filters(path) == ALL
    other = PeopleSearch()
    other.load(path)
    assert other.value == ALL
    click(other, "save_preset", path=str(tmp_path / "two.json"), value={"person_name": "Ada"})
    assert of.load_filters(tmp_path / "two.json") == {"person_name": "Ada"}
    click(other, "load", path=str(path))
    assert other.value == ALL


def test_a_preset_is_replaced_only_when_asked(tmp_path: Path) -> None:
    """Saving to an existing file asks before replacing it."""
    path = of.save_filters(tmp_path / "p.json", {"person_name": "Ada"})
    builder = PeopleSearch()
    click(builder, "save_preset", path=str(path), value={"person_name": "Bo"})
    assert of.load_filters(path) == {"person_name": "Ada"}
    assert builder.preset_to_replace == str(path)
    assert "exists" in texts(builder)
    click(builder, "save_preset", path=str(path), value={"person_name": "Bo"}, replace=True)
    assert of.load_filters(path) == {"person_name": "Bo"}
    assert builder.preset_to_replace == ""


@pytest.mark.parametrize("content", ["{", "[]", '{"filters": {}}', None])
def test_a_damaged_preset_changes_nothing(tmp_path: Path, content: str | None) -> None:
    """An invalid preset shows an error, and the filters are kept."""
    path = tmp_path / "damaged.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    builder = PeopleSearch({"person_titles": ["CEO"]})
    click(builder, "load", path=str(path))
    assert "damaged.json" in texts(builder)
    assert builder.notices[0]["kind"] == "error"
    assert builder.value == {"person_titles": ["CEO"]}


@pytest.mark.parametrize(
    "path", ["", "  ", "no/such/folder/p.json", "x" * 300, ".", "~no-such-user/p.json"]
)
def test_a_failed_save_is_shown(path: str) -> None:
    """A missing name, folder or file is an error when saving or loading."""
    builder = PeopleSearch()
    click(builder, "save_preset", path=path, value={})
    if builder.preset_to_replace:
        click(builder, "save_preset", path=path, value={}, replace=True)
    assert [one["kind"] for one in builder.notices] == ["error"]
    assert path.strip() in texts(builder)
    click(builder, "load", path=path)
    assert [one["kind"] for one in builder.notices] == ["error"]
    assert path.strip() in texts(builder)


@in_a_kernel
async def test_the_state_contains_no_people_or_tokens() -> None:
    """The state that notebooks save contains no token, person or suggestion."""
    with scripted(people) as service, Client(service.url, TOKEN, cache=None) as client:
        frame = pd.DataFrame({"title": ["Chief Mystery Officer"]})
        builder = PeopleSearch(client=client, suggest_from=frame)
        builder.search()
        await until(lambda: builder.results is not None)
        click(builder, "ready")
        assert builder.get_state()["progress"] == [250, 250]
        state = json_module.dumps(builder.get_state(), default=str)
        for secret in (TOKEN, "Person 1", "Mystery"):
            assert secret not in state


@in_a_kernel
async def test_quotes_of_the_service_are_not_in_the_state() -> None:
    """An error that may quote people is sent to the page and not kept in the state."""
    broken = respond(b"<p>No page for Person 1</p>")
    with (
        scripted(lambda _request: broken) as service,
        Client(service.url, TOKEN, cache=None, backoff=0) as client,
    ):
        builder = PeopleSearch(client=client)
        builder.search()
        await until(lambda: not builder.busy and builder.count["state"] == "failed")
        assert "Person 1" in texts(builder)
        assert "Person 1" in builder.count["text"]
        assert "Person 1" not in json_module.dumps(builder.get_state(), default=str)
