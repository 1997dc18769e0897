"""The sandbox's page, and its example requests."""

from __future__ import annotations

import re
import shlex
import sqlite3
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
import requests

from outreach_frames import spec
from outreach_frames.sandbox import FAULT_KINDS, Sandbox, serve
from tests.sandbox.http import PEOPLE, Api


def page(sandbox: Sandbox) -> str:
    """Return the page's HTML, requested without a token."""
    response = requests.get(f"{sandbox.url}/", timeout=20)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    return response.text


def send(line: str) -> requests.Response:
    """Send the request of a shell command."""
    program, *words = shlex.split(line)
    assert program == "curl"
    url, options = words.pop(), iter(words)
    method, body, headers = "GET", None, {}
    for option in options:
        if option == "-X":
            method = next(options)
        elif option == "-d":
            body = next(options)
        elif option == "-H":
            name, _, value = next(options).partition(": ")
            headers[name] = value
        else:
            assert option == "-s"
    if body is not None and method == "GET":
        method = "POST"
    return requests.request(method, url, headers=headers, data=body, timeout=20)


def test_every_request_to_try_works(api: Api) -> None:
    """Each operation has a command with the token, and its response has status 200."""
    lines = api.sandbox.curl()
    assert list(lines) == [endpoint.name for endpoint in spec.ENDPOINTS]
    for endpoint in spec.ENDPOINTS:
        response = send(lines[endpoint.name])
        assert response.status_code == 200, response.text
        assert response.request.method == endpoint.method


def test_the_page_shows_every_operation(api: Api) -> None:
    """The page shows each operation with its parameters and command, without the token."""
    html = page(api.sandbox)
    shown = [unescape(line) for line in re.findall(r"<pre>(curl .*?)</pre>", html)]
    assert shown == list(api.sandbox.curl("$OUTREACH_API_KEY").values())
    for endpoint in spec.ENDPOINTS:
        assert f"<h3><code>{endpoint.label}</code></h3>" in html
        for field in (*endpoint.query, *endpoint.body):
            assert f"<code>{field.name}</code>" in html
    assert api.sandbox.api_key not in html


def test_the_page_shows_the_world(api: Api) -> None:
    """The page counts people and lists sequences and lead lists with their ids."""
    sandbox = api.sandbox
    html = page(sandbox)
    assert f">{PEOPLE:,}</td><td>people in people search</td>" in html
    for shows, sequence_id in sandbox.sequence_ids.items():
        assert re.search(f"<code>{shows}</code>.*<code>{sequence_id}</code>", html)
    for wanted in (*sandbox.lead_list_ids, sandbox.today.isoformat(), *FAULT_KINDS):
        assert wanted in html


def test_leads_are_counted_and_not_shown(api: Api) -> None:
    """The page shows the number of added leads, but no lead."""
    before = re.search(r">([\d,]+)</td><td>leads in sequences", page(api.sandbox))
    email = "somebody.unusual@person.example"
    assert api.add(api.sandbox.sequence_ids["accepts_any"], [{"email": email}]).ok
    html = page(api.sandbox)
    after = re.search(r">([\d,]+)</td><td>leads in sequences", html)
    assert before is not None
    assert after is not None
    assert int(after[1]) == int(before[1]) + 1
    assert email not in html


def test_active_faults_are_named(api: Api) -> None:
    """The page names the active faults, which do not affect it."""
    assert "No fault is active." in page(api.sandbox)
    api.sandbox.faults = ["server_error", "slow_body"]
    assert "Active faults: server_error, slow_body." in page(api.sandbox)


def test_the_page_loads_nothing_external(api: Api) -> None:
    """The page has no external scripts, pictures or styles, and its policy forbids them."""
    html = page(api.sandbox)
    assert not re.search(r"<(script|link|img|iframe|object|form)\b|\ssrc=|url\(|@import", html)
    assert re.findall(r'href="([^"]*)"', html) == ["/openapi.json"]
    policy = requests.get(api.sandbox.url, timeout=20).headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline';")


def test_markup_in_names_is_text(tmp_path: Path) -> None:
    """HTML in names is escaped."""
    db = tmp_path / "world.sqlite"
    with serve(people=20, db=db):
        pass
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("UPDATE sequences SET name = '<script>alert(1)</script> & \"x\"'")
    with serve(people=20, db=db) as sandbox:
        html = page(sandbox)
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;x&quot;" in html


class TestTokens:
    """Tokens chosen by the caller."""

    def test_survives_a_restart(self, tmp_path: Path) -> None:
        """With a file and a chosen token the same request works after a restart."""
        lines = []
        for _ in range(2):
            with serve(people=20, db=tmp_path / "world.sqlite", api_key="my-own.key~1=") as sandbox:
                assert sandbox.api_key == "my-own.key~1="
                assert send(sandbox.curl()["list_mailboxes"]).status_code == 200
                lines.append(sandbox.curl()["add_leads"].replace(sandbox.url, ""))
        assert lines[0] == lines[1]

    @pytest.mark.parametrize("key", ["", " ", "a b", "key\n", "schlüssel", "'; ls", "$HOME"])
    def test_invalid_tokens_are_an_error(self, key: str) -> None:
        """A token invalid in a header or shell command is an error that does not show it."""
        with pytest.raises(ValueError, match="Use letters, digits and") as caught:
            serve(people=20, api_key=key)
        assert not key.strip() or key not in str(caught.value)
