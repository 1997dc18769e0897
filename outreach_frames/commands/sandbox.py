"""The command `sandbox`: run the embedded service and print requests to try."""

from __future__ import annotations

import argparse
import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from outreach_frames import spec
from outreach_frames.client.connect import API_KEY_VARIABLE, BASE_URL_VARIABLE
from outreach_frames.commands.options import Command, option
from outreach_frames.errors import ConfigurationError, InvalidInputError

if TYPE_CHECKING:
    from outreach_frames.sandbox import Sandbox

# The first operations to try; the sandbox's page shows all operations.
_EXAMPLE_ENDPOINTS = (spec.LIST_SEQUENCES, spec.SEARCH_PEOPLE, spec.ADD_LEADS)

# The sandbox's data.
WORLD_OPTIONS: Final = (
    option("--people", type=int, default=2000, help="number of people (default: 2000)"),
    option("--seed", type=int, default=0, help="the same seed creates the same data (default: 0)"),
    option("--db", type=Path, help="a file that keeps the sandbox's data (in memory)"),
)


def start(options: argparse.Namespace, *, port: int = 0, api_key: str | None = None) -> Sandbox:
    """Start a sandbox; raise usage errors for bad options or a missing package."""
    from outreach_frames.sandbox import serve  # noqa: PLC0415 - an optional extra

    try:
        return serve(port, options.people, options.seed, db=options.db, api_key=api_key)
    except ImportError as error:
        raise ConfigurationError(str(error)) from error
    except (OSError, ValueError) as error:
        raise InvalidInputError(str(error)) from error


def _run(options: argparse.Namespace) -> None:
    sandbox = start(options, port=options.port, api_key=options.api_key)
    with sandbox, contextlib.suppress(KeyboardInterrupt):
        # Never print a key that the user chose: it may be used elsewhere too.
        key = sandbox.api_key if options.api_key is None else ""
        print(f"The sandbox listens at {sandbox.url}, on this machine only. Ctrl-C stops it.")
        print("/openapi.json describes its interface for other tools.\n")
        print(f"export {BASE_URL_VARIABLE}={sandbox.url}")
        print(f"export {API_KEY_VARIABLE}={key or '...  # the key that you chose'}\n")
        lines = sandbox.curl(key or f"${API_KEY_VARIABLE}")
        print(*(lines[endpoint.name] for endpoint in _EXAMPLE_ENDPOINTS), sep="\n\n")
        print("\nor in Python:\n")
        print("import outreach_frames as of")
        arguments = f'"{sandbox.url}", "{key}"' if key else ""
        print(f"of.connect({arguments})", flush=True)
        threading.Event().wait()


RUN_SANDBOX: Final = Command(
    "sandbox",
    "run the embedded service until Ctrl-C",
    "Run the embedded service with invented data until Ctrl-C, reachable from this machine only. "
    "The command prints the address, the token and requests to try.",
    (
        option("--port", type=int, default=0, help="the port (any free one)"),
        *WORLD_OPTIONS,
        option(
            "--api-key",
            metavar="KEY",
            help="the token that clients must send (a new one at each start); a fixed token, with "
            "--port and --db, keeps clients connected after a restart",
        ),
    ),
    _run,
)
