"""What README and docstrings say is executed."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest

import outreach_frames as of
from outreach_frames.client import connect
from outreach_frames.errors import OutreachWarning

ROOT = Path(__file__).parents[1]
MODULES = [
    "outreach_frames",
    *(
        name
        for _, name, _ in pkgutil.walk_packages(of.__path__, "outreach_frames.")
        if not name.endswith("__main__")
    ),
]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_examples_in_docstrings_run(name: str) -> None:
    """Every example in a docstring gives what it shows."""
    mpl.use("agg")
    failed, _ = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert failed == 0


def test_every_public_name_is_documented() -> None:
    """Each public function says what it takes, returns, raises and follows, and shows its use."""
    functions = [
        value for value in (getattr(of, name) for name in of.__all__) if inspect.isfunction(value)
    ]
    functions += [
        value
        for name, value in inspect.getmembers(of.plots, inspect.isfunction)
        if not name.startswith("_")
    ]
    assert functions
    for function in functions:
        text = inspect.getdoc(function) or ""
        takes = ("Parameters", "Raises") if inspect.signature(function).parameters else ()
        for chapter in (*takes, "Returns", "Notes", "Examples"):
            assert re.search(rf"^{chapter}\n-+$", text, re.MULTILINE), (function, chapter)


def test_the_readmes_python_runs(tmp_path: Path) -> None:
    """README's Python blocks run one after the other."""
    mpl.use("agg")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 3
    before = Path.cwd()
    os.chdir(tmp_path)
    names: dict[str, object] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutreachWarning)
            for block in blocks:
                exec(block, names)
    finally:
        os.chdir(before)
        connect.resolve(None).close()
    assert (tmp_path / "prospects.csv").exists()
