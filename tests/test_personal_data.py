"""Forgetting people: they are removed from all caches, and files that contain them are listed."""

from __future__ import annotations

import shutil
import sqlite3
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment
from openpyxl.worksheet.worksheet import Worksheet

import outreach_frames as of
from outreach_frames import cli, spec
from outreach_frames.client.cache import unpack
from outreach_frames.client.client import Client
from outreach_frames.common import sqlite_file
from outreach_frames.errors import InvalidInputError, OutreachWarning
from tests.leads.sending.lead_service import connected, only_posts
from tests.scripted import Received, Reply, Service, json, respond, scripted

pytestmark = pytest.mark.long

EMAIL = "Ada.Lovelace@brightforge.example"
URL = "https://www.profnet.example/in/ada-lovelace/"
OTHER = {"id": "c2", "email": "sada.lovelace@brightforge.example", "profnet_url": f"{URL[:-1]}-2"}
HOLDERS = {"c1": {"id": "c1", "email": EMAIL.lower(), "profnet_url": URL}, "c2": OTHER}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a new folder for the default cache."""
    place = tmp_path / "home"
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(place / name))
    return place


def contact(received: Received) -> Reply:
    """Reply with one contact; slashes are escaped, as in some services."""
    identity = received.target.rpartition("=")[2]
    body = json({"contacts": [HOLDERS[identity]]}).parts[1]
    assert isinstance(body, bytes)
    return respond(body.replace(b"/", b"\\/"))


@pytest.fixture
def service() -> Iterator[Service]:
    """Serve two contacts."""
    with scripted(contact) as running:
        yield running


def stored(path: Path) -> bytes:
    """Return the bytes of a cache's file and its side files."""
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


def bodies(path: Path) -> dict[bytes, bytes]:
    """Return the bodies in a cache's file, by their compressed form."""
    with closing(sqlite3.connect(path)) as connection:
        rows = [row for (row,) in connection.execute("SELECT value FROM answers")]
    unpacked = {row[-20:]: unpack(row) for row in rows}
    return {end: entry.body for end, entry in unpacked.items() if entry is not None}


@pytest.mark.parametrize("how", ["email", "profnet_url", "both"])
def test_a_person_is_removed_from_the_caches(
    service: Service, tmp_path: Path, home: Path, how: str
) -> None:
    """Only the person is removed from rows, free pages and the log; a dry run removes nothing."""
    own = tmp_path / "own" / "cache"
    whom = {"email": EMAIL, "profnet_url": URL}
    whom = whom if how == "both" else {how: whom[how]}
    with closing(Client(service.url, "t", cache=own)) as client:
        with closing(Client(service.url, "t")) as default:
            for one in (client, default):
                of.contacts(["c1"], client=one, progress=False)
                of.contacts(["c2"], client=one, progress=False)
                # Replacing a row leaves a free page.
                of.contacts(["c1"], client=one, refresh=True, progress=False)
        paths = [home / "outreach_frames" / "responses.sqlite", own]
        trial = of.forget(**whom, dry_run=True, client=client)
        assert trial["path"].tolist() == [str(path) for path in paths]
        assert trial[["kind", "rows", "removed"]].to_numpy().tolist() == [["cache", 1, False]] * 2
        before = [bodies(path) for path in paths]
        assert all(any(b"ada-lovelace" in body for body in one.values()) for one in before)
        found = of.forget(**whom, client=client)
        assert found["removed"].tolist() == [True, True]
        for path, found_before in zip(paths, before, strict=True):
            left = stored(path)
            for end, body in found_before.items():
                assert (end in left) == (b"sada.lovelace@" in body.lower())
        requests = len(service.requests)
        of.contacts(["c2"], client=client, progress=False)
        assert len(service.requests) == requests
        of.contacts(["c1"], client=client, progress=False)
        assert len(service.requests) == requests + 1
        assert list(found.dtypes.astype(str)) == list(of.forget(email="x@y.example").dtypes)


def test_caches_below_the_folder_are_cleaned(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Caches in the folder lose the person, each once; links are listed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    other, own = (tmp_path / "files" / name for name in ("a cache", "own"))
    away = tmp_path / "away"
    for path in (other, own, away):
        with closing(Client(service.url, "t", cache=path)) as client:
            of.contacts(["c1"], client=client, progress=False)
    (tmp_path / "files" / "link").symlink_to(away)
    (tmp_path / "files" / "circle").symlink_to(tmp_path / "files" / "circle")
    with closing(sqlite3.connect(tmp_path / "files" / "foreign")) as database:
        database.execute("CREATE TABLE notes AS SELECT 1")
    with closing(Client(service.url, "t", cache=own)) as client:
        for dry_run in (True, False):
            with pytest.warns(OutreachWarning, match="Not searched: 1 file of"):
                found = of.forget(email=EMAIL, folder="files", dry_run=dry_run, client=client)
            rows = [
                [str(own), "cache", 1, not dry_run],
                ["files/a cache", "cache", 1, not dry_run],
                ["files/link", "cache", 1, False],
                ["files/circle", "not read", pd.NA, False],
                ["files/*", "not searched", 1, False],
            ]
            assert found.iloc[:, :4].to_numpy().tolist() == rows
    how = found.set_index("path")["how"]
    assert "is a link" in how["files/link"]
    assert bodies(away)
    assert not bodies(other)


def pages(received: Received) -> Reply:
    """Reply with one person per page, named in a column, a list, an error or a new field."""
    ways: list[dict[str, object]] = [
        {"profnet_url": URL},
        {"experiences": [{"company_profnet_url": f"see {URL}"}]},
        {"contact": {"notes": [{"text": f"write to:\n{EMAIL}"}]}},
        {"profnet_url": OTHER["profnet_url"], "about": OTHER["email"]},
        {"followers": [EMAIL], "company": {"founded_year": URL}},
    ]
    number = received.json["page"]
    more = {"_errors": [f"no address for {EMAIL}"]} if number == 6 else {}
    person = {"id": str(number), **(ways[number - 1] if number <= len(ways) else {})}
    return json({"results": [person], "_pagination": {"total": 7, "total_pages": 7}, **more})


def test_people_in_stored_pages_are_found_and_removed(tmp_path: Path) -> None:
    """A search's page is removed if a cell, a list, a new field or an error names the person."""
    cache = tmp_path / "cache"
    with scripted(pages) as service, closing(Client(service.url, "t", cache=cache)) as client:

        def search() -> list[str]:
            with pytest.warns(OutreachWarning, match="no address"):
                found = of.search_people(page_size=1, limit=None, client=client, progress=False)
            return list(found["id"])

        ids = search()
        assert len(service.requests) == 7
        gone = of.forget(email=EMAIL, profnet_url=URL, client=client)
        assert gone[["kind", "rows", "removed"]].to_numpy().tolist() == [["cache", 5, True]]
        assert of.forget(email=EMAIL, profnet_url=URL, client=client).empty
        assert search() == ids
        # Without its first page the whole search is read again.
        assert len(service.requests) == 7 + 7


def test_a_cache_in_use_is_listed(service: Service, tmp_path: Path) -> None:
    """A cache that another program reads is listed, and other caches are cleaned."""
    busy, idle = tmp_path / "busy", tmp_path / "idle"
    for path in (busy, idle):
        with closing(Client(service.url, "t", cache=path)) as client:
            of.contacts(["c1"], client=client)
    with closing(Client(service.url, "t", cache=None)) as client:
        with closing(sqlite3.connect(busy)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM answers").fetchall()
            found = of.forget(email=EMAIL, folder=tmp_path, client=client)
    assert found["path"].tolist() == [str(busy), str(idle)]
    assert found["removed"].tolist() == [False, True]
    assert "another program is reading it" in found["how"][0]


@pytest.mark.slow
def test_a_cache_in_use_is_not_cleared(service: Service, tmp_path: Path) -> None:
    """A cache that another program reads is an error of `clear_cache`."""
    path = tmp_path / "cache"
    with of.connect(service.url, "token", cache=path), closing(sqlite3.connect(path)) as reader:
        of.contacts(ids=["c1"])
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM answers").fetchall()
        with pytest.raises(InvalidInputError, match="another program is reading it"):
            of.clear_cache()
        reader.rollback()
        of.clear_cache()


def test_unreadable_stored_pages_are_removed(tmp_path: Path) -> None:
    """Stored pages of other versions are removed, because they may contain anybody."""
    cache = tmp_path / "cache"
    with scripted(pages) as service, closing(Client(service.url, "t", cache=cache)) as client:
        client._session.cache.set("key", b"\0table-0 of another version", 60)
        client._session.cache.set("other key", b'{"of": "nobody"}', 60)
        assert of.forget(email=EMAIL, client=client)["rows"].tolist() == [1]


def test_files_with_a_person_are_listed(tmp_path: Path) -> None:
    """Tables and journals are listed with the number of matching rows, and stay unchanged."""
    files = tmp_path / "files" / "deep"
    files.mkdir(parents=True)
    page = "http://profnet.example/in/Ada-Lovelace?utm_source=x"
    frame = pd.DataFrame(
        {
            "email": [EMAIL.upper(), "bo@x.example", None],
            "note": ["-", f"see {page} for {EMAIL}", ""],
            "other": ["a", f"x{EMAIL}", f"{EMAIL}.uk"],
        }
    )
    frame.outreach.to_csv(files / "people.csv")
    frame.outreach.to_parquet(files / "people.parquet")
    frame.outreach.to_excel(files / "people.xlsx")
    frame.tail(1).to_csv(files / "others.csv")
    (files / "picture.png").write_bytes(EMAIL.encode())
    with of.connect("sandbox", cache=None) as client:
        sequence = of.sequences(status="active")["id"].iloc[0]
        leads = pd.DataFrame({"email": [EMAIL, "bo@x.example"]})
        leads.outreach.add_to_sequence(sequence, journal=files / "journal", client=client)
        draft = client.sandbox.sequence_ids["invalid_sequence_status"]
        with pytest.warns(OutreachWarning, match="draft|rejected"):  # the rejected lead is not Ada
            leads.tail(1).outreach.add_to_sequence(draft, journal=files / "refused", client=client)
    before = {path: path.read_bytes() for path in files.iterdir()}
    with pytest.warns(OutreachWarning, match="Not searched: 1 file of"):
        found = of.forget(email=[EMAIL, "nobody@x.example"], profnet_url=URL, folder=tmp_path)
    assert {path: path.read_bytes() for path in before} == before
    rows = {Path(path).name: (kind, rows) for path, kind, rows, *_ in found.to_numpy().tolist()}
    assert rows == {
        "*.png": ("not searched", 1),
        "journal": ("journal", 1),
        "people.csv": ("table", 2),
        "people.parquet": ("table", 2),
        "people.xlsx": ("table", 2),
    }
    assert not found["removed"].any()
    how = found.set_index("kind")["how"]
    assert how["table"].str.startswith("read the file, drop the people").all()
    assert "hashes stay" in how["journal"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"email": "nobody"},
        {"email": [EMAIL, None]},
        {"profnet_url": "ada lovelace"},
        {"email": EMAIL, "folder": "no/such/folder"},
    ],
    ids=str,
)
def test_invalid_identifiers_are_an_error(arguments: dict[str, object]) -> None:
    """Values that are not email addresses or URLs are an error and remove nothing."""
    with pytest.raises(InvalidInputError):
        of.forget(**arguments)  # type: ignore[arg-type]


def test_clearing_removes_every_response(service: Service, home: Path) -> None:
    """After clear_cache the service is requested again, and the file is empty."""
    with closing(Client(service.url, "t")) as client:
        of.contacts(["c1"], client=client, progress=False)
        of.clear_cache(client=client)
        with closing(sqlite3.connect(home / "outreach_frames" / "responses.sqlite")) as connection:
            assert connection.execute("SELECT count(*) FROM answers").fetchone() == (0,)
        of.contacts(["c1"], client=client, progress=False)
    assert len(service.requests) == 2


def test_the_command_forgets_people(
    service: Service, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`outreach-frames forget` removes and lists the same as the function."""
    with closing(Client(service.url, "t")) as client:
        client._session.read(spec.GET_CONTACTS, query={"ids[]": ["c1"]})
    for options, words in ((["--dry-run"], "False"), ([], "True")):
        assert cli.main(["forget", "--email", EMAIL, *options]) == 0
        printed = capsys.readouterr().out
        assert "responses.sqlite" in printed
        assert words in printed
    assert cli.main(["forget", "--profnet-url", URL]) == 0
    assert "No searched file contains these people." in capsys.readouterr().out
    pd.DataFrame({"email": [EMAIL]}).to_csv(home / "a.csv")
    assert cli.main(["forget", "--email", EMAIL, "--folder", str(home)]) == 0
    assert "drop the people with .outreach.without()" in " ".join(capsys.readouterr().out.split())


ACCENTED = "https://profnet.example/in/josé"
FULL_WIDTH = "".join(chr(ord(letter) + 0xFEE0) for letter in "profnet")
SPELLINGS = [
    ACCENTED, "profnet.example/in/jos%C3%A9", "HTTP://www.Profnet.example:443//in/JOS%c3%a9/",
    unicodedata.normalize("NFD", ACCENTED), f"https://{FULL_WIDTH}.example/in/josé?utm_source=x",
    "see (https://de.profnet.example/in/josé/en).", "ada@xn--bcher-kva.example",
    "mailto:ADA@Bücher.example", "\u3164a\ufe0fda@bücher.example\u2800", "ada\uff20bücher.example",
    "-ada@bücher.example", "%\u200b61da@bücher.example",
    "profnet.example/in/jos%C3%A9%EF%B8%8F",
    "https://m.profnet.example/%69n/josé/recent-activity/all/?x=1",
]  # fmt: skip
OTHERS = [
    "https://profnet.example/in/josée", "https://profnet.example/in/jose",
    "https://other.example/in/josé", "adam@bücher.example", "sada@bücher.example",
    "x-ada@bücher.example",
]  # fmt: skip


def test_people_are_found_in_every_spelling(tmp_path: Path) -> None:
    """Any spelling of an identifier finds every spelling with the same key, and nobody else."""
    texts = [*SPELLINGS, *OTHERS]
    frame = pd.DataFrame({"text": texts})
    frame.outreach.to_csv(tmp_path / "x.csv")
    frame.outreach.to_parquet(tmp_path / "x.parquet")
    frame.outreach.to_excel(tmp_path / "x.xlsx")
    for url, email in ((SPELLINGS[1], "ada@bücher.example"), (SPELLINGS[2], SPELLINGS[6])):
        found = of.forget(profnet_url=url, email=email, folder=tmp_path)
        assert found["rows"].tolist() == [len(SPELLINGS)] * 3


def test_every_part_of_a_file_is_searched(tmp_path: Path) -> None:
    """Columns of any type, their names, metadata and temporary files are searched."""
    texts = pa.array([EMAIL, "bo@x.example", None])
    columns = {
        "category": texts.dictionary_encode(),
        "view": texts.cast(pa.string_view()),
        "binary": texts.cast(pa.binary()),
        "large binary": texts.cast(pa.large_binary()),
        "list": pa.array([[{"a": [EMAIL]}], [], None]),
        "map": pa.array([[(EMAIL, "x")], [], None], pa.map_(pa.string(), pa.string())),
        "list of bytes": pa.array([[EMAIL.encode()], [], None]),
    }
    for name, column in columns.items():
        pq.write_table(pa.table({"x": column}), tmp_path / f"{name}.parquet")
    filters = pd.DataFrame({"x": [1]})
    filters.attrs = {"filters": {"profnet_networks": [EMAIL]}}
    filters.outreach.to_parquet(tmp_path / "filters.parquet")
    pd.DataFrame({EMAIL: [1]}).outreach.to_parquet(tmp_path / "name.parquet")
    pd.DataFrame({"x": [1]}, index=pd.Index([1], name=EMAIL)).outreach.to_parquet(
        tmp_path / "index.pq"
    )
    category = pd.Categorical(["x"], categories=["x", EMAIL])
    pd.DataFrame({"x": category}).outreach.to_csv(tmp_path / "unused.csv")
    names = pd.DataFrame({"x": [1]}).rename_axis(columns=f"\xad{EMAIL}")
    names.attrs = {"asked": f"by\n{EMAIL}"}
    names.outreach.to_csv(tmp_path / "names.csv")
    (tmp_path / "wide.csv").write_text(f"email\n{EMAIL}\n", encoding="utf-16")
    (tmp_path / "ragged.csv").write_text(f'a,b\n1,2\n1,"2,3,{EMAIL}\n')
    (tmp_path / ".x.csv.1.2.tmp").write_text(EMAIL)
    (tmp_path / ".x.parquet.1.2.tmp").write_bytes((tmp_path / "view.parquet").read_bytes())
    found = of.forget(email=EMAIL, folder=tmp_path)
    searched = [path for path in sorted(tmp_path.iterdir()) if path.suffix != ".json"]
    assert found["path"].tolist() == list(map(str, searched))
    assert set(found["rows"]) == {1}


def test_other_files_are_counted_and_not_searched(tmp_path: Path) -> None:
    """Files of other kinds are counted by ending, in one warning and in the result."""
    inner = tmp_path / "files"
    inner.mkdir()
    (inner / "away").symlink_to(tmp_path)
    (inner / "gone.csv").symlink_to(tmp_path / "gone.csv")
    kinds = ["a.ipynb", "b.html", "c.HTML", "old.xls", "all.zip", "store.db", "x.csv.bak", "no"]
    for name in kinds:
        (inner / name).write_text(EMAIL)
    with closing(sqlite3.connect(inner / "crm.db")) as database, database:
        database.execute("CREATE TABLE people AS SELECT ? AS email", [EMAIL])
    (inner / "latin.csv").write_text(f"email,name\n{EMAIL},Zoë\n", encoding="cp1252")
    (inner / "long.csv").write_text("x" * (1 << 24))
    (inner / ".x.parquet.1.2.tmp").write_bytes(b"PAR1 and so on")
    (inner / "empty.md").touch()
    said = r"Not read: .*\), and 4 more in the result.*Not searched: \d+ files of"
    with pytest.warns(OutreachWarning, match=said) as caught:
        found = of.forget(email=EMAIL, folder=inner)
    assert len(caught) == 1
    counts = {Path(path).name: rows for path, kind, rows, *_ in found.to_numpy().tolist()}
    names = [".x.parquet.1.2.tmp", "away", "gone.csv", "latin.csv", "long.csv"]
    assert [name for name in counts if not name.startswith("*")] == names
    others = {"*": 1, "*.bak": 1, "*.db": 2, "*.html": 2, "*.ipynb": 1, "*.xls": 1, "*.zip": 1}
    assert {name: counts[name] for name in counts if name.startswith("*")} == others
    assert set(found["kind"]) == {"not read", "not searched"}


def test_every_part_of_a_workbook_is_searched(tmp_path: Path) -> None:
    """Links, comments, formulas, names of sheets, properties and formatted text are searched."""

    def comment(sheet: Worksheet) -> None:
        sheet["A2"].comment = Comment(f"see {EMAIL}", "somebody")

    def link(sheet: Worksheet) -> None:
        sheet["A2"].hyperlink = f"mailto:{EMAIL}?subject=x"
        sheet["A2"].value = "Ada"

    def formatted(sheet: Worksheet) -> None:
        name, _, host = EMAIL.partition("@")
        sheet["A2"].value = CellRichText(TextBlock(InlineFont(b=True), name), f"@{host}")

    parts: dict[str, Callable[[Worksheet], object]] = {
        "author": lambda sheet: setattr(sheet.parent.properties, "creator", EMAIL),
        "comment": comment,
        "formatted": formatted,
        "formula": lambda sheet: sheet.append([f'=HYPERLINK("mailto:{EMAIL}", "Ada")']),
        "link": link,
        "sheet": lambda sheet: setattr(sheet, "title", EMAIL[:31]),
        "text": lambda sheet: sheet.append([f"a_x000D_{EMAIL}"]),
        "two": lambda sheet: sheet.parent.create_sheet().append([1, EMAIL]),
    }
    for name, add in parts.items():
        book = Workbook()
        book.active.append(["name"])
        add(book.active)
        book.save(tmp_path / f"{name}.xlsx")
    found = of.forget(email=[EMAIL, EMAIL[:31]], folder=tmp_path)
    assert [Path(path).stem for path in found["path"]] == sorted(parts)
    assert set(found["rows"]) == {1}
    how = found.set_index(found["path"].map(lambda path: Path(path).stem))["how"]
    rows = how.str.startswith("read the file")
    assert rows.index[rows].tolist() == ["formatted", "formula", "text", "two"]
    assert how[~rows].str.startswith("edit the comments").all()


def test_a_large_table_is_searched_in_pieces(tmp_path: Path) -> None:
    """A file of this package with more rows and text than one piece has is searched to its end."""
    texts = pa.array([f"{number}" for number in range(40_000)] + [EMAIL])
    frame = pa.table({"email": texts, "list": pa.array([["x"]] * 40_001)}).to_pandas(
        types_mapper=pd.ArrowDtype
    )
    frame["tier"] = pd.Categorical(["x"] * 40_001, ["x", EMAIL])
    frame.outreach.to_csv(tmp_path / "a.csv")
    frame.outreach.to_parquet(tmp_path / "a.parquet")
    found = of.forget(email=EMAIL, folder=tmp_path)
    assert found["rows"].tolist() == [1, 1]
    assert found["how"].str.contains("categories that name the people").all()


def test_what_cannot_be_read_is_named_beside_what_was_found(tmp_path: Path) -> None:
    """A damaged end, an embedded object and unusual names hide no earlier row, and are listed."""
    (tmp_path / "\udcff.csv").write_text(EMAIL)
    (tmp_path / "cut.csv").write_bytes(EMAIL.encode() + b"\nZo\xc3")
    pd.DataFrame({"email": [EMAIL]}).outreach.to_excel(tmp_path / "object.xlsx")
    shutil.copyfile(tmp_path / "object.xlsx", tmp_path / "locked.xlsx")
    with zipfile.ZipFile(tmp_path / "object.xlsx", "a") as package:
        package.writestr("xl/embeddings/oleObject1.bin", b"x")
    content = bytearray((tmp_path / "locked.xlsx").read_bytes())
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.find(mark) + place] |= 1
    (tmp_path / "locked.xlsx").write_bytes(content)
    with pytest.warns(OutreachWarning, match=r"Not read: .*, and 2 more in the result"):
        found = of.forget(email=EMAIL, folder=tmp_path)
    listed = [
        (Path(path).name, kind) for path, kind in zip(found["path"], found["kind"], strict=True)
    ]
    assert listed == [
        *[("cut.csv", "table"), ("object.xlsx", "table"), ("\ufffd.csv", "table")],
        *[("cut.csv", "not read"), ("locked.xlsx", "not read"), ("object.xlsx", "not read")],
    ]
    assert "oleObject1.bin" in found["how"].iloc[-1]


@pytest.mark.parametrize("kind", ["cache", "journal", "checkpoint"])
def test_databases_with_views_are_not_read(tmp_path: Path, kind: str) -> None:
    """An endless view in place of a table of this package stops nothing."""
    path = tmp_path / kind
    tables = {"cache": "answers", "journal": "records", "checkpoint": "parts"}
    if kind == "cache":
        with closing(Client("http://127.0.0.1:1", "t", cache=path)):
            pass
    elif kind == "journal":
        with journal_of_named_people(path):
            pass
    else:
        path = interrupted_export(tmp_path / "a.csv") / "journal.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"DROP TABLE {tables[kind]}")
        endless = (
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
            " SELECT x AS key, x AS value, x AS number, x AS record, x AS checksum, x AS people"
            " FROM n"
        )
        database.execute(f"CREATE VIEW {tables[kind]} AS {endless}")
    with pytest.warns(OutreachWarning, match="is damaged" if kind == "journal" else "is a view"):
        found = of.forget(email=EMAIL, folder=tmp_path)
    assert found["kind"].tolist() == ["not read"]


def test_snapshots_and_checkpoints_are_listed(tmp_path: Path) -> None:
    """Snapshots and interrupted exports are listed, unchanged, with how to remove the person."""
    folders = [interrupted_export(tmp_path / name) for name in ("a.csv", "b.parquet", "c")]
    with of.connect("sandbox", cache=None):
        of.snapshot_people(tmp_path / "days", person_seniorities=["founder"], date="2026-03-01")
    part = next((tmp_path / "days").rglob("*.parquet"))
    url = of.read_prospects(part)["profnet_url"].iloc[-1]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    found = of.forget(profnet_url=[URL, url], folder=tmp_path)
    assert found["kind"].tolist() == [*["checkpoint"] * 3, "snapshot"]
    assert of.forget(profnet_url="profnet.example/in/somebody-else", folder=tmp_path).empty
    assert found["path"].tolist() == [*map(str, folders), str(part)]
    assert found["rows"].eq(1).all()
    assert found["how"].str.startswith("resume the interrupted export").tolist() == [True] * 3 + [
        False
    ]
    assert not found["removed"].any()
    assert all(path.read_bytes() == content for path, content in before.items())


def test_a_listed_table_is_written_again_without_the_person(tmp_path: Path) -> None:
    """What `how` advises removes the person from the rows and the filters of both formats."""
    frame = pd.DataFrame({"email": ["bo@x.example", EMAIL], "note": ["a", "b"]})
    frame.attrs = {"filters": {"profnet_networks": [EMAIL]}}
    for ending, name in (("csv", "to_csv"), ("parquet", "to_parquet")):
        path = getattr(frame.outreach, name)(tmp_path / f"a.{ending}")
        found = of.forget(email=EMAIL, folder=tmp_path)
        assert found["rows"].tolist() == [1]
        assert "; " in found["how"].item()
        people = of.read_prospects(path)
        assert people.attrs == frame.attrs
        people = people.outreach.without(pd.DataFrame({"email": [EMAIL]}))
        getattr(people.outreach, name)(path, attrs=False)
        pd.testing.assert_frame_equal(of.read_prospects(path), frame.iloc[:1], check_flags=False)
        assert of.forget(email=EMAIL, folder=tmp_path).empty


def interrupted_export(path: Path) -> Path:
    """Export one person, fail at the second page, and return the checkpoint's folder."""

    def page(received: Received) -> Reply:
        if received.json["page"] == 2:
            return json({}, 500)
        people = [{"id": "1", "profnet_url": URL}]
        return json({"results": people, "_pagination": {"total": 2, "total_pages": 2}})

    with scripted(page) as service, of.connect(service.url, "t", cache=None, max_wait=0):
        with pytest.raises(of.OutreachError):
            of.export_people(path, page_size=1, progress=False)
    return path.with_name(f".{path.name}.partial")


@contextmanager
def journal_of_named_people(path: Path) -> Iterator[None]:
    """Add two people to a service that names one of them in its responses."""
    frame = pd.DataFrame({"email": ["bo@x.example", EMAIL]})
    words = f"refused: {EMAIL}, and cy@x.example"
    named = json({"total": 1, "total_added_to_sequence": 1, "words": words})
    replies = only_posts([json({"message": words}, 500), named])
    with scripted(replies) as service, connected(service) as client:
        options = {"journal": path, "client": client, "chunk_size": 1}
        with pytest.warns(OutreachWarning, match="1 is unknown"):
            frame.outreach.add_to_sequence("s1", **options)
        yield


def test_journals_are_listed_and_name_nobody(tmp_path: Path) -> None:
    """A journal names nobody; it is listed, never changed, also during a run and as a link."""
    path = tmp_path / "own" / "journal"
    for folder in ("own", "links"):
        (tmp_path / folder).mkdir()
    with journal_of_named_people(path):
        before = stored(path)
        assert EMAIL.lower().encode() not in before.lower()
        (tmp_path / "links" / "journal").symlink_to(path)
        linked = of.forget(email=EMAIL, folder=tmp_path / "links")
        assert "is a link" in linked["how"].iloc[0]
        with sqlite_file.locked(path, "journal"):
            listed = of.forget(email=EMAIL, folder=path.parent)
        assert listed[["kind", "rows", "removed"]].to_numpy().tolist() == [["journal", 1, False]]
        assert stored(path) == before


def test_journal_of_a_killed_run(tmp_path: Path) -> None:
    """A journal with an unfinished transaction is searched."""
    path = tmp_path / "live.journal"
    folder = tmp_path / "killed"
    folder.mkdir()
    with (
        journal_of_named_people(path),
        closing(sqlite3.connect(path, isolation_level=None)) as journal,
    ):
        journal.execute("PRAGMA cache_size = 1")
        journal.execute("BEGIN")
        for number in range(40):
            record = [-number - 1, "x" * 9000]
            journal.execute("INSERT INTO records VALUES (?, ?, 0)", record)
        for name in (path.name, f"{path.name}-journal"):
            shutil.copyfile(tmp_path / name, folder / name)
    assert of.forget(email=EMAIL, folder=folder)["kind"].tolist() == ["journal"]
