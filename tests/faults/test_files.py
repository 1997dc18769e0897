"""Each file operation of our own code fails in turn, and no row is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

MODULES = [
    "tests.faults.submission",
    "tests.faults.export_folder",
    pytest.param("tests.faults.export_csv", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(
    "ways", ["nineteenth", *(pytest.param(ways, marks=pytest.mark.slow) for ways in ("one", "all"))]
)
@pytest.mark.parametrize("module", MODULES)
def test_any_file_operation_may_fail(module: str, ways: str, tmp_path: Path) -> None:
    """Whichever file operation fails, files and reports are correct."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.faults.every_operation", module, tmp_path, ways],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    print(ran.stdout)
    assert ran.returncode == 0, ran.stderr
