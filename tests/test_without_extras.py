"""The package's behaviour without its optional extras."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.without_extras import CALLS, COMMANDS

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run all calls once in a process that cannot import optional packages."""
    folder = tmp_path_factory.mktemp("elsewhere")
    # Append the path, so that an installed package takes precedence.
    path = f"import sys; sys.path.append({str(ROOT)!r})"
    code = f"{path}; from tests.without_extras import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    assert list(folder.iterdir()) == []
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_functions_name_the_missing_extra(said: dict[str, Any]) -> None:
    """A function that needs an extra says how to install it, and all others run."""
    wanted = {
        name: f'pip install "outreach-frames[{extra}]"'
        for extra, calls in CALLS.items()
        for name in calls
    }
    assert {name: message.partition(": ")[2] for name, message in said["errors"].items()} == wanted


def test_commands_name_the_missing_extra(said: dict[str, Any]) -> None:
    """A command that needs an extra exits as wrong usage, with one line and no traceback."""
    for command, extra in COMMANDS.items():
        code, message = said["commands"][command]
        assert code == 2
        assert message.endswith(f'pip install "outreach-frames[{extra}]"\n')
        assert message.count("\n") == 1
