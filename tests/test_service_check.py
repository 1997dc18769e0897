"""The check of a service names deviations, and a correct service has no warnings."""

from __future__ import annotations

import datetime
import json as jsonlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from email.utils import format_datetime
from functools import cache, partial, reduce
from operator import getitem, setitem
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.cli import main
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError
from outreach_frames.sandbox import Sandbox
from outreach_frames.service_check import COLUMNS, STATUSES
from tests.scripted import (
    FOREVER,
    Received,
    Reply,
    Service,
    delayed,
    json,
    passed_on,
    respond,
    scripted,
)

Change = Callable[[dict[str, Any]], object]
SEARCH = spec.SEARCH_PEOPLE.label
SEQUENCES = spec.LIST_SEQUENCES.label
MAILBOXES = spec.LIST_MAILBOXES.label
BY_EMAIL = spec.GET_CONTACT_BY_EMAIL.label
CONTACTS = spec.GET_CONTACTS.label
LEAD_LIST = spec.GET_LEAD_LIST.label
responses: dict[tuple[str, str, str, bytes], Any] = {}
STARTS = {
    SEARCH: "/people/search",
    SEQUENCES: "/sequences",
    MAILBOXES: "/mailboxes",
    BY_EMAIL: "/contacts/email/",
    CONTACTS: "/contacts?",
    LEAD_LIST: "/lead-lists/",
}


def dated(body: bytes, shift_hours: float = 0) -> Reply:
    """Reply with a body and a Date header, as web servers do."""
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=shift_hours)
    return respond(body, headers={"Date": format_datetime(moment, usegmt=True)})


@pytest.fixture(scope="module")
def small() -> Iterator[Sandbox]:
    """Start a sandbox with few people, for tests of other data."""
    with of.sandbox.serve(people=3, seed=1) as running:
        yield running


@contextmanager
def deviating(
    target: Sandbox, reply: Callable[[Received], Reply]
) -> Iterator[tuple[Service, Client]]:
    """Run a service with changed replies of the sandbox, and a client of it."""
    with scripted(reply) as service:
        with Client(service.url, target.api_key, cache=None, backoff=0) as client:
            yield service, client


@cache
def emails_of(target: Sandbox, number: int) -> list[str]:
    """Return the email addresses of known contacts."""
    with Client(target.url, target.api_key, cache=None) as direct:
        contacts = of.contacts(ids=target.contact_ids[:number], client=direct)
    return contacts["email"].dropna().tolist()


def checked(target: Sandbox, client: Client, contacts: int = 2) -> pd.DataFrame:
    """Check a service with known contacts and a known lead list."""
    emails = emails_of(target, contacts)
    return of.check(emails=emails, lead_list_id=target.lead_list_ids[0], client=client)


def changing(target: Sandbox, label: str, change: Change) -> Callable[[Received], Reply]:
    """Return a script that changes the JSON of one operation's responses."""

    def reply(request: Received) -> Reply:
        # A check only reads, so that replies can be cached for all tests.
        asked = target.url, request.method, request.target, request.body
        if asked not in responses:
            responses[asked] = passed_on(request, target.url).parts[1]
        body = responses[asked]
        if request.target.startswith(STARTS[label]):
            document = msgspec.json.decode(body)
            change(document)
            body = msgspec.json.encode(document)
        return dated(body)

    return reply


def each(key: str, change: Callable[[dict[str, Any]], object]) -> Change:
    """Change each record of a response's list."""
    return lambda document: [change(record) for record in document[key]]


def put(path: str, value: Any) -> Change:
    """Set a member at any depth."""
    *parents, name = path.split(".")
    return lambda record: reduce(getitem, parents, record).update({name: value})


def drop(path: str) -> Change:
    """Remove a member at any depth."""
    *parents, name = path.split(".")
    return lambda record: reduce(getitem, parents, record).pop(name)


people = partial(each, "results")
sequences = partial(each, "sequences")
mailboxes = partial(each, "mailboxes")


def rename_network(page: dict[str, Any]) -> None:
    """Use the name of another network for the profile URLs."""
    for person in page["results"]:
        person["crm_a_url"] = person.pop("profnet_url")


def shorten_page_2(page: dict[str, Any]) -> None:
    """Remove a person from the second page."""
    if page["_pagination"]["page"] == 2:
        page["results"].pop()


FOREIGN = "https://other.example/sequences"
LEGAL = "company.department_headcount.legal"
ROBOTS = "company.job_function_headcount.legal.robots"
START = "current_position_start_date"
# The operation, the change, and the expected status and part of the detail.
CHANGES: list[tuple[str, Change, str, str]] = [
    (SEARCH, people(drop("headline")), "warning", "headline: missing"),
    (SEARCH, people(drop("company.size")), "warning", "company_size: missing"),
    (SEARCH, lambda page: page["results"][3].update(company=7), "warning", "company: undocumented"),
    (SEARCH, people(put("company.followers", "1,000")), "warning", "followers: undocumented type"),
    (SEARCH, people(put("company.keywords", [1])), "warning", "company_keywords"),
    (SEARCH, people(put("location_details", [1])), "warning", "location_details: undoc"),
    (SEARCH, people(put(LEGAL, 1.5)), "warning", "headcount_legal: undocumented type"),
    (SEARCH, people(put(START, "24.12.2020")), "warning", "current_position_start_date"),
    (SEARCH, people(put("pronouns", "x")), "note", "pronouns: in 100 of 100"),
    (SEARCH, people(put(ROBOTS, 1)), "note", "legal_robots"),
    (SEARCH, put("_pagination.total", 7), "warning", "total is 7"),
    (SEARCH, put("_pagination.total_pages", 1), "warning", "pages is 1"),
    (SEARCH, put("_pagination.page", 0), "warning", "requested 1"),
    (SEARCH, put("_pagination.total", "400"), "warning", "total"),
    (SEARCH, rename_network, "warning", "people have no profnet_url, but crm_a_url has"),
    (SEARCH, drop("_pagination.total"), "warning", "_pagination_total"),
    (SEARCH, lambda page: page["results"].pop(), "warning", "99 people"),
    (SEARCH, shorten_page_2, "warning", "page 2 has 99 people"),
    (SEARCH, lambda page: setitem(page["results"], 1, page["results"][0]), "warning", "repeated"),
    (SEARCH, put("_pagination.total", None), "warning", "no value"),
    (SEARCH, put("object", None), "warning", "object: missing"),
    (SEARCH, put("_errors", [{"code": 1}]), "warning", "reports 1 error"),
    (SEARCH, drop("results"), "failed", "results"),
    (SEARCH, put("results", {}), "failed", "results"),
    (SEARCH, drop("_pagination"), "failed", "_pagination"),
    (SEQUENCES, sequences(put("status", "frozen")), "note", "1 undocumented"),
    (SEQUENCES, sequences(put("created_at", "soon")), "warning", "created_at"),
    (SEQUENCES, lambda page: page.update(items=page.pop("sequences")), "failed", "sequences"),
    (SEQUENCES, put("_links.next.href", FOREIGN), "warning", "leads to another host"),
    (SEQUENCES, put("_links.next.href", 7), "warning", "no valid link in _links.next.href"),
    (SEQUENCES, put("_links.next", {"url": "/x"}), "warning", "no valid link in _links.next.href"),
    (
        SEQUENCES,
        lambda page: page.update(_links={}, meta={"has_more": True, "next_cursor": "c"}),
        "warning",
        "no valid link in _links.next.href",
    ),
    (MAILBOXES, lambda page: page.update(mailboxes=page["mailboxes"] * 2), "warning", "page[size]"),
    (MAILBOXES, lambda page: page["mailboxes"].pop(), "warning", "a page has 1 item"),
    (MAILBOXES, lambda page: page.update(mailboxes=[], _links={}), "note", "no mailboxes"),
    (MAILBOXES, mailboxes(put("email_provider", "private")), "note", "email_provider"),
    (BY_EMAIL, drop("email"), "warning", "email"),
    (CONTACTS, lambda page: page["contacts"].pop(), "warning", "known contacts missing"),
    (LEAD_LIST, put("type", "crm_c"), "note", "1 undocumented value"),
]


@pytest.mark.parametrize(("label", "change", "status", "detail"), CHANGES)
def test_a_deviation_is_named(
    label: str, change: Change, status: str, detail: str, *, sandbox: Sandbox, small: Sandbox
) -> None:
    """A row of the operation names the deviating field or link, with the right status."""
    target = sandbox if label == SEARCH else small
    with deviating(target, changing(target, label, change)) as (_, client):
        found = checked(target, client)
    rows = found[(found["check"] == label) & (found["status"] == status)]
    assert rows["detail"].str.contains(detail, regex=False).any(), found.to_string()
    others = found[(found["check"] != label) & (found["status"] > "ok")]
    assert others.empty, others.to_string()
    assert status in ("note", "failed") or (rows["advice"] != "").all()


def test_a_check_reads_the_network_name(sandbox: Sandbox) -> None:
    """With the network's name, all fields are as documented; another name is a warning."""

    def reply(request: Received) -> Reply:
        return dated(
            passed_on(request, sandbox.url).parts[1].replace(b"profnet_url", b"bluebook_url")
        )

    with scripted(reply) as service:
        for name, status in (("bluebook", "ok"), ("profnet", "warning"), ("crm_a", "warning")):
            with Client(
                service.url, sandbox.api_key, cache=None, network_name=name, backoff=0
            ) as client:
                found = checked(sandbox, client)
            assert found["status"].max() == status, found.to_string()
            is_named = found["advice"].str.contains("network_name='bluebook'", regex=False).any()
            assert is_named == (name != "bluebook")


def test_a_good_service_has_no_warning(sandbox: Sandbox) -> None:
    """All rows of any sandbox, even a small one, have status ok."""
    for number, seed in ((1, 1), (100, 2)):
        with of.sandbox.serve(people=number, seed=seed) as other:
            with Client(other.url, other.api_key, cache=None) as client:
                found = checked(other, client)
        assert found["status"].max() == "ok", found.to_string()
    with Client(sandbox.url, sandbox.api_key, cache=None) as client:
        found = of.check(client=client)
    assert found.columns.tolist() == list(COLUMNS)
    assert found["status"].cat.categories.tolist() == list(STATUSES)
    assert found["status"].cat.ordered
    unchecked = found.loc[found["status"] == "note", "check"].tolist()
    assert unchecked == [BY_EMAIL, CONTACTS, LEAD_LIST]


def test_a_check_needs_few_requests_and_shows_no_person(sandbox: Sandbox) -> None:
    """A check needs at most 15 read requests, and shows no name, address or URL."""
    with deviating(sandbox, lambda request: passed_on(request, sandbox.url)) as (service, client):
        found = checked(sandbox, client, contacts=5)
    assert 12 <= len(service.requests) <= 15
    assert {request.method for request in service.requests} <= {"GET", "POST"}
    assert {r.path for r in service.requests if r.method == "POST"} == {"/people/search"}
    with Client(sandbox.url, sandbox.api_key, cache=None) as client:
        everybody = of.search_people(limit=None, client=client)
        senders = of.mailboxes(client=client)
    texts = {*everybody["name"], *everybody["company_name"], *senders["email"]}
    shown = found.to_string()
    assert not [text for text in texts if text in shown]


def test_personal_names_and_values_are_not_shown(small: Sandbox) -> None:
    """The first 20 plain undocumented names are shown; others and all values are counted."""
    names = dict.fromkeys(["ann@acme.example", "Anna Acme", "an\x1b[2Jacme"], 1)
    names |= {f"plain_{number}": 1 for number in range(32_000)}
    change = sequences(lambda one: one.update(names, status="ben@acme.example"))
    with deviating(small, changing(small, SEQUENCES, change)) as (_, client):
        shown = of.check(client=client).to_string()
    assert "acme" not in shown.lower()
    assert shown.count("plain_") == 20
    assert "other undocumented columns" in shown
    assert "1 undocumented value" in shown


def test_no_text_of_the_service_is_shown(small: Sandbox) -> None:
    """A service that echoes the token and a person in every text shows neither."""
    echo = f"{small.api_key} ann@acme.example"

    def reply(request: Received) -> Reply:
        if request.path == "/sequences":
            return json({"error": {"message": echo}}, 400)
        if request.path == "/mailboxes":
            return respond(b"", 302, {"Location": f"https://acme.example/{small.api_key}"})
        body = msgspec.json.decode(passed_on(request, small.url).parts[1])
        if "_pagination" in body:
            body["_pagination"].update(total=10**400, total_pages=10**30)
        late = "Fri, 31 Dec 99999 23:59:59 GMT"
        return respond(
            jsonlib.dumps(body).encode(), headers={"Content-Type": f"text/x; {echo}", "Date": late}
        )

    with deviating(small, reply) as (_, client):
        found = checked(small, client)
    shown = found.to_string()
    assert small.api_key not in shown
    assert "acme" not in shown
    details = found.set_index("check")["detail"]
    assert details[SEQUENCES] == "Status 400: the request is malformed (status 400)"
    assert "A link or redirect leads to another host" in details[MAILBOXES]
    assert "total is 10,000,000" in found["detail"].str.cat()


def test_max_wait_limits_the_whole_check(small: Sandbox) -> None:
    """The waits of all requests together are at most `max_wait`."""

    def reply(request: Received) -> Reply:
        return respond(passed_on(request, small.url).parts[1], headers={"Retry-After": "1"})

    with scripted(reply) as service:
        with Client(service.url, small.api_key, cache=None, max_wait=1.5) as client:
            found = checked(small, client)
    assert len(service.requests) <= 3
    assert found["detail"].str.contains("longer wait than `max_wait` allows").any()


def test_a_check_waits_for_a_rate_limit(small: Sandbox) -> None:
    """A check repeats requests that meet a rate limit or a busy service."""
    refused: set[tuple[str, str, bytes]] = set()

    def reply(request: Received) -> Reply:
        asked = request.method, request.target, request.body
        if asked in refused:
            return dated(passed_on(request, small.url).parts[1])
        refused.add(asked)
        return json({}, 429 if len(refused) % 2 else 503)

    with deviating(small, reply) as (_, client):
        found = checked(small, client)
    assert found["status"].max() == "ok", found.to_string()


def test_a_deleted_cache_is_a_warning(small: Sandbox, tmp_path: Path) -> None:
    """A cache whose file was deleted is a warning, not an error."""
    with Client(small.url, small.api_key, cache=tmp_path / "cache") as client:
        of.sequences(client=client)
        for path in tmp_path.iterdir():
            path.unlink()
        found = of.check(client=client).set_index("check")
    assert found.loc["cache", "status"] == "warning"


def test_an_unreadable_response_is_not_shown(small: Sandbox) -> None:
    """A malformed response's people and an error's email addresses are not shown."""

    def reply(request: Received) -> Reply:
        body = passed_on(request, small.url).parts[1]
        if request.path == "/people/search":
            return dated(msgspec.json.encode(msgspec.json.decode(body)["results"]))
        if request.path == "/mailboxes":
            return dated(b"\n<html>")
        return json({"error": {"message": "ann@acme.example is locked"}}, 500)

    with deviating(small, reply) as (_, client):
        found = of.check(client=client).set_index("check")["detail"]
    assert found[SEARCH] == "the response is not a JSON object in UTF-8"
    assert found[MAILBOXES] == "the response is a web page"
    assert found[SEQUENCES] == "Status 5xx: the service failed (status 500)"


@pytest.mark.parametrize(
    ("status", "check", "advice"),
    [
        (401, "token", "Log in again"),
        (402, SEQUENCES, ""),
        (403, SEQUENCES, "Check what the account and the token may do."),
        (404, SEQUENCES, "Check the address"),
        (500, SEQUENCES, "Try again later"),
    ],
)
def test_error_statuses_are_failures(small: Sandbox, status: int, check: str, advice: str) -> None:
    """A rejected token gives one row, and other error statuses give one row per operation."""
    with deviating(small, lambda request: json({}, status)) as (_, client):
        found = checked(small, client)
    failed = found.loc[found["status"] == "failed", "check"].tolist()
    operations = [SEQUENCES, MAILBOXES, SEARCH, BY_EMAIL, LEAD_LIST]
    # With status 404, a missing contact is not a failure.
    expected = [one for one in operations if status != 404 or one != BY_EMAIL]
    assert failed == (["token"] if check == "token" else expected)
    rows = found[found["status"] == "failed"]
    assert rows["advice"].str.startswith(advice).all()
    assert rows["detail"].str.endswith(f"(status {status})").all()


def test_a_service_that_does_not_respond_is_one_row() -> None:
    """A refused connection or the first timeout ends the check with one row."""
    with scripted([delayed(FOREVER, json({}))]) as service:
        url = service.url
        with Client(url, "token", cache=None, timeout=0.05) as client:
            late = of.check(client=client)
        # On a busy machine, the service may not have read it yet.
        assert len(service.requests) <= 1
    with Client(url, "token", cache=None, backoff=0) as client:
        refused = of.check(client=client)
    for found in (late, refused):
        assert found.loc[found["status"] == "failed", "check"].tolist() == ["connection"]
    assert f"Nothing answers at {url}" in refused["detail"].tolist()


def test_an_unreadable_retry_after_is_a_warning(small: Sandbox) -> None:
    """A Retry-After header that is no seconds and no date is a warning; other headers are not."""
    headers = {"Retry-After": "soon", "Content-Type": "text/html", "Date": "yesterday"}

    def reply(request: Received) -> Reply:
        return respond(passed_on(request, small.url).parts[1], headers=headers)

    with deviating(small, reply) as (_, client):
        found = of.check(client=client)
    warned = found[found["check"] == SEQUENCES]
    assert warned["detail"].tolist() == ["the Retry-After header is neither seconds nor a date"]
    assert "clock" not in found["check"].tolist()


def test_a_base_path_and_absolute_links_are_fine(small: Sandbox) -> None:
    """Links with or without the base path, and absolute links, lead to the next page."""
    for prefix in ("", "/api/v1", "{url}/api/v1"):

        def reply(request: Received, prefix: str = prefix) -> Reply:
            inner = replace(request, target=request.target.removeprefix("/api/v1"))
            body = passed_on(inner, small.url).parts[1]
            start = prefix.format(url=f"http://{request.headers['Host']}")
            return dated(body.replace(b'"href":"/', f'"href":"{start}/'.encode()))

        with scripted(reply) as service:
            with Client(f"{service.url}/api/v1", small.api_key, cache=None) as client:
                found = checked(small, client)
        assert found["status"].max() == "ok", found.to_string()


@pytest.mark.parametrize("arguments", [{"emails": ["a"] * 6}, {"emails": [1]}, {"lead_list_id": 7}])
def test_invalid_arguments_are_errors(sandbox: Sandbox, arguments: dict[str, Any]) -> None:
    """Invalid arguments are errors before any request."""
    with deviating(sandbox, lambda request: passed_on(request, sandbox.url)) as (service, client):
        with pytest.raises(InvalidInputError):
            of.check(client=client, **arguments)
        assert service.requests == []


@pytest.mark.parametrize(
    ("change", "codes"),
    [(put("new", 1), (0, 0)), (sequences(drop("name")), (0, 1)), (drop("sequences"), (1, 1))],
)
def test_the_command_prints_findings_and_exits_by_them(
    change: Change,
    codes: tuple[int, int],
    small: Sandbox,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Failures, or warnings with --strict, exit with 1, and each finding is one line."""
    with deviating(small, changing(small, SEQUENCES, change)) as (service, client):
        monkeypatch.setenv("OUTREACH_BASE_URL", service.url)
        monkeypatch.setenv("OUTREACH_API_KEY", small.api_key)
        assert (main(["check", "--strict"]), main(["check"])) == codes[::-1]
        shown = capsys.readouterr().out
        for finding in of.check(client=client).itertuples():
            assert f"{finding.status:8} {finding.check}: " in shown
