"""Any content of a file's notes on dtypes gives a frame or one clear error."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.parquet import write_parquet
from outreach_frames.files.read import read_prospects
from tests.files.frames import COLUMNS, INDEXES, metadata_of

pytestmark = pytest.mark.long

FRAMES = {
    **{name: pd.DataFrame({"x": column, "name": "n"}) for name, column in COLUMNS.items()},
    **{
        f"index {name}": pd.DataFrame({"name": ["x", "y"]}, index=index)
        for name, index in INDEXES.items()
    },
    "name of columns": pd.DataFrame({"a": [1]}).rename_axis(columns="what"),
}
PARQUET = [name for name in FRAMES if name not in {"lists", "mixed", "dicts", "nothing"}]
VALUES: list[Any] = [
    None, True, 5, -1, 1e99, 10**30, "x", "", ",", "\0", "\ud800", [], {}, [None], ["a", 1],
    {"dtype": 5}, "arrow", "category", "object", "period[M]", "Sparse[int]", "U9", "V8", "(",
    "interval", "int64,int64", "timedelta64", "datetime64", "datetime64[ns]", "float16", "Int64",
    "string", "double[pyarrow]", "list<item: int64>[pyarrow]",
]  # fmt: skip
KEYS = ["dtype", "written", "other"]
DTYPES = st.sampled_from(
    [
        "json",
        "text",
        *(value for value in VALUES if value and isinstance(value, str) and value != "\ud800"),
    ]
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container and each of its keys or positions."""
    keys = (
        range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
    )
    for key in keys:
        yield value, key
        yield from places(value[key])


def damaged(notes: Any, data: st.DataObject) -> Any:
    """Change or drop one or two values in the notes."""
    changed = copy.deepcopy(notes)
    for _ in range(data.draw(st.integers(1, 2))):
        container, key = data.draw(st.sampled_from(list(places(changed)) or [([0], 0)]))
        if isinstance(container, dict) and data.draw(st.integers(0, 4)) == 0:
            del container[key]
        else:
            container[key] = copy.deepcopy(data.draw(st.sampled_from(VALUES)))
    return changed


def read_or_refuse(path: Path) -> None:
    """Read a file, or check that the error names it."""
    try:
        problem = f"{path.name} gave {type(read_prospects(path))}"
    except InvalidInputError as error:
        problem = str(error)
    assert path.name in problem


@pytest.mark.filterwarnings("ignore")
@given(st.sampled_from(list(FRAMES)), st.data())
def test_notes_beside_a_csv_may_hold_anything(tmp_path, name, data):
    """Whatever the notes have, a CSV file is read, or rejected with the name of its notes."""
    path = write_csv(FRAMES[name], tmp_path / "x.csv")
    notes = metadata_of(path)
    if notes.is_file():
        notes.write_text(json.dumps(damaged(json.loads(notes.read_text()), data)))
        read_or_refuse(path)


def with_other_models(notes: dict[str, Any], data: st.DataObject) -> None:
    """Change bytes or dtypes in the column models of the notes."""
    content = bytearray(base64.b64decode(notes["models"]))
    if data.draw(st.booleans()):
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    else:
        batch = pa.ipc.open_stream(content).read_next_batch()
        fields = [
            field.with_metadata(data.draw(st.dictionaries(st.sampled_from(KEYS), DTYPES)))
            for field in batch.schema
        ]
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, pa.schema(fields)) as writer:
            writer.write_batch(pa.record_batch(batch.columns, pa.schema(fields)))
        content = stream.getvalue().to_pybytes()
    notes["models"] = base64.b64encode(content).decode()


@pytest.mark.filterwarnings("ignore")
@given(st.sampled_from(list(FRAMES)), st.data())
def test_models_of_columns_may_hold_anything(tmp_path, name, data):
    """Whatever types and dtypes are recorded, a CSV file is read or rejected."""
    path = write_csv(FRAMES[name], tmp_path / "x.csv")
    notes = metadata_of(path)
    noted = json.loads(notes.read_text()) if notes.is_file() else {}
    if "models" in noted:
        with_other_models(noted, data)
        notes.write_text(json.dumps(noted))
        read_or_refuse(path)


@pytest.mark.filterwarnings("ignore")
@given(st.sampled_from(PARQUET), st.data())
def test_metadata_in_parquet_may_hold_anything(tmp_path, name, data):
    """Whatever its metadata, a Parquet file is read or rejected."""
    path = tmp_path / "x.parquet"
    try:
        write_parquet(FRAMES[name], path)
    except InvalidInputError:
        return
    table = pq.read_table(path)
    notes = {
        key.decode(): json.loads(value)
        for key, value in table.schema.metadata.items()
        if key != b"outreach_frames_version"
    }
    changed = {key: json.dumps(value) for key, value in damaged(notes, data).items()}
    pq.write_table(table.replace_schema_metadata(changed), path)
    read_or_refuse(path)


@pytest.mark.parametrize(
    "content",
    [
        "{", "[]", "5", "null", '""', '{"format": "other"}', "[" * 100_000, "\xff", "{}",
        '{"format":"outreach_frames CSV 1"}',
        '{"format":"outreach_frames CSV 2","models":5}',
        '{"format":"outreach_frames CSV 2","models":""}',
        '{"format":"outreach_frames CSV 2","models":"AAAA"}',
        '{"format":"outreach_frames CSV 2","index":{"a":1}}',
        '{"format":"outreach_frames CSV 2","index":[["n"]]}',
        '{"format":"outreach_frames CSV 2","index":5}',
        '{"format":"outreach_frames CSV 2","columns_name":[["a"]]}',
    ],
)  # fmt: skip
def test_damaged_metadata_is_an_error(tmp_path, content):
    """Damaged or foreign notes are an error that names them."""
    path = write_csv(pd.DataFrame({"n": [1]}), tmp_path / "x.csv")
    metadata_of(path).write_text(content, encoding="latin-1")
    with pytest.raises(InvalidInputError, match="metadata"):
        read_prospects(path)
