"""Turn pages into notebooks, so that the build runs their Python blocks and shows the results."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from myst_nb.core.read import read_myst_markdown_notebook
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

ROOT: Final = Path(__file__).parents[1]
_KERNEL: Final = {"name": "python3", "display_name": "Python 3", "language": "python"}
# Shorten tables, show only the picture of a plot, and hide the paths of written files.
_SETUP: Final = f"""
import shutil
from pathlib import Path
import pandas as pd
shutil.copytree({str(ROOT / "data")!r}, "data")
pd.options.display.max_rows, pd.options.display.max_colwidth = 12, 100
show = get_ipython().display_formatter.ipython_display_formatter
show.for_type_by_name("matplotlib.axes._axes", "Axes", lambda axes: None)
show.for_type(type(Path()), lambda path: None)
"""


def read_page(text: str) -> NotebookNode:
    """Read a page as a notebook that runs in an empty folder with a copy of `data`."""
    page = read_myst_markdown_notebook(text, code_directive="python", add_source_map=True)
    page.metadata.setdefault("kernelspec", _KERNEL)
    page.metadata["mystnb"] = {"execution_in_temp": True, "output_stderr": "remove"}
    if any(cell.cell_type == "code" for cell in page.cells):
        page.cells.insert(0, new_code_cell(_SETUP, metadata={"tags": ["remove-cell"]}))
        page.metadata["source_map"].insert(0, 0)
    return page


def hash_code() -> str:
    """Hash the package and its data; a changed hash invalidates all results."""
    files = [
        file
        for folder in ("outreach_frames", "data")
        for file in sorted((ROOT / folder).rglob("*"))
        if file.is_file() and file.suffix != ".pyc"
    ]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
