"""Runs with one journal send each person once, even if the rows change between runs."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.leads.sending import memory
from outreach_frames.leads.sending.report import SubmissionReport
from tests import scripted as script
from tests.leads.sending.lead_service import added, column, serving, skipped
from tests.scripted import Received, Reply, Service

pytestmark = pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")

Row = tuple[str | None, str | None]

A, A2, B, C = (f"{name}@example.com" for name in ("a", "a2", "b", "c"))
U, V = (f"https://profnet.example/in/{name}" for name in ("u", "v"))
# A weak URL: a company's page, which colleagues may share.
W = "https://profnet.example/company/w"


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Make a frame of identifiers."""
    return pd.DataFrame(rows, columns=["email", "profnet_url"], dtype="str")


def sent(service: Service) -> list[list[Row]]:
    """Return the identifiers of each request's leads."""
    return [
        [(lead.get("email"), lead.get("profnet_url")) for lead in each.json["leads"]]
        for each in service.requests
        if each.method == "POST"
    ]


def add(
    client: Client, rows: Iterable[Row], path: Path | None, go: Any = None, **options: Any
) -> SubmissionReport:
    """Add rows to a sequence; `go` is an additional column."""
    frame = frame_of(rows)
    if go is not None:
        frame["go"] = go
    options = {"progress": False, "client": client, "journal": path, **options}
    return frame.outreach.add_to_sequence("s1", **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a path for a journal."""
    return tmp_path / "leads.journal"


MANY = range(30)
EMAILS: list[Row] = [(f"p{n}@example.com", None) for n in MANY]
URLS: list[Row] = [(None, f"https://profnet.example/in/p{n}") for n in MANY]
BOTH: list[Row] = [(email, url) for (email, _), (_, url) in zip(EMAILS, URLS, strict=True)]

# Rows of the first run, rows of later runs, which send no row, and the last run's statuses.
HISTORIES: dict[str, tuple[list[Row], list[list[Row]], list[str]]] = {
    "reversed": (
        [(A, None), (A, U), (None, U)],
        [[(None, U), (A, U), (A, None)]],
        ["duplicate_in_frame", "duplicate_in_frame", "added"],
    ),
    "in another order, 30 people": (
        [*EMAILS, *URLS, *BOTH],
        [[*URLS, *EMAILS, *BOTH]],
        ["duplicate_in_frame"] * 30 + ["added"] * 30 + ["duplicate_in_frame"] * 30,
    ),
    "duplicates alone": ([*EMAILS, *BOTH, *URLS], [URLS], ["added"] * 30),
    "another address, then without the URL": (
        [(A, U), (A2, U)],
        [[(A2, None)]],
        ["added"],
    ),
    "a URL gained, then the URL alone": ([(A, None)], [[(A, U)], [(None, U)]], ["added"]),
    "an address gained, then corrected": ([(None, U)], [[(A, U)], [(A, V)], [(A2, V)]], ["added"]),
    "linked by a run that sent nobody": (
        [(A, None), (B, V)],
        [[(A, V)], [(None, V), (A, None), (B, None)]],
        ["added", "added", "duplicate_in_frame"],
    ),
    "a weak URL alone": ([(None, W)], [[(None, W), (None, W)]], ["added", "duplicate_in_frame"]),
    "spelled in another way": (
        [(A, U)],
        [[("A@EXAMPLE.com", "http://www.PROFNET.example/in/U/?trk=x")]],
        ["added"],
    ),
    "pages of a profile": (
        [(None, f"{U}/details/skills"), (None, f"{U}?x=1")],
        [[(None, U), (None, f"{U}?x=1"), (None, f"{U}/details/skills")]],
        ["duplicate_in_frame", "duplicate_in_frame", "added"],
    ),
}


@pytest.mark.parametrize(("first", "later", "expected"), HISTORIES.values(), ids=HISTORIES)
def test_a_recorded_person_is_not_sent_again(
    first: list[Row], later: list[list[Row]], expected: list[str], path: Path
) -> None:
    """A recorded person is not sent again by a row that any run links to the person."""
    with serving(added) as (service, client):
        add(client, first, path)
        for rows in later:
            report = add(client, rows, path)
        assert len(sent(service)) == 1
        assert column(report) == expected


@pytest.mark.parametrize("journal", [True, False])
def test_a_recorded_outcome_counts_if_the_person_has_no_valid_row(
    journal: bool, path: Path
) -> None:
    """A row that is invalid now has the person's outcome only if the person has no valid row."""
    options: dict[str, Any] = {"data": ["note"], "journal": path if journal else None}
    rows = frame_of([(A, None), (A, None)])
    with serving(added) as (service, client):

        def run(*notes: str) -> SubmissionReport:
            frame = rows.assign(note=notes)
            return frame.outreach.add_to_sequence("s1", client=client, progress=False, **options)

        assert column(run("fits", "fits")) == ["added", "duplicate_in_frame"]
        assert column(run("z" * 2_000, "fits")) == ["invalid", "added"]
        report = run("z" * 2_000, "z" * 2_000)
        assert column(report) == ["added", "added"]
        assert "The text has 2,000 characters" in column(report, "detail")[0]
        assert len(sent(service)) == 1


def test_a_row_that_was_sent_and_is_invalid_now_has_its_outcome(path: Path) -> None:
    """An invalid row beside a valid one has a recorded outcome if it is the very row sent."""
    rows = frame_of([(A, None), (A, None)])
    with serving(added) as (_, client):

        def run(require: list[str]) -> SubmissionReport:
            frame = rows.assign(note=["one", "two"], title=[None, "CEO"])
            return frame.outreach.add_to_sequence(
                "s1", client=client, journal=path, data=["note", "title"], require=require
            )

        assert column(run([])) == ["added", "duplicate_in_frame"]
        assert column(run(["title"])) == ["added", "added"]


def test_an_override_sends_a_skipped_persons_valid_row(path: Path) -> None:
    """A person whose first row is invalid now is sent by the next valid row with the override."""
    rows = frame_of([(A, None), (A, None)])
    with serving(skipped("recently_contacted_and_skipped"), added) as (service, client):

        def run(*notes: str, **options: Any) -> SubmissionReport:
            frame = rows.assign(note=notes)
            return frame.outreach.add_to_sequence(
                "s1", client=client, journal=path, data=["note"], **options
            )

        assert column(run("one", "two"))[0] == "recently_contacted"
        report = run("z" * 2_000, "two", overrides={"ignore_recently_contacted": True})
        assert column(report) == ["invalid", "added"]
        assert len(sent(service)) == 2


@pytest.mark.parametrize("row", [("ada@", U), (A, "no address"), ("n/a", U), (b"x", U)])
def test_the_other_identifier_of_a_damaged_row_is_found(row: Any, path: Path) -> None:
    """A row with one damaged identifier has the outcome that the other one has."""
    with serving(added, added) as (service, client):
        add(client, [(A, U)], path)
        report = add(client, [row], path)
        assert column(report) == ["added"]
        assert len(sent(service)) == 1
        assert column(add(client, [("bo@", "https://profnet.example/in/other")], path)) == [
            "invalid"
        ]


def test_an_override_sends_nobody_of_whom_another_lead_was_added(path: Path) -> None:
    """A skipped row is not sent with its override if another lead of its person was added."""
    skip = skipped("recently_contacted_and_skipped")
    with serving(skip, added) as (service, client):
        add(client, [(A, None)], path)
        add(client, [(None, U)], path)
        rows: list[Row] = [(A, None), (A, U), (None, U)]
        add(client, rows, path, overrides={"ignore_recently_contacted": True})
        assert len(sent(service)) == 2


@pytest.mark.parametrize("is_dry", [True, False])
def test_a_dry_run_records_no_links(is_dry: bool) -> None:
    """A run records the links between rows that it finds; a dry run does not."""
    with serving(added, added) as (service, client):
        add(client, [(A, None)], None)
        assert column(add(client, [(A, U)], None, dry_run=is_dry)) == ["added"]
        add(client, [(None, U)], None)
        assert len(sent(service)) == 1 + is_dry


@pytest.mark.parametrize(
    ("before", "rows", "changed"),
    [
        ((A, None), [(A, U)], "profnet_url"),
        ((A, None), [("A@example.com", None)], "email"),
        ((A, None), [("A@example.com", U)], "email and profnet_url"),
        ((A, U), [(A, None)], "profnet_url"),
        ((A, U), [(B, "profnet.example/in/u")], "email and profnet_url"),
        # The journal links these two rows.
        ((A, U), [(A, None), (None, "https://de.profnet.example/in/u/")], "profnet_url"),
    ],
)
def test_a_changed_unknown_row_is_not_resent(
    before: Row, rows: list[Row], changed: str, path: Path
) -> None:
    """A row whose text changed stays unknown, and its detail names the change."""
    with serving(script.reset(), skipped("already_in_sequence_and_skipped")) as (service, client):
        add(client, [before], path)
        report = add(client, rows, path)
        report = report.retry_unknown()
        duplicates = ["duplicate_in_frame"] * len(rows)
        assert column(report) == ["unknown", *duplicates[1:]]
        assert f"the {changed} changed since the row was sent" in column(report, "detail")[0]
        assert len(sent(service)) == 1
        report = add(client, [*rows, before], path)
        assert column(report) == [*duplicates, "unknown"]
        assert column(report.retry_unknown()) == [*duplicates, "present"]
        assert sent(service)[1:] == [[before]]


SKIPS = {
    name.removesuffix(spec.SKIPPED_SUFFIX): override
    for name, override in spec.CHECK_OVERRIDES.items()
}


@pytest.mark.parametrize("status", SKIPS)
def test_a_skipped_row_is_sent_with_the_override_for_its_list(status: str, path: Path) -> None:
    """A skipped row is sent again once with that override, and never with another override."""
    skip = skipped(f"{status}_and_skipped")
    right, wrong = {SKIPS[status]: True}, dict.fromkeys(SKIPS.values(), True)
    del wrong[SKIPS[status]]
    rows: list[Row] = [(A, None), (B, None)]
    with serving(skip, skip, added) as (service, client):
        assert column(add(client, rows, path)) == [status] * 2
        assert column(add(client, rows, path, overrides=wrong)) == [status] * 2
        assert len(sent(service)) == 1
        dry = add(client, rows[:1], path, overrides=right, dry_run=True)
        assert column(dry) == ["would_send"]
        assert column(add(client, rows[:1], path, overrides=right)) == [status]
        assert column(add(client, rows[:1], path, overrides=right)) == [status]
        assert sent(service)[1:] == [[(A, None)]]
        report = add(client, rows, path, overrides=right)
        assert column(report) == [status, "added"]
        assert report.rows["attempts"].tolist() == [2, 2]
        assert sent(service)[2:] == [[(B, None)]]


def test_rows_that_a_stopped_run_does_not_reach_keep_their_attempts(path: Path) -> None:
    """A row that a stopped run does not reach is not sent, whatever was refused before."""
    refused = script.json({"error": "odd"}, 400)
    with serving(refused, refused, *[script.json({}, 401)] * 3) as (_, client):
        rows: list[Row] = [(A, None), (B, None)]
        assert column(add(client, rows, path, chunk_size=1)) == ["rejected"] * 2
        for frame in (rows, [(C, None), (B, None)], [(C, None), (B, U)]):
            report = add(client, frame, path, chunk_size=1)
            assert column(report) == ["not_sent", "not_sent"]
            assert column(report, "earlier_run") == [False, False]
            assert column(report, "error_code") == [None, None]
            assert "The run stopped before this row" in column(report, "detail")[1]
            assert column(report, "attempts")[1] == (1 if frame[1] == (B, None) else 0)
        read = frame_of([(A, None), (B, None), (B, U)]).outreach.report(journal=path)
        assert column(read) == ["not_sent", "rejected", "rejected"]


def test_without_a_journal_a_warning_counts_sent_people() -> None:
    """The warning counts the rows that this process has sent to the sequence before."""
    refused = script.json({"error": "no"}, 400)
    with serving(added, added, added, refused, added) as (service, client):

        def cell(rows: list[Row], sequence: str = "s1") -> SubmissionReport:
            return frame_of(rows).outreach.add_to_sequence(sequence, client=client, progress=False)

        cell([(A, None), (A, U), (B, None)])
        with pytest.warns(OutreachWarning, match=r"^1 row was not sent again.*Restarting Python"):
            report = cell([(None, U), (C, None)])
        assert column(report) == ["added", "added"]
        assert column(report, "earlier_run") == [True, False]
        assert sent(service)[1:] == [[(C, None)]]
        cell([(A, None)], "s2")
        cell([("d@example.com", None)])
        assert column(cell([("d@example.com", None)])) == ["added"]
        assert len(sent(service)) == 5


@pytest.mark.parametrize("row", [(A, None), (A, U), (None, U)])
def test_a_person_of_a_current_run_is_refused(row: Row) -> None:
    """A run with a person of another thread's run is refused; others proceed."""
    begun, go_on = threading.Event(), threading.Event()

    def held(received: Received) -> Reply:
        begun.set()
        assert go_on.wait(20)
        return added(received)

    with serving(held, added) as (service, client):
        options = {"client": client, "progress": False}
        frame = frame_of([(A, None), (A, U)])
        with ThreadPoolExecutor(1) as executor:
            first = executor.submit(frame.outreach.add_to_sequence, "s1", **options)
            assert begun.wait(20)
            try:
                with pytest.raises(InvalidInputError, match=r"Another run.*Nothing was sent"):
                    frame_of([row, (B, None)]).outreach.add_to_sequence("s1", **options)
                other = frame_of([(B, None)]).outreach.add_to_sequence("s1", **options)
                assert column(other) == ["added"]
                report = of.last_report()
            finally:
                go_on.set()
            assert column(first.result()) == ["added", "duplicate_in_frame"]
        assert report is not None
        assert len(sent(service)) == 2


@pytest.mark.parametrize("url", ["https://p.example/in/m%65", "https://a.\u3164/in/x"])
def test_a_url_without_a_key_is_never_sent(url: str, path: Path) -> None:
    """A row is invalid if later runs could not recognise its URL."""
    with serving() as (service, client):
        assert column(add(client, [(None, url)], path)) == ["invalid"]
        assert sent(service) == []


def test_a_text_replaces_its_digest_in_memory(path: Path) -> None:
    """A row of an earlier process is recognised by a text that an intermediate run lacked."""
    with serving(script.hang_up()) as (_, client):
        add(client, [(A, U)], path)
        memory.clear()
        for rows in ([(A, V)], [(A, V), (A, U)]):
            report = add(client, rows, path)
        assert column(report) == ["duplicate_in_frame", "unknown"]
        assert "was sent with another" not in report.rows["detail"][1]


RECENT = skipped("recently_contacted_and_skipped")
EXCLUDED = skipped("in_exclusion_list_and_skipped")


def again(client: Client, rows: list[Row], path: Path | None, **options: Any) -> SubmissionReport:
    """Add rows, and send recently contacted people again."""
    return add(client, rows, path, send_again=["recently_contacted"], **options)


class TestSendAgain:
    """People whose recorded outcome is a named skip are sent again."""

    @pytest.mark.parametrize("with_file", [True, False])
    def test_a_skip_is_asked_again_once(self, with_file: bool, path: Path) -> None:
        """The first valid row is sent once per run; who was added meanwhile is not sent again."""
        journal = path if with_file else None
        with serving(RECENT, added, RECENT, added) as (service, client):
            rows: list[Row] = [(A, None), (B, None)]
            add(client, rows[:1], journal)
            assert column(add(client, rows, journal)) == ["recently_contacted", "added"]
            assert len(sent(service)) == 2
            # The same person in other rows, and a row that is invalid now.
            rows = [("x@", None), (A2, U), (A, U), (A, None), (B, None)]
            report = again(client, rows, journal, dry_run=True)
            duplicate = "duplicate_in_frame"
            assert column(report) == ["invalid", "would_send", *[duplicate] * 2, "added"]
            report = again(client, rows, journal)
            assert column(report)[2:] == [duplicate, duplicate, "added"]
            assert sent(service)[2:] == [[(A2, U)]]
            assert column(again(client, rows, journal))[1] == "added"
            assert column(again(client, rows, journal))[1] == "added"
            assert len(sent(service)) == 4

    @pytest.mark.parametrize(
        ("reply", "status", "recorded"),
        [
            (script.reset(), "unknown", "unknown"),
            (script.json({"error": "odd"}, 400), "rejected", "recently_contacted"),
            (script.json({}, 401), "not_sent", "recently_contacted"),
            (EXCLUDED, "in_exclusion_list", "in_exclusion_list"),
        ],
        ids=["no answer", "refused", "stopped", "another skip"],
    )
    def test_the_send_is_an_event_of_the_lead(
        self, reply: Any, status: str, recorded: str, path: Path
    ) -> None:
        """No answer makes the lead unknown, an answer is its outcome, a refusal changes nothing."""
        with serving(RECENT, reply, added, added) as (service, client):
            add(client, [(A, None)], path)
            report = again(client, [(A, None)], path)
            assert column(report) == [status]
            assert column(frame_of([(A, None)]).outreach.report(journal=path)) == [recorded]
            following = again(client, [(A, None)], path)
            is_sent_again = recorded == "recently_contacted"
            assert len(sent(service)) == 2 + is_sent_again
            assert column(following) == ["added" if is_sent_again else recorded]
            if status == "unknown":
                assert column(report.retry_unknown()) == ["added"]

    @pytest.mark.parametrize(
        ("names", "words"),
        [
            ("recently_contacted", "takes a list"),
            (["unknown"], "retry_unknown"),
            *((["added"], "takes skips"), (["present"], "takes skips"), (["rejected"], "takes")),
            (["recently_contactd"], "Did you mean 'recently_contacted'"),
            *(([5], "takes skips"), (["duplicate_in_frame"], "takes skips")),
        ],
    )
    def test_only_skips_are_accepted(self, names: Any, words: str, path: Path) -> None:
        """Another status, or a text in place of a list, is an error before the first request."""
        with serving() as (service, client):
            with pytest.raises(InvalidInputError, match=f"{words}.*Nothing was sent"):
                add(client, [(A, None)], path, send_again=names)
            assert not sent(service)
            assert not path.exists()
