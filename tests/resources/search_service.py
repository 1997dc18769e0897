"""A scripted service with numbered people, for tests of search and export."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pandas as pd

import outreach_frames as of
from outreach_frames.client.client import Client
from tests.scripted import Received, Reply, Service, json


def person(number: int) -> dict[str, Any]:
    """Return one person of the scripted service."""
    return {"id": str(uuid.UUID(int=number)), "object": "person", "name": f"Person {number}"}


def result(people: list[dict[str, Any]], **pagination: Any) -> Reply:
    """Return the response of a people search."""
    return json(
        {
            "object": "person_search_result",
            "results": people,
            "_pagination": {"page": 1, "page_size": 100, "total_pages": 1, "total": len(people)}
            | pagination,
        }
    )


def service_of(there: int, **pagination: Any) -> Callable[[Received], Reply]:
    """Return a script with pages of the people 1 to `there`."""

    def reply(request: Received) -> Reply:
        body = request.json
        size, page = body["page_size"], body["page"]
        numbers = range((page - 1) * size + 1, min(page * size, there) + 1)
        told = {"page": page, "page_size": size, "total": there, "total_pages": -(-there // size)}
        return result([person(number) for number in numbers], **{**told, **pagination})

    return reply


def connected(service: Service, **options: Any) -> Client:
    """Connect to a scripted service without a cache and with short pauses."""
    return of.connect(service.url, "token", **{"cache": None} | options)


def numbers(frame: pd.DataFrame) -> list[int]:
    """Return the numbers of the scripted people in a frame."""
    return [uuid.UUID(identity).int for identity in frame["id"]]
