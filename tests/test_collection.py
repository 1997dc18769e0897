"""The collected tests are the same everywhere: xdist runs nothing where two workers differ."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# By default, xdist's workers compare what they collected, each with a hash seed of its own.
pytestmark = pytest.mark.slow


def test_the_same_tests_are_collected_everywhere(request: pytest.FixtureRequest) -> None:
    """No test's id depends on the time, the zone, the locale or the order of a set."""
    collected = [item.nodeid for item in request.session.items]
    files = sorted({item.path for item in request.session.items})
    elsewhere = {"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C", "COLUMNS": "40"}
    # Whatever costs time and has no say in what is collected is left out.
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
