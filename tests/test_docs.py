"""Run the code in README, pages and docstrings."""

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
import pandas as pd
import pytest
import requests

import outreach_frames as of
from outreach_frames.client import connect
from outreach_frames.errors import OutreachWarning
from outreach_frames.sandbox import Sandbox

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
# Handwritten pages; the generated ones exist only after a build.
PAGES = [
    ROOT / "llms.txt",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
    *sorted((ROOT / "docs/explanation").glob("*.md")),
    *sorted((ROOT / "docs/widgets").glob("*.md")),
]
# The documentation's build runs these pages too, and fails if one of their blocks fails.
BUILT = [page for page in PAGES if page.parent.name in {"docs", "how-to"}]
SPARK = "SparkSession"
# The pages that state the memory of frames and the size of responses.
BOOKS = ("frames.md", "scale.md")
MODULES = [
    "outreach_frames",
    *(
        name
        for _, name, _ in pkgutil.walk_packages(of.__path__, "outreach_frames.")
        if not name.endswith("__main__")
    ),
]


def python_blocks(page: Path, *, of_spark: bool = False) -> list[str]:
    """Return the Python blocks of a page; `{code-block}` marks code that is not run."""
    found = re.findall(
        r"^```(python|{code-block} python)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
    )
    return [block for kind, block in found if kind == "python" or (of_spark and SPARK in block)]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_examples_in_docstrings_run(name: str) -> None:
    """Every example in a docstring prints the shown result."""
    mpl.use("agg")
    # Examples that show a plan without a service would ask the one that another test left.
    if (left := connect.current()) is not None:
        left.close()
    failed, _ = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    plt.close("all")
    assert failed == 0


def test_every_public_name_is_documented() -> None:
    """Each public function documents its parameters, result and errors, and has an example."""
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
        # Other tools read an entry of several parameters as one of an unknown name.
        entries = text.partition("\nParameters\n")[2].partition("\n\n")[0]
        assert not re.search(r"^\w+, \w+(, \w+)*( :|$)", entries, re.MULTILINE), function
        warns = text.partition("\nWarns\n-----\n")[2].partition("\n\n")[0]
        assert "Error" not in warns, function


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page in BUILT)) for page in PAGES],
    ids=[page.relative_to(ROOT).as_posix() for page in PAGES],
)
def test_the_python_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    """The Python blocks of each page run in order, in a folder with `data`."""
    run(python_blocks(page), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_spark_blocks_of_a_page_run(tmp_path: Path) -> None:
    """If Java is installed, the Spark code of the pages reads the expected data."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    (page,) = (page for page in PAGES if SPARK in page.read_text())
    run(python_blocks(page, of_spark=True), tmp_path)


def test_readme_shows_the_results_of_its_code(tmp_path: Path) -> None:
    """The results in README are those of the blocks above them."""
    readme = ROOT / "README.md"
    shown = re.findall(r"```python\n.*?```(?:\n\n```\n(.*?)```)?", readme.read_text(), re.DOTALL)
    results = run(python_blocks(readme), tmp_path)
    assert sum(map(bool, shown)) == 2
    for text, result in zip(shown, results, strict=True):
        assert not text or text.splitlines() == str(result).splitlines()


def test_figures_of_memory_and_size_are_measured(sandbox: Sandbox, people: pd.DataFrame) -> None:
    """The text's figures on columns, memory and size of people are those of the sandbox."""
    text = " ".join((ROOT / "docs/explanation" / name).read_text() for name in BOOKS)
    brief = people[list(people.outreach.brief())]
    whole, part = (frame.memory_usage(deep=True, index=False).sum() for frame in (people, brief))
    assert f"the {brief.shape[1]} columns of `brief()`" in text
    assert round(whole / part) in {10, 11}
    assert "a tenth of the memory" in text
    (low, high), *_ = re.findall(rf"{people.shape[1]} columns takes (\d+) to (\d+) KB", text)
    assert float(low) <= whole / len(people) / 1_000 <= float(high)
    headers = {"Authorization": f"Bearer {sandbox.api_key}"}
    size = {"page_size": 100}
    response = requests.post(f"{sandbox.url}/people/search", json=size, headers=headers, timeout=60)
    (size_of_json,) = re.findall(r"response has ([\d.]+) KB of JSON", text)
    assert len(response.content) / 100_000 == pytest.approx(float(size_of_json), rel=0.1)


def test_figures_of_readme_are_those_of_the_benchmarks() -> None:
    """README rounds the measured seconds, ratio and memory of an export."""
    rows = [
        line.split(" | ")
        for line in (ROOT / "docs/explanation/benchmarks.md").read_text().splitlines()
        if "export_people" in line
    ]
    seconds, ratio = next((row[2], row[4]) for row in rows if "to_csv" in row[1])
    memory = next(row[2] for row in rows if "peak memory" in row[0])
    readme = " ".join((ROOT / "README.md").read_text().split())
    shown = f"takes {float(seconds[:-2]):.0f} seconds, is {float(ratio):.0f} times as fast"
    assert shown in readme
    assert f"needs {memory}" in readme
    seconds = [
        float(cell.removesuffix(" s"))
        for line in (ROOT / "docs/explanation/benchmarks.md").read_text().splitlines()
        if line.startswith("| search 10,000 people into a frame, no cache")
        for cell in line.split(" | ")[2:4]
    ]
    loop, own = f"{seconds[1]:.1f} seconds", f"{seconds[0]:.1f} seconds"
    assert f"| 10,000 people into a frame, documented fields only | {loop} | {own} |" in readme


def run(blocks: list[str], folder: Path) -> list[object]:
    """Run a page's Python blocks in a folder; return the last value of each."""
    mpl.use("agg")
    plt.close("all")  # so that pages do not draw on figures of other tests
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
    """README and all how-to pages have Python code."""
    how_to = [page for page in PAGES if page.parent.name == "how-to"]
    for page in (ROOT / "README.md", ROOT / "docs/start.md", *how_to):
        assert python_blocks(page) or page.stem == "index", page
    assert len(how_to) > 12


def test_the_readme_is_short_and_its_links_work() -> None:
    """README is short, and all its links and pictures are in the repository."""
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
