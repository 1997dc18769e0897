"""Threads that a test leaves behind."""

from __future__ import annotations

import threading


def join_workers() -> None:
    """Wait until the threads of a run are gone."""
    for thread in threading.enumerate():
        if thread.name.startswith("outreach_frames"):
            thread.join()
