"""All workers collect the same tests, which xdist requires."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# By default xdist already compares its workers' tests, with different hash seeds.
pytestmark = pytest.mark.slow


def test_collection_is_deterministic(request: pytest.FixtureRequest) -> None:
    """No test's id depends on the time, the time zone, the locale or the order of a set."""
    collected = [item.nodeid for item in request.session.items]
    files = sorted({item.path for item in request.session.items})
    elsewhere = {"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C", "COLUMNS": "40"}
    # Disable slow features that do not affect the collection.
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts="]
    command += ["--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
    shown = subprocess.run(
        [*command, *files],
        env={**os.environ, **elsewhere, "PYTHONUTF8": "1"},
        cwd=request.config.rootpath,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout.splitlines()
    assert set(collected) <= set(shown)
