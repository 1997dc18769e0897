"""Pages of the command line: its commands with their options, and its exit codes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from docs.reference_pages.rst import code, directive, heading, prose, table
from outreach_frames import cli, spec
from outreach_frames.commands import add_leads

_FILTER_OPTIONS: Final = "filters: "

_EXIT_CODES: Final = {
    cli.EXIT_OK: ("The command did everything requested.", "Nothing."),
    cli.EXIT_FAILURE: (
        "The service, the connection or this machine failed, or Ctrl-C was pressed.",
        "Read the message. Run the same command again: ``export`` and ``snapshot``, and "
        "``add-leads`` with ``--journal``, resume; other commands read finished pages from the "
        "cache for an hour.",
    ),
    cli.EXIT_USAGE: (
        "An option, a column, a file, or the configured address or token cannot be used. No lead "
        "was sent.",
        "Correct what the message names.",
    ),
    add_leads.EXIT_NOT_ALL_ADDED: (
        "Only of ``add-leads`` and ``approve``: some rows were not added. They were skipped, "
        "invalid, rejected or unknown. All other rows are in the sequence.",
        "Read the command's output, or ``failed.csv`` and ``skipped.csv`` in "
        "``--results FOLDER``. :ref:`row-statuses` says what to do about each status. With the "
        "same ``--journal`` and corrected rows, the same command adds the remaining rows.",
    ),
}


def exit_codes_page() -> str:
    """Return the page about exit codes."""
    text = heading("Exit codes", label="exit-codes")
    text += "The exit codes of ``outreach-frames`` for a shell or cron.\n\n"
    rows = [
        (code(str(number)), cli.EXIT_CODES[number], *_EXIT_CODES[number])
        for number in cli.EXIT_CODES
    ]
    return text + table(
        ("code", "in short", "what it means", "what to do"), rows, widths=(8, 17, 35, 40)
    )


def command_line_page() -> str:
    """Return the page about all commands."""
    parser = cli.make_parser()
    text = heading("Command line", label="command-line")
    text += (
        f"{parser.description} :doc:`exit-codes` says how a command ends, and "
        ":doc:`/how-to/scripts` how other programs read its output. Options that search people are "
        "the :doc:`filters`, with hyphens.\n\n"
    )
    commands = list(_commands(parser))
    rows = [(f":ref:`{name} <command-{name}>`", prose(says)) for name, says, _ in commands]
    text += table(("command", "what it does"), rows, widths=(25, 75))
    for name, _, command in commands:
        text += heading(name, 1, label=f"command-{name}")
        text += _command(command)
    return text


def _commands(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for listed in action._choices_actions:
                yield listed.dest, listed.help or "", action.choices[listed.dest]


def _command(command: argparse.ArgumentParser) -> str:
    usage = command.format_usage().removeprefix("usage: ").strip()
    text = f"{prose(command.description or '')}\n\n" + directive("code-block", "text", usage)
    text += directive("program", command.prog)
    formatter = command._get_formatter()
    takes_filters = False
    for group in command._action_groups:
        if (group.title or "").startswith(_FILTER_OPTIONS):
            takes_filters = True
            continue
        for action in group._group_actions:
            if isinstance(action, argparse._HelpAction):
                continue
            text += _option(action, formatter)
    if takes_filters:
        text += (
            f"And one option for each of the {len(spec.FILTERS)} :doc:`filters`, such as "
            "``--person-titles VALUE ...``.\n\n"
        )
    return text


def _option(action: argparse.Action, formatter: argparse.HelpFormatter) -> str:
    says = prose(formatter._expand_help(action)) if action.help else ""
    says = f"{says} (required)".strip() if action.required and action.option_strings else says
    named = formatter._format_action_invocation(action)
    return directive("option", named, says)
