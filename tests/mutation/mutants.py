"""Small changes of Python source: each swaps, removes or negates one thing."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Final, NamedTuple

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


class Mutant(NamedTuple):
    """A source with one change: where it is, and how the line reads before and after."""

    line: int
    before: str
    after: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module; messages and type annotations are left alone."""
    tree = ast.parse(source)
    for node in _code(tree):
        for changed in _changes(node):
            before = copy.copy(vars(node))
            vars(node).update(vars(changed))
            node.__class__, kind = changed.__class__, node.__class__  # type: ignore[assignment]
            mutated, after = ast.unparse(tree), ast.unparse(node)
            node.__class__ = kind  # type: ignore[assignment]
            vars(node).clear()
            vars(node).update(before)
            if after != ast.unparse(node):
                yield Mutant(node.lineno, ast.unparse(node), after, mutated)


def _code(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Walk over what runs and is not a message: no annotation, no raise, no docstring."""
    for name, value in ast.iter_fields(tree):
        if name in {"annotation", "returns", "decorator_list"} or isinstance(tree, ast.Raise):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.expr | ast.stmt):
                yield node
            if isinstance(node, ast.AST):
                yield from _code(node)


def _changes(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    match node:
        case ast.Compare(left, [operator], comparators) if type(operator) in _COMPARISONS:
            yield ast.Compare(left, [_COMPARISONS[type(operator)]()], comparators)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            yield ast.BinOp(left, _OPERATORS[type(operator)](), right)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() as value):
            yield ast.Constant(value + 1)
        case ast.IfExp(test, body, other):
            yield ast.IfExp(ast.UnaryOp(ast.Not(), test), body, other)
        case ast.If(test, body, other):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, other)
        case ast.Return(ast.expr()):
            yield ast.Return(ast.Constant(None))
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Expr(ast.Call() | ast.Yield()) | ast.AugAssign():
            yield ast.Pass()
