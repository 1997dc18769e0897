"""Tables on the command line fit the terminal and are written to files of every format."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.cli import main
from outreach_frames.commands.terminal import fit_lines, format_table
from outreach_frames.sandbox import Sandbox
from tests import forked

pytestmark = pytest.mark.usefixtures("environment")

quiet = pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")


def lines_of(sandbox: Sandbox) -> list[str]:
    """Return a command line for each command that prints a table."""
    return [
        "search --limit 3 --person-seniorities vp --split-by person_seniorities",
        "sequences",
        "mailboxes",
        "count --by company-sizes --by person-seniorities --person-seniorities vp "
        "--company-sizes 1-10 11-50",
        f"explain --person-seniorities vp --company-names 'Nobody {'& Sons ' * 20}'",
        f"contacts {' '.join(sandbox.contact_ids[:3])} --emails nobody@brightforge.example",
        f"lead-list {sandbox.lead_list_ids[0]}",
        "capacity 1000 --start 2026-03-02",
        "capacity 1000 --email-days 0 3 7 --start 2026-03-02",
        "check",
        "forget --email nobody@narrow.example",
    ]


@quiet
@pytest.mark.long
@pytest.mark.parametrize("width", [40, 120])
def test_tables_fit_the_terminal(
    width: int,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No line of any table is longer than the terminal, and each table has columns."""
    monkeypatch.setenv("COLUMNS", str(width))
    for line in lines_of(sandbox):
        assert main(shlex.split(line)) == 0, line
        shown = capsys.readouterr().out.splitlines()
        assert max(map(cells_of, shown)) <= width, line
        assert width == 40 or shown[0].count("  ") or line.startswith("forget")


def cells_of(line: str) -> int:
    """Return a line's width on a terminal; Chinese and Japanese letters count twice."""
    return sum(1 + ("\u2e80" <= letter <= "\uffef") for letter in line)


TABLE = pd.DataFrame(
    {
        "id": ["9d9f73ab-79f5-4bd2-bac4", None],
        "name": ["陈雨欣 和 朋友们 " * 4, "Jose\u0301 \x1b[2J\n"],
        "people": pd.array([1234567, None], dtype="Int64"),
        "email": ["a.very.long.address@brightforge.example", ""],
    }
)


SHOWN = {
    9: """
id
9d9f73ab…
""",
    36: """
id                       name
9d9f73ab-79f5-4bd2-bac4  陈雨欣 和 …
                         José \\x1b[…
""",
    72: """
id                       name                 people  email
9d9f73ab-79f5-4bd2-bac4  陈雨欣 和 朋友们 …  1234567  a.very.long.addre…
                         José \\x1b[2J\\n
""",
}


@pytest.mark.parametrize("width", SHOWN)
def test_text_is_cut_before_ids_and_numbers(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide letters count twice, missing cells are blank, and the last columns are dropped."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert format_table(TABLE).rstrip() == SHOWN[width].strip("\n")


HOSTILE = [
    "\x1b]0;owned\x07",
    "\x9b31m",
    "\u202egnp.exe",
    "\u2066a\u2069",
    "a\r\nb\tc",
    "\u2028",
]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_cells_cannot_control_the_terminal(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Escape sequences, line breaks and bidi controls in cells and column names are escaped."""
    monkeypatch.setenv("COLUMNS", "80")
    table = format_table(pd.DataFrame({f"n{text}": pd.Series([text, None], dtype=object), "b": 1}))
    assert len(table.split("\n")) == 3
    assert all(letter.isprintable() or letter == "\n" for letter in table)


def test_a_long_table_shows_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long table shows its first and last rows."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = format_table(pd.DataFrame({"n": range(100)}), 6).split()
    assert shown == ["n", "0", "1", "2", "…", "97", "98", "99"]


def test_long_lines_are_indented_below_their_last_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """The continuation of a long line is indented to the last column's text."""
    monkeypatch.setenv("COLUMNS", "24")
    assert fit_lines("ok     one two three four five\nshort") == (
        "ok     one two three\n       four five\nshort"
    )
    assert fit_lines(f"cache  /a/{'long/' * 9}path") == f"cache\n       /a/{'long/' * 9}path"


@quiet
@pytest.mark.long
def test_a_table_is_written_in_every_format(
    sandbox: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--out writes a search's table in each format, and says how many rows it wrote."""
    search, *others = lines_of(sandbox)
    [contacts] = [line for line in others if line.startswith("contacts")]
    runs = [(search, f"people.{ending}") for ending in ("csv", "tsv", "parquet", "XLSX")]
    for line, name in [*runs, (contacts, "contacts.csv")]:
        assert main([*shlex.split(line), "--out", str(tmp_path / name)]) == 0
        assert re.search(rf"\d (rows?|people) written to .*{name}", capsys.readouterr().err), line
        assert (tmp_path / name).exists()
    people = of.read_prospects(tmp_path / "people.parquet")
    assert people.shape == (3, 263)
    assert pd.read_excel(tmp_path / "people.XLSX", engine="openpyxl").shape == people.shape
    assert of.read_prospects(tmp_path / "people.csv").equals(people)
    assert of.read_prospects(tmp_path / "people.tsv").equals(people)
    assert "\t" in (tmp_path / "people.tsv").read_text().splitlines()[0]
    contacts = of.read_prospects(tmp_path / "contacts.csv")
    assert contacts["found"].tolist() == [True, True, True, False]
    assert contacts["company_name"].notna().sum() == 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("mailboxes", 0),
        ("search --all", 0),
        ("search --help", 0),
        ("lead-list none", 1),
        ("sequences --status activ", 2),
    ],
)
def test_a_closed_pipe_keeps_the_exit_code(line: str, code: int) -> None:
    """A closed pipe, as with `| head -1`, ends a command with its exit code and no traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        process = forked.start_command(*shlex.split(line), stdout=closed, stderr=subprocess.PIPE)
        _, told = process.communicate()
        assert (process.wait(), "Traceback" in told) == (code, False)
        both = forked.start_command(*shlex.split(line), stdout=closed, stderr=closed)
        assert both.wait() == code


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_an_error() -> None:
    """A full disk is an error that names the cause, unlike a closed pipe."""
    with Path("/dev/full").open("w") as full:
        ended = forked.run_command("mailboxes", stdout=full)
    assert ended.returncode == 1
    assert ended.stderr.startswith("outreach-frames: The output cannot be written")
    assert "Traceback" not in ended.stderr


def test_data_are_not_translated(capsys: pytest.CaptureFixture[str]) -> None:
    """Cells that look like Python arguments are printed unchanged."""
    assert main(["explain", "--person-name", "limit=None"]) == 0
    assert "limit=None" in capsys.readouterr().out
