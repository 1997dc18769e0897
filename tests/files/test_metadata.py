"""Metadata of files: the recorded search is restored, and damage is a warning or a clear error."""

from __future__ import annotations

import base64
import json
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.read import read_prospects
from outreach_frames.leads.sending.report import SubmissionReport
from tests.examples import share_of_examples
from tests.files.frames import COLUMNS, INDEXES, metadata_of

pytestmark = pytest.mark.long

WRITERS = {".csv": "to_csv", ".parquet": "to_parquet"}
SEARCH = {
    "filters": {"person_name": "Käthe 😀", "company_sizes": ["1-10"]},
    "limit": 5,
    "total": 7,
    "fetched_at": "2026-03-01T08:00:00+00:00",
    "errors": [{"code": 7}],
    "undocumented": ["shoe_size"],
}
VALUES = (
    st.text()
    | st.lists(st.text(st.characters(codec=None)), max_size=3)
    | st.booleans()
    | st.integers()
    | st.dates().map(str)
    | st.none()
)
FILTERS = st.dictionaries(
    st.sampled_from([one.name for one in spec.FILTERS]) | st.text(), VALUES, max_size=4
)


def written(frame: pd.DataFrame, path: Path, **options: Any) -> Path:
    """Write a frame in the format of the path's ending."""
    made: Path = getattr(frame.outreach, WRITERS[path.suffix])(path, **options)
    return made


def small(attrs: dict[Any, Any]) -> pd.DataFrame:
    """Return a frame of one row with the attrs."""
    frame = pd.DataFrame({"name": ["Ada"]})
    frame.attrs = attrs
    return frame


@pytest.mark.parametrize("suffix", WRITERS)
@share_of_examples(0.5)
@given(FILTERS, st.none() | st.integers(0), st.integers(0))
def test_any_search_is_restored(
    tmp_path: Path, suffix: str, filters: dict[str, Any], limit: int | None, total: int
) -> None:
    """Filters of any text, list, boolean, number or date are in .attrs."""
    attrs = SEARCH | {"filters": filters, "limit": limit, "total": total}
    path = written(small(attrs), tmp_path / f"x{suffix}")
    for _ in range(2):  # the frame that was read records the same
        read = of.read_prospects(path)
        assert read.attrs == attrs
        assert json.dumps(read.attrs["filters"]) == json.dumps(filters)
        path = written(read, tmp_path / f"again{suffix}")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "folder"])
def test_an_export_is_recorded(tmp_path: Path, client: Client, name: str) -> None:
    """An export records the same as the frame of its search, or nothing with attrs=False."""
    search: dict[str, Any] = {"person_seniorities": ["owner", "vp"], "limit": 4, "client": client}
    split = search | {"split_by": "person_seniorities"}
    for arguments in (search, split):
        expected = of.search_people(**arguments).attrs
        path = of.export_people(tmp_path / name, **arguments)
        found = of.read_prospects(path).attrs
        assert found == expected | {"fetched_at": found["fetched_at"]}
    of.export_people(path, attrs=False, **search)
    assert of.read_prospects(path).attrs == {}
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(b"person_seniorities" in file.read_bytes() for file in files)


@pytest.mark.parametrize("suffix", WRITERS)
def test_attrs_can_be_omitted(tmp_path: Path, suffix: str) -> None:
    """With attrs=False a file has no filters; values that JSON cannot hold are left out."""
    path = written(small(SEARCH), tmp_path / f"x{suffix}", attrs=False)
    assert of.read_prospects(path).attrs == {}
    assert b"sizes" not in b"".join(one.read_bytes() for one in tmp_path.iterdir())
    odd = SEARCH | {"odd": object(), ("a", 1): 2}
    frame = small(odd)
    path = written(frame, path)
    assert of.read_prospects(path).attrs == SEARCH
    assert frame.attrs == odd


def test_reports_record_the_search_of_their_tables(tmp_path: Path) -> None:
    """The files of a report have the search of the frame that was sent."""
    frame = pd.DataFrame({"email": ["ada@example.com", "bo@example.com"]})
    frame.attrs = dict(SEARCH)
    rows = pd.DataFrame({"index": [0, 1], "status": ["added", "unknown"]})
    report = SubmissionReport(frame, rows, sequence_id="s1")
    report.to_csv(tmp_path)
    for each in (tmp_path / "added.csv", tmp_path / "failed.csv"):
        assert of.read_prospects(each).attrs == SEARCH


def noted(path: Path, attrs: Any) -> None:
    """Replace the attrs in the metadata of a file."""
    if path.suffix == ".csv":
        notes = json.loads(metadata_of(path).read_text()) | {"attrs": json.dumps(attrs)}
        metadata_of(path).write_text(json.dumps(notes))
    else:
        table = pq.read_table(path)
        notes = json.loads(table.schema.metadata[b"pandas"]) | {"attributes": attrs}
        metadata = {**table.schema.metadata, b"pandas": json.dumps(notes)}
        pq.write_table(table.replace_schema_metadata(metadata), path)


@pytest.mark.parametrize("suffix", WRITERS)
def test_foreign_values_are_ignored_with_a_warning(tmp_path: Path, suffix: str) -> None:
    """Attrs that are not a search's are ignored, and a warning names the file."""
    path = written(small({"total": 3}), tmp_path / f"x{suffix}")
    for attrs in ([1], "EMEA", 5, None):
        noted(path, attrs)
        with pytest.warns(OutreachWarning, match=rf"\.attrs of .*x{suffix}.*ignored"):
            assert of.read_prospects(path).attrs == {}


def test_metadata_is_bounded(tmp_path: Path) -> None:
    """Larger metadata than any search has is refused or ignored, and is not written."""
    title = "x" * (17 << 20)
    for suffix in WRITERS:
        path = written(small({"total": 3}), tmp_path / f"x{suffix}")
        large = {"filters": {"person_titles": [title[: 1 << 17]]}}
        if suffix != ".parquet":
            noted(path, large)
            with pytest.warns(OutreachWarning, match="too large"):
                of.read_prospects(path)
            with pytest.warns(OutreachWarning, match="not written.*131,072"):
                written(small(large), path)
            assert of.read_prospects(path).attrs == {}
        noted(path, {"filters": {"person_titles": [title]}})
        with pytest.raises(InvalidInputError, match=r"17,\d\d\d,\d\d\d"):
            of.read_prospects(path)
    with pytest.warns(OutreachWarning, match="not written.*8,388,608"):
        path = written(small({"filters": {"person_titles": [title]}}), path)
    assert of.read_prospects(path).attrs == {}
    categories = pd.DataFrame({"x": pd.Categorical([], categories=[title])})
    with pytest.raises(InvalidInputError, match="Convert categorical columns to text"):
        written(categories, tmp_path / "large.csv")
    assert not (tmp_path / "large.csv").exists()


def test_unreadable_paths_are_clear_errors(tmp_path: Path) -> None:
    """Paths from which no table can be read are an error that names the file."""
    (tmp_path / "empty").mkdir()
    encrypted = bytes.fromhex("d0cf11e0a1b11ae1") + "EncryptedPackage".encode("utf-16-le")
    contents = {
        "x.csv.gz": b"x", "x.ods": b"PK", "x.parquet": b"PAR1 damaged", "e.pq": b"",
        "x.xlsx": b"PK damaged", "e.xlsx": encrypted,
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    for name in ("missing.csv", "missing.xlsx", "missing", "empty", *contents):
        with pytest.raises(InvalidInputError, match=name):
            of.read_prospects(tmp_path / name)
    path = written(small(SEARCH), tmp_path / "x.csv")
    metadata_of(path).write_text("{")
    with pytest.raises(InvalidInputError, match="damaged"):
        of.read_prospects(path)


def test_workbooks_have_no_search(tmp_path: Path) -> None:
    """A workbook has the package's version, but nothing of a table's search."""
    path = small(SEARCH).outreach.to_excel(tmp_path / "x.xlsx")
    assert of.read_prospects(path).attrs == {}
    [entry] = openpyxl.load_workbook(path).custom_doc_props.props
    assert entry.name == "outreach_frames"
    with zipfile.ZipFile(path) as package:
        assert not any(b"sizes" in package.read(name) for name in package.namelist())


FRAMES = {
    **{name: pd.DataFrame({"x": column, "name": "n"}) for name, column in COLUMNS.items()},
    **{
        f"index {name}": pd.DataFrame({"name": ["x", "y"]}, index=index)
        for name, index in INDEXES.items()
    },
    "name of columns": pd.DataFrame({"a": [1]}).rename_axis(columns="what"),
}
DTYPES = [
    "json", "text", "x", ",", "\0", "arrow", "category", "object", "period[M]", "Sparse[int]",
    "U9", "V8", "(", "interval", "int64,int64", "timedelta64", "datetime64", "datetime64[ns]",
    "float16", "Int64", "string", "double[pyarrow]", "list<item: int64>[pyarrow]",
]  # fmt: skip
KEYS = st.sampled_from(["dtype", "written", "other"])


def read_or_refuse(path: Path) -> None:
    """Read a file, or check that the error names it."""
    try:
        problem = f"{path.name} gave {type(read_prospects(path))}"
    except InvalidInputError as error:
        problem = str(error)
    assert path.name in problem


def with_other_models(notes: dict[str, Any], data: st.DataObject) -> None:
    """Change bytes or dtypes in the column models of the notes."""
    content = bytearray(base64.b64decode(notes["schema"]))
    if data.draw(st.booleans()):
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    else:
        batch = pa.ipc.open_stream(content).read_next_batch()
        fields = [
            field.with_metadata(data.draw(st.dictionaries(KEYS, st.sampled_from(DTYPES))))
            for field in batch.schema
        ]
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, pa.schema(fields)) as writer:
            writer.write_batch(pa.record_batch(batch.columns, pa.schema(fields)))
        content = stream.getvalue().to_pybytes()
    notes["schema"] = base64.b64encode(content).decode()


@pytest.mark.filterwarnings("ignore")
@given(st.sampled_from(list(FRAMES)), st.data())
def test_models_of_columns_may_hold_anything(tmp_path, name, data):
    """Whatever types and dtypes are recorded, a CSV file is read or rejected."""
    path = write_csv(FRAMES[name], tmp_path / "x.csv")
    notes = metadata_of(path)
    noted = json.loads(notes.read_text()) if notes.is_file() else {}
    if "schema" in noted:
        with_other_models(noted, data)
        notes.write_text(json.dumps(noted))
        read_or_refuse(path)


@pytest.mark.parametrize(
    "content",
    [
        "{", "[]", "5", "null", '""', '{"format": "other"}', "[" * 100_000, "\xff", "{}",
        '{"format":"outreach_frames CSV 2"}',
        '{"format":"outreach_frames CSV 3","schema":5}',
        '{"format":"outreach_frames CSV 3","schema":""}',
        '{"format":"outreach_frames CSV 3","schema":"AAAA"}',
        '{"format":"outreach_frames CSV 3","index":{"a":1}}',
        '{"format":"outreach_frames CSV 3","index":[["n"]]}',
        '{"format":"outreach_frames CSV 3","index":5}',
        '{"format":"outreach_frames CSV 3","columns_name":[["a"]]}',
    ],
)  # fmt: skip
def test_damaged_metadata_is_an_error(tmp_path, content):
    """Damaged or foreign notes are an error that names them."""
    path = write_csv(pd.DataFrame({"n": [1]}), tmp_path / "x.csv")
    metadata_of(path).write_text(content, encoding="latin-1")
    with pytest.raises(InvalidInputError, match="metadata"):
        read_prospects(path)
