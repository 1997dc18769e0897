"""Waits of a second or more are announced on a terminal only."""

from __future__ import annotations

import os
import pty

import pytest

from tests import forked
from tests.scripted import Reply, json, scripted

pytestmark = pytest.mark.long

CALL = """
import sys, outreach_frames as of
from outreach_frames.client.client import Client
with Client(sys.argv[1], "token", cache=None, backoff=0) as client:
    of.sequences(client=client, progress=False)
"""


@pytest.mark.parametrize("on_terminal", [True, False])
def test_a_wait_is_announced_on_a_terminal(on_terminal: bool) -> None:
    """A Retry-After is announced on a terminal even without a bar, but not in a pipe."""
    told = told_on(on_terminal, [json({}, 429, {"Retry-After": "1.5"}), json({"sequences": []})])
    assert (b"waiting 2 s: the service's rate limit" in told) == on_terminal
    assert told.count(b"\n") == on_terminal


def told_on(on_terminal: bool, replies: list[Reply]) -> bytes:
    """Return what a process prints to its terminal or pipe while it lists sequences."""
    seen, screen = pty.openpty() if on_terminal else os.pipe()
    with scripted(replies) as service:
        ran = forked.run(CALL, service.url, stderr=screen)
        assert ran.returncode == 0
    os.close(screen)
    told = b""
    try:
        while part := os.read(seen, 4096):
            told += part
    except OSError:  # This is how a terminal signals that it is closed.
        pass
    os.close(seen)
    return told
