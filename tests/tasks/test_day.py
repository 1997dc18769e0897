"""The tasks of an analyst's day take at most three lines each."""

from __future__ import annotations

import ast
import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from statsmodels.stats.proportion import confint_proportions_2indep

import outreach_frames as of
from outreach_frames.errors import OutreachError
from tests.tasks.day import DAY, LONGER

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def analyst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Return what an analyst has at hand: a connection, files, and an empty folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(DATA / "crm_export.csv", "crm.csv")
    with of.connect("sandbox", people=200, cache=None) as client:
        sandbox = client.sandbox
        known = of.contacts(ids=sandbox.contact_ids[:20])["email"]
        emails = [*known, *(f"lead{number}@x.example" for number in range(20))]
        yield {
            "of": of,
            "pd": pd,
            "Path": Path,
            "duckdb": duckdb,
            "confint_proportions_2indep": confint_proportions_2indep,
            "error_of": error_of,
            "client": client,
            "any_id": sandbox.sequence_ids["accepts_any"],
            "sequence_id": sandbox.sequence_ids["needs_email"],
            "accounts": pd.read_csv(DATA / "target_accounts.csv").head(20)[["Website", "Owner"]],
            "crm": pd.DataFrame({"email": emails[25:30]}),
            "leads": pd.DataFrame({"email": emails, "title": "CTO"}),
        }


def error_of(call: Callable[[], object]) -> str:
    """Return the message of the error that a call raises."""
    try:
        call()
    except OutreachError as error:
        return str(error)
    return ""


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
@pytest.mark.parametrize("name", DAY)
def test_a_task_takes_three_lines(name: str, analyst: dict[str, Any]) -> None:
    """A task's code does what its name says, in at most three statements but for two tasks."""
    task = DAY[name]
    assert len(ast.parse(task.code).body) <= 3 or name in LONGER
    with contextlib.redirect_stdout(None):
        exec(f"{task.code}\nis_done = bool({task.is_done})", analyst)
    assert analyst["is_done"]
