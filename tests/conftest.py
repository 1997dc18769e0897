"""What most tests share: one sandbox for the run, a client of it with no cache, and its people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from hypothesis import HealthCheck, settings

import outreach_frames as of
from outreach_frames.leads.sending import sent_before

if TYPE_CHECKING:
    from outreach_frames.client.client import Client
    from outreach_frames.sandbox import Sandbox

PEOPLE = 400
TESTS = Path(__file__).parent
# Beginnings of the ids of tests that start processes, write many files, or read large frames.
LONG = (
    "accounts/test_find_people.py",
    "client/test_announcements.py",
    "client/test_cache.py",
    "client/test_cancellation.py",
    "client/test_connect.py",
    "client/test_deadlines.py::test_a_forked_process",
    "client/test_retry.py",
    "client/test_token.py::test_an_echoed",
    "client/test_token.py::test_an_interrupt",
    "export/",
    "faults/",
    "files/",
    "history/",
    "leads/planning/test_checks.py::test_the_package_does_not_wait",
    "leads/sending/test_journal.py::TestDisk",
    "leads/sending/test_journal.py::TestMemory",
    "leads/sending/test_journal.py::TestOwners",
    "leads/sending/test_journal.py::test_killed",
    "leads/sending/test_kill.py",
    "leads/sending/test_monitor.py",
    "leads/sending/test_report_in_every_case.py",
    "leads/sending/test_submit.py",
    "leads/test_end_to_end.py",
    "leads/test_histories.py",
    "plots/",
    "resources/test_stored_people.py",
    "sandbox/test_conformance.py",
    "sandbox/test_faults.py",
    "sandbox/test_passing_time.py",
    "sandbox/test_process.py",
    "sandbox/test_search.py",
    "sandbox/test_world.py",
    "tables/test_bounds.py",
    "tables/test_columns.py",
    "tables/test_companies.py",
    "tables/test_flatten.py::test_deep_nesting",
    "test_cli",
    "test_collection.py",
    "test_distributed.py",
    "test_docs.py",
    "test_frames_",
    "test_notebooks.py",
    "test_package.py::test_importing",
    "test_personal_data.py",
    "test_pytest_plugin.py",
    "test_without_extras.py",
    "widgets/",
)
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
settings.register_profile("quick", _UNTIMED, max_examples=40)
settings.register_profile("thorough", _UNTIMED, max_examples=2_000)
settings.load_profile("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is long, and as the inner loop what no mark takes out of it."""
    for item in items:
        place = item.path.relative_to(TESTS).as_posix() + item.nodeid[item.nodeid.find("::") :]
        draws_examples = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if draws_examples or place.startswith(LONG):
            item.add_marker(pytest.mark.long)
        if not {mark.name for mark in item.iter_markers()} & OUTER_MARKS:
            item.add_marker(pytest.mark.inner)


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the default cache out of the user's own cache folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _nobody_sent_before() -> None:
    """Let each test begin as a new process does, which has sent nobody."""
    sent_before.clear()


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
