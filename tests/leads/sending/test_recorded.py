"""Reports from a journal, and tables without the people that a journal's submission reached."""

from __future__ import annotations

import pickle
import shutil
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.leads.sending import memory
from outreach_frames.leads.sending.report import SubmissionReport
from tests import forked
from tests import scripted as script
from tests.examples import share_of_examples
from tests.leads.sending.lead_service import added, column, connected, notes, refused, serving
from tests.scripted import Received, Reply, scripted

Row = tuple[str | None, str | None]
COMPARED = ["index", "status", "error_code", "chunk", "attempts", "sent_at"]
NAMES = "abcdefgh"


TRY_TO_WRITE = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0).execute("BEGIN EXCLUSIVE")
except sqlite3.OperationalError as error:
    print(error)
"""


def email(name: str) -> str:
    """Return a person's address."""
    return f"{name}@example.com"


def url(name: str) -> str:
    """Return a person's profile URL; it is weak for the names f to h."""
    return f"https://profnet.example/{'in' if name < 'f' else 'company'}/{name}"


def reply(received: Received) -> Reply:
    """Reply to a request for one lead; the last letter of its identifier decides the outcome."""
    if received.method == "GET":
        return script.json({"sequences": [{"id": "s1", "status": "active"}], "_links": {}})
    (lead,) = received.json["leads"]
    last = (lead.get("email") or lead["profnet_url"]).removesuffix("@example.com")[-1]
    if last in "ag":
        return refused("other", status=400)
    if last == "b":
        return script.json([])  # proves no outcome
    if last == "c":
        listed = {key: lead.get(key) for key in ("email", "profnet_url")}
        return script.json(
            {"total": 1, "total_added_to_sequence": 0, "recently_contacted_and_skipped": [listed]}
        )
    return added(received)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Connect to a service whose outcomes depend on the person's name."""
    with scripted(reply) as service, connected(service) as connection:
        yield connection


def frame_of(rows: list[Row]) -> pd.DataFrame:
    """Make a frame of identifiers."""
    return pd.DataFrame(rows, columns=["email", "profnet_url"], dtype="str")


def add(frame: pd.DataFrame, client: Client, path: Path, **options: Any) -> SubmissionReport:
    """Add a frame's rows, one per request."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        return frame.outreach.add_to_sequence(
            "s1", client=client, journal=path, chunk_size=1, progress=False, **options
        )


def persons(rows: list[Row]) -> list[set[int]]:
    """Group the rows of each person by comparing every pair of rows."""

    def keys(row: Row) -> set[str]:
        weak = row[1] is not None and "/in/" not in row[1]
        return {key for key in row if key and not (weak and key == row[1] and row[0])}

    groups: list[set[int]] = []
    for number, row in enumerate(rows):
        same = [one for one in groups if any(keys(row) & keys(rows[other]) for other in one)]
        groups = [one for one in groups if one not in same] + [{number}.union(*same)]
    return groups


EITHER = st.sampled_from(NAMES)
ROWS = st.lists(
    st.one_of(
        st.tuples(EITHER.map(email), st.none()),
        st.tuples(st.none(), EITHER.map(url)),
        st.tuples(EITHER.map(email), EITHER.map(url)),
    ),
    max_size=4,
)


@pytest.mark.long
@share_of_examples(0.4)
@given(before=ROWS, after=ROWS)
def test_against_brute_force(
    before: list[Row], after: list[Row], client: Client, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The journal's report equals the run's; `without` excludes exactly the people reached."""
    path = tmp_path_factory.mktemp("campaign") / "spring.journal"
    memory.clear()
    made = add(frame_of(before), client, path)
    content = path.read_bytes() if path.exists() else b""
    if not content:  # nothing was sent
        return
    read = frame_of(before).outreach.report(journal=path)
    pd.testing.assert_frame_equal(read.rows[COMPARED], made.rows[COMPARED])

    reached: list[Row] = []
    for person in persons(before):
        if not {column(made)[row] for row in person} & {"rejected", "not_sent"}:
            reached += [before[row] for row in person]
    together = persons([*reached, *after])
    known = [one for one in together if min(one, default=0) < len(reached)]
    gone = {row - len(reached) for one in known for row in one}
    kept = [row for row in range(len(after)) if row not in gone]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        found = frame_of(after).outreach.without(path)
    assert found.index.tolist() == kept
    again = frame_of(after).outreach.report(journal=path)
    unsent = {"not_sent", "rejected"}
    assert not unsent & {column(again)[row] for row in gone if row >= 0}
    assert {column(again)[row] for row in kept} <= {*unsent, "duplicate_in_frame"}
    assert path.read_bytes() == content


@pytest.fixture
def path(client: Client, tmp_path: Path) -> Path:
    """Return the journal of a submission with one row of each outcome."""
    path = tmp_path / "spring.journal"
    add(frame_of([(email(name), None) for name in "abcd"]), client, path)
    return path


def test_report(path: Path) -> None:
    """A journal's report has the recorded outcomes and times; new rows are `not_sent`."""
    rows = [*((email(name), None) for name in "dcbaz"), (email("z").upper(), None)]
    read = frame_of(rows).outreach.report(journal=path)
    expected = ["added", "recently_contacted", "unknown", "rejected", "not_sent", "not_sent"]
    assert column(read) == expected
    assert read.rows["sent_at"].isna().tolist() == [False] * 4 + [True] * 2
    assert str(read.rows["sent_at"].dtype) == "datetime64[us, UTC]"
    assert read.rows["detail"][4] == "The journal has no record of the row."
    assert f"in the journal {path}" in repr(read)
    assert "no record" in read._repr_html_()
    assert read.summary().set_index("status").loc["not_sent"].tolist() == [2, 0]
    assert read.rows["earlier_run"].tolist() == [True] * 4 + [False] * 2
    assert len(of.read_prospects(read.to_csv(path.parent / "out") / "failed.csv")) == 4
    assert read.error is None
    for one in (read, pickle.loads(pickle.dumps(read))):  # noqa: S301
        with pytest.raises(InvalidInputError, match=r"journal|no connection"):
            one.retry_unknown()


def test_read_journal(path: Path, client: Client) -> None:
    """Each recorded lead has a row with its outcome, without messages of the service."""
    frame = frame_of([(email(name), None) for name in "abcd"])
    add(frame_of([(email("z"), None), (email("Z"), None), ("n/a", None)]), client, path)
    read = of.read_journal(str(path))
    report = frame.outreach.report(journal=path)
    assert read["status"].tolist() == [*column(report), "added"]
    columns = ["status", "detail", "error_code", "chunk", "attempts", "sent_at"]
    assert read.dtypes.equals(report.rows[columns].dtypes)
    same = ["status", "error_code", "chunk", "attempts", "sent_at"]
    pd.testing.assert_frame_equal(read[same].head(4), report.rows[same])
    elsewhere = "The service's message is only in the report of the run that received it."
    assert notes(report)[0] == elsewhere
    lacking = "The service's response lacks the outcome."
    assert read["detail"].tolist() == [elsewhere, lacking, "", "", ""]
    assert read.attrs == {"sequence_id": "s1"}
    assert report.sequence_id == "s1"


def test_journals_hold_no_text_of_the_service(tmp_path: Path) -> None:
    """A journal's file has no message, odd code or odd list of the service; plain words stay."""
    path = tmp_path / "spring.journal"
    message = {"error_code": "bad.Lead-1", "message": "Ann Berg, ann@x.example, is unsubscribed."}
    odd = {"error_code": "lead ann@x.example is odd", "message": "ann@x.example"}
    entries = [{"email": email("c"), "name": "Ann Berg"}]
    count = {"total": 1, "total_added_to_sequence": 0}
    replies = [
        script.json({"validation_errors": [message]}, 422),
        script.json({"validation_errors": [odd]}, 422),
        script.json({**count, "a_list_and_skipped": entries}),
        script.json({**count, "friends of Ann_and_skipped": [{"email": email("d")}]}),
        script.json({"error": "Ann Berg"}, 500),
        script.json({"total": "Ann Berg", "total_added_to_sequence": 1}),
        script.reset(),
    ]
    with serving(*replies) as (_, client):
        report = add(frame_of([(email(name), None) for name in "abcdefg"]), client, path)
        again = add(frame_of([(email("d"), None)]), client, path)
    assert "Ann" in report.frame.to_csv()
    assert "ann" not in path.read_bytes().decode(errors="ignore").lower()
    assert b"@x.example" not in path.read_bytes()
    read = of.read_journal(path)
    assert read["status"].tolist()[2:4] == ["a_list", "skipped"]
    assert read["error_code"].tolist()[0] == "bad.Lead-1"
    assert read["error_code"].isna().tolist() == [False] + [True] * 6
    elsewhere = "The service's message is only in the report of the run that received it."
    may_have = "The service may have added the lead nevertheless."
    details = read["detail"].tolist()
    assert details == [*[elsewhere] * 4, f"{may_have} {elsewhere}", elsewhere, details[4]]
    assert column(again) == ["skipped"]
    assert again.summary().set_index("status").loc["skipped", "rows"] == 1


def test_reading_changes_no_file(path: Path) -> None:
    """Reading a journal creates, changes and locks no file, and works in a read-only folder."""
    path.with_name(f"{path.name}.lock").unlink()
    before = path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())
    path.parent.chmod(0o500)
    try:
        other = frame_of([(email("d"), url("d")), (None, url("e"))])
        assert column(other.outreach.report(journal=str(path))) == ["added", "not_sent"]
        assert len(of.read_journal(path)) == 4
        with pytest.warns(OutreachWarning, match="without email address"):
            assert other.outreach.without(str(path)).index.tolist() == [1]
    finally:
        path.parent.chmod(0o700)
    assert (path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())) == before


@pytest.mark.long
def test_during_a_run(tmp_path: Path) -> None:
    """Reading a journal that is in use is an error, and leaves the run and its lock alone."""
    path, seen = tmp_path / "spring.journal", []
    frame = frame_of([(email(name), None) for name in "xy"])

    def ask(received: Received) -> Reply:
        for read in (
            lambda: frame.outreach.report(journal=path),
            lambda: of.read_journal(path),
            lambda: frame.outreach.without(path),
            lambda: frame.outreach.plan("s1").submit(journal=path, dry_run=True),
        ):
            try:
                read()
            except InvalidInputError as error:
                seen.append("is in use. Wait for the other run to end" in str(error))
        seen.append(forked.run(TRY_TO_WRITE, path).stdout.strip())
        return added(received)

    with serving(ask, added) as (_, client):
        assert column(add(frame, client, path)) == ["added"] * 2
    assert seen == [True, True, True, True, "database is locked"]
    assert column(frame.outreach.report(journal=path)) == ["added"] * 2


def test_uncommitted_transaction(path: Path, tmp_path: Path) -> None:
    """An uncommitted transaction in a journal is not read."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE records SET record = record || zeroblob(9000)")
        for suffix in ("", "-journal"):
            shutil.copy(f"{path}{suffix}", tmp_path / f"copy{suffix}")
        connection.execute("ROLLBACK")
    assert (tmp_path / "copy").read_bytes() != path.read_bytes()
    frame = frame_of([(email(name), None) for name in "abcd"])
    expected = ["rejected", "unknown", "recently_contacted", "added"]
    for one in (tmp_path / "copy", path):
        assert column(frame.outreach.report(journal=one)) == expected


def test_invalid_journals(path: Path, tmp_path: Path) -> None:
    """A missing file, another file or a damaged journal is an error."""
    frame = frame_of([(email("a"), None)])

    def report_of(one: Path) -> SubmissionReport:
        return frame.outreach.report(journal=one)

    (tmp_path / "spring.csv").write_text("email\na@example.com\n")
    (tmp_path / "empty.journal").touch()
    with closing(sqlite3.connect(tmp_path / "other.journal")) as other:
        other.execute("CREATE TABLE leads (lead INTEGER)")
    shutil.copy(path, tmp_path / "old.journal")
    with closing(sqlite3.connect(tmp_path / "old.journal")) as old:
        old.execute("PRAGMA user_version = 2")
    (tmp_path / "cut.journal").write_bytes(path.read_bytes()[:9000])
    # An unknown schema format, which SQLite rejects without an error code.
    content = bytearray(path.read_bytes())
    content[47] ^= 1
    (tmp_path / "format.journal").write_bytes(content)
    for name, reported, excluded in (
        ("none.journal", "not found", "not found"),
        (".", "is a folder", r"without\(\) cannot read .* as a table: The folder"),
        ("empty.journal", "not a journal", "is neither"),
        ("other.journal", "not a journal", "is neither"),
        ("old.journal", "another version", "another version"),
        ("cut.journal", "is damaged", "is damaged"),
        ("format.journal", "is damaged", "is damaged"),
    ):
        for call in (report_of, of.read_journal):
            with pytest.raises(InvalidInputError, match=reported):
                call(tmp_path / name)
        with pytest.raises(InvalidInputError, match=excluded):
            frame.outreach.without(tmp_path / name)
    with pytest.raises(InvalidInputError, match=r"not a journal.*read_prospects"):
        report_of(tmp_path / "spring.csv")


def test_journals_among_tables(path: Path, client: Client) -> None:
    """`without` accepts journals and frames together, and compares them by every key."""
    urls = path.with_name("urls.journal")
    memory.clear()  # as in another process
    add(frame_of([(None, url("d")), (None, url("a"))]), client, urls)
    rows: list[Row] = [
        (email("d").upper(), None),
        (f"Dee <{email('new')}>; {email('d')}", None),
        (email("own"), f"{url('d')}?trk=x"),
        (email("own"), None),
        (email("a"), url("a")),
        (email("crm"), None),
        (None, None),
    ]
    frame = frame_of(rows).rename(columns={"email": "Mail"})
    crm = pd.DataFrame({"E-Mail": [email("crm")]})
    with pytest.warns(OutreachWarning) as caught:
        left = frame.outreach.without(
            path, crm, str(urls), email=("Mail", "E-Mail"), profnet_url="profnet_url"
        )
    assert left.index.tolist() == [4, 6]
    said = "\n".join(str(one.message) for one in caught)
    assert "The journal spring.journal was not compared by profile URL" in said
    assert "The journal urls.journal was not compared by email address" in said
    with pytest.raises(InvalidInputError, match=r"urls\.journal is compared by profnet_url only"):
        frame.outreach.without(urls, email="Mail")
    with pytest.raises(InvalidInputError, match="by email only"):
        frame.outreach.without(path, domain="Mail")
