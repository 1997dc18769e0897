"""find-people on the command line: from a file of companies to a workbook of people."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.cli import main
from outreach_frames.client.connect import API_KEY_VARIABLE, BASE_URL_VARIABLE
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
    shown = capsys.readouterr().out
    assert "duplicate_in_frame" in shown
    assert "--accounts FILE" in shown


def test_help_shows_which_options_take_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    """Each option that identifies companies has COLUMN as its value in the help."""
    with pytest.raises(SystemExit):
        main(["find-people", "--help"])
    shown = capsys.readouterr().out
    for name in ("company-id", "company-profnet-url", "domain", "name"):
        assert f"--{name} COLUMN" in shown


def test_a_failure_keeps_the_people_found_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failure the people and companies read before are written to files of other names."""
    world = world_of({"one.example": 2, "two.example": 2})

    def reply(request: Received) -> Reply:
        is_second = "Firm 2" in request.json["company_names"]
        return json({"error": "down"}, status=400) if is_second else world.reply(request)

    file = tmp_path / "companies.csv"
    file.write_text("name\nFirm 1\nFirm 2\n")
    with scripted(reply) as service:
        monkeypatch.setenv(BASE_URL_VARIABLE, service.url)
        monkeypatch.setenv(API_KEY_VARIABLE, "token-of-tests")
        out, accounts = tmp_path / "people.csv", tmp_path / "accounts.csv"
        command = ["find-people", str(file), "--name", "name", "--refresh"]
        assert main(command) == 1
        assert list(tmp_path.iterdir()) == [file]
        assert "2 people had been found; --out FILE keeps them." in capsys.readouterr().err
        assert main([*command, "--out", str(out), "--accounts", str(accounts)]) == 1
    assert not out.exists()
    assert not accounts.exists()
    assert len(of.read_prospects(tmp_path / "people.partial.csv")) == 2
    statuses = of.read_prospects(tmp_path / "accounts.partial.csv")["account_status"]
    assert statuses.fillna("").tolist() == ["found", ""]
    assert "2 rows written to" in capsys.readouterr().err
