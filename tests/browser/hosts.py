"""Other hosts of widgets: Notebook 7 and marimo."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

from tests.browser.lab import HOST, Notebook, free_port, running

_SETTINGS = """
[display]
theme = "system"

[runtime]
auto_instantiate = true
"""


class Notebook7(Notebook):
    """A notebook in a page of Notebook 7, which the Lab's server provides too."""

    def _show(self, name: str) -> None:
        self.page.goto(urljoin(self.page.url, f"/notebooks/{name}"))
        self.page.wait_for_function("() => window.jupyterapp !== undefined")


@contextmanager
def running_marimo(folder: Path, api_key: str, cells: Sequence[str]) -> Iterator[str]:
    """Serve a marimo notebook that runs on opening, and yield its address.

    A cell is a function: its arguments and results are the variables shared with other cells.
    """
    folder.mkdir()
    notebook = folder / "notebook.py"
    lines = ["import marimo", "app = marimo.App()", *(f"@app.cell\n{cell}" for cell in cells)]
    notebook.write_text("\n".join(lines), encoding="utf-8")
    settings = folder / "config/marimo/marimo.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(_SETTINGS, encoding="utf-8")
    environment = os.environ | {
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_STATE_HOME": str(folder / "state"),
        "OUTREACH_API_KEY": api_key,
    }
    port = free_port()
    options = ["--headless", "--no-token", "--skip-update-check", f"--host={HOST}"]
    command = ["marimo", "--yes", "edit", str(notebook), *options, f"--port={port}"]
    url = f"http://{HOST}:{port}"
    with running(command, environment, folder / "server.log", f"{url}/health"):
        yield url
