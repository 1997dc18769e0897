"""The command `lab`: start the sandbox and open JupyterLab with copies of the notebooks."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from outreach_frames.client.connect import API_KEY_VARIABLE, BASE_URL_VARIABLE, PROFILE_VARIABLE
from outreach_frames.commands.options import Command, option
from outreach_frames.commands.sandbox import start
from outreach_frames.commands.terminal import signals_as_ctrl_c
from outreach_frames.common.atomic_files import expanded, replace_file, unwritable
from outreach_frames.common.text import printable
from outreach_frames.errors import ConfigurationError, OutreachError

# These folders are copied side by side, because the notebooks read ../data.
_FOLDERS: Final = {"notebooks": "*.ipynb", "data": "*.*"}
_FIRST_NOTEBOOK: Final = "notebooks/01_quickstart.ipynb"
# JupyterLab gives its kernels 5 of these seconds.
_SECONDS_TO_STOP: Final = 20


def copy_examples(folder: Path) -> None:
    """Copy the examples, but keep existing files."""
    for name, pattern in _FOLDERS.items():
        place = folder / name
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(place, error) from error
        for source in _examples(name).glob(pattern):
            _copy(source, place / source.name)


def _copy(source: Path, target: Path) -> None:
    """Copy a file if no target exists."""
    if not os.path.lexists(target):
        content = source.read_bytes()
        replace_file(target, lambda file: file.write(content))


def _examples(name: str) -> Path:
    """Return a folder of examples, inside an installed package or next to it in a checkout."""
    package = Path(str(files("outreach_frames")))
    for folder in (package / "examples" / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise ConfigurationError(f"This installation of outreach-frames has no {name}. Reinstall it.")


def _run(options: argparse.Namespace) -> None:
    if find_spec("jupyterlab") is None:
        raise ConfigurationError(
            'JupyterLab is not installed. Install it: pip install "outreach-frames[lab]"'
        )
    folder = expanded(options.folder).absolute()
    with signals_as_ctrl_c(), start(options, port=0) as sandbox:
        copy_examples(folder)
        connection = {BASE_URL_VARIABLE: sandbox.url, API_KEY_VARIABLE: sandbox.api_key}
        connection[PROFILE_VARIABLE] = ""  # a profile would override address and token
        print(_welcome(folder, sandbox.url), flush=True)
        _serve_lab(_command(folder, options), os.environ | connection)


def _welcome(folder: Path, url: str) -> str:
    lines = [
        f"The notebooks are in {folder / 'notebooks'}; existing files were kept. For new copies, "
        "pass another --folder.",
        f"The sandbox listens at {url}; in a notebook, of.connect() connects to it.",
        "JupyterLab is starting. Ctrl-C stops both.",
    ]
    return printable("\n".join(lines), keep="\n")


def _command(folder: Path, options: argparse.Namespace) -> list[str]:
    command = [sys.executable, "-m", "jupyterlab"]
    command += [
        # Print only the address that JupyterLab listens at.
        "--ServerApp.log_level=ERROR",
        "--LabApp.log_level=ERROR",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/{_FIRST_NOTEBOOK}",
        # Containers run as root, which is safe here: the server is local and needs a token.
        "--allow-root",
    ]
    if options.port is not None:
        # Fail if the requested port is taken.
        command += [f"--ServerApp.port={options.port}", "--ServerApp.port_retries=0"]
    if options.no_browser:
        command += ["--no-browser"]
    return command


def _serve_lab(command: list[str], environment: dict[str, str]) -> None:
    """Run JupyterLab until it ends or Ctrl-C; kill it after a timeout or a second Ctrl-C."""
    # A new session shields JupyterLab from Ctrl-C, which would make it ask for confirmation.
    with subprocess.Popen(  # noqa: S603 - fixed arguments, a folder and a port
        command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
    ) as server:
        try:
            code = server.wait()
        except KeyboardInterrupt:
            server.terminate()
            try:
                server.wait(_SECONDS_TO_STOP)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                server.kill()
            return
    if code:
        raise OutreachError(f"JupyterLab ended with exit code {code}. See its messages above.")


LAB: Final = Command(
    "lab",
    "open the notebooks in JupyterLab, with the sandbox running",
    _run,
    [".sandbox:serve"],
    without=["port", "api_key"],
    options=[
        option(
            "--folder",
            type=Path,
            default=Path("outreach-notebooks"),
            help="the folder for the copies, created if missing (default: outreach-notebooks)",
        ),
        option(
            "--no-browser", action="store_true", help="print JupyterLab's address; open no browser"
        ),
        option("--port", type=int, help="JupyterLab's port (8888, or the next free one)"),
    ],
    description="Copy the notebooks and their data to a folder, start the sandbox, and open "
    "JupyterLab there until Ctrl-C. In a notebook, of.connect() connects to that sandbox. "
    "Existing files in the folder are kept.",
)
