"""People who changed jobs can be added to a sequence, from frames, snapshots and old tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.sandbox import Sandbox

QUIET = "ignore::outreach_frames.errors.OutreachWarning"
START = "current_position_start_date"
COLUMNS = ["id", "profnet_url", "name", "title", START, "company_id", "company_name"]


@pytest.fixture(scope="module")
def moving() -> Iterator[Sandbox]:
    """Start a separate sandbox, whose people change jobs over time."""
    with of.sandbox.serve(people=120, seed=5) as running:
        with of.connect(running.url, running.api_key, cache=None):
            yield running


@pytest.fixture(scope="module")
def folder(moving: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Take two snapshots between which people change jobs."""
    path = tmp_path_factory.mktemp("snapshots") / "people"
    of.snapshot_people(path, {}, date=moving.today, columns=COLUMNS)
    of.snapshot_people(path, {}, date=moving.advance(days=200), columns=COLUMNS)
    return path


@pytest.mark.filterwarnings(QUIET)
def test_job_changers_have_what_a_campaign_needs(moving: Sandbox, folder: Path) -> None:
    """URL, company ids and job start equal those of the person's rows; all rows can be planned."""
    comparison = of.compare_people(folder)
    moved = comparison.employer_changes
    assert len(moved) > 3
    tables = [of.read_prospects(path) for path in of.snapshots(folder)["path"]]
    pd.testing.assert_frame_equal(moved, of.compare_people(*tables).employer_changes)
    before, after = (table.set_index("id").loc[moved["person_id"]] for table in tables)
    assert moved["profnet_url"].tolist() == after["profnet_url"].tolist()
    assert moved["company_id_before"].tolist() == before["company_id"].tolist()
    assert moved["company_id_after"].tolist() == after["company_id"].tolist()
    assert moved[START].tolist() == after[START].tolist()
    sequence_id = moving.sequence_ids["accepts_any"]
    [body] = moved.outreach.plan(sequence_id, data={"title": "title_after"}).payloads()
    assert body["leads"] == [
        {"profnet_url": url, "data": {"title": title}}
        for url, title in zip(moved["profnet_url"], moved["title_after"], strict=True)
    ]
    appeared = comparison.appeared
    added = tables[1][~tables[1]["id"].isin(tables[0]["id"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(appeared, added, check_flags=False)
    assert len(appeared.outreach.plan(sequence_id, data=["title"]).positions) == len(appeared)


@pytest.mark.filterwarnings(QUIET)
def test_columns_that_older_tables_lack_are_missing(folder: Path, tmp_path: Path) -> None:
    """A column is filled from whichever table has it."""
    old, new = (of.read_prospects(path) for path in of.snapshots(folder)["path"])
    whole = of.compare_people(old, new).employer_changes
    for without, expected in (
        ((["profnet_url"], []), {"profnet_url": 1.0}),
        (([], ["profnet_url"]), {"profnet_url": 1.0}),
        ((["profnet_url"], ["profnet_url", START]), {"profnet_url": 0.0, START: 0.0}),
        ((["company_id", START], []), {"company_id_before": 0.0}),
    ):
        tables = [
            table.drop(columns=names) for table, names in zip((old, new), without, strict=True)
        ]
        moved = of.compare_people(*tables).employer_changes
        assert moved["person_id"].tolist() == whole["person_id"].tolist()
        pd.testing.assert_series_equal(moved.dtypes, whole.dtypes)
        shares = moved.notna().mean()
        assert {name: shares[name] for name in expected} == expected
        rest = [name for name in whole if shares[name]]
        pd.testing.assert_frame_equal(moved[rest], whole[rest])
    texts = new.assign(**{START: new[START].dt.strftime("%Y-%m-%d")})
    pd.testing.assert_frame_equal(of.compare_people(old, texts).employer_changes, whole)


@pytest.mark.filterwarnings(QUIET)
def test_a_missing_url_is_taken_from_before() -> None:
    """If a person's later row has no profile URL, the earlier one is used."""
    before = pd.DataFrame({"id": ["1", "2"], "profnet_url": ["u/in/a", "u/in/b"]})
    before["company_id"] = ["x", "x"]
    after = before.assign(profnet_url=[" ", "u/in/c"], company_id=["y", "y"])
    moved = of.compare_people(before, after).employer_changes
    assert moved["profnet_url"].tolist() == ["u/in/a", "u/in/c"]
    assert moved[START].isna().all()


@pytest.mark.filterwarnings(QUIET)
def test_a_person_without_an_employer_needs_no_headcounts() -> None:
    """Tables without headcounts and with a missing employer can be compared."""
    before = pd.DataFrame(
        {"id": ["1", "2"], "company_id": ["x", None], "company_name": ["X", None]}
    )
    after = before.assign(company_id=["y", None], company_name=["Y", None])
    assert of.compare_people(before, after).employer_changes["person_id"].tolist() == ["1"]
