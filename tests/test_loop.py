"""What README says of a loop with requests and of this package, on the same service."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import requests

from outreach_frames.common.pandas_versions import STR
from outreach_frames.leads.sending import memory
from tests import scripted as script
from tests.leads.sending.lead_service import added, connected, only_posts
from tests.scripted import Received, Reply, Service, scripted

README = Path(__file__).parents[1] / "README.md"
ROWS, CHUNK = 10_000, 250
FRAME = pd.DataFrame({"email": [f"lead{row}@x.example" for row in range(ROWS)]}, dtype=STR)


def loop(service: Service, frame: pd.DataFrame) -> None:
    """Post chunks, and retry a chunk once if the connection breaks."""
    for start in range(0, len(frame), CHUNK):
        leads = [{"email": email} for email in frame["email"].iloc[start : start + CHUNK]]
        for attempt in (1, 2):
            try:
                response = requests.post(
                    f"{service.url}/sequences/s1/leads", json={"leads": leads}, timeout=10
                )
            except requests.ConnectionError:
                if attempt == 2:
                    raise
            else:
                response.raise_for_status()
                break


def package(service: Service, frame: pd.DataFrame) -> None:
    """Add the rows with a journal in the working folder, as a new process would."""
    memory.clear()
    with connected(service) as client:
        plan = frame.outreach.plan("s1", client=client)
        plan.submit(journal=Path("spring.journal").resolve())


class Leads(list[str]):
    """The addresses that the service has accepted, and its replies."""

    def accept(self, received: Received) -> Reply:
        """Accept the leads of a request."""
        self += [lead["email"].lower() for lead in received.json["leads"]]
        return added(received)

    def accept_in_silence(self, received: Received) -> Reply:
        """Accept the leads, and drop the connection."""
        self.accept(received)
        return script.reset()

    def count_repeated(self) -> int:
        """Count the people who were accepted more than once."""
        return sum(times > 1 for times in Counter(self).values())


def people_in_two_rows() -> pd.DataFrame:
    """Return leads in two chunks, where the last is the first in capitals."""
    return pd.concat([FRAME.head(300), FRAME.head(1)["email"].str.upper().to_frame()])


# Per case: the accepted requests before the fault, the fault, the leads and the number of runs.
CASES: dict[str, tuple[int, str, pd.DataFrame, int]] = {
    "stopped at row 5,000, and run again": (20, "stop", FRAME, 2),
    "a response is lost": (3, "lost", FRAME, 1),
    "a person is in two rows": (0, "", people_in_two_rows(), 1),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
@pytest.mark.parametrize("case", CASES)
def test_the_people_who_are_sent_twice(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """README's table has the number of people that each way sends to a service twice."""
    monkeypatch.chdir(tmp_path)
    before, fault, frame, runs = CASES[case]
    found = []
    for send in (loop, package):
        leads = Leads()
        stop = script.json({"error": "the token has expired"}, 401)
        faults: dict[str, list[Any]] = {"stop": [stop], "lost": [leads.accept_in_silence]}
        turns = [*[leads.accept] * before, *faults.get(fault, []), *[leads.accept] * 60]
        with scripted(only_posts(turns)) as service:
            for _ in range(runs):
                with contextlib.suppress(requests.HTTPError):
                    send(service, frame)
        found.append(leads.count_repeated())
    row = next(line for line in README.read_text(encoding="utf-8").splitlines() if case in line)
    assert [re.findall(r"[\d,]+", cell)[0] for cell in row.split("|")[2:4]] == [
        f"{number:,}" for number in found
    ]
    assert found[1] == 0 < found[0]
