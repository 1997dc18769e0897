"""Files of prospects are restored; unreadable files and unwritable paths are errors."""

from __future__ import annotations

import codecs
import contextlib
import csv
import errno
import io
import os
import resource
import signal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.cli import main
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.excel import write_excel as write_sheet
from outreach_frames.files.parquet import write_parquet
from outreach_frames.files.read import read_as_text, read_prospects
from tests.examples import share_of_examples
from tests.files.frames import COLUMNS, INDEXES, PERSON, assert_same, prospects, round_trip, write
from tests.reading.pages import body, people_frame, read_people_page
from tests.reading.people_strategies import odd_people, people

pytestmark = pytest.mark.long

BACKENDS = ["numpy_nullable", "pyarrow"]


@share_of_examples(0.2)
@given(st.lists(people() | odd_people(), max_size=3), st.sampled_from(BACKENDS))
@example([], "pyarrow")
@example([PERSON, {"id": ""}] * 25, "numpy_nullable")
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_any_people_come_back(tmp_path, suffix, persons, backend):
    """Any people, with either dtype backend, are restored from CSV and Parquet."""
    frame = people_frame([read_people_page(body(*persons))], backend)
    assert_same(round_trip(frame, tmp_path / f"people{suffix}"), frame)


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_index_is_restored(tmp_path, kind, suffix):
    """A custom index is written to the file and restored."""
    frame = pd.DataFrame({"name": ["x", "y"]}, index=INDEXES[kind])
    if suffix == ".parquet" and kind == "number as name":
        frame.index = frame.index.rename("other")
    assert_same(round_trip(frame, tmp_path / f"x{suffix}"), frame)


ONE = pd.DataFrame({"a": [1]})
UNWRITABLE = [
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "Two columns"),
    (pd.DataFrame([[1, 2]], columns=[None, "a"]), {}, "not text"),
    (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), {}, "several levels"),
    (pd.DataFrame(index=range(3)), {}, "no columns"),
    (pd.DataFrame([[1]], columns=pd.Index(["\ud800"], dtype=object)), {}, "ud800"),
    (ONE.rename_axis(index="\ud800"), {}, "ud800"),
    (ONE.rename_axis(columns="\ud800"), {}, "ud800"),
    (ONE, {"sep": "."}, "sep="),  # a separator must not be part of a number or word
    *((ONE, {"formulas": kind}, "escape") for kind in ["", "none", None, True]),
]


@pytest.mark.parametrize(("frame", "options", "words"), UNWRITABLE)
def test_names_or_options_without_a_meaning_are_an_error(tmp_path, frame, options, words):
    """Names that a file cannot hold, a frame without columns and unknown options are refused."""
    for suffix in (".csv",) if options else (".csv", ".parquet"):
        with pytest.raises(InvalidInputError, match=words):
            write(frame, tmp_path / f"x{suffix}", **options)
    assert not list(tmp_path.iterdir())


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


def test_blank_lines_between_rows_of_one_column_are_counted(tmp_path):
    """Blank lines between the rows of a single column are skipped with a warning."""
    path = tmp_path / "x.csv"
    path.write_text("email\n\na@x.example\n\nb@x.example\n\n")
    with pytest.warns(OutreachWarning, match="skipped 2 blank lines between rows"):
        assert read_prospects(path)["email"].tolist() == ["a@x.example", "b@x.example"]


PIECES = ["a", "b c", "x@y.example", '"', '""', ",", "\n", "\r\n", "\r", '"a,\n"', ""]


@share_of_examples(5)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.sampled_from(",;"))
@example('x,"Main St 5\r\nOslo, Norway"', ",")
@example('x,5" screen\n\nx,the "best" one', ",")
@example(f"x,{'y' * 200_000}", ",")
@pytest.mark.filterwarnings("ignore:.*(cut off|look like rows)")
def test_a_foreign_file_is_read_as_by_the_csv_module(tmp_path, text, sep):
    """A file has the rows that Python's csv module reads, or is refused where that refuses it."""
    path, content = tmp_path / "x.csv", f"h,i\n{text}\na,b\n".replace(",", sep)
    path.write_text(content, newline="")
    rows = csv.reader(io.StringIO(content, newline=""), delimiter=sep, strict=True)
    try:
        expected = [row for row in rows if row]
    except csv.Error:
        expected = [[]]
    for read in (read_prospects, read_as_text):
        if {len(row) for row in expected} == {2}:
            frame = read(path)
            assert [list(frame), *frame.fillna("").to_numpy().tolist()] == expected
        else:
            with pytest.raises(InvalidInputError, match=r"x\.csv"):
                read(path)


DECLARED = "sep=;\r\nname;email, work\r\nAda;ada@x.example\r\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *((DECLARED, encoding) for encoding in (None, "utf-8-sig", "utf-16")),
        (DECLARED.replace("sep", "SEP").replace("\r\n", "\n"), None),
        (DECLARED.replace("sep=;", '"sep=;"'), None),
        (DECLARED.replace(";", "\t"), None),
    ],
)
def test_a_declared_separator_is_used(tmp_path, text, encoding):
    """The line that declares a separator for Excel is no header; any other first line is."""
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode(encoding or "utf-8"))
    frame = read_prospects(path, encoding=None if encoding == "utf-8-sig" else encoding)
    assert frame.to_dict("list") == {"name": ["Ada"], "email, work": ["ada@x.example"]}
    path.write_text('sep=;\na;b\nc;"d\n')
    with pytest.raises(InvalidInputError, match="line 3"):
        read_prospects(path)
    path.write_text("sep=x,b\na,c\n")
    assert read_prospects(path).columns.tolist() == ["sep=x", "b"]


# The text of a file, and what the error or warning names.
UNCERTAIN = {
    "never closed": 'email,note\na@x.example,b\nb@x.example,"c\n' + "d@x.example,e\n" * 99,
    "in the header": 'email,"note\na@x.example,b\nc@x.example,d',
    "text behind": 'email,note\na@x.example,b\nb@x.example,"b"c\n',
    "after a blank": 'email,note\na@x.example,b\nb@x.example, "b, c"\n',
    "too many cells": 'email,note\n"a\n",b\nb@x.example,c,d\n',
    "too few cells": "email,note\n\nb@x.example\n",
    "rows in a cell": 'email,note\na,b\na@x.example,"b\nb@x.example,c\nc@x.example,d"\n',
    "rows by Windows": 'email;note\r\na;b\r\n"a@x.example;b\r\nb@x.example";c\r\n',
    "rows by old Macs": 'email,note\ra,b\ra@x.example,"b\rb@x.example,c"\r',
}


@pytest.mark.parametrize("case", UNCERTAIN)
def test_ambiguous_rows_are_named(tmp_path, capsys, case):
    """If a quotation mark may merge rows, an error or warning names the line but no cell."""
    path = tmp_path / "x.csv"
    path.write_text(UNCERTAIN[case], newline="")
    is_read = case.startswith("rows")
    words = f"line {1 if 'header' in case else 4 if case == 'too many cells' else 3}"
    for read in (read_prospects, read_as_text):
        with pytest.warns(OutreachWarning) if is_read else pytest.raises(InvalidInputError) as seen:
            read(path)
        said = str(seen[0].message if is_read else seen.value)
        assert words in said
        assert "b@x" not in said
    if not is_read:
        assert main(["find-people", "--company-name", "note", str(path), "--sandbox"]) == 2
        assert words in capsys.readouterr().err


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
        with pytest.raises(InvalidInputError, match="cut off"):
            read_prospects(path)


def test_a_possibly_truncated_file_is_a_warning(tmp_path):
    """A warning says if another program's file ends in a quoted cell, and so may be truncated."""
    path = tmp_path / "x.csv"
    path.write_text('email,note\na@x.example,"He said "')
    with pytest.warns(OutreachWarning, match="no line break"):
        assert len(read_prospects(path)) == 1
    path.write_text("email,note\na@x.example,b")
    assert read_prospects(path).to_numpy().tolist() == [["a@x.example", "b"]]


ENCODINGS = ["cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_other_encodings_are_named_and_read(tmp_path, encoding):
    """Without encoding= the error names the likely one; with it each character is restored."""
    path = tmp_path / "x.csv"
    path.write_bytes("id,name\n1,Zoë\n".encode(encoding))
    for read in (read_prospects, read_as_text):
        with pytest.raises(InvalidInputError, match=f"x.csv.*not in UTF-8.*encoding='{encoding}'"):
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


@pytest.mark.parametrize(
    ("method", "suffixes"),
    [
        ("to_csv", [".xlsx", ".parquet", ".csv.gz"]),
        ("to_parquet", [".csv", ".xlsx"]),
        ("to_excel", [".csv", ".xls", ""]),
    ],
)
def test_a_suffix_of_another_format_is_an_error(tmp_path, method, suffixes):
    """Every writer rejects the suffix of another format, and the error names the right one."""
    for suffix in suffixes:
        with pytest.raises(InvalidInputError, match=r"Pass a name that ends in \."):
            getattr(ONE.outreach, method)(tmp_path / f"people{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", "", ".parquet", ".pq"])
def test_every_written_suffix_is_read(tmp_path, suffix):
    """`read_prospects` accepts the suffixes of to_csv and to_parquet, and a name of any bytes."""
    frame = pd.DataFrame({"a": ["x", None]})
    writer = write_parquet if suffix in {".parquet", ".pq"} else write_csv
    assert_same(read_prospects(writer(frame, tmp_path / f"x{suffix}")), frame)
    (tmp_path / "\udcff.csv").write_text("a\nx\n")
    assert read_prospects(tmp_path / "\udcff.csv")["a"].tolist() == ["x"]


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
        with pytest.raises(
            InvalidInputError, match=f"{tmp_path}/x.*: (not found|there is no)"
        ) as caught:
            READERS[reader](path)
        assert "create" not in str(caught.value)


@pytest.mark.parametrize("name", ["x.csv", "x.txt", "x.parquet"])
def test_a_file_without_a_header_is_an_error(tmp_path, name):
    """A file without a header is rejected, and so is a web address, with the reason."""
    (tmp_path / name).touch()
    (tmp_path / "mark.csv").write_bytes(codecs.BOM_UTF8 + b"\r\n")
    for empty in (name, "mark.csv"):
        with pytest.raises(InvalidInputError, match="is empty"):
            read_prospects(tmp_path / empty)
    for url in (f"https://x.example/{name}", f"file://{tmp_path}/{name}"):
        with pytest.raises(InvalidInputError, match="web address"):
            read_prospects(url)


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


@pytest.mark.parametrize("backend", BACKENDS)
def test_pandas_own_parquet_can_be_read(tmp_path, backend):
    """A file with lists that pandas wrote is read by read_prospects, or by pandas as Arrow."""
    frame = prospects(2, backend)
    path = tmp_path / "people.parquet"
    frame.to_parquet(path)
    assert_same(read_prospects(path), frame)
    found = pd.read_parquet(path, dtype_backend="pyarrow")["experiences"]
    assert found.tolist() == frame["experiences"].tolist()


def test_integers_with_gaps_come_back_exactly(tmp_path):
    """Integers of numpy are Int64 if a part of a folder lacks the column; no digit is lost."""
    pd.DataFrame({"n": [2**53 + 1], "b": [True]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"x": ["a"]}).to_parquet(tmp_path / "b.parquet")
    frame = read_prospects(tmp_path)
    assert frame.dtypes.astype(str).to_dict() == {"n": "Int64", "b": "boolean", "x": "str"}
    assert frame["n"].tolist() == [2**53 + 1, pd.NA]


COLUMN_NAMES = {
    "numbers": [2024, 2025],
    "fractions": [0.5, 1.5],
    "booleans": [True, False],
    "times": pd.to_datetime(["2026-01-01", "2026-02-01"]),
    "levels": pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")]),
    "a name": pd.Index(["a", "b"], name="month"),
}


@pytest.mark.parametrize("kind", COLUMN_NAMES)
def test_column_names_that_are_no_text_are_read_as_text(tmp_path, kind):
    """Parquet of pandas may have any column names; they are read as text, with index and rows."""
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=COLUMN_NAMES[kind], index=pd.Index(["x", "y"]))
    frame.to_parquet(tmp_path / "x.parquet")
    expected = frame.set_axis([str(name) for name in frame.columns], axis=1)
    expected.columns.name = frame.columns.name
    assert_same(read_prospects(tmp_path / "x.parquet"), expected)


def test_a_damaged_page_is_an_error(tmp_path):
    """A flipped bit in any page of a Parquet file is an error, never another value."""
    frame = prospects(60)[["id", "name", "experiences", "company_followers", "company_is_b2b"]]
    content = write_parquet(frame, tmp_path / "x.parquet").read_bytes()
    pages = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for place in np.random.default_rng(1).integers(4, pages, 20):
        damaged = bytearray(content)
        damaged[place] ^= 16
        (tmp_path / "y.parquet").write_bytes(damaged)
        with contextlib.suppress(InvalidInputError):  # some bytes have no meaning
            assert_same(read_prospects(tmp_path / "y.parquet"), frame)


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
def test_columns_that_parquet_cannot_hold_are_an_error(tmp_path, values):
    """A column or index that Parquet cannot hold is an error, and no file is written."""
    with pytest.raises(InvalidInputError, match="The table"):
        write_parquet(pd.DataFrame({"odd": values}), tmp_path / "x.parquet")
    with pytest.raises(InvalidInputError, match="odd"):
        write_parquet(pd.DataFrame({"odd": pd.Series([1, "x", {}])}), tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []
