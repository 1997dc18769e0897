"""add-leads on the command line: a file in, every row accounted for, and an exit code."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from outreach_frames import spec
from outreach_frames.cli import main
from outreach_frames.errors import OutreachWarning
from outreach_frames.sandbox import Sandbox

CONFERENCE = Path(__file__).parents[1] / "data" / "conference_leads.csv"
COLUMNS = ["--email", "E-Mail Address ", "--profnet-url", "Profile link (optional)"]


pytestmark = pytest.mark.usefixtures("environment")


@pytest.fixture
def sequence(sandbox: Sandbox) -> str:
    """Return a sequence that takes any lead."""
    return str(sandbox.sequence_ids["accepts_any"])


def leads_file(folder: Path, *emails: str) -> Path:
    """Write a CSV of leads as another program would."""
    path = folder / "leads.csv"
    path.write_text("\n".join(["email,Plan", *(f"{email},0042" for email in emails)]) + "\n")
    return path


def test_all_added_is_exit_code_0(tmp_path: Path, sandbox: Sandbox, sequence: str) -> None:
    """When every row is added the exit code is 0, and the cells arrive as the text they are."""
    path = leads_file(tmp_path, "cli.one@brightforge.example", "cli.two@brightforge.example")
    assert main(["add-leads", str(path), "--sequence", sequence, "--data", "plan=Plan"]) == 0
    added = {lead["email"]: lead for lead in sandbox.leads(sequence)}
    assert added["cli.one@brightforge.example"]["data"] == {"plan": "0042"}


def test_a_parquet_file_is_taken_too(tmp_path: Path, sequence: str) -> None:
    """What `to_parquet` wrote, list columns included, can be added."""
    lists = pd.array([["a"]], dtype=pd.ArrowDtype(pa.list_(pa.string())))
    frame = pd.DataFrame({"email": ["cli.parquet@brightforge.example"], "tags": lists})
    path = frame.outreach.to_parquet(tmp_path / "leads.parquet")
    assert main(["add-leads", str(path), "--sequence", sequence]) == 0


def test_some_not_added_is_exit_code_4(
    tmp_path: Path, sequence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """When some rows are not added the exit code is 4, and the output says why."""
    path = leads_file(tmp_path, "cli.three@brightforge.example", "n/a")
    assert main(["add-leads", str(path), "--sequence", sequence]) == 4
    shown = capsys.readouterr().out
    assert "added" in shown
    assert "invalid" in shown


def test_a_sequence_that_takes_none_is_exit_code_4(tmp_path: Path, sandbox: Sandbox) -> None:
    """A refused submission is a report with nothing added, not a stack trace."""
    path = leads_file(tmp_path, "cli.four@brightforge.example")
    draft = str(sandbox.sequence_ids["invalid_sequence_status"])
    with pytest.warns(OutreachWarning, match="draft"):
        assert main(["add-leads", str(path), "--sequence", draft]) == 4
    assert "cli.four@brightforge.example" not in {lead["email"] for lead in sandbox.leads(draft)}


def test_a_dry_run_sends_nothing(
    tmp_path: Path, sandbox: Sandbox, sequence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """--dry-run checks and shows, and leaves the sequence as it is."""
    before = len(sandbox.leads(sequence))
    path = leads_file(tmp_path, "cli.five@brightforge.example")
    assert main(["add-leads", str(path), "--sequence", sequence, "--dry-run"]) == 0
    assert len(sandbox.leads(sequence)) == before
    assert "Nothing was sent" in capsys.readouterr().out


def test_a_journal_makes_the_second_run_send_nothing(
    tmp_path: Path, sandbox: Sandbox, sequence: str
) -> None:
    """The same call with the same journal adds nobody twice."""
    journal, results = tmp_path / "leads.journal", tmp_path / "results"
    command = ["add-leads", str(CONFERENCE), "--sequence", sequence, *COLUMNS]
    command += ["--journal", str(journal), "--results", str(results)]
    assert main(command) == 4
    after_first = len(sandbox.leads(sequence))
    assert main(command) == 4
    assert len(sandbox.leads(sequence)) == after_first
    files = [pd.read_csv(results / f"{name}.csv") for name in ("added", "skipped", "failed")]
    assert sum(map(len, files)) == 1200


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.csv", "--sequence", "x"], "cannot be read"),
        ([str(CONFERENCE), "--sequence", "x"], "email"),
        ([str(CONFERENCE), "--sequence", "..", *COLUMNS], "sequence_id"),
        ([str(CONFERENCE), "--sequence", "x", *COLUMNS, "--data", "First Name"], "first_name"),
        ([str(CONFERENCE), "--sequence", "x", *COLUMNS, "--chunk-size", "251"], "251"),
        ([str(CONFERENCE), "--sequence", "x", *COLUMNS, "--mailboxes", "a@b.example"], "mailboxes"),
    ],
)
def test_bad_arguments_are_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be used ends with 2 and one line that says what would be right."""
    assert main(["add-leads", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("override", [field.name for field in spec.OVERRIDES])
def test_every_override_can_be_given(tmp_path: Path, sequence: str, override: str) -> None:
    """Each of the interface's overrides is taken."""
    path = leads_file(tmp_path, f"cli.{override}@brightforge.example")
    assert main(["add-leads", str(path), "--sequence", sequence, "--overrides", override]) == 0
