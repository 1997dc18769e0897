"""JupyterLab on copies of the notebooks, with the sandbox running."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from outreach_frames.client.connect import API_KEY_VARIABLE, BASE_URL_VARIABLE
from outreach_frames.commands.options import Command, option
from outreach_frames.commands.sandbox import WORLD, start
from outreach_frames.commands.terminal import terminating_like_ctrl_c
from outreach_frames.common.atomic_files import expanded, replace_file, unreadable, unwritable
from outreach_frames.common.text import plural, printable
from outreach_frames.errors import ConfigurationError, OutreachError

# Beside each other, because the notebooks read ../data.
_FOLDERS: Final = {"notebooks": "*.ipynb", "data": "*.*"}
_FIRST_NOTEBOOK: Final = "notebooks/01_quickstart.ipynb"
# Kernels get 5 seconds of it.
_SECONDS_TO_STOP: Final = 20


def copy_examples(folder: Path) -> list[str]:
    """Copy the notebooks and their data to a folder, and replace nothing that is there.

    Parameters
    ----------
    folder : Path
        Made where it is missing.

    Returns
    -------
    list of str
        The files that were there and differ from this version's.

    Raises
    ------
    InvalidInputError
        A file cannot be written.
    """
    kept: list[str] = []
    for name, pattern in _FOLDERS.items():
        place = folder / name
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(place, error) from error
        sources = sorted(_examples(name).glob(pattern))
        kept += [f"{name}/{one.name}" for one in sources if not _copy(one, place / one.name)]
    return kept


def _copy(source: Path, target: Path) -> bool:
    """Copy a file where there is none; return whether the target holds the same now."""
    content = source.read_bytes()
    if not os.path.lexists(target):
        replace_file(target, lambda file: file.write(content))
    try:
        return target.read_bytes() == content
    except OSError as error:
        raise unreadable(target, error) from error


def _examples(name: str) -> Path:
    """Return a folder of examples: within the installed package, beside it in a checkout."""
    package = Path(str(files("outreach_frames")))
    for folder in (package / "examples" / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise ConfigurationError(
        f"This installation of outreach-frames lacks its {name}. Install it again."
    )


def _run(options: argparse.Namespace) -> None:
    if find_spec("jupyterlab") is None:
        raise ConfigurationError(
            'JupyterLab is not installed. Install it: pip install "outreach-frames[lab]"'
        )
    folder = expanded(options.folder).absolute()
    with terminating_like_ctrl_c(), start(options) as sandbox:
        kept = copy_examples(folder)
        connection = {BASE_URL_VARIABLE: sandbox.url, API_KEY_VARIABLE: sandbox.api_key}
        print(_welcome(folder, kept, sandbox.url), flush=True)
        _serve_lab(_command(folder, options), os.environ | connection)


def _welcome(folder: Path, kept: list[str], url: str) -> str:
    lines = [f"The notebooks are in {folder / 'notebooks'}."]
    if kept:
        lines += [
            f"{plural(len(kept), 'file')} there differ from this version's and were kept: "
            f"{', '.join(kept)}. For new copies, name another folder: --folder."
        ]
    lines += [
        f"The sandbox listens at {url}; in a notebook, of.connect() connects to it.",
        "JupyterLab is starting. Ctrl-C stops both.",
    ]
    return printable("\n".join(lines), keep="\n")


def _command(folder: Path, options: argparse.Namespace) -> list[str]:
    command = [sys.executable, "-m", "jupyterlab"]
    command += [
        # What is left says where it listens.
        "--ServerApp.log_level=ERROR",
        "--LabApp.log_level=ERROR",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/{_FIRST_NOTEBOOK}",
        # In a container everybody is root; the server listens to this machine, with a token.
        "--allow-root",
    ]
    if options.port is not None:
        # Who names a port does not look for another one.
        command += [f"--ServerApp.port={options.port}", "--ServerApp.port_retries=0"]
    if options.no_browser:
        command += ["--no-browser"]
    return command


def _serve_lab(command: list[str], environment: dict[str, str]) -> None:
    """Run JupyterLab until it ends or Ctrl-C."""
    # In a session of its own, where Ctrl-C does not make it ask whether it is meant.
    with subprocess.Popen(  # noqa: S603 - our own words, and a folder
        command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
    ) as server:
        try:
            code = server.wait()
        except KeyboardInterrupt:
            _stop(server)
            return
    if code:
        raise OutreachError(f"JupyterLab ended with exit code {code}; it says why above.")


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Let JupyterLab end with its kernels; kill it where it does not, or on a second Ctrl-C."""
    server.terminate()
    try:
        server.wait(_SECONDS_TO_STOP)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        server.kill()


LAB: Final = Command(
    "lab",
    "open the notebooks in JupyterLab, with the sandbox running",
    "Copy the notebooks and the files that they read to a folder, start the sandbox, and open "
    "JupyterLab there, until Ctrl-C. In a notebook, of.connect() connects to that sandbox. Copies "
    "that you changed are kept.",
    (
        option(
            "--folder",
            type=Path,
            default=Path("outreach-notebooks"),
            help="where the copies go, made where it is missing (outreach-notebooks)",
        ),
        option(
            "--no-browser", action="store_true", help="print JupyterLab's address, and open nothing"
        ),
        option("--port", type=int, help="JupyterLab's port (8888, or the next free one)"),
        *WORLD,
    ),
    _run,
)
