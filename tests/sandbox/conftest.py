"""What the sandbox's tests share: one small sandbox for each module, and a session with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from outreach_frames.sandbox import Sandbox, serve
from tests.sandbox.http import PEOPLE, Api


@pytest.fixture(scope="module")
def module_api() -> Iterator[Api]:
    """Start a small sandbox for this module, and a session with it."""
    with serve(people=PEOPLE, seed=3) as running, Api(running) as session:
        yield session


@pytest.fixture
def api(module_api: Api) -> Iterator[Api]:
    """Return the module's session; the sandbox behaves well again afterwards."""
    yield module_api
    module_api.sandbox.faults = ()


@pytest.fixture
def sandbox(api: Api) -> Sandbox:
    """Return the module's sandbox."""
    return api.sandbox
