"""The pytest fixture for users' own scripts, as shown on its how-to page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/how-to/test-your-script.md"

APART = """
import os
import outreach_frames as of
import pytest
from outreach_frames.errors import ConfigurationError

seen = []

@pytest.mark.parametrize("turn", [1, 2])
def test_two(outreach_sandbox, turn):
    assert os.environ["OUTREACH_BASE_URL"] == outreach_sandbox.url
    assert outreach_sandbox.url not in seen
    seen.append(outreach_sandbox.url)
    with of.connect():
        assert of.count_people() == 200
    of.connect()
    assert not outreach_sandbox.leads(outreach_sandbox.sequence_ids["accepts_any"])

@pytest.mark.outreach_sandbox(people=30, seed=2)
def test_marked(outreach_sandbox):
    assert of.count_people() == 30

@pytest.mark.outreach_sandbox(30)
def test_marked_without_a_name(outreach_sandbox):
    pass

def test_nothing_is_left():
    assert "OUTREACH_BASE_URL" not in os.environ
    with pytest.raises(ConfigurationError):
        of.sequences()

@pytest.fixture(scope="module")
def own():
    with of.sandbox.serve(people=20) as sandbox:
        with of.connect(sandbox.url, sandbox.api_key, cache=None):
            yield

def test_between(own, outreach_sandbox):
    assert of.count_people() == 200

def test_afterwards(own):
    assert of.count_people() == 20
"""


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Run the page's tests and the tests above in one pytest run; return the passed ones."""
    folder = tmp_path_factory.mktemp("own")
    text = PAGE.read_text(encoding="utf-8")
    script, tests = re.findall(r"```\{code-block\} python\n(.*?)```", text, re.DOTALL)
    for name, code in {
        "add_leaders.py": script,
        "test_add_leaders.py": tests,
        "test_apart.py": APART,
    }.items():
        (folder / name).write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "pytest_outreach_frames", "--strict-markers"]
    done = subprocess.run(
        [*command, "-rA", "--tb=short", "-p", "no:cacheprovider"],
        cwd=folder,
        # Load only this plugin, and set a user's real account, which tests must not use.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OUTREACH_PROFILE": "account"},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout, done.stderr)
    return re.findall(r"^PASSED \S+::(\S+)$", done.stdout, re.MULTILINE)


def test_the_pages_example_passes(passed: list[str]) -> None:
    """The script and the tests of the how-to page pass."""
    written = re.findall(r"^def (test_\w+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(written) == 4
    assert set(written) <= set(passed)


def test_tests_are_independent(passed: list[str]) -> None:
    """Each test has a new sandbox as the default connection, and closes it at the end."""
    assert {"test_two[1]", "test_two[2]", "test_nothing_is_left"} <= set(passed)


def test_the_markers_options_are_used(passed: list[str]) -> None:
    """The marker's options are passed to the sandbox."""
    assert "test_marked" in passed
    assert "test_marked_without_a_name" not in passed


def test_the_earlier_connection_is_restored(passed: list[str]) -> None:
    """After a test, another fixture's connection is the default again."""
    assert {"test_between", "test_afterwards"} <= set(passed)


def test_loading_it_is_light() -> None:
    """Every pytest run loads the plugin, which imports neither the package nor pandas."""
    code = (
        "import sys, pytest_outreach_frames; print(*{name.split('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "pytest_outreach_frames" in loaded
    assert not {"outreach_frames", "pandas", "requests", "starlette"} & set(loaded)
