"""Find the tests that run a line of the package, in coverage's contexts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]
# This many tests detect most of the mutants that any test detects.
MAX_TESTS: Final = 80
# These tests check names, columns and documents, which lines run by imports affect.
SURFACE_TESTS: Final = (
    "tests/test_package.py",
    "tests/analysis/test_columns.py",
    "tests/sandbox/test_openapi.py",
)


class TestsByLine:
    """The tests of each line, from one test run with coverage contexts."""

    __test__ = False

    def __init__(self, data_file: Path, tree: Path) -> None:
        # Imported late, because the import takes 0.1 s in each process that collects the tests.
        from coverage import CoverageData

        self._data = CoverageData(str(data_file))
        self._data.read()
        self._tree = tree

    def tests(self, module: str, line: int) -> list[str]:
        """Return the ids of the tests that run a line, those of its own room first.

        A line inside a statement uses the tests of the statement's first line; a line that only
        an import runs uses the tests of its room and of the public surface.
        """
        contexts = self._data.contexts_by_lineno(str(self._tree / module))
        first = max((number for number in contexts if number <= line), default=line)
        ids = {context.partition("|")[0] for context in contexts.get(first, [])} - {""}
        return spread(ids, module) or [*SURFACE_TESTS, *room_tests(module)]


def room_of(module: str) -> str:
    """Return the room of a module, as `client` for `outreach_frames/client/retry.py`.

    >>> room_of("outreach_frames/client/retry.py"), room_of("outreach_frames/cli.py")
    ('client', '(root)')
    """
    _, *folders, _ = module.split("/")
    return folders[0] if folders else "(root)"


def room_tests(module: str) -> list[str]:
    """Return the test folder of a module's room, or the tests at the root."""
    folder = f"tests/{room_of(module)}"
    if (TESTS.parent / folder).is_dir():
        return [folder]
    return sorted(f"tests/{path.name}" for path in TESTS.glob("test_*.py"))


def spread(ids: Sequence[str] | set[str], module: str) -> list[str]:
    """Return at most `MAX_TESTS` ids: the module's room first, then others at even distances.

    >>> spread({"tests/files/test_a.py::b", "tests/client/test_x.py::y"},
    ...        "outreach_frames/client/retry.py")
    ['tests/client/test_x.py::y', 'tests/files/test_a.py::b']
    """
    own = f"tests/{room_of(module)}/"
    near = sorted(one for one in ids if one.startswith(own))
    far = sorted(one for one in ids if not one.startswith(own))
    few_far = evenly(far, max(MAX_TESTS // 2, MAX_TESTS - len(near)))
    return evenly(near, MAX_TESTS - len(few_far)) + few_far


def evenly(ids: Sequence[str], most: int) -> list[str]:
    """Return at most this many ids, at even distances.

    >>> evenly("abcde", 3)
    ['a', 'c', 'e']
    """
    step = -(-len(ids) // max(most, 1))
    return list(ids[:: step or 1])
