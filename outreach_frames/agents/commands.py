"""The commands `mcp` and `approve`."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from outreach_frames.agents.approve import APPROVE
from outreach_frames.agents.folder import Folder
from outreach_frames.agents.plan_file import journals_folder
from outreach_frames.commands.options import SANDBOX_OPTION, Command, connected, option
from outreach_frames.errors import ConfigurationError, InvalidInputError


def _run(options: argparse.Namespace) -> None:
    if find_spec("mcp") is None:
        raise ConfigurationError(
            "mcp needs the library mcp, the Model Context Protocol's SDK. Install it: "
            'pip install "outreach-frames[mcp]"'
        )
    from outreach_frames.agents.server import serve  # noqa: PLC0415 - an optional extra
    from outreach_frames.agents.tools import Agent  # noqa: PLC0415

    if options.rows < 0:
        raise InvalidInputError(f"--rows {options.rows} is negative. Pass 0 or more.")
    folder = Folder(options.folder)
    if journals_folder().resolve().is_relative_to(folder.path):
        raise InvalidInputError(
            f"--folder {options.folder} contains the user's data folder. Choose a folder that has "
            "only the agent's files."
        )
    with connected(options) as client:
        serve(Agent(client, folder, options.rows))


MCP: Final = Command(
    "mcp",
    "serve tools that read and plan to an agent",
    "Serve the package's reading functions and plans of leads to an agent's program by the Model "
    "Context Protocol, over standard input and output. No tool sends leads: a person does, with "
    "`outreach-frames approve`.",
    (
        option(
            "--folder",
            type=Path,
            default=Path(),
            help="the only folder whose files are read, and where new files are written (default: "
            "the current folder)",
        ),
        option(
            "--rows",
            type=int,
            default=5,
            metavar="N",
            help="rows of a table that the agent sees (default: %(default)s)",
        ),
        SANDBOX_OPTION,
    ),
    _run,
)

AGENT_COMMANDS: Final = (MCP, APPROVE)
