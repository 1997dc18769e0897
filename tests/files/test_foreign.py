"""Files of other programs: separators, headers, cells that do not fit, and Excel's rewriting."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.files.read import read_as_text, read_prospects
from outreach_frames.sandbox import Sandbox
from tests.files.frames import metadata_of

pytestmark = pytest.mark.long


def written(path: Path, text: str) -> Path:
    """Write a text file as it is."""
    path.write_bytes(text.encode())
    return path


# The text of a file, the column that is converted, its dtype and its cells.
CONVERTED = {
    "whole floats": ("email,company_founded_year\na@x.example,2012.0\n", "Int64", [2012]),
    "quoted empty cells": (
        '"email","created_at"\n"a@x.example",""\n',
        "datetime64[us, UTC]",
        [pd.NaT],
    ),
    "empty text": ('"email","name"\n"a@x.example",""\n', "str", [""]),
    "booleans": (
        "email,company_is_b2b\na,Yes\nb,TRUE\nc,true\nd,no\ne,\n",
        "boolean",
        [True, True, True, False, pd.NA],
    ),
    "times of Excel": (
        "id,last_contacted_at\na,2026-01-02 10:00:00\nb,2026-01-02\nc,2026-01-02T11:00:00+01:00\n",
        "datetime64[us, UTC]",
        list(pd.to_datetime(["2026-01-02T10Z", "2026-01-02T00Z", "2026-01-02T10Z"])),
    ),
    "nanoseconds": (
        "id,last_contacted_at\na,2026-01-02 10:00:00.123456789\nb,2026-01-02T10:00:00.1234567Z\n"
        "c,2026-01-02T11:00:00.12345678+01:00\nd,2026-01-02\n",
        "datetime64[us, UTC]",
        list(
            pd.to_datetime(
                [*["2026-01-02T10:00:00.123456Z"] * 3, "2026-01-02T00Z"], format="ISO8601"
            )
        ),
    ),
    "blanks": ("email,company_followers\na, 12 \n", "Int64", [12]),
    "missing": ("id,company_followers\r\n1,12\r\n2,\r\n", "Int64", [12, pd.NA]),
    "undocumented": ("id,zip\r\n1,00123\r\n2,NA\r\n3,\r\n", "str", ["00123", "NA", None]),
}


@pytest.mark.parametrize(("text", "dtype", "cells"), CONVERTED.values(), ids=CONVERTED)
def test_spellings_of_other_programs_are_converted(
    tmp_path: Path, text: str, dtype: str, cells: list[object]
) -> None:
    """A documented column has its dtype, however a spreadsheet spells the values."""
    column = read_prospects(written(tmp_path / "x.csv", text)).iloc[:, 1]
    pd.testing.assert_series_equal(column, pd.Series(cells, dtype=dtype, name=column.name))


# The text of a file, and the warning about its second column.
MISFITS = {
    "time": ("email,last_contacted_at\nada,3/4/2026 10:00\n", "line 2 has '3/4/2026 10:00'"),
    "line of a record": (
        'name,company_followers\n"Ada\nBerg",1\n"Bo",2\n\n"Cem",many\nDi,3\nEd,none\n',
        "line 6 has 'many'",
    ),
    "address": ("name,company_followers\nAda,1\nBo,bo@x.example\n", "line 3. "),
    "URL": ("name,company_followers\nAda,profnet.example/in/ada\n", "line 2. "),
    "list": ('name,languages\nAda,"English, German"\n', "line 2 has 'English, German'"),
    "unknown member": (
        'name,experiences\nAda,"[{""title"":""x""}]"\nBo,"[{""shoe"":3}]"\n',
        "line 3 has '[{\"shoe\":3}]'",
    ),
    "not JSON": ("name,experiences\nAda,5\n", "line 2 has '5'"),
    "deep JSON": (f"name,experiences\nAda,{'[' * 5_000}\n", "line 2 has '[["),
}


@pytest.mark.parametrize(("text", "words"), MISFITS.values(), ids=MISFITS)
def test_a_column_with_a_misfit_stays_text(tmp_path: Path, text: str, words: str) -> None:
    """One warning names the line and the cell, unless it holds an address or a URL."""
    path = written(tmp_path / "x.csv", text)
    with pytest.warns(OutreachWarning) as seen:
        frame = read_prospects(path)
    name = frame.columns[1]
    assert len(seen) == 1
    assert f"`{name}` stays text: {words}" in str(seen[0].message)
    assert ("df.outreach.to_csv" in str(seen[0].message)) == (name in {"languages", "experiences"})
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    assert frame[name].tolist() == [row[1] for row in rows[1:]]


def test_ids_that_excel_rounded_are_counted(tmp_path: Path) -> None:
    """Rounded numbers are counted in columns of ids and of digits, and stay text."""
    path = written(
        tmp_path / "x.csv",
        "id,crm_id,phone,note\n4.91702E+11,x,4.91702E+11,x\n7,1.2E+15,,1.2E+15\n8,1.3E+15,5,\n",
    )
    with pytest.warns(OutreachWarning, match=r"1 in 'id', 2 in 'crm_id', 1 in 'phone'\. "):
        assert read_prospects(path)["id"].tolist() == ["4.91702E+11", "7", "8"]


# The text of a file, and the names of its columns or words of the error.
SEPARATORS = {
    "one column": ("email\na@x.example\n", ["email"]),
    "one column of sentences": ("note\nHello; you\n", ["note"]),
    "decimal commas": (
        "Firma;E-Mail;Umsatz (Mio, EUR)\nX Ltd;a@x.example;1,5\nY Inc;b@x.example;2,5\n",
        ["Firma", "E-Mail", "Umsatz (Mio, EUR)"],
    ),
    "a comma in the header": ("Name, Vorname;Email\nAda;a@x.example\n", ["Name, Vorname", "Email"]),
    "tabs": ("Name\tE-Mail\nBerg, Ada\ta@x.example\n", ["Name", "E-Mail"]),
    "bars": ('Name|"E-Mail"\n"Berg|Ada"|a@x.example\n', ["Name", "E-Mail"]),
    "two of equal columns": ("Name, Vorname;E-Mail\nBerg, Ada;a@x.example\n", "by ',' or by ';'"),
    "more columns in most rows": (
        "a;b;c,d\nx;y;1,5\nx;y;2,5\nx,y\n", "by ';' or by ','"
    ),
    "only a header": ("a;b,c,d", ["a;b", "c", "d"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SEPARATORS.values(), ids=SEPARATORS)
def test_the_separator_fits_the_first_rows(
    tmp_path: Path, text: str, expected: list[str] | str
) -> None:
    """The separator is the one that splits the first rows alike; two possible ones are an error."""
    path = written(tmp_path / "x.csv", text)
    if isinstance(expected, list):
        assert list(read_prospects(path)) == expected
        return
    with pytest.raises(InvalidInputError, match=rf"{expected}.* as sep="):
        read_prospects(path)
    assert read_prospects(path, sep=",").columns[0] == text.partition(",")[0]


@given(
    st.lists(st.lists(st.text("ab 1,;\t|", max_size=4), min_size=3, max_size=3), min_size=2),
    st.sampled_from(",;\t|"),
)
@example([["a,b", "c", "d"], ["1,5", "x", "y"]], ";")
def test_a_named_separator_is_used(tmp_path: Path, rows: list[list[str]], sep: str) -> None:
    """With sep=, a file is read with that separator, whatever its cells hold."""
    text = io.StringIO()
    csv.writer(text, delimiter=sep, lineterminator="\n").writerows([["u", "v", "w"], *rows])
    frame = read_prospects(written(tmp_path / "x.csv", text.getvalue()), sep=sep)  # type: ignore[arg-type]
    assert frame.fillna("").to_numpy().tolist() == rows


def test_an_unknown_separator_is_an_error(tmp_path: Path) -> None:
    """Other separators are an error, and so is sep= for a workbook."""
    with pytest.raises(InvalidInputError, match="pass one of"):
        read_prospects(written(tmp_path / "x.csv", "a\n"), sep="x")  # type: ignore[arg-type]
    pd.DataFrame({"a": [1]}).to_excel(tmp_path / "x.xlsx")
    with pytest.raises(InvalidInputError, match="is a workbook"):
        read_prospects(tmp_path / "x.xlsx", sep=",")


def as_workbook(path: Path) -> Path:
    """Copy a CSV file with commas to a workbook, each cell as text."""
    book = openpyxl.Workbook()
    for row in csv.reader(io.StringIO(path.read_text())):
        book.active.append([cell or None for cell in row])
    book.save(path.with_suffix(".xlsx"))
    return path.with_suffix(".xlsx")


HEADERS = {
    "an address": "ada@x.example\nbo@x.example\n",
    "a name in front": "Name,Ada <ada@x.example>\nBo,Bo <bo@x.example>\n",
    "a link": "mailto:ada@x.example\nmailto:bo@x.example\n",
    "words behind": "ada@x.example (work)\nbo@x.example (work)\n",
    "words in front": '"Berg, Ada ada@x.example"\nbo@x.example\n',
    "a label": "Email: ada@x.example\nEmail: bo@x.example\n",
    "several": '"ada@x.example, bo@x.example"\n"cy@x.example, di@x.example"\n',
    "a URL and words": "profnet.example/in/ada (me)\nx\n",
    "a URL": "id,https://profnet.example/in/ada\n1,x\n",
    "a full-width sign": "Name,ada\uff20x.example\nBo,bo\uff20x.example\n",
    "a URL without scheme": "Ada,profnet.example/in/ada\nBo,x\n",
    "a title": "Export of May\n\nName,Email,Phone\nAda,a@x.example,1\n",
    "a title and empty cells": "Export,,\nName,Email,Phone\nAda,a@x.example,1\n",
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_missing_header_is_an_error(tmp_path: Path, case: str) -> None:
    """A person or a title in place of the header is an error, for CSV, workbooks and without."""
    csv_file = written(tmp_path / "x.csv", HEADERS[case])
    people = pd.DataFrame({"email": ["ada@x.example"]})
    words = "header, which seems to be (line|row) [23]" if "title" in case else "has no header"
    for path in (csv_file, as_workbook(csv_file)):
        for read in (read_prospects, read_as_text, people.outreach.without):
            with pytest.raises(InvalidInputError, match=words) as caught:
                read(path)
            assert "ada@" not in str(caught.value)


def databases(folder: Path) -> bytes:
    """Return the content of an SQLite database."""
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        connection.execute("create table people (email text)")
        connection.commit()
    return (folder / "x.db").read_bytes()


def parquet() -> bytes:
    """Return the content of a Parquet file."""
    file = io.BytesIO()
    pd.DataFrame({"email": ["ada@x.example"]}).to_parquet(file)
    return file.getvalue()


# The content of a file named .csv, and the words of its error.
OTHER_KINDS: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "SQLite": (databases, "is a SQLite database"),
    "workbook": (lambda _: b"PK\x03\x04 and so on", r"\.xlsx"),
    "PDF": (lambda _: b"%PDF-1.7\n%\xe2\xe3\n1 0 obj", "is a PDF document"),
    "Parquet": (lambda _: parquet(), "is a Parquet file.* the ending .parquet"),
    "old workbook": (
        lambda _: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        "Save it as .xlsx",
    ),
    "gzip": (lambda _: gzip.compress(b"email\nada@x.example\n"), "is compressed by gzip"),
    "zeros": (lambda _: b"email\nada@x.example\0\n", "is not text"),
    "control characters": (lambda _: b"email\n\1\2\3\x7f\n", "is not text"),
    "web page": (lambda _: b"\xef\xbb\xbf \n<!DOCTYPE html><td>Email</td>", "is a web page"),
    "part of a web page": (lambda _: b"<html><td>Email</td>", "is a web page"),
    "XML": (lambda _: b"<?xml version='1.0'?><Workbook/>", "is an XML document"),
    "JSON records": (lambda _: b'[{"email": "ada@x.example"}]', "is JSON"),
    "indented JSON": (lambda _: b'{\n "email": ["ada@x.example"]\n}', "is JSON"),
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_another_kind_of_file_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    """A file named .csv of another kind is refused by its kind, with any encoding."""
    content, words = OTHER_KINDS[kind]
    path = tmp_path / "x.csv"
    path.write_bytes(content(tmp_path))
    people = pd.DataFrame({"email": ["ada@x.example"]})
    for read in (read_prospects, people.outreach.without):
        with pytest.raises(InvalidInputError, match=words) as caught:
            read(path)
        assert "ada@" not in str(caught.value)
    with pytest.raises(InvalidInputError, match=f"{words}|is in utf-8, not in cp1252"):
        read_prospects(path, encoding="cp1252")


def test_names_like_the_beginning_of_other_kinds_stay_tables(tmp_path: Path) -> None:
    """Tables are read whose names or cells resemble markup, or have a control character."""
    path = written(tmp_path / "x.csv", "PAR1,<Email>,{a}\n1,ada@x.example,2\n")
    assert list(read_prospects(path)) == ["PAR1", "<Email>", "{a}"]
    own = pd.DataFrame({"text": ["a\0b", "\1\2\3"]})
    own.outreach.to_csv(path)
    pd.testing.assert_frame_equal(read_prospects(path), own)
    path.write_bytes("名,email\n花,ada@x.example\n".encode("utf-16-le"))
    assert read_prospects(path, encoding="utf-16-le")["email"].tolist() == ["ada@x.example"]


def test_names_with_slashes_are_a_header(tmp_path: Path) -> None:
    """Words with a slash, an at sign or an example are names; our own files have any names."""
    names = ["Company/Domain", "user@id", "@handle", "Email (e.g. name@x.example)"]
    path = written(tmp_path / "x.csv", f"{','.join(names)}\nx,y,z,a\n")
    assert list(read_prospects(path)) == names
    own = pd.DataFrame({"ada@x.example": ["1"]})
    for made in (own.outreach.to_csv(path), own.outreach.to_excel(tmp_path / "x.xlsx")):
        assert list(read_prospects(made)) == ["ada@x.example"]


def test_frames_without_a_header_are_an_error() -> None:
    """A frame whose only identifier is a column's name is an error, and so is a list."""
    people = pd.DataFrame({"email": ["ada@x.example", "bo@x.example"]})
    listed = pd.read_csv(io.StringIO("ada@x.example\nbo@x.example\n"))
    with pytest.raises(InvalidInputError, match="has no header"):
        people.outreach.without(listed, email=("email", "ada@x.example"))
    with pytest.warns(OutreachWarning, match="were not compared: Table 1, column 'ada@x.example'"):
        kept = people.outreach.without(listed.assign(email="bo@x.example"))
    assert kept["email"].tolist() == ["ada@x.example"]
    with pytest.raises(InvalidInputError, match=r"Pass a frame, such as pd\.DataFrame"):
        people.outreach.without(["ada@x.example"])  # type: ignore[arg-type]


def saved_by_excel(path: Path) -> None:
    """Rewrite a CSV file as Excel saves it: times, booleans and long digits look otherwise."""
    rows = list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))

    def shown(cell: str) -> str:
        if len(cell) > 18 and cell[10] in "T " and cell.endswith("Z"):
            return cell[:19].replace("T", " ")
        if cell in {"true", "false"}:
            return cell.upper()
        return f"{float(cell):.5E}" if cell.isdigit() and len(cell) > 11 else cell

    text = io.StringIO()
    csv.writer(text).writerows([list(map(shown, row)) for row in rows])
    path.write_bytes("\ufeff".encode() + text.getvalue().encode())


def test_exports_that_excel_saved_are_read(
    tmp_path: Path, sandbox: Sandbox, client: Client, people: pd.DataFrame
) -> None:
    """Excel's rewriting of each export has its dtypes, with the metadata file and without."""
    exports = {
        "people": people.head(20),
        "brief": people.head(20).outreach.brief(),
        "contacts": of.contacts(sandbox.contact_ids[:40], client=client, progress=False),
        "mailboxes": of.mailboxes(client=client, progress=False),
        "sequences": of.sequences(client=client, progress=False),
    }
    for name, frame in exports.items():
        path = frame.outreach.to_csv(tmp_path / f"{name}.csv")
        saved_by_excel(path)
        # Excel drops fractions of a second.
        expected = frame.assign(
            **{
                column: frame[column].dt.floor("s")
                for column in frame.columns[frame.dtypes == "datetime64[us, UTC]"]
            }
        )
        pd.testing.assert_frame_equal(read_prospects(path), expected)
        metadata_of(path).unlink()
        documented = [column for column in frame if column not in {"asked", "found"}]
        pd.testing.assert_frame_equal(read_prospects(path)[documented], expected[documented])


@pytest.mark.parametrize("other", [True, False])
def test_a_reader_during_a_rewrite_gets_one_version(tmp_path: Path, *, other: bool) -> None:
    """While another thread replaces a file, a reader gets the rows of one version."""
    frames = [pd.DataFrame({"x": ["1", "2"]}), pd.DataFrame({"x": [1.5] if other else [1]})]
    path = frames[0].outreach.to_csv(tmp_path / "x.csv")
    is_done = threading.Event()

    def rewrite() -> None:
        while not is_done.is_set():
            for frame in frames:
                frame.outreach.to_csv(path)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(80):
            # Between the metadata file and the file, the old rows get dtypes that fit them.
            numbers = pd.to_numeric(read_prospects(path)["x"]).tolist()
            assert any(numbers == pd.to_numeric(frame["x"]).tolist() for frame in frames)
    finally:
        is_done.set()
        writer.join()


LAYOUTS = sorted((Path(__file__).parent / "layouts").glob("*.csv"))


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda path: path.stem)
def test_a_layout_of_another_tool_is_used(
    tmp_path: Path, sandbox: Sandbox, client: Client, layout: Path
) -> None:
    """An export of a CRM or mail tool is read, excluded, planned and written, in both formats."""
    path = tmp_path / layout.name
    path.write_bytes(layout.read_bytes())
    frame = read_prospects(path)
    book = openpyxl.Workbook()
    for row in [list(frame), *frame.astype(object).where(frame.notna(), None).to_numpy().tolist()]:
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    email = next(
        name for name in frame if frame[name].str.contains("ada@x.example", case=False).any()
    )
    sequence = sandbox.sequence_ids["accepts_any"]
    for table in (frame, read_prospects(tmp_path / "x.xlsx")):
        assert list(table) == list(frame)
        assert table.fillna("").equals(frame.fillna(""))
        people = pd.DataFrame({"email": ["ADA@x.example", "new@x.example"]})
        with pytest.warns(OutreachWarning) as caught:
            kept = people.outreach.without(table, email=("email", email))
        assert re.search(r"\d rows? without a key", str(caught[0].message))
        others = (str(warning.message) for warning in caught[1:])
        assert all("Columns of email addresses were not compared" in text for text in others)
        assert kept["email"].tolist() == ["new@x.example"]
        for suffix, write in (("csv", "to_csv"), ("xlsx", "to_excel"), ("parquet", "to_parquet")):
            again = read_prospects(getattr(table.outreach, write)(tmp_path / f"again.{suffix}"))
            pd.testing.assert_frame_equal(again, table)
        plan = table.outreach.plan(sequence, email=email, client=client)
        sent = {lead["email"].lower() for lead in plan.leads(plan.positions)}
        assert sent & {"ada@x.example", "bo@y.example"}
