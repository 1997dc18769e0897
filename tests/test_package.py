"""The package's public names, imports, layout and versions, and the tests' own tools."""

from __future__ import annotations

import ast
import difflib
import inspect
import os
import re
import subprocess
import sys
import tomllib
import warnings
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import errors
from outreach_frames.common.warnings import warn
from tests.benchmarks.against import ratios

ROOT = Path(__file__).parents[1]
HEAVY = {
    "matplotlib",
    "ipywidgets",
    "anywidget",
    "starlette",
    "uvicorn",
    "IPython",
    "tqdm",
    "dask",
}


def test_the_public_surface_is_up_to_date() -> None:
    """The stored file has the current public names, parameters, defaults, columns and options."""
    from tests.public_surface import kept, public_surface

    changed = "\n".join(
        difflib.unified_diff(kept(), public_surface(), "kept", "now", "", "", 0, "")
    )
    assert changed == "", "Where that is wanted: python -m tests.public_surface"


def test_dir_shows_public_names() -> None:
    """Completion after `of.` shows only public names."""
    assert {name for name in dir(of) if not name.startswith("__")} == set(of.__all__)
    assert all(hasattr(of, name) for name in of.__all__)
    for module in (of.keys, of.plots, of.sandbox, of.widgets):
        assert dir(module) == sorted(module.__all__)


def test_completion_shows_the_documented_names_of_clients_and_plans() -> None:
    """Completion after a client or a plan shows the names that the documentation lists, no more."""
    from tests.public_surface import kept

    with of.connect("http://localhost:1", "token", cache=None) as client:
        plan = pd.DataFrame({"email": ["anna@x.example"]}).outreach.plan("seq_1")
        for shown, name in ((client, "of.Client"), (plan, "SubmissionPlan")):
            documented = {
                re.match(r"\w+", line.removeprefix(f"{name}."))[0]
                for line in kept()
                if line.startswith(f"{name}.")
            }
            assert {member for member in dir(shown) if not member.startswith("_")} == documented


def test_the_version_is_consistent() -> None:
    """The package's version is that of its metadata and of the citation file."""
    citation = ROOT / "CITATION.cff"
    assert of.__version__ == version("outreach-frames")
    assert f"\nversion: {of.__version__}\n" in citation.read_text(encoding="utf-8")


@pytest.mark.long
def test_importing_is_light() -> None:
    """Importing the package loads no plotting, widgets, server or cache library."""
    code = "import sys, outreach_frames; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert HEAVY & set(loaded) == set()


def test_an_unknown_name_is_an_attribute_error() -> None:
    """An unknown name is an AttributeError."""
    with pytest.raises(AttributeError, match="serach_people"):
        of.serach_people  # noqa: B018


def all_errors(base: type[Exception]) -> set[type[Exception]]:
    """Return a class and all its subclasses."""
    return {base}.union(*(all_errors(child) for child in base.__subclasses__()))


def test_every_error_has_one_base_class() -> None:
    """Every exception of the package is an OutreachError with the same attributes."""
    defined = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, Exception)
    } - {errors.OutreachWarning}
    assert defined <= all_errors(of.OutreachError)
    for kind in defined:
        error = kind("what happened")
        assert (error.retry_after, error.partial) == (None, None)
        assert error.status_code is None or kind is errors.ValidationFailedError
        assert error.retryable is False


def test_the_accessor_keeps_no_state() -> None:
    """Every frame has .outreach, which reads the frame's current content."""
    frame = pd.DataFrame({"a": [1]})
    frame.outreach  # noqa: B018
    frame["company_name"] = ["Brightforge"]
    assert frame.outreach.companies()["name"].tolist() == ["Brightforge"]


def test_help_without_a_frame() -> None:
    """The accessor's methods have help without a frame, and none mentions the frame itself."""
    names = dir(pd.DataFrame.outreach)
    assert {"plan", "to_csv", "locations"} <= {*names}
    for name in names:
        method = getattr(pd.DataFrame.outreach, name)
        assert "frame" not in inspect.signature(method).parameters
        assert next(iter(inspect.signature(method).parameters)) == "self"
        assert not re.search(r"(?m)^(frame|table|accounts) : |Parameters\n-+\n\n", method.__doc__)
        assert "Examples" in method.__doc__
    assert not hasattr(pd.DataFrame.outreach, "plans")


def test_a_folder_with_a_similar_name_is_not_the_package() -> None:
    """A warning can point to a script in a folder with a name like the package's."""
    script = Path(of.__file__).parent.with_name("outreach_frames_work") / "script.py"
    code = compile("warn('something to know')", script, "exec")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(code, {"warn": warn})
    assert [Path(one.filename) for one in caught] == [script]


def test_warnings_point_at_the_callers_line() -> None:
    """A warning points to the file of the caller."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn("something to know")
    assert [Path(one.filename).name for one in caught] == [Path(__file__).name]


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


@pytest.mark.oldest
@pytest.mark.timeout(7200)
def test_the_tests_pass_on_the_oldest_versions(tmp_path: Path) -> None:
    """The tests pass in a new environment with the lowest version of each dependency."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [python, "-m", "uv", "pip", "install", "--quiet", "--resolution", "lowest-direct"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
    subprocess.run([*install, "--python", python, "-e", f"{ROOT}[test]"], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, "-m", "pytest", "-q"], cwd=ROOT, env=environment, check=True)


@pytest.mark.slow
def test_collection_is_deterministic(request: pytest.FixtureRequest) -> None:
    """No test's id depends on the time, the time zone, the locale or the order of a set."""
    # By default xdist already compares its workers' tests, with different hash seeds.
    collected = [item.nodeid for item in request.session.items]
    files = sorted({item.path for item in request.session.items})
    elsewhere = {"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C", "COLUMNS": "40"}
    # Disable slow features that do not affect the collection.
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts="]
    command += ["--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
    shown = subprocess.run(
        [*command, *files],
        env={**os.environ, **elsewhere, "PYTHONUTF8": "1"},
        cwd=request.config.rootpath,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout.splitlines()
    assert set(collected) <= set(shown)


def test_rows_are_compared_by_name() -> None:
    """The ratio is the median over runs of the ratios of rows that both commits have."""
    pairs = [
        ({"search": (1.0, 2.0), "old": (1.0, 1.0)}, {"search": (1.2, 2.0), "new": (1.0, 1.0)}),
        ({"search": (10.0, 2.0)}, {"search": (10.0, 2.0)}),
        ({"search": (1.0, 2.0)}, {"search": (1.1, 3.0)}),
    ]
    assert list(ratios(pairs)) == ["| search | 1.10 (slower) | 1.00 |"]
    assert list(ratios([(after, before) for before, after in pairs])) == [
        "| search | 0.91 | 1.00 |"
    ]
