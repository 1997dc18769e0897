"""Call every function that uses the service against a third-party mock server.

    npm install --prefix mock @stoplight/prism-cli
    mock/node_modules/.bin/prism mock --port 4010 outreach_frames/sandbox/data/openapi.json
    python -m tests.foreign_mock http://127.0.0.1:4010

The mock returns the examples of that file, and checks each request against it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pandas as pd

import outreach_frames as of
from docs.openapi.exchanges import exchanges
from outreach_frames import spec


def main(base_url: str) -> None:
    """Call every function once; failures raise."""
    calls = exchanges()
    ids = {endpoint: call.path_values.get("id", "") for endpoint, (call, _) in calls.items()}
    contact = calls[spec.GET_CONTACT_BY_EMAIL][1]
    person = calls[spec.SEARCH_PEOPLE][1]["results"][0]
    with (
        of.connect(base_url, "any-token-of-some-length", cache=None),
        tempfile.TemporaryDirectory() as folder,
    ):
        frames = {
            "sequences": of.sequences(status="active"),
            "mailboxes": of.mailboxes(status="active"),
            "set_daily_email_limit": of.set_daily_email_limit(ids[spec.UPDATE_MAILBOX], 40),
            "contacts, by id": of.contacts(ids=[contact["id"]]),
            "contacts, by address": of.contacts(emails=[contact["email"]]),
            "lead_list": of.lead_list(ids[spec.GET_LEAD_LIST]),
            "search_people": of.search_people(person_seniorities=["vp"], limit=5),
            "explain_search": of.explain_search(person_seniorities=["vp"]),
        }
        assert of.count_people(person_seniorities=["vp"]) == 1
        path = of.export_people(Path(folder) / "people.parquet", person_seniorities=["vp"])
        frames["export_people"] = of.read_prospects(path)
        accounts = pd.DataFrame({"domain": [person["company"]["website"]]})
        frames["find_people"] = accounts.outreach.find_people(domain="domain").people
        leads = pd.DataFrame({"email": ["anna.larsen@lumenforge.example"], "first_name": ["Anna"]})
        report = leads.outreach.add_to_sequence(ids[spec.ADD_LEADS], data=["first_name"])
        frames["add_to_sequence"] = report.rows
    assert report.rows["status"].tolist() == ["added"]
    for name, frame in frames.items():
        assert len(frame) == {"mailboxes": 5, "lead_list": 12}.get(name, 1), name
        print(f"{name}: {frame.shape[1]} columns")


if __name__ == "__main__":
    main(sys.argv[1])
