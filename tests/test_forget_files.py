"""Forgetting people in the package's files removes their rows and changes nothing else."""

from __future__ import annotations

import io
import re
import shutil
import signal
import sqlite3
import stat
import zipfile
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import outreach_frames as of
from outreach_frames import cli
from outreach_frames.client.client import Client
from outreach_frames.common import sqlite_file
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.files.remove_rows import removal
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.sandbox import Sandbox
from tests import forked
from tests.leads.sending.lead_service import connected, only_posts
from tests.scripted import Received, Reply, json, scripted

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:.*people were read")]

EMAIL = "Ada.Lovelace@brightforge.example"
URL = "https://www.profnet.example/in/ada-lovelace/"
ADA = {"email": EMAIL, "profnet_url": URL}
# The person's name in an address and a URL, which no file may still contain.
TRACES = (b"ada.lovelace@", b"/ada-lovelace")


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a new folder for the default cache."""
    place = tmp_path_factory.mktemp("home")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(place / name))


def leads() -> pd.DataFrame:
    """Return leads with all storable dtypes; Ada is in two rows and in a category."""
    emails = ["bo@x.example", EMAIL.upper(), "cy@x.example", None, "di@x.example"]
    return pd.DataFrame(
        {
            "E-Mail": emails,
            "profnet_url": [None, None, "https://profnet.example/in/cy", URL, None],
            "text": ["two\nlines", 'a "quote"', "=1+1", " n/a", None],
            "number": pd.array([1, 2, None, 4, 5], "Int64"),
            "day": pd.to_datetime(["2026-03-01", None, "2026-03-03", "2026-03-04", None]).as_unit(
                "us"
            ),
            "tier": pd.Categorical(["b", EMAIL, "c", None, "b"], ["c", EMAIL, "b"], ordered=True),
            "owner": pd.Categorical(["x", "y", "x", "y", None]),
        }
    )


def save_all(frame: pd.DataFrame, folder: Path) -> list[Path]:
    """Write a frame in every format."""
    return [
        frame.outreach.to_csv(folder / "a.csv"),
        frame.outreach.to_parquet(folder / "a.parquet"),
        frame.outreach.to_excel(folder / "a.xlsx"),
    ]


def others(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows and categories of all other people."""
    kept = frame.iloc[[0, 2, 4]]
    return kept.assign(tier=kept["tier"].cat.remove_categories([EMAIL]))


def contents(folder: Path) -> Iterator[bytes]:
    """Yield the bytes of a folder's files, also decompressed parts, Parquet pages and dtypes."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        yield content
        if path.name.endswith("-metadata.json"):
            yield from map(b64decode, re.findall(rb'"models": "([^"]*)"', content))
        if content.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(content)) as package:
                yield from map(package.read, package.namelist())
        if content.startswith(b"PAR1"):
            with pq.ParquetFile(path) as table:
                columns = table.read().columns
                yield str(table.metadata.metadata).encode()
            for column in columns:
                yield str(column.to_pylist()).encode()
                if pa.types.is_dictionary(column.type):
                    yield str([chunk.dictionary for chunk in column.chunks]).encode()


def has_traces(folder: Path) -> bool:
    """Return whether any file contains Ada."""
    return any(trace in content.lower() for content in contents(folder) for trace in TRACES)


def reasons(found: pd.DataFrame) -> dict[str, str]:
    """Return the reasons why files still contain a person, by file name."""
    return {
        Path(path).name: "" if pd.isna(reason) else str(reason)
        for path, reason in zip(found["path"], found["reason"], strict=True)
    }


def test_only_the_persons_rows_are_removed(tmp_path: Path) -> None:
    """In every format other people's rows keep their bytes, dtypes, order and permissions."""
    frame = leads()
    paths = save_all(frame, tmp_path)
    paths.insert(1, frame.outreach.to_csv(tmp_path / "a.txt", sep=";", excel=True))
    for path in tmp_path.iterdir():
        path.chmod(0o600)
    lines = [path.read_bytes() for path in paths[:2]]
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    trial = of.forget(**ADA, folder=tmp_path, files=True, dry_run=True)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert not trial["removed"].any()
    found = of.forget(**ADA, folder=tmp_path, files=True)
    assert set(reasons(found).values()) == {""}
    assert found["removed"].all()
    assert not has_traces(tmp_path)
    assert set(tmp_path.iterdir()) == before.keys()
    for path in paths:
        kept = others(frame).reset_index(drop=True)
        if path.suffix == ".xlsx":  # a format that does not store dtypes
            kept = kept.astype({"tier": "str", "owner": "str"})
        pd.testing.assert_frame_equal(of.read_prospects(path), kept)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for path, content in zip(paths, lines, strict=False):
        kept = [
            line for line in content.splitlines(True) if not any(map(line.lower().count, TRACES))
        ]
        assert path.read_bytes() == b"".join(kept)
    assert of.forget(**ADA, folder=tmp_path, files=True).empty


@pytest.mark.filterwarnings("ignore:.*records are text")
def test_exports_and_snapshots_are_cleaned(client: Client, tmp_path: Path) -> None:
    """Exports in each format, their parts and categories, and snapshots lose only one person."""
    filters = {"person_seniorities": ["owner", "founder"]}
    names = ("a.csv", "a.parquet", "parts")
    for name in names:
        of.export_people(tmp_path / name, filters, limit=9, progress=False)
    of.export_people(tmp_path / "split.csv", filters, split_by="person_seniorities", limit=9)
    day = of.snapshot_people(tmp_path / "days", filters, date="2026-03-01")
    paths = [*(tmp_path / name for name in (*names, "split.csv")), day]
    before = {path: of.read_prospects(path) for path in paths}
    before[paths[0]].outreach.to_excel(tmp_path / "a.xlsx")
    before[tmp_path / "a.xlsx"] = of.read_prospects(tmp_path / "a.xlsx")
    schema = pq.read_schema(tmp_path / "a.parquet")
    urls = [
        before[paths[0]]["profnet_url"].iloc[-1],
        before[tmp_path / "split.csv"]["profnet_url"].iloc[0],
    ]
    found = of.forget(profnet_url=urls, folder=tmp_path, files=True, client=client)
    assert found["removed"].all()
    assert len(found) == len(before)
    assert of.forget(profnet_url=urls, folder=tmp_path, files=True).empty
    for path, frame in before.items():
        kept = frame[~frame["profnet_url"].isin(urls)].reset_index(drop=True)
        assert len(kept) < len(frame)
        pd.testing.assert_frame_equal(of.read_prospects(path), kept, check_flags=False)
        assert of.read_prospects(path).attrs == frame.attrs
    assert pq.read_schema(tmp_path / "a.parquet").equals(schema)
    with pytest.warns(OutreachWarning, match=r"\d+ of \d+ matching people"):
        of.snapshots(tmp_path / "days")


def test_categories_in_an_index_and_a_column_named_self_are_removed(tmp_path: Path) -> None:
    """A person's category is removed from an index, and from a column of any name."""
    emails = pd.Categorical([EMAIL, "bo@x.example"])
    frame = pd.DataFrame({"email": emails, "self": emails}).set_index("email")
    frame.outreach.to_csv(tmp_path / "a.csv")
    frame.outreach.to_parquet(tmp_path / "a.parquet")
    assert of.forget(**ADA, folder=tmp_path, files=True)["removed"].all()
    assert not has_traces(tmp_path)
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        kept = of.read_prospects(path)
        assert list(kept.index) == list(kept["self"]) == ["bo@x.example"]


def test_labels_stay(tmp_path: Path) -> None:
    """Index labels stay with their rows."""
    frame = leads()
    labelled = {
        "step.parquet": frame.set_axis(pd.RangeIndex(0, 10, 2)),
        "named.parquet": frame.set_axis(pd.RangeIndex(5, name="n")),
        "text.parquet": frame.set_axis(list("vwxyz")),
        "emails.parquet": frame.rename_axis(None).set_index("E-Mail"),
    }
    for name, each in labelled.items():
        each.outreach.to_parquet(tmp_path / name)
    assert of.forget(**ADA, folder=tmp_path, files=True)["removed"].all()
    assert not has_traces(tmp_path)
    for name, each in labelled.items():
        left = of.read_prospects(tmp_path / name)
        pd.testing.assert_frame_equal(left, others(each), check_index_type=False)


WEAK = "https://profnet.example/view?id=7"
MAIL_URL = "https://profnet.example/view?mail=ada.lovelace@brightforge.example"
# The email and URL cells of rows that belong to Ada, and of rows that may belong to colleagues.
OWN_ROWS = [
    (EMAIL, None),
    (f"Ada <{EMAIL}>; {EMAIL.lower()}", "https://profnet.example/in/bo"),
    ("al@x.example", URL.upper()),
    (f"Sales/{EMAIL}", WEAK),
    ("bo@x.example", URL),
    ("n/a", WEAK),
    (None, f"{WEAK}; {URL}"),
    (None, MAIL_URL),
    (f"bo@x.example, {EMAIL}", URL),
]
OTHER_ROWS = [
    (f"o'{EMAIL}", f"{URL[:-1]}+b"),
    ("bo@x.example", WEAK),
    (None, f"{WEAK}; https://profnet.example/in/bo"),
    (None, f"{WEAK}; https://profnet.example/view?id=8"),
    (None, f"{URL}, https://profnet.example/in/bo"),
    (f"bo@x.example, {EMAIL}", None),
    (f"bo@x.example; {EMAIL}", WEAK),
]


@pytest.mark.parametrize("rows", [OTHER_ROWS, OWN_ROWS + OTHER_ROWS])
def test_rows_of_colleagues_stay(tmp_path: Path, rows: list[tuple[str | None, ...]]) -> None:
    """A similar identifier, a weak URL beside others, or a cell with others', removes no row."""
    frame = pd.DataFrame(rows, columns=["E-Mail", "profnet_url"])
    save_all(frame, tmp_path)
    found = of.forget(email=EMAIL, profnet_url=[URL, WEAK], folder=tmp_path, files=True)
    assert not found["removed"].any()
    assert all("still name" in why for why in reasons(found).values())
    for name in ("a.csv", "a.parquet", "a.xlsx"):
        kept = of.read_prospects(tmp_path / name)
        assert (
            list(map(tuple, kept.astype(object).where(kept.notna(), None).to_numpy())) == OTHER_ROWS
        )


def test_a_weak_url_with_an_address_identifies_its_row(tmp_path: Path) -> None:
    """An address that is part of a weak URL is no other identifier of the row."""
    pd.DataFrame({"profnet_url": [MAIL_URL]}).outreach.to_csv(tmp_path / "a.csv")
    assert of.forget(profnet_url=MAIL_URL, folder=tmp_path, files=True)["removed"].all()


def test_unreadable_names_and_archives(tmp_path: Path) -> None:
    """Unusual file names, a metadata file without data, and a locked archive stop nothing."""
    frame = pd.DataFrame({"by": pd.Categorical(["-"], ["-", EMAIL])})
    frame.outreach.to_csv(tmp_path / "lone.csv").unlink()
    (tmp_path / "\udcff.csv").write_text(EMAIL)
    with zipfile.ZipFile(tmp_path / "locked.xlsx", "w") as package:
        package.writestr("xl/sheet.xml", EMAIL)
    content = bytearray((tmp_path / "locked.xlsx").read_bytes())
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.find(mark) + place] |= 1
    (tmp_path / "locked.xlsx").write_bytes(content)
    with pytest.warns(OutreachWarning, match=r"locked\.xlsx"):
        found = of.forget(email=EMAIL, folder=tmp_path, files=True)
    assert list(reasons(found)) == ["\ufffd.csv", "locked.xlsx", "*.json"]


def test_files_replaced_meanwhile_are_kept(tmp_path: Path) -> None:
    """A file replaced by another program after reading is not overwritten."""
    new = pd.DataFrame({"email": ["new@x.example"]})
    for path in save_all(leads(), tmp_path):
        remove = removal(path, lambda text: "ada" in text.lower(), lambda _: True)
        save_all(new, tmp_path)
        with pytest.raises(InvalidInputError, match="call forget again"):
            remove()
        assert of.read_prospects(path).equals(new)


def test_workbooks_of_several_sheets(client: Client, sandbox: Sandbox, tmp_path: Path) -> None:
    """Each sheet loses the person's rows; all other cells and their zones stay."""
    sequence = sandbox.sequence_ids["accepts_any"]
    frame = pd.DataFrame({"email": ["bo@x.example", EMAIL, None]})
    frame["at"] = pd.to_datetime(["2026-03-01 12:00"] * 3, utc=True)
    report = frame.outreach.add_to_sequence(sequence, client=client)
    path = report.to_excel(tmp_path / "report.xlsx", tz="Europe/Berlin")
    sheets = {name: of.read_prospects(path, sheet_name=name) for name in ("added", "invalid")}
    for _ in range(2):
        found = of.forget(email=EMAIL, folder=tmp_path, files=True)
        assert found["removed"].all()
        assert not has_traces(tmp_path)
        for name, sheet in sheets.items():
            kept = sheet[sheet["email"] != EMAIL].reset_index(drop=True)
            pd.testing.assert_frame_equal(of.read_prospects(path, sheet_name=name), kept)
    with zipfile.ZipFile(path) as package:
        assert b"Europe/Berlin" in package.read("xl/styles.xml")


def test_other_files_are_listed_with_the_reason(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Other programs' files, edited files and links are listed and stay unchanged."""
    frame = leads()
    outside = tmp_path_factory.mktemp("outside")
    frame.to_csv(tmp_path / "foreign.csv")
    frame.drop(columns="tier").to_parquet(tmp_path / "foreign.parquet")
    table = pq.read_table(frame.outreach.to_parquet(tmp_path / "added.parquet"))
    added = table.append_column("number_2", pa.array([None, *[2**60 + 1] * 4]))
    pq.write_table(added, tmp_path / "added.parquet")
    for name in ("edited.csv", "lost.csv", "moved.csv", "noted.csv"):
        frame.outreach.to_csv(tmp_path / name)
    with (tmp_path / "edited.csv").open("a") as file:
        file.write("x")
    (tmp_path / "lost.csv-metadata.json").unlink()
    (tmp_path / "moved.csv-metadata.json").write_text('{"format": "another program"}')
    notes = (tmp_path / "noted.csv-metadata.json").rename(outside / "notes")
    (tmp_path / "noted.csv-metadata.json").symlink_to(notes)
    frame.outreach.to_excel(tmp_path / "edited.xlsx")
    with zipfile.ZipFile(tmp_path / "edited.xlsx") as package:
        parts = {info: package.read(info) for info in package.infolist()}
    with zipfile.ZipFile(tmp_path / "edited.xlsx", "w") as package:
        for info, content in parts.items():
            saved = rb"\g<1>2026-01-01T00:00:00Z<"
            package.writestr(info, re.sub(rb"(<dcterms:modified[^>]*>)[^<]*<", saved, content))
    (tmp_path / "hard.csv").hardlink_to(frame.outreach.to_csv(outside / "hard.csv"))
    frame.outreach.to_csv(outside / "link.csv")
    (tmp_path / "link.csv").symlink_to(outside / "link.csv")
    (tmp_path / f".new.csv.{'0' * 12}.{'0' * 32}.tmp").write_text(EMAIL)
    before = {path: path.read_bytes() for place in (tmp_path, outside) for path in place.iterdir()}
    with pytest.warns(OutreachWarning, match="Not read: "):
        found = of.forget(**ADA, folder=tmp_path, files=True)
    assert {path: path.read_bytes() for path in before} == before
    assert not found["removed"].any()
    why = reasons(found)
    expected = {
        "foreign.csv": "no metadata file",
        "foreign.parquet": "did not write the file",
        "added.parquet": "another program has changed the file",
        "edited.csv": "was changed",
        "lost.csv": "no metadata file",
        "moved.csv": "was not written by this package",
        "noted.csv": "no metadata file",
        f".new.csv.{'0' * 12}.{'0' * 32}.tmp": "no metadata file",
        "link.csv": "is a link",
        "edited.xlsx": "another program",
        "hard.csv": "hard links",
    }
    assert {name for name in why if not name.startswith("*")} == expected.keys()
    for name, words in expected.items():
        assert words in why[name], name


def test_files_that_name_people_elsewhere_are_listed(tmp_path: Path) -> None:
    """Only a row's own identifiers remove it; a file that names the person elsewhere is listed."""
    frame = pd.DataFrame(
        {
            "email": [EMAIL, "bo@x.example", "cy@x.example"],
            "note": ["", f"a colleague of {EMAIL}", ""],
            "by": pd.Categorical(["-", EMAIL, "-"]),
            "email_2": [None, EMAIL, None],
        }
    )
    save_all(frame, tmp_path)
    frame.iloc[1:].rename(columns={"note": EMAIL}).outreach.to_parquet(tmp_path / "b.parquet")
    found = of.forget(email=EMAIL, folder=tmp_path, files=True)
    assert not found["removed"].any()
    assert all("still name" in why for why in reasons(found).values())
    assert {"a.csv", "a.parquet", "a.xlsx", "b.parquet"} <= reasons(found).keys()
    for name in ("a.csv", "a.parquet", "a.xlsx"):
        kept = frame.iloc[1:].reset_index(drop=True)
        if name == "a.xlsx":  # a format without dtypes and empty text
            kept = kept.astype({"by": "str"}).replace("", None)
        pd.testing.assert_frame_equal(of.read_prospects(tmp_path / name), kept)


@contextmanager
def journal_with_texts(path: Path) -> Iterator[Callable[[], SubmissionReport]]:
    """Add two people while the service names one of them; yield a function that adds them again."""
    frame = pd.DataFrame({"email": ["bo@x.example", EMAIL]})
    words = f"refused: {EMAIL}, and cy@x.example"
    named = json({"total": 1, "total_added_to_sequence": 1, "words": words})
    replies = only_posts([json({"message": words}, 500), named])
    with scripted(replies) as service, connected(service) as client:
        options = {"journal": path, "client": client, "chunk_size": 1}
        with pytest.warns(OutreachWarning, match="1 is unknown"):
            frame.outreach.add_to_sequence("s1", **options)
        yield lambda: frame.outreach.add_to_sequence("s1", **options)


@pytest.mark.filterwarnings("ignore:Not all rows were added")
def test_journals_lose_addresses_and_keep_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Details lose the address, also in free pages, and nobody is added again."""
    path = tmp_path / "own" / "journal"
    for folder in ("own", "links"):
        (tmp_path / folder).mkdir()
    with journal_with_texts(path) as add:
        with closing(sqlite3.connect(path)) as journal, journal:
            journal.execute("CREATE TABLE free AS SELECT ? AS text", [EMAIL * 900])
            journal.execute("DROP TABLE free")
        assert has_traces(tmp_path)
        (tmp_path / "links" / "journal").symlink_to(path)
        linked = of.forget(email=EMAIL, folder=tmp_path / "links", files=True)
        assert "is a link" in reasons(linked)["journal"]
        with sqlite_file.locked(path, "journal"):
            busy = of.forget(email=EMAIL, folder=path.parent, files=True)
        assert "is in use" in reasons(busy)["journal"]
        assert not linked["removed"].any()
        assert not busy["removed"].any()
        assert has_traces(tmp_path)
        monkeypatch.chdir(tmp_path)
        found = of.forget(email=EMAIL, folder="own", files=True)
        assert found[["kind", "removed"]].to_numpy().tolist() == [["journal", True]]
        assert "hashes stay" in reasons(found)["journal"]
        assert not has_traces(tmp_path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        again = add()
        assert again.rows["attempts"].tolist() == [1, 1]
        assert "refused: [removed], and cy@x.example" in again.rows["detail"][0]


def test_interrupted_exports_and_caches(tmp_path: Path) -> None:
    """An interrupted export is listed and can be resumed; another client's cache is cleaned."""

    def page(received: Received) -> Reply:
        if received.json["page"] == 2:
            return json({}, 500)
        people = [{"id": "1", "profnet_url": URL}]
        return json({"results": people, "_pagination": {"total": 2, "total_pages": 2}})

    with scripted(page) as service, of.connect(service.url, "t", cache=None, max_wait=0):
        for name in ("a.csv", "b.parquet", "c"):
            with pytest.raises(of.OutreachError):
                of.export_people(tmp_path / name, page_size=1, progress=False)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with closing(Client("http://127.0.0.1:1", "t", cache=tmp_path / "cache")) as client:
        assert client.cache is not None
        client.cache.set("key", b"at " + URL.encode(), 60)
    found = of.forget(profnet_url=URL, folder=tmp_path, files=True)
    assert found["kind"].tolist() == [*["checkpoint"] * 3, "cache"]
    assert found["removed"].tolist() == [*[False] * 3, True]
    assert found["rows"].eq(1).all()
    assert "an interrupted export; resume it" in reasons(found)["journal.sqlite"]
    assert all(path.read_bytes() == content for path, content in before.items())


def test_journal_of_a_killed_run(tmp_path: Path) -> None:
    """A journal with an unfinished transaction is searched and cleaned."""
    path = tmp_path / "live.journal"
    folder = tmp_path / "killed"
    folder.mkdir()
    with journal_with_texts(path), closing(sqlite3.connect(path, isolation_level=None)) as journal:
        journal.execute("PRAGMA cache_size = 1")
        journal.execute("BEGIN")
        for number in range(40):
            record = [-number - 1, "x" * 9000]
            journal.execute("INSERT INTO records VALUES (?, ?, 0)", record)
        for name in (path.name, f"{path.name}-journal"):
            shutil.copyfile(tmp_path / name, folder / name)
    assert of.forget(email=EMAIL, folder=folder, files=True)["removed"].tolist() == [True]
    assert not has_traces(folder)


KILLED = """
import os, signal, sys
from pathlib import Path
import outreach_frames as of

def run(path, renames):
    def kill(event, _):
        nonlocal renames
        if event == "os.rename":
            renames -= 1
            renames or os.kill(os.getpid(), signal.SIGKILL)

    frame = of.read_prospects(path)[["E-Mail", "number"]].astype({"number": "Float64"})
    sys.addaudithook(kill)
    frame.outreach.to_csv(path)
    os._exit(0)

for path in sorted(Path(sys.argv[1]).glob("*/a.csv")):
    child = os.fork() or run(path, int(path.parent.name))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_killed_between_any_two_files(tmp_path: Path) -> None:
    """After a kill between any two renames, the CSV file and its metadata still agree."""
    old = leads()
    new = old[["E-Mail", "number"]].astype({"number": "Float64"})
    paths = [tmp_path / str(renames) / "a.csv" for renames in range(1, 5)]
    for path in paths:
        path.parent.mkdir()
        old.outreach.to_csv(path)
    assert forked.run(KILLED, tmp_path).stdout.split() == [str(-signal.SIGKILL)] * 3 + ["0"]
    for path in paths:
        found = of.read_prospects(path)
        pd.testing.assert_frame_equal(found, old if found.shape == old.shape else new)
        for left in path.parent.glob(".*.tmp"):
            left.unlink()
        assert of.forget(**ADA, folder=path.parent, files=True)["removed"].all()
        assert not has_traces(path.parent)


def test_files_need_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a folder, files=True is an error, and the command prints why a file is kept."""
    with pytest.raises(InvalidInputError, match="Pass folder="):
        of.forget(email=EMAIL, files=True)
    assert cli.main(["forget", "--email", EMAIL, "--files"]) == 2
    assert "--folder" in capsys.readouterr().err
    leads().to_csv(tmp_path / "foreign.csv")
    leads().outreach.to_csv(tmp_path / "own.csv")
    options = ["--folder", str(tmp_path), "--files"]
    assert cli.main(["forget", "--email", EMAIL, "--profnet-url", URL, *options]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "no metadata file proves" in printed
    assert "removed: True" in printed
    assert np.array_equal(
        of.read_prospects(tmp_path / "own.csv")["number"].isna(), [False, True, False]
    )
