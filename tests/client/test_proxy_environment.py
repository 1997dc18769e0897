"""Proxy and certificates from the environment, for connections and commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

import outreach_frames as of
from outreach_frames.client import connect
from outreach_frames.errors import ConfigurationError, ConnectionFailedError
from tests.client.keyrings import MemoryKeyring, using
from tests.scripted import json, scripted

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:.*not encrypted:outreach_frames.OutreachWarning"),
]

SERVICE = "http://api.example.com"
EMPTY = json({"sequences": [], "_links": {}})
NOTHING = "http://127.0.0.1:9"
OTHERS = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
OTHER_BUNDLES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start every test without proxies, certificates or a default client."""
    for name in (*OTHERS, *OTHER_BUNDLES, "OUTREACH_BASE_URL", "OUTREACH_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(connect, "_default", None)
    yield
    if client := connect.current():
        client.close()


def test_the_environments_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """OUTREACH_PROXY is the proxy of connections without one, but not of the embedded sandbox."""
    with scripted(lambda _: EMPTY) as proxy, scripted(lambda _: EMPTY) as other:
        monkeypatch.setenv("OUTREACH_PROXY", proxy.url.removeprefix("http://"))
        of.connect(SERVICE, "token", cache=None)
        assert of.sequences().empty
        assert proxy.requests[-1].path.startswith(SERVICE)
        of.connect(SERVICE, "token", cache=None, proxies={"http": other.url})
        assert of.sequences().empty
        of.connect(other.url, "token", cache=None, proxies={})
        assert of.sequences().empty
        with of.connect("sandbox", people=5, cache=None):
            assert of.count_people() == 5
        assert (len(proxy.requests), len(other.requests)) == (1, 2)


def test_a_profiles_proxy_has_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored proxy is used before OUTREACH_PROXY, which `login` uses and does not store."""
    monkeypatch.setattr("getpass.getpass", lambda _: "token")
    with scripted(lambda _: EMPTY) as proxy, scripted(lambda _: EMPTY) as other:
        with using(MemoryKeyring()) as ring:
            monkeypatch.setenv("OUTREACH_PROXY", proxy.url)
            of.login(SERVICE).close()
            assert proxy.url not in str(vars(ring))
            of.login(SERVICE, proxies={"http": other.url}, profile="other").close()
            monkeypatch.setenv("OUTREACH_PROXY", "http://user:s3cret@proxy example")
            of.connect(profile="other", cache=None)
            assert of.sequences().empty
            with pytest.raises(ConfigurationError, match=r"^OUTREACH_PROXY is not a proxy's"):
                of.login(SERVICE)
        assert (len(proxy.requests), len(other.requests)) == (1, 2)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("OUTREACH_PROXY", "http://user:s3cret@proxy example", "is not a proxy's address"),
        ("OUTREACH_PROXY", "ftp://user:s3cret@proxy.example", "is not a proxy's address"),
        ("OUTREACH_CA_BUNDLE", "/absent.pem", "takes a file of .*: /absent.pem does not exist"),
    ],
)
def test_an_invalid_variable_is_named(
    name: str, value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invalid value names its variable and no password, except where it is not used."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=f"^{name} {sentence}") as caught:
        of.connect(SERVICE, "token", cache=None)
    assert "s3cret" not in str(caught.value)
    of.connect("sandbox", people=5, cache=None)


def test_the_environments_certificates_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """OUTREACH_CA_BUNDLE is the file of certificates, unless verify= names another or is False."""
    copy = tmp_path / "authorities.pem"
    copy.write_bytes(Path(certifi.where()).read_bytes())
    monkeypatch.setenv("OUTREACH_CA_BUNDLE", str(copy))
    of.connect("https://api.example.com", "token", cache=None)
    copy.write_text("")
    with pytest.raises(ConfigurationError, match=r"OUTREACH_CA_BUNDLE .* is empty"):
        of.connect("https://api.example.com", "token", cache=None)
    of.connect("https://api.example.com", "token", cache=None, verify=certifi.where())
    of.connect("https://api.example.com", "token", cache=None, verify=False)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("address", [NOTHING, "http://host.invalid"])
def test_an_unused_proxy_is_named(name: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing answers, the error says that another program's proxy is not used."""
    monkeypatch.setenv(name, "http://user:s3cret@proxy.example:3128")
    of.connect(address, "token", cache=None, max_wait=0)
    sentence = f"{name} is set, but not used: pass its value as proxies= or OUTREACH_PROXY"
    with pytest.raises(ConnectionFailedError, match=sentence) as caught:
        of.sequences()
    assert "s3cret" not in str(caught.value)
    of.connect(address, "token", cache=None, max_wait=0, proxies={"http": NOTHING})
    with pytest.raises(ConnectionFailedError, match="The proxy does not answer") as caught:
        of.sequences()
    assert "not used" not in str(caught.value)


@pytest.mark.parametrize("status", [403, 407, 502])
def test_a_proxy_that_refuses_is_asked_once(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy's refusal is not retried; a proxy that cannot reach the service is asked again."""
    with scripted(lambda _: json({}, status)) as proxy:
        monkeypatch.setenv("OUTREACH_PROXY", proxy.url)
        of.connect("https://api.example.com", "token", cache=None, max_wait=0.1)
        with pytest.raises(ConnectionFailedError, match="check proxies= or OUTREACH_PROXY"):
            of.sequences()
        assert len(proxy.requests) == (5 if status == 502 else 1)
