"""With a preloaded library, each operation of SQLite fails, and unsynced writes are lost.

Run `pytest -m preload`. It takes some five minutes, and needs a C compiler and Linux.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.preload import run_preloaded

pytestmark = [pytest.mark.long, pytest.mark.preload, pytest.mark.timeout(1200)]

SUBMISSION = "tests.faults.submission"
EXPORTS = ["tests.faults.export_folder", "tests.faults.export_csv"]


def test_any_file_operation_may_fail(tmp_path: Path) -> None:
    """Whichever operation of our code, SQLite or Arrow fails, no row is lost or duplicated."""
    arguments = [SUBMISSION, str(tmp_path), "all", "preload"]
    ran = run_preloaded(tmp_path, "tests.faults.every_operation", *arguments)
    print(ran.stdout)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("module", [SUBMISSION, *EXPORTS])
def test_the_power_may_fail_at_any_moment(module: str, tmp_path: Path) -> None:
    """Whichever unsynced writes are lost, the next run recovers."""
    ran = run_preloaded(tmp_path, "tests.faults.every_power_failure", module, str(tmp_path))
    print(ran.stdout)
    assert ran.returncode == 0, ran.stderr
