"""The public surface, one fact per line, so that each change of it is a line in a diff.

Names, parameters with their types and defaults, columns with their dtypes, options of commands.
`python -m tests.public_surface` writes them to the file next to this one.

Read from the running package: tools that read the source do not see the signatures of the methods
of `df.outreach`, which are made from functions.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator
from pathlib import Path

from numpydoc.docscrape import NumpyDocString

import outreach_frames as of
from docs.reference_pages.tasks import ACCESSOR, MEMBERS, RESULTS, TASKS, TYPES, thing
from outreach_frames import cli, errors, spec
from outreach_frames.accounts.named_people import PERSON_NAME
from outreach_frames.analysis.interface_columns import TABLES

SNAPSHOT = Path(__file__).with_name("public_surface.txt")


def public_surface() -> list[str]:
    """Return the lines of the public surface."""
    return [*_modules(), *_entries(), *_errors(), *_columns(), *_commands()]


def kept() -> list[str]:
    """Return the lines of the stored file."""
    return SNAPSHOT.read_text(encoding="utf-8").splitlines()


def _modules() -> Iterator[str]:
    for name in ("", *(f".{name}" for name in sorted(of._LAZY_MODULES))):
        module = getattr(of, name[1:]) if name else of
        yield from (f"of{name} has {public}" for public in sorted(module.__all__))


def _entries() -> Iterator[str]:
    for name in sorted({name for task in TASKS for name in task.names} - TYPES.keys()):
        found = thing(name)
        if name in RESULTS:
            members: tuple[str, ...] = RESULTS[name].members
            described = NumpyDocString(inspect.getdoc(found) or "")["Attributes"]
            yield from (f"{name}.{attribute.name}: {attribute.type}" for attribute in described)
        else:
            members = MEMBERS.get(name, ())
            yield from _takes(name, found, is_method=name.startswith(ACCESSOR))
        for member in sorted(members):
            value = inspect.getattr_static(found, member)
            if callable(value):
                yield from _takes(f"{name}.{member}", value, is_method=True)
            else:
                yield f"{name}.{member}"


def _takes(name: str, function: object, *, is_method: bool) -> Iterator[str]:
    assert callable(function)
    signature = inspect.signature(function)
    for parameter in list(signature.parameters.values())[is_method:]:
        if not _is_filter(name, parameter.name):
            yield f"{name} takes {parameter}, {parameter.kind.description}"
    if not inspect.isclass(function):
        yield f"{name} returns {signature.return_annotation}"


def _is_filter(function: str, name: str) -> bool:
    """Return whether a name is a filter's, which `_columns` lists once for all functions."""
    names_column = function.endswith(("find_people", "find-people")) and name == PERSON_NAME
    return name in spec.FILTERS_BY_NAME and not names_column


def _errors() -> Iterator[str]:
    for name, kind in sorted(vars(errors).items()):
        if inspect.isclass(kind) and issubclass(kind, (Exception, Warning)):
            bases = ", ".join(base.__name__ for base in kind.__bases__)
            yield f"errors.{name} is a {bases}"


def _columns() -> Iterator[str]:
    yield from (f"filters: {one.name}" for one in spec.FILTERS)
    for table in TABLES:
        listed = of.columns(table)
        for column, dtype in zip(listed["name"], listed["dtype"], strict=True):
            yield f"{table} has {column}: {dtype}"


def _commands() -> Iterator[str]:
    for action in cli.make_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in sorted(action.choices.items()):
                for option in command._actions:
                    if not _is_filter(name, option.dest):
                        words = " ".join(option.option_strings) or option.dest
                        facts = ", ".join([words, *_facts(option)])
                        yield f"outreach-frames {name} takes {facts}"
    for code, meaning in cli.EXIT_CODES.items():
        yield f"outreach-frames ends with {code}: {meaning}"


def _facts(option: argparse.Action) -> Iterator[str]:
    """Yield how the command line parses an option that is not plain text."""
    if option.nargs is not None:
        yield "no value" if option.nargs == 0 else f"values {option.nargs}"
    if isinstance(option, argparse._ExtendAction):
        yield "repeatable"
    if option.type is not None:
        yield f"read by {getattr(option.type, '__name__', option.type)}"
    if option.choices is not None:
        yield f"one of {' '.join(map(str, option.choices))}"
    if not any(option.default is one for one in (None, False, argparse.SUPPRESS)):
        yield f"{option.default} by default"
    if option.required:
        yield "required"


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(public_surface()) + "\n", encoding="utf-8")
