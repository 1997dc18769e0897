"""Excel workbooks: ours are read with their dtypes, others with the values of their cells."""

from __future__ import annotations

import contextlib
import datetime
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.utils.datetime import CALENDAR_MAC_1904

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.files.read import read_as_text, read_prospects
from tests.examples import share_of_examples


def book(path: Path, *rows: list[Any], name: str = "People") -> Path:
    """Write a workbook with another program."""
    made = openpyxl.Workbook()
    made.active.title = name
    for row in rows:
        made.active.append(row)
    made.save(path)
    return path


def changed(path: Path, change: Callable[[Any], object]) -> Path:
    """Change a workbook with another program."""
    made = openpyxl.load_workbook(path)
    change(made)
    made.save(path)
    return path


def rewritten(path: Path, part: str, change: Callable[[bytes], bytes]) -> Path:
    """Change the bytes of one part of a workbook."""
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in parts.items():
            new.writestr(name, change(content) if name == part else content)
    return path


def warned(path: Path, **options: Any) -> tuple[pd.DataFrame, str]:
    """Read a workbook, and return the frame and the text of all warnings."""
    with pytest.warns(OutreachWarning) as seen:
        frame = read_prospects(path, **options)
    return frame, "\n".join(str(one.message) for one in seen)


OURS: dict[str, Any] = {
    "number": [3, None, 1],
    "plain": pd.to_datetime(["2026-07-01T12:30:00", None, "2026-07-01T00:00:00"]),
    "took": pd.to_timedelta(["36:00:00", None, "0:00:01"]),
    "long": [1, 2, 10**17],
    "float": [1.5, None, 2.0],
    "flag": pd.array([True, None, False], "boolean"),
    "text": ["00123", None, "1e5"],
    "lists": pd.array([["a", "b"], [], ["c"]], pd.ArrowDtype(pa.list_(pa.string()))),
    "zoned": pd.to_datetime(["2026-07-01T12:00:00Z", None, "2026-01-01T00:00:00Z"], utc=True),
    "category": pd.Categorical(["b", None, "a"]),
}
READ: dict[str, tuple[str, list[Any]]] = {
    "key": ("str", ["x", "y", "z"]),
    "number": ("Int64", [3, pd.NA, 1]),
    "plain": ("datetime64[us]", ["2026-07-01T12:30", None, "2026-07-01T00:00"]),
    "took": ("timedelta64[us]", [pd.Timedelta("36h"), pd.NaT, pd.Timedelta("1s")]),
    "long": ("str", ["1", "2", "100000000000000000"]),
    "float": ("Float64", [1.5, pd.NA, 2.0]),
    "flag": ("boolean", [True, pd.NA, False]),
    "text": ("str", ["00123", None, "1e5"]),
    "lists": ("str", ["a; b", None, "c"]),
    "zoned": ("datetime64[us]", ["2026-07-01T14:00", None, "2026-01-01T01:00"]),
    "category": ("str", ["b", None, "a"]),
}


def test_a_workbook_comes_back_as_its_cells(tmp_path: Path) -> None:
    """Other columns have the type of their cells, and an index is a column."""
    frame = pd.DataFrame(OURS, index=pd.Index(["x", "y", "z"], name="key"))
    read = read_prospects(frame.outreach.to_excel(tmp_path / "x.xlsx", tz="Europe/Berlin"))
    assert list(read) == list(READ)
    for name, (dtype, values) in READ.items():
        expected = pd.Series(values, dtype=dtype, name=name)
        pd.testing.assert_series_equal(read[name], expected, obj=name)


def test_documented_columns_have_their_dtypes(tmp_path: Path, people: pd.DataFrame) -> None:
    """A search keeps its dtypes in any zone; only records in lists become text."""
    people = people.head(4)
    records = ["experiences", "educations", "languages"]
    for zone in ("UTC", "America/New_York"):
        again = read_prospects(people.outreach.to_excel(tmp_path / "x.xlsx", tz=zone))
        same = [name for name in people if name not in [*records, "about"]]
        pd.testing.assert_frame_equal(again[same], people[same], check_exact=False)
        assert list(again) == list(people)
        assert set(again[records].dtypes.astype(str)) == {"str"}
    contacts = pd.DataFrame({"id": ["1"], "last_contacted_at": pd.to_datetime(["2026-07-01T12Z"])})
    again = read_prospects(contacts.outreach.to_excel(tmp_path / "x.xlsx", tz="Asia/Tokyo"))
    assert again["last_contacted_at"][0] == contacts["last_contacted_at"][0]


_TEXT = st.characters(codec="utf-8", exclude_characters="\r\ufffe\uffff", exclude_categories=["Cc"])


@given(st.lists(st.text(_TEXT, min_size=1), min_size=1))
@share_of_examples(0.5)
def test_any_text_comes_back(tmp_path: Path, texts: list[str]) -> None:
    """Texts are restored."""
    frame = pd.DataFrame({"text": pd.Series(texts, dtype="str")})
    path = frame.outreach.to_excel(tmp_path / "x.xlsx")
    pd.testing.assert_frame_equal(read_prospects(path), frame)


def test_foreign_cells_have_the_dtype_of_their_values(tmp_path: Path) -> None:
    """Whole numbers become integers, dates become dates, and mixed columns become text."""
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5)
    path = book(
        tmp_path / "x.xlsx",
        [], [],
        ["id", "n", "price", "when", "day", "at", "flag", "code", "mixed", 2026,
         "company_followers", None],
        [7, 1, 1.5, moment, datetime.date(2026, 1, 2), datetime.time(3, 4), True, "00123", 5, 1, 3],
        [],
        [8, None, 2, datetime.date(2026, 1, 3), None, None, False, "1e5", "a", 2, None],
    )  # fmt: skip
    frame = read_prospects(path)
    assert frame.dtypes.astype(str).to_dict() == {
        "id": "str", "n": "Int64", "price": "Float64", "when": "datetime64[us]",
        "day": "datetime64[us]", "at": "str", "flag": "boolean", "code": "str",
        "mixed": "str", "2026": "Int64", "company_followers": "Int64",
    }  # fmt: skip
    assert frame["id"].fillna("").tolist() == ["7", "", "8"]  # a row without cells is a row
    assert frame["mixed"].dropna().tolist() == ["5", "a"]
    assert frame["when"].tolist() == [pd.Timestamp(moment), pd.NaT, pd.Timestamp("2026-01-03")]
    text = read_as_text(path)
    assert set(text.dtypes.astype(str)) == {"str"}
    assert text.iloc[0].tolist() == [
        "7", "1", "1.5", "2026-01-02 03:04:05", "2026-01-02", "03:04:00", "TRUE", "00123", "5",
        "1", "3",
    ]  # fmt: skip
    old = changed(path, lambda made: setattr(made, "epoch", CALENDAR_MAC_1904))
    pd.testing.assert_frame_equal(read_prospects(old), frame)


def test_cells_without_their_value_are_a_warning(tmp_path: Path) -> None:
    """A warning counts errors, formulas without a value, rounded ids and hidden rows."""
    path = book(
        tmp_path / "x.xlsx",
        ["a", "b", "id", "c"],
        ["#N/A", "=1+1", 1234567890123456789, 1],
        ["#REF!", "=A1", 2, 2],
        ["#N/A", 3, 3, 3],
    )

    def change(made: Any) -> None:
        made.active.row_dimensions[3].hidden = True

    frame, said = warned(changed(path, change))
    for words in (
        "2 #N/A, 1 #REF!",
        "stored value were read as missing: 2 (first in B2)",
        "1 in 'id'", "Hidden or filtered rows were read too: 1.",
    ):  # fmt: skip
        assert words in said
    assert frame["a"].isna().all()
    assert frame["b"].tolist() == [pd.NA, pd.NA, 3]
    assert frame["id"].str.fullmatch("1234567890123[0-9]{3}000|2|3").all()
    # A formula with an empty text as value has a value.
    old, new = b'"B2"><f>1+1</f><v />', b'"B2" t="str"><f>1+1</f><v></v>'
    path = rewritten(path, "xl/worksheets/sheet1.xml", lambda xml: xml.replace(old, new))
    assert "missing: 1 (first in B3)" in warned(path)[1]


def test_merged_cells_and_codes_are_a_warning(tmp_path: Path) -> None:
    """A warning counts merged cells, and numbers that are shown with leading zeros."""
    path = book(tmp_path / "x.xlsx", ["zip", "city"], [2494, "x"], [12345, None], [7, "y"])

    def change(made: Any) -> None:
        for cell in made.active["A"]:
            cell.number_format = "00000"
        made.active.merge_cells("B2:B3")

    frame, said = warned(changed(path, change))
    assert "leading zeros were read without these zeros: 2 (first in A2)" in said
    assert "Merged cells have their value only in the first cell: 1 (first in B2:B3)" in said
    assert frame["zip"].tolist() == [2494, 12345, 7]


def test_rows_deleted_by_another_program_are_not_read(tmp_path: Path) -> None:
    """A filter's unchanged range and blank rows do not add rows."""
    frame = pd.DataFrame({"a": ["x", "y", None], "n": pd.array([1, 2, None], "Int64")})
    path = frame.outreach.to_excel(tmp_path / "x.xlsx")
    pd.testing.assert_frame_equal(read_prospects(path), frame.iloc[:2])
    path = frame.iloc[:2].outreach.to_excel(path)
    again = read_prospects(changed(path, lambda made: made.active.delete_rows(2)))
    assert again["a"].tolist() == ["y"]


def test_a_workbook_and_other_files_of_the_same_people_have_no_change(
    tmp_path: Path, people: pd.DataFrame
) -> None:
    """A workbook has no change to a workbook of the same people, and fits no other file."""
    people = people.head(4)
    workbook = people.outreach.to_excel(tmp_path / "x.xlsx")
    second = people.outreach.to_excel(tmp_path / "y.xlsx")
    assert not len(of.compare_people(workbook, second, progress=False).changed)
    for sides in ((workbook, people), (people.outreach.to_csv(tmp_path / "x.csv"), workbook)):
        with pytest.raises(InvalidInputError, match="only be compared with another workbook"):
            of.compare_people(*sides, progress=False)


def test_sheets_are_chosen_by_name_or_position(tmp_path: Path) -> None:
    """By default the first visible sheet is read, with a warning that names the others."""
    path = book(tmp_path / "x.xlsx", ["a"], [1], name="Intern")

    def change(made: Any) -> None:
        made.active.sheet_state = "hidden"
        for name in ("A & <B>", "Leads", "Empty"):
            made.create_sheet(name)
        made["A & <B>"].append([name := "b"])
        made["A & <B>"].append([2])
        made["Leads"].append(["c"])
        made.active = 2

    changed(path, change)
    frame, said = warned(path)
    assert list(frame) == ["b"]
    assert "has 4 sheets; only 'A & <B>' was read." in said
    assert "'Intern' (hidden), 'A & <B>', 'Leads', 'Empty'" in said
    assert list(read_prospects(path, sheet_name="Intern")) == ["a"]
    assert list(read_prospects(path, sheet_name=2)) == ["c"]
    assert list(read_prospects(path, sheet_name=-2)) == ["c"]
    for wrong in ("leads", 4, True, ["Leads"]):
        with pytest.raises(InvalidInputError, match="Pass sheet_name= as one of: 'Intern'"):
            read_prospects(path, sheet_name=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="'Empty', is empty"):
        read_prospects(path, sheet_name="Empty")


@pytest.mark.parametrize(
    ("header", "message"),
    [(["a", "a"], "two columns named 'a' in row 1"), ([None, None], "without a name in row 2"),
     (["Export of May"], "seems to be row 2")],
)  # fmt: skip
def test_a_header_without_names_is_an_error(
    tmp_path: Path, header: list[Any], message: str
) -> None:
    """Duplicate column names, or a line above the header, are an error with the row's number."""
    path = book(tmp_path / "x.xlsx", header, [1, 2, 3], [4, 5, 6])
    if header == [None, None]:
        path = book(path, [], [None, None, "c"], [1, 2, 3])
    with pytest.raises(InvalidInputError, match=message):
        read_prospects(path)
    book(path, [None, "b"], [1, 2])
    frame, said = warned(path)
    assert list(frame) == ["", "b"]
    assert "no name in row 1 (the header)" in said


def test_invalid_values_of_a_documented_column_are_a_warning(tmp_path: Path) -> None:
    """A column stays text; the warning names the column and its first misfit, but no address."""
    path = book(tmp_path / "x.xlsx", ["company_followers", "founded"], [], [5], ["many"])
    frame, said = warned(path)
    assert "`company_followers` stays text: row 4 has 'many'." in said
    assert frame["company_followers"].fillna("").tolist() == ["", "5", "many"]
    book(path, ["company_followers"], ["ada@x.example"])
    assert "`company_followers` stays text: row 2. Correct" in warned(path)[1]


def test_an_invalid_workbook_is_an_error(tmp_path: Path) -> None:
    """Empty, damaged, encrypted, old and foreign files, zip bombs and wrong names are an error."""
    path = tmp_path / "x.xlsx"
    good = book(tmp_path / "good.xlsx", ["a"], *([number] for number in range(60))).read_bytes()
    old = bytes.fromhex("d0cf11e0a1b11ae1")
    for content, message in (
        (b"", "is damaged or not"),
        (b"a,b\n1,2\n", "give a CSV file the ending .csv"),
        (old + "EncryptedPackage".encode("utf-16-le"), "is encrypted"),
        (old, "save it as .xlsx in Excel"),
        (b"PK\x03\x04 and so on", "is damaged"),
        *((good[:cut], "is damaged") for cut in range(100, len(good), 1500)),
        *((good[:at] + b"\xff" * 40 + good[at + 40 :], None) for at in range(0, len(good), 400)),
    ):
        path.write_bytes(content)
        if message is None:
            with contextlib.suppress(InvalidInputError):  # Some changes have no effect.
                read_prospects(path)
            continue
        with pytest.raises(InvalidInputError, match=message):
            read_prospects(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("xl/worksheets/sheet1.xml", b" " * (8 << 20))
    with pytest.raises(InvalidInputError, match="would grow to 8,388,608"):
        read_prospects(path)
    book(path, ["a"], [1])
    for column in (48, 16_384):
        changed(path, lambda made, column=column: made.active.cell(1_048_576, column, "stray"))
        with pytest.raises(InvalidInputError, match="more than 20,000,000 cells"):
            read_prospects(path)
    (tmp_path / "x.xlsm").write_bytes(good)
    assert len(read_prospects(tmp_path / "x.xlsm")) == 60


def test_options_of_other_formats_are_errors(tmp_path: Path) -> None:
    """encoding= is an error for a workbook, and sheet_name= for any other file."""
    path = book(tmp_path / "x.xlsx", ["a"])
    with pytest.raises(InvalidInputError, match="is a workbook"):
        read_prospects(path, encoding="utf-8")
    for name in ("x.csv", "x.parquet"):
        with pytest.raises(InvalidInputError, match="sheet_name='a' is only for Excel workbooks"):
            read_prospects(tmp_path / name, sheet_name="a")


def test_sheets_are_named_after_their_rows(
    tmp_path: Path, people: pd.DataFrame, client: Client
) -> None:
    """A sheet is named after its table in `of.columns`, or else after the file."""
    path, people = tmp_path / "Q3 [leads].xlsx", people.head(2)
    for frame, name in (
        (people, "people"), (people.outreach.brief(), "people"),
        (people.outreach.companies(), "companies"), (people.outreach.headcount(), "headcount"),
        (of.mailboxes(client=client, progress=False), "mailboxes"),
        (pd.DataFrame({"a": [1]}), "Q3 _leads_"),
    ):  # fmt: skip
        assert openpyxl.load_workbook(frame.outreach.to_excel(path)).sheetnames == [name]
    for stem, name in (
        ("😀" * 16, "😀" * 15),
        ("a\x01b", "ab"),
        ("\udcff", "Sheet"),
        ("'", "Sheet"),
    ):
        path = pd.DataFrame({"a": [1]}).outreach.to_excel(tmp_path / f"{stem}.xlsx")
        assert openpyxl.load_workbook(path).sheetnames == [name]
        assert read_prospects(path)["a"].tolist() == [1]


_FAR = "<row r='1048576'><c r='XFD1048576'><v>1</v></c></row>"
_HEAD = "<row r='1'><c r='A1' t='str'><v>a</v></c><c r='B1' t='str'><v>b</v></c></row>"
# The rows of a sheet's XML, and a word of the error.
HOSTILE = {
    "a far cell": (_HEAD + _FAR, "cells, blank cells included"),
    "the far row first": (_FAR + _HEAD, "cells, blank cells included"),
    "a row beyond": (_HEAD + "<row r='9999999999999'><c><v>1</v></c></row>", "blank cells"),
    "rows out of order": ("<row r='2'><c r='A2'><v>1</v></c></row>" + _HEAD, "not in order"),
    "cells out of order": (
        _HEAD + "<row r='2'><c r='B2'><v>1</v></c><c r='A2'><v>1</v></c></row>",
        "not in order",
    ),
    "no number": (_HEAD + "<row r='2'><c r='A2'><v>one</v></c></row>", "is damaged"),
    "no such text": (_HEAD + "<row r='2'><c r='A2' t='s'><v>7</v></c></row>", "is damaged"),
    "an entity": (_HEAD + "<row r='2'>&lol;</row>", "is damaged"),
    "cut off": (_HEAD + "<row>", "is damaged"),
}


@pytest.mark.parametrize(("rows", "words"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_sheet_is_an_error(tmp_path: Path, rows: str, words: str) -> None:
    """A sheet that would fill the memory, lose cells or is damaged is refused."""
    path = with_rows(book(tmp_path / "x.xlsx", ["a"]), rows)
    with pytest.raises(InvalidInputError, match=words):
        read_prospects(path)


def test_a_workbook_without_styles_is_read(tmp_path: Path) -> None:
    """A workbook needs no part with styles."""
    path = book(tmp_path / "x.xlsx", ["a"], ["x"])
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist() if name != "xl/styles.xml"}
    with zipfile.ZipFile(path, "w") as new:
        for name, content in parts.items():
            new.writestr(name, content)
    assert read_prospects(path)["a"].tolist() == ["x"]


def test_cells_without_places_are_read(tmp_path: Path) -> None:
    """Rows and cells may lack their place, and the declared size may be wrong."""
    cell = "<c t='str'><v>{}</v></c>"
    rows = "".join(f"<row>{cell.format(number)}{cell.format('x')}</row>" for number in range(999))
    path = with_rows(book(tmp_path / "x.xlsx", ["a"]), rows, size="A1:XFD1048576")
    assert read_prospects(path)["0"].tolist() == [str(number) for number in range(1, 999)]
    big = f"<row><c><v>1e999</v></c></row><row><c><v>{'9' * 400}</v></c></row>"
    path = with_rows(book(tmp_path / "x.xlsx", ["a"]), f"<row>{cell.format('a')}</row>{big}")
    assert warned(path)[0]["a"].tolist() == ["Infinity", "9" * 400]


def with_rows(path: Path, rows: str, size: str = "A1") -> Path:
    """Replace the rows of a workbook's sheet."""

    def change(xml: bytes) -> bytes:
        start, end = xml.index(b"<sheetData"), xml.index(b"</sheetData>")
        head = xml[:start].replace(b'"A1"', f'"{size}"'.encode())
        return head + f"<sheetData>{rows}".encode() + xml[end:]

    return rewritten(path, "xl/worksheets/sheet1.xml", change)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe"])
def test_times_of_a_year_are_restored(tmp_path: Path, zone: str) -> None:
    """All times of a year are restored, but of a repeated hour only the first; text may be ISO."""
    hours = pd.date_range("2026-01-01", "2027-01-01", freq="30min", tz="UTC").to_series()
    clock = hours.dt.tz_convert(zone).dt.tz_localize(None)
    is_changed = (clock.diff() != pd.Timedelta("30min")).rolling(9, center=True).max() == 1
    hours = hours[is_changed | (hours.dt.hour == 7)]
    is_second = hours.dt.tz_convert(zone).dt.tz_localize(None).duplicated().to_numpy()
    frame = pd.DataFrame({"id": "1", "last_contacted_at": hours}).reset_index(drop=True)
    path = frame.outreach.to_excel(tmp_path / "x.xlsx", tz=zone)
    again = read_prospects(path)["last_contacted_at"]
    assert (again == frame["last_contacted_at"]).tolist() == (~is_second).tolist()
    book(path, ["last_contacted_at"], ["2026-03-01T12:00:00Z"])
    assert read_prospects(path).iloc[0, 0] == pd.Timestamp("2026-03-01T12", tz="UTC")


def test_excels_form_of_characters_is_decoded(tmp_path: Path) -> None:
    """Characters that another program wrote as `_xHHHH_` are decoded in headers and cells."""
    formatted = CellRichText("Head", TextBlock(InlineFont(b=True), " of_x0020_IT"))
    path = book(
        tmp_path / "x.xlsx",
        ["Job_x0020_Title", "email"],
        ["Head of Sales_x000D_\nEMEA", "ada@x.example_x000D_"],
        ["_xD83D__xDE00_ _xD83D_", "bo@x.example"],
        ["_x005F_x000D_ x005F_", "cy@x.example"],
        [formatted, "di@x.example"],
    )
    frame = read_prospects(path)
    assert frame["Job Title"].tolist() == [
        *["Head of Sales\r\nEMEA", "\N{GRINNING FACE} \ufffd", "_x000D_ x005F_", "Head of IT"]
    ]
    assert frame["Job Title"][0].splitlines() == ["Head of Sales", "EMEA"]
    ada = pd.DataFrame({"email": ["ada@x.example"]})
    assert ada.outreach.without(path).empty


def test_our_own_control_characters_come_back(tmp_path: Path) -> None:
    """A workbook of this package has the same texts again, escapes included."""
    own = pd.DataFrame({"a_x000D_": ["a\x0bb", "_x000D_", "x005F_", "_x005F_", "\0", "_x_ x1_"]})
    own.outreach.to_excel(tmp_path / "x.xlsx")
    pd.testing.assert_frame_equal(read_prospects(tmp_path / "x.xlsx"), own)
