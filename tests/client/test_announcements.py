"""A wait of a second or more is told on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty

import pytest

from tests import forked
from tests.scripted import json, scripted

pytestmark = pytest.mark.long

CALL = """
import sys, outreach_frames as of
with of.connect(sys.argv[1], "token", cache=None):
    of.sequences(progress=False)
"""


@pytest.mark.parametrize("on_terminal", [True, False])
def test_a_wait_is_told_on_a_terminal(on_terminal: bool) -> None:
    """A Retry-After is told on a terminal though no bar is shown; a pipe gets nothing."""
    replies = [json({}, 429, {"Retry-After": "2"}), json({"sequences": []})]
    seen, screen = pty.openpty() if on_terminal else os.pipe()
    with scripted(replies) as service:
        assert forked.run(CALL, service.url, stderr=screen).returncode == 0
    os.close(screen)
    told = b""
    try:
        while part := os.read(seen, 4096):
            told += part
    except OSError:  # how a terminal says that it is closed
        pass
    os.close(seen)
    assert (b"The service asks to wait 2 s." in told) == on_terminal
    assert told.count(b"\n") == on_terminal
