"""Forgetting people in the package's own files: their rows go, and nothing else changes."""

from __future__ import annotations

import io
import os
import signal
import sqlite3
import stat
import zipfile
from collections.abc import Iterator
from contextlib import closing
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
from tests import forked
from tests.scripted import Received, Reply, json, scripted

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:.*people were read")]

EMAIL = "Ada.Lovelace@brightforge.example"
URL = "https://www.profnet.example/in/ada-lovelace/"
ADA = {"email": EMAIL, "profnet_url": URL}
# What stays of nobody: the person's name in an address, and in a URL.
TRACES = (b"ada.lovelace@", b"/ada-lovelace")


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the default cache in a folder of the test's own."""
    place = tmp_path_factory.mktemp("home")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(place / name))


def leads() -> pd.DataFrame:
    """Return leads of every dtype that a file keeps; Ada is in two rows, a category names her."""
    emails = ["bo@x.example", EMAIL.upper(), "cy@x.example", None, "di@x.example"]
    return pd.DataFrame(
        {
            "E-Mail": emails,
            "profnet_url": [None, None, "https://profnet.example/in/cy", URL, None],
            "text": ["two\nlines", 'a "quote"', "=1+1", " n/a", None],
            "number": pd.array([1, 2, None, 4, 5], "Int64"),
            "day": pd.to_datetime(["2026-03-01", None, "2026-03-03", "2026-03-04", None]),
            "tier": pd.Categorical(["b", EMAIL, "c", None, "b"], ["c", EMAIL, "b"], ordered=True),
            "owner": pd.Categorical(["x", "y", "x", "y", None]),
        }
    )


def others(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows and categories of all others."""
    kept = frame.iloc[[0, 2, 4]].reset_index(drop=True)
    return kept.assign(tier=kept["tier"].cat.remove_categories([EMAIL]))


def contents(folder: Path) -> Iterator[bytes]:
    """Yield all bytes of a folder's files, those of packed parts and of Parquet's pages too."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        yield content
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
    """Check whether any byte names Ada."""
    return any(trace in content.lower() for content in contents(folder) for trace in TRACES)


def reasons(found: pd.DataFrame) -> dict[str, object]:
    """Return why files still contain somebody, by their names."""
    return {
        Path(path).name: "" if pd.isna(reason) else reason
        for path, reason in zip(found["path"], found["reason"], strict=True)
    }


def test_rows_go_and_all_else_stays(tmp_path: Path) -> None:
    """In every format the rows of others keep bytes, dtypes, order and permissions."""
    frame = leads()
    paths = [
        frame.outreach.to_csv(tmp_path / "a.csv"),
        frame.outreach.to_csv(tmp_path / "a.txt", sep=";", excel=True),
        frame.outreach.to_parquet(tmp_path / "a.parquet"),
        frame.outreach.to_excel(tmp_path / "a.xlsx"),
    ]
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
        pd.testing.assert_frame_equal(of.read_prospects(path), others(frame))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for path, content in zip(paths, lines, strict=False):
        kept = [
            line for line in content.splitlines(True) if not any(map(line.lower().count, TRACES))
        ]
        assert path.read_bytes() == b"".join(kept)
    assert of.forget(**ADA, folder=tmp_path, files=True).empty


def test_exports_and_snapshots_are_cleaned(tmp_path: Path) -> None:
    """Each format of an export, its parts and categories, and snapshots lose one person only."""
    with of.connect("sandbox", cache=None) as client:
        url = of.search_people(limit=9)["profnet_url"].iloc[4]
        common = {"limit": 9, "progress": False}
        of.export_people(tmp_path / "a.csv", **common)
        of.export_people(tmp_path / "a.ndjson", **common)
        of.export_people(tmp_path / "a.parquet", **common)
        of.export_people(tmp_path / "parts", **common)
        filters = {"person_seniorities": ["owner", "founder"]}
        of.export_people(tmp_path / "split.csv", filters, split_by="person_seniorities")
        day = of.snapshot_people(tmp_path / "days", filters, date="2026-03-01")
        vp = of.read_prospects(day)["profnet_url"].iloc[0]
        paths = [*(tmp_path / name for name in ("a.csv", "a.ndjson", "a.parquet", "parts")), day]
        paths.append(tmp_path / "split.csv")
        before = {path: of.read_prospects(path) for path in paths}
        found = of.forget(profnet_url=[url, vp], folder=tmp_path, files=True, client=client)
    assert found["removed"].all()
    assert len(found) >= len(paths)
    assert of.forget(profnet_url=[url, vp], folder=tmp_path, files=True).empty
    for path, frame in before.items():
        kept = frame[~frame["profnet_url"].isin([url, vp])].reset_index(drop=True)
        assert len(kept) < len(frame)
        pd.testing.assert_frame_equal(of.read_prospects(path), kept)
    with pytest.warns(OutreachWarning, match=r"\d+ of \d+ matching people"):
        of.snapshots(tmp_path / "days")


def test_row_groups_and_labels_of_parquet_stay(tmp_path: Path) -> None:
    """A large export keeps its row groups; labels that are no row numbers stay with their rows."""
    frame = leads()
    path = frame.outreach.to_parquet(tmp_path / "groups.parquet")
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for start in range(len(frame)):
            writer.write_table(table.slice(start, 1))
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
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert sum(groups) == 3
    assert max(groups) == 1
    pd.testing.assert_frame_equal(of.read_prospects(path), others(frame))
    for name, each in labelled.items():
        kept = each.iloc[[0, 2, 4]]
        kept = kept.assign(tier=kept["tier"].cat.remove_categories([EMAIL]))
        pd.testing.assert_frame_equal(
            of.read_prospects(tmp_path / name), kept, check_index_type=False
        )


def test_workbooks_of_several_sheets(tmp_path: Path) -> None:
    """Each sheet loses its rows, blank rows at its end stay, and Excel's ranges get shorter."""
    with of.connect("sandbox", cache=None) as client:
        sequence = of.sequences(status="active")["id"].iloc[0]
        frame = pd.DataFrame({"email": ["bo@x.example", EMAIL, None, None]})
        report = frame.outreach.add_to_sequence(sequence, client=client)
        path = report.to_excel(tmp_path / "report.xlsx")
    blank = pd.DataFrame({"email": [EMAIL, "bo@x.example", None], "a": [1, None, None]})
    blank.outreach.to_excel(tmp_path / "blank.xlsx")
    sheets = {name: of.read_prospects(path, sheet_name=name) for name in ("added", "failed")}
    assert of.forget(email=EMAIL, folder=tmp_path, files=True)["removed"].all()
    assert not has_traces(tmp_path)
    for name, sheet in sheets.items():
        kept = sheet[sheet["email"] != EMAIL].reset_index(drop=True)
        pd.testing.assert_frame_equal(of.read_prospects(path, sheet_name=name), kept)
    found = of.read_prospects(tmp_path / "blank.xlsx")
    pd.testing.assert_frame_equal(found, blank.iloc[1:].reset_index(drop=True))
    with zipfile.ZipFile(tmp_path / "blank.xlsx") as package:
        assert b'autoFilter ref="A1:B3"' in package.read("xl/worksheets/sheet1.xml")
        assert b"$A$1:$B$3" in package.read("xl/workbook.xml")
        assert package.testzip() is None


def test_files_of_others_are_listed_with_why(tmp_path: Path) -> None:
    """What the package did not write, or somebody changed or has open, stays byte for byte."""
    frame = leads()
    frame.to_csv(tmp_path / "foreign.csv")
    frame.drop(columns="tier").to_parquet(tmp_path / "foreign.parquet")
    for name in ("edited.csv", "lost.csv", "moved.csv", "linked.csv"):
        frame.outreach.to_csv(tmp_path / name)
    with (tmp_path / "edited.csv").open("a") as file:
        file.write("x")
    (tmp_path / "lost.csv-metadata.json").unlink()
    (tmp_path / "moved.csv-metadata.json").write_text('{"format": "another program"}')
    os.link(tmp_path / "linked.csv", tmp_path / "same.csv")
    for name in ("edited.xlsx", "open.xlsx"):
        frame.outreach.to_excel(tmp_path / name)
    (tmp_path / "~$open.xlsx").touch()
    with zipfile.ZipFile(tmp_path / "edited.xlsx") as package:
        parts = {info: package.read(info) for info in package.infolist()}
    with zipfile.ZipFile(tmp_path / "edited.xlsx", "w") as package:
        for info, content in parts.items():
            saved = b"2026-01-01T00:00:00Z</dcterms:modified>"
            end = content.find(b"</dcterms:modified>")
            package.writestr(info, content if end < 0 else content[: end - 20] + saved)
    (tmp_path / "notes.md").write_text(EMAIL)
    outside = tmp_path.parent / f"{tmp_path.name}-outside.csv"
    frame.outreach.to_csv(outside)
    (tmp_path / "link.csv").symlink_to(outside)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.warns(OutreachWarning, match="2 files or folders not read"):
        found = of.forget(**ADA, folder=tmp_path, files=True)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert not found["removed"].any()
    why = reasons(found)
    expected = {
        "foreign.csv": "no metadata file",
        "foreign.parquet": "did not write it",
        "edited.csv": "was changed",
        "lost.csv": "no metadata file",
        "moved.csv": "was not written by this package",
        "linked.csv": "several names",
        "same.csv": "several names",
        "link.csv": "is a link",
        "edited.xlsx": "another program",
        "open.xlsx": "open in Excel",
        "notes.md": "no metadata file",
    }
    assert {name for name in why if not name.endswith("-metadata.json")} == expected.keys()
    for name, words in expected.items():
        assert words in str(why[name]), name


def test_people_who_are_named_elsewhere_are_told(tmp_path: Path) -> None:
    """A row goes by its own identifiers only; a file that names the person elsewhere is listed."""
    frame = pd.DataFrame(
        {
            "email": [EMAIL, "bo@x.example", "cy@x.example"],
            "note": ["", f"a colleague of {EMAIL}", ""],
            "by": pd.Categorical(["-", EMAIL, "-"]),
        }
    )
    frame.outreach.to_csv(tmp_path / "a.csv")
    frame.outreach.to_parquet(tmp_path / "a.parquet")
    frame.outreach.to_excel(tmp_path / "a.xlsx")
    frame.iloc[1:].rename(columns={"note": EMAIL}).outreach.to_parquet(tmp_path / "b.parquet")
    found = of.forget(email=EMAIL, folder=tmp_path, files=True)
    assert not found["removed"].any()
    assert all("still name" in str(why) for why in reasons(found).values())
    assert {"a.csv", "a.parquet", "a.xlsx", "b.parquet"} <= reasons(found).keys()
    for name in ("a.csv", "a.parquet", "a.xlsx"):
        kept = frame.iloc[1:].reset_index(drop=True)
        pd.testing.assert_frame_equal(of.read_prospects(tmp_path / name), kept)


def test_journals_lose_addresses_and_keep_hashes(tmp_path: Path) -> None:
    """Details and notes lose the address, free pages too; nobody is written to again."""
    path = tmp_path / "journal"
    frame = pd.DataFrame({"email": ["bo@x.example", EMAIL]})
    with of.connect("sandbox", cache=None) as client:
        sequence = client.sandbox.sequence_ids["accepts_any"]
        frame.outreach.add_to_sequence(sequence, journal=path, client=client)
        with closing(sqlite3.connect(path)) as journal, journal:
            words = f"refused: {EMAIL}, and cy@x.example"
            journal.execute("UPDATE leads SET detail = ?", [words])
            journal.execute("INSERT INTO notes (text) VALUES (?)", [words * 900])
            journal.execute("UPDATE notes SET text = ?", [words])
        assert has_traces(tmp_path)
        with sqlite_file.locked(path, "journal"):
            busy = of.forget(email=EMAIL, folder=tmp_path, files=True)
        assert "is in use" in str(reasons(busy)["journal"])
        assert not busy["removed"].any()
        found = of.forget(email=EMAIL, folder=tmp_path, files=True)
        assert found[["kind", "removed"]].to_numpy().tolist() == [["journal", True]]
        assert "hashes stay" in str(reasons(found)["journal"])
        assert not has_traces(tmp_path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        again = frame.outreach.add_to_sequence(sequence, journal=path, client=client)
        assert again.rows["attempts"].tolist() == [1, 1]
        assert again.rows["detail"].tolist() == ["refused: [removed], and cy@x.example"] * 2


def test_an_interrupted_export_starts_over(tmp_path: Path) -> None:
    """What an export has read so far goes with the person; an export that runs is left alone."""
    broken = [True]

    def page(received: Received) -> Reply:
        number = received.json["page"]
        if number == 2 and broken:
            return json({}, 500)
        people = [{"id": f"{number}", "profnet_url": URL if number == 1 else None}]
        return json({"results": people, "_pagination": {"total": 2, "total_pages": 2}})

    with scripted(page) as service, of.connect(service.url, "t", cache=None, max_wait=0):
        for name in ("a.csv", "b"):
            with pytest.raises(of.OutreachError):
                of.export_people(tmp_path / name, page_size=1, progress=False)
        with sqlite_file.locked(tmp_path / "b", "export", lock=tmp_path / ".b.partial" / "lock"):
            found = of.forget(profnet_url=URL, folder=tmp_path, files=True)
        assert found["removed"].tolist() == [True, False]
        assert "is in use" in str(found["reason"].iloc[1])
        assert of.forget(profnet_url=URL, folder=tmp_path, files=True)["removed"].tolist() == [True]
        assert [path.name for path in tmp_path.iterdir()] == []
        broken.clear()
        of.export_people(tmp_path / "b", page_size=1, progress=False)
        assert len(of.read_prospects(tmp_path / "b")) == 2


def test_caches_and_temporary_files_go_too(tmp_path: Path) -> None:
    """Another client's cache loses the response, and what a killed writer left is deleted."""
    with closing(Client("http://127.0.0.1:1", "t", cache=tmp_path / "cache")) as client:
        assert client.cache is not None
        client.cache.set("key", EMAIL.encode(), 60)
    forked.run(KILLED, tmp_path / "a.csv", 1)
    (tmp_path / "mine.tmp").write_text(EMAIL)
    found = of.forget(email=EMAIL, folder=tmp_path, files=True)
    assert found["removed"].tolist() == [True, True, False]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "cache.lock", "mine.tmp"]


KILLED = """
import os, signal, sys
import pandas as pd
import outreach_frames as of

path, moment, *whom = sys.argv[1:]
left = int(moment)

def kill(event, _):
    global left
    if event == "os.rename":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(kill)
if whom:
    of.forget(email=whom[0], folder=os.path.dirname(path), files=True)
else:
    pd.DataFrame({"email": ["Ada.Lovelace@brightforge.example"] * 9}).outreach.to_csv(path)
"""


def test_killed_between_any_two_files(tmp_path: Path) -> None:
    """A CSV and its metadata file fit each other whenever the run is killed, and it can go on."""
    frame = leads().drop(columns="profnet_url").iloc[[0, 1, 2, 4]].reset_index(drop=True)
    kept = frame.drop(index=1).reset_index(drop=True)
    kept["tier"] = kept["tier"].cat.remove_categories([EMAIL])
    seen, runs = [], []
    for moment in (1, 2, 3, 4):
        path = tmp_path / str(moment) / "a.csv"
        path.parent.mkdir()
        frame.outreach.to_csv(path)
        runs.append((path, forked.Process(KILLED, path, moment, EMAIL)))
    for path, run in runs:
        returned = run.wait()
        found = of.read_prospects(path)
        seen.append((returned, len(found)))
        # The metadata file keeps the old categories until the rows are gone.
        same = frame.iloc[: len(found)] if len(found) == 4 else kept.assign(tier=found["tier"])
        pd.testing.assert_frame_equal(found, same)
        of.forget(email=EMAIL, folder=path.parent, files=True)
        pd.testing.assert_frame_equal(of.read_prospects(path), kept)
        assert not has_traces(path.parent)
    assert seen == [(-signal.SIGKILL, 4), (-signal.SIGKILL, 4), (-signal.SIGKILL, 3), (0, 3)]


def test_files_need_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a folder it is an error, here and in the shell, which prints why a file stays."""
    with pytest.raises(InvalidInputError, match="Pass folder="):
        of.forget(email=EMAIL, files=True)
    assert cli.main(["forget", "--email", EMAIL, "--files"]) == 2
    assert "--folder" in capsys.readouterr().err
    leads().to_csv(tmp_path / "foreign.csv")
    leads().outreach.to_csv(tmp_path / "own.csv")
    options = ["--folder", str(tmp_path), "--files"]
    assert cli.main(["forget", "--email", EMAIL, "--profnet-url", URL, *options]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "no metadata file beside it" in printed
    assert "removed: True" in printed
    assert np.array_equal(
        of.read_prospects(tmp_path / "own.csv")["number"].isna(), [False, True, False]
    )
