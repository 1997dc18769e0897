"""The client over real sockets: requests, accepted responses, and hidden tokens."""

from __future__ import annotations

import copy
import gzip
import pickle
import traceback
import tracemalloc
from collections.abc import Callable, Mapping
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from outreach_frames import spec
from outreach_frames.client import response as response_module
from outreach_frames.client.client import Client
from outreach_frames.errors import (
    AuthenticationError,
    BadRequestError,
    ConfigurationError,
    InvalidInputError,
    InvalidResponseError,
    NotFoundError,
    RateLimitedError,
    ServerError,
    ServiceError,
    StatusError,
    UnsafeLinkError,
    ValidationFailedError,
    ValidationProblem,
)
from tests.client.connection import LIMIT, TOKEN, connected
from tests.scripted import (
    Received,
    Reply,
    Service,
    gzipped,
    json,
    raw,
    respond,
    scripted,
    truncated,
)


def test_every_request_has_token_and_user_agent() -> None:
    """A request has the token, asks for JSON and names the program, and has no cookies."""
    cookie = json({}, headers={"Set-Cookie": "session=1; Path=/"})
    with scripted([cookie, json({})]) as service, connected(service) as client:
        client._session.read(spec.LIST_SEQUENCES)
        client._session.write(spec.UPDATE_MAILBOX, path={"id": "m1"}, body=LIMIT)
    for request in service.requests:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        assert request.headers["Accept"] == "application/json"
        assert request.headers["User-Agent"] == f"outreach-frames/{version('outreach-frames')}"
        assert request.headers["Cookie"] is None
    assert service.requests[1].method == "PATCH"
    assert service.requests[1].headers["Content-Type"] == "application/json"
    assert service.requests[1].json == LIMIT


def test_ambient_credentials_and_proxies_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The .netrc file and the environment's proxies neither see nor change the token."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password something\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with scripted([json({})]) as service, scripted([]) as proxy, connected(service) as client:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        client._session.read(spec.LIST_SEQUENCES)
    assert service.requests[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert proxy.requests == []


def test_one_connection_serves_many_requests() -> None:
    """Requests reuse one connection."""
    with scripted(lambda _: json({})) as service, connected(service) as client:
        for _ in range(5):
            client._session.read(spec.LIST_SEQUENCES)
    assert len({request.connection for request in service.requests}) == 1


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("q.zyx@example.com", "q.zyx%40example.com"),
        ("a+b/c?d#e%f", "a%2Bb%2Fc%3Fd%23e%25f"),
        ("a/../b", "a%2F..%2Fb"),
        ("%2e%2e", "%252e%252e"),
        ("ü ~", "%C3%BC%20~"),
        ("...", "..."),
    ],
)
def test_values_in_the_path_are_escaped(value: str, sent: str) -> None:
    """Every character of a value arrives unchanged."""
    with scripted([json({})]) as service, connected(service) as client:
        client._session.read(spec.GET_CONTACT_BY_EMAIL, path={"email": value})
    assert service.targets == [f"/contacts/email/{sent}"]


@pytest.mark.parametrize("value", ["", " ", ".", "..", None, 5, b"x", "\ud83d"])
@pytest.mark.parametrize("endpoint", [spec.GET_CONTACT_BY_EMAIL, spec.GET_LEAD_LIST])
def test_invalid_values_in_the_path_are_an_error(endpoint: spec.Endpoint, value: Any) -> None:
    """A value that is not text or would change the path is an error before any request."""
    name = "email" if endpoint is spec.GET_CONTACT_BY_EMAIL else "id"
    with scripted([]) as service, connected(service) as client:
        with pytest.raises(InvalidInputError, match=name):
            client._session.read(endpoint, path={name: value})
        assert service.requests == []


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ({"ids[]": ["b", "a"]}, "?ids%5B%5D=b&ids%5B%5D=a"),
        ({"name": None, "status": "active"}, "?status=active"),
        ({"name": "a&b=ü"}, "?name=a%26b%3D%C3%BC"),
        ({"n": 5}, "?n=5"),
        ({"name": None}, ""),
    ],
)
def test_queries_are_encoded_as_documented(query: Mapping[str, Any], sent: str) -> None:
    """None is omitted, and lists repeat their parameter."""
    with scripted([json({})]) as service, connected(service) as client:
        client._session.read(spec.GET_CONTACTS, query=query)
    assert service.targets == [f"/contacts{sent}"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, "\ud83d"])
def test_bodies_that_are_not_json_are_an_error(value: object) -> None:
    """A value that JSON cannot hold is an error before any request, and is not sent as null."""
    with scripted([]) as service, connected(service) as client:
        with pytest.raises(InvalidInputError, match="JSON"):
            client._session.read(spec.SEARCH_PEOPLE, body={"person_name": value})
        assert service.requests == []


@pytest.mark.parametrize("status", [200, 201, 202, 206])
def test_any_2xx_is_success(status: int) -> None:
    """Every 2xx status is a success."""
    with scripted(lambda _: json({"ok": 1}, status)) as service, connected(service) as client:
        assert client._session.read(spec.LIST_SEQUENCES) == {"ok": 1}
        assert client._session.write(spec.ADD_LEADS, path={"id": "s"}, body={"leads": []}) == {
            "ok": 1
        }


def test_an_empty_response_is_valid_for_writes_only() -> None:
    """A write accepts an empty response; a read does not."""
    empty = respond(status=204, headers={"Content-Length": ""})
    with scripted(lambda _: empty) as service, connected(service) as client:
        assert client._session.write(spec.UPDATE_MAILBOX, path={"id": "m1"}, body=LIMIT) is None
        with pytest.raises(InvalidResponseError, match=r"it is empty.*204"):
            client._session.read(spec.LIST_SEQUENCES)


def test_a_response_is_decompressed_and_read_as_utf_8() -> None:
    """A gzip body is decompressed, and JSON is UTF-8, whatever the header says."""
    plain = json({"name": "Zoë"}, headers={"Content-Type": "application/json; charset=latin-1"})
    replies = [gzipped('{"name": "Zoë"}'.encode()), plain]
    with scripted(replies) as service, connected(service) as client:
        for _ in range(2):
            assert client._session.read(spec.LIST_SEQUENCES) == {"name": "Zoë"}


def test_a_response_that_is_not_json_is_an_error() -> None:
    """An HTML response is an error that shows its status and beginning."""
    html = respond(b"<html>\n<h1>Please log in</h1>", headers={"Content-Type": "text/html"})
    with scripted(lambda _: html) as service, connected(service) as client:
        with pytest.raises(InvalidResponseError, match=r"<html> <h1>Please log in.*200") as caught:
            client._session.read(spec.LIST_SEQUENCES)
    assert caught.value.status_code == 200


def test_a_gzip_bomb_is_an_error() -> None:
    """Decompression of a gzip bomb stops at the limit and uses little more memory than that."""
    limit = response_module.MAX_BODY_BYTES
    packed = gzip.compress(b" " * (4 * limit), compresslevel=1)
    bomb = respond(packed, headers={"Content-Encoding": "gzip"})
    with scripted([bomb]) as service, connected(service) as client:
        tracemalloc.start()
        try:
            with pytest.raises(InvalidResponseError, match="larger than"):
                client._session.read(spec.LIST_SEQUENCES)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 1.5 * limit


@pytest.mark.parametrize("unit", [b"{}", b"[[[[[[[[]]]]]]]]"])
def test_a_response_of_too_many_values_is_not_parsed(unit: bytes) -> None:
    """A body with too many values is an error, because they need far more memory as objects."""
    body = b'{"sequences": [%b]}' % b",".join([unit] * response_module.MAX_VALUES)
    with scripted([gzipped(body)]) as service, connected(service) as client:
        with pytest.raises(InvalidResponseError, match="larger than 1,000,000 values"):
            client._session.read(spec.LIST_SEQUENCES)
        assert len(service.requests) == 1


def test_only_the_beginning_of_an_error_is_read() -> None:
    """An error's body may be endless, so only its beginning is read."""
    long = respond(b"Broken. " + b" " * 10_000_000, 400, {"Content-Length": str(10**12)})
    with scripted([long]) as service, connected(service) as client:
        with pytest.raises(BadRequestError, match=r"Broken\."):
            client._session.read(spec.LIST_SEQUENCES)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 304])
@pytest.mark.parametrize("where", ["http://evil.example/sequences?x=1", "/other", "http://[", ""])
def test_redirects_are_an_error(status: int, where: str) -> None:
    """A redirect is an error that names the host, and is not followed."""
    reply = json({}, status, headers={"Location": where})
    with scripted(lambda _: reply) as service, connected(service) as client:
        with pytest.raises(UnsafeLinkError) as caught:
            client._session.read(spec.LIST_SEQUENCES)
        assert len(service.requests) == 1
    assert ("evil.example" in str(caught.value)) is ("evil" in where)
    assert "x=1" not in str(caught.value)


ERRORS = [
    (400, BadRequestError, False, False),
    (401, AuthenticationError, False, False),
    (402, StatusError, False, False),
    (403, AuthenticationError, False, False),
    (404, NotFoundError, False, False),
    (405, StatusError, False, False),
    (408, StatusError, False, True),
    (409, StatusError, False, True),
    (413, StatusError, False, False),
    (418, StatusError, False, True),
    (422, ValidationFailedError, False, False),
    (425, StatusError, False, False),
    (429, RateLimitedError, True, False),
    (451, StatusError, False, False),
    (499, StatusError, False, True),
    (500, ServerError, True, True),
    (503, ServerError, True, True),
    (599, ServerError, True, True),
]


@pytest.mark.parametrize(("status", "kind", "retryable", "may_have_acted"), ERRORS)
def test_error_statuses_become_exceptions(
    status: int, kind: type[StatusError], retryable: bool, may_have_acted: bool
) -> None:
    """Each error status raises its exception, with its facts and the service's own words."""
    with scripted(lambda _: json({"error": "Because."}, status)) as service:
        with connected(service, max_wait=0.1) as client, pytest.raises(StatusError) as caught:
            client._session.read(spec.GET_LEAD_LIST, path={"id": "l1"})
    error = caught.value
    assert type(error) is kind
    assert error.status_code == status
    assert (error.retryable, error.may_have_acted) == (retryable, may_have_acted)
    assert str(error).endswith(f". (GET /lead-lists/l1: {status}, Because.)")


NOT_FOUND: list[tuple[spec.Endpoint, dict[str, str], str]] = [
    (
        spec.GET_LEAD_LIST,
        {"id": "a b"},
        "There is no lead list 'a b': check the id and the service's address.",
    ),
    (spec.GET_LEAD_LIST, {"id": "ada@x.example"}, "There is no lead list with this id: "),
    (spec.GET_CONTACT_BY_EMAIL, {"email": "ada@x.example"}, "There is no contact with this email"),
    (
        spec.LIST_SEQUENCES,
        {},
        "The service has nothing at this address: check the service's address.",
    ),
]


@pytest.mark.parametrize(("endpoint", "path", "sentence"), NOT_FOUND)
def test_a_404_names_what_is_missing(
    endpoint: spec.Endpoint, path: dict[str, str], sentence: str
) -> None:
    """The message begins with the missing object, and never shows an email address."""
    with scripted(lambda _: json({}, 404)) as service, connected(service) as client:
        with pytest.raises(NotFoundError) as caught:
            client._session.read(endpoint, path=path)
    assert str(caught.value).startswith(sentence)
    assert "ada" not in str(caught.value)


def test_all_reasons_of_a_422_are_kept() -> None:
    """Unknown codes and undocumented entries are kept like the documented ones."""
    entries = [
        {"error_code": "missing_lead_field", "message": "email is missing"},
        {"error_code": "brand_new", "message": "who knows"},
        {"message": "no code"},
        "just text",
        None,
    ]
    with scripted([json({"validation_errors": entries}, 422)]) as service:
        with connected(service) as client, pytest.raises(ValidationFailedError) as caught:
            client._session.write(spec.ADD_LEADS, path={"id": "s1"}, body={"leads": []})
    assert caught.value.validation_errors == (
        ValidationProblem("missing_lead_field", "email is missing"),
        ValidationProblem("brand_new", "who knows"),
        ValidationProblem("", "no code"),
        ValidationProblem("", "just text"),
        ValidationProblem("", "None"),
    )
    assert "missing_lead_field: email is missing" in str(caught.value)


def test_a_truncated_error_is_still_that_error() -> None:
    """The status decides the exception, even if the body is truncated."""
    with scripted([truncated(json({"error": "x" * 50}, 422))]) as service:
        with connected(service) as client, pytest.raises(ValidationFailedError) as caught:
            client._session.write(spec.ADD_LEADS, path={"id": "s1"}, body={"leads": []})
    assert caught.value.may_have_acted is False


def test_messages_name_no_person() -> None:
    """No message shows an email address of a request's path or query."""
    with scripted([json({}, 404), json({}, 400), Reply((), "reset")]) as service:
        with connected(service) as client:
            texts = []
            for read in (
                lambda: client._session.read(
                    spec.GET_CONTACT_BY_EMAIL, path={"email": "q.zyx@example.com"}
                ),
                lambda: client._session.read(
                    spec.LIST_MAILBOXES, query={"user_email": "q.zyx@example.com"}
                ),
            ):
                with pytest.raises(ServiceError) as caught:
                    read()
                texts.append(str(caught.value))
            with pytest.raises(ServiceError) as caught:
                client._session.write(
                    spec.ADD_LEADS,
                    path={"id": "s"},
                    body={"leads": [{"email": "q.zyx@example.com"}]},
                )
            texts.append(str(caught.value))
    assert "GET /contacts/email/{email}" in texts[0]
    assert not any("zyx" in text for text in texts)


@pytest.mark.parametrize("reply", [None, Reply((), "reset"), raw(b"to q.zyx@example.com")])
def test_messages_about_the_network_name_the_cause_and_no_person(reply: Reply | None) -> None:
    """If the connection fails, the error shows the cause but no requested address."""
    with scripted([] if reply is None else [reply] * 5) as service:
        listening = Service("http://127.0.0.1:1") if reply is None else service
        with connected(listening) as client, pytest.raises(ServiceError) as caught:
            client._session.read(spec.GET_CONTACT_BY_EMAIL, path={"email": "q.zyx@example.com"})
    assert any(cause in str(caught.value) for cause in ("refused", "reset", "status line"))
    assert "zyx" not in str(caught.value)


ECHOES: dict[str, Callable[[str], Reply]] = {
    "json": lambda token: json({"error": {"message": f"bad {token}"}}, 401),
    "text": lambda token: respond(f"bad {token}!".encode(), 500),
    "html": lambda token: respond(f"<p>{token.replace('&', '&amp;')}</p>".encode(), 403),
    "list": lambda token: json(
        {"validation_errors": [{"error_code": token, "message": token}]}, 422
    ),
    "good": lambda token: respond(f"Bearer {token}".encode(), 200),
    "cut": lambda token: truncated(json({"a": token})),
    "raw": lambda token: raw(token.encode()),
    "redirect": lambda token: json({}, 302, headers={"Location": f"http://x.example/{token}"}),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_the_token_is_in_no_error_even_when_the_service_echoes_it(echo: str) -> None:
    """No text of an exception or of its causes has the token."""
    with scripted(lambda _: ECHOES[echo](TOKEN)) as service, connected(service) as client:
        with pytest.raises(ServiceError) as caught:
            client._session.read(spec.LIST_SEQUENCES)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    shown += shown.replace("&amp;", "&")
    assert TOKEN not in shown


def test_a_client_does_not_expose_its_token() -> None:
    """The repr shows the address only, no attribute shows the token, and copying fails."""
    with closing(Client("http://localhost:1/api", TOKEN, cache=None)) as client:
        assert repr(client) == "Client('http://localhost:1/api')"
        assert TOKEN not in repr(vars(client))
        for holder in (client, client._session):
            parts = [part for part in vars(holder).values() if hasattr(part, "__dict__")]
            assert TOKEN not in str([repr(vars(part)) for part in parts])
        for hand_over in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="token"):
                hand_over(client)


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        (None, "missing"),
        ("", "missing"),
        (5, "not text"),
        ("secret-1\n", "ends in a line break"),
        ("secret-1\r\n", "line break"),
        (" secret-1", "blanks"),
        ("secret 1", "blanks"),
        ("secret\x00-1", "control"),
        ("secret\n-1", "control"),
        ("secret\u00a0-1", "blanks"),
        ("secret-\u20ac", "cannot be sent"),
    ],
)
def test_invalid_tokens_are_an_error_that_does_not_show_them(token: Any, problem: str) -> None:
    """An invalid token is an immediate error that gives the reason but not the token."""
    with pytest.raises(ConfigurationError, match=problem) as caught:
        Client("http://localhost:1", token, cache=None)
    assert "secret" not in "".join(traceback.format_exception(caught.value, chain=True)[-1:])


@pytest.mark.parametrize(
    "address",
    [
        *("", "api.example.com", "ftp://api.example.com", "http://", "https:///x", "http://[::1"),
        *("http://u:p@h.example", "http://h.example?x=1", "http://h.example/#a", "http://h:99999"),
        *("http://h.example/a b", "http://h\\x.example", "http://h\n.example", "http://*.example"),
        *(None, 5, b"http://localhost"),
    ],
)
def test_invalid_addresses_are_an_error(address: Any) -> None:
    """An invalid address is an immediate error that shows a valid example."""
    with pytest.raises(ConfigurationError, match=r"https://api\.example\.com"):
        Client(address, TOKEN, cache=None)


@pytest.mark.parametrize("end", ["", "/", "//"])
@pytest.mark.parametrize("base_path", ["", "/api/v1"])
def test_a_base_path_is_kept(base_path: str, end: str) -> None:
    """Requests are sent below the base path, with or without a trailing slash."""
    with scripted([json({})], base_path=base_path) as service:
        with Client(service.url + end, TOKEN, cache=None) as client:
            client._session.read(spec.LIST_SEQUENCES)
            assert client.base_url == service.url
    assert service.targets == [f"{base_path}/sequences"]


def page(ids: list[str], link: Any = ...) -> Reply:
    """Respond with a page of sequences and a link to the next page."""
    following = {} if link is ... else {"next": link}
    return json({"sequences": [{"id": one} for one in ids], "_links": following})


MISSING: list[Any] = [None, {}, "", {"href": None}, {"href": ""}]


@pytest.mark.parametrize("links", [None, [], {}, *({"next": link} for link in MISSING)], ids=str)
def test_a_page_without_a_link_is_the_last(links: Any) -> None:
    """Every form of a missing link ends the list; an empty page with a link does not."""
    script = [page(["a"], {"href": "/sequences?p=2"}), page([], {"href": "/sequences?p=3"})]
    last = json({"sequences": [{"id": "c"}], "_links": links})
    with scripted([*script, last]) as service, connected(service) as client:
        pages = list(client._session.read_pages(spec.LIST_SEQUENCES))
    assert [len(one["sequences"]) for one in pages] == [1, 0, 1]


@pytest.mark.parametrize("href", ["/sequences", "/sequences?p=1", "?p=1"])
def test_circular_links_are_an_error(href: str) -> None:
    """A link that was already followed is an error."""
    script = [page(["a"], {"href": "/sequences?p=1"}), page(["b"], {"href": href})]
    with scripted(script) as service, connected(service) as client:
        pages = client._session.read_pages(spec.LIST_SEQUENCES)
        assert [next(pages)["sequences"], next(pages)["sequences"]] == [
            [{"id": "a"}],
            [{"id": "b"}],
        ]
        with pytest.raises(UnsafeLinkError, match="do not end"):
            next(pages)
        assert len(service.requests) == 2


def test_endless_new_links_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """If every page links to another one, reading stops with an error at a limit."""
    monkeypatch.setattr("outreach_frames.client.request.MAX_PAGES", 7)

    def endless(request: Received) -> Reply:
        return page([], {"href": f"/sequences?p={len(request.target)}{'x' * len(request.target)}"})

    with scripted(endless) as service, connected(service) as client:
        with pytest.raises(UnsafeLinkError, match="page 7 still"):
            list(client._session.read_pages(spec.LIST_SEQUENCES))
        assert len(service.requests) == 7


@pytest.mark.parametrize("href", ["//{other}/x", "http://{other}/x", "\t//{other}/x", "@{other}/x"])
def test_links_to_other_hosts_are_not_followed(href: str) -> None:
    """A link to another host or port is an error before any request to it."""
    with scripted([]) as other:
        away = href.format(other=other.url.removeprefix("http://"))
        with scripted([page(["a"], {"href": away})]) as service, connected(service) as client:
            pages = client._session.read_pages(spec.LIST_SEQUENCES)
            next(pages)
            with pytest.raises(UnsafeLinkError, match="Nothing was sent"):
                next(pages)
            assert len(service.requests) == 1
        assert other.requests == []


NETWORK = "bluebook"


def test_the_network_name_is_translated() -> None:
    """Documented field names are translated in requests and responses; values and data are not."""
    response_on_wire = {
        "total": 1,
        "duplicate_bluebook_urls": ["bluebook_url"],
        "in_exclusion_list_and_skipped": [{"email": None, "bluebook_url": '"bluebook_url": x'}],
    }
    lead = {
        "email": None,
        "profnet_url": "https://profnet.example/in/profnet_url",
        "data": {"profnet_url": "kept", "note": "profnet_url"},
    }
    with scripted([json(response_on_wire), json({})]) as service:
        with connected(service, network_name=NETWORK) as client:
            result = client._session.write(spec.ADD_LEADS, path={"id": "s"}, body={"leads": [lead]})
            client._session.read(
                spec.SEARCH_PEOPLE, body={"exclude_profnet_networks": ["all_networks"]}
            )
    assert service.requests[0].json == {
        "leads": [{"email": None, "bluebook_url": lead["profnet_url"], "data": lead["data"]}]
    }
    assert service.requests[1].json == {"exclude_bluebook_networks": ["all_networks"]}
    assert result == {
        "total": 1,
        "duplicate_profnet_urls": ["bluebook_url"],
        "in_exclusion_list_and_skipped": [{"email": None, "profnet_url": '"bluebook_url": x'}],
    }
