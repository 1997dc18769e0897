"""The script that mutates: what it changes, and that its targets are there."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.__main__ import ROOT
from tests.mutation.mutants import mutants
from tests.mutation.targets import TARGETS


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("a == b", ["a != b"]),
        ("a and b", ["a or b"]),
        ("x = not a", ["x = a"]),
        ("x = 1 + y", ["x = 1 - y", "x = 2 + y"]),
        ("x = True", ["x = False"]),
        ("f(a)", ["pass"]),
        ("def f(a: int):\n    return a", ["def f(a: int):\n    return None"]),
        ("if a:\n    raise E(1 + 1)", ["if not a:\n    raise E(1 + 1)"]),
        ('"""A docstring."""', []),
    ],
)
def test_each_mutant_has_one_change(source: str, after: list[str]) -> None:
    """What runs is changed in one place at a time; messages and annotations are not."""
    assert sorted(each.source for each in mutants(source)) == sorted(after)
    assert ast.unparse(ast.parse(source)) not in after


def test_the_targets_are_there() -> None:
    """Every module and every test that the script names exists."""
    paths = {*TARGETS, *(path for paths in TARGETS.values() for path in paths)}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
