"""The command `sandbox`: run the embedded service and print a request to try."""

from __future__ import annotations

import argparse
import contextlib
import threading
from typing import TYPE_CHECKING, Final

from outreach_frames import spec
from outreach_frames.client.connect import API_KEY_VARIABLE, BASE_URL_VARIABLE
from outreach_frames.commands.options import Command, call
from outreach_frames.errors import ConfigurationError, InvalidInputError

if TYPE_CHECKING:
    from outreach_frames.sandbox import Sandbox


def _start(options: argparse.Namespace) -> Sandbox:
    """Start a sandbox; raise usage errors for bad options or a missing package."""
    from outreach_frames.sandbox import serve  # noqa: PLC0415 - an optional extra

    try:
        return call(serve, options)
    except ImportError as error:
        raise ConfigurationError(str(error)) from error
    except (OSError, ValueError) as error:
        raise InvalidInputError(str(error)) from error


def _run(options: argparse.Namespace) -> None:
    sandbox = _start(options)
    with sandbox, contextlib.suppress(KeyboardInterrupt):
        # Never print a key that the user chose: it may be used elsewhere too.
        key = sandbox.api_key if options.api_key is None else ""
        print(f"The sandbox listens at {sandbox.url}, on this machine only. Ctrl-C stops it.")
        print("/openapi.json describes its interface for other tools.\n")
        print(f"export {BASE_URL_VARIABLE}={sandbox.url}")
        print(f"export {API_KEY_VARIABLE}={key or '...  # the key that you chose'}\n")
        token = f"{spec.AUTHORIZATION_SCHEME} {key or f'${API_KEY_VARIABLE}'}"
        path = spec.LIST_SEQUENCES.path
        print(f'curl -s -H "{spec.AUTHORIZATION_HEADER}: {token}" {sandbox.url}{path}')
        print("\nor in Python:\n")
        print("import outreach_frames as of")
        arguments = f'"{sandbox.url}", "{key}"' if key else ""
        print(f"of.connect({arguments})", flush=True)
        threading.Event().wait()


RUN_SANDBOX: Final = Command(
    "sandbox",
    "run the embedded service until Ctrl-C",
    _run,
    [".sandbox:serve"],
    description="Run the embedded service with invented data until Ctrl-C, reachable from this "
    "machine only. The command prints the address, the token and a request to try.",
)
