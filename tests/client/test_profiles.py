"""Login: prompts, storage in the keyring, and use of the token, which is never shown."""

from __future__ import annotations

import gc
import getpass
import json as json_module
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import certifi
import keyring.backends.null
import pytest
from keyring.backends.chainer import ChainerBackend

import outreach_frames as of
from outreach_frames.cli import main
from outreach_frames.client import connect
from outreach_frames.errors import AuthenticationError, ConfigurationError, ServiceError
from outreach_frames.sandbox import Sandbox
from tests.client.keyrings import (
    FailingKeyring,
    MemoryKeyring,
    NotRecommendedKeyring,
    PlaintextKeyring,
    using,
)
from tests.client.tracebacks import everything_shown
from tests.scripted import Service, json, scripted

VARIABLES = ("OUTREACH_BASE_URL", "OUTREACH_API_KEY", "OUTREACH_PROFILE")
TOKEN = "tok-3f9a-of-the-keyring"
EMPTY = json({"sequences": [], "_links": {}})


class Person:
    """A user at the prompts with prepared answers; an unexpected prompt is an error."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.answers: list[str | BaseException] = []
        self.asked: list[str] = []
        # A notebook's kernel does this.
        patch.setattr("builtins.input", self._answer)
        patch.setattr(getpass, "getpass", self._answer)

    def _answer(self, prompt: str = "") -> str:
        self.asked.append(prompt)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def _nothing_connected(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start every test without configuration or default client."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(connect, "_default", None)
    yield
    gc.collect(1)  # A full collection would take a tenth of a second.


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Person:
    """Put a user with prepared answers at the prompts."""
    return Person(monkeypatch)


@pytest.fixture
def ring() -> Iterator[MemoryKeyring]:
    """Use an empty keyring."""
    with using(MemoryKeyring()) as chosen:
        yield chosen


def token_of(service: Service) -> str | None:
    """Return the token of the last request to a service."""
    return service.requests[-1].headers["Authorization"]


def test_login_asks_once(sandbox: Sandbox, person: Person, ring: MemoryKeyring) -> None:
    """The first login asks and stores; a second login, connect and functions do not ask."""
    person.answers = [f" {sandbox.url}/ ", f"{sandbox.api_key} "]
    with of.login() as client:
        assert client.base_url == sandbox.url
        assert connect.current() is client
    assert person.asked == ["Address of the service: ", f"Token for {sandbox.url}: "]
    for again in (of.login, of.connect, lambda: of.login(sandbox.url + "/")):
        with again():
            assert len(of.mailboxes()) > 0
    assert len(of.mailboxes()) > 0
    connect.resolve(None).close()
    assert ring.changes == ["default"]
    assert "sandbox-" not in repr(client)


def test_options_are_stored_with_the_token(
    person: Person, ring: MemoryKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies, certificates and the network's name come from the profile, in any folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(certifi.where(), "ca.pem")
    person.answers = [TOKEN]
    with scripted(lambda _: EMPTY) as proxy:
        options: dict[str, Any] = {"verify": "ca.pem", "network_name": "pronet"}
        options["requests_per_minute"] = 6000
        with pytest.warns(UserWarning, match="encrypted"):
            of.login("http://x.example", proxies={"http": proxy.url}, **options).close()
        assert proxy.targets[0].startswith("http://x.example/sequences")
        monkeypatch.chdir("/")
        with pytest.warns(UserWarning, match="encrypted"):
            with of.connect(cache=None) as client:
                of.sequences()
        assert (client._session.network_name, client._session._transport.verify) == (
            "pronet",
            str(tmp_path / "ca.pem"),
        )
        assert client._session.requests_per_minute == 6000
        assert len(proxy.requests) == 2
        # Further arguments are stored too, without a prompt.
        with pytest.warns(UserWarning, match="encrypted"):
            of.login(network_name="pron").close()
        with pytest.warns(UserWarning, match="encrypted"):
            with of.connect() as client:
                assert client._session.network_name == "pron"
        assert len(proxy.requests) == 3
    assert ring.changes == ["default"] * 2


def test_a_rejected_token_is_asked_for_again(
    sandbox: Sandbox, person: Person, ring: MemoryKeyring
) -> None:
    """A revoked token is asked for again at the same address; a wrong one is not stored."""
    status = 200
    with scripted(lambda _: json({"sequences": []}, status)) as service:
        person.answers = [TOKEN]
        of.login(service.url).close()
        kept = dict(ring.entries)
        status = 401
        person.answers = ["wrong"]
        with pytest.raises(AuthenticationError):
            of.login()
        assert person.asked[-1].endswith(f"refused. New token for {service.url}: ")
        assert (ring.entries, token_of(service)) == (kept, "Bearer wrong")
        assert connect.current() is None
    person.answers = [sandbox.api_key]
    of.login(sandbox.url).close()
    assert ring.entries != kept


@pytest.mark.parametrize("status", [None, 403, 404, 500])
def test_a_service_that_fails_changes_nothing(
    status: int | None, person: Person, ring: MemoryKeyring
) -> None:
    """If the service fails, login raises an error, does not ask, and keeps the profile."""
    replies = [EMPTY] if status is None else [EMPTY, json({}, status)]
    person.answers = [TOKEN]
    with scripted(replies) as service:
        of.login(service.url).close()
        if status is not None:
            with pytest.raises(ServiceError):
                of.login()
    with pytest.raises(ServiceError):
        of.login()
    assert (ring.changes, person.asked) == (["default"], [f"Token for {service.url}: "])


def test_an_address_of_another_service_is_an_error(person: Person, ring: MemoryKeyring) -> None:
    """A token is not stored for an address that does not respond as the service."""
    person.answers = [TOKEN]
    with scripted([json(["not", "the", "service"])]) as service, pytest.raises(ServiceError):
        of.login(service.url)
    assert ring.entries == {}


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "  ",
        "two words",
        "tok\u20ac",
        EOFError(),
        OSError("no tty"),
        NotImplementedError("no stdin"),
        getpass.GetPassWarning("echo"),
        UnicodeDecodeError("utf-8", TOKEN.encode(), 0, 1, "x"),
    ],
    ids=repr,
)
def test_invalid_input_is_not_stored(answer: Any, person: Person, ring: MemoryKeyring) -> None:
    """A missing or broken token, or no terminal, is an error that does not show the input."""
    person.answers = [answer]
    with scripted([]) as service, pytest.raises(ConfigurationError) as caught:
        of.login(service.url)
    assert (ring.entries, service.requests) == ({}, [])
    assert ("No token was entered" in str(caught.value)) == (answer in {"", "  "})
    shown = everything_shown(caught.value)
    assert TOKEN not in shown.replace(repr(answer), "")
    assert caught.value.__context__ is None


def test_ctrl_c_at_the_prompt_ends_login(person: Person, ring: MemoryKeyring) -> None:
    """Ctrl-C at the prompt reaches the caller, and nothing is stored."""
    person.answers = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        of.login("http://127.0.0.1:9")
    assert ring.entries == {}


@pytest.mark.parametrize(
    "options",
    [
        {"profile": ""},
        {"profile": 5},
        {"profile": "a/b"},
        {"base_url": ""},
        {"base_url": "sandbox"},
        {"base_url": "https://ada:s3cret@x.example"},
        {"verify": False},
        {"verify": "none.pem"},
        {"proxies": {"x": "y"}},
    ],
    ids=repr,
)
def test_arguments_are_checked_before_any_prompt(
    options: dict[str, Any], person: Person, ring: MemoryKeyring
) -> None:
    """An invalid argument is an error before any prompt."""
    with pytest.raises(ConfigurationError):
        of.login(**options)
    assert (person.asked, ring.changes) == ([], [])


def test_the_order_of_address_and_token_sources(
    person: Person, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of arguments, profile, OUTREACH_PROFILE, environment and default is used whole."""
    names = ("default", "crm", "env", "argument")
    tokens = {name: f"{TOKEN}-{name}" for name in names}
    with scripted(lambda _: EMPTY) as one, scripted(lambda _: EMPTY) as two:
        places = dict(zip(names, (one, two, two, one), strict=True))
        for name in names[:2]:
            person.answers = [tokens[name]]
            of.login(places[name].url, profile=name).close()

        def used(**arguments: Any) -> tuple[str, str | None]:
            with of.connect(cache=None, **arguments) as client:
                of.sequences()
            return client.base_url, token_of(one if client.base_url == one.url else two)

        def expected(name: str) -> tuple[str, str]:
            return places[name].url, f"Bearer {tokens[name]}"

        given = {"base_url": one.url, "api_key": tokens["argument"]}
        assert used() == expected("default")
        assert used(profile="crm") == expected("crm")
        monkeypatch.setenv("OUTREACH_API_KEY", tokens["env"])
        # A token without an address may be of another account than the stored one.
        with pytest.raises(ConfigurationError, match="address of its service is missing"):
            of.connect()
        assert used(profile="default") == expected("default")
        assert used(base_url=one.url) == (one.url, f"Bearer {tokens['env']}")
        monkeypatch.setenv("OUTREACH_BASE_URL", two.url)
        assert used() == expected("env")
        monkeypatch.setenv("OUTREACH_PROFILE", "crm")
        assert used() == expected("crm")
        assert used(profile="default") == expected("default")
        assert used(**given) == expected("argument")
        assert used(api_key=tokens["argument"])[1] == f"Bearer {tokens['argument']}"
        with of.connect("sandbox", people=20, cache=None) as client:
            assert client.sandbox is not None
        addresses: list[dict[str, Any]] = [{"base_url": url} for url in (one.url, "sandbox")]
        for beside in (*addresses, {"api_key": TOKEN}):
            with pytest.raises(ConfigurationError, match="Pass either profile="):
                of.connect(profile="crm", **beside)
        monkeypatch.delenv("OUTREACH_API_KEY")
        monkeypatch.setenv("OUTREACH_PROFILE", "")
        # An address without a token does not use the stored token.
        monkeypatch.setenv("OUTREACH_BASE_URL", one.url)
        with pytest.raises(ConfigurationError, match="token is missing"):
            of.connect()


def test_an_unknown_profile_is_named(ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown profile is an error, even if the environment has an account."""
    monkeypatch.setenv("OUTREACH_BASE_URL", "https://x.example")
    monkeypatch.setenv("OUTREACH_API_KEY", TOKEN)
    with pytest.raises(ConfigurationError, match=r"no profile 'crm'.*of\.login\(\)"):
        of.connect(profile="crm")
    monkeypatch.setenv("OUTREACH_PROFILE", "other")
    with pytest.raises(ConfigurationError, match=r"'other'.*OUTREACH_PROFILE"):
        of.sequences()


ENTRY = {"base_url": "https://x.example", "api_key": TOKEN}


@pytest.mark.parametrize(
    "entry",
    [
        TOKEN,
        "[]",
        "5",
        json_module.dumps({"api_key": TOKEN}),
        json_module.dumps({**ENTRY, "api_key": 5}),
        json_module.dumps({**ENTRY, "base_url": "sandbox"}),
        json_module.dumps({**ENTRY, "verify": False}),
        json_module.dumps({**ENTRY, "api_key": f"{TOKEN}\ud800"}, ensure_ascii=False),
        json_module.dumps({**ENTRY, "later": 5}),
        json_module.dumps(ENTRY)[:-1],
    ],
)
def test_a_damaged_entry_is_named_and_can_be_replaced(
    entry: str, sandbox: Sandbox, person: Person, ring: MemoryKeyring
) -> None:
    """An unreadable entry is an error that does not show the entry; login replaces it."""
    ring.entries["outreach_frames", "default"] = entry
    for call in (of.connect, lambda: of.connect(profile="default")):
        with pytest.raises(ConfigurationError, match=r"damaged entry .*of\.login") as caught:
            call()
        assert TOKEN not in everything_shown(caught.value)
    person.answers = [sandbox.api_key]
    of.login(sandbox.url).close()
    of.connect().close()


@pytest.mark.parametrize(
    "ring",
    [keyring.backends.null.Keyring(), PlaintextKeyring(), NotRecommendedKeyring()],
    ids=lambda ring: type(ring).__name__,
)
def test_a_keyring_that_does_not_encrypt_is_not_used(ring: Any, person: Person) -> None:
    """A keyring without encryption is an error that names the variables; login does not ask."""
    with using(ring):
        for call in (of.login, of.logout, lambda: of.connect(profile="default")):
            with pytest.raises(ConfigurationError, match="OUTREACH_BASE_URL and OUTREACH_API_KEY"):
                call()
        with pytest.raises(ConfigurationError, match="No service is connected"):
            of.connect()
    assert person.asked == []
    assert getattr(ring, "changes", []) == []


def test_a_chain_of_keyrings_does_not_use_plain_text(person: Person) -> None:
    """In a chain of keyrings only encrypting ones are used, the system's first."""
    plain, chosen = PlaintextKeyring(), MemoryKeyring()
    chain = type("Chain", (ChainerBackend,), {"backends": [plain, chosen]})
    person.answers = [TOKEN]
    with using(chain()), scripted([EMPTY] * 2) as service:
        of.login(service.url).close()
        of.connect().close()
    assert (plain.changes, chosen.changes) == ([], ["default"])


@pytest.mark.parametrize("fault", [ValueError, keyring.errors.KeyringLocked, KeyboardInterrupt])
def test_a_keyring_that_fails_shows_no_token(fault: type[BaseException], person: Person) -> None:
    """A keyring's error while storing the token is replaced, without the frames that show it."""
    person.answers = ["".join(parts := ["tok-", "x" * 40])]
    expected = KeyboardInterrupt if fault is KeyboardInterrupt else ConfigurationError
    with using(FailingKeyring(fault)), scripted([EMPTY]) as service:
        with pytest.raises(expected) as caught:
            of.login(service.url)
    person.answers = []
    assert "".join(parts) not in everything_shown(caught.value)
    assert caught.value.__context__ is None
    assert connect.current() is None
    if expected is ConfigurationError:
        assert fault.__name__ in str(caught.value)


def test_logout_removes_one_profile(sandbox: Sandbox, person: Person, ring: MemoryKeyring) -> None:
    """Logout removes one profile and keeps others; a missing profile is not an error."""
    for name in ("default", "crm"):
        person.answers = [sandbox.api_key]
        of.login(sandbox.url, profile=name).close()
    of.logout()
    of.logout()
    with pytest.raises(ConfigurationError, match="No service is connected"):
        of.connect()
    of.connect(profile="crm").close()
    with pytest.raises(ConfigurationError):
        of.logout("a/b")


def test_concurrent_logins_leave_one_complete_profile(person: Person, ring: MemoryKeyring) -> None:
    """After two logins at once, address and token belong to the same one."""
    person.answers = [TOKEN, TOKEN]
    with scripted(lambda _: EMPTY) as one, scripted(lambda _: EMPTY) as two:
        both = [threading.Thread(target=lambda s=s: of.login(s.url).close()) for s in (one, two)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        with of.connect() as client:
            assert client.base_url in (one.url, two.url)


def test_options_of_the_sandbox_go_through_connect() -> None:
    """people= and seed= configure the sandbox, and are errors with any other address."""
    worlds = []
    for seed in (3, 3, 4):
        with of.connect("sandbox", people=30, seed=seed, cache=None):
            worlds.append(of.search_people(limit=None, progress=False)["name"].tolist())
    assert len(worlds[0]) == 30
    assert worlds[0] == worlds[1] != worlds[2]
    before = threading.active_count()
    for wrong in ({"people": 0}, {"people": "many"}, {"seed": 1.5}, {"seed": 2**63}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            of.connect("sandbox", **wrong)  # type: ignore[arg-type]
    for address in ("https://x.example", None):
        with pytest.raises(ConfigurationError):
            of.connect(address, "x", people=30)
    assert threading.active_count() == before


def test_commands_log_in_and_use_a_profile(
    sandbox: Sandbox,
    person: Person,
    ring: MemoryKeyring,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """login and logout accept --profile, and other commands accept it or OUTREACH_PROFILE."""
    person.answers = [sandbox.url, sandbox.api_key]
    assert main(["login", "--profile", "crm"]) == 0
    assert main(["login", sandbox.url, "--profile", "crm"]) == 0
    assert main(["login", "--profile", "crm", "--network-name", "bluebook"]) == 0
    with of.connect(profile="crm") as client:
        assert client._session.network_name == "bluebook"
    assert sandbox.api_key not in capsys.readouterr().out
    assert main(["sequences"]) == 2
    assert "outreach-frames login" in capsys.readouterr().err
    assert main(["sequences", "--profile", "crm"]) == 0
    monkeypatch.setenv("OUTREACH_PROFILE", "crm")
    assert main(["mailboxes"]) == 0
    assert main(["logout", "--profile", "crm"]) == 0
    assert main(["mailboxes"]) == 2
    told = capsys.readouterr().err
    assert "no profile 'crm'. Run outreach-frames login with this profile" in told
    with pytest.raises(SystemExit):
        main(["mailboxes", "--profile", "crm", "--sandbox"])


@pytest.mark.long
def test_without_a_terminal_login_ends_with_an_error(tmp_path: Path) -> None:
    """Without a terminal no token is read; connections with arguments do not import keyring."""
    code = """
import sys
import outreach_frames as of
of.connect("http://127.0.0.1:9", "token").close()
assert "keyring" not in sys.modules
import keyring
from tests.client.keyrings import MemoryKeyring
keyring.set_keyring(MemoryKeyring())
for address in (None, "http://127.0.0.1:9", None):
    try:
        of.login(address)
    except of.OutreachError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        input="http://127.0.0.1:9\n" * 2,  # This line would be read as the token.
        capture_output=True,
        text=True,
        start_new_session=True,  # Standard input is not a terminal.
        check=True,
    )
    assert done.stdout.count("No input was read") == 3
