"""Damaged or foreign notes of files cause a warning or a clear error."""

from __future__ import annotations

import functools
import json as jsonlib
import shutil
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.errors import OutreachWarning
from tests.examples import share_of_examples
from tests.resources.search_service import connected, service_of
from tests.scripted import scripted

pytestmark = pytest.mark.long

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "x", "id"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["filters", "name", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
RANGE = {"kind": "range", "name": None, "start": 0, "stop": 1, "step": 0}
DAYS = ("2026-11-01", "2026-11-30")


def meant(value: Any) -> Any:
    """Return the value, or n nested lists for "deep n", which hypothesis cannot print."""
    if not (isinstance(value, str) and value.startswith("deep ")):
        return value
    depth = int(value.removeprefix("deep "))
    return functools.reduce(lambda inner, _: [inner], range(depth), [])


def snapshots_in(folder: Path) -> list[Path]:
    """Write two snapshots of two people, and return the path of each one's only part."""
    frame = pd.DataFrame({"id": ["1", "2"], "name": ["A", "B"]})
    parts = [folder / f"snapshot={day}" / "part-00000.parquet" for day in DAYS]
    for part in parts:
        part.parent.mkdir(parents=True)
        frame.outreach.to_parquet(part)
    return parts


def note(part: Path, metadata: dict[bytes, bytes]) -> None:
    """Replace the metadata of a Parquet file."""
    pq.write_table(pq.read_table(part).replace_schema_metadata(metadata), part)


@given(VALUES)
@example([1])
@example({"filters": "EMEA"})
@example("deep 300")
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
            for call in (
                lambda: of.read_prospects(parts[1]),
                lambda: of.compare_people(folder),
                lambda: of.compare_people(pd.DataFrame({"id": ["1"]}), parts[1]),
            ):
                with suppress(of.OutreachError):
                    call()
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "attributes", [[1], "EMEA", 5, None, {"filters": "EMEA"}, {"filters": [1]}]
)
def test_foreign_attrs_are_ignored_with_a_warning(attributes: Any, tmp_path: Path) -> None:
    """Attributes that are not a search's are ignored, with a warning that names the file."""
    part = snapshots_in(tmp_path)[1]
    own = jsonlib.loads(pq.read_schema(part).metadata[b"pandas"])
    note(part, {b"pandas": jsonlib.dumps({**own, "attributes": attributes}).encode()})
    with pytest.warns(OutreachWarning, match=f"snapshot={DAYS[1]}, or the filters in them"):
        listed = of.snapshots(tmp_path)
    assert listed["people"].tolist() == [2, 2]
    assert listed["filters"].isna()[1] or listed["filters"][1] == {}
    with pytest.warns(OutreachWarning, match=f"snapshot={DAYS[1]}, or the filters in them"):
        assert not len(of.compare_people(tmp_path).appeared)
    with scripted(service_of(3)) as service, connected(service):
        with pytest.warns(OutreachWarning, match=f"snapshot={DAYS[1]}, or the filters in them"):
            of.snapshot_people(tmp_path, date="2026-12-01", person_name="Ada")
    if not isinstance(attributes, dict):
        with pytest.warns(OutreachWarning, match="are not a JSON object"):
            frame = of.read_prospects(part)
        assert frame["name"].tolist() == ["A", "B"]


@given(VALUES)
@example("deep 300")
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
