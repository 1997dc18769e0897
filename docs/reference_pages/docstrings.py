"""Pages with the signatures and docstrings of functions and classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from numpydoc.docscrape import Parameter
from numpydoc.docscrape_sphinx import SphinxDocString

import outreach_frames as of
from docs.reference_pages.rst import code, directive, heading, table
from docs.reference_pages.tasks import ACCESSOR, MEMBERS, RESULTS, TASKS, TYPES, Task, thing
from outreach_frames import errors, spec
from outreach_frames.analysis.interface_columns import TABLES

_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_RAISED = re.compile(r"^( +)(\w+(?:Error|Warning))$", re.MULTILINE)
# The package's exceptions, by the names that pages use.
ERRORS = {
    name: f"of.{name}" if name in of.__all__ else name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, (errors.OutreachError, Warning))
}


def overview() -> str:
    """Return a section per task with one sentence on each function, for the reference's index."""
    text = (
        "``of`` is the package, as in ``import outreach_frames as of``, and ``df`` is any "
        "pandas frame. Importing the package adds the methods of ``df.outreach``.\n\n"
    )
    for task in TASKS:
        text += heading(f":doc:`{task.title} <{task.page}>`", 1) + f"{task.intro}\n\n"
        rows = [(f":py:obj:`{name}`", _in_short(name)) for name in task.names]
        text += table(("name", "what it does"), rows, widths=(35, 65))
    return text


def task_page(task: Task) -> str:
    """Return the page of one task."""
    text = heading(task.title) + f"{task.intro}\n\n"
    for name in task.names:
        text += heading(name, 1) + _pictures(name) + _entry(name)
    return text


def _pictures(name: str) -> str:
    """Return the gallery's pictures of a plot; each theme shows one of them."""
    if not name.startswith("of.plots."):
        return ""
    file = f"/gallery/made/{name.removeprefix('of.plots.')}"
    return "".join(
        f".. image:: {file}_{theme}.png\n   :class: only-{theme}\n   :alt: What {name} draws\n\n"
        for theme in ("light", "dark")
    )


def first_sentence(documented: Any) -> str:
    """Return the first sentence of a docstring."""
    return " ".join(_docstring(documented).split("\n\n")[0].split())


def _in_short(name: str) -> str:
    return TYPES.get(name) or _linked(first_sentence(thing(name)))


def _entry(name: str) -> str:
    if name in TYPES:
        return directive("py:data", name, TYPES[name])
    documented = thing(name)
    if not inspect.isclass(documented):
        signature = _signature(documented, skip_first=name.startswith(ACCESSOR))
        text = body(documented) + _code_file(documented)
        return directive("py:function", f"{name}{signature}", text)
    members = RESULTS[name].members if name in RESULTS else MEMBERS.get(name, ())
    takes = "" if name in RESULTS else str(_signature(documented))
    text = body(documented, is_result=name in RESULTS) + "\n\n"
    text += "".join(_members(documented, members))
    return directive("py:class", f"{name}{takes}", text + _code_file(documented))


def _code_file(documented: Any) -> str:
    """Return a line with the file of the code."""
    file = Path(inspect.getfile(inspect.unwrap(documented)))
    return f"\n\nCode: ``{file.relative_to(Path(of.__file__).parents[1])}``"


def _members(owner: type, names: tuple[str, ...]) -> list[str]:
    entries = []
    for name in names:
        member = inspect.getattr_static(owner, name)
        if callable(member):
            signature = _signature(member, skip_first=True)
            entries.append(directive("py:method", f"{name}{signature}", body(member)))
        else:
            entries.append(directive("py:property", name, body(member)))
    return entries


def _signature(documented: Callable[..., Any], *, skip_first: bool = False) -> inspect.Signature:
    """Return a signature without types, which the text describes, and without filters."""
    given = inspect.signature(documented)
    parameters = list(given.parameters.values())[skip_first:]
    parameters = [one for one in parameters if one.name not in spec.FILTERS_BY_NAME]
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return given.replace(parameters=plain, return_annotation=inspect.Signature.empty)


def _docstring(documented: Any) -> str:
    text = inspect.getdoc(inspect.unwrap(documented) if callable(documented) else documented)
    if not text:
        raise ValueError(f"{documented} has no docstring")
    return text


def body(documented: Any, *, is_result: bool = False) -> str:
    """Return a docstring as reStructuredText; leave out a result's parameters and examples."""
    parsed = SphinxDocString(_docstring(documented))
    if callable(documented):
        parsed["Parameters"] = list(_taken(documented, parsed["Parameters"]))
    if is_result:
        parsed["Parameters"], parsed["Examples"] = [], []
    return _RAISED.sub(_error, _linked(str(parsed)))


def _error(found: re.Match[str]) -> str:
    """Link an exception to its entry on the page of errors."""
    return (
        f"{found[1]}:py:obj:`{found[2]} <{ERRORS[found[2]]}>`" if found[2] in ERRORS else found[0]
    )


def _taken(documented: Callable[..., Any], described: list[Parameter]) -> Iterator[Parameter]:
    """Yield the documented parameters; rename a method's frame to `df`."""
    takes = inspect.signature(documented).parameters
    frame = next(iter(inspect.signature(inspect.unwrap(documented)).parameters), None)
    for raw in described:
        one = raw._replace(type=raw.type.replace("\\", r"\\"))
        name = one.name.replace("*", "")
        if name in takes:
            yield one
        elif name == frame:
            yield one._replace(name="df")


def _linked(text: str) -> str:
    """Replace `names` in a docstring by links, or by code if no page has them."""
    return _CODE.sub(lambda found: _name(found[1]), text)


def _name(text: str) -> str:
    bare = text.removesuffix("()")
    target = _targets().get(bare)
    return f":py:obj:`{text} <{target}>`" if target else code(text)


@cache
def _targets() -> dict[str, str]:
    """Map the names of functions in docstrings to their names on the pages.

    Names of filters and columns are not linked, since they are ambiguous.
    """
    documented = [name for task in TASKS for name in task.names]
    columns = {field.name for fields in TABLES.values() for field in fields}
    others = columns | spec.FILTERS_BY_NAME.keys() | TABLES.keys()
    short = {name.rpartition(".")[2]: name for name in documented if "_" in name or "." not in name}
    short = {bare: name for bare, name in short.items() if bare not in others}
    return {**short, "connect": "of.connect", **{name: name for name in documented}}
