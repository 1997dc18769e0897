"""JupyterLab in Chromium: one server and one page per run, one notebook per test."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import msgspec
import requests

import outreach_frames as of

if TYPE_CHECKING:
    from playwright.sync_api import (
        BrowserContext,
        ConsoleMessage,
        Locator,
        LocatorAssertions,
        Page,
        Request,
    )

HOST = "127.0.0.1"
LIGHT = "JupyterLab Light"
DARK = "JupyterLab Dark"
SCREENSHOTS_VARIABLE = "OUTREACH_SCREENSHOTS"

# The timeout in seconds of steps that take one or two on an idle machine.
PATIENCE = 60

_SERVER_OPTIONS = (
    "--no-browser",
    "--allow-root",
    f"--ServerApp.ip={HOST}",
    "--ServerApp.port_retries=0",
    "--IdentityProvider.token=",
    "--LabApp.expose_app_in_browser=True",
    "--JupyterNotebookApp.expose_app_in_browser=True",
    "--LabApp.extension_manager=readonly",
    "--LabApp.news_url=",
    "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
)
_BROWSER_OPTIONS = (
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE {HOST}",
)
_SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    # Saving widget state is off by default; with it, a saved notebook has the most content.
    "@jupyter-widgets/jupyterlab-manager/plugin": {"saveState": True},
}
_VIEWPORT = {"width": 1280, "height": 1000}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class CellFailedError(AssertionError):
    """A cell raised an error; the message is the kernel's traceback."""


class HasUrl(Protocol):
    """A sandbox or a scripted service."""

    url: str


def connect_to(service: HasUrl, **options: Any) -> str:
    """Return a cell that connects to a service with the token in the kernel's environment.

    The environment has the token of the `sandbox` fixture; pass another one as `api_key`.
    `options` go to `connect`.

    >>> print(connect_to(service, max_wait=1))
    import outreach_frames as of
    client = of.connect('http://127.0.0.1:34567', cache=None, max_wait=1)
    """
    given = {"cache": None} | options
    arguments = "".join(f", {name}={value!r}" for name, value in given.items())
    return f"import outreach_frames as of\nclient = of.connect({service.url!r}{arguments})"


@contextmanager
def running_lab(folder: Path, api_key: str) -> Iterator[str]:
    """Run a Lab server over `folder/files`, and yield its address."""
    (folder / "files").mkdir()
    for name, settings in _SETTINGS.items():
        file = folder / "config/lab/user-settings" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_bytes(msgspec.json.encode(settings))
    # Kernels are separate processes, and must import the package under test.
    paths = [str(Path(of.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OUTREACH_API_KEY": api_key,
    }
    port = free_port()
    command = ["jupyterlab", *_SERVER_OPTIONS]
    command += [f"--ServerApp.port={port}", f"--ServerApp.root_dir={folder / 'files'}"]
    url = f"http://{HOST}:{port}"
    with running(command, environment, folder / "server.log", f"{url}/api/status"):
        yield url


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    module: list[str], environment: dict[str, str], log: Path, ready: str
) -> Iterator[None]:
    """Run a Python module that serves; wait until the address `ready` responds."""
    command = [sys.executable, "-m", *module]
    with log.open("wb") as out:
        with subprocess.Popen(command, env=environment, stdout=out, stderr=out) as server:
            try:
                _wait_for_server(ready, server, log)
                yield
            finally:
                _end(server)


def _wait_for_server(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    with requests.Session() as session:
        session.trust_env = False
        while time.monotonic() < deadline and server.poll() is None:
            try:
                if session.get(url, timeout=PATIENCE).ok:
                    return
            except requests.ConnectionError:
                time.sleep(0.05)
    raise RuntimeError(f"The server did not start:\n{log.read_text(errors='replace')}")


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        server.kill()


def chromium() -> str:
    """Return the path of the system's Chromium, or raise an error with the install command."""
    found = shutil.which("chromium")
    if found is None:
        raise RuntimeError(
            "These tests need Chromium: apt-get install -y --no-install-recommends chromium"
        )
    return found


class Watched:
    """A browser context that records external requests and errors."""

    def __init__(self, context: BrowserContext) -> None:
        self.outgoing: list[str] = []
        self.errors: list[str] = []
        context.on("request", self._on_request)
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self._note(error.error.stack or str(error.error)))
        context.on("page", lambda page: page.on("websocket", lambda one: self._on_url(one.url)))

    def _on_request(self, request: Request) -> None:
        self._on_url(request.url)

    def _on_url(self, url: str) -> None:
        address = urlsplit(url)
        if address.scheme not in {"blob", "data"} and address.hostname != HOST:
            self.outgoing.append(url)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._note(f"{message.text} ({message.location.get('url', '')})")

    def _note(self, error: str) -> None:
        # A widget's module is the only one without a URL.
        if "blob:" in error or "anywidget" in error:
            self.errors.append(error)

    def forget(self) -> None:
        """Clear the records."""
        self.outgoing.clear()
        self.errors.clear()


@contextmanager
def opened_lab(url: str, **options: Any) -> Iterator[tuple[Page, Watched]]:
    """Open the Lab in a new browser; `options` go to the browser's context."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=list(_BROWSER_OPTIONS)
        )
        context = browser.new_context(
            viewport=_VIEWPORT, permissions=["clipboard-read", "clipboard-write"], **options
        )
        context.set_default_timeout(PATIENCE * 1000)
        watched = Watched(context)
        page = context.new_page()
        page.goto(f"{url}/lab?reset")
        page.wait_for_function(
            "() => window.jupyterapp?.commands.hasCommand('docmanager:open') ?? false"
        )
        page.evaluate(
            """async () => {
                await jupyterapp.restored;
                jupyterapp.shell.mode = 'single-document';
            }"""
        )
        yield page, watched
        context.close()
        browser.close()


class Notebook:
    """A test's notebook; each `run` opens a new one with a new kernel.

    Attributes
    ----------
    page : playwright's Page
        The page with JupyterLab.
    watched : Watched
        The requests to other machines, and the errors of our code in the page.
    """

    def __init__(self, page: Page, watched: Watched, files: Path, screenshots: Path) -> None:
        self.page = page
        self.watched = watched
        self._files = files
        # Each test has a separate folder for its files.
        self._folder = uuid.uuid4().hex
        (files / self._folder).mkdir()
        self._screenshots = screenshots
        self._open = False

    @property
    def widget(self) -> Locator:
        """The outermost element of the first widget."""
        return self.page.locator(".jp-OutputArea .outreach").first

    @property
    def path(self) -> Path:
        """The notebook's file, which `save` updates."""
        return self._files / str(self.page.evaluate(f"() => {_CURRENT}.context.path"))

    def run(self, *cells: str) -> None:
        """Open a new notebook with these cells and run them all; a cell's error fails the test."""
        self.close()
        name = f"{self._folder}/{uuid.uuid4().hex}.ipynb"
        metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        code = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
        document = {
            "cells": [{**code, "id": uuid.uuid4().hex, "source": cell} for cell in cells],
            "metadata": metadata,
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (self._files / name).write_bytes(msgspec.json.encode(document))
        self._open = True
        self._show(name)
        self._wait_until_ready(name)
        self._run_all()

    def _show(self, name: str) -> None:
        self.page.evaluate(
            "path => { jupyterapp.commands.execute('docmanager:open', {path}); }", name
        )

    def reopen(self) -> None:
        """Save and close the notebook, and open its file with a new kernel."""
        name = str(self.save().relative_to(self._files))
        self.page.evaluate(_DISPOSE)
        self._show(name)
        self._wait_until_ready(name)

    def restart(self, *cells: str) -> None:
        """Restart the kernel, and run these cells."""
        self.page.evaluate(
            f"async () => {{ await {_CURRENT}.sessionContext.session.kernel.restart(); }}"
        )
        self.page.evaluate(f"cells => {{ {_REPLACE_CELLS} }}", list(cells))
        self._wait_until_ready(str(self.path.relative_to(self._files)))
        self._run_all()

    def add(self, code: str) -> str:
        """Append a cell, run it, and return its output as text."""
        outputs = self._finish(f"code => {{ {_ADD_CELL} }}", code)
        return _text(outputs[-1])

    def ask(self, code: str) -> str:
        """Run code in the kernel without a cell, which keeps the focus; return the printed text."""
        return _text(self._finish(_ASK, code)[-1])

    def wait_until(self, expression: str) -> None:
        """Wait until a Python expression is true in the kernel."""
        deadline = time.monotonic() + PATIENCE
        while self.ask(f"print(bool({expression}))").strip() != "True":
            if time.monotonic() > deadline:
                raise AssertionError(f"{expression} did not come true in {PATIENCE} s")
            self.page.wait_for_timeout(50)

    def save(self) -> Path:
        """Save the notebook with the widgets' state, and return its file."""
        self.page.evaluate("async () => { await jupyterapp.commands.execute('docmanager:save'); }")
        self.page.wait_for_function(f"() => !{_CURRENT}.context.model.dirty")
        return self.path

    def theme(self, name: str) -> None:
        """Change the Lab's theme."""
        self.page.evaluate(
            "theme => { jupyterapp.commands.execute('apputils:change-theme', {theme}); }", name
        )
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
        # Lab covers the page with a splash screen while the theme changes.
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    def screenshot(self, name: str, widget: Locator | None = None) -> Path:
        """Save a picture of the whole widget, by default the first; return the PNG's path."""
        widget = widget or self.widget
        height = widget.evaluate("element => element.scrollHeight")
        self.page.set_viewport_size({**_VIEWPORT, "height": max(_VIEWPORT["height"], height + 400)})
        path = self._screenshots / f"{name}.png"
        widget.screenshot(path=path)
        self.page.set_viewport_size(_VIEWPORT)
        return path

    def close(self) -> None:
        """Shut the kernel down and close the notebook."""
        if self._open:
            self._open = False
            self.page.evaluate(_DISPOSE)

    def _wait_until_ready(self, name: str) -> None:
        self.page.wait_for_function(_IS_READY, arg=name)

    def _run_all(self) -> None:
        for outputs in self._finish(_RUN_ALL, None):
            _text(outputs)

    def _finish(self, function: str, argument: str | None) -> list[list[dict[str, Any]]]:
        """Call a JavaScript function that returns a promise of outputs, and wait for them."""
        self.page.evaluate(f"argument => {{ {_BEGIN.format(function=function)} }}", argument)
        self.page.wait_for_function("() => window.outputsOfCells !== undefined")
        found: list[list[dict[str, Any]]] = self.page.evaluate("() => window.outputsOfCells")
        return found


def expect(element: Locator) -> LocatorAssertions:
    """Return playwright's expectation of an element, which waits."""
    from playwright.sync_api import expect as expectation_of

    return expectation_of(element)


def expect_text(element: Locator, text: str | re.Pattern[str]) -> None:
    """Wait until an element shows this text."""
    expect(element).to_contain_text(text)


def _text(outputs: list[dict[str, Any]]) -> str:
    """Return outputs as text; raise an error among them."""
    for output in outputs:
        if output["output_type"] == "error":
            raise CellFailedError(_COLOURS.sub("", "\n".join(output["traceback"])))
    texts = [
        output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs
    ]
    return "".join(text if isinstance(text, str) else "".join(text) for text in texts)


_CURRENT = "jupyterapp.shell.currentWidget"

_IS_READY = f"""name => {{
    const panel = {_CURRENT};
    return panel?.context?.path === name
        && panel.sessionContext?.session?.kernel?.status === 'idle'
        && (panel.content?.widgets?.length ?? 0) > 0
        && jupyterapp.commands.isEnabled('notebook:run-all-cells');
}}"""

# An error of the function becomes an output, so that the test fails with its message.
_BEGIN = """
    window.outputsOfCells = undefined;
    const fail = error => [[{{
        output_type: 'error', traceback: [String(error?.stack ?? error)],
    }}]];
    Promise.resolve().then(() => ({function})(argument)).catch(fail)
        .then(outputs => {{ window.outputsOfCells = outputs; }});
"""

_OUTPUTS = f"""[...{_CURRENT}.content.widgets]
    .map(cell => cell.model.outputs?.toJSON() ?? [])"""

_RUN_ALL = f"""async () => {{
    await jupyterapp.commands.execute('notebook:run-all-cells');
    return {_OUTPUTS};
}}"""

_ADD_CELL = f"""
    const content = {_CURRENT}.content;
    const cells = content.model.sharedModel;
    cells.insertCell(cells.cells.length, {{cell_type: 'code', source: code}});
    content.activeCellIndex = cells.cells.length - 1;
    content.deselectAll();
    return jupyterapp.commands.execute('notebook:run-cell').then(() => {_OUTPUTS});
"""

_REPLACE_CELLS = f"""
    const notebook = {_CURRENT}.content.model.sharedModel;
    notebook.deleteCellRange(0, notebook.cells.length);
    notebook.insertCells(0, cells.map(source => ({{cell_type: 'code', source}})));
"""

_ASK = f"""async code => {{
    const outputs = [];
    const future = {_CURRENT}.sessionContext.session.kernel.requestExecute(
        {{code, store_history: false}}
    );
    future.onIOPub = message => {{
        const type = message.header.msg_type;
        if (['stream', 'execute_result', 'error'].includes(type)) {{
            outputs.push({{output_type: type, ...message.content}});
        }}
    }};
    await future.done;
    return [outputs];
}}"""

_DISPOSE = f"""async () => {{
    const panel = {_CURRENT};
    await panel.sessionContext.shutdown();
    panel.context.model.dirty = false;
    panel.close();
    panel.dispose();
}}"""
