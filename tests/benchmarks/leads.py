"""Rows of a frame to leads that are checked and ready to be sent."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pandas as pd

from outreach_frames import spec
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.timing import seconds

ROWS = 100_000
DATA = ["first_name", "last_name", "title", "company_name", "location"]


def compare() -> Iterator[Comparison]:
    """Measure clean rows, and rows of which one in ten is wrong, missing, or there before."""
    for name, frame in {"clean": clean_rows(), "messy": messy_rows()}.items():
        yield Comparison(
            f"plan() of {ROWS:,} {name} rows",
            "json.dumps over itertuples, no checks",
            seconds(lambda f=frame: plan(f)),
            seconds(lambda f=frame: serialise(f), runs=3),
            goal=1,
        )


def plan(frame: pd.DataFrame) -> SubmissionPlan:
    """Check and serialise all rows, and take the digests of what would be sent."""
    made = make_plan(frame, "seq_1", data=DATA)
    assert made.fingerprint
    return made


def serialise(frame: pd.DataFrame) -> list[str]:
    """Serialise all rows, a request's worth at a time, with no check."""
    leads = [
        {
            "email": row.email,
            "profnet_url": row.profnet_url,
            "data": {
                "first_name": row.first_name,
                "last_name": row.last_name,
                "title": row.title,
                "company_name": row.company_name,
                "location": row.location,
            },
        }
        for row in frame.itertuples()
    ]
    size = spec.MAX_LEADS_PER_REQUEST
    return [
        json.dumps({spec.LEADS_KEY: leads[start : start + size]})
        for start in range(0, len(leads), size)
    ]


def clean_rows() -> pd.DataFrame:
    """Make rows with nothing wrong in them."""
    return pd.DataFrame(
        {
            "email": [f"first.last{row}@company{row % 5000}.example" for row in range(ROWS)],
            "profnet_url": [f"https://www.profnet.example/in/first-{row}/" for row in range(ROWS)],
            "first_name": [f"Zoë {row % 900}" for row in range(ROWS)],
            "last_name": [
                f'O"Hara {row}' if row % 100 == 0 else f"Hara {row}" for row in range(ROWS)
            ],
            "title": [f"Head of Department {row % 300}" for row in range(ROWS)],
            "company_name": [f"Company {row % 5000} Ltd" for row in range(ROWS)],
            "location": [f"City {row % 700}, Country" for row in range(ROWS)],
        }
    )


def messy_rows() -> pd.DataFrame:
    """Make rows of which one in ten is wrong, missing, or there before."""
    frame = clean_rows()
    frame.loc[::30, "email"] = "N/A"
    frame.loc[10::30, "email"] = [f"broken{row}@" for row in range(len(frame.index[10::30]))]
    frame.loc[20::30, "profnet_url"] = "https://profnet.example/in/first-1"
    frame.loc[::7, "location"] = None
    return frame
