"""The mutation script: its mutants and its sample."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.__main__ import sample
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


def test_a_sample_depends_on_the_seed() -> None:
    """The same seed gives the same sample of the room's modules."""
    chosen = sample("common", 20, 3)
    assert {path.parent.name for path, _ in chosen} == {"common"}
    assert sample("common", 20, 3) == chosen != sample("common", 20, 4)
    assert {path.parent.name for path, _ in sample(".", 20, 3)} == {"outreach_frames"}
