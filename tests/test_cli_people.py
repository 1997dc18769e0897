"""find-people, snapshot and compare on the command line: their files and exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.cli import main
from outreach_frames.client.connect import API_KEY_VARIABLE, BASE_URL_VARIABLE
from outreach_frames.sandbox import Sandbox
from tests.accounts.world import world_of
from tests.scripted import Received, Reply, json, scripted

pytestmark = pytest.mark.long

DATA = Path(__file__).parents[1] / "data"


def test_a_file_of_companies_becomes_a_sheet_of_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """People and companies are written to the named files, and the statuses are printed."""
    people, accounts = tmp_path / "people.xlsx", tmp_path / "accounts.csv"
    code = main(
        [
            *["find-people", str(DATA / "target_accounts.csv"), "--domain", "Website"],
            *["--per-company", "3", "--person-seniorities", "c_suite", "vp"],
            *["--split-by", "person_seniorities", "--sandbox"],
            *["--columns", "name", "title"],
            *["--out", str(people), "--accounts", str(accounts)],
        ]
    )
    assert code == 0
    written = of.read_prospects(accounts)
    assert len(written) == 200
    assert (written["account_status"] == "duplicate_in_frame").sum() == 10
    sheet = pd.read_excel(people, engine="openpyxl")
    assert len(sheet) == written["account_people"].sum()
    assert set(sheet["person_seniorities"]) == {"c_suite", "vp"}
    assert sheet["account_rank"].max() == 3
    out, told = capsys.readouterr()
    assert out == ""
    assert "duplicate_in_frame" in told
    assert "200 rows written to" in told


def test_a_failure_writes_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failure the count of the people read before is printed, and no file is written."""
    world = world_of({"one.example": 2, "two.example": 2})

    def reply(request: Received) -> Reply:
        is_second = "Firm 2" in request.json["company_names"]
        return json({"error": "down"}, status=400) if is_second else world.reply(request)

    file = tmp_path / "companies.csv"
    file.write_text("name\nFirm 1\nFirm 2\n")
    with scripted(reply) as service:
        monkeypatch.setenv(BASE_URL_VARIABLE, service.url)
        monkeypatch.setenv(API_KEY_VARIABLE, "token-of-tests")
        command = ["find-people", str(file), "--company-name", "name"]
        command += ["--out", str(tmp_path / "x.csv")]
        assert main(command) == 1
    assert list(tmp_path.iterdir()) == [file]
    told = capsys.readouterr().err
    assert "2 people had been found. They were not saved. Repeat the call to continue" in told


SEARCH = ["--person-seniorities", "vp", "director"]


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """Start a sandbox and set the environment variables for commands."""
    with of.sandbox.serve(people=300, seed=2) as running:
        monkeypatch.setenv(BASE_URL_VARIABLE, running.url)
        monkeypatch.setenv(API_KEY_VARIABLE, running.api_key)
        yield running


def test_a_job_takes_snapshots_and_compares_them(
    moving: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command prints one line, and the workbook has the changes."""
    folder, changes = tmp_path / "people", tmp_path / "changes.xlsx"
    for _ in range(2):
        date = moving.today.isoformat()
        assert main(["snapshot", str(folder), *SEARCH, "--date", date]) == 0
        people = of.snapshots(folder)["people"].iloc[-1]
        path = folder / f"snapshot={date}"
        assert capsys.readouterr() == ("", f"{people} people written to {path}\n")
        moving.advance(days=90)
    assert main(["compare", str(folder), "--out", str(changes)]) == 0
    comparison = of.compare_people(folder)
    assert len(comparison.employer_changes) > 0
    out, shown = capsys.readouterr()
    assert out == ""
    assert shown.count("\n") == 1
    assert f"{len(comparison.appeared)} appeared, " in shown
    assert shown.endswith(f"written to {changes}\n")
    sheet = pd.read_excel(changes, sheet_name="employer_changes", engine="openpyxl")
    assert len(sheet) == len(comparison.employer_changes)


def test_a_quiet_job_prints_nothing(
    moving: Sandbox, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With --quiet nothing is printed, and the files are written."""
    folder, changes = tmp_path / "people", tmp_path / "changes"
    for date in ("2026-11-01", "2026-12-01"):
        assert main(["snapshot", str(folder), *SEARCH, "--date", date, "--quiet"]) == 0
    assert main(["compare", str(folder), "--out", str(changes), "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")
    assert of.read_prospects(changes / "summary.csv")["count"].iloc[-1] == 0


def test_two_tables_are_compared_in_the_terminal(
    moving: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of any format are compared, and without --out the result is printed."""
    files = [str(tmp_path / name) for name in ("before.csv", "after.parquet")]
    for file in files:
        assert main(["export", file, *SEARCH]) == 0
    capsys.readouterr()
    assert main(["compare", *files]) == 0
    assert capsys.readouterr().out.startswith("0 appeared, 0 disappeared, 0 changed employers\n")


def test_two_workbooks_are_compared(
    tmp_path: Path, people: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two workbooks with the same sheet name are compared."""
    short = people.head(6).outreach.brief()
    for name, rows in (("may", short), ("june", short.iloc[1:])):
        rows.outreach.to_excel(tmp_path / f"{name}.xlsx", index=False)
    files = [str(tmp_path / "may.xlsx"), str(tmp_path / "june.xlsx")]
    assert main(["compare", *files, "--sheet-name", "people"]) == 0
    assert "1 disappeared" in capsys.readouterr().out
    assert main(["compare", *files, "--sheet-name", "x"]) == 2
