"""The pytest fixture `outreach_sandbox`: a sandbox for the tests of a script of one's own.

A module beside the package, because pytest loads it in every run, and the package brings pandas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from outreach_frames.sandbox import Sandbox

MARKER = "outreach_sandbox"
# Enough to search in, and made in a moment.
PEOPLE = 200


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(people=..., seed=..., faults=...): what the sandbox of that fixture is made of, "
        "as outreach_frames.sandbox.serve takes it",
    )


@pytest.fixture
def outreach_sandbox(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Sandbox]:
    """Start a sandbox of this test's own, and connect everything to it that says nothing else.

    `OUTREACH_BASE_URL` and `OUTREACH_API_KEY` name it, for scripts and processes; the functions of
    outreach_frames ask it, with no cache. `@pytest.mark.outreach_sandbox(people=50)` says what is
    in it. Nothing of one test is there in the next.
    """
    import outreach_frames as of  # noqa: PLC0415 - only where it is used
    from outreach_frames.client.connect import current, make_default  # noqa: PLC0415

    marker = request.node.get_closest_marker(MARKER)
    if marker and marker.args:
        raise pytest.UsageError(f"{MARKER} takes names with its values, such as people=50.")
    before = current()
    options = {"people": PEOPLE, **(marker.kwargs if marker else {})}
    with of.sandbox.serve(**options) as sandbox:
        monkeypatch.setenv("OUTREACH_BASE_URL", sandbox.url)
        monkeypatch.setenv("OUTREACH_API_KEY", sandbox.api_key)
        # For scripts that connect by themselves, with a cache.
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with of.connect(cache=None):
            yield sandbox
        if client := current():
            client.close()
    if before:
        make_default(before)
