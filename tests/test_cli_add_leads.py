"""add-leads on the command line: input files, outcomes of all rows, and exit codes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from pathlib import Path

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.cli import main
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachWarning
from outreach_frames.leads.sending import memory
from outreach_frames.sandbox import Sandbox
from tests import forked, scripted
from tests.leads.sending.lead_service import added

COLUMNS = ["--email", "E-Mail Address ", "--profnet-url", "Profile link (optional)"]


pytestmark = [pytest.mark.long, pytest.mark.usefixtures("environment")]


@pytest.fixture
def sequence(sandbox: Sandbox) -> str:
    """Return a sequence that accepts any lead."""
    return str(sandbox.sequence_ids["accepts_any"])


def leads_file(folder: Path, *emails: str) -> Path:
    """Write a CSV file of leads in the format of other programs."""
    path = folder / "leads.csv"
    path.write_text("\n".join(["email,Plan", *(f"{email},0042" for email in emails)]) + "\n")
    return path


def test_all_added_is_exit_code_0(tmp_path: Path, sandbox: Sandbox, sequence: str) -> None:
    """If every row is added the exit code is 0, and cells are sent unchanged as text."""
    path = leads_file(tmp_path, "cli.one@brightforge.example", "cli.two@brightforge.example")
    assert main(["add-leads", str(path), "--sequence", sequence, "--data", "plan=Plan"]) == 0
    added = {lead["email"]: lead for lead in sandbox.leads(sequence)}
    assert added["cli.one@brightforge.example"]["data"] == {"plan": "0042"}


def test_a_sheet_of_a_workbook_is_accepted(
    tmp_path: Path, sandbox: Sandbox, sequence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A workbook's cells are sent as Excel shows them, and --sheet-name selects the sheet."""
    leads = pd.DataFrame({"email": ["cli.excel@brightforge.example"], "plan": [42], "vip": [True]})
    with pd.ExcelWriter(tmp_path / "leads.xlsx", engine="xlsxwriter") as book:
        pd.DataFrame({"note": ["cover"]}).to_excel(book, sheet_name="Cover", index=False)
        leads.to_excel(book, sheet_name="Leads", index=False)
    call = ["add-leads", str(tmp_path / "leads.xlsx"), "--sequence", sequence]
    assert main([*call, "--sheet-name", "leads"]) == 2
    assert "Pass --sheet-name as one of: 'Cover', 'Leads'" in capsys.readouterr().err
    assert main([*call, "--sheet-name", "Leads", "--data", "plan", "vip"]) == 0
    added = {lead["email"]: lead for lead in sandbox.leads(sequence)}
    assert added["cli.excel@brightforge.example"]["data"] == {"plan": "42", "vip": "TRUE"}


def test_some_not_added_is_exit_code_4(
    tmp_path: Path, sequence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """If some rows are not added the exit code is 4, and the output has the reason."""
    path = leads_file(tmp_path, "cli.three@brightforge.example", "n/a")
    with pytest.warns(OutreachWarning, match="submit only the corrected rows"):
        assert main(["add-leads", str(path), "--sequence", sequence]) == 4
    printed = capsys.readouterr()
    assert "added" in printed.out
    assert "invalid" in printed.out
    assert "--results FOLDER writes each row with its outcome to a file." in printed.err
    assert "report." not in printed.out + printed.err


def test_clean_repairs_cells(
    tmp_path: Path, sandbox: Sandbox, sequence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --clean, a message names the option; with it, the repaired address is sent."""
    path = leads_file(tmp_path, "Rui <cli.rui@brightforge.example>")
    command = ["add-leads", str(path), "--sequence", sequence]
    assert main(command) == 4
    shown = " ".join(capsys.readouterr().out.split())
    assert "Pass --clean to send 'cli.rui@brightforge.example'. (1 row)" in shown
    results = tmp_path / "results"
    with pytest.warns(OutreachWarning, match="repaired 1 cell"):
        assert main([*command, "--clean", "--results", str(results)]) == 0
    assert "cli.rui@brightforge.example" in {lead["email"] for lead in sandbox.leads(sequence)}
    added = pd.read_csv(results / "added.csv")
    assert added["email"].tolist() == ["cli.rui@brightforge.example"]


def test_a_dry_run_reports_recorded_outcomes(
    tmp_path: Path, sandbox: Sandbox, sequence: str
) -> None:
    """--dry-run reports recorded outcomes, and changes neither the sequence nor the journal."""
    journal, results = tmp_path / "leads.journal", tmp_path / "results"
    command = ["--sequence", sequence, "--journal", str(journal), "--results", str(results)]
    first = leads_file(tmp_path, "cli.six@brightforge.example")
    assert main(["add-leads", str(first), *command, "--dry-run"]) == 0
    assert not journal.exists()
    assert main(["add-leads", str(first), *command]) == 0
    content, before = journal.read_bytes(), len(sandbox.leads(sequence))
    both = leads_file(tmp_path, "CLI.six@brightforge.example", "cli.seven@brightforge.example")
    assert main(["add-leads", str(both), *command, "--dry-run"]) == 0
    assert (journal.read_bytes(), len(sandbox.leads(sequence))) == (content, before)
    assert pd.read_csv(results / "added.csv")["email"].tolist() == ["CLI.six@brightforge.example"]
    assert pd.read_csv(results / "would_send.csv")["status"].tolist() == ["would_send"]
    assert pd.read_csv(results / "failed.csv").empty


def test_a_dry_run_exits_with_0_if_all_valid_rows_would_be_sent(
    tmp_path: Path, sequence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Invalid rows are listed and keep the code 0; a valid row that is not sent gives 4."""
    results, email = tmp_path / "results", "cli.nine@brightforge.example"
    options = ["--sequence", sequence, "--dry-run", "--results", str(results)]
    assert main(["add-leads", str(leads_file(tmp_path, email, "n/a")), *options]) == 0
    shown = capsys.readouterr().out
    assert "invalid" in shown
    assert "Nothing was sent" in shown
    assert pd.read_csv(results / "failed.csv")["status"].tolist() == ["invalid"]
    assert main(["add-leads", str(leads_file(tmp_path, email, email.upper())), *options]) == 4
    (results / "would_send.csv").write_text(f"email\n{email}\n")
    assert main(["add-leads", str(results / "would_send.csv"), *options]) == 2
    assert "would replace" in capsys.readouterr().err


@pytest.mark.parametrize("own", ["", "status", "chunk"])
def test_a_corrected_file_of_failed_rows(tmp_path: Path, sequence: str, own: str) -> None:
    """A resubmitted file of failed rows gets new outcomes and keeps the user's own columns."""
    path, email = tmp_path / "leads.csv", f"cli.corrected{own}@brightforge.example"
    path.write_text(f"email,{own}\nn/a,mine\n" if own else "email\nn/a\n")
    for number, code in enumerate((4, 4, 0)):
        results = tmp_path / str(number)
        command = ["add-leads", str(path), "--sequence", sequence, "--results", str(results)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert main(command) == code
        assert any(f"own column {own}" in str(one.message) for one in caught) == bool(own)
        path = results / ("failed.csv" if code else "added.csv")
        written = pd.read_csv(path, dtype="str")
        status = "outreach_status" if own == "status" else "status"
        columns = ["email", *filter(None, [own]), status, "detail", "error_code", "earlier_run"]
        assert written.columns.to_list() == columns
        assert written[status].to_list() == ["invalid" if code else "added"]
        assert not own or written[own].to_list() == ["mine"]
        if number == 1:
            path.write_text(path.read_text().replace("n/a", email, 1))


@pytest.mark.parametrize("override", [field.name for field in spec.OVERRIDES])
def test_every_override_can_be_given(tmp_path: Path, sequence: str, override: str) -> None:
    """Each of the interface's overrides is accepted."""
    path = leads_file(tmp_path, f"cli.{override}@brightforge.example")
    assert main(["add-leads", str(path), "--sequence", sequence, "--overrides", override]) == 0


def plan_of(sandbox: Sandbox, sequence: str, name: str) -> str | None:
    """Return the field `plan` of a lead that is in the sequence exactly once."""
    (lead,) = [
        lead for lead in sandbox.leads(sequence) if lead["email"] == f"{name}@brightforge.example"
    ]
    return lead["data"].get("plan")


UNREADABLE: dict[str, tuple[str, bytes, str]] = {
    "a trailing comma": ("x.csv", b"email,note\na@x.example,private@y.example,\n", "column"),
    "a trailing comma, once": ("x.csv", b"email,note\na@x.example,b\nb@x.example,c,\n", "column"),
    "a field too few": ("x.csv", b"email,note\na@x.example\n", "column"),
    "a header twice": ("x.csv", b"email,email\na@x.example,b@x.example\n", "'email'"),
    "a workbook": ("x.xlsx", b"PK\x03\x04rest", "not an Excel workbook"),
    "a workbook by another name": ("x.csv", b"PK\x03\x04rest", "spreadsheet"),
    "an old workbook": ("x.xls", b"\xd0\xcf\x11\xe0", "spreadsheet"),
    "another encoding": ("x.csv", "email\nä@x.example\n".encode("cp1252"), "UTF-8"),
    "two bytes per letter": ("x.csv", "email\na@x.example\n".encode("utf-16"), "UTF-8"),
    "no file": ("", b"", "nowhere"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_ambiguous_file_sends_nothing(
    tmp_path: Path,
    sandbox: Sandbox,
    sequence: str,
    capsys: pytest.CaptureFixture[str],
    case: str,
) -> None:
    """If a file's columns are ambiguous, nothing is sent and the output says why."""
    name, content, words = UNREADABLE[case]
    path = tmp_path / (name or "nowhere.csv")
    if name:
        path.write_bytes(content)
    before = len(sandbox.leads(sequence))
    assert main(["add-leads", str(path), "--sequence", sequence]) == 2
    assert words in capsys.readouterr().err
    assert len(sandbox.leads(sequence)) == before


# A file with the address in place of EMAIL, and the expected data field.
CELLS = {
    "semicolon": ("email;Plan\nEMAIL;1,5\n", "1,5"),
    "tab": ("email\tPlan\nEMAIL\t1,5\n", "1,5"),
    "bar": ("email|Plan\nEMAIL|1,5\n", "1,5"),
    "known": ("email,company_followers\nEMAIL,007 or so\n", "007 or so"),
    "nan": ("email,Plan\nEMAIL,nan\n", None),
    "na": ("email,Plan\nEMAIL,<NA>\n", None),
    "none": ("email,Plan\nEMAIL,None\n", None),
    "nat": ("email,Plan\nEMAIL,NaT\n", None),
}


@pytest.mark.parametrize("case", CELLS)
def test_cells_are_sent_as_text(tmp_path: Path, sandbox: Sandbox, sequence: str, case: str) -> None:
    """With any separator and column name, cells are sent unchanged, except for missing ones."""
    text, plan = CELLS[case]
    path = tmp_path / "leads.csv"
    path.write_text(text.replace("EMAIL", f"cli.{case}@brightforge.example"), "utf-8-sig")
    column = "company_followers" if case == "known" else "Plan"
    assert main(["add-leads", str(path), "--sequence", sequence, "--data", f"plan={column}"]) == 0
    assert plan_of(sandbox, sequence, f"cli.{case}") == plan


def test_the_packages_own_csv_is_sent_unescaped(
    tmp_path: Path, sandbox: Sandbox, sequence: str
) -> None:
    """Cells that `to_csv` escaped for spreadsheets are sent unescaped, with and without dtypes."""
    plans = {
        "own.plus": "+49 30 1234",
        "own.formula": "=1+1",
        "own.quote": "'=x",
        "own.zero": "007",
    }
    emails = [f"{name}@brightforge.example" for name in plans]
    frame = pd.DataFrame({"email": emails, "Plan": list(plans.values()), "n": range(4)})
    path = frame.outreach.to_csv(tmp_path / "leads.csv")
    assert main(["add-leads", str(path), "--sequence", sequence, "--data", "plan=Plan"]) == 0
    assert {name: plan_of(sandbox, sequence, name) for name in plans} == plans


def test_list_options_can_be_repeated(tmp_path: Path, sandbox: Sandbox, sequence: str) -> None:
    """Options that accept several values can be repeated."""
    path = tmp_path / "leads.csv"
    path.write_text("email,A,B\ncli.twice@brightforge.example,1,2\n")
    first, second, *_ = [field.name for field in spec.OVERRIDES]
    command = ["add-leads", str(path), "--sequence", sequence, "--data", "plan=A"]
    command += ["--data", "more=B", "--overrides", first, "--overrides", second]
    assert main(command) == 0
    (lead,) = [lead for lead in sandbox.leads(sequence) if "cli.twice" in (lead["email"] or "")]
    assert lead["data"] == {"plan": "1", "more": "2"}


def test_a_column_can_be_switched_off(
    tmp_path: Path, sandbox: Sandbox, sequence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--no-email` omits the emails, as a message about a similar column advises."""
    path = tmp_path / "leads.csv"
    path.write_text("E-Mail,profnet_url\ncli.off@brightforge.example,profnet.example/in/cli-off\n")
    command = ["add-leads", str(path), "--sequence", sequence]
    assert main(command) == 2
    assert "--email 'E-Mail' to send this column, or --no-email to omit" in capsys.readouterr().err
    assert main([*command, "--no-email"]) == 0
    (lead,) = [one for one in sandbox.leads(sequence) if "cli-off" in (one["profnet_url"] or "")]
    assert lead["email"] is None


ONCE = ["--email", "--profnet-url", "--sequence", "--journal", "--results", "--chunk-size"]


@pytest.mark.parametrize("option", ONCE)
def test_a_repeated_option_is_an_error(capsys: pytest.CaptureFixture[str], option: str) -> None:
    """An option that accepts one value cannot be repeated."""
    with pytest.raises(SystemExit) as exit_:
        main(["add-leads", "x.csv", "--sequence", "x", *[option, "5"] * 2])
    assert exit_.value.code == 2
    assert "given twice" in capsys.readouterr().err


@pytest.mark.parametrize("results", ["leads.csv", "leads.csv/below", "", "bad\0name"])
def test_results_that_cannot_be_written_send_nothing(
    tmp_path: Path,
    sandbox: Sandbox,
    sequence: str,
    capsys: pytest.CaptureFixture[str],
    results: str,
) -> None:
    """Output that cannot be written, or would replace the input, is an error before sending."""
    path = leads_file(tmp_path, "cli.results@brightforge.example")
    if not results:
        path = path.rename(tmp_path / "failed.csv")
    before = path.read_bytes()
    command = ["add-leads", str(path), "--sequence", sequence]
    assert main([*command, "--results", f"{tmp_path}/{results}"]) == 2
    assert "Nothing was sent" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert "cli.results@brightforge.example" not in {
        lead["email"] for lead in sandbox.leads(sequence)
    }


def command_line(folder: Path, sequence: str) -> list[str]:
    """Return a command for a new process, with a non-ASCII address."""
    path = folder / "leads.csv"
    path.write_text("email\nn/aŁ\n", "utf-8")
    command = ["add-leads", str(path)]
    return [*command, "--sequence", sequence, "--results", str(folder / "results")]


def test_unprintable_letters_are_escaped(tmp_path: Path, sequence: str) -> None:
    """Unprintable letters are escaped on the terminal; files and the exit code are unaffected."""
    with (tmp_path / "shown.txt").open("w", encoding="ascii") as terminal:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", terminal)
            assert main(command_line(tmp_path, sequence)) == 4
    assert "n/a\\u0141" in (tmp_path / "shown.txt").read_text()
    assert len(pd.read_csv(tmp_path / "results" / "failed.csv")) == 1


def test_a_closed_pipe_loses_nothing(tmp_path: Path, sequence: str) -> None:
    """A closed pipe changes neither the written files nor the exit code."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        ended = forked.run_command(*command_line(tmp_path, sequence), stdout=gone)
    assert ended.returncode == 4, ended.stderr
    assert len(pd.read_csv(tmp_path / "results" / "failed.csv")) == 1


def end_with_sigterm(
    folder: Path, at: str, *options: str, background: bool
) -> tuple[int, list[str]]:
    """Stop a submission of three leads at a method; return the exit code and all methods."""
    begun = threading.Event()

    def reply(request: scripted.Received) -> scripted.Reply:
        if request.method != at:
            return scripted.json({"sequences": [], "_links": {}})
        begun.set()
        return scripted.delayed(20, scripted.json({}))

    path = folder / "leads.csv"
    path.write_text("email\n" + "".join(f"p{n}@x.example\n" for n in range(3)))
    command = ["add-leads", str(path), "--sequence", "s", "--chunk-size", "1", *options]
    with scripted.scripted(reply) as service:
        environment = {"OUTREACH_BASE_URL": service.url, "OUTREACH_API_KEY": "token"}
        process = forked.start_command(
            *command, env={**os.environ, **environment}, background=background
        )
        try:
            assert begun.wait(30)
            process.send_signal(signal.SIGTERM)
            code = process.wait(30)
        finally:
            process.kill()
            process.wait()
    return code, [request.method for request in service.requests]


@pytest.mark.parametrize("background", [False, True])
def test_sigterm_still_writes_results(tmp_path: Path, background: bool) -> None:
    """After SIGTERM the files have every row's outcome, also for a process in the background."""
    results = tmp_path / "results"
    code, _ = end_with_sigterm(tmp_path, "POST", "--results", str(results), background=background)
    assert code == 4
    statuses = pd.read_csv(results / "failed.csv")["status"].tolist()
    assert statuses == ["unknown", "not_sent", "not_sent"]


@pytest.mark.parametrize("background", [False, True])
def test_sigterm_before_the_first_lead_sends_nothing(tmp_path: Path, background: bool) -> None:
    """SIGTERM before the first lead ends the command without sending, also in the background."""
    assert end_with_sigterm(tmp_path, "GET", background=background) == (1, ["GET"])


def test_an_encoding_can_be_given(
    tmp_path: Path, sandbox: Sandbox, sequence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """--encoding reads files from Excel, and the error without it names the option."""
    path = tmp_path / "leads.csv"
    path.write_bytes("email,Plan\ncli.encoding@brightforge.example,Zoë\n\n".encode("cp1252"))
    command = ["add-leads", str(path), "--sequence", sequence, "--data", "plan=Plan"]
    assert main(command) == 2
    assert "--encoding" in capsys.readouterr().err
    assert main([*command, "--encoding", "cp1252"]) == 0
    assert plan_of(sandbox, sequence, "cli.encoding") == "Zoë"
    finding = ["find-people", str(path), "--company-name", "Plan"]
    for others in (finding, ["compare", str(path), str(path)]):
        assert main([*others, "--encoding", "utf-16"]) == 2
        assert "not in utf-16" in capsys.readouterr().err


def test_a_mailbox_per_row(
    tmp_path: Path, client: Client, sequence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--mailbox` accepts a column, and errors name the option."""
    box = of.mailboxes(status="active", client=client)["email"][0]
    path = tmp_path / "owned.csv"
    path.write_text(
        f"email,owner\ncli.own@brightforge.example,{box}\ncli.no@b.example,x@y.example\n"
    )
    command = ["add-leads", str(path), "--sequence", sequence, "--mailbox", "owner"]
    assert main(command) == 4
    out = " ".join(capsys.readouterr().out.split())
    assert "no mailbox or user called 'x@y.example'. The users: " in out


def test_unknown_rows_are_retried_by_another_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--retry-unknown sends only the rows that the journal has as unknown; code 4 while any is."""
    path, journal = leads_file(tmp_path, "a@x.example"), str(tmp_path / "j")
    command = ["add-leads", str(path), "--sequence", "s1"]
    posts = [scripted.reset(), scripted.reset(), added]

    def reply(request: scripted.Received) -> scripted.Reply:
        answer = posts.pop(0) if request.method == "POST" else scripted.json({"sequences": []})
        return answer(request) if callable(answer) else answer

    with scripted.scripted(reply) as service, warnings.catch_warnings(action="ignore"):
        monkeypatch.setenv("OUTREACH_BASE_URL", service.url)
        assert main([*command, "--journal", journal]) == 4
        leads_file(tmp_path, "a@x.example", "b@x.example")
        assert main([*command, "--retry-unknown"]) == 2
        assert "--retry-unknown needs --journal" in " ".join(capsys.readouterr().err.split())
        command += ["--journal", journal, "--retry-unknown"]
        assert main([*command, "--dry-run"]) == 2
        for code in (4, 0):
            memory.clear()  # as in another process
            assert main(command) == code
        sent = [one.json["leads"] for one in service.requests if one.method == "POST"]
        assert sent == [[{"email": "a@x.example"}]] * 3
        assert main([*command[:-3], "--journal", str(tmp_path / "none"), "--retry-unknown"]) == 2


def test_skipped_people_are_sent_again(
    tmp_path: Path, sandbox: Sandbox, sequence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """--send-again sends recorded skips again; another status is an error."""
    path = leads_file(tmp_path, sandbox.recently_contacted[0]["email"])
    command = ["add-leads", str(path), "--sequence", sequence, "--journal", str(tmp_path / "j")]
    with warnings.catch_warnings(action="ignore"):
        assert main(command) == 4
        assert main([*command, "--dry-run"]) == 4
        assert main([*command, "--dry-run", "--send-again", "recently_contacted"]) == 0
        capsys.readouterr()
        assert main([*command, "--send-again", "unknown"]) == 2
    assert "Nothing was sent" in " ".join(capsys.readouterr().err.split())
