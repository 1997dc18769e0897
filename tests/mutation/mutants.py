"""Small mutations of Python source: each swaps, drops or negates one thing."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from itertools import islice
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
    """One mutation: its number in the source, and its code before and after."""

    number: int
    line: int
    before: str
    after: str


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module; annotations and error messages stay unchanged."""
    places = _changed_places(ast.parse(source))
    for number, (node, before, after) in enumerate(places):
        yield Mutant(number, node.lineno, before, after)


def mutated(source: str, mutant: Mutant) -> str:
    """Return a module's source with one mutation."""
    tree = ast.parse(source)
    next(islice(_changed_places(tree), mutant.number, None))
    return ast.unparse(tree)


def _changed_places(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """Mutate one node after the other; at each yield the tree has one change."""
    for node in _code(tree):
        for changed in _changes(node):
            original, kind = copy.copy(vars(node)), node.__class__
            before, line = ast.unparse(node), node.lineno
            vars(node).update(vars(changed))
            node.__class__ = changed.__class__  # type: ignore[assignment]
            after = ast.unparse(node)
            if after != before:
                node.lineno = line
                yield node, before, after
            node.__class__ = kind  # type: ignore[assignment]
            vars(node).clear()
            vars(node).update(original)


def _code(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield the nodes of running code, without annotations, raises, docstrings and type checks."""
    for name, value in ast.iter_fields(tree):
        if name in {"annotation", "returns", "decorator_list"} or isinstance(tree, ast.Raise):
            continue
        if _is_check(tree):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.expr | ast.stmt):
                yield node
            if isinstance(node, ast.AST):
                yield from _code(node)


def _is_check(tree: ast.AST) -> bool:
    """Return whether a call affects only type checkers or programming errors."""
    match tree:
        case ast.Call(ast.Name("TypeVar" | "ParamSpec")) | ast.keyword("strict", ast.Constant()):
            return True
    return False


def _changes(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    yield from _changed_expressions(node)
    yield from _changed_statements(node)


def _changed_expressions(node: ast.expr | ast.stmt) -> Iterator[ast.expr]:
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
        case ast.Call(function, arguments, keywords):
            for dropped in keywords:
                if _is_check(node) or _is_check(dropped):
                    continue
                kept = [keyword for keyword in keywords if keyword is not dropped]
                yield ast.Call(function, arguments, kept)


def _changed_statements(node: ast.expr | ast.stmt) -> Iterator[ast.stmt]:
    match node:
        case ast.If(test, body, other):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, other)
        case ast.Return(ast.expr()):
            yield ast.Return(ast.Constant(None))
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Expr(ast.Call() | ast.Yield()) | ast.AugAssign() | ast.Raise() | ast.Delete():
            yield ast.Pass()
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
