"""The command line: arguments, output and exit codes."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name
from typing import IO

import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.cli import main
from outreach_frames.commands.all_commands import COMMANDS as ALL_COMMANDS
from outreach_frames.commands.options import Command
from tests import forked

pytestmark = pytest.mark.long

# Parameters without an option: for Python, and of commands that pass them themselves.
FOR_PYTHON = {"client", "dtype_backend", "faults", "fields", "filters", "frame"}
FOR_PYTHON |= {"progress", "proxies", "ramp", "verify"}
OTHERS = {"capacity": {"mailboxes"}, "compare": {"path"}}


def test_help_shows_what_options_take(capsys: pytest.CaptureFixture[str]) -> None:
    """The help lists each filter, and the noun of a value: of a list, of a column."""
    shown = {}
    for command in ("search", "add-leads", "find-people"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        shown[command] = " ".join(capsys.readouterr().out.split())
    assert "Search people and export the table." in shown["search"]
    for known in spec.FILTERS:
        assert f"--{known.name.replace('_', '-')}" in shown["search"]
    assert "--mailboxes EMAIL [EMAIL ...]" in shown["add-leads"]
    for name in ("company-id", "company-profnet-url", "domain", "company-name"):
        assert f"--{name} COLUMN" in shown["find-people"]


@pytest.mark.parametrize("command", ALL_COMMANDS, ids=lambda command: command.name)
def test_every_parameter_has_help(command: Command) -> None:
    """Each parameter of a command's functions has an option with help, but those for Python."""
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    options = {
        action.dest
        for action in parser._actions
        if not (action.option_strings and action.option_strings[0].startswith("--no-"))
    }
    for name in command.functions:
        parameters = signature(resolve_name(f"outreach_frames{name}")).parameters
        missing = parameters.keys() - options
        assert missing <= FOR_PYTHON | OTHERS.get(command.name, set())
    for action in parser._actions:
        assert action.help or action.dest in spec.FILTERS_BY_NAME


@pytest.mark.parametrize(
    "arguments", [[], ["nothing"], ["search", "--person-title", "--limit", "x"]]
)
def test_wrong_usage_is_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Invalid arguments exit with 2 and a usage line."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_a_warning_is_one_line(tmp_path: Path) -> None:
    """A Python warning is printed as one line without source code."""
    told = forked.run_command("search", "--sandbox", "--columns", "name").stderr
    assert told.startswith("outreach-frames: 1,000 of 2,000 people were read")
    assert "Pass --all to read all" in told
    assert "Warning" not in told


@pytest.mark.parametrize(
    ("command", "name", "advice"),
    [
        (["search"], "people.xls", ".csv or .parquet or .xlsx"),
        (["search"], "people.csv.gz", ".csv or .parquet or .xlsx"),
        (["search"], "people", ".csv or .parquet or .xlsx"),
        (["compare", "people"], "changes.csv", "CSV files to a folder"),
    ],
)
def test_out_rejects_unknown_extensions(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    name: str,
    advice: str,
) -> None:
    """--out with another extension is wrong usage, before any request."""
    with pytest.raises(SystemExit) as end:
        main([*command, "--out", str(tmp_path / name)])
    assert end.value.code == 2
    assert advice in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_demo_writes_a_table_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo prints code and tables, writes a CSV file and a PNG file, and adds people."""
    folder = tmp_path / "a" / "b"
    assert main(["demo", "--folder", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert ">>> people = of.search_people(" in shown
    assert ">>> again.equals(people)\n    True" in shown
    assert "50 of 50 rows will be sent" in shown
    assert re.search(
        r">>> report.summary\(\)\n +status +rows +earlier_run\n +0 +added +\d\d +0\n", shown
    )
    people = of.read_prospects(folder / "prospects.csv")
    assert people.shape[1] == 262
    assert f"[{len(people):,} rows x 262 columns]" in shown
    assert (folder / "headcount.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in folder.iterdir()) == [
        "headcount.png",
        "prospects.csv",
        "prospects.csv-metadata.json",
    ]
    (tmp_path / "file").touch()
    assert main(["demo", "--folder", str(tmp_path / "file")]) == 2


def until(stream: IO[str] | None, end: str) -> str:
    """Read lines until one contains `end`."""
    told = ""
    while end not in told:
        told += next(stream or iter(()))
    return told


@pytest.mark.parametrize("chosen", [[], ["--api-key", "my-own-key"]], ids=len)
def test_the_sandbox_command_serves_until_interrupted(chosen: list[str], tmp_path: Path) -> None:
    """The command prints the address and its own token, never a chosen one, and ends on Ctrl-C."""
    arguments = ["sandbox", "--people", "20", *chosen]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with forked.start_command(*arguments, stdout=subprocess.PIPE, env=environment) as process:
        told = until(process.stdout, "of.connect(")
        url, *_ = re.findall(r"http://127\.0\.0\.1:\d+", told)
        token = "my-own-key" if chosen else re.findall(r'of\.connect\(".+", "(.+)"\)', told)[0]
        with of.connect(url, token, cache=None):
            assert of.count_people() == 20
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    key, shown = ("...  # the key that you chose", "") if chosen else (token, f'"{url}", "{token}"')
    header = f"Authorization: Bearer {'$OUTREACH_API_KEY' if chosen else token}"
    assert told.splitlines() == [
        f"The sandbox listens at {url}, on this machine only. Ctrl-C stops it.",
        "/openapi.json describes its interface for other tools.",
        "",
        f"export OUTREACH_BASE_URL={url}",
        f"export OUTREACH_API_KEY={key}",
        "",
        f'curl -s -H "{header}" {url}/sequences',
        "",
        "or in Python:",
        "",
        "import outreach_frames as of",
        f"of.connect({shown})",
    ]
