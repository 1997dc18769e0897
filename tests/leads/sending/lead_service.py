"""Replies of a scripted service that accepts leads, and helpers to read its requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd

from outreach_frames.client.client import Client
from outreach_frames.leads.sending.report import SubmissionReport
from tests import scripted as script
from tests.scripted import Received, Reply, Service, scripted


def added(received: Received) -> Reply:
    """Reply that all leads of a request were added."""
    sent = len(received.json["leads"])
    return script.json({"total": sent, "total_added_to_sequence": sent})


def refused(*codes: str, status: int = 422) -> Reply:
    """Reply that the request is refused with these error codes."""
    errors = [{"error_code": code, "message": f"because of {code}"} for code in codes]
    return script.json({"validation_errors": errors}, status)


def skipped(name: str) -> Callable[[Received], Reply]:
    """Return a function that replies that all leads of a request are in this skip list."""

    def reply(received: Received) -> Reply:
        leads = received.json["leads"]
        entries = [{key: lead.get(key) for key in ("email", "profnet_url")} for lead in leads]
        return script.json({"total": len(leads), "total_added_to_sequence": 0, name: entries})

    return reply


def column(report: SubmissionReport, name: str = "status") -> list[Any]:
    """Return a column of a report's rows, by default the statuses; None for missing values."""
    cells = report.rows[name].astype(object)
    return cells.where(cells.notna(), None).tolist()


def notes(report: SubmissionReport) -> list[str]:
    """Return the details without the day of a recorded outcome."""
    return [re.sub(r"^\w+ on \d{4}-\d\d-\d\d(; )?", "", text) for text in report.rows["detail"]]


def pairs(*rows: tuple[str | None, str | None]) -> pd.DataFrame:
    """Make a frame of pairs of address and profile URL."""
    return pd.DataFrame(rows, columns=["email", "profnet_url"], dtype="object")


@contextmanager
def connected(service: Service, **options: Any) -> Iterator[Client]:
    """Connect to a scripted service."""
    with Client(service.url, "token", cache=None, **{"backoff": 0, **options}) as client:
        yield client


def sent(service: Service) -> list[list[str]]:
    """Return a short name of each lead, per request."""
    return [
        [
            (lead.get("email") or lead["profnet_url"]).rpartition("/")[2].partition(".")[0]
            for lead in each.json["leads"]
        ]
        for each in service.requests
        if each.method == "POST"
    ]


def only_posts(turns: Iterable[Any]) -> Callable[[Received], Reply]:
    """Send the replies in turn to POST requests; reply to GET with two active sequences."""
    rest = iter(turns)

    def turn(received: Received) -> Reply:
        if received.method == "GET":
            active = [{"id": name, "status": "active"} for name in ("s1", "s2")]
            return script.json({"sequences": active, "_links": {}})
        reply = next(rest)
        return reply(received) if callable(reply) else reply

    return turn


@contextmanager
def serving(*turns: Any, **options: Any) -> Iterator[tuple[Service, Client]]:
    """Serve these replies to POST requests in turn, and connect to the service."""
    with scripted(only_posts(turns)) as service, connected(service, **options) as client:
        yield service, client
