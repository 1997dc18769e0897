"""CSV files restore every value, dtype and missing cell, and contain no formula."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.read import read_prospects
from outreach_frames.reading.flatten import records_frame
from tests.examples import share_of_examples
from tests.files.frames import (
    COLUMNS,
    DATES,
    FULL_WIDTH,
    TIMES,
    assert_same,
    metadata_of,
    prospects,
    round_trip,
)

pytestmark = pytest.mark.long

ALPHABET = f"='+-@\t\r\n\x00\"{FULL_WIDTH}, \u00a0\ufeff1"
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.text(ALPHABET, max_size=6)
TRICKY = [
    None, "", "NA", "N/A", "null", "nan", "00123", "+44 20", "'=1", "''+x", "=1+1", "-", "@x", "'",
    " =1", "\u00a0=1", "\ufeff=1", f"{FULL_WIDTH[0]}1", "\x00=1", "x\x00y", "\u2028", "a,b",
    "a\rb", "a\nb", "a\r\nb", "\r", "\n", "\t", 'say "hi"', "Zoë", "東京", "😀", " padded ", "true",
    "1e5",
]  # fmt: skip


def cells(path: Path, sep: str = ",") -> list[str]:
    """Return every cell of a CSV, header included, as a spreadsheet reads it."""
    text = io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")
    return [cell for row in csv.reader(text, delimiter=sep) for cell in row]


def is_live(text: str) -> bool:
    """Return whether a spreadsheet may run a text, by a rule independent of the package."""
    dropped = "".join(c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Zs", "Zl", "Zp"})
    start = text.lstrip(dropped) if dropped else text
    return text[:1] in {"\t", "\r", "\n", "\x00"} or start[:1] in set(f"=+-@{FULL_WIDTH}")


def test_a_search_needs_no_metadata_file(tmp_path):
    """Without the metadata file, a result's documented columns are typed; all others are text."""
    mailboxes = records_frame([{"id": "m"}], spec.MAILBOX)
    for frame in (prospects(3), mailboxes):
        path = write_csv(frame, tmp_path / "people.csv")
        noted = json.loads(metadata_of(path).read_text())
        assert noted.keys() == {"format", "version", "checksum"}
        metadata_of(path).unlink()
        pd.testing.assert_frame_equal(read_prospects(path), frame)
        path = write_csv(frame.assign(score=1), path)
        metadata_of(path).unlink()
        text = pd.Series(["1"] * len(frame), dtype="str")
        assert_same(read_prospects(path), frame.assign(score=text))


@share_of_examples(3)
@given(st.lists(st.none() | TEXTS, max_size=6), TEXTS, st.booleans(), st.sampled_from(",;\t|"))
def test_every_text_is_restored_and_none_is_a_formula(tmp_path, texts, name, excel, sep):
    """Any text is restored as a cell and a column name, with any separator, and never a formula."""
    frame = pd.DataFrame({name: pd.Series(texts, dtype="str"), "a longer column": 1})
    path = tmp_path / "texts.csv"
    assert_same(round_trip(frame, path, excel=excel, sep=sep), frame)
    assert not [cell for cell in cells(path, sep) if is_live(cell)]


@given(st.lists(st.none() | TEXTS, max_size=6))
def test_formulas_can_be_kept(tmp_path, texts):
    """With formulas="keep" the cells are the unchanged texts, and are restored too."""
    frame = pd.DataFrame({"=name": pd.Series([*texts, "'=1"], dtype="str"), "n": 1})
    path = tmp_path / "texts.csv"
    assert_same(round_trip(frame, path, formulas="keep"), frame)
    assert cells(path)[0] == "=name"


TEXT_DTYPES = {
    "arrow": pd.ArrowDtype(pa.string()),
    "large": pd.ArrowDtype(pa.large_string()),
    **{name: name for name in ("str", "string", "object", "category")},
}


@pytest.mark.parametrize("dtype", TEXT_DTYPES)
def test_tricky_texts_come_back(tmp_path, dtype):
    """Missing, empty, NA, leading zeros, quotes and line breaks stay distinct in every dtype."""
    frame = pd.DataFrame(
        {
            f"t{number}": pd.Series([text, "x", None], dtype=TEXT_DTYPES[dtype])
            for number, text in enumerate(TRICKY)
        }
    )
    expected = frame.astype("str") if dtype == "object" else frame
    assert_same(round_trip(frame, tmp_path / "t.csv"), expected)
    for name in frame if dtype in {"str", "large"} else ():  # a cell may be a whole line
        assert_same(round_trip(frame[[name]], tmp_path / "t.csv"), expected[[name]])


def test_formulas_get_an_apostrophe(tmp_path):
    """Formulas in cells, headers and an index get one apostrophe, also after white space."""
    frame = pd.DataFrame(
        {"=h": ["=1", "'=1", " +x", "plain"]}, index=pd.Index(["@i", "j", "-", "'"])
    )
    write_csv(frame, tmp_path / "f.csv")
    assert cells(tmp_path / "f.csv") == [
        "index", "'=h", "'@i", "'=1", "j", "''=1", "'-", "' +x", "'", "plain",
    ]  # fmt: skip


def test_missing_and_empty_are_written_apart(tmp_path):
    """A missing cell is empty, an empty text is quoted; excel=True adds a byte order mark."""
    frame = pd.DataFrame({"t": ["", None, "NA"], "n": pd.array([1, None, -2], dtype="Int64")})
    write_csv(frame, tmp_path / "m.csv")
    content = '"t","n"\n"",1\n,\n"NA",-2\n'
    assert (tmp_path / "m.csv").read_text() == content
    write_csv(frame, tmp_path / "m.csv", excel=True)
    assert (tmp_path / "m.csv").read_bytes() == f"\ufeff{content}".encode()


# Columns that come back as text: rare dtypes, and objects that are not all text or dates.
AS_TEXT = {
    "float16": ["0.0999755859375", "65504", None],
    "arrow half": ["0.5", None],
    "durations": ["1 days 02:03:04.500000", None, "-1 days +23:59:59"],
    "decimals": ["1.10", None, "-100000"],
    "decimals beyond Arrow": ["2", "1.10", f"1{'0' * 40}", f"0.{'0' * 39}1", "-Infinity"],
    "arrow decimal": ["1.10", None],
    "arrow time": ["01:02:03", None],
    "periods": ["2024-01", None, "2024-03"],
    "dicts": ['{"a":[1,null]}', None, "{}"],
    "lists": ['["a",1.5]', "[]", None],
    "mixed": ["1", "1", "true", "1.5", None, f"[{2**70}]", '{"a":"ü"}', "-5"],
}


@pytest.mark.parametrize("kind", AS_TEXT)
def test_rare_dtypes_and_objects_come_back_as_text(tmp_path, kind):
    """Rare dtypes and mixed objects are restored as text, lists and objects as JSON."""
    frame = pd.DataFrame({"x": COLUMNS[kind]}).rename_axis(columns="what")
    text = pd.DataFrame({"x": pd.Series(AS_TEXT[kind], dtype="str")}).rename_axis(columns="what")
    assert_same(round_trip(frame, tmp_path / "x.csv"), text)


@pytest.mark.parametrize("kind", sorted(COLUMNS.keys() - AS_TEXT.keys()))
def test_every_dtype_comes_back_from_csv(tmp_path, kind):
    """A column of any dtype is restored, also without rows, and alone without blank lines."""
    frame = pd.DataFrame({"x": COLUMNS[kind], "name": "n"})
    for part in (frame, frame.iloc[:0].reset_index(drop=True), frame[["x"]]):
        assert_same(round_trip(part, tmp_path / "x.csv"), part)
    assert b"\n\n" not in (tmp_path / "x.csv").read_bytes()


def test_dates_are_written_as_iso(tmp_path):
    """Dates are YYYY-MM-DD, times are ISO 8601, and zoned times are in UTC."""
    frame = pd.DataFrame({"d": DATES, "t": TIMES, "z": TIMES.tz_localize("Europe/Berlin")})
    write_csv(frame, tmp_path / "d.csv")
    assert cells(tmp_path / "d.csv")[3:6] == [
        "2024-02-29",
        "2024-02-29 10:20:30.123456",
        "2024-02-29 09:20:30.123456Z",
    ]


@pytest.mark.parametrize(
    "values",
    [
        pd.array([1 + 2j]),
        pd.arrays.SparseArray([1, 0]),
        pd.IntervalIndex.from_breaks([0, 1]),
        pd.Series([b"x"], dtype="binary[pyarrow]"),
        pd.Series([[np.inf]], dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
        ["\ud800"],
    ],
)
def test_unsupported_columns_are_an_error(tmp_path, values):
    """A column that could not be restored is an error that names it, and no file is written."""
    series = pd.Series(values, dtype=object if isinstance(values, list) else None)
    with pytest.raises(InvalidInputError, match="'odd column'"):
        write_csv(pd.DataFrame({"odd column": series}), tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("column", "before", "after"),
    [(pd.Series(["a"], dtype="category"), '"a"', '"b"'), (pd.Series([1]), "1", "many")],
)
def test_a_column_with_an_edited_cell_that_does_not_fit_stays_text(tmp_path, column, before, after):
    """An edited cell that does not fit keeps its column as text, with a warning."""
    path = write_csv(pd.DataFrame({"x": column, "y": "n"}), tmp_path / "x.csv")
    path.write_text(path.read_text().replace(f"{before},", f"{after},"))
    with pytest.warns(OutreachWarning, match="`x` stays text: line 2 has"):
        assert read_prospects(path)["x"].tolist() == [after.strip('"')]


def test_an_edited_cell_of_integers_may_be_empty(tmp_path):
    """A column of integers of numpy becomes Int64 if a cell was deleted."""
    path = write_csv(pd.DataFrame({"x": [1, 2], "y": "n"}), tmp_path / "x.csv")
    path.write_text(path.read_text().replace("1,", ","))
    expected = pd.Series([None, 2], dtype="Int64", name="x")
    pd.testing.assert_series_equal(read_prospects(path)["x"], expected)


@pytest.mark.parametrize(
    "header", [",".join(f"c{number}" for number in range(16_385)), "," * 1_000_000]
)
def test_files_of_too_many_columns_are_refused(tmp_path, header):
    """More than 16,384 columns, whether names repeat or not, are neither read nor written."""
    path = tmp_path / "x.csv"
    path.write_text(header + "\n")
    with pytest.raises(InvalidInputError, match="16,384"):
        read_prospects(path)
    frame = pd.DataFrame(columns=map(str, range(16_384)), index=pd.Index([], name="i"))
    with pytest.raises(InvalidInputError, match=r"16,385.*16,384"):
        write_csv(frame, tmp_path / "y.csv")
    assert list(tmp_path.iterdir()) == [path]


def test_two_columns_of_one_name_are_an_error(tmp_path):
    """A header with a repeated name is an error that names the file and the name."""
    path = tmp_path / "odd.csv"
    path.write_bytes(b"a,a\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"odd\.csv has two columns named 'a'"):
        read_prospects(path)


def test_a_row_of_any_length_is_read(tmp_path):
    """A cell of many megabytes is restored."""
    frame = pd.DataFrame({"a": ["x" * 20_000_000, "y\n"], "b": ["1", None]})
    assert_same(round_trip(frame, tmp_path / "x.csv"), frame)


def test_index_can_be_left_out_or_asked_for(tmp_path):
    """index=False drops labels, index=True also writes row numbers; the default depends on them."""
    frame = pd.DataFrame({"a": [1, 2]}, index=["x", "y"])
    assert_same(round_trip(frame, tmp_path / "x.csv", index=False), frame.reset_index(drop=True))
    assert_same(round_trip(frame, tmp_path / "x.csv"), frame)
    numbered = frame.reset_index(drop=True)
    write_csv(numbered, tmp_path / "y.csv", index=True)
    assert cells(tmp_path / "y.csv") == ["index", "a", "0", "1", "1", "2"]
    pd.testing.assert_frame_equal(
        read_prospects(tmp_path / "y.csv"), numbered, check_index_type=False
    )
