"""The package's layout: the table in CONTRIBUTING.md, the packages, and forbidden names."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from pathlib import Path

import outreach_frames as of

ROOT = Path(__file__).parents[1]
# The tested package, which may be installed elsewhere.
PACKAGE = Path(of.__file__).parent
PUBLIC_PACKAGES = {PACKAGE, *(PACKAGE / name for name in ("plots", "sandbox", "widgets"))}


def rooms() -> set[str]:
    """Return the packages and modules at the root."""
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return packages | {path.stem for path in PACKAGE.glob("[!_]*.py")}


def test_the_table_lists_all_rooms() -> None:
    """CONTRIBUTING.md describes every room once, in the order of imports."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("\n## Rooms\n")[2].partition("\n## ")[0]
    shown = re.findall(r"^\| `(\w+)` \| .+\. \|$", table, re.MULTILINE)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    ordered = [name for layer in layers for name in layer.split(" | ") if name != "__main__"]
    assert shown == ordered
    assert set(shown) == rooms()


def test_every_package_has_a_description() -> None:
    """Each `__init__` begins with one sentence, and only public packages export names."""
    for init in PACKAGE.rglob("__init__.py"):
        module = ast.parse(init.read_text(encoding="utf-8"))
        sentence, _, _ = (ast.get_docstring(module) or "").partition("\n\n")
        assert re.fullmatch(r"[A-Z`].*\.", sentence), init
        if init.parent not in PUBLIC_PACKAGES:
            assert len(module.body) == 1, init


def test_no_room_has_the_name_of_a_public_function() -> None:
    """`import outreach_frames.x as x` always returns the module, never a function of that name."""
    functions = {name for name in of.__all__ if not inspect.ismodule(getattr(of, name))}
    assert rooms() & functions == set()
