"""Every function that talks to a service, tried against a mock that a foreign tool made.

    npm install --prefix /tmp/mock @stoplight/prism-cli
    /tmp/mock/node_modules/.bin/prism mock --port 4010 data/openapi.json
    python -m tests.foreign_mock http://127.0.0.1:4010

Such a mock gives the examples of `data/openapi.json`, and checks each request against it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pandas as pd

import outreach_frames as of
from outreach_frames.sandbox.examples import Ids


def main(base_url: str) -> None:
    """Call everything once; what fails raises."""
    ids = Ids()
    with (
        of.connect(base_url, "any-token-of-some-length", cache=None),
        tempfile.TemporaryDirectory() as folder,
    ):
        frames = {
            "sequences": of.sequences(status="active"),
            "mailboxes": of.mailboxes(status="active"),
            "set_daily_email_limit": of.set_daily_email_limit(ids.mailbox, 40),
            "contacts, by id": of.contacts(ids=[ids.contact]),
            "contacts, by address": of.contacts(emails=[ids.email]),
            "lead_list": of.lead_list(ids.lead_list),
            "search_people": of.search_people(person_seniorities=["vp"], limit=5),
            "explain_search": of.explain_search(person_seniorities=["vp"]),
        }
        assert of.count_people(person_seniorities=["vp"]) == 1
        path = of.export_people(Path(folder) / "people.parquet", person_seniorities=["vp"])
        frames["export_people"] = of.read_prospects(path)
        accounts = pd.DataFrame({"domain": ["lumenforge.example"]})
        frames["find_people"] = accounts.outreach.find_people(domain="domain").people
        leads = pd.DataFrame({"email": [ids.email], "first_name": ["Anna"]})
        report = leads.outreach.add_to_sequence(ids.sequence, data=["first_name"])
        frames["add_to_sequence"] = report.rows
    assert report.rows["status"].tolist() == ["added"]
    for name, frame in frames.items():
        assert len(frame) == 1, name
        print(f"{name}: {frame.shape[1]} columns")


if __name__ == "__main__":
    main(sys.argv[1])
