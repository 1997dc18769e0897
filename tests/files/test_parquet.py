"""Parquet files restore every dtype, and other tools can read them."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from outreach_frames.errors import InvalidInputError
from outreach_frames.files.parquet import write_parquet
from outreach_frames.files.read import read_prospects
from tests.files.frames import COLUMNS, assert_same, prospects, round_trip

pytestmark = pytest.mark.long

PARQUET = [
    kind
    for kind in COLUMNS
    if kind not in {"mixed", "lists", "dicts", "arrow half", "arrow decimal", "no category"}
    and kind not in {"int category", "date category", "time category"}
    and kind not in {"decimals beyond Arrow", "offset", "seconds"}
]


@pytest.mark.parametrize("kind", PARQUET)
def test_every_dtype_comes_back_from_parquet(tmp_path, kind):
    """Parquet restores every dtype that pandas can store in it."""
    frame = pd.DataFrame({"x": COLUMNS[kind], "name": "n"})
    assert_same(round_trip(frame, tmp_path / "x.parquet"), frame)


def test_pandas_reads_our_parquet_by_itself(tmp_path):
    """A file with list columns can be read by pandas itself, values included."""
    lists = pd.array(
        [[{"a": 1}], None], dtype=pd.ArrowDtype(pa.list_(pa.struct({"a": pa.int64()})))
    )
    frame = pd.DataFrame({"id": ["1", "2"], "entries": lists})
    path = write_parquet(frame, tmp_path / "people.parquet")
    entries = pd.read_parquet(path)["entries"]
    assert list(entries[0]) == [{"a": 1}]
    assert entries[1] is None
    pd.testing.assert_frame_equal(read_prospects(path), frame)


def test_pandas_own_parquet_can_be_read(tmp_path):
    """A file with lists that pandas wrote is read by read_prospects, or by pandas as Arrow."""
    frame = prospects(2)
    path = tmp_path / "people.parquet"
    frame.to_parquet(path)
    pd.testing.assert_frame_equal(read_prospects(path), frame, check_dtype=False)
    found = pd.read_parquet(path, dtype_backend="pyarrow")["experiences"]
    assert found.tolist() == frame["experiences"].tolist()


def test_parquet_is_compressed_with_zstd(tmp_path):
    """The Parquet file uses zstd, and list columns have a list type."""
    write_parquet(prospects(2), tmp_path / "x.parquet")
    file = pq.ParquetFile(tmp_path / "x.parquet")
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert pa.types.is_list(file.schema_arrow.field("experiences").type)
    file.close()


@pytest.mark.parametrize(
    "values",
    [
        pd.arrays.SparseArray([1, 0]),
        pd.Series([2**70, 1], dtype=object),
        [1 + 2j, 0],
        [{1: 2}, {}],
        [{}, {}],
        pd.Series(["\ud800", "x"], dtype=object),
    ],
)
def test_unsupported_columns_are_an_error(tmp_path, values):
    """A column or index that Parquet cannot hold is an error, and no file is written."""
    with pytest.raises(InvalidInputError, match="frame"):
        write_parquet(pd.DataFrame({"odd": values}), tmp_path / "x.parquet")
    with pytest.raises(InvalidInputError, match="odd"):
        write_parquet(pd.DataFrame({"odd": pd.Series([1, "x", {}])}), tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []
