"""The mutation script: its mutants, and its choice of tests."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.__main__ import PACKAGE, ROOT, sample
from tests.mutation.contexts import MAX_TESTS, room_of, spread
from tests.mutation.mutants import mutants, mutated


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("a == b", ["a != b"]),
        ("a and b", ["a or b"]),
        ("x = not a", ["x = a"]),
        ("x = 1 + y", ["x = 1 - y", "x = 2 + y"]),
        ("x = True", ["x = False"]),
        ("f(a)", ["pass"]),
        ("x = f(a, b=c, **d)", ["x = f(a, **d)", "x = f(a, b=c)"]),
        ("a.b = c", ["pass"]),
        ("raise E(1 + 1)", ["pass"]),
        ("def f(a: int):\n    return a", ["def f(a: int):\n    return None"]),
        ("if a:\n    raise E(1)", ["if a:\n    pass", "if not a:\n    raise E(1)"]),
        ('"""A docstring."""', []),
        ('T = TypeVar("T", bound=int)', []),
        ("x = zip(a, strict=True)", []),
    ],
)
def test_each_mutant_has_one_change(source: str, after: list[str]) -> None:
    """Each mutant changes one place of the running code, and no message or annotation."""
    assert sorted(mutated(source, each) for each in mutants(source)) == sorted(after)
    assert ast.unparse(ast.parse(source)) not in after


def test_every_room_is_sampled() -> None:
    """A sample contains mutants of every room, and the same seed gives the same sample."""
    chosen = sample(200, 3, [])
    rooms = {room_of(str(path.relative_to(ROOT))) for path in (ROOT / PACKAGE).rglob("*.py")}
    assert {room_of(module) for module, _ in chosen} == rooms
    common = sample(20, 3, ["common"])
    assert sample(20, 3, ["common"]) == common != sample(20, 4, ["common"])


def test_tests_of_the_same_room_come_first() -> None:
    """If a line has too many tests, some of its own room and some of others are chosen."""
    own = {f"tests/client/test_a.py::test[{number}]" for number in range(1_000)}
    other = {f"tests/files/test_a.py::test[{number}]" for number in range(1_000)}
    chosen = spread(own | other, "outreach_frames/client/retry.py")
    assert MAX_TESTS - 5 < len(chosen) <= MAX_TESTS
    near = [one for one in chosen if one in own]
    assert MAX_TESTS / 3 < len(near) < MAX_TESTS
    assert chosen[: len(near)] == near
