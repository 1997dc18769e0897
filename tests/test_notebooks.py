"""The notebooks run from top to bottom and are stored with their results."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Paths and ports of one machine, tokens, states of widgets, messages of a kernel, and failures.
UNWANTED = (
    rf"{tempfile.gettempdir()}/|{Path.home()}/|{ROOT}/|127\.0\.0\.1:(?!8000\b)|sandbox-[0-9a-f]"
    "|widget-view|IPKernelApp|Traceback"
)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the code cells of a notebook."""
    cells: list[dict[str, Any]] = json.loads(path.read_bytes())["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def texts(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all outputs, without the bytes of pictures, which depend on fonts."""
    outputs = [output for cell in cells for output in cell["outputs"]]
    for output in outputs:
        if "image/png" in output.get("data", {}):
            output["data"]["image/png"] = ""
    return outputs


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_results_are_of_one_run_and_name_no_machine(path: Path) -> None:
    """Stored cells were run in order, and hold nothing that belongs to one machine or run."""
    cells = read(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert any(cell["outputs"] for cell in cells)
    for output in texts(cells):
        assert not re.search(UNWANTED, json.dumps(output)), output


def test_stored_results_are_small() -> None:
    """All notebooks together have at most 3 MB."""
    assert sum(path.stat().st_size for path in NOTEBOOKS) < 3_000_000


def test_notebooks_are_valid() -> None:
    """Every notebook fits the format of its version, and cell ids are unique."""
    import jsonschema_rs

    # Read nbformat's schemas as files, because importing it is slow.
    nbformat = importlib.util.find_spec("nbformat")
    assert nbformat is not None
    assert nbformat.origin is not None
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_bytes())
        version = f"{notebook['nbformat']}.{notebook['nbformat_minor']}"
        schema = Path(nbformat.origin).with_name("v4") / f"nbformat.v{version}.schema.json"
        jsonschema_rs.validate(json.loads(schema.read_bytes()), notebook)
        ids = [cell["id"] for cell in notebook["cells"]]
        assert len(set(ids)) == len(ids)


def test_the_extra_brings_what_the_notebooks_import() -> None:
    """`pip install "outreach-frames[lab]"` is enough to run every notebook."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]

    def names(requirements: list[str]) -> set[str]:
        found = set()
        for one in requirements:
            name, inner = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", one).groups()  # type: ignore[union-attr]
            found.add(name.lower().replace("-", "_"))
            if name == "outreach-frames":
                found |= {deep for extra in inner.split(",") for deep in names(extras[extra])}
        return found

    imported = {"outreach_frames"}
    for file in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(file.read_bytes())["cells"]:
            lines = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
            imported |= set(re.findall(r"^ *(?:import|from) (\w+)", lines, re.MULTILINE))
    available = names(project["dependencies"]) | names(extras["lab"])
    assert imported - set(sys.stdlib_module_names) <= available
