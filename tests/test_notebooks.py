"""The notebooks run from top to bottom and are stored without outputs."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

DATA = Path(__file__).parents[1] / "data"
NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
# Expected warnings: invalid rows in a list, and mailboxes that are not active.
WARNINGS = {"02_add_to_sequence": ["are invalid"] * 2, "08_capacity": ["mailboxes cannot send"]}


def read(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook."""
    cells: list[dict[str, Any]] = json.loads(path.read_bytes())["cells"]
    return cells


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """Start one kernel for all notebooks, because its imports take longer than their cells."""
    from jupyter_client.manager import start_new_kernel

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MPLBACKEND", raising=False)
        manager, client = start_new_kernel()
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(kernel: Any, source: str) -> list[dict[str, Any]]:
    """Run a cell and return its output."""
    shown: list[dict[str, Any]] = []
    kernel.execute_interactive(
        source, timeout=120, output_hook=lambda message: shown.append(message["content"])
    )
    for content in shown:
        assert "ename" not in content, "\n".join(content["traceback"])
    return shown


@pytest.mark.parametrize(
    "path",
    [
        # The documentation's build runs the other notebooks.
        pytest.param(path, marks=[] if path.stem == "01_quickstart" else pytest.mark.slow)
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs(path: Path, tmp_path: Path, kernel: Any) -> None:
    """Each notebook runs alone without an error, with the expected warnings and files."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    shutil.copytree(DATA, tmp_path / "data")
    run(kernel, f"%reset -f\n%cd -q {folder}")
    outputs = [
        output
        for cell in read(path)
        if cell["cell_type"] == "code"
        for output in run(kernel, "".join(cell["source"]))
    ]
    stderr = [output["text"] for output in outputs if output.get("name") == "stderr"]
    expected = WARNINGS.get(path.stem, [])
    assert len(stderr) == len(expected), stderr
    assert all(said in text for said, text in zip(expected, stderr, strict=True))
    if path.stem == "01_quickstart":
        left = sorted(file.name for file in folder.iterdir())
        assert left == ["directors.json", "prospects.csv", "prospects.csv-metadata.json"]
        pictures = [output for output in outputs if "image/png" in output.get("data", {})]
        assert len(pictures) == 3


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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_no_outputs(path: Path) -> None:
    """No outputs, counts or tokens are stored in a notebook."""
    for cell in read(path):
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
