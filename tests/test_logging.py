"""Logs have requests, waits, retries, chunks and files, but no personal values."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pandas as pd
import pytest
import requests

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.sandbox import Sandbox
from tests.conftest import PEOPLE
from tests.scripted import json, scripted


def records(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    """Return the package's log records as logger, level and message."""
    found = [one for one in caplog.records if one.name.startswith("outreach_frames.")]
    return [(one.name.split(".")[1], one.levelname, one.getMessage()) for one in found]


def test_requests_are_logged_by_their_template(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Each request is logged with method, path template, status, seconds, bytes and cache use."""
    with caplog.at_level("DEBUG", "outreach_frames"):
        with Client(sandbox.url, sandbox.api_key, cache=tmp_path / "cache") as client:
            for _ in range(2):
                of.contacts(emails=["nobody@acme.example"], client=client, progress=False)
                of.contacts(ids=sandbox.contact_ids[:3], client=client, progress=False)
                of.search_people(limit=None, client=client, progress=False)
    logged = records(caplog)
    assert ("client", "DEBUG", "cache opened") in logged
    shape = r"(GET|POST) [/\w{}-]+: status \d+, \d+\.\d{3} s, \d+ bytes"
    requests = [text for _, _, text in logged if re.fullmatch(shape, text)]
    assert {text.partition(":")[0] for text in requests} == {
        "GET /contacts/email/{email}",
        "GET /contacts",
        "POST /people/search",
    }
    cached = [text for _, level, text in logged if "from the cache" in text and level == "DEBUG"]
    assert any(text.startswith("GET /contacts:") for text in cached)
    assert f"POST /people/search: {PEOPLE} rows from the cache" in cached


def test_waits_and_retries_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A retry is logged with operation and number, and a wait with its seconds."""
    replies = [json({}, 500), json({}, 429, {"Retry-After": "0.2"}), json({"sequences": []})]
    with caplog.at_level("INFO", "outreach_frames"), scripted(replies) as service:
        with Client(service.url, "token", cache=None, backoff=0.01) as client:
            of.sequences(client=client, progress=False)
    texts = [text for room, level, text in records(caplog) if (room, level) == ("client", "INFO")]
    assert texts[0] == "GET /sequences: retry 1 of 4"
    assert texts[2] == "GET /sequences: retry"
    assert re.fullmatch(r"waiting 0\.\d s before a retry", texts[1])
    assert texts[3] == "waiting 0.2 s: the service's rate limit"


@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_no_value_is_logged(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Chunks and the journal are logged as counts; addresses, names, ids and tokens never are."""
    with caplog.at_level("DEBUG", "outreach_frames"):
        with Client(sandbox.url, sandbox.api_key, cache=None) as client:
            sequence = of.sequences(status="active", client=client)["id"].iloc[0]
            leads = pd.DataFrame({"email": [f"logged{number}@acme.example" for number in range(3)]})
            leads.outreach.add_to_sequence(
                sequence, journal=tmp_path / "logged.journal", client=client, progress=False
            )
            people = of.search_people(person_name="Logged", client=client)
    assert people.empty
    logged = records(caplog)
    assert ("leads", "INFO", "journal opened; it has 0 records") in logged
    assert ("leads", "INFO", "chunk 1: 3 leads, 3 added") in logged
    everything = "\n".join(text for _, _, text in logged)
    for value in ("acme", "logged", "Logged", sequence, sandbox.api_key, "page%5B", "active"):
        assert value not in everything


def test_the_http_library_logs_no_address(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    """At level DEBUG of all loggers, no address in a URL is logged; other requests are."""
    with caplog.at_level("DEBUG"), Client(sandbox.url, sandbox.api_key, cache=None) as client:
        of.contacts(emails=["logged@acme.example"], client=client)
        requests.get(f"{sandbox.url}/openapi.json", timeout=10)
    assert "acme" not in caplog.text
    assert "GET /openapi.json" in caplog.text


def test_nothing_is_logged_by_default(sandbox: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    """Without a handler and level of the user's own, nothing is printed."""
    assert logging.getLogger("outreach_frames").level == logging.NOTSET
    with Client(sandbox.url, sandbox.api_key, cache=None) as client:
        of.sequences(client=client, progress=False)
    assert capfd.readouterr() == ("", "")
