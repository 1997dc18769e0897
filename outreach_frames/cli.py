"""The command line; `outreach-frames --help` lists its commands."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Container, Sequence
from importlib.metadata import version

from outreach_frames.agents.commands import AGENT_COMMANDS
from outreach_frames.commands.all_commands import COMMANDS
from outreach_frames.commands.options import (
    EXIT_FAILURE,
    EXIT_NOT_ALL_ADDED,
    EXIT_OK,
    EXIT_USAGE,
    CommandParser,
)
from outreach_frames.commands.terminal import flush_output, print_note
from outreach_frames.common.terms import shell_terms
from outreach_frames.errors import ConfigurationError, InvalidInputError, OutreachError

EXIT_CODES = {
    EXIT_OK: "all well",
    EXIT_FAILURE: "a failure",
    EXIT_USAGE: "wrong usage",
    EXIT_NOT_ALL_ADDED: "some rows were not added",
}
# The command that calls each public function.
_FUNCTIONS = {
    f"{command.functions[0].partition(':')[2]}()": f"outreach-frames {command.name}"
    for command in COMMANDS
} | {"filters()": "outreach-frames search --help"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, one of `EXIT_CODES`."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:
        return EXIT_OK
    finally:
        flush_output()


def _run(arguments: Sequence[str]) -> int:
    options = make_parser(arguments).parse_args(arguments)
    run: Callable[[argparse.Namespace], int | None] = options.run
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(shell_terms({**options.names, **_FUNCTIONS}))
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(errors="backslashreplace")
            stack.callback(setattr, warnings, "formatwarning", warnings.formatwarning)
            warnings.formatwarning = lambda message, *_: f"outreach-frames: {message}\n"
            return run(options) or EXIT_OK
    except (InvalidInputError, ConfigurationError) as error:
        _print_error(error, str(error))
        return EXIT_USAGE
    except (OutreachError, KeyboardInterrupt) as error:
        words = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
        _print_error(error, words)
        return EXIT_FAILURE


def _print_error(error: BaseException, words: str) -> None:
    """Print an error and its notes."""
    for line in (words, *getattr(error, "__notes__", ())):
        print_note(f"outreach-frames: {line}")


def make_parser(arguments: Container[str] | None = None) -> argparse.ArgumentParser:
    """Build the parser of all commands, with the options of those in `arguments`, or of all."""
    codes = ", ".join(f"{code} {means}" for code, means in EXIT_CODES.items())
    parser = argparse.ArgumentParser(
        prog="outreach-frames",
        description="Prospects, sequences and mailboxes of a sales-outreach service as tables.",
        epilog=f"Start with: outreach-frames demo. Exit codes: {codes}.",
    )
    parser.add_argument("--version", action="version", version=version("outreach-frames"))
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    for command in (*COMMANDS, *AGENT_COMMANDS):
        parser_of_command = commands.add_parser(command.name, help=command.help)
        if arguments is None or command.name in arguments:
            command.add_options(parser_of_command)
    return parser
