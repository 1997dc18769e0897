"""Complete submissions to the sandbox, checked against its database."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.identity.keys import email_key, profnet_url_key
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import make_plan
from outreach_frames.leads.sending import memory
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.sandbox import Sandbox

pytestmark = pytest.mark.long

NUMBERS = count()

# The sandbox's attribute with the leads that each check skips.
LEADS_OF_CHECK = {
    "in_exclusion_list": "exclusion_list",
    "recently_contacted": "recently_contacted",
    "in_other_draft_sequences": "draft_leads",
    "in_other_active_sequences": "active_leads",
}

FILES = ("added", "skipped", "failed")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Start a sandbox that only this module uses."""
    with of.sandbox.serve(people=150, seed=17) as running:
        yield running


@pytest.fixture
def client(sandbox: Sandbox) -> Iterator[Client]:
    """Connect without pauses before retries, and remove faults afterwards."""
    with Client(sandbox.url, sandbox.api_key, cache=None, backoff=0) as connected:
        yield connected
    sandbox.faults = ()


def people(rows: int) -> pd.DataFrame:
    """Make leads that the service does not have; some have only one identifier."""
    numbers = [next(NUMBERS) for _ in range(rows)]
    return pd.DataFrame(
        {
            "email": [f"New.Lead{n}@Example.com" if n % 5 else None for n in numbers],
            "profnet_url": [
                f"https://profnet.example/in/new-{n}" if n % 3 or not n % 5 else None
                for n in numbers
            ],
        },
        dtype="str",
    )


def references(frame: pd.DataFrame) -> list[tuple[str | None, str | None]]:
    """Return the identifiers of a frame's rows, with None for missing ones."""
    return [
        (None if pd.isna(email) else email, None if pd.isna(url) else url)
        for email, url in zip(frame["email"], frame["profnet_url"], strict=True)
    ]


def stored(sandbox: Sandbox, shows: str) -> list[tuple[str | None, str | None]]:
    """Return the identifiers of the leads in a sequence of the sandbox's database."""
    leads = sandbox.leads(sandbox.sequence_ids[shows])
    return [(lead["email"], lead["profnet_url"]) for lead in leads]


def submit(
    frame: pd.DataFrame, client: Client, sandbox: Sandbox, shows: str, **options: Any
) -> SubmissionReport:
    """Submit a frame; check that exactly the `added` leads are new in the database."""
    before = stored(sandbox, shows)
    plan = make_plan(frame, sandbox.sequence_ids[shows], client=client, **options)
    report = plan.submit(progress=False)
    assert len(report.rows) == len(frame)
    assert set(report.rows["status"]) <= set(statuses.STATUSES)
    added = frame[report.rows["status"].eq("added").to_numpy()]
    new = stored(sandbox, shows)[len(before) :]
    assert sorted(new, key=str) == sorted(references(added), key=str)
    return report


def test_every_skip_list(client: Client, sandbox: Sandbox) -> None:
    """Each skipped lead has its list's status, and all other leads are added."""
    here = people(3)
    submit(here, client, sandbox, "accepts_any")
    # As in a new process, which does not know who was sent.
    memory.clear()
    parts = {"added": people(40), "already_in_sequence": here}
    parts |= {
        status: pd.DataFrame(getattr(sandbox, name)) for status, name in LEADS_OF_CHECK.items()
    }
    frame = pd.concat([part.assign(expected=status) for status, part in parts.items()])
    frame = frame.sample(frac=1, random_state=1)
    report = submit(frame, client, sandbox, "accepts_any", chunk_size=7)
    assert report.rows["status"].to_list() == frame["expected"].to_list()
    assert set(report.rows["status"]) == {"added", *statuses.SKIPPED}
    assert report.notes == []
    assert report.error is None


def keys(lead: tuple[str | None, str | None]) -> set[str]:
    """Return the keys of a lead."""
    email, url = lead
    return {*([email_key(email)] if email else []), *([profnet_url_key(url)] if url else [])}


def messy(seed: int) -> pd.DataFrame:
    """Make 400 rows in random order; 100 are duplicates in another spelling, 40 are invalid."""
    draw = random.Random(seed)
    frame = people(260)
    again = frame.sample(100, random_state=seed)
    again["email"] = again["email"].str.upper()
    again["profnet_url"] = again["profnet_url"].str.replace("https://", "www.") + "/"
    bad = pd.DataFrame(
        {
            "email": draw.choices(["N/A", "unknown", "-", "", "not an address", None], k=40),
            "profnet_url": draw.choices(["nan", "", None, "https://"], k=40),
        }
    )
    parts = pd.concat([frame, again, bad], ignore_index=True)
    labels = draw.choices("abc", k=len(parts))
    return parts.sample(frac=1, random_state=seed).set_axis(labels, axis=0)


def test_a_messy_frame(client: Client, sandbox: Sandbox, tmp_path: Path) -> None:
    """Each person of a frame is added once, and each row is in one file."""
    frame = messy(7)
    report = submit(frame, client, sandbox, "accepts_any", chunk_size=7)
    counts = Counter(report.rows["status"])
    assert counts.keys() == {"added", "duplicate_in_frame", "invalid"}
    reached = Counter(key for lead in stored(sandbox, "accepts_any") for key in keys(lead))
    assert set(reached.values()) == {1}
    valid = frame[report.rows["status"].ne("invalid").to_numpy()]
    assert {key for lead in references(valid) for key in keys(lead)} <= reached.keys()
    report.to_csv(tmp_path)
    files = {name: of.read_prospects(tmp_path / f"{name}.csv") for name in FILES}
    assert {name: len(written) for name, written in files.items()} == {
        "added": counts["added"],
        "skipped": counts["duplicate_in_frame"],
        "failed": counts["invalid"],
    }
    assert int(report.summary()["rows"].sum()) == len(frame)


@pytest.mark.parametrize("data", [np.array(["title"]), {np.str_("title"): np.str_("title")}])
def test_texts_of_numpy(sandbox: Sandbox, client: Client, data: Any, tmp_path: Path) -> None:
    """Names and ids may come from a numpy array, whose texts no JSON library encodes as keys."""
    frame = pd.DataFrame({"email": [f"n{next(NUMBERS)}@numpy.example"], "title": ["CEO"]})
    sequence_id = np.str_(sandbox.sequence_ids["accepts_any"])
    report = frame.outreach.add_to_sequence(
        sequence_id, data=data, journal=tmp_path / "j", client=client
    )
    assert report.rows["status"].tolist() == ["added"]
    assert sandbox.leads(str(sequence_id))[-1]["data"] == {"title": "CEO"}
