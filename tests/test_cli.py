"""The command line: arguments, output and exit codes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.cli import main, make_parser
from tests import forked
from tests.conftest import PEOPLE

pytestmark = pytest.mark.long

COMMANDS = ["demo", "sandbox", "sequences", "mailboxes", "search", "find-people", "export"]


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=str)
def test_every_command_has_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Every command has a help text and exits with 0."""
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    assert "usage: outreach-frames" in capsys.readouterr().out


def test_search_has_every_filter(capsys: pytest.CaptureFixture[str]) -> None:
    """The help of search lists each of the interface's filters."""
    with pytest.raises(SystemExit):
        main(["search", "--help"])
    shown = capsys.readouterr().out
    assert all(f"--{known.name.replace('_', '-')}" in shown for known in spec.FILTERS)


@pytest.mark.parametrize("known", [one for one in spec.FILTERS if one.type == "boolean"])
def test_a_boolean_filter_is_set_or_cleared(known: spec.Filter) -> None:
    """A boolean filter takes no value: --NAME sets it, --no-NAME clears it."""
    name = known.name.replace("_", "-")
    given = [
        vars(make_parser().parse_args(["search", f"--{prefix}{name}"])) for prefix in ("", "no-")
    ]
    assert [options[known.name] for options in given] == [True, False]


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


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["sequences", "--status", "draft"], "draft"),
        (["mailboxes", "--email-provider", "google"], "google"),
        (["search", "--limit", "5"], "5 rows, 262 columns"),
        (["search", "--count"], str(PEOPLE)),
        (["search", "--person-seniorities", "vp", "--split-by", "person_seniorities"], "263 col"),
        (["search", "--person-seniorities", "vp", "director", "--all"], "rows, 262 columns"),
    ],
)
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_commands_show_tables(
    arguments: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each listing prints a table and exits with 0."""
    assert main(arguments) == 0
    assert shown in capsys.readouterr().out


def test_a_warning_is_one_line(tmp_path: Path) -> None:
    """A Python warning is printed as one line without source code."""
    arguments = ["search", "--sandbox", "--limit", "3"]
    told = forked.run_command(*arguments).stderr
    assert told.startswith("outreach-frames: 3 of 2,000 people were read")
    assert "Pass --all to read all" in told
    assert "Warning" not in told


@pytest.mark.parametrize("name", ["people.xls", "people.csv.gz", "people"])
def test_out_rejects_unknown_extensions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """--out with another extension is wrong usage, before any request."""
    with pytest.raises(SystemExit) as end:
        main(["search", "--out", str(tmp_path / name)])
    assert end.value.code == 2
    assert ".csv or .parquet or .xlsx" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_demo_writes_a_table_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo prints code and tables, and writes a readable CSV file and a PNG file."""
    assert main(["demo", "--folder", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert ">>> people = of.search_people(" in shown
    assert ">>> again.equals(people)\n    True" in shown
    people = of.read_prospects(tmp_path / "prospects.csv")
    assert people.shape[1] == 262
    assert f"[{len(people):,} rows x 262 columns]" in shown
    assert (tmp_path / "headcount.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "headcount.png",
        "prospects.csv",
        "prospects.csv-metadata.json",
    ]


def until(stream: IO[str] | None, end: str) -> str:
    """Read lines until one contains `end`."""
    told = ""
    while end not in told:
        told += next(stream or iter(()))
    return told


def test_the_sandbox_command_serves_until_interrupted(tmp_path: Path) -> None:
    """`outreach-frames sandbox` prints a valid address and token, and ends on Ctrl-C."""
    arguments = ["sandbox", "--people", "20", "--seed", "3", "--db", str(tmp_path / "world.sqlite")]
    command = [sys.executable, "-m", "outreach_frames", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        told = until(process.stdout, "of.connect(")
        assert told.count("curl -s -H") == 3
        found = re.search(r'of\.connect\("(http://127\.0\.0\.1:\d+)", "(.+)"\)', told)
        assert found is not None, told
        with of.connect(found[1], found[2], cache=None):
            assert of.count_people() == 20
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0


def test_the_sandbox_command_hides_a_chosen_token() -> None:
    """With a chosen token the sandbox command prints a variable instead of the token."""
    command = ["sandbox", "--people", "20", "--api-key", "my-own-key"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with forked.start_command(*command, stdout=subprocess.PIPE, env=environment) as process:
        told = until(process.stdout, "of.connect()")
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    assert told.count('-H "Authorization: Bearer $OUTREACH_API_KEY"') == 3
    assert "my-own-key" not in told
    url, *_ = re.findall(r"http://127\.0\.0\.1:\d+", told)
    begins = [line for line in told.splitlines() if not line.startswith((" ", "curl"))]
    assert begins == [
        f"The sandbox listens at {url}, on this machine only. Ctrl-C stops it.",
        "/openapi.json describes its interface for other tools.",
        "",
        f"export OUTREACH_BASE_URL={url}",
        "export OUTREACH_API_KEY=...  # the key that you chose",
        *[""] * 4,
        "or in Python:",
        "",
        "import outreach_frames as of",
        "of.connect()",
    ]


def test_the_demo_makes_its_folder(tmp_path: Path) -> None:
    """demo --folder creates the folder; an existing file of that name is wrong usage."""
    assert main(["demo", "--folder", str(tmp_path / "a" / "b")]) == 0
    assert (tmp_path / "a" / "b" / "prospects.csv").is_file()
    (tmp_path / "file").touch()
    assert main(["demo", "--folder", str(tmp_path / "file")]) == 2
