"""A checkpoint with damaged progress is an error with advice."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.sandbox import Sandbox
from tests.scripted import Received, Reply, passed_on, respond, scripted


def test_damaged_progress_is_an_error(sandbox: Sandbox, tmp_path: Path) -> None:
    """Whichever part is damaged, the error recommends to start over, and this works."""
    path = tmp_path / "people.csv"

    def reply(request: Received) -> Reply:
        failing = request.json["page"] > 2
        return respond(b"", 404) if failing else passed_on(request, sandbox.url)

    with scripted(reply) as service, Client(service.url, sandbox.api_key, cache=None) as client:
        with suppress(OutreachError):
            of.export_people(path, limit=30, page_size=10, client=client)
        journal = tmp_path / ".people.csv.partial" / "journal.sqlite"
        with closing(sqlite3.connect(journal)) as opened:
            (stored,) = opened.execute("SELECT state FROM parts ORDER BY number DESC").fetchone()
        state = json.loads(stored)
        damaged = [{key: state[key] for key in state if key != missing} for missing in state]
        for one in [*damaged, [], 7, {**state, "progress": {"pagse": 1}}]:
            with closing(sqlite3.connect(journal)) as opened, opened:
                opened.execute("UPDATE parts SET state = ?", [json.dumps(one)])
            with pytest.raises(InvalidInputError, match=r"is damaged.*resume=False"):
                of.export_people(path, limit=30, page_size=10, client=client)
        assert journal.exists()
    with Client(sandbox.url, sandbox.api_key, cache=None) as client:
        with pytest.warns(of.errors.OutreachWarning, match="30 of"):
            of.export_people(path, limit=30, page_size=10, resume=False, client=client)
    assert len(of.read_prospects(path)) == 30
