"""The pytest fixture `outreach_sandbox`: a sandbox for tests of your own scripts.

It is outside the package because pytest loads it in every run, and the package imports pandas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from outreach_frames.sandbox import Sandbox

MARKER = "outreach_sandbox"
# Enough people for searches, and fast to generate.
PEOPLE = 200


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(people=..., seed=..., faults=...): options for the sandbox of that fixture, "
        "the same as for outreach_frames.sandbox.serve",
    )


@pytest.fixture
def outreach_sandbox(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Sandbox]:
    """Start a sandbox for this test, and connect to it by default.

    The functions of outreach_frames use it without a cache; `OUTREACH_BASE_URL` and
    `OUTREACH_API_KEY` are set for scripts and processes, and `OUTREACH_PROFILE` is not. Pass
    options with `@pytest.mark.outreach_sandbox(people=50)`. Tests do not share a sandbox.
    """
    import outreach_frames as of  # noqa: PLC0415 - only when it is used
    from outreach_frames.client.connect import current, make_default  # noqa: PLC0415

    marker = request.node.get_closest_marker(MARKER)
    if marker and marker.args:
        raise pytest.UsageError(f"Pass options to {MARKER} by keyword, such as people=50.")
    before = current()
    options = {"people": PEOPLE, **(marker.kwargs if marker else {})}
    with of.sandbox.serve(**options) as sandbox:
        monkeypatch.setenv("OUTREACH_BASE_URL", sandbox.url)
        monkeypatch.setenv("OUTREACH_API_KEY", sandbox.api_key)
        # It has priority over the other two variables.
        monkeypatch.delenv("OUTREACH_PROFILE", raising=False)
        for name in ("OUTREACH_PROXY", "OUTREACH_CA_BUNDLE"):
            monkeypatch.delenv(name, raising=False)
        # A new cache for scripts that connect by themselves.
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with of.connect(cache=None):
            yield sandbox
        if client := current():
            client.close()
    if before:
        make_default(before)
