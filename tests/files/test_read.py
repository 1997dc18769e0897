"""Files of prospects are restored; unreadable files and unwritable paths are errors."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.cli import main
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.excel import write_excel as write_sheet
from outreach_frames.files.parquet import write_parquet
from outreach_frames.files.read import read_as_text, read_prospects
from outreach_frames.reading.flatten import people_frame
from outreach_frames.reading.pages import read_people_page
from tests import forked
from tests.examples import share_of_examples
from tests.files.frames import INDEXES, assert_same, prospects, round_trip, write
from tests.reading.pages import body
from tests.reading.people_strategies import odd_people, people

pytestmark = pytest.mark.long


@pytest.mark.parametrize("rows", [0, 1, 2, 50])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_people_come_back_as_they_were(tmp_path, rows, suffix, backend):
    """Any number of people, with either dtype backend, are restored from CSV and Parquet."""
    frame = prospects(rows, backend)
    assert_same(round_trip(frame, tmp_path / f"people{suffix}"), frame)


@share_of_examples(0.2)
@given(st.lists(people() | odd_people(), max_size=3), st.sampled_from([".csv", ".parquet"]))
def test_any_people_come_back(tmp_path, persons, suffix):
    """Any values of people are restored from CSV and Parquet."""
    frame = people_frame([read_people_page(body(*persons))])
    assert_same(round_trip(frame, tmp_path / f"people{suffix}"), frame)


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_index_is_restored(tmp_path, kind, suffix):
    """A custom index is written to the file and restored."""
    frame = pd.DataFrame({"name": ["x", "y"]}, index=INDEXES[kind])
    if suffix == ".parquet" and kind == "number as name":
        frame.index = frame.index.rename("other")
    assert_same(round_trip(frame, tmp_path / f"x{suffix}"), frame)


@pytest.mark.parametrize(
    "columns",
    [["a", "a"], [1, 2], [None, "a"], pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])],
)
@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_ambiguous_column_names_are_an_error(tmp_path, columns, write):
    """Column names that are repeated, not text, or have several levels are an error."""
    frame = pd.DataFrame([[1, 2]], columns=columns)
    with pytest.raises(InvalidInputError, match=r"[Cc]olumn"):
        write(frame, tmp_path / "x.csv")


def test_attrs_do_not_get_in_the_way(tmp_path):
    """`.attrs` may have any content, and stay on the frame."""
    frame = pd.DataFrame({"a": ["x"]})
    frame.attrs = {"odd": object(), "filters": {"person_name": "Ada"}}
    for suffix in (".csv", ".parquet"):
        assert read_prospects(write(frame, tmp_path / f"x{suffix}"))["a"].tolist() == ["x"]
    assert set(frame.attrs) == {"odd", "filters"}


def test_a_folder_of_parts_is_one_frame(tmp_path):
    """Parts are read in the order of their names, with the columns of all parts."""
    for number, extra in ((2, {"zz": "x"}), (1, {})):
        page = read_people_page(body({"id": str(number), **extra}))
        pq.write_table(page.people, tmp_path / f"part-{number:05}.parquet")
    (tmp_path / ".part.tmp.parquet").write_bytes(b"half")
    frame = read_prospects(tmp_path)
    assert frame["id"].tolist() == ["1", "2"]
    assert frame["zz"].isna().tolist() == [True, False]
    assert frame.dtypes.iloc[:-1].equals(people_frame([]).dtypes)


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


def test_a_folder_instead_of_a_part_is_an_error(tmp_path):
    """A folder with the name of a part is an error."""
    (tmp_path / "part-00001.parquet").mkdir()
    with pytest.raises(InvalidInputError, match=r"part-00001\.parquet is a folder"):
        read_prospects(tmp_path)


@pytest.mark.parametrize(
    "name", [*(f".{suffix}" for suffix in ("xlsx", "ods", "numbers")), ".csv", ""]
)
@pytest.mark.parametrize("read", [read_prospects, read_as_text])
def test_a_workbook_is_recognised_by_its_content(tmp_path, name, read):
    """A workbook is not read as text, whatever its name."""
    path = tmp_path / f"book{name}"
    path.write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(InvalidInputError, match=r"\.xlsx"):
        read(path)


def test_an_open_pipe_is_read_completely():
    """A pipe from the shell is read from its first byte."""
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
def test_unwritable_paths_are_an_error(tmp_path, suffix, path, advice):
    """A missing folder, a folder as file, and a file as folder are errors."""
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / "file.txt").write_text("kept")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInputError, match=advice):
        write(pd.DataFrame({"a": ["x"]}), tmp_path / f"{path}{suffix}")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx"])
def test_a_full_disk_leaves_the_old_file(tmp_path, suffix):
    """If the disk is full, the old file is kept and no other file remains."""
    old = pd.DataFrame({"a": ["old"], "n": pd.array([1], "Int64")})
    save = write_sheet if suffix == ".xlsx" else write
    path = save(old, tmp_path / f"x{suffix}")
    before = sorted(tmp_path.iterdir())
    big = pd.DataFrame(
        {"a": [str(n) for n in np.random.default_rng(0).integers(2**62, size=9_000)]}
    )
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, limits[1]))
    try:
        with pytest.raises(InvalidInputError, match=os.strerror(errno.EFBIG)):
            save(big, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert sorted(tmp_path.iterdir()) == before
    assert_same(read_prospects(path), old)


def test_a_link_and_permissions_stay(tmp_path):
    """Writing through a link replaces the link's target and keeps its permissions."""
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
def test_a_kill_while_writing_leaves_a_complete_file(tmp_path, suffix, delay):
    """A process killed while writing leaves the old file or the new one."""
    path = write(pd.DataFrame({"a": ["old"] * 3}), tmp_path / f"x{suffix}")
    process = forked.Process(KILLED, path, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.kill()
    frame = read_prospects(path)
    assert (len(frame), set(frame["a"])) in [(3, {"old"}), (300_000, {"new"})]


@pytest.mark.parametrize("row", ["y@x.example,secret,c", "secret"])
def test_a_row_of_another_length_is_numbered_and_not_shown(tmp_path, row):
    """The error names the row with another length, but shows nothing of its cells."""
    path = tmp_path / "x.csv"
    path.write_text(f"email,a\nx@x.example,1\n{row}\n")
    with pytest.raises(InvalidInputError, match=r"Row #3: Expected 2 columns") as caught:
        read_prospects(path)
    assert "secret" not in str(caught.value)


UNCERTAIN = {
    "never closed": (
        'email,note\na@x.example,b\nb@x.example,"c\n' + "d@x.example,e\n" * 99,
        "line 3",
    ),
    "never closed in the first cell": ('email,note\n"a@x.example,b\nb@x.example,c\n', "line 2"),
    "in the header": ('email,"note\na@x.example,b\n', "line 1"),
    "a stray one": ('email,note\na@x.example,5" screen\nb@x.example,c\n', "line 2"),
    "a stray pair": ('email,note\na@x.example,the "best" one\n', "line 2"),
    "after a blank": ('email,note\na@x.example, "b, c"\n', "line 2"),
    "text behind": ('email,note\na@x.example,"b"c\n', "line 2"),
    "a blank behind": ('email,note\n"a@x.example" ,b\n', "line 2"),
    "closed by the next one": ('email,note\na@x.example,"b\nb@x.example,"c"\n', "line 2"),
    "closed behind a comma": ('email,note\na@x.example,"b\nb@x.example,", c"\n', "line 2"),
    "rows in a cell": ('email,note\na@x.example,"b\nb@x.example,c\nc@x.example,d"\n', "line 2"),
    "rows in the first cell": ('email,note\n"a@x.example,b\nb@x.example",c\n', "line 2"),
    "rows by Windows": ('email,note\r\na@x.example,"b\r\nb@x.example,c"\r\n', "line 2"),
    "rows by old Macs": ('email,note\ra@x.example,"b\rb@x.example,c"\r', "line 2"),
    "many rows without addresses": ("a,b\n" + 'x,"y\n' + "x,y\n" * 6 + 'x,y"\n', "line 2"),
    "semicolons": ('email;note\na@x.example;"b\nb@x.example;c"\n', "line 2"),
    "too many cells": (
        'email,note\n"a@x.example","b\nc"\nb@x.example,c,d\n',
        "Row #3: Expected 2 columns",
    ),
    "too few cells": (
        'email,note\n"a@x.example","b\nc"\n\nb@x.example\n',
        "Row #3: Expected 2 columns",
    ),
}


def test_both_lines_of_a_stray_quotation_mark_are_named(tmp_path):
    """The error names both lines: that of the last quoted cell and that of the stray mark."""
    path = tmp_path / "x.csv"
    for last in ('"a@x.example",b\nb@x.example,c', '"a\n""b"" c",d'):
        path.write_text(f'email,note\n{last}\nc@x.example,5" screen\n')
        with pytest.raises(InvalidInputError, match="line 2 is never closed, or line 4 has"):
            read_prospects(path)


@pytest.mark.parametrize("case", UNCERTAIN)
def test_ambiguous_rows_are_an_error(tmp_path, capsys, case):
    """If a quotation mark could merge rows or cells, every reader names the line but no cell."""
    text, words = UNCERTAIN[case]
    path = tmp_path / "x.csv"
    path.write_text(text, newline="")
    for read in (read_prospects, read_as_text, lambda path: of.compare_people(path, path)):
        with pytest.raises(InvalidInputError, match=rf"x\.csv cannot be read.*\b{words}") as caught:
            read(path)
        assert "b@x" not in str(caught.value)
    for command in (
        ["add-leads", "--sequence", "1", "--dry-run"],
        ["find-people", "--name", "note"],
    ):
        assert main([*command, str(path), "--sandbox"]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "cell", ["b\nc", "Hello,\n\nBob", "Main St 5\r\nOslo, Norway", 'say ""hi"",\nthen "" go', ""]
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_cells_of_several_lines_are_read_as_excel_writes_them(tmp_path, cell, end):
    """Line breaks, separators and doubled quotation marks in a quoted cell are part of its text."""
    path = tmp_path / "x.csv"
    path.write_text(f'email,note{end}a@x.example,"{cell}"{end}b@x.example,c{end}', newline="")
    assert read_prospects(path)["note"].tolist() == [cell.replace('""', '"'), "c"]


@given(st.lists(st.text('a@x.e,;"\r\n\t\0', max_size=30) | st.none(), max_size=4), st.booleans())
def test_rows_within_a_cell_of_our_own_come_back(tmp_path, texts, alone):
    """Whatever the cells, to_csv writes a readable file, also for one column and any separator."""
    note = ["x\nb@x.example,c\nd@x.example,e", *texts]
    frame = pd.DataFrame({"note": pd.Series(note, dtype="str")})
    frame = frame if alone else frame.assign(email="a@x.example")
    for sep in ",;":
        assert_same(round_trip(frame, tmp_path / "x.csv", sep=sep), frame)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_truncated_file_is_an_error(tmp_path, columns):
    """A file cut off anywhere in a quoted cell is an error."""
    text = 'He said ""Zoë, 東京"",\n""go""'
    path = tmp_path / "x.csv"
    frame = pd.DataFrame({"email": ["a@x.example"], "note": [text.replace('""', '"')]})
    content = write_csv(frame.iloc[:, -columns:], path).read_bytes()
    begins = content.index(b'"He said')
    for length in range(begins + 1, len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(InvalidInputError, match=r"never closed|cut off"):
            read_prospects(path)


def test_a_possibly_truncated_file_is_a_warning(tmp_path):
    """A warning says if another program's file ends in a quoted cell, and so may be truncated."""
    path = tmp_path / "x.csv"
    path.write_text('email,note\na@x.example,"He said "')
    with pytest.warns(OutreachWarning, match="no line break"):
        assert len(read_prospects(path)) == 1


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("header", ["email,note", '"email","note"'])
def test_blank_lines_are_skipped(tmp_path, header, end):
    """Blank lines are skipped anywhere, and lines of blanks at the end."""
    path = tmp_path / "x.csv"
    lines = ["", header, "", "a@x.example,1", "", "", "b@x.example,2", "", "  ", ""]
    path.write_text(end.join(lines) + end, newline="")
    for read in (read_prospects, read_as_text):
        assert read(path).to_dict("list") == {
            "email": ["a@x.example", "b@x.example"],
            "note": ["1", "2"],
        }


def test_blank_lines_in_a_single_column_are_counted(tmp_path):
    """Blank lines after the rows are skipped; those between rows cause a warning."""
    path = tmp_path / "x.csv"
    path.write_text("email\na@x.example\nb@x.example\n\n\n")
    assert len(read_prospects(path)) == 2
    path.write_text("email\na@x.example\n\n\nb@x.example\n")
    with pytest.warns(OutreachWarning, match="2 blank lines between"):
        assert len(read_prospects(path)) == 2


ENCODINGS = ["cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_other_encodings_are_named_and_read(tmp_path, encoding):
    """Without encoding= the error names the likely one; with it each character is restored."""
    path = tmp_path / "x.csv"
    path.write_bytes("id,name\n1,Zoë\n".encode(encoding))
    for read in (read_prospects, read_as_text):
        with pytest.raises(InvalidInputError, match=f'not in UTF-8.*encoding="{encoding}"'):
            read(path)
        assert read(path, encoding=encoding)["name"].tolist() == ["Zoë"]


@pytest.mark.parametrize(
    ("encoding", "words"),
    [("no such", "unknown encoding"), ("base64", "not a text encoding"), ("ascii", "ascii.*decode")]
    + [(name, "not in") for name in ("cp1252", "latin-1", "utf-16")],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_wrong_encoding_is_an_error(tmp_path, encoding, words, mark):
    """Text that would be garbled is rejected, and so is an unknown encoding."""
    path = tmp_path / "x.csv"
    path.write_text(f"{mark}id,name\n1,Zoë!\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=words):
        read_prospects(path, encoding=encoding)
    with pytest.raises(InvalidInputError, match="encoding="):
        read_prospects(write(pd.DataFrame({"a": ["x"]}), tmp_path / "x.parquet"), encoding=encoding)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", "", ".parquet", ".pq"])
def test_every_written_suffix_is_read(tmp_path, suffix):
    """`read_prospects` accepts the suffixes of to_csv and to_parquet."""
    frame = pd.DataFrame({"a": ["x", None]})
    writer = write_parquet if suffix in {".parquet", ".pq"} else write_csv
    assert_same(read_prospects(writer(frame, tmp_path / f"x{suffix}")), frame)


READERS = {
    "prospects": lambda path: read_prospects(f"{path}.csv"),
    "parquet": lambda path: read_prospects(f"{path}.parquet"),
    "text": lambda path: read_as_text(f"{path}.csv"),
    "comparison": lambda path: of.compare_people(f"{path}.parquet", f"{path}.csv"),
    "two snapshots": of.compare_people,
    "snapshots": of.snapshots,
    "filters": lambda path: of.load_filters(f"{path}.json"),
    "forget": lambda path: of.forget(email="a@x.example", folder=path),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_missing_input_is_not_found(tmp_path, monkeypatch, reader):
    """An error about a missing input file never recommends to create a folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in (tmp_path / "x", "~/x"):
        with pytest.raises(InvalidInputError, match=f"{tmp_path}/x.*: not found") as caught:
            READERS[reader](path)
        assert "create" not in str(caught.value)


@pytest.mark.parametrize("name", ["x.csv", "x.txt", "x.parquet"])
def test_a_file_without_a_header_is_an_error(tmp_path, name):
    """A file without a header is rejected, and so is a web address, with the reason."""
    (tmp_path / name).touch()
    with pytest.raises(InvalidInputError, match="is empty"):
        read_prospects(tmp_path / name)
    for url in (f"https://x.example/{name}", f"file://{tmp_path}/{name}"):
        with pytest.raises(InvalidInputError, match="web address"):
            read_prospects(url)
