"""Logging in: what is asked, stored in the keyring, sent, and never shown."""

from __future__ import annotations

import gc
import getpass
import json as json_module
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    """Somebody at the prompts; a question that has no answer is an error."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.answers: list[str | BaseException] = []
        self.asked: list[str] = []
        # As a notebook's kernel does.
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
    """Start every test with no configuration and no default client."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(connect, "_default", None)
    yield
    gc.collect(1)  # what the test made: looking through all would take a tenth of a second


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Person:
    """Have somebody at the prompts."""
    return Person(monkeypatch)


@pytest.fixture
def ring() -> Iterator[MemoryKeyring]:
    """Use an empty keyring."""
    with using(MemoryKeyring()) as chosen:
        yield chosen


def token_of(service: Service) -> str | None:
    """Return what signed the last request to a service."""
    return service.requests[-1].headers["Authorization"]


def test_login_asks_once_and_all_later_connections_use_it(
    sandbox: Sandbox, person: Person, ring: MemoryKeyring
) -> None:
    """The first login asks and stores; a second one, connect and functions ask nothing."""
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


def test_options_are_stored_with_the_token_and_apply_later(
    person: Person, ring: MemoryKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies, certificates and the network's name are those of the profile, from any folder."""
    monkeypatch.chdir(tmp_path)
    Path("ca.pem").touch()
    person.answers = [TOKEN]
    with scripted(lambda _: EMPTY) as proxy:
        options: dict[str, Any] = {"verify": "ca.pem", "network_name": "pronet"}
        with pytest.warns(UserWarning, match="encrypted"):
            of.login("http://x.example", proxies={"http": proxy.url}, **options).close()
        assert proxy.targets[0].startswith("http://x.example/sequences")
        monkeypatch.chdir("/")
        with pytest.warns(UserWarning, match="encrypted"):
            with of.connect(cache=None) as client:
                of.sequences()
        assert (client.network_name, client._verify) == ("pronet", str(tmp_path / "ca.pem"))
        assert len(proxy.requests) == 2
        # What is given beside it is stored too, and nothing is asked.
        with pytest.warns(UserWarning, match="encrypted"):
            of.login(network_name="pron").close()
        with pytest.warns(UserWarning, match="encrypted"):
            with of.connect() as client:
                assert client.network_name == "pron"
        assert len(proxy.requests) == 3
    assert ring.changes == ["default"] * 2


def test_a_refused_token_is_asked_for_again(
    sandbox: Sandbox, person: Person, ring: MemoryKeyring
) -> None:
    """A token that was revoked is asked for at the same address; a wrong one is not stored."""
    status = 200
    with scripted(lambda _: json({"sequences": []}, status)) as service:
        person.answers = [TOKEN]
        of.login(service.url).close()
        kept = dict(ring.entries)
        for refused in (401, 403):
            status = refused
            person.answers = ["wrong"]
            with pytest.raises(AuthenticationError):
                of.login()
            assert person.asked[-1].endswith(f"refused. New token for {service.url}: ")
            assert (ring.entries, token_of(service)) == (kept, "Bearer wrong")
        assert connect.current() is None
    person.answers = [sandbox.api_key]
    of.login(sandbox.url).close()
    assert ring.entries != kept


@pytest.mark.parametrize("status", [None, 404, 500, 503])
def test_a_service_that_fails_changes_nothing(
    status: int | None, person: Person, ring: MemoryKeyring
) -> None:
    """Where the service does not work, login raises, asks nothing and forgets nothing."""
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


def test_a_page_that_is_no_response_is_refused(person: Person, ring: MemoryKeyring) -> None:
    """A token is not stored for an address that answers with something else."""
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
def test_input_of_no_use_stores_nothing(answer: Any, person: Person, ring: MemoryKeyring) -> None:
    """No token, a broken one, or nobody to ask: an error of ours that does not show the input."""
    person.answers = [answer]
    with scripted([]) as service, pytest.raises(ConfigurationError) as caught:
        of.login(service.url)
    assert (ring.entries, service.requests) == ({}, [])
    assert ("No token was entered" in str(caught.value)) == (answer in {"", "  "})
    shown = everything_shown(caught.value)
    assert TOKEN not in shown.replace(repr(answer), "")
    assert caught.value.__context__ is None


def test_ctrl_c_at_the_prompt_ends_login(person: Person, ring: MemoryKeyring) -> None:
    """An interrupt goes on to the caller, and nothing is stored."""
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
def test_arguments_are_checked_before_anything_is_asked(
    options: dict[str, Any], person: Person, ring: MemoryKeyring
) -> None:
    """An argument of no use is an error, and nobody is asked."""
    with pytest.raises(ConfigurationError):
        of.login(**options)
    assert (person.asked, ring.changes) == ([], [])


def test_where_address_and_token_come_from(
    person: Person, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments, profile, OUTREACH_PROFILE, environment, default: each whole, never mixed."""
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
        # A token without an address is for some other account than the stored one.
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
        # An address without a token does not get the stored one.
        monkeypatch.setenv("OUTREACH_BASE_URL", one.url)
        with pytest.raises(ConfigurationError, match="token is missing"):
            of.connect()


def test_an_unknown_profile_is_named(ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile that is not stored is an error, also where the environment has an account."""
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
        "not JSON",
        TOKEN,
        "[]",
        "5",
        json_module.dumps({"api_key": TOKEN}),
        json_module.dumps({**ENTRY, "api_key": 5}),
        json_module.dumps({**ENTRY, "base_url": "sandbox"}),
        json_module.dumps({**ENTRY, "proxies": 5}),
        json_module.dumps({**ENTRY, "verify": False}),
        json_module.dumps({**ENTRY, "verify": 5}),
        json_module.dumps({**ENTRY, "network_name": ""}),
        json_module.dumps({**ENTRY, "api_key": f"{TOKEN}\ud800"}, ensure_ascii=False),
        json_module.dumps({**ENTRY, "later": 5}),
        json_module.dumps(ENTRY)[:-1],
    ],
)
def test_a_damaged_entry_is_told_and_can_be_replaced(
    entry: str, sandbox: Sandbox, person: Person, ring: MemoryKeyring
) -> None:
    """An entry that cannot be read is an error that shows nothing of it; login replaces it."""
    ring.entries["outreach_frames", "default"] = entry
    for call in (of.connect, of.sequences):
        with pytest.raises(ConfigurationError, match=r"damaged.*of\.login.*of\.logout") as caught:
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
    """Nobody is asked and nothing is written; the error names the variables."""
    with using(ring):
        for call in (of.login, of.logout, lambda: of.connect(profile="default")):
            with pytest.raises(ConfigurationError, match="OUTREACH_BASE_URL and OUTREACH_API_KEY"):
                call()
        with pytest.raises(ConfigurationError, match="No service is connected"):
            of.connect()
    assert person.asked == []
    assert getattr(ring, "changes", []) == []


def test_a_chain_is_not_followed_into_plain_text(person: Person) -> None:
    """Of a chain of keyrings only one that encrypts is used, those of the system first."""
    plain, chosen = PlaintextKeyring(), MemoryKeyring()
    chain = type("Chain", (ChainerBackend,), {"backends": [plain, chosen]})
    person.answers = [TOKEN]
    with using(chain()), scripted([EMPTY] * 2) as service:
        of.login(service.url).close()
        of.connect().close()
    assert (plain.changes, chosen.changes) == ([], ["default"])


@pytest.mark.parametrize("fault", [ValueError, keyring.errors.KeyringLocked, KeyboardInterrupt])
def test_a_keyring_that_fails_shows_no_token(fault: type[BaseException], person: Person) -> None:
    """What a keyring raises as it stores the token is replaced, with the frames that show it."""
    person.answers = ["".join(parts := ["tok-", "x" * 1300])]
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
        assert "On Windows, the limit is 1,280 characters" in str(caught.value)


def test_logout_removes_one_profile(sandbox: Sandbox, person: Person, ring: MemoryKeyring) -> None:
    """A profile is removed, others stay, and one that is not there is no error."""
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


def test_logins_at_once_leave_one_of_them_whole(person: Person, ring: MemoryKeyring) -> None:
    """Two who log in at the same time leave the address and the token of one of them."""
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
    """people= and seed= make the sandbox's world, and are errors beside any other address."""
    worlds = []
    for seed in (3, 3, 4):
        with of.connect("sandbox", people=30, seed=seed, cache=None):
            worlds.append(of.search_people(limit=None, progress=False)["name"].tolist())
    assert len(worlds[0]) == 30
    assert worlds[0] == worlds[1] != worlds[2]
    before = threading.active_count()
    faults: list[dict[str, Any]] = [
        {"people": 0},
        {"people": "many"},
        {"seed": 1.5},
        {"seed": 2**63},
    ]
    for wrong in faults:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            of.connect("sandbox", **wrong)
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
    """login and logout take --profile, and commands take it or OUTREACH_PROFILE."""
    person.answers = [sandbox.url, sandbox.api_key]
    assert main(["login", "--profile", "crm"]) == 0
    assert main(["login", sandbox.url, "--profile", "crm"]) == 0
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
    """Without a terminal no token is read, and connections with arguments import no keyring."""
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
        input="http://127.0.0.1:9\n" * 2,  # what would be taken as the token, too
        capture_output=True,
        text=True,
        start_new_session=True,  # no terminal
        check=True,
    )
    assert done.stdout.count("No input was read") == 3
