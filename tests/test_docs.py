"""What README and docstrings say is executed."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import outreach_frames as of
from outreach_frames.client import connect
from outreach_frames.errors import OutreachWarning

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
# What people read; what is generated when the site is built is not there yet.
PAGES = [
    ROOT / "llms.txt",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
    *sorted((ROOT / "docs/explanation").glob("*.md")),
    *sorted((ROOT / "docs/widgets").glob("*.md")),
]
# The documentation's build runs these too, and fails where one of their blocks does.
BUILT = [page for page in PAGES if page.parent.name in {"docs", "how-to"}]
SPARK = "SparkSession"
MODULES = [
    "outreach_frames",
    *(
        name
        for _, name, _ in pkgutil.walk_packages(of.__path__, "outreach_frames.")
        if not name.endswith("__main__")
    ),
]


def python_blocks(page: Path, *, of_spark: bool = False) -> list[str]:
    """Return the Python of a page, block by block; `{code-block}` marks what is not run."""
    found = re.findall(
        r"^```(python|{code-block} python)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
    )
    return [block for kind, block in found if kind == "python" or (of_spark and SPARK in block)]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_examples_in_docstrings_run(name: str) -> None:
    """Every example in a docstring gives what it shows."""
    mpl.use("agg")
    failed, _ = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    plt.close("all")
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


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page in BUILT)) for page in PAGES],
    ids=[page.relative_to(ROOT).as_posix() for page in PAGES],
)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """The Python blocks of each page run one after the other, beside `data`."""
    run(python_blocks(page), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_spark_of_a_page_runs(tmp_path: Path) -> None:
    """Where there is Java, Spark reads what the pages say that it reads."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    (page,) = (page for page in PAGES if SPARK in page.read_text())
    run(python_blocks(page, of_spark=True), tmp_path)


def test_readme_shows_what_its_code_returns(tmp_path: Path) -> None:
    """The results on README are those of the blocks above them."""
    readme = ROOT / "README.md"
    shown = re.findall(r"```python\n.*?```(?:\n\n```\n(.*?)```)?", readme.read_text(), re.DOTALL)
    results = run(python_blocks(readme), tmp_path)
    assert sum(map(bool, shown)) == 2
    for text, result in zip(shown, results, strict=True):
        assert not text or text.splitlines() == str(result).splitlines()


def run(blocks: list[str], folder: Path) -> list[object]:
    """Run a page's blocks of Python in a folder; return the last value of each."""
    mpl.use("agg")
    plt.close("all")  # else a page would draw on what another test left
    shutil.copytree(ROOT / "data", folder / "data")
    before = Path.cwd()
    os.chdir(folder)
    names: dict[str, object] = {}
    results = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutreachWarning)
            for block in blocks:
                code = ast.parse(block)
                if isinstance(last := code.body[-1], ast.Expr):
                    code.body[-1] = ast.Assign([ast.Name("_", ast.Store())], last.value)
                exec(compile(ast.fix_missing_locations(code), "page", "exec"), names)
                results.append(names.pop("_", None))
    finally:
        os.chdir(before)
        plt.close("all")
        if client := connect.current():
            client.close()
    return results


def test_the_pages_have_python() -> None:
    """README and every how-to show what to call."""
    how_to = [page for page in PAGES if page.parent.name == "how-to"]
    for page in (ROOT / "README.md", ROOT / "docs/start.md", *how_to):
        assert python_blocks(page) or page.stem == "index", page
    assert len(how_to) > 12


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    """README fits on a few screens, and each link and picture in it is in the repository."""
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    links = re.findall(r"\]\(([^)]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    assert len(links) > 10
    for link in map("".join, links):
        path, _, place = link.partition("#")
        assert (ROOT / path).is_file(), link
        if place:
            headings = re.findall(r"^#+ (.*)", (ROOT / path).read_text(), re.MULTILINE)
            anchors = [re.sub(r"[^a-z0-9 ]", "", one.lower()).replace(" ", "-") for one in headings]
            assert place in anchors, link
