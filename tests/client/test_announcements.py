"""Waits of a second or more are announced on a terminal only."""

from __future__ import annotations

import os
import pty

import pytest

from tests import forked
from tests.scripted import Reply, json, scripted

pytestmark = pytest.mark.long

CALL = """
import random, sys, outreach_frames as of
from outreach_frames.client.client import Client
# A seed whose first pause is most of the longest possible one.
random.seed(6)
with Client(sys.argv[1], "token", cache=None, backoff=float(sys.argv[2])) as client:
    of.sequences(client=client, progress=False)
"""


LONG_BACKOFF = "A request failed; trying again in "


@pytest.mark.parametrize("on_terminal", [True, False])
def test_a_wait_is_announced_on_a_terminal(on_terminal: bool) -> None:
    """A Retry-After is announced on a terminal even without a bar, but not in a pipe."""
    told = told_on(on_terminal, [json({}, 429, {"Retry-After": "1.5"}), json({"sequences": []})])
    assert (b"The service asks to wait 2 s." in told) == on_terminal
    assert told.count(b"\n") == on_terminal


@pytest.mark.parametrize("first_backoff", [0.5, 1.5])
def test_only_a_long_backoff_is_announced(first_backoff: float) -> None:
    """A pause of a second or more before a retry is announced on a terminal, a shorter one not."""
    told = told_on(True, [json({}, 500), json({"sequences": []})], first_backoff)
    assert (LONG_BACKOFF.encode() in told) == (first_backoff > 1)


def told_on(on_terminal: bool, replies: list[Reply], first_backoff: float = 0.5) -> bytes:
    """Return what a process prints to its terminal or pipe while it lists sequences."""
    seen, screen = pty.openpty() if on_terminal else os.pipe()
    with scripted(replies) as service:
        ran = forked.run(CALL, service.url, str(first_backoff), stderr=screen)
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
