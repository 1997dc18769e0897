"""Text columns of the dtype object, which pandas 2 infers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.common.pandas_versions import STR

if TYPE_CHECKING:
    from outreach_frames.client.client import Client
    from outreach_frames.sandbox import Sandbox


def frame_of_objects() -> pd.DataFrame:
    """Make leads whose text columns have the dtype object, with missing cells."""
    cells = {
        "email": ["ada@x.example", None, "ADA@x.example", "n/a"],
        "profnet_url": [None, "https://p.example/in/bob", None, None],
        "Company": ["Acme", float("nan"), "Acme", None],
    }
    return pd.DataFrame(cells, dtype=object)


def test_objects_are_sent_as_texts_are(client: Client, sandbox: Sandbox) -> None:
    """Objects and texts have the same outcomes and the same data; missing cells are not sent."""
    frame = frame_of_objects()
    sequence_id = sandbox.sequence_ids["accepts_any"]
    outcomes = [
        each.outreach.add_to_sequence(sequence_id, data={"company": "Company"}, dry_run=True).rows
        for each in (frame, frame.astype(STR))
    ]
    pd.testing.assert_frame_equal(*outcomes)
    assert outcomes[0]["status"].tolist()[2:] == ["duplicate_in_frame", "invalid"]
    assert outcomes[0].dtypes[["status", "detail"]].tolist() == [STR, STR]


def test_a_later_change_of_the_frame_does_not_change_the_plan(
    client: Client, sandbox: Sandbox
) -> None:
    """A plan, its problems and its report show the cells from the time of planning."""
    frame = frame_of_objects()
    plan = frame.outreach.plan(sandbox.sequence_ids["accepts_any"])
    frame.loc[0, "email"] = "eve@x.example"
    frame["Company"] = "Other"
    assert plan.frame["email"][0] == "ada@x.example"
    assert plan.frame["Company"][0] == "Acme"
    shown, problems = plan.frame, plan.problems
    shown.loc[0, "email"] = "eve@x.example"
    problems.loc[0, "message"] = ""
    assert plan.frame["email"][0] == "ada@x.example"
    assert plan.problems["message"][0]


@pytest.mark.parametrize("name", ["leads.csv", "leads.parquet", "leads.xlsx"])
def test_missing_objects_come_back_as_missing(tmp_path: Path, name: str) -> None:
    """Files keep missing cells of objects as missing, not as the text "nan" or "None"."""
    frame = frame_of_objects()
    path = tmp_path / name
    getattr(frame.outreach, {".csv": "to_csv", ".xlsx": "to_excel"}.get(path.suffix, "to_parquet"))(
        path
    )
    back = of.read_prospects(path)
    assert back.isna().to_numpy().tolist() == frame.isna().to_numpy().tolist()
    assert back["email"].tolist()[0] == "ada@x.example"
