"""The sandbox's example requests, and tokens chosen by the caller."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import requests

from outreach_frames import spec
from outreach_frames.sandbox import serve
from tests.sandbox.http import Api


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
