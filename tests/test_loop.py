"""What README says of a loop with requests and of this package, both measured on the sandbox."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import requests

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.leads import statuses
from outreach_frames.leads.sending import memory
from outreach_frames.sandbox import Fault, Sandbox

README = Path(__file__).parents[1] / "README.md"
CHUNK = spec.MAX_LEADS_PER_REQUEST
LISTS = [field.name for field in spec.ADD_LEADS_RESULT if field.type != "integer"]
IDENTIFIERS = ["email", "profnet_url"]


def people(count: int) -> pd.DataFrame:
    """Return a row per person, with an email."""
    emails = [f"lead{number}@x.example" for number in range(count)]
    return pd.DataFrame({"person": emails, "email": emails, "profnet_url": None})


def row(email: str | None, url: str | None = None, person: str = "ada") -> pd.DataFrame:
    """Return one row of a person."""
    return pd.DataFrame({"person": [person], "email": [email], "profnet_url": [url]})


def loop(sandbox: Sandbox, sequence: str, frame: pd.DataFrame) -> list[str]:
    """Post chunks, repeat a chunk once if the connection breaks; return each row's status.

    The status is the response's list that has the row's email or URL, else "added".
    """
    found: list[str] = []
    url = f"{sandbox.url}/sequences/{sequence}/leads"
    headers = {"Authorization": f"Bearer {sandbox.api_key}"}
    for start in range(0, len(frame), CHUNK):
        rows = frame[IDENTIFIERS].iloc[start : start + CHUNK].to_dict("records")
        leads = [{name: text for name, text in each.items() if text} for each in rows]
        post = partial(requests.post, url, json={"leads": leads}, headers=headers, timeout=10)
        try:
            response = post()
        except requests.ConnectionError:
            response = post()
        if response.status_code == 401:
            break
        result = response.json() if response.ok else {}
        listed = {
            text: name
            for name in LISTS
            for entry in result.get(name, ())
            for text in (entry.values() if isinstance(entry, dict) else [entry])
        }
        default = "added" if response.ok else "refused"
        found += [
            next((listed[one] for one in lead.values() if one in listed), default) for lead in leads
        ]
    return found


def package(sandbox: Sandbox, sequence: str, frame: pd.DataFrame) -> list[str]:
    """Add the rows with a journal in the working folder, as a new process would."""
    memory.clear()
    with of.connect(sandbox.url, sandbox.api_key, cache=None):
        report = frame.outreach.add_to_sequence(sequence, journal="spring.journal")
    return report.rows["status"].tolist()


def harm(sandbox: Sandbox, sequence: str, frame: pd.DataFrame, found: list[str]) -> dict[str, int]:
    """Count the added people who are reported as skipped, are added twice, or are missing."""
    texts = frame.melt("person", IDENTIFIERS).dropna().set_index("value")["person"].to_dict()
    leads = pd.DataFrame(sandbox.leads(sequence), columns=IDENTIFIERS)
    there = leads["email"].map(texts).fillna(leads["profnet_url"].map(texts)).dropna()
    skips = {*LISTS, *statuses.SKIPPED, statuses.DUPLICATE_IN_REQUEST}
    is_skipped = pd.Series(found).isin(skips).groupby(frame["person"].to_numpy()).all()
    return {
        "reported as skipped": int(is_skipped[there.unique()].sum()),
        "added twice": int(there.duplicated().sum()),
        "not added": len({*frame["person"]} - {*there} - {"broken"}),
    }


TWICE = pd.concat([row("ada@x.example"), people(10), row("ada@x.example")], ignore_index=True)
URL = "https://profnet.example/in/ada"
FIRST, OTHERS = people(2 * CHUNK).head(CHUNK), people(2 * CHUNK).tail(CHUNK)
LINKED = [row("ada@x.example"), FIRST, row("ada@x.example", URL), OTHERS, row(None, URL)]
BROKEN = pd.concat([people(CHUNK - 1), row("ada@", person="broken")], ignore_index=True)
REVOKED = Fault("token_revoked", endpoint="add_leads", after=20, times=1)
LOST = Fault("drop_after_commit", endpoint="add_leads", after=3, times=1)
# Per row of README's table: the leads, the fault, the number of runs, and the harm.
CASES: dict[str, tuple[pd.DataFrame, Fault | None, int, str]] = {
    "stopped at row 5,000, and run again": (people(10_000), REVOKED, 2, "reported as skipped"),
    "a response is lost": (people(1_000), LOST, 1, "reported as skipped"),
    "a person is twice in a request": (TWICE, None, 1, "reported as skipped"),
    "a person's rows have": (
        pd.concat(LINKED, ignore_index=True),
        None,
        1,
        "added twice",
    ),
    "an address is broken": (BROKEN, None, 1, "not added"),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
@pytest.mark.parametrize("case", CASES)
def test_a_loop_and_this_package(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """README's table has the number of people whom each way harms."""
    monkeypatch.chdir(tmp_path)
    frame, fault, runs, what = CASES[case]
    counts = []
    for send in (loop, package):
        with of.sandbox.serve(people=10) as sandbox:
            sequence, sandbox.faults = sandbox.sequence_ids["accepts_any"], fault
            for _ in range(runs):
                found = send(sandbox, sequence, frame)
            counts.append(harm(sandbox, sequence, frame, found))
    line = next(each for each in README.read_text(encoding="utf-8").splitlines() if case in each)
    shown = [re.findall(r"[\d,]+", cell)[0] for cell in line.split("|")[2:4]]
    assert what in line
    assert shown == [f"{each[what]:,}" for each in counts]
    assert set(counts[1].values()) == {0}
    assert counts[0][what] > 0
