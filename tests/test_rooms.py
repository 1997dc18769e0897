"""The layout: its table in CONTRIBUTING.md, the packages, and the names that they must not have."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from pathlib import Path

import outreach_frames as of

ROOT = Path(__file__).parents[1]
# The one that is tried, which may be installed.
PACKAGE = Path(of.__file__).parent
PUBLIC_PACKAGES = {PACKAGE, *(PACKAGE / name for name in ("plots", "sandbox", "widgets"))}


def rooms() -> set[str]:
    """Return the packages and modules at the root."""
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return packages | {path.stem for path in PACKAGE.glob("[!_]*.py")}


def test_the_table_of_rooms_is_the_packages() -> None:
    """CONTRIBUTING.md names every room once, with a sentence, in the order that imports go."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("\n## Rooms\n")[2].partition("\n## ")[0]
    shown = re.findall(r"^\| `(\w+)` \| .+\. \|$", table, re.MULTILINE)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    ordered = [name for layer in layers for name in layer.split(" | ") if name != "__main__"]
    assert shown == ordered
    assert set(shown) == rooms()


def test_every_package_says_what_belongs_there() -> None:
    """Each `__init__` begins with one sentence, and only those of public packages export names."""
    for init in PACKAGE.rglob("__init__.py"):
        module = ast.parse(init.read_text(encoding="utf-8"))
        sentence, _, _ = (ast.get_docstring(module) or "").partition("\n\n")
        assert re.fullmatch(r"[A-Z`].*\.", sentence), init
        if init.parent not in PUBLIC_PACKAGES:
            assert len(module.body) == 1, init


def test_no_room_has_the_name_of_a_public_function() -> None:
    """`import outreach_frames.x as x` gives the module, never a function of that name."""
    functions = {name for name in of.__all__ if not inspect.ismodule(getattr(of, name))}
    assert rooms() & functions == set()
