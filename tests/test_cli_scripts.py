"""Commands print data that other programs read to standard output, and only data."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.cli import main
from outreach_frames.client.connect import API_KEY_VARIABLE, BASE_URL_VARIABLE
from outreach_frames.sandbox import Sandbox
from tests import forked
from tests import scripted as service

pytestmark = [
    pytest.mark.long,
    pytest.mark.usefixtures("environment"),
    pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning"),
]

ACCOUNTS = Path(__file__).parents[1] / "data" / "target_accounts.csv"
SEARCH = ["name", "title", "location", "company_name", "company_size"]
# Each command that prints a table, with its columns; sandbox ids replace {...}.
TABLES = {
    "sequences": ["id", "name", "status", "created_by_user_email"],
    "mailboxes": ["id", "email", "status", "daily_email_limit", "email_provider"],
    "search --all": SEARCH,
    "search --all --columns languages,company_is_b2b name": ["languages", "company_is_b2b", "name"],
    "search --all --person-seniorities vp director --split-by person_seniorities": [
        *SEARCH,
        "person_seniorities",
    ],
    "count --by company-sizes --company-sizes 1-10 11-50": ["company_sizes", "people"],
    "explain --person-seniorities vp --person-name =1+1": [
        *["filter", "value", "people_without", "people_alone"],
    ],
    "contacts {contacts} --emails nobody@brightforge.example": [
        *["asked", "found", "name", "title", "company_name"],
    ],
    "lead-list {lead_list}": ["id", "profnet_url", "name", "title"],
    "capacity 100000 --start 2026-03-02": ["date", "email", "emails", "leads_finished"],
    "capacity 1000 --email-days 0 3 --start 2026-03-02": [
        *["date", "email", "emails", "leads_started", "leads_finished"],
    ],
    "find-people {accounts} --domain Website --sandbox": ["account_row", "account_rank", *SEARCH],
    "check": ["check", "status", "detail", "advice"],
    "sequences --name nowhere": ["id", "name", "status", "created_by_user_email"],
}


@pytest.fixture(scope="module")
def few_accounts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a file of the first 20 companies."""
    path = tmp_path_factory.mktemp("accounts") / "accounts.csv"
    pd.read_csv(ACCOUNTS).head(20).to_csv(path, index=False)
    return path


def arguments_of(line: str, sandbox: Sandbox, accounts: Path = ACCOUNTS) -> list[str]:
    """Return a command's arguments, with the sandbox's ids."""
    contacts = " ".join(sandbox.contact_ids[:60])
    lead_list = sandbox.lead_list_ids[0]
    return shlex.split(line.format(contacts=contacts, lead_list=lead_list, accounts=accounts))


def print_data(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """Run a command that succeeds, and return its standard output."""
    capfd.readouterr()
    assert main(arguments) == 0
    return capfd.readouterr().out


@pytest.mark.parametrize("line", [*TABLES, "forget --email nobody@narrow.example"])
def test_csv_and_json_have_the_columns_and_rows_of_a_saved_file(
    line: str,
    sandbox: Sandbox,
    few_accounts: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Both formats have the table's columns and whole cells; with `--out -`, the file's bytes."""
    arguments, file = arguments_of(line, sandbox, few_accounts), tmp_path / "saved.csv"
    assert main([*arguments, "--out", str(file)]) == 0
    names = ["saved.csv", "saved.csv-metadata.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert print_data([*arguments, "--out", "-"], capfd).encode() == file.read_bytes()
    whole = of.read_prospects(file)
    rows = json.loads(print_data([*arguments, "--format", "json", "--out", "-"], capfd))
    assert all(list(record) == list(whole.columns) for record in rows)
    saved = whole[TABLES.get(line, list(whole.columns))]
    printed = tmp_path / "printed.csv"
    printed.write_text(print_data([*arguments, "--format", "csv"], capfd))
    records = json.loads(
        print_data([*arguments, "--format", "json"], capfd), parse_constant=pytest.fail
    )
    assert len(records) == len(saved) > (20 if "--all" in line else -1)
    assert {tuple(record) for record in records} <= {tuple(saved.columns)}
    cells = pd.read_csv(printed, dtype=str, keep_default_na=False)
    expected = pd.read_csv(file, dtype=str, keep_default_na=False)[list(saved)]
    pd.testing.assert_frame_equal(cells, expected)
    for name, values in saved.items():
        for value, record in zip(values, records, strict=True):
            assert as_json(value) == record[name], (name, record)


def as_json(value: Any) -> Any:
    """Return the JSON value of a cell."""
    if isinstance(value, list | dict):
        return value
    if pd.isna(value):
        return None
    return value.date().isoformat() if isinstance(value, pd.Timestamp) else value


def test_json_keeps_the_types_of_cells(sandbox: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    """Numbers, true and false, lists and missing cells are JSON; times are ISO 8601."""
    ids, address = sandbox.contact_ids[:40], "nobody@brightforge.example"
    line = ["contacts", *ids, "--emails", address, "--format", "json", "--out", "-"]
    *contacts, missing = json.loads(print_data(line, capfd))
    assert [contact["asked"] for contact in contacts] == ids
    assert {contact["found"] for contact in contacts} == {True}
    times = {contact["last_contacted_at"] for contact in contacts} - {None}
    assert times
    assert {str(pd.Timestamp(time).tz) for time in times} == {"UTC"}
    assert all("T" in time for time in times)
    assert all(isinstance(contact["phone_numbers"], list) for contact in contacts)
    assert (missing["found"], missing["name"]) == (False, None)
    (mailbox, *_) = json.loads(print_data(["mailboxes", "--format", "json"], capfd))
    assert type(mailbox["daily_email_limit"]) is int


@pytest.mark.parametrize(
    "options", [[], *(["--format", form] for form in ("table", "csv", "json"))]
)
def test_a_count_is_a_plain_number(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A count has no separators, in any format, and nothing else is printed."""
    found = {"object": "person_search_result", "results": []}
    reply = service.json(found | {"_pagination": {"total": 1_234_567}})
    with service.scripted(lambda _: reply) as running:
        monkeypatch.setenv(BASE_URL_VARIABLE, running.url)
        assert main(["count", "--person-seniorities", "vp", *options]) == 0
    assert capfd.readouterr() == ("1234567\n", "")


@pytest.mark.parametrize(
    "line",
    [
        *("mailboxes", "sequences", "search --all", "contacts {contacts}", "lead-list {lead_list}"),
        *("count --by company-sizes --company-sizes 1-10", "explain --person-seniorities vp"),
        "capacity 1000 --start 2026-03-02",
    ],
)
def test_a_table_is_printed_without_messages(
    line: str, sandbox: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    """Standard output has the table's lines only; sizes, totals and hints go to standard error."""
    assert main(arguments_of(line, sandbox)) == 0
    table, notes = capfd.readouterr()
    header, *rows = table.splitlines()
    assert len(header.split()) > 1
    assert 0 < len(rows) <= 41
    assert not any(word in table for word in ("--out", "whole search", "sending day"))
    assert notes.endswith(".\n")
    if line.startswith("capacity"):
        assert re.search(
            r"All emails are sent in \d+ sending days, the last on 2026-03-\d\d", notes
        )
    assert main([*arguments_of(line, sandbox), "--format", "table"]) == 0
    assert capfd.readouterr() == (table, notes)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mailboxes --format xml", "'xml'"),
        ("mailboxes --format json --out {}.json", "- has no ending"),
        ("mailboxes --format json --out {}.csv", "--format json and --out {}.csv conflict"),
        ("count --by company-sizes --format csv --out {}.csv", "--format csv and --out {}.csv"),
        ("sequences --format table --out -", "--format table and --out - conflict"),
        ("find-people accounts.csv --accounts -", "argument --accounts: - has no ending"),
    ],
)
def test_formats_that_conflict_with_files_are_wrong_usage(
    line: str, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A contradiction exits with 2 before any request, and writes nothing."""
    file = str(tmp_path / "file")
    with pytest.raises(SystemExit) as caught:
        main(shlex.split(line.format(file)))
    assert caught.value.code == 2
    data, told = capfd.readouterr()
    assert data == ""
    assert message.format(file) in told or ".csv or .parquet" in told
    assert list(tmp_path.iterdir()) == []


def test_the_exit_code_of_a_check_is_kept(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A failed check exits with 1 in each format, and prints all findings."""
    monkeypatch.setenv(API_KEY_VARIABLE, "another-token")
    for form in ("csv", "json"):
        assert main(["check", "--format", form]) == 1
        assert "failed" in capfd.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        *("search --all --format csv", "search --all --format json"),
        *("search --all --out -", "count"),
    ],
)
def test_data_for_a_closed_pipe_end_quietly(line: str, sandbox: Sandbox) -> None:
    """If the reader ends early, as `head -1` does, nothing is said and the exit code is 0."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        command = arguments_of(line, sandbox)
        ended = forked.run_command(*command, stdout=closed, stderr=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (0, "")
    with forked.start_command(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == ("", 0)


HOSTILE = "=a\x1b]0;owned\x07\x9b31m\u202e\u2028\t\r\nb"


@pytest.fixture
def hostile(environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve a sequence whose name has control characters."""
    sequence = {"id": "1", "name": HOSTILE, "status": "active"}
    with service.scripted(lambda _: service.json({"sequences": [sequence]})) as running:
        monkeypatch.setenv(BASE_URL_VARIABLE, running.url)
        yield


@pytest.mark.usefixtures("hostile")
def test_data_are_whole_in_a_pipe(tmp_path: Path) -> None:
    """Data for a program are UTF-8 with every character, whatever the encoding of the terminal."""
    file = tmp_path / "saved.csv"
    assert main(["sequences", "--out", str(file)]) == 0
    run = [sys.executable, "-m", "outreach_frames", "sequences"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    printed = subprocess.run([*run, "--out", "-"], env=environment, capture_output=True, check=True)
    assert printed.stdout == file.read_bytes()
    assert HOSTILE.encode() in printed.stdout
    run += ["--format", "json"]
    printed = subprocess.run(run, env=environment, capture_output=True, check=True)
    assert json.loads(printed.stdout)[0]["name"] == HOSTILE


@pytest.mark.usefixtures("hostile")
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_data_cannot_control_a_terminal(form: str) -> None:
    """In a terminal, control characters of cells are escaped in every format."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal:
        ended = forked.run_command("sequences", "--format", form, stdout=terminal)
        shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert ended.returncode == 0
    assert "owned" in shown
    assert all(letter.isprintable() or letter in "\r\n" for letter in shown)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell that closes streams")
def test_messages_never_become_data() -> None:
    """With standard error closed, messages are dropped."""
    run = shlex.join([sys.executable, "-m", "outreach_frames", "search", "--limit", "3"])
    printed = subprocess.run(
        ["sh", "-c", f"{run} 2>&-"], capture_output=True, text=True, check=True
    )
    assert len(printed.stdout.splitlines()) == 4


LONGEST = "a" * 24 + "@mail.brightforge.test"
assert len(LONGEST) == 46


@pytest.mark.parametrize(
    ("command", "record", "left_out"),
    [
        (
            "mailboxes",
            {"email": LONGEST, "status": "needs_reconnection", "email_provider": "google"},
            "email_provider",
        ),
        (
            "sequences",
            {"name": LONGEST, "status": "active", "created_by_user_email": "ada@x.example"},
            "created_by_user_email",
        ),
    ],
)
def test_80_columns_show_the_whole_address_or_name(
    command: str,
    record: dict[str, Any],
    left_out: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Beside an id, 46 characters are shown; the provider and the creator are left out first."""
    items = [{"id": "d4701083dc6b7bd76459bff3", "daily_email_limit": 50, **record}]
    shown = {}
    with service.scripted(lambda _: service.json({command: items})) as running:
        monkeypatch.setenv(BASE_URL_VARIABLE, running.url)
        for width in (36, 80, 120, 160):
            monkeypatch.setenv("COLUMNS", str(width))
            assert main([command, "--refresh"]) == 0
            shown[width] = capfd.readouterr().out
            assert max(map(len, shown[width].splitlines())) <= width
    assert "a" * 9 + "…" in shown[36]
    assert f"{LONGEST}  {record['status'][:5]}" in shown[80]
    assert left_out not in shown[80]
    assert record["status"] in shown[120]
    assert record[left_out] in shown[160]
    assert command == "sequences" or "daily_email_limit" in shown[120]
