"""Selection of the service: arguments, environment, default client, sandbox."""

from __future__ import annotations

import gc
import ssl
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

import outreach_frames as of
from outreach_frames.client import connect
from outreach_frames.errors import ConfigurationError, OutreachWarning
from outreach_frames.sandbox import Sandbox
from tests.client.tracebacks import everything_shown
from tests.scripted import json, scripted

pytestmark = pytest.mark.long

TOKEN = "tok-6b1c-of-a-user"


@pytest.fixture(autouse=True)
def _nothing_connected(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start every test without configuration or default client."""
    monkeypatch.delenv("OUTREACH_BASE_URL", raising=False)
    monkeypatch.delenv("OUTREACH_API_KEY", raising=False)
    monkeypatch.setattr(connect, "_default", None)
    yield
    gc.collect(1)  # A full collection would take a tenth of a second.


def test_no_configuration_is_an_error_with_advice() -> None:
    """Without configuration every function raises an error that explains how to connect."""
    for call in (of.connect, of.sequences, of.mailboxes, of.search_people, of.count_people):
        with pytest.raises(ConfigurationError) as caught:
            call()
        assert "OUTREACH_BASE_URL" in str(caught.value)
        assert 'of.connect("sandbox")' in str(caught.value)


def test_the_last_client_is_the_default() -> None:
    """Functions use the last connected client unless client= is given."""
    empty = json({"sequences": []})
    with scripted([empty] * 3) as first, scripted([empty] * 3) as second:
        with (
            of.connect(first.url, "token", cache=None) as one,
            of.connect(second.url, "token", cache=None),
        ):
            of.sequences()
            of.sequences(client=one)
        assert (len(first.requests), len(second.requests)) == (1, 1)


def test_a_closed_client_is_not_used_silently(sandbox: Sandbox) -> None:
    """After closing, functions report a missing connection, and the client that it is closed."""
    with of.connect(sandbox.url, sandbox.api_key, cache=None) as client:
        pass
    with pytest.raises(ConfigurationError, match="No service is connected"):
        of.sequences()
    with pytest.raises(of.OutreachError, match="closed"):
        of.sequences(client=client)


def test_a_closed_sandbox_does_not_fall_back_to_the_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a sandbox is closed, functions do not fall back to the account of the environment."""
    with scripted([json({"sequences": []})] * 2) as account:
        monkeypatch.setenv("OUTREACH_BASE_URL", account.url)
        monkeypatch.setenv("OUTREACH_API_KEY", "token")
        of.connect("sandbox", cache=None).close()
        with pytest.raises(ConfigurationError, match="connection to the sandbox is closed"):
            of.sequences()
        assert account.requests == []
        with of.connect(cache=None):
            of.sequences()


def test_a_sandbox_with_an_invalid_option_is_stopped() -> None:
    """After an invalid option, the sandbox is stopped."""
    before = threading.active_count()
    with pytest.raises(ConfigurationError, match="timeout"):
        of.connect("sandbox", timeout=-1)
    assert threading.active_count() == before


def test_a_missing_token_does_not_show_the_address() -> None:
    """An error about a missing token does not show an address that contains a password."""
    with pytest.raises(ConfigurationError) as caught:
        of.connect("https://ada:s3cret@brightforge.example")
    assert "s3cret" not in str(caught.value)


def test_client_must_be_a_client() -> None:
    """Anything other than a client as client= is an error."""
    with pytest.raises(ConfigurationError, match="client takes"):
        of.sequences(client="https://brightforge.example")  # type: ignore[arg-type]


def test_the_sandbox_starts_by_name_and_stops_with_its_client(tmp_path: Path) -> None:
    """of.connect("sandbox") starts the embedded service, and closing the client stops it.

    Its responses are cached only in a file that is passed.
    """
    with of.connect("sandbox", cache=tmp_path / "cache", people=5) as cached:
        assert cached._session.cache is not None
    with of.connect("sandbox") as client:
        assert client._session.cache is None
        assert of.count_people() == 2000
        assert client.sandbox.lead_list_ids
        url, token = client.sandbox.url, client.sandbox.api_key
        with of.connect(url, token) as other:
            assert of.count_people(client=other) == 2000
            assert other._session.cache is None
    with of.connect(url, token, cache=None, max_wait=0) as later:
        with pytest.raises(of.OutreachError) as caught:
            of.sequences(client=later)
    assert caught.value.retryable


def test_the_scheme_of_a_proxy_is_case_insensitive() -> None:
    """A proxy for HTTP is used like one for http."""
    with scripted([json({"mailboxes": [], "_links": {}})]) as proxy:
        address = proxy.url.removeprefix("http://")
        with pytest.warns(OutreachWarning, match="not encrypted"):
            client = of.connect(
                "http://api.example.com", "token", cache=None, proxies={"HTTP": address}
            )
        with client:
            assert of.mailboxes().empty


@pytest.mark.parametrize(
    "proxies",
    [
        {"https": "http://user:s3cret@proxy.example:99999"},
        {"https": "http://user:12#s3cret@proxy.example:3128"},
        {"https": "http://user:12/s3cret@proxy.example:3128"},
        {"https": "http://user:s3cret@proxy .example"},
        {"https": "ftp://user:s3cret@proxy.example"},
        {"https": ""},
        {"HTTPS_PROXY": "http://user:s3cret@proxy.example:3128"},
    ],
    ids=str,
)
def test_an_invalid_proxy_is_an_error_before_any_request(proxies: dict[str, str]) -> None:
    """An invalid proxy, or one that would never be used, is an error that shows no password."""
    with pytest.raises(ConfigurationError, match="proxies") as raised:
        of.connect("https://api.example.com", "token", cache=None, proxies=proxies)
    shown = "".join(traceback.format_exception(raised.value))
    assert "s3cret" not in shown.replace(str(proxies), "")


CERTIFICATES = Path(certifi.where()).read_bytes()
KEY = b"-----BEGIN PRIVATE KEY-----\nMC4CAQ==\n-----END PRIVATE KEY-----\n"
NO_CERTIFICATES = {
    "empty": (b" \n", "is empty"),
    "key": (KEY, "a private key and no certificate"),
    "text": (b"Ask IT for the file.\n", "no valid certificate, which begins with"),
    "web page": ("<p>Überprüfung".encode(), "no valid certificate, which begins with"),
    "damaged": (CERTIFICATES[: CERTIFICATES.index(b"-----BEGIN") + 200], "no valid certificate"),
    "DER": (
        ssl.create_default_context(cafile=certifi.where()).get_ca_certs(binary_form=True)[0],
        "openssl x509 -inform der",
    ),
    "PFX": (bytes.fromhex("3082090a020103308208d0"), "openssl pkcs12"),
}


@pytest.mark.parametrize("kind", NO_CERTIFICATES)
def test_a_file_without_certificates_is_an_error(tmp_path: Path, kind: str) -> None:
    """A file that is no PEM of certificates is an error of `connect`, with reason and remedy."""
    content, words = NO_CERTIFICATES[kind]
    path = tmp_path / "ca.pem"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=words) as raised:
        of.connect("https://api.example.com", "token", cache=None, verify=path)
    assert str(path) in str(raised.value)
    path.write_bytes(CERTIFICATES)
    of.connect("https://api.example.com", "token", cache=None, verify=path).close()


def test_a_socks_proxy_names_the_package_that_it_needs() -> None:
    """A SOCKS proxy without the optional package is an error of `connect` without the password."""
    proxies = {"all": "socks5h://user:s3cret@proxy.example:1080"}
    with pytest.raises(ConfigurationError, match=r"pip install \"requests\[socks\]\"") as raised:
        of.connect("https://api.example.com", "token", cache=None, proxies=proxies)
    assert "s3cret" not in str(raised.value)


def test_a_misspelt_sandbox_is_refused() -> None:
    """A word like "sandbox" is no address, which is told before a token is missed."""
    for word in ("sandbx", "Sandbox", "sanbox"):
        with pytest.raises(ConfigurationError, match="Did you mean 'sandbox'"):
            of.connect(word)


@pytest.mark.parametrize("word", ["token", "api_token", "key"])
def test_an_unknown_keyword_argument_is_explained(word: str) -> None:
    """The nearest argument, or the token's, is named, and no traceback shows the token."""
    with pytest.raises(TypeError, match=r"connect\(\) .* Pass the token as api_key=") as caught:
        of.connect("https://api.example.com", **{word: TOKEN})
    assert TOKEN not in everything_shown(caught.value)
    with pytest.raises(TypeError, match=r"login\(\) .* It asks for the token"):
        of.login("https://api.example.com", **{word: TOKEN})
    with pytest.raises(TypeError, match="Did you mean 'network_name'"):
        of.connect("https://api.example.com", TOKEN, networkname="x")


def test_a_client_shows_what_it_is_connected_to(sandbox: Sandbox) -> None:
    """The repr has the address, and says sandbox and closed."""
    with of.connect("sandbox", cache=None) as client:
        assert repr(client) == f"Client({client.base_url!r}, sandbox)"
    assert repr(client) == f"Client({client.base_url!r}, sandbox, closed)"
    with of.connect(sandbox.url, sandbox.api_key, cache=None) as client:
        assert repr(client) == f"Client({sandbox.url!r})"
