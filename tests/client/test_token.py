"""The token is in the requests to the service and nowhere else."""

from __future__ import annotations

import html
import http.client
import json
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import ConfigurationError, OutreachError, ServiceError
from tests.client.tracebacks import everything_shown
from tests.scripted import Received, Reply, respond, scripted
from tests.scripted import json as json_reply

TOKEN = 'sk/live+Zx9"&\\qW7eRtY\u00e4'
# Typical tokens of services, without characters that JSON must escape.
TOKENS = {
    "base64": "Zx9+qW7/eRtYuI==",
    "letters": "live\u00e4Zx9-qW7e_RtY",
    "web": "sk<Zx9>&qW7'eRtY",
}


@pytest.mark.parametrize(
    "options",
    [
        *({"cache": value} for value in (5, "/", "/dev/null")),
        {"cache": "~nobody-of-this-name/cache"},
        {"cache": "a\0b"},
        *({"timeout": value} for value in (0, -1, None, "30", float("nan"), float("inf"))),
        *({"max_wait": value} for value in (-1, None, float("nan"))),
        *({"workers": value} for value in (0, -1, 1.5, None, True)),
        *({"requests_per_minute": value} for value in (0, -1, "30", True, float("nan"))),
        *({"network_name": value} for value in ("", "X", "1a", "a-b", None)),
        {"verify": "/no/such/file"},
        {"verify": 5},
        {"proxies": 5},
        {"base_url": "ftp://nowhere"},
    ],
    ids=repr,
)
def test_a_bad_argument_is_a_typed_error_that_shows_no_token(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any invalid argument of connect is an error that names it, and no frame has the token."""
    monkeypatch.delenv("OUTREACH_BASE_URL", raising=False)
    parts = ["s3cr", "3t-0f-the-t3st"]
    with pytest.raises(
        ConfigurationError, match=next(iter(options)).replace("base_url", "address")
    ) as caught:
        of.connect(**{"base_url": "http://127.0.0.1:1", "api_key": "".join(parts), **options})
    assert "".join(parts) not in everything_shown(caught.value)


@pytest.mark.long
def test_an_interrupt_during_a_request_shows_no_token() -> None:
    """The frames of the HTTP libraries have requests without the token."""
    parts = ["s3cr", "3t-0f-the-t3st"]
    seen: list[str | None] = []
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(received: Received) -> Reply:
        seen.append(received.headers["Authorization"])
        signal.pthread_kill(main, signal.SIGINT)
        return Reply()

    with scripted(interrupt) as service:
        with closing(Client(service.url, "".join(parts), cache=None)) as client:
            with pytest.raises(KeyboardInterrupt) as caught:
                client._session.read(spec.LIST_SEQUENCES)
    assert seen == [f"Bearer {''.join(parts)}"]
    shown = everything_shown(caught.value)
    assert "urllib3" in shown
    assert "".join(parts) not in shown


def test_debug_output_of_the_http_library_shows_no_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The debug output of http.client prints requests without the token."""
    monkeypatch.setattr(http.client.HTTPConnection, "debuglevel", 1)
    with scripted([json_reply({})]) as service:
        with closing(Client(service.url, "s3cr3t-0f-the-t3st", cache=None)) as client:
            client._session.write(spec.ADD_LEADS, path={"id": "1"}, body={"leads": []})
        assert service.requests[0].headers["Authorization"] == "Bearer s3cr3t-0f-the-t3st"
    printed = capsys.readouterr().out
    assert "reply:" in printed
    assert "s3cr3t" not in printed


def test_a_proxy_does_not_get_the_token() -> None:
    """The CONNECT request to a proxy has no token; only the service gets it."""
    heads: list[bytes] = []

    def refuse(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            heads.append(connection.recv(65536))
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=refuse, args=(listener,), daemon=True)
        thread.start()
        proxy = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with closing(
            Client("https://x.example", TOKEN, cache=None, proxies={"https": proxy}, max_wait=0)
        ) as client:
            with pytest.raises(ServiceError):
                client._session.write(spec.ADD_LEADS, path={"id": "1"}, body={"leads": []})
        thread.join(10)
    assert heads[0].startswith(b"CONNECT x.example:443")
    assert b"Authorization" not in heads[0]


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda token: json.dumps(token, ensure_ascii=False)[1:-1],
    "ascii": lambda token: json.dumps(token)[1:-1],
    "slashes": lambda token: json.dumps(token)[1:-1].replace("/", "\\/"),
}


@pytest.mark.long
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("status", [200, 400, 422, 500])
def test_an_echoed_token_is_removed_in_each_form_of_json(
    spelling: str, status: int, tmp_path: Path
) -> None:
    """A token in JSON, escaped or not, reaches no result, error or file."""
    echoed = SPELLINGS[spelling](TOKEN)
    whole = f'{{"message": "bad {echoed}!"}}'
    texts = [whole, f"{whole} cut off"]
    with (
        scripted(lambda _: respond(texts[0].encode(), status)) as service,
        Client(service.url, TOKEN, cache=tmp_path / "cache.sqlite", backoff=0) as client,
    ):
        while texts:
            try:
                shown = str(client._session.read(spec.LIST_SEQUENCES, refresh=True))
            except OutreachError as error:
                shown = everything_shown(error)
            assert "[token]" in shown
            for form in (TOKEN, *(make(TOKEN) for make in SPELLINGS.values())):
                assert form not in shown
            del texts[0]
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not any(make(TOKEN).encode() in stored for make in SPELLINGS.values())


TEXT_SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "in an address": lambda token: quote(token, safe=""),
    "HTML": html.escape,
}


@pytest.mark.parametrize("spelling", TEXT_SPELLINGS)
@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_a_token_is_removed_from_addresses_and_markup(token: str, spelling: str) -> None:
    """A link or HTML snippet in the service's data does not show the token either."""
    echoed = TEXT_SPELLINGS[spelling](token)
    with scripted([json_reply({"a": f"x {echoed} y"})]) as service:
        with closing(Client(service.url, token, cache=None)) as client:
            assert client._session.read(spec.LIST_SEQUENCES) == {"a": "x [token] y"}


@pytest.mark.parametrize("token", ["k", "abc", "hunter2"])
def test_a_short_token_is_removed_from_errors_and_headers(token: str) -> None:
    """A short token may be a word in the data, but is removed from errors and after `Bearer`."""
    for status in (400, 200):
        body = json.dumps({"message": f"{token} got 'Bearer {token}'"}).encode()
        with scripted([respond(body, status)]) as service:
            with closing(Client(service.url, token, cache=None)) as client:
                try:
                    shown = str(client._session.read(spec.LIST_SEQUENCES))
                except OutreachError as error:
                    shown = str(error)
        assert f"Bearer {token}" not in shown
        assert "Bearer [token]" in shown or token == "k"
        assert status == 400 or f"{token} got" in shown


def test_an_uninitialised_client_has_a_repr() -> None:
    """A traceback with local variables can show a client whose arguments were invalid."""
    assert repr(Client.__new__(Client)) == "Client(None)"
