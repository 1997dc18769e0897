"""Run the tests with the oldest versions allowed by `pyproject.toml`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.oldest
@pytest.mark.timeout(7200)
def test_the_tests_pass_on_the_oldest_versions(tmp_path: Path) -> None:
    """The tests pass in a new environment with the lowest version of each dependency."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [python, "-m", "uv", "pip", "install", "--quiet", "--resolution", "lowest-direct"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
    subprocess.run([*install, "--python", python, "-e", f"{ROOT}[test]"], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, "-m", "pytest", "-q"], cwd=ROOT, env=environment, check=True)
