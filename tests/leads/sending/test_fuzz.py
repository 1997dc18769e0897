"""Random runs with one journal and changing rows; the service fails at times and records leads."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.errors import OutreachWarning
from outreach_frames.leads import statuses
from outreach_frames.leads.sending.report import SubmissionReport
from tests.examples import share_of_examples
from tests.leads.sending.lead_service import added, connected, refused
from tests.scripted import Received, Reply, hang_up, json, reset, scripted, truncated

REFUSED = {
    "reset": reset(),
    "malformed": json({"error": "odd"}, 400),
    "unexplained": refused("brand_new"),
    "denied": json({"error": "who are you?"}, 401),
    "broken": json({"error": "oops"}, 500),
}
ACTED: dict[str, Callable[[Reply], Reply]] = {
    "lost": lambda _: hang_up(),
    "cut off": truncated,
    "miscounted": lambda _: json({"total": 1, "total_added_to_sequence": 7}),
    "acted and broken": lambda _: json({"error": "oops"}, 500),
}
FAULTS = st.lists(st.sampled_from(["", "", *REFUSED, *ACTED]), max_size=5)
# A row has an address, a profile, both, or an invalid address.
ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["email", "email", "url", "both", "bad"])),
    max_size=7,
)
Run = tuple[list[tuple[int, str]], list[str]]
RUNS = st.lists(st.tuples(ROWS, FAULTS), min_size=1, max_size=4)
MAY_BE_THERE = {
    statuses.ADDED,
    statuses.PRESENT,
    statuses.UNKNOWN,
    statuses.DUPLICATE_IN_FRAME,
}


class RecordingService:
    """A service that accepts every lead, also repeated ones, and records them."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.leads: Counter[int] = Counter()
        self.faults: list[str] = []

    def __call__(self, received: Received) -> Reply:
        """Accept the leads, unless the next fault prevents it."""
        if received.method == "GET":
            return json({"sequences": [{"id": "s1", "status": "active"}], "_links": {}})
        fault = self.faults.pop(0) if self.faults else ""
        if fault in REFUSED:
            return REFUSED[fault]
        for lead in received.json["leads"]:
            texts = [lead[name] for name in ("email", "profnet_url") if name in lead]
            self.taken.update(texts)
            self.leads[int(re.findall(r"\d", texts[0])[0])] += 1
        return ACTED[fault](added(received)) if fault else added(received)


def frame_of(rows: list[tuple[int, str]]) -> pd.DataFrame:
    """Make the frame of a run."""
    frame = pd.DataFrame({"email": [None] * len(rows), "profnet_url": None}, dtype="object")
    for row, (person, kind) in enumerate(rows):
        if kind in {"email", "both", "bad"}:
            sign = "" if kind == "bad" else "@"
            frame.loc[row, "email"] = f"p{person}{sign}example.com"
        if kind in {"url", "both"}:
            frame.loc[row, "profnet_url"] = f"https://profnet.example/in/p{person}"
    return frame


def check(report: SubmissionReport, rows: list[tuple[int, str]], books: RecordingService) -> None:
    """Check a report against the service's records."""
    frame = report.frame
    cells = frame[["email", "profnet_url"]].to_numpy().tolist()
    for (person, kind), row, status in zip(rows, cells, frame["status"], strict=True):
        if status in statuses.IN_SEQUENCE:
            assert books.leads[person], f"{row} is {status}, and was not taken"
        if kind != "bad" and any(books.taken[text] for text in row):
            assert status in MAY_BE_THERE, f"{row} was taken, and is {status}"
    assert (report.error is None) == (not set(report.rows["status"]) & statuses.FAILED)


@share_of_examples(0.3)
@given(runs=RUNS)
def test_reports_match_the_service_s_records(
    runs: list[Run],
) -> None:
    """Reports match the service's records, and no identifier is accepted twice.

    Once a row with both identifiers has matched an accepted lead, its person is not sent again.
    """
    books = RecordingService()
    complete: set[int] = set()
    with (
        tempfile.TemporaryDirectory() as folder,
        scripted(books) as service,
        connected(service) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", OutreachWarning)
        for rows, faults in runs:
            books.faults = list(faults)
            before = books.leads.copy()
            both = {person for person, kind in rows if kind == "both"}
            report = frame_of(rows).outreach.add_to_sequence(
                "s1", journal=Path(folder) / "j", chunk_size=2, client=client, progress=False
            )
            check(report, rows, books)
            assert max(books.taken.values(), default=0) <= 1
            for person in range(3):
                was_met = person in complete or (person in both and before[person])
                most = 0 if was_met else 1 if person in both else 2
                assert books.leads[person] - before[person] <= most
            complete |= {person for person in both if books.leads[person]}
        books.faults = []
        if (report.rows["status"] == statuses.UNKNOWN).any():
            check(report.retry_unknown(), rows, books)
