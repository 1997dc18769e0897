"""Snapshots: one search day by day, for any Parquet reader, also with damaged or foreign notes."""

from __future__ import annotations

import datetime
import functools
import json as jsonlib
import shutil
import stat
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning, ServerError
from tests.examples import share_of_examples
from tests.resources.search_service import connected, service_of
from tests.scripted import Received, Reply, json, scripted

pytestmark = pytest.mark.long

FILTERS: dict[str, Any] = {"person_seniorities": ["vp", "director"]}
OLD, NEW = "2026-11-01", "2026-11-30"


def taken(folder: Path) -> Path:
    """Take two snapshots, and return the folder."""
    for date in (OLD, NEW):
        of.snapshot_people(folder, FILTERS, date=date)
    return folder


def test_snapshots_are_listed_from_the_files(client: Client, tmp_path: Path) -> None:
    """Each snapshot of a new folder is one row, oldest first, with its filters and people."""
    folder = tmp_path / "a" / "people"
    listed = of.snapshots(taken(folder))
    assert listed.dtypes.astype(str).to_dict() == {
        "date": "datetime64[us]",
        "people": "Int64",
        "filters": "object",
        "path": "str",
    }
    assert listed["date"].dt.strftime("%Y-%m-%d").tolist() == [OLD, NEW]
    assert listed["people"].tolist() == [of.count_people(FILTERS)] * 2
    assert listed["filters"].tolist() == [FILTERS] * 2
    assert listed["path"].tolist() == [str(folder / f"snapshot={day}") for day in (OLD, NEW)]
    assert [file.name for file in (folder / f"snapshot={OLD}").iterdir()] == ["part-00000.parquet"]
    pd.testing.assert_frame_equal(of.read_prospects(listed["path"][0]), of.search_people(FILTERS))


def test_a_folder_without_snapshots_gives_the_same_columns(tmp_path: Path) -> None:
    """An empty folder gives an empty table; a missing folder is an error."""
    (tmp_path / "snapshot=today").mkdir()
    listed = of.snapshots(tmp_path)
    assert listed.empty
    assert list(listed) == ["date", "people", "filters", "path"]
    assert str(listed["date"].dtype) == "datetime64[us]"
    with pytest.raises(InvalidInputError, match="not found"):
        of.snapshots(tmp_path / "nowhere")


def test_the_default_day_is_today(client: Client, tmp_path: Path) -> None:
    """Without a date, the day is today in the machine's time zone."""
    days = [datetime.datetime.now().astimezone().date().isoformat()]
    name = of.snapshot_people(tmp_path, FILTERS).name
    days.append(datetime.datetime.now().astimezone().date().isoformat())
    assert name in {f"snapshot={day}" for day in days}


def test_another_search_is_an_error_before_any_request(client: Client, tmp_path: Path) -> None:
    """A folder holds one search; another order of a filter's values is the same search."""
    of.snapshot_people(tmp_path, FILTERS, date=OLD)
    of.snapshot_people(tmp_path, person_seniorities=["director", "vp"], date=NEW)
    for other in ({}, {"person_seniorities": ["vp"]}, FILTERS | {"person_name": "Ada"}):
        with pytest.raises(InvalidInputError, match="snapshots of another search"):
            of.snapshot_people(tmp_path, other, date="2026-12-01")
    with pytest.raises(InvalidInputError, match="split_by was not set and is now"):
        of.snapshot_people(tmp_path, FILTERS, split_by="person_seniorities")
    assert len(of.snapshots(tmp_path)) == 2


def test_a_damaged_snapshot_falls_back_to_the_previous_search(
    client: Client, tmp_path: Path
) -> None:
    """A damaged snapshot is a warning, and the search of the previous one is compared."""
    (damaged,) = (taken(tmp_path) / f"snapshot={NEW}").iterdir()
    damaged.write_bytes(b"PAR1")
    with (
        pytest.warns(OutreachWarning, match="The filters of that snapshot were not compared"),
        pytest.raises(InvalidInputError, match=rf"another search: in snapshot={OLD}"),
    ):
        of.snapshot_people(tmp_path, person_name="Ada", date="2026-12-01")


def test_the_same_search_on_the_same_day_replaces_it(tmp_path: Path) -> None:
    """The new people replace the old ones, and never come from the cache."""
    there = [2]

    def reply(request: Received) -> Reply:
        return service_of(there[0])(request)

    with scripted(reply) as service, connected(service, cache=tmp_path / "cache"):
        of.snapshot_people(tmp_path / "people", date=OLD)
        there[0] = 3
        assert len(of.search_people()) == 3
        there[0] = 5
        path = of.snapshot_people(tmp_path / "people", date=OLD)
    assert len(of.read_prospects(path)) == 5
    assert of.snapshots(tmp_path / "people")["people"].tolist() == [5]


def failing_until(mended: threading.Event) -> Callable[[Received], Reply]:
    """Return a script of 250 people that fails on the last page until the event is set."""

    def reply(request: Received) -> Reply:
        broken = request.json["page"] == 3 and not mended.is_set()
        return json({}, 500) if broken else service_of(250)(request)

    return reply


def test_an_interrupted_snapshot_is_listed_and_resumed(tmp_path: Path) -> None:
    """The same call reads only the missing pages; until then the list names a private snapshot."""
    mended = threading.Event()
    script = failing_until(mended)
    with scripted(script) as service, connected(service, max_wait=0, workers=1):
        with pytest.raises(ServerError):
            of.snapshot_people(tmp_path, date=OLD)
        kept = tmp_path / f".snapshot={OLD}.partial"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in kept.iterdir()} == {0o600}
        with pytest.warns(OutreachWarning, match=rf"snapshot of {OLD} .* is not finished"):
            assert of.snapshots(tmp_path).empty
        with pytest.raises(InvalidInputError, match=r"\.snapshot=.* different export: filters"):
            of.snapshot_people(tmp_path, date=OLD, person_name="Ada")
        mended.set()
        asked = len(service.requests)
        path = of.snapshot_people(tmp_path, date=OLD)
        assert [request.json["page"] for request in service.requests[asked:]] == [3]
    assert len(of.read_prospects(path)) == 250
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_an_interrupted_split_resumes_with_the_same_split_only(tmp_path: Path) -> None:
    """A snapshot with `split_by` resumes with the same call only, and keeps each person's value."""
    mended = threading.Event()
    split: dict[str, Any] = {**FILTERS, "split_by": "person_seniorities"}
    script = failing_until(mended)
    with scripted(script) as service, connected(service, max_wait=0, workers=1):
        with pytest.raises(ServerError):
            of.snapshot_people(tmp_path, date=OLD, **split)
        mended.set()
        with pytest.raises(InvalidInputError, match='split_by was "person_seniorities" and is'):
            of.snapshot_people(tmp_path, FILTERS, date=OLD)
        path = of.snapshot_people(tmp_path, date=OLD, **split)
    people = of.read_prospects(path)["person_seniorities"]
    assert people.tolist() == ["vp"] * 250
    assert people.cat.categories.tolist() == FILTERS["person_seniorities"]


def test_an_unreadable_snapshot_is_listed(client: Client, tmp_path: Path) -> None:
    """An unreadable snapshot has no people count and causes a warning; others are listed."""
    (part,) = (taken(tmp_path) / f"snapshot={OLD}").iterdir()
    table = pq.read_table(part, partitioning=None)
    pq.write_table(pa.table([table["id"], table["id"]], names=["id", "id"]), part)
    with pytest.raises(InvalidInputError, match="is damaged"):
        of.compare_people(tmp_path)
    pq.write_table(table.replace_schema_metadata({b"pandas": b"{"}), part)
    not_json = part.read_bytes()
    for content in (not_json, b"PAR1 not any more"):
        part.write_bytes(content)
        with pytest.warns(OutreachWarning, match=rf"snapshot={OLD} is damaged"):
            listed = of.snapshots(tmp_path)
        assert listed["people"].isna().tolist() == [True, False]
    part.unlink()
    with pytest.warns(OutreachWarning, match=r"has no \.parquet file"):
        assert of.snapshots(tmp_path)["filters"].tolist() == [None, FILTERS]


def test_missing_people_are_a_warning(client: Client, tmp_path: Path) -> None:
    """A warning compares the number of people with the total that the service counted."""
    (part,) = (taken(tmp_path) / f"snapshot={OLD}").iterdir()
    of.read_prospects(part).iloc[1:].outreach.to_parquet(part)
    total = of.count_people(FILTERS)
    with pytest.warns(OutreachWarning, match=f"{OLD} has {total - 1} of {total} matching"):
        assert of.snapshots(tmp_path)["people"].tolist() == [total - 1, total]


def test_other_libraries_read_all_snapshots_as_one_table(client: Client, tmp_path: Path) -> None:
    """DuckDB, Polars and Dask read the folders, also next to an unfinished snapshot."""
    # The import takes half a second in each process that collects tests.
    import dask.dataframe as dd

    count = of.count_people(FILTERS)
    expected = {OLD: count, NEW: count}
    taken(tmp_path)
    unfinished = tmp_path / ".snapshot=2026-12-01.partial"
    unfinished.mkdir()
    (unfinished / "rows").write_bytes(b"half a page")
    for pattern in ("snapshot=*", "**"):
        files = f"{tmp_path}/{pattern}/*.parquet"
        found = duckdb.sql(
            "SELECT snapshot, count(*) AS people, sum(company_department_headcount_finance) > 0 "
            f"FROM read_parquet('{files}', hive_partitioning = true) GROUP BY 1"
        ).fetchall()
        assert {str(day): people for day, people, _ in found} == expected
        table = pl.read_parquet(files, hive_partitioning=True)
        assert {str(day): n for day, n in table.group_by("snapshot").len().rows()} == expected
        people = dd.read_parquet(files).compute()
        assert people["snapshot"].astype(str).value_counts().to_dict() == expected
    assert len(dd.read_parquet(tmp_path)) == 2 * count
    shutil.rmtree(unfinished)
    assert pl.read_parquet(tmp_path)["snapshot"].cast(str).unique().sort().to_list() == [OLD, NEW]


VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "x", "id"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["filters", "name", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
RANGE = {"kind": "range", "name": None, "start": 0, "stop": 1, "step": 0}


def meant(value: Any) -> Any:
    """Return the value, or n nested lists for "deep n", which hypothesis cannot print."""
    if not (isinstance(value, str) and value.startswith("deep ")):
        return value
    depth = int(value.removeprefix("deep "))
    return functools.reduce(lambda inner, _: [inner], range(depth), [])


def snapshots_in(folder: Path) -> list[Path]:
    """Write two snapshots of two people, and return the path of each one's only part."""
    frame = pd.DataFrame({"id": ["1", "2"], "name": ["A", "B"]})
    parts = [folder / f"snapshot={day}" / "part-00000.parquet" for day in (OLD, NEW)]
    for part in parts:
        part.parent.mkdir(parents=True)
        frame.outreach.to_parquet(part)
    return parts


def note(part: Path, metadata: dict[bytes, bytes]) -> None:
    """Replace the metadata of a Parquet file."""
    pq.write_table(pq.read_table(part).replace_schema_metadata(metadata), part)


@given(VALUES)
@example({"filters": "EMEA"})
@example("deep 900")
@share_of_examples(0.1)
def test_any_note_of_parquet_is_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    """With any JSON in the notes, reading, listing and comparing work or raise a clear error."""
    folder, value = tmp_path_factory.mktemp("notes"), meant(value)
    parts = snapshots_in(folder)
    whole = pq.read_schema(parts[1]).metadata
    own = jsonlib.loads(whole[b"pandas"])
    column = own["columns"][0]
    attrs = {"filters": value, "total": value, "errors": value, "limit": value, "split_by": value}
    notes: list[Any] = [value, *({**own, key: value} for key in own)]
    notes += [{**own, "attributes": attrs}, {**own, "index_columns": [RANGE]}]
    notes += [{**own, "columns": [{**column, key: value}]} for key in column]
    texts = [*({b"pandas": jsonlib.dumps(one).encode()} for one in notes)]
    texts += [{**whole, b"outreach_frames": jsonlib.dumps(value).encode()}]
    texts += [
        {**whole, key: bad}
        for key in (b"pandas", b"outreach_frames")
        for bad in (b"[" * 99_999, b"\xff")
    ]
    for metadata in texts:
        note(parts[1], metadata)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutreachWarning)
            assert of.snapshots(folder)["path"].tolist() == [str(part.parent) for part in parts]
            with suppress(of.OutreachError):
                of.read_prospects(parts[1])
            with suppress(of.OutreachError):
                of.compare_people(folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize("attributes", [[1], {"filters": "EMEA"}, {"filters": [1]}])
def test_foreign_attrs_are_ignored_with_a_warning(attributes: Any, tmp_path: Path) -> None:
    """Attributes that are not a search's are ignored, with a warning that names the file."""
    part = snapshots_in(tmp_path)[1]
    own = jsonlib.loads(pq.read_schema(part).metadata[b"pandas"])
    note(part, {b"pandas": jsonlib.dumps({**own, "attributes": attributes}).encode()})
    with pytest.warns(OutreachWarning, match=f"snapshot={NEW}, or the filters in them"):
        listed = of.snapshots(tmp_path)
    assert listed["people"].tolist() == [2, 2]
    assert listed["filters"].isna()[1] or listed["filters"][1] == {}
    with pytest.warns(OutreachWarning, match=f"snapshot={NEW}, or the filters in them"):
        assert not len(of.compare_people(tmp_path).appeared)
    with scripted(service_of(3)) as service, connected(service):
        with pytest.warns(OutreachWarning, match=f"snapshot={NEW}, or the filters in them"):
            of.snapshot_people(tmp_path, date="2026-12-01", person_name="Ada")


@given(VALUES)
@example("deep 900")
@share_of_examples(0.2)
def test_the_users_own_attrs_are_accepted(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    """A frame's own attributes of any form are written, read and compared."""
    frame = pd.DataFrame({"id": ["1", "2"], "name": ["A", "B"]})
    value = meant(value)
    frame.attrs = {"filters": value, "total": value, "errors": value, ("a", 1): value, "n": {1, 2}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        path = frame.outreach.to_parquet(tmp_path_factory.mktemp("own") / "people.parquet")
        assert of.read_prospects(path).equals(frame)
        assert not len(of.compare_people(frame, path).changed)
        assert not len(of.compare_people(path, frame).changed)
