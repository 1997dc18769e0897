"""What most tests share: one sandbox for the run, a client of it with no cache, and its people."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from hypothesis import HealthCheck, settings

import outreach_frames as of
from outreach_frames.leads.sending import memory

if TYPE_CHECKING:
    from outreach_frames.client.client import Client
    from outreach_frames.sandbox import Sandbox

# The tests are written with the text columns of pandas 3, which pandas 2 makes on request.
if pd.__version__ < "3":
    pd.set_option("future.infer_string", True)

PEOPLE = 200
_NUMBERS = itertools.count()
OUTER_MARKS = {"long", "slow", "browser", "preload", "oldest"}

# No test asserts a time: a busy machine is not a failure. No fixture is changed by an example.
_UNTIMED = settings(
    deadline=None,
    suppress_health_check=[
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
settings.register_profile("quick", _UNTIMED, max_examples=8)
settings.register_profile("thorough", _UNTIMED, max_examples=2_000)
settings.load_profile("quick")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Start one process more than there are cores: part of the time is waiting."""
    workers = yield
    return workers if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else workers + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what draws examples as long, and as the inner loop what no mark takes out of it."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.long)
        if not {mark.name for mark in item.iter_markers()} & OUTER_MARKS:
            item.add_marker(pytest.mark.inner)


@pytest.fixture(scope="session", autouse=True)
def _cache_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the default cache out of the user's own cache folder."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def _empty_cache(_cache_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin with an empty default cache: others change what the sandbox returns."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(_cache_folders / str(next(_NUMBERS))))


@pytest.fixture(scope="session", autouse=True)
def _no_keyring() -> Iterator[None]:
    """Keep tests and their processes out of the user's keyring, and from real accounts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        for name in ("OUTREACH_PROFILE", "OUTREACH_PROXY", "OUTREACH_CA_BUNDLE"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """Have Ctrl-C interrupt tests and their processes, also where a shell had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _nothing_done_before() -> None:
    """Let each test begin as a new process does, which has sent nobody."""
    memory.clear()


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """Start one small sandbox for the whole run."""
    with of.sandbox.serve(people=PEOPLE, seed=1) as running:
        yield running


@pytest.fixture
def client(sandbox: Sandbox) -> Iterator[Client]:
    """Connect to the sandbox with no cache, as the default client."""
    with of.connect(sandbox.url, sandbox.api_key, cache=None) as connected:
        yield connected


@pytest.fixture
def environment(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the environment at the sandbox, as a user of the command line does."""
    monkeypatch.setenv("OUTREACH_BASE_URL", sandbox.url)
    monkeypatch.setenv("OUTREACH_API_KEY", sandbox.api_key)


@pytest.fixture(scope="session")
def _everybody(sandbox: Sandbox) -> pd.DataFrame:
    with of.connect(sandbox.url, sandbox.api_key, cache=None):
        return of.search_people(limit=None)


@pytest.fixture
def people(_everybody: pd.DataFrame) -> pd.DataFrame:
    """Return everybody of the sandbox in a frame of the test's own."""
    return _everybody.copy()
