"""Connections of the client's tests to a scripted service."""

from __future__ import annotations

from typing import Any

from outreach_frames.client.client import Client
from tests.scripted import Service

TOKEN = "tok-3f9a&b/c=="
LIMIT = {"daily_email_limit": 5}


def connected(service: Service, **options: Any) -> Client:
    """Connect to a scripted service without a cache and with minimal pauses before retries."""
    return Client(service.url, TOKEN, **{"cache": None, "backoff": 0.001, **options})
