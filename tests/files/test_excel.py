"""Excel workbooks: the sheets show the values of the frame."""

from __future__ import annotations

import datetime
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachError, OutreachWarning
from outreach_frames.files.csv_file import EXCEL_MAX_CELL
from outreach_frames.files.excel import write_excel
from outreach_frames.leads import statuses
from outreach_frames.leads.sending.report import SubmissionReport

pytestmark = pytest.mark.long

TRICKY = [
    "=1+1", "=HYPERLINK(1)", "{=A1}", "+44 20", "-1", "@x", "https://a.example", "internal:A1",
    "mailto:a@b.example", "00123", "1e5", "TRUE", "<r><t>x</t></r>", "<r>&</r>", "<b>&amp;</b>",
    "", " padded ", "_x0041_", "Zoë", "東京", "😀", "a\nb", "'x", "#N/A",
]  # fmt: skip


def sheet_of(path: Path, name: str | None = None) -> Any:
    """Open one sheet as another program does."""
    book = openpyxl.load_workbook(path)
    return book[name] if name else book.worksheets[0]


def column_of(frame: pd.DataFrame, path: Path, **options: Any) -> list[Any]:
    """Write a frame of one column, and return the cells below its header."""
    write_excel(frame, path, **options)
    sheet = sheet_of(path)
    return [sheet.cell(row + 2, 1).value for row in range(len(frame))]


def test_text_is_never_a_formula_link_or_number(tmp_path: Path) -> None:
    """Text in cells, headers and an index stays text, whatever a spreadsheet could convert."""
    frame = pd.DataFrame({"text": TRICKY})
    path = write_excel(frame, tmp_path / "text.xlsx")
    cells = [row[0] for row in sheet_of(path).iter_rows(min_row=2)]
    assert {cell.data_type for cell in cells if cell.value is not None} == {"s"}
    shown = ["" if cell.value is None else cell.value for cell in cells]
    # The library that reads the workbook here does not support this escape of Excel.
    assert [text.replace("_x005F_", "_") for text in shown] == TRICKY
    assert not any(cell.hyperlink for cell in cells)
    frame = pd.DataFrame({"=1": [1], "<r>b</r>": [2]}, index=pd.Index(["=2"], name="=3"))
    rows = list(sheet_of(write_excel(frame, path)).iter_rows())
    assert [cell.value for cell in rows[0]] == ["=3", "=1", "<r>b</r>"]
    assert rows[1][0].value == "=2"
    assert {cell.data_type for cell in rows[0]} == {"s"} == {rows[1][0].data_type}


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_people_are_written_completely(tmp_path: Path, client: Client, backend: Any) -> None:
    """Every value of a search is on the sheet: numbers and dates typed, lists as text."""
    people = of.search_people(limit=None, client=client, dtype_backend=backend).head(30)
    sheet = sheet_of(people.outreach.to_excel(tmp_path / "people.xlsx"))
    rows = list(sheet.iter_rows(values_only=True))
    written = pd.DataFrame(rows[1:], columns=rows[0], dtype=object)
    assert list(written) == list(people)
    plain = people.outreach.unlist()
    for name in people:
        for told, cell in zip(written[name], plain[name], strict=True):
            if pd.isna(cell):
                assert pd.isna(told), name
            elif isinstance(cell, str):
                assert told.replace("_x005F_", "_") == cell.replace("\r", ""), name
            else:
                assert told == cell, name


def test_times_are_in_the_given_zone(tmp_path: Path) -> None:
    """A zoned time is converted, and its cell names the zone; other times stay unchanged."""
    frame = pd.DataFrame(
        {
            "zoned": pd.to_datetime(["2026-07-01T12:00:00Z", None]),
            "plain": pd.to_datetime(["2026-07-01T12:30:00", None]),
            "date": pd.to_datetime(["2026-07-01", None]),
        }
    )
    sheet = sheet_of(write_excel(frame, tmp_path / "x.xlsx", tz="Europe/Berlin"))
    zoned, plain, date = sheet[2]
    assert zoned.value == datetime.datetime(2026, 7, 1, 14)
    assert "Europe/Berlin" in zoned.number_format
    assert plain.value == datetime.datetime(2026, 7, 1, 12, 30)
    assert date.value == datetime.datetime(2026, 7, 1)
    assert date.number_format == "yyyy-mm-dd"
    assert [cell.value for cell in sheet[3]] == [None] * 3


def objects(*values: Any) -> pd.Series:
    """Return a column of Python objects."""
    return pd.Series(values, dtype=object)


ODD_DECIMALS = [Decimal(text) for text in ("-Infinity", "NaN", "sNaN", "1E-400")]


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        (pd.to_datetime(["1899-12-31", "1900-03-01"]), ["1899-12-31", pd.Timestamp("1900-03-01")]),
        ([10**15 - 1, 2**53 + 1], [10**15 - 1, "9007199254740993"]),
        ([1.5, float("inf"), None], [1.5, "inf", None]),
        (pd.array([True, None, False], dtype="boolean"), [True, None, False]),
        (pd.Categorical(["b", None, "a"]), ["b", None, "a"]),
        (pd.cut([1, np.nan, 2], [0, 1, 2]), ["(0, 1]", None, "(1, 2]"]),
        ([Decimal("1.25"), Decimal("1.2345678901234567")], [1.25, "1.2345678901234567"]),
        ([datetime.date(2026, 1, 2), None], [datetime.datetime(2026, 1, 2), None]),
        (objects(1, "=a", None, True, {"b": 1}), ["1", "=a", None, "true", '{"b":1}']),
        (objects([1, 2], [], None), ["1; 2", "", None]),
        (pd.period_range("2026-01", periods=2, freq="M"), ["2026-01", "2026-02"]),
        (objects("half \ud800 pair"), ["half \\ud800 pair"]),
        (pd.arrays.ArrowExtensionArray(pa.array([b"ab", None])), ["b'ab'", None]),
        (pd.arrays.ArrowExtensionArray(pa.array(["=a", None], pa.string_view())), ["=a", None]),
        (ODD_DECIMALS, ["-Infinity", None, "sNaN", f"0.{'0' * 399}1"]),
        (["a\r\nb\rc", "x\x0by", "\x7f"], ["a\nb\nc", "x_x000B_y", "\x7f"]),
    ],
)
def test_values_of_any_dtype(tmp_path: Path, values: Any, cells: list[Any]) -> None:
    """A cell has the value, or text if a cell would round or cannot hold the value."""
    assert column_of(pd.DataFrame({"a": values}), tmp_path / "x.xlsx", index=False) == cells


def test_durations_and_long_cells(tmp_path: Path) -> None:
    """A duration is displayed as hours; a cell above Excel's limit is cut with a warning."""
    frame = pd.DataFrame({"t": pd.to_timedelta(["36:00:00", None])})
    cell = sheet_of(write_excel(frame, tmp_path / "x.xlsx"))["A2"]
    assert (cell.value, cell.number_format) == (datetime.timedelta(hours=36), "[h]:mm:ss")
    fits, long, wide = "x" * EXCEL_MAX_CELL, "x" * (EXCEL_MAX_CELL + 1), "😀" * 16_384
    with pytest.warns(OutreachWarning, match="2 in 'a'"):
        shown = column_of(pd.DataFrame({"a": [fits, long, wide, None]}), tmp_path / "x.xlsx")
    assert shown == [fits, fits, "😀" * 16_383, None]


def test_the_header_is_frozen_and_columns_fit(tmp_path: Path) -> None:
    """The header is frozen and filtered, lines are wrapped, and columns fit their longest line."""
    frame = pd.DataFrame(
        {
            "line": ["a" * 20, "b" * 15 + "\n" + "c" * 25],
            "number": [1, 12_345_678_901_234],
            "title of a column?": ["a", None],
            "time": pd.Timestamp("2026-03-02 10:00"),
            "min": ["a", "b"],
            "max": ["a" * 400, "b"],
        }
    )
    sheet = sheet_of(write_excel(frame, tmp_path / "x.xlsx"))
    widths = [int(sheet.column_dimensions[letter].width) for letter in "ABCDEF"]
    assert widths == [26, 19, 21, 20, 8, 60]
    assert sheet.freeze_panes == "A2"
    assert sheet.page_setup.orientation == "landscape"
    assert (sheet.page_setup.fitToWidth, sheet.page_setup.fitToHeight) == (None, 0)
    assert sheet.sheet_properties.pageSetUpPr.fitToPage
    assert sheet.auto_filter.ref == "A1:F3"
    assert sheet["A1"].font.bold
    assert [sheet[place].alignment.wrap_text or False for place in ("C2", "A3")] == [False, True]
    with zipfile.ZipFile(tmp_path / "x.xlsx") as book:
        assert b'sqref="A1:XFD3" numberStoredAsText="1"' in book.read("xl/worksheets/sheet1.xml")


@pytest.mark.parametrize(
    ("index", "wanted", "header"),
    [
        (None, None, ["a"]),
        (None, True, ["index", "a"]),
        (["x"], None, ["index", "a"]),
        (["x"], False, ["a"]),
        (pd.MultiIndex.from_tuples([(1, 2)], names=["p", None]), None, ["p", "index", "a"]),
    ],
)
def test_the_index_comes_first(tmp_path: Path, index: Any, wanted: Any, header: list[str]) -> None:
    """The index is written on request, and by default unless it is row numbers."""
    path = write_excel(pd.DataFrame({"a": [1]}, index=index), tmp_path / "x.xlsx", index=wanted)
    assert [cell.value for cell in sheet_of(path)[1]] == header


def test_frames_of_any_shape(tmp_path: Path) -> None:
    """A frame may be empty, and names may have levels, be numbers or be repeated."""

    def header(frame: pd.DataFrame) -> list[Any]:
        sheet = sheet_of(write_excel(frame, tmp_path / "x.xlsx"))
        return [cell.value for cell in sheet[1]]

    levels = pd.MultiIndex.from_tuples([("a", "b"), ("a", "")])
    assert header(pd.DataFrame({"a": []})) == ["a"]
    assert sheet_of(write_excel(pd.DataFrame(), tmp_path / "x.xlsx"))["A1"].value is None
    assert header(pd.DataFrame([[1, 2]], columns=levels)) == ["a_b", "a"]
    assert header(pd.DataFrame([[1, 2]], columns=[7, 7])) == ["7", "7_2"]


def endless(kind: pa.DataType) -> pd.DataFrame:
    """Return a frame with a time or duration that is too long for microseconds."""
    return pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(pa.array([2**60], kind))})


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (pd.DataFrame(index=range(1_048_576)), {}, "1,048,575"),
        (pd.DataFrame(columns=range(16_384)), {}, "16,384"),
        (endless(pa.duration("s")), {}, "'a' has a time"),
        (endless(pa.timestamp("s")), {}, "'a' has a time"),
        (pd.DataFrame(), {"tz": "Mars/Olympus"}, "not a time zone"),
        (pd.DataFrame(), {"tz": "../etc"}, "not a time zone"),
    ],
)
def test_frames_beyond_the_limits_of_excel_are_an_error(
    tmp_path: Path, frame: pd.DataFrame, options: Any, message: str
) -> None:
    """Too many rows or columns, endless times and unknown zones are refused; the old file stays."""
    path = tmp_path / "x.xlsx"
    path.write_bytes(b"old")
    with pytest.raises(InvalidInputError, match=message):
        write_excel(frame, path, **options)
    assert path.read_bytes() == b"old"
    assert [place.name for place in tmp_path.iterdir()] == ["x.xlsx"]


def test_a_workbook_is_valid_xml_and_names_no_author(tmp_path: Path, client: Client) -> None:
    """Every part of a workbook is valid XML, and none names the machine or its user."""
    boxes = of.mailboxes(client=client, progress=False)
    with zipfile.ZipFile(boxes.outreach.to_excel(tmp_path / "x.xlsx")) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    for content in parts.values():
        ET.fromstring(content)  # noqa: S314 - our own file
    assert ET.fromstring(parts["docProps/core.xml"]).findtext("{*}creator") in (None, "")  # noqa: S314


def test_report_has_a_sheet_for_each_status(tmp_path: Path) -> None:
    """Every row is on the sheet of its status; summary and notes are sheets too."""
    frame = pd.DataFrame({"email": ["a@x.example", "=b@x.example", "c@x.example"]})
    rows = pd.DataFrame({"index": range(3), "status": ["added", "recently_contacted", "invalid"]})
    report = SubmissionReport(
        frame, rows, sequence_id="s", notes=["=note"], error=OutreachError("broken")
    )
    path = report.to_excel(tmp_path / "report.xlsx")
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["summary", *report.rows["status"], "notes"]
    emails = [book[name]["A2"].value for name in report.rows["status"]]
    assert emails == frame["email"].tolist()
    assert next(iter(book["summary"].values)) == ("status", "rows", "earlier_run")
    assert [cell.value for cell in book["notes"]["A"]] == ["note", "=note", "broken"]


def test_the_names_of_a_report_s_sheets(tmp_path: Path) -> None:
    """Long, equal and reserved names of sheets stay distinct, and no row is lost."""
    start = "in_a_list_whose_name_is_very_long"
    odd = ["summary", "Summary", "notes", "history", "a/b:[c]?*\\", f"{start}_1", f"{start}_2"]
    odd += [f"{'x' * 30}'{'y' * 5}", "would_send"]
    status = ["added", "rejected", "added", *odd]
    frame = pd.DataFrame({"email": [f"{row}@x.example" for row in range(len(status))]})
    rows = pd.DataFrame({"index": frame.index, "status": status})
    report = SubmissionReport(frame, rows, sequence_id="s", notes=["note"])
    book = openpyxl.load_workbook(report.to_excel(tmp_path / "x.xlsx"))
    names = book.sheetnames
    assert names[:3] == ["summary", "added", "rejected"]
    assert names[-1] == "notes"
    assert "in_a_list_whose_name_is_very_ 2" in names
    assert len({name.lower() for name in names}) == len(names) == len(set(status)) + 2
    assert max(map(len, names)) == 31
    sheets = [list(book[name].values) for name in names[1:-1]]
    header = ("email", "status", "error_code", "earlier_run", "detail")
    assert {sheet[0] for sheet in sheets} == {header}
    written = {email: one for sheet in sheets for email, one, *_ in sheet[1:]}
    assert written == dict(zip(frame["email"], status, strict=True))


def test_report_keeps_custom_labels(tmp_path: Path) -> None:
    """Labels of the input come first on each sheet; default row numbers are not written."""
    frame = pd.DataFrame({"email": ["a@x.example", "b@x.example"]}, index=["k", "l"])
    rows = pd.DataFrame({"index": ["k", "l"], "status": ["added", "invalid"]})
    report = SubmissionReport(frame, rows, sequence_id="s")
    assert sheet_of(report.to_excel(tmp_path / "x.xlsx"), "invalid")["A2"].value == "l"
    numbered = SubmissionReport(frame.reset_index(drop=True), rows, sequence_id="s")
    assert sheet_of(numbered.to_excel(tmp_path / "x.xlsx"), "invalid")["A1"].value == "email"


@pytest.mark.parametrize("excel", [False, True])
def test_report_files_are_for_excel_where_asked(tmp_path: Path, excel: bool) -> None:
    """report.to_csv(excel=True) begins each file with a byte order mark."""
    frame = pd.DataFrame({"email": ["ü@x.example"]})
    rows = pd.DataFrame({"index": [0], "status": ["added"]})
    folder = SubmissionReport(frame, rows, sequence_id="s").to_csv(tmp_path, excel=excel)
    for kind in statuses.KINDS:
        assert (folder / f"{kind}.csv").read_bytes().startswith(b"\xef\xbb\xbf") == excel
