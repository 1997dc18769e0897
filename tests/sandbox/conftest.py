"""Fixtures of the sandbox's tests: one small sandbox per module, and a session with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from outreach_frames.sandbox import Sandbox, serve
from tests.sandbox.http import PEOPLE, Api


@pytest.fixture(scope="module")
def module_api() -> Iterator[Api]:
    """Start a small sandbox and a session for this module."""
    with serve(people=PEOPLE, seed=3) as running, Api(running) as session:
        yield session


@pytest.fixture
def api(module_api: Api) -> Iterator[Api]:
    """Return the module's session, and remove all faults after each test."""
    yield module_api
    module_api.sandbox.faults = ()


@pytest.fixture
def sandbox(api: Api) -> Sandbox:
    """Return the module's sandbox."""
    return api.sandbox
