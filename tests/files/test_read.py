"""Files of prospects come back as they were, and what cannot be read or written is told."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.parquet import write_parquet
from outreach_frames.files.read import read_as_text, read_prospects
from outreach_frames.reading.flatten import people_frame
from outreach_frames.reading.pages import read_people_page
from tests.examples import share_of_examples
from tests.files.frames import INDEXES, assert_same, prospects, round_trip, write
from tests.reading.pages import body
from tests.reading.people_strategies import odd_people, people

pytestmark = pytest.mark.long


@pytest.mark.parametrize("rows", [0, 1, 2, 50])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_people_come_back_as_they_were(tmp_path, rows, suffix, backend):
    """People of any number and either backend are the same after a CSV and a Parquet file."""
    frame = prospects(rows, backend)
    assert_same(round_trip(frame, tmp_path / f"people{suffix}"), frame)


@share_of_examples(0.2)
@given(st.lists(people() | odd_people(), max_size=3), st.sampled_from([".csv", ".parquet"]))
def test_any_people_come_back(tmp_path, persons, suffix):
    """Whatever people hold comes back from both kinds of file."""
    frame = people_frame([read_people_page(body(*persons))])
    assert_same(round_trip(frame, tmp_path / f"people{suffix}"), frame)


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_index_is_not_lost(tmp_path, kind, suffix):
    """An index that is more than row numbers is in the file, and is the index again."""
    frame = pd.DataFrame({"name": ["x", "y"]}, index=INDEXES[kind])
    if suffix == ".parquet" and kind == "number as name":
        frame.index = frame.index.rename("other")
    assert_same(round_trip(frame, tmp_path / f"x{suffix}"), frame)


@pytest.mark.parametrize(
    "columns",
    [["a", "a"], [1, 2], [None, "a"], pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])],
)
@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_unclear_column_names_are_refused(tmp_path, columns, write):
    """Column names that are repeated, not text, or of several levels are an error that says so."""
    frame = pd.DataFrame([[1, 2]], columns=columns)
    with pytest.raises(InvalidInputError, match=r"[Cc]olumn"):
        write(frame, tmp_path / "x.csv")


def test_attrs_do_not_get_in_the_way(tmp_path):
    """`.attrs` may hold anything, and stays on the frame."""
    frame = pd.DataFrame({"a": ["x"]})
    frame.attrs = {"odd": object(), "filters": {"person_name": "Ada"}}
    for suffix in (".csv", ".parquet"):
        assert read_prospects(write(frame, tmp_path / f"x{suffix}"))["a"].tolist() == ["x"]
    assert set(frame.attrs) == {"odd", "filters"}


def test_a_folder_of_parts_is_one_frame(tmp_path):
    """Parts are read in the order of their names, with the columns of all."""
    for number, extra in ((2, {"zz": "x"}), (1, {})):
        page = read_people_page(body({"id": str(number), **extra}))
        pq.write_table(page.people, tmp_path / f"part-{number:05}.parquet")
    (tmp_path / ".part.tmp.parquet").write_bytes(b"half")
    frame = read_prospects(tmp_path)
    assert frame["id"].tolist() == ["1", "2"]
    assert frame["zz"].isna().tolist() == [True, False]
    assert frame.dtypes.iloc[:-1].equals(people_frame([]).dtypes)


def test_ndjson_is_read_as_people(tmp_path):
    """An NDJSON file has one person on each line, with the dtypes of a search."""
    path = tmp_path / "people.ndjson"
    path.write_text("\n".join(json.dumps({"id": str(n), "zz": n}) for n in range(5_000)) + "\n\n")
    frame = read_prospects(path)
    assert frame["id"].tolist() == [str(n) for n in range(5_000)]
    assert frame["zz"].sum() == sum(range(5_000))
    path.write_text("")
    assert_same(read_prospects(path), people_frame([]))


@pytest.mark.parametrize("line", ['{"id": "1"', "5", "null", '{"id":"1"},{"id":"2"}', "[]"])
def test_a_wrong_line_of_ndjson_is_named(tmp_path, line):
    """A line that is not a person is an error with its number."""
    path = tmp_path / "people.ndjson"
    path.write_text(f'{{"id": "0"}}\n{line}\n')
    with pytest.raises(InvalidInputError, match="line 2"):
        read_prospects(path)


@pytest.mark.parametrize(
    "name", ["missing.csv", "missing.parquet", "folder", "x.xlsx", "bad.parquet"]
)
def test_files_that_cannot_be_read_are_clear_errors(tmp_path, name):
    """A missing, empty, unknown or damaged file is an error that names it."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "x.xlsx").write_bytes(b"PK")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InvalidInputError, match=re.escape(name)):
        read_prospects(tmp_path / name)


def test_a_folder_in_place_of_a_part_is_told(tmp_path):
    """A folder that is named like a part is an error, not a part without rows."""
    (tmp_path / "part-00001.parquet").mkdir()
    with pytest.raises(InvalidInputError, match=r"part-00001\.parquet is a folder"):
        read_prospects(tmp_path)


@pytest.mark.parametrize(
    "name", [*(f".{suffix}" for suffix in ("xlsx", "ods", "numbers")), ".csv", ""]
)
@pytest.mark.parametrize("read", [read_prospects, read_as_text])
def test_a_spreadsheet_is_told_by_what_it_holds(tmp_path, name, read):
    """A workbook is not taken for text, whatever its name is."""
    path = tmp_path / f"book{name}"
    path.write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(InvalidInputError, match="CSV UTF-8" if read is read_as_text else "book"):
        read(path)


def test_a_header_that_never_ends_is_told(tmp_path):
    """A quotation mark that is opened in the header and not closed is what the error names."""
    path = tmp_path / "x.csv"
    path.write_text('email,"name\n' + "ada@brightforge.example,Ada\n" * 10_000)
    with pytest.raises(InvalidInputError, match="quotation mark") as caught:
        read_prospects(path)
    assert "ada@" not in str(caught.value)


def test_a_pipe_that_is_open_is_read_whole():
    """What a shell pipes in is read from its first byte on."""
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as writer:
        writer.write(b"email\nada@brightforge.example\n")
    try:
        assert read_as_text(f"/dev/fd/{read_end}")["email"].tolist() == ["ada@brightforge.example"]
    finally:
        os.close(read_end)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("path", "advice"),
    [("none/x", "create the folder"), ("folder", "folder"), ("file.txt/x", "path")],
)
def test_places_that_cannot_be_written_are_clear_errors(tmp_path, suffix, path, advice):
    """A missing folder, a folder, or a file in place of a folder is an error that says so."""
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / "file.txt").write_text("kept")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInputError, match=advice):
        write(pd.DataFrame({"a": ["x"]}), tmp_path / f"{path}{suffix}")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_full_disk_leaves_the_old_file(tmp_path, suffix):
    """When no more can be written, the old file stays and nothing else is left."""
    old = pd.DataFrame({"a": ["old"], "n": [1]})
    path = write(old, tmp_path / f"x{suffix}")
    before = sorted(tmp_path.iterdir())
    big = pd.DataFrame(
        {"a": [str(n) for n in np.random.default_rng(0).integers(2**62, size=90_000)]}
    )
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(InvalidInputError, match=os.strerror(errno.EFBIG)):
            write(big, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert sorted(tmp_path.iterdir()) == before
    assert_same(read_prospects(path), old)


def test_a_link_and_permissions_stay(tmp_path):
    """Writing through a link replaces the file behind it and keeps its permissions."""
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    write_csv(pd.DataFrame({"a": ["old"]}), real)
    real.chmod(0o640)
    link.symlink_to(real)
    write_csv(pd.DataFrame({"a": ["new"]}), link)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert read_prospects(real)["a"].tolist() == ["new"]


KILLED = """
import sys
from pathlib import Path
import pandas as pd
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.parquet import write_parquet
path = Path(sys.argv[1])
frame = pd.DataFrame({"a": ["new"] * 300_000, "b": range(300_000)})
print("ready", flush=True)
while True:
    (write_csv if path.suffix == ".csv" else write_parquet)(frame, path)
"""


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("delay", [0.02, 0.1])
def test_killed_while_writing_leaves_a_whole_file(tmp_path, suffix, delay):
    """A process killed while it writes leaves the old file or the new one."""
    path = write(pd.DataFrame({"a": ["old"] * 3}), tmp_path / f"x{suffix}")
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(delay)
        process.kill()
    frame = read_prospects(path)
    assert (len(frame), set(frame["a"])) in [(3, {"old"}), (300_000, {"new"})]


@pytest.mark.parametrize("row", ["y@x.example,secret,c", "secret"])
def test_a_row_of_another_length_is_numbered_and_not_shown(tmp_path, row):
    """The error says which row differs, and nothing of what is in it."""
    path = tmp_path / "x.csv"
    path.write_text(f"email,a\nx@x.example,1\n{row}\n")
    with pytest.raises(
        InvalidInputError, match=r"line 3 has [13] cells?, and the header has 2"
    ) as caught:
        read_prospects(path)
    assert "secret" not in str(caught.value)
