"""A server for an agent, connected to the session's sandbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from outreach_frames.sandbox import Sandbox
from tests.agents import programs


@pytest.fixture(scope="session")
def env(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of an agent's server and of the person's terminal."""
    home = tmp_path_factory.mktemp("home")
    return {
        "OUTREACH_BASE_URL": sandbox.url,
        "OUTREACH_API_KEY": sandbox.api_key,
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_DATA_HOME": str(home / "data"),
    }


@pytest.fixture(scope="session")
def agent(
    env: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[programs.Agent]:
    """Start one server for an agent, which shows three rows of a table."""
    # Only this server's files are beside its folder.
    folder = tmp_path_factory.mktemp("agent") / "folder"
    folder.mkdir()
    with programs.agent(folder, "--rows", 3, env=env) as started:
        yield started
