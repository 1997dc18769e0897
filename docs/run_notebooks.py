"""Run the notebooks and store their results in them: ``python -m docs.run_notebooks``.

It takes two minutes and needs the extra `test`. The build of the documentation compares the stored
results with those of a new run.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

ROOT: Final = Path(__file__).parents[1]
NOTEBOOKS: Final = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Kernels warn about connections without encryption.
KERNEL: Final = Config({"KernelManager": {"transport_encryption": "auto"}})
_WIDGET: Final = "application/vnd.jupyter.widget-view+json"
# What differs in each run, and its stored form.
_VARYING: Final = (
    (re.compile(r"(?<=http://127\.0\.0\.1:)\d+"), "8000"),
    (re.compile(r" at 0x[0-9a-f]+"), ""),
)


def main() -> None:
    """Run all notebooks, and print the sizes of the files."""
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as aside:
            nbformat.write(run_notebook(path, Path(aside)), path)
        print(f"{path.name}: {path.stat().st_size:,} bytes")


def changed_notebooks() -> list[str]:
    """Run all notebooks, and return the names of those whose stored results differ."""
    with ThreadPoolExecutor(2) as pool:
        return [
            path.name
            for path, changed in zip(NOTEBOOKS, pool.map(_is_changed, NOTEBOOKS), strict=True)
            if changed
        ]


def _is_changed(path: Path) -> bool:
    with tempfile.TemporaryDirectory() as aside:
        rerun = run_notebook(path, Path(aside))
    return _results(rerun) != _results(nbformat.read(path, as_version=4))


def _results(notebook: NotebookNode) -> list[NotebookNode]:
    """Return all outputs, without the bytes of pictures, which depend on fonts."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    for output in outputs:
        if "image/png" in output.get("data", {}):
            output.data["image/png"] = ""
    return outputs


def run_notebook(path: Path, aside: Path) -> NotebookNode:
    """Run a notebook in the folder `aside/notebooks`, and return it with its results."""
    notebook = nbformat.read(path, as_version=4)
    metadata = notebook.metadata.copy()  # a run adds the version of Python
    folder = aside / "notebooks"
    folder.mkdir()
    shutil.copytree(ROOT / "data", aside / "data")
    client = NotebookClient(
        notebook,
        config=KERNEL,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
        timeout=120,
    )
    client.execute(env=os.environ | {"IPYKERNEL_CELL_NAME": "cell"})  # not a temporary file
    notebook.metadata = metadata
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [_stable(one, cell) for one in cell.outputs if not _is_progress(one)]
    return notebook


def _is_progress(output: NotebookNode) -> bool:
    """Progress bars are shown only by slow runs, and a finished one leaves an empty output."""
    return output.output_type == "display_data" and (not output.data or _WIDGET in output.data)


def _stable(output: NotebookNode, cell: NotebookNode) -> NotebookNode:
    """Replace what differs in each run, and replace a widget by the picture that its cell names."""
    if "text" in output:
        output.text = _stable_text(output.text)
    data = output.get("data", {})
    for kind in ("text/plain", "text/html"):
        if kind in data:
            data[kind] = _stable_text(data[kind])
    if data.pop(_WIDGET, None):
        picture = ROOT / "docs/pictures" / f"{cell.metadata.picture}_light.png"
        data["image/png"] = base64.b64encode(picture.read_bytes()).decode()
    return output


def _stable_text(text: str) -> str:
    for varying, stored in _VARYING:
        text = varying.sub(stored, text)
    return text


if __name__ == "__main__":
    main()
