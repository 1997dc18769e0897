"""Forgetting people: they are removed from all caches, and files that contain them are listed."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import outreach_frames as of
from outreach_frames import cli, spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
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
        assert all(b"ada-lovelace" in stored(path) for path in paths)
        found = of.forget(**whom, client=client)
        assert found["removed"].tolist() == [True, True]
        for path in paths:
            left = stored(path).lower()
            assert b"sada.lovelace@" in left
            assert left.count(b"ada.lovelace@") == left.count(b"sada.lovelace@")
        before = len(service.requests)
        of.contacts(["c2"], client=client, progress=False)
        assert len(service.requests) == before
        of.contacts(["c1"], client=client, progress=False)
        assert len(service.requests) == before + 1
        assert list(found.dtypes.astype(str)) == list(of.forget(email="x@y.example").dtypes)


def test_caches_of_other_clients_are_listed(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Caches without a client in the folder are listed and unchanged, each cache once."""
    monkeypatch.chdir(tmp_path)
    other, own, foreign = (tmp_path / name for name in ("old cache", "own", "foreign"))
    for path in (other, own):
        with closing(Client(service.url, "t", cache=path)) as client:
            of.contacts(["c1"], client=client, progress=False)
    with closing(sqlite3.connect(foreign)) as database:
        database.execute("CREATE TABLE notes AS SELECT 1")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with closing(Client(service.url, "t", cache=own)) as client:
        for dry_run in (True, False):
            with pytest.warns(OutreachWarning, match="Not searched: 1 file of"):
                found = of.forget(email=EMAIL, folder=".", dry_run=dry_run, client=client)
            rows = [[str(own), "cache", 1, not dry_run], ["old cache", "cache", 1, False]]
            others = [["circle", "not read", pd.NA, False], ["*", "not searched", 1, False]]
            assert found.to_numpy().tolist() == [*rows, *others]
    assert EMAIL.lower().encode() in stored(other)


def pages(received: Received) -> Reply:
    """Reply with one person per page, named in a column, a list, an error or a new field."""
    ways: list[dict[str, object]] = [
        {"profnet_url": URL},
        {"experiences": [{"company_profnet_url": f"see {URL}"}]},
        {"contact": {"notes": [{"text": f"write to <{EMAIL}>"}]}},
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


@pytest.mark.slow
def test_a_cache_in_use_is_an_error(service: Service, tmp_path: Path) -> None:
    """If another program reads the cache's file, removed data stays in it, which is an error."""
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
        client.cache.set("key", b"\0people-0 of another version", 60)
        client.cache.set("other key", b'{"of": "nobody"}', 60)
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
    assert {path: path.read_bytes() for path in files.iterdir()} == before
    rows = {Path(path).name: (kind, rows) for path, kind, rows, _ in found.to_numpy().tolist()}
    assert rows == {
        "*.png": ("not searched", 1),
        "journal": ("journal", 1),
        "people.csv": ("export", 2),
        "people.parquet": ("export", 2),
        "people.xlsx": ("export", 2),
    }
    assert not found["removed"].any()


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
        client.read(spec.GET_CONTACTS, query={"ids[]": ["c1"]})
    for options, words in ((["--dry-run"], "False"), ([], "True")):
        assert cli.main(["forget", "--email", EMAIL, *options]) == 0
        printed = capsys.readouterr().out
        assert "responses.sqlite" in printed
        assert words in printed
    assert cli.main(["forget", "--profnet-url", URL]) == 0
    assert "No searched file contains these people." in capsys.readouterr().out


ACCENTED = "https://profnet.example/in/josé"
FULL_WIDTH = "".join(chr(ord(letter) + 0xFEE0) for letter in "profnet")
SPELLINGS = [
    ACCENTED, "profnet.example/in/jos%C3%A9", "HTTP://www.Profnet.example:443//in/JOS%c3%a9/",
    unicodedata.normalize("NFD", ACCENTED), f"https://{FULL_WIDTH}.example/in/josé?utm_source=x",
    "see (https://de.profnet.example/in/josé/en).", "ada@xn--bcher-kva.example",
    "mailto:ADA@Bücher.example", "\u3164a\ufe0fda@bücher.example\u2800",
    "profnet.example/in/jos%C3%A9%EF%B8%8F",
    "https://m.profnet.example/%69n/josé/recent-activity/all/?x=1",
]  # fmt: skip
OTHERS = [
    "https://profnet.example/in/josée", "https://profnet.example/in/jose",
    "https://other.example/in/josé", "adam@bücher.example", "sada@bücher.example",
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
    (inner / "wide.csv").write_text(f"email\n{EMAIL}\n", encoding="utf-16")
    (inner / "ragged.csv").write_text(f"a,b\n1,2\n1,2,3,{EMAIL}\n")
    (inner / ".x.parquet.1.2.tmp").write_bytes(b"PAR1 and so on")
    (inner / "empty.md").touch()
    said = r"Not read: .*\), and 4 more in the result.*Not searched: \d+ files of"
    with pytest.warns(OutreachWarning, match=said) as caught:
        found = of.forget(email=EMAIL, folder=inner)
    assert len(caught) == 1
    counts = {Path(path).name: rows for path, kind, rows, _ in found.to_numpy().tolist()}
    names = [".x.parquet.1.2.tmp", "away", "gone.csv", "ragged.csv", "wide.csv"]
    assert [name for name in counts if not name.startswith("*")] == names
    others = {"*": 1, "*.bak": 1, "*.db": 2, "*.html": 2, "*.ipynb": 1, "*.xls": 1, "*.zip": 1}
    assert {name: counts[name] for name in counts if name.startswith("*")} == others
    assert set(found["kind"]) == {"not read", "not searched"}
